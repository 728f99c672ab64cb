# SPDX-License-Identifier: MIT
"""The command `ladder report`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ladder.commands import arguments, compare
from ladder.io.notes import note
from ladder.model import errors
from ladder.model.errors import LadderError

DESCRIPTION = """\
Writes DIR/report.html, which needs no other file and no network; DIR/summary.md, under 1 MB, for a
job's summary; and DIR/junit.xml, a test case per row. With --base all three show what changed, and
the exit code is that of compare.
"""
EPILOG = f"{arguments.RUNS}\n{arguments.EXIT_CODES}"


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    arguments.add_results(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--source",
        type=Path,
        metavar="DIR",
        help="checkout whose kernels are shown; default: that of this command, if it has kernels/",
    )
    parser.add_argument(
        "--base",
        nargs="+",
        metavar="RESULTS",
        help="results to compare with; each file is one process, on either side",
    )
    compare.add_rules(parser.add_argument_group("with --base, as in compare"))


def run(options: argparse.Namespace) -> int:
    """Write the files; return the exit code."""
    from ladder.io import files
    from ladder.report import html, junit, summary
    from ladder.report.html import charts
    from ladder.report.plots import parallel
    from ladder.stats.sides import compared
    from ladder.stats.verdicts import Rules

    asked = compare.rules_of(options)
    if not options.base and (
        options.noise or options.force or asked != Rules(pattern=options.filter)
    ):
        raise LadderError("nothing to compare with: name it with --base")
    checkout = _checkout(options.source)
    comparison = None
    if options.base:
        comparison = compared(
            options.base, options.results, asked, options.noise, force=options.force
        )
        results = arguments.loaded(options)
        if options.filter:  # all rows, where it finds some in base alone
            kept = [result.keep(options.filter) for result in results]
            results = [result for result in kept if result.rows] or results
    else:
        results = arguments.selected(options)
    content = {
        "report.html": lambda: html.write(results, comparison, checkout),
        "summary.md": lambda: summary.markdown(results, comparison).encode(
            errors="backslashreplace"
        ),
        "junit.xml": lambda: (
            junit.of_comparison(comparison) if comparison else junit.of_results(results)
        ),
    }
    texts = parallel.run(list(content.values()))
    options.output.mkdir(parents=True, exist_ok=True)
    for name, text in zip(content, texts, strict=True):
        files.write(options.output / name, text)
        print(options.output / name)
    if not charts.available():
        note("no interactive charts: pip install '.[charts]' in the checkout adds them")
    return comparison.exit_code if comparison else errors.OK


def _checkout(given: Path | None) -> Path | None:
    """Return where the kernels' source is: as given, or where these scripts are, if it is there."""
    checkout = given or Path(__file__).resolve().parents[3]
    if (checkout / "kernels").is_dir():
        return checkout
    if given:
        raise LadderError(f"{given}: no directory of kernels in it")
    return None
