"""bench/compare: how it summarises figures, and how it handles libraries that fail. No test depends on speed."""

import io
import re
import sys
from dataclasses import replace

import harness
import pytest

sys.path.insert(0, str(harness.ROOT / "bench"))
from driver import figures, goals, instructions, progress, runner, tables  # noqa: E402
from driver.cases import CASES  # noqa: E402
from driver.libraries import LIMITS, Library, mpich, nearmpi  # noqa: E402

NEAR, PEER = nearmpi(harness.ROOT / "build/prefix"), mpich(harness.ROOT / "build/prefix")


def latency(size, variant="reused", name="latency"):
    return figures.Key("latency", 2, name, variant, size)


def of_rounds(**by_library):
    """Figures with one latency of 64 KiB, reused: of_rounds(nearmpi=[1, 2], limits=[1, 1])."""
    made = figures.Figures()
    for library, values in by_library.items():
        for number, value in enumerate(values):
            made.add(latency(65536), library, number, value)
    return made


def test_a_summary_has_the_sample_deviation():
    got = figures.summarise({0: 1.0, 1: 2.0, 3: 6.0})
    assert (got.rounds, got.least, got.median, got.mean, got.most) == (3, 1.0, 2.0, 3.0, 6.0)
    assert got.deviation == pytest.approx(7**0.5)
    assert figures.summarise({4: 5.0}).deviation == 0
    assert figures.summarise({}) is None


def test_a_ratio_compares_within_rounds_that_both_have():
    ours, theirs = {0: 1.0, 1: 10.0, 2: 3.0}, {0: 2.0, 1: 20.0, 3: 0.001}
    assert figures.ratio(ours, theirs) == 0.5
    assert figures.ratio({0: 1.0}, {1: 1.0}) is None
    assert figures.ratio({}, {}) is None


def in_states(**lines):
    """Figures of three rounds, each in the states that a line of so many us tells: in_states(nearmpi=[(0.04, 0.05), ...])."""
    made = figures.Figures()
    for library, rounds in lines.items():
        for number, around in enumerate(rounds):
            made.add(latency(8), library, number, 10.0 * max(around, default=1) + number, around)
    made.tell_states_apart()
    return made


def test_ratios_compare_runs_that_met_the_machine_in_the_same_state():
    near, far = 0.045, 0.17
    made = in_states(nearmpi=[(near, 0.05), (near, near), (far, 0.15), (far, near)],
                     mpich=[(near, near), (far, far), (0.14, far), (far, near)])
    assert made.states == pytest.approx([0.0475, 0.155], abs=0.01)
    ours, theirs = made.series(latency(8), "nearmpi"), made.series(latency(8), "mpich")
    assert len(figures.ratios(ours, theirs)) == 2, "round 1 met two states, and in round 3 it changed during the runs"
    assert figures.summarise(ours).rounds == 4, "but no value is lost"
    assert "A bare cache line took 0.0475, 0.150 us" in tables.states(made)[0]
    assert "during the runs of 2 of 8 figures" in tables.states(made)[0]


def test_a_machine_in_one_state_is_not_spoken_of():
    made = in_states(nearmpi=[(0.04, 0.05)] * 3, mpich=[(0.045, 0.045)] * 3)
    assert len(figures.ratios(made.series(latency(8), "nearmpi"), made.series(latency(8), "mpich"))) == 3
    assert tables.states(made) == []
    unknown = in_states(nearmpi=[()] * 3, mpich=[()] * 3)
    assert len(figures.ratios(unknown.series(latency(8), "nearmpi"), unknown.series(latency(8), "mpich"))) == 3


def test_the_best_is_least_or_most_and_ignores_libraries_without_results():
    candidates = {"a": {0: 1.0, 1: 9.0, 2: 9.0}, "b": {0: 2.0}, "c": {}}
    assert figures.best(candidates) == "b"
    assert figures.best(candidates, lower_is_better=False) == "a"
    assert figures.best({"c": {}}) is None


