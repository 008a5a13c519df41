"""A rank stores random words over all shared memory: mpiexec ends in time, with one message, and nothing is left.

OVERWRITE_ROUNDS=500 runs 500 rounds instead of a few; OVERWRITE_SEED=<seed> starts with that seed.
"""

import os
import re

import pytest

FIRST = int(os.environ.get("OVERWRITE_SEED", 0))
ROUNDS = int(os.environ.get("OVERWRITE_ROUNDS", 44))  # a round ends in one of 11 ways
TIMEOUT_S = 2
DATA_LIMIT = 1 << 30  # bytes of private memory that mpiexec or a rank may have


def lines_of_mpiexec(result):
    return [line for line in result.err.splitlines() if line.startswith("mpiexec: ") and not line.startswith("mpiexec: note: ")]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_a_rank_that_overwrites_everything_ends_its_job_alone(nothing_left, prefix, compiled, seed):
    ranks = 2 + seed % 3
    result = nothing_left(["prlimit", f"--data={DATA_LIMIT}", prefix / "bin/mpiexec", "--oversubscribe", "-n", ranks,
                           "--timeout", TIMEOUT_S, compiled("overwrites_shared_memory"), seed], timeout=60)
    assert not result.timed_out, result.report()
    # A supervisor killed by the rank may not have passed the line on.
    assert result.out == "overwrites\n" or "supervising process was killed" in result.err, result.report()
    said = lines_of_mpiexec(result)
    # A rank that finds the damage and ends the job has written the reason itself.
    assert len(said) == (result.status != 0) or (not said and "near: " in result.err), result.report()
    assert not re.search("[\0-\x09\x0b-\x1f\x7f]", result.err), result.report()


@pytest.mark.parametrize("way", ["hang", "flood", "go-on"])
def test_the_time_limit_stays(launch, compiled, way):
    result = launch("-n", 2, "--oversubscribe", "--timeout", 1, compiled("overwrites_shared_memory"), 6, way)
    assert result.status != 0 and result.err and result.out == "overwrites\n", result.report()


def test_a_time_limit_shows_the_processes_that_were_started(launch, compiled):
    """It does not show what is in the overwritten rank table."""
    shown = 0
    for seed in range(8):
        result = launch("-n", 2, "--oversubscribe", "--timeout", 1, "-v", compiled("overwrites_shared_memory"), seed, "hang")
        if result.status != 124:
            continue  # the other rank did not survive
        started = re.findall(r"^mpiexec: rank (\d): pid (\d+):", result.err, re.M)
        assert len(started) == 2 and started == re.findall(r"^ +(\d) +(\d+) ", result.err, re.M), result.report()
        shown += 1
    assert shown, "in no round both ranks lived until the limit"


def test_control_characters_in_a_name_are_shown_as_text(launch, tmp_path):
    program = tmp_path / "red\x1b[31m\x9b0m"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    result = launch("-n", 1, program)
    assert result.status == 3 and r"red\033[31m" in result.err and "\x1b" not in result.err, result.report()
    result = launch("-n", 1, f"{program}-which-is-not-there")
    assert result.status == 127 and r"red\033[31m" in result.err and "\x1b" not in result.err, result.report()
