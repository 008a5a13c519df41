"""What is measured. To add a case: a program in bench/, a row here, and, if it has a goal, one in goals.py."""

from dataclasses import dataclass, field, replace

from .libraries import LIMITS, PEERS

BUFFERS = ("reused", "rewritten")
VARIANTS = (*BUFFERS, "alloc-reused", "alloc-rewritten")
SHORT_SIZES = [0, 8, *(4**n for n in range(3, 13))]
SIZES = [0, 1, 8, *(2**n for n in range(6, 25))]
NONE = ("-",)  # the variant of values that know none
MESSAGES = ("1", "10", "100", "1000")  # how many round trips, or repetitions
THREAD_SIZES = (8, 1024, 8192, 16384, 65536)
PROGRAMS = {"stencil": "stencil", "cg": "conjugate gradients", "sort": "sample sort", "bfs": "breadth-first search"}
GUIDELINES = ("barrier<=allreduce", "allreduce<=reduce+broadcast", "allreduce<=reduce_scatter_block+allgather", "reduce<=allreduce",
              "broadcast<=scatter+allgather", "gather<=allgather", "scatter<=broadcast", "allgather<=gather+broadcast",
              "allgather<=alltoall", "reduce_scatter_block<=reduce+scatter", "scan<=exscan+reduce_local", "gather<=gatherv",
              "scatter<=scatterv", "allgather<=allgatherv", "alltoall<=alltoallv")
LAYOUTS = ("d1s2", "d1s3", "d1s4", "d1s8", "d1s16", "d1s64", "d1s128", "d1s1024", "d4s8", "d4s128", "d8s512", "d16s32", "d64s128", "f1s2", "f1s4",
           "f1s16", "f4s16", "indexed1", "indexed3", "records", "lengths", "mg_x", "mg_y", "mg_z", "lu_y", "milc", "wrf_x", "lammps",
           "specfem_oc", "specfem_cm", "fft")
# How data with gaps is moved, and the way that each is compared with.
WAYS = {"hand": "", "pack": "hand", "hand-unpack": "", "unpack": "hand-unpack", "pack-bytes": "hand", "contiguous": "",
        "by-hand": "contiguous", "packed": "by-hand", "typed": "by-hand", "isend": "by-hand", "alloc": "by-hand", "alltoallw": "", "put": ""}
COLLECTIVES = ("broadcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter")


@dataclass(frozen=True)
class Case:
    """One program, or several whose values share a table, run by every library in every round."""

    name: str
    title: str
    program: str
    unit: str
    shows: dict  # the program's values that are results, with their titles
    ranks: tuple = ()  # empty: as the command line has it
    one_pair_too: bool = False  # with many ranks, also with two
    variants: tuple = NONE
    sizes: tuple = ()  # empty: as the command line has it
    size_title: str = "bytes"
    budget: float = 25  # milliseconds a figure
    more: tuple = ()  # arguments
    lower_is_better: bool = True
    limits: str = ""  # the program that measures the machine's limits beside it, for one pair
    most_bytes: int = 1 << 62  # larger sizes of the command line are left out
    variant_title: str = "buffers"
    cold: bool = False  # a process for each size
    programs: tuple = ()  # several, each with a process of its own, instead of `program`
    whole_run: bool = False  # the result is how long the launcher took, in seconds
    time_limit: float = 60  # seconds for one run of the program
    base_variant: str = ""  # the one that the others are compared with, in the same run
    bases: dict = field(default_factory=dict)  # the same for some variants, each with its own
    plots: bool = True  # is it drawn?
    drawn_beside_base: tuple = ()  # variants that are drawn as ratios to their base, instead of all over the size
    steps: bool = False  # the results are steps between neighbouring sizes and numbers of ranks (figures.steps)
    short_ranks: tuple = ()  # instead of `ranks`, when the command line asks for few sizes
    most_rounds: int = 1 << 62  # it is left out of later rounds
    ours_only: bool = False  # it compares NearMPI with itself, and the peers do not run it
    machines: int = 0  # on so many machines of --net; 0: on this one
    in_turns: bool = False  # a rank on each machine in turns, so that the partners of pairs are on two; otherwise in blocks

    def ranks_for(self, options):
        if self.short_ranks and options.few_sizes:
            return self.short_ranks
        if self.ranks:
            return self.ranks
        return (2, options.np) if self.one_pair_too and options.np != 2 else (options.np,)

    def run_by(self, libraries):
        """Those of the libraries that run it."""
        return [library for library in libraries if not (self.ours_only and library.name in PEERS)]

    def base_of(self, variant):
        """The variant that this one is compared with, or ""."""
        return self.bases.get(variant, self.base_variant)

    def runs(self, options):
        """The case as it is run: once, or once for each size if it is cold, or once for each of several programs."""
        if self.programs:
            return [replace(self, program=program, programs=()) for program in self.programs]
        return [replace(self, sizes=(size,)) for size in self.sizes_for(options)] if self.cold else [self]

    def limits_for(self, ranks):
        """The program of the limits, or "": what several pairs can do together, nobody measures."""
        return self.limits if ranks == 2 else ""

    def program_of(self, library):
        return self.limits if library is LIMITS else self.program

    def arguments(self, options, library):
        variants = [name for name in self.variants if name in options.variants or name not in VARIANTS]
        budget = self.budget * options.budget / 25
        if library is LIMITS:
            variants = sorted({name.removeprefix("alloc-") for name in variants})
            budget /= 4  # it has many methods to try
        return [f"{budget:g}", ",".join(variants), ",".join(map(str, self.sizes_for(options))), *self.more]

    def sizes_for(self, options):
        return self.sizes or [size for size in options.sizes if size <= self.most_bytes]


