"""One-sided transfers of many small pieces of private memory need few system calls, as strace shows."""

import re
import shutil


def test_many_small_pieces_share_system_calls(mpiexec, compiled, tmp_path):
    assert shutil.which("strace"), "strace is not installed: dev/setup test installs it"
    log = tmp_path / "trace"
    result = mpiexec(2, ["strace", "-ff", "-o", log, compiled("many_small_pieces")], timeout=240)
    assert result.status == 0 and not result.timed_out, result.report()
    # Rank 0 marks the beginning and the end of each transfer. The smaller side has at least 10,007 pieces, the larger one
    # up to 60,042, and the kernel takes 1,024 on either side; an accumulate both reads and writes.
    most = 2 * (60042 // 1024 + 10007 // 1024 + 2)
    counts = []
    for file in tmp_path.glob("trace.*"):
        parts = re.split(r"^getpgid\(2124489541\).*$", file.read_text(), flags=re.M)
        counts += [len(re.findall(r"^process_vm_(?:readv|writev)\(", part, re.M)) for part in parts[1::2]]
    assert len(counts) >= 3 * 13, "so many transfers were to be traced"
    assert all(1 <= count <= most for count in counts), counts
