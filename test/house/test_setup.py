"""dev/setup, with stubs for the system's tools."""

import os

import pytest
from harness import ROOT, run


@pytest.fixture
def without(tmp_path):
    """A PATH with tools that report no installed packages and an ordinary user."""
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


@pytest.fixture
def elsewhere(tmp_path):
    """elsewhere(name, ...): a PATH without Debian's tools and without the named ones."""

    def build(*missing):
        for folder in os.environ["PATH"].split(os.pathsep):
            for name in os.listdir(folder) if os.path.isdir(folder) else ():
                link = tmp_path / name
                if name not in ("dpkg-query", "apt-get", *missing) and not link.is_symlink():
                    link.symlink_to(os.path.join(folder, name))
        return {"PATH": str(tmp_path)}

    return build


def test_on_another_system_it_continues_if_nothing_is_missing(elsewhere):
    result = run([ROOT / "dev/setup", "build"], env=elsewhere())
    assert (result.status, result.text) == (0, ""), result.report()


def test_on_another_system_it_names_what_is_missing_and_stops(elsewhere):
    result = run([ROOT / "dev/setup", "build"], env=elsewhere("ninja", "pkg-config"))
    assert result.status == 1, result.report()
    assert [line.strip() for line in result.err.splitlines()[2:]] == ["Ninja", "hwloc 2 with headers", "pkg-config"]
    assert "libhwloc-dev" not in result.text


def test_a_tool_that_is_too_old_counts_as_missing(elsewhere, tmp_path):
    path = elsewhere("cmake")
    (tmp_path / "cmake").write_text("#!/bin/sh\necho cmake version 3.9.6\n")
    (tmp_path / "cmake").chmod(0o755)
    result = run([ROOT / "dev/setup", "build"], env=path)
    assert result.status == 1 and "CMake 3.23 or newer" in result.err, result.report()


def test_an_unknown_group_is_refused():
    result = run([ROOT / "dev/setup", "everything"])
    assert result.status == 2 and "unknown group 'everything'" in result.err


def test_every_python_package_is_pinned():
    lines = (ROOT / "dev/requirements.txt").read_text().splitlines()
    loose = [line for line in lines if line and not line.startswith("#") and "==" not in line]
    assert not loose
