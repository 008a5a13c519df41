"""Options and fixtures of the test drivers.

pytest test                                   all drivers, on the installation in build/prefix
pytest test --prefix build/prefix-asan --cflags="-fsanitize=address,undefined"
"""

import os
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import harness  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--prefix", default=str(harness.ROOT / "build/prefix"), help="the installation to test")
    parser.addoption("--cflags", default="", help="more options for the programs in test/mpi")


@pytest.fixture(scope="session")
def prefix(request):
    """The installation under test."""
    path = Path(request.config.getoption("--prefix")).resolve()
    if not (path / "bin/mpiexec").exists():
        pytest.fail(f"there is no installation in {path}: run `make build` first", pytrace=False)
    return path


@pytest.fixture
def nothing_left():
    """Runs a command (see harness.run), then requires that none of its processes and files are left."""
    before = harness.shared_files()
    finished = []

    def run(command, **options):
        result = harness.run(command, **options)
        finished.append(result)
        return result

    yield run
    for result in finished:
        left = harness.survivors(result.mark)
        assert not left, f"these processes survived:\n{left}\n{result.report()}"
    files = harness.files_left(before)
    assert not files, f"left in /dev/shm: {files}"


@pytest.fixture
def mpiexec(prefix, nothing_left):
    """mpiexec(ranks, command, **harness options): runs a command on `ranks` ranks, even if there are fewer cores."""

    def run(ranks, command, *, options=(), **rest):
        rest.setdefault("timeout", 60)
        return nothing_left([prefix / "bin/mpiexec", "--oversubscribe", "-n", ranks, *options, *command], **rest)

    return run


@pytest.fixture(scope="session")
def unshare():
    """unshare(options): the prefix that runs a command in its own namespaces; skips the test if the machine refuses."""
    def command(*options):
        words = ["unshare", *options]
        if harness.run([*words, "true"], timeout=30).status != 0:
            pytest.skip(f"this machine refuses unshare {shlex.join(options)}")
        return words

    return command


@pytest.fixture(scope="session")
def compiled(prefix, request):
    """compiled(name): the program test/mpi/<name>.c, built with the installation's mpicc."""
    flags = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *request.config.getoption("--cflags").split()]
    folder = harness.ROOT / "build/test-mpi" / prefix.name
    folder.mkdir(parents=True, exist_ok=True)

    def build(name):
        source = harness.ROOT / "test/mpi" / f"{name}.c"
        target = folder / name
        newest = max(path.stat().st_mtime for path in (source, *source.parent.glob("*.h"), prefix / "include/mpi.h"))

        def is_outdated():
            return not target.exists() or target.stat().st_mtime < newest

        if is_outdated():
            draft = target.with_suffix(f".{os.getpid()}")
            result = harness.run([prefix / "bin/mpicc", *flags, "-o", draft, source, "-lm"], timeout=120)
            assert result.status == 0, f"mpicc {source.name} failed\n{result.report()}"
            if is_outdated():
                draft.rename(target)
            else:  # another worker was faster, and its jobs may be running
                draft.unlink()
        return target

    return build


@pytest.fixture
def small_memory_group():
    """A control group with a memory limit of 200 MiB; skips the test if the user may not create one."""
    places = [(Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")]
    place, name = places[0] if (places[0][0] / places[0][1]).exists() else places[1]
    group = place / f"near-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("this machine does not allow this user to create a control group")
    try:
        (group / name).write_text(str(200 << 20))
        (group / "memory.swappiness").write_text("0") if (group / "memory.swappiness").exists() else None
        yield group
    except OSError:
        pytest.skip("this machine's control groups have no memory limits to set")
    finally:
        deadline = time.monotonic() + 10
        while group.exists() and time.monotonic() < deadline:
            try:
                group.rmdir()
            except OSError:
                time.sleep(0.05)


@pytest.fixture
def browse(tmp_path):
    """browse(page, script, ending): the page in Chromium after the script has run; `ending` is appended to the address."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium: dev/setup browser")

    def run(page, script="", ending=""):
        # The script is added to a copy: the page's own policy allows only scripts inside the page.
        copy = tmp_path / "browsed.html"
        copy.write_text(page.read_text().replace("</body>", f"<script>{script}</script></body>"))
        seen = harness.run([program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                            f"--user-data-dir={tmp_path}/profile", "--dump-dom", f"file://{copy}{ending}"], timeout=120)
        assert seen.status == 0 and not seen.timed_out, seen.report()
        return seen.out.partition('<script type="application/json"')[0]  # the drawing precedes the data

    return run
