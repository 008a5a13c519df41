"""What NearMPI wants to reach: each goal's target, what was got in this run, and whether that meets it."""

import json
import statistics
from dataclasses import dataclass

from .cases import BUFFERS, CASES, COLLECTIVES, NET_CASES
from .figures import Key, best, limit, ratio, ratio_to_variant, steps
from .libraries import ROOT
from .tables import number, size_name, step_name

OURS = "nearmpi"
LARGE = 65536  # from here on a message is a copy, and what it costs apart from that hardly counts
MIB = 1 << 20
COLLECTIVE_NAMES = ("barrier", *COLLECTIVES)


@dataclass(frozen=True)
class Goal:
    """`bound`: the most (`at_most`) or least that is allowed. `got`: (value or None, what it is of) from a Comparison."""

    what: str
    bound: float
    got: object
    at_most: bool = True

    def target(self):
        return f"at {'most' if self.at_most else 'least'} {self.bound:g}"

    def met(self, value):
        return value <= self.bound if self.at_most else value >= self.bound


class Comparison:
    """NearMPI's figures compared with those of its peers and with the limits. None if something was not measured."""

    def __init__(self, figures, peers, instructions=None):
        self.figures, self.peers, self.instructions = figures, peers, instructions or {}

    def to_peer(self, key, lower_is_better=True, only=None):
        """Ratio to the best peer at this key."""
        series = {name: self.figures.series(key, name) for name in self.peers if only in (None, name)}
        name = best(series, lower_is_better)
        return ratio(self.figures.series(key, OURS), series[name]) if name else None

    def to_limit(self, key, lower_is_better=True):
        return ratio(self.figures.series(key, OURS), limit(self.figures, key, lower_is_better=lower_is_better)[1])

    def median(self, key):
        series = self.figures.series(key, OURS)
        return statistics.median(series.values()) if series else None

    def latencies(self, variants, least=0):
        """Keys of the latency case, two ranks."""
        return [key for key in sorted(self.figures.values)
                if key.case == "latency" and key.ranks == 2 and key.name == "latency" and key.variant in variants
                and key.size >= least]


def _latency(size, variant="reused"):
    return Key("latency", 2, "latency", variant, size)


def _extreme(pairs, worst=max):
    """(value, where) of the worst one of (value or None, key)."""
    known = [(value, f"{size_name(key.size)}, {key.variant}") for value, key in pairs if value is not None]
    return worst(known) if known else (None, "")


def _geometric_mean(comparison):
    values = [comparison.to_peer(key) for key in comparison.latencies(BUFFERS, 64)]
    values = [value for value in values if value]
    return (statistics.geometric_mean(values), f"{len(values)} sizes") if values else (None, "")


def _rate(size):
    return Key("rate", 2, "rate", "reused", size)


def _drop(comparison):
    small, larger = comparison.median(_rate(64)), comparison.median(_rate(256))
    return (small / larger if small and larger else None), ""


def _crowd(comparison):
    keys = [Key("crowd", 8, "latency", "reused", 8), Key("collectives", 8, "barrier", "-", 0)]
    known = [(value, what) for key, what in zip(keys, ("ping-pong", "barrier"), strict=True)
             if (value := comparison.to_peer(key)) is not None]
    return max(known) if len(known) == 2 else (None, "")


def _barrier(comparison):
    line = limit(comparison.figures, _latency(8))[1]  # half a round trip
    value = ratio(comparison.figures.series(Key("collectives", 2, "barrier", "-", 0), OURS), line)
    return (value / 2 if value else None), ""


def _ratios(comparison, case, lower_is_better=True, variant=None, names=None, ranks=None):
    """Every known ratio of a case (of one variant, of these values, on so many ranks), with where it is."""
    for key in sorted(comparison.figures.values):
        if key.case == case and variant in (None, key.variant) and (names is None or key.name in names) and ranks in (None, key.ranks):
            value = comparison.to_peer(key, lower_is_better)
            if value is not None:
                yield value, f"{key.name}, {key.ranks} ranks, {key.variant}, {size_name(key.size)}"


def _worst_variant(case, variant, base=None, sizes=None):
    """Of all ratios of a variant to the one that it is compared with, or to `base`; with `sizes`, of these."""
    def got(comparison):
        base_of = base or CASES[case].base_of(variant)
        known = [(value, f"{CASES[case].shows[key.name]}, {key.ranks} ranks, {size_name(key.size)}")
                 for key in sorted(comparison.figures.values) if (key.case, key.variant) == (case, variant) and (sizes is None or key.size in sizes)
                 and (value := ratio_to_variant(comparison.figures, key, OURS, base_of)) is not None]
        return max(known) if known else (None, "")
    return got


def _worst_of(*all_got):
    def got(comparison):
        known = [pair for each in all_got if (pair := each(comparison))[0] is not None]
        return max(known) if known else (None, "")
    return got


def _worst(case, lower_is_better=True, variant=None, names=None, ranks=None):
    def got(comparison):
        known = list(_ratios(comparison, case, lower_is_better, variant, names, ranks))
        return (max if lower_is_better else min)(known) if known else (None, "")
    return got


