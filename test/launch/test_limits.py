"""Small limits (ulimit): a job that fits runs, one that does not is told in one line which limit to raise."""

import pytest


@pytest.fixture
def limited(prefix, nothing_left):
    """limited("-f 1000", program, ...): the command under a limit; "mpiexec" is the installation's."""

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
def test_a_job_that_cannot_be_prepared_is_told_once(limited, limit, named):
    result = limited(limit, "mpiexec", "-n", "2", "true")
    assert result.status == 1 and result.err.startswith("mpiexec: ") and named in result.err, result.report()
    assert result.err.count("\n") == 1 and result.err.endswith("\n")
