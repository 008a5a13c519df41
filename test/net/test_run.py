"""test/net/run: machines for looking around, as the tour of README.md uses them."""

import os
import re
import sys

import harness
import pytest

sys.path.insert(0, str(harness.ROOT / "test"))
import tour  # noqa: E402

RUN = harness.ROOT / "test/net/run"
COMMANDS = [line for block in tour.blocks(tour.README.read_text()) for line in block.text.splitlines() if line.startswith("test/net/run ")]


@pytest.fixture
def hello(two):
    """The tour has compiled it."""
    program = harness.ROOT / "build/hello"
    made = harness.run([harness.ROOT / "build/prefix/bin/mpicc", "-O2", harness.ROOT / "examples/hello.c", "-o", program])
    assert made.status == 0, made.report()


def test_the_tour_names_commands():
    assert len(COMMANDS) >= 3


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_tour(hello, command):
    result = harness.run(["sh", "-c", command], cwd=harness.ROOT)
    assert result.status == 0, result.report()
    expected = "machine m2: ranks 2-3" if "--explain" in command else " 3 .* before MPI_Init" if "near" in command else "hello from rank 3 of 4 on m2"
    assert re.search(expected, result.out), result.report()


def test_machines_reach_each_other_and_the_status_is_that_of_the_command(two):
    result = harness.run([RUN, "--on", "3", "ssh m3 hostname; ssh m1 hostname; exit 7"])
    assert (result.status, result.out) == (7, "m3\nm1\n"), result.report()


@pytest.mark.parametrize(("words", "says"), [
    (["--on", "1", "true"], "2 to 16 machines"),
    (["--on", "2", "--what", "true"], "unknown option --what"),
    (["--on", "2"], "needs a command"),
])
def test_wrong_words_are_refused(words, says):
    result = harness.run([RUN, *words])
    assert result.status == 2 and says in result.err, result.report()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_others_than_root_are_told(two):
    result = harness.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", RUN, "--on", "2", "true"])
    assert result.status == 1 and "it needs root" in result.err, result.report()
