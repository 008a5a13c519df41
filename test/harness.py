"""For all drivers: runs a command under a watchdog and checks that it leaves nothing behind.

A command runs in its own process group. When its time is up, the states of all processes that carry the command's mark
are added to the report, and they are killed. So a test that hangs shows where, and does not block the machine.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = "TEST_MARK"  # environment variable that every process started here inherits


@dataclass
class Finished:
    """A command that has ended. `status` is as in the shell: 128 + signal if a signal ended it."""

    status: int
    out: str
    err: str
    timed_out: bool
    seconds: float
    dump: str
    mark: str

    @property
    def text(self):
        return self.out + self.err

    def report(self):
        """All information about a failed test, as text."""
        parts = [f"status {self.status}{' (watchdog)' if self.timed_out else ''} after {self.seconds:.1f} s"]
        parts += [f"--- {name}\n{text[-8000:]}" for name, text in (("stdout", self.out), ("stderr", self.err)) if text]
        return "\n".join(parts + ([f"--- processes\n{self.dump}"] if self.dump else []))


def marked(mark):
    """Ids of the living processes that carry `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    if (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                        found.append(int(entry.name))
    return found


def parent_of(pid):
    """The pid of the parent of a process, which may be the higher one: pids begin anew at some point."""
    return int(re.search(r"PPid:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


def _used(task):
    """Milliseconds of processor time that a thread has used, or None if it has ended."""
    try:
        return int((task / "schedstat").read_text().split()[0]) / 1e6
    except OSError:
        return None


def some_do_not_run(pids, seconds=0.2):
    """Whether a thread of these processes is runnable, but has not run for so long (doc/robustness.md, "Processes that do not run")."""
    before = {task: _used(task) for pid in pids for task in Path(f"/proc/{pid}").glob("task/*")}
    time.sleep(seconds)
    for task, used in before.items():
        with contextlib.suppress(OSError):
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            if state == "R" and used is not None and _used(task) == used:
                return True
    return False


def _dump(mark):
    places = [Path(f"/proc/{pid}") for pid in marked(mark)]
    before = {task: _used(task) for place in places for task in place.glob("task/*")}
    time.sleep(0.2)
    lines = []
    for place in places:
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            lines.append(f"{place.name}: {words[:160]}")
            for task in sorted((place / "task").iterdir()):
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                lines.append(f"    thread {task.name}: state {state}, in {(task / 'wchan').read_text() or '?'}, "
                             f"system call {(task / 'syscall').read_text().strip()[:80]}")
                now, then = _used(task), before.get(task)
                if state == "R" and now is not None and then is not None:
                    signals = int(re.search(r"^SigPnd:\s*(\w+)", (task / "status").read_text(), re.M)[1], 16)
                    killed = ", SIGKILL is pending" if signals & 1 << signal.SIGKILL - 1 else ""
                    lines.append(f"        ran {now - then:.0f} of the last 200 ms{killed}")
    return "\n".join(lines)


class Running:
    """A command that runs in its own process group. Attributes: process (Popen), mark."""

    def __init__(self, command, *, env=None, cwd=None, stdin=subprocess.DEVNULL):
        self.mark = uuid.uuid4().hex
        self.started = time.monotonic()
        # Tests run at the same time and must not depend on each other's processors.
        given = {"NEAR_LEASES": "0", **os.environ, **(env or {})}
        environment = {**{name: str(value) for name, value in given.items()}, MARK: self.mark}
        self.process = subprocess.Popen([str(word) for word in command], env=environment, cwd=cwd, stdin=stdin,
                                        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, errors="replace")

    def finish(self, timeout, input=None):
        """Waits at most `timeout` seconds, then reports and kills the remaining processes."""
        timed_out, dump = False, ""
        try:
            out, err = self.process.communicate(input=input, timeout=timeout)
        except subprocess.TimeoutExpired:
            timed_out, dump = True, _dump(self.mark)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            end_all(self.mark)
            out, err = self.process.communicate()
        status = self.process.returncode if self.process.returncode >= 0 else 128 - self.process.returncode
        return Finished(status, out, err, timed_out, time.monotonic() - self.started, dump, self.mark)


def run(command, *, timeout=60, env=None, cwd=None, stdin=subprocess.DEVNULL, input=None):
    """Runs `command` (a list) and waits at most `timeout` seconds. Does not raise if the command fails."""
    running = Running(command, env=env, cwd=cwd, stdin=subprocess.PIPE if input is not None else stdin)
    return running.finish(timeout, input)


def end_all(mark):
    """Kills every process that carries `mark`."""
    for pid in marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def survivors(mark, patience=2.0):
    """Returns, as text, the processes with `mark` that still exist after `patience` seconds; kills them."""
    deadline = time.monotonic() + patience
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = _dump(mark)
    end_all(mark)
    return left


def shared_files():
    """The files in /dev/shm."""
    return set(os.listdir("/dev/shm"))


def files_left(before):
    """Our files in /dev/shm that were not among the files `before`. Other programs may use /dev/shm, too; our files have our name. Where tests
    run side by side (pytest -n), another test may still use its files: these are waited for."""
    files = {name for name in shared_files() - before if "near" in name.lower()}
    deadline = time.monotonic() + (120 if "PYTEST_XDIST_WORKER" in os.environ else 0)
    while files and time.monotonic() < deadline:
        time.sleep(0.1)
        files &= shared_files()
    return files
