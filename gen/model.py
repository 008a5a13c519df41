"""The MPI interface as data: reads api/*.json and answers queries about it."""

import fnmatch
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Parameter:
    """One parameter of a function, in the standard's order."""

    def __init__(self, row):
        self.name = row["name"]
        self.kind = row["kind"]
        self.direction = row["direction"]
        self.small_type = row["type"]
        self.large_type = row.get("large_type", row["type"])
        self.array = row.get("array", "")
        self.length = row.get("length")
        self.large_only = row.get("large_only", False)
        self.root_only = row.get("root_only", False)

    def type(self, large):
        return self.large_type if large else self.small_type

    def declare(self, large):
        """The C declaration, e.g. `const int displs[]`."""
        if self.kind == "VARARGS":
            return "..."
        if self.kind == "WEIGHT" and self.array:
            # Compilers would warn that MPI_UNWEIGHTED is shorter than the array that the declaration asks for.
            return f"{self.type(large)}* {self.name}"
        return f"{self.type(large)} {self.name}{self.array}"


class Function:
    """One function of the standard; `has_large` if it has a second form with the suffix _c."""

    def __init__(self, row, surface):
        self.name = row["name"]
        self.short = self.name.removeprefix("MPI_")
        self.returns = row["returns"]
        self.has_large = row.get("large", False)
        self.parameters = [Parameter(p) for p in row["parameters"]]
        self.chapter = surface.chapter_of(self.short)
        self.deprecated = surface.deprecated_since(self.short)

    def forms(self):
        return (False, True) if self.has_large else (False,)

    def form_name(self, large):
        return self.name + ("_c" if large else "")

    def form_parameters(self, large):
        return [p for p in self.parameters if large or not p.large_only]

    def prototype(self, large, prefix=""):
        parameters = ", ".join(p.declare(large) for p in self.form_parameters(large)) or "void"
        return f"{self.returns} {prefix}{self.form_name(large)}({parameters})"


class Surface:
    """Everything under api/."""

    def __init__(self, root=ROOT):
        def read(name):
            return json.loads((root / "api" / name).read_text())

        self.extra = read("extra.json")
        self.types = read("types.json")
        self.constants = read("constants.json")["groups"]
        self.functions = [Function(row, self) for row in read("functions.json")["functions"]]
        chapter_of = {f.short: f.chapter for f in self.functions}
        # The blocking forms of collectives that also have a nonblocking and a persistent form.
        self.collectives = {name for name, chapter in chapter_of.items() if chapter in (6, 8)
                            and f"I{name[0].lower()}{name[1:]}" in chapter_of and f"{name}_init" in chapter_of}

    def chapter_of(self, short):
        for chapter in self.extra["chapters"]:
            if any(fnmatch.fnmatchcase(short, pattern) for pattern in chapter["names"]):
                return chapter["number"]
        raise KeyError(f"{short} is in no chapter of api/extra.json")

    def deprecated_since(self, short):
        for version, names in self.extra["deprecated"].items():
            if short in names:
                return version
        return None

    def chapters(self):
        """(number, title), by number."""
        return sorted((c["number"], c["title"]) for c in self.extra["chapters"])

    def forms(self):
        """Every exported function as (Function, large), by exported name."""
        pairs = [(f, large) for f in self.functions for large in f.forms()]
        return sorted(pairs, key=lambda pair: pair[0].form_name(pair[1]))
