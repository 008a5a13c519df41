"""mpiexec reports a program that is linked with another MPI library before it runs as many singletons."""

import os
import random
import shutil
import struct
import sys

import pytest

# With an argument, the program runs for a while: only a running process shows what it has loaded.
MAIN = "#include <unistd.h>\nint main(int count, char** words) { return count > 1 ? sleep(2) : 0; }\n"


@pytest.fixture
def linked(nothing_left, tmp_path):
    """linked(soname, ...): a program that needs libraries with these names, and an environment that has them."""

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
    (["libmpi_abi.so.0"], "libmpi_abi.so.0", "MPICH"),
    (["libpmpi.so.12"], "libpmpi.so.12", "MPICH"),
    (["libmpi.so.4"], "libmpi.so.4", "Intel MPI"),
    (["libmpi_mt.so.4"], "libmpi_mt.so.4", "Intel MPI"),
    (["libmpi_dbg.so.4"], "libmpi_dbg.so.4", "Intel MPI"),
])
def test_another_librarys_program_is_reported_in_one_line(launch, prefix, linked, sonames, named, owner):
    program = linked(*sonames)
    result = launch("--oversubscribe", "-n", 2, program)
    lines = result.err.splitlines()
    assert result.status == 0 and len(lines) == 1, result.report()
    assert all(part in lines[0] for part in (str(program), named, owner, f"{prefix}/bin/mpicc")), result.report()


@pytest.mark.parametrize("folder", ["ns", "ns/" * 100 + "ns"], ids=["short", "long"])
def test_a_library_that_is_needed_by_path_is_recognised_by_its_name(launch, nothing_left, tmp_path, folder):
    """If a library has no soname, the linker records the path as given."""
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "empty.c").write_text("int unused;\n")
    (tmp_path / "main.c").write_text(MAIN)
    for words in (["-shared", "-o", f"{folder}/libmpi.so.40", "empty.c"],
                  ["-Wl,--no-as-needed", "-o", "program", "main.c", f"{folder}/libmpi.so.40"]):
        made = nothing_left(["cc", *words], cwd=tmp_path)
        assert made.status == 0, made.report()
    result = launch("-n", 1, "./program", cwd=tmp_path)
    assert result.status == 0 and f"was linked with {folder}/libmpi.so.40 of Open MPI" in result.err, result.report()


def test_it_is_found_in_the_path_and_in_the_working_directory(launch, linked):
    program = linked("libmpi.so.40")
    for options in ({"env": {"PATH": f"{program.parent}:{os.environ['PATH']}"}}, {"cwd": program.parent}):
        result = launch("--oversubscribe", "-n", 1, program.name, **options)
        assert "libmpi.so.40" in result.err, result.report()


@pytest.mark.parametrize("soname", ["libmpi_abi.so.1", "libmpiother.so.1", "libmpi"])
def test_nothing_is_printed_about_other_names(launch, linked, soname):
    assert launch("--oversubscribe", "-n", 1, linked(soname)).err == ""


