"""gdb stops mpiexec at MPIR_Breakpoint, prints the table of two ranks, and lets them go."""

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


def session(prefix, run, folder, debugged, launch, pause):
    """What gdb has printed (harness.run) of a launcher that starts two ranks. `launch(program, file)` are the words that start them,
    `run` runs a command, `pause` is how long gdb holds the launcher, in seconds. The session is checked but for the machines, which are
    returned.
    """
    if shutil.which("gdb") is None:
        pytest.skip("there is no gdb")
    (folder / "program.c").write_text(PROGRAM)
    made = run([prefix / "bin/mpicc", "-o", folder / "program", folder / "program.c"])
    assert made.status == 0, made.report()
    started = folder / "started"
    started.write_text("")
    (folder / "commands").write_text(COMMANDS.format(debugged=debugged, pause=pause, started=started))
    words = launch(folder / "program", started)
    first = words.index(prefix / "bin/mpiexec")
    result = run([*words[:first], "gdb", "-q", "-batch", "-x", folder / "commands", "--args", *words[first:]], timeout=120)
    if "ptrace: Operation not permitted" in result.text:
        pytest.skip("this machine lets nobody trace")
    assert re.search(r"\$1 = 2\n\$2 = 1\n\$3 = 1\n", result.out), result.report()
    table = re.findall(r'host_name = [^"]*"(.*?)", executable_name = [^"]*"(.*?)", pid = (\d+)', result.out)
    ranks = dict(line.split() for line in started.read_text().splitlines())
    assert [(name, pid) for _, name, pid in table] == [(str(folder / "program"), ranks[str(rank)]) for rank in range(2)], result.report()
    if debugged:
        assert "at the breakpoint: 0" in result.out, "nobody left MPI_Init before: " + result.report()
    assert "exited normally" in result.out, result.report()
    return [machine for machine, _, _ in table]
