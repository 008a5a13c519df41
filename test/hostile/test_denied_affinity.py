"""In a sandbox that refuses sched_getaffinity, mpiexec reports this instead of trying forever."""

import pytest

SANDBOX = """\
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char** argv) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {4, rules};
  if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    return 77;
  execvp(argv[1], argv + 1);
  return 78;
}
"""


@pytest.mark.parametrize("options", [[], ["--explain"]])
def test_it_is_reported_once_and_at_once(prefix, nothing_left, tmp_path, options):
    (tmp_path / "sandbox.c").write_text(SANDBOX)
    made = nothing_left(["cc", "-o", tmp_path / "sandbox", tmp_path / "sandbox.c"])
    assert made.status == 0, made.report()
    result = nothing_left([tmp_path / "sandbox", prefix / "bin/mpiexec", *options, "-n", 2, "true"], timeout=60)
    if result.status == 77:
        pytest.skip("this machine has no filters of system calls")
    assert not result.timed_out and result.status == 1, result.report()
    assert len(result.err.splitlines()) == 1 and "sched_getaffinity" in result.err, result.report()
