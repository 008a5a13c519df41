"""A file that is compiled for newer processors must not define functions that the linker could use for all files."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# The files with their own compiler options in CMakeLists.txt.
OPTIONS = re.findall(r'set_source_files_properties\((src/copy/\S+) PROPERTIES COMPILE_OPTIONS "?([^\s")]+)"?\)',
                     (ROOT / "CMakeLists.txt").read_text())


def shared_functions(compiler, file, options, level, folder):
    """Names of functions in the object of `file` of which the linker keeps one copy for all objects.
    `options`: with semicolons between them, as CMake has them."""
    if not shutil.which(compiler):
        pytest.skip(f"NOT tested here: there is no {compiler}")
    target = subprocess.run([compiler, "-dumpmachine"], text=True, capture_output=True, check=True).stdout
    if not target.startswith("x86_64"):
        pytest.skip(f"NOT tested here: {file} is for x86-64")
    made = folder / "kernel.o"
    cache = ["ccache"] if shutil.which("ccache") else []
    subprocess.run([*cache, compiler, "-std=c++20", level, *options.split(";"), "-I", ROOT / "src", "-c", file, "-o", made], check=True)
    names = subprocess.run(["nm", "-C", made], text=True, capture_output=True, check=True).stdout
    return re.findall(r"^\S+ [Ww] (.*)$", names, re.M)


def test_the_files_are_found():
    assert len(OPTIONS) >= 4
    assert shutil.which("g++") and shutil.which("nm")


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", ["g++", "clang++-19"])
@pytest.mark.parametrize("file, options", OPTIONS)
def test_a_kernel_file_shares_no_function(file, options, compiler, level, tmp_path):
    assert shared_functions(compiler, ROOT / file, options, level, tmp_path) == []


def test_a_shared_function_is_seen(tmp_path):
    planted = tmp_path / "planted.cpp"
    planted.write_text("#include <algorithm>\nint smaller(int a, int b) { return std::min(a, b); }\n")
    assert shared_functions("g++", planted, "-mavx2", "-O0", tmp_path)
