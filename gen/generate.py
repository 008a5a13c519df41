#!/usr/bin/env python3
"""Generates code from api/*.json. Needs only Python's standard library.

    generate.py committed           writes the files that are committed: include/mpi.h, src/abi/types.h,
                                    src/mpi/exports.map
    generate.py committed --check   writes nothing, but lists those that are out of date; exit status 1 if there
                                    are any
    generate.py build DIR           writes the files that the build needs into DIR: entry points, their
                                    declarations, the function table; reads src/mpi/*.cpp to see what is implemented
    generate.py invalid FILE        writes the invalid-argument test, a C program
    generate.py build DIR --list    only prints the names of the files for the build
"""

import argparse
import pathlib
import sys

import declarations
import entries
import header
import invalid
import scan
import tables
from model import ROOT, Surface


def committed_files(surface):
    return {
        "include/mpi.h": header.mpi_h(surface),
        "src/abi/types.h": header.types_h(surface),
        "src/mpi/exports.map": tables.export_map(surface),
    }


def build_files(surface, done):
    """The names do not depend on which functions are implemented, so that the build can list them beforehand."""
    index_of = {f.form_name(large): i for i, (f, large) in enumerate(surface.forms(), start=1)}
    files = {
        "mpi_root/mpi/impl.h": declarations.impl_h(surface),
        "surface_root/surface/functions.h": tables.functions_h(surface),
        "surface_root/surface/functions.cpp": tables.functions_cpp(surface, done),
    }
    for number, title in surface.chapters():
        files[f"entries/chapter_{number:02}.cpp"] = entries.entries_cpp(surface, number, title, done, index_of)
    return files


def write_if_changed(path, text):
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    committed = commands.add_parser("committed")
    committed.add_argument("--check", action="store_true")
    build = commands.add_parser("build")
    build.add_argument("folder", type=pathlib.Path)
    build.add_argument("--list", action="store_true")
    build.add_argument("--as-if-done", action="store_true", help="write every entry point in full, for tests")
    build.add_argument("--sources", type=pathlib.Path, default=ROOT / "src" / "mpi")
    test = commands.add_parser("invalid")
    test.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    surface = Surface()
    if arguments.command == "build":
        done = scan.implemented(arguments.sources.glob("*.cpp"), surface)
        if arguments.as_if_done:
            done = {f.short for f in surface.functions if not f.short.startswith("T_")}
        files = build_files(surface, done)
        for name, text in files.items():
            if arguments.list:
                print(arguments.folder / name)
            else:
                write_if_changed(arguments.folder / name, text)
        return
    if arguments.command == "invalid":
        done = scan.implemented((ROOT / "src" / "mpi").glob("*.cpp"), surface)
        write_if_changed(arguments.file, invalid.invalid_c(surface, done))
        return
    drifted = []
    for name, text in committed_files(surface).items():
        path = ROOT / name
        if arguments.check:
            if not path.exists() or path.read_text() != text:
                drifted.append(name)
        else:
            write_if_changed(path, text)
    if drifted:
        sys.exit(f"differs from api/ and gen/: {', '.join(drifted)}; run gen/generate.py committed")


if __name__ == "__main__":
    main()
