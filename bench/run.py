"""`make bench`: latency and bandwidth between two ranks, beside MPICH and Intel MPI where they are installed.

One binary, compiled with our mpicc, runs on each library in turns; of all rounds the median is shown. The peers are
those of `dev/setup oracles`; what is not there is left out, and said.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PREFIX = ROOT / "build/prefix"
MPICH, INTEL = ROOT / "build/venv-mpich", ROOT / "build/venv-impi"


def libraries():
    """{name: (launcher, folder of its libmpi_abi.so.1, environment)} of what is installed."""
    every = {
        "NearMPI": (PREFIX / "bin/mpiexec", PREFIX / "lib", {}),
        "MPICH": (MPICH / "bin/mpiexec", MPICH / "lib", {}),
        "Intel MPI": (INTEL / "bin/mpiexec.hydra", INTEL / "lib",
                      {"I_MPI_ROOT": INTEL, "I_MPI_FABRICS": "shm", "FI_PROVIDER_PATH": INTEL / "lib/libfabric/prov"}),
    }
    return {name: row for name, row in every.items() if row[0].exists()}


def once(row, program):
    """{bytes: microseconds} of one run."""
    launcher, folder, variables = row
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    environment = {**os.environ, **{k: str(v) for k, v in variables.items()}, "LD_LIBRARY_PATH": path}
    result = subprocess.run([launcher, "-n", "2", program], env=environment, text=True, capture_output=True,
                            timeout=180, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        raise RuntimeError(result.stdout + result.stderr)
    rows = [line.split() for line in result.stdout.splitlines() if line[:1].isdigit()]
    return {int(size): float(time) for size, time in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each library, in turns")
    options = parser.parse_args()
    program = ROOT / "build/pingpong"
    subprocess.run([PREFIX / "bin/mpicc", "-O2", "-o", program, ROOT / "bench/pingpong.c"], check=True)
    installed = libraries()
    missing = {"MPICH", "Intel MPI"} - set(installed)
    if missing:
        print(f"bench: without {' and '.join(sorted(missing))}; `dev/setup oracles` installs them")
    figures = {name: [] for name in installed}
    for number in range(options.rounds):
        for name, row in installed.items():
            print(f"bench: round {number + 1} of {options.rounds}, {name}", file=sys.stderr, flush=True)
            figures[name].append(once(row, program))
    print("\ntwo ranks, half a round trip, median of rounds: microseconds (and GB/s from 64 KiB up)\n")
    print(f"{'bytes':>10}" + "".join(f"{name:>24}" for name in figures))
    for size in figures["NearMPI"][0]:
        cells = []
        for runs in figures.values():
            time = statistics.median(run[size] for run in runs)
            cells.append(f"{time:.2f}" + (f" ({size / time / 1000:.2f})" if size >= 65536 else ""))
        print(f"{size:>10}" + "".join(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    main()
