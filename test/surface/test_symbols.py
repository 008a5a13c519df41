"""The symbols that libmpi_abi.so exports and needs; a profiling library can replace every MPI_X."""

import re
import shutil

import harness
import pytest


def exported(library):
    """The addresses of the exported symbols by name."""
    result = harness.run(["nm", "-D", "--defined-only", library])
    assert result.status == 0, result.report()
    return {line.split()[-1]: line.split()[0] for line in result.out.splitlines()}


def test_exactly_the_standards_names_are_exported(surface, library):
    names = {f.form_name(large) for f, large in surface.forms()}
    assert len(names) == 664
    symbols = exported(library)
    ours = {name for name in symbols if not name.startswith("near_")}
    assert ours == names | {"P" + name for name in names}


def test_both_names_of_a_function_are_one(library):
    symbols = exported(library)
    names = [name for name in symbols if name.startswith("MPI_")]
    assert [name for name in names if symbols[name] != symbols["P" + name]] == []


def test_programs_record_no_version_of_a_symbol(library, compile_c):
    program = compile_c("#include <mpi.h>\nint main(int c, char** v) { return MPI_Init(&c, &v) + MPI_Finalize(); }\n")
    result = harness.run(["readelf", "--dyn-syms", "--wide", program])
    names = re.findall(r"MPI_\w+@?\S*", result.out)
    assert names and all("@" not in name for name in names), names


def test_the_library_needs_nothing_but_the_c_library_and_the_unwinder(library, request):
    if request.config.getoption("--cflags"):
        return  # a sanitizer brings its own runtime
    result = harness.run(["readelf", "-d", library])
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", result.out))
    assert {name.partition(".")[0] for name in needed} <= {"libc", "libm", "ld-linux-x86-64", "ld-linux-aarch64",
                                                           "libdl", "libpthread", "librt", "libgcc_s"}, needed
    assert "[libmpi_abi.so.1]" in result.out


def test_the_library_contains_no_locales(library, request):
    """A single stream in code that ranks run links the C++ library's locales: 1 MB of code, and memory at start."""
    if request.config.getoption("--cflags"):
        return  # a sanitizer's runtime uses them
    result = harness.run(["nm", "-D", "--undefined-only", library])
    assert " U malloc" in result.out, result.report()
    assert "locale" not in result.out, result.report()


# As promised by README and packages; raise it only together with them.
NEWEST_GLIBC = (2, 35)


def test_the_installation_runs_with_the_c_library_that_is_promised(prefix, library, request):
    if request.config.getoption("--cflags"):
        return  # a sanitizer's runtime has its own requirements
    for file in (library, prefix / "bin/mpiexec", prefix / "bin/near"):
        result = harness.run(["objdump", "-T", file])
        wanted = re.findall(r"GLIBC_([0-9.]+)\)? +(\S+)", result.out)
        assert wanted, result.report()
        newer = [f"{name} of {version}" for version, name in wanted
                 if tuple(int(part) for part in version.split(".")) > NEWEST_GLIBC]
        assert not newer, f"{file} needs {newer}"


def test_the_file_of_the_library_has_the_projects_name_and_the_links_the_abis(prefix, library):
    names = {name: (prefix / "lib" / name).resolve().name for name in ("libmpi_abi.so", "libmpi_abi.so.1")}
    assert names == {name: "libnearmpi.so.1.0.0" for name in names}
    assert not library.resolve().is_symlink()


def test_no_object_of_ours_calls_an_mpi_function():
    """Entry points are for programs only; the library itself does not call them."""
    folders = [f for f in (harness.ROOT / "build").glob("*") if (f / "CMakeCache.txt").exists()
               and "NEAR_LTO:BOOL=ON" not in (f / "CMakeCache.txt").read_text() and (f / "libnear_mpi.a").exists()]
    assert folders, "no build without link-time optimisation to look into (make test builds one)"
    for archive in folders[0].glob("libnear_*.a"):
        result = harness.run(["nm", "-u", archive])
        called = set(re.findall(r" U (P?MPI_\w+)$", result.out, re.MULTILINE))
        assert not called, f"{archive.name} refers to {called}"


