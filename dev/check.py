"""`make check`: format, lint, layers, generated files. Under a minute."""

import sys

from steps import ROOT, run_steps, tracked

VENV = ROOT / "build/venv/bin"
GENERATED = {"include/mpi.h", "src/abi/types.h"}  # their form is the generator's


def shell_scripts():
    scripts = []
    for name in tracked():
        if name.endswith(".in"):
            continue  # a template; the wrappers made from it are tested by running them
        with open(ROOT / name, "rb") as file:
            if file.readline().startswith((b"#!/usr/bin/env bash", b"#!/bin/bash", b"#!/bin/sh")):
                scripts.append(name)
    return scripts


def steps():
    cpp = [name for name in tracked("*.h", "*.cpp", "*.c") if name not in GENERATED]
    yield "clang-format", [VENV / "clang-format", "--dry-run", "-Werror", *cpp]
    yield "ruff", [VENV / "ruff", "check", "--quiet", "."]
    yield "shellcheck", [VENV / "shellcheck", *shell_scripts()]
    yield "layers", [sys.executable, "dev/check_layers.py"]
    yield "generated files", [sys.executable, "gen/generate.py", "committed", "--check"]
    yield "tests of the house", [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "auto",
                                 "test/house"]


if __name__ == "__main__":
    run_steps("check", list(steps()))