def test_the_limit_is_the_fastest_way_that_the_buffers_allow():
    made = figures.Figures()
    for name, value in [("cma_pull", 5), ("ring/4K", 4), ("ring/16K", 3), ("pull", 1), ("touch", 0.1)]:
        made.add(latency(65536, "reused", name), "limits", 0, value)
    made.add(latency(65536, "rewritten", "ring/4K"), "limits", 0, 0.5)
    made.add(latency(0, "reused", "line/1"), "limits", 0, 0.2)
    made.add(latency(0, "reused", "line/2"), "limits", 0, 0.3)
    assert figures.limit(made, latency(65536)) == ("ring/16K", {0: 3})
    assert figures.limit(made, latency(65536, "alloc-reused")) == ("pull", {0: 1})
    assert figures.limit(made, latency(8)) == ("line/1", {0: 0.2})
    assert figures.limit(made, latency(8, "rewritten")) == ("line/1", {0: 0.2})
    assert figures.limit(made, latency(4096)) == (None, {})


def test_the_limit_of_streams_is_the_most_of_what_was_measured_as_they_are():
    made = figures.Figures()
    for name, value in [("stream:ring/4K", 4), ("stream:cma", 6), ("both:cma", 9), ("ring/4K", 99)]:
        made.add(figures.Key("bandwidth", 2, name, "reused", 64), "limits", 0, value)

    def most(name, size=64):
        return figures.limit(made, figures.Key("bandwidth", 2, name, "reused", size), lower_is_better=False)

    assert most("stream") == ("cma", {0: 6}) and most("both") == ("cma", {0: 9})
    assert most("stream", 8) == (None, {})


def test_one_pair_has_a_limit_and_several_have_none():
    options = type("Options", (), {"what": ["rate"], "np": 8})
    assert [(ranks, who.name) for _, ranks, who in runner.plan(options, [NEAR])] == [
        (2, "nearmpi"), (2, "limits"), (8, "nearmpi")]
    assert "/ limit" not in tables.table(CASES["rate"], 8, figures.Figures(), [NEAR])[0]


def test_a_case_of_several_programs_runs_each_of_them():
    options = type("Options", (), {"what": ["programs"], "np": 2, "variants": ["reused"], "budget": 25})
    runs = runner.plan(options, [NEAR])
    assert [(case.program, ranks) for case, ranks, _ in runs] == [
        (f"programs/{name}", ranks) for ranks in (2, 8) for name in ("stencil", "cg", "sort", "bfs")]
    assert runs[0][0].arguments(options, NEAR) == ["500", "communication,whole", "0"]


def test_the_failure_of_one_of_several_programs_says_which_one(monkeypatch):
    monkeypatch.setattr(runner, "once", lambda *_: ([], {}, "it broke"))
    options = type("Options", (), {"what": ["programs"], "rounds": 1, "np": 2, "cores": []})
    made = runner.run(options, [NEAR])
    assert tables.failures(CASES["programs"], 8, made, [NEAR], 1) == [
        "NearMPI failed in 1 of 1 rounds: programs/bfs: it broke"]


@pytest.mark.parametrize(("value", "text"), [(0.1116, "0.112"), (0.9, "0.900"), (4.561, "4.56"), (99.97, "100"),
                                             (117.2, "117"), (9994, "9994"), (9996, "10.0k"),
                                             (23400, "23.4k"), (999_600, "1.00M"), (5.6e6, "5.60M"), (None, "-")])
def test_numbers_have_three_digits(value, text):
    assert tables.number(value) == text


def test_sizes_have_binary_units():
    assert [tables.size_name(size) for size in (0, 8, 1000, 4096, 16 << 20)] == ["0", "8", "1000", "4 Ki", "16 Mi"]


def test_a_library_without_a_result_stays_in_the_table_and_is_named_below():
    made = of_rounds(nearmpi=[2.0, 3.0])
    made.fail("latency", 2, "mpich", 0, "status 9: it broke")
    made.fail("latency", 2, "mpich", 1, "ended after 60 s without a result")
    header, rows = tables.table(CASES["latency"], 2, made, [NEAR, PEER])
    assert rows[0][header.index("MPICH")] == "-" and rows[0][header.index("/ best peer")].startswith("-")
    assert rows[0][header.index("NearMPI")] == "2.50 ±0.707"
    assert tables.failures(CASES["latency"], 2, made, [NEAR, PEER], 2) == [
        "MPICH failed in 2 of 2 rounds: ended after 60 s without a result"]


