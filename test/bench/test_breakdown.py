"""bench/breakdown: how callgrind's file is read, and which part of a call an instruction is attributed to."""

import re
import sys

import harness
import pytest

sys.path.insert(0, str(harness.ROOT / "bench"))
from driver import breakdown, callgrind, parts, type_text  # noqa: E402
from driver.callgrind import Place  # noqa: E402
from driver.libraries import build, nearmpi  # noqa: E402

LIBRARY = "/somewhere/libnearmpi.so.1.0.0"

# Two functions: the second is inlined code of two headers, and calls the first. Names are given once and then by number.
PROFILE = """version: 1
events: Ir Dr D1mr
ob=(1) /somewhere/libnearmpi.so.1.0.0
fl=(1) /tree/build/lines/../../src/datatype/move.cpp
fn=(1) near::datatype::pack_gaps
10 5 2
+3 1

fn=(2) near::shm::send_eager
20 7 1 1
fi=(2) /tree/build/lines/roots/copy/copy/small.h
31 100 50 10
fe=(1)
cfn=(1)
calls=3 10
21 6000 2000 100
* 3
cob=(2) /lib/libc.so.6
cfi=(3) ???
cfn=(3) memcpy
calls=1 0
22 900

ob=(2)
fl=(3)
fn=(3)
0 9 4

totals: 125 57 11
"""


def test_a_profile_is_attributed_to_the_files_of_inlined_code():
    costs, events = callgrind.costs(PROFILE)
    assert events == ["Ir", "Dr", "D1mr"]
    move, small = "/tree/build/lines/../../src/datatype/move.cpp", "/tree/build/lines/roots/copy/copy/small.h"
    send = "near::shm::send_eager"
    assert costs == {
        Place(LIBRARY, move, "near::datatype::pack_gaps", move): [6, 2, 0],
        Place(LIBRARY, move, send, move): [10, 1, 1],
        Place(LIBRARY, small, send, move): [100, 50, 10],
        Place("/lib/libc.so.6", "???", "memcpy", "???"): [9, 4, 0],
    }
    assert sum(values[0] for values in costs.values()) == 125, "nothing is lost, and calls are not counted twice"


def part(file="???", function="f", function_file="???", where=LIBRARY):
    return parts.part_of(Place(where, file, function, function_file))


@pytest.mark.parametrize("file, expected", [
    ("/t/build/lines/../../src/datatype/move.cpp", parts.ADDRESSES),
    ("/t/build/lines/roots/datatype/datatype/walk.h", parts.ADDRESSES),
    ("/t/build/lines/roots/copy/copy/strided_kernel.h", parts.COPYING),
    ("/t/build/lines/roots/queue/queue/lane.h", parts.BUFFERING),
    ("/t/src/shm/packet_train.cpp", parts.BUFFERING),
    ("/t/src/shm/rendezvous.cpp", parts.PROTOCOL),
    ("/t/build/lines/roots/shm/shm/tuner.h", parts.PROTOCOL),
    ("/t/build/lines/roots/p2p/p2p/fast.h", parts.PROTOCOL),
    ("/t/build/lines/generated/entries/chapter_03.cpp", parts.PROTOCOL),
    ("/usr/src/near/build/lines/../../src/copy/avx2.cpp", parts.COPYING),
    ("/t/src/new_layer/file.cpp", parts.OTHER),
    ("/home/somebody/program.c", parts.OTHER),
])
def test_a_source_file_belongs_to_a_part(file, expected):
    assert part(file, function_file="/t/src/mpi/send.cpp") == expected


def test_every_file_of_the_library_belongs_to_a_part():
    files = [path for suffix in ("cpp", "h") for path in (harness.ROOT / "src").rglob(f"*.{suffix}")]
    assert len(files) > 200
    lost = [path for path in files if part(str(path), function_file=str(path)) == parts.OTHER]
    assert not lost, f"add their layer to bench/driver/parts.py: {lost}"


