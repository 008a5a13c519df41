"""The rules that the compiler cannot keep alone, and the diagram that is drawn from src/layers.txt.

    dev/check_layers.py            checks; prints one line for each violation; exit status 1 when there is any
    dev/check_layers.py --write    also renders the diagram into doc/architecture.md
    dev/check_layers.py --root DIR the same on another tree (tests plant mistakes in a copy)

An include of a layer that may not be seen is refused by the compiler (cmake/Layers.cmake gives each layer include
roots that hold nothing else), and a call by a hand-declared prototype by the linker (targets links_<layer>). What
remains for this script: includes that go round the roots, details of transports, queues and the segment in files
from p2p upwards that src/layers.txt does not list, system headers outside os/, hwloc outside topo/, libfabric outside ofi/,
std::atomic outside the facade, copies of payload outside copy/, references to MPI functions below the bindings, and
SYNC labels.
"""

import argparse
import functools
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*(?:include|include_next|import)\b\s*(.*)$')
TARGET = re.compile(r'^(?:"([^"]+)"|<([^>]+)>)')
KERNEL = re.compile(r"^(sys|linux|asm)/")
BARE_ATOMIC = re.compile(r"\bstd::atomic|\b__atomic_|\b__sync_(?!label)|<atomic>|<stdatomic\.h>")
MPI_FUNCTION = re.compile(r"\bP?MPI_[A-Z][a-z]\w*\s*\(")
VERBS = "load|store|cas|exchange|add|sub|and|or|xor|bump"
ACQUIRES = re.compile(rf"\b({VERBS})_(acquire|acq_rel)\s*\(")
RELEASES = re.compile(rf"\b({VERBS})_(release|acq_rel)\s*\(")
FENCES = re.compile(r"::(fence_store_load|compiler_fence|barrier_all)\(\);")
LABEL = re.compile(r"SYNC: ([a-z][a-z0-9_-]*(?:, ?[a-z][a-z0-9_-]*)*)")
LABEL_REACH = 10  # a label stands on the operation's line or at most so many lines above it, in the same function
GENERATED = {"surface": {"mpi", "launch", "tools"}}  # folder of generated headers: who may include them
FUNCTION_END = re.compile(r"(  )?};?\s*$")  # of a function at the file's level or in a class
PAYLOAD = re.compile(r"\bmem(?:cpy|move)\s*\((?!.*,\s*sizeof\b[^,]*\))")
PAYLOAD_LAYERS = {"datatype", "memory", "transport", "shm", "ofi", "p2p", "coll", "comm", "rma", "io"}
FACADE = "src/base/atomic.h"
BEGIN, END = "<!-- layers: begin (dev/check_layers.py --write) -->", "<!-- layers: end -->"


class Layers:
    """src/layers.txt: numbered layers, some of which belong to a program, and programs with the layers that they see."""

    def __init__(self, root):
        self.numbers, self.subjects, self.programs, self.owners, self.details = {}, {}, {}, {}, []
        for line in (root / "src/layers.txt").read_text().splitlines():
            fields = [field.strip() for field in line.split("|")]
            if line.startswith("#") or len(fields) < 3:
                continue
            if fields[0].isdigit():
                owner, _, name = fields[1].rpartition("/")
                self.numbers[name], self.subjects[name] = int(fields[0]), fields[2]
                self.owners[name] = owner
            elif fields[0] == "x":
                self.details.append((fields[1], fields[2].split(), fields[3].split() if len(fields) > 3 else []))
            elif fields[0] == "-":
                self.programs[fields[1]], self.subjects[fields[1]] = fields[2].split(), fields[3]

    def visible(self, folder):
        """Layers that a file of `folder` may include, itself among them."""
        if folder in self.programs:
            return {folder, *self.programs[folder]}
        lower = {name for name, number in self.numbers.items() if number < self.numbers[folder]}
        return {folder} | {name for name in lower if self.owners[name] in ("", self.owners[folder])}

    def hidden(self, folder, path):
        """Pairs (layer, prefix of a name) that the file at `path` may not use, because only some files may."""
        if folder in self.programs or self.owners[folder] or self.numbers[folder] < self.numbers["p2p"]:
            return []
        inside = path.removeprefix("src/")
        return [(layer, prefix) for layer, prefixes, allowed in self.details
                if not any(inside.startswith(start) for start in allowed) for prefix in prefixes]

    def folder(self, name):
        """Where the files of a layer or program are."""
        return name if name in self.programs else f"{self.owners[name] or 'src'}/{name}"

    def diagram(self):
        """The layers as a text picture, lowest number at the bottom."""
        rows = {}
        for name, number in self.numbers.items():
            if not self.owners[name]:
                rows.setdefault(number, []).append(name)
        lines = ["```"]
        for number in sorted(rows, reverse=True):
            lines.append(f"{number:>4}  " + " ".join(f"[ {name:^9} ]" for name in rows[number]))
        lines.append("")
        for name, seen in self.programs.items():
            lines.append(f"   -  [ {name:^9} ] sees {', '.join(seen)}")
            own = [f"{layer} ({number})" for layer, number in self.numbers.items() if self.owners[layer] == name]
            if own:
                lines.append(f"{'':19}has layers of its own: {', '.join(own)}")
        lines += ["```", "", "| number | layer | what it holds |", "|---|---|---|"]
        for name, number in self.numbers.items():
            lines.append(f"| {number} | `{self.folder(name).removeprefix('src/')}` | {self.subjects[name]} |")
        for name in self.programs:
            lines.append(f"| - | `{name}/` | {self.subjects[name]} |")
        lines += ["", "From p2p upwards, only these files may use the inside of a transport, of queues or of the segment:", "",
                  "| layer | names and headers | files |", "|---|---|---|"]
        for name, prefixes, allowed in self.details:
            spelled = [", ".join(f"`{entry}`" for entry in entries) for entries in (prefixes, allowed)]
            lines.append(f"| {name} | {spelled[0]} | {spelled[1]} |")
        return "\n".join(lines)


