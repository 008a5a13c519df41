"""`near info --coll --machines` and `near model --coll`: collectives of jobs on several machines, without any job."""

import re
import xml.etree.ElementTree as ElementTree

import harness
import pytest

MACHINES = harness.ROOT / "test/machines"


def coll(prefix, *words, knob="auto"):
    return harness.run([prefix / "bin/near", "info", "--coll", *words], env={"NEAR_COLL": knob})


def lines_of(seen, name):
    """The lines of a collective in the table, without repeated blanks."""
    table = seen.out.partition("\ncollective")[2].partition("\n\n")[0].splitlines()[1:]
    begin = next(i for i, line in enumerate(table) if line.startswith(name + " "))
    more = table[begin + 1:]
    end = next((i for i, line in enumerate(more) if not line.startswith(" ")), len(more))
    return [" ".join(line.split()) for line in [table[begin], *more[:end]]]


def test_the_phases_of_collectives_between_machines_are_shown(prefix):
    seen = coll(prefix, "broadcast,allreduce,barrier,scatter", "--machines", "4x4")
    assert seen.status == 0 and seen.out.startswith("4 machines with 4 ranks each, numbered machine by machine\n"), seen.report()
    assert lines_of(seen, "broadcast")[0] == \
        "broadcast the vector up to 128 KiB by_machine: leaders broadcast binomial, broadcast shared", seen.report()
    assert "1 MiB to 16 MiB by_machine: leaders pass chunks along a chain, broadcast shared" in lines_of(seen, "broadcast"), seen.report()
    assert lines_of(seen, "allreduce")[-1] == "512 KiB to 16 MiB ring", seen.report()
    assert "by_machine: reduce shared_flat, leaders barrier dissemination, broadcast shared" in lines_of(seen, "barrier")[0], seen.report()
    assert all("by_machine" not in line for line in lines_of(seen, "scatter")), seen.report()


def test_one_rank_on_each_machine_has_no_levels(prefix):
    seen = coll(prefix, "--machines", "8x1")
    assert seen.status == 0 and "by_machine" not in seen.out, seen.report()


def test_unlike_machines_show_what_each_kind_takes(prefix):
    seen = coll(prefix, "allreduce,allgather", "--machines", "2x16,3")
    assert "3 machines: 2 x 16 ranks and 1 x 3 ranks" in seen.out, seen.report()
    assert "shared_grid (16 ranks), shared_flat (3 ranks)" in seen.out, seen.report()
    assert "leaders allgatherv ring" in seen.out, seen.report()


def test_ranks_in_turns_take_levels_at_any_length(prefix):
    turns, blocks = (lines_of(coll(prefix, "allreduce", "--machines", "4x2", *more), "allreduce")[-1] for more in (["--turns"], []))
    assert "by_machine" in turns and "by_machine" not in blocks


def test_the_number_of_ranks_is_distributed_over_a_number_of_machines(prefix):
    assert coll(prefix, "barrier", "--machines", "3", "--ranks", "8").out.startswith("3 machines: 2 x 3 ranks and 1 x 2 ranks")
    own = coll(prefix, "barrier", "--machines", "3", "--processors", "5")
    assert own.out.startswith("3 machines with 5 ranks each"), own.report()


def test_reasons_are_given_for_each_phase(prefix):
    seen = coll(prefix, "allreduce", "--machines", "4x4", "--why")
    assert re.search(r"among the leaders, allreduce: recursive_doubling\n +not by_machine: needs several machines, one of them with at "
                     r"least two ranks\n", seen.out), seen.report()
    assert re.search(r"among 4 ranks of a machine, reduce: shared_flat\n", seen.out), seen.report()
    assert "user-defined operation, not commutative" in seen.out, seen.report()
    assert "communicator without an area" not in seen.out, seen.report()


def test_an_algorithm_that_the_knob_names_is_taken_for_all_ranks(prefix):
    seen = coll(prefix, "broadcast", "--machines", "4x4", knob="broadcast=binomial")
    assert lines_of(seen, "broadcast")[0].endswith("binomial (NEAR_COLL)"), seen.report()


@pytest.mark.parametrize("words, said", [
    (["--machines", "4x"], "--machines: '4x' is not a list of machines such as 64 (machines), 64x8 (with 8 ranks each)"),
    (["--machines", "1x8"], "--machines: there must be at least two machines"),
    (["--machines", "4", "--ranks", "3"], "--ranks: 3 ranks for 4 machines leaves some without any"),
    (["--machines", "4x2", "--ranks", "8"], "--ranks: --machines 4x2 already says how many ranks there are"),
    (["--machines", "100000x4096"], "--machines: at most 1048576 ranks, and 4096 on one machine, are shown"),
    (["--machines", "4x2", "--bytes", "8"], "--bytes requires --leaders"),
    (["--machines", "4x2", "--leaders", "--root", "8"], "--root: there is no rank 8 among 8 ranks"),
    (["--machines", "4x2", "--leaders", "--root", "first"], "--root: 'first' is not a rank"),
    (["--turns"], "--turns requires --machines"),
])
def test_a_wrong_question_about_machines_is_refused(prefix, words, said):
    seen = coll(prefix, *words)
    assert seen.status == 2 and seen.out == "" and said in seen.err and seen.err.count("\n") == 1, seen.report()


