"""A rank or mpiexec is killed during traffic: the job ends, one message says why, nothing is left.

Kills at every other point of a job's life: test/launch/test_kills.py.
"""

import os
import random
import signal
import time
from pathlib import Path

import harness
import pytest

WATCHDOG = 20  # seconds; the job ends long before


@pytest.fixture
def job(prefix, compiled):
    """job(ranks): mpiexec with a program that never ends; the test fails if it leaves anything behind."""
    before = harness.shared_files()
    running = []

    def start(ranks=4):
        command = [prefix / "bin/mpiexec", "--oversubscribe", "-n", ranks, compiled("endless")]
        running.append(harness.Running(command))
        return running[-1]

    yield start
    for one in running:
        left = harness.survivors(one.mark)
        assert not left, f"these processes survived:\n{left}"
    assert not harness.files_left(before)


def wait_until_running(job):
    """Waits until rank 0 has printed its line."""
    assert job.process.stdout.readline() == "running\n"


def ranks_of(job):
    """The process ids of the ranks, in any order."""
    found = []
    for pid in harness.marked(job.mark):
        try:
            if os.readlink(f"/proc/{pid}/exe").endswith("/endless"):
                found.append(pid)
        except OSError:
            pass
    return sorted(found)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
@pytest.mark.parametrize("seed", range(3))
def test_a_killed_rank_ends_the_job_with_one_message(ending, seed, job):
    chance = random.Random(seed)
    one = job()
    wait_until_running(one)
    time.sleep(chance.uniform(0, 0.2))
    os.kill(chance.choice(ranks_of(one)), ending)
    result = one.finish(WATCHDOG)
    assert not result.timed_out and result.status == 128 + ending, result.report()
    lines = [line for line in result.err.splitlines() if line.startswith("mpiexec: ")]
    assert len(lines) == 1, result.report()
    assert "rank" in lines[0] and ending.name in lines[0], result.report()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_no_rank_survives_the_end_of_mpiexec(ending, job):
    one = job()
    wait_until_running(one)
    os.kill(one.process.pid, ending)
    result = one.finish(WATCHDOG)
    assert not result.timed_out and result.status != 0, result.report()


def is_dead(pid):
    """Whether the kernel has taken the memory of a killed process: its first thread alone is left, which nobody has collected."""
    try:
        process = Path(f"/proc/{pid}")
        is_zombie = (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return is_zombie and len(list((process / "task").iterdir())) == 1
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("call", ["scatter", "put"])
def test_a_dead_rank_that_cannot_be_read_is_not_taken_for_one_that_must_not_be(call, prefix, compiled, tmp_path):
    file = tmp_path / "now"
    one = harness.Running([prefix / "bin/mpiexec", "--oversubscribe", "-n", 3, compiled("late_rank"), call, file])
    word, pid = one.process.stdout.readline().split()
    assert word == "waiting"
    time.sleep(0.2)  # until it waits in the call; if it does not yet, the test shows less, but does not fail
    halves = [each for each in harness.marked(one.mark) if os.readlink(f"/proc/{each}/exe").endswith("/mpiexec")]
    for each in halves:
        os.kill(each, signal.SIGSTOP)  # so that nobody notices the death yet
    os.kill(int(pid), signal.SIGKILL)
    deadline = time.monotonic() + WATCHDOG
    while not is_dead(int(pid)):  # until then, its memory can be read
        assert time.monotonic() < deadline, one.finish(0).report()
        time.sleep(0.01)
    file.touch()
    time.sleep(0.5)
    for each in halves:
        os.kill(each, signal.SIGCONT)
    result = one.finish(WATCHDOG)
    assert result.status == 137 and "returned" not in result.out, result.report()
    assert len(result.err.splitlines()) == 1 and "rank 1" in result.err and "SIGKILL" in result.err, result.report()
    assert not harness.survivors(one.mark)