CASES = {
    case.name: case
    for case in [
        Case("latency", "Ping-pong: half a round trip", "latency", "us", {"latency": ""}, variants=VARIANTS,
             limits="limits", time_limit=180),
        Case("bandwidth", "Streams of messages", "stream", "MB/s", {"stream": "one way", "both": "both ways"},
             variants=BUFFERS, more=("stream,both",), lower_is_better=False, limits="stream_limits", time_limit=180),
        Case("one buffer", "Windows of 64 messages in one buffer", "stream", "MB/s", {"stream": "one way", "both": "both ways"}, ranks=(2,),
             variants=("one-buffer",), most_bytes=4 << 20, more=("stream,both",), lower_is_better=False, time_limit=180),
        Case("rate", "Message rate", "stream", "messages/s", {"rate": ""}, one_pair_too=True, variants=BUFFERS,
             sizes=(1, 8, 64, 256, 1024), more=("rate",), lower_is_better=False, limits="stream_limits"),
        Case("first", "The beginning of a pair: until so many round trips are back", "first", "us", {"first": ""}, ranks=(2,),
             variants=MESSAGES, variant_title="round trips", most_bytes=4 << 20, cold=True),
        Case("sweep", "All sizes in one process, 300 repetitions each", "sweep", "us",
             {name: name for name in ("latency", "barrier", *COLLECTIVES)}, ranks=(2,), variants=("300",),
             variant_title="repetitions", most_bytes=4 << 20,
             more=(",".join(("latency", "barrier", *COLLECTIVES)),), limits="sweep_limits", time_limit=300),
        Case("crowded sweep", "All sizes in one process, 100 repetitions each", "sweep", "us",
             {name: name for name in ("barrier", *COLLECTIVES)}, ranks=(4, 8), variants=("100",), variant_title="repetitions",
             most_bytes=256 << 10, more=(",".join(("barrier", *COLLECTIVES)),), time_limit=300),
        Case("crowd", "More ranks than cores: half a round trip in pairs", "latency", "us", {"latency": ""}, ranks=(8,),
             variants=("reused",), sizes=(8, 4096), budget=100),
        Case("collectives", "Barrier and allreduce", "collectives", "us", {"barrier": "barrier", "allreduce": "allreduce"},
             ranks=(2, 8), sizes=(4,), budget=50),
        Case("guidelines", "Collectives and their mock-ups from other collectives", "guidelines", "us",
             {name: name.replace("<=", " <= ").replace("+", " + ") for name in GUIDELINES}, ranks=(2, 8),
             variants=("collective", "mock-up"), variant_title="what is called", base_variant="mock-up",
             sizes=(8, 1024, 16 << 10, 256 << 10), plots=False, ours_only=True),
        Case("forms", "Nonblocking and persistent collectives beside the blocking call", "forms", "us",
             {name: name for name in ("barrier", *COLLECTIVES)}, ranks=(2, 8), variants=("blocking", "nonblocking", "persistent"),
             variant_title="form", base_variant="blocking", sizes=(8, 1024, 64 << 10), more=(",".join(("barrier", *COLLECTIVES)),),
             plots=False, ours_only=True),
        Case("cliffs", "Steps between neighbouring sizes and numbers of ranks", "cliffs", "us",
             {name: name for name in ("barrier", *COLLECTIVES)}, ranks=tuple(range(1, 33)),
             short_ranks=(1, 2, 3, 4, 5, 8, 9, 16, 17), sizes=tuple(2**n for n in range(2, 21)), budget=10,
             more=(",".join(("barrier", *COLLECTIVES)),), plots=False, steps=True, most_rounds=5, ours_only=True),
        Case("datatypes", "Derived datatypes beside packing by hand", "datatypes", "us", {name: name for name in LAYOUTS}, ranks=(2,),
             variants=tuple(WAYS), variant_title="way", bases=WAYS, sizes=(64, 512, 4096, 64 << 10, 1 << 20), budget=5,
             more=(",".join(LAYOUTS),), drawn_beside_base=("pack", "unpack", "typed"), time_limit=600),
        Case("polling", "Programs that poll", "polling", "us", {"traversal": "breadth-first search", "token": "hop of a token"},
             ranks=(2, 4, 8, 16), sizes=(0,), budget=100, time_limit=120),
        Case("programs", "Small programs: one run", "", "us", PROGRAMS, ranks=(2, 8), variants=("communication", "whole"),
             variant_title="time", sizes=(0,), budget=500, programs=tuple(f"programs/{name}" for name in PROGRAMS)),
        Case("threads", "Threads: all pairs of two ranks at the same time", "threads", "us", {"latency": "latency"}, ranks=(2,),
             variants=("2", "4"), variant_title="threads of a rank", sizes=THREAD_SIZES, budget=50, more=("latency",), time_limit=120),
        Case("threads rate", "Threads: message rate of two ranks", "threads", "messages/s", {"rate": "rate"}, ranks=(2,),
             variants=("2", "4"), variant_title="threads of a rank", sizes=THREAD_SIZES, budget=50, more=("rate",),
             lower_is_better=False, time_limit=120),
        Case("idle", "Processor time of a rank that waits in MPI_Recv", "idle", "% of a core", {"idle": ""}, ranks=(2,),
             sizes=(10, 100, 1000), size_title="waits ms", most_rounds=10),
        Case("launch", "Launch, MPI_Init, barrier, MPI_Finalize", "launch", "s", {"launch": ""}, ranks=(2, 8, 32),
             sizes=(0,), whole_run=True),
        Case("memory", "Memory of a rank after MPI_Init", "memory", "KiB", {"pss": "PSS", "reserved": "reserved"},
             ranks=(2, 8, 32, 64), sizes=(0,), most_rounds=10),
    ]
}

