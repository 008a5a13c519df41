"""C++ exceptions that a program's callbacks and error handlers throw reach the program through MPI calls."""

import harness

PROGRAM = """\
#include <mpi.h>
#include <cstdio>
#include <new>
#include <stdexcept>

static void overflows(void*, void*, int*, MPI_Datatype*) { throw std::overflow_error("in the operation"); }
static int refuses(MPI_Comm, int, void*, void*) { throw 17; }
static void lacks_memory(MPI_Comm*, int* code, ...) {
  if (*code == MPI_ERR_RANK) throw std::bad_alloc();
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double in[100] = {}, inout[100] = {};
  MPI_Op operation;
  MPI_Op_create(overflows, 1, &operation);
  try {
    MPI_Reduce_local(in, inout, 100, MPI_DOUBLE, operation);
  } catch (const std::overflow_error& thrown) { std::printf("overflow %s\\n", thrown.what()); }
  try {
    MPI_Allreduce(in, inout, 100, MPI_DOUBLE, operation, MPI_COMM_WORLD);
    std::printf("nothing\\n"); // with one rank, nothing is reduced
  } catch (const std::overflow_error& thrown) { std::printf("overflow %s\\n", thrown.what()); }

  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuses, &key, nullptr);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_SELF, &copy);
  MPI_Comm_set_attr(copy, key, nullptr);
  try {
    MPI_Comm_free(&copy);
  } catch (int thrown) { std::printf("number %d\\n", thrown); }
  for (int times = 0; times < 2; ++times) // the attribute is still there
    try {
      MPI_Comm_delete_attr(copy, key);
    } catch (int thrown) { std::printf("number %d\\n", thrown); }

  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(lacks_memory, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  for (int times = 0; times < 2; ++times)
    try {
      MPI_Send(in, 1, MPI_DOUBLE, 7, 0, MPI_COMM_SELF);
    } catch (const std::bad_alloc&) { std::printf("memory\\n"); }
  int rank, size, from = -1; // MPI still works
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 5, &from, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  std::printf("from %d\\n", (from + 1) % size - rank);
  MPI_Finalize();
}
"""


def test_exceptions_of_callbacks_reach_the_program(prefix, tmp_path):
    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(PROGRAM)
    for options in ([], ["-static-libstdc++"]):
        built = harness.run([prefix / "bin/mpicxx", *options, "-o", program, source], timeout=120)
        assert built.status == 0, built.report()
        for ranks, second in ((1, "nothing"), (2, "overflow in the operation")):
            result = harness.run([prefix / "bin/mpiexec", "--oversubscribe", "-n", str(ranks), program], timeout=60)
            lines = ["overflow in the operation", second, *["number 17"] * 3, "memory", "memory", "from 0"]
            assert sorted(result.out.splitlines()) == sorted(lines * ranks), result.report()
            assert result.status == 0, result.report()
