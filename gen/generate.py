#!/usr/bin/env python3
"""The one generator. Reads api/*.json; Python's standard library only.

    generate.py committed           writes the files that are committed: include/mpi.h, src/abi/types.h
    generate.py committed --check   only says which of them differ from what would be written; exit status 1 then
"""

import argparse
import sys

import header
from model import ROOT, Surface


def committed_files(surface):
    return {
        "include/mpi.h": header.mpi_h(surface),
        "src/abi/types.h": header.types_h(surface),
    }


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
    arguments = parser.parse_args()
    surface = Surface()
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
