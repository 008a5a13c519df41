"""Agents in a tree: with NEAR_FANOUT, mpiexec reaches only some machines itself, and these reach the others."""

import contextlib
import os
import re
import signal
import struct
import subprocess
import time
from pathlib import Path

import harness
import pytest

HOSTS = ["--oversubscribe", "--hosts", "m1:1,m2:1,m3:1,m4:1,m5:1"]
# From where a machine is reached, by fan-out; mpiexec reaches the others.
REACHED_FROM = {1: {"m2": "m1", "m3": "m2", "m4": "m3", "m5": "m4"}, 2: {"m3": "m1", "m4": "m1", "m5": "m2"}}
WITHIN = 5  # seconds: no process is left on any machine


@pytest.fixture(scope="module")
def lab(own_lab):
    return own_lab


@pytest.fixture(scope="module")
def ssh(lab):
    return lab.ssh()


@pytest.fixture(params=[1, 2])
def fan_out(request):
    return request.param


def processes_of(lab):
    """The living processes of each machine that are no connection of ssh, as {machine: {pid: command line}}."""
    spaces = {os.readlink(f"/proc/{pid}/ns/pid"): name for name, pid in zip(lab.names, lab.pids, strict=True)}
    found = {name: {} for name in lab.names}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            space = spaces.get(os.readlink(f"/proc/{name}/ns/pid"))
            words = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            # The machine's first process sleeps for ever.
            if space is not None and words and int(name) not in lab.pids and not re.match(r"sshd|/usr/sbin/sshd|sleep infinity$", words):
                found[space][int(name)] = words
    return found


def assert_nothing_is_left(lab, report):
    deadline = time.monotonic() + WITHIN
    while any((left := processes_of(lab)).values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    for each in left.values():
        for pid in each:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert not any(left.values()), f"{left}\n{report}"
    for index in range(lab.count):
        assert lab.run(index, ["ls", "/dev/shm"]).out == "", report


@pytest.fixture
def start(lab, prefix, fan_out):
    """start(option, ..., **harness options): runs mpiexec, and checks that nothing is left on any machine."""

    def run(*words, timeout=60, env=None, **options):
        result = lab.mpiexec(prefix, *words, timeout=timeout, env={"NEAR_FANOUT": fan_out, **(env or {})}, **options)
        assert not result.timed_out, result.report()
        assert_nothing_is_left(lab, result.report())
        return result

    return run


class Started:
    """A job of one rank on each machine, which runs while the test does something."""

    def __init__(self, lab, prefix, fan_out, *command, ssh=None, environment=None):
        self.lab = lab
        words = lab.mpiexec_words(prefix, *HOSTS, *command, ssh=ssh)
        self.running = harness.Running(words, env={"NEAR_FANOUT": fan_out, **(environment or {})})

    def await_lines(self, count):
        lines = [self.running.process.stdout.readline() for _ in range(count)]
        assert all(lines), lines

    def mpiexec(self):
        return next(pid for pid in harness.marked(self.running.mark)
                    if "bin/mpiexec --remote-shell" in Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())

    def agents(self, machine):
        """The processes of an agent: itself first, then its front end and its supervisor in any order."""
        found = [pid for pid, words in processes_of(self.lab)[machine].items() if words.endswith("mpiexec --agent")]
        return sorted(found, key=lambda pid: harness.parent_of(pid) in found)

    def finish(self, seconds=20):
        result = self.running.finish(seconds)
        assert not result.timed_out, result.report()
        assert_nothing_is_left(self.lab, result.report())
        return result

    def end(self):
        harness.end_all(self.running.mark)
        for each in processes_of(self.lab).values():
            for pid in each:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


SLEEP = ["sh", "-c", "echo up; exec sleep 77"]


@pytest.fixture
def sleeping(lab, prefix, fan_out, request):
    """A job that sleeps. A case may be parametrized with variables of mpiexec."""
    job = Started(lab, prefix, fan_out, *SLEEP, environment=getattr(request, "param", None))
    job.await_lines(5)
    deadline = time.monotonic() + 10
    while len(sleepers(lab)) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)  # a shell says that it is up before it becomes `sleep`
    yield job
    job.end()


def sleepers(lab):
    """The pids of those ranks of a sleeping job that sleep."""
    return [pid for each in processes_of(lab).values() for pid, words in each.items() if words == "sleep 77"]


def behind(fan_out, machine):
    """The numbers of the machines that are reached through this one."""
    return [number for number in range(1, 6) if machine in path_to(fan_out, f"m{number}")[1:]]


def path_to(fan_out, machine):
    path = [machine]
    while path[-1] in REACHED_FROM[fan_out]:
        path.append(REACHED_FROM[fan_out][path[-1]])
    return path


