"""NEAR_STATS=1: at the end each rank prints its traffic by path, and how many messages preceded their receives."""

import re


def test_each_rank_prints_one_line_of_its_traffic(compiled, mpiexec):
    result = mpiexec(2, [compiled("large_exchange")], env={"NEAR_STATS": "1", "NEAR_COPY": "pipelined"})
    assert result.status == 0, result.report()
    lines = [line for line in result.err.splitlines() if " sent " in line]
    assert len(lines) == 2, result.report()
    for line in lines:
        found = re.search(r"pipelined: (\d+) messages, (\d+) bytes", line)
        assert found and int(found[1]) >= 3 and int(found[2]) > 8_000_000, result.report()


def test_nothing_is_printed_without_it(compiled, mpiexec):
    assert " sent " not in mpiexec(2, [compiled("large_exchange")]).err


def test_messages_that_come_before_their_receives_are_counted_each_once(compiled, mpiexec):
    result = mpiexec(2, [compiled("messages_before_their_receives")], env={"NEAR_STATS": "1"})
    assert result.status == 0, result.report()
    line = next(line for line in result.err.splitlines() if " sent " in line and "rank 0" in line)
    assert "; received 7 unexpected; " in line, result.report()
