"""Slurm on machines of test/net: munged, slurmctld and a slurmd for each machine, without systemd and control groups."""

import contextlib
import os
import subprocess
import tempfile
import time
from pathlib import Path

import harness

TOOLS = ("munged", "slurmctld", "slurmd", "srun")


def is_installed():
    return all(any(os.access(f"{folder}/{tool}", os.X_OK) for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin")) for tool in TOOLS)


class Slurm:
    """A cluster of these machines. `run(words)` runs srun with these options and command."""

    def __init__(self, machines):
        self.machines = machines
        self.processes = []

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="near-slurm-")
        place = Path(self.folder.name)
        place.chmod(0o755)
        try:
            self._start(place)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        with contextlib.suppress(OSError):
            self.folder.cleanup()

    def _spawn(self, words, log):
        with open(log, "w") as out:
            self.processes.append(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], stdin=subprocess.DEVNULL, stdout=out,
                                                   stderr=subprocess.STDOUT, env={**os.environ, "SLURM_CONF": str(self.conf)}))

    def _start(self, place):
        key, socket = place / "munge.key", place / "munge.socket"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        nodes = [f"NodeName={name} NodeAddr=10.77.0.{number} CPUs={os.cpu_count()} State=UNKNOWN"
                 for number, name in enumerate(self.machines.names, 1)]
        self.conf = place / "slurm.conf"
        self.conf.write_text("\n".join([
            "ClusterName=near", f"SlurmctldHost={os.uname().nodename}(10.77.0.254)", "SlurmUser=root", "AuthType=auth/munge",
            f"AuthInfo=socket={socket}", f"StateSaveLocation={place}/state", f"SlurmdSpoolDir={place}/spool-%n",
            f"SlurmctldPidFile={place}/slurmctld.pid", f"SlurmdPidFile={place}/slurmd-%n.pid", "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none", "MpiDefault=pmi2", "ReturnToService=2", "SelectType=select/cons_tres",
            "SchedulerParameters=sched_interval=1", *nodes,
            f"PartitionName=all Nodes={','.join(self.machines.names)} Default=YES OverSubscribe=FORCE:8 State=UP", ""]))
        # Its plugin for PMIx makes a folder that is named after the step.
        (place / "mpi.conf").write_text(f"PMIxCliTmpDirBase={self.machines.own}\n")
        self._spawn(["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={socket}", f"--pid-file={place}/munged.pid",
                     f"--seed-file={place}/munged.seed"], place / "munged.log")
        self._spawn(["nsenter", "-t", str(self.machines.processes[0].pid), "-n", "--", "slurmctld", "-D", "-f", str(self.conf)],
                    place / "slurmctld.log")
        for index, name in enumerate(self.machines.names):
            self._spawn(self.machines.on(index, ["slurmd", "-D", "-N", name, "-f", self.conf]), place / f"slurmd-{name}.log")
        deadline = time.monotonic() + 30
        while self.run(["-N", len(self.machines.names), "true"], timeout=10).status != 0:
            if time.monotonic() > deadline:
                logs = "\n".join(f"--- {log.name}\n{log.read_text()[-2000:]}" for log in sorted(place.glob("*.log")))
                raise RuntimeError(f"Slurm does not start:\n{logs}")
            time.sleep(0.3)

    def start(self, words, *, tool="srun", environment=None):
        """Starts srun, or another tool of Slurm, beside slurmctld (harness.Running)."""
        command = ["nsenter", "-t", self.machines.processes[0].pid, "-n", "--", tool, "--immediate=10", *words]
        return harness.Running(command, env={"SLURM_CONF": self.conf, **(environment or {})})

    def run(self, words, *, environment=None, timeout=60):
        """Runs srun (harness.run)."""
        return self.start(words, environment=environment).finish(timeout)

    def allocate(self, words, *, timeout=60):
        """Runs salloc: a command beside slurmctld, for which machines are reserved."""
        return self.start(words, tool="salloc").finish(timeout)
