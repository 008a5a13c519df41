"""Debuggers find the ranks of a job by the table that mpiexec keeps for them (MPIR)."""

import re
import shutil

import pytest

COMMANDS = """\
set pagination off
set confirm off
set breakpoint pending off
set debuginfod enabled off
handle all nostop noprint pass
break MPIR_Breakpoint
starti
set variable MPIR_being_debugged = {debugged}
continue
print MPIR_proctable_size
print MPIR_debug_state
print MPIR_i_am_starter
print MPIR_proctable[0]
print MPIR_proctable[1]
python import time; time.sleep({pause})
shell echo; echo at the breakpoint: $(wc -l < {started})
continue
"""
PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  FILE* file = fopen(argv[1], "a");
  fprintf(file, "%d %d\\n", rank, (int)getpid());
  fclose(file);
  MPI_Finalize();
  return 0;
}
"""


def test_the_symbols_are_in_the_program_and_outlive_strip(prefix, nothing_left, tmp_path):
    stripped = tmp_path / "mpiexec"
    assert nothing_left(["strip", "-o", stripped, prefix / "bin/mpiexec"]).status == 0
    symbols = {line.split()[-1] for line in nothing_left(["nm", "-D", "--defined-only", stripped]).out.splitlines()}
    assert {"MPIR_proctable", "MPIR_proctable_size", "MPIR_being_debugged", "MPIR_debug_state", "MPIR_Breakpoint",
            "MPIR_i_am_starter", "MPIR_partial_attach_ok"} <= symbols


@pytest.mark.parametrize("debugged", [1, 0])
def test_gdb_finds_the_ranks(prefix, nothing_left, tmp_path, debugged):
    if shutil.which("gdb") is None:
        pytest.skip("there is no gdb")
    (tmp_path / "program.c").write_text(PROGRAM)
    made = nothing_left([prefix / "bin/mpicc", "-o", tmp_path / "program", tmp_path / "program.c"])
    assert made.status == 0, made.report()
    started = tmp_path / "started"
    started.write_text("")
    (tmp_path / "commands").write_text(COMMANDS.format(debugged=debugged, pause=debugged, started=started))
    result = nothing_left(["gdb", "-q", "-batch", "-x", tmp_path / "commands", "--args", prefix / "bin/mpiexec",
                           "--oversubscribe", "-n", 2, tmp_path / "program", started], timeout=120)
    if "ptrace: Operation not permitted" in result.text:
        pytest.skip("this machine lets nobody trace")
    assert re.search(r"\$1 = 2\n\$2 = 1\n\$3 = 1\n", result.out), result.report()
    table = re.findall(r'host_name = [^"]*"(.*?)", executable_name = [^"]*"(.*?)", pid = (\d+)', result.out)
    ranks = dict(line.split() for line in started.read_text().splitlines())
    assert [(name, pid) for _, name, pid in table] == [(str(tmp_path / "program"), ranks[str(rank)])
                                                       for rank in range(2)], result.report()
    if debugged:
        assert "at the breakpoint: 0" in result.out, "nobody left MPI_Init before: " + result.report()
    assert "exited normally" in result.out, result.report()
