"""`make demo`, after `make build`: mpi4py, built from its PyPI source package with our mpicc, at work on 4 ranks.

Every command is shown before it runs. mpi4py's own programs are run as they are in its source package. What the demo
leaves in build/ (the environment venv-mpi4py, photo.png) is what the tour of README.md goes on with.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/mpi4py"))
import run as mpi4py  # noqa: E402

PREFIX = ROOT / "build/prefix"
DEMO = mpi4py.SOURCE / "demo"
PHOTO = ROOT / "build/photo.png"
OUTPUT = ROOT / "build/denoised.png"
WATCHDOG = 120  # seconds for one command; none takes more than a few


AFTER = """
==== What next
The installation is in build/prefix, a Python environment with mpi4py in build/venv-mpi4py, and the pictures before and
after in build/photo.png and build/denoised.png. To go on, put both first in your PATH:

    export PATH="$PWD/build/prefix/bin:$PATH"
    . build/venv-mpi4py/bin/activate
    mpiexec -n 4 python3 -m mpi4py.bench helloworld

"A tour" in README.md continues here. `make install PREFIX=DIR` copies the installation; `make clean` removes build/.
"""


def photograph(target):
    """Copies a photograph that comes with scikit-image: Eileen Collins, by NASA, in the public domain; 512 x 512."""
    shutil.copy(next((mpi4py.VENV / "lib").glob("python3*/site-packages/skimage/data/astronaut.png")), target)


def steps():
    """(what it is, ranks, arguments of python, standard input)."""
    yield "mpi4py: helloworld", 4, ["-m", "mpi4py.bench", "helloworld"], None
    yield "mpi4py: ringtest", 4, ["-m", "mpi4py.bench", "ringtest"], None
    yield "mpi4py: pi with 1,000,000 intervals, asked for on standard input", 4, \
        [DEMO / "compute-pi/cpi-cco.py"], "1000000\n0\n"
    yield "mpi4py: the Mandelbrot set", 4, [DEMO / "mandelbrot/mandelbrot.py"], None
    yield "mpi4py: latency (this program demands exactly two ranks)", 2, [DEMO / "osu_latency.py"], None
    yield "mpi4py: bandwidth (this program demands exactly two ranks)", 2, [DEMO / "osu_bw.py"], None
    yield "mpi4py: broadcast", 4, [DEMO / "osu_bcast.py"], None
    yield "mpi4py: all-to-all", 4, [DEMO / "osu_alltoall.py"], None
    yield "NearMPI: a photograph, spoiled with noise and cleaned by a halo-exchanging stencil", 4, \
        [ROOT / "examples/denoise.py", "--add-noise", "25", PHOTO, OUTPUT], None


def shown(word):
    """A word of a command line, as one would type it in the root of the repository."""
    text = str(word)
    return text.removeprefix(f"{ROOT}/")


def main():
    mpi4py.build(PREFIX, optimised=True)
    photograph(PHOTO)
    started, failed = time.monotonic(), []
    for title, ranks, arguments, stdin in steps():
        command = [PREFIX / "bin/mpiexec", "-n", ranks, "--oversubscribe", "--report-bindings",
                   mpi4py.PYTHON, *arguments]
        print(f"\n==== {title}\n$ {' '.join(shown(word) for word in command)}", flush=True)
        try:
            process = subprocess.run([str(word) for word in command], text=True, timeout=WATCHDOG, cwd=ROOT,
                                     **({"input": stdin} if stdin else {"stdin": subprocess.DEVNULL}))
            status = process.returncode
        except subprocess.TimeoutExpired:
            status = f"still running after {WATCHDOG} s"
        if status != 0:
            failed.append(title)
            print(f"==== FAILED ({status}): {title}", flush=True)
    print(f"\n==== demo: the programs took {time.monotonic() - started:.0f} s", flush=True)
    if failed:
        sys.exit("demo: failed: " + "; ".join(failed))
    print(AFTER, end="")


if __name__ == "__main__":
    main()
