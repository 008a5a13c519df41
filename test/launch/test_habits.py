"""Command lines as written by users of MPICH, Open MPI, Intel MPI and srun: habits.txt.

Each line of the table is `arguments  =>  what happens`, with ` ; ` between several parts:

    runs N           N ranks run the program `hello`, without a warning
    prints A / B     these lines on standard output, in any order
    matches REGEX    every line of standard output
    says TEXT        TEXT on standard error, and nothing else
    quiet            nothing on standard error, not even that ranks share processors
    file NAME TEXT   the file is written with this text
    places A / B     on a machine with two packages, the places of the ranks in --report-bindings begin like this
    plans OPTIONS    there, ranks are placed as with these options of NearMPI, which must not be synonyms of the former
    launches nothing no rank starts
    extra            the other launcher refuses the line or fails (seen with MPICH 5.0.2, Open MPI 5.0.11, Intel MPI 2021)
    differs          the other launcher does something else; a remark says so
    refused TEXT     status 2 and one line with this text, which says what to write instead; no rank starts
    neither TEXT     like refused; the other launcher refuses the line, too
    forbidden        status 1 if there are too few processors
    fails TEXT       status 127 and one line with this text
"""

import os
import platform
import re
import shlex

import harness
import pytest

TABLE = harness.ROOT / "test/launch/habits.txt"
MACHINE = "package:2 numa:2 core:4 pu:2"
CPUS = sorted(os.sched_getaffinity(0))
# Stands for a tool that may not be installed: prints its command line and executes the program.
TOOL = '#!/bin/sh\nline="under ${0##*/}"\nwhile [ $# -gt 1 ]; do line="$line $1"; shift; done\necho "$line"\nexec "$1"\n'
FILES = {
    **{f"tools/{name}": TOOL for name in ("gdb", "numactl", "perf", "strace", "time", "valgrind")},
    "hello": '#!/bin/sh\necho "hello $NEAR_BOOT_RANK of $NEAR_BOOT_SIZE"\n',
    "envp.sh": '#!/bin/sh\necho "FOO=$FOO BAR=$BAR"\n',
    "wd/hello": '#!/bin/sh\necho "hello $NEAR_BOOT_RANK of $NEAR_BOOT_SIZE"\n',
    "hf": "localhost\n",
    "hf_mpich": "# two of them\nlocalhost:2\n",
    "hf_ompi": "localhost slots=2\n",
    "rf": "rank 0=localhost slot=0\nrank 1=localhost slot=1\n",
    "cfg": "# a comment\n-n 1 ./hello\n-n 1 \\\n./hello\n",
    "file.conf": "# parameters\nbtl = self,sm\n--mca pml ob1\n",
    "gt": "echo GT:0\n",
    "hello.c": "int main(void) { return 0; }\n",
    "machine": MACHINE,
}


def read_table():
    rows, launcher = [], ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("["):
            launcher = line[1:-1]
        elif line and not line.startswith("#"):
            arguments, arrow, expected = line.partition("  =>  ")
            assert arrow, f"habits.txt: no expectation: {line}"
            rows.append(pytest.param(arguments, expected, id=f"{launcher}: {arguments}"))
    return rows


@pytest.fixture
def here(tmp_path):
    """A folder with the files that the command lines name."""
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755 if text.startswith("#!") else 0o644)
    return tmp_path


def lines_of(text):
    return sorted(line.strip() for line in text.split(" / "))


def remarks(result):
    """Standard error except for lines that depend on the number of processors."""
    lines = result.err.splitlines()
    return "\n".join(line for line in lines if "pass --oversubscribe if this is intended" not in line)


def placed(text):
    """The places that a plan gives to its ranks."""
    return [line for line in text.splitlines() if re.match(r"rank \d+: |bound to: ", line)]


