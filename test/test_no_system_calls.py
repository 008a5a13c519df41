"""Messages between buffers of MPI_Alloc_mem need no system call, whatever their size, as strace shows."""

import re
import shutil

import pytest


@pytest.mark.parametrize("protocol", ["direct", "auto"])
def test_messages_between_shareable_buffers_take_no_system_call(mpiexec, compiled, tmp_path, protocol):
    assert shutil.which("strace"), "strace is not installed: dev/setup test installs it"
    log = tmp_path / "trace"
    # Without sleeps: these are system calls, and the tracer delays the other rank.
    result = mpiexec(2, ["strace", "-ff", "-o", log, compiled("exchange_shareable_memory")],
                     env={"NEAR_COPY": protocol, "NEAR_WAIT": "spin"}, timeout=120)
    assert result.status == 0 and not result.timed_out, result.report()
    traced = 0
    for file in tmp_path.glob("trace.*"):
        text = file.read_text()
        marks = [found.start() for found in re.finditer(r"^getpgid\(2124489541\)", text, re.M)]
        if not marks:
            continue
        assert len(marks) == 2, text[-2000:]
        between = text[marks[0]:marks[1]].splitlines()[1:]
        assert between == [], f"{len(between)} system calls, such as\n" + "\n".join(between[:5])
        traced += 1
    assert traced == 2
