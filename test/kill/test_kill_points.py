"""A rank dies at each labelled point of every protocol (NEAR_KILL_POINT in the sources): the job ends, one message
names that rank, nothing is left and no process hangs.

The labels are collected from the sources, so a label that test/mpi/all_traffic.c never reaches makes a test fail. Needs
an installation with kill points: `make test` builds them into the one with sanitizers, the preset `killpoints` into a
separate one. KILL_SEED=N repeats the counts of a run.
"""

import os
import random
import re

import harness
import pytest

WATCHDOG = 30  # seconds; the job ends long before
SOURCES = [path for folder in ("src", "launch") for path in sorted((harness.ROOT / folder).rglob("*")) if path.is_file()]
LABELS = [label for path in SOURCES if path.name != "kill_point.h"
          for label in re.findall(r'NEAR_KILL_POINT\("([^"]*)"\)', path.read_text())]
SEED = int(os.environ.get("KILL_SEED", random.SystemRandom().randrange(1 << 32)))

# Numbers of ranks and environments with which the busy program reaches every point.
SETTINGS = [
    (4, {}),
    (3, {"NEAR_COPY": "pipelined", "NEAR_PACKETS": "16"}),
    (4, {"NEAR_LANES": "1", "NEAR_QUEUE_SLOTS": "4", "NEAR_PACKETS": "16", "NEAR_COPY": "cma"}),
    (2, {"NEAR_COPY": "cma"}),
    (2, {"NEAR_COPY": "pipelined", "NEAR_PACKETS": "64"}),  # enough to keep runs of packets
]


def test_every_label_occurs_once():
    assert len(LABELS) > 50
    assert sorted(set(LABELS)) == sorted(LABELS)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", label) for label in LABELS)


@pytest.fixture(scope="session")
def busy(prefix, compiled):
    """busy(setting, kill_at): runs the program that takes every path."""
    program = compiled("all_traffic")

    def run(setting, kill_at):
        ranks, environment = setting
        command = [prefix / "bin/mpiexec", "--oversubscribe", "-n", ranks, program]
        return harness.run(command, timeout=WATCHDOG, env={**environment, "NEAR_KILL_AT": kill_at})

    return run


@pytest.fixture(scope="session")
def visits(prefix, busy):
    """Label -> list of (setting, rank, times): how jobs without a death reached it."""
    knobs = harness.run([prefix / "bin/near", "info", "--knobs"])
    if "NEAR_KILL_AT" not in knobs.out:
        pytest.fail(f"the library in {prefix} has no kill points: build the preset `killpoints`, install it, and pass "
                    "it with --prefix", pytrace=False)
    found = {}
    for _attempt in range(5):  # some depend on which rank comes first
        for setting in SETTINGS:
            result = busy(setting, "report")
            assert result.status == 0, result.report()
            for label, times, rank in re.findall(r"kill-point (\S+) reached (\d+) times by rank (\d+)", result.err):
                found.setdefault(label, []).append((setting, int(rank), int(times)))
        if set(LABELS) <= set(found):
            break
    return found


def check_end(result, rank, label):
    """Checks the outcome of a job whose `rank` died at `label`."""
    assert not result.timed_out, f"{label}: a process hangs\n{result.report()}"
    assert result.status == 137, f"{label}\n{result.report()}"
    said = [line for line in result.err.splitlines() if line.startswith("mpiexec: ")]
    assert len(said) == 1, f"{label}\n{result.report()}"
    assert re.match(rf"mpiexec: rank {rank} \(all_traffic, pid \d+\) was ended by signal 9 \(SIGKILL\)", said[0]), said[0]


def check_nothing_left(result):
    left = harness.survivors(result.mark)
    assert not left, f"these processes survived:\n{left}\n{result.report()}"


@pytest.mark.parametrize("label", LABELS)
def test_a_rank_that_dies_here_ends_its_job(label, visits, busy):
    assert label in visits, f"test/mpi/all_traffic.c never reaches {label}: extend it"
    files = harness.shared_files()
    draw = random.Random(f"{SEED} {label}")
    # The first time that some rank reaches the point; repeated until it happens, since this may depend on timing.
    for _attempt in range(5):
        setting, rank, _ = draw.choice(visits[label])
        result = busy(setting, f"{label}:1:{rank}")
        check_nothing_left(result)
        if result.status != 0 or result.timed_out:
            break
    check_end(result, rank, label)
    # A later time; a job that does not reach the point often enough ends successfully.
    for part in (0.2, 0.9):
        setting, rank, times = draw.choice(visits[label])
        count = 1 + int(times * draw.uniform(0, part))
        result = busy(setting, f"{label}:{count}:{rank}")
        check_nothing_left(result)
        if result.status != 0 or result.timed_out:
            check_end(result, rank, f"{label}:{count}:{rank} (KILL_SEED={SEED})")
    assert not harness.files_left(files)
