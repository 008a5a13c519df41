"""`near place` shows, from outside, where the pages of jobs and processes are."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import harness
import pytest

DOCUMENT = harness.ROOT / "doc/place.md"


@pytest.fixture
def near(prefix):
    """near(argument, ...): runs `near place`; returns a Finished."""

    def run(*arguments, **options):
        return harness.run([prefix / "bin/near", "place", *arguments], **options)

    return run


@pytest.fixture
def waiting(start, compiled):
    """A job of two ranks that wait for each other forever, and the processes of its ranks."""
    job = start("-n", "2", compiled("end_badly"), "hang")
    job.ranks = job.wait_for("in-mpi", 2)
    yield job
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130


@pytest.fixture
def sleeper():
    """sleeper(code): a Python process that runs the code, prints a line and sleeps."""
    made = []

    def begin(code="", **options):
        code += "\nimport time, sys\nprint('ready', flush=True)\ntime.sleep(60)"
        made.append(subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **options))
        made[-1].first = made[-1].stdout.readline().strip()
        return made[-1]

    yield begin
    for process in made:
        process.kill()
        process.wait()
        process.stdout.close()


def numa_maps(pid):
    """Bytes by node, read from the kernel's text without using our code."""
    total = {}
    with open(f"/proc/{pid}/numa_maps") as file:
        for line in file:
            size = re.search(r" kernelpagesize_kB=(\d+)", line)
            for node, pages in re.findall(r" N(\d+)=(\d+)", line):
                total[node] = total.get(node, 0) + int(pages) * int(size[1]) * 1024
    return total


def look(near, *arguments):
    seen = near(*arguments, "--json")
    assert seen.status == 0, seen.report()
    return json.loads(seen.out)


def settled(near, pids, *arguments):
    """The output of a run during which no numa_maps changed, and the totals of these numa_maps."""
    deadline = time.monotonic() + 30
    while True:
        before = [numa_maps(pid) for pid in pids]
        document = look(near, *arguments)
        if before == [numa_maps(pid) for pid in pids]:
            return document, before
        assert time.monotonic() < deadline, "the processes never stood still"


def test_the_totals_are_those_of_numa_maps(near, waiting):
    document, totals = settled(near, waiting.ranks, "--job", waiting.pid)
    ranks = {process["pid"]: process for process in document["processes"]}
    assert [ranks[pid]["bytes_on"] for pid in waiting.ranks] == totals
    for process in document["processes"]:
        for mapping in process["mappings"]:
            if mapping["located"]:  # the pages add up to the same number
                found = sum(int(each["end"], 16) - int(each["begin"], 16) for each in mapping["ranges"])
                assert found == sum(mapping["bytes_on"].values()), mapping
        kinds = {mapping["kind"] for mapping in process["mappings"]}
        assert kinds >= {"program", "library", "heap", "stack", "anonymous", "segment"}


def test_a_job_shows_its_ranks_and_the_parts_of_their_regions(near, waiting):
    document = look(near, "--job", waiting.pid)
    assert document["job"].startswith("nearmpi-") and document["program"] == "end_badly"
    assert [process["rank"] for process in document["processes"]] == [0, 1]
    for rank, process in enumerate(document["processes"]):
        assert process["problem"] is None and process["threads"] >= 1
        assert set(process["processors"]) == os.sched_getaffinity(process["pid"])
        roles = {part["role"] for part in document["segment"] if part["owner"] == rank}
        assert roles >= {"control", "queue", "lanes", "credits", "flags", "packets"}
    assert not any(part["foreign_bytes"] or part["not_in_core_bytes"] for part in document["segment"])
    assert not any(part["role"] == "nobody's" for part in document["segment"])
    seen = near("--job", waiting.pid)
    assert re.search(r"^ +1 +\d+ +\d+ +\d+ +\d{3,}", seen.out, re.M), seen.report()
    seen = near("--job", waiting.pid, "--all")
    assert re.search(r"^segment: rank 1, queue, .*\n +0x[0-9a-f]+-0x[0-9a-f]+ +node \d+ +\d+ pages$", seen.out, re.M)
    assert re.search(r"^rank 0: 0x[0-9a-f]+-0x[0-9a-f]+ r-xp library .*libnearmpi", seen.out, re.M), seen.report()


