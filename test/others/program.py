"""What a row of the catalogue says: where a program comes from, how it is built, and which of its own tests are run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Case:
    """A test that is run once for each number of ranks.

    `command` is a line for bash, in which $RUN stands for mpiexec and its options. The case passes if the line ends with the status `status` within
    `seconds`, what it prints matches the regular expression `says` and does not match `never`, and no process and no file is left. What the group of
    `agree` matches must be the same with all numbers of ranks, up to `tolerance` (relative) where it consists of numbers.
    """

    name: str
    command: str
    ranks: tuple[int, ...] = (2, 4)
    says: str = ""
    never: str = ""
    agree: str = ""
    tolerance: float = 0.0
    folder: str = "."  # below the program's source
    seconds: int = 60
    status: int | None = 0  # None: any but 0


@dataclass
class Program:
    """A program, or a library with its tests.

    `source` is a source package of Debian, or pypi:NAME==VERSION. `build` is a script for bash -eu, run in the unpacked source with the
    installation's compilers in PATH and $ROOT, the folder in which `libraries`, packages of Debian, are unpacked. `cases` is a list, or a function
    of the source's folder that returns one, for tests that the program itself lists. `variables` are for the build and the cases.
    """

    name: str
    source: str
    build: str
    cases: list[Case] | Callable[[Path], list[Case]]
    libraries: tuple[str, ...] = ()
    needs_python: bool = False  # an environment of its own with mpi4py and NumPy, whose interpreter is $PYTHON
    variables: dict[str, str] = field(default_factory=dict)
    members: tuple[str, ...] = ()  # unpack only what matches these patterns of tar
    seconds: int = 1800  # for the build

    def all_cases(self, folder):
        return self.cases(folder) if callable(self.cases) else self.cases
