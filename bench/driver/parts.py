"""Which part of a call an instruction belongs to: address computation, copying, buffering or protocol.

What decides is the source file of its line, also for code that was inlined elsewhere:

    address computation   src/datatype: the normal form and the walk through it, down to the call of a copy kernel
    copying               src/copy; memcpy and memmove of the C library; the loop by hand
    buffering             src/queue, src/memory and src/shm: slots, lanes, packets, fragments, and the credits for them
    protocol              everything else: src/mpi and its generated entry points, src/p2p, src/transport, the parts of src/shm that
                          choose and negotiate (rendezvous, tuner, progress), handles, statistics, system calls

Helpers (src/base, the standard library, intrinsics) count for the function that they were inlined into, or, if that is a helper
too, for the layer whose types its name contains. Functions of the C and C++ libraries are known by name.
"""

import re
from pathlib import PurePath

ADDRESSES, COPYING, BUFFERING, PROTOCOL = PARTS = ("address computation", "copying", "buffering", "protocol")
OTHER = "other"

HELPERS = re.compile(r"src/base/|/include/c\+\+/|/lib/gcc/|/libstdc\+\+|\?\?\?$")
# The first pattern that is found in the path decides.
FILES = [(re.compile(pattern), part) for pattern, part in (
    (r"^src/datatype/", ADDRESSES),
    (r"^src/copy/", COPYING),
    (r"^src/shm/(cma|ending|memory_access|peers|progress|provider|rendezvous|start|tuner)\.", PROTOCOL),
    (r"^src/(queue|memory|shm)/", BUFFERING),
    (r"^src/(abi|base|boot|choice|coll|comm|mpi|object|ofi|os|p2p|pattern|planning|profile|rma|segment|topo|transport)/", PROTOCOL),
    (r"^generated/", PROTOCOL),
)]
# Functions of the C library, and of the C++ library, which is a part of ours.
LIBRARY = [(re.compile(pattern), part) for pattern, part in (
    (r"^(__)?mem(p?cpy|move)", COPYING),
    (r"^(__)?(memset|memcmp|str(len|cmp|ncmp|chr)|syscall|process_vm_|clock_gettime|tls_get_addr|sched_yield|getcpu|madvise|mmap|munmap)",
     PROTOCOL),
    (r"^(_int_|__libc_)?(malloc|calloc|realloc|free)|^(alloc_perturb|unlink_chunk|sysmalloc|tcache)", PROTOCOL),
    (r"^operator (new|delete)|^__cxa_guard|^std::(__cxx11::)?basic_string", PROTOCOL),
)]
BY_HAND = "typed"  # bench/typed.c, of which only the loops by hand are counted


def source(path):
    """The path of a source file within the repository (src/shm/wire.h), or of a generated one; others stay as they are."""
    found = re.search(r"(?:^|/)roots/[^/]+/((?:launch/|tools/)?[^/]+/[^/]+)$", path)
    if found:
        return "src/" + found[1]
    found = re.search(r"^(?:.*/)?((?:src|generated)/[^.].*)$", path)
    return found[1] if found else path


def _of_file(path):
    return next((part for pattern, part in FILES if pattern.search(path)), None)


def _of_name(function):
    found = re.search(r"\bnear::(\w+)::", function)
    return _of_file(f"src/{found[1]}/") if found else None


def part_of(place):
    """The part that a callgrind.Place belongs to; OTHER if nothing above says."""
    name = PurePath(place.object).name
    if name == BY_HAND:
        return COPYING
    for pattern, part in LIBRARY:
        if pattern.search(place.function):
            return part
    own, containing = source(place.file), source(place.function_file)
    for path in (own, containing):
        if not HELPERS.search(path):
            return _of_file(path) or OTHER
    return _of_name(place.function) or _of_file(containing) or OTHER


def label(place):
    """Where it is, for people: the source file, or function and object if there is no such file."""
    path = source(place.file)
    if HELPERS.search(path):
        path = source(place.function_file)
    return path if path.startswith(("src/", "generated/")) else f"{place.function} in {PurePath(place.object).name}"
