"""Runs the rows of test/mpi/rows.txt: one pytest case for each row and number of ranks."""

import re
import shlex

import harness
import pytest

ROWS = harness.ROOT / "test/mpi/rows.txt"


def read_rows():
    """Yields (program, arguments, ranks, environment, status, says) for every case of every row."""
    for number, line in enumerate(ROWS.read_text().splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        fields = [field.strip() for field in line.split("|", 3)]
        if len(fields) != 4:
            raise ValueError(f"{ROWS.name}:{number}: expected 'program | ranks | environment | expected'")
        program, *arguments = shlex.split(fields[0])
        environment = dict(word.split("=", 1) for word in shlex.split(fields[2]) if word != "-")
        status, _, says = fields[3].partition(" says ")
        for ranks in fields[1].split():
            name = "-".join([*shlex.split(fields[0]), f"n{ranks}", *(f"{k}={v}" for k, v in environment.items())])
            yield pytest.param(program, arguments, int(ranks), environment, status.strip(), says.strip(), id=name)


@pytest.mark.parametrize("program, arguments, ranks, environment, status, says", read_rows())
def test_row(program, arguments, ranks, environment, status, says, compiled, mpiexec):
    result = mpiexec(ranks, [compiled(program), *arguments], env=environment, timeout=60)
    right = result.status != 0 if status == "fails" else result.status == int(status)
    assert right and not result.timed_out, f"expected status {status}\n{result.report()}"
    if says:
        assert re.search(says, result.text), f"expected to read: {says}\n{result.report()}"
