"""`near info` shows, from outside, which protocols messages take, and which algorithms collectives would take."""

import os
import re
import signal
import time
from itertools import pairwise

import harness
import pytest


@pytest.mark.parametrize("protocol", ["pipelined", "cma", "auto"])
def test_the_protocols_of_a_running_job_are_shown(start, prefix, compiled, protocol):
    job = start("-n", "2", "-x", f"NEAR_COPY={protocol}", compiled("talk_for_ever"))
    job.wait_for("talk_for_ever", 2)
    deadline = time.monotonic() + 30
    while True:
        seen = harness.run([prefix / "bin/near", "info", "--transport", "--job", job.pid])
        rows = re.findall(r"^ +([01]) to ([01]) +(.*?) +(direct|pipelined|cma) +([\d.]+) GB/s +(\d+)", seen.out, re.M)
        both = {(sender, receiver) for sender, receiver, *_ in rows} == {("0", "1"), ("1", "0")}
        stores = re.search(r"^ +0 to 1 +(cached|streaming) +cached", seen.out, re.M)
        if both and stores and any(size == "1 MiB to 2 MiB" for _, _, size, *_ in rows):
            break
        assert time.monotonic() < deadline, seen.report()
        time.sleep(0.05)
    if protocol != "auto":
        assert {row[3] for row in rows} == {protocol}, seen.report()
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130


def test_the_machine_of_a_running_job_is_shown(start, prefix, compiled):
    job = start("-n", "2", compiled("talk_for_ever"))
    job.wait_for("talk_for_ever", 2)
    seen = harness.run([prefix / "bin/near", "info", "--job", job.pid])
    assert seen.status == 0, seen.report()
    machine = re.search(r"^machine: (.*)$", harness.run([prefix / "bin/near", "info"]).out, re.M)[1]
    for part in ("package", "NUMA node", "core", "processor"):
        assert re.search(rf"\d+ {part}s?", machine)[0] in seen.out.splitlines()[0], (machine, seen.report())
    nodes = re.findall(r"^node (\d+): DRAM, [\d.]+ GiB, processors [\d,-]+$", seen.out, re.M)
    assert nodes, seen.report()
    assert ("distances:" in seen.out) == (len(re.findall("^node ", seen.out, re.M)) > 1), seen.report()
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130


def test_a_process_that_is_not_mpiexec_is_refused(prefix):
    seen = harness.run([prefix / "bin/near", "info", "--transport", "--job", os.getpid()])
    assert seen.status == 1 and "not one of your running NearMPI jobs" in seen.err, seen.report()


@pytest.mark.parametrize("knobs, begin, pair, most", [({}, 544, 1056, 4128), ({"NEAR_PACKETS": "1024"}, 16416, 16416, 16416),
                                                      ({"NEAR_EAGER_LIMIT": "64k"}, 2080, 4128, 4128),
                                                      ({"NEAR_QUEUE_SLOTS": "1000", "NEAR_PIPELINE": "16m"}, 640, 1152, 16512)])
def test_the_costs_of_knobs_are_shown(prefix, knobs, begin, pair, most):
    seen = harness.run([prefix / "bin/near", "info", "--knobs"], env=knobs)
    words = r"^Each rank reserves (\d+) KiB when it begins \(.*\), or (\d+) KiB in a job of .*, and up to (\d+) KiB once there is traffic"
    told = re.search(words, seen.out, re.M)
    assert seen.status == 0 and told and tuple(map(int, told.groups())) == (begin, pair, most), seen.report()


def coll(prefix, *words, knob="auto"):
    return harness.run([prefix / "bin/near", "info", "--coll", *words], env={"NEAR_COLL": knob})


def rows_of(seen):
    """[collective, what the sizes are of, sizes, blocking, nonblocking] of each line of the table."""
    table = seen.out.partition("\ncollective")[2].partition("\n")[2].partition("\n\n")[0]
    edges = (0, 22, 34, 54, 74, None)
    return [[line[left:right].strip() for left, right in pairwise(edges)] for line in table.splitlines()]


def test_the_algorithms_of_collectives_are_shown_by_size(prefix):
    seen = coll(prefix, "allreduce,bcast,alltoall,alltoallv", "--ranks", "8", "--processors", "16", "--nodes", "1")
    assert seen.status == 0 and seen.out.startswith("8 ranks on 16 processors\narea in shared memory: yes"), seen.report()
    assert rows_of(seen) == [
        ["allreduce", "the vector", "up to 256 B", "shared_flat", ""],
        ["", "", "512 B to 1 KiB", "shared_grid", "shared_flat"],
        ["", "", "2 KiB to 4 KiB", "shared_shares", "shared_flat"],
        ["", "", "8 KiB to 16 MiB", "shared_shares", ""],
        ["broadcast", "the vector", "up to 16 MiB", "shared", ""],
        ["alltoall", "one block", "up to 8 KiB", "shared", ""],
        ["", "", "16 KiB to 64 KiB", "messages", ""],
        ["", "", "128 KiB to 16 MiB", "single_copy", ""],
        ["alltoallv", "", "any", "shared", ""],
    ], seen.report()


def test_two_ranks_with_a_processor_each_exchange_longer_data_by_messages(prefix):
    own = coll(prefix, "allreduce,broadcast", "--ranks", "2", "--processors", "2", "--nodes", "1")
    assert [row[2:4] for row in rows_of(own)] == [["up to 2 KiB", "shared_flat"], ["4 KiB to 16 MiB", "pair"],
                                                  ["up to 8 KiB", "shared"], ["16 KiB to 16 MiB", "pair"]], own.report()
    shared = coll(prefix, "allreduce,broadcast", "--ranks", "2", "--processors", "1", "--nodes", "1")
    assert [row[3] for row in rows_of(shared)] == ["shared_flat", "shared"], shared.report()


