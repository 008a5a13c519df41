"""Our own mpiexec on several machines (machines.py): reached by ssh, or by a script that enters them."""

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import gdb
import harness
import pytest

# What messages add to the name of the second machine, if these tests run with NEAR_FANOUT=1.
FROM = " (reached from m1)" if os.environ.get("NEAR_FANOUT") == "1" else ""


@pytest.fixture(scope="session")
def lab(three):
    return three


@pytest.fixture(scope="session")
def ssh(lab):
    return lab.ssh()


@pytest.fixture
def start(lab, prefix):
    """start(option, ..., **harness options): runs mpiexec, and checks that no process is left on any machine."""

    def run(*words, timeout=60, **options):
        result = lab.mpiexec(prefix, *words, timeout=timeout, **options)
        assert not result.timed_out, result.report()
        left = harness.survivors(result.mark)
        assert not left, f"{left}\n{result.report()}"
        for index in range(lab.count):
            assert lab.run(index, ["ls", "/dev/shm"]).out == "", result.report()
        return result

    return run


SAY = ["sh", "-c", "echo $(hostname) $NEAR_RANK $NEAR_SIZE $NEAR_LOCAL_RANK $NEAR_LOCAL_SIZE"]


def said(result):
    """What SAY printed, by rank: the machine, its number there and how many are there."""
    assert result.status == 0, result.report()
    rows = sorted((int(rank), host, int(size), int(local), int(here)) for host, rank, size, local, here in map(str.split, result.out.splitlines()))
    assert [row[0] for row in rows] == list(range(len(rows))) and {row[2] for row in rows} == {len(rows)}, result.report()
    return [(row[1], row[3], row[4]) for row in rows]


@pytest.mark.parametrize(("options", "machines"), [
    (["--hosts", "m1:2,m2:1"], "m1 m1 m2"),
    (["--hosts", "m1:2,m2:2", "-n", "2"], "m1 m1"),
    (["-hosts", "m1,m2", "-n", "4"], "m1 m1 m2 m2"),
    (["--hosts", "m1,m2,m3", "-ppn", "1", "-n", "5"], "m1 m2 m3 m1 m2"),
    (["--hosts", "m2,m1", "-rr", "-n", "3"], "m2 m1 m2"),
    (["--hosts", "m1,m2", "--npernode", "2"], "m1 m1 m2 m2"),
    (["-f", "FILE"], "m1 m1 m3"),
    (["--hostfile", "FILE", "-n", "1"], "m1"),
])
def test_ranks_are_distributed(start, tmp_path, options, machines):
    (tmp_path / "hosts").write_text("m1 slots=2  # the first\nm3:1\n")
    result = start("--oversubscribe", *[str(tmp_path / "hosts") if word == "FILE" else word for word in options], *SAY)
    rows = said(result)
    assert [row[0] for row in rows] == machines.split(), result.report()
    for name in set(machines.split()):
        assert [row[1] for row in rows if row[0] == name] == list(range(machines.split().count(name)))


def test_programs_have_machines_of_their_own(start):
    result = start("-host", "m2", "-n", "1", *SAY, ":", "-host", "m1", "-n", "2", "--oversubscribe", *SAY)
    assert [row[0] for row in said(result)] == ["m2", "m1", "m1"], result.report()


@pytest.mark.parametrize("options", [["--hosts", "m1:2,m2:2"], ["--hosts", "m1,m2", "-ppn", "1", "-n", "4"], ["--hosts", "m1:1,m2:1,m3:1"]])
def test_ranks_send_messages(start, compiled, options):
    for program in ("ring", "collectives"):
        result = start("--oversubscribe", *options, compiled(program))
        assert result.status == 0, result.report()


@pytest.mark.parametrize(("options", "leaders"), [(["--hosts", "m1:2,m2:2"], {0, 2}), (["--hosts", "m1,m2,m3", "-rr", "-n", "6"], {0, 1, 2})])
def test_only_leaders_send_to_other_machines_in_collectives(start, compiled, options, leaders):
    result = start("--oversubscribe", *options, "-env", "NEAR_COLL", "allreduce=by_machine", "-env", "NEAR_STATS", "1", compiled("led"), "allreduce")
    assert result.status == 0, result.report()
    assert {int(rank) for rank in re.findall(r"^near: rank (\d): .*to other machines: ", result.err, re.M)} == leaders, result.report()


