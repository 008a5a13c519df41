"""The machines and the cases of the NUMA laboratory. README.md explains the fields and how to add a case."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Machine:
    """A machine for QEMU. Nodes with processors come first; each is a package of its own."""

    nodes: int
    processors: int = 1  # per node
    memory: int = 256  # MiB per node
    memory_only: int = 0  # further nodes without processors
    distance: Callable[[int, int], int] = lambda one, other: 20  # between two different nodes
    bandwidth: tuple[int, ...] = ()  # MB/s of each node's memory from the nearest processors: makes a table (HMAT)
    board: str = "q35"
    nic_node: int | None = None  # the node to which the NIC of joined machines is attached; None: the machine does not say
    more: tuple[str, ...] = ()  # further arguments of QEMU

    @property
    def all_nodes(self):
        return self.nodes + self.memory_only

    def processors_of(self, node):
        return set(range(node * self.processors, (node + 1) * self.processors)) if node < self.nodes else set()

    def distances_of(self, node):
        return [10 if other == node else self.distance(node, other) for other in range(self.all_nodes)]

    def nearest_to(self, node):
        """The node of the processors that are nearest to a node's memory."""
        return min(range(self.nodes), key=lambda other: self.distances_of(node)[other])


@dataclass(frozen=True)
class Case:
    """A program and its expected result: the exit status of mpiexec ("fails": any but 0) and lines that it prints."""

    name: str
    machine: str
    program: str  # test/numa/<program>.c
    ranks: tuple[int, ...]
    standard: tuple[int, ...] = ()  # those that are in the standard set, a step of `make test`
    arguments: str = ""
    options: str = ""  # of mpiexec
    environment: dict[str, str] = field(default_factory=dict)
    before: str = ""  # a line of shell that prepares the guest; its changes remain for later cases
    status: int | str = 0
    says: tuple[str, ...] = ()  # regular expressions; ^ and $ are ends of lines
    never: tuple[str, ...] = ()
    seconds: int = 240  # in the guest; a busy host needs many


@dataclass(frozen=True)
class JoinedCase:
    """Two machines with a network between them, and a shell command for each. There, $GUEST is 0 or 1, and $OTHER is the
    other's address."""

    name: str
    machine: str
    commands: tuple[str, str]
    says: tuple[tuple[str, ...], tuple[str, ...]]  # regular expressions that must be found on each
    standard: bool = False  # whether it is in the standard set
    status: int | str = 0  # of both commands; "fails": any but 0, no watchdog
    seconds: int = 60


def around_a_ring(one, other):
    """Distances between four nodes in a ring, where each has two neighbours."""
    return 30 if abs(one - other) == 2 else 20


MACHINES = {
    "four": Machine(nodes=4, processors=2, distance=around_a_ring),
    "two": Machine(nodes=2),
    "nic-on-1": Machine(nodes=4, distance=around_a_ring, memory=320, nic_node=1),
    "nic-on-2": Machine(nodes=4, distance=around_a_ring, memory=320, nic_node=2),
    "two-and-memory": Machine(nodes=2, processors=2, memory_only=1, bandwidth=(40000, 40000, 8000),
                              distance=lambda one, other: 60 if 2 in (one, other) else 21),
}

# Otherwise the kernel also maps the pages around a touched one.
PAGE_BY_PAGE = ("mount -t debugfs debug /sys/kernel/debug 2>/dev/null; "
                "echo 4096 > /sys/kernel/debug/fault_around_bytes")

SAME = r"^the totals are those of numa_maps$"
LOCAL, NOT_LOCAL = (rf"^near place --assert-local ended with status {status}$" for status in (0, 3))
GOOD = r"^all pages on the nodes of their owners$"

HUGE = r"^each rank has an arena in huge pages$"

# Huge pages that the administrator allows: merged from ordinary ones, or reserved.
MERGED = ("for n in 0 1 2 3; do echo 0 > /sys/devices/system/node/node$n/hugepages/hugepages-2048kB/nr_hugepages; done; "
          "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled")
