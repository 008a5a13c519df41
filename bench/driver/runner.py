"""Runs the libraries in turns, round by round, and collects what their programs print."""

import collections
import os
import sys
import time

from .cases import ALL_CASES
from .figures import Figures, Key
from .libraries import BUILD, LIMITS, PEERS, ROOT
from .progress import Progress

sys.path.insert(0, str(ROOT / "test"))
import harness  # noqa: E402  the watchdog of the tests: also ends what leaves its process group

GIVE_UP = 2  # after so many rounds in which it ran, a library that has failed in each is spared the case
LONG = 8  # seconds; a peer that takes so long for a case ...
SELDOM = 4  # ... runs it in one of so many rounds, and one that takes longer in proportionally fewer


def read(text):
    """([(name, variant, size, value)], {key: text}) from a program's output; other lines are the libraries' own."""
    values, notes = [], {}
    for line in text.splitlines():
        words = line.split(maxsplit=4)
        if len(words) == 5 and words[0] == "value":
            values.append((words[1], words[2], int(words[3]), float(words[4])))
        elif len(words) >= 3 and words[0] == "info":
            notes[words[1]] = line.split(maxsplit=2)[2]
    return values, notes


def wrong(library, ranks, cores, result, notes):
    """Why this run does not count, or None."""
    said = result.err.strip().splitlines()[-1:] or ["it said nothing"]
    if result.timed_out:
        return f"ended after {result.seconds:.0f} s without a result"
    if result.status != 0:
        return f"status {result.status}: {said[0][:160]}"
    if library.proof not in notes.get("library", ""):
        return f"it ran on another library: {notes.get('library')}"
    if not cores:  # the launcher's own binding is what is measured
        bound = "-1" not in notes.get("cores", "-1").split()
        return None if bound == library.bound else f"ranks were {'' if bound else 'not '}bound: cores {notes.get('cores')}"
    expected = " ".join(str(cores[rank % len(cores)]) for rank in range(ranks))
    if notes.get("cores", expected) != expected:
        return f"ranks were bound to cores {notes['cores']} instead of {expected}"
    return None


def once(library, case, ranks, options):
    """(values, notes, reason) of one run; the values that came before a failure are kept."""
    arguments = case.arguments(options, library)
    environment = {**library.variables, "BENCH_CORES": ",".join(map(str, options.cores)), "BENCH_OFFSET": str(options.offset)}
    if case.machines:
        command = options.laboratory.command(library, case, ranks, arguments)
        environment.update(options.laboratory.variables())
    else:
        command = library.command(ranks, case.program_of(library), arguments)
    running = harness.Running(command, env=environment)
    try:
        result = running.finish(options.time_limit or case.time_limit)
    finally:  # a launcher that was interrupted or has failed may leave ranks, and they would disturb the next one
        harness.end_all(running.mark)
    values, notes = read(result.out)
    if case.whole_run and result.status == 0:
        values.append((case.name, "-", 0, result.seconds))
    return values, notes, wrong(library, ranks, options.cores, result, notes)


LINE = "line/1"


def line(options):
    """What a cache line takes from one core to another now, as a list of one number of microseconds; none if that cannot be told."""
    if len(set(options.cores)) < 2:
        return []
    result = harness.run([BUILD / LIMITS.binary / "limits", "3", "reused", "8"], timeout=30,
                         env={"BENCH_CORES": ",".join(map(str, options.cores))})
    return [value for name, _, _, value in read(result.out)[0] if name == LINE]


def plan(options, libraries):
    """What one round runs, in order: [(case, ranks, library)]."""
    runs = []
    for name in options.what:
        case = ALL_CASES[name]
        for ranks in case.ranks_for(options):
            who = [*case.run_by(libraries), *([LIMITS] if case.limits_for(ranks) else [])]
            runs += [(part, ranks, library) for part in case.runs(options) for library in who]
    return runs


class Patience:
    """Decides which libraries run in a round, so that slow peers do not hold up the others."""

    def __init__(self):
        self._took = {}  # seconds of the last run
        self._rounds = collections.defaultdict(set)

    def wants(self, run, number):
        case, _, library = run
        took = self._took.get(self._part(run), 0) if library.name in PEERS else 0
        return number < case.most_rounds and (took <= LONG or number % round(took * SELDOM / LONG) == 0)

    def note(self, run, number, seconds):
        self._took[self._part(run)] = seconds
        self._rounds[self._whole(run)].add(number)

    def has_failed_always(self, run, number, failure):
        """`failure`: its Failure so far, or None."""
        before = self._rounds[self._whole(run)] - {number}
        return failure is not None and len(before) >= GIVE_UP and before <= set(failure.rounds)

    @staticmethod
    def _whole(run):
        case, ranks, library = run
        return case.name, ranks, library.name

    @staticmethod
    def _part(run):
        case, ranks, library = run
        return case.name, case.program, case.sizes, ranks, library.name


def run(options, libraries):
    """Figures of all rounds; after Ctrl-C, of those that have begun."""
    figures, runs = Figures(processors=len(set(options.cores)) or os.cpu_count()), plan(options, libraries)
    progress, patience = Progress(options.rounds, len(runs)), Patience()
    try:
        for number in range(options.rounds):
            figures.rounds = number + 1
            for each in runs:
                case, ranks, library = each
                progress.before(number, f"{case.name}, {ranks} ranks, {library.title}")
                if patience.wants(each, number):
                    _take(figures, each, number, options, patience)
                progress.after()
    except KeyboardInterrupt:
        figures.cut_short = f"interrupted in round {figures.rounds} of {options.rounds}"
    progress.end()
    figures.tell_states_apart()
    return figures


def _take(figures, run, number, options, patience):
    """Adds one run's results to `figures`; skips a library that has failed in every round so far."""
    case, ranks, library = run
    name = library.name
    before = figures.failures[case.name, ranks].get(name)
    if patience.has_failed_always(run, number, before):
        figures.fail(case.name, ranks, name, number, before.reason)
        return
    started = time.monotonic()
    lines = line(options)
    values, notes, reason = once(library, case, ranks, options)
    patience.note(run, number, time.monotonic() - started)
    lines += line(options)
    figures.notes[name].update(notes)
    for what, variant, size, value in values:
        figures.add(Key(case.name, ranks, what, variant, size), name, number, value, lines)
    if reason:
        if ALL_CASES[case.name].programs:
            reason = f"{case.program}: {reason}"
        figures.fail(case.name, ranks, name, number, reason)
