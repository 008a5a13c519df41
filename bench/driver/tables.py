"""Tables for the terminal and for Markdown, and the CSV of everything."""

import csv

from .figures import STEPS, best, groups_of, limit, ratio, ratio_to_variant, ratios, steps, summarise
from .libraries import LIMITS


def number(value):
    """Three digits that mean something: 0.112, 4.56, 117, 23.4k, 5.6M."""
    if value is None:
        return "-"
    if value >= 999_500:  # as 1.00M, not as 1000k
        return number(value / 1e6) + "M"
    if value >= 9_995:
        return number(value / 1e3) + "k"
    return f"{value:.0f}" if value >= 99.95 else f"{value:#.3g}"


def size_name(size):
    """8, 4 Ki, 16 Mi."""
    for shift, unit in ((20, " Mi"), (10, " Ki")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def cell(series, pick=None):
    if not series:
        return "-"
    if pick:
        return number(pick(series.values()))
    got = summarise(series)
    return f"{number(got.median)} ±{number(got.deviation)}"


def states(figures):
    """A sentence on the states in which the machine was met, if there were several."""
    if len(figures.states) < 2:
        return []
    times = ", ".join(number(line) for line in figures.states)
    runs = [lines for libraries in figures.lines.values() for rounds in libraries.values() for lines in rounds.values()]
    changed = sum(len(groups_of(lines)) > 1 for lines in runs)
    return [f"A bare cache line took {times} us from core to core: the machine has states that alternate. A ratio compares runs in the same state. "
            f"It changed during the runs of {changed} of {len(runs)} figures, which are in the medians only."]


def rows_of(case, ranks, figures):
    """The keys of a case's results, in the order of variant and size."""
    keys = [key for key in figures.values if key.case == case.name and key.ranks == ranks and key.name in case.shows]
    order = list(case.variants)
    names = list(case.shows)
    return sorted(keys, key=lambda key: (names.index(key.name), order.index(key.variant), key.size))


def peer_ratio(case, key, figures, ours, peers, pick=None):
    """(ratio to the best peer, its name); (None, None) without a peer."""
    series = {name: figures.series(key, name) for name in peers}
    name = best(series, case.lower_is_better, pick)
    return (ratio(figures.series(key, ours), series[name], pick), name) if name else (None, None)


def table(case, ranks, figures, libraries, best_round=False):
    """(header, rows) as text: medians and deviations, the ratios of the first library to best peer, to the variant
    that it is compared with and to the limit.

    With `best_round`, each library's best round instead of its median.
    """
    pick = (min if case.lower_is_better else max) if best_round else None
    ours, peers = libraries[0], libraries[1:]
    variants = {key.variant for key in rows_of(case, ranks, figures)}
    sizes = {key.size for key in rows_of(case, ranks, figures)} != {0}
    header = (["what"] if any(case.shows.values()) else []) + ([case.size_title] if sizes else [])
    header += [case.variant_title] if variants - {"-"} else []
    header += [who.title for who in libraries]
    if peers:
        header.append("/ best peer")
    if case.base_variant or case.bases:
        header.append(f"/ {case.base_variant or 'what it is compared with'}")
    limited = case.limits_for(ranks)
    if limited:
        header += ["limit", "by", "/ limit"]
    rows = []
    for key in rows_of(case, ranks, figures):
        row = [case.shows[key.name]] if any(case.shows.values()) else []
        row += [size_name(key.size)] if sizes else []
        row += [key.variant] if case.variant_title in header else []
        row += [cell(figures.series(key, who.name), pick) for who in libraries]
        if peers:
            value, name = peer_ratio(case, key, figures, ours.name, [who.name for who in peers], pick)
            row.append(f"{number(value)} {name or ''}")
        if case.base_variant:
            row.append(number(ratio_to_variant(figures, key, ours.name, case.base_variant, pick)))
        elif case.bases:
            base = case.base_of(key.variant)
            row.append(f"{number(ratio_to_variant(figures, key, ours.name, base, pick))} {base}" if base else "")
        if limited:
            method, series = limit(figures, key, pick, case.lower_is_better)
            row += [cell(series, pick).split(" ")[0], method or "-", number(ratio(figures.series(key, ours.name), series, pick))]
        rows.append(row)
    return header, rows


def step_name(before, after):
    """64 Ki to 128 Ki, 5 ranks; or 4 to 5 ranks, 64 Ki."""
    if before.ranks == after.ranks:
        return f"{size_name(before.size)} to {size_name(after.size)}, {after.ranks} rank{'s' if after.ranks > 1 else ''}"
    return f"{before.ranks} to {after.ranks} ranks" + (f", {size_name(after.size)}" if after.size else "")


def step_table(case, figures, libraries, best_round=False):
    """(header, rows) as text: for each number of a case, the worst step of each kind."""
    pick = min if best_round else None
    worst = {}
    for who in libraries:
        for kind, before, after, factor in steps(figures, case.name, who.name, pick):
            at = (after.name, kind, who.name)
            worst[at] = max(worst.get(at, (0, "")), (factor, step_name(before, after)))
    rows = []
    for name, title in case.shows.items():
        for kind, step in STEPS.items():
            cells = [worst.get((name, kind, who.name)) for who in libraries]
            if any(cells):
                rows.append([title, step, *(f"{number(got[0])} ({got[1]})" if got else "-" for got in cells)])
    return ["what", "step", *(who.title for who in libraries)], rows


def statistics_table(case, ranks, figures, libraries):
    """(header, rows) as text: one row for each number of each library, every method of the limits too."""
    keys = [key for key in sorted(figures.values) if (key.case, key.ranks) == (case.name, ranks)]
    rows = []
    for key in keys:
        for who in libraries:
            got = summarise(figures.series(key, who.name))
            if got:
                rows.append([key.name, key.variant, size_name(key.size), who.title, str(got.rounds),
                             *map(number, (got.least, got.median, got.mean, got.deviation))])
    return ["value", case.variant_title, case.size_title, "library", "rounds", "minimum", "median", "mean", "deviation"], rows


def failures(case, ranks, figures, libraries, rounds):
    """A sentence for every library that failed."""
    titles = {who.name: who.title for who in libraries}
    return [f"{titles.get(name, name)} failed in {len(failure.rounds)} of {min(rounds, case.most_rounds)} rounds: {failure.reason}"
            for name, failure in figures.failures.get((case.name, ranks), {}).items()]


def sections(case, options, figures, libraries, best_round=False):
    """(title, ranks, (header, rows), failures) of each table of a case; ranks is None if it is about several numbers of ranks."""
    everyone = [*libraries, LIMITS]
    if case.steps:
        failed = [f"{ranks} ranks: {text}" for ranks in case.ranks_for(options)
                  for text in failures(case, ranks, figures, everyone, figures.rounds)]
        yield f"{case.title}, growth of the time / growth in proportion, the worst", None, \
            step_table(case, figures, case.run_by(libraries), best_round), failed
        return
    for ranks in case.ranks_for(options):
        yield f"{case.title}, {ranks} ranks, {case.unit}", ranks, table(case, ranks, figures, case.run_by(libraries), best_round), \
            failures(case, ranks, figures, everyone, figures.rounds)


def plain(header, rows):
    """For the terminal."""
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True))
                     for line in [header, *rows])


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _peer_ratios(figures, key, library, case, peers):
    """Summary of a library's ratios to the best peer, or None for a peer and for what no peer was measured in."""
    name = None if library in (*peers, "limits") else best({name: figures.series(key, name) for name in peers}, case.lower_is_better)
    return summarise(ratios(figures.series(key, library), figures.series(key, name))) if name else None


def write_csv(path, figures, cases, peers):
    """One line for each number's summary: also every method of the limits. `cases`: {name: Case}. The last columns are the
    median and quartiles of the rounds' ratios to the best of `peers`."""
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["case", "ranks", "name", "variant", "bytes", "library", "unit", "rounds", "min", "lower_quartile",
                      "median", "upper_quartile", "mean", "deviation", "max", "ratio_lower", "ratio", "ratio_upper"])
        for key in sorted(figures.values):
            case = cases[key.case]
            for library, series in figures.values[key].items():
                got, compared = summarise(series), _peer_ratios(figures, key, library, case, peers)
                numbers = [got.least, got.lower_quartile, got.median, got.upper_quartile, got.mean, got.deviation, got.most]
                if compared:
                    numbers += [compared.lower_quartile, compared.median, compared.upper_quartile]
                row = [key.case, key.ranks, key.name, key.variant, key.size, library, case.unit, got.rounds]
                out.writerow(row + [f"{value:.6g}" for value in numbers] + [""] * (0 if compared else 3))
