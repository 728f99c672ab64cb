# SPDX-License-Identifier: MIT
"""The command `ladder counters`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ladder.model import errors


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument(
        "--profile", type=Path, required=True, metavar="CSV", help="from ncu --csv --page raw"
    )
    parser.add_argument(
        "--rows",
        type=Path,
        required=True,
        metavar="FILE",
        help="a line for each profiled launch, in order: row name, tab, kernel name",
    )
    parser.add_argument(
        "--like",
        type=Path,
        metavar="RESULTS",
        help="results file of the same rows; its GPU, commit and ladders are copied",
    )
    parser.add_argument("--ncu", default="", metavar="VERSION", help="version of Nsight Compute")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def run(options: argparse.Namespace) -> int:
    """Write the results file; return the exit code."""
    from ladder.io import files, ncu

    text = ncu.convert(options.profile, options.rows, options.like, options.ncu)
    files.write(options.output, text.encode())
    return errors.OK
