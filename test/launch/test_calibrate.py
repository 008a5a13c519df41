"""`near calibrate` stores the costs of copies on this machine, and jobs start with them."""

import contextlib
import os
import re
import signal
import sys
import time

import harness
import pytest

needs_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor only")

# Runs a command without process_vm_readv, as in some containers.
DENIED = """
import ctypes, errno, os, platform, struct, sys
number = {"x86_64": 310, "aarch64": 270}[platform.machine()]
def rule(code, yes, no, value): return struct.pack("HBBI", code, yes, no, value)
rules = rule(0x20, 0, 0, 0) + rule(0x15, 0, 1, number) + rule(0x06, 0, 0, 0x50000 | errno.EPERM) \\
    + rule(0x06, 0, 0, 0x7fff0000)
keep = ctypes.create_string_buffer(rules)
program = struct.pack("HxxxxxxQ", len(rules) // 8, ctypes.addressof(keep))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def near(prefix, tmp_path, nothing_left):
    """near(words ...): runs near with a separate cache folder."""

    def run(*words, before=(), **env):
        finished = nothing_left([*before, prefix / "bin/near", *words], env={"XDG_CACHE_HOME": tmp_path, **env})
        assert not finished.timed_out, finished.report()
        return finished

    return run


@pytest.fixture
def cached(tmp_path):
    """The files of the cache folder."""
    return lambda: list(tmp_path.rglob("*.*"))


@pytest.fixture(scope="session")
def measured(prefix, tmp_path_factory):
    """A profile of this machine: the name of its file, and its lines."""
    folder = tmp_path_factory.mktemp("cache")
    finished = harness.run([prefix / "bin/near", "calibrate"], env={"XDG_CACHE_HOME": folder})
    assert finished.status == 0, finished.report()
    (file,) = folder.rglob("*.*")
    return file.name, file.read_text().splitlines()


@pytest.fixture
def plant(tmp_path, measured):
    """plant(lines): stores the lines as this machine's profile."""

    def write(lines):
        (tmp_path / "near").mkdir(exist_ok=True)
        (tmp_path / "near" / measured[0]).write_text("".join(line + "\n" for line in lines))

    return write


@needs_two
def test_the_profile_is_kept_shown_and_removed(near, cached):
    assert "profile: none" in near("info").out
    made = near("calibrate")
    assert (made.status, made.err) == (0, ""), made.report()
    (file,) = cached()
    assert str(file) in made.out and file.read_text().startswith("near-profile 3\n")
    for row in (r"^short messages, half a round trip: 8 B [1-9]\d* ns, .* 16 KiB [1-9]\d* ns$",
                r"^ +4 KiB reused", r"^ +4 KiB rewritten", r"^stores into packets: cached [\d.]+, streaming [\d.]+",
                r"^packing, ns for one block", r"^ +4096 B +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+$"):
        assert re.search(row, made.out, re.M), made.report()
    assert near("calibrate", "--show").out == made.out
    assert f"profile: {file}, measured 20" in near("info").out
    assert near("calibrate", "--remove").status == 0 and cached() == []
    gone = near("calibrate", "--show")
    assert gone.status == 1 and "`near calibrate` makes it" in gone.err, gone.report()
    assert near("calibrate", "--remove").status == 0


@needs_two
def test_progress_is_shown_on_a_terminal_alone(near, prefix, tmp_path):
    seen = near("calibrate", before=[sys.executable, "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"])
    assert seen.status == 0 and "[####" in seen.out and "pipelined, streaming stores" in seen.out, seen.report()
    assert "[#" not in near("calibrate").text


@needs_two
def test_without_the_kernels_copies_the_profile_says_why(near, cached):
    made = near("calibrate", before=[sys.executable, "-c", DENIED])
    assert made.status == 0 and "no cma" in made.out and "process_vm_readv: Operation not permitted" in made.out, \
        made.report()
    (file,) = cached()
    rows = [line for line in file.read_text().splitlines() if line.startswith("cost ")]
    assert rows and all(line.endswith(" -") for line in rows), rows


def test_one_processor_is_not_enough(near, cached):
    cpu = min(os.sched_getaffinity(0))
    refused = near("calibrate", before=["taskset", "-c", cpu])
    assert refused.status == 1 and "two processors" in refused.err, refused.report()
    assert cached() == []


def test_a_place_that_cannot_be_written_is_named(near, tmp_path):
    (tmp_path / "file").write_text("")
    refused = near("calibrate", XDG_CACHE_HOME=tmp_path / "file")
    assert refused.status == 1 and str(tmp_path / "file/near") in refused.err, refused.report()
    refused = near("calibrate", XDG_CACHE_HOME="", HOME="")
    assert refused.status == 1 and "XDG_CACHE_HOME" in refused.err, refused.report()


