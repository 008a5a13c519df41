"""The commands of README.md as one bash script, in order.

    test/tour.py                          the blocks that take seconds, on an existing installation
    test/tour.py --all                    every block, including make and mpi4py's build (test/fresh/run)
    test/tour.py --all --without WORDS    every block without the lines that consist of these words, such as "make test"

README.md marks its code blocks by the words after the three backticks: `sh` are commands; `sh long` are commands that
take minutes or change the system; `text` is the output of the commands above. The script stops at the first command that
fails and names its block. After each block it prints how long the block took; with --all also the processor time of all
commands so far and the size of build/, which are the figures in README.md.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
KINDS = ("sh", "sh long", "text")


@dataclass
class Block:
    """A code block: its first line in the document (from 1), the words after the backticks, and the text."""

    line: int
    kind: str
    text: str


def blocks(document):
    """The code blocks of a document in Markdown, in order."""
    found, open_at, kind, lines = [], 0, "", []
    for number, line in enumerate(document.splitlines(), 1):
        fence = re.match(r"```(.*)$", line)
        if fence and open_at:
            found.append(Block(open_at, kind, "".join(f"{row}\n" for row in lines)))
            open_at = 0
        elif fence:
            open_at, kind, lines = number + 1, fence[1].strip(), []
        elif open_at:
            lines.append(line)
    if open_at:
        raise ValueError(f"the code block that begins in line {open_at} has no end")
    return found


# `times` covers the children of the shell that have ended; in a subshell there would be none.
FIGURES = ("times >build/tour.times; "
           "echo \"==== so far: processors $(tail -n 1 build/tour.times), build/ $(du -sm build | cut -f 1) MB\"")


def script(chosen, without=(), figures=False):
    """A bash script that shows and runs the commands of `chosen`, without the lines that are in `without`."""
    rows = ["set -eEo pipefail",
            """trap 'status=$?; echo "==== FAILED (status $status): $BLOCK: $BASH_COMMAND" >&2; exit $status' ERR"""]
    for block in chosen:
        lines = [line for line in block.text.splitlines() if line.partition("#")[0].strip() not in without]
        if not lines:
            continue
        shown = "".join(f"$ {line}\n" for line in lines)
        rows += [f"BLOCK=README.md:{block.line}", "began=$SECONDS", "echo; echo \"==== $BLOCK\"",
                 f"cat <<'END OF BLOCK'\n{shown}END OF BLOCK", *lines,
                 "echo \"==== $BLOCK took $((SECONDS - began)) s\"", *([FIGURES] if figures else [])]
    return "\n".join([*rows, "echo '==== the tour is over'"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every block, also those that take minutes")
    parser.add_argument("--without", action="append", default=[], metavar="WORDS", help="leave this command out")
    options = parser.parse_args()
    wanted = [block for block in blocks(README.read_text())
              if block.kind == "sh" or (options.all and block.kind == "sh long")]
    commands = {line.partition("#")[0].strip() for block in wanted for line in block.text.splitlines()}
    if unknown := set(options.without) - commands:
        sys.exit(f"tour: README.md has no command '{unknown.pop()}'")
    sys.stdout.write(script(wanted, options.without, options.all))


if __name__ == "__main__":
    main()
