"""clang-tidy over the C++ of src, launch and tools, with the compile commands of build/clang; two at a time.

These compile several files at once (cmake/Together.cmake). What has not changed since it was found clean (text, headers and rules) is
not looked at again.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from steps import ROOT, tracked

TIDY = ROOT / "build/venv/bin/clang-tidy"
CLEAN = ROOT / "build/tidy"
OURS = tuple(f"{ROOT}/{top}/" for top in ("src", "launch", "tools"))


def sources_of(unit):
    """The files of the project that a unit consists of: itself, or what it includes."""
    if unit.startswith(OURS):
        return [unit]
    return [name for name in re.findall(r'^#include "(.*)"', Path(unit).read_text(), re.MULTILINE) if name.startswith(OURS)]


def main():
    commands = ROOT / "build/clang/compile_commands.json"
    every = {entry["file"] for entry in json.loads(commands.read_text())}
    units = {unit: sources_of(unit) for unit in every if unit.startswith(OURS) or Path(unit).name.startswith("unity_")}
    units = {unit: sources for unit, sources in units.items() if sources}
    common = hashlib.sha256()
    for name in [*tracked("src/*.h", "src/*.def", "launch/*.h", "tools/*.h", "gen/*.py", "api/*"), ".clang-tidy", "dev/requirements.txt"]:
        common.update((ROOT / name).read_bytes())
    CLEAN.mkdir(parents=True, exist_ok=True)

    def look(unit):
        key = common.copy()
        for source in units[unit]:
            key.update(source.encode() + Path(source).read_bytes())
        stamp = CLEAN / key.hexdigest()[:32]
        if stamp.exists():
            return unit, True, ""
        command = [TIDY, "-p", commands.parent, "--quiet", unit]
        result = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
        if result.returncode == 0:
            stamp.touch()
        return unit, result.returncode == 0, result.stdout

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for unit, good, text in pool.map(look, sorted(units, key=lambda unit: -len(units[unit]))):
            if not good:
                bad += 1
                print(f"{os.path.relpath(unit, ROOT)}\n{text}", flush=True)
    files = {source for sources in units.values() for source in sources}
    print(f"clang-tidy: {len(files)} files in {len(units)} units, {bad} units with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
