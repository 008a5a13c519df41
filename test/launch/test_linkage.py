"""A program that was linked with another MPI library is told of before it runs as so many single processes."""

import os
import random
import struct

import pytest

MAIN = "int main(void) { return 0; }\n"


@pytest.fixture
def linked(nothing_left, tmp_path):
    """linked(soname, ...): a program that asks for libraries of these names, and an environment where they are."""

    def build(*sonames):
        (tmp_path / "empty.c").write_text("int unused;\n")
        (tmp_path / "main.c").write_text(MAIN)
        for soname in sonames:
            made = nothing_left(["cc", "-shared", f"-Wl,-soname,{soname}", "-o", tmp_path / soname, tmp_path / "empty.c"])
            assert made.status == 0, made.report()
        program = tmp_path / "program"
        made = nothing_left(["cc", "-Wl,--no-as-needed", f"-Wl,-rpath,{tmp_path}", "-o", program, tmp_path / "main.c",
                             *(tmp_path / soname for soname in sonames)])
        assert made.status == 0, made.report()
        return program

    return build


@pytest.mark.parametrize("sonames, named, owner", [
    (["libmpi.so.12"], "libmpi.so.12", "MPICH"),
    (["libmpi.so.40"], "libmpi.so.40", "Open MPI"),
    (["libmpi_mpifh.so.40"], "libmpi_mpifh.so.40", "Open MPI"),
    (["libmpifort.so.12"], "libmpifort.so.12", "MPICH"),
    (["libmpi_cxx.so.40"], "libmpi_cxx.so.40", "Open MPI"),
    (["libother.so.1", "libmpich.so.12"], "libmpich.so.12", "MPICH"),
])
def test_another_librarys_program_is_told_of_in_one_line(launch, prefix, linked, sonames, named, owner):
    program = linked(*sonames)
    result = launch("--oversubscribe", "-n", 2, program)
    lines = result.err.splitlines()
    assert result.status == 0 and len(lines) == 1, result.report()
    assert all(part in lines[0] for part in (str(program), named, owner, f"{prefix}/bin/mpicc")), result.report()


def test_it_is_found_in_the_path_and_in_the_working_directory(launch, linked):
    program = linked("libmpi.so.40")
    for options in ({"env": {"PATH": f"{program.parent}:{os.environ['PATH']}"}}, {"cwd": program.parent}):
        result = launch("--oversubscribe", "-n", 1, program.name, **options)
        assert "libmpi.so.40" in result.err, result.report()


@pytest.mark.parametrize("soname", ["libmpi_abi.so.1", "libmpiother.so.1", "libmpi"])
def test_nothing_is_said_of_other_names(launch, linked, soname):
    assert launch("--oversubscribe", "-n", 1, linked(soname)).err == ""


def test_nothing_is_said_of_scripts_and_other_programs(launch, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n# libmpi.so.40\nexit 0\n")
    script.chmod(0o755)
    for words in ([script], ["python3", "-c", "pass"], ["true"]):
        result = launch("--oversubscribe", "-n", 2, *words)
        assert (result.status, result.err) == (0, ""), result.report()


def test_a_broken_executable_breaks_nothing(launch, linked, tmp_path):
    """Cut off, overwritten at random, with tables that lead astray: mpiexec says that it cannot be run, or runs it."""
    whole = bytearray(linked("libmpi.so.40").read_bytes())
    dice = random.Random(11)
    broken = tmp_path / "broken"
    for turn in range(60):
        data = bytearray(whole)
        if turn % 3 == 0:
            data = data[:dice.randrange(len(data))]
        elif turn % 3 == 1:
            for _ in range(8):
                data[dice.randrange(1024)] = dice.randrange(256)
        else:
            at = 64 + 8 * dice.randrange(90)
            data[at:at + 8] = struct.pack("<Q", dice.choice([2**64 - 1, 2**63, 2**63 - 1, 2**40, 0, len(data) - 1]))
        broken.write_bytes(data)
        broken.chmod(0o755)
        result = launch("--oversubscribe", "-n", 1, "--timeout", "20", broken)
        assert "mpiexec: the supervising process" not in result.err, result.report()
        assert "mpiexec" not in result.err or result.err.count("warning") <= 1, result.report()
