"""Jobs of PMIx launchers: Open MPI's prterun, on this machine and on two (machines.py), and Slurm's srun --mpi=pmix (slurm.py)."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import harness
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machines import OPENMPI, Machines, Refused, prterun  # noqa: E402
from slurm import Slurm, is_installed  # noqa: E402

WATCHDOG = 60


def test_the_declarations_agree_with_the_headers():
    """What the library declares of libpmix's interface is what its headers say."""
    flags = subprocess.run(["pkg-config", "--cflags", "pmix"], capture_output=True, text=True)
    assert flags.returncode == 0, f"{flags.stderr}: dev/setup pmix"
    result = harness.run([os.environ.get("CXX", "g++"), "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", f"-I{harness.ROOT}/src",
                          *shlex.split(flags.stdout), harness.ROOT / "test/net/pmix_interface.cpp"])
    assert result.status == 0, result.report()


@pytest.fixture(scope="module")
def two():
    try:
        with Machines(2) as machines:
            yield machines
    except Refused as refused:
        pytest.skip(f"this system does not let us make machines: {refused}")


@pytest.fixture(scope="module")
def cluster(two):
    if not is_installed():
        pytest.skip("Slurm is not installed: dev/setup slurm")
    with Slurm(two) as slurm:
        yield slurm


@pytest.fixture
def here(tmp_path, nothing_left):
    """here(ranks, command, ...): runs a command by prterun on this machine, and checks that no process is left."""

    def run(ranks, command, *more, **options):
        result = nothing_left([*prterun(tmp_path), "--map-by", ":oversubscribe", "-n", ranks, *command, *more], timeout=WATCHDOG, **options)
        assert not result.timed_out, result.report()
        return result

    return run


def ends(result):
    """The job has ended by itself, and nothing is left of it."""
    assert not result.timed_out, result.report()
    left = harness.survivors(result.mark, patience=5)
    assert not left, f"{left}\n{result.report()}"
    return result


def places(result):
    found = dict(re.findall(r"rank (\d) on (m\d)", result.out))
    return " ".join(found[str(rank)] for rank in range(len(found)))


PLACES = {1: "m1 m2 m1 m2", 2: "m1 m1 m2 m2"}


def test_prterun_starts_jobs_on_one_machine(here, compiled):
    result = here(3, [compiled("ring")])
    assert result.status == 0, result.report()


def test_a_job_of_one_rank_runs(here, compiled):
    result = here(1, [compiled("ring")])
    assert result.status == 0, result.report()


def test_each_program_of_a_list_knows_its_number(here, compiled):
    program = compiled("machines")
    result = here(1, [program, "application", 0], ":", "-n", 2, program, "application", 1)
    assert result.status == 0, result.report()


@pytest.mark.parametrize("way, status, words", [
    ("abort", 7, "rank 1: error: MPI_Abort: called on MPI_COMM_WORLD with error code 7"),
    ("kill", None, ""),
    ("exit", 3, ""),
    ("no-finalize", None, ""),
])
def test_a_rank_that_ends_in_mpi_ends_all(here, compiled, way, status, words):
    result = here(3, [compiled("end_badly"), way])
    assert result.status == status if status else result.status != 0, result.report()
    assert words in result.text and ("last words" in result.out) == (way == "abort"), result.report()


