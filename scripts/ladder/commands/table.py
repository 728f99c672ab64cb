# SPDX-License-Identifier: MIT
"""The command `ladder table`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ladder.commands import arguments
from ladder.commands.arguments import add_results, selected
from ladder.io.notes import note
from ladder.model import errors
from ladder.model.errors import LadderError

DESCRIPTION = arguments.RUNS


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_results(parser)
    parser.add_argument("--format", choices=["markdown", "text", "csv", "json"], default="markdown")
    parser.add_argument(
        "--ladder",
        metavar="NAME",
        help="only this table: a ladder, 'overview', 'counters', or 'climb/LADDER' (the path to "
        "the best rung, what limited each parent and what each idea changed); for rows without a "
        "ladder 'arguments' (families over an argument) or 'benchmarks' (all rows)",
    )
    parser.add_argument(
        "--metric",
        type=arguments.metric_name,
        metavar="NAME",
        help="for tables over an argument: cpu_time, or a counter such as bytes_per_second; "
        "default: real_time",
    )
    parser.add_argument(
        "--path",
        metavar="LADDER/RUNG",
        help="instead: the rungs that this one builds on, from the first, with their speeds at the "
        "headline and the gain of each step ('--ladder climb/LADDER' says more of the path to the "
        "best rung); for a choice, those of the rung that it chose",
    )
    parser.add_argument(
        "--update",
        type=Path,
        metavar="FILE",
        help="replace the tables between '<!-- ladder:table NAME -->' and '<!-- ladder:end -->'",
    )


def run(options: argparse.Namespace) -> int:
    """Write tables; return the exit code."""
    from ladder.analysis import limits
    from ladder.analysis.study import describe
    from ladder.report import table
    from ladder.report.markdown import plain

    if options.update and options.format != "markdown":
        raise LadderError(f"--update writes Markdown, not --format {options.format}")
    if options.path and (options.update or options.ladder or options.format != "markdown"):
        raise LadderError("--path does not go with --update, --ladder or --format")
    if options.metric and (options.path or options.update or options.format in ("csv", "json")):
        raise LadderError("--metric is for tables over an argument, in Markdown or text")
    results = selected(options)
    if options.metric and all(row.ladder for result in results for row in result.rows):
        raise LadderError("--metric is for rows without a ladder: these results have none")
    shown, text = [options.ladder], ""
    if options.path:
        shown, text = [options.path.partition("/")[0]], table.path(results, options.path)
    elif options.update:
        shown = table.update(options.update, results, options.ladder)
    elif options.format in ("markdown", "text"):
        text = table.markdown(results, options.ladder, options.metric or "real_time")
        text = plain(text) if options.format == "text" else text
    else:
        text = table.tidy(results, options.format, options.ladder)
    sys.stdout.write(text)
    sys.stdout.flush()
    for result in results:  # once the tables are written: an error comes alone
        if result.source == "timed":
            for problem in limits.problems(result, table.ladders(result, shown)):
                note(f"{describe(result)}: {problem}")
    return errors.OK