def test_looking_leaves_a_job_as_it_is(near, waiting):
    document, _ = settled(near, waiting.ranks, "--job", waiting.pid)
    again, _ = settled(near, waiting.ranks, "--job", waiting.pid)
    for one, other in zip(document["segment"], again["segment"], strict=True):
        assert one["bytes_on"] == other["bytes_on"], "a page came into being by looking"
    for pid in waiting.ranks:
        with open(f"/proc/{pid}/status") as file:
            assert "TracerPid:\t0" in file.read()


def test_each_field_of_the_json_is_documented_and_vice_versa(near, counted):
    document = look(near, "--job", counted("pipelined").pid)
    text = DOCUMENT.read_text().partition("## JSON")[2]
    tables = {title: set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*)\|", body, re.M))))
              for title, body in re.findall(r"^\| (field[^|]*?) \| meaning \|\n((?:\|.*\n)*)", text, re.M)}
    mapping = document["processes"][0]["mappings"][0]
    assert tables == {"field": set(document), "field of a process": set(document["processes"][0]),
                      "field of a mapping": set(mapping), "field of a part": set(document["segment"][0]),
                      "field of a pair": set(document["traffic"][0])}
    for name in [*document["nodes"][0], *mapping["ranges"][0]]:
        assert f"`{name}`" in text


def sent_by_each(protocol):
    """The messages that counted_messages sends to its right neighbour and to itself."""
    right = {"inline": {"messages": 4, "bytes": 24}, "packet": {"messages": 2, "bytes": 2000},
             protocol: {"messages": 1, "bytes": 1 << 20}}
    return right, {"inline": {"messages": 2, "bytes": 48}}


@pytest.fixture
def counted(start, compiled):
    """counted(protocol): a job of three ranks that have sent their messages and wait forever."""
    jobs = []

    def begin(protocol):
        jobs.append(start("-n", "3", "-x", f"NEAR_COPY={protocol}", compiled("counted_messages"), "hold"))
        jobs[-1].wait_for("has-sent", 3)
        return jobs[-1]

    yield begin
    for job in jobs:
        job.signal(signal.SIGINT)
        assert job.finish()[0] == 130


@pytest.mark.parametrize("protocol", ["direct", "cma", "pipelined"])
def test_every_message_is_in_the_matrix_by_pair_and_path(near, prefix, counted, protocol):
    job = counted(protocol)
    document = look(near, "--job", job.pid)
    pairs = {(each["from"], each["to"]): each for each in document["traffic"]}
    assert list(pairs) == [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 2)]
    right, itself = sent_by_each(protocol)
    for (sender, receiver), pair in pairs.items():
        assert pair["paths"] == (itself if sender == receiver else right)
        assert pair["messages"] == sum(path["messages"] for path in pair["paths"].values())
        assert pair["bytes"] == sum(path["bytes"] for path in pair["paths"].values())
        assert pair["distance"] in (["core"] if sender == receiver else ["core", "l3", "numa", "package", "machine"])
    seen = near("--job", job.pid)
    assert re.search(r"^ +1 +- +48 +1\.0M$", seen.out, re.M), seen.report()
    seen = near("--job", job.pid, "--all")
    assert re.search(rf"^ +2 to 0 .* inline 24 in 4, packet 2\.0K in 2, {protocol} 1\.0M in 1$", seen.out, re.M), seen.report()
    seen = harness.run([prefix / "bin/near", "top", "--once", "--job", job.pid])  # the sums
    assert len(re.findall(r" 9 +1\.0 MiB ", seen.out)) == 3, seen.report()