# The kernel reserves fewer pages than requested while it finds no contiguous free memory; that of the last case is
# not free at once.
RESERVED = ("echo never > /sys/kernel/mm/transparent_hugepage/shmem_enabled; "
            "for n in 0 1 2 3; do pages=/sys/devices/system/node/node$n/hugepages/hugepages-2048kB/nr_hugepages; "
            "for attempt in 1 2 3 4 5 6 7 8 9 10; do "
            "echo 1 > /proc/sys/vm/drop_caches; echo 1 > /proc/sys/vm/compact_memory; "
            "echo 4 > $pages; [ $(cat $pages) = 4 ] && break; sleep 1; done; done")

CASES = [
    Case("every page of a rank is on its node", "four", "pages", ranks=(4, 8), standard=(4,), never=("wrong",),
         says=(GOOD, r"^rank 0 \(node 0\) queue: ", r"^rank 3 \(node [13]\) arena: ", r"^of nobody: 0 pages$")),
    Case("packets that are added under load are on the node", "four", "pages", ranks=(4,), never=("wrong",),
         environment={"NEAR_PACKETS": "16"}, says=(GOOD, r"^rank 3 \(node 3\) packets: \d{3,} pages")),
    # 6 ranks on 4 processors are bound to nodes.
    Case("pages lie on nodes with processors", "two-and-memory", "pages", ranks=(4, 6), standard=(6,), never=("wrong", "on node 2"),
         says=(GOOD, r"^rank 0 \(node 0\) packets: ", r"^rank [3-5] \(node 1\) packets: ")),
    Case("allocated memory is on the caller's node", "four", "allocated", ranks=(4, 8), standard=(4,), never=("wrong",),
         says=(GOOD, r"^rank 3 \(node [13]\) MPI_Alloc_mem of 16777216 bytes: 4096 pages, 100.0%")),

    Case("windows are on the nodes of their owners", "four", "windows", ranks=(4, 8), standard=(4,), never=("wrong",),
         says=(GOOD, r"^rank 3 \(node [13]\) allocated window of 4096 bytes: 1 pages, 100.0%",
               r"^rank 2 \(node [12]\) shared window of 12388 bytes: [34] pages, 100.0%",
               r"^rank 1 \(node [01]\) shared, apart, window of 1048584 bytes: 257 pages, 100.0%")),
    Case("windows are on the nodes of their owners, whoever writes first", "four", "windows", arguments="remote", ranks=(4,),
         standard=(4,), never=("wrong",), says=(GOOD, r"^rank 3 \(node 3\) shared window of 1048584 bytes: 25[67] pages, 100.0%")),
    Case("large windows are on the nodes of their owners, whoever touches them first", "four", "windows", arguments="remote large",
         ranks=(4,), standard=(4,), never=("wrong",),
         says=(GOOD, r"^rank 3 \(node 3\) allocated window of 20971528 bytes: 5121 pages, 100.0%",
               r"^rank 2 \(node 2\) shared window of 20971528 bytes: 512[012] pages, 100.0%")),
    Case("windows on another node, when asked for", "two-and-memory", "windows", arguments="2", ranks=(4,), standard=(4,),
         never=("wrong", "warning"), says=(GOOD, r"^rank 0 \(node 2\) shared window of 1048584 bytes: 257 pages, 100.0%")),

    # Special memory: another node, another kind, huge pages.
    Case("memory of a slower kind, when asked for", "two-and-memory", "asked",
         arguments="2 4194304 near_memory_tier=cxl", ranks=(4,), standard=(4,), never=("wrong", "warning"), says=(GOOD,)),
    Case("memory of a node, when asked for", "two-and-memory", "asked", arguments="1 4194304 near_memory_node=1",
         ranks=(4,), standard=(4,), never=("wrong", "warning"), says=(GOOD, r"^rank 0 \(node 1\) asked: 1024 pages, 100.0%")),
    Case("memory of a kind that is not there comes from the own node", "two-and-memory", "asked",
         arguments="own 4194304 near_memory_tier=hbm", ranks=(4,), never=("wrong",),
         says=(GOOD, r"near_memory_tier=hbm: mpiexec has found no such memory")),
    Case("memory with a slip in its keys", "two-and-memory", "asked",
         arguments="own 8192 near_memory_teir=cxl near_memory_tier=cxi near_page_size=3m", ranks=(2,), never=("wrong",),
         says=(GOOD, r"near_memory_teir means nothing here; did you mean near_memory_tier\?",
               r"near_memory_tier=cxi: expected dram, hbm or cxl; did you mean cxl\?",
               r"near_page_size=3145728: pages have 4096 or 2097152 bytes here")),
    Case("memory of a node that is too small spills, and says so", "two-and-memory", "asked",
         arguments="2 314572800 near_memory_node=2", ranks=(1,), status=1,
         says=(r"^rank 0 .* wrong: \d+ on node", r"of its 76800 pages are on node \d: node 2 had no room"),
         never=("KILLED", "killed")),
    Case("memory in huge pages that are made of ordinary ones", "four", "asked", arguments="own 5242880", ranks=(4,),
         before=MERGED, never=("wrong", "warning"), says=(GOOD, r"^rank 3: 4096 of 5120 KiB in huge pages$")),
    Case("near place: its totals with huge pages", "four", "viewed", arguments="huge", ranks=(4,), before=MERGED,
         says=(SAME, LOCAL, HUGE), never=("DIFFERENT", "warning:")),
    Case("memory in small pages, when asked for", "four", "asked", arguments="own 5242880 near_page_size=4k", ranks=(4,),
         before=MERGED, never=("wrong", "warning"), says=(GOOD, r"^rank 3: 0 of 5120 KiB in huge pages$")),
    Case("memory in huge pages that are reserved", "four", "asked", arguments="own 6291456 near_page_size=2m",
         before=RESERVED, ranks=(4,), standard=(4,), never=("wrong", "warning"), says=(GOOD, r"^rank 3: 6144 of 6144 KiB in huge pages$")),
    Case("reserved huge pages behind a wrapper that closes what it does not know", "four", "asked",
         arguments="own 6291456 near_page_size=2m", ranks=(4,), never=("wrong", "warning"),
         before=RESERVED, environment={"NEAR_HUGE_PAGES": "0"},  # only for memory that requests them
         options="sh -c 'for f in 3 4 5 6 7 8 9; do eval \"exec $f>&-\"; done; exec \"$0\" \"$@\"'",
         says=(GOOD, r"^rank 3: 6144 of 6144 KiB in huge pages$")),
    Case("near place: its totals with reserved pages", "four", "viewed", arguments="huge", ranks=(4,), before=RESERVED,
         says=(SAME, LOCAL, HUGE), never=("DIFFERENT", "warning:")),
    Case("reserved huge pages run out", "four", "asked", arguments="own 20971520 near_page_size=2m", ranks=(4,),
         before=RESERVED, never=("wrong",),
         says=(GOOD, r"^rank 3: 0 of 20480 KiB in huge pages$", r"the administrator has reserved too few \(\d+ are free\)")),

    Case("reserved huge pages come back when a job ends", "four", "asked", arguments="own 8192", ranks=(1,),
         before=RESERVED, says=(GOOD, r"^free: 16$"),
         options="sh -c 'for n in 1 2; do mpiexec -n 4 asked own 6291456 near_page_size=2m; done; sleep 1; "
                 "echo free: $(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages); exec \"$0\" \"$@\"'"),

    Case("communicators are split by nodes, caches and cores", "four", "hardware_parts", ranks=(4, 8),
         says=(r"^divided by hwloc://Package$",)),
    # Ranks 2 n and 2 n + 1 are on node n. Roots are the first and the last rank, of 1 MiB each: six crossings.
    Case("a broadcast crosses to each other node once", "four", "crossings", ranks=(8,), standard=(8,),
         environment={"NEAR_STATS": "1"}, never=(r"[1-9]\d* wrong bytes",),
         says=tuple(rf"rank {rank}\b.*collectives read {read << 20} bytes of other ranks, {crossing << 20} of them from other"
                    for rank, read, crossing in ((0, 1, 1), (1, 2, 0), (2, 2, 2), (3, 2, 0), (4, 2, 2), (5, 2, 0), (6, 2, 1),
                                                 (7, 1, 0)))),
    # Each rank reads its eighth of the seven other vectors, and the other seven eighths of the sum, from the six ranks on other nodes too.
    Case("an allreduce reads no byte twice, from other nodes neither", "four", "crossings", arguments="allreduce", ranks=(8,), standard=(8,),
         environment={"NEAR_STATS": "1"}, never=(r"[1-9]\d* wrong bytes",),
         says=tuple(rf"rank {rank}\b.*collectives read {2 * 7 << 17} bytes of other ranks, {2 * 6 << 17} of them from other" for rank in range(8))),
    Case("communicators of ranks that are bound to nodes", "four", "hardware_parts", ranks=(6,), options="--bind-to numa",
         says=(r"^divided by hwloc://Package$",)),

    # Eight ranks in a grid of four by two: at best, one of the ten edges stays within each node.
    Case("a shuffled stencil is reordered by nodes", "four", "stencil", arguments="shuffled grid", ranks=(8,), standard=(8,),
         says=(r"^kept: 0 bytes between machines, 540000 bytes between nodes$",
               r"^reordered: 0 bytes between machines, 360000 bytes between nodes$")),
    Case("reordered topologies: ranks on nodes know their neighbours", "four", "reordered_topologies", arguments="shuffled", ranks=(8,)),

    # The viewer compared with the kernel's counts, and its reports about pages that lie elsewhere.
    Case("near place: its totals are those of numa_maps", "four", "viewed", ranks=(4, 8), standard=(4,),
         says=(SAME, LOCAL, r"^Every page lies where it belongs\.$"), never=("DIFFERENT", "warning:")),
    Case("near place: memory that was requested on other nodes is not a fault", "four", "viewed", arguments="policies",
         ranks=(4,), standard=(4,), says=(SAME, LOCAL), never=("DIFFERENT", "warning:")),
    Case("near place: windows, also one whose parts lie in a row", "four", "viewed", arguments="windows", ranks=(4,),
         standard=(4,), says=(SAME, LOCAL, r"^every rank has pages in windows$"), never=("DIFFERENT", "warning:")),
    Case("near place: planted, a page of rank 0's window on node 3", "four", "viewed",
         arguments="window-neighbour", ranks=(4,), never=("DIFFERENT", LOCAL),
         says=(SAME, NOT_LOCAL, r"^warning: rank 0 window: 1 of \d+ pages not on node 0 but on node 3 ")),
    Case("near place: planted, a page of rank 0's arena made by rank 3", "four", "viewed", arguments="neighbour",
         ranks=(4,), standard=(4,), never=("DIFFERENT", LOCAL),
         says=(SAME, NOT_LOCAL, r"^warning: rank 0 arena: 1 of \d+ pages not on node 0 but on node 3 ",
               r"rank 3 runs there and maps them", r"1 page that rank 0 has not touched; mapped by rank 3$",
               r"less than 99\.9% local: rank 0 arena: 99\.\d\d%$")),
    Case("near place: planted, a page of rank 0's own memory on node 3", "four", "viewed", arguments="heap", ranks=(4,),
         says=(SAME, NOT_LOCAL, r"^warning: rank 0 anonymous: 1 of \d+ pages not on node 0 but on node 3 ",
               r"less than 99\.9% local: rank 0 anonymous: 99\.\d\d%$"), never=("DIFFERENT", LOCAL)),
    Case("near place: planted, a rank that left its binding", "four", "viewed", arguments="moved", ranks=(4,),
         says=(SAME, r"^warning: rank 0 may now run on processors 2-3 \(node 1\); mpiexec had bound it to processor 0"),
         never=("DIFFERENT", r"warning: rank [123] may")),

    # The same without knowledge of the segment, as in test/numa/peers for other libraries.
    Case("an outsider finds every page on its owner's node", "four", "touched", ranks=(4, 8), before=PAGE_BY_PAGE,
         says=(r"^of one rank: [1-9]\d+ pages, 100.0% on its node$", r"^beside: \d+ pages, 100.0% on its node$",
               r"^of a pair: \d+ pages, 100.0% on the node")),
    Case("planted: an outsider finds the pages of a rank that runs on another node in MPI_Init", "four", "touched",
         arguments="early", ranks=(4,), before=PAGE_BY_PAGE, never=("100.0% on its node",),
         says=(r"^rank 0 \(node 0, bound\): \d{3,} pages, \d there$", r"^of one rank: [1-9]\d+ pages")),

    # Planted faults: the checks must find them.
    Case("planted: a rank that runs on another node in MPI_Init", "four", "pages", arguments="early", ranks=(4,), standard=(4,),
         status=1, never=(GOOD, r"^rank [123] .*wrong"),
         says=(r"^rank 0 \(node 0\) queue: .*, 0.0% on node 0, wrong: \d+ on node 1$",
               r"^rank 0 \(node 0\) packets: .*, 0.0% on node 0, wrong: \d+ on node 1$")),
    Case("planted: a rank that writes to another's arena", "four", "pages", arguments="neighbour", ranks=(4,), standard=(4,),
         status=1, never=(GOOD, r"^rank [123] .*wrong", r"^rank 0 .* queue: .*wrong"),
         says=(r"^rank 0 \(node 0\) far arena: .*, wrong: 1 on node 3$",)),
]

