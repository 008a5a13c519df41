#!/usr/bin/env python3
"""Removes noise from a photograph, in parallel: every rank owns one block of a 2-D Cartesian split.

    mpiexec -n 4 python denoise.py IMAGE OUT.png
    mpiexec -n 4 python denoise.py --add-noise 25 IMAGE OUT.png   spoils the picture first, and says how much came back

The method is total-variation denoising in its dual form (A. Chambolle, "An Algorithm for Total Variation Minimization
and Applications", 2004): a vector field p with two components per colour is improved step by step; the picture is
u = f - strength * div p. A step needs p of the neighbouring cells, so before each one every rank exchanges the border
of its block: columns as a strided datatype, then rows with the corners that came with the columns.
"""

import argparse
import ctypes
import sys

import numpy as np
from mpi4py import MPI
from PIL import Image

STEP = 0.248  # the method converges below 1/4


def parts(length, count):
    """Splits range(length) into `count` nearly equal ranges."""
    bounds = [length * i // count for i in range(count + 1)]
    return list(zip(bounds[:-1], bounds[1:], strict=True))


def estimated_noise(picture):
    """Standard deviation of the noise (J. Immerkaer, "Fast Noise Variance Estimation", 1996), in grey levels."""
    grey = picture.mean(axis=2)
    second = grey[:-2] - 2 * grey[1:-1] + grey[2:]
    cross = second[:, :-2] - 2 * second[:, 1:-1] + second[:, 2:]
    return float(np.sqrt(np.pi / 2) / 6 * np.abs(cross).mean() * np.sqrt(picture.shape[2]))


class Halo:
    """Persistent exchange of the one-cell border of `field`, an array (rows + 2, columns + 2, values)."""

    def __init__(self, cart, field):
        rows, columns, values = (field.shape[0] - 2, field.shape[1] - 2, field.shape[2])
        line = (columns + 2) * values  # numbers in one row of memory
        flat = field.reshape(-1)
        self.types = [MPI.FLOAT.Create_vector(rows, values, line).Commit(), MPI.FLOAT.Create_contiguous(line).Commit()]
        column, row = self.types

        def both_ways(dimension, kind, low_ghost, low_edge, high_edge, high_ghost):
            low, high = cart.Shift(dimension, 1)
            return [
                cart.Recv_init([flat[low_ghost:], 1, kind], low, 1),
                cart.Recv_init([flat[high_ghost:], 1, kind], high, 2),
                cart.Send_init([flat[high_edge:], 1, kind], high, 1),
                cart.Send_init([flat[low_edge:], 1, kind], low, 2),
            ]

        self.phases = [
            both_ways(1, column, line, line + values, line + columns * values, line + (columns + 1) * values),
            both_ways(0, row, 0, line, rows * line, (rows + 1) * line),
        ]

    def exchange(self):
        for requests in self.phases:  # rows after columns: they carry the corners
            MPI.Prequest.Startall(requests)
            MPI.Request.Waitall(requests)

    def free(self):
        for request in [request for requests in self.phases for request in requests]:
            request.Free()
        for kind in self.types:
            kind.Free()


def divergence(field, values):
    """div p for every cell of the block and one more row and column below and to the right."""
    down, right = field[1:, 1:, :values], field[1:, 1:, values:]
    return down - field[:-1, 1:, :values] + right - field[1:, :-1, values:]


def denoise(cart, block, strength, steps, progress):
    """`block` has one row and one column more than this rank owns; returns the part that it owns, clean."""
    rows, columns, values = block.shape[0] - 1, block.shape[1] - 1, block.shape[2]
    dims, _, place = cart.Get_topo()
    field = np.zeros((rows + 2, columns + 2, 2 * values), dtype="f")
    inner = field[1:-1, 1:-1]
    halo = Halo(cart, field)
    target = block / np.float32(strength)
    for step in range(steps):
        halo.exchange()
        error = divergence(field, values) - target
        gradient = np.empty((rows, columns, 2 * values), dtype="f")
        np.subtract(error[1:, :-1], error[:-1, :-1], out=gradient[..., :values])
        np.subtract(error[:-1, 1:], error[:-1, :-1], out=gradient[..., values:])
        if place[0] == dims[0] - 1:
            gradient[-1, :, :values] = 0  # nothing flows out of the picture
        if place[1] == dims[1] - 1:
            gradient[:, -1, values:] = 0
        length = np.sqrt((gradient * gradient).sum(axis=2, keepdims=True))
        inner += np.float32(STEP) * gradient
        inner /= 1 + np.float32(STEP) * length
        if step % 10 == 9 or step == steps - 1:
            # How far the slowest rank's field still moves, and a meeting point that keeps the bar honest.
            moved = cart.allreduce(float(length.mean()), op=MPI.MAX)
            progress(step + 1, steps, moved)
    halo.exchange()
    clean = block[:-1, :-1] - np.float32(strength) * divergence(field, values)[:-1, :-1]
    halo.free()
    return clean


def progress_bar(done, total, moved):
    """One line that grows on a terminal, four lines elsewhere."""
    filled = 40 * done // total
    text = f"[{'#' * filled}{'.' * (40 - filled)}] {done}/{total} steps, gradient {moved:.4f}"
    if sys.stderr.isatty():
        print(f"\r{text}", end="\n" if done == total else "", file=sys.stderr, flush=True)
    elif done * 4 // total != max(0, done - 10) * 4 // total:
        print(text, file=sys.stderr, flush=True)


def traffic():
    """{path: (messages, bytes)} that this rank has sent so far, from NearMPI's near_traffic; {} with another MPI."""
    try:
        library = ctypes.CDLL("libmpi_abi.so.1")
        library.near_traffic_name.restype = ctypes.c_char_p
    except (OSError, AttributeError):
        return {}
    sent = {}
    for path in range(library.near_traffic_paths()):
        messages, volume = ctypes.c_uint64(), ctypes.c_uint64()
        if library.near_traffic(path, ctypes.byref(messages), ctypes.byref(volume)) == 0 and messages.value:
            sent[library.near_traffic_name(path).decode()] = (messages.value, volume.value)
    return sent


def quality(picture, original):
    """Peak signal-to-noise ratio in dB."""
    return 10 * np.log10(255.0**2 / np.mean((picture - original) ** 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", help="the picture to read")
    parser.add_argument("output", help="the picture to write")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--strength", type=float, help="grey levels; default: estimated from the picture")
    parser.add_argument("--add-noise", type=float, default=0, metavar="SIGMA", help="spoil the picture first")
    options = parser.parse_args()

    comm = MPI.COMM_WORLD
    dims = MPI.Compute_dims(comm.size, 2)
    cart = comm.Create_cart(dims, periods=[False, False], reorder=False)
    blocks = original = noisy = None
    if cart.rank == 0:
        with Image.open(options.image) as image:
            original = np.asarray(image.convert("RGB"), dtype="f")
        noisy = original
        if options.add_noise:
            noise = np.random.default_rng(1).normal(0, options.add_noise, original.shape)
            noisy = np.clip(original + noise, 0, 255).astype("f")
        height, width, _ = noisy.shape
        if min(height // dims[0], width // dims[1]) < 2:
            raise SystemExit(f"{options.image}: {width} x {height} is too small for {dims[1]} x {dims[0]} blocks")
        strength = options.strength or max(1.0, 1.2 * estimated_noise(noisy))
        print(f"denoise: {width} x {height} on {dims[1]} x {dims[0]} ranks, strength {strength:.1f}", flush=True)
        padded = np.pad(noisy, ((0, 1), (0, 1), (0, 0)), mode="edge")
        rows, columns = parts(height, dims[0]), parts(width, dims[1])
        blocks = []
        for rank in range(cart.size):
            (top, bottom), (left, right) = rows[cart.Get_coords(rank)[0]], columns[cart.Get_coords(rank)[1]]
            blocks.append((np.ascontiguousarray(padded[top : bottom + 1, left : right + 1]), strength))
    started = MPI.Wtime()
    block, strength = cart.scatter(blocks, root=0)
    clean = denoise(cart, block, strength, options.steps, progress_bar if cart.rank == 0 else lambda *_: None)
    pieces = cart.gather(clean, root=0)
    seconds = MPI.Wtime() - started
    sent = cart.gather(traffic(), root=0)

    if cart.rank == 0:
        result = np.empty_like(noisy)
        for rank, piece in enumerate(pieces):
            (top, bottom), (left, right) = rows[cart.Get_coords(rank)[0]], columns[cart.Get_coords(rank)[1]]
            result[top:bottom, left:right] = piece
        result = np.clip(result, 0, 255)
        Image.fromarray(np.rint(result).astype("u1")).save(options.output)
        print(f"denoise: {options.steps} steps in {seconds:.2f} s, written to {options.output}")
        if options.add_noise:
            print(f"denoise: {quality(noisy, original):.2f} dB before, {quality(result, original):.2f} dB after")
        for rank, paths in enumerate(sent):
            words = ", ".join(f"{volume:,} bytes in {count:,} messages by {path}"
                              for path, (count, volume) in paths.items())
            print(f"denoise: rank {rank} sent {words or 'nothing that this MPI library counts'}", flush=True)
    cart.Free()


if __name__ == "__main__":
    main()
