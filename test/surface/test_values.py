"""Compares our header with the one in PyPI's mpich wheel (the oracle): values, layouts, prototypes."""

import re

import harness
import pytest

MPICH = harness.ROOT / "build/venv-mpich/include/mpi_abi.h"
TYPES = ["MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_Status", "MPI_Comm", "MPI_Datatype", "MPI_Op", "MPI_T_cb_safety",
         "MPI_T_enum", "MPI_Request"]
FIELDS = ["MPI_SOURCE", "MPI_TAG", "MPI_ERROR", "MPI_internal"]


@pytest.fixture(scope="session", autouse=True)
def oracle():
    result = harness.run([harness.ROOT / "dev/setup", "mpich"], timeout=600)
    assert result.status == 0, result.report()


def facts(header, names, folder):
    """The constants and types as printed by a C program that includes `header`."""
    lines = [f'printf("{n} %lld\\n", (long long)({n}));' for n in names]
    lines += [f'printf("sizeof {t} %zu\\n", sizeof({t}));' for t in TYPES]
    lines += [f'printf("offset {f} %zu\\n", offsetof(MPI_Status, {f}));' for f in FIELDS]
    source = folder / "facts.c"
    source.write_text(f'#include <stdio.h>\n#include <stddef.h>\n#include "{header}"\nint main(void) {{\n' +
                      "\n".join(lines) + "\nreturn 0; }\n")
    result = harness.run(["cc", "-w", "-o", folder / "facts", source])
    assert result.status == 0, result.report()
    result = harness.run([folder / "facts"])
    assert result.status == 0, result.report()
    return result.out.splitlines()


def test_every_value_and_layout_is_the_standards(surface, prefix, tmp_path):
    names = [row["name"] for group in surface.constants for row in group["constants"]]
    assert len(names) > 350
    ours, theirs = (facts(header, names, tmp_path) for header in (prefix / "include/mpi.h", MPICH))
    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []


def test_no_constant_is_missing(surface):
    """Our header defines every MPI_ name that the oracle's header defines."""
    text = MPICH.read_text()
    theirs = set(re.findall(r"^#define\s+(MPI_\w+)\s+\S", text, re.MULTILINE))
    theirs |= set(re.findall(r"^\s+(MPI_\w+)\s*=", text, re.MULTILINE))
    theirs -= {"MPI_H_ABI", "MPI_ABI_Aint", "MPI_ABI_Offset", "MPI_ABI_Count"}
    ours = {row["name"] for group in surface.constants for row in group["constants"]}
    assert theirs <= ours, theirs - ours


def parameter_types(text):
    """The types of a C parameter list, without names and spaces; an array is a pointer."""
    types = []
    for part in text.split(","):
        part = re.sub(r"\s*\*\s*", "* ", part.strip())
        match = re.match(r"(.*?)(\w+)((\[\d*\])*)$", part)
        if match and match[1]:
            part = match[1].strip() + ("*" if match[3] == "[]" else match[3])
        types.append(part.replace(" ", ""))
    return types


def prototypes(path):
    found = re.findall(r"^(\w+) (P?MPI_\w+)\((.*)\);", path.read_text(), re.MULTILINE)
    return {name: (returns, parameter_types(parameters)) for returns, name, parameters in found}


def test_every_prototype_is_the_standards(prefix):
    ours, theirs = prototypes(prefix / "include/mpi.h"), prototypes(MPICH)
    # The wheel's header lacks the Fortran conversions of files and has its own extensions under MPIX_.
    missing = {"MPI_File_c2f", "MPI_File_f2c", "PMPI_File_c2f", "PMPI_File_f2c"}
    theirs = {name: value for name, value in theirs.items() if not name.lstrip("P").startswith("MPIX")}
    assert set(ours) - set(theirs) == missing and set(theirs) <= set(ours)
    assert [name for name in theirs if ours[name] != theirs[name]] == []


@pytest.mark.parametrize("compiler, standard", [("gcc", "c99"), ("gcc", "c17"), ("g++", "c++11"), ("g++", "c++20")])
def test_the_header_compiles_without_warnings(prefix, tmp_path, compiler, standard):
    suffix = "c" if compiler == "gcc" else "cpp"
    source = tmp_path / f"use.{suffix}"
    source.write_text("#include <mpi.h>\nint main(void) { MPI_Comm c = MPI_COMM_WORLD; return c == MPI_COMM_NULL; }\n")
    result = harness.run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                          f"-I{prefix / 'include'}", "-c", "-o", tmp_path / "use.o", source])
    assert result.status == 0, result.report()
