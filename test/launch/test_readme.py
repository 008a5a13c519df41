"""README.md: its commands run unchanged and print what it shows; its other claims are true."""

import os
import re
import sys

import harness
import pytest
from harness import ROOT

sys.path.insert(0, str(ROOT / "dev"))
sys.path.insert(0, str(ROOT / "test/mpi4py"))
import demo  # noqa: E402
import run as mpi4py  # noqa: E402
import tour  # noqa: E402

README = tour.README.read_text()
BLOCKS = tour.blocks(README)


@pytest.fixture(scope="module")
def surroundings(prefix, tmp_path_factory):
    """A folder with the sources, and in build/ the files that `make demo` leaves, from which the tour continues."""
    if prefix != ROOT / "build/prefix":
        pytest.skip("mpi4py is built for one installation only, that in build/prefix")
    mpi4py.build(prefix, optimised=False)
    folder = tmp_path_factory.mktemp("tour")
    (folder / "build").mkdir()
    for name in ("prefix", "venv-mpi4py"):
        (folder / "build" / name).symlink_to(ROOT / "build" / name)
    (folder / "examples").symlink_to(ROOT / "examples")
    demo.photograph(folder / "build/photo.png")
    return folder


@pytest.fixture(scope="module")
def printed(surroundings):
    """{line of README.md: the output of the commands in the block there}."""
    script = surroundings / "script"
    script.write_text(tour.script([block for block in BLOCKS if block.kind == "sh"]))
    environment = {"XDG_CACHE_HOME": surroundings / "cache", "PATH": os.environ["PATH"]}
    # Both streams are merged, as on a terminal.
    result = harness.run(["bash", "-c", "exec bash script 2>&1"], cwd=surroundings, timeout=180, env=environment)
    left = harness.survivors(result.mark)
    assert result.status == 0, result.report()
    assert "==== the tour is over" in result.out and not left, result.report() + left
    pieces = re.split(r"^==== README\.md:(\d+)$", result.out, flags=re.M)
    return dict(zip(map(int, pieces[1::2]), pieces[2::2], strict=True))


def pattern_of(line):
    """The pattern for a line of a `text` block: numbers match any numbers, three full stops match anything."""
    words = [re.escape(word) for word in line.split()]
    return re.sub(r"\d[\d,]*(\\\.\d+)?", r"[\\d.,]+", r"\s+".join(words)).replace(re.escape("..."), ".*")


def test_the_kinds_of_all_blocks_are_known():
    assert {block.kind for block in BLOCKS} == set(tour.KINDS)


def test_every_command_of_the_tour_runs(printed):
    assert list(printed) == [block.line for block in BLOCKS if block.kind == "sh"]


@pytest.mark.parametrize("number", [i for i, block in enumerate(BLOCKS) if block.kind == "text"])
def test_the_commands_print_what_the_readme_shows(printed, number):
    """The lines of the block appear in this order; there may be others between them."""
    commands, text = BLOCKS[number - 1], BLOCKS[number].text
    assert commands.kind == "sh"
    shown = printed[commands.line]
    rest = shown
    for line in text.splitlines():
        found = re.search(r"^\s*" + pattern_of(line), rest, re.M)
        assert found, f"README.md promises the line\n{line}\nand its commands printed\n{shown}"
        rest = rest[found.end():]


def test_a_wrong_line_would_be_noticed():
    assert re.search(pattern_of("hello from rank 0 of 4 on ..."), "hello from rank 3 of 4 on vm")
    assert not re.search(pattern_of("hello from rank 0 of 4 on ..."), "hello from rank x of 4 on vm")


def test_a_failing_command_ends_the_tour_and_is_named(tmp_path):
    document = "```sh\ntrue\n```\n\n```sh\ntrue\nls no-such-file\n```\n\n```sh\ntouch reached\n```\n"
    (tmp_path / "script").write_text(tour.script(tour.blocks(document)))
    result = harness.run(["bash", "script"], cwd=tmp_path)
    assert result.status == 2 and "FAILED (status 2): README.md:6: ls no-such-file" in result.err, result.report()
    assert not (tmp_path / "reached").exists()


def test_the_readme_names_only_targets_of_make_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"`make ([a-z-]+)", README)) | set(re.findall(r"^make ([a-z-]+)", README, re.M))
    assert {"demo", "test", "install"} <= named and named <= targets


def test_the_readme_is_right_about_what_is_missing(prefix):
    """According to `near coverage`, all missing functions belong to subjects that the README names."""
    result = harness.run([prefix / "bin/near", "coverage", "--all"])
    there = dict(re.findall(r"^ +(MPI_\w+) +(yes|no)$", result.out, re.M))
    assert len(there) > 600, result.report()
    missing = {name for name, state in there.items() if state == "no"}
    subjects = {"neighbourhood collectives": r"_I?[Nn]eighbor_", "MPI-IO": r"_File_|_Register_datarep", "sessions": r"_Session_|_session_",
                "dynamic processes": r"_spawn|_accept|_connect|_join|_port|_name", "the tools interface": r"_T_"}
    listed = re.search(r"^\| \*\*Does not work yet\*\* \| (.*) \|$", README, re.M)[1]
    for subject, pattern in subjects.items():
        assert (subject in listed) == any(re.search(pattern, name) for name in missing), subject
    assert not [name for name in missing if not any(re.search(pattern, name) for pattern in subjects.values())]