def test_collectives_of_all_ranks_send_no_message(near, prefix, waiting):
    """The area of MPI_COMM_WORLD exists from the start, so its first collective need not ask for it by messages."""
    deadline = time.monotonic() + 30
    while True:  # until both ranks have left their barrier
        seen = harness.run([prefix / "bin/near", "top", "--once", "--job", waiting.pid])
        if seen.out.count("MPI_Recv") == 2:
            break
        assert time.monotonic() < deadline, seen.report()
    document = look(near, "--job", waiting.pid)
    assert document["traffic"] == []
    assert {part["owner"] for part in document["segment"] if part["role"] == "slices"} == {0, 1}


def test_looking_allocates_no_page_of_the_counters(near, prefix, counted):
    def traffic_pages():
        return {part["owner"]: part["bytes_on"] for part in look(near, "--job", job.pid)["segment"]
                if part["role"] == "traffic"}

    job = counted("pipelined")
    before = traffic_pages()
    assert sorted(before) == [0, 1, 2]
    harness.run([prefix / "bin/near", "top", "--once", "--job", job.pid])
    assert traffic_pages() == before


def test_all_messages_of_a_program_are_shown_when_it_has_ended(near, prefix, compiled):
    seen = near("--json", "--", prefix / "bin/mpiexec", "-n", "3", "-x", "NEAR_COPY=pipelined", compiled("counted_messages"),
                "late")
    assert seen.status == 0, seen.report()
    traffic = json.loads(seen.out)["traffic"]  # no message had been sent when the memory was sampled
    right, itself = sent_by_each("pipelined")
    assert [each["paths"] for each in traffic] == [itself, right, itself, right, right, itself]


def test_messages_of_a_killed_rank_are_shown_too(near, prefix, compiled):
    seen = near("--json", "--", prefix / "bin/mpiexec", "-n", "3", "-x", "NEAR_COPY=pipelined", compiled("counted_messages"),
                "die")
    assert seen.status == 137, seen.report()
    traffic = json.loads(seen.out[seen.out.index("{"):])["traffic"]
    right, itself = sent_by_each("pipelined")
    assert [each["paths"] for each in traffic if each["from"] == 1] == [itself, right]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: a rank cannot leave it")
def test_a_rank_that_left_its_binding_causes_a_warning(near, waiting):
    assert not look(near, "--job", waiting.pid)["warnings"]
    os.sched_setaffinity(waiting.ranks[1], os.sched_getaffinity(0))
    warnings = look(near, "--job", waiting.pid)["warnings"]
    assert [(each["warning"], each["pid"]) for each in warnings] == [("left-binding", waiting.ranks[1])]
    seen = near("--job", waiting.pid)
    assert "has left its binding" in seen.out and "OMP_PROC_BIND" in seen.out, seen.report()


def test_memory_in_its_place_passes_the_assertion(near, waiting):
    seen = near("--job", waiting.pid, "--assert-local", "99.9")
    assert seen.status == 0 and not seen.err, seen.report()


def test_a_process_that_is_not_a_job_is_shown_too(near, sleeper):
    process = sleeper("memory = bytearray(5 << 20)")
    document, totals = settled(near, [process.pid], "--pid", process.pid)
    assert document["job"] is None and not document["segment"]
    [shown] = document["processes"]
    assert shown["rank"] is None and shown["bytes_on"] == totals[0]
    assert sum(mapping["judged_bytes"] for mapping in shown["mappings"] if mapping["kind"] == "anonymous") >= 5 << 20


