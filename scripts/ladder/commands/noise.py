# SPDX-License-Identifier: MIT
"""The command `ladder noise`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ladder.commands import arguments
from ladder.io import files
from ladder.model import errors
from ladder.model.errors import LadderError, LostError

USAGE = """\
%(prog)s [-h] [--processes N] [--timeout SECONDS] [--filter REGEX] [-o FILE] PROGRAM [-- FLAGS...]
       %(prog)s [-h] [--filter REGEX] [-o FILE] --from RESULTS..."""


_TAKEN = {
    "--benchmark_out": "use --output instead",
    "--benchmark_filter": "use --filter instead",
    "--samples_out": "what is compared are medians",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("program", nargs="?", type=Path, metavar="PROGRAM", help="ladder_bench")
    parser.add_argument(
        "--processes",
        type=arguments.whole(2),
        default=5,
        metavar="N",
        help="number of processes to run, one after the other; default: 5",
    )
    arguments.add_timeout(parser)
    parser.add_argument(
        "--from",
        dest="results",
        nargs="+",
        metavar="RESULTS",
        help="results of one program on one GPU, instead of running it",
    )
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
    """Run or read, write what differs; return the exit code."""
    from ladder.stats import noise

    if bool(options.program) == bool(options.results):
        raise LadderError("noise: name either a program to run, or --from and its results")
    if options.results:
        return _write(options.results, options.output, options.filter)
    arguments.refuse(options.flags, _TAKEN)
    flags = [f"--benchmark_filter={options.filter.pattern}"] if options.filter else []
    with files.kept_unless_done(options.output) as folder:
        paths = noise.run(
            options.program,
            options.processes,
            [*flags, *options.flags],
            folder,
            options.timeout,
        )
        if len(paths) > 1:
            _write(paths, options.output)
        if len(paths) < options.processes:
            told = f"{len(paths)} of {options.processes} processes finished"
            raise LostError(f"{told}, kept in {folder}" if paths else told)
    return errors.OK


def _write(
    paths: Sequence[str | Path], output: Path, pattern: re.Pattern[str] | None = None
) -> int:
    from ladder.stats import noise

    found = noise.noise(paths, pattern)
    files.write(output, noise.to_json(found).encode())
    sys.stdout.write(noise.summary(found))
    return errors.OK
