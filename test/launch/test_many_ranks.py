"""Jobs with far more ranks than processors: the cost of a rank does not grow with the number of ranks."""

import os
import re
import signal
import time


def costs(result, ranks):
    """The costs of each rank: private memory, touched shared memory, page tables, in KiB."""
    assert result.status == 0, result.report()
    rows = [tuple(map(int, line.split())) for line in result.out.splitlines()]
    assert len(rows) == ranks, result.report()
    return rows


def test_page_tables_do_not_grow_with_the_number_of_ranks(launch, compiled):
    few = costs(launch("--oversubscribe", "-n", "16", compiled("costs_of_a_rank")), 16)
    many = costs(launch("--oversubscribe", "-n", "256", compiled("costs_of_a_rank"), timeout=120), 256)
    # A mapped peer would cost at least 4 KiB, so 240 more peers would cost 960 KiB.
    assert max(row[2] for row in many) < max(row[2] for row in few) + 64
    assert sum(row[2] for row in many) < 40 << 10


def test_a_thousand_ranks_start_in_two_gigabytes(launch, compiled):
    rows = costs(launch("--oversubscribe", "-n", "1000", compiled("costs_of_a_rank"), timeout=240), 1000)
    assert sum(map(sum, rows)) < 2 << 20


def test_the_death_of_one_of_many_ranks_ends_them_all(start, compiled):
    job = start("--oversubscribe", "-n", "512", compiled("end_badly"), "hang")
    ranks = job.wait_for("in-mpi", 512)
    os.kill(ranks[300], signal.SIGKILL)
    status, _, err = job.finish(timeout=60)
    assert status != 0 and "was ended by signal 9" in err, err


STARTED = re.compile(r"^mpiexec: rank \d+: pid", re.MULTILINE)


def test_a_rank_that_dies_while_others_are_started_ends_the_job_at_once(launch):
    dies = 'if [ "$NEAR_RANK" = 3 ]; then kill -9 $$; fi; exec sleep 60'
    result = launch("--oversubscribe", "--verbose", "-n", "1000", "sh", "-c", dies, timeout=60)
    assert result.status == 137 and "rank 3" in result.err, result.report()
    started = len(STARTED.findall(result.err))
    assert started < 1000 and f"; {1000 - started} were not started" in result.err, result.report()


def test_the_time_of_a_job_may_end_while_its_ranks_are_started(launch):
    result = launch("--oversubscribe", "--verbose", "--timeout", "0.05", "-n", "1000", "sleep", "60", timeout=60)
    assert result.status == 124 and "was ended after 0.05 s" in result.err, result.report()
    started = len(STARTED.findall(result.err))
    assert started < 1000 and result.err.count(" not started\n") == 1000 - started, result.report()


def test_a_job_that_is_stopped_while_its_ranks_are_started_starts_the_others_later(start):
    job = start("--oversubscribe", "-n", "600", "sleep", "2")
    job.wait_for("sleep", 5)
    job.signal(signal.SIGTSTP)

    def states():
        return [open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] for pid in job.named("sleep")]

    deadline = time.monotonic() + 20
    while set(states()) != {"T"}:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    stopped = len(states())
    time.sleep(0.3)
    assert len(states()) == stopped < 600
    job.signal(signal.SIGCONT)
    job.wait_for("sleep", stopped + 1)
    status, _, err = job.finish(timeout=60)
    assert status == 0, err
