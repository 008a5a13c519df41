"""Writes a run into a folder: results.md, results.csv, and the plots."""

import os
import subprocess

from . import tables
from .cases import ALL_CASES
from .goals import GOALS, NET_GOALS, Comparison, committed_instructions, goal_table
from .libraries import LIMITS, ROOT


def _versions(figures, libraries):
    return [[who.title, figures.notes.get(who.name, {}).get("library", "no run succeeded")] for who in libraries]


def _case(case, options, figures, libraries):
    lines = []
    for title, ranks, content, failures in tables.sections(case, options, figures, libraries):
        lines += [f"### {title}", "", tables.markdown(*content), "", *(f"- **{text}**" for text in failures)]
        if ranks:
            lines += ["", "<details><summary>minimum, median, mean, deviation</summary>", "",
                      tables.markdown(*tables.statistics_table(case, ranks, figures, [*libraries, LIMITS])), "", "</details>"]
        lines.append("")
    return lines


def markdown(options, folder, figures, libraries, machine):
    """The report as Markdown text."""
    comparison = Comparison(figures, options.peers, committed_instructions())
    lines = ["# Results of bench/compare", "",
             f"{figures.rounds} rounds{', ' + figures.cut_short if figures.cut_short else ''}. "
             "Medians ± standard deviation over the rounds; a ratio is the median of the rounds' ratios.",
             *tables.states(figures),
             f"How it is measured: [README]({os.path.relpath(ROOT / 'bench/README.md', folder.resolve())}).", "",
             tables.markdown(["machine", ""], [list(row) for row in machine.items()]), "",
             tables.markdown(["library", "version"], _versions(figures, libraries)), "",
             "## Goals", "", tables.markdown(*goal_table(comparison, NET_GOALS if options.net else GOALS)), "", "## Cases", ""]
    for name in options.what:
        lines += _case(ALL_CASES[name], options, figures, libraries)
    return "\n".join(lines)


def write(options, folder, figures, libraries, machine):
    """Everything into the folder. Returns a sentence if there are no plots."""
    folder.mkdir(parents=True, exist_ok=True)
    tables.write_csv(folder / "results.csv", figures, ALL_CASES, options.peers)
    (folder / "results.md").write_text(markdown(options, folder, figures, libraries, machine))
    python = ROOT / "build/venv-bench/bin/python"
    if subprocess.run([ROOT / "dev/setup", "bench"], cwd=ROOT, stdin=subprocess.DEVNULL).returncode != 0:
        return "no plots: dev/setup could not install matplotlib"
    result = subprocess.run([python, "-m", "driver.plots", (folder / "results.csv").resolve(), folder.resolve()],
                            cwd=ROOT / "bench", text=True, capture_output=True)
    return None if result.returncode == 0 else "no plots: " + result.stderr.strip().splitlines()[-1]
