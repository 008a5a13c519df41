"""Builds the programs of the catalogue, runs their cases, and compares what fails with expected.txt."""

import fnmatch
import hashlib
import re
import shlex
import time
from dataclasses import dataclass, field
from pathlib import Path

import harness
import sources
from catalogue import PROGRAMS

EXPECTED = Path(__file__).with_name("expected.txt")
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


@dataclass
class Line:
    """A line of expected.txt: the cases that it is about, and whether they fail or are not run."""

    what: str  # "fails", "varies" or "skip"
    pattern: str
    met: bool = field(default=False)

    def is_about(self, name):
        return fnmatch.fnmatchcase(name, self.pattern)


def expectations():
    """The lines of expected.txt."""
    lines = []
    for text in EXPECTED.read_text().splitlines():
        words = text.partition("#")[0].split()
        if words:
            what, pattern = words
            assert what in ("fails", "varies", "skip") and "#" in text, f"{EXPECTED.name}: {text}"
            lines.append(Line(what, pattern))
    return lines


def build(program, options, environment):
    """Unpacks and builds a program unless the same build is there. Returns "" or why it failed. Raises Missing."""
    folder = sources.source_folder(program.name)
    header = (options.prefix / "include/mpi.h").read_text()
    key = hashlib.sha256("\0".join([str(options.prefix), header, program.source, program.build, *program.members]).encode()).hexdigest()
    stamp = folder.parent / "built"
    if stamp.exists() and stamp.read_text() == key:
        return ""
    print(f"{program.name}: building it ...", flush=True)
    stamp.unlink(missing_ok=True)
    if program.needs_python:
        sources.python(options.prefix, program.name)
    sources.unpack(program, environment)
    log = folder.parent / "build.log"
    line = f"exec >{shlex.quote(str(log))} 2>&1; {program.build}"
    result = harness.run(["nice", "-n", "19", "bash", "-euxc", line], timeout=program.seconds, cwd=folder, env=environment)
    if result.status:
        return f"status {result.status} after {result.seconds:.0f} s; {log} ends with\n{log.read_text(errors='replace')[-3000:]}"
    stamp.write_text(key)
    return ""


def run_case(program, case, ranks, options, environment):
    """Runs a case. Returns (why it failed or "", the groups of `agree`)."""
    before = harness.shared_files()
    folder = sources.source_folder(program.name) / case.folder
    start = f"{options.prefix}/bin/mpiexec --oversubscribe -n {ranks}"
    result = harness.run(["bash", "-c", case.command], timeout=case.seconds, cwd=folder,
                         env={**environment, "RUN": start, "RANKS": ranks})
    problems = []
    if result.timed_out or (result.status == 0 if case.status is None else result.status != case.status):
        problems.append("the status")
    if case.says and not re.search(case.says, result.text, re.M):
        problems.append(f"nothing matches {case.says!r}")
    if case.never and (found := re.search(case.never, result.text, re.M)):
        problems.append(f"it says {found[0]!r}")
    if left := harness.survivors(result.mark):
        problems.append(f"processes have survived:\n{left}")
    if files := harness.files_left(before):
        problems.append(f"files have stayed in /dev/shm: {sorted(files)}")
    found = re.findall(case.agree, result.text, re.M) if case.agree else []
    if case.agree and not found:
        problems.append(f"nothing matches {case.agree!r}")
    return (f"{'; '.join(problems)}\n{result.report()[-3000:]}" if problems else ""), found


def differ(first, second, tolerance):
    """Whether two lists of texts differ. Numbers in them are compared with a relative tolerance."""
    if len(first) != len(second):
        return True
    for one, other in zip(first, second, strict=True):
        numbers = re.findall(NUMBER, one), re.findall(NUMBER, other)
        if re.sub(NUMBER, "", one).split() != re.sub(NUMBER, "", other).split() or len(numbers[0]) != len(numbers[1]):
            return True
        for a, b in zip(*numbers, strict=True):
            if abs(float(a) - float(b)) > tolerance * max(abs(float(a)), abs(float(b))):
                return True
    return False


class Tally:
    """Compares results with what is expected."""

    def __init__(self, options):
        self.options, self.lines = options, expectations()
        self.passed = self.known = self.skipped = 0
        self.errors = []

    def line_for(self, name):
        lines = [line for line in self.lines if line.is_about(name)]
        for line in lines:
            line.met = True
        return lines[0] if lines else None

    def skips(self, name):
        line = self.line_for(name)
        self.skipped += (skip := line is not None and line.what == "skip")
        return skip

    def note(self, name, failure):
        line = self.line_for(name)
        good = line is not None if failure else line is None or line.what == "varies"
        if self.options.verbose or not good:
            print(f"{name}: {'fails' if failure else 'passes'}{' as expected' if good and failure else ''}", flush=True)
        if good:
            self.known, self.passed = self.known + bool(failure), self.passed + (not failure)
        else:
            self.errors.append(name)
            print(failure or f"{name} passes now: take it out of {EXPECTED.name}", flush=True)


def run_program(program, options, patterns, tally):
    started, before = time.monotonic(), (tally.passed, tally.known, tally.skipped, len(tally.errors))
    try:
        sources.libraries(program.libraries)
        environment = sources.environment(options.prefix, options.jobs, program)
        failure = build(program, options, environment)
    except sources.Missing as missing:
        failure = f"cannot be fetched: {missing}"
    if failure or tally.line_for(f"{program.name}/build"):
        tally.note(f"{program.name}/build", failure)
    if failure or options.build:
        return
    for case in program.all_cases(sources.source_folder(program.name)):
        seen = []
        for ranks in case.ranks:
            name = f"{program.name}/{case.name}{f'-{ranks}' if ranks else ''}"
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns) or tally.skips(name):
                continue
            failure, found = run_case(program, case, ranks, options, environment)
            if not failure and seen and differ(seen[0], found, case.tolerance):
                failure = f"other numbers of ranks give other results:\n{seen[0]}\n{found}"
            if found:
                seen.append(found)
            tally.note(name, failure)
    after = (tally.passed, tally.known, tally.skipped, len(tally.errors))
    passed, known, skipped, errors = (now - then for now, then in zip(after, before, strict=True))
    print(f"{program.name}: {passed} passed, {known} failed as expected, {skipped} not run, {errors} errors "
          f"({time.monotonic() - started:.0f} s)", flush=True)


def main(options):
    options.prefix = options.prefix.resolve()
    names = [program.name for program in PROGRAMS]
    patterns = [word if "/" in word else f"{word}/*" for word in options.chosen] or ["*"]
    chosen = [program for program in PROGRAMS if any(fnmatch.fnmatchcase(program.name, pattern.split("/")[0]) for pattern in patterns)]
    if not chosen:
        print(f"test/others/run: there is no such program; there are {', '.join(names)}")
        return 2
    if options.list:
        for program in chosen:
            print(f"{program.name}: {program.source}")
        return 0
    if not (options.prefix / "bin/mpicc").exists():
        print(f"test/others/run: {options.prefix} is not an installation: make build")
        return 2
    tally = Tally(options)
    for program in chosen:
        run_program(program, options, patterns, tally)
    if not options.build and not options.chosen:
        for line in tally.lines:
            if not line.met:
                tally.errors.append(line.pattern)
                print(f"{EXPECTED.name} lists {line.pattern}, which matches no case")
    print(f"in all: {tally.passed} passed, {tally.known} failed as expected, {tally.skipped} not run, {len(tally.errors)} errors")
    for name in tally.errors:
        print(f"    {name}")
    return 1 if tally.errors else 0
