"""Jobs on several machines: the machines and the link between them, and how each library's own launcher starts a job there."""

import contextlib
import subprocess
import sys
from dataclasses import dataclass, replace

from . import libraries
from .libraries import BUILD, LIMITS, ROOT, Unavailable

sys.path.insert(0, str(ROOT / "test"))
sys.path.insert(0, str(ROOT / "test/net"))
from machines import HYDRA, Machines, Refused, hold  # noqa: E402

MACHINES = 4
SWITCH = "delayed_switch"


@dataclass(frozen=True)
class Link:
    """What a machine's interface can do. `rate`: as tc writes it, or ""; `delay`: microseconds from machine to machine."""

    name: str
    title: str
    rate: str = ""
    delay: int = 0


LINKS = {link.name: link for link in [
    Link("plain", "veth pairs and a bridge of the kernel, as fast as the processors are"),
    Link("10gbit", "10 Gbit/s each way (tc tbf), and 20 us of delay (delayed_switch.c)", "10gbit", 20),
]}


class Laboratory(Machines):
    """The machines, joined by a link of this kind."""

    def __init__(self, link, count=MACHINES):
        super().__init__(count)
        self.link = link

    def _join(self):
        super()._join()
        if self.link.rate:
            for index in range(self.count):
                self._tc(index)
        if self.link.delay:
            self._replace_bridge()

    def _tc(self, index):
        # The burst takes several of the largest frames, which are cut only behind this queue.
        words = ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", self.link.rate, "burst", "256k", "latency", "10ms"]
        subprocess.run(self.on(index, words), check=True, capture_output=True, text=True)

    def _replace_bridge(self):
        """The machines' ends of the veth pairs, and the bridge with the launchers behind it, become ports of the delayed switch."""
        inside = ["nsenter", "-t", str(self.processes[0].pid), "-n", "--"]
        script = "ip link add outside type veth peer name inside; ip link set inside master switch up; ip link set outside up; " + \
            "; ".join(f"ip link set {name} nomaster" for name in self.names)
        subprocess.run([*inside, "sh", "-ec", script], check=True, capture_output=True, text=True)
        program = [BUILD / LIMITS.binary / SWITCH, self.link.delay, "outside", *self.names]
        self.processes.append(hold("setpriv", "--pdeathsig", "KILL", *inside, *map(str, program)))

    def command(self, library, case, ranks, arguments):
        """The command that runs a case's program on `case.machines` of these machines."""
        words = [BUILD / library.binary / case.program_of(library), *arguments]
        if library is LIMITS:
            return words
        place = Place(self, self.names[:case.machines], ranks, case.in_turns)
        return ["nsenter", "-t", self.processes[0].pid, "-n", "--", *STARTERS[library.name](library, place), *words]

    def variables(self):
        """What the limits have to know of the machines."""
        both = [f"10.77.0.{number}=/proc/{pid}/ns/net" for number, pid in enumerate(self.pids[:2], 1)]
        return {"BENCH_MACHINES": ",".join(both)}


@dataclass(frozen=True)
class Place:
    """Where ranks run: in blocks, or one on each machine in turns."""

    laboratory: Laboratory
    hosts: list
    ranks: int
    in_turns: bool

    @property
    def of_each(self):
        return self.ranks // len(self.hosts)


def _hydra(program, names, place):
    """The command line of a Hydra. Two of its options have other names in Intel MPI."""
    launcher, agent = names
    return [program, launcher, "ssh", agent, place.laboratory.shell, "-iface", "switch", "-hosts", ",".join(place.hosts),
            "-ppn", 1 if place.in_turns else place.of_each, "-n", place.ranks]


def _by_nearmpi(library, place):
    hosts = place.hosts if place.in_turns else [f"{host}:{place.of_each}" for host in place.hosts]
    turns = ["-ppn", 1] if place.in_turns else []
    return [library.launcher[0], "--remote-shell", place.laboratory.shell, "--oversubscribe", "--bind-to", "none", "--hosts", ",".join(hosts), *turns,
            "-n", place.ranks]


def _by_mpich(_library, place):
    return _hydra(HYDRA, ("-launcher", "-launcher-exec"), place)


def _by_impi(library, place):
    return _hydra(library.launcher[0], ("-bootstrap", "-bootstrap-exec"), place)


def _by_openmpi(library, place):
    hosts = ",".join(f"{host}:{place.of_each}" for host in place.hosts)
    return [library.launcher[0], "--prtemca", "plm_ssh_agent", place.laboratory.shell, "--host", hosts,
            "--map-by", "node" if place.in_turns else "slot", "--bind-to", "none", "-n", place.ranks]


STARTERS = {"nearmpi": _by_nearmpi, "base": _by_nearmpi, "mpich": _by_mpich, "impi": _by_impi, "openmpi": _by_openmpi}

# Which network each peer uses: TCP between the machines, on the interface that joins them. They see others that lead nowhere, and
# UCX takes ways through memory for possible, since the machines have one kernel.
VARIABLES = {
    "mpich": {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"},
    "impi": {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0"},
    "openmpi": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm,tcp", "OMPI_MCA_btl_tcp_if_include": "eth0"},
}


def on_machines(library):
    """The library with what it needs to know of the network."""
    return replace(library, variables={**library.variables, **VARIABLES.get(library.name, {})})


def prepare():
    """Builds what the machines need."""
    libraries.build(LIMITS, SWITCH)


@contextlib.contextmanager
def laboratory(link):
    """A Laboratory. Raises Unavailable if the system does not let us make one."""
    made = Laboratory(link)
    try:
        made.__enter__()
    except Refused as refused:
        raise Unavailable(f"this system does not let us make machines (it takes root): {refused}") from None
    except subprocess.CalledProcessError as failed:
        raise Unavailable(f"the machines cannot be joined: {failed.stderr.strip()}") from None
    try:
        yield made
    finally:
        made.__exit__()
