"""Two jobs of one user avoid each other's processors. Their leases are in a separate runtime folder."""

import os
import re
import sys

import harness
import pytest


@pytest.fixture
def alone(tmp_path):
    """alone(script): runs several commands with leases that no other job sees. `before`: a prefix of the shell."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor only")
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)

    def run(script, before=(), **env):
        running = harness.Running([*before, "bash", "-euc", script], env={"NEAR_LEASES": "1", "XDG_RUNTIME_DIR": runtime, **env})
        result = running.finish(60)
        assert not harness.survivors(running.mark)
        assert result.status == 0, result.report()
        assert not list(runtime.iterdir()), "the last job leaves nothing"
        return result

    return run


def script(prefix, first, then):
    """A script that runs `first` as a background job while `then` runs."""
    return f"""
        cd {prefix}/bin
        : >"$HOME/first"
        ./mpiexec {first} bash -c 'echo at work; exec sleep 40' >"$HOME/first" 2>"$HOME/first.err" & job=$!
        for i in $(seq 400); do grep -q 'at work' "$HOME/first" && break; sleep 0.05; done
        grep -q 'at work' "$HOME/first"
        {then}
        kill $job || true; wait $job || true
    """


def processors(text):
    """The processors of each rank in the output of --report-bindings or --explain."""
    return re.findall(r"rank \d+: .*?cpus? ([\d,-]+)", text)


def test_the_second_job_takes_free_cores(alone, prefix, tmp_path):
    result = alone(script(prefix, "-n 1 --report-bindings", "./mpiexec -n 1 --report-bindings true"), HOME=tmp_path)
    used = processors((tmp_path / "first.err").read_text()) + processors(result.err)
    assert len(used) == 2 and used[0] != used[1], result.report()
    assert "warning" not in result.err, result.report()


def test_a_second_job_without_free_cores_says_so(alone, prefix, tmp_path):
    everything = len(os.sched_getaffinity(0))
    result = alone(script(prefix, f"-n {everything}", f"./mpiexec -n {everything} true"), HOME=tmp_path)
    assert re.fullmatch(r"mpiexec: warning: the ranks share processors [\d,-]+ with job \d+ of yours, since too few others "
                        r"are free; pass --oversubscribe if this is intended\n", result.err), result.report()


@pytest.mark.parametrize("first, second", [("--oversubscribe", ""), ("", "--oversubscribe"), ("--bind-to none", ""),
                                           ("", "--bind-to none")])
def test_jobs_that_mean_to_share_neither_hold_nor_look(alone, prefix, tmp_path, first, second):
    everything = len(os.sched_getaffinity(0))
    result = alone(script(prefix, f"-n {everything} {first}", f"./mpiexec -n {everything} {second} true"), HOME=tmp_path)
    assert result.err == "", result.report()


def test_the_knob_switches_it_off(alone, prefix, tmp_path):
    everything = len(os.sched_getaffinity(0))
    result = alone(script(prefix, f"-n {everything}", f"NEAR_LEASES=0 ./mpiexec -n {everything} true"), HOME=tmp_path)
    assert result.err == "", result.report()


def test_a_job_that_was_killed_holds_nothing(alone, prefix, tmp_path):
    everything = len(os.sched_getaffinity(0))
    then = f"""
        kill -9 $job; wait $job || true
        for i in $(seq 400); do ./mpiexec -n 1 --explain true | grep -q 'are left to' || break; sleep 0.05; done
        ./mpiexec -n {everything} true
    """
    result = alone(script(prefix, f"-n {everything}", then), HOME=tmp_path)
    assert "warning" not in result.err, result.report()


def test_a_job_inside_a_job_is_a_part_of_it(alone, prefix, tmp_path):
    result = alone(f"cd {prefix}/bin; ./mpiexec -n 1 ./mpiexec -n 1 true", HOME=tmp_path)
    assert result.err == "", result.report()


def test_explain_says_what_is_left_to_others(alone, prefix, tmp_path):
    result = alone(script(prefix, "-n 1", "./mpiexec -n 1 --explain true; ./mpiexec -n 1 --explain true"), HOME=tmp_path)
    notes = re.findall(r"processors [\d,-]+ are left to job \d+ of yours", result.out)
    assert len(notes) == 2, result.report()  # --explain itself holds no processors


def test_jobs_that_start_at_once_take_different_cores(alone, prefix, tmp_path):
    jobs = min(4, len(os.sched_getaffinity(0)))
    lines = "\n".join(f"./mpiexec -n 1 --report-bindings sleep 3 2>$HOME/{job} &" for job in range(jobs))
    alone(f"cd {prefix}/bin\n{lines}\nwait", HOME=tmp_path)
    said = [(tmp_path / str(job)).read_text() for job in range(jobs)]
    used = [processors(text)[0] for text in said]
    assert len(set(used)) == jobs, said


def test_a_job_whose_supervisor_was_killed_holds_nothing(alone, prefix, tmp_path):
    then = "kill -9 $(cat /proc/$job/task/$job/children)\nwait $job || true\n./mpiexec -n 1 --explain true"
    result = alone(script(prefix, "-n 1", then), HOME=tmp_path)
    assert "are left to" not in result.out, result.report()


# Acts like a stopped planner: holds the lock on the byte that only planners lock.
PLANNER = """import fcntl, os, struct, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1 << 40, 1, 0))
print("held", flush=True)
time.sleep(50)
"""


def test_a_planner_that_does_not_finish_is_reported(alone, prefix, tmp_path):
    """The second job continues after a second, sees the leases of the first, and warns that others may also be planning."""
    then = f"""
        {sys.executable} -c '{PLANNER}' "$XDG_RUNTIME_DIR/nearmpi-leases" >$HOME/planner & planner=$!
        for i in $(seq 400); do grep -qs held $HOME/planner && break; sleep 0.05; done
        grep -q held $HOME/planner
        ./mpiexec -n 1 --report-bindings true
        ./mpiexec -q -n 1 true
        kill $planner; wait $planner || true
    """
    result = alone(script(prefix, "-n 1 --report-bindings", then), HOME=tmp_path)
    warnings = [line for line in result.err.splitlines() if "warning" in line]
    assert len(warnings) == 1 and re.fullmatch(
        r"mpiexec: warning: two jobs may get the same processors: another mpiexec of yours has not unlocked \S+/nearmpi-leases "
        r"for a second; end or continue it", warnings[0]), result.report()
    used = processors((tmp_path / "first.err").read_text()) + processors(result.err)
    assert len(used) == 2 and used[0] != used[1], result.report()


# ---- other users -------------------------------------------------------------------------------------------

OTHER_USER = "setpriv --reuid 65534 --regid 65534 --clear-groups"
SQUAT = """import os, socket, sys, time
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
held = []
for name in sys.argv[1:]:
    held.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    held[-1].bind(chr(0) + name)
