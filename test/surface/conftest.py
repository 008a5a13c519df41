"""Fixtures of the tests of the MPI interface."""

import os
import sys

import harness
import pytest

sys.path.insert(0, str(harness.ROOT / "gen"))


@pytest.fixture(scope="session")
def surface():
    """The interface in api/, as the generator reads it."""
    from model import Surface

    return Surface()


@pytest.fixture(scope="session")
def library(prefix):
    return prefix / "lib/libmpi_abi.so.1"


@pytest.fixture
def compile_c(prefix, request, tmp_path):
    """compile_c(source, *options): a program built with the installation's mpicc; `source` is a path or C text."""

    def build(source, *options, flags=("-Wall", "-Wextra", "-Werror")):
        if not isinstance(source, os.PathLike):
            text, source = source, tmp_path / f"program{len(list(tmp_path.iterdir()))}.c"
            source.write_text(text)
        target = tmp_path / f"{source.stem}.out"
        more = request.config.getoption("--cflags").split()
        result = harness.run([prefix / "bin/mpicc", "-std=c11", "-g", *flags, *more, "-o", target, source, *options],
                             timeout=240)
        assert result.status == 0, result.report()
        return target

    return build
