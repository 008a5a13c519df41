"""Machines and a cluster for the tests, made once for each process of pytest. Their names and addresses are known in their own namespaces
only, so several processes may have some at the same time (pytest -n).
"""

import contextlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machines import Machines, Refused  # noqa: E402
from slurm import Slurm, is_installed  # noqa: E402


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """With pytest -n --dist loadgroup, one process has the cluster, and one runs the programs that keep the processors busy. The other
    cases wait most of the time.
    """
    for item in items:
        if "cluster" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group("cluster"))
        elif item.path.name == "test_two_machines.py":
            item.add_marker(pytest.mark.xdist_group("programs"))


@contextlib.contextmanager
def made(count):
    try:
        with Machines(count) as machines:
            yield machines
    except Refused as refused:
        pytest.skip(f"this system does not let us make machines: {refused}")


@pytest.fixture
def own_machines():
    """own_machines(count): machines that a test may cut off."""
    with contextlib.ExitStack() as stack:
        yield lambda count: stack.enter_context(made(count))


@pytest.fixture(scope="session")
def two():
    with made(2) as machines:
        yield machines


@pytest.fixture(scope="session")
def three():
    with made(3) as machines:
        yield machines


@pytest.fixture(scope="module")
def narrow():
    """Two machines whose kernels take few bytes that the receiver has not taken."""
    with made(2) as machines:
        for index in range(2):
            assert machines.run(index, ["sh", "-c", "echo 4096 32768 32768 > /proc/sys/net/ipv4/tcp_wmem"]).status == 0
        yield machines


@pytest.fixture(scope="module")
def own_lab():
    """Five machines for one file of tests."""
    with made(5) as machines:
        yield machines


@pytest.fixture(scope="session")
def cluster():
    """Two machines under Slurm."""
    if not is_installed():
        pytest.skip("Slurm is not installed: dev/setup slurm")
    with made(2) as machines, Slurm(machines) as slurm:
        yield slurm
