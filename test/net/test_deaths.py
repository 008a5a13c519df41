"""Ranks and machines that die, or only seem to, in jobs on several machines (machines.py)."""

import contextlib
import os
import re
import signal
import time
from pathlib import Path

import harness
import pytest

WATCHDOG = 40
ENDS = "the job ends"


def variables_of(pid):
    with contextlib.suppress(OSError):
        entries = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)
    return {}


class Job:
    """A job of `deaths` whose ranks are ready."""

    def __init__(self, running, folder, size):
        self.running = running
        deadline = time.monotonic() + 30
        while len(list(folder.iterdir())) < size and time.monotonic() < deadline and running.process.poll() is None:
            time.sleep(0.05)
        ready = len(list(folder.iterdir()))
        if ready < size:
            pytest.fail(f"{ready} of {size} ranks are ready\n{running.finish(0).report()}")
        time.sleep(1)  # for the others to wait
        self.ranks = {}
        for pid in harness.marked(running.mark):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/exe").resolve().name.split()[0] == "deaths":
                    self.ranks[int(variables_of(pid)["PMI_RANK"])] = pid
        assert sorted(self.ranks) == list(range(size))

    def signal(self, rank, number):
        os.kill(self.ranks[rank], number)

    def processes_of(self, ranks):
        return [rank for rank in ranks if Path(f"/proc/{self.ranks[rank]}/exe").exists()]

    def wait_for_end_of(self, ranks):
        """For where the launcher does not notice anything."""
        deadline = time.monotonic() + WATCHDOG
        while self.processes_of(ranks) and time.monotonic() < deadline:
            time.sleep(0.05)
        return not self.processes_of(ranks)

    def finish(self):
        result = self.running.finish(WATCHDOG)
        assert not result.timed_out, result.report()
        left = harness.survivors(result.mark, patience=5)
        assert not left, left
        return result


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "ready"
    made.mkdir()
    return made


def slurm_job(cluster, compiled, folder, each, what, victim, *more, environment=None):
    size = 2 * each
    running = cluster.start(["-N", 2, "-n", size, "-m", "block", compiled("deaths"), folder, victim, what, *more],
                            environment=environment)
    return Job(running, folder, size)


@pytest.mark.parametrize("what", ["receive", "allreduce", "compute", "finalize"])
@pytest.mark.parametrize("victim", [0, 1, 2, 3])
def test_the_death_of_a_rank_ends_the_job_with_one_message(cluster, compiled, folder, what, victim):
    job = slurm_job(cluster, compiled, folder, 2, what, victim)
    job.signal(victim, signal.SIGKILL)
    result = job.finish()
    place = "m1" if victim < 2 else "m2"
    assert result.status != 0 and result.text.count(ENDS) == 1, result.report()
    assert f"rank {victim} on {place} has ended without MPI_Finalize" in result.text, result.report()


@pytest.mark.parametrize("what", ["receive", "probe", "mprobe", "send", "small", "test", "waitall", "allreduce", "compute", "finalize"])
def test_the_death_of_all_ranks_of_a_machine_ends_the_job(cluster, compiled, folder, what):
    job = slurm_job(cluster, compiled, folder, 1, what, 1)
    job.signal(1, signal.SIGKILL)
    result = job.finish()
    assert result.status != 0 and result.text.count(ENDS) == 1, result.report()
    assert "rank 1 on m2 has ended without MPI_Finalize" in result.text, result.report()


@pytest.mark.parametrize("what", ["receive", "probe", "mprobe", "send", "small", "test", "waitall", "allreduce", "finalize"])
def test_a_program_that_handles_errors_gets_one_and_can_finish(cluster, compiled, folder, what):
    job = slurm_job(cluster, compiled, folder, 1, what, 1, "errors")
    job.signal(1, signal.SIGKILL)
    result = job.finish()
    assert "rank 0 ends" in result.out and "rank 0 has finished" in result.out and ENDS not in result.text, result.report()


@pytest.mark.parametrize("what", ["mrecv", "imrecv"])
def test_a_message_that_was_matched_before_its_sender_died_is_an_error(cluster, compiled, folder, what):
    job = slurm_job(cluster, compiled, folder, 1, what, 1, "errors")
    job.signal(1, signal.SIGKILL)
    (folder / "killed").touch()
    result = job.finish()
    assert "rank 0 ends" in result.out and "rank 0 has finished" in result.out and ENDS not in result.text, result.report()


