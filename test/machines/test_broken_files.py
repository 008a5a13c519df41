"""Broken descriptions of machines: mpiexec names the file or the variable, and neither crashes nor loops."""

import random
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture
def explain(prefix, nothing_left, tmp_path):
    """explain(text): the result of mpiexec for this file."""
    file = tmp_path / "machine.xml"

    def run(data):
        file.write_bytes(data)
        result = nothing_left([prefix / "bin/mpiexec", "--explain", "--machine", file, "-n", 4, "program"], timeout=60)
        assert not result.timed_out, result.report()
        assert result.status in (0, 1), "neither a plan nor a refusal: " + result.report()
        if result.status == 1:
            assert str(file) in result.err or "slots" in result.err or "rank" in result.err, result.report()
        return result

    return run


@pytest.fixture
def explain_variable(prefix, nothing_left):
    """explain_variable(NAME, value): the result of mpiexec if this variable of hwloc describes the machine. `before`: a prefix of
    the command."""
    def run(name, value, before=()):
        command = [*before, prefix / "bin/mpiexec", "--explain", "-n", 2, "--oversubscribe", "program"]
        result = nothing_left(command, env={name: value}, timeout=60)
        assert not result.timed_out, result.report()
        assert result.status in (0, 1), "neither a plan nor a refusal: " + result.report()
        if result.status == 1:
            assert result.err.startswith(f"mpiexec: {name}={value}: ") and "unset it, or set it to" in result.err, result.report()
        return result

    return run


def recorded():
    return min(HERE.glob("*.xml"), key=lambda file: file.stat().st_size).read_bytes()


def test_a_truncated_file_is_named_or_read(explain):
    whole = recorded()
    dice = random.Random(5)
    for _ in range(25):
        explain(whole[:dice.randrange(len(whole))])


def test_a_mutated_file_is_named_or_read(explain):
    whole = recorded()
    dice = random.Random(6)
    refused = 0
    for _ in range(120):
        data = bytearray(whole)
        for _ in range(dice.choice([1, 3, 10])):
            at = dice.randrange(len(data))
            kind = dice.randrange(3)
            if kind == 0:
                data[at] = dice.randrange(256)
            elif kind == 1:
                del data[at:at + dice.randrange(1, 200)]
            else:
                data[at:at] = data[dice.randrange(len(data)):][:dice.randrange(1, 200)]
        refused += explain(bytes(data)).status
    assert refused > 0, "nothing was broken"


@pytest.mark.parametrize("text", [b"", b"\0", b"<", b"package:0", b"package:99999999 core:99999999", b"core:x",
                                  b"<?xml version=\"1.0\"?><topology version=\"2.0\"></topology>",
                                  b"<topology><object type=\"Machine\"><object type=\"PU\"/></object></topology>"])
def test_what_describes_nothing_is_refused(explain, text):
    assert explain(text).status == 1


# ---- the variables of hwloc -----------------------------------------------------------------------------------

def test_a_broken_file_of_a_variable_is_named(explain_variable, tmp_path):
    whole, file, dice = recorded(), tmp_path / "machine.xml", random.Random(7)
    file.write_bytes(whole)
    assert explain_variable("HWLOC_XMLFILE", file).status == 0
    refused = 0
    for _ in range(12):
        data = bytearray(whole[:dice.randrange(len(whole) // 10, len(whole))])
        data[dice.randrange(len(data))] = dice.randrange(256)
        file.write_bytes(data)
        refused += explain_variable("HWLOC_XMLFILE", file).status
    assert refused > 6, "nothing was broken"


@pytest.mark.parametrize("name, value", [("HWLOC_COMPONENTS", "stop")])
def test_a_variable_that_leaves_no_machine_is_named(explain_variable, name, value):
    assert explain_variable(name, value).status == 1


def test_a_variable_that_hwloc_does_not_finish_is_named(explain_variable):
    """The time limit is the one for files; here the shell has a lower one."""
    result = explain_variable("HWLOC_SYNTHETIC", "package:1 core:4000 pu:8", ["bash", "-c", 'ulimit -t 2; exec "$@"', "bash"])
    assert result.status == 1 and "limit of processor time" in result.err, result.report()


def test_several_variables_are_all_named(prefix, nothing_left, tmp_path):
    (tmp_path / "machine.xml").write_bytes(recorded()[:3000])
    given = {"HWLOC_XMLFILE": tmp_path / "machine.xml", "HWLOC_THISSYSTEM": "1"}
    result = nothing_left([prefix / "bin/mpiexec", "-n", 1, "program"], env=given)
    assert result.status == 1 and "unset them" in result.err, result.report()
    assert all(f"{name}={value}" in result.err for name, value in given.items()), result.report()
