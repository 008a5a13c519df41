"""Fetches source packages and libraries of Debian 12 and packages of PyPI, below build/others, without installing anything in the system.

apt-get has its own lists and cache there (apt.conf), so the system's list of sources is neither read nor changed. Raises Missing if something
cannot be fetched.
"""

import os
import re
import shutil
import sys
from string import Template

import harness

FOLDER = harness.ROOT / "build/others"
APT, ROOT, PYTHON = FOLDER / "apt", FOLDER / "root", FOLDER / "python"
POLITE, PIP = ["nice", "-n", "19"], ["-q", "--disable-pip-version-check"]
MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"


class Missing(Exception):
    """Something could not be fetched."""


def _call(words, seconds, **options):
    result = harness.run(words, timeout=seconds, **options)
    if result.status:
        raise Missing(f"{' '.join(str(word) for word in words)}: {result.text.strip()[-600:]}")
    return result.out


def _apt(words, folder=None, seconds=600):
    if shutil.which("apt-get") is None:
        raise Missing("apt-get is not there: source packages come from Debian's registry")
    configuration = APT / "apt.conf"
    if not configuration.exists():
        for part in ("lists/partial", "archives/partial", "packages"):
            (APT / part).mkdir(parents=True, exist_ok=True)
        (APT / "sources.list").write_text(f"deb {MIRROR} {SUITE} main\ndeb-src {MIRROR} {SUITE} main\n")
        draft = configuration.with_suffix(".draft")
        draft.write_text(f'Dir::State::Lists "{APT}/lists";\nDir::Cache "{APT}";\nDir::Etc::SourceList "{APT}/sources.list";\n'
                         f'Dir::Etc::SourceParts "-";\nAPT::Sandbox::User "root";\n')
        _call(["apt-get", "update"], seconds, env={"APT_CONFIG": draft})
        draft.rename(configuration)
    return _call(["apt-get", "-q", *words], seconds, cwd=folder or APT / "packages", env={"APT_CONFIG": configuration})


def _archive_of(package):
    """Downloads the upstream archive of a source package, without Debian's changes, unless it is there. Returns its path."""
    def found():
        archives = [path for path in (APT / "packages").glob("*.orig.tar.*") if path.name.startswith(f"{package}_") and path.suffix != ".asc"]
        return archives[0] if archives else None

    if not found():
        _apt(["source", "--download-only", "--tar-only", f"{package}/{SUITE}"])
    archive = found()
    if archive is None:
        raise Missing(f"{package}: apt-get source has downloaded no archive")
    return archive


def unpack(program, env):
    """Unpacks a program's source into its folder, whose former content is deleted."""
    source, folder, members = program.source, source_folder(program.name), program.members
    archive = _archive_of(source) if not source.startswith("pypi:") else _archive_from_pypi(source.removeprefix("pypi:"), env)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    choice = ["--wildcards", *members] if members else []
    _call(["tar", "-xf", archive, "-C", folder, "--strip-components=1", "--no-same-owner", *choice], 300)


def libraries(names):
    """Unpacks binary packages of Debian into ROOT."""
    stamps = APT / "unpacked"
    stamps.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (stamps / name).exists():
            continue
        printed = _apt(["download", "--print-uris", f"{name}/{SUITE}"])
        file = re.search(r"'\S+' (\S+\.deb)", printed)
        _apt(["download", f"{name}/{SUITE}"])
        if file is None or not (APT / "packages" / file[1]).exists():
            raise Missing(f"{name}: apt-get download has downloaded nothing")
        _call(["dpkg-deb", "-x", APT / "packages" / file[1], ROOT], 120)
        (stamps / name).touch()


def python(prefix, name):
    """Makes an environment for a program, in which mpi4py (built by the installation's mpicc) and NumPy are there. Returns its interpreter."""
    stamp = PYTHON / "built-from"
    if not stamp.exists() or stamp.read_text() != str(prefix):
        shutil.rmtree(PYTHON, ignore_errors=True)
        _call([sys.executable, "-m", "venv", PYTHON], 120)
        _call([*POLITE, PYTHON / "bin/python", "-m", "pip", *PIP, "install", "mpi4py==4.1.2", "numpy", "--no-binary", "mpi4py",
               "--no-cache-dir"], 900, env={"MPICC": prefix / "bin/mpicc", "CFLAGS": "-O0 -g0"})
        stamp.write_text(str(prefix))
    own = FOLDER / name / "python"
    shutil.rmtree(own, ignore_errors=True)
    _call([PYTHON / "bin/python", "-m", "venv", own], 120)
    for packages in own.glob("lib/python*/site-packages"):
        (packages / "shared.pth").write_text(f"{PYTHON / packages.relative_to(own)}\n")
    return own / "bin/python"


def _archive_from_pypi(requirement, env):
    folder = FOLDER / "pypi" / requirement
    archives = list(folder.glob("*.tar.gz"))
    if not archives:
        folder.mkdir(parents=True, exist_ok=True)
        name = requirement.partition("==")[0]
        _call([env["PYTHON"], "-m", "pip", *PIP, "download", "--no-deps", "--no-binary", name, "--dest", folder, requirement], 300, env=env)
        archives = list(folder.glob("*.tar.gz"))
    if not archives:
        raise Missing(f"{requirement}: PyPI has no source archive")
    return archives[0]


def environment(prefix, jobs, program):
    """The variables of a program's builds and tests."""
    triplets = sorted((ROOT / "usr/lib").glob("*-linux-gnu")) or [ROOT / "usr/lib"]
    own = FOLDER / program.name / "python/bin"
    found = {"PREFIX": str(prefix), "ROOT": str(ROOT), "LIBRARIES": str(triplets[0]), "SOURCE": str(source_folder(program.name)), "JOBS": str(jobs),
             "PYTHON": str(own / "python"), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
             "M4": f"{ROOT}/usr/bin/m4", "BISON_PKGDATADIR": f"{ROOT}/usr/share/bison",
             "PATH": ":".join([f"{prefix}/bin", *([str(own)] if program.needs_python else []), f"{ROOT}/usr/bin", os.environ["PATH"]])}
    return found | {name: Template(value).substitute(found) for name, value in program.variables.items()}


def source_folder(name):
    return FOLDER / name / "source"
