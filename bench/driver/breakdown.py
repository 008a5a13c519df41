"""What sending and receiving a datatype executes, split into address computation, copying, buffering and protocol.

Instructions, loads, stores and cache misses come from callgrind's simulation, inside MPI_Send or MPI_Recv and the loop by hand.
N and 2N calls are counted and the difference is divided by N, so that the first calls drop out.
"""

import argparse
import collections
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import callgrind, parts
from .libraries import ROOT, Unavailable, build, nearmpi
from .runner import harness, read
from .tables import number
from .type_text import Misunderstood, prefix_words

TYPES = ["contiguous(8, double)", "vector(8, 1, 16, double)", "vector(1000, 1, 16, double)", "vector(1000, 4, 16, double)",
         "indexed([1, 3, 2, 7, 1, 12, 5, 2, 9, 4], [0, 3, 11, 20, 40, 44, 80, 91, 101, 130], double)",
         "vector(32768, 4, 16, double)"]
CALLS = {"send": "MPI_Send", "recv": "MPI_Recv"}
WAYS = {"typed": "with the datatype", "by-hand": "packed by hand"}
COLUMNS = {"instructions": ("Ir",), "loads": ("Dr",), "stores": ("Dw",), "L1 misses": ("D1mr", "D1mw"), "LL misses": ("DLmr", "DLmw")}
# The caches that are simulated, on every machine: 32 KiB and 8 MiB.
SIMULATION = ("--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64")
# The kernel's copies cannot be counted, so long messages go through packets. The stores that fill packets would be chosen by time,
# which means nothing under valgrind.
VARIABLES = (("NEAR_COPY", "pipelined"), ("NEAR_STORES", "cached"))
BUILD = ROOT / "build/release"
MOST_CALLS, MOST_BYTES, FEWEST_CALLS = 500, 4_000_000, 8
NOTE = """Counted by callgrind: loads, stores and misses are those of data; simulated are a first level (L1) of 32 KiB and a last level (LL) of
8 MiB of one process, which nobody else writes to. valgrind does not support AVX-512, so the copy kernels are those for AVX2.
Buffers are used again unchanged. Long messages go through packets (NEAR_COPY=pipelined), since copies of the kernel cannot be counted,
and packets are filled by cached stores (NEAR_STORES=cached). A long message polls while it waits, so its buffering and protocol differ
from run to run."""


@dataclass
class Costs:
    """The costs of one call: `of[part]` is a list in the order of COLUMNS, and `places[part]` has the instructions by place."""

    of: dict = field(default_factory=lambda: collections.defaultdict(lambda: [0.0] * len(COLUMNS)))
    places: dict = field(default_factory=lambda: collections.defaultdict(collections.Counter))

    def total(self):
        return [sum(column) for column in zip(*self.of.values(), strict=True)] if self.of else [0.0] * len(COLUMNS)


def of_one_call(few, many, events, calls):
    """Costs from callgrind's {place: costs} of N and of 2N `calls`."""
    made = Costs()
    columns = [[events.index(event) for event in names] for names in COLUMNS.values()]
    for place in many.keys() | few.keys():
        zero = [0] * len(events)
        part = parts.part_of(place)
        more = [after - before for after, before in zip(many.get(place, zero), few.get(place, zero), strict=True)]
        if not any(more):
            continue
        values = [sum(more[event] for event in column) / calls for column in columns]
        made.of[part] = [sum(pair) for pair in zip(made.of[part], values, strict=True)]
        made.places[part][parts.label(place)] += values[0]
    return made


