"""Builds mpi4py from its PyPI source package with our mpicc, unmodified, and runs its test modules.

    test/mpi4py/run.py                     the modules at 1, 2 and 4 ranks
    test/mpi4py/run.py --standard          without what repeats itself (STANDARD): a step of `make test`
    test/mpi4py/run.py --build             only builds, with optimisation (make demo)
    test/mpi4py/run.py --ranks 2 test_op   runs some modules and shows their output
    test/mpi4py/run.py --machines 2        the modules at 2 and 4 ranks on two machines (test/net/machines.py), ranks in
                                           turns and in blocks; --machines 3 at 3 and 6 ranks on three

not_yet.txt lists the modules and single tests that are not yet expected to pass. It may only shrink: if a listed one
passes, the run fails until its line is removed. For each number of ranks, one job runs all tests that are expected to
pass; if it fails, the modules are run one by one to find the failing ones.
"""

import argparse
import concurrent.futures
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent.parent / "net")]
import harness  # noqa: E402
from harness import ROOT  # noqa: E402
from machines import Machines, Refused  # noqa: E402

VERSION = "4.1.2"
VENV = ROOT / "build/venv-mpi4py"
PYTHON = VENV / "bin/python"
CACHE = ROOT / "build/cache"
SOURCE = CACHE / f"mpi4py-{VERSION}"
NOT_YET = Path(__file__).with_name("not_yet.txt")
RANKS = {1: (1, 2, 4), 2: (2, 4), 3: (3, 6)}  # on so many machines

# Their tests involve one process only: a communicator is at most an argument of MPI_Pack. Every rank repeats what one
# does, and with 1 or 2 ranks they use more than half of the processor time of all modules.
ALONE = ["test_address", "test_buffer", "test_datatype", "test_pack", "test_util_dtlib"]
# What two ranks have and neither one nor four: both neighbours are the same rank, and the groups on both sides of an
# intercommunicator have one rank.
PAIRS = ["test_cco_buf_inter", "test_cco_ngh_buf", "test_cco_ngh_obj", "test_cco_obj_inter", "test_cco_pr_ngh_buf",
         "test_cco_vec_inter", "test_comm_inter", "test_comm_topo"]
STANDARD = {1: lambda module: True, 2: lambda module: module in PAIRS, 4: lambda module: module not in ALONE}

MODULE_SECONDS, LISTED_SECONDS, BATCH_SECONDS = 150, 30, 600


@dataclass
class Place:
    """Where jobs run: on this machine, or on several, on which ranks are placed in blocks or in turns."""

    machines: Machines | None = None
    placement: str = ""

    def __str__(self):
        return f" on {self.machines.count} machines in {self.placement}" if self.machines else ""

    def mpiexec(self, prefix, ranks):
        if self.machines is None:
            return [prefix / "bin/mpiexec", "--oversubscribe", "-n", ranks]
        return self.machines.mpiexec_words(prefix, *self.machines.placed(ranks, self.placement))


