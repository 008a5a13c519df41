#!/usr/bin/env python3
"""mpiexec's plans for recorded machines: each NAME.plan is a session of commands and their output.

The machines are files in this folder, in hwloc's synthetic form (.txt) or its XML (.xml, mostly written by make.py).

    pytest test/machines                                 compares
    test/machines/test_plans.py [--prefix DIR] [NAME]    rewrites the sessions, for review of the differences

To add a case, add its line ("$ mpiexec ...") to a session; to add a machine, its file and a session with such a line.
"""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
SESSIONS = sorted(path.stem for path in FOLDER.glob("*.plan"))


def commands(session):
    """The command lines of a session's text, with the comments above them."""
    return [line for line in session.splitlines() if line.startswith(("$ ", "# "))]


def machine_file(name):
    for ending in ".xml", ".txt":
        if (path := FOLDER / (name + ending)).exists():
            return path.name
    raise FileNotFoundError(f"{name}.plan has no machine {name}.xml or {name}.txt beside it")


def played(name, prefix):
    """The session with mpiexec's present output. The commands lack only `--explain --machine FILE`."""
    # Settings for threads or hwloc in the user's environment must have no effect here.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "HWLOC_", "SLURM_"))}
    text = ""
    for line in commands((FOLDER / f"{name}.plan").read_text()):
        text += line + "\n"
        if line.startswith("# "):
            continue
        words = shlex.split(line[2:])
        while "=" in words[0]:
            key, _, value = words.pop(0).partition("=")
            environment[key] = value
        assert words[0] == "mpiexec", f"{name}.plan: {line}"
        explain = [] if any(word.startswith("--explain") for word in words) else ["--explain"]
        result = subprocess.run([prefix / "bin/mpiexec", *explain, "--machine", machine_file(name), *words[1:]],
                                cwd=FOLDER, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=60)
        text += result.stdout + result.stderr
        text += f"(status {result.returncode})\n\n" if result.returncode else "\n"
        for key in [key for key in environment if key.startswith("OMP_")]:
            del environment[key]
    return text


@pytest.mark.parametrize("name", SESSIONS)
def test_the_plan_is_the_committed_one(name, prefix):
    assert played(name, prefix) == (FOLDER / f"{name}.plan").read_text()


def test_every_machine_has_a_session():
    machines = {path.stem for path in FOLDER.iterdir() if path.suffix in (".xml", ".txt")}
    assert machines == set(SESSIONS) and len(SESSIONS) >= 10


def test_the_machines_are_as_their_maker_writes_them(tmp_path):
    """The next run of make.py would overwrite changes made by hand."""
    source = (FOLDER / "make.py").read_text()
    (tmp_path / "make.py").write_text(source)
    subprocess.run([sys.executable, tmp_path / "make.py"], check=True, timeout=60)
    made = sorted(tmp_path.glob("*.xml"))
    assert len(made) >= 5
    for path in made:
        assert path.read_text() == (FOLDER / path.name).read_text(), path.name


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prefix", type=Path, default=FOLDER.parent.parent / "build/prefix")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    for name in options.names or SESSIONS:
        text = played(name, options.prefix.resolve())
        path = FOLDER / f"{name}.plan"
        if text != path.read_text():
            path.write_text(text)
            print(f"changed: {name}")


if __name__ == "__main__":
    main()