def test_a_description_that_cannot_be_used_is_named(prefix, tmp_path):
    broken = tmp_path / "broken.xml"
    broken.write_text("<topology>")
    for file in (broken, tmp_path / "nowhere.xml"):
        seen = coll(prefix, "--machines", f"2x4:{file}")
        assert seen.status == 1 and str(file) in seen.err, seen.report()
    small = coll(prefix, "--machines", f"2x4:{MACHINES / 'container-3-cores.xml'}")
    assert small.status == 1 and "has 3 processors for 4 ranks" in small.err, small.report()


def test_a_leader_is_the_rank_that_explain_names(prefix):
    file = MACHINES / "opteron-4-packages.xml"
    plan = harness.run([prefix / "bin/mpiexec", "--explain", "--machine", file, "-n", "8", "program"])
    explained = re.search(r"^leader between machines: rank (\d+) for mlx5_0 \(on its node, rank 0: (\d+)\)$", plan.out, re.M)
    assert explained, plan.report()
    seen = coll(prefix, "broadcast", "--machines", f"2x8:{file}", "--leaders")
    leads = re.search(r"^1 +ranks 8-15 .* rank (\d+) +10 from mlx5_0, rank 8 (\d+) from mlx5_0$", seen.out, re.M)
    assert leads and (int(leads[1]) - 8, leads[2]) == (int(explained[1]), explained[2]), seen.report()


# ---- near model --coll ----------------------------------------------------------------------------------------

@pytest.fixture
def model(prefix, tmp_path):
    """model(words): `near model --coll` without a profile."""
    return lambda *words, knob="auto": harness.run([prefix / "bin/near", "model", "--coll", *words],
                                                   env={"NEAR_COLL": knob, "XDG_CACHE_HOME": tmp_path}, timeout=120)


def times_of(seen):
    """{(collective, machines, bytes): (near, lowest)} in microseconds."""
    found, of = {}, None
    for line in seen.out.splitlines():
        if title := re.match(r"(broadcast|allreduce), (\d+) machines? with", line):
            of = title.groups()
        elif of and (row := re.match(r"(\d+ \w+) +[\w, ()]+? +([\d.]+) +([\d.]+) +-?[\d.]+%", line)):
            found[(of[0], int(of[1]), row[1])] = (float(row[2]), float(row[3]))
    return found


def test_both_leaders_are_predicted_for_all_lengths(model, tmp_path):
    drawing = tmp_path / "drawing.svg"
    seen = model("--machines", "4x8", "64x8", "--plot", drawing)
    assert (seen.status, seen.err) == (0, ""), seen.report()
    times = times_of(seen)
    assert len(times) == 2 * 2 * 12 and {bytes for *_, bytes in times} >= {"8 B", "64 KiB", "64 MiB"}, seen.report()
    assert times[("broadcast", 64, "8 B")][0] < times[("broadcast", 64, "8 B")][1], seen.report()
    for key in times:
        assert times[key][0] > 0, key
    root = ElementTree.parse(drawing).getroot()
    assert len(root.findall(".//{*}polyline")) == 2 * 2 * 2


def test_a_nic_beside_the_lowest_rank_makes_no_difference(model):
    seen = model("--machines", "16x8", "--nic-node", "0")
    assert seen.status == 0 and all(near == lowest for near, lowest in times_of(seen).values()), seen.report()


def test_the_figures_of_the_command_line_are_used(model):
    """A network that is a thousand times slower takes longer, and one whose latency alone counts shows the rounds of a tree."""
    slow = model("broadcast", "--machines", "16x8", "--bandwidth", "0.025", "--latency", "1.5")
    fast = model("broadcast", "--machines", "16x8")
    assert times_of(slow)[("broadcast", 16, "64 MiB")][0] > 100 * times_of(fast)[("broadcast", 16, "64 MiB")][0]
    latency = model("broadcast", "--machines", "16x1", "--latency", "1000", "--nic-node", "0")
    assert 4000 < times_of(latency)[("broadcast", 16, "8 B")][0] < 4010, latency.report()


def test_the_algorithm_is_the_one_of_the_library(model, prefix):
    seen = model("allreduce", "--machines", "64x8")
    assert re.search(r"^64 KiB +by_machine, recursive_doubling ", seen.out, re.M), seen.report()
    assert re.search(r"^4 MiB +ring ", seen.out, re.M), seen.report()
    named = model("allreduce", "--machines", "64x8", knob="allreduce=recursive_doubling")
    assert re.search(r"^1 MiB +recursive_doubling \(NEAR_COLL\) ", named.out, re.M), named.report()


@pytest.mark.parametrize("words, said, status", [
    (["gather"], "there is no model of gather, but of broadcast and allreduce", 2),
    (["brodcast"], "unknown collective 'brodcast'; did you mean broadcast?", 2),
    (["--machines", "4,2"], "'4,2' names machines that differ", 2),
    (["--machines", "1x8"], "there must be at least two machines", 2),
    (["--machines", "4x2", "--nic-node", "2"], "--nic-node: 2 nodes with 2 ranks on a machine have no node 2", 2),
    (["--machines", "4x2", "--root", "8"], "--root: there is no rank 8 among 8", 2),
    (["--latency", "fast"], "'fast' is not a number of microseconds", 2),
    (["--eager", "much"], "'much' is not a number of bytes", 2),
    (["--type", "double"], "--type", 2),
    (["--machines", "4x2", "--nic-node", "0", "--plot", "/nowhere/drawing.svg"], "/nowhere/drawing.svg", 1),
])
def test_a_wrong_question_to_the_model_is_refused(model, words, said, status):
    seen = model(*words)
    assert seen.status == status and seen.out == "" and said in seen.err, seen.report()
