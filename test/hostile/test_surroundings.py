"""Hostile environments: a job works, perhaps more slowly, or reports once at the start what it lacks.

Single limits have separate tests, too (test/launch/test_limits.py, test/test_denied_copies.py).
"""

import re
import shlex
import subprocess

import harness
import pytest

RANKS = 3
MOUNTS = ["unshare", "--mount", "--propagation", "private"]


def unshared():
    """The prefix that gives a command its own mounts: as root, or in a user namespace; [] if neither is allowed."""
    for command in (MOUNTS, [*MOUNTS, "--user", "--map-root-user"]):
        tried = subprocess.run([*command, "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True, timeout=30)
        if tried.returncode == 0:
            return command
    return []


@pytest.fixture(scope="session")
def own_mounts():
    """own_mounts(change): the prefix for a command that runs after `change` has changed the mounts."""
    command = unshared()
    if not command:
        pytest.skip("this machine does not allow this user to have separate mounts")
    return lambda change: [*command, "sh", "-c", f"{change} && exec \"$@\"", "sh"]


@pytest.fixture
def job(prefix, compiled, nothing_left):
    """job(before mpiexec, before each rank, program and arguments): runs a job and returns its result."""

    def run(before, wrapper=(), program=("all_traffic",), ranks=RANKS, **options):
        name, *arguments = program
        words = [prefix / "bin/mpiexec", "--oversubscribe", "-n", ranks, *wrapper, compiled(name), *arguments]
        result = nothing_left([*before, *words], timeout=60, **options)
        assert not result.timed_out, result.report()
        return result

    return run


def worked(result):
    assert (result.status, result.err) == (0, ""), result.report()


def shell(script):
    """The prefix that runs `script` before a command."""
    return ["bash", "-c", f"{script}; exec \"$@\"", "bash"]


def refused(result, named):
    """Checks that the job was refused before any rank ran, in one line that contains `named`."""
    assert result.status not in (0, 153) and result.out == "", result.report()
    said = [line for line in result.err.splitlines() if line]
    assert len(said) == 1 and said[0].startswith("mpiexec: ") and named in said[0], result.report()


MOUNT_CHANGES = {
    "64 MB in /dev/shm": "mount -t tmpfs -o size=64m tmpfs /dev/shm",
    "no room in /dev/shm": "mount -t tmpfs -o size=4k tmpfs /dev/shm",
    "read-only /dev/shm": "mount -t tmpfs -o ro tmpfs /dev/shm",
    "no /proc": "umount -l /proc",
    "read-only working directory": "mkdir /dev/shm/here && mount -t tmpfs -o ro tmpfs /dev/shm/here && cd /dev/shm/here && "
                                   "! touch file 2>/dev/null",
}


@pytest.mark.parametrize("change", MOUNT_CHANGES)
def test_mounts_that_others_need_are_not_needed(change, own_mounts, job):
    script = MOUNT_CHANGES[change]
    if "mkdir" in script:
        script = f"mount -t tmpfs tmpfs /dev/shm && {script}"
    worked(job(own_mounts(script), ranks=4))


@pytest.mark.parametrize("way, status, says", [("kill", 137, "was ended by signal 9"), ("abort", 7, "called MPI_Abort"),
                                               ("no-finalize", 1, "without MPI_Finalize")])
@pytest.mark.parametrize("wrapped", [(), ("sh", "-c", "\"$0\" \"$@\"; exit $?")], ids=["plain", "wrapped"])
def test_without_proc_a_bad_end_is_the_end_of_all(way, status, says, wrapped, own_mounts, job):
    result = job(own_mounts("umount -l /proc"), wrapped, ("end_badly", way))
    lines = [line for line in result.err.splitlines() if line.startswith("mpiexec: ")]
    assert len(lines) == 1, result.report()
    if not wrapped:
        assert result.status == status and says in lines[0], result.report()


def test_without_proc_a_timeout_is_the_end_of_all(own_mounts, prefix, compiled, nothing_left):
    result = nothing_left([*own_mounts("umount -l /proc"), prefix / "bin/mpiexec", "-n", 2, "--timeout", "0.5",
                           compiled("end_badly"), "hang"])
    assert result.status == 124 and not result.timed_out, result.report()


def test_processes_of_another_proc_are_left_alone(own_mounts, job):
    """In a process namespace with the /proc of its parent, process IDs refer to other processes."""
    command = own_mounts("true")[:-4]
    result = job([*command, "--pid", "--fork"], (), ("end_badly", "kill"))
    assert result.status == 137 and "was ended by signal 9" in result.err, result.report()


CLOSED = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("alone", [False, True], ids=["job", "singleton"])
def test_closed_standard_streams_do_no_harm(closed, alone, job, compiled, nothing_left):
    before = ["bash", "-c", f"exec \"$@\" {closed}", "bash"]
    result = nothing_left([*before, compiled("all_traffic")]) if alone else job(before)
    # Without standard output, the program may fail, but the job must end.
    assert not result.timed_out and (result.status == 0 or ">&-" in closed), result.report()


CLOSE_ALL = ("for f in /proc/self/fd/*; do n=${f##*/}; [ $n -gt 2 ] && eval \"exec $n>&-\"; done; exec \"$0\" \"$@\"")


def test_a_wrapper_that_closes_every_descriptor_does_no_harm(job):
    worked(job([], ["bash", "-c", CLOSE_ALL]))


def test_closed_descriptors_without_proc_are_one_error_that_says_so(own_mounts, job):
    close = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec \"$0\" \"$@\""
    result = job(own_mounts("umount -l /proc"), ["bash", "-c", close])
    assert result.status != 0 and "the shared segment of the job" in result.err and "out of reach" in result.err
    assert len([line for line in result.err.splitlines() if line.startswith("mpiexec: ")]) == 1, result.report()


@pytest.mark.parametrize("limit", ["-l 0", "-f 100000", "-f 1000000", "-v 400000", "-v 1000000", "-v 4000000",
                                   "-s 256", "-c 0", "-i 4", "-q 0", "-Sn 16", "-Sn 32"])
def test_a_small_limit_that_can_be_met_is_met(limit, job):
    result = job(shell(f"ulimit {limit}"))
    if limit.startswith("-v") and "AddressSanitizer" in result.err:
        pytest.skip("the sanitizer needs more addresses than this limit gives")
    worked(result)


@pytest.mark.parametrize("limit, named", [("-n 16", "(ulimit -Hn)"), ("-n 32", "(ulimit -Hn)"), ("-f 100", "(ulimit -f)"),
                                          ("-f 20000", "(ulimit -f)"), ("-v 40000", "(ulimit -v)")])
def test_a_limit_that_is_too_small_is_named_once(limit, named, job, request):
    if limit.startswith("-v") and "sanitize" in request.config.getoption("--cflags"):
        pytest.skip("the sanitizer needs more addresses than this limit gives")
    refused(job(shell(f"ulimit {limit}")), named)


@pytest.mark.parametrize("descriptors", [6, 8, 12, 16, 32])
def test_ranks_need_few_descriptors(descriptors, job):
    worked(job([], shell(f"ulimit -n {descriptors}")))


def test_every_limit_on_addresses_gives_a_right_result_or_one_error(job, request):
    """From too little for mpiexec to ample: no limit may make it hang, crash or fail silently."""
    if "sanitize" in request.config.getoption("--cflags"):
        pytest.skip("the sanitizer needs more addresses than these limits give")
    ends = []
    for kib in (30_000, 45_000, 55_000, 70_000, 90_000, 120_000, 160_000, 250_000, 500_000):
        result = job(shell(f"ulimit -v {kib}"))
        ends.append(result.status == 0)
        if result.status == 0:
            assert result.err == "", result.report()
        else:
            assert "ulimit -v" in result.err or "shared librar" in result.err, f"{kib} KiB\n{result.report()}"
    assert ends[-1] and ends == sorted(ends), f"a larger limit must not be worse: {ends}"


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("namespaces", [["--user", "--map-root-user"], ["--user", "--map-root-user", "--ipc", "--uts"],
                                        ["--user", "--map-root-user", "--mount", "--net"]])
def test_ranks_in_namespaces_of_their_own_reach_each_other(namespaces, ranks, job, unshare):
    result = job([], unshare(*namespaces), ranks=ranks)
    assert result.status == 0, result.report()
    said = [line for line in result.err.splitlines() if line]
    assert len(said) <= 1 and all("two copies through shared memory" in line for line in said), result.report()


@pytest.fixture
def group_with(small_memory_group):
    """group_with(bytes): the prefix for a command that runs in a control group with this memory limit."""
    limit = next(small_memory_group / name for name in ("memory.limit_in_bytes", "memory.max")
                 if (small_memory_group / name).exists())

    def words(number):
        limit.write_text(str(number))
        return shell(f"echo $$ > {shlex.quote(str(small_memory_group / 'cgroup.procs'))}")

    return words


@pytest.mark.parametrize("mebibytes", [12, 16, 24, 48, 200])
def test_a_memory_limit_gives_a_right_result_or_one_error(mebibytes, group_with, job):
    result = job(group_with(mebibytes << 20), ranks=4)
    if result.status == 0:
        assert result.err == "", result.report()
        return
    assert mebibytes < 200, result.report()
    lines = [line for line in result.err.splitlines() if line]
    assert lines and all("memory" in line for line in lines), result.report()
    # Usually one line. But when a rank reports that it got no memory, the kernel may at the same time kill another one,
    # which mpiexec reports: each prints one line.
    speakers = {re.match(r"mpiexec|near: rank \d+|", line).group() for line in lines}
    assert "" not in speakers and len(speakers) == len(lines), result.report()


def test_two_jobs_at_a_time_share_nothing(prefix, compiled):
    first, second = (harness.Running([prefix / "bin/mpiexec", "--oversubscribe", "-n", 3, compiled("all_traffic")])
                     for _ in range(2))
    for running in (first, second):
        worked(running.finish(60))
        assert not harness.survivors(running.mark)
