"""Manual pages: every command and subcommand has one, which names every option of the command."""

import re
import shutil

import harness
import pytest

WRAPPERS = ("mpicc", "mpicxx")


def plain(page):
    """The text of a page without its markup, sufficient to search for words."""
    text = re.sub(r"\\f[BRIP]", "", page.read_text()).replace(r"\-", "-")
    return re.sub(r"[\"\\]", " ", re.sub(r"^\.[A-Z]+ ?", "", text, flags=re.M))


def page_of(prefix, name):
    """The installed page of a command; a page that consists of `.so FILE` refers to that file."""
    pages = list((prefix / "share/man").glob(f"man?/{name}.?"))
    assert len(pages) == 1, f"{name} has {len(pages)} manual pages"
    other = re.fullmatch(r"\.so (\S+)\n", pages[0].read_text())
    return prefix / "share/man" / other[1] if other else pages[0]


def subcommands(prefix):
    text = harness.run([prefix / "bin/near", "--help"]).out.partition("Subcommands:\n")[2]
    return re.findall(r"^  (\w+) ", text, re.M)


def options_in(text):
    """Options in the left column of a --help, without dashes, since mpiexec accepts one or two."""
    found = set()
    for line in text.splitlines():
        if left := re.match(r"  ?(-.*?)(?:  |$)", line):
            found |= set(re.findall(r"(?<![\w-])--?([A-Za-z][\w+-]*)", left[1]))
    return found


def unnamed(options, page):
    text = plain(page)
    return sorted(name for name in options if not re.search(rf"(?<![\w-])--?{re.escape(name)}(?![\w-])", text))


def test_every_installed_command_has_a_page(prefix):
    commands = sorted(path.name for path in (prefix / "bin").iterdir())
    assert len(commands) >= 6
    assert not [name for name in commands if not page_of(prefix, name).exists()]


def test_every_option_of_mpiexec_is_in_its_page(prefix):
    options = options_in(harness.run([prefix / "bin/mpiexec", "--help", "all"]).out)
    assert len(options) > 100 and not unnamed(options, page_of(prefix, "mpiexec"))


def test_the_page_of_mpiexec_has_every_variable_that_scripts_may_read(prefix):
    table = (harness.ROOT / "doc/variables.md").read_text().partition("## What each rank finds")[2].partition("\n## ")[0]
    rows = [row for row in re.findall(r"^\| (`.*?) \|", table, re.M) if "NEAR_BOOT_" not in row and "LD_LIBRARY_PATH" not in row]
    names = re.findall(r"`(\w+)`", " ".join(rows))
    assert {"NEAR_RANK", "NEAR_LOCAL_SIZE", "MPI_LOCALRANKID"} <= set(names)
    text = plain(page_of(prefix, "mpiexec"))
    assert not [name for name in names if not re.search(rf"\b{name}\b", text)]


def test_every_subcommand_of_near_has_a_page_with_its_options(prefix):
    names = subcommands(prefix)
    assert {"top", "place", "info"} <= set(names)
    for name in names:
        options = options_in(harness.run([prefix / "bin/near", name, "--help"]).out)
        assert "help" in options and not unnamed(options, page_of(prefix, f"near-{name}")), name


def test_the_page_of_near_names_its_own_options_and_every_subcommand(prefix):
    page = page_of(prefix, "near")
    assert not unnamed(options_in(harness.run([prefix / "bin/near", "--help"]).out), page)
    assert not [name for name in subcommands(prefix) if f"near-{name}" not in plain(page)]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_every_option_of_the_wrappers_is_in_their_page(prefix, wrapper):
    script = (prefix / "bin" / wrapper).read_text()
    cases = re.findall(r"^ +(-[^)\n]*)\) (?:show=yes|echo|compiler=|continue)", script, re.M)
    options = {re.sub(r"[=*]+$", "", word).lstrip("-") for case in cases for word in case.split(" | ")}
    assert {"show", "showme:compile", "cc"} <= options
    assert not unnamed(options, page_of(prefix, wrapper))


def test_the_overview_names_every_page(prefix):
    overview = plain(page_of(prefix, "nearmpi"))
    pages = {path.stem for path in (prefix / "share/man/man1").iterdir()}
    assert not [name for name in pages if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", overview)]


def test_an_option_without_a_line_would_be_noticed(prefix):
    assert unnamed({"once", "no-such-option"}, page_of(prefix, "near-top")) == ["no-such-option"]


def test_the_pages_are_well_formed(prefix):
    if shutil.which("mandoc"):
        command = ["mandoc", "-T", "lint", "-W", "error"]
    elif shutil.which("man") and shutil.which("groff"):
        command = ["man", "--warnings", "-E", "UTF-8", "-l"]
    else:
        pytest.skip("NOT tested here: there is neither mandoc nor man with groff")
    pages = sorted((prefix / "share/man").glob("man?/*"))
    for page in pages:
        # In the folder to which names in .so are relative.
        result = harness.run([*command, page], cwd=prefix / "share/man", env={"MANROFFOPT": "", "MANWIDTH": "200"})
        assert result.status == 0 and not result.err, f"{page.name}: {result.report()}"
