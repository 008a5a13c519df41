"""The documents: links have targets, and quotations from the sources are right."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "dev"))
import knobs  # noqa: E402
from steps import tracked  # noqa: E402

DOCUMENTS = tracked("*.md")
SOURCES = [ROOT / name for name in tracked("src/*.cpp", "src/*.h", "launch/*.cpp", "launch/*.h", "tools/*.cpp", "tools/*.h")]
VARIABLE = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|PATH|HOME"


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def anchors(text):
    """The anchors of the headings, as code hosting sites make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def dead_links(name, text, root=ROOT):
    """Relative links of a document to files or headings that do not exist."""
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        file = (root / name).parent / path if path else root / name
        if not file.exists() or (heading and file.suffix == ".md" and heading not in anchors(file.read_text())):
            dead.append(target)
    return dead


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_somewhere(name):
    assert not dead_links(name, (ROOT / name).read_text())


def test_dead_links_are_seen(tmp_path):
    (tmp_path / "there.md").write_text("# A heading, with `code`\n")
    text = "[a](there.md) [b](there.md#a-heading-with-code) [c](gone.md) [d](there.md#gone) [e](https://e.org/x) `[f](f.md)`"
    assert dead_links("page.md", text, tmp_path) == ["gone.md", "there.md#gone"]


# ---- doc/variables.md ------------------------------------------------------------------------------------

def test_the_table_of_knobs_is_that_of_the_sources():
    page, source = (ROOT / knobs.PAGE).read_text(), (ROOT / knobs.TABLE).read_text()
    assert page == knobs.rendered(page, source), "run: python3 dev/knobs.py --write"


def test_a_new_knob_would_be_missed():
    page, source = (ROOT / knobs.PAGE).read_text(), (ROOT / knobs.TABLE).read_text()
    assert knobs.rendered(page, 'NEAR_KNOB(new, Flag, "0", "help")\n' + source) != page


def variables_of_sources():
    """Names of variables in string literals. Constants of the system and of MPI are recognised by their names."""
    names = set()
    for path in SOURCES:
        names |= set(re.findall(rf'"({VARIABLE})=?"', path.read_text()))
    standard = (ROOT / "include/mpi.h").read_text()
    return {name for name in names if not re.match(r"O_|MPOL_|PR_|RLIMIT_|SIG", name) and not re.search(rf"\b{name}\b", standard)}


def test_the_page_of_variables_has_every_variable_that_is_read_or_set():
    page = (ROOT / knobs.PAGE).read_text()
    found = variables_of_sources()
    assert {"NEAR_BOOT_RANK", "MPIEXEC_TIMEOUT", "HOME"} <= found
    missing = sorted(name for name in found if f"`{name}`" not in page and f"`{name}=" not in page)
    assert not missing, f"doc/variables.md says nothing of {missing}"


def test_the_page_of_variables_has_no_others():
    page = (ROOT / knobs.PAGE).read_text()
    known = variables_of_sources() | set(re.findall(r"`(NEAR_\w+)`", knobs.table((ROOT / knobs.TABLE).read_text())))
    known |= set(re.findall(VARIABLE, (ROOT / "src/mpi/wrapper/CMakeLists.txt").read_text()))  # the compilers to call
    named = set(re.findall(rf"`({VARIABLE})(?:=[^`]*)?`", page))
    constants = set(re.findall(r"\bMPI_[A-Z_]+\b", (ROOT / "include/mpi.h").read_text()))
    assert not named - known - constants


# ---- doc/troubleshooting.md ------------------------------------------------------------------------------

def literals():
    """All string literals of the sources; adjacent ones are joined."""
    text = "\n".join(path.read_text() for path in SOURCES)
    text = re.sub(r'"\s*\n\s*"', "", text)
    return [re.sub(r'\\(["\\])', r"\1", literal) for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)]


def quoted(page):
    """The messages in the first columns of the tables, except for other programs' messages and names of variables."""
    packets = [packet for row in re.findall(r"^\| (.*?) \|", page, re.M) for packet in re.findall(r"`([^`]*)`", row)]
    return [packet for packet in packets if " " in packet and not packet.startswith(("libmpi.so", "MPI_", "/"))]


def unsaid(message, said):
    """The parts of a message between ellipses that are in no literal; `{}` in a literal also separates parts."""
    pieces = [piece.strip(" :;,()'") for piece in message.split("...")]
    return [piece for piece in pieces if len(piece) > 3 and not any(piece in literal for literal in said)]


def test_every_quoted_message_is_one_of_ours():
    messages, said = quoted((ROOT / "doc/troubleshooting.md").read_text()), "\n".join(literals()).replace("{}", "...")
    assert len(messages) > 25
    wrong = {message: left for message in messages if (left := unsaid(message, [said]))}
    assert not wrong, f"doc/troubleshooting.md quotes what the sources do not say: {wrong}"


def test_a_message_that_nobody_says_would_be_noticed():
    assert unsaid("the moon is ... of cheese", ["the moon is {} of chalk"]) == ["of cheese"]


# ---- the rest --------------------------------------------------------------------------------------------

def test_the_changelog_begins_with_what_is_unreleased_and_has_the_present_version():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    version = (ROOT / "VERSION").read_text().strip()
    assert headings[0] == "Unreleased" and any(heading.split()[0] == version for heading in headings[1:])


def test_the_files_that_documents_name_exist():
    """Paths from the repository's root in code; a prefix such as `doc/adr/0014` suffices, NAME is a placeholder."""
    files, missing = tracked(), []
    folders = "api|bench|dev|doc|examples|fuzz|gen|include|launch|src|test|tools"
    for name in DOCUMENTS:
        for path in re.findall(rf"`((?:{folders})/[\w./+-]+)(?=[`\s])", (ROOT / name).read_text()):
            if "NAME" not in path and not any(file.startswith(path) for file in files):
                missing.append(f"{name}: {path}")
    assert not missing


def test_the_laboratory_knows_the_present_layout_of_the_segment():
    """It reads the segment by itself and refuses other versions, but only after minutes of emulation."""
    header, checker = ((ROOT / name).read_text() for name in ("src/segment/segment.h", "test/numa/placement.h"))
    assert re.search(r"known_version = (\d+)", checker)[1] == re.search(r"layout_version = (\d+);", header)[1]
