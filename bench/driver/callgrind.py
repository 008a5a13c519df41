"""Runs rank 0 of a program under callgrind, and counts inside given functions."""

import collections
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .libraries import BUILD, Unavailable
from .runner import harness

# valgrind has few addresses to give, and the library takes as many as it is allowed: `ulimit -v`, in bytes.
ADDRESSES = 16_000_000 << 10
TIME_LIMIT = 120  # seconds


@contextmanager
def steps_file():
    """The file of zeros by which the ranks of calls.c and typed.c wait for each other."""
    with tempfile.TemporaryDirectory() as folder:
        steps = Path(folder) / "steps"
        steps.write_bytes(bytes(4096))
        yield steps


def run(who, name, words, functions, read, *, ranks=2, options=(), variables=(), folder=None):
    """read(callgrind's file) of a run of the program `words`, whose last argument will be the file of steps.

    Rank 0 alone runs under callgrind, which counts inside the functions whose names match one of `functions`. `who` is the
    library; `variables` and `options` (callgrind's) are added. With `folder`, the ranks load the library from there, and not from
    where the launcher says. Raises Unavailable, with `name`, if the run fails.
    """
    if not shutil.which("valgrind"):
        raise Unavailable("valgrind is not installed: run dev/setup valgrind")
    with steps_file() as steps:
        output = steps.with_name("callgrind")
        program = [BUILD / who.binary / words[0], *words[1:], steps]
        valgrind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={output}", *options,
                    *(f"--toggle-collect={function}" for function in functions)]
        found_in = ["env", f"LD_LIBRARY_PATH={folder}"] if folder else []
        command = [*who.launcher, 1, *found_in, *valgrind, *program, ":", "-n", ranks - 1, *found_in, *program]
        result = harness.run(["sh", "-c", f'ulimit -v {ADDRESSES >> 10} && exec "$@"', "sh", *command],
                             env={**who.variables, **dict(variables)}, timeout=TIME_LIMIT)
        if result.status != 0:
            raise Unavailable(f"{name}: the run failed\n{result.report()}")
        return read(output)


# The lines that say where the following costs belong (False) or what is called (True).
KINDS = {"fl": ("file", False), "fi": ("file", False), "fe": ("file", False), "fn": ("function", False), "ob": ("object", False),
         "cfl": ("file", True), "cfi": ("file", True), "cfn": ("function", True), "cob": ("object", True)}
DIGITS = tuple("0123456789+-*")


@dataclass(frozen=True)
class Place:
    """Where instructions come from: the object file, the source file of the line (also of inlined code), the function that contains
    the instruction and the source file of that function. Unknown ones are "???"."""

    object: str
    file: str
    function: str
    function_file: str


def costs(text):
    """({place: [cost of each event]}, [event]) of callgrind's file `text`; what a function called is not included."""
    events, known, now = [], {}, {}
    found = collections.defaultdict(lambda: [0] * len(events))
    skip = False

    def name(kind, value):
        # (3) name defines what (3) alone means later; files, functions and objects each have their own numbers.
        number, _, rest = value.partition(" ")
        if not number.startswith("("):
            return value
        if rest:
            known[kind, number] = rest
        return known[kind, number]

    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if skip:  # the inclusive cost of a call
            skip = False
        elif line.startswith("events: "):
            events = line.split()[1:]
        elif line[:1] in DIGITS:
            place = Place(*(now.get(what, "???") for what in ("object", "file", "function", "function_file")))
            for i, cost in enumerate(line.split()[1:]):
                found[place][i] += int(cost)
        elif equals and key in KINDS:
            kind, is_called = KINDS[key]
            named = name(kind, value)
            if not is_called:
                now[kind] = named
            if key == "fn":
                now["function_file"] = now.get("file", "???")
        elif key == "calls":
            skip = True
    return dict(found), events
