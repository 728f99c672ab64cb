# SPDX-License-Identifier: MIT
"""The command `ladder collect`."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ladder.commands import arguments, compare
from ladder.io.notes import note
from ladder.model.errors import LadderError

if TYPE_CHECKING:  # scipy takes a while to load
    from ladder.report.collected import Outcome

DESCRIPTION = """\
Compares base and head of each GPU in DIR/bench-<gpu>-<commit>, which has the output of 'ladder run
--base' and the file exit_code with its exit code. Writes OUT/summary.md (under 1 MB) and
OUT/junit.xml, and if there are results OUT/report.html and OUT/plots. A GPU that is expected and
has no results is MISSING, which is lost coverage, even with --allow-lost. The exit code is that of
gate for the worst GPU: 3, 5, 1, 4, 2, 0 in this order.
"""
EPILOG = arguments.EXIT_CODES


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the downloaded artifacts")
    parser.add_argument(
        "--expect",
        type=_gpus,
        default=[],
        metavar="GPU,...",
        help="GPUs that must have reported, by the names of their folders",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT")
    arguments.add_filter(parser)
    compare.add_rules(parser.add_argument_group("as in compare"))


def run(options: argparse.Namespace) -> int:
    """Compare, write the files; return the exit code."""
    from ladder.io import files
    from ladder.report import collected, html, junit, plots, summary

    rules = compare.rules_of(options)
    outcomes = collected.judge(
        options.folder, options.expect, rules, options.noise, force=options.force
    )
    code = collected.overall(outcome.code for outcome in outcomes)
    comparison = collected.merged(outcomes, rules)
    results = [result for outcome in outcomes for result in outcome.head]
    top = _top(collected.in_words(code), outcomes)
    rest = summary.markdown(results, comparison, summary.LIMIT - len(top.encode()))
    content = {
        "summary.md": (top + rest).encode(errors="backslashreplace"),
        "junit.xml": junit.of_comparison(comparison),
    }
    if results:
        content["report.html"] = html.write(results, comparison, None)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        files.write(options.output / name, text)
    for outcome in outcomes:
        print(f"{outcome.gpu}: {outcome.verdict}: {outcome.told}")
    sys.stdout.flush()
    try:  # last: the figures are the least of it, and foreign benchmarks have none
        if results:
            plots.draw(results, options.output / "plots", ["svg"], note)
    except LadderError as error:
        note(str(error))
    return code


def _top(word: str, outcomes: list[Outcome]) -> str:
    """Write what came of each GPU in Markdown."""
    from ladder.report import summary

    rows = [(outcome.gpu, outcome.verdict, outcome.told) for outcome in outcomes]
    return summary.table(f"Benchmarks: {word}", ("GPU", "verdict", "found"), rows)


def _gpus(text: str) -> list[str]:
    """Read names that a folder, and so an artifact, can have."""
    names = [name for part in text.split(",") if (name := part.strip())]
    for name in names:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise argparse.ArgumentTypeError(f"'{name}' is not a name of a GPU: [A-Za-z0-9_.-]+")
    return list(dict.fromkeys(names))