def test_a_table_has_ratios_to_peer_and_limit():
    made = of_rounds(nearmpi=[2.0, 4.0], mpich=[4.0, 8.0])
    made.add(latency(65536, "reused", "cma_pull"), "limits", 0, 1.0)
    header, rows = tables.table(CASES["latency"], 2, made, [NEAR, PEER])
    row = dict(zip(header, rows[0], strict=True))
    assert (row["/ best peer"], row["limit"], row["by"], row["/ limit"]) == ("0.500 mpich", "1.00", "cma_pull", "2.00")


def test_a_table_of_best_rounds_compares_those():
    made = of_rounds(nearmpi=[2.0, 40.0, 50.0], mpich=[90.0, 4.0, 90.0])
    made.add(latency(65536, "reused", "cma_pull"), "limits", 0, 1.0)
    header, rows = tables.table(CASES["latency"], 2, made, [NEAR, PEER], best_round=True)
    row = dict(zip(header, rows[0], strict=True))
    assert (row["NearMPI"], row["MPICH"], row["/ best peer"], row["/ limit"]) == ("2.00", "4.00", "0.500 mpich", "2.00")
    assert figures.ratio({0: 1.0, 1: 9.0}, {0: 2.0, 1: 3.0}, max) == 3.0


def test_the_csv_has_every_number_of_every_library(tmp_path):
    made = of_rounds(nearmpi=[2.0, 4.0], mpich=[4.0, 5.0])
    made.add(latency(65536, "reused", "cma_pull"), "limits", 0, 1.0)
    tables.write_csv(tmp_path / "results.csv", made, CASES, ["mpich"])
    lines = (tmp_path / "results.csv").read_text().splitlines()
    assert lines[1:] == ["latency,2,cma_pull,reused,65536,limits,us,1,1,1,1,1,1,0,1,,,",
                         "latency,2,latency,reused,65536,nearmpi,us,2,2,2.5,3,3.5,3,1.41421,4,0.575,0.65,0.725",
                         "latency,2,latency,reused,65536,mpich,us,2,4,4.25,4.5,4.75,4.5,0.707107,5,,,"]


def test_a_summary_has_quartiles():
    got = figures.summarise(dict(enumerate([1.0, 2.0, 3.0, 4.0, 100.0])))
    assert (got.lower_quartile, got.median, got.upper_quartile) == (2.0, 3.0, 4.0)
    one = figures.summarise({7: 5.0})
    assert (one.lower_quartile, one.median, one.upper_quartile) == (5.0, 5.0, 5.0)


def goal(comparison, what):
    header, rows = goals.goal_table(comparison)
    return next(row for row in rows if row[0].startswith(what))[1:]


def test_a_goal_shows_the_result_and_whether_it_is_met():
    made = of_rounds(nearmpi=[2.0], mpich=[4.0], impi=[8.0])
    what = "latency at each size"
    assert goal(goals.Comparison(made, ["mpich", "impi"]), what) == ["at most 1", "0.500 (64 Ki, reused)", "yes"]
    made.add(latency(4096), "nearmpi", 0, 3.0)
    made.add(latency(4096), "impi", 0, 2.0)
    assert goal(goals.Comparison(made, ["mpich", "impi"]), what) == ["at most 1", "1.50 (4 Ki, reused)", "no"]


