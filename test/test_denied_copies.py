"""If the kernel does not let ranks copy from each other, everything works, and one line explains why it is slower."""

import pytest

REMARK = "the kernel does not let ranks copy from each other"

WAYS = {
    "seccomp": ([], ["denied"]),
    "undumpable": ([], ["undumpable"]),
    "user namespaces": (["unshare", "--user", "--map-root-user"], []),
}


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("way", WAYS)
def test_large_messages_arrive_and_one_line_says_why_they_are_slower(way, ranks, compiled, mpiexec):
    wrapper, arguments = WAYS[way]
    result = mpiexec(ranks, [*wrapper, compiled("large_exchange"), *arguments])
    assert result.status == 0, result.report()
    said = [line for line in result.err.splitlines() if REMARK in line]
    # A privileged user may access undumpable processes and nested user namespaces.
    allowed = (1,) if way == "seccomp" else (0, 1)
    assert len(said) in allowed, result.report()
    assert not said or "Operation not permitted" in said[0], result.report()


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("denied", ["read", "write"])
def test_all_ranks_refuse_windows_of_private_memory(denied, ranks, compiled, mpiexec):
    result = mpiexec(ranks, [compiled("windows_without_copies"), denied])
    assert result.status == 0, result.report()
    assert all(f"rank {rank}: refused" in result.out for rank in range(ranks)), result.report()


def test_nothing_is_printed_where_copies_are_allowed(compiled, mpiexec):
    result = mpiexec(2, [compiled("large_exchange")])
    assert result.status == 0, result.report()
    assert REMARK not in result.err, result.report()
