"""The command line of bench/compare."""

import argparse
import sys
from pathlib import Path

from . import tables
from .cases import CASES, REUSED, SHORT_SIZES, SIZES, VARIANTS
from .contestants import LIMITS, PEERS, ROOT, Unavailable, build, install, nearmpi
from .runner import plan, run


def words(text):
    return [word for word in text.split(",") if word]


def choice(of):
    """A type for argparse: a comma list of words from `of`, or "all"."""

    def read(text):
        if text == "all":
            return list(of)
        unknown = [word for word in words(text) if word not in of]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(of)}")
        return words(text)

    return read


def number_list(text):
    try:
        return [int(word) for word in words(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers, like 8,4096") from None


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/compare", description=__doc__.splitlines()[0] + " See bench/README.md.")
    add = parser.add_argument
    add("--what", type=choice(CASES), default=list(CASES), help=f"comma list of {', '.join(CASES)} (default: all)")
    add("--np", type=int, default=2, help="ranks of the cases between pairs (default 2)")
    add("--peers", type=choice(PEERS), default=list(PEERS), metavar="LIST",
        help=f"comma list of {', '.join(PEERS)} (default: all); '' for none")
    add("--rounds", type=int, help="default 40, with --short 8")
    add("--short", action="store_true", help="8 rounds, powers of four")
    add("--sizes", type=number_list, help="bytes, comma list (default: powers of two to 16 Mi)")
    add("--variants", type=choice(VARIANTS), default=list(REUSED), metavar="LIST",
        help=f"comma list of {', '.join(VARIANTS)}, or all (default: {','.join(REUSED)})")
    add("--cores", type=number_list, default=[0, 1], help="cores that ranks are bound to, in turns (default 0,1)")
    add("--slot", type=float, default=25, help="milliseconds spent on a figure in a round (default 25)")
    add("--prefix", type=Path, default=ROOT / "build/prefix", help="the installation of NearMPI (default build/prefix)")
    add("--base", type=Path, help="another installation of NearMPI, to compare with")
    add("--out", type=Path, help="folder to write tables into (default: none are written)")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (8 if options.short else 40)
    options.sizes = sorted(set(options.sizes or (SHORT_SIZES if options.short else SIZES)))
    options.ranks_of = lambda case: case.ranks if case.ranks != (2,) else (options.np,)
    return options


def contestants_of(options):
    """[NearMPI, another NearMPI, peers ...], installed."""
    prefix = options.prefix.resolve()
    if not (prefix / "bin/mpicc").exists():
        raise Unavailable(f"there is no NearMPI in {prefix}: run `make build`, or give --prefix")
    install(options.peers)
    ours = [nearmpi(prefix)]
    if options.base:
        ours.append(nearmpi(options.base.resolve(), "base", "base"))
    return ours + [PEERS[name](prefix) for name in options.peers]


def report(options, figures, contestants):
    """Text for the terminal."""
    parts = []
    for name in options.what:
        case = CASES[name]
        for ranks in options.ranks_of(case):
            parts.append(f"{case.title}, {ranks} ranks, {case.unit}: median ± deviation of {options.rounds} rounds")
            parts.append(tables.plain(*tables.table(case, ranks, figures, contestants)))
            parts += tables.failures(case, ranks, figures, [*contestants, LIMITS], options.rounds)
            parts.append("")
    return "\n".join(parts)


def main(arguments=None):
    options = parse(arguments)
    try:
        contestants = contestants_of(options)
        for case, _, contestant in plan(options, contestants):
            build(contestant, case.program if contestant is not LIMITS else "limits")
    except Unavailable as reason:
        print(f"bench: {reason}", file=sys.stderr)
        return 1
    figures = run(options, contestants)
    print(report(options, figures, contestants))
    return 0