# 1 MiB without repetitions, made on both machines.
MADE = "seq 1 170000 | head -c 1048576"
# busybox's nc shuts down the connection when its own input ends, so it gets an endless one.
RECEIVE = ("mkfifo /tmp/endless && "
           f'[ "$(nc -l -p 5000 <>/tmp/endless | md5sum)" = "$({MADE} | md5sum)" ] && echo "came as sent"')
SEND = f"until {MADE} | nc $OTHER 5000; do sleep 1; done"

# mpiexec reaches the other machine by REACH, which passes the command line and the standard input on; SERVE executes the line there,
# once. An agent's complaints go to the console. mpiexec begins when SERVE listens, which it says by listening at port 5002 as well. If a
# second agent is reached before its listener is there, the connection is tried again.
REACH = """cat >/bin/reach <<'END'
#!/bin/sh
host=$1; shift
{ echo "$@"; cat; } | { tries=0; until nc $host 5001 || [ $((tries += 1)) = 25 ]; do sleep 1; done; }
END
chmod +x /bin/reach; hostname here; until nc $OTHER 5002 </dev/null >/dev/null 2>&1; do sleep 1; done"""
LISTENING = "grep -q ':1389 .* 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null"  # at port 5001
SERVE = f"""cat >/bin/serve <<'END'
#!/bin/sh
read -r line
eval "$line" 2>/dev/ttyS0
END
chmod +x /bin/serve; hostname there; nc -l -p 5001 -e /bin/serve & until {LISTENING}; do sleep 1; done; nc -l -p 5002 </dev/null >/dev/null; wait"""


