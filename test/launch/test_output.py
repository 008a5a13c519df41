"""Standard input, output and error: nothing is lost, mixed up or held back forever."""

import fcntl
import hashlib
import os
import pty
import resource
import select
import subprocess
import sys
import termios
import time

import pytest

GIB = 1 << 30
# Writes $1 bytes of a pattern without newlines, which differs from rank to rank, in uneven pieces.
BINARY = """
import os, sys
rank, total = int(os.environ["NEAR_BOOT_RANK"]), int(sys.argv[1])
block = bytes((i * 7 + rank) % 256 for i in range(65521)).replace(b"\\n", b"\\r")
done = 0
while done < total:
    piece = block[: total - done]
    os.write(int(sys.argv[2]), piece) == len(piece) or sys.exit(9)
    done += len(piece)
"""
# Writes $1 numbered lines.
LINES = """
import os, sys
rank, count, out = os.environ["NEAR_BOOT_RANK"], int(sys.argv[1]), open(int(sys.argv[2]), "w")
for number in range(count):
    out.write(f"{rank} {number} {'x' * (number * 37 % 211)}\\n")
"""


def run_raw(prefix, *arguments, **options):
    """Runs mpiexec with its output in a pipe, as bytes."""
    return subprocess.Popen([prefix / "bin/mpiexec", "--oversubscribe", *map(str, arguments)], stdin=subprocess.DEVNULL,
                            **options)


def test_standard_input_goes_to_rank_0_alone(launch):
    result = launch("-n", "3", "--oversubscribe", "sh", "-c", "echo $NEAR_BOOT_RANK $(cat)", input="hello\n")
    assert sorted(result.out.splitlines()) == ["0 hello", "1", "2"]


def test_rank_0_has_the_real_descriptor(launch, tmp_path):
    file = tmp_path / "input"
    file.write_text("a\nb\nc\n")
    with open(file) as stdin:
        # `read` consumes single bytes and leaves the rest to the next program, and the descriptor refers to the file.
        script = "[ $NEAR_BOOT_RANK = 0 ] || exit 0; read one; echo $one; readlink /proc/$$/fd/0"
        result = launch("-n", "2", "sh", "-c", script, stdin=stdin)
        assert result.out == f"a\n{file}\n"
        assert stdin.read() == "b\nc\n"


HERE = ["--oversubscribe", "--timeout", "50"]  # a job that hangs must not outlive its test
COUNT = "import sys; n = 0\nwhile piece := sys.stdin.buffer.read(1 << 16): n += len(piece)\nprint(n)"


@pytest.mark.parametrize("source", ["pipe", "file"])
def test_a_rank_that_does_not_read_does_not_starve_others(prefix, tmp_path, source):
    """Rank 1 reads only after the others have received the whole input, which is far larger than a pipe."""
    size = 20_000_000
    script = f"""
        case $NEAR_BOOT_RANK in
        1) while [ ! -e {tmp_path}/0 ] || [ ! -e {tmp_path}/2 ]; do sleep 0.02; done; {sys.executable} -c '{COUNT}';;
        *) {sys.executable} -c '{COUNT}'; touch {tmp_path}/$NEAR_BOOT_RANK;;
        esac"""
    feed = f"head -c {size} /dev/zero"
    (tmp_path / "input").write_bytes(bytes(size) if source == "file" else b"")
    feed = f"{feed} | $0 \"$@\"" if source == "pipe" else f"$0 \"$@\" <{tmp_path}/input"
    out = subprocess.run(["sh", "-c", feed, prefix / "bin/mpiexec", *HERE, "-s", "all", "-n", "3", "sh", "-c",
                          script], capture_output=True, text=True, timeout=60)
    assert (out.returncode, out.stdout, out.stderr) == (0, f"{size}\n" * 3, ""), out


def test_ranks_that_stop_reading_early_are_left_out(prefix):
    """These ranks end, close their input, or read one line or part of the input; the others get every byte."""
    size = 30_000_000
    script = f"""
        case $NEAR_BOOT_RANK in
        0) exit 0;;
        1) exec <&-; sleep 0.5;;
        2) head -n 1;;
        3) head -c 5000000 | wc -c;;
        *) {sys.executable} -c '{COUNT}';;
        esac"""
    feed = f"(echo first; head -c {size} /dev/zero) | $0 \"$@\""
    out = subprocess.run(["sh", "-c", feed, prefix / "bin/mpiexec", *HERE, "-s", "all", "-n", "6", "sh", "-c",
                          script], capture_output=True, text=True, timeout=60)
    assert (out.returncode, out.stderr) == (0, ""), out
    assert sorted(out.stdout.split()) == sorted(["first", "5000000", f"{size + 6}", f"{size + 6}"])


