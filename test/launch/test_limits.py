"""Small limits (ulimit): a job that fits runs; for one that does not, one line names the limit to raise."""

import os
import re

import pytest


@pytest.fixture
def limited(prefix, nothing_left):
    """limited("-f 1000", program, ...): runs a command under a limit; "mpiexec" means the installation's."""

    def run(limit, *command):
        words = [prefix / "bin/mpiexec" if word == "mpiexec" else word for word in command]
        result = nothing_left(["bash", "-c", f"ulimit {limit}; exec \"$@\"", "bash", *words], timeout=60)
        assert not result.timed_out, result.report()
        return result

    return run


@pytest.mark.parametrize("limit", ["-f 1000000", "-f 20000", "-v 4000000"])
def test_the_segment_gets_smaller_with_the_limit(limited, compiled, limit):
    for command in ["mpiexec", "-n", "2", compiled("end_badly"), "well"], [compiled("end_badly"), "well"]:
        result = limited(limit, *command)
        assert (result.status, result.err) == (0, ""), result.report()


def test_a_limit_on_file_sizes_that_is_too_small_is_named(limited, compiled):
    result = limited("-f 1000", "mpiexec", "-n", "2", compiled("end_badly"), "well")
    assert result.status == 1 and result.err.startswith("mpiexec: ") and "(ulimit -f)" in result.err, result.report()
    assert result.err.count("\n") == 1
    result = limited("-f 1000", compiled("end_badly"), "well")
    assert result.status not in (0, 153) and "MPI_Init" in result.err and "(ulimit -f)" in result.err, result.report()


@pytest.mark.parametrize("limit, named", [("-n 20", "(ulimit -Hn)"), ("-v 30000", "(ulimit -v)")])
def test_a_job_that_cannot_be_prepared_is_reported_once(limited, limit, named):
    result = limited(limit, "mpiexec", "-n", "2", "true")
    assert result.status == 1 and result.err.startswith("mpiexec: ") and named in result.err, result.report()
    assert result.err.count("\n") == 1 and result.err.endswith("\n")


def test_the_reported_reservation_of_the_ranks_is_right(launch, compiled):
    env = {"NEAR_EAGER_LIMIT": "64", "NEAR_PACKETS": "70000"}
    result = launch("-n", "1", compiled("shows_its_memory"), env=env)
    told = re.search(r"note: (\d+) MiB of packets and queues for 1 rank ", result.err)
    assert result.status == 0 and told, result.report()
    reserved = int(result.out) / 1024  # RssShmem, in KiB
    assert reserved * 0.95 < int(told[1]) <= reserved, result.report()


@pytest.mark.parametrize("command", [[], ["mpiexec", "--oversubscribe", "-n", "3", "env"]], ids=["without-mpiexec", "behind-env"])
def test_a_rank_reports_what_mpiexec_does_not_know(nothing_left, prefix, compiled, command):
    packets = "25000" if command else "70000"  # over 1 GiB in all
    knobs = {"NEAR_EAGER_LIMIT": "64", "NEAR_PACKETS": packets}
    words = [prefix / "bin/mpiexec" if word == "mpiexec" else word for word in command]
    if command:
        words += [f"{name}={value}" for name, value in knobs.items()]
    result = nothing_left([*words, compiled("end_badly"), "well"], timeout=60, env=None if command else knobs)
    ranks = "3 ranks" if command else "1 rank"
    told = re.findall(rf"(\d+) MiB of packets and queues for {ranks} .*NEAR_PACKETS={packets}", result.err)
    assert result.status == 0 and len(told) == 1, result.report()
    assert result.err.count("\n") == 1


def test_more_memory_than_the_machine_has_is_refused_before_any_rank_starts(launch):
    # Enough ranks for their packets of 16 KiB to exceed the machine's memory.
    ranks = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (16 << 30) + 1
    env = {"NEAR_EAGER_LIMIT": "64", "NEAR_PACKETS": "1048576"}
    result = launch("--oversubscribe", "-n", str(ranks), "echo", "started", env=env)
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1), result.report()
    assert "NEAR_PACKETS=1048576" in result.err and "do not fit" in result.err, result.report()


