"""Fixtures of the launcher's tests."""

import os
import signal
import subprocess
import time
import uuid

import harness
import pytest


@pytest.fixture
def launch(prefix, nothing_left):
    """launch(option, ..., **harness options): runs mpiexec with exactly these arguments."""

    def run(*arguments, timeout=60, **rest):
        result = nothing_left([prefix / "bin/mpiexec", *arguments], timeout=timeout, **rest)
        assert not result.timed_out, result.report()
        return result

    return run


class Running:
    """An mpiexec that runs while the test does something to it."""

    def __init__(self, command, **options):
        self.mark = uuid.uuid4().hex
        environment = {**os.environ, **options.pop("env", {}), harness.MARK: self.mark}
        self.process = subprocess.Popen([str(word) for word in command], env=environment, start_new_session=True,
                                        stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **options)

    @property
    def pid(self):
        return self.process.pid

    def processes(self):
        """Every living process of the job, mpiexec's own included."""
        return harness.marked(self.mark)

    def named(self, name):
        """The processes of the job whose name in the kernel is `name`."""
        found = []
        for pid in self.processes():
            try:
                with open(f"/proc/{pid}/comm") as file:
                    if file.read().strip() == name:
                        found.append(pid)
            except OSError:
                pass
        return sorted(found)

    def wait_for(self, name, count):
        """Waits until there are `count` processes with that name; returns them."""
        deadline = time.monotonic() + 30
        while len(found := self.named(name)) < count:
            assert time.monotonic() < deadline, f"only {len(found)} of {count} processes '{name}' appeared"
            assert self.process.poll() is None, f"mpiexec ended early: {self.process.communicate()}"
            time.sleep(0.01)
        return found

    def finish(self, timeout=30):
        """Returns (status as in a shell, standard output, standard error)."""
        out, err = self.process.communicate(timeout=timeout)
        status = self.process.returncode
        return (status if status >= 0 else 128 - status), out, err

    def signal(self, number):
        self.process.send_signal(number)


@pytest.fixture
def start(prefix):
    """start(option, ...): a Running mpiexec, of which nothing may be left at the end."""
    made = []
    before = harness.shared_files()

    def begin(*arguments, **options):
        made.append(Running([prefix / "bin/mpiexec", *arguments], **options))
        return made[-1]

    yield begin
    left = []
    for job in made:
        if job.process.poll() is None:
            job.signal(signal.SIGKILL)
        job.process.wait(timeout=30)
        left.append(harness.survivors(job.mark))
    assert not any(left), f"these processes survived:\n{''.join(left)}"
    files = harness.files_left(before)
    assert not files, f"left in /dev/shm: {files}"