@functools.cache
def without_comments(text):
    """`text` with comments and string literals blanked; line numbers stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)

    def blank(match):
        if match[0].startswith('"'):
            return '""'
        return "\n" * match[0].count("\n")

    # Includes keep their quoted names: they are read from the raw text.
    return pattern.sub(blank, text)


class Check:
    def __init__(self, root):
        self.root, self.layers, self.problems = root, Layers(root), []
        self.acquired, self.released, self.fenced = {}, {}, {}

    def problem(self, path, line, text):
        self.problems.append(f"{path}:{line}: {text}")

    def sources(self):
        names = {self.layers.folder(name): name for name in (*self.layers.numbers, *self.layers.programs)}
        for folder, name in names.items():
            for path in sorted((self.root / folder).rglob("*")):
                relative = path.relative_to(self.root)
                if path.suffix not in (".h", ".cpp", ".c", ".def"):
                    continue
                # A program's folder also holds the folders of its layers, whose files are listed as theirs.
                if folder in self.layers.programs and "/".join(relative.parts[:2]) in names:
                    continue
                yield name, relative.as_posix(), path.read_text()

    def includes(self, layer, path, text):
        visible = self.layers.visible(layer)
        for number, line in enumerate(text.splitlines(), 1):
            directive = INCLUDE.match(line)
            if not directive:
                continue
            target = TARGET.match(directive[1])
            if not target:
                self.problem(path, number, "an include must name its file plainly")
                continue
            name = target[1] or target[2]
            if ".." in name.split("/") or name.startswith("/"):
                self.problem(path, number, f'"{name}" goes round the include roots; write "layer/file.h"')
                continue
            if target[2] and "/" not in name and "." not in name:
                continue  # a header of the C++ library, which may have a layer's name: <memory>
            first = name.split("/")[0]
            if first in self.layers.numbers or first in self.layers.programs:
                if first not in visible:
                    self.problem(path, number, f"{layer} may not include {first}: it sees {', '.join(sorted(visible))}")
            elif target[1] and layer not in GENERATED.get(first, ()):
                self.problem(path, number, f'"{name}" does not belong to a layer; write "layer/file.h"')
            if KERNEL.match(name) and layer != "os":
                self.problem(path, number, f"<{name}>: system calls are wrapped in os/")
            if name.startswith("hwloc") and layer != "topo":
                self.problem(path, number, "hwloc is used in topo/ only")
            if name.startswith("rdma/") and layer != "ofi":
                self.problem(path, number, "libfabric is used in ofi/ only")

    def detail_names(self, layer, path, text):
        """Names and headers of another layer's inside, in a file that src/layers.txt does not list for them."""
        hidden = [(owner, name) for owner, name in self.layers.hidden(layer, path) if name.removesuffix("::") in text]
        if not hidden:
            return
        for number, (raw, line) in enumerate(zip(text.splitlines(), without_comments(text).splitlines(), strict=False), 1):
            directive = INCLUDE.match(raw)
            target = TARGET.match(directive[1]) if directive else None
            for owner, name in hidden:
                if "/" in name:
                    used = target is not None and (target[1] or target[2]).startswith(name)
                elif name.endswith("::"):
                    alias = rf"\bnamespace\s+(\w+\s*=\s*)?[\w:]*\b{name[:-2]}\s*;"
                    used = re.search(rf"\b{name}|{alias}", line) is not None
                else:
                    used = re.search(rf"\b{re.escape(name)}\b", line) is not None
                if used:
                    self.problem(path, number, f"{name} is a detail of {owner}: src/layers.txt lists who may use it")

    def words(self, layer, path, text):
        code = without_comments(text)
        if not MPI_FUNCTION.search(code) and not any(word in code for word in ("atomic", "__sync_", "memcpy", "memmove")):
            return
        for number, line in enumerate(code.splitlines(), 1):
            if path != FACADE and BARE_ATOMIC.search(line):
                self.problem(path, number, "atomics are reached through base/atomic.h only")
            if layer in PAYLOAD_LAYERS and PAYLOAD.search(line):
                self.problem(path, number, "payload is copied by copy/raw.h; memcpy is for one object's `sizeof`")
            if MPI_FUNCTION.search(line):
                self.problem(path, number, "nothing under src/ refers to MPI_* or PMPI_* functions")

    def sync_labels(self, path, text):
        if path == FACADE:
            return
        raw, code = text.splitlines(), without_comments(text).splitlines()
        used = set()
        ordered = any(pattern.search(without_comments(text)) for pattern in (ACQUIRES, RELEASES, FENCES))
        for number, line in enumerate(code if ordered else ()):
            acquires, releases = bool(ACQUIRES.search(line)), bool(RELEASES.search(line))
            fences = bool(FENCES.search(line))
            if not acquires and not releases and not fences:
                continue
            names = []
            for back in range(number, max(-1, number - LABEL_REACH - 1), -1):
                if found := LABEL.search(raw[back]):
                    names = re.split(r", ?", found[1])
                    used.add(back)
                    break
                if back != number and FUNCTION_END.match(code[back]):
                    break
            if not names:
                what = "a fence" if fences else "an acquire or release"
                self.problem(path, number + 1, f"{what} needs a comment 'SYNC: name' at both its ends")
            for name in names:
                if acquires:
                    self.acquired.setdefault(name, (path, number + 1))
                if releases:
                    self.released.setdefault(name, (path, number + 1))
                if fences:
                    self.fenced.setdefault(name, {}).setdefault((path, back + 1), number + 1)
        for number, line in enumerate(raw):
            if (found := LABEL.search(line)) and number not in used:
                self.problem(path, number + 1, f"SYNC: {found[1]} stands at no acquire, release or fence")
        if path.startswith("src/queue/"):
            self.queue_page(path, text)

    def queue_page(self, path, text):
        """Each structure has a page, which names each of its labels."""
        page = re.search(r"doc/queue/\w+\.md", text)
        if not page or not (self.root / page[0]).is_file():
            self.problem(path, 1, "names no page of doc/queue that exists")
            return
        described = (self.root / page[0]).read_text()
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.split(r", ?", found[1]) if (found := LABEL.search(line)) else ():
                if f"`{name}`" not in described:
                    self.problem(path, number, f"{page[0]} says nothing of `{name}`")

    def sync_pairs(self):
        for name, (path, line) in self.acquired.items():
            if name not in self.released:
                self.problem(path, line, f"SYNC: {name} is acquired here and released nowhere")
        for name, (path, line) in self.released.items():
            if name not in self.acquired:
                self.problem(path, line, f"SYNC: {name} is released here and acquired nowhere")
        for name, places in self.fenced.items():
            if len(places) == 1 and name not in self.acquired and name not in self.released:
                (path, _), line = next(iter(places.items()))
                self.problem(path, line, f"SYNC: {name} is fenced here and nowhere else")

    def diagram(self, write):
        page = self.root / "doc/architecture.md"
        if not page.exists():
            return
        text = page.read_text()
        head, begin, rest = text.partition(BEGIN)
        _, end, tail = rest.partition(END)
        if not begin or not end:
            self.problem("doc/architecture.md", 1, "the marks of the layers' diagram are gone")
            return
        wanted = f"{head}{BEGIN}\n{self.layers.diagram()}\n{END}{tail}"
        if wanted != text and write:
            page.write_text(wanted)
        elif wanted != text:
            self.problem("doc/architecture.md", 1, "differs from src/layers.txt: run dev/check_layers.py --write")

    def all(self, write=False):
        for layer, path, text in self.sources():
            self.includes(layer, path, text)
            self.detail_names(layer, path, text)
            self.words(layer, path, text)
            self.sync_labels(path, text)
        self.sync_pairs()
        self.diagram(write)
        return self.problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--write", action="store_true", help="render the diagram into doc/architecture.md")
    options = parser.parse_args()
    problems = Check(options.root).all(options.write)
    print("\n".join(problems) if problems else "layers: no violation")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
