# SPDX-License-Identifier: MIT
"""The command `ladder plot`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ladder.commands.arguments import add_results, metric_name, selected
from ladder.io import files
from ladder.io.notes import note
from ladder.model import errors
from ladder.model.errors import LadderError


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_results(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="default: NAME-plots next to the first of RESULTS; required for stdin",
    )
    parser.add_argument(
        "--metric",
        type=metric_name,
        default="real_time",
        metavar="NAME",
        help="for rows without a ladder, over their arguments: cpu_time, or a counter such as "
        "bytes_per_second; default: real_time",
    )
    parser.add_argument(
        "--format", type=_formats, default=["svg"], metavar="svg,png", help="default: svg"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=["*"],
        metavar="FIGURE",
        help="only these, by path in DIR without suffix, such as 'nvidia-h200/*-climb'; "
        "default: all",
    )


def run(options: argparse.Namespace) -> int:
    """Draw the figures; return the exit code."""
    from ladder.report import plots  # matplotlib takes a second to load

    output = options.output or _beside(options.results[0])
    results = selected(options)
    for path in plots.draw(results, output, options.format, note, options.metric, options.only):
        print(path)
    return errors.OK


def _beside(results: str) -> Path:
    """Return where figures go that nobody named a place for. Raises LadderError for stdin."""
    if results == files.STDIN:
        raise LadderError("figures of stdin need a directory: -o DIR")
    path = Path(results)
    path = path if path.name else path.resolve()  # '.', '..'
    name = path.name.removesuffix(".gz")
    stem = name if path.is_dir() else name.removesuffix(".json").removesuffix(".csv")
    return path.with_name(f"{stem}-plots")


def _formats(text: str) -> list[str]:
    formats = list(dict.fromkeys(text.split(",")))
    if unknown := set(formats) - {"svg", "png"}:
        raise argparse.ArgumentTypeError(f"unknown format '{min(unknown)}': use svg or png")
    return formats
