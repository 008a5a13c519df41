"""One binary builds thousands of random datatypes; their bounds and packed bytes are the same on NearMPI and MPICH."""

import os

import harness
import pytest

ROOT = harness.ROOT
MPICH = ROOT / "build/venv-mpich"


@pytest.fixture(scope="session")
def random_types(tmp_path_factory):
    result = harness.run([ROOT / "dev/setup", "oracles"], timeout=600)
    assert result.status == 0, result.report()
    target = tmp_path_factory.mktemp("datatypes") / "random_types"
    result = harness.run([MPICH / "bin/mpicc_abi", "-O1", "-o", target, ROOT / "test/abi/random_types.c"], timeout=120)
    assert result.status == 0, result.report()
    return target


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_types_are_the_same_as_on_mpich(seed, prefix, random_types):
    def lines(mpiexec, folder):
        path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
        result = harness.run([mpiexec, "-n", 1, random_types, seed, 2000], env={"LD_LIBRARY_PATH": path}, timeout=120)
        assert result.status == 0, result.report()
        return result.out.splitlines()

    ours, theirs = lines(prefix / "bin/mpiexec", prefix / "lib"), lines(MPICH / "bin/mpiexec", MPICH / "lib")
    assert len(ours) == 2000
    assert ours == theirs
