"""Runs rank 0 of a program under callgrind, and counts inside given functions."""

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from .libraries import BUILD, Unavailable
from .runner import harness

# valgrind has few addresses to give, and the library takes as many as it is allowed: `ulimit -v`, in bytes.
ADDRESSES = 16_000_000 << 10
TIME_LIMIT = 120  # seconds


@contextmanager
def steps_file():
    """The file of zeros by which the ranks of calls.c wait for each other."""
    with tempfile.TemporaryDirectory() as folder:
        steps = Path(folder) / "steps"
        steps.write_bytes(bytes(4096))
        yield steps


def run(who, name, words, functions, read, *, ranks=2, variables=()):
    """read(callgrind's file) of a run of the program `words`, whose last argument will be the file of steps.

    Rank 0 alone runs under callgrind, which counts inside the functions whose names match one of `functions`. `who` is the
    library; `variables` are added. Raises Unavailable, with `name`, if the run fails.
    """
    if not shutil.which("valgrind"):
        raise Unavailable("valgrind is not installed: run dev/setup valgrind")
    with steps_file() as steps:
        output = steps.with_name("callgrind")
        program = [BUILD / who.binary / words[0], *words[1:], steps]
        valgrind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={output}",
                    *(f"--toggle-collect={function}" for function in functions)]
        command = [*who.launcher, 1, *valgrind, *program, ":", "-n", ranks - 1, *program]
        result = harness.run(["sh", "-c", f'ulimit -v {ADDRESSES >> 10} && exec "$@"', "sh", *command],
                             env={**who.variables, **dict(variables)}, timeout=TIME_LIMIT)
        if result.status != 0:
            raise Unavailable(f"{name}: the run failed\n{result.report()}")
        return read(output)
