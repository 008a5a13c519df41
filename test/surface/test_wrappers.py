"""mpicc, mpicxx, mpi.pc and CMake's find_package(MPI), also after the installation has been moved."""

import shutil

import harness
import pytest

PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("size %d\\n", size);
  MPI_Finalize();
  return 0;
}
"""
PROJECT = """\
cmake_minimum_required(VERSION 3.16)
project(user C CXX)
find_package(MPI REQUIRED)
add_executable(c_program program.c)
target_link_libraries(c_program PRIVATE MPI::MPI_C)
add_executable(cpp_program program.cpp)
target_link_libraries(cpp_program PRIVATE MPI::MPI_CXX)
message(STATUS "the launcher is ${MPIEXEC_EXECUTABLE}")
"""


@pytest.fixture
def sources(tmp_path):
    for suffix in ("c", "cpp"):
        (tmp_path / f"program.{suffix}").write_text(PROGRAM)
    return tmp_path


def succeeds(command, **options):
    result = harness.run(command, timeout=120, **options)
    assert result.status == 0, result.report()
    return result


def test_a_program_is_compiled_and_linked_in_one_step_and_in_two(prefix, sources):
    for wrapper, suffix in (("mpicc", "c"), ("mpicxx", "cpp"), ("mpic++", "cpp")):
        tool = prefix / "bin" / wrapper
        succeeds([tool, "-o", sources / "one", sources / f"program.{suffix}"])
        succeeds([tool, "-c", "-o", sources / "two.o", sources / f"program.{suffix}"])
        succeeds([tool, "-o", sources / "two", sources / "two.o"])
        for name in ("one", "two"):
            assert succeeds([sources / name]).out == "size 1\n"


def test_programs_that_pass_constants_for_arrays_are_compiled_without_a_warning(prefix, tmp_path):
    (tmp_path / "constants.c").write_text("""\
#include <mpi.h>
void use(MPI_Comm comm, int degree, int* others, MPI_Request* requests, MPI_Comm* made) {
  MPI_Dist_graph_create_adjacent(comm, degree, others, MPI_UNWEIGHTED, degree, others, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, made);
  MPI_Dist_graph_create_adjacent(comm, 0, others, MPI_WEIGHTS_EMPTY, 0, others, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, made);
  MPI_Dist_graph_create(comm, 1, &degree, &degree, others, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, made);
  MPI_Dist_graph_neighbors(comm, degree, others, MPI_UNWEIGHTED, degree, others, MPI_UNWEIGHTED);
  MPI_Waitall(degree, requests, MPI_STATUSES_IGNORE);
  MPI_Comm_spawn("other", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, comm, made, MPI_ERRCODES_IGNORE);
  MPI_Bcast(MPI_BOTTOM, 1, MPI_INT, 0, comm);
  MPI_Allreduce(MPI_IN_PLACE, others, degree, MPI_INT, MPI_SUM, comm);
}
""")
    seen = succeeds([prefix / "bin/mpicc", "-O2", "-Wall", "-Wextra", "-c", "-o", tmp_path / "constants.o", tmp_path / "constants.c"])
    assert seen.err == "", seen.report()


def test_the_command_is_shown_and_not_run(prefix, sources):
    shown = succeeds([prefix / "bin/mpicc", "-show", "-o", sources / "shown", sources / "program.c"]).out
    assert f"-I{prefix}/include" in shown and "-lmpi_abi" in shown and not (sources / "shown").exists()
    result = succeeds(["sh", "-c", shown])
    assert succeeds([sources / "shown"]).out == "size 1\n", result.report()
    assert "-lmpi_abi" not in succeeds([prefix / "bin/mpicc", "-show", "-c", "x.c"]).out
    assert succeeds([prefix / "bin/mpicc", "-showme:compile"]).out.split() == [f"-I{prefix}/include"]
    assert "-lmpi_abi" in succeeds([prefix / "bin/mpicc", "-showme:link"]).out
    assert succeeds([prefix / "bin/mpicc", "-compile_info"]).out.startswith("cc -I")
    assert "-lmpi_abi" in succeeds([prefix / "bin/mpicc", "-link_info"]).out


def test_another_compiler_can_be_chosen(prefix):
    assert succeeds([prefix / "bin/mpicc", "-cc=clang", "-show"]).out.startswith("clang ")
    assert succeeds([prefix / "bin/mpicxx", "-show"], env={"NEARMPI_CXX": "clang++"}).out.startswith("clang++ ")


def test_names_of_other_mpi_libraries_are_ignored(prefix, sources):
    others = ("-lmpi", "-lmpich", "-lmpi_cxx", "-lmpicxx")
    for wrapper, suffix in (("mpicc", "c"), ("mpicxx", "cpp")):
        tool = prefix / "bin" / wrapper
        succeeds([tool, "-o", sources / "program", sources / f"program.{suffix}", *others, "-lm"])
        assert succeeds([sources / "program"]).out == "size 1\n"
        needed = succeeds(["readelf", "-d", sources / "program"]).out
        assert "[libmpi_abi.so.1]" in needed and "[libmpi.so" not in needed, needed
        shown = succeeds([tool, "-show", "program.o", *others, "-lmpi_own"]).out
        assert [word for word in shown.split() if word.startswith("-lmpi")] == ["-lmpi_own", "-lmpi_abi"]


def test_questions_to_the_compiler_link_nothing(prefix):
    assert "mpi_abi" not in succeeds([prefix / "bin/mpicc", "--version"]).text


def test_a_moved_installation_works(prefix, sources):
    moved = sources / "a folder"
    shutil.copytree(prefix, moved, symlinks=True)
    succeeds([moved / "bin/mpicc", "-o", sources / "moved", sources / "program.c"])
    run_path = succeeds(["readelf", "-d", sources / "moved"]).out
    assert f"[{moved}/lib]" in run_path and str(prefix) not in run_path.replace(str(moved), "")
    assert succeeds([sources / "moved"]).out == "size 1\n"


def test_pkg_config_knows_the_flags(prefix, sources):
    flags = succeeds(["pkg-config", "--cflags", "--libs", "mpi"],
                     env={"PKG_CONFIG_PATH": prefix / "lib/pkgconfig"}).out.split()
    succeeds(["cc", "-o", sources / "direct", sources / "program.c", *flags])
    assert succeeds([sources / "direct"]).out == "size 1\n"


def test_cmake_finds_us_by_its_own_means(prefix, sources):
    (sources / "CMakeLists.txt").write_text(PROJECT)
    build = sources / "build"
    result = succeeds(["cmake", "-S", sources, "-B", build, f"-DMPI_HOME={prefix}"])
    assert f"the launcher is {prefix}/bin/mpiexec" in result.out, result.report()
    succeeds(["cmake", "--build", build])
    for name in ("c_program", "cpp_program"):
        assert succeeds([build / name]).out == "size 1\n"
        linked = succeeds(["ldd", build / name]).out
        assert str(prefix / "lib/libmpi_abi.so.1") in linked, linked
