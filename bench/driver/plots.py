"""Draws the plots of a results.csv: python -m driver.plots results.csv FOLDER. Runs in build/venv-bench, which has matplotlib."""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from .figures import DIRECT, bounds  # noqa: E402
from .libraries import TITLES  # noqa: E402

# Colours that the colour-blind tell apart (Okabe and Ito).
COLOURS = dict(zip(TITLES, ["#d55e00", "#8c510a", "#e69f00", "#0072b2", "#009e73", "#cc79a7", "#555555"], strict=True))


def read(path):
    """[row], numbers as numbers."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["ranks"], row["bytes"] = int(row["ranks"]), int(row["bytes"])
        row["median"], row["deviation"] = float(row["median"]), float(row["deviation"])
    return rows


def groups(rows, *columns):
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[column] for column in columns)].append(row)
    return found


def libraries(rows):
    return [name for name in TITLES if name != "limits" and any(row["library"] == name for row in rows)]


def limit_line(rows, case, ranks, name, variant):
    """({size: figure}) of the fastest way at each size that this kind of buffer can use."""
    fastest, better = {}, min if case == "latency" else max
    for row in rows:
        way = bounds(row["name"], name)
        usable = way not in ("", "touch", "line") and (way not in DIRECT or variant.startswith("alloc-"))
        here = (row["library"], row["case"], row["ranks"], row["variant"]) == \
            ("limits", case, ranks, variant.removeprefix("alloc-"))
        if here and usable:
            fastest[row["bytes"]] = better(fastest.get(row["bytes"], row["median"]), row["median"])
    return fastest


def against_size(rows, key, all_rows, folder):
    """Lines over the message size, both axes logarithmic."""
    case, ranks, name, variant = key
    figure, axes = plt.subplots(figsize=(8, 5))
    for who in libraries(rows):
        points = sorted((row["bytes"], row["median"], row["deviation"]) for row in rows
                        if row["library"] == who and row["bytes"] > 0)
        if points:
            sizes, medians, deviations = zip(*points, strict=True)
            low = [max(median - deviation, median / 10) for median, deviation in zip(medians, deviations, strict=True)]
            high = [median + deviation for median, deviation in zip(medians, deviations, strict=True)]
            axes.plot(sizes, medians, marker="o", markersize=3, color=COLOURS[who], label=TITLES[who])
            axes.fill_between(sizes, low, high, color=COLOURS[who], alpha=0.15, linewidth=0)
    bound = limit_line(all_rows, case, ranks, name, variant)
    if bound:
        axes.plot(sorted(bound), [bound[size] for size in sorted(bound)], color=COLOURS["limits"], linestyle="--",
                  label="fastest bare program")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("bytes")
    axes.set_ylabel(rows[0]["unit"])
    axes.set_title(f"{case}: {name}, {ranks} ranks, {variant} buffers" if name != case else f"{case}, {ranks} ranks, {variant} buffers")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    words = [case] + ([name] if name != case else []) + ([variant] if variant != "-" else []) + [f"{ranks}ranks"]
    save(figure, folder / ("-".join(words) + ".png"))


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
                    error = min(row["deviation"], row["median"] * 0.9)
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
    save(figure, folder / f"{title}.png")


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(source, folder):
    rows = read(source)
    results = [row for row in rows if row["library"] != "limits"]
    for case, of_case in groups(results, "case").items():
        if case[0] in ("latency", "bandwidth", "rate"):
            for key, group in groups(of_case, "case", "ranks", "name", "variant").items():
                against_size(group, key, rows, Path(folder))
        else:
            for variant, group in groups(of_case, "variant").items():
                bars(group, case[0], variant[0], Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
