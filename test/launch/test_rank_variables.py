"""The environment variables of each rank for scripts and libraries."""

import sys

import pytest

NAMES = ("NEAR_RANK", "NEAR_SIZE", "NEAR_LOCAL_RANK", "NEAR_LOCAL_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
SHOW = "echo " + " ".join(f"${name}" for name in NAMES)
C = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1) {
    int status = system(argv[1]);
    MPI_Finalize();
    return status != 0;
  }
  printf("%d %s %s %s %s\\n", rank, getenv("NEAR_RANK"), getenv("NEAR_LOCAL_SIZE"), getenv("MPI_LOCALRANKID"),
         getenv("NEAR_BOOT_RANK") == NULL ? "gone" : "there");
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture
def program(prefix, nothing_left, tmp_path):
    (tmp_path / "show.c").write_text(C)
    made = nothing_left([prefix / "bin/mpicc", "-o", tmp_path / "show", tmp_path / "show.c"])
    assert made.status == 0, made.report()
    return tmp_path / "show"


def test_a_script_reads_its_place_in_the_job(launch):
    result = launch("--oversubscribe", "-n", 3, "sh", "-c", SHOW)
    assert sorted(result.out.splitlines()) == [f"{rank} 3 {rank} 3 {rank} 3" for rank in range(3)], result.report()
    assert result.err == "", result.report()


def test_the_variables_outlive_init_and_no_contract_does(launch, program):
    result = launch("--oversubscribe", "-n", 2, program)
    assert sorted(result.out.splitlines()) == [f"{rank} {rank} 2 {rank} gone" for rank in range(2)], result.report()
    assert result.err == "", "an unknown knob would be warned about: " + result.report()


def test_a_job_in_a_job_has_its_own(launch, prefix, program):
    inner = f"{prefix}/bin/mpiexec --oversubscribe -n 3 sh -c '{SHOW}'"
    result = launch("--oversubscribe", "-n", 2, program, inner)
    assert sorted(result.out.splitlines()) == [f"{rank} 3 {rank} 3 {rank} 3" for rank in (0, 0, 1, 1, 2, 2)], \
        result.report()


def test_a_program_that_a_rank_starts_is_a_job_of_its_own(launch, program):
    result = launch("--oversubscribe", "-n", 2, program, str(program))
    assert sorted(line.split()[0] for line in result.out.splitlines()) == ["0", "0"], result.report()


def test_what_the_user_has_set_by_these_names_does_not_stay(launch):
    result = launch("--oversubscribe", "-n", 2, sys.executable, "-c",
                    "import os; print(os.environ['NEAR_RANK'], os.environ['MPI_LOCALNRANKS'])",
                    env={"NEAR_RANK": "7", "MPI_LOCALNRANKS": "9"})
    assert sorted(result.out.splitlines()) == ["0 2", "1 2"], result.report()
