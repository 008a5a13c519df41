"""`near info --transport` reads from outside by which way messages travel."""

import os
import re
import signal
import time

import harness
import pytest


@pytest.mark.parametrize("way", ["ring", "cma", "auto"])
def test_the_ways_of_a_running_job_are_shown(start, prefix, compiled, way):
    job = start("-n", "2", "-x", f"NEAR_COPY={way}", compiled("talk_for_ever"))
    job.wait_for("talk_for_ever", 2)
    deadline = time.monotonic() + 30
    while True:
        seen = harness.run([prefix / "bin/near", "info", "--transport", "--job", job.pid])
        rows = re.findall(r"^ +([01]) to ([01]) +(.*?) +(direct|ring|cma) +([\d.]+) GB/s +(\d+)", seen.out, re.M)
        both = {(sender, receiver) for sender, receiver, *_ in rows} == {("0", "1"), ("1", "0")}
        stores = re.search(r"^ +0 to 1 +(cached|streaming) +cached", seen.out, re.M)
        if both and stores and any(size == "1 MiB to 2 MiB" for _, _, size, *_ in rows):
            break
        assert time.monotonic() < deadline, seen.report()
        time.sleep(0.05)
    if way != "auto":
        assert {row[3] for row in rows} == {way}, seen.report()
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130


def test_it_says_what_it_needs(prefix):
    seen = harness.run([prefix / "bin/near", "info", "--transport"])
    assert seen.status == 2 and "--job PID" in seen.err, seen.report()
    seen = harness.run([prefix / "bin/near", "info", "--transport", "--job", os.getpid()])
    assert seen.status == 1 and "no running NearMPI job" in seen.err, seen.report()
