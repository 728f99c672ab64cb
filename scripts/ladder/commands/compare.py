# SPDX-License-Identifier: MIT
"""The commands `ladder compare` and `ladder gate`."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ladder.commands import arguments
from ladder.model.errors import LadderError

if TYPE_CHECKING:  # scipy takes a while to load
    from ladder.stats.compare import Comparison
    from ladder.stats.verdicts import Rules

USAGE = """\
%(prog)s [OPTIONS] BASE HEAD
       %(prog)s [OPTIONS] --base RESULTS... --head RESULTS..."""
EPILOG = (
    """\
Each file is one process; files of one program on a side are its processes, whose differences give
the interval. FASTER and SLOWER: the whole confidence interval of the ratio is beyond the threshold
and the row's own noise. SAME: it is within the threshold. NOISY: neither. CLOCK: the time changed
no more than the SM clock. Noise that was not measured is assumed: with one process per side, runs
on a GPU differ by 0.5% and 0.2 us, on a CPU by 13%; with any number, changes on a GPU count only
beyond 0.1 us. 'ladder noise' measures it.
Among many rows, FASTER and SLOWER that chance would explain are NOISY (Benjamini-Hochberg). Rows
with long tails escape that: recorded noise of 925 equal rows fails 35% of runs with one process
per side, 2% with three, none with five. Run several processes per side, with --noise.

"""
    + arguments.EXIT_CODES
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    _add_shared(parser)
    parser.add_argument("--format", choices=["text", "markdown", "json"], default="text")
    parser.add_argument(
        "--distribution",
        action="store_true",
        help="for the rows listed, and rows whose shape differs, show the ratio at the 10th, 50th "
        "and 90th percentile of their samples ('ladder run --samples'; else repetitions), the "
        "distance of the shapes (Kolmogorov-Smirnov), and two modes; verdicts stay the same",
    )
    told = parser.add_mutually_exclusive_group()
    told.add_argument("--all", action="store_true", help="list every row, as json does")
    told.add_argument("--quiet", action="store_true", help="only the outcome, in one line of text")


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ladder gate`, which is `compare --quiet`."""
    _add_shared(parser)
    parser.set_defaults(quiet=True, distribution=False)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option("results", nargs="*", metavar="BASE HEAD", help="results files or directories")
    option("--base", nargs="+", default=[], metavar="RESULTS", help="any number of them")
    option("--head", nargs="+", default=[], metavar="RESULTS", help="any number of them")
    option(
        "--metric",
        type=arguments.metric_name,
        default="real_time",
        metavar="NAME",
        help="cpu_time or a counter of the rows; default: real_time",
    )
    option("--better", choices=["less", "more"], help="for a metric that is not known")
    arguments.add_filter(parser)
    option(
        "--map",
        type=_map,
        action="append",
        default=[],
        metavar="'A=>B'",
        help="compare rows of BASE that begin with A, such as sgemm/tiled, with rows of HEAD that "
        "begin with B and end alike; may be repeated; BASE may be HEAD",
    )
    add_rules(parser)
    option("--junit", type=Path, metavar="FILE", help="write JUnit XML, a test case per row")


def add_rules(parser: argparse._ActionsContainer) -> None:
    """Add what decides between verdicts."""
    option = parser.add_argument
    option(
        "--threshold",
        type=_threshold,
        default=0.01,
        metavar="FRACTION",
        help="relative change that counts; default: 0.01",
    )
    option(
        "--confidence",
        type=_confidence,
        default=0.95,
        metavar="FRACTION",
        help="of the intervals; default: 0.95",
    )
    option(
        "--noise",
        type=Path,
        metavar="FILE",
        help="output of 'ladder noise': how each row differs from process to process",
    )
    option("--force", action="store_true", help="compare even if results are not comparable")
    option(
        "--allow",
        type=arguments.regex,
        metavar="REGEX",
        help="rows that may be slower or lost; they are counted",
    )
    option("--allow-lost", action="store_true", help="any row may be missing or newly failing")


def rules_of(options: argparse.Namespace) -> Rules:
    """Return what `add_rules` and --filter ask for, of times."""
    from ladder.stats.verdicts import Rules

    return Rules(
        options.threshold,
        options.confidence,
        pattern=options.filter,
        allow=options.allow,
        allow_lost=options.allow_lost,
    )


def run(options: argparse.Namespace) -> int:
    """Compare, write all that changed, or the outcome in a line; return the exit code."""
    from ladder.report import comparison_text

    if options.quiet and options.distribution:
        raise LadderError("--quiet writes one line, which does not show --distribution")
    comparison = _compared(options)
    if options.quiet:
        print(comparison_text.line(comparison))
    elif options.format == "text" and sys.stdout.isatty():
        comparison_text.terminal(comparison, every=options.all)
    elif options.format == "json":
        sys.stdout.write(comparison_text.to_json(comparison))
    else:
        write = {"text": comparison_text.text, "markdown": comparison_text.markdown}[options.format]
        sys.stdout.write(write(comparison, every=options.all))
    return comparison.exit_code


def _compared(options: argparse.Namespace) -> Comparison:
    from ladder.io import files
    from ladder.report import junit
    from ladder.stats.sides import compared

    rules = replace(
        rules_of(options),
        metric=options.metric,
        better=options.better,
        maps=options.map,
        distribution=options.distribution,
    )
    base, head = _sides(options)
    comparison = compared(base, head, rules, options.noise, force=options.force)
    if options.junit:
        files.write(options.junit, junit.of_comparison(comparison))
    return comparison


def _sides(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the paths of base and head, given in either form."""
    base, head = options.base, options.head
    if len(options.results) == 2 and not (base or head):
        return options.results[:1], options.results[1:]
    if base and head and not options.results:
        return base, head
    raise LadderError("either BASE and HEAD, or --base RESULTS... and --head RESULTS...")


def _map(text: str) -> tuple[str, str]:
    left, arrow, right = (part.strip(" /") for part in text.partition("=>"))
    if not (left and arrow and right):
        raise argparse.ArgumentTypeError(f"'{text}' is not A=>B, the beginnings of two rows' names")
    return left, right


def _threshold(text: str) -> float:
    value = _float(text)
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not a fraction of zero or more")
    return value


def _confidence(text: str) -> float:
    value = _float(text)
    if not 0.5 <= value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a fraction of a half or more, below 1")
    return value


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