@pytest.fixture
def in_small_group(small_memory_group, prefix, nothing_left):
    """in_small_group(program, ...): runs a command in a control group with 200 MiB; "mpiexec" means the installation's."""

    def run(*command):
        words = [prefix / "bin/mpiexec" if word == "mpiexec" else word for word in command]
        enter = ["sh", "-c", f"echo $$ >{small_memory_group}/cgroup.procs && exec \"$@\"", "sh"]
        result = nothing_left([*enter, *words], timeout=60)
        assert not result.timed_out, result.report()
        return result

    return run


BEHIND_ENV = ["mpiexec", "--oversubscribe", "-n", "4", "env", "NEAR_EAGER_LIMIT=64"]


def test_what_fits_each_rank_but_not_all_is_refused_behind_env(in_small_group, compiled):
    for _ in range(5):  # 4 times 62 MiB
        result = in_small_group(*BEHIND_ENV, "NEAR_PACKETS=4000", compiled("end_badly"), "well")
        assert result.status != 0 and "signal" not in result.err, result.report()
        assert "NEAR_PACKETS=4000" in result.err and "do not fit: " in result.err, result.report()
        assert "lower the one that is too large, or start fewer ranks" in result.err, result.report()


def test_what_fits_all_ranks_is_not_refused_behind_env(in_small_group, compiled):
    for _ in range(5):  # 4 times 39 MiB
        result = in_small_group(*BEHIND_ENV, "NEAR_PACKETS=2500", compiled("end_badly"), "well")
        assert (result.status, result.err) == (0, ""), result.report()


def test_a_rank_without_mpiexec_that_is_refused_memory_names_the_knobs(in_small_group, compiled):
    result = in_small_group("env", "NEAR_EAGER_LIMIT=64", "NEAR_PACKETS=20000", compiled("end_badly"), "well")
    assert result.status != 0 and "NEAR_PACKETS=20000" in result.err, result.report()
    assert "do not fit: " in result.err and "lower the one that is too large" in result.err, result.report()


def test_packets_of_one_application_get_their_room(launch, compiled):
    # 20000 packets of 16 KiB exceed the usual share of a rank in a segment for 32 ranks.
    well = [compiled("end_badly"), "well"]
    result = launch("--oversubscribe", "-n", "1", "-env", "NEAR_PACKETS", "20000", *well, ":", "-n", "31", *well)
    assert (result.status, result.err) == (0, ""), result.report()


def test_only_limits_that_are_set_are_to_be_raised(limited, compiled):
    # The variable is in the rank's own environment, which mpiexec does not see when it makes the segment.
    command = ["mpiexec", "--oversubscribe", "-n", "32", "env", "NEAR_PACKETS=60000", compiled("end_badly"), "well"]
    result = limited("-c 0", *command)
    assert result.status != 0 and "lower NEAR_PACKETS" in result.err, result.report()
    assert "ulimit" not in result.err and "or give them to mpiexec" in result.err, result.report()
    result = limited("-f 100000000", *command)
    assert "raise the limit on file sizes (ulimit -f), lower NEAR_PACKETS" in result.err, result.report()
    assert "ulimit -v" not in result.err, result.report()


@pytest.mark.parametrize("ranks", ["1", "2", "4"])
def test_messages_leave_when_the_program_has_taken_all_memory(limited, compiled, ranks):
    result = limited("-f 100000", "mpiexec", "--oversubscribe", "-n", ranks, compiled("uses_all_shareable_memory"))
    assert result.status == 0, result.report()
    warned = [line for line in result.err.splitlines() if "messages that are under way to others" in line]
    assert len(warned) == int(ranks), result.report()
    assert all("has no 4096 free bytes in a row" in line for line in warned), result.report()
