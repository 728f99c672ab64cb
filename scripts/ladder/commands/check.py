# SPDX-License-Identifier: MIT
"""The command `ladder check`."""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ladder.commands.arguments import add_filter, add_one_run, loaded, matching, metric_name
from ladder.model import units
from ladder.model.errors import OK, IncomparableError, LadderError

if TYPE_CHECKING:
    from ladder.io.results import Results

USAGE = """\
%(prog)s [-h] [--all] [--one-run] --references FILE RESULTS...
       %(prog)s [-h] [--one-run] [--filter REGEX] [--metric NAME]... [--better less|more]
                    [--noise FILE] --write FILE RESULTS..."""
EPILOG = """\
A reference in TOML:

  [[reference]]
  gpu = "NVIDIA H200"        # regular expression of the whole name; default: any
  cache_mode = "cold"        # default: any
  row = "transpose/tiled/rows:8192/columns:8192/element:4"  # the same; /manual_time is optional
  metric = "dram_bytes"      # default: percent_of_ceiling; times are in seconds
  value = 1.08e9
  lower = -0.03              # relative; either bound may be left out
  upper = 0.05
  better = "less"            # for a metric that is not known
  expected_failure = "why"   # XFAIL if worse than its bounds, XPASS if not; lost stays lost

exit codes:
  0  all within bounds, or better   3  a file cannot be read
  1  a row is worse than its bounds 4  a row is missing, skipped or failed
  2  wrong usage, nothing to check  5  results that hold no times
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    option = parser.add_argument
    option("results", nargs="+", metavar="RESULTS", help="results files, or directories of *.json")
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--references", type=Path, metavar="FILE", help="expected values")
    either.add_argument("--write", type=Path, metavar="FILE", help="make such a file of RESULTS")
    add_filter(parser)
    add_one_run(parser)
    option("--all", action="store_true", help="list also the rows that are within their bounds")
    option(
        "--metric",
        type=metric_name,
        action="append",
        metavar="NAME",
        help="metric to write; may be repeated; default: percent_of_ceiling",
    )
    option("--better", choices=["less", "more"], help="for metrics to write that are not known")
    option(
        "--noise",
        type=Path,
        metavar="FILE",
        help="output of 'ladder noise': bounds are twice the spread of a row, at least 2%%; "
        "without it 5%%",
    )


def run(options: argparse.Namespace) -> int:
    """Check or write; return the exit code."""
    results = _timed(options)
    return _write(options, results) if options.write else _check(options, results)


def _timed(options: argparse.Namespace) -> list[Results]:
    results = [r for r in loaded(options) if r.source == "timed"]
    if not results:
        raise IncomparableError(f"{options.results[0]}: has no times to check")
    return matching(results, options.filter)


def _check(options: argparse.Namespace, results: list[Results]) -> int:
    from ladder.stats import references

    if options.metric or options.better or options.noise or options.filter:
        raise LadderError("--filter, --metric, --better and --noise are for --write")
    wanted = references.read(options.references)
    found, others = references.check(results, wanted)
    several = len({finding.where for finding in found}) > 1
    lines = []
    for finding in found:
        if finding.verdict == "OK" and not options.all:
            continue
        reference = finding.reference
        told = _value(reference.metric)
        name = f"{finding.where}: {finding.name}" if several else finding.name
        limits = f"{told(reference.low) or '-'} to {told(reference.high) or '-'}"
        value = told(finding.value) or "unknown"
        expected = f"{reference.metric} {value}, expected {told(reference.value)} ({limits})"
        reason = f": {finding.reason}" if finding.reason else ""
        lines.append(f"{finding.verdict:<7}  {name}  {expected}{reason}")
    counts = Counter(finding.verdict for finding in found)
    summary = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    rest = f"; {others} references are of other GPUs or cache modes" if others else ""
    sys.stdout.write("\n".join([*lines, f"{summary} of {len(wanted)} references{rest}"]) + "\n")
    return references.exit_code(found)


def _value(metric: str) -> Callable[[float], str]:
    """Return what writes a value of `metric`; what is no number is empty."""
    from ladder.stats import metrics

    told = units.duration if metrics.is_time(metric) else "{:.4g}".format
    return lambda value: told(value) if math.isfinite(value) else ""


def _write(options: argparse.Namespace, results: list[Results]) -> int:
    from ladder.io import files
    from ladder.stats import references
    from ladder.stats.sides import read_floors

    if options.write.exists():
        raise LadderError(f"{options.write}: exists, and may have bounds of its own: remove it")
    floors = read_floors(options.noise, results) if options.noise else None
    chosen = options.filter.pattern if options.filter else ""
    wanted = options.metric or [references.METRIC]
    text = references.to_toml(results, wanted, floors, chosen, options.better)
    files.write(options.write, text.encode())
    print(f"{options.write}: {text.count('[[reference]]')} references")
    return OK