def check(part, result, explained, wanted):
    """Checks one part of an expectation, except for parts about the whole result."""
    what, _, rest = part.partition(" ")
    if what == "runs":
        count = int(rest)
        assert sorted(result.out.splitlines()) == [f"hello {rank} of {count}" for rank in range(count)]
    elif what == "prints":
        assert sorted(result.out.splitlines()) == (lines_of(rest) if rest else [])
    elif what == "matches":
        lines = result.out.splitlines()
        assert lines and all(re.fullmatch(rest, line) for line in lines)
    elif what == "says":
        assert rest in result.err
    elif what == "quiet":
        assert result.err == ""
    elif what == "plans":
        assert placed(explained.out) and placed(explained.out) == placed(wanted(rest).out), explained.report()
    elif what == "places":
        places = [line.partition(": ")[2] for line in placed(explained.out) if line.startswith("rank")]
        expected = rest.split(" / ")
        assert len(places) == len(expected) and all(
            re.search(rf"(^|\(){re.escape(text)}\b", place) for place, text in zip(places, expected, strict=True))
    elif what in ("extra", "differs"):
        pass
    elif what == "launches":
        assert not re.search(r"^hello \d", result.out, re.MULTILINE)
    else:
        raise AssertionError(f"habits.txt: unknown expectation '{part}'")


@pytest.mark.parametrize("arguments, expected", read_table())
def test_a_habit_means_what_it_says_or_is_refused_with_the_right_word(launch, here, arguments, expected):
    names_cores = re.search(r"\b0,1\b|rf\b|slots$", arguments + expected)
    if names_cores and CPUS[:2] != [0, 1]:
        pytest.skip("the command line names processors that are not here")
    fill = {"{here}": str(here), "{machine}": platform.node()}
    for key, value in fill.items():
        arguments, expected = arguments.replace(key, value), expected.replace(key, value)
    words = shlex.split(arguments)
    options = {"cwd": here, "env": {"FOO": "foo", "BAR": "bar", "PATH": f"{here}/tools:{os.environ['PATH']}"}, "input": "input\n"}
    result = launch(*words, **options)
    kind, _, text = expected.partition(" ")
    if kind in ("refused", "neither", "forbidden", "fails"):
        status = {"refused": 2, "neither": 2, "forbidden": 1, "fails": 127}[kind]
        if kind == "forbidden" and len(CPUS) >= 4:
            pytest.skip("there are processors enough")
        assert (result.status, result.out, result.err.count("\n")) == (status, "", 1), result.report()
        assert text in result.err, result.report()
        return
    assert result.status == 0, result.report()
    parts = re.split(r" ; | ;$", expected)
    # Plans are made for a machine that has several parts of each kind.
    explain = ["--explain", "--machine", "machine"]
    planned = any(part.startswith(("plans", "places")) for part in parts)
    explained = launch(*explain, *words, **options) if planned else None
    for part in filter(None, parts):
        if part.startswith("file "):
            _, name, *content = part.split(" ", 2)
            assert (here / name).read_text() == "".join(f"{line}\n" for line in content), result.report()
            continue
        try:
            check(part, result, explained, lambda more: launch(*explain, *shlex.split(more), "./hello", **options))
        except AssertionError as wrong:
            raise AssertionError(f"{part}: {wrong}\n{result.report()}") from None
    if not any(part.startswith(("says", "quiet")) for part in parts):
        assert remarks(result) == "", result.report()


def test_most_habits_of_other_libraries_mean_the_same():
    """At least nine in ten of the lines that the other library's launcher accepts, so that refusals remain rare."""
    launcher, counts = "", {}
    for line in TABLE.read_text().splitlines():
        if line.startswith("["):
            launcher = line[1:-1]
        elif "  =>  " in line:
            counts.setdefault(launcher, []).append(line.partition("  =>  ")[2].split(" ")[0])
    for library in "MPICH", "Open MPI", "Intel MPI":
        kinds = [kind for kind in counts[library] if kind not in ("neither", "forbidden", "extra")]
        same = sum(kind not in ("refused", "differs") for kind in kinds)
        print(f"{library}: {same} of {len(kinds)}")
        assert len(kinds) > 30 and same >= 0.9 * len(kinds), f"{library}: {same} of {len(kinds)}"