def _mean(case, lower_is_better=True, variant=None, names=None, ranks=None):
    def got(comparison):
        values = [value for value, _ in _ratios(comparison, case, lower_is_better, variant, names, ranks)]
        return (statistics.geometric_mean(values), f"{len(values)} figures") if values else (None, "")
    return got


def _worst_step(*kinds):
    def got(comparison):
        known = [(factor, f"{after.name}, {step_name(before, after)}")
                 for kind, before, after, factor in steps(comparison.figures, "cliffs", OURS) if kind in kinds]
        return max(known) if known else (None, "")
    return got


def _launch(ranks):
    return lambda comparison: (comparison.to_peer(Key("launch", ranks, "launch", "-", 0), only="mpich"), "")


def _instructions(name):
    return lambda comparison: (comparison.instructions.get(name), "bench/instructions.json")


GOALS = [
    Goal("8 B half round trip / raw line", 1.25, lambda comparison: (comparison.to_limit(_latency(8)), "")),
    Goal("8 B latency / best peer", 0.85, lambda comparison: (comparison.to_peer(_latency(8)), "")),
    Goal("latency at each size 64 B to 16 MiB, reused and rewritten / best peer at that size: the worst", 1.0,
         lambda comparison: _extreme((comparison.to_peer(key), key) for key in comparison.latencies(BUFFERS, 64))),
    Goal("... their geometric mean", 0.7, _geometric_mean),
    Goal("latency, rewritten, 1 MiB and up / best peer: the worst", 0.4,
         lambda comparison: _extreme((comparison.to_peer(key), key) for key in comparison.latencies(("rewritten",), MIB))),
    Goal("latency, 64 KiB and up / best copy limit at that size: the worst", 1.15,
         lambda comparison: _extreme((comparison.to_limit(key), key) for key in comparison.latencies(BUFFERS, LARGE))),
    Goal("... in buffers of MPI_Alloc_mem", 1.15,
         lambda comparison: _extreme((comparison.to_limit(key), key) for key in comparison.latencies(("alloc-reused", "alloc-rewritten"), LARGE))),
    Goal("streams of each size, one way and both ways, reused and rewritten / best peer: the least", 1.0,
         _worst("bandwidth", lower_is_better=False), at_most=False),
    Goal("... their geometric mean", 1.3, _mean("bandwidth", lower_is_better=False), at_most=False),
    Goal("windows of 64 messages in one buffer, each size, one way and both ways / best peer: the least", 1.0,
         _worst("one buffer", lower_is_better=False), at_most=False),
    Goal("message rate 1, 8, 64 B / best peer: the least", 1.3,
         lambda comparison: _extreme(((comparison.to_peer(_rate(size), False), _rate(size)) for size in (1, 8, 64)), min),
         at_most=False),
    Goal("message rate at 64 B / at 256 B", 1.5, _drop),
    Goal("instructions, MPI_Isend of 8 B to enqueue", 100, _instructions("MPI_Isend")),
    Goal("instructions, empty poll with 64 peers", 20, _instructions("poll, 64 peers")),
    Goal("8 ranks on 2 cores, 8 B ping-pong pairs and barrier / best peer: the worse", 0.7, _crowd),
    Goal("programs that poll, 2 to 16 ranks on 2 cores: a search, a token / best peer: the worst", 1.0, _worst("polling")),
    Goal("until the 1st, 10th, 100th, 1000th round trip of a new pair / best peer: the worst", 1.0, _worst("first")),
    Goal("all sizes in one process, 300 repetitions / best peer: the worst", 1.1, _worst("sweep")),
    Goal("... their geometric mean", 0.75, _mean("sweep")),
    Goal("... of these, collectives: the worst", 1.0, _worst("sweep", names=COLLECTIVE_NAMES)),
    Goal("... their geometric mean", 0.7, _mean("sweep", names=COLLECTIVE_NAMES)),
    Goal("collectives, 4 and 8 ranks on 2 cores / best peer: the worst", 1.0, _worst("crowded sweep")),
    Goal("... their geometric mean", 0.5, _mean("crowded sweep")),
    Goal("barrier of 2 ranks / raw line there and back", 2.0, _barrier),
    Goal("guidelines, 2 and 8 ranks: a collective / its mock-up from others (1, and 0.05 for noise): the worst", 1.05,
         _worst_variant("guidelines", "collective")),
    Goal("nonblocking collective and MPI_Wait, 2 and 8 ranks / blocking: the worst", 1.15, _worst_variant("forms", "nonblocking")),
    Goal("persistent collective, MPI_Start and MPI_Wait, 2 and 8 ranks / blocking: the worst", 1.0,
         _worst_variant("forms", "persistent")),
    Goal("cliffs, 1 to 32 ranks on 2 cores, 4 B to 1 MiB: growth by one step / growth in proportion: the worst", 1.5,
         _worst_step("size", "ranks")),
    Goal("... from 1 rank to 2", 1.5, _worst_step("first")),
    Goal("MPI_Pack and MPI_Unpack, 4 KiB and up / a loop by hand: the worst", 1.0,
         _worst_of(_worst_variant("datatypes", "pack", sizes=range(4096, 1 << 62)),
                   _worst_variant("datatypes", "unpack", sizes=range(4096, 1 << 62)))),
    Goal("... 64 to 512 B", 1.5, _worst_of(_worst_variant("datatypes", "pack", sizes=range(64, 513)),
                                            _worst_variant("datatypes", "unpack", sizes=range(64, 513)))),
    Goal("MPI_Pack / best peer: the worst", 1.0, _worst("datatypes", variant="pack")),
    Goal("... their geometric mean", 0.6, _mean("datatypes", variant="pack")),
    Goal("round trip with a datatype / packed and unpacked by hand: the worst", 1.0, _worst_variant("datatypes", "typed")),
    Goal("... in memory of MPI_Alloc_mem", 0.7, _worst_variant("datatypes", "alloc")),
    Goal("... / with MPI_Pack and MPI_Unpack (1, and 0.05 for noise)", 1.05, _worst_variant("datatypes", "typed", "packed")),
    Goal("... consecutive bytes / with a datatype", 1.05, _worst_variant("datatypes", "contiguous", "typed")),
    Goal("... / best peer: the worst", 1.0, _worst("datatypes", variant="typed")),
    Goal("... their geometric mean", 0.5, _mean("datatypes", variant="typed")),
    Goal("small programs, 2 and 8 ranks: communication time / best peer: the worst", 0.9,
         _worst("programs", variant="communication")),
    Goal("2 and 4 threads a rank, latency / best peer: the worst", 1.0, _worst("threads")),
    Goal("2 and 4 threads a rank, message rate / best peer: the least", 1.0, _worst("threads rate", lower_is_better=False),
         at_most=False),
    Goal("processor time of a rank blocked for 10 ms, %", 2, lambda comparison: (comparison.median(Key("idle", 2, "idle", "-", 10)), "")),
    Goal("launch to finalize, 2 ranks / MPICH", 0.6, _launch(2)),
    Goal("launch to finalize, 32 ranks / MPICH", 0.5, _launch(32)),
    Goal("reserved by a rank of 64, before traffic, KiB", 2048,
         lambda comparison: (comparison.median(Key("memory", 64, "reserved", "-", 0)), "")),
]