def led(what, settings=""):
    """Shell commands for two machines: four ranks on each execute test/mpi/led.c."""
    return (f"{REACH}; {settings} NEAR_STATS=1 NEAR_LOG=debug mpiexec --launcher-exec /bin/reach --hosts here:4,$OTHER:4 --timeout 60 "
            f"led {what} 2>&1", SERVE)


def leads(rank, distance, *others):
    """What a leader that is not the lowest rank says of itself."""
    return (rf"^near: rank {rank}: this rank leads those of its machine in collectives between machines: its distance from the NIC is "
            rf"{distance}, that of rank {others[0]} is {others[1]}$")


# A rank that reads a broadcast of 1 MiB from one on another node of its machine, and sends nothing but a few bytes.
ACROSS = r"collectives read 1048576 bytes of other ranks, 1048576 of them from other NUMA nodes$"
# 1 MiB, and the four bytes by which the lowest ranks exchange who leads.
ROOT = r"^near: rank 0: .*; to other machines: \d messages, 1048580 bytes; "
# The leader that receives it reads nothing of the ranks of its machine and sends nothing to another one.
RECEIVES = r"^near: rank {}: (?!.*(?:to other machines|collectives read))"


def broadcast_by(nic_node):
    """A broadcast by the root enters the other machine at the rank beside its NIC, and crosses to each other node once."""
    leader = 4 + nic_node
    others = [rank for rank in (1, 2, 3, 4, 5, 6, 7) if rank != leader]
    return (ROOT, RECEIVES.format(leader), leads(leader, 10, 4, 20 if nic_node == 1 else 30),
            *(rf"^near: rank {rank}: .*{ACROSS}" for rank in others))


