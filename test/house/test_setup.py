"""dev/setup, with stand-ins for the system's tools."""

import os

import pytest
from harness import ROOT, run


@pytest.fixture
def without(tmp_path):
    """A PATH on which no package is installed and we are not root."""
    for name, text in (("dpkg-query", "exit 1"), ("id", "echo 1000"), ("apt-get", "echo called >&2; exit 99")):
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\n{text}\n")
        tool.chmod(0o755)
    return {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}


def test_without_root_the_exact_line_is_printed(without):
    result = run([ROOT / "dev/setup", "build"], env=without)
    assert result.status == 1
    assert "sudo apt-get update && sudo apt-get install -y --no-install-recommends g++ cmake" in result.err
    assert "called" not in result.text


def test_an_unknown_group_is_refused():
    result = run([ROOT / "dev/setup", "everything"])
    assert result.status == 2 and "unknown group 'everything'" in result.err


def test_every_python_package_is_pinned():
    lines = (ROOT / "dev/requirements.txt").read_text().splitlines()
    loose = [line for line in lines if line and not line.startswith("#") and "==" not in line]
    assert not loose
