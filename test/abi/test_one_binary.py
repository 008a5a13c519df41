"""One binary of the standard ABI runs on NearMPI, MPICH and Intel MPI, whichever library compiled it."""

import os

import harness
import pytest

ROOT = harness.ROOT
MPICH = ROOT / "build/venv-mpich"
INTEL = ROOT / "build/venv-impi"


@pytest.fixture(scope="session", autouse=True)
def oracles():
    result = harness.run([ROOT / "dev/setup", "oracles"], timeout=600)
    assert result.status == 0, result.report()


@pytest.fixture(scope="session")
def built(prefix, tmp_path_factory):
    """built("mpich") or built("nearmpi"): mini_imb, compiled by the compiler wrapper of that library."""
    folder = tmp_path_factory.mktemp("one-binary")
    wrappers = {"mpich": MPICH / "bin/mpicc_abi", "nearmpi": prefix / "bin/mpicc"}

    def build(by):
        target = folder / f"mini_imb.{by}"
        if not target.exists():
            result = harness.run([wrappers[by], "-O1", "-o", target, ROOT / "test/abi/mini_imb.c"], timeout=120)
            assert result.status == 0, result.report()
        return target

    return build


def command_and_environment(library, prefix, program):
    """Command, library folder and variables with which a program, linked with any library, is started by this one."""
    if library == "NearMPI":
        return [prefix / "bin/mpiexec", "--oversubscribe", "-n", 4, program, 70000], prefix / "lib", {}
    if library == "MPICH":
        return [MPICH / "bin/mpiexec", "-n", 2, program, 70000], MPICH / "lib", {}
    variables = {"I_MPI_ROOT": INTEL, "FI_PROVIDER_PATH": INTEL / "lib/libfabric/prov", "I_MPI_FABRICS": "shm"}
    return [INTEL / "bin/mpiexec.hydra", "-n", 2, program, 70000], INTEL / "lib", variables


@pytest.mark.parametrize("library", ["NearMPI", "MPICH", "Intel MPI"])
@pytest.mark.parametrize("by", ["mpich", "nearmpi"])
def test_a_binary_of_the_standard_abi_runs(library, by, prefix, built):
    command, folder, variables = command_and_environment(library, prefix, built(by))
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    result = harness.run(command, env={**variables, "LD_LIBRARY_PATH": path}, timeout=240)
    assert result.status == 0, result.report()
    assert "all results are right" in result.out, result.report()
    named = {"NearMPI": "NearMPI", "MPICH": "MPICH", "Intel MPI": "Intel"}[library]
    assert named in result.out.splitlines()[0], result.report()


def test_our_launcher_brings_its_own_library_to_a_binary_linked_elsewhere(prefix, built):
    """A binary linked by MPICH's compiler has MPICH's folder as its run path; our launcher's library comes first."""
    environment = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    result = harness.run([prefix / "bin/mpiexec", "-n", 2, built("mpich"), 100], env=environment, timeout=60)
    assert result.status == 0, result.report()
    assert "NearMPI" in result.out.splitlines()[0] and "2 ranks" in result.out.splitlines()[0], result.report()