def test_a_goal_must_be_met_in_each_state_of_the_machine():
    near, far = 0.04, 0.16
    made = figures.Figures(rounds=7)
    for number, (line, ours) in enumerate([(near, 2.0)] * 3 + [(far, 6.0)] * 3 + [(0.5, 99.0)]):
        made.add(latency(65536), "nearmpi", number, ours, [line, line])
        made.add(latency(65536), "mpich", number, 4.0, [line, line])
    made.tell_states_apart()
    header, _ = goals.goal_table(goals.Comparison(made, ["mpich"]))
    assert header == ["what", "target", "got, line 0.0400 us", "got, line 0.160 us", "met?"]  # one round says nothing about the last state
    assert goal(goals.Comparison(made, ["mpich"]), "latency at each size") == ["at most 1", "0.500 (64 Ki, reused)", "1.50 (64 Ki, reused)", "no"]


def test_a_goal_of_rates_is_a_least_one():
    made = figures.Figures()
    for size, ours in ((1, 30.0), (8, 20.0), (64, 28.0)):
        key = figures.Key("rate", 2, "rate", "reused", size)
        made.add(key, "nearmpi", 0, ours)
        made.add(key, "mpich", 0, 5.0)
        made.add(key, "impi", 0, 10.0)
    assert goal(goals.Comparison(made, ["mpich", "impi"]), "message rate 1, 8, 64") == ["at least 1.3", "2.00 (8, reused)", "yes"]


def test_a_goal_of_a_whole_case_is_its_worst_figure_and_their_mean():
    made = figures.Figures()
    for name, ours in (("barrier", 1.0), ("gather", 4.0)):
        key = figures.Key("sweep", 2, name, "300", 64)
        made.add(key, "nearmpi", 0, ours)
        made.add(key, "mpich", 0, 2.0)
    rows = goals.goal_table(goals.Comparison(made, ["mpich"]))[1]
    at = next(index for index, row in enumerate(rows) if row[0].startswith("all sizes in one process"))
    assert rows[at][1:] == ["at most 1.1", "2.00 (gather, 2 ranks, 300, 64)", "no"]
    assert rows[at + 1][1:] == ["at most 0.75", "1.00 (2 figures)", "no"]


def test_the_goal_of_programs_is_about_their_communication():
    made = figures.Figures()
    for variant, ours in (("communication", 3.0), ("whole", 8.0)):
        key = figures.Key("programs", 8, "sort", variant, 0)
        made.add(key, "nearmpi", 0, ours)
        made.add(key, "mpich", 0, 4.0)
    assert goal(goals.Comparison(made, ["mpich"]), "small programs") == ["at most 0.9", "0.750 (sort, 8 ranks, communication, 0)", "yes"]


def guideline(**rounds):
    """Figures of the guideline scatter <= broadcast, 8 ranks: guideline(collective=[1.0], mock_up=[2.0])."""
    made = figures.Figures()
    for variant, values in rounds.items():
        for number, value in enumerate(values):
            made.add(figures.Key("guidelines", 8, "scatter<=broadcast", variant.replace("_", "-"), 1024), "nearmpi", number, value)
    return made


def test_a_table_has_the_ratio_to_the_base_variant_of_the_same_round():
    made = guideline(collective=[2.0, 9.0, 1.0], mock_up=[1.0, 10.0, 2.0])
    header, rows = tables.table(CASES["guidelines"], 8, made, [NEAR])
    assert header == ["what", "bytes", "what is called", "NearMPI", "/ mock-up"]
    assert [(row[2], row[-1]) for row in rows] == [("collective", "0.900"), ("mock-up", "-")]


def test_the_goal_of_guidelines_is_the_worst_ratio_to_a_mock_up():
    made = guideline(collective=[3.0], mock_up=[2.0])
    made.add(figures.Key("guidelines", 2, "gather<=gatherv", "collective", 8), "nearmpi", 0, 1.0)
    made.add(figures.Key("guidelines", 2, "gather<=gatherv", "mock-up", 8), "nearmpi", 0, 4.0)
    assert goal(goals.Comparison(made, []), "guidelines") == ["at most 1.05", "1.50 (scatter <= broadcast, 8 ranks, 1 Ki)", "no"]
    assert goal(goals.Comparison(guideline(collective=[3.0]), []), "guidelines") == ["at most 1.05", "not measured", ""]