def test_helpers_count_for_what_they_were_inlined_into():
    atomic, vector = "/usr/include/c++/12/bits/atomic_base.h", "/usr/include/c++/12/bits/stl_vector.h"
    assert part(atomic, function_file="/t/src/queue/lane.h") == parts.BUFFERING
    assert part("/t/src/base/atomic.h", function_file="/t/src/p2p/send.cpp") == parts.PROTOCOL
    grown = "void std::vector<near::datatype::Piece, std::allocator<near::datatype::Piece> >::_M_realloc_insert<near::datatype::Piece>()"
    assert part(vector, grown, vector) == parts.ADDRESSES
    assert part(vector, "void std::vector<int>::resize()", vector) == parts.OTHER
    assert part("/t/src/base/knob.cpp", "near::base::knobs()", "/t/src/base/knob.cpp") == parts.PROTOCOL


def test_the_c_library_is_known_by_function():
    libc = "/usr/lib/x86_64-linux-gnu/libc.so.6"
    assert part(function="__memcpy_avx_unaligned_erms", where=libc) == parts.COPYING
    assert part(function="clock_gettime@@GLIBC_2.17", where=libc) == parts.PROTOCOL
    assert part(function="qsort", where=libc) == parts.OTHER
    assert part(function="pack_doubles", where="/t/build/bench/abi/typed") == parts.COPYING


EVENTS = ["Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw"]
COPY = Place(LIBRARY, "/t/src/copy/copy.cpp", "near::copy::copy", "/t/src/copy/copy.cpp")
SEND = Place(LIBRARY, "/t/src/mpi/send.cpp", "MPI_Send", "/t/src/mpi/send.cpp")
LOST = Place("/lib/libm.so.6", "???", "cosine", "???")
ONCE = Place(LIBRARY, "/t/src/shm/start.cpp", "near::shm::start", "/t/src/shm/start.cpp")


def typed_costs():
    few = {COPY: [1000, 400, 300, 9, 20, 10, 9, 4, 2], SEND: [500, 0, 0, 0, 0, 0, 0, 0, 0], ONCE: [7, 1, 1, 0, 0, 0, 0, 0, 0]}
    many = {COPY: [3000, 900, 500, 99, 40, 20, 99, 8, 4], SEND: [1000, 0, 0, 0, 0, 0, 0, 0, 0], ONCE: [7, 1, 1, 0, 0, 0, 0, 0, 0],
            LOST: [20, 0, 0, 0, 0, 0, 0, 0, 0]}
    return breakdown.of_one_call(few, many, EVENTS, 10)


def test_what_n_and_2n_calls_share_drops_out():
    made = typed_costs()
    assert dict(made.of) == {parts.COPYING: [200, 50, 20, 3, 0.6], parts.PROTOCOL: [50, 0, 0, 0, 0], parts.OTHER: [2, 0, 0, 0, 0]}
    assert made.total() == [252, 50, 20, 3, 0.6]
    assert made.places[parts.COPYING] == {"src/copy/copy.cpp": 200}


def test_what_no_part_has_is_named():
    text = "\n".join(breakdown.table("send", {"typed": typed_costs()}, 8))
    assert re.search(r"^  other  +2\.00 ", text, re.MULTILINE)
    assert "other: cosine in libm.so.6 (2.00)" in text
    assert "added by the datatype" not in text


def test_a_table_has_a_call_and_a_byte_and_what_the_datatype_adds():
    by_hand = breakdown.of_one_call({}, {COPY: [2000, 0, 0, 0, 0, 0, 0, 0, 0]}, EVENTS, 10)
    lines = breakdown.table("recv", {"typed": typed_costs(), "by-hand": by_hand}, 8)
    assert lines[0].split() == ["MPI_Recv", "per", "call", "|", "per", "byte"]
    copying, added = (next(line for line in lines if name in line).split() for name in ("copying", "added"))
    assert copying == ["copying", "200", "50.0", "20.0", "3.00", "0.600", "|", "25.0", "6.25", "2.50", "0.375", "0.0750"]
    assert added[4:6] == ["52.0", "50.0"]
    assert "other" not in "".join(breakdown.table("send", {"by-hand": by_hand}, 8))


