"""The measured numbers, and what is said about them: pure functions and data, tested by test/bench."""

import statistics
from collections import defaultdict
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, order=True)
class Key:
    """What a number is about."""

    case: str
    ranks: int
    name: str
    variant: str
    size: int


@dataclass
class Failure:
    """A library's runs of one case that gave no result: in these rounds, with the newest reason."""

    rounds: list
    reason: str


@dataclass
class Figures:
    """values[key][library][round] = number; failures[case, ranks][library]; notes[library] = its own words.
    rounds: how many were begun; cut_short: why there are fewer than asked for.
    lines[key][library][round]: what a bare cache line took before and after the run (tell_states_apart)."""

    values: dict = field(default_factory=lambda: defaultdict(lambda: defaultdict(dict)))
    failures: dict = field(default_factory=lambda: defaultdict(dict))
    notes: dict = field(default_factory=lambda: defaultdict(dict))
    lines: dict = field(default_factory=lambda: defaultdict(lambda: defaultdict(dict)))
    states: list = field(default_factory=list)
    rounds: int = 0
    processors: int = 2  # that the ranks are bound to
    cut_short: str = ""

    def add(self, key, library, number, value, lines=()):
        self.values[key][library][number] = value
        self.lines[key][library][number] = lines

    def fail(self, case, ranks, library, number, reason):
        failure = self.failures[case, ranks].setdefault(library, Failure([], ""))
        if number not in failure.rounds:  # a cold case runs several times in a round
            failure.rounds.append(number)
        failure.reason = reason

    def series(self, key, library):
        """{round: value}; empty when there is none."""
        return self.values.get(key, {}).get(library, {})

    def tell_states_apart(self):
        """Makes ratios compare only runs that met the machine in the same state.

        A virtual processor may move: for some seconds two of them share a cache, and then they do not. A cache line tells
        which: its times fall into groups, and `states` gets the median of each, from the fastest on. Rounds in `values`
        become (round, state); a run in which the state has changed is comparable with no other.
        """
        groups = groups_of({line for libraries in self.lines.values() for rounds in libraries.values()
                            for lines in rounds.values() for line in lines})
        self.states = [statistics.median(group) for group in groups]

        def state(key, library, number):
            met = {next(i for i, group in enumerate(groups) if line <= group[-1]) for line in self.lines[key][library][number]}
            return met.pop() if len(met) == 1 else library if met else None

        for key, libraries in self.values.items():
            for library, series in libraries.items():
                libraries[library] = {(number, state(key, library, number)): value for number, value in series.items()}

    def in_state(self, state):
        """The Figures of the runs that met the machine in this one of `states` only, where that was in ENOUGH rounds."""
        few = min(ENOUGH, self.rounds)
        found = Figures(rounds=self.rounds, processors=self.processors)
        for key, libraries in self.values.items():
            for library, series in libraries.items():
                met = {number: value for number, value in series.items() if number[1] == state}
                if len(met) >= few:
                    found.values[key][library] = met
        return found


ENOUGH = 3  # fewer rounds say nothing about a state of the machine
APART = 1.5  # neighbouring times of a line that differ by this factor belong to different states


def groups_of(lines):
    """The numbers in ascending order, in groups that lie APART."""
    groups = []
    for line in sorted(lines):
        if groups and line < groups[-1][-1] * APART:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


@dataclass(frozen=True)
class Summary:
    """Over the rounds."""

    rounds: int
    least: float
    lower_quartile: float
    median: float
    upper_quartile: float
    mean: float
    deviation: float
    most: float


def summarise(series):
    """Summary of {round: value}, or None when it is empty. One round has no deviation: 0."""
    values = list(series.values())
    if not values:
        return None
    lower, middle, upper = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return Summary(len(values), min(values), lower, middle, upper, statistics.fmean(values),
                   statistics.stdev(values) if len(values) > 1 else 0.0, max(values))


def ratios(ours, theirs):
    """{round: ours / theirs} of the rounds that both have."""
    return {number: value / theirs[number] for number, value in ours.items() if theirs.get(number)}


def ratio(ours, theirs, pick=None):
    """Median over the rounds that both have of ours / theirs, or None.

    Round by round, because the machine may change between rounds and both then change alike. With `pick` (min or max), one round
    of each is chosen instead.
    """
    if pick:
        return pick(ours.values()) / pick(theirs.values()) if ours and theirs else None
    both = ratios(ours, theirs)
    return statistics.median(both.values()) if both else None


def ratio_to_variant(figures, key, library, variant, pick=None):
    """Median of a library's ratios to another variant of the same thing, or None if that is the key's own."""
    base = replace(key, variant=variant)
    return ratio(figures.series(key, library), figures.series(base, library), pick) if base != key else None


# The steps of a case, with titles. The last two are changes of another kind than the first two: ranks begin to
# communicate, and they begin to wait for a processor.
STEPS = {"size": "twice the size", "ranks": "one rank more", "first": "... from 1 rank to 2", "sharing": "... that shares a processor first"}


def steps(figures, case, library, pick=None):
    """(kind, key before, key after, factor) of each step of a case to twice the size, or to one rank more.

    The factor is the time after the step, divided by the time before it and by how much more the step asks for: 2, or
    the ratio of the numbers of ranks. So 1 means that the time has grown in proportion.
    """
    for before in sorted(key for key in figures.values if key.case == case):
        more = before.ranks + 1
        alone = "first" if more == 2 else "sharing" if more == figures.processors + 1 else "ranks"
        for kind, after, growth in (("size", replace(before, size=2 * before.size), 2), (alone, replace(before, ranks=more), more / before.ranks)):
            value = ratio(figures.series(after, library), figures.series(before, library), pick) if after != before else None
            if value is not None:
                yield kind, before, after, value / growth


def best(candidates, lower_is_better=True, pick=None):
    """The name in {name: series} with the best median (or what `pick` chooses), or None."""
    values = {name: (pick or statistics.median)(series.values()) for name, series in candidates.items() if series}
    if not values:
        return None
    return (min if lower_is_better else max)(values, key=values.get)


# The methods of limits.c that need buffers which both processes see; others work for any buffer.
DIRECT = ("pull", "halves", "push_stream")
CACHE_LINE = 64


def bounds(name, value):
    """The method whose value of this name, as the programs of limits print it, bounds values called `value`; or "".

    "ring/4K" is a method of ping-pongs, "stream:ring/4K" one of streams.
    """
    what, _, method = name.rpartition(":")
    return method.split("/")[0] if what == ("" if value == "latency" else value) else ""


def limit(figures, key, pick=None, lower_is_better=True):
    """(method, series) of the fastest method that the limits have for this key, or (None, {}).

    A ping-pong of what fits in a line has the raw line as its limit. Only buffers of MPI_Alloc_mem can have the direct methods as theirs.
    """
    variant = key.variant.removeprefix("alloc-")
    line = key.case == "latency" and key.size < CACHE_LINE
    candidates = {}
    for other, libraries in figures.values.items():
        if "limits" not in libraries or (other.case, other.ranks) != (key.case, key.ranks):
            continue
        method = bounds(other.name, key.name)
        if method in ("", "touch") or (method in DIRECT and not key.variant.startswith("alloc-")):
            continue
        fits = method == "line" if line else (other.variant, other.size) == (variant, key.size)
        if fits:
            candidates[other.name.rpartition(":")[2]] = libraries["limits"]
    name = best(candidates, lower_is_better, pick)
    return name, candidates.get(name, {})