# Those of --net. All machines share the processors of this one, and ranks are bound to these in turns, as above.
NET_BYTES = 4 << 20
EVERY_COLLECTIVE = {name: name for name in ("barrier", *COLLECTIVES)}


def _steady(name, title, machines, ranks, most_bytes=NET_BYTES, time_limit=300):
    return Case(name, title, "steady", "us", EVERY_COLLECTIVE, ranks=ranks, machines=machines, variants=("steady",), variant_title="repetitions",
                most_bytes=most_bytes, more=(",".join(EVERY_COLLECTIVE),), time_limit=time_limit)


NET_CASES = {
    case.name: case
    for case in [
        Case("net latency", "Ping-pong between two machines: half a round trip", "latency", "us", {"latency": ""}, ranks=(2,), machines=2,
             variants=BUFFERS, most_bytes=NET_BYTES, more=("latency",), limits="net_limits", time_limit=180),
        Case("net bandwidth", "Streams of messages between two machines", "stream", "MB/s", {"stream": "one way", "both": "both ways"},
             ranks=(2,), machines=2, variants=BUFFERS, most_bytes=NET_BYTES, more=("stream,both",), lower_is_better=False,
             limits="net_limits", time_limit=180),
        Case("net rate", "Message rate between two machines", "stream", "messages/s", {"rate": ""}, ranks=(2, 8), machines=2, in_turns=True,
             variants=("reused",), sizes=(1, 8, 64, 256, 1024), more=("rate",), lower_is_better=False, limits="net_limits", time_limit=180),
        Case("net pairs", "Four pairs between two machines: half a round trip", "latency", "us", {"latency": ""}, ranks=(8,), machines=2,
             in_turns=True, variants=("reused",), sizes=(8, 4096, 64 << 10, 1 << 20), budget=100, time_limit=180),
        Case("net first", "The beginning of a pair on two machines: until so many round trips are back", "first", "us", {"first": ""},
             ranks=(2,), machines=2, variants=MESSAGES, variant_title="round trips", most_bytes=NET_BYTES, more=("first",), cold=True,
             limits="net_limits"),
        _steady("net collectives 2", "Collectives on 2 machines", 2, (2, 4)),
        _steady("net collectives 4", "Collectives on 4 machines", 4, (4, 8)),
        _steady("net crowd 2", "Collectives on 2 machines, 4 ranks on each", 2, (8,), 64 << 10, time_limit=90),
        _steady("net crowd 4", "Collectives on 4 machines, 4 ranks on each", 4, (16,), 64 << 10, time_limit=90),
        Case("net sweep", "All sizes in one process, on 4 machines", "sweep", "us", EVERY_COLLECTIVE, ranks=(4, 8), machines=4,
             variants=("10", "100"), variant_title="repetitions", most_bytes=64 << 10, more=(",".join(EVERY_COLLECTIVE),), time_limit=300),
        Case("net programs", "Small programs on 4 machines: one run", "", "us", PROGRAMS, ranks=(8,), machines=4,
             variants=("communication", "whole"), variant_title="time", sizes=(0,), budget=500,
             programs=tuple(f"programs/{name}" for name in PROGRAMS)),
        Case("net launch", "Launch, MPI_Init, barrier, MPI_Finalize on 4 machines", "launch", "s", {"net launch": ""}, ranks=(4, 16),
             machines=4, sizes=(0,), whole_run=True),
    ]
}
ALL_CASES = CASES | NET_CASES
