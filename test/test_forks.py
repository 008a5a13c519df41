"""Python programs that create processes in ranks (the row `forks` is the same in C)."""

import subprocess
import sys

import harness
import pytest

RUNNER = harness.ROOT / "test/mpi4py/run.py"


@pytest.fixture(scope="session")
def mpi4py(prefix):
    """The Python of an environment with mpi4py, built with the installation's mpicc."""
    subprocess.run([sys.executable, RUNNER, "--build", "--prefix", prefix], check=True, timeout=600)
    return harness.ROOT / "build/venv-mpi4py/bin/python"


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_python_makes_processes_inside_ranks(ranks, mpiexec, mpi4py):
    result = mpiexec(ranks, [mpi4py, harness.ROOT / "test/python/forks.py"], timeout=90)
    assert result.status == 0, result.report()
