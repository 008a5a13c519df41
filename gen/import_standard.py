#!/usr/bin/env python3
"""Reads the MPI 5.0 function table out of the PyPI package `pympistandard` into api/functions.json.

A development step, not part of the build: run it when the standard's table changes. It needs

    pip install pympistandard==0.2.0

and writes one line per function, so that differences are readable. It imports only facts: names, parameters, their
kinds, directions and C types. It leaves out functions that the standard ABI library does not export (predefined
callbacks are constants there, and Fortran conversions other than those of files belong to the Fortran library).
"""

import json
import pathlib
import re
import sys

WANTED_VERSION = "0.2.0"
ROOT = pathlib.Path(__file__).resolve().parent.parent

# Conversions that C programs may still call; the other ones (*_c2f and so on) are not part of the ABI library.
KEPT_CONVERSIONS = {"MPI_File_c2f", "MPI_File_f2c"}
CONVERSION = re.compile(r"_(c2f|f2c|c2f08|f082c|f082f|f2f08)$")

# The package has no C form for these two.
CORRECTED_TYPES = {
    ("MPI_Info_create_env", "argv"): ("char*", "[]"),
    ("MPI_Pcontrol", "varargs"): ("...", ""),
}


def is_exported(name):
    return name in KEPT_CONVERSIONS or not CONVERSION.search(name)


def c_type(parameter):
    """The C type and array suffix of a parameter, e.g. ("const int", "[]")."""
    constant = "const " if parameter.constant else ""
    return constant + str(parameter.type), parameter.array


def import_function(procedure):
    small = procedure.express.iso_c
    large = procedure.express.embiggen.iso_c if procedure.has_embiggenment() else None
    parsed = small._parseset
    in_small = {p.name: p for p in small.parameters}
    in_large = {p.name: p for p in large.parameters} if large else {}
    parameters = []
    for raw in parsed["parameters"]:
        name = raw["name"]
        if name not in in_small and name not in in_large:
            continue
        row = {"name": name, "kind": raw["kind"], "direction": raw["param_direction"]}
        if name in in_small:
            row["type"], suffix = CORRECTED_TYPES.get((small.name, name)) or c_type(in_small[name])
            if large:
                large_type, _ = c_type(in_large[name])
                if large_type != row["type"]:
                    row["large_type"] = large_type
        else:
            row["large_only"] = True
            row["type"], suffix = c_type(in_large[name])
        if suffix:
            row["array"] = suffix
        if raw["length"] is not None:
            row["length"] = raw["length"]
        if raw["root_only"]:
            row["root_only"] = True
        parameters.append(row)
    function = {"name": small.name, "returns": small.return_type}
    if large:
        function["large"] = True
    function["parameters"] = parameters
    return function


def imported():
    """The text of api/functions.json, and the number of its functions without and with their _c forms."""
    try:
        import pympistandard
    except ImportError:
        sys.exit(f"import_standard.py: needs the package: pip install pympistandard=={WANTED_VERSION}")
    if pympistandard.__version__ != WANTED_VERSION:
        sys.exit(f"import_standard.py: pympistandard is {pympistandard.__version__}, wanted {WANTED_VERSION}")
    pympistandard.use_api_version(1, force_bundled=True)
    functions = [import_function(procedure) for procedure in pympistandard.all_iso_c_procedures()]
    functions = sorted((f for f in functions if is_exported(f["name"])), key=lambda f: f["name"])
    lines = [json.dumps(f) for f in functions]
    head = f'{{"source": "pympistandard {WANTED_VERSION}: the function table of MPI 5.0",\n"functions": [\n'
    total = len(functions) + sum("large" in f for f in functions)
    return head + ",\n".join(lines) + "\n]}\n", len(functions), total


def main():
    text, functions, total = imported()
    (ROOT / "api" / "functions.json").write_text(text)
    print(f"api/functions.json: {functions} functions, {total} with their _c forms")


if __name__ == "__main__":
    main()
