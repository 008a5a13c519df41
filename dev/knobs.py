"""The table of knobs in doc/variables.md, from src/base/knob_table.def.

    dev/knobs.py           says whether the table is up to date (status 1: it is not)
    dev/knobs.py --write   writes it
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = "src/base/knob_table.def"
PAGE = "doc/variables.md"
BEGIN, END = "<!-- knobs: begin (dev/knobs.py --write) -->\n", "<!-- knobs: end -->"
ROW = re.compile(r'^NEAR_KNOB\((\w+), (.*), "((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)"\)$', re.M)
UNITS = {"Count": "", "Microseconds": " microseconds"}


def number(text):
    """A limit as the table writes it: 1'000, or 1 << 20."""
    base, _, shift = text.replace("'", "").partition("<<")
    return int(base) << int(shift or 0)


def size(text):
    """A number of bytes as people write it: 1 << 30 as 1g."""
    for shift, unit in ((30, "g"), (20, "m"), (10, "k")):
        if number(text) and number(text) % (1 << shift) == 0:
            return f"{number(text) >> shift}{unit}"
    return str(number(text))


def values(form, default):
    """What a knob may be set to."""
    kind, _, arguments = form.partition("(")
    arguments = arguments.removesuffix(")")
    automatic = ", or `auto`" if default == "auto" else ""
    if kind == "Flag":
        return "0 or 1" + automatic
    if kind == "Choice":
        return ", ".join(f"`{word}`" for word in arguments.strip('"').split("|")) + automatic
    if kind == "Text":
        return "a text" + automatic
    least, greatest = arguments.split(",")
    if kind == "Bytes":
        return f"{size(least)} to {size(greatest)} bytes{automatic}"
    return f"{number(least):,} to {number(greatest):,}{UNITS[kind]}{automatic}"


def table(source):
    """The table in Markdown. Rows below an #ifdef belong to special builds and are left out."""
    common = source.partition("#ifdef")[0]
    found = ROW.findall(common)
    if len(found) != len(re.findall(r"^NEAR_KNOB\(", common, re.M)):
        raise ValueError(f"{TABLE} has a row that dev/knobs.py does not understand")
    rows = [f"| `NEAR_{member.upper()}` | `{default}` | {values(form, default)} | {help} |"
            for member, form, default, help in found]
    return "\n".join(["| variable | default | values | meaning |", "|---|---|---|---|", *rows]) + "\n"


def rendered(page, source):
    """The page with the table that the source asks for."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{PAGE} lacks the marks around the table of knobs")
    return before + BEGIN + table(source) + END + after


def main(root=ROOT):
    path = root / PAGE
    new = rendered(path.read_text(), (root / TABLE).read_text())
    if sys.argv[1:] == ["--write"]:
        path.write_text(new)
    elif path.read_text() != new:
        sys.exit(f"{PAGE}: the table of knobs differs from {TABLE}; run: python3 dev/knobs.py --write")


if __name__ == "__main__":
    main()
