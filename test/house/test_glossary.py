"""The glossary: every term is used, and no retired word is. No source file is too long."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "dev"))
from steps import tracked  # noqa: E402

ROWS = [tuple(cell.strip() for cell in row.strip("|").split("|"))
        for row in (ROOT / "doc/glossary.md").read_text().splitlines() if row.startswith("|")][2:]
SOURCES = [name for folder in ("src", "launch", "tools") for end in ("h", "cpp", "def", "html", "txt")
           for name in tracked(f"{folder}/*.{end}")]
TEXTS = {name: (ROOT / name).read_text() for name in SOURCES}
# What users and developers read. Decisions and the list of changes may name what they replaced; tests and benchmarks have
# words of their own.
OTHERS = {name: (ROOT / name).read_text()
          for name in tracked("*.md", "doc/man/*", "include/near.h", "api/extra.json", "gen/*.py", "examples/*.c")
          if not name.startswith(("bench/", "test/", "doc/adr/", "doc/glossary.md", "CHANGELOG.md"))}
# src/abi/types.h is generated.
SPLIT = {name for name in SOURCES if name.endswith((".h", ".cpp"))} - {"src/abi/types.h"}
MOST_LINES = 400


def uses(word, text):
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", text) is not None


def retired_words(rows=None):
    return [(term, word) for term, _, retired in rows or ROWS for word in re.findall(r"`([^`]+)`", retired)]


def lines_with(word, texts):
    return [f"{name}:{number}" for name, text in texts.items() if uses(word, text)
            for number, line in enumerate(text.splitlines(), 1) if uses(word, line)]


def test_the_terms_are_in_alphabetical_order_and_have_a_meaning():
    terms = [term.lower() for term, meaning, _ in ROWS if meaning]
    assert len(terms) == len(ROWS) and terms == sorted(terms)


@pytest.mark.parametrize("term", [part.strip() for term, _, _ in ROWS for part in term.split(",")])
def test_every_term_is_used(term):
    documents = "\n".join((ROOT / name).read_text() for name in tracked("*.md") if name != "doc/glossary.md")
    text = re.sub("([a-z])([A-Z])", r"\1 \2", documents + "\n".join(TEXTS.values())).replace("_", " ").lower()
    assert re.search(rf"\b{re.escape(term.lower())}s?\b", text), f"{term} is used nowhere"


@pytest.mark.parametrize("term, word", retired_words(), ids=str)
def test_no_retired_word_is_used(term, word):
    found = lines_with(word, TEXTS | OTHERS)
    assert not found, f"say '{term}' instead of '{word}': {', '.join(found[:10])}"


def test_a_retired_word_is_found():
    texts = {"src/a.h": "int gate_count;\nint gate = 0; // the gate\n", "src/b.h": "int aggregate;\n"}
    assert lines_with("gate", texts) == ["src/a.h:2"]


def test_no_source_file_is_too_long():
    long = {name: count for name in SPLIT if (count := TEXTS[name].count("\n")) > MOST_LINES}
    assert not long, f"more than {MOST_LINES} lines: {long}; split them by trade"
