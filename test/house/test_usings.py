"""Using declarations have a use: clang-tidy, which looks at several files at once, does not see that."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DECLARATION = re.compile(r"^\s*using (?:\w*::)*(\w+);$|^\s*using (\w+) = ", re.MULTILINE)


def unused_in(text):
    """The names that a using declaration or an alias introduces and nothing else in the text mentions."""
    text = re.sub(r"//.*", "", text)
    names = [one or other for one, other in DECLARATION.findall(text)]
    return [name for name in names if len(re.findall(rf"\b{name}\b", DECLARATION.sub("", text))) == 0]


@pytest.mark.parametrize("folder", ["src", "launch", "tools"])
def test_every_using_declaration_of_a_source_file_is_used(folder):
    unused = {str(path.relative_to(ROOT)): names for path in sorted((ROOT / folder).rglob("*.cpp")) if (names := unused_in(path.read_text()))}
    assert not unused


def test_an_unused_one_is_found():
    assert unused_in("using a::Used;\nusing b::Unused;\nusing Alias = int;\nUsed one; // Unused\n") == ["Unused", "Alias"]
