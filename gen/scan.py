"""Finds the functions that are implemented: definitions in src/mpi/*.cpp, in namespace near::mpi::impl, that begin at
column 0 with `Result Name(` (or with the C return type if they return a value). `Result Name_call(` describes a
collective, and so implements its blocking, nonblocking and persistent form."""

import re

from kinds import base_name

DEFINITION = re.compile(r"^(?:\[\[[^\]]*\]\] )?([A-Za-z_][\w:]*[*&]?)\s+([A-Z]\w*)\(", re.MULTILINE)


def defined_in(text):
    """The names that one source file defines, and not only declares."""
    names = set()
    if "namespace near::mpi::impl" not in text and "namespace impl {" not in text:
        return names
    for match in DEFINITION.finditer(text):
        end = re.compile(r"[{;]").search(text, match.end())
        if end and end.group() == "{":
            names.add(match.group(2))
    return names


def implemented(paths, surface):
    """Short names of the standard's functions that the files define. Exits if a function is defined twice."""
    known = {f.short for f in surface.functions}
    where = {}

    def note(name, path):
        if name in where:
            raise SystemExit(f"{name} is defined in both {where[name]} and {path}")
        where[name] = path

    for path in sorted(paths):
        for name in sorted(defined_in(path.read_text())):
            if name in known:
                note(name, path)
            collective = name.removesuffix("_call")
            if collective != name and collective in surface.collectives:
                for form in known:
                    if base_name(form) == collective:
                        note(form, path)
    return set(where)
