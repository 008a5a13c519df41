"""Runs named steps one after another, shows how long each took and how much processor time it used, and ends with the last lines of those that failed
and with one line that counts them."""

import collections
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPEATED = 12  # last lines of a failed step that are shown again at the end, where whoever sees only the end finds them


def tracked(*patterns):
    """Files of the repository (committed or about to be) that match, as strings relative to its root."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT, text=True,
                            capture_output=True, check=True)
    return sorted(name for name in set(listed.stdout.splitlines()) if (ROOT / name).exists())


class Record:
    """What has become of the steps."""

    def __init__(self, title):
        self.title = title
        self.rows = []

    def add(self, name, seconds, used, good, last_lines=()):
        """`used`: seconds of processor time, without processes that nobody waited for."""
        self.rows.append((name, seconds, used, good, last_lines))
        if not good:
            print(f"== {self.title}: {name} FAILED", flush=True)


def end_of(process):
    """Waits for a process: whether it succeeded, and the seconds of processor time that it used."""
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.terminate()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)  # for what it puts back (dev/without_session_groups)
        finally:
            process.kill()
            process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode == 0, usage.ru_utime + usage.ru_stime


def show_and_keep(stream, last_lines):
    with stream:
        for line in stream:
            print(line, end="", flush=True)
            last_lines.append(line.rstrip("\n"))


def run_step(record, name, action):
    print(f"== {record.title}: {name}", flush=True)
    started = time.monotonic()
    last_lines = collections.deque(maxlen=REPEATED)
    if callable(action):
        good, used = action(), 0
    else:
        process = subprocess.Popen([str(word) for word in action], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", env={**os.environ, "PYTHONUNBUFFERED": "1"})
        shown = threading.Thread(target=show_and_keep, args=(process.stdout, last_lines), daemon=True)
        shown.start()
        good, used = end_of(process)
        shown.join(timeout=10)  # not longer: a process that the step left behind may keep the pipe open
    record.add(name, time.monotonic() - started, used, good, list(last_lines))


class Beside:
    """Commands that run one after another beside the steps, and leave the processors to them."""

    # A kernel that groups processes by session (autogroup) compares niceness within a session only, and every job that a test starts has
    # a session of its own. So these have one, too, and the group itself is made nice.
    NICE = ["sh", "-c", '{ echo 19 >/proc/$$/autogroup; } 2>/dev/null; exec nice -n 19 "$@"', "sh"]

    def __init__(self, record, steps):
        self.record = record
        self.steps = steps
        self.process = None
        self.stopped = False
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        for name, action in self.steps:
            started = time.monotonic()
            self.process = subprocess.Popen([*self.NICE, *map(str, action)], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
            with self.process.stdout as stdout:
                out = stdout.read()
            good, used = end_of(self.process)
            if self.stopped:
                return
            seconds = time.monotonic() - started
            print(f"== {self.record.title}: {name} (beside the others, {seconds:.0f} s)\n{out}", end="", flush=True)
            self.record.add(name, seconds, used, good, out.splitlines()[-REPEATED:])

    def stop(self):
        self.stopped = True
        with contextlib.suppress(ProcessLookupError, AttributeError):
            os.killpg(self.process.pid, signal.SIGTERM)


def run_steps(title, steps, beside=(), then=()):
    """`steps`: pairs of a name and a command (list) or a function returning True. Those of `beside` are commands that run meanwhile; `then`
    are steps that begin when all these have ended. Ends the program: 0 if all passed."""
    record = Record(title)
    others = Beside(record, beside)
    try:
        for name, action in steps:
            run_step(record, name, action)
        others.thread.join()
    except BaseException:
        others.stop()
        raise
    for name, action in then:
        run_step(record, name, action)
    failed = [row for row in record.rows if not row[3]]
    print(f"\n== {title}: elapsed, processor time")
    for name, seconds, used, good, _ in record.rows:
        print(f"   {seconds:7.1f} s {used:7.1f} s  {'passed' if good else 'FAILED'}  {name}")
    print(f"   {sum(row[2] for row in record.rows):17.1f} s  in all")
    for name, *_, last_lines in failed:
        print(f"   failed: {name}", *last_lines, sep="\n      ")
    print(f"{len(record.rows) - len(failed)} passed, {len(failed)} failed", flush=True)
    sys.exit(1 if failed else 0)
