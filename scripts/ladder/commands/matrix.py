# SPDX-License-Identifier: MIT
"""The command `ladder matrix`."""

from __future__ import annotations

import argparse
import sys

from ladder.commands.arguments import RESULTS, regex
from ladder.io.notes import note
from ladder.model.errors import OK


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("results", nargs="+", metavar="RESULTS", help=RESULTS)
    parser.add_argument("--ladder", metavar="NAME", help="this ladder alone")
    parser.add_argument(
        "--case",
        type=regex,
        metavar="REGEX",
        help="cases that this is found in, as '/element:4$'; default: each ladder's headline",
    )
    parser.add_argument("--format", choices=["text", "markdown", "csv", "json"], default="text")


def run(options: argparse.Namespace) -> int:
    """Write the matrix; return the exit code."""
    from ladder.io.results import load_results
    from ladder.report import matrix

    results = load_results(options.results)
    for gpu in {result.gpu for result in results if result.source == "emulated"}:
        note(f"{gpu}, emulated: holds no speeds, left out")
    found = list(matrix.matrices(results, options.ladder, options.case))
    forms = {
        "text": matrix.text,
        "markdown": matrix.markdown,
        "csv": matrix.to_csv,
        "json": matrix.to_json,
    }
    sys.stdout.write(forms[options.format](found))
    return OK
