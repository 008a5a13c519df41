"""Tests that a program lists itself, as cases."""

import json
import re
import shlex
import subprocess
from pathlib import Path

from program import Case


def ctests(build, matching="", seconds=90):
    """Returns a function for Program.cases: the tests of a CTest project whose commands match a regular expression, with their numbers of ranks."""
    def cases(folder):
        listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder / build, capture_output=True, text=True, check=True, timeout=60).stdout
        found = []
        for test in json.loads(listed)["tests"]:
            command = shlex.join(test.get("command", []))
            if re.search(matching, command):
                places = [entry["value"] for entry in test["properties"] if entry["name"] == "WORKING_DIRECTORY"]
                found.append(Case(test["name"], f"cd {shlex.quote(places[0])} && {command}", ranks=(0,), seconds=seconds))
        return found

    return cases


def boost_tests(folder):
    """The tests of libs/mpi/test/Jamfile.v2 with their numbers of ranks, up to 24."""
    found = []
    for name, source, ranks in re.findall(r"\[ mpi-test ([\w-]+)\s*:?\s*([\w./]*)[ :]*([\d ]*)\]", (folder / "libs/mpi/test/Jamfile.v2").read_text()):
        program = Path(source).stem or name
        counts = tuple(int(word) for word in ranks.split()) or (1, 3)
        options = {"block_nonblock_test-b2nb": " b2nb", "block_nonblock_test-nb2b": " nb2b"}.get(name, "")
        few = tuple(count for count in counts if count <= 24)
        found.append(Case(name, f"$RUN ../../../built/{program}{options}", few, folder="libs/mpi/test", seconds=90))
    return found


MPICH_FOLDERS = "attr basic coll comm datatype errhan errors group info init mpi_t part pt2pt rma threads topo".split()


def mpich_tests(folder):
    """The rows of the testlists of MPICH's suite (test/mpi/README there) for what NearMPI has. A row that needs much memory says so (mem=, in GB)."""
    def rows(place):
        listing = folder / "test/mpi" / place / "testlist"
        for line in listing.read_text().splitlines() if listing.exists() else []:
            name, *words = line.partition("#")[0].split() or [""]
            if name and not words and (listing.parent / name).is_dir():
                yield from rows(f"{place}/{name}")
            elif words and words[0].isdigit():
                yield place, name, int(words[0]), [word.partition("=")[::2] for word in words[1:]]

    cases = []
    for place, name, ranks, options in (row for top in MPICH_FOLDERS for row in rows(top)):
        arguments = [value for key, value in options if key == "arg"]
        variables = [value for key, value in options if key == "env"]
        option = dict(options)
        by_status = option.get("resultTest") in ("TestStatus", "TestErrFatal")
        command = shlex.join(["env", *variables]) + f" $RUN ./{name} {shlex.join(arguments)}"
        if float(option.get("mem", 0)) <= 3:
            cases.append(Case(",".join([f"{place}/{name}", *variables, *arguments]), command, (ranks,), folder=f"test/mpi/{place}", seconds=60,
                              status=None if by_status else 0, says="" if by_status else r"^\s*(No [Ee]rrors|Test [Pp]assed)\s*$"))
    return cases
