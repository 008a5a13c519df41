"""`near top`, `place` and `info` without --job show the only running job or a list. Runs in a process namespace without other
jobs."""

import os
import re

import harness
import pytest

ALONE = ["--pid", "--fork", "--kill-child", "--mount-proc"]


@pytest.fixture
def alone(prefix, compiled, unshare):
    """alone(jobs, commands): the output of the commands while this number of jobs of two ranks runs."""
    before = unshare(*ALONE, *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]))
    program = compiled("end_badly")

    def run(jobs, commands):
        steps = f"""
            cd {prefix}/bin
            jobs=
            for i in $(seq {jobs}); do ./mpiexec -n 2 --oversubscribe {program} hang & jobs="$jobs $!"; done
            for i in $(seq 600); do
              [ $(cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^in-mpi$') = {2 * jobs} ] && break; sleep 0.05
            done
            echo jobs: $jobs
            {commands}
            for job in $jobs; do kill -9 $job; done
        """
        running = harness.Running([*before, "bash", "-uc", steps])
        result = running.finish(90)
        assert not harness.survivors(running.mark)
        assert not result.timed_out, result.report()
        return re.search("^jobs: ?(.*)$", result.out, re.M)[1].split(), result

    return run


COMMANDS = "for words in 'top' 'top --job' 'place' 'info --job' 'info --transport' 'info'; do ./near $words; echo status of $words: $?; done"


def statuses(result):
    return {words: int(status) for words, status in re.findall(r"^status of (.*): (\d+)$", result.out, re.M)}


def test_the_only_job_is_taken(alone):
    (job,), result = alone(1, COMMANDS)
    assert set(statuses(result).values()) == {0}, result.report()
    assert result.out.count(f"nearmpi-{job}: ") == 3, result.report()  # by top, twice, and by place
    assert "Large messages" in result.out and re.search(r"^node 0: ", result.out, re.M), result.report()
    listed = re.findall(rf"^ +{job} +2 +\d+ s  ./mpiexec -n 2 --oversubscribe \S+end_badly\S* hang$", result.out, re.M)
    assert len(listed) == 1, result.report()  # by near info


def test_several_jobs_are_listed(alone):
    jobs, result = alone(2, COMMANDS)
    assert len(jobs) == 2
    seen = statuses(result)
    assert seen.pop("info") == 0 and set(seen.values()) == {1}, result.report()
    assert result.err.count("you have 2 running jobs; choose one with --job PID") == 5, result.report()
    for job in jobs:
        assert len(re.findall(rf"^ +{job} +2 +\d+ s  ./mpiexec ", result.out, re.M)) == 6, result.report()


def test_no_job_is_reported(alone):
    _, result = alone(0, COMMANDS)
    seen = statuses(result)
    assert seen.pop("info") == 0 and set(seen.values()) == {1}, result.report()
    assert result.err.count("near: you have no running NearMPI job") == 5, result.report()
    assert "your running jobs: none" in result.out, result.report()


def test_a_wrong_number_is_refused(prefix):
    for words in (["top"], ["place"], ["info"]):
        for number in ("0", "-1", "1e3", "12x", "99999999999"):
            seen = harness.run([prefix / "bin/near", *words, f"--job={number}"])
            assert seen.status == 2 and f"'{number}' is not the process number" in seen.err, seen.report()
