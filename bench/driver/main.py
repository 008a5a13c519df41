"""The command line of bench/compare."""

import argparse
import contextlib
import os
import sys
from pathlib import Path

from . import machine, network, results, tables
from .cases import ALL_CASES, BUFFERS, CASES, NET_CASES, SHORT_SIZES, SIZES, VARIANTS
from .goals import GOALS, NET_GOALS, Comparison, committed_instructions, goal_table
from .libraries import LIMITS, PEERS, ROOT, Unavailable, build, install, nearmpi, unbound
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
    add("--what", default="all", help=f"comma list of {', '.join(CASES)}; with --net, of {', '.join(NET_CASES)} (default: all)")
    add("--net", action="store_true", help="jobs on several machines, made of namespaces (needs root)")
    add("--link", type=choice(network.LINKS), default=list(network.LINKS), metavar="LIST",
        help=f"with --net, what joins the machines: comma list of {', '.join(network.LINKS)} (default: all, one after the other)")
    add("--np", type=int, default=2, help="ranks of the cases between pairs (default 2)")
    add("--peers", type=choice(PEERS), default=list(PEERS), metavar="LIST",
        help=f"comma list of {', '.join(PEERS)} (default: all); '' for none")
    add("--rounds", type=int, help="default 40, with --short 8")
    add("--short", action="store_true", help="8 rounds, powers of four")
    add("--sizes", type=number_list, help="bytes, comma list (default: powers of two to 16 Mi)")
    add("--variants", type=choice(VARIANTS), default=list(BUFFERS), metavar="LIST",
        help=f"comma list of {', '.join(VARIANTS)}, or all (default: {','.join(BUFFERS)})")
    add("--cores", type=lambda text: [] if text == "none" else number_list(text), default=[0, 1],
        help="cores that ranks are bound to, in turns (default 0,1); none: the programs leave that to the launcher")
    add("--unbound", action="store_true", help="also NearMPI with --bind-to none; with --cores none")
    add("--offset", type=int, default=0,
        help="where buffers begin, in bytes past the start of a page (default 0; malloc() puts long blocks at 16)")
    add("--budget", type=float, default=25, help="milliseconds spent on a figure in a round (default 25)")
    add("--prefix", type=Path, default=ROOT / "build/prefix", help="the installation of NearMPI (default build/prefix)")
    add("--base", type=Path, help="another installation of NearMPI, to compare with")
    add("--best-round", action="store_true", help="show each library's best round instead of the median: for a busy machine")
    add("--time-limit", type=float, help="seconds after which a run is ended and reported (default: each case's own)")
    add("--out", type=Path, help="folder to write tables into (default: none are written)")
    options = parser.parse_args(arguments)
    try:
        options.what = choice(cases_of(options))(options.what)
    except argparse.ArgumentTypeError as wrong:
        parser.error(f"--what: {wrong}")
    if options.net and options.unbound:
        parser.error("--unbound: with --net, other launchers than NearMPI's start the jobs")
    if options.offset % 8 or not 0 <= options.offset < 4096 or (options.net and options.offset):
        parser.error("--offset: a multiple of 8 below 4096, and only without --net")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: there must be at least one")
    if options.np % 2 or options.np < 2:
        parser.error("--np: pairs need an even number of ranks")
    if options.unbound and options.cores:
        parser.error("--unbound: the programs bind themselves, unless there is --cores none")
    options.few_sizes = options.short or bool(options.sizes)
    options.rounds = options.rounds or (8 if options.short else 40)
    options.sizes = sorted(set(options.sizes or (SHORT_SIZES if options.short else SIZES)))
    return options


def cases_of(options):
    """Those that --what may name."""
    return NET_CASES if options.net else CASES


def libraries_of(options):
    """[NearMPI, another NearMPI, peers ...], installed."""
    prefix = options.prefix.resolve()
    if not (prefix / "bin/mpicc").exists():
        raise Unavailable(f"there is no NearMPI in {prefix}: run `make build`, or give --prefix")
    install(options.peers)
    ours = [nearmpi(prefix)]
    if options.unbound:
        ours.append(unbound(prefix))
    if options.base:
        ours.append(nearmpi(options.base.resolve(), "base"))
    found = ours + [PEERS[name](prefix) for name in options.peers]
    return [network.on_machines(library) for library in found] if options.net else found


def report(options, figures, libraries):
    """Text for the terminal."""
    parts = [figures.cut_short] if figures.cut_short else []
    for name in options.what:
        case = ALL_CASES[name]
        shown = "best" if options.best_round else "median" if case.steps else "median ± deviation"
        for title, _, content, failures in tables.sections(case, options, figures, libraries, options.best_round):
            parts += [f"{title}: {shown} of {min(figures.rounds, case.most_rounds)} rounds", tables.plain(*content), *failures, ""]
    return "\n".join(parts)


def main(arguments=None):
    options = parse(arguments)
    try:
        libraries = libraries_of(options)
        for case, _, library in plan(options, libraries):
            build(library, case.program_of(library))
        build(LIMITS, "limits")
        if options.net:
            network.prepare()
        for link in places(options):
            with network.laboratory(link) if link else contextlib.nullcontext() as options.laboratory:
                measure(options, libraries, link)
    except Unavailable as reason:
        print(f"bench: {reason}", file=sys.stderr)
        return 1
    return 0


def places(options):
    """Where everything is measured, in turns: on this machine (None), or on machines that are joined by each link."""
    return [network.LINKS[name] for name in options.link] if options.net else [None]


def measure(options, libraries, link):
    """Runs all rounds in one place, and reports them."""
    about = machine.describe(options.cores)
    out = options.out
    if link:
        about["link between machines"] = link.title
        print(f"Machines joined by {link.title}\n")
        out = out and out / link.name
    figures = run(options, libraries)
    print(report(options, figures, libraries))
    if set(options.what) == set(cases_of(options)):
        comparison = Comparison(figures, options.peers, committed_instructions())
        print(tables.plain(*goal_table(comparison, NET_GOALS if options.net else GOALS)))
    if out:
        about["load average after"] = f"{os.getloadavg()[0]:.1f}"
        problem = results.write(options, out, figures, libraries, about)
        print(f"bench: written to {out}" + (f" ({problem})" if problem else ""))