def layout(name="d1s2", size=4096, **ways):
    """Figures of a layout, one round: layout(hand=1.0, by_hand=2.0)."""
    made = figures.Figures()
    for way, value in ways.items():
        made.add(figures.Key("datatypes", 2, name, way.replace("_", "-"), size), "nearmpi", 0, value)
    return made


def test_packing_and_sending_data_with_gaps_have_bases_of_their_own():
    made = layout(hand=2.0, pack=1.0, hand_unpack=4.0, unpack=1.0, by_hand=8.0, typed=4.0)
    header, rows = tables.table(CASES["datatypes"], 2, made, [NEAR])
    assert header[-1] == "/ what it is compared with"
    assert {row[2]: row[-1] for row in rows} == {"hand": "", "pack": "0.500 hand", "hand-unpack": "", "unpack": "0.250 hand-unpack",
                                                 "by-hand": "- contiguous", "typed": "0.500 by-hand"}


def test_the_goals_of_packing_depend_on_the_size():
    long = goals.Comparison(layout(hand=2.0, pack=3.0, hand_unpack=1.0, unpack=1.2), [])
    assert goal(long, "MPI_Pack and MPI_Unpack") == ["at most 1", "1.50 (d1s2, 2 ranks, 4 Ki)", "no"]
    assert goal(long, "... 64 to 512 B") == ["at most 1.5", "not measured", ""]
    short = goals.Comparison(layout(hand=2.0, pack=3.0, size=64), [])
    assert goal(short, "MPI_Pack and MPI_Unpack") == ["at most 1", "not measured", ""]
    assert goal(short, "... 64 to 512 B") == ["at most 1.5", "1.50 (d1s2, 2 ranks, 64)", "yes"]


def test_a_datatype_must_not_be_slower_than_packing():
    made = goals.Comparison(layout(packed=2.0, typed=3.0, contiguous=1.0), [])
    assert goal(made, "... / with MPI_Pack") == ["at most 1.05", "1.50 (d1s2, 2 ranks, 4 Ki)", "no"]
    assert goal(made, "... consecutive bytes") == ["at most 1.05", "0.333 (d1s2, 2 ranks, 4 Ki)", "yes"]
    shareable = goals.Comparison(layout(by_hand=2.0, alloc=1.0, typed=3.0), [])
    assert goal(shareable, "... in memory of MPI_Alloc_mem") == ["at most 0.7", "0.500 (d1s2, 2 ranks, 4 Ki)", "yes"]


def test_the_goals_of_forms_tell_nonblocking_from_persistent_calls():
    made = figures.Figures()
    for variant, value in (("blocking", 2.0), ("nonblocking", 2.2), ("persistent", 2.1)):
        made.add(figures.Key("forms", 2, "barrier", variant, 0), "nearmpi", 0, value)
    comparison = goals.Comparison(made, [])
    assert goal(comparison, "nonblocking collective") == ["at most 1.15", "1.10 (barrier, 2 ranks, 0)", "yes"]
    assert goal(comparison, "persistent collective") == ["at most 1", "1.05 (barrier, 2 ranks, 0)", "no"]


def test_the_goal_of_a_barrier_is_a_line_there_and_back():
    made = figures.Figures()
    made.add(latency(0, "reused", "line/1"), "limits", 0, 0.05)
    made.add(figures.Key("collectives", 2, "barrier", "-", 0), "nearmpi", 0, 0.15)
    assert goal(goals.Comparison(made, []), "barrier of 2 ranks") == ["at most 2", "1.50", "yes"]


def cliffs(**times):
    """Figures of an allreduce on two processors: cliffs(ranks2=[of 4 B, of 8 B, ...])."""
    made = figures.Figures()
    for ranks, values in times.items():
        for power, value in enumerate(values):
            made.add(figures.Key("cliffs", int(ranks.removeprefix("ranks")), "allreduce", "-", 4 << power), "nearmpi", 0, value)
    return made