def lost_text(fan_out, machine):
    """What mpiexec says of the loss of a machine, with one rank on each."""
    said = f"machine {machine}"
    if machine in REACHED_FROM[fan_out]:
        said += rf" \(reached from {REACHED_FROM[fan_out][machine]}\)"
    ranks = [number - 1 for number in behind(fan_out, machine)]
    others = ",".join(map(str, ranks)) if len(ranks) < 2 or ranks != list(range(ranks[0], ranks[-1] + 1)) else f"{ranks[0]}-{ranks[-1]}"
    own = f"; rank {int(machine[1:]) - 1} is lost"
    if not ranks:
        return f"{said}: WHY{own}"
    are = f"rank {others} is" if len(ranks) == 1 else f"ranks {others} are"
    return f"{said}: WHY{own}; {are} lost on the machines that are reached through it"


def assert_says_once(result, text):
    assert result.status != 0 and result.err.count("mpiexec:") == 1 and re.search(text, result.err), f"{text}\n{result.report()}"


def test_each_machine_reaches_the_next_ones(sleeping, lab, fan_out):
    """Those that mpiexec reaches are children of it, and those that an agent reaches are children of the agent."""
    reached = {name: [] for name in ["mpiexec", *lab.names]}
    agents = {name: sleeping.agents(name)[0] for name in lab.names}
    for pid in harness.marked(sleeping.running.mark):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        parent = harness.parent_of(pid)
        if found := re.search(r"door\.py \S+ (m\d) ", words):
            reached[next(name for name, agent in agents.items() if agent == parent)].append(found[1])
        elif words.startswith("nsenter") and parent == sleeping.mpiexec():
            reached["mpiexec"].append(next(name for name, number in zip(lab.names, lab.pids, strict=True) if f" -t {number} " in words))
    assert {name: from_ for from_, names in reached.items() for name in names if from_ != "mpiexec"} == REACHED_FROM[fan_out]
    assert sorted(reached["mpiexec"]) == [f"m{number + 1}" for number in range(fan_out)]
    os.kill(sleeping.mpiexec(), signal.SIGTERM)
    sleeping.finish()


def test_ranks_send_messages(start, compiled):
    for program in ("ring", "collectives"):
        result = start(*HOSTS, compiled(program))
        assert result.status == 0, result.report()


def test_lines_do_not_mix_and_none_is_lost(start):
    count = 3000
    result = start("--tag-output", *HOSTS, "sh", "-c", f"i=0; while [ $i -lt {count} ]; do echo line $i of rank $NEAR_RANK; i=$((i+1)); done")
    assert result.status == 0, result.report()
    for rank in range(5):
        lines = [line for line in result.out.splitlines() if line.endswith(f"of rank {rank}")]
        assert [int(re.search(r"line (\d+) ", line)[1]) for line in lines] == list(range(count))
    assert len(result.out.splitlines()) == 5 * count


