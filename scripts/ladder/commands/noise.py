# SPDX-License-Identifier: MIT
"""The command `ladder noise`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ladder.commands import arguments
from ladder.io import files
from ladder.model import errors

DESCRIPTION = """\
Says how far the medians of each row are apart in several processes of one program on one GPU, each
with a results file, as `ladder run PROGRAM -o DIR --processes 5 --split none` writes them.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("results", nargs="+", metavar="RESULTS", help=arguments.RESULTS)
    arguments.add_filter(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(files.NOISE),
        metavar="FILE",
        help="default: noise.json",
    )


def run(options: argparse.Namespace) -> int:
    """Write what differs; return the exit code."""
    from ladder.stats import noise

    found = noise.noise(options.results, options.filter)
    files.write(options.output, noise.to_json(found).encode())
    sys.stdout.write(noise.summary(found))
    return errors.OK
