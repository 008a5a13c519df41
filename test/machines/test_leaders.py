#!/usr/bin/env python3
"""Who leads each machine and what the leaders do, for recorded machines: each NAME.leaders is a session of commands and their output.

    pytest test/machines                                   compares
    test/machines/test_leaders.py [--prefix DIR] [NAME]    rewrites the sessions, for review of the differences

The machines are those of the plans beside them. Elections and orders come from the functions that the library calls, so a session
changes when a collective does.
"""

import argparse
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
SESSIONS = sorted(path.stem for path in FOLDER.glob("*.leaders"))


def played(name, prefix):
    """The session with the present output of `near`."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("NEAR_", "HWLOC_"))}
    text = ""
    for line in (FOLDER / f"{name}.leaders").read_text().splitlines():
        if line.startswith("# "):
            text += line + "\n"
        if not line.startswith("$ "):
            continue
        words = shlex.split(line[2:])
        assert words[:2] == ["near", "info"], f"{name}.leaders: {line}"
        result = subprocess.run([prefix / "bin/near", *words[1:]], cwd=FOLDER, env=environment, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=60)
        text += f"{line}\n{result.stdout}{result.stderr}" + (f"(status {result.returncode})\n" if result.returncode else "") + "\n"
    return text


@pytest.mark.parametrize("name", SESSIONS)
def test_the_leaders_are_the_committed_ones(name, prefix):
    assert played(name, prefix) == (FOLDER / f"{name}.leaders").read_text()


def test_jobs_of_many_sizes_are_committed():
    machines = {int(count) for name in SESSIONS for count in re.findall(r"^(\d+) machines", (FOLDER / f"{name}.leaders").read_text(), re.M)}
    assert {2, 3, 8, 17, 64} <= machines


def orders(text):
    """For each call of a session: its title, and what each rank sends: {rank: [ranks]}."""
    title, found = None, []
    for line in text.splitlines():
        if header := re.match(r"(broadcast|allreduce) of .*", line):
            title = header[0]
            found.append((title, {}))
        elif title and (step := re.match(r"  rank (\d+): (.*)", line)):
            sends = [int(rank) for words in re.findall(r"(?:sends|exchanges)[^;]*? (?:to|with) ([\d, ]+)", step[2])
                     for rank in words.split(",") if rank.strip()]
            found[-1][1][int(step[1])] = sends
    return found


@pytest.mark.parametrize("name", SESSIONS)
def test_what_the_root_sends_reaches_every_leader(name):
    for title, sends in orders((FOLDER / f"{name}.leaders").read_text()):
        start = int(re.search(r"from rank (\d+)", title)[1]) if "from rank" in title else min(sends)
        reached, frontier = {start}, {start}
        while frontier:
            frontier = {rank for sender in frontier for rank in sends[sender]} - reached
            reached |= frontier
        assert reached == set(sends), title


@pytest.mark.parametrize("name", SESSIONS)
def test_the_rank_nearest_to_the_nic_leads(name):
    """What --explain says of the same machine, ranks and NIC."""
    for line in re.findall(r"^\d+ +ranks? .*$", (FOLDER / f"{name}.leaders").read_text(), re.M):
        leads = re.search(r"rank (\d+) +(\d+) from \w+(?:, rank (\d+) (?:unknown|(\d+) from \w+))?(, and no other rank is nearer)?$", line)
        if leads is None:
            assert "no distance from a NIC is known" in line or "alone" in line, line
        elif leads[3]:
            assert leads[4] is None or int(leads[2]) < int(leads[4]), line
        else:
            assert leads[5], line


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prefix", type=Path, default=FOLDER.parent.parent / "build/prefix")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    for name in options.names or SESSIONS:
        text = played(name, options.prefix.resolve())
        path = FOLDER / f"{name}.leaders"
        if text != path.read_text():
            path.write_text(text)
            print(f"changed: {name}")


if __name__ == "__main__":
    main()
