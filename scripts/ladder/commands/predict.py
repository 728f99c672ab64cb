# SPDX-License-Identifier: MIT
"""The command `ladder predict`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ladder.model import errors
from ladder.model.errors import LadderError


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("emulated", metavar="EMULATED", help="emulated results")
    parser.add_argument("counters", metavar="COUNTERS", help="output of 'ladder counters'")
    parser.add_argument(
        "--differences",
        type=Path,
        metavar="FILE",
        help='TOML lines "ladder/rung" = "why it differs"; default: differences.toml in the '
        "parent of the directory of COUNTERS, or in that directory",
    )
    parser.add_argument(
        "--update", type=Path, metavar="FILE", help="replace the table 'prediction' in a document"
    )


def run(options: argparse.Namespace) -> int:
    """Compare predictions with counters; return the exit code."""
    from ladder.analysis import prediction
    from ladder.analysis.study import describe
    from ladder.io.results import load_results
    from ladder.report import table

    emulated = [r for r in load_results(options.emulated) if r.source == "emulated"]
    if not emulated:
        raise LadderError(f"{options.emulated}: not an emulated result")
    counters = [r for r in load_results(options.counters) if r.source == "counters"]
    if not counters:
        raise LadderError(
            f"{options.counters}: no file of counters: make one with `ladder counters`"
        )
    for result in emulated:
        prediction.check_gpu(result, counters)
    if options.update:
        results = [*emulated, *counters]
        table.update(options.update, results, "prediction", options.differences)
    code = errors.OK
    for result in emulated:
        measured = prediction.counterpart(result, counters)
        found = prediction.predict(result, measured, options.differences)
        if not options.update:
            print(table.predicted(found, describe(result)))
        code = max(code, found.exit_code)
    return code