NET_LATENCY = Key("net latency", 2, "latency", "reused", 8)


def _long_streams(compare):
    """The least of what `compare` says of the streams of long messages between machines."""
    def got(comparison):
        keys = [key for key in sorted(comparison.figures.values) if (key.case, key.ranks) == ("net bandwidth", 2) and key.size >= MIB
                and key.name in NET_CASES["net bandwidth"].shows]
        return _extreme(((compare(comparison, key), key) for key in keys), min)
    return got


NET_GOALS = [
    Goal("8 B half round trip between machines / bare TCP", 1.25, lambda comparison: (comparison.to_limit(NET_LATENCY), "")),
    Goal("... / best peer", 0.9, lambda comparison: (comparison.to_peer(NET_LATENCY), "")),
    Goal("streams of 1 MiB and up between machines / bare TCP: the least", 0.95,
         _long_streams(lambda comparison, key: comparison.to_limit(key, lower_is_better=False)), at_most=False),
    Goal("... / best peer: the least", 1.0, _long_streams(lambda comparison, key: comparison.to_peer(key, lower_is_better=False)), at_most=False),
    Goal("collectives on 4 machines x 2 ranks / best peer: the worst", 1.0, _worst("net collectives 4", ranks=8)),
    Goal("... their geometric mean", 0.7, _mean("net collectives 4", ranks=8)),
    Goal("launch to finalize, 4 machines x 4 ranks / best peer", 0.7,
         lambda comparison: (comparison.to_peer(Key("net launch", 16, "net launch", "-", 0)), "")),
]


def committed_instructions():
    """{name: count} of bench/instructions.json, or {} before there is one."""
    path = ROOT / "bench/instructions.json"
    return json.loads(path.read_text())["counts"] if path.exists() else {}


def _states(comparison):
    """[(title of the column of results, Comparison)]: one of all runs, or one of each state in which the machine was met."""
    figures = comparison.figures
    if len(figures.states) < 2:
        return [("got", comparison)]
    found = [(line, figures.in_state(state)) for state, line in enumerate(figures.states)]
    return [(f"got, line {number(line)} us", Comparison(only, comparison.peers, comparison.instructions)) for line, only in found if only.values]


def goal_table(comparison, goals=GOALS):
    """(header, rows) of the goals, with what was not measured marked as such. A goal is met if it is in each state."""
    states = _states(comparison)
    rows = []
    for goal in goals:
        cells, met = [], []
        for _, each in states:
            value, where = goal.got(each)
            if value is None:
                cells.append("not measured")
            else:
                cells.append(number(value) + (f" ({where})" if where else ""))
                met.append(goal.met(value))
        rows.append([goal.what, goal.target(), *cells, ("yes" if all(met) else "no") if met else ""])
    return ["what", "target", *(title for title, _ in states), "met?"], rows