def test_nothing_is_printed_about_scripts_and_other_programs(launch, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n# libmpi.so.40\nexit 0\n")
    script.chmod(0o755)
    for words in ([script], ["python3", "-c", "pass"], ["true"]):
        result = launch("--oversubscribe", "-n", 2, *words)
        assert (result.status, result.err) == (0, ""), result.report()


def test_a_broken_executable_breaks_nothing(launch, linked, tmp_path):
    """Truncated, randomly overwritten, or with wrong tables: mpiexec reports that it cannot be run, or runs it."""
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
        # A shell may run a broken executable as a script, which must not write into this folder.
        result = launch("--oversubscribe", "-n", 1, "--timeout", "20", broken, cwd=tmp_path)
        assert "mpiexec: the supervising process" not in result.err, result.report()
        assert "mpiexec" not in result.err or result.err.count("warning") <= 1, result.report()


# ---- libraries that only a running process shows -------------------------------------------------------------

def library(nothing_left, folder, soname, *needed):
    (folder / "empty.c").write_text("int unused;\n")
    made = nothing_left(["cc", "-shared", "-Wl,--no-as-needed", f"-Wl,-rpath,{folder}", f"-Wl,-soname,{soname}", "-o",
                         folder / soname, folder / "empty.c", *needed])
    assert made.status == 0, made.report()
    return folder / soname


def told_once(result, prefix, program, soname, owner):
    lines = result.err.splitlines()
    assert result.status == 0 and len(lines) == 1, result.report()
    assert all(part in lines[0] for part in (f"'{program}' has loaded {soname} of {owner}", f"{prefix}/bin/mpicc")), lines


@pytest.mark.parametrize("soname, owner", [("libmpi.so.40", "Open MPI"), ("libmpi.so.12", "MPICH")])
def test_a_program_behind_another_is_reported(launch, prefix, linked, soname, owner):
    program = linked(soname)
    told_once(launch("--oversubscribe", "-n", 2, "env", program, "wait"), prefix, program.name, soname, owner)
    told_once(launch("--oversubscribe", "-n", 2, "sh", "-c", f"{program} wait; true"), prefix, program.name, soname, owner)


def test_a_module_of_an_interpreter_is_reported(launch, prefix, nothing_left, tmp_path):
    """For instance when Python imports an mpi4py of another MPI, which takes a while."""
    module = library(nothing_left, tmp_path, "libmpi.so.40")
    script = f"import ctypes, time; time.sleep(0.5); ctypes.CDLL('{module}'); time.sleep(2)"
    result = launch("--oversubscribe", "-n", 2, sys.executable, "-c", script)
    told_once(result, prefix, os.path.basename(sys.executable)[:15], "libmpi.so.40", "Open MPI")


def test_a_library_of_a_library_is_reported(launch, prefix, linked, nothing_left, tmp_path):
    program = linked("libown.so.1")
    library(nothing_left, tmp_path, "libown.so.1", library(nothing_left, tmp_path, "libmpi.so.40"))
    told_once(launch("--oversubscribe", "-n", 2, program, "wait"), prefix, program.name, "libmpi.so.40", "Open MPI")


def test_what_the_file_shows_is_reported_once(launch, linked):
    result = launch("--oversubscribe", "-n", 2, linked("libmpi.so.40"), "wait")
    assert result.status == 0 and result.err.count("\n") == 1 and "was linked with" in result.err, result.report()


def test_nothing_is_printed_with_q(launch, linked):
    assert launch("-q", "--oversubscribe", "-n", 2, "env", linked("libmpi.so.40"), "wait").err == ""


def test_nothing_is_printed_about_a_job_of_the_other_mpi_inside(launch, linked):
    program = linked("libmpi.so.40")
    inside = ["OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "PMIX_RANK=0"]  # as Open MPI's launcher sets them
    result = launch("--oversubscribe", "-n", 1, "env", *inside, program, "wait")
    assert (result.status, result.err) == (0, ""), result.report()


def test_nothing_is_printed_about_a_rank_that_has_both(launch, prefix, nothing_left, tmp_path):
    other = library(nothing_left, tmp_path, "libmpi.so.40")
    (tmp_path / "late.c").write_text("#include <mpi.h>\n#include <unistd.h>\n"
                                     "int main(void) { sleep(1); MPI_Init(0, 0); MPI_Finalize(); return 0; }\n")
    made = nothing_left([prefix / "bin/mpicc", "-o", tmp_path / "late", tmp_path / "late.c"])
    assert made.status == 0, made.report()
    result = launch("--oversubscribe", "-n", 2, "-x", f"LD_PRELOAD={other}", tmp_path / "late")
    assert (result.status, result.err) == (0, ""), result.report()


# ---- another library of the standard ABI --------------------------------------------------------------------

# Behaves like another MPI library without its own launcher: the process is alone.
ALONE = """\
#include <mpi.h>
int MPI_Init(int* count, char*** words) { (void)count; (void)words; return 0; }
int MPI_Comm_rank(MPI_Comm comm, int* rank) { (void)comm; *rank = 0; return 0; }
int MPI_Comm_size(MPI_Comm comm, int* size) { (void)comm; *size = 1; return 0; }
int MPI_Finalize(void) { return 0; }
"""
PLACE = """\
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char** words) {
  int rank, size;
  if (count > 1) sleep(2);
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("%d of %d\\n", rank, size);
  return MPI_Finalize();
}
"""


@pytest.fixture
def abroad(prefix, nothing_left, tmp_path):
    """abroad(flag, ...): the folder of another library of the standard ABI, and a program linked with it."""
    folder = tmp_path / "abroad"
    folder.mkdir()

    def build(*flags):
        (tmp_path / "alone.c").write_text(ALONE)
        (tmp_path / "place.c").write_text(PLACE)
        library, program = folder / "libmpi_abi.so.1", tmp_path / "place"
        for words in (["-shared", "-fPIC", "-Wl,-soname,libmpi_abi.so.1", "-o", library, tmp_path / "alone.c"],
                      ["-o", program, tmp_path / "place.c", library, *flags]):
            made = nothing_left(["cc", "-I", prefix / "include", *words])
            assert made.status == 0, made.report()
        return folder, program

    return build


@pytest.mark.parametrize("options", [
    ["-x", "LD_LIBRARY_PATH"], ["-x", "LD_LIBRARY_PATH={}"], ["-genv", "LD_LIBRARY_PATH", "{}"],
    ["-env", "LD_LIBRARY_PATH", "{}"], ["-genvnone", "-env", "LD_LIBRARY_PATH={}"], ["-configfile"],
])
def test_our_library_comes_first_whatever_sets_the_search_path(launch, prefix, abroad, tmp_path, options):
    folder, program = abroad()
    words = [word.format(folder) for word in options]
    path = {"LD_LIBRARY_PATH": str(folder)}
    sections = [*words, "-n", "1", program, ":", "-n", "1", *(words if "-env" in words else []), program]
    if "-configfile" in words:
        (tmp_path / "programs").write_text(f"-n 1 -env LD_LIBRARY_PATH {folder} {program}\n" * 2)
        sections = ["-configfile", tmp_path / "programs"]
    result = launch("--oversubscribe", *sections, env=path)
    assert (result.status, sorted(result.out.splitlines()), result.err) == (0, ["0 of 2", "1 of 2"], ""), result.report()


def test_the_requested_search_path_follows_our_folder(launch, prefix):
    show = ["sh", "-c", "echo $LD_LIBRARY_PATH"]
    own = next(folder for folder in (prefix / "lib", prefix / "lib64") if (folder / "libmpi_abi.so.1").exists())
    for value, expected in (("/some:/where", f"{own}:/some:/where\n"), ("", f"{own}\n")):
        result = launch("-n", 1, "-genv", "LD_LIBRARY_PATH", "/less", "-env", "LD_LIBRARY_PATH", value, *show)
        assert (result.status, result.out) == (0, expected), result.report()


def told_of_the_abi(result, prefix, folder):
    assert (result.status, result.out) == (0, "0 of 1\n" * 2), result.report()
    assert result.err.count("\n") == 1, result.report()
    for part in (f"'place' has loaded {folder}/libmpi_abi.so.1 of another MPI library, ", "rank 0 of 1",
                 f"{prefix}/lib", "LD_LIBRARY_PATH", f"{prefix}/bin/mpicc"):
        assert part in result.err, result.report()


def test_another_library_of_the_standard_abi_set_by_a_script_is_reported(launch, prefix, abroad):
    folder, program = abroad()
    told_of_the_abi(launch("--oversubscribe", "-n", 2, "env", f"LD_LIBRARY_PATH={folder}", program, "wait"), prefix, folder)
    script = f"export LD_LIBRARY_PATH={folder}; {program} wait; true"
    told_of_the_abi(launch("--oversubscribe", "-n", 2, "sh", "-c", script), prefix, folder)


def test_another_library_of_the_standard_abi_in_an_old_run_path_is_reported(launch, prefix, abroad):
    """DT_RPATH takes precedence over LD_LIBRARY_PATH."""
    folder, program = abroad("-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/abroad")
    told_of_the_abi(launch("--oversubscribe", "-n", 2, program, "wait"), prefix, folder)


def test_nothing_is_printed_about_our_library_before_init(nothing_left, prefix, abroad, tmp_path):
    """Not even if the installation has copies instead of links."""
    _, program = abroad()
    copy = tmp_path / "installation"
    shutil.copytree(prefix, copy)
    for mpiexec in (prefix / "bin/mpiexec", copy / "bin/mpiexec"):
        result = nothing_left([mpiexec, "--oversubscribe", "-n", 2, program, "wait"], timeout=60)
        assert (result.status, sorted(result.out.splitlines()), result.err) == (0, ["0 of 2", "1 of 2"], ""), result.report()