def test_counters_are_shown_and_missing_ones_are_named_with_the_reason():
    shown = breakdown.counters({"instructions": 123.4, "cycles": 0.5},
                               {"L1D-loads": "not here", "LLC-misses": "not here", "dTLB-load-misses": "forbidden"})
    assert shown == ["hardware counters, without valgrind, per call: instructions 123, cycles 0.500",
                     "no hardware counters for L1D-loads, LLC-misses: not here", "no hardware counters for dTLB-load-misses: forbidden"]
    assert breakdown.counters({}, {}) == []


def test_a_datatype_becomes_words():
    assert type_text.prefix_words("vector(8, 1, 16, double)") == "vector 8 1 16 MPI_DOUBLE"
    assert type_text.prefix_words("indexed([2,1],[0,5],int)") == "indexed 2 2 1 0 5 MPI_INT"
    assert type_text.prefix_words("indexed_block(1, [0, 3, 4], MPI_FLOAT)") == "indexed_block 3 1 0 3 4 MPI_FLOAT"
    nested = "resized(-4, 64, subarray([8, 8], [2, 3], [1, 1], contiguous(2, unsigned_int)))"
    assert type_text.prefix_words(nested) == "resized -4 64 subarray 2 8 8 2 3 1 1 contiguous 2 MPI_UNSIGNED"


@pytest.mark.parametrize("text, said", [
    ("vectr(8, 1, 16, double)", "there is no type 'vectr'; did you mean vector?"),
    ("vector(8, 1, double)", "vector takes 4 arguments, not 3"),
    ("vector(8, one, 16, double)", "a whole number of 32 bits is expected where 'one' stands"),
    ("vector(8, 1, 4294967296, double)", "a whole number of 32 bits is expected"),
    ("indexed([1], [1, 2], int)", "the lists of indexed must be equally long, but have 1 and 2 numbers"),
    ("indexed(1, [1, 2], int)", "a list of whole numbers of 32 bits, such as [0, 5], is expected where '1' stands"),
    ("7", "a datatype is expected where '7' stands"),
    ("vector(8, 1", "it has to look like vector(1000, 1, 16, double)"),
])
def test_a_wrong_datatype_is_refused_with_what_is_expected(text, said):
    with pytest.raises(type_text.Misunderstood, match=re.escape(said)):
        type_text.prefix_words(text)


def run(*options, timeout=120):
    return harness.run([sys.executable, harness.ROOT / "bench/breakdown", *options], timeout=timeout)


@pytest.mark.parametrize("options, said", [
    (["--type", "vector(8)"], "vector takes 4 arguments"),
    (["--prefix", "/nowhere"], "there is no installation in /nowhere: run `make build`"),
    (["--library", "/nowhere"], "there is no libmpi_abi.so.1 in /nowhere"),
])
def test_wrong_options_are_refused_before_anything_runs(prefix, options, said):
    result = run("--prefix", prefix, *options)
    assert result.status == 1 and said in result.err, result.report()
    assert not result.out, result.report()


@pytest.mark.parametrize("words, said", [
    ("vector -3 1 2 MPI_INT", "count is -3, but must not be negative"),
    ("vector 3 3 1 MPI_INT", "blocks of the datatype overlap, so it cannot be received"),
    ("contiguous 0 MPI_INT", "the datatype must have between 1 byte and 1 GiB of data"),
    ("vector 3 3", "the datatype ends too early"),
])
def test_a_datatype_that_cannot_be_sent_is_named(prefix, words, said):
    build(nearmpi(prefix), "typed")
    with pytest.raises(breakdown.Unavailable, match=said):
        breakdown.native(prefix, "send", "typed", words, calls=1)


@pytest.mark.parametrize("call", breakdown.CALLS)
@pytest.mark.parametrize("way", breakdown.WAYS)
@pytest.mark.parametrize("text, size", [("double", 8), ("vector(8, 1, 16, double)", 64), ("indexed([3, 1, 7], [0, 5, 9], float)", 44),
                                        ("resized(-8, 400, subarray([10, 10], [3, 4], [2, 1], char))", 12),
                                        ("vector(4, 3, 5, int16_t)", 24), ("vector(32768, 4, 16, double)", 1 << 20)])