def test_the_first_message_to_a_rank_that_has_died_is_an_error(cluster, compiled, folder):
    job = slurm_job(cluster, compiled, folder, 1, "first", 1, "errors")
    job.signal(1, signal.SIGKILL)
    (folder / "killed").touch()
    result = job.finish()
    assert "rank 0 ends" in result.out and "rank 0 has finished" in result.out and ENDS not in result.text, result.report()


@pytest.mark.parametrize("each, what", [(1, "receive"), (1, "waitall"), (1, "compute"), (2, "receive"), (2, "waitall"), (2, "allreduce"),
                                        (2, "compute")])
def test_a_cable_that_is_pulled_ends_the_ranks_on_both_sides(own_machines, compiled, folder, each, what):
    own = own_machines(2)
    size = 2 * each
    job = Job(harness.Running(own.hydra_command(size, [compiled("deaths"), folder, size - 1, what], each=each)), folder, size)
    own.set_link(1, "down")
    ended = job.wait_for_end_of(range(size - 1))
    ended = job.wait_for_end_of(range(size)) and ended
    own.set_link(1, "up")
    result = job.running.finish(WATCHDOG)
    assert ended, result.report()
    ranks = "1" if each == 1 else "2-3"
    assert f"m2 does not answer, so its ranks are lost (NEAR_LOST_AFTER=5): {ranks};" in result.text, result.report()
    assert not harness.survivors(result.mark, patience=5)


@pytest.mark.parametrize("each,what", [*((1, what) for what in ["receive", "send", "small", "waitall", "allreduce", "finalize"]),
                                       (2, "waitall"), (2, "allreduce"), (2, "barrier")])
def test_a_program_that_handles_errors_survives_the_loss_of_a_cable(own_machines, compiled, folder, each, what):
    own = own_machines(2)
    program = [compiled("deaths"), folder, each, what, "errors"]
    command = own.hydra_command(2 * each, program, each=each, environment={"NEAR_LOST_AFTER": 3})
    job = Job(harness.Running(command), folder, 2 * each)
    own.set_link(1, "down")
    assert job.wait_for_end_of(range(each)), job.running.finish(0).report()
    result = job.running.finish(5)
    for rank in range(each):
        assert f"rank {rank} has finished" in result.out, result.report()


def test_among_three_machines_one_of_the_others_tells_of_the_lost_one(own_machines, compiled, folder):
    own = own_machines(3)
    job = Job(harness.Running(own.hydra_command(6, [compiled("deaths"), folder, 5, "compute"], each=2)), folder, 6)
    own.set_link(1, "down")
    ended = job.wait_for_end_of(range(6))
    own.set_link(1, "up")
    result = job.running.finish(WATCHDOG)
    assert ended, result.report()
    assert len(re.findall(r"m2 does not answer, so its ranks are lost \(NEAR_LOST_AFTER=5\): 2-3;", result.text)) == 1, result.report()


@pytest.mark.parametrize("seconds", [8])
def test_a_rank_that_computes_is_not_dead(two, compiled, folder, seconds):
    environment = {"NEAR_LOST_AFTER": 2}
    running = harness.Running(two.hydra_command(4, [compiled("deaths"), folder, 2, "again", seconds], each=2, environment=environment))
    result = Job(running, folder, 4).finish()
    assert result.status == 0 and result.out.count("has finished") == 4, result.report()


@pytest.mark.parametrize("victims", [[0], [2], [2, 3]])
def test_stopped_ranks_are_not_dead(two, compiled, folder, victims):
    environment = {"NEAR_LOST_AFTER": 2}
    running = harness.Running(two.hydra_command(4, [compiled("deaths"), folder, 2, "again", 2], each=2, environment=environment))
    job = Job(running, folder, 4)
    for victim in victims:
        job.signal(victim, signal.SIGSTOP)
    time.sleep(8)
    for victim in victims:
        job.signal(victim, signal.SIGCONT)
    result = job.finish()
    assert result.status == 0 and result.out.count("has finished") == 4, result.report()