def test_what_a_rank_starts_is_a_job_of_its_own(nothing_left, compiled, tmp_path):
    """Its variables of PMIx are gone, and those that Open MPI's mpiexec sets besides do not make it one of several."""
    mpiexec = [OPENMPI / "bin/mpiexec", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    result = nothing_left([*mpiexec, "-n", 2, compiled("start_program"), compiled("ring")], env={"TMPDIR": tmp_path}, timeout=WATCHDOG)
    assert result.status == 0 and not result.timed_out, result.report()


def test_a_rank_that_ends_without_init_while_others_wait_in_it_ends_the_job(here, compiled):
    """prterun knows that they wait."""
    result = here(2, ["sh", "-c", f"test $PMIX_RANK = 0 && exec {compiled('ring')}; sleep 2"])
    assert result.status != 0, result.report()


def test_the_libpmix_of_the_launcher_serves_as_well(here, compiled):
    """Open MPI's own, of another version than the system's."""
    result = here(2, [compiled("ring")], env={"LD_LIBRARY_PATH": OPENMPI / "lib/openmpi"})
    assert result.status == 0 and "PMIX ERROR" not in result.err, result.report()


def test_ranks_end_when_their_launcher_is_killed(compiled, tmp_path):
    """Also those that wait for nothing. prterun itself ends them only on other machines; what they say is lost with it."""
    ready = tmp_path / "ready"
    ready.mkdir()
    running = harness.Running([*prterun(tmp_path), "--map-by", ":oversubscribe", "-n", 3, compiled("deaths"), ready, 2, "compute"])
    deadline = time.monotonic() + WATCHDOG
    while len(list(ready.iterdir())) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(list(ready.iterdir())) == 3, running.finish(0).report()
    running.process.kill()
    ends(running.finish(WATCHDOG))


@pytest.mark.parametrize("each", [1, 2])
def test_prterun_starts_ranks_on_two_machines(two, compiled, each):
    result = ends(two.prterun(4, [compiled("machines"), each], each=each, timeout=WATCHDOG))
    assert result.status == 0 and places(result) == PLACES[each], result.report()


def test_an_abort_ends_the_job_on_all_machines(two, compiled):
    result = ends(two.prterun(4, [compiled("machines"), "abort"], each=2, timeout=WATCHDOG))
    assert result.status == 7, result.report()


@pytest.mark.parametrize("victim", [0, 3])
def test_the_death_of_a_rank_ends_the_job_on_all_machines(two, compiled, victim):
    result = ends(two.prterun(4, [compiled("machines"), "die", victim], each=2, timeout=WATCHDOG))
    assert result.status != 0, result.report()


@pytest.mark.parametrize("distribution, each", [("block", 2), ("cyclic", 1)])
def test_srun_starts_ranks_on_two_machines(cluster, compiled, distribution, each):
    result = ends(cluster.run(["--mpi=pmix", "-N", 2, "-n", 4, "-m", distribution, compiled("machines"), each], timeout=WATCHDOG))
    assert result.status == 0 and places(result) == PLACES[each], result.report()


def test_an_abort_ends_the_step(cluster, compiled):
    result = ends(cluster.run(["--mpi=pmix", "-N", 2, "-n", 4, compiled("machines"), "abort"], timeout=WATCHDOG))
    assert result.status == 7, result.report()
    assert "rank 3: error: MPI_Abort: called on MPI_COMM_WORLD with error code 7" in result.text, result.report()


@pytest.mark.parametrize("options", [[], ["-K"]])
def test_the_death_of_a_rank_ends_the_step(cluster, compiled, options):
    """By the watch, since Slurm does so only with -K."""
    result = ends(cluster.run([*options, "--mpi=pmix", "-N", 2, "-n", 4, compiled("machines"), "die", 3], timeout=WATCHDOG))
    assert result.status != 0, result.report()
    said = re.findall(r"rank 3 on m2 has ended without MPI_Finalize.*: the job ends", result.text)
    assert options or len(said) == 1, result.report()


JOB = {"PMIX_NAMESPACE": "job-of-yesterday", "PMIX_RANK": 1}


def test_a_launcher_that_is_gone_is_named(nothing_left, compiled):
    result = nothing_left([compiled("ring")], env=JOB, timeout=WATCHDOG)
    assert result.status != 0 and not result.timed_out, result.report()
    assert "the PMIx launcher that has set PMIX_NAMESPACE=job-of-yesterday does not answer (" in result.text, result.report()


@pytest.mark.parametrize("functions, words", [
    (None, "cannot be loaded ("),
    (["Init", "Finalize", "Abort", "Put", "Commit", "Fence", "Get", "Error_string"], "libpmix.so.2 lacks a function ("),
])
def test_a_libpmix_that_does_not_serve_is_an_error(nothing_left, compiled, tmp_path, functions, words):
    """It is no library, or so old that it has no PMIx_Fence_nb."""
    library = tmp_path / "libpmix.so.2"
    if functions is None:
        library.write_bytes(b"")
    else:
        text = "".join(f"int PMIx_{name}(void) {{ return -1; }}" for name in functions)
        made = harness.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=text)
        assert made.status == 0, made.report()
    result = nothing_left([compiled("ring")], env={**JOB, "LD_LIBRARY_PATH": tmp_path}, timeout=WATCHDOG)
    assert result.status != 0 and not result.timed_out and words in result.text, result.report()
    assert "install" in result.text or "version 3 or newer is needed" in result.text, result.report()
