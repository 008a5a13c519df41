"""Kills processes at random points of a job's life: whichever is killed, nothing is left.

KILL_SEED=<first seed of a failed run> repeats that run.
"""

import os
import random
import signal
import time

import harness
import pytest

ROUNDS = 24


def rounds():
    seed = int(os.environ.get("KILL_SEED", random.SystemRandom().randrange(1 << 32)))
    return [pytest.param(seed + i, id=f"seed{seed + i}") for i in range(ROUNDS)]


@pytest.mark.parametrize("seed", rounds())
def test_nothing_is_left_whatever_is_killed(start, compiled, seed):
    draw = random.Random(seed)
    program = draw.choice(["mpi", "mpi", "wrapper", "shell"])
    command = {"mpi": [compiled("end_badly"), "hang"],
               "wrapper": ["sh", "-c", f"{compiled('end_badly')} hang; sleep 1000"],
               "shell": ["sh", "-c", "sh -c 'setsid sleep 1000; true' & sleep 1000; true"]}[program]
    job = start("--oversubscribe", "-n", draw.choice([1, 2, 3, 5]), *command)
    # Any time from before the first fork until all ranks are in MPI_Recv.
    time.sleep(draw.choice([draw.uniform(0, 0.02), draw.uniform(0, 0.15), draw.uniform(0, 1)]))
    target = draw.choice(["mpiexec", "mpiexec", "group", "any", "any", "two"])
    number = draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    try:
        if target == "mpiexec":
            job.signal(number)
        elif target == "group":
            os.killpg(job.pid, signal.SIGKILL)
        else:
            # Not both halves of the launcher at once: after that, only the ranks themselves are certain to end.
            victims = [pid for pid in job.processes() if target == "any" or pid not in job.named("mpiexec")]
            for victim in draw.sample(victims, min(len(victims), 1 if target == "any" else 2)):
                os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        pass
    deadline = time.monotonic() + 5
    while job.process.poll() is None and time.monotonic() < deadline and target != "any":
        time.sleep(0.01)
    if job.process.poll() is None:
        job.signal(signal.SIGTERM)  # a shell may not notice that a grandchild was killed, so the job continues
    job.finish()
    left = harness.survivors(job.mark)
    assert not left, f"{program}, {target}, {number.name}: these survived\n{left}"


def test_killing_ranks_and_launcher_together_leaves_no_rank(start, compiled):
    job = start("-n", "3", "--oversubscribe", compiled("end_badly"), "hang")
    job.wait_for("in-mpi", 3)
    for pid in job.named("mpiexec"):
        os.kill(pid, signal.SIGKILL)
    job.process.wait(30)
    assert not harness.survivors(job.mark)
