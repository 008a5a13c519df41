"""Tests of the generator."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import declarations
import entries
import generate
import import_standard
import pytest
import scan
from entry import Entry
from model import ROOT, Surface


@pytest.fixture(scope="module")
def surface():
    return Surface()


def test_the_surface_has_664_functions_in_known_chapters(surface):
    names = [f.form_name(large) for f, large in surface.forms()]
    assert len(names) == len(set(names)) == 664 and names == sorted(names)
    assert {f.chapter for f in surface.functions} <= {number for number, _ in surface.chapters()}


def test_the_committed_function_table_is_what_the_standards_package_says(surface):
    text, _, total = import_standard.imported()
    assert total == 664
    assert (ROOT / "api/functions.json").read_text() == text


def test_the_committed_headers_and_export_map_are_what_the_data_says(surface):
    for name, text in generate.committed_files(surface).items():
        assert (ROOT / name).read_text() == text, f"{name}: run gen/generate.py committed"


def test_every_name_in_our_own_table_exists(surface):
    shorts = {f.short for f in surface.functions}
    for names in surface.extra["deprecated"].values():
        assert set(names) <= shorts
    for key, table in surface.extra.items():
        if key == "sides":
            assert set(table) - {"about"} <= shorts
        elif isinstance(table, dict) and "names" in table:
            bare = {name.partition(".")[0] for name in table["names"] if not set(name) & set("*?[")}
            assert bare <= shorts, (key, bare - shorts)


def test_only_definitions_in_the_implementations_namespace_count():
    text = """
    namespace near::mpi::impl {
Result Send(const void* buf,
            int tag) {
  return {};
}
Result Recv(void* buf);
  Result Indented(int) {}
double Wtime() { return 0; }
}
"""
    assert scan.defined_in(text) == {"Send", "Wtime"}
    assert scan.defined_in(text.replace("namespace near::mpi::impl", "namespace near::other")) == set()


def test_a_function_that_is_defined_twice_is_refused(surface, tmp_path):
    for name in ("a.cpp", "b.cpp"):
        (tmp_path / name).write_text("namespace near::mpi::impl {\nResult Send(int) { return {}; }\n}\n")
    with pytest.raises(SystemExit, match="Send is defined in both"):
        scan.implemented(tmp_path.glob("*.cpp"), surface)


def test_what_is_not_implemented_says_so(surface):
    index_of = {f.form_name(large): i for i, (f, large) in enumerate(surface.forms(), start=1)}
    text = entries.entries_cpp(surface, 3, "x", {"Send"}, index_of)
    assert "impl::Send(" in text and "impl::Recv(" not in text
    others = [f for f, _ in surface.forms() if f.chapter == 3 and f.short != "Send"]
    assert text.count("return call.unsupported();") == len(others)


def test_a_file_whose_text_stays_is_not_touched(tmp_path):
    path = tmp_path / "x"
    assert generate.write_if_changed(path, "a") and not generate.write_if_changed(path, "a")
    assert generate.write_if_changed(path, "b")


def test_entry_points_of_functions_to_come_compile_too(surface, tmp_path):
    """Generates all 664 as if they were implemented, so that wrong rules are found before a function is written."""
    done = {f.short for f in surface.functions if not f.short.startswith("T_")}
    files = generate.build_files(surface, done)
    for name, text in files.items():
        generate.write_if_changed(tmp_path / name, text)
    flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror",
             '-DNEAR_VERSION="0"', f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", f"-I{tmp_path / 'mpi_root'}",
             f"-I{tmp_path / 'surface_root'}"]

    def compile_one(name):
        return subprocess.run(["g++", *flags, tmp_path / name], capture_output=True, text=True, timeout=300)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(compile_one, [name for name in files if name.startswith("entries/")]):
            assert result.returncode == 0, result.stderr[-4000:]


def test_one_description_implements_the_three_forms_of_a_collective(surface, tmp_path):
    assert {"Barrier", "Alltoallw", "Neighbor_allgather"} <= surface.collectives
    assert not {"Send", "Ibarrier", "Barrier_init", "Sendrecv"} & surface.collectives
    text = "namespace near::mpi::impl {\nResult Scan_call(int count) {\n}\nResult Send_call() {\n}\n}\n"
    path = tmp_path / "scan.cpp"
    path.write_text(text)
    assert scan.implemented([path], surface) == {"Scan", "Iscan", "Scan_init"}
    by_verb = {"Scan": "run(described, *comm_object)", "Iscan": "start(described, *comm_object, request_object)",
               "Scan_init": "prepare(described, *comm_object, request_object)"}
    for function in surface.functions:
        if function.short in by_verb:
            body = "\n".join(entries.EntryPoint(Entry(function, surface)).body(False, 1))
            assert "NEAR_CHECK(impl::Scan_call(" in body and f"coll::{by_verb[function.short]})" in body
            assert ("*request = " in body) == (function.short != "Scan"), "the program gets its request"
    assert declarations.impl_h(surface).count("Result Scan_call(") == 1 and "Result Iscan(" not in declarations.impl_h(surface)