def test_each_datatype_brings_the_right_data_each_way(prefix, call, way, text, size):
    build(nearmpi(prefix), "typed")
    _, _, notes = breakdown.native(prefix, call, way, type_text.prefix_words(text), calls=10)
    assert notes["bytes"] == str(size)
    assert notes["path"] == ("pipelined" if size == 1 << 20 else "inline")


def test_counters_of_the_kernel_are_read_and_an_unknown_one_is_reported(prefix):
    build(nearmpi(prefix), "typed")
    values, missing, _ = breakdown.native(prefix, "send", "typed", "MPI_DOUBLE", events="software")
    assert "has no such counter" in missing["no-such-event"] or "forbids it" in missing["no-such-event"] or \
        "without perf_event_open" in missing["no-such-event"]
    assert set(values) | set(missing) == {"task-clock-ns", "page-faults", "no-such-event"}
    assert all(value >= 0 for value in values.values())


def test_every_hardware_counter_has_a_value_or_a_reason(prefix):
    build(nearmpi(prefix), "typed")
    values, missing, _ = breakdown.native(prefix, "recv", "typed", "MPI_DOUBLE")
    assert set(values) | set(missing) == {"instructions", "cycles", "L1D-loads", "L1D-load-misses", "LLC-misses", "dTLB-load-misses"}
    assert not set(values) & set(missing) and all(missing.values())


@pytest.fixture(scope="module")
def library():
    return breakdown.library_with_lines()


def totals(text, row):
    """The instructions of each row with this name."""
    return [float(found) for found in re.findall(rf"^  {row} +([-\d.]+)k? ", text, re.MULTILINE)]


@pytest.mark.parametrize("text", ["vector(8, 1, 16, double)", breakdown.TYPES[4], "vector(16384, 4, 16, double)"])
def test_nearly_all_instructions_belong_to_a_part(prefix, library, text):
    result = run("--prefix", prefix, "--library", library, "--type", text, "--files")
    assert result.status == 0, result.report()
    assert "AVX2" in result.out and "MPI_Send" in result.out and "MPI_Recv" in result.out
    assert "hardware counters" in result.out, "either counters, or why there are none"
    counted = totals(result.out, "total")
    assert len(counted) == 4 and min(counted) > 50, result.report()
    lost = totals(result.out, "other")
    assert sum(map(abs, lost)) < 0.03 * sum(counted), result.report()
    for name in parts.PARTS:
        assert len(totals(result.out, name)) == 4, f"{name} is missing: {result.report()}"


def test_gaps_cost_addresses_and_copies_but_hardly_any_protocol(prefix, library):
    build(nearmpi(prefix), "typed")
    # Three loops of more blocks than a committed datatype lists: they are walked.
    plain, gaps = (breakdown.measure(prefix, library, "recv", "typed", words, 36).of for words in
                   ("contiguous 36 MPI_CHAR", "vector 3 1 4 vector 4 1 3 vector 3 1 2 MPI_CHAR"))
    assert gaps[parts.ADDRESSES][0] > 3 * plain[parts.ADDRESSES][0]
    assert gaps[parts.COPYING][1] > plain[parts.COPYING][1], "loads"
    assert gaps[parts.PROTOCOL][0] == pytest.approx(plain[parts.PROTOCOL][0], rel=0.2)


def test_the_library_with_line_numbers_executes_what_the_installed_one_does(prefix, library):
    build(nearmpi(prefix), "typed")

    def executed(folder):
        costs, _ = callgrind.run(nearmpi(prefix), "MPI_Recv", ["typed", "recv", "typed", "none", 500, "vector 8 1 16 MPI_DOUBLE"],
                                 ["MPI_Recv", "PMPI_Recv"], lambda output: callgrind.costs(output.read_text()), folder=folder)
        return sum(values[0] for values in costs.values())

    assert executed(library) == pytest.approx(executed(None), rel=0.03)


def test_a_library_without_line_numbers_is_refused(prefix):
    build(nearmpi(prefix), "typed")
    with pytest.raises(breakdown.Unavailable, match="has no line numbers"):
        breakdown.measure(prefix, prefix / "lib", "send", "typed", "MPI_DOUBLE", 8)