def test_a_slow_reader_gets_all_output_and_relays_keep_little_of_it(lab, prefix, fan_out):
    """Every rank writes far more than may be under way. Agents must not collect it."""
    words = lab.mpiexec_words(prefix, *HOSTS, "sh", "-c", "head -c 40000000 /dev/zero | tr '\\0' x | fold -w 99")
    job = harness.Running(["bash", "-c", '"$@" | (sleep 4; wc -c)', "bash", *words], env={"NEAR_FANOUT": fan_out})
    time.sleep(3)
    sizes = {}
    for name, each in processes_of(lab).items():
        for pid, text in each.items():
            if text.endswith("mpiexec --agent"):
                with contextlib.suppress(OSError, TypeError):
                    sizes[name, pid] = int(re.search(r"RssAnon:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1])
    result = job.finish(60)
    assert result.status == 0 and int(result.out) == 5 * (40_000_000 + -(-40_000_000 // 99) - 1), result.report()
    assert sizes and max(sizes.values()) < 40_000, sizes
    assert_nothing_is_left(lab, result.report())


def test_standard_input_goes_to_a_deep_machine(start):
    text = "".join(f"{number}\n" for number in range(200_000))
    result = start("-s", "4", *HOSTS, "sh", "-c", "cat", input=text)
    assert result.status == 0 and result.out == text, result.report()[-2000:]


def test_standard_input_goes_to_all(start):
    text = "".join(f"{number}\n" for number in range(100_000))
    result = start("-s", "all", *HOSTS, "sh", "-c", "cksum", input=text)
    assert result.status == 0 and len(set(result.out.splitlines())) == 1 and len(result.out.splitlines()) == 5, result.report()


@pytest.mark.parametrize(("failing", "status", "words"), [
    ("exit 7", 7, r"rank 4 \(sh, pid \d+ on m5\) exited with status 7; 4 other ranks were ended with it"),
    ("kill -9 $$", 137, r"rank 4 \(sh, pid \d+ on m5\) was ended by signal 9 \(SIGKILL\).*; 4 other ranks were ended with it"),
])
def test_a_rank_of_a_deep_machine_that_fails_ends_all(start, failing, status, words):
    result = start(*HOSTS, "sh", "-c", f"test $NEAR_RANK = 4 || exec sleep 60; sleep 0.5; {failing}", timeout=20)
    assert result.status == status, result.report()
    assert_says_once(result, words)


def test_the_time_is_limited_everywhere(start):
    result = start("--timeout", "8", *HOSTS, "sleep", "60", timeout=30)
    assert result.status == 124 and "the job was ended after 8 s (--timeout)" in result.err, result.report()
    assert all(f"on {name}:" in result.err for name in ("m1", "m2", "m3", "m4", "m5")), result.report()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all(sleeping, number):
    os.kill(sleeping.mpiexec(), number)
    result = sleeping.finish()
    assert result.status == 128 + number
    assert_says_once(result, f"ended by {number.name}; 5 ranks were ended with it")


def test_a_job_is_stopped_and_goes_on(sleeping):
    mpiexec = sleeping.mpiexec()
    os.kill(mpiexec, signal.SIGTSTP)
    deadline = time.monotonic() + 10
    state = {}
    while time.monotonic() < deadline and set(state.values()) != {"T"}:
        state = {pid: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in [mpiexec, *sleepers(sleeping.lab)]}
        time.sleep(0.05)
    assert set(state.values()) == {"T"} and len(state) == 6, state
    time.sleep(7)  # longer than the silence that ends a job
    os.kill(mpiexec, signal.SIGCONT)
    time.sleep(0.5)
    assert len(sleepers(sleeping.lab)) == 5
    os.kill(mpiexec, signal.SIGTERM)
    assert sleeping.finish().status == 128 + signal.SIGTERM


def test_nothing_is_left_when_mpiexec_is_killed(sleeping):
    os.kill(sleeping.mpiexec(), signal.SIGKILL)
    assert sleeping.finish().status == 128 + signal.SIGKILL


@pytest.mark.parametrize("machine", ["m1", "m2", "m5"])
def test_an_agent_that_is_killed_takes_the_machines_behind_it_along(sleeping, fan_out, machine):
    os.kill(sleeping.agents(machine)[0], signal.SIGKILL)
    result = sleeping.finish()
    assert_says_once(result, lost_text(fan_out, machine).replace("WHY", "the connection to it has ended"))


@pytest.mark.parametrize("sleeping", [{"NEAR_LOST_AFTER": 2}], indirect=True)
@pytest.mark.parametrize("machine", ["m1", "m2", "m5"])
def test_a_machine_that_is_silent_is_given_up_with_those_behind_it(sleeping, fan_out, machine):
    """All processes of its agent are stopped, as if the machine had no power."""
    stopped = sleeping.agents(machine)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        result = sleeping.running.finish(20)
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert not result.timed_out, result.report()
    assert_says_once(result, lost_text(fan_out, machine).replace("WHY", r"nothing has been heard from it for 2 s \(NEAR_LOST_AFTER\)"))
    assert_nothing_is_left(sleeping.lab, result.report())


def test_a_deep_machine_that_cannot_be_reached_is_named_and_from_where(start):
    result = start("--hosts", "m1,m2,m3,nowhere", "true")
    assert_says_once(result, r"machine nowhere \(reached from (m1|m3)\): shell ended with status 255: no machine nowhere$")


def test_machines_without_ranks_reach_others(start):
    """Ranks run on the deepest machine only."""
    result = start("--hosts", "m1,m2,m3,m4,m5", "-host", "m5", "-n", "1", "hostname")
    assert (result.status, result.out) == (0, "m5\n"), result.report()


def test_a_machine_whose_ranks_have_ended_goes_on_to_reach_others(start):
    result = start(*HOSTS, "sh", "-c", "test $NEAR_RANK != 4 || { sleep 3; echo late; }")
    assert (result.status, result.out) == (0, "late\n"), result.report()


def test_the_loss_of_a_machine_whose_ranks_have_ended_is_noticed(lab, prefix):
    job = Started(lab, prefix, 1, "sh", "-c", "test $NEAR_RANK = 4 || exit 0; sleep 2; echo up; exec sleep 77")
    try:
        job.await_lines(1)
        os.kill(job.agents("m1")[0], signal.SIGKILL)
        result = job.finish()
    finally:
        job.end()
    assert_says_once(result, "machine m1: the connection to it has ended; rank 4 is lost on the machines that are reached through it")


def test_the_plan_of_every_machine_is_explained(start):
    result = start("--explain", *HOSTS, "./program")
    assert result.status == 0, result.report()
    at = [result.out.index(f"machine m{number}: rank {number - 1}") for number in range(1, 6)]
    assert at == sorted(at), result.report()


# By ssh, from m1: it reaches m2, which reaches m3, and so on. These jobs carry no mark.
def test_ssh_reaches_machines_from_others(lab, prefix, ssh, compiled, tmp_path):
    result = lab.mpiexec(prefix, *HOSTS, compiled("ring"), ssh=ssh, env={"NEAR_FANOUT": 1})
    assert result.status == 0, result.report()
    result = lab.mpiexec(prefix, *HOSTS, "-wdir", tmp_path, "sh", "-c", 'echo "$(hostname) $PWD $GIVEN"', ssh=ssh,
                         env={"NEAR_FANOUT": 1, "GIVEN": "a 'b"})
    assert sorted(result.out.splitlines()) == [f"m{number} {tmp_path} a 'b" for number in range(1, 6)], result.report()
    assert_nothing_is_left(lab, result.report())


def test_another_shell_is_found_from_the_folder_of_mpiexec(lab, prefix, ssh, tmp_path):
    """The words that reach a machine mean the same on every machine."""
    (tmp_path / "shell").write_text(f'#!/bin/sh\nexec {ssh} "$@"\n')
    (tmp_path / "shell").chmod(0o755)
    command = ["sh", "-c", f'cd {tmp_path} && exec "$@"', "sh", prefix / "bin/mpiexec", "--remote-shell", "./shell", *HOSTS, "hostname"]
    result = lab.run(0, command, env={"NEAR_FANOUT": 1})
    assert sorted(result.out.split()) == ["m1", "m2", "m3", "m4", "m5"], result.report()
    assert_nothing_is_left(lab, result.report())


def test_ssh_that_does_not_reach_a_deep_machine_is_named(lab, prefix, ssh):
    result = lab.mpiexec(prefix, "--hosts", "m1,m2,m3,nowhere", "true", ssh=ssh, env={"NEAR_FANOUT": 1})
    assert_says_once(result, r"machine nowhere \(reached from m3\): ssh ended with status 255: .*nowhere")
    assert_nothing_is_left(lab, result.report())


def test_a_machine_in_the_middle_whose_link_is_cut_is_lost_with_those_behind_it(own_machines, prefix, fan_out):
    """From m1, mpiexec reaches m2 (and m3, if the fan-out is 2); m2 reaches m3 (or m4 and m5)."""
    lab = own_machines(5)
    job = Started(lab, prefix, fan_out, *SLEEP, ssh=lab.ssh(), environment={"NEAR_LOST_AFTER": 2})
    try:
        job.await_lines(5)
        lab.set_link(1, "down")
        result = job.running.finish(20)
        assert not result.timed_out, result.report()
        others = "ranks 2-4 are" if fan_out == 1 else "ranks 3-4 are"
        why = r"nothing has been heard from it for 2 s \(NEAR_LOST_AFTER\)"
        assert_says_once(result, f"machine m2: {why}; rank 1 is lost; {others} lost on the machines that are reached through it")
        deadline = time.monotonic() + WITHIN
        while (left := [words for each in processes_of(lab).values() for words in each.values() if not words.startswith("ssh ")]):
            assert time.monotonic() < deadline, f"{left}\n{result.report()}"
            time.sleep(0.05)
    finally:
        lab.set_link(1, "up")
        job.end()


def frame(kind, body):
    return struct.pack("<IB", len(body) + 1, kind) + body


REACH, RELAYED, HANG_UP, CUT = 22, 23, 24, 25


@pytest.mark.parametrize("sent", [
    frame(REACH, b"damage"), frame(RELAYED, struct.pack("<Q", 7) + frame(26, b"")), frame(RELAYED, struct.pack("<Q", 7)), frame(RELAYED, b""),
    frame(HANG_UP, struct.pack("<Q", 7)), frame(CUT, struct.pack("<QQ", 7, 7)), frame(200, b""),
])
def test_an_agent_that_gets_damaged_orders_ends(prefix, sent):
    agent = subprocess.Popen([prefix / "bin/mpiexec", "--agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        agent.stdin.write(sent)
        agent.stdin.flush()
        assert agent.wait(20) == 1
        assert b"standard input is not that of an agent" in agent.stderr.read()
    finally:
        agent.kill()
        agent.communicate()