def test_pages_shared_since_a_fork_are_copied_on_write_and_not_judged(near, sleeper):
    process = sleeper("import os\nmemory = bytearray(8 << 20)\nif os.fork(): os.wait()\nprint(os.getpid())")
    child = int(process.first)
    assert child != process.pid
    try:
        [shown] = look(near, "--pid", child)["processes"]
        assert sum(mapping["copy_on_write_bytes"] for mapping in shown["mappings"]) >= 7 << 20
        assert shown["judged_bytes"] < 8 << 20
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_program_is_shown_when_it_has_ended(near, prefix, compiled):
    seen = near("--", prefix / "bin/mpiexec", "-n", "2", "--timeout", "2", compiled("end_badly"), "hang")
    assert seen.status == 124, seen.report()  # the program's status
    assert re.search(r"^nearmpi-\d+: end_badly, 2 ranks", seen.out, re.M), seen.report()
    assert re.search(r"^queue +\d+", seen.out, re.M), seen.report()


def test_a_program_that_is_not_a_job_is_shown_and_asserted(near):
    seen = near("--json", "--", sys.executable, "-c", "import time; time.sleep(0.5); print('done')")
    first, _, rest = seen.out.partition("\n")
    assert seen.status == 0 and first == "done", seen.report()
    assert json.loads(rest)["processes"][0]["program"].endswith(os.path.basename(os.path.realpath(sys.executable)))


def test_the_second_job_of_a_program_is_found_too(near, prefix, compiled):
    start = f"{prefix}/bin/mpiexec --timeout 2 -n"
    program = compiled("end_badly")
    seen = near("--json", "--", "sh", "-c", f"{start} 1 {program} hang; {start} 3 {program} hang")
    assert seen.status == 124, seen.report()
    assert len(json.loads(seen.out[seen.out.index("{"):])["processes"]) == 3, seen.report()


