"""All rows of test/mpi/rows.txt on two and three machines (machines.py), with ranks in blocks and in turns, started by our mpiexec.

    build/venv/bin/python -m pytest -n 2 test/net/all_rows.py                  # only if it is named: it takes very long
    build/venv/bin/python -m pytest test/net/all_rows.py -k "ring and 3-turns"

not_on_machines.txt lists the cases that cannot pass, and why. It may only shrink: a listed case that passes is a failure.
"""

import fnmatch
import re
import sys
from pathlib import Path

import harness
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from test_rows import read_rows  # noqa: E402

LISTED = Path(__file__).with_name("not_on_machines.txt")
SECONDS, LISTED_SECONDS = 600, 20


def listed():
    """{pattern of cases: reason}."""
    lines = [line.partition("#") for line in LISTED.read_text().splitlines()]
    return {pattern.strip(): reason.strip() for pattern, _, reason in lines if pattern.strip()}


def cases():
    """Each row with at least as many ranks as machines. Where there is one rank on each, blocks and turns are the same."""
    used = set()
    for row in read_rows():
        for count in (2, 3):
            ranks = row.values[2]
            for placement in ("turns", "blocks")[:max(0, min(2, ranks - count + 1))]:
                name = f"{row.id}-{count}-{placement}"
                patterns = [pattern for pattern in listed() if fnmatch.fnmatchcase(name, pattern)]
                used.update(patterns)
                marks = [pytest.mark.xfail(strict=True, reason=listed()[pattern]) for pattern in patterns]
                yield pytest.param(count, placement, LISTED_SECONDS if marks else SECONDS, row.values, id=name, marks=marks)
    unused = set(listed()) - used
    if unused:
        raise ValueError(f"{LISTED.name}: there are no such cases: {', '.join(sorted(unused))}")


@pytest.mark.parametrize("count, placement, seconds, row", cases())
def test_row(request, prefix, compiled, tmp_path, count, placement, seconds, row):
    program, arguments, ranks, environment, status, says = row
    machines = request.getfixturevalue({2: "two", 3: "three"}[count])
    # A program that crashes may leave a file in its folder.
    result = machines.mpiexec(prefix, *machines.placed(ranks, placement), compiled(program), *arguments, env=environment, timeout=seconds,
                              cwd=tmp_path)
    left = harness.survivors(result.mark)
    assert not left, f"these processes survived:\n{left}\n{result.report()}"
    right = result.status != 0 if status == "fails" else result.status == int(status)
    assert right and not result.timed_out, f"expected status {status}\n{result.report()}"
    if says:
        assert re.search(says, result.text), f"expected to read: {says}\n{result.report()}"