@needs_two
def test_killed_in_the_middle_it_leaves_no_process_and_no_file(prefix, cached, tmp_path):
    running = harness.Running([prefix / "bin/near", "calibrate"], env={"XDG_CACHE_HOME": tmp_path})
    deadline = time.monotonic() + 30
    stopped = set()
    while len(stopped) < 2:  # once they are bound, they end only with their parent
        assert time.monotonic() < deadline
        for child in set(harness.marked(running.mark)) - {running.process.pid} - stopped:
            with contextlib.suppress(ProcessLookupError):
                if len(os.sched_getaffinity(child)) == 1:
                    os.kill(child, signal.SIGSTOP)
                    stopped.add(child)
    running.process.kill()
    finished = running.finish(30)
    assert finished.status == 137 and not finished.timed_out, finished.report()
    left = harness.survivors(running.mark)
    assert not left and cached() == [], left


DAMAGES = {
    "cut off": (lambda lines: lines[:-1], "its end is missing"),
    "garbled": (lambda lines: [*lines[:3], "cost ?", *lines[3:]], "line 4 is damaged"),
    "of another version": (lambda lines: ["near-profile 99", *lines[1:]], "version 99"),
    "of another machine": (lambda lines: [lines[0], "machine elsewhere-0", *lines[2:]], "machine elsewhere-0"),
}


@needs_two
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_profile_that_cannot_be_used_is_ignored_with_one_warning(damage, plant, measured, launch, tmp_path, compiled):
    change, says = DAMAGES[damage]
    plant(change(measured[1]))
    program = compiled("first_large_messages")
    result = launch("-n", "2", program, env={"XDG_CACHE_HOME": tmp_path})
    assert result.status == 0, result.report()
    (said,) = result.err.splitlines()
    assert said.startswith("mpiexec: warning: ") and says in said and "`near calibrate`" in said, result.report()
    result = launch("--quiet", "-n", "2", program, env={"XDG_CACHE_HOME": tmp_path})
    assert (result.status, result.err) == (0, ""), result.report()


def profile_of(measured, cost):
    """A profile in which the protocols cost that at every distance."""
    return [*measured[1][:3], *(f"cost {distance} 4096 rewritten {cost}" for distance in ("core", "l3", "machine")),
            "end"]


@needs_two
@pytest.mark.parametrize("protocol", ["pipelined", "cma"])
def test_the_first_large_message_takes_the_protocol_that_the_profile_calls_fastest(
        protocol, measured, plant, launch, tmp_path, compiled):
    if any(line.startswith("no-cma") for line in measured[1]):
        pytest.skip("the kernel does not let processes copy from each other here")
    plant(profile_of(measured, {"pipelined": "90000 1000 1000 100000", "cma": "90000 100000 100000 1000"}[protocol]))
    result = launch("-n", "2", compiled("first_large_messages"), env={"XDG_CACHE_HOME": tmp_path, "NEAR_STATS": 1})
    assert result.status == 0, result.report()
    assert len(re.findall(rf"{protocol}: 1 messages, {1 << 20} bytes", result.err)) == 2, result.report()


@needs_two
def test_only_the_first_one_takes_the_kernels_copy_if_packets_are_a_little_faster(measured, plant, launch, tmp_path, compiled):
    if any(line.startswith("no-cma") for line in measured[1]):
        pytest.skip("the kernel does not let processes copy from each other here")
    plant(profile_of(measured, "90000 60000 60000 80000"))
    result = launch("-n", "2", compiled("first_large_messages"), 4, env={"XDG_CACHE_HOME": tmp_path, "NEAR_STATS": 1})
    assert result.status == 0, result.report()
    assert len(re.findall(rf"cma: 1 messages, {1 << 20} bytes; pipelined: 3 messages, {3 << 20} bytes", result.err)) == 2, result.report()


@needs_two
@pytest.mark.parametrize("with_profile", [True, False])
def test_a_running_job_shows_what_its_choice_rests_on(with_profile, measured, plant, start, prefix, tmp_path, compiled):
    if with_profile:
        plant(measured[1])
    job = start("-n", "2", compiled("talk_for_ever"), env={"XDG_CACHE_HOME": str(tmp_path)})
    job.wait_for("talk_for_ever", 2)
    deadline = time.monotonic() + 30
    while True:
        seen = harness.run([prefix / "bin/near", "info", "--transport", "--job", job.pid])
        if re.search(r"1 MiB to 2 MiB .* GB/s +\d+  (measured|profile|built in) ", seen.out):
            break
        assert time.monotonic() < deadline, seen.report()
        time.sleep(0.05)
    began = f"the machine's profile, measured {measured[1][2].split()[1]}." if with_profile else "what is built in"
    assert began in seen.out, seen.report()


