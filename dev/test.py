"""`make test`: everything that CI tests, after `make build`; and `make test-long`: what takes too long for every change.

    dev/test.py                   all steps
    dev/test.py NAME ...          only the steps whose names contain one of the words
    dev/test.py --long [NAME ...] the long steps instead
"""

import os
import sys

from steps import ROOT, run_steps

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
SANITIZED = "-fsanitize=address,undefined -fno-sanitize-recover=all"
JOBS = str(os.cpu_count())
LOOKS_AT_OBJECTS = "test/surface/test_symbols.py::test_no_object_of_ours_calls_an_mpi_function"  # of a build without LTO
# For steps that kill processes.
WITHOUT_GROUPS = ["dev/without_session_groups"] if os.environ.get("CI") else []

# Memory that a rank holds until it exits is not a leak to us; everything else that the sanitizers find ends the test.
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=0:exitcode=99")
os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")


def build(preset, *targets, options=()):
    """Two steps: configure and build a preset."""
    yield f"configure {preset}", ["cmake", "--preset", preset, "--log-level=WARNING", *options]
    yield f"build {preset}", ["cmake", "--build", f"build/{preset}", "-j", JOBS,
                              *(["--target", *targets] if targets else [])]


def ctest(preset, *selection):
    return ["ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "--no-tests=error", "-j", JOBS, *selection]


PREFIX = {name: ROOT / f"build/prefix-{name}" for name in ("asan", "tsan")}


def builds():
    """What compiles. It runs beside the steps, and gets what these leave of the processors."""
    # With kill points too, which wait for NEAR_KILL_AT: a build of their own would take minutes.
    yield from build("asan", options=[f"-DCMAKE_INSTALL_PREFIX={PREFIX['asan']}", "-DNEAR_KILL_POINTS=ON"])
    yield "install asan", ["cmake", "--install", "build/asan"]
    # Without the commands, a quarter of the files: the tests are of threads that call MPI, so the commands of build/prefix will do.
    yield from build("tsan", "unit_queue", "mpi_abi")
    tsan = PREFIX["tsan"]
    yield "install tsan", ["sh", "-c", f"mkdir -p {tsan} && cp -a build/prefix/. {tsan} && cp -a build/tsan/lib/. {tsan}/lib"]
    # Clang's own warnings are findings too, so every file is compiled once, for clang-tidy.
    yield from build("clang", "near_generated", options=["-DNEAR_TESTS=OFF"])
    yield "clang-tidy", [sys.executable, "dev/tidy.py"]


def steps():
    """What needs none of the builds, and waits much of its time."""
    killed = ["test/test_kills_in_traffic.py", "test/launch/test_kills.py"]
    # These do not depend on which other jobs run.
    side_by_side = ["test/abi", "test/bench", "test/machines", "test/python", "test/surface", "test/test_rows.py", "test/test_stats.py", "gen"]
    elsewhere = ["test/house", "test/kill", "test/net", *killed, *side_by_side]
    yield "drivers side by side", [*PYTEST, "-n", JOBS, *side_by_side, f"--deselect={LOOKS_AT_OBJECTS}"]
    # Other jobs would take the processors that these expect to get, and change the yields that they count.
    yield "drivers one by one", [*PYTEST, "test", *(f"--ignore={path}" for path in elsewhere)]
    yield "jobs that are killed", [*WITHOUT_GROUPS, *PYTEST, *killed]
    # Most of its cases wait for something to be noticed, whatever the number of processors.
    yield "jobs on several machines", [*WITHOUT_GROUPS, *PYTEST, "test/net", "-n", "4", "--dist", "loadgroup"]
    yield "random kills on several machines", [*WITHOUT_GROUPS, "test/net/kills", "--seconds", "30"]
    few = "(ring or communicators or one_sided or all_traffic) and n4-3 and not NEAR"
    yield "rows on three machines, a part", [*PYTEST, "test/net/all_rows.py", "-n", "2", "-k", few]
    yield "mpi4py on two machines, a part", [sys.executable, "test/mpi4py/run.py", "--machines", "2", "--ranks", "4", "--placement", "turns",
                                             "test_comm", "test_comm_inter", "test_comm_topo", "test_win"]
    yield "instructions of single calls", [sys.executable, "bench/instructions"]
    yield "mpi4py, standard set", [sys.executable, "test/mpi4py/run.py", "--standard"]
    yield "NUMA laboratory, standard set: machines with several nodes under qemu", ["test/numa/run", "--standard"]


def steps_on_builds():
    yield "calls between objects", [*PYTEST, LOOKS_AT_OBJECTS]
    yield "unit tests, address and undefined sanitizers", ctest("asan")
    yield "queue tests, thread sanitizer", ctest("tsan", "-R", "^unit[.]queue[.]")
    yield "rows with threads, thread sanitizer", [*PYTEST, "test/test_rows.py", "-k", "threads", f"--prefix={PREFIX['tsan']}",
                                                  "--cflags=-fsanitize=thread"]
    sanitized = ["test/test_rows.py", "test/surface/test_invalid_arguments.py"]
    sanitizers = [f"--prefix={PREFIX['asan']}", f"--cflags={SANITIZED}"]
    yield "rows and wrong arguments, sanitized", [*PYTEST, "-n", JOBS, *sanitized, *sanitizers]
    yield "a kill at each point of the protocols", [*WITHOUT_GROUPS, *PYTEST, "-n", JOBS, "test/kill", *sanitizers]
    yield "random kills", [*WITHOUT_GROUPS, "test/kill/random", "--count", "200", "--seconds", "50"]


def long_steps():
    yield "10,000 random kills", ["test/kill/random", "--count", "10000", "--within", "10"]
    yield "1,000 random kills on several machines", ["test/net/kills", "--count", "1000", "--within", "12"]
    yield "memory overwritten in 500 rounds", ["env", "OVERWRITE_ROUNDS=500", *PYTEST, "test/launch/test_overwritten_memory.py",
                                               "test/launch/test_crafted_segments.py", "--prefix=build/prefix"]
    yield from build("clang", options=["-DNEAR_TESTS=OFF"])
    yield from build("debug")  # compiles each file alone: a missing include is an error
    yield "models, ten times as far", ["env", "NEAR_MODEL_EFFORT=10", "build/debug/bin/model_queue"]
    yield "arm64: build everything, unit tests and rows under qemu", ["test/arm64/run"]
    yield "NUMA laboratory, all of it", ["test/numa/run"]
    yield "all rows on two and three machines", [*PYTEST, "test/net/all_rows.py", "-n", JOBS]
    yield "mpi4py, all modules", [sys.executable, "test/mpi4py/run.py"]
    for count in ("2", "3"):
        yield f"mpi4py on {count} machines", [sys.executable, "test/mpi4py/run.py", "--machines", count]


if __name__ == "__main__":
    words = sys.argv[1:]
    title, parts = "test", (steps(), builds(), steps_on_builds())
    if words[:1] == ["--long"]:
        title, parts, words = "test-long", (long_steps(),), words[1:]
    run_steps(title, *([step for step in part if not words or any(word in step[0] for word in words)] for part in parts))