def test_a_job_ends_when_nobody_reads_an_endless_input(prefix):
    feed = "yes | $0 \"$@\""
    out = subprocess.run(["sh", "-c", feed, prefix / "bin/mpiexec", *HERE, "-s", "all", "-n", "3", "true"],
                         capture_output=True, text=True, timeout=60)
    assert (out.returncode, out.stdout, out.stderr) == (0, "", ""), out


def test_a_rank_that_holds_up_the_input_is_named(prefix, tmp_path):
    """The data kept for a rank is bounded, so the others eventually wait until it ends."""
    size = 200_000_000
    script = f"""
        [ $NEAR_BOOT_RANK = 1 ] || exec {sys.executable} -c '{COUNT}'
        while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"""
    job = subprocess.Popen(["sh", "-c", f"head -c {size} /dev/zero | $0 \"$@\"", prefix / "bin/mpiexec", *HERE,
                            "-s", "all", "-n", "3", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True)
    said = job.stderr.readline()
    assert said.startswith("mpiexec: note: rank 1 does not read its standard input"), said
    (tmp_path / "go").touch()
    out, err = job.communicate(timeout=60)
    assert (job.returncode, out, err) == (0, f"{size}\n" * 2, "")


def test_a_gibibyte_through_standard_input(prefix):
    program = ("import sys, hashlib; h = hashlib.md5(); read = lambda: sys.stdin.buffer.read(1 << 20)\n"
               "for piece in iter(read, b''): h.update(piece)\nprint(h.hexdigest())")
    script = f"head -c {GIB} /dev/zero | {prefix}/bin/mpiexec -n 2 {sys.executable} -c \"$0\""
    out = subprocess.run(["sh", "-c", script, program], capture_output=True, text=True, timeout=300).stdout.split()
    expected = hashlib.md5()
    for _ in range(1024):
        expected.update(bytes(1 << 20))
    assert sorted(out) == sorted([expected.hexdigest(), hashlib.md5().hexdigest()])


@pytest.mark.parametrize("ranks, which", [(1, 1), (2, 1), (2, 2)])
def test_a_gibibyte_without_newlines_arrives_unchanged(prefix, ranks, which):
    # Long lines of two ranks may alternate, so the test counts how often some bytes occur.
    streams = {"stdout": subprocess.PIPE} if which == 1 else {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    job = run_raw(prefix, "-n", ranks, sys.executable, "-c", BINARY, GIB // ranks, which, **streams)
    total, counts = 0, [0] * 256
    with job.stdout or job.stderr as pipe:
        while piece := pipe.read(1 << 20):
            total += len(piece)
            for value in (0, 10, 13, 255):
                counts[value] += piece.count(value)
    assert (job.wait(60), total, counts[10]) == (0, GIB, 0)
    one = [bytes((i * 7 + rank) % 256 for i in range(65521)).replace(b"\n", b"\r") for rank in range(ranks)]
    whole, rest = divmod(GIB // ranks, 65521)
    for value in (0, 13, 255):
        assert counts[value] == sum(block.count(value) * whole + block[:rest].count(value) for block in one)


def test_a_gibibyte_of_one_rank_is_the_same_bytes(prefix):
    job = run_raw(prefix, "-l", "-n", "1", "sh", "-c", f"head -c {GIB} /dev/zero", stdout=subprocess.PIPE)
    digest, expected = hashlib.md5(), hashlib.md5(b"[0] ")
    with job.stdout as pipe:
        while piece := pipe.read(1 << 20):
            digest.update(piece)
    for _ in range(1024):
        expected.update(bytes(1 << 20))
    expected.update(b"\n")
    assert job.wait(60) == 0 and digest.hexdigest() == expected.hexdigest()


@pytest.mark.parametrize("which", [1, 2])
def test_lines_of_ranks_never_mix(prefix, which):
    ranks, count = 4, 400_000
    streams = {"stdout": subprocess.PIPE} if which == 1 else {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    job = run_raw(prefix, "-n", ranks, sys.executable, "-c", LINES, count, which, **streams)
    following = [0] * ranks
    for line in job.stdout or job.stderr:
        rank, number, rest = line.rstrip(b"\n").split(b" ")
        number = int(number)
        assert number == following[int(rank)] and rest == b"x" * (number * 37 % 211)
        following[int(rank)] += 1
    assert job.wait(60) == 0 and following == [count] * ranks


def test_both_streams_on_one_file_keep_lines_whole(prefix, tmp_path):
    script = ("i=0; while [ $i -lt 3000 ]; do echo out-$NEAR_BOOT_RANK-$i-end; echo err-$NEAR_BOOT_RANK-$i-end >&2; "
              "i=$((i+1)); done")
    with open(tmp_path / "all", "wb") as file:
        assert run_raw(prefix, "-n", 2, "sh", "-c", script, stdout=file, stderr=file).wait(120) == 0
    expected = {f"{kind}-{rank}-{i}-end" for kind in ("out", "err") for rank in (0, 1) for i in range(3000)}
    found = (tmp_path / "all").read_text().splitlines()
    assert len(found) == len(expected) and set(found) == expected


def test_an_unfinished_last_line_is_written(launch):
    result = launch("-n", "2", "printf", "end")
    assert result.out == "endend"
    assert launch("-n", "1", "printf", "a\\0b").out == "a\0b"


def test_lines_begin_with_their_rank_on_request(launch):
    for option in "-l", "--tag-output", "-prepend-rank":
        result = launch("-n", "2", option, "sh", "-c", "printf 'a\\nb'; echo e >&2")
        assert sorted(result.out.splitlines()) == ["[0] a", "[0] b", "[1] a", "[1] b"], result.report()
        assert sorted(result.err.splitlines()) == ["[0] e", "[1] e"]


def test_a_slow_reader_stops_the_writer_and_loses_nothing(prefix):
    script = "yes 0123456789 | head -c 22000000; echo done >&2"
    job = run_raw(prefix, "-n", 2, "sh", "-c", script, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    # 44 MB do not fit into pipes and buffers, so no rank can have ended.
    assert job.poll() is None
    os.set_blocking(job.stderr.fileno(), False)
    assert job.stderr.read() in (None, b"")
    out = job.stdout.read()
    assert job.wait(60) == 0 and out == b"0123456789\n" * 4_000_000


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_a_job_that_has_ended_waits_for_its_reader_asleep(prefix):
    """A timer of the job that remained due would keep mpiexec busy."""
    job = run_raw(prefix, "-n", 2, "sh", "-c", "yes 0123456789 | head -c 550000", stdout=subprocess.PIPE)
    time.sleep(1.5)  # the ranks have ended, and mpiexec has all their output
    with open(f"/proc/{job.pid}/task/{job.pid}/children") as file:
        halves = [job.pid, int(file.read())]
    states = []
    for _ in range(40):
        states += [state_of(pid) for pid in halves]
        time.sleep(0.02)
    out, _ = job.communicate(timeout=60)
    assert (job.returncode, len(out)) == (0, 1_100_000)
    assert states.count("R") < 20, "".join(states)  # of 80


def test_a_rank_that_waits_in_the_middle_of_a_long_line_does_not_delay_others(prefix, tmp_path):
    # Rank 0 writes 3 MB without a newline and waits for a file that rank 1 creates after it has written 3 MB of lines.
    script = f"""
if [ $NEAR_BOOT_RANK = 0 ]; then head -c 3000000 /dev/zero; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done
else sleep 0.5; yes | head -c 3000000; touch {tmp_path}/go; fi"""
    job = run_raw(prefix, "-n", 2, "sh", "-c", script, stdout=subprocess.PIPE)
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 0 and out.count(b"\0") == 3_000_000 and out.count(b"y\n") == 1_500_000


def test_a_reader_that_has_gone_ends_the_job(prefix):
    # As in `mpiexec ... | head`: the ranks must not run forever, and there is no message.
    job = run_raw(prefix, "-n", 2, "yes", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    job.stdout.read(100)
    job.stdout.close()
    assert job.wait(60) == 128 + 13
    assert job.stderr.read() == b""


@pytest.mark.parametrize("script", ["echo x", "yes", "exec 1>&2; echo x"])
def test_output_that_cannot_be_written_is_an_error(prefix, script):
    # /dev/full has no space. If standard error is full, the message cannot be printed, so only the status is checked.
    on_error = "1>&2" in script
    with open("/dev/full", "wb") as full:
        streams = {"stderr": full, "stdout": subprocess.PIPE} if on_error else {"stdout": full, "stderr": subprocess.PIPE}
        job = run_raw(prefix, "-n", 2, "sh", "-c", script, **streams)
        _, err = job.communicate(timeout=60)
    assert job.returncode == 1
    if not on_error:
        assert err.startswith(b"mpiexec: cannot write to standard output: No space left on device"), err
        assert err.count(b"\n") == 1


def test_output_beyond_the_limit_on_file_sizes_is_an_error(prefix, tmp_path):
    with open(tmp_path / "all", "wb") as file:
        job = run_raw(prefix, "-n", 2, "yes", stdout=file, stderr=subprocess.PIPE,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50 << 20, 50 << 20)))
        _, err = job.communicate(timeout=60)
    assert job.returncode == 1 and err.startswith(b"mpiexec: cannot write to standard output: File too large"), err


def test_a_single_rank_keeps_the_terminal(prefix):
    master, slave = pty.openpty()
    job = subprocess.Popen([prefix / "bin/mpiexec", "-n", "1", "sh", "-c", "test -t 1 && test -t 2 && echo yes"],
                           stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    assert job.wait(30) == 0 and os.read(master, 100) == b"yes\r\n"
    os.close(master)


def test_a_prompt_appears_on_a_terminal(prefix):
    master, slave = pty.openpty()
    script = "[ $NEAR_BOOT_RANK = 1 ] || { printf 'name? '; read name; echo hello $name; }"
    job = subprocess.Popen([prefix / "bin/mpiexec", "-q", "-n", "2", "sh", "-c", script], stdin=slave, stdout=slave,
                           stderr=slave, start_new_session=True,
                           preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    assert os.read(master, 100) == b"name? "
    os.write(master, b"you\n")
    text = b""
    while b"hello you" not in text:
        text += os.read(master, 100)
    assert job.wait(30) == 0
    os.close(master)


def test_a_job_in_the_background_reads_from_the_terminal_once_it_is_in_the_foreground(prefix, tmp_path):
    master, slave = pty.openpty()
    script = tmp_path / "reads"
    script.write_text("[ $NEAR_BOOT_RANK = 1 ] || { read name; echo hello $name; }\n")
    shell = subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                             env={**os.environ, "PS1": "$ "}, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    seen = b""

    def expect(text):
        nonlocal seen
        while text not in seen:
            ready, _, _ = select.select([master], [], [], 30)
            assert ready, seen
            seen += os.read(master, 1000)
        seen = seen.partition(text)[2]

    os.write(master, f"{prefix}/bin/mpiexec -q --oversubscribe -n 2 sh {script} &\n".encode())
    expect(b"[1] ")
    os.write(master, b"until jobs | grep Stopped; do sleep 0.1; done; echo is-\\stopped\n")
    expect(b"is-stopped")
    os.write(master, b"fg\n")
    expect(b"-n 2 sh")
    os.write(master, b"you\n")
    expect(b"hello you")
    os.write(master, b"exit\n")
    assert shell.wait(30) == 0
    os.close(master)


# ---- named files other than regular ones --------------------------------------------------------------------

@pytest.mark.parametrize("option", ["-outfile-pattern", "-errfile-pattern", "--report-pid"])
def test_a_pipe_that_nobody_reads_is_an_error(launch, tmp_path, option):
    os.mkfifo(tmp_path / "ff")
    result = launch("-n", "1", option, "ff", "true", cwd=tmp_path)
    assert result.status != 0 and not result.timed_out and "nobody reads the pipe 'ff'" in result.err, result.report()


def test_a_pipe_that_somebody_reads_takes_all_output(launch, tmp_path):
    """Even much more than the pipe holds: a rank waits for the reader."""
    os.mkfifo(tmp_path / "ff")
    held = os.open(tmp_path / "ff", os.O_RDWR)  # so that the reader sees no end before the job has ended
    with subprocess.Popen(["bash", "-c", "wc -c <ff"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as reader:
        result = launch("-n", "1", "-outfile-pattern", "ff", "head", "-c", "1000000", "/dev/zero", cwd=tmp_path)
        os.close(held)
        assert reader.stdout.read() == "1000000\n", result.report()
    assert (result.status, result.err) == (0, ""), result.report()


def test_a_file_of_programs_may_be_a_pipe(launch, tmp_path):
    os.mkfifo(tmp_path / "ff")
    with subprocess.Popen(["bash", "-c", "echo '-n 1 echo here' >ff"], cwd=tmp_path):
        result = launch("-configfile", "ff", cwd=tmp_path)
    assert (result.status, result.out) == (0, "here\n"), result.report()


def test_one_file_by_two_names_is_emptied_once(launch, tmp_path):
    """By paths through different folders, and by a link. Its old contents are removed."""
    (tmp_path / "al").mkdir()
    (tmp_path / "al/f0").write_text("before\n" * 100)
    (tmp_path / "link0").symlink_to("al/f0")
    for other in ("al/../al/f%r", "link%r"):
        result = launch("-n", "1", "-outfile-pattern", "al/f%r", "-errfile-pattern", other, "sh", "-c",
                        "echo out; echo err >&2", cwd=tmp_path)
        assert (result.status, (tmp_path / "al/f0").read_text()) == (0, "out\nerr\n"), result.report()


def test_a_file_is_not_emptied_by_the_name_that_a_later_rank_has_for_it(launch, tmp_path):
    (tmp_path / "f1").symlink_to("f0")
    result = launch("-n", "2", "--oversubscribe", "-outfile-pattern", "f%r", "sh", "-c", "echo here", cwd=tmp_path)
    assert (result.status, (tmp_path / "f0").read_text()) == (0, "here\n" * 2), result.report()


# ---- output to files and to the terminal --------------------------------------------------------------------

def test_copied_output_is_the_same_in_both_places(launch, tmp_path):
    """More output than pipes and buffers hold, without a final newline; each stream goes to its own destinations."""
    script = "head -c 3000000 /dev/zero | tr '\\0' x; yes $NEAR_BOOT_RANK | head -c 3000001; echo err-$NEAR_BOOT_RANK >&2"
    result = launch("-n", "2", "--oversubscribe", "--output-filename", "all:copy", "sh", "-c", script, cwd=tmp_path)
    files = [(tmp_path / f"all.{rank}.out").read_text() for rank in (0, 1)]
    for rank, text in enumerate(files):
        assert text == "x" * 3000000 + f"{rank}\n" * 1500000 + str(rank), f"rank {rank}: {len(text)}"
        assert (tmp_path / f"all.{rank}.err").read_text() == f"err-{rank}\n"
    assert result.status == 0 and sorted(result.out) == sorted("".join(files)), len(result.out)
    assert sorted(result.err.splitlines()) == ["err-0", "err-1"], result.err[:1000]


def test_merged_output_is_copied_to_one_file_and_to_standard_output(launch, tmp_path):
    result = launch("-n", "2", "--oversubscribe", "--output", "merge,dir=all:copy", "sh", "-c", "echo out; echo err >&2",
                    cwd=tmp_path)
    assert (result.status, sorted(result.out.split()), result.err) == (0, ["err", "err", "out", "out"], ""), result.report()
    for rank in (0, 1):
        assert (tmp_path / f"all/rank.{rank}/stdout").read_text() == "out\nerr\n"
        assert not (tmp_path / f"all/rank.{rank}/stderr").exists()


def test_a_copy_that_cannot_be_written_is_an_error(launch, tmp_path):
    (tmp_path / "all.1.out").symlink_to("/dev/full")
    result = launch("-n", "2", "--oversubscribe", "--output-filename", "all:copy", "yes", cwd=tmp_path)
    said = [line for line in result.err.splitlines() if line.startswith("mpiexec")]
    assert result.status == 1 and len(said) == 1, result.err[:1000]
    assert said[0].startswith("mpiexec: cannot write to 'all.1.out', a file for the ranks' output: No space left on device"), said


def test_a_slow_reader_of_the_terminal_stops_a_copied_writer(prefix, tmp_path):
    job = run_raw(prefix, "-n", 1, "--output-filename", tmp_path / "all:copy", "sh", "-c", "yes | head -c 20000000",
                  stdout=subprocess.PIPE)
    time.sleep(1)
    assert job.poll() is None and (tmp_path / "all.0.out").stat().st_size < 10_000_000
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 0 and out == b"y\n" * 10_000_000 and (tmp_path / "all.0.out").read_bytes() == out
