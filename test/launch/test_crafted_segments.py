"""`near` reads a crafted segment: it prints an error or a table, and never crashes or sends commands to the terminal.

The segment is a copy of a real job's segment in which words were overwritten. A process of the test holds it open.
"""

import os
import pickle
import random
import re
import struct
import subprocess
import sys

import harness
import pytest

ROUNDS = int(os.environ.get("OVERWRITE_ROUNDS", 24))
SEED = int(os.environ.get("OVERWRITE_SEED", 0))
LOOKS = [("top", "--once"), ("place", "--all"), ("place", "--json"), ("info",), ("info", "--transport")]
# Reads the file's length and pieces (offset, bytes); holds the file until its standard input ends.
HOLDER = """
import fcntl, os, pickle, sys
length, pieces = pickle.load(sys.stdin.buffer)
file = os.memfd_create("nearmpi", os.MFD_ALLOW_SEALING)
os.ftruncate(file, length)
for offset, data in pieces:
    os.pwrite(file, data, offset)
fcntl.fcntl(file, 1033, 2 | 4)  # F_ADD_SEALS: no shrinking, no growing
print("held", flush=True)
sys.stdin.buffer.read()
"""
PAGE = 4096
# Offsets of fields in the header.
ROWS, JOB_SIZE, LAUNCHER, STRIDE, NAME = 12, 16, 20, 24, 44


def copy_of(pid):
    """The length and the existing pages of a running job's segment."""
    for number in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{number}"
        if os.readlink(path).startswith("/memfd:nearmpi "):
            break
    file = os.open(path, os.O_RDONLY)
    length, at, pages = os.fstat(file).st_size, 0, {}
    while True:
        try:
            at = os.lseek(file, at, os.SEEK_DATA)
        except OSError:
            break
        end = os.lseek(file, at, os.SEEK_HOLE)
        for page in range(at, min(end, at + 256 * PAGE), PAGE):
            pages[page] = bytearray(os.pread(file, PAGE, page))
        at = end
    os.close(file)
    return length, pages


@pytest.fixture(scope="module")
def job(prefix, compiled):
    """A job's segment: (length, {offset: page})."""
    with subprocess.Popen([prefix / "bin/mpiexec", "-n", "2", "--oversubscribe", compiled("talk_for_ever")], stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env={**os.environ, "NEAR_LEASES": "0"}) as running:
        try:
            for _ in range(1000):
                seen = harness.run([prefix / "bin/near", "info", "--transport", "--job", running.pid])
                if " 0 to 1" in seen.out:
                    break
            else:
                pytest.fail(f"the job shows no traffic\n{seen.report()}")
            yield copy_of(running.pid)
        finally:
            running.terminate()


def look(prefix, length, pages):
    """The output of each command that reads the segment."""
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        pickle.dump((length, [(at, bytes(data)) for at, data in pages.items()]), holder.stdin)
        holder.stdin.flush()
        assert holder.stdout.readline() == b"held\n"
        for words in LOOKS:
            seen = harness.run([prefix / "bin/near", *words, "--job", holder.pid], timeout=60)
            assert not seen.timed_out and seen.status in (0, 1), f"{words}\n{seen.report()}"
            assert not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f]", seen.text), f"{words}\n{seen.report()}"
            assert seen.status == 0 or seen.err.startswith("near: "), f"{words}\n{seen.report()}"
            yield words, seen
        holder.stdin.close()


def changed(job, offset, data):
    length, pages = job
    pages = {at: bytearray(page) for at, page in pages.items()}
    page = pages[offset & -PAGE]
    page[offset % PAGE:offset % PAGE + len(data)] = data
    return length, pages


@pytest.mark.parametrize("offset, data, said", [
    (JOB_SIZE, struct.pack("<I", 0xffffffff), "speaks of 4294967295 processes in 2 rows"),
    (ROWS, struct.pack("<I", 0xffffffff), "rank table has 4294967295 rows"),
    (STRIDE, struct.pack("<Q", 1 << 63), "regions of 9223372036854775808 bytes"),
    (STRIDE, struct.pack("<Q", 0), "regions of 0 bytes"),
    (LAUNCHER, struct.pack("<i", -1), "process -1 as its launcher"),
], ids=["job-size", "rows", "stride-overflows", "no-stride", "launcher"])
def test_a_header_that_does_not_fit_together_is_an_error(prefix, job, offset, data, said):
    for words, seen in look(prefix, *changed(job, offset, data)):
        assert seen.status == 1 and said in seen.err and not seen.out, f"{words}\n{seen.report()}"


def test_a_name_is_shown_as_text(prefix, job):
    """Names without a terminator, and with control sequences for terminals."""
    for words, seen in look(prefix, *changed(job, NAME, b"\x1b]0;you\x07\x9b31m".ljust(64, b"\x1b"))):
        if words[0] == "top":
            assert seen.out.startswith(r"\033]0;you\007\23331m\033"), seen.report()


def test_unrelated_processes_are_not_shown_as_ranks(prefix, job):
    for words, seen in look(prefix, *changed(job, PAGE, struct.pack("<I", os.getpid()))):
        if words == ("place", "--all"):
            assert "no process of the job has that number" in seen.text or "no rank of" in seen.text, seen.report()


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_any_overwritten_words_do_no_harm(prefix, job, seed):
    draw = random.Random(seed)
    length, pages = changed(job, 0, b"")
    for _ in range(2 ** draw.randrange(12)):
        at = draw.choice(list(pages))
        word = struct.pack("<Q", draw.choice([draw.getrandbits(64), draw.randrange(8), 1 << draw.randrange(64), 0x1b5b324a]))
        begin = draw.randrange(PAGE // 4) * 4
        if at or begin >= 112 or draw.random() < 0.1:  # otherwise most headers would be refused
            pages[at][begin:begin + 8] = word[:PAGE - begin]
    for _ in look(prefix, length, pages):
        pass