def test_ssh_reaches_the_other_machine(start, ssh, compiled):
    """Started on m1, which needs no ssh."""
    result = start("--oversubscribe", "--hosts", "m1:2,m2:2", compiled("machines"), 2, ssh=ssh)
    assert result.status == 0, result.report()
    assert dict(re.findall(r"rank (\d) on (m\d)", result.out)) == {"0": "m1", "1": "m1", "2": "m2", "3": "m2"}, result.report()


def test_ssh_keeps_words_and_environment(start, ssh, tmp_path):
    (tmp_path / "a b").mkdir()
    words = ["it's", "a  b", "$HOME", "*", '"', "\\", ""]
    result = start("--hosts", "m2", "-n", "1", "-wdir", tmp_path / "a b", "-env", "ODD", "x y'z\n$", "sh", "-c",
                   'pwd; printf "<%s>" "$@" "$ODD" "$GIVEN"', "sh", *words, ssh=ssh, env={"GIVEN": "1 'two'"})
    assert result.status == 0, result.report()
    assert result.out == f"{tmp_path}/a b\n" + "".join(f"<{word}>" for word in [*words, "x y'z\n$", "1 'two'"]), result.report()


def test_a_machine_that_ssh_does_not_reach_is_named(start, ssh):
    result = start("--hosts", "m1,nowhere", "true", ssh=ssh)
    assert result.status != 0 and "machine nowhere: ssh ended with status 255: " in result.err, result.report()


def test_a_machine_without_mpiexec_is_named(lab, start, prefix, tmp_path):
    """The shell of the other machine does not find the program."""
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\nexec sh -c 'exec /nowhere/mpiexec --agent'\n")
    shell.chmod(0o755)
    result = start("--remote-shell", str(shell), "--hosts", "m1", "true")
    assert result.status != 0 and "its shell did not find mpiexec" in result.err, result.report()


def test_another_program_than_an_agent_is_noticed(start, tmp_path):
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\necho 'Welcome!'\nexec cat\n")
    shell.chmod(0o755)
    result = start("--remote-shell", str(shell), "--hosts", "m1", "--timeout", "3", "true")
    assert result.status == 124, result.report()


def test_lines_do_not_mix_and_none_is_lost(start):
    count = 3000
    result = start("--oversubscribe", "--tag-output", "--hosts", "m1:2,m2:2", "sh", "-c",
                   f"i=0; while [ $i -lt {count} ]; do echo line $i of rank $NEAR_RANK; i=$((i+1)); done")
    assert result.status == 0, result.report()
    for rank in range(4):
        lines = [line for line in result.out.splitlines() if line.endswith(f"of rank {rank}")]
        assert [int(re.search(r"line (\d+) ", line)[1]) for line in lines] == list(range(count))
        assert len({line[:line.index("line")] for line in lines}) == 1
    assert len(result.out.splitlines()) == 4 * count


def test_standard_input_goes_to_rank_0(start):
    text = "".join(f"{number}\n" for number in range(200_000))
    result = start("--hosts", "m2:1,m1:1", "sh", "-c", "cat", input=text)
    assert result.status == 0 and result.out == text, result.report()[-2000:]


def test_standard_input_goes_to_all_ranks_that_ask(start):
    text = "".join(f"{number}\n" for number in range(100_000))
    result = start("-s", "all", "--oversubscribe", "--hosts", "m1:2,m2:1", "sh", "-c", "cksum", input=text)
    assert result.status == 0 and len(set(result.out.splitlines())) == 1 and len(result.out.splitlines()) == 3, result.report()


def test_input_that_nobody_reads_ends_with_the_job(start):
    result = start("--hosts", "m1,m2", "-ppn", "1", "-n", "2", "true", input="x" * (8 << 20))
    assert result.status == 0, result.report()


