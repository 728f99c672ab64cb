# SPDX-License-Identifier: MIT
"""The command `ladder trend`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ladder.commands.arguments import metric_name, regex
from ladder.model.errors import OK, REGRESSION, LadderError

EPILOG = """\
Each commit is a point, the median of its files' medians; a file that names no commit is a point of
its own. Files of one GPU, cache mode and build type make one history; for host code, files of one
executable, number of CPUs, caches and library build, whatever the host's name. PELT finds change
points; the cost is the squared distance of logarithms from the mean of their segment, and the
penalty 6 x ln(runs) x the row's variance. Change points remain if 'ladder compare' would call their
two segments FASTER, SLOWER or CLOCK. A run that differs from both its neighbours is an outlier, so
a change shows once a second run has it. With fewer than 5 runs, neighbours are compared instead.

exit codes:
  0  done                           2  wrong usage, nothing to show
  1  --fail: a row became slower    3  a file cannot be read
                                    5  --noise: of another GPU or cache mode
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    option = parser.add_argument
    option("results", nargs="+", metavar="RESULTS", help="results files, or directories of *.json")
    option("--row", type=regex, metavar="REGEX", help="only rows whose name contains a match")
    option(
        "--metric",
        type=metric_name,
        default="real_time",
        metavar="NAME",
        help="a time or a counter; default: real_time",
    )
    option("--better", choices=["less", "more"], help="for a metric that is not known")
    option("--noise", type=Path, metavar="FILE", help="output of 'ladder noise'")
    option(
        "--repository",
        type=Path,
        metavar="DIR",
        help="order commits by this git repository, not by the dates of the files",
    )
    option("--format", choices=["text", "markdown", "json"], default="text")
    option("--plot", type=_image, metavar="FILE", help="draw the histories, as .svg or .png")
    option("--fail", action="store_true", help="exit 1 if a row's last change made it slower")


def run(options: argparse.Namespace) -> int:
    """Write histories; return the exit code."""
    from ladder.analysis.history import histories
    from ladder.io.results import load_processes, registry_of
    from ladder.report import history_text
    from ladder.stats import metrics
    from ladder.stats.sides import read_floors
    from ladder.stats.trend import trend
    from ladder.stats.verdicts import Rules

    results = load_processes(options.results)
    known = registry_of(results)
    if metrics.is_time(options.metric) or metrics.follows_time(options.metric, known):
        results = [result for result in results if result.source == "timed"]
    metrics.check(options.metric, results)
    floors = read_floors(options.noise, results) if options.noise else None
    rules = Rules(metric=options.metric, better=options.better, pattern=options.row, known=known)
    found = [trend(h, rules, floors) for h in histories(results, options.repository)]
    found = [one for one in found if one.tracks]
    drawable = any(track.levels for one in found for track in one.tracks)
    if not found or (options.plot and not drawable):
        row = f" whose name contains '{options.row.pattern}'" if options.row else ""
        raise LadderError(f"no row{row} has a {options.metric}")
    if options.plot:
        from ladder.report.plots import style
        from ladder.report.plots import trend as figure

        with style.look():
            drawn = figure.draw(found)
            stem, form = options.plot.stem, options.plot.suffix[1:]
            style.save(drawn, options.plot.parent, stem, [form])
    forms = {
        "text": history_text.text,
        "markdown": history_text.markdown,
        "json": history_text.to_json,
    }
    sys.stdout.write(forms[options.format](found))
    slower = any(track.slower for one in found for track in one.tracks)
    return REGRESSION if options.fail and slower else OK


def _image(name: str) -> Path:
    if Path(name).suffix not in (".svg", ".png"):
        raise argparse.ArgumentTypeError(f"'{name}' is neither .svg nor .png")
    return Path(name)
