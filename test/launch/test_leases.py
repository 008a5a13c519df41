"""Two jobs of one user keep off each other's processors. In a network namespace of its own, where nobody else's are."""

import os
import re
import subprocess

import harness
import pytest

ALONE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--user", "--map-current-user"]


@pytest.fixture
def alone():
    """The command that gives a network namespace, in which several commands run: alone(script)."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor only")
    if subprocess.run([*ALONE, "true"], capture_output=True).returncode != 0:
        pytest.skip("no network namespace here")

    def run(script, **env):
        running = harness.Running([*ALONE, "bash", "-euc", script], env={"NEAR_LEASES": "1", **env})
        result = running.finish(60)
        assert not harness.survivors(running.mark)
        assert result.status == 0, result.report()
        return result

    return run


def script(prefix, first, then):
    """`first` runs as a job in the background until `then`, which sees it at work, is over."""
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
    """Of each rank in what --report-bindings or --explain prints."""
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
                        r"are free; --oversubscribe says that this is meant\n", result.err), result.report()


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
        for i in $(seq 400); do grep -q '@nearmpi/[0-9]*/[0-9]*/' /proc/net/unix || break; sleep 0.05; done
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
    assert len(notes) == 2, result.report()  # --explain holds nothing itself


def test_jobs_that_start_at_once_take_different_cores(alone, prefix, tmp_path):
    jobs = min(4, len(os.sched_getaffinity(0)))
    lines = "\n".join(f"./mpiexec -n 1 --report-bindings sleep 3 2>$HOME/{job} &" for job in range(jobs))
    alone(f"cd {prefix}/bin\n{lines}\nwait", HOME=tmp_path)
    said = [(tmp_path / str(job)).read_text() for job in range(jobs)]
    used = [processors(text)[0] for text in said]
    assert len(set(used)) == jobs, said
