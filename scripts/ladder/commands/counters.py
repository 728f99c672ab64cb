# SPDX-License-Identifier: MIT
"""The command `ladder counters`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ladder.model import errors
from ladder.model.errors import LadderError


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument(
        "counted",
        type=Path,
        nargs="?",
        metavar="RESULTS",
        help="results of a run with --hardware_counters; times are left out",
    )
    parser.add_argument("--profile", type=Path, metavar="CSV", help="from ncu --csv --page raw")
    parser.add_argument(
        "--rows",
        type=Path,
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
    from ladder.io import counted, files, ncu

    of_ncu = (options.profile, options.rows, options.like, options.ncu)
    if options.counted and not any(of_ncu):
        text = counted.convert(options.counted)
    elif options.profile and options.rows and not options.counted:
        text = ncu.convert(*of_ncu)
    else:
        raise LadderError("name the results of a run, or --profile and --rows")
    files.write(options.output, text.encode())
    return errors.OK
