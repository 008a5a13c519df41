"""`near top`, `near place` and `near info` show a whole job on several machines."""

import contextlib
import json
import re
import subprocess
import time
from pathlib import Path

import harness
import pytest


@pytest.fixture
def held(two, prefix, compiled):
    """held(option, ...): a context with a job of four ranks on two machines that has sent what it sends and waits. Its value runs `near`
    where mpiexec runs, for that job.
    """

    @contextlib.contextmanager
    def hold(*options):
        words = two.mpiexec_words(prefix, "--oversubscribe", *options, compiled("counted_elsewhere"), "hold")
        job = harness.Running(words, stdin=subprocess.PIPE)
        try:
            assert job.process.stdout.readline() == "has-sent\n"

            def near(*arguments):
                inside = ["nsenter", "-t", str(two.processes[0].pid), "-n", "--"]  # other jobs may run there
                return harness.run([*inside, prefix / "bin/near", *arguments, "--job", job.process.pid])

            yield near
            result = job.finish(30, "go on\n")
            assert result.status == 0, result.report()
        finally:
            harness.end_all(job.mark)

    return hold


def test_top_shows_all_ranks(held):
    with held("--hosts", "m1,m2", "-ppn", "1", "-n", "4") as near:
        result = near("top")
        assert result.status == 0, result.report()
        machines = re.split(r"^machine (m\d)$", result.out, flags=re.M)[1:]
        ranks = {name: re.findall(r"^ +(\d) +\d+ running", table, re.M) for name, table in zip(machines[::2], machines[1::2], strict=True)}
        assert ranks == {"m1": ["0", "2"], "m2": ["1", "3"]}, result.report()
        # Each sends to the other machine: 3 x 1,000 and 300,000 bytes, and what collectives need.
        assert len(re.findall(r" 29\d\.\d KiB ", result.out)) == 4, result.report()


def test_place_shows_all_ranks(held):
    with held("--hosts", "m1:2,m2:2") as near:
        text = near("place")
        assert text.status == 0 and text.out.count("Every page lies where it belongs.") == 2, text.report()
        assert re.findall(r"^ {4}(\d) +\d+ \S+ +0 ", text.out, re.M) == ["0", "1", "2", "3"], text.report()
        assert re.findall(r"^ +from +to (\d) +to (\d)$", text.out, re.M) == [("0", "1"), ("2", "3")], text.report()
        assert len(re.findall(r"^Sent to other machines", text.out, re.M)) == 2, text.report()
        result = near("place", "--json", "--assert-local", "99")
        assert result.status == 0, result.report()
        machines = json.loads(result.out)["machines"]
        assert [each["machine"] for each in machines] == ["m1", "m2"]
        processes = [process for each in machines for process in each["snapshot"]["processes"]]
        assert [process["rank"] for process in processes] == [0, 1, 2, 3]
        assert [process["network"]["bytes"] >= 303_000 for process in processes] == [False, True, False, True]
        assert {part["owner"] for part in machines[1]["snapshot"]["segment"]} <= {None, 2, 3}


def document_of(page):
    return json.loads(re.search(r'id="snapshot">(.*?)</script>', page.read_text())[1])


def test_the_page_shows_all_machines(held, browse, tmp_path):
    page = tmp_path / "page.html"
    with held("--hosts", "m1:2,m2:2") as near:
        seen = near("place", "--html", page)
    assert seen.status == 0 and re.findall(r"^machine (m\d)$", seen.out, re.M) == ["m1", "m2"], seen.report()
    machines = document_of(page)["machines"]
    drawn = browse(page)
    assert "<h1>counted_elsewhere, 4 ranks on 2 machines</h1>" in drawn and "<h2>Machine m1</h2>" in drawn
    rows = re.findall(r'<tr data-machine="(m\d)"[^>]*>(.*?)</tr>', drawn)
    assert [name for name, _ in rows] == ["m1", "m2"]
    for each, (_, row) in zip(machines, rows, strict=True):
        on = {node: int(size) for node, size in re.findall(r'data-node="(\d+)" data-bytes="(\d+)"', row)}
        assert on == each["snapshot"]["bytes_on"]
        assert ">0-1<" in row or ">2-3<" in row
    assert re.findall(r'<tr data-rank="(\d)">', drawn) == ["0", "1"]
    drawn = browse(page, "document.querySelector('[data-machine=m2] button').click();")
    assert "<h2>Machine m2</h2>" in drawn and re.findall(r'<tr data-rank="(\d)">', drawn) == ["2", "3"]
    assert {rank for pair in re.findall(r'data-from="(\d+)" data-to="(\d+)"', drawn) for rank in pair} <= {"2", "3"}
    drawn = browse(page, ending="#rank-3")
    assert "<h2>Machine m2</h2>" in drawn and "<h2>rank 3</h2>" in drawn