@pytest.mark.parametrize(("failing", "status", "words"), [
    ("exit 7", 7, r"rank 3 \(sh, pid \d+ on m2\) exited with status 7; 3 other ranks were ended with it"),
    ("kill -9 $$", 137, r"rank 3 \(sh, pid \d+ on m2\) was ended by signal 9 \(SIGKILL\).*; 3 other ranks were ended with it"),
])
def test_a_rank_that_fails_ends_all(start, failing, status, words):
    result = start("--oversubscribe", "--hosts", "m1:2,m2:2", "sh", "-c", f"test $NEAR_RANK = 3 || exec sleep 60; sleep 0.5; {failing}", timeout=20)
    assert result.status == status, result.report()
    assert re.search(words, result.err) and result.err.count("mpiexec:") == 1, result.report()


@pytest.mark.parametrize(("way", "status", "words"), [
    ("abort", 7, "rank 1 (end_badly on m2) called MPI_Abort with code 7; 1 other rank was ended with it"),
    ("kill", 137, "in-mpi"),
    ("exit", 3, "exited with status 3"),
    ("no-finalize", 1, "without MPI_Finalize"),
])
def test_a_rank_that_ends_in_mpi_ends_all(start, compiled, way, status, words):
    result = start("--hosts", "m1,m2", "-ppn", "1", "-n", "2", compiled("end_badly"), way, timeout=20)
    assert result.status == status, result.report()
    assert "rank 1 (" in result.err and words.replace("in-mpi", "was ended by signal 9") in result.err, result.report()
    assert ("last words" in result.out) == (way == "abort"), result.report()


def test_a_program_that_is_missing_is_said_once(start):
    result = start("--hosts", "m1,m2", "-ppn", "1", "-n", "2", "/nowhere/program", timeout=20)
    assert result.status == 127 and "/nowhere/program" in result.err, result.report()


def test_ranks_that_do_not_call_init_do_not_block_the_others(start, compiled):
    result = start("--oversubscribe", "-host", "m1", "-n", "1", compiled("ring"), ":", "-host", "m2", "-n", "1", "true", timeout=30)
    words = "rank 1 on m2 ended without calling MPI_Init or MPI_Finalize, where rank 0 on m1 waits"
    assert result.status == 1 and words in result.err, result.report()


def test_a_rank_beside_others_that_does_not_call_init_is_named(start, compiled):
    """The others of its machine wait in MPI_Init for the whole job."""
    result = start("--oversubscribe", "--hosts", "m1:2,m2:2", "sh", "-c", f"test $NEAR_RANK = 2 || exec {compiled('ring')}; sleep 0.5", timeout=30)
    words = r"rank 2 \(sh, pid \d+ on m2\) exited with status 0 without calling MPI_Init, which other ranks wait in"
    assert result.status == 1 and re.search(words, result.err), result.report()


def test_output_that_cannot_be_written_is_an_error(lab, prefix):
    """As on one machine."""
    words = lab.mpiexec_words(prefix, "--hosts", "m1,m2", "-ppn", "1", "-n", "2", "hostname")
    result = harness.run(["sh", "-c", '"$@" >/dev/full', "sh", *words], timeout=20)
    assert result.status == 1 and "cannot write to standard output" in result.err, result.report()


def test_a_reader_that_has_enough_ends_the_job(lab, prefix):
    words = lab.mpiexec_words(prefix, "--hosts", "m1,m2", "-ppn", "1", "-n", "2", "yes")
    result = harness.run(["sh", "-c", '"$@" | head -n 3', "sh", *words], timeout=20)
    assert result.out == "y\n" * 3 and result.err == "" and not result.timed_out, result.report()
    assert not harness.survivors(result.mark)


def test_a_slow_reader_gets_everything_and_the_reason(lab, prefix):
    """The job has failed long before its output is read."""
    words = lab.mpiexec_words(prefix, "--oversubscribe", "--hosts", "m1:1,m2:1", "sh", "-c", "seq 400000; test $NEAR_RANK = 0 || exit 3")
    result = harness.run(["bash", "-c", 'set -o pipefail; "$@" | (sleep 6; wc -l)', "bash", *words], timeout=40)
    assert result.status == 3 and "exited with status 3" in result.err and int(result.out) >= 400_000, result.report()


def test_the_time_is_limited_everywhere(start):
    result = start("--timeout", "1", "--hosts", "m1,m2", "-ppn", "1", "-n", "2", "sleep", "60", timeout=20)
    assert result.status == 124, result.report()
    assert "the job was ended after 1 s (--timeout)" in result.err and "on m1:" in result.err and "on m2:" in result.err, result.report()