def test_broadcasts_over_several_numa_nodes_have_leaders(prefix):
    seen = coll(prefix, "broadcast", "--ranks", "8", "--processors", "8", "--nodes", "4")
    assert seen.out.startswith("8 ranks on 8 processors of 4 NUMA nodes\n"), seen.report()
    assert [row[2:4] for row in rows_of(seen)] == [["up to 2 KiB", "shared"], ["4 KiB to 16 MiB", "shared_by_node"]], seen.report()
    few = coll(prefix, "broadcast", "--ranks", "6", "--processors", "8", "--nodes", "4")
    assert [row[3] for row in rows_of(few)] == ["shared"], few.report()


def test_all_collectives_are_shown_for_as_many_ranks_as_processors(prefix):
    seen = coll(prefix)
    numbers = re.match(r"(\d+) ranks? on (\d+) processors?\n", seen.out)
    assert seen.status == 0 and numbers and numbers[1] == numbers[2], seen.report()
    assert len({row[0] for row in rows_of(seen)} - {""}) == 22, seen.report()


def test_more_ranks_than_processors_share_them(prefix):
    shared, own = (coll(prefix, "barrier", "--why", "--ranks", "8", "--processors", str(count)) for count in (7, 8))
    assert shared.out.startswith("8 ranks on 7 processors, which they share\n"), shared.report()
    assert "communicator without an area\n    any                 linear\n" in shared.out, shared.report()
    assert "communicator without an area\n    any                 dissemination\n" in own.out, own.report()


def test_the_reasons_of_the_choice_are_shown(prefix):
    seen = coll(prefix, "allreduce", "--why", "--ranks", "100", "--processors", "100")
    assert "area in shared memory: no (2 to 64 ranks" in seen.out, seen.report()
    blocking = seen.out.partition("\n  blocking\n")[2].partition("\n  user-defined")[0]
    assert [" ".join(line.split()) for line in blocking.splitlines()] == [
        "up to 32 KiB recursive_doubling",
        "not by_machine: needs several machines, one of them with at least two ranks",
        "not pair: needs an area in shared memory",
        "not shared_grid: needs an area in shared memory",
        "not shared_flat: needs an area in shared memory",
        "not shared_root: needs an area in shared memory",
        "not shared_shares: needs an area in shared memory",
        "not linear: not expected to be the fastest",
        "not ring: not expected to be the fastest",
        "64 KiB to 16 MiB ring",
        "not by_machine: needs several machines, one of them with at least two ranks",
        "not pair: needs an area in shared memory",
        "not shared_grid: needs an area in shared memory",
        "not shared_flat: needs an area in shared memory",
        "not shared_root: needs an area in shared memory",
        "not shared_shares: needs an area in shared memory",
        "not linear: not expected to be the fastest",
    ], seen.report()


def test_an_algorithm_that_the_knob_names_is_shown_as_such(prefix):
    seen = coll(prefix, "allreduce", "--ranks", "4", knob="allreduce=ring")
    assert "NEAR_COLL: allreduce=ring\n" in seen.out, seen.report()
    assert rows_of(seen) == [["allreduce", "the vector", "up to 16 MiB", "ring (NEAR_COLL)", ""]], seen.report()
    seen = coll(prefix, "allreduce", "--why", "--ranks", "4", knob="allreduce=ring")
    assert "not ring, which NEAR_COLL names: needs a commutative operation" in seen.out, seen.report()


@pytest.mark.parametrize("words, said", [
    (["alreduce"], "unknown collective 'alreduce'; did you mean allreduce?"),
    (["broadcast,quickly"], "unknown collective 'quickly'; `near info --coll` lists them"),
    (["--ranks", "0"], "--ranks: '0' is not a number of ranks from 1 to 65536"),
    (["--processors", "some"], "--processors: 'some' is not a number of processors from 1 to 65536"),
    (["--rank", "8"], "unknown option '--rank'; did you mean --ranks?"),
])
def test_a_wrong_question_about_collectives_is_refused(prefix, words, said):
    seen = coll(prefix, *words)
    assert (seen.status, seen.out, seen.err) == (2, "", f"near: {said}\n"), seen.report()


@pytest.mark.parametrize("option", ["--ranks=2", "--processors=2", "--why"])
def test_options_about_collectives_belong_to_coll(prefix, option):
    seen = harness.run([prefix / "bin/near", "info", option])
    assert seen.status == 2 and f"near: {option.partition('=')[0]} requires --coll" in seen.err, seen.report()


@pytest.mark.parametrize("knob, said", [
    ("allreduce=rinng", "NEAR_COLL: 'rinng' is not an algorithm of this collective; did you mean ring?"),
    ("alreduce=ring", "NEAR_COLL: 'alreduce' is not a collective; did you mean allreduce?"),
    ("ring", "NEAR_COLL: 'ring' is not of the form collective=algorithm"),
])
def test_a_wrong_knob_is_refused_as_in_a_job(launch, prefix, compiled, knob, said):
    seen = coll(prefix, knob=knob)
    assert (seen.status, seen.out, seen.err) == (1, "", f"near: {said}\n"), seen.report()
    job = launch("-n", "1", compiled("talk_for_ever"), env={"NEAR_COLL": knob})
    assert job.status != 0 and said in job.err, job.report()
