"""Broken descriptions of machines: mpiexec names the file, and neither crashes nor loops."""

import random
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture
def explain(prefix, nothing_left, tmp_path):
    """explain(text): what mpiexec prints for this file."""
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