print("held", flush=True)
time.sleep(50)
"""


@pytest.fixture
def squatted(unshare):
    """squatted(run, script, **environment): runs the script where another user has created all files and sockets that this user
    can create at present and former places of leases, and where there is no runtime folder. `run`: how /run is mounted, "rw" or
    "ro"."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    before = unshare("--mount", "--net", "--propagation", "private")

    def play(run, script, **environment):
        steps = f"""
            mount -t tmpfs -o mode=1777 tmpfs /tmp
            mount -t tmpfs -o mode=755,{run} tmpfs /run
            mkdir -m 700 /tmp/home; export HOME=${{HOME_HERE:-/tmp/home}}
            {OTHER_USER} mkdir -m 700 /tmp/nearmpi-0
            {sys.executable} -c '{SQUAT}' nearmpi/0/planning nearmpi/0/$$/0-63 >/tmp/held & squatter=$!
            for i in $(seq 400); do grep -qs held /tmp/held && break; sleep 0.05; done
            grep -q held /tmp/held
            {script}
            kill $squatter
        """
        environment = {"NEAR_LEASES": "1", "XDG_RUNTIME_DIR": "", "XDG_CACHE_HOME": "", "PYTHONDONTWRITEBYTECODE": "1", **environment}
        running = harness.Running([*before, "bash", "-euc", steps], env=environment)
        result = running.finish(60)
        assert not harness.survivors(running.mark)
        assert result.status == 0, result.report()
        return result

    return play