def test_the_plan_of_every_machine_is_explained(start):
    result = start("--explain", "--oversubscribe", "--hosts", "m1:2,m2:2", "./program")
    assert result.status == 0, result.report()
    assert result.out.index("machine m1: ranks 0-1") < result.out.index("machine m2: ranks 2-3"), result.report()


@pytest.mark.parametrize("debugged", [1, 0])
def test_gdb_finds_the_ranks_of_all_machines(lab, prefix, nothing_left, tmp_path, debugged):
    """While gdb holds mpiexec, that is silent for longer than a machine may be."""
    def run(words, **options):
        return nothing_left(words, env={"NEAR_LOST_AFTER": 2}, **options)

    def launch(*program):
        return lab.mpiexec_words(prefix, "--oversubscribe", "--hosts", "m1:1,m2:1", *program)

    assert gdb.session(prefix, run, tmp_path, debugged, launch, pause=5 * debugged) == ["m1", "m2"]


def wait_for(file, seconds=30):
    deadline = time.monotonic() + seconds
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert file.exists()


class Started:
    """An mpiexec that runs while the test does something."""

    def __init__(self, lab, prefix, *words, environment=None):
        self.running = harness.Running(lab.mpiexec_words(prefix, *words), env=environment)

    def await_line(self, text, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            line = self.running.process.stdout.readline()
            if text in line or not line:
                return line
        raise AssertionError(f"no line with {text}")

    def pids(self, name):
        """The processes of this job whose command line has this text."""
        return [pid for pid in harness.marked(self.running.mark)
                if name in Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")]

    def finish(self, seconds=15):
        result = self.running.finish(seconds)
        assert not result.timed_out, result.report()
        left = harness.survivors(result.mark)
        assert not left, f"{left}\n{result.report()}"
        return result


@pytest.fixture
def started(lab, prefix, request):
    """Four ranks that sleep. A case may be parametrized with variables of mpiexec."""
    job = Started(lab, prefix, "--oversubscribe", "--hosts", "m1:2,m2:2", "sh", "-c", "echo up; exec sleep 77",
                  environment=getattr(request, "param", None))
    for _ in range(4):
        job.await_line("up")
    yield job
    harness.end_all(job.running.mark)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all(started, number):
    os.kill(started.pids("bin/mpiexec --remote-shell")[0], number)
    result = started.finish()
    assert result.status == 128 + number and f"ended by {number.name}; 4 ranks were ended with it" in result.err, result.report()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ranks_of_all_machines_may_save_their_work(lab, prefix, number):
    script = f"trap 'sleep 5; echo saved; exit' {number.name.removeprefix('SIG')}; sleep 77 & echo up; while :; do wait; done"
    job = Started(lab, prefix, "--oversubscribe", "--hosts", "m1:1,m2:1", "sh", "-c", script)
    for _ in range(2):
        job.await_line("up")
    os.kill(job.pids("bin/mpiexec --remote-shell")[0], number)
    result = job.finish()
    assert (result.status, result.out.count("saved")) == (128 + number, 2), result.report()


def test_nothing_is_left_when_mpiexec_is_killed(started):
    os.kill(started.pids("bin/mpiexec --remote-shell")[0], signal.SIGKILL)
    assert started.finish().status == 128 + signal.SIGKILL


@pytest.mark.parametrize("half", ["agent", "front end", "supervisor"])
def test_nothing_is_left_when_part_of_an_agent_is_killed(started, half):
    processes = started.pids("mpiexec --agent")
    depth = {"agent": 0, "front end": 1, "supervisor": 2}[half]

    def depth_of(pid):
        parent = harness.parent_of(pid)
        return 1 + depth_of(parent) if parent in processes else 0

    os.kill(next(pid for pid in processes if depth_of(pid) == depth), signal.SIGKILL)
    result = started.finish()
    unwatched = r"the process that watched the ranks on m\d was killed by SIGKILL"
    words = r"machine m\d: the connection to it has ended; ranks" if half == "agent" else unwatched
    assert result.status != 0 and result.err.count("mpiexec:") == 1 and re.search(words, result.err), result.report()


@pytest.mark.parametrize(("what", "seconds"), [("later", 3.5), ("waitall", 1.5)])
def test_ranks_that_miss_another_leave_the_word_to_mpiexec(lab, prefix, compiled, tmp_path, what, seconds):
    """Rank 0 notices the loss of rank 1 at once, or two seconds after it, and before mpiexec, which is stopped meanwhile."""
    job = Started(lab, prefix, "--hosts", "m1:1,m2:1", compiled("deaths"), tmp_path, 1, what, environment={"NEAR_LOST_AFTER": 20})
    try:
        for rank in (0, 1):
            wait_for(tmp_path / str(rank))
        mpiexec = job.pids("bin/mpiexec --remote-shell")[0]
        there = os.readlink(f"/proc/{lab.pids[1]}/ns/uts")
        agents = [pid for pid in job.pids("mpiexec --agent") if os.readlink(f"/proc/{pid}/ns/uts") == there]
        os.kill(mpiexec, signal.SIGSTOP)
        for pid in agents:
            with contextlib.suppress(ProcessLookupError):  # they end with each other
                os.kill(pid, signal.SIGKILL)
        (tmp_path / "killed").touch()
        time.sleep(seconds)
        os.kill(mpiexec, signal.SIGCONT)
        result = job.finish()
    finally:
        harness.end_all(job.running.mark)
    assert re.fullmatch(rf"mpiexec: machine m2{re.escape(FROM)}: the connection to it has ended; rank 1 is lost.*\n", result.err), result.report()


@pytest.mark.parametrize("what", ["receive", "waitall", "compute", "allreduce"])
def test_a_network_that_fails_is_noticed_although_the_agents_answer(lab, prefix, compiled, tmp_path, what):
    """The agents here do not talk through the network that joins the ranks."""
    job = Started(lab, prefix, "--oversubscribe", "--hosts", "m1:2,m2:2", compiled("deaths"), tmp_path, 3, what)
    try:
        for rank in range(4):
            wait_for(tmp_path / str(rank))
        lab.set_link(1, "down")
        result = job.finish(25)
    finally:
        lab.set_link(1, "up")
        harness.end_all(job.running.mark)
    words = r"near: rank \d: error: m2 does not answer, so its ranks are lost \(NEAR_LOST_AFTER=5\): 2-3; the job ends\n"
    assert result.status != 0 and re.fullmatch(words, result.err), result.report()


@pytest.mark.parametrize(("started", "seconds"), [({}, 5), ({"NEAR_LOST_AFTER": 2}, 2)], indirect=["started"])
def test_a_machine_that_is_silent_is_given_up(started, seconds):
    """All processes of its agent are stopped, as if the machine had no power."""
    stopped = [pid for pid in started.pids("mpiexec --agent") if os.readlink(f"/proc/{pid}/ns/uts") == uts_of(started, "m2")]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        result = started.running.finish(20)
    finally:
        for pid in stopped:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
    assert not result.timed_out and result.status == 1, result.report()
    words = f"machine m2{FROM}: nothing has been heard from it for {seconds} s (NEAR_LOST_AFTER); ranks 2-3 are lost"
    assert words in result.err, result.report()
    assert not harness.survivors(result.mark, patience=10), result.report()


def uts_of(started, name):
    """The namespace of host names of that machine."""
    for pid in started.pids("sleep 77"):
        found = subprocess.run(["nsenter", "-t", str(pid), "-u", "hostname"], capture_output=True, text=True, check=True).stdout.strip()
        if found == name:
            return os.readlink(f"/proc/{pid}/ns/uts")
    raise AssertionError(f"no rank on {name}")


def test_a_job_is_stopped_and_goes_on(started):
    mpiexec = started.pids("bin/mpiexec --remote-shell")[0]
    os.kill(mpiexec, signal.SIGTSTP)
    state = {}
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and set(state.values()) != {"T"}:
        state = {pid: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in [mpiexec, *started.pids("sleep 77")]}
        time.sleep(0.05)
    assert set(state.values()) == {"T"} and len(state) == 5, state
    time.sleep(7)  # longer than the silence that ends a job
    os.kill(mpiexec, signal.SIGCONT)
    time.sleep(0.5)
    assert len(set(started.pids("sleep 77")) - {mpiexec}) == 4
    os.kill(mpiexec, signal.SIGTERM)
    assert started.finish().status == 128 + signal.SIGTERM