# Two jobs, one after the other: sixteen shuffled ranks in a square, in their order and reordered; and ranks that are split by nodes.
# Each edge of the square stands for 60000 bytes. Of its 24 edges, four have to lead from machine to machine, and twelve more from node to node.
SQUARE = (f"{REACH}; NEAR_LOG=debug mpiexec --launcher-exec /bin/reach --hosts here:8,$OTHER:8 --timeout 100 stencil shuffled grid 2>&1 && "
          "mpiexec --launcher-exec /bin/reach --hosts here:8,$OTHER:8 --timeout 100 split_by_machines 2>&1",
          f"{SERVE}; nc -l -p 5001 -e /bin/serve")

# Programs of test/mpi that they use.
JOINED_PROGRAMS = ("led", "stencil", "split_by_machines")

JOINED_CASES = [
    JoinedCase("a broadcast enters the other machine at the rank beside the NIC, on node 1", "nic-on-1", standard=True, seconds=180,
               commands=led("0"), says=(broadcast_by(1), ())),
    JoinedCase("a broadcast enters the other machine at the rank beside the NIC, on node 2", "nic-on-2", seconds=180,
               commands=led("0"), says=(broadcast_by(2), ())),
    JoinedCase("an allreduce crosses between machines at the ranks beside the NICs", "nic-on-2", seconds=180,
               commands=led("allreduce", "NEAR_COLL=allreduce=by_machine"),
               says=((leads(2, 10, 0, 30), leads(6, 10, 4, 30), r"^near: rank 2: .*; to other machines: ",
                      r"^near: rank 6: .*; to other machines: ", *(rf"^near: rank {rank}: (?!.*to other machines: [^;]*\d\d bytes)"
                                                                   for rank in (0, 1, 3, 4, 5, 7))), ())),
    JoinedCase("a shuffled stencil is reordered by machines, and then by nodes", "four", seconds=240, commands=SQUARE,
               says=((r"^kept: 1140000 bytes between machines, 1440000 bytes between nodes$",
                      r"^reordered: 240000 bytes between machines, 960000 bytes between nodes$",
                      *(rf"^rank {rank}: 2 ranks on its node, 8 on its machine$" for rank in range(16))), ())),
    JoinedCase("two machines hear each other, and bytes come as they were sent", "two", standard=True,
               commands=(f"{RECEIVE} && {SEND}", f"ping -c 3 $OTHER && {SEND} && {RECEIVE}"),
               says=((r"^came as sent$",), (r"^3 packets transmitted, 3 packets received", r"^came as sent$"))),
]
