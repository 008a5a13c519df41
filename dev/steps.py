"""Runs named steps one after another, shows how long each took, and ends with one line that counts them."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def tracked(*patterns):
    """Files of the repository (committed or about to be) that match, as strings relative to its root."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT, text=True,
                            capture_output=True, check=True)
    return sorted(name for name in set(listed.stdout.splitlines()) if (ROOT / name).exists())


def run_steps(title, steps):
    """`steps`: pairs of a name and a command (list) or a function returning True. Ends the program: 0 if all passed."""
    failed, times = [], []
    for name, action in steps:
        print(f"== {title}: {name}", flush=True)
        started = time.monotonic()
        if callable(action):
            good = action()
        else:
            good = subprocess.run([str(word) for word in action], cwd=ROOT, stdin=subprocess.DEVNULL).returncode == 0
        times.append((name, time.monotonic() - started, good))
        if not good:
            failed.append(name)
            print(f"== {title}: {name} FAILED", flush=True)
    print(f"\n== {title}")
    for name, seconds, good in times:
        print(f"   {seconds:7.1f} s  {'passed' if good else 'FAILED'}  {name}")
    if failed:
        print(f"   failed: {', '.join(failed)}")
    print(f"{len(steps) - len(failed)} passed, {len(failed)} failed", flush=True)
    sys.exit(1 if failed else 0)