def ranks_of(job):
    """The processes of this job that run the program of `placed`."""
    found = []
    for pid in harness.marked(job.mark):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"counted_elsewhere"):
                found.append(pid)
    return found


@pytest.fixture
def placed(two, prefix, compiled, tmp_path):
    """placed(option, ...): `near place` with these options, which starts a job of four ranks on two machines. The job goes on when near has
    asked each machine twice since its ranks wait; with `unequal`, also when m2 has answered that its part has ended.
    """

    def run(*options, unequal=False):
        asked, ends, ended, gone = (tmp_path / name for name in ("asked", "ends", "ended", "gone"))
        shell = tmp_path / "shell"
        shell.write_text(f'#!/bin/sh\ncase "$2" in *near*)\n'
                         f'  if [ $1 = m2 ] && [ -e {ends} ]; then\n'
                         f'    touch {ended}; while [ ! -e {gone} ]; do sleep 0.02; done; echo "near: it has ended" >&2; exit 1; fi\n'
                         f'  {two.shell} "$@"; code=$?; echo $1 >> {asked}; exit $code ;; esac\n'
                         f'exec {two.shell} "$@"\n')
        shell.chmod(0o755)
        asked.touch()
        words = two.mpiexec_words(prefix, "--remote-shell", shell, "--oversubscribe", "--hosts", "m1:2,m2:2", compiled("counted_elsewhere"), "hold")
        first = words.index(prefix / "bin/mpiexec")
        job = harness.Running([*words[:first], prefix / "bin/near", "place", *options, "--", *words[first:]], stdin=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 30
            while (said := job.process.stdout.readline()) and said != "has-sent\n":
                pass
            before = asked.read_text().split()
            while any(asked.read_text().split().count(name) < before.count(name) + 2 for name in ("m1", "m2")):
                assert time.monotonic() < deadline, asked.read_text()
                time.sleep(0.05)
            if unequal:
                ends.touch()
            while unequal and not ended.exists():
                assert time.monotonic() < deadline, asked.read_text()
                time.sleep(0.01)
            job.process.stdin.write("go on\n")
            job.process.stdin.flush()
            while unequal and ranks_of(job):
                assert time.monotonic() < deadline, "the ranks do not end"
                time.sleep(0.01)
            gone.touch()
            return job.finish(30)
        finally:
            harness.end_all(job.mark)

    return run


def test_a_job_that_place_starts_is_shown_on_all_machines(placed, tmp_path):
    page = tmp_path / "page.html"
    result = placed("--html", page, "--assert-local", "99")
    assert result.status == 0 and result.err == "", result.report()
    assert re.findall(r"^machine (m\d)$", result.out, re.M) == ["m1", "m2"], result.report()
    assert re.findall(r"^ {4}(\d) +\d+ \S+ +0 ", result.out, re.M) == ["0", "1", "2", "3"], result.report()
    processes = [process for each in document_of(page)["machines"] for process in each["snapshot"]["processes"]]
    assert [process["rank"] for process in processes] == [0, 1, 2, 3]
    assert {process["phase"] for process in processes} == {"running"}
    assert [process["network"]["bytes"] >= 303_000 for process in processes] == [False, True, False, True]


def test_a_job_that_place_starts_is_one_document(placed, tmp_path):
    output = tmp_path / "place.json"
    result = placed("--json", "--output", output, "--watch", "--interval", "0.1")
    assert result.status == 0 and result.err == "", result.report()
    documents = [json.loads(line) for line in output.read_text().splitlines()]
    whole = [each["machines"] for each in documents if "machines" in each]
    assert len(whole) >= 2 and [each["machine"] for each in whole[0]] == ["m1", "m2"], result.report()


def test_a_part_that_ends_before_mpiexec_is_not_missed(placed, tmp_path):
    output = tmp_path / "place.json"
    result = placed("--json", "--output", output, "--watch", "--interval", "0.1", unequal=True)
    assert result.status == 0 and result.err == "", result.report()
    samples = [json.loads(line) for line in output.read_text().splitlines()]
    machines = [[each["machine"] for each in sample["machines"]] for sample in samples if "machines" in sample]
    assert len(machines) >= 2 and all(each == ["m1", "m2"] for each in machines), result.report()


def test_info_shows_each_machine(held):
    with held("--hosts", "m1:2,m2:2") as near:
        result = near("info")
        assert result.status == 0 and len(re.findall(r"^node 0: DRAM", result.out, re.M)) == 2, result.report()
        result = near("info", "--transport")
        assert result.status == 0 and result.out.count("Large messages") == 2, result.report()


@pytest.fixture(scope="module")
def ssh(two):
    return two.ssh()


@pytest.mark.parametrize("own", ["m1", "10.77.0.1"])
def test_the_only_job_is_taken_as_a_whole(two, ssh, prefix, compiled, own):
    """mpiexec runs on m1, where no other job is seen, and reaches m2 by ssh; m1 as well, if it is named by its address."""
    words = two.mpiexec_words(prefix, "--oversubscribe", "--hosts", f"{own}:2,m2:2", compiled("counted_elsewhere"), "hold", ssh=ssh)
    job = harness.Running(words, stdin=subprocess.PIPE)
    try:
        assert job.process.stdout.readline() == "has-sent\n"
        result = two.run(0, [prefix / "bin/near", "top"])
        assert result.status == 0 and re.findall(r"^ +(\d) +\d+ running", result.out, re.M) == ["0", "1", "2", "3"], result.report()
        listed = two.run(0, [prefix / "bin/near", "info"])
        assert len(re.findall(r"^ +\d+ +4 .*mpiexec", listed.out, re.M)) == 1, listed.report()
        assert job.finish(30, "go on\n").status == 0
    finally:
        harness.end_all(job.mark)


def test_a_machine_that_does_not_answer_leaves_the_others_their_answers(two, held, tmp_path):
    silent = tmp_path / "silent"
    shell = tmp_path / "shell"
    shell.write_text(f'#!/bin/sh\n[ "$1" = m1 ] || [ ! -e {silent} ] || exec sleep 100\nexec {two.shell} "$@"\n')
    shell.chmod(0o755)
    with held("--remote-shell", shell, "--hosts", "m1:2,m2:2") as near:
        silent.touch()
        result = near("top")
        assert result.status == 1 and result.err == "near: machine m2: no answer within 30 s\n", result.report()
        assert re.findall(r"^ +(\d) +\d+ running", result.out, re.M) == ["0", "1"], result.report()


def test_what_keeps_the_output_open_is_not_waited_for(two, held, tmp_path):
    """As an ssh that stays to serve later connections."""
    shell = tmp_path / "shell"
    shell.write_text(f'#!/bin/sh\ncase "$2" in *near*) sleep 50 & ;; esac\nexec {two.shell} "$@"\n')
    shell.chmod(0o755)
    with held("--remote-shell", shell, "--hosts", "m1:2,m2:2") as near:
        result = near("top")
        assert result.status == 0 and result.seconds < 25 and result.err == "", result.report()
        assert re.findall(r"^ +(\d) +\d+ running", result.out, re.M) == ["0", "1", "2", "3"], result.report()


def test_a_machine_that_cannot_be_asked_is_named(two, prefix, held, tmp_path):
    reached = tmp_path / "reached"
    reached.touch()
    shell = tmp_path / "shell"
    shell.write_text(f'#!/bin/sh\n[ "$1" = m1 ] || [ -e {reached} ] || {{ echo "no route to $1" >&2; exit 255; }}\nexec {two.shell} "$@"\n')
    shell.chmod(0o755)
    with held("--remote-shell", shell, "--hosts", "m1:2,m2:2") as near:
        reached.unlink()
        result = near("top")
        assert result.status == 255 and "near: machine m2: no route to m2" in result.err, result.report()
        assert re.findall(r"^ +(\d) +\d+ running", result.out, re.M) == ["0", "1"], result.report()
        result = near("place", "--json")
        assert result.status == 255, result.report()
        assert [each["snapshot"] is None for each in json.loads(result.out)["machines"]] == [False, True]
