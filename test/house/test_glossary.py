"""The glossary: every term is used, and no retired word is. No source file is too long."""

import functools
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
# Decisions and the list of changes may name what they replaced, recorded results keep the words of their time, and this file
# plants violations.
HISTORY = ("bench/results/", "doc/adr/", "doc/glossary.md", "CHANGELOG.md", "test/house/test_glossary.py")
FOLDERS = ("test", "bench", "dev", "fuzz", "cmake", "gen", "examples", "doc/man")
OTHERS = {name: (ROOT / name).read_text(errors="ignore")
          for name in tracked("*.md", "CMakeLists.txt", "include/near.h", "api/extra.json", *(f"{folder}/*" for folder in FOLDERS))
          if not name.startswith(HISTORY) and not name.endswith(".png") and (ROOT / name).is_file()}
# Retired words in their ordinary meaning: file, word, meaning.
ORDINARY = [
    ("bench/threads.c", "team", "a team of threads, as in OpenMP"),
    ("src/datatype/predefined.cpp", "offer", "the verb"),
    ("test/model/execution.h", "View", "the writes that a thread knows of, as in papers on weak memory models"),
    ("test/mpi/every_poll_lets_others_run.c", "lap", "of a token around all ranks"),
    ("test/mpi/every_poll_lets_others_run.c", "laps", "of a token around all ranks"),
    ("test/test_polls_yield.py", "laps", "of that token"),
]
# src/abi/types.h is generated.
SPLIT = {name for name in SOURCES if name.endswith((".h", ".cpp"))} - {"src/abi/types.h"}
MOST_LINES = 400


@functools.cache
def split(text):
    """In lower case, with underscores between the parts of identifiers: `OpenGate` becomes `open_gate`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text).lower()


def uses(word, text):
    """A word with a capital is looked for as it is, one with an underscore in identifiers only, others everywhere."""
    if not word.islower():
        return re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", text) is not None
    text = split(text) if "_" in word else split(text).replace("_", " ")
    return word in text and re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", text) is not None


def retired_words(rows=None):
    return [(term, word) for term, _, retired in rows or ROWS for word in re.findall(r"`([^`]+)`", retired)]


def lines_with(word, texts):
    return [f"{name}:{number}" for name, text in texts.items() if uses(word, text)
            for number, line in enumerate(text.splitlines(), 1) if uses(word, line)]


def test_the_terms_are_in_alphabetical_order_and_have_a_meaning():
    terms = [term.lower() for term, meaning, _ in ROWS if meaning]
    assert len(terms) == len(ROWS) and terms == sorted(terms)


@functools.cache
def all_words():
    documents = "\n".join((ROOT / name).read_text() for name in tracked("*.md") if name != "doc/glossary.md")
    return re.sub("([a-z])([A-Z])", r"\1 \2", documents + "\n".join(TEXTS.values())).replace("_", " ").lower()


@pytest.mark.parametrize("term", [part.strip() for term, _, _ in ROWS for part in term.split(",")])
def test_every_term_is_used(term):
    assert re.search(rf"\b{re.escape(term.lower())}s?\b", all_words()), f"{term} is used nowhere"


@pytest.mark.parametrize("term, word", retired_words(), ids=str)
def test_no_retired_word_is_used(term, word):
    ordinary = {name for name, excepted, _ in ORDINARY if excepted == word}
    found = lines_with(word, {name: text for name, text in (TEXTS | OTHERS).items() if name not in ordinary})
    assert not found, f"say '{term}' instead of '{word}': {', '.join(found[:10])}"


@pytest.mark.parametrize("name, word, meaning", ORDINARY, ids=str)
def test_every_exception_is_needed(name, word, meaning):
    assert meaning and word in dict(map(reversed, retired_words())) and lines_with(word, {name: (ROOT / name).read_text()})


@pytest.mark.parametrize("word, text, lines", [
    ("gate", "int gate_count;\nint aggregate;\nstruct OpenGate;\n// the gate\nint first_gate2;\nint GATE;", [1, 3, 4, 5, 6]),
    ("head start", "int head_start;\nclass HeadStart;\n// its head start\n// ahead started", [1, 2, 3]),
    ("way_of", "int way_of(int kind);\nint wayOf;\n// by way of example\nint half_way_off;", [1, 2]),
    ("View", "View view;\nstd::string_view text;\nclass StringView;", [1]),
])
def test_a_retired_word_is_found(word, text, lines):
    for name in ("src/a.h", "test/unit/b.cpp", "bench/c.py"):
        assert lines_with(word, {name: text, "src/d.h": "int x;\n"}) == [f"{name}:{line}" for line in lines]


def test_planted_words_are_found_in_every_folder():
    names = {name.split("/")[0] for name in TEXTS | OTHERS}
    assert names >= {"src", "launch", "tools", "gen", "examples", "test", "bench", "dev", "fuzz", "cmake", "doc", "include"}
    for folder in names:
        name = next(name for name in TEXTS | OTHERS if name.split("/")[0] == folder)
        planted = (TEXTS | OTHERS) | {name: (TEXTS | OTHERS)[name] + "\nint ticket_count;\n"}
        assert len(lines_with("ticket", planted)) == 1


def test_no_source_file_is_too_long():
    long = {name: count for name in SPLIT if (count := TEXTS[name].count("\n")) > MOST_LINES}
    assert not long, f"more than {MOST_LINES} lines: {long}; split them by trade"
