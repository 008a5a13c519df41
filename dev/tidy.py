"""clang-tidy over the C++ of src, launch and tools, with the compile commands of build/clang; two files at a time.

A file whose text, headers and rules have not changed since it was found clean is not looked at again.
"""

import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys

from steps import ROOT, tracked

TIDY = ROOT / "build/venv/bin/clang-tidy"
CLEAN = ROOT / "build/tidy"


def main():
    commands = ROOT / "build/clang/compile_commands.json"
    files = sorted({entry["file"] for entry in json.loads(commands.read_text())})
    files = [name for name in files if name.startswith(tuple(f"{ROOT}/{top}/" for top in ("src", "launch", "tools")))]
    common = hashlib.sha256()
    for name in [*tracked("src/*.h", "src/*.def", "launch/*.h", "tools/*.h", "gen/*.py", "api/*"), ".clang-tidy", "dev/requirements.txt"]:
        common.update((ROOT / name).read_bytes())
    CLEAN.mkdir(parents=True, exist_ok=True)

    def look(name):
        with open(name, "rb") as file:
            key = hashlib.sha256(common.digest() + file.read()).hexdigest()[:32]
        stamp = CLEAN / key
        if stamp.exists():
            return name, True, ""
        command = [TIDY, "-p", commands.parent, "--quiet", name]
        result = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
        if result.returncode == 0:
            stamp.touch()
        return name, result.returncode == 0, result.stdout

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, good, text in pool.map(look, files):
            if not good:
                bad += 1
                print(f"{os.path.relpath(name, ROOT)}\n{text}", flush=True)
    print(f"clang-tidy: {len(files)} files, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
