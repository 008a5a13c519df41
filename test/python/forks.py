"""Creates processes in a rank in every way that Python has: subprocess, multiprocessing by fork and spawn, os.fork."""

import multiprocessing
import os
import subprocess
import sys

import numpy as np
from mpi4py import MPI


def exchange(comm):
    """Sends small and large messages round the ring and checks them."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for count in (1, 1000, 200_000):
        out, back = np.full(count, comm.rank, dtype="i8"), np.empty(count, dtype="i8")
        comm.Sendrecv(out, right, 7, back, left, 7)
        assert (back == left).all()


def square(number):
    return number * number


def initialized_in_child(_):
    return MPI.Is_initialized()


def main():
    comm = MPI.COMM_WORLD
    exchange(comm)
    assert subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout == "42\n"
    exchange(comm)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(square, range(10)) == [number * number for number in range(10)]
        exchange(comm)
        assert pool.map(initialized_in_child, range(2)) == [False, False]
    exchange(comm)
    child = os.fork()
    if child == 0:
        sys.exit(5)  # through mpi4py's exit handlers
    exchange(comm)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    exchange(comm)


if __name__ == "__main__":
    main()
