"""Draws the plots of a results.csv: python -m driver.plots results.csv FOLDER. Runs in build/venv-bench, which has matplotlib."""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from .cases import ALL_CASES  # noqa: E402
from .figures import DIRECT, bounds  # noqa: E402
from .libraries import TITLES  # noqa: E402

# Colours that the colour-blind tell apart (Okabe and Ito).
COLOURS = dict(zip(TITLES, ["#d55e00", "#8c510a", "#e69f00", "#0072b2", "#009e73", "#cc79a7", "#555555"], strict=True))


enough_for_a_curve = 4  # sizes; fewer are drawn as bars


def read(path):
    """[row], numbers as numbers."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["ranks"], row["bytes"] = int(row["ranks"]), int(row["bytes"])
        for column in ("lower_quartile", "median", "upper_quartile", "ratio_lower", "ratio", "ratio_upper"):
            row[column] = float(row[column]) if row[column] else None
    return rows


def groups(rows, *columns):
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[column] for column in columns)].append(row)
    return found


def libraries(rows):
    return [name for name in TITLES if name != "limits" and any(row["library"] == name for row in rows)]


def limit_line(rows, case, ranks, name, variant):
    """({size: figure}) of the fastest method at each size that this kind of buffer can use."""
    fastest, better = {}, min if ALL_CASES[case].lower_is_better else max
    for row in rows:
        method = bounds(row["name"], name)
        usable = method not in ("", "touch", "line") and (method not in DIRECT or variant.startswith("alloc-"))
        here = (row["library"], row["case"], row["ranks"], row["variant"]) == \
            ("limits", case, ranks, variant.removeprefix("alloc-"))
        if here and usable:
            fastest[row["bytes"]] = better(fastest.get(row["bytes"], row["median"]), row["median"])
    return fastest


def curves(axes, rows, low, middle, high):
    """A line for each library over the message size, with a band between the quartiles."""
    for who in libraries(rows):
        points = sorted((row["bytes"], row[low], row[middle], row[high]) for row in rows
                        if row["library"] == who and row["bytes"] > 0 and row[middle] is not None)
        if points:
            sizes, lower, medians, upper = zip(*points, strict=True)
            axes.plot(sizes, medians, marker="o", markersize=3, color=COLOURS[who], label=TITLES[who])
            axes.fill_between(sizes, lower, upper, color=COLOURS[who], alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("bytes")
    axes.grid(True, which="major", alpha=0.3)


def ratio_axis(axes, better):
    """What the axis of ratios to the best peer says: 1 is drawn, and numbers stand where a logarithmic axis has none."""
    axes.axhline(1, color="black", linewidth=0.8)
    low, high = axes.get_ylim()
    low, high = min(low, 0.9), max(high, 1.1)
    ticks = [tick for tick in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5, 10, 20) if low <= tick <= high]
    axes.set_ylim(low, high)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylabel(f"ratio to the best peer ({better} is better)")


def against_size(rows, key, all_rows, folder):
    """Two panels over the message size, all axes logarithmic: the measured values, and the ratios to the best peer."""
    case, ranks, name, variant = key
    compared = any(row["ratio"] is not None for row in rows)
    figure, panels = plt.subplots(1, 2 if compared else 1, figsize=(14 if compared else 8, 5), squeeze=False)
    axes, *others = panels[0]
    curves(axes, rows, "lower_quartile", "median", "upper_quartile")
    bound = limit_line(all_rows, case, ranks, name, variant)
    if bound:
        axes.plot(sorted(bound), [bound[size] for size in sorted(bound)], color=COLOURS["limits"], linestyle="--",
                  label="fastest bare program")
    axes.set_ylabel(rows[0]["unit"])
    axes.legend()
    for beside in others:
        curves(beside, rows, "ratio_lower", "ratio", "ratio_upper")
        ratio_axis(beside, "lower" if ALL_CASES[case].lower_is_better else "higher")
    what = [case] + ([name] if name != case else [])
    figure.suptitle(f"{': '.join(what)}, {ranks} ranks" + (f", {variant} {ALL_CASES[case].variant_title}" if variant != "-" else ""))
    words = what + ([variant] if variant != "-" else []) + [f"{ranks}ranks"]
    save(figure, folder / ("-".join(words).replace(" ", "-") + ".png"))


def bars(rows, case, variant, folder):
    """One group of bars for each thing measured, one bar for each library; logarithmic if they differ much."""
    title = case if variant == "-" else f"{case}-{variant}"
    things = sorted({(row["name"], row["ranks"], row["bytes"]) for row in rows})
    names = libraries(rows)
    figure, axes = plt.subplots(figsize=(max(6, 1.2 * len(things)), 5))
    for index, who in enumerate(names):
        for place, thing in enumerate(things):
            for row in rows:
                if row["library"] == who and (row["name"], row["ranks"], row["bytes"]) == thing and row["median"] > 0:
                    error = [[row["median"] - row["lower_quartile"]], [row["upper_quartile"] - row["median"]]]
                    axes.bar(place + (index - (len(names) - 1) / 2) * 0.8 / len(names), row["median"], 0.8 / len(names),
                             yerr=error, color=COLOURS[who], label=TITLES[who] if place == 0 else None, capsize=2)
    medians = [row["median"] for row in rows if row["median"] > 0]
    if medians and max(medians) > 30 * min(medians):
        axes.set_yscale("log")
        axes.set_ylim(bottom=min(medians) / 2)
    axes.set_ylabel(rows[0]["unit"])
    axes.set_xticks(range(len(things)), [f"{name}\n{ranks} ranks" + (f"\n{size}" if size else "") for name, ranks, size in things])
    axes.set_title(title)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    save(figure, folder / (title.replace(" ", "-") + ".png"))


def against_base(rows, case, variant, base, folder):
    """A panel for each size, a row for each layout, a point for each library: its way beside its own other way."""
    medians = {(row["library"], row["name"], row["bytes"], row["variant"]): row["median"] for row in rows}
    sizes, names = sorted({row["bytes"] for row in rows}), [name for name in ALL_CASES[case].shows if any(row["name"] == name for row in rows)]
    figure, panels = plt.subplots(1, len(sizes), figsize=(3.2 * len(sizes), 0.24 * len(names) + 1.5), sharey=True, squeeze=False)
    for axes, size in zip(panels[0], sizes, strict=True):
        for who in libraries(rows):
            points = [(medians[way] / medians[(who, name, size, base)], place) for place, name in enumerate(names)
                      if (way := (who, name, size, variant)) in medians and (who, name, size, base) in medians]
            axes.scatter([ratio for ratio, _ in points], [place for _, place in points], s=14, color=COLOURS[who], label=TITLES[who])
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= tick <= high]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_title(f"{size} bytes")
        axes.grid(True, which="major", alpha=0.3)
    panels[0][0].set_yticks(range(len(names)), [ALL_CASES[case].shows[name] for name in names])
    panels[0][0].invert_yaxis()
    panels[0][-1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.suptitle(f"{case}: {variant} / {base} (lower is better)")
    save(figure, folder / f"{case}-{variant}.png")


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(source, folder):
    rows = read(source)
    results = [row for row in rows if row["library"] != "limits"]
    for case, of_case in groups(results, "case").items():
        if not ALL_CASES[case[0]].plots:
            continue
        if ALL_CASES[case[0]].drawn_beside_base:
            for variant in ALL_CASES[case[0]].drawn_beside_base:
                if any(row["variant"] == variant for row in of_case):
                    against_base(of_case, case[0], variant, ALL_CASES[case[0]].bases[variant], Path(folder))
            continue
        few = []
        for key, group in groups(of_case, "case", "ranks", "name", "variant").items():
            if len({row["bytes"] for row in group}) >= enough_for_a_curve:
                against_size(group, key, rows, Path(folder))
            else:
                few += group
        for variant, group in groups(few, "variant").items():
            bars(group, case[0], variant[0], Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
