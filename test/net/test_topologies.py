"""Topologies on several machines: reordered ranks send less to other machines, by the library's own count."""

import re

import harness
import pytest

KINDS = ["grid", "graph", "adjacent", "distributed"]
HALOS = 3 * 10000 * 2  # bytes that the two ranks of an edge send each other (test/mpi/stencil.c)


def sent_elsewhere(machines, prefix, compiled, ranks, *words, placement="turns"):
    """The bytes that all ranks have sent to other machines (NEAR_STATS), those of halos among them, and the output."""
    result = machines.mpiexec(prefix, *machines.placed(ranks, placement), compiled("stencil"), *words, env={"NEAR_STATS": "1", "NEAR_LOG": "debug"},
                              timeout=120)
    assert result.status == 0 and not result.timed_out, result.report()
    assert not harness.survivors(result.mark)
    counted = sum(int(amount) for amount in re.findall(r"to other machines: \d+ messages, (\d+) bytes", result.text))
    halos = int(re.search(rf"^{words[-1]}: (\d+) bytes between machines", result.out, re.MULTILINE)[1])
    assert counted >= halos, result.report()
    return counted, halos, result


@pytest.mark.parametrize("shuffled", [[], ["shuffled"]], ids=["turns", "shuffled"])
@pytest.mark.parametrize("kind", KINDS)
def test_reordered_ranks_send_at_most_half_as_much_to_other_machines(two, prefix, compiled, kind, shuffled):
    # Sixteen ranks in a square, of which the library finds the halves: four edges cross.
    kept, _, _ = sent_elsewhere(two, prefix, compiled, 16, *shuffled, kind, "kept")
    reordered, halos, result = sent_elsewhere(two, prefix, compiled, 16, *shuffled, kind, "reordered")
    assert 2 * reordered <= kept and halos == 4 * HALOS, result.report()
    assert re.search(r"16 ranks of a topology are reordered: the edges between machines weigh (4|8|16) instead of \d+", result.text), result.report()


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_order_is_kept(two, prefix, compiled, kind):
    kept, halos, _ = sent_elsewhere(two, prefix, compiled, 8, kind, "kept", placement="blocks")
    reordered, same, result = sent_elsewhere(two, prefix, compiled, 8, kind, "reordered", placement="blocks")
    assert halos == same == 2 * HALOS, result.report()
    assert "are reordered" not in result.text, result.report()


def test_unequal_machines(three, prefix, compiled):
    # 5, 5 and 4 ranks in a grid of 7 by 2, in turns: every edge but the long way round crosses.
    kept, all_halos, _ = sent_elsewhere(three, prefix, compiled, 14, "grid", "kept")
    reordered, halos, result = sent_elsewhere(three, prefix, compiled, 14, "grid", "reordered")
    assert 2 * reordered <= kept and halos <= 6 * HALOS < all_halos, result.report()


def test_processes_that_describe_different_topologies_are_told(two, prefix, compiled):
    result = two.mpiexec(prefix, *two.placed(4, "turns"), compiled("reordered_topologies"), "disagree", timeout=60)
    assert result.status == 0 and not result.timed_out, result.report()
