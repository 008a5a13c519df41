"""Programs on two machines (machines.py), started by MPICH's Hydra; and on this one."""

import itertools
import re
import sys
from pathlib import Path

import harness
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machines import HYDRA  # noqa: E402
from test_rows import read_rows  # noqa: E402

# Programs of test/mpi that need all their ranks on one machine, and why.
ON_ONE_MACHINE = {
    "a rank computes, and accesses to its memory are to go on": ["a_target_need_not_take_part"],
    "mistakes in collectives are found in areas": ["blocks_longer_than_expected", "calls_disagree", "pair_calls_disagree", "ranks_disagree_on_sizes"],
    "they expect one machine": ["communicators", "every_poll_lets_others_run", "hardware_parts", "intercommunicators", "machines",
                                "operations_beyond_freed_memory"],
    "mpiexec's words about a rank that dies": ["a_sender_dies_before_its_first_large_message"],
}

# Each call on a dynamic window waits for its target, which shares its processor here.
TAKES_A_MINUTE = ("many_attached", 4)

# Arguments in place of those of a row: less of the same, since a message costs several system calls here, and a million of them take minutes
# beside compilers. A sender that nothing holds back is half way through the shorter flood before rank 0 receives, so it would be noticed.
SHORTER = {
    "a_flood_waits_at_its_senders": lambda arguments: [arguments[0], "100000"],
    "freed_requests_leave_in_time": lambda arguments: ["10000"],
}


def rows():
    """Two ranks on two machines, and four, in blocks and in turns."""
    excluded = set(itertools.chain(*ON_ONE_MACHINE.values()))
    turn = itertools.cycle((1, 2))
    for case in read_rows():
        program, arguments, ranks, environment, status, _ = case.values
        if program not in excluded and not environment and ranks in (2, 4):
            each = 1 if ranks == 2 else next(turn)
            if (program, ranks) != TAKES_A_MINUTE:
                arguments = SHORTER.get(program, list)(arguments)
                yield pytest.param(program, arguments, ranks, each, status, id=f"{case.id}-{each}")


def test_machines_share_nothing_but_the_network_and_files(two):
    names = [two.run(index, ["hostname"]).out.strip() for index in (0, 1)]
    assert names == ["m1", "m2"]
    processes = two.run(0, ["sh", "-c", "ls -d /proc/[0-9]* | wc -l"])
    assert int(processes.out) < 10, processes.report()
    reached = two.run(0, ["getent", "hosts", "m2"])
    assert reached.status == 0 and "10.77.0.2" in reached.out, reached.report()


@pytest.mark.parametrize("each", [1, 2])
def test_ranks_know_their_machines(two, compiled, each):
    result = two.hydra(4, [compiled("machines"), each], each=each)
    assert result.status == 0, result.report()
    places = dict(re.findall(r"rank (\d) on (m\d)", result.out))
    expected = {1: "m1 m2 m1 m2", 2: "m1 m1 m2 m2"}[each].split()
    assert [places[str(rank)] for rank in range(4)] == expected, result.report()


def test_an_abort_ends_all_ranks(two, compiled):
    result = two.hydra(4, [compiled("machines"), "abort"], each=2, timeout=30)
    assert result.status == 7 and not result.timed_out, result.report()
    assert not harness.survivors(result.mark)


@pytest.mark.parametrize("victim", [0, 3])
def test_the_death_of_a_rank_ends_all_ranks(two, compiled, victim):
    result = two.hydra(4, [compiled("machines"), "die", victim], each=2, timeout=30)
    assert result.status != 0 and not result.timed_out and result.seconds < 10, result.report()
    assert not harness.survivors(result.mark)


def test_a_network_that_is_not_there_is_named(two, compiled):
    result = two.hydra(2, [compiled("machines"), 1], environment={"NEAR_NETWORK": "tcp@ib0"})
    assert result.status != 0 and not result.timed_out, result.report()
    assert "this job has 2 machines, but no network joins them" in result.text, result.report()
    assert "with the provider tcp on ib0; there are: " in result.text and "NEAR_NETWORK=tcp@ib0" in result.text, result.report()


def test_libfabric_prepares_for_no_devices_that_are_not_there(two, compiled, tmp_path):
    devices = Path("/sys/class/infiniband")
    if devices.exists() and any(devices.iterdir()):
        pytest.skip("this machine has devices for RDMA, and libfabric prepares for them")
    traced = f"exec strace -f -o {tmp_path}/$PMI_RANK {compiled('machines')} 1"
    result = two.hydra(2, ["sh", "-c", traced])
    assert result.status == 0, result.report()
    for rank in ("0", "1"):
        paths = set(re.findall(r'openat\(AT_FDCWD, "([^"]+)".* = \d+$', (tmp_path / rank).read_text(), re.M))
        assert any("libfabric.so.1" in path for path in paths), paths
        assert "/proc/kallsyms" not in paths
        assert {Path(path).parent.name for path in paths if "libpsm" in path} == {"nearmpi"}, paths


@pytest.mark.parametrize("one, other", [("net", "tcp"), ("auto", "@lo"), ("@lo", "auto")])
def test_ranks_on_different_networks_say_so(one, other, two, compiled):
    program = compiled("ring")
    apart = ["-n", 1, "-env", "NEAR_NETWORK", one, program, ":", "-n", 1, "-env", "NEAR_NETWORK", other, program]
    result = harness.run([*two.hydra_start(), "-ppn", 1, *apart], timeout=30)
    assert result.status != 0 and not result.timed_out, result.report()
    assert "name the same network for all (NEAR_NETWORK)" in result.text and "defect" not in result.text, result.report()
    assert "@lo" not in (one, other) or "/own machine only" in result.text or "on lo;" in result.text, result.report()


@pytest.mark.parametrize("program, arguments, ranks, each, status", rows())
def test_row_on_two_machines(two, compiled, program, arguments, ranks, each, status):
    result = two.hydra(ranks, [compiled(program), *arguments], each=each)
    right = result.status != 0 if status == "fails" else result.status == int(status)
    assert right and not result.timed_out, f"expected status {status}\n{result.report()}"


@pytest.mark.parametrize("network", ["net", "tcp"])
@pytest.mark.parametrize("length", [1, 64, 1000, 4096])
def test_waited_sends_leave_through_narrow_connections(narrow, compiled, length, network):
    result = narrow.hydra(2, [compiled("waited_sends_need_no_more_calls"), length], environment={"NEAR_NETWORK": network}, timeout=60)
    assert result.status == 0 and not result.timed_out, result.report()


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("each", [1, 2])
def test_windows_on_three_machines(three, compiled, each, seed):
    result = three.hydra(6, [compiled("random_one_sided"), seed, 12], each=each, timeout=120)
    assert result.status == 0 and not result.timed_out, result.report()


def test_each_program_of_a_list_knows_its_number(compiled):
    program = compiled("machines")
    result = harness.run([HYDRA, "-n", 1, program, "application", 0, ":", "-n", 2, program, "application", 1])
    assert result.status == 0 and not result.timed_out, result.report()


def test_hydra_starts_jobs_on_one_machine(compiled):
    result = harness.run([HYDRA, "-n", 3, compiled("ring")])
    assert result.status == 0 and not result.timed_out, result.report()
    assert not harness.survivors(result.mark)
