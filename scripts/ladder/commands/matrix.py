# SPDX-License-Identifier: MIT
"""The command `ladder matrix`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ladder.commands.arguments import RESULTS, add_one_run, loaded, metric_name, regex
from ladder.io.notes import note
from ladder.model.errors import OK, IncomparableError, LadderError

DESCRIPTION = """\
Rows without a ladder, such as those of any Google Benchmark suite, have a column for each machine.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("results", nargs="+", metavar="RESULTS", help=RESULTS)
    add_one_run(parser)
    parser.add_argument("--ladder", metavar="NAME", help="only this ladder")
    parser.add_argument(
        "--case",
        type=regex,
        metavar="REGEX",
        help="only cases, and rows without a ladder, whose name contains a match, such as "
        "'/element:4$'; default: each ladder's headline, and all rows without a ladder",
    )
    parser.add_argument(
        "--metric",
        type=metric_name,
        metavar="NAME",
        help="of ladders, show this counter instead of the speed, such as joules or dram_bytes",
    )
    parser.add_argument("--format", choices=["text", "markdown", "csv", "json"], default="text")


def _with_results(paths: list[str]) -> list[str]:
    """Leave out the directories of GPUs that are tuned, but not measured yet."""
    empty = [p for p in paths if Path(p).is_dir() and not any(Path(p).rglob("*.json*"))]
    if len(empty) == len(paths):
        return paths  # reading them says what is wrong
    for path in empty:
        note(f"{path}: no results, left out")
    return [path for path in paths if path not in empty]


def run(options: argparse.Namespace) -> int:
    """Write the matrix; return the exit code."""
    from ladder.analysis.study import studies
    from ladder.report import machines, matrix

    options.results = _with_results(options.results)
    results = loaded(options)
    why = "left out, since it has no speeds"
    if options.metric:
        reads = f"compare --metric {options.metric} reads emulated ones"
        why = f"left out; matrix shows timed results only ({reads})"
    for gpu in {result.gpu for result in results if result.source == "emulated"}:
        note(f"{gpu}, emulated: {why}")
    others = None if options.ladder else machines.machines(results, options.case)
    listed = any(study for r in results if r.source == "timed" for study in studies(r))
    if options.metric and others:
        of = f"--metric is of ladders; compare --metric {options.metric} reads other rows"
        if not listed:
            raise LadderError(f"no row has a ladder: {of}")
        note(f"{len(others.rows)} rows without a ladder left out: {of}")
        others = None
    found = []
    if listed or not others:
        try:
            found = list(
                matrix.matrices(results, options.ladder, options.case, options.metric or "")
            )
        except IncomparableError:
            raise
        except LadderError:
            if not others:  # the case may be of a benchmark alone
                raise
    forms = {
        "text": matrix.text,
        "markdown": matrix.markdown,
        "csv": matrix.to_csv,
        "json": matrix.to_json,
    }
    sys.stdout.write(forms[options.format](found, others))
    return OK
