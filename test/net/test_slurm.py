"""Jobs on two machines (machines.py) that Slurm starts (slurm.py), by its plugin pmi2."""

import re

import harness
import pytest


@pytest.mark.parametrize("distribution, each", [("block", 2), ("cyclic", 1)])
def test_srun_starts_ranks_on_two_machines(cluster, compiled, distribution, each):
    result = cluster.run(["-N", 2, "-n", 4, "-m", distribution, compiled("machines"), each])
    assert result.status == 0, result.report()
    places = dict(re.findall(r"rank (\d) on (m\d)", result.out))
    expected = {1: "m1 m2 m1 m2", 2: "m1 m1 m2 m2"}[each].split()
    assert [places[str(rank)] for rank in range(4)] == expected, result.report()


@pytest.mark.parametrize("program", ["ring", "large_exchange", "collectives", "collectives_nonblocking"])
def test_programs_run_as_on_one_machine(cluster, compiled, program):
    result = cluster.run(["-N", 2, "-n", 4, compiled(program)])
    assert result.status == 0 and not result.timed_out, result.report()


def test_an_abort_ends_the_step(cluster, compiled):
    result = cluster.run(["-N", 2, "-n", 4, compiled("machines"), "abort"], timeout=30)
    assert result.status != 0 and not result.timed_out, result.report()
    assert "rank 3: error: MPI_Abort: called on MPI_COMM_WORLD with error code 7" in result.text, result.report()
    assert not harness.survivors(result.mark)


def test_with_kill_on_bad_exit_the_death_of_a_rank_ends_the_step(cluster, compiled):
    result = cluster.run(["-K", "-N", 2, "-n", 4, compiled("machines"), "die", 3], timeout=30)
    assert result.status != 0 and not result.timed_out, result.report()
    assert not harness.survivors(result.mark)


def test_without_pmi_the_error_says_what_to_write(cluster, compiled):
    result = cluster.run(["--mpi=none", "-N", 2, "-n", 2, compiled("ring")], timeout=30)
    assert result.status != 0 and "with Slurm say srun --mpi=pmi2" in result.text, result.report()


@pytest.mark.parametrize("options, expected", [([], "m1 m1 m2 m2"), (["-ppn", "1", "-n", "4"], "m1 m2 m1 m2")])
def test_our_mpiexec_uses_the_machines_of_its_allocation(cluster, compiled, prefix, options, expected):
    """On a machine that is not one of them; srun starts the agents."""
    each = 1 if "-ppn" in options else 2
    result = cluster.allocate(["-N", 2, "-n", 4, prefix / "bin/mpiexec", "--oversubscribe", *options, compiled("machines"), each], timeout=40)
    assert result.status == 0 and not result.timed_out, result.report()
    places = dict(re.findall(r"rank (\d) on (m\d)", result.out))
    assert [places[str(rank)] for rank in range(len(places))] == expected.split(), result.report()


def test_a_job_of_our_mpiexec_ends_as_a_whole(cluster, compiled, prefix):
    result = cluster.allocate(["-N", 2, "-n", 4, prefix / "bin/mpiexec", "--oversubscribe", compiled("machines"), "die", 3], timeout=40)
    assert result.status != 0 and not result.timed_out, result.report()
    assert "mpiexec: rank 3 (machines, pid " in result.err and " on m2) was ended by signal" in result.err, result.report()
    assert not harness.survivors(result.mark)
