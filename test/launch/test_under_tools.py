"""Tools that leave a program little address space, or read all mapped memory, work without special options."""

import shutil
import sys

import pytest

PROGRAM = """\
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { bytes = 300000 };
static int rank, size;
static void* in_a_thread(void* unused) {
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  if (sum != rank) abort();
  return unused;
}
int main(int argc, char** argv) {
  int level, sum = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  pthread_t thread;
  if (pthread_create(&thread, NULL, in_a_thread, NULL) != 0) abort();
  pthread_join(thread, NULL);
  char *shared, *window, *copy = malloc(bytes);
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &shared);
  memset(shared, rank, bytes);
  MPI_Sendrecv(shared, bytes, MPI_CHAR, (rank + 1) % size, 0, copy, bytes, MPI_CHAR, (rank + size - 1) % size, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Win win;
  MPI_Win_allocate_shared(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
  MPI_Aint length;
  int unit;
  char* other;
  MPI_Win_shared_query(win, (rank + 1) % size, &length, &unit, &other);
  MPI_Win_fence(0, win);
  other[length - 1] = (char)rank;
  MPI_Win_fence(0, win);
  if (window[(1 << 20) - 1] != (char)((rank + size - 1) % size)) abort();
  MPI_Win_free(&win);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d: %d, %d\\n", rank, sum, copy[bytes - 1]);
  MPI_Free_mem(shared);
  free(copy);
  MPI_Finalize();
  return 0;
}
"""
OF_TWO = ["0: 1, 1", "1: 1, 0"]


@pytest.fixture
def program(prefix, nothing_left, tmp_path):
    """program(compiler, option, ...): PROGRAM built with these options."""

    def build(compiler="", *options):
        (tmp_path / "program.c").write_text(PROGRAM)
        made = nothing_left([prefix / "bin/mpicc", "-g", "-pthread", *options, "-o", tmp_path / "program",
                             tmp_path / "program.c"], env={"NEARMPI_CC": compiler} if compiler else None)
        assert made.status == 0, made.report()
        return tmp_path / "program"

    return build


def finished(result, lines):
    assert result.status == 0 and result.err == "" and sorted(result.out.splitlines()) == lines, result.report()


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_a_program_under_the_thread_sanitizer_runs(launch, program, nothing_left, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    made = program(compiler, "-fsanitize=thread")
    finished(launch("--oversubscribe", "-n", 2, made), OF_TWO)
    finished(nothing_left([made]), ["0: 0, 0"])


@pytest.fixture
def valgrind():
    if shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind")
    return ["valgrind", "-q", "--error-exitcode=9"]


def test_a_job_under_valgrind_runs_without_help(launch, program, valgrind):
    finished(launch("--oversubscribe", "-n", 2, *valgrind, program(), timeout=300), OF_TWO)


def test_a_singleton_under_valgrind_runs_without_help(nothing_left, program, valgrind):
    finished(nothing_left([*valgrind, "--leak-check=full", program()], timeout=300), ["0: 0, 0"])


def test_one_rank_of_a_job_may_run_under_valgrind(launch, program, valgrind):
    made = program()
    finished(launch("--oversubscribe", "-n", 1, *valgrind, made, ":", "-n", 1, made, timeout=300), OF_TWO)


def test_valgrind_allocates_no_unused_pages(nothing_left, program, valgrind):
    """Its leak check reads all readable memory, and reading a page of the segment allocates it."""
    result = nothing_left([sys.executable, "-c",
                           "import resource, subprocess, sys\n"
                           "status = subprocess.run(sys.argv[1:]).returncode\n"
                           "print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)",
                           *valgrind, "--leak-check=full", program()], timeout=300)
    status, mebibytes = result.out.splitlines()[-1].split()
    assert int(status) == 0 and int(mebibytes) < 1024, result.report()
