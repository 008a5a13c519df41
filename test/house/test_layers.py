"""Plants each kind of layer violation in a copy of the tree; the compiler, linker or script must refuse it."""

import shutil
import subprocess
import sys

import pytest
from harness import ROOT, run

sys.path.insert(0, str(ROOT / "dev"))
from check_layers import Layers  # noqa: E402

LAYERS = Layers(ROOT)


def copy_tree(target):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True, capture_output=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and name.split("/")[0] in ("src", "cmake", "CMakeLists.txt", "VERSION", "doc"):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


@pytest.fixture
def tree(tmp_path):
    return copy_tree(tmp_path / "tree")


def script_says(tree):
    result = run([sys.executable, ROOT / "dev/check_layers.py", "--root", tree])
    return result.status, result.out


def of_planted(out):
    """The script's lines about the planted file only, since the tree itself may have violations."""
    return [row for row in out.splitlines() if row.startswith("src/base/planted.h:")]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A copy of the tree with one small file in each of four layers, one of them for the programs; configured once."""
    tree = copy_tree(tmp_path_factory.mktemp("small"))
    for path in (tree / "src").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    for layer, function in (("base", "low"), ("os", "high"), ("place", "outside"), ("coll", "above")):
        text = f"namespace near::{layer} {{ int {function}(); }}\n"
        folder = tree / LAYERS.folder(layer)
        folder.mkdir(parents=True)
        (folder / "this.h").write_text("#pragma once\n" + text)
        (folder / "this.cpp").write_text(f'#include "{layer}/this.h"\n' + text.replace("; }", " { return 1; } }"))
    (tree / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(small CXX)\nset(CMAKE_CXX_STANDARD 20)\n"
        "add_library(near_flags INTERFACE)\ninclude(cmake/Layers.cmake)\nnear_read_layers()\n"
        "foreach(layer IN LISTS NEAR_LAYERS)\n  near_add_layer(${layer})\n  near_add_link_check(${layer})\n"
        "endforeach()\n")
    build = tree / "build"
    result = run(["cmake", "-G", "Ninja", "-S", tree, "-B", build])
    assert result.status == 0, result.report()
    assert run(["cmake", "--build", build]).status == 0

    def with_line(layer, line, target):
        source = tree / LAYERS.folder(layer) / "this.cpp"
        before = source.read_text()
        source.write_text(before + line)
        result = run(["cmake", "--build", build, "--target", target])
        source.write_text(before)
        return result

    return with_line


def test_the_tree_keeps_the_rules():
    status, out = script_says(ROOT)
    assert status == 0, out


def test_a_lower_layer_may_be_included(small):
    line = '\n#include "base/this.h"\nint twice() { return near::base::low() * 2; }\n'
    assert small("os", line, "links_os").status == 0


def test_an_upward_include_is_file_not_found(small):
    result = small("base", '\n#include "os/this.h"\n', "near_base")
    assert result.status != 0 and "os/this.h: No such file or directory" in result.text, result.report()


def test_an_upward_call_by_a_hand_declared_prototype_does_not_link(small):
    line = "\nnamespace near::os { int high(); }\nint up() { return near::os::high(); }\n"
    result = small("base", line, "links_base")
    assert result.status != 0 and "undefined reference to `near::os::high()'" in result.text, result.report()


def test_a_layer_of_a_program_sees_lower_layers(small):
    line = '\n#include "base/this.h"\nint twice() { return near::base::low() * 2; }\n'
    assert small("place", line, "links_place").status == 0


def test_a_higher_layer_of_the_library_does_not_see_a_layer_of_a_program(small):
    result = small("coll", '\n#include "place/this.h"\n', "near_coll")
    assert result.status != 0 and "place/this.h: No such file or directory" in result.text, result.report()
    line = "\nnamespace near::place { int outside(); }\nint down() { return near::place::outside(); }\n"
    result = small("coll", line, "links_coll")
    assert result.status != 0 and "undefined reference to `near::place::outside()'" in result.text, result.report()


@pytest.mark.parametrize("line, complaint", [
    ('#include "../os/this.h"', "goes round the include roots"),
    ('#include "/usr/include/hwloc.h"', "goes round the include roots"),
    ("#include <../src/os/this.h>", "goes round the include roots"),
    ('#define WHERE "os/this.h"\n#include WHERE', "must name its file plainly"),
    ('#include "this.h"', "does not belong to a layer"),
    ("#include <transport/transport.h>", "base may not include transport"),
    ('#include "segment/segment.h"', "base may not include segment"),
    ("#include <sys/mman.h>", "system calls are wrapped in os/"),
    ("#include <linux/futex.h>", "system calls are wrapped in os/"),
    ("#include <hwloc.h>", "hwloc is used in topo/ only"),
    ("#include <rdma/fabric.h>", "libfabric is used in ofi/ only"),
    ("#include <atomic>", "atomics are reached through base/atomic.h only"),
    ("std::atomic<int> planted;", "atomics are reached through base/atomic.h only"),
    ("int planted() { return MPI_Barrier(comm); }", "nothing under src/ refers to MPI_"),
    ("void planted() { flag.store_release(1); }", "needs a comment 'SYNC: name'"),
    ("void planted() { flag.store_release(1); /* SYNC: planted */ }", "SYNC: planted is released here and acquired"),
    ("int planted() { return flag.load_acquire(); } // SYNC: planted", "SYNC: planted is acquired here and released"),
    ("void planted() { flag.add_release(1); }", "needs a comment 'SYNC: name'"),
    ("void planted() { flag.bump_release(1); }", "needs a comment 'SYNC: name'"),
    ("void planted() { flag.xor_acq_rel(1); }", "needs a comment 'SYNC: name'"),
    ("void planted() { Atomics::fence_store_load(); }", "a fence needs a comment 'SYNC: name'"),
    ("void planted() { Atomics::compiler_fence(); } // SYNC: planted", "SYNC: planted is fenced here and nowhere"),
    ("int planted(); // SYNC: planted", "SYNC: planted stands at no acquire, release or fence"),
])
def test_the_script_refuses(tree, line, complaint):
    (tree / "src/base/planted.h").write_text(f"#pragma once\n{line}\n")
    status, out = script_says(tree)
    assert status == 1 and any(complaint in row for row in of_planted(out)), out


@pytest.mark.parametrize("layer, line, refused", [
    ("p2p", "void planted(void* to, void* from) { std::memcpy(to, from, 9); }", True),
    ("datatype", "void planted(void* to, void* from) { memmove(to, from, bytes_of(to)); }", True),
    ("transport", "void planted(void* to, void* from) {\n  std::memcpy(to,\n  from, sizeof (int)); }", True),
    ("p2p", "void planted(int& to, void* from) { std::memcpy(&to, from, sizeof to); }", False),
    ("copy", "void planted(void* to, void* from) { std::memcpy(to, from, 9); }", False),
])
def test_payload_is_copied_in_one_layer(tree, layer, line, refused):
    (tree / f"src/{layer}/planted.h").write_text(f"#pragma once\n{line}\n")
    _, out = script_says(tree)
    assert (f"src/{layer}/planted.h:" in out and "payload is copied by copy/raw.h" in out) == refused, out


@pytest.mark.parametrize("path, line, complaint", [
    ("mpi/planted.h", '#include "segment/segment.h"', "segment/segment.h is a detail of segment"),
    ("mpi/planted.h", "auto& planted() { return transport::job_segment(); }", "job_segment is a detail of segment"),
    ("comm/planted.h", '#include "shm/shm.h"', "shm/ is a detail of shm"),
    ("coll/planted.h", "void planted(shm::MessageHeader& header);", "shm:: is a detail of shm"),
    ("rma/planted.h", '#include "queue/lane.h"', "queue/ is a detail of queue"),
    ("io/planted.h", "using namespace near::queue;", "queue:: is a detail of queue"),
    ("comm/planted.h", "namespace q = near::shm;", "shm:: is a detail of shm"),
    ("comm/planted.h", "int planted() { return memory::space().segment.rows(); }", "space().segment is a detail of segment"),
    ("p2p/planted.h", '#include "shm/shm.h"', "shm/ is a detail of shm"),
    ("coll/shared/planted.h", '#include "segment/segment.h"', None),
    ("mpi/planted.h", "segment::Location planted();", None),
    ("mpi/planted.h", "int planted(); // as shm::start() does", None),
    ("shm/planted.h", '#include "queue/lane.h"', None),
])
def test_details_of_transports_and_the_segment_stay_below(tree, path, line, complaint):
    (tree / "src" / path).parent.mkdir(exist_ok=True)
    (tree / "src" / path).write_text(f"#pragma once\n{line}\n")
    rows = [row for row in script_says(tree)[1].splitlines() if row.startswith(f"src/{path}:")]
    assert any(complaint in row for row in rows) if complaint else not rows, rows


def test_a_structure_without_a_page_is_refused(tree):
    (tree / "src/queue/planted.h").write_text("// See doc/queue/planted.md.\n#pragma once\n")
    status, out = script_says(tree)
    assert status == 1 and "src/queue/planted.h:1: names no page of doc/queue that exists" in out, out


def test_a_label_that_the_page_of_its_structure_leaves_out_is_refused(tree):
    page = tree / "doc/queue/doorbell.md"
    page.write_text(page.read_text().replace("`asleep`", "..."))
    status, out = script_says(tree)
    assert status == 1 and "doc/queue/doorbell.md says nothing of `asleep`" in out, out


def test_layers_of_equal_number_do_not_see_each_other(tree):
    (tree / "src/queue").mkdir(exist_ok=True)
    (tree / "src/queue/planted.h").write_text('#pragma once\n#include "segment/segment.h"\n')
    status, out = script_says(tree)
    assert status == 1 and "queue may not include segment" in out, out


@pytest.mark.parametrize("folder, complaint", [
    ("src/coll", "coll may not include place"),
    ("launch", "launch may not include place"),
    ("launch/machines", "machines may not include place"),
])
def test_a_layer_of_one_program_is_not_seen_by_others(tree, folder, complaint):
    (tree / folder).mkdir(parents=True, exist_ok=True)
    (tree / folder / "planted.h").write_text('#pragma once\n#include "place/snapshot.h"\n')
    status, out = script_says(tree)
    assert status == 1 and f"{folder}/planted.h:2: {complaint}" in out, out


def test_a_labelled_pair_passes(tree):
    (tree / "src/base/planted.h").write_text(
        "#pragma once\n// SYNC: planted\nvoid give() { flag.store_release(1); }\n"
        "void take() {\n  // Sees what give() wrote. SYNC: planted\n  while (flag.load_acquire() == 0) {}\n}\n")
    assert not of_planted(script_says(tree)[1])


def test_a_stale_diagram_is_refused_and_rendered_anew(tree):
    page = tree / "doc/architecture.md"
    page.write_text(page.read_text().replace("[   base    ]", "[   bass    ]"))
    assert "doc/architecture.md" in script_says(tree)[1]
    run([sys.executable, ROOT / "dev/check_layers.py", "--root", tree, "--write"])
    assert "doc/architecture.md" not in script_says(tree)[1]


def test_every_folder_under_src_is_a_layer():
    folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    assert folders <= set(LAYERS.numbers)
