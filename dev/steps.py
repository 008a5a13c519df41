"""Runs named steps one after another, shows how long each took, and ends with one line that counts them."""

import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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

    def add(self, name, seconds, good):
        self.rows.append((name, seconds, good))
        if not good:
            print(f"== {self.title}: {name} FAILED", flush=True)


def run_step(record, name, action):
    print(f"== {record.title}: {name}", flush=True)
    started = time.monotonic()
    if callable(action):
        good = action()
    else:
        good = subprocess.run([str(word) for word in action], cwd=ROOT, stdin=subprocess.DEVNULL).returncode == 0
    record.add(name, time.monotonic() - started, good)


def run_beside(record, steps):
    """Runs commands at the lowest priority; what they print is shown when each has ended."""
    for name, action in steps:
        started = time.monotonic()
        done = subprocess.run(["nice", "-n", "19", *map(str, action)], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        seconds = time.monotonic() - started
        print(f"== {record.title}: {name} (beside the others, {seconds:.0f} s)\n{done.stdout}", end="", flush=True)
        record.add(name, seconds, done.returncode == 0)


def run_steps(title, steps, beside=()):
    """`steps`: pairs of a name and a command (list) or a function returning True. Those of `beside` are commands that begin with the
    first step and have ended before the second begins. Ends the program: 0 if all passed."""
    record = Record(title)
    worker = threading.Thread(target=run_beside, args=(record, beside))
    worker.start()
    for name, action in steps:
        run_step(record, name, action)
        worker.join()
    worker.join()
    failed = [name for name, _, good in record.rows if not good]
    print(f"\n== {title}")
    for name, seconds, good in record.rows:
        print(f"   {seconds:7.1f} s  {'passed' if good else 'FAILED'}  {name}")
    if failed:
        print(f"   failed: {', '.join(failed)}")
    print(f"{len(record.rows) - len(failed)} passed, {len(failed)} failed", flush=True)
    sys.exit(1 if failed else 0)