def test_a_step_is_the_growth_of_the_time_over_the_growth_in_proportion():
    made = cliffs(ranks1=[1.0], ranks2=[4.0, 16.0], ranks3=[12.0], ranks4=[32.0], ranks6=[1.0])
    found = {(kind, before.ranks, before.size): factor for kind, before, _, factor in figures.steps(made, "cliffs", "nearmpi")}
    assert found == {("first", 1, 4): 2.0, ("size", 2, 4): 2.0, ("sharing", 2, 4): 2.0, ("ranks", 3, 4): 2.0}
    assert tables.step_table(CASES["cliffs"], made, [NEAR])[1] == [
        ["allreduce", "twice the size", "2.00 (4 to 8, 2 ranks)"], ["allreduce", "one rank more", "2.00 (3 to 4 ranks, 4)"],
        ["allreduce", "... from 1 rank to 2", "2.00 (1 to 2 ranks, 4)"],
        ["allreduce", "... that shares a processor first", "2.00 (2 to 3 ranks, 4)"]]


def test_ranks_share_processors_first_when_they_are_more():
    made = cliffs(ranks2=[1.0], ranks3=[1.0], ranks4=[1.0], ranks5=[1.0])
    made.processors = 4
    assert [kind for kind, *_ in figures.steps(made, "cliffs", "nearmpi")] == ["ranks", "ranks", "sharing"]


def test_the_goal_of_cliffs_does_not_count_the_step_to_shared_processors():
    made = cliffs(ranks1=[1.0, 1.6], ranks2=[4.0], ranks3=[60.0], ranks4=[88.0])
    assert goal(goals.Comparison(made, []), "cliffs") == ["at most 1.5", "1.10 (allreduce, 3 to 4 ranks, 4)", "yes"]
    assert goal(goals.Comparison(made, []), "... from 1 rank") == ["at most 1.5", "2.00 (allreduce, 1 to 2 ranks, 4)", "no"]


def test_cliffs_run_on_fewer_ranks_for_few_sizes_and_without_peers():
    options = type("Options", (), {"what": ["cliffs"], "np": 2, "few_sizes": True})
    assert {who.name for _, _, who in runner.plan(options, [NEAR, PEER])} == {"nearmpi"}
    assert max(ranks for _, ranks, _ in runner.plan(options, [NEAR])) < 32
    options.few_sizes = False
    assert [ranks for _, ranks, _ in runner.plan(options, [NEAR])] == list(range(1, 33))


def test_a_case_may_be_left_out_of_later_rounds(monkeypatch):
    calls = []
    monkeypatch.setattr(runner, "once", lambda *_: (calls.append(1), ([("barrier", "-", 0, 5.0)], {}, None))[1])
    options = type("Options", (), {"what": ["cliffs"], "rounds": 9, "np": 2, "cores": [], "few_sizes": True})
    runner.run(options, [NEAR])
    assert len(calls) == CASES["cliffs"].most_rounds * len(CASES["cliffs"].short_ranks)


