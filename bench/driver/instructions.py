"""Counts the instructions of single MPI calls of 8 bytes, under callgrind.

What a call executes is counted from its entry to its return: for MPI_Send and MPI_Isend that is to enqueue, for MPI_Recv
and MPI_Test of a message that has arrived it is from poll to completion. N and 2N calls are counted and the difference is
divided by N, so that the first calls (connections, lanes) drop out.
"""

import argparse
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import callgrind
from .libraries import ROOT, Unavailable, build, nearmpi

FILE = ROOT / "bench/instructions.json"
ALLOWED = 1.05  # a count may rise by this factor
CALLS = 2000


@dataclass(frozen=True)
class Count:
    """`scenario` of calls.c on so many ranks, counted inside the functions whose names match one of `functions`."""

    name: str
    scenario: str
    functions: tuple
    ranks: int = 2
    messages: int = 1  # of one round of the scenario
    variables: tuple = ()


def _call(name, label, scenario, ranks=2, variables=()):
    # The strong name and its weak alias are one function, and callgrind knows it by either.
    return Count(label, scenario, (name, "P" + name), ranks, variables=variables)


WINDOW = ("MPI_Irecv", "PMPI_Irecv", "MPI_Waitall", "PMPI_Waitall")
ONE_SIDED = ("MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap",
             "MPI_Win_lock", "MPI_Win_unlock", "MPI_Win_flush")
# 65 ranks share processors; what is counted is the poll of one that has a processor to itself.
ALONE = (("NEAR_YIELD", "never"),)
COUNTS = [
    _call("MPI_Send", "MPI_Send", "send"),
    _call("MPI_Isend", "MPI_Isend", "isend"),
    _call("MPI_Recv", "MPI_Recv, arrived", "recv"),
    _call("MPI_Irecv", "MPI_Irecv", "irecv"),
    _call("MPI_Send", "MPI_Send, with gaps", "send_gaps"),
    _call("MPI_Recv", "MPI_Recv, with gaps, arrived", "recv_gaps"),
    _call("MPI_Pack", "MPI_Pack, 8 doubles", "pack"),
    _call("MPI_Unpack", "MPI_Unpack, 8 doubles", "unpack"),
    _call("MPI_Test", "MPI_Test, arrived", "test_done"),
    _call("MPI_Test", "MPI_Test, nothing there", "test_empty"),
    _call("MPI_Test", "MPI_Test, nothing there, 64 peers", "test_empty", 65, ALONE),
    Count("MPI_Irecv and MPI_Waitall, a message of 32", "window_8", WINDOW, messages=32),
    Count("MPI_Irecv and MPI_Waitall, a message of 32, 256 bytes", "window_256", WINDOW, messages=32),
    _call("MPI_Bcast", "MPI_Bcast, root", "publish"),
    _call("MPI_Bcast", "MPI_Bcast, arrived", "read"),
    _call("MPI_Reduce", "MPI_Reduce, arrived", "reduce"),
    Count("MPI_Iallreduce and MPI_Wait", "iallreduce", ("MPI_Iallreduce", "PMPI_Iallreduce", "MPI_Wait", "PMPI_Wait")),
    *(_call(name, name, "one_sided") for name in ONE_SIDED),
    Count("poll, 64 peers", "test_empty", ("near::p2p::poll*",), 65, variables=ALONE),
]


def total(prefix, count, calls, read=None):
    """Instructions inside the counted functions, of all `calls` together; with `read`, what that makes of callgrind's file."""
    def executed(output):
        found = re.search(r"^totals: (\d+)", output.read_text(), re.MULTILINE)
        return int(found[1]) if found else 0

    made = callgrind.run(nearmpi(prefix), count.name, ["calls", count.scenario, calls], count.functions, read or executed,
                         ranks=count.ranks, variables=count.variables)
    if made == 0:
        raise Unavailable(f"{count.name}: callgrind met no function {' or '.join(count.functions)}")
    return made


def measure(prefix):
    """{name: instructions of one call}."""
    build(nearmpi(prefix), "calls")
    counts = {}
    for count in COUNTS:
        rounds = CALLS // count.messages
        more = total(prefix, count, 2 * rounds) - total(prefix, count, rounds)
        counts[count.name] = round(more / rounds / count.messages, 1)
    return counts


def annotated(output):
    """Functions with what each one executed itself, as callgrind_annotate prints them."""
    text = subprocess.run(["callgrind_annotate", output], text=True, capture_output=True, check=True).stdout
    lines = [line for line in text.splitlines() if re.match(r" *[\d,]+ \(", line)]
    return "\n".join(re.sub(r"\?\?\?:|\[.*/", lambda found: "[" * (found[0][0] == "["), line) for line in lines)


def risen(old, new):
    """A sentence for each count that is missing or has risen by more than is allowed."""
    said = [f"{name}: {old[name]:g} instructions have become {new[name]:g}" for name in old
            if name in new and new[name] > old[name] * ALLOWED]
    return said + [f"{name}: no longer counted" for name in old if name not in new] + \
        [f"{name}: not in {FILE.name} yet" for name in new if name not in old]


def compiler():
    return subprocess.run(["c++", "--version"], text=True, capture_output=True).stdout.splitlines()[0]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/instructions", description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the counts into bench/instructions.json")
    parser.add_argument("--prefix", type=Path, default=ROOT / "build/prefix", help="the installation (default build/prefix)")
    parser.add_argument("--show", choices=[count.name for count in COUNTS], metavar="NAME",
                        help=f"which functions {CALLS} calls are spent in; NAME as in the list that is printed without it")
    options = parser.parse_args(arguments)
    try:
        if options.show:
            build(nearmpi(options.prefix.resolve()), "calls")
            count = next(count for count in COUNTS if count.name == options.show)
            print(total(options.prefix.resolve(), count, CALLS, annotated))
            return 0
        new = measure(options.prefix.resolve())
    except Unavailable as reason:
        print(f"bench: {reason}", file=sys.stderr)
        return 1
    known = json.loads(FILE.read_text()) if FILE.exists() else {"compiler": "none", "counts": {}}
    old = known["counts"]
    for name, count in new.items():
        print(f"{count:8g}  {name}" + (f" ({old[name]:g} committed)" if name in old else ""))
    if options.update:
        FILE.write_text(json.dumps({"compiler": compiler(), "counts": new}, indent=2) + "\n")
        return 0
    said = risen(old, new)
    for sentence in said:
        print(f"bench: {sentence}", file=sys.stderr)
    if said:
        print(f"bench: if that is meant: bench/instructions --update. Counted before with {known['compiler']}, now with "
              f"{compiler()}", file=sys.stderr)
    return 1 if said else 0
