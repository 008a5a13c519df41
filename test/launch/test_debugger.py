"""Debuggers find the ranks of a job by the table that mpiexec keeps for them (MPIR)."""

import os

import gdb
import pytest


def test_the_symbols_are_in_the_program_and_outlive_strip(prefix, nothing_left, tmp_path):
    stripped = tmp_path / "mpiexec"
    assert nothing_left(["strip", "-o", stripped, prefix / "bin/mpiexec"]).status == 0
    symbols = {line.split()[-1] for line in nothing_left(["nm", "-D", "--defined-only", stripped]).out.splitlines()}
    assert {"MPIR_proctable", "MPIR_proctable_size", "MPIR_being_debugged", "MPIR_debug_state", "MPIR_Breakpoint",
            "MPIR_i_am_starter", "MPIR_partial_attach_ok"} <= symbols


@pytest.mark.parametrize("debugged", [1, 0])
def test_gdb_finds_the_ranks(prefix, nothing_left, tmp_path, debugged):
    machines = gdb.session(prefix, nothing_left, tmp_path, debugged,
                           lambda *program: [prefix / "bin/mpiexec", "--oversubscribe", "-n", 2, *program], pause=debugged)
    assert machines == [os.uname().nodename] * 2