def rounds_of(who, seconds, rounds, monkeypatch, reason=None):
    """The rounds, from 0, in which `who` runs a case that takes it so many seconds."""
    clock, ran = [0.0], []

    def once(library, case, ranks, options):
        ran.append(round_now())
        clock[0] += seconds
        return ([] if reason else [("latency", "2", 8, 5.0)]), {}, reason

    def round_now():
        return shown[-1]

    shown = []
    monkeypatch.setattr(runner, "once", once)
    monkeypatch.setattr(runner.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(runner.Progress, "before", lambda self, number, what: shown.append(number))
    options = type("Options", (), {"what": ["threads"], "rounds": rounds, "np": 2, "cores": []})
    runner.run(options, [who])
    return ran


def test_the_slower_a_peer_is_the_less_often_it_runs(monkeypatch):
    assert rounds_of(PEER, runner.LONG + 1, 10, monkeypatch) == [0, 4, 8]
    assert rounds_of(PEER, runner.LONG - 1, 10, monkeypatch) == list(range(10))
    assert rounds_of(PEER, 2 * runner.LONG, 20, monkeypatch) == [0, 8, 16]
    assert rounds_of(PEER, 20 * runner.LONG, 80, monkeypatch) == [0]
    assert rounds_of(NEAR, runner.LONG + 1, 10, monkeypatch) == list(range(10))


def test_a_library_that_fails_in_two_rounds_is_spared_the_case(monkeypatch):
    assert rounds_of(PEER, 1, 10, monkeypatch, "it broke") == [0, 1]
    assert rounds_of(PEER, runner.LONG + 1, 10, monkeypatch, "it broke") == [0, 4]


def test_a_goal_that_was_not_measured_is_neither_met_nor_missed():
    rows = goals.goal_table(goals.Comparison(figures.Figures(), ["mpich"]))[1]
    assert len(rows) == len(goals.GOALS)
    assert all(row[2:] == ["not measured", ""] for row in rows)


def test_an_interrupted_run_keeps_its_rounds(monkeypatch):
    def once(library, case, ranks, options):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(library)
        return [("barrier", "-", 0, 5.0)], {}, None

    calls = []
    monkeypatch.setattr(runner, "once", once)
    options = type("Options", (), {"what": ["collectives"], "rounds": 9, "np": 2, "cores": []})
    made = runner.run(options, [NEAR])
    assert (made.rounds, made.cut_short) == (2, "interrupted in round 2 of 9")
    assert list(made.series(figures.Key("collectives", 2, "barrier", "-", 0), "nearmpi").values()) == [5.0, 5.0]


def test_what_a_library_prints_itself_is_not_taken_for_a_value():
    values, notes = runner.read("value latency reused 8 0.25\nvalued customer\ninfo library X 1.0 beta\nvalue of it: 3\n")
    assert values == [("latency", "reused", 8, 0.25)]
    assert notes == {"library": "X 1.0 beta"}


def ended(status=0, err="", timed_out=False):
    return harness.Finished(status, "", err, timed_out, 60.2, "", "")


def test_a_run_on_another_library_or_on_other_cores_does_not_count():
    who = Library("mpich", "abi", (), (), proof="MPICH")
    fine = {"library": "MPICH 5", "cores": "0 1 0"}
    assert runner.wrong(who, 3, [0, 1], ended(), fine) is None
    assert "another library" in runner.wrong(who, 3, [0, 1], ended(), {**fine, "library": "NearMPI"})
    assert "bound to cores 0 -1 0" in runner.wrong(who, 3, [0, 1], ended(), {**fine, "cores": "0 -1 0"})
    assert runner.wrong(who, 3, [], ended(), fine) is None
    assert "not bound" in runner.wrong(who, 3, [], ended(), {**fine, "cores": "0 -1 0"})
    assert "bound" in runner.wrong(replace(who, bound=False), 3, [], ended(), fine)
    assert runner.wrong(replace(who, bound=False), 3, [], ended(), {**fine, "cores": "-1 -1 -1"}) is None
    assert runner.wrong(who, 3, [0, 1], ended(9, "first\nlast\n"), fine) == "status 9: last"
    assert runner.wrong(who, 3, [0, 1], ended(timed_out=True), fine) == "ended after 60 s without a result"


def test_progress_is_a_line_a_round_where_there_is_no_terminal():
    stream = io.StringIO()
    shown = progress.Progress(2, 2, stream)
    for number in (0, 0, 1, 1):
        shown.before(number, "something")
        shown.after()
    shown.end()
    assert re.fullmatch(r"bench: round 1 of 2\nbench: round 2 of 2, about 0 s left\n", stream.getvalue())
    assert [progress.duration(seconds) for seconds in (12, 185, 3720)] == ["12 s", "3:05 min", "1:02 h"]


def test_the_limits_are_asked_for_plain_buffers():
    options = type("Options", (), {"variants": ["reused", "alloc-reused", "alloc-rewritten"], "budget": 25, "sizes": [8, 64]})
    assert CASES["latency"].arguments(options, LIMITS) == ["6.25", "reused,rewritten", "8,64"]
    assert CASES["latency"].arguments(options, NEAR) == ["25", "reused,alloc-reused,alloc-rewritten", "8,64"]


def compare(prefix, *options):
    return harness.run([sys.executable, harness.ROOT / "bench/compare", "--prefix", prefix, "--peers", "", "--budget", 1, *options],
                       timeout=240)


def test_every_case_runs_on_nearmpi_and_is_written_down(prefix, tmp_path):
    result = compare(prefix, "--rounds", 1, "--sizes", "8,65536", "--variants", "all", "--out", tmp_path)
    assert result.status == 0, result.report()
    assert " failed " not in result.out and "not measured" in result.out, result.report()
    values = (tmp_path / "results.csv").read_text()
    for case in CASES.values():
        for name in case.shows:
            assert re.search(rf"^{case.name},\d+,{re.escape(name)},[-a-z0-9]+,\d+,nearmpi,", values, re.MULTILINE), (case.name, name)
    for method in ("line/1", "cma_pull", "cma_halves", "ring/16K", "ring_stream/16K", "pull", "halves", "push_stream"):
        assert f",{method}," in values
    for value, methods in {"stream": ("slots/64", "ring/64K", "ring_stream/64K", "cma"), "both": ("slots/128", "ring/16K", "ring/16K-2M", "cma"),
                        "rate": ("slots/64", "slots/128", "ring/4K", "cma")}.items():
        for method in methods:
            assert f",{value}:{method}," in values
    for method in ("swap/16K", "allreduce:swap/16K", "scatter:ring/16K-2M"):
        assert f"sweep,2,{method},300," in values, method
    written = (tmp_path / "results.md").read_text()
    assert "## Goals" in written and "| processor |" in written and "| NearMPI | NearMPI" in written
    for plot in ("rate-reused-2ranks.png", "latency-reused.png"):  # a curve over the sizes; bars, as there are only two
        assert (tmp_path / plot).read_bytes().startswith(b"\x89PNG")


def test_buffers_may_begin_anywhere_in_a_page(prefix):
    result = compare(prefix, "--what", "latency,bandwidth", "--rounds", 1, "--sizes", "8,65536", "--offset", 24)
    assert result.status == 0 and " failed " not in result.out, result.report()


@pytest.mark.parametrize("offset", [4, -8, 4096])
def test_an_offset_that_no_buffer_has_is_refused(prefix, offset):
    result = compare(prefix, "--rounds", 1, f"--offset={offset}")
    assert result.status == 2 and "--offset: a multiple of 8" in result.err, result.report()


@pytest.mark.parametrize(("script", "reason"), [("echo it broke >&2; exit 7", "status 7: it broke"),
                                                ("sleep 1000", "ended after")])
def test_a_launcher_that_fails_or_hangs_is_reported_in_every_round(prefix, tmp_path, script, reason):
    launcher = tmp_path / "bin/mpiexec"
    launcher.parent.mkdir()
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    result = compare(prefix, "--rounds", 3, "--what", "collectives", "--base", tmp_path, "--time-limit", 10)
    assert result.status == 0, result.report()
    assert f"base failed in 3 of 3 rounds: {reason}" in result.out, result.report()


def test_a_count_that_rises_by_more_than_five_per_cent_is_named():
    assert instructions.risen({"MPI_Send": 100.0, "MPI_Recv": 200.0}, {"MPI_Send": 105.0, "MPI_Recv": 20.0}) == []
    said = instructions.risen({"MPI_Send": 100.0, "MPI_Recv": 200.0}, {"MPI_Send": 106.0, "MPI_Test": 1.0})
    assert said == ["MPI_Send: 100 instructions have become 106", "MPI_Recv: no longer counted",
                    "MPI_Test: not in instructions.json yet"]


def test_a_function_that_is_never_called_has_no_count(prefix):
    instructions.build(nearmpi(prefix), "calls")
    absent = instructions.Count("absent", "send", ("near::no_such_function",))
    with pytest.raises(instructions.Unavailable, match="met no function near::no_such_function"):
        instructions.total(prefix, absent, 10)


def test_the_committed_counts_are_those_that_are_made():
    assert list(goals.committed_instructions()) == [count.name for count in instructions.COUNTS]
