"""`make fuzz`: builds the fuzzers (fuzz/*.cpp, with clang) and runs each for a while.

    dev/fuzz.py --seconds 60 [NAME ...]

What was learnt stays in build/fuzz/corpus, so a later run goes on from there. An input that broke something is kept
in build/fuzz/found; run the fuzzer with that file as its only argument to see it again.
"""

import argparse

from steps import ROOT, run_steps

FUZZ = ROOT / "build/fuzz"


def run_fuzzer(name, seconds):
    corpus, found = FUZZ / "corpus" / name, FUZZ / "found"
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    # libfabric does not free the descriptions (fi_dupinfo) of connections that it has given up.
    leaks = ["env", "ASAN_OPTIONS=detect_leaks=0"] if name == "ofi_frames" else []
    return [*leaks, FUZZ / f"bin/fuzz_{name}", f"-max_total_time={seconds}", "-max_len=1000", "-rss_limit_mb=2048", "-timeout=20",
            "-verbosity=0", "-print_funcs=0", "-print_final_stats=1",
            f"-artifact_prefix={found}/{name}-", corpus]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="for each fuzzer")
    parser.add_argument("names", nargs="*", help="default: all")
    arguments = parser.parse_args()
    names = arguments.names or sorted(path.stem for path in (ROOT / "fuzz").glob("*.cpp"))
    steps = [("configure", ["cmake", "--preset", "fuzz", "--log-level=WARNING"]),
             ("build", ["cmake", "--build", FUZZ, "--target", *(f"fuzz_{name}" for name in names)])]
    steps += [(name, run_fuzzer(name, arguments.seconds)) for name in names]
    run_steps("fuzz", steps)


main()