@pytest.mark.parametrize("run, folder", [("rw", "/run/nearmpi"), ("ro", "/tmp/home/.cache/nearmpi-*")])
def test_another_user_cannot_switch_leases_off(squatted, prefix, run, folder):
    """Root's leases are in /run, and those of users without a runtime folder in their caches."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor only")
    then = f"ls -d {folder}/nearmpi-leases; stat -c %a {folder}; ./mpiexec -n 1 --report-bindings true; ls /tmp/nearmpi-0"
    steps = script(prefix, "-n 1 --report-bindings", then) + f"\ncat $HOME/first.err >&2; ! ls -d {folder} 2>/dev/null"
    result = squatted(run, steps)
    assert re.fullmatch(rf"{folder.replace('*', '.*')}/nearmpi-leases\n700\n", result.out), result.report()
    assert "warning" not in result.err and "same processors" not in result.err, result.report()
    used = processors(result.err)
    assert len(used) == 2 and used[0] != used[1], result.report()


def test_another_user_neither_delays_nor_displaces_jobs(squatted, prefix):
    """Not even if the last resort is the only folder: then there is a warning, and there are no leases."""
    everything = len(os.sched_getaffinity(0))
    steps = f"""
        {prefix}/bin/mpiexec -n {everything} --explain true
        {prefix}/bin/mpiexec -n {everything} true
    """
    result = squatted("ro", steps, HOME_HERE="/nowhere")
    told = "/tmp/nearmpi-0 belongs to user 65534, not to user 0"
    warning = (f"mpiexec: warning: two jobs may get the same processors: {told}; have it removed, or set XDG_RUNTIME_DIR to a "
               "folder that only you can open\n")
    assert result.err == warning * 2, result.report()  # by --explain, and at the start
    assert "of yours" not in result.out, result.report()
    assert told in result.out, result.report()


def test_leases_hold_in_a_user_namespace(alone, prefix, tmp_path, unshare):
    before = unshare("--user", "--map-root-user")
    result = alone(script(prefix, "-n 1 --report-bindings", "./mpiexec -n 1 --report-bindings true"), before, HOME=tmp_path)
    used = processors((tmp_path / "first.err").read_text()) + processors(result.err)
    assert len(used) == 2 and used[0] != used[1], result.report()


def test_an_unmapped_user_has_no_leases(alone, prefix, unshare):
    result = alone(f"{prefix}/bin/mpiexec -n 1 --explain true; {prefix}/bin/mpiexec -n 1 true", unshare("--user"))
    assert "is the overflow ID of this user namespace" in result.out and result.err == "", result.report()


def test_without_a_folder_there_are_no_leases(alone, prefix, unshare):
    if os.geteuid() != 0:
        pytest.skip("only root can mount on /tmp")
    before = unshare("--mount", "--propagation", "private")
    steps = f"""
        mount -t tmpfs -o ro tmpfs /run; mount -t tmpfs -o ro tmpfs /tmp
        {prefix}/bin/mpiexec -n 1 --explain true; {prefix}/bin/mpiexec -n 1 true
    """
    result = alone(steps, before, XDG_RUNTIME_DIR="/nowhere", XDG_CACHE_HOME="/nowhere/cache")
    assert "which processors your other jobs hold is not known: mkdir" in result.out and result.err == "", result.report()