@needs_two
def test_the_model_predicts_by_terms_and_compares_with_what_it_measures(near, plant, measured):
    plant(measured[1])
    predicted = near("model", "--type", "vector(1000,1,16,double)", "--bytes", "16k")
    assert (predicted.status, predicted.err) == (0, ""), predicted.report()
    assert predicted.out.startswith("3 elements of vector(1000,1,16,double): 23 KiB of data\n"), predicted.report()
    assert re.search(r"^  \d+ blocks of 8 bytes, one every 1\d\d bytes, in \d+ KiB of cache lines$", predicted.out, re.M)
    for row in ("pack, in the caches", "pack, in memory", "unpack, in the caches", "unpack, in memory"):
        assert re.search(rf"^{row} +([\d.]+ [num]s +){{4}}[\d.]+$", predicted.out, re.M), predicted.report()
    compared = near("model", "--type", "vector(1000,1,16,double)", "--check")
    assert (compared.status, compared.err) == (0, ""), compared.report()
    assert len(re.findall(r"[+-]\d+%$", compared.out, re.M)) >= 5, compared.report()
    message = near("model", "--type", "vector(16384,1,4,double)", "--check")
    assert (message.status, message.err) == (0, ""), message.report()
    assert re.search(r"^message between +transfer +packing +unpacking +- overlap +in all +measured +error$", message.out, re.M)
    assert len(re.findall(r"[+-]\d+%$", message.out, re.M)) >= 5, message.report()
    # A profile that was measured before short messages were.
    plant(["near-profile 2", *(line for line in measured[1][1:] if not line.startswith("short"))])
    old = near("model", "--type", "vector(1000,1,16,double)")
    assert (old.status, old.err) == (0, ""), old.report()
    assert "messages: the profile says nothing about them; `near calibrate` measures them" in old.out, old.report()


@needs_two
def test_the_model_is_compared_over_a_grid(near, plant, measured, tmp_path):
    plant(measured[1])
    plot = tmp_path / "plot.svg"
    worst, everything = near("model", "--check", "--plot", plot), near("model", "--check", "--all")
    for checked in (worst, everything):
        assert (checked.status, checked.err) == (0, ""), checked.report()
        assert re.search(r"^\d+ predictions: median error \d+%, from [+-]\d+% to [+-]\d+%$", checked.out, re.M), \
            checked.report()
    points = int(re.search(r"^(\d+) predictions:", everything.out, re.M)[1])
    messages = int(re.search(r"^(\d+) predictions of messages:", everything.out, re.M)[1])
    assert messages >= 20, everything.report()
    assert len(re.findall(r"%$", everything.out, re.M)) == points + messages + 4, "every point, and both summaries"
    assert len(re.findall(r"%$", worst.out, re.M)) == 2 * (12 + 2)
    assert len(re.findall(r"^\d+ of them measured again: median difference \d+%$", worst.out, re.M)) == 2
    assert plot.read_text().count('r="2.5"') == points
    refused = near("model", "--check", "--plot", tmp_path / "nowhere" / "plot.svg")
    assert refused.status == 1 and "nowhere/plot.svg" in refused.err and refused.out == "", refused.report()


def test_the_model_says_what_is_wrong(near, plant, measured):
    for words, says, status in ((("--type", "vektor(1,1,1,int)"), "did you mean vector?", 1),
                                (("--type", "contiguous(0,int)"), "has no bytes", 1),
                                (("--type", "double"), "there is no profile", 1),
                                (("--type", "vector(2,1,1000000000000,double)", "--bytes", "8g"), "exceed 2^63", 1),
                                (("--check",), "there is no profile", 1),
                                ((), "needs --type, --check or both", 2),
                                (("--type", "double", "--bytes", "x"), "is not a number of bytes", 2),
                                (("--bytes", "1k"), "--type", 2),
                                (("--all",), "--check", 2)):
        refused = near("model", *words)
        assert refused.status == status and refused.out == "", refused.report()
        (line,) = refused.err.splitlines()
        assert line.startswith("near: ") and says in line, refused.report()
    plant([line for line in measured[1] if not line.startswith("blocks")])
    old = near("model", "--type", "double")
    assert old.status == 1 and "says nothing about packing, or not everything: `near calibrate` measures it" in old.err, old.report()
    assert "packing of datatypes: not measured" in near("calibrate", "--show").out