def test_signals_are_passed_on_to_the_program(prefix, compiled):
    command = [prefix / "bin/near", "place", "--", prefix / "bin/mpiexec", "-n", "2", compiled("end_badly"), "hang"]
    running = harness.Running(command)
    deadline = time.monotonic() + 30
    while sum(name == "in-mpi" for name in map(name_of, harness.marked(running.mark))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.process.send_signal(signal.SIGINT)
    seen = running.finish(30)
    assert seen.status == 130 and not seen.timed_out, seen.report()
    assert not harness.survivors(running.mark)


def name_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
        return file.read().strip()


def test_watching_ends_with_the_job(prefix, start, compiled):
    job = start("-n", "2", compiled("end_badly"), "hang")
    job.wait_for("in-mpi", 2)
    watching = harness.Running([prefix / "bin/near", "place", "--job", job.pid, "--watch", "--json", "--interval", "0.1"])
    first = json.loads(watching.process.stdout.readline())
    second = json.loads(watching.process.stdout.readline())
    assert first["near_place"] == second["near_place"] == 1
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130
    seen = watching.finish(30)
    assert seen.status == 0 and "the job has ended" in seen.err and not seen.timed_out, seen.report()
    for line in seen.out.splitlines():
        json.loads(line)


def test_the_output_may_go_to_a_file(near, waiting, tmp_path):
    seen = near("--job", waiting.pid, "--json", "--output", tmp_path / "place.json")
    assert seen.status == 0 and not seen.out, seen.report()
    assert json.loads((tmp_path / "place.json").read_text())["near_place"] == 1
    seen = near("--job", waiting.pid, "--output", tmp_path / "no/such/folder")
    assert seen.status == 1 and "No such file" in seen.err, seen.report()


def test_the_page_has_each_rank_and_node_and_opens_to_ranges(near, waiting, tmp_path, browse):
    page = tmp_path / "page.html"
    seen = near("--job", waiting.pid, "--html", page)
    assert seen.status == 0 and seen.out.startswith("nearmpi-"), seen.report()
    document = json.loads(re.search(r'id="snapshot">(.*?)</script>', page.read_text())[1])
    drawn = browse(page)
    assert f"<h1>{document['job']}: end_badly, 2 ranks</h1>" in drawn
    rows = re.findall(r'<tr data-rank="(\d)">(.*?)</tr>', drawn)
    assert [rank for rank, _ in rows] == ["0", "1"]
    for process, (_, row) in zip(document["processes"], rows, strict=True):
        cells = {node: int(size) for node, size in re.findall(r'data-node="(\d+)" data-bytes="(\d+)"', row)}
        assert cells == {str(node["node"]): process["bytes_on"].get(str(node["node"]), 0) for node in document["nodes"]}
    assert 'id="details"' not in drawn
    drawn = browse(page, ending="#rank-1")
    assert "<h2>rank 1</h2>" in drawn and drawn.count(">lanes<") >= 2
    assert "data-range" not in drawn
    # Selects another measure, a rank and one of its parts, and closes the part again.
    clicks = "document.querySelector('input[value=region]').click();" \
             "document.querySelector('#heat [data-rank=\"0\"] button').click();" \
             "document.querySelector('#parts button').click();"
    drawn = browse(page, clicks)
    control = next(part for part in document["segment"] if part["owner"] == 0 and part["role"] == "control")
    assert "<h2>rank 0</h2>" in drawn and f'data-range="{control["ranges"][0]["begin"]}"' in drawn
    region = sum(size for part in document["segment"] if part["owner"] == 0 for size in part["bytes_on"].values())
    row = re.search(r'data-rank="0">(.*?)</tr>', drawn)[1]
    assert sum(map(int, re.findall(r'data-bytes="(\d+)"', row))) == region
    drawn = browse(page, clicks + "document.querySelector('#parts button').click();")
    assert "data-range" not in drawn


def cells_of(drawn):
    """{(from, to): (bytes, messages)} of the page's matrix."""
    return {(int(one), int(other)): (int(size), int(count)) for one, other, size, count in re.findall(
        r'data-from="(\d+)" data-to="(\d+)" data-bytes="(\d+)" data-messages="(\d+)"', drawn)}


def test_the_page_has_what_was_sent_and_opens_to_paths(near, counted, tmp_path, browse):
    page = tmp_path / "page.html"
    assert near("--job", counted("pipelined").pid, "--html", page).status == 0
    right, itself = (24 + 2000 + (1 << 20), 7), (48, 2)
    drawn = browse(page)
    assert cells_of(drawn) == {(0, 0): itself, (0, 1): right, (1, 1): itself, (1, 2): right, (2, 0): right, (2, 2): itself}
    assert 'id="pair"' not in drawn
    drawn = browse(page, "document.querySelector('input[name=path][value=packet]').click();"
                         "document.querySelector('input[name=measure][value=messages]').click();"
                         "document.querySelector('[data-from=\"1\"][data-to=\"2\"] button').click();")
    assert cells_of(drawn) == {(0, 1): (2000, 2), (1, 2): (2000, 2), (2, 0): (2000, 2)}
    assert "From rank 1 to rank 2, distance " in drawn
    rows = re.findall(r'<tr data-path="(\w+)">(.*?)</tr>', drawn)
    assert [(path, re.findall(r"<td[^>]*>([^<]*)</td>", row)) for path, row in rows] == [
        ("inline", ["4", "24"]), ("packet", ["2", "2,000"]), ("pipelined", ["1", "1,048,576"])]


def test_many_ranks_share_lines_that_can_be_opened(near, waiting, tmp_path, browse):
    page = tmp_path / "page.html"
    assert near("--job", waiting.pid, "--html", page).status == 0
    document = json.loads(re.search(r'id="snapshot">(.*?)</script>', page.read_text())[1])
    ranks = 70  # three per line
    document["processes"] = [{**document["processes"][0], "rank": rank} for rank in range(ranks)]
    document["traffic"] = [{"from": rank, "to": (rank + 1) % ranks, "distance": "l3", "messages": 1, "bytes": 8,
                            "paths": {"inline": {"messages": 1, "bytes": 8}}} for rank in range(ranks)]
    before, _, rest = page.read_text().partition('id="snapshot">')
    page.write_text(f'{before}id="snapshot">{json.dumps(document)}</script>{rest.partition("</script>")[2]}')
    drawn = browse(page)
    cells = cells_of(drawn)
    assert sum(count for _, count in cells.values()) == ranks
    assert cells[0, 0] == (16, 2) and cells[0, 3] == (8, 1) and cells[69, 0] == (8, 1) and (69, 69) not in cells
    click = "document.querySelector('[data-from=\"%d\"][data-to=\"%d\"] button').click();"
    assert cells_of(browse(page, click % (3, 3))) == {(3, 4): (8, 1), (4, 5): (8, 1)}
    drawn = browse(page, click % (69, 0) + click % (69, 0))
    assert cells_of(drawn) == {(69, 0): (8, 1)} and "From rank 69 to rank 0, distance l3" in drawn
    drawn = browse(page, click % (69, 0) + "document.querySelector('#all-ranks').click();")
    assert cells_of(drawn) == cells


def test_a_page_that_cannot_be_written_is_reported_and_nothing_is_left(near, waiting, tmp_path):
    seen = near("--job", waiting.pid, "--html", tmp_path / "no/page.html")
    assert seen.status == 1 and "No such file" in seen.err, seen.report()
    (tmp_path / "folder").mkdir()
    seen = near("--job", waiting.pid, "--html", tmp_path / "folder")
    assert seen.status == 1 and "directory" in seen.err, seen.report()
    assert os.listdir(tmp_path) == ["folder"]


def test_a_page_is_not_written_through_a_link_of_another_user(prefix, sleeper, tmp_path):
    (tmp_path / "other").write_text("mine")
    command = 'ln -s other page.$$; exec "$0" place --pid "$1" --html page'
    seen = harness.run(["sh", "-c", command, prefix / "bin/near", str(sleeper().pid)], cwd=tmp_path)
    assert seen.status == 0, seen.report()
    assert (tmp_path / "other").read_text() == "mine" and (tmp_path / "page").read_text().startswith("<!doctype")
    assert sorted(os.listdir(tmp_path)) == ["other", "page"]


def test_a_missing_process_or_program_is_reported(near, sleeper):
    process = sleeper()
    seen = near("--job", process.pid)
    assert seen.status == 1 and "not one of your running NearMPI jobs" in seen.err, seen.report()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, but its process ID is still in use
    seen = near("--pid", process.pid)
    assert seen.status == 1 and "has ended" in seen.err, seen.report()
    process.wait()
    seen = near("--pid", process.pid)
    assert seen.status == 1 and f"no process {process.pid}" in seen.err, seen.report()
    seen = near("--", "/no/such/program")
    assert seen.status == 1 and "/no/such/program" in seen.err, seen.report()
    seen = near("--", "false")
    assert seen.status == 1 and "before it could be sampled" in seen.err, seen.report()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of somebody else")
def test_somebody_elses_process_is_refused(near, sleeper, prefix):
    process = sleeper()
    # A copy that all users may run: the prefix may be in a home folder.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = shutil.copy(prefix / "bin/near", folder)
        done = subprocess.run([copy, "place", "--pid", str(process.pid)], user=65534, group=65534, text=True,
                              capture_output=True, timeout=60, cwd=folder)
    assert done.returncode == 1 and "may not be inspected" in done.stderr, done


@pytest.mark.parametrize("arguments, says", [
    (["--job", "1", "--pid", "1"], "excludes"), (["--job", "1", "--", "true"], "excludes"),
    (["--pid", "1", "--assert-local", "101"], "percentage"), (["--pid", "1", "--assert-local", "0"], "percentage"),
    (["--pid", "x"], "process number"), (["--jobb", "1"], "did you mean --job")])
def test_a_wrong_command_line_is_reported(near, arguments, says):
    seen = near(*arguments)
    assert seen.status == 2 and says in seen.err, seen.report()