def source_package():
    """Downloads and unpacks mpi4py's source package unless it is already there."""
    if SOURCE.exists():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    archive = CACHE / f"mpi4py-{VERSION}.tar.gz"
    if not archive.exists():
        subprocess.run([PYTHON, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--no-binary", ":all:", "--no-build-isolation", "--dest", CACHE, f"mpi4py=={VERSION}"],
                       check=True)
    draft = CACHE / "unpacking"
    shutil.rmtree(draft, ignore_errors=True)
    with tarfile.open(archive) as tar:
        # Python 3.11.2 of Debian 12 does not know the filters yet.
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(draft, **safely)
    (draft / SOURCE.name).rename(SOURCE)
    draft.rmdir()


def build(prefix, optimised):
    """Installs mpi4py into its environment with `prefix`'s mpicc unless the same build is already there.

    Without optimisation the extension builds in a quarter of the time, which is enough for tests; half a round trip of 8 bytes then takes 2 us
    instead of 1.1. A build with optimisation serves tests as well.

    The extension depends only on our libmpi_abi.so.1, so it stays valid when the library is rebuilt; only a different
    mpi.h, a different location of the library or a different version of mpi4py makes it stale.
    """
    subprocess.run([ROOT / "dev/setup", "mpi4py"], check=True)
    source_package()
    facts = [str(prefix), VERSION, (prefix / "include/mpi.h").read_text(), sys.version]
    key = hashlib.sha256("\0".join(facts).encode()).hexdigest()
    stamp = VENV / "mpi4py-built-from"
    built = stamp.read_text().split() if stamp.exists() else []
    if built[:1] == [key] and (built[1:] == ["optimised"] or not optimised):
        return
    print(f"mpi4py {VERSION}: building it with {prefix.name}/bin/mpicc ({'two or three minutes' if optimised else 'a minute'}) ...", flush=True)
    log = ROOT / "build/mpi4py-build.log"
    started = time.monotonic()
    # The package itself is unmodified.
    environment = {**os.environ, "MPICC": str(prefix / "bin/mpicc"), "CFLAGS": "-O1 -g0" if optimised else "-O0 -g0"}
    with log.open("w") as out:
        process = subprocess.Popen([PYTHON, "-m", "pip", "install", "-v", "--disable-pip-version-check", "--no-deps",
                                    "--no-build-isolation", "--no-cache-dir", "--force-reinstall",
                                    CACHE / f"mpi4py-{VERSION}.tar.gz"],
                                   env=environment, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        while process.poll() is None:
            if sys.stdout.isatty():
                print(f"\r  {time.monotonic() - started:4.0f} s", end="", flush=True)
            time.sleep(0.5)
    if process.returncode != 0:
        print(log.read_text()[-4000:])
        sys.exit(f"mpi4py did not build: see {log}")
    stamp.write_text(f"{key} optimised" if optimised else key)
    print(f"{chr(13) if sys.stdout.isatty() else ''}mpi4py {VERSION}: built in {time.monotonic() - started:.0f} s",
          flush=True)


def lines_of_not_yet():
    """Yields (module or pattern of tests, numbers of ranks, whether only on several machines). A pattern has a dot: module.Class.test."""
    for line in NOT_YET.read_text().splitlines():
        name, *conditions = line.partition("#")[0].split() or [""]
        if name:
            yield name, [int(word) for word in conditions if word != "machines"], "machines" in conditions


def not_yet(place, all_ranks):
    """The pairs (module or pattern of tests, ranks) that are not yet expected to pass in a place."""
    return [(name, count) for name, ranks, on_machines in lines_of_not_yet() if place.machines or not on_machines
            for count in all_ranks if count in (ranks or all_ranks)]


def run(prefix, place, ranks, modules, seconds, without=(), only=()):
    """Runs modules in one job. Returns (whether it passed, number of tests run and not skipped, the whole report)."""
    selection = [word for pattern in without for word in ("-x", pattern)]
    selection += [word for pattern in only for word in ("-k", pattern)]
    command = [*place.mpiexec(prefix, ranks), PYTHON, "-m", "mpi4py", "main.py", "-q", "-f", *selection, *modules]
    result = harness.run(command, timeout=seconds, cwd=SOURCE / "test", env={"PYTHONDONTWRITEBYTECODE": "1"})
    left = harness.survivors(result.mark)
    counts = [int(ran) - int(skipped or 0) for ran, skipped in
              re.findall(r"^Ran (\d+) tests? in .*?\n\n(?:OK|FAILED)(?:.*?skipped=(\d+))?", result.text, re.M)]
    passed = result.status == 0 and not left
    report = result.report() + (f"\nthese processes survived:\n{left}" if left else "")
    return passed, max(counts, default=0), report


class Tally:
    """What has passed, and what has failed, which is said at once."""

    def __init__(self):
        self.good = self.bad = 0

    def complain(self, text):
        self.bad += 1
        print(f"\nmpi4py: {text}", flush=True)


def test(prefix, place, modules, all_ranks, tally, is_chosen=lambda module, ranks: True):
    """Runs everything in one place."""
    listed = not_yet(place, all_ranks)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for ranks in all_ranks:
            started, before = time.monotonic(), tally.bad
            at = f"at {ranks} ranks{place}"
            names = [module for module in modules if is_chosen(module, ranks) and (module, ranks) not in listed]
            without = [name for name, count in listed if count == ranks and "." in name]
            passed, tests, together = run(prefix, place, ranks, names, BATCH_SECONDS, without) if names else (True, 0, "")
            if passed:
                tally.good += len(names)
            else:
                def alone(module, ranks=ranks, without=without):
                    return module, *run(prefix, place, ranks, [module], MODULE_SECONDS, without)

                for module, passed_alone, _, report in pool.map(alone, names):
                    tally.good += passed_alone
                    if not passed_alone:
                        tally.complain(f"{module} {at} failed\n{report[-3000:]}")
                if tally.bad == before:
                    tally.complain(f"all modules pass alone {at}, but not in one job\n{together[-3000:]}")
            print(f"mpi4py {at}: {tally.bad - before} of {len(names)} modules failed, {tests} tests "
                  f"({time.monotonic() - started:.0f} s)", flush=True)

        def surprise(case):
            name, ranks = case
            only = [name] if "." in name else []
            return run(prefix, place, ranks, [name.split(".")[0]], LISTED_SECONDS, only=only)

        cases = [(name, ranks) for name, ranks in listed if name.split(".")[0] in modules and is_chosen(name.split(".")[0], ranks)]
        for (name, ranks), (passed, ran, _) in zip(cases, pool.map(surprise, cases), strict=True):
            if passed and ran:
                tally.complain(f"{name} at {ranks} ranks{place} passes now: take it out of {NOT_YET.name}")
    print(f"mpi4py{place}: {len(cases)} lines and ranks are not yet expected to pass", flush=True)


def all_modules():
    return sorted(path.stem for path in (SOURCE / "test").glob("test_*.py"))


def placements(options):
    if options.machines == 1:
        return [""]
    return [options.placement] if options.placement else ["turns", "blocks"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=ROOT / "build/prefix", help="the installation to test")
    parser.add_argument("--build", action="store_true", help="build mpi4py and stop")
    parser.add_argument("--standard", action="store_true", help="at 2 ranks only PAIRS, and at 4 all but ALONE")
    parser.add_argument("--ranks", type=int, action="append", help="only this number of ranks (may be repeated)")
    parser.add_argument("--machines", type=int, choices=sorted(RANKS), default=1, help="on so many machines")
    parser.add_argument("--placement", choices=("turns", "blocks"), help="only this placement of ranks on several machines")
    parser.add_argument("modules", nargs="*", help="only these modules, e.g. test_op")
    options = parser.parse_args()
    if options.standard and (options.machines != 1 or not set(options.ranks or ()).issubset(STANDARD)):
        parser.error("--standard is for 1, 2 and 4 ranks on this machine")
    prefix = options.prefix.resolve()
    build(prefix, optimised=options.build)
    if options.build:
        return 0
    all_ranks, tally = options.ranks or RANKS[options.machines], Tally()
    for name in sorted({name for name, *_ in lines_of_not_yet() if name.split(".")[0] not in all_modules()}):
        tally.complain(f"{NOT_YET.name} lists {name}, which mpi4py {VERSION} does not have")
    for name in sorted({*ALONE, *PAIRS}.difference(all_modules())):
        tally.complain(f"ALONE or PAIRS lists {name}, which mpi4py {VERSION} does not have")
    with contextlib.ExitStack() as stack:
        try:
            machines = stack.enter_context(Machines(options.machines)) if options.machines > 1 else None
        except Refused as refused:
            sys.exit(f"mpi4py: this system does not let us make machines: {refused}")
        for placement in placements(options):
            # With one rank on each machine both placements are the same.
            ranks = [count for count in all_ranks if placement != "blocks" or count > options.machines]
            chosen = (lambda module, count: STANDARD[count](module)) if options.standard else (lambda module, count: True)
            test(prefix, Place(machines, placement), options.modules or all_modules(), ranks, tally, chosen)
    print(f"{tally.good} passed, {tally.bad} failed", flush=True)
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
