"""Empty polls yield the processor if ranks share processors, and only then, as strace shows."""

import os
import re
import shutil

import pytest

PROGRAM = "every_poll_lets_others_run"
KINDS = 19
PLACES = 1000  # number of places that are then read, of calls that then write, of values that are found in one place, and of lookups
LATE_US = 100_000  # how long a rank polls before its token arrives
SYNTAX = re.compile(r"^(getpgid\(21244896(\d\d)\)|sched_yield\(\))", re.M)


def yields_by_kind(folder):
    """For each rank, the calls of sched_yield between the marks of each kind of poll."""
    ranks = []
    for file in folder.glob("trace.*"):
        counts, inside = {}, None
        for found in SYNTAX.finditer(file.read_text()):
            if found[2] is None:
                if inside is not None:
                    counts[inside] += 1
            elif inside is None:
                inside = int(found[2])
                counts[inside] = 0
            else:
                inside = None
        if counts:
            assert sorted(counts) == list(range(KINDS + 4)), counts
            ranks.append(list(counts.values()))
    return ranks


def polls(counts):
    return counts[:KINDS]


def trace(mpiexec, compiled, folder, ranks, before=(), env=None, laps=1):
    """Runs the program with this number of ranks, each with `before` in front of its command."""
    assert shutil.which("strace"), "strace is not installed: dev/setup test installs it"
    command = [*before, "strace", "-ff", "-e", "trace=sched_yield,getpgid", "-o", folder / "trace", compiled(PROGRAM), laps, LATE_US]
    result = mpiexec(ranks, command, env=env or {}, timeout=120)
    assert result.status == 0 and not result.timed_out, result.report()
    counts = yields_by_kind(folder)
    assert len(counts) == ranks
    return counts


def one_processor():
    return ["taskset", "-c", str(min(os.sched_getaffinity(0)))]


def test_each_kind_of_poll_yields_where_ranks_share_a_processor(mpiexec, compiled, tmp_path):
    # The ranks are bound by a wrapper, of which mpiexec does not know. Waits sleep, so that only polls are counted.
    for counts in trace(mpiexec, compiled, tmp_path, 2, one_processor(), {"NEAR_WAIT": "sleep"}):
        assert min(polls(counts)) >= 3, f"yields by kind of poll: {counts}"


def test_one_sided_calls_that_work_rarely_yield(mpiexec, compiled, tmp_path):
    for counts in trace(mpiexec, compiled, tmp_path, 2, one_processor(), {"NEAR_WAIT": "sleep"}):
        reads, writes, changes, lookups = counts[KINDS:]
        assert max(reads, changes) <= PLACES // 10 and lookups <= PLACES // 100 and writes == 0, f"yields by kind: {counts}"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_ranks_with_their_own_processors_never_yield(mpiexec, compiled, tmp_path):
    for counts in trace(mpiexec, compiled, tmp_path, 2):
        assert not any(counts), counts


def test_a_single_rank_never_yields(mpiexec, compiled, tmp_path):
    for counts in trace(mpiexec, compiled, tmp_path, 1, one_processor(), laps=3):
        assert not any(counts), counts


def test_near_yield_decides_for_all_polls(mpiexec, compiled, tmp_path):
    for choice, expected in ("always", True), ("never", False):
        folder = tmp_path / choice
        folder.mkdir()
        before = [] if expected else one_processor()
        env = {"NEAR_YIELD": choice, "NEAR_WAIT": "sleep"}  # sleeps, so that waits do not yield
        for counts in trace(mpiexec, compiled, folder, 2, before, env):
            assert (min(polls(counts)) >= 3) if expected else not any(counts), counts