PROFILER = """\
#include <mpi.h>
#include <stdio.h>
int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  fprintf(stderr, "profiler: %d to %d\\n", count, dest);
  return PMPI_Send(buf, count, datatype, dest, tag, comm);
}
"""
PROGRAM = """\
#include <mpi.h>
int main(int argc, char** argv) {
  int rank, value = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""


OWN_MACRO = """\
#define MPI_Type_ub(datatype, displacement) (*(displacement) = 17, MPI_SUCCESS)
#include <mpi.h>
"""
OWN_FUNCTION = """\
#define NEAR_NO_REMOVED_FUNCTIONS
#include <mpi.h>
int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint* displacement) {
  *displacement = 17;
  return datatype == MPI_INT ? MPI_SUCCESS : MPI_ERR_TYPE;
}
"""
ASKS_FOR_AN_UPPER_BOUND = """\
int main(void) {
  MPI_Aint displacement = 0;
  return MPI_Type_ub(MPI_INT, &displacement) != MPI_SUCCESS || displacement != 17;
}
"""


def test_programs_may_have_their_own_forms_of_removed_functions(compile_c):
    for own in (OWN_MACRO, OWN_FUNCTION):
        result = harness.run([compile_c(own + ASKS_FOR_AN_UPPER_BOUND)])
        assert result.status == 0, result.report()


OWN_CONVERSIONS = """\
#define NEAR_NO_FORTRAN_CONVERSIONS
#include <mpi.h>
MPI_Fint MPI_Comm_c2f(MPI_Comm comm) { return comm == MPI_COMM_SELF ? 17 : 18; }
int main(void) { return MPI_Comm_c2f(MPI_COMM_SELF) != 17; }
"""


def test_programs_may_have_their_own_conversions_of_fortran_handles(compile_c):
    result = harness.run([compile_c(OWN_CONVERSIONS)])
    assert result.status == 0, result.report()


def test_a_preloaded_library_sees_the_programs_calls_and_only_them(compile_c, mpiexec):
    profiler = compile_c(PROFILER, "-shared", "-fPIC")
    result = mpiexec(2, [compile_c(PROGRAM)], env={"LD_PRELOAD": profiler})
    assert result.status == 0, result.report()
    # Once for the program's send; the barrier's own messages do not call MPI_Send.
    assert result.err.count("profiler: 1 to 1") == 1 and result.err.count("profiler") == 1, result.report()


def test_a_tool_linked_into_the_program_is_called_too(compile_c, mpiexec):
    result = mpiexec(2, [compile_c(PROFILER + PROGRAM.replace("#include <mpi.h>", ""))])
    assert result.status == 0 and result.err.count("profiler: 1 to 1") == 1, result.report()


# A minimal entry point, with the alias made by the library's own header.
ENTRY = """\
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop
%s
namespace inner {
int send(int count);
}
extern "C" {
int PMPI_Send(const void*, int count, MPI_Datatype, int, int, MPI_Comm) { return inner::send(count); }
NEAR_PROFILED(MPI_Send, int,
              (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm))
}
"""
INNER = "namespace inner {\nint send(int count) { return count + 1; }\n}\n"
CALLER = "#include <mpi.h>\nint main(void) { return MPI_Send(0, 6, MPI_INT, 1, 0, MPI_COMM_WORLD); }\n"


@pytest.mark.parametrize("compiler, options", [("g++", ["-flto=auto"]), ("clang++-19", ["-flto=thin"])])
def test_the_alias_survives_link_time_optimisation(compiler, options, prefix, tmp_path):
    assert shutil.which(compiler), f"{compiler} is not installed: dev/setup test"
    header = (harness.ROOT / "src/mpi/call.h").read_text()
    macro = header[header.index("#define NEAR_PROFILED"):]
    (tmp_path / "entry.cpp").write_text(ENTRY % macro)
    (tmp_path / "inner.cpp").write_text(INNER)
    (tmp_path / "caller.c").write_text(CALLER)
    (tmp_path / "tool.c").write_text(PROFILER)
    (tmp_path / "exports.map").write_text("{ global: MPI_Send; PMPI_Send; local: *; };\n")
    include = f"-I{prefix / 'include'}"
    commands = [
        [compiler, *options, "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", include, "-shared",
         "-Wl,--version-script=exports.map", "-o", "libentry.so", "entry.cpp", "inner.cpp"],
        ["cc", include, "-o", "caller", "caller.c", "./libentry.so"],
        ["cc", include, "-shared", "-fPIC", "-o", "tool.so", "tool.c"],
    ]
    for command in commands:
        result = harness.run(command, cwd=tmp_path)
        assert result.status == 0, result.report()
    assert harness.run(["./caller"], cwd=tmp_path).status == 7
    result = harness.run(["./caller"], cwd=tmp_path, env={"LD_PRELOAD": tmp_path / "tool.so"})
    assert result.status == 7 and result.err == "profiler: 6 to 1\n", result.report()
