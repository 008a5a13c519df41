"""For test/kill/random and test/net/kills: kills at random instants of random jobs, several at a time, and what becomes of them."""

import argparse
import contextlib
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import harness


class Failure(Exception):
    """Describes a failed kill."""


def children(pid):
    """Ids of the children of `pid`, including ended ones."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def sleep_until(instant):
    """Returns at `instant` (time.monotonic), to the microsecond if the machine is idle."""
    time.sleep(max(0, instant - time.monotonic() - 0.001))
    while time.monotonic() < instant:
        pass


def kill(pids):
    """SIGKILL for all of them; some may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def watch(pids):
    """Descriptors by which wait_for_end notices the end of these processes; those that have ended have none."""
    watches = []
    for pid in pids:
        with contextlib.suppress(OSError):
            watches.append(os.pidfd_open(pid))
    return watches


def wait_for_end(watches, deadline):
    """Waits until all processes of watch() have ended, and closes the descriptors; returns False at `deadline`."""
    good = True
    for descriptor in watches:
        poller = select.poll()
        poller.register(descriptor, 1)
        good = good and bool(poller.poll(max(0, (deadline - time.monotonic()) * 1000)))
        os.close(descriptor)
    return good


def compile_programs(prefix, folder, names):
    """Returns these programs of test/mpi by name, built with the installation's mpicc."""
    folder.mkdir(parents=True, exist_ok=True)
    built = {}
    for name in sorted(set(names)):
        built[name] = folder / name
        command = [prefix / "bin/mpicc", "-std=gnu11", "-O1", "-o", built[name], harness.ROOT / f"test/mpi/{name}.c",
                   "-lpthread"]
        subprocess.run(command, check=True)
    return built


def options(description, *, count, within, jobs):
    """The parser of a program's command line, with these defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=count, help=f"kills (default {count})")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no more kills after this time")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 40), help="of the first kill")
    parser.add_argument("--within", type=float, default=within, help=f"seconds in which all must have ended (default {within})")
    parser.add_argument("--jobs", type=int, default=jobs, help=f"jobs at a time (default {jobs})")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    parser.add_argument("--prefix", type=Path, default=harness.ROOT / "build/prefix", help="the installation")
    return parser


def report(taken, missed, seconds):
    """The last lines: what was killed, and how long the survivors took."""
    for victim, times in sorted(taken.items()):
        print(f"{victim:>10}: {len(times):5} kills; the job's last process ended after {statistics.median(times):.3f} s "
              f"(median), {max(times):.3f} s (most); {sum(time > 1 for time in times)} took longer than 1 s")
    count = sum(map(len, taken.values()))
    print(f"{count} kills in {seconds:.0f} s, {missed} jobs ended before theirs")


def run(asked, kill_one):
    """Calls kill_one(seed) for each kill. It returns the victim, and the seconds until all processes had ended; None if the job had ended
    before the kill. Ends this program if it raises Failure.
    """
    started, taken, missed, failures, stop = time.monotonic(), {}, 0, 0, threading.Event()

    def one(seed):
        if stop.is_set() or time.monotonic() - started > asked.seconds:
            return None
        return kill_one(seed)

    print(f"seed {asked.seed}", flush=True)
    with ThreadPoolExecutor(asked.jobs) as pool:
        for done, future in enumerate(as_completed([pool.submit(one, asked.seed + i) for i in range(asked.count)]), 1):
            try:
                outcome = future.result()
            except Failure as failure:
                failures += 1
                if not asked.keep_going:
                    stop.set()
                    sys.exit(f"FAILED: {failure}")
                print(f"FAILED: {failure}", flush=True)
                continue
            if outcome is not None and outcome[1] is None:
                missed += 1
            elif outcome is not None:
                taken.setdefault(outcome[0], []).append(outcome[1])
            if sys.stdout.isatty() or done % max(1, asked.count // 10) == 0:
                print(f"\r{done} of {asked.count}", end="" if sys.stdout.isatty() else "\n", flush=True)
    print()
    report(taken, missed, time.monotonic() - started)
    if failures:
        sys.exit(f"FAILED: {failures} kills")
