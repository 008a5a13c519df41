"""`near info --transport` shows, from outside, which protocols messages take."""

import os
import re
import signal
import time

import harness
import pytest


@pytest.mark.parametrize("way", ["pipelined", "cma", "auto"])
def test_the_protocols_of_a_running_job_are_shown(start, prefix, compiled, way):
    job = start("-n", "2", "-x", f"NEAR_COPY={way}", compiled("talk_for_ever"))
    job.wait_for("talk_for_ever", 2)
    deadline = time.monotonic() + 30
    while True:
        seen = harness.run([prefix / "bin/near", "info", "--transport", "--job", job.pid])
        rows = re.findall(r"^ +([01]) to ([01]) +(.*?) +(direct|pipelined|cma) +([\d.]+) GB/s +(\d+)", seen.out, re.M)
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


def test_the_machine_of_a_running_job_is_shown(start, prefix, compiled):
    job = start("-n", "2", compiled("talk_for_ever"))
    job.wait_for("talk_for_ever", 2)
    seen = harness.run([prefix / "bin/near", "info", "--job", job.pid])
    assert seen.status == 0, seen.report()
    machine = re.search(r"^machine: (.*)$", harness.run([prefix / "bin/near", "info"]).out, re.M)[1]
    for part in ("package", "NUMA node", "core", "processor"):
        assert re.search(rf"\d+ {part}s?", machine)[0] in seen.out.splitlines()[0], (machine, seen.report())
    nodes = re.findall(r"^node (\d+): DRAM, [\d.]+ GiB, processors [\d,-]+$", seen.out, re.M)
    assert nodes, seen.report()
    assert ("distances:" in seen.out) == (len(re.findall("^node ", seen.out, re.M)) > 1), seen.report()
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130


def test_a_process_that_is_not_mpiexec_is_refused(prefix):
    seen = harness.run([prefix / "bin/near", "info", "--transport", "--job", os.getpid()])
    assert seen.status == 1 and "not one of your running NearMPI jobs" in seen.err, seen.report()


@pytest.mark.parametrize("knobs, begin, most", [({}, 544, 4128), ({"NEAR_PACKETS": "1024"}, 16416, 16416),
                                                ({"NEAR_EAGER_LIMIT": "64k"}, 2080, 4128),
                                                ({"NEAR_QUEUE_SLOTS": "1000", "NEAR_PIPELINE": "16m"}, 640, 16512)])
def test_the_costs_of_knobs_are_shown(prefix, knobs, begin, most):
    seen = harness.run([prefix / "bin/near", "info", "--knobs"], env=knobs)
    told = re.search(r"^Each rank reserves (\d+) KiB when it begins \(.*\), and up to (\d+) KiB once there is traffic", seen.out, re.M)
    assert seen.status == 0 and told and (int(told[1]), int(told[2])) == (begin, most), seen.report()
