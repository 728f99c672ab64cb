# SPDX-License-Identifier: MIT
"""The command `ladder plot`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ladder.commands.arguments import add_results, selected
from ladder.io.notes import note
from ladder.model import errors


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_results(parser)
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("plots"), metavar="DIR", help="default: plots"
    )
    parser.add_argument(
        "--format", type=_formats, default=["svg"], metavar="svg,png", help="default: svg"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=["*"],
        metavar="FIGURE",
        help="only these, by path in DIR without ending, as 'nvidia-h100/*-climb'; default: all",
    )


def run(options: argparse.Namespace) -> int:
    """Draw the figures; return the exit code."""
    from ladder.report import plots  # matplotlib takes a second to load

    results = selected(options)
    for path in plots.draw(results, options.output, options.format, note, options.only):
        print(path)
    return errors.OK


def _formats(text: str) -> list[str]:
    formats = list(dict.fromkeys(text.split(",")))
    if unknown := set(formats) - {"svg", "png"}:
        raise argparse.ArgumentTypeError(f"unknown format '{min(unknown)}'; there are svg and png")
    return formats