def calls_for(size):
    """How many calls are counted of a message of `size` bytes."""
    return max(FEWEST_CALLS, min(MOST_CALLS, MOST_BYTES // max(size, 1)))


def measure(prefix, library, call, way, words, size):
    """Costs of one `call` (of CALLS), done in `way` (of WAYS), of the datatype with the prefix `words`, which has `size` bytes."""
    calls, functions = calls_for(size), (CALLS[call], "P" + CALLS[call], "pack_by_hand", "unpack_by_hand")
    name = f"{CALLS[call]} {WAYS[way]}"

    def run(count):
        return callgrind.run(nearmpi(prefix), name, ["typed", call, way, "none", count, words], functions,
                             lambda output: callgrind.costs(output.read_text()), options=SIMULATION, variables=VARIABLES,
                             folder=library)

    (few, events), (many, _) = run(calls), run(2 * calls)
    if not many:
        raise Unavailable(f"{name}: callgrind met no function {CALLS[call]}")
    if not any(place.file.endswith(".h") for place in many):
        raise Unavailable(f"{name}: the library in {library} has no line numbers, so inlined code cannot be told apart: build it "
                          "with -g1, as `make build` does in build/release")
    return of_one_call(few, many, events, calls)


def native(prefix, call, way, words, events="hardware", calls=300):
    """({counter: value of one call}, {counter: why it is missing}, {key: text}) of a run without valgrind."""
    who = nearmpi(prefix)
    with callgrind.steps_file() as steps:
        program = who.command(2, "typed", [call, way, events, calls, words, steps])
        result = harness.run(program, env={**who.variables, **dict(VARIABLES)}, timeout=callgrind.TIME_LIMIT)
    if result.status != 0:
        raise Unavailable(f"{CALLS[call]} {WAYS[way]}: the run failed\n{result.report()}")
    values, notes = read(result.out)
    missing = {key.removeprefix("missing:"): text for key, text in notes.items() if key.startswith("missing:")}
    return {name: value for name, _, _, value in values}, missing, notes


def library_with_lines():
    """The folder of the library as it was built: `make install` removes line numbers from what it installs."""
    if not (BUILD / "lib/libmpi_abi.so.1").exists():
        raise Unavailable(f"there is no library in {BUILD.relative_to(ROOT)}/lib: run `make build`")
    return BUILD / "lib"


# ---- text ----

def row(name, values, size):
    """A line of a table: `values` of a call, and divided by its bytes."""
    columns = [f"{number_of(value):>13}" for value in values]
    return f"  {name:24}" + "".join(columns) + "  |" + "".join(f"{number_of(value / size):>13}" for value in values)


def number_of(value):
    """With three digits at least, and a sign only if there is something to count."""
    if abs(value) < 0.0005:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return ("-" if value < 0 else "") + number(abs(value))


def table(call, costs, size):
    """The lines of a table of `costs` ({way: Costs}) of one call of `size` bytes."""
    titles = "".join(f"{title:>13}" for title in COLUMNS)
    lines = [f"  {CALLS[call]:24}{'per call':<{len(titles)}}  |    per byte", f"  {'':24}{titles}  |{titles}"]
    for way, made in costs.items():
        lines.append(f"{WAYS[way]}:")
        shown = [*parts.PARTS, *([parts.OTHER] if parts.OTHER in made.of else [])]
        lines += [row(part, made.of[part], size) for part in shown if part in made.of]
        lines.append(row("total", made.total(), size))
        if parts.OTHER in made.of:
            lines.append("  other: " + ", ".join(f"{name} ({number_of(count)})"
                                                 for name, count in made.places[parts.OTHER].most_common()))
    if set(costs) == set(WAYS):
        pairs = zip(costs["typed"].total(), costs["by-hand"].total(), strict=True)
        lines.append(row("added by the datatype", [typed - by_hand for typed, by_hand in pairs], size))
    return lines


def places(costs, most=8):
    """The files with the most instructions of each part, as lines."""
    lines = []
    for way, made in costs.items():
        for part in [*parts.PARTS, parts.OTHER]:
            found = [f"{name} {number_of(count)}" for name, count in made.places[part].most_common(most) if count >= 0.05]
            if found:
                lines.append(f"  {WAYS[way]}, {part}: {', '.join(found)}")
    return lines


def counters(values, missing):
    """What the processor's counters say of one call, as lines: the values, and for each reason what is missing."""
    lines = []
    if values:
        lines.append("hardware counters, without valgrind, per call: "
                     + ", ".join(f"{name} {number_of(value)}" for name, value in values.items()))
    reasons = collections.defaultdict(list)
    for name, reason in missing.items():
        reasons[reason].append(name)
    return lines + [f"no hardware counters for {', '.join(names)}: {reason}" for reason, names in reasons.items()]


def show(prefix, library, text, calls, with_places):
    """Measures one datatype and prints its tables. Returns the hardware counters that are missing, with the reasons."""
    words = prefix_words(text)
    for call in calls:
        counted = {way: native(prefix, call, way, words) for way in WAYS}
        missing, notes = counted["typed"][1:]
        size = int(notes["bytes"])
        paths = list(dict.fromkeys(found[2]["path"] for found in counted.values()))
        print(f"\n{text}: {size} bytes, {' or '.join(paths)}", flush=True)
        costs = {way: measure(prefix, library, call, way, words, size) for way in WAYS}
        lines = table(call, costs, size) + (places(costs) if with_places else [])
        lines += [f"  {WAYS[way]}, {line}" for way, (values, *_) in counted.items() for line in counters(values, {})]
        print("\n".join(lines), flush=True)
    return missing


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/breakdown", description=__doc__.splitlines()[0], epilog=NOTE)
    parser.add_argument("--type", action="append", metavar="TYPE",
                        help="a datatype as for `near model`, such as 'vector(1000, 1, 16, double)'; may be repeated. Default: "
                             + "; ".join(TYPES))
    parser.add_argument("--call", choices=[*CALLS, "both"], default="both", help="what is counted (default both)")
    parser.add_argument("--files", action="store_true", help="also say which source files each part consists of")
    parser.add_argument("--prefix", type=Path, default=ROOT / "build/prefix", help="the installation (default build/prefix)")
    parser.add_argument("--library", type=Path, metavar="DIR",
                        help="a folder with a libmpi_abi.so.1 that has line numbers (default: that of build/release)")
    options = parser.parse_args(arguments)
    prefix = options.prefix.resolve()
    try:
        types = options.type or TYPES
        for text in types:
            prefix_words(text)
        if not (prefix / "bin/mpiexec").exists():
            raise Unavailable(f"there is no installation in {prefix}: run `make build`, or name one with --prefix")
        if options.library and not (options.library / "libmpi_abi.so.1").exists():
            raise Unavailable(f"there is no libmpi_abi.so.1 in {options.library}")
        library = options.library.resolve() if options.library else library_with_lines()
        build(nearmpi(prefix), "typed")
        print(NOTE)
        for text in types:
            missing = show(prefix, library, text, CALLS if options.call == "both" else [options.call], options.files)
        if missing:
            print("\n" + "\n".join(counters({}, missing)))
    except (Unavailable, Misunderstood) as reason:
        print(f"bench: {reason}", file=sys.stderr)
        return 1
    return 0
