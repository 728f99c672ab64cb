# SPDX-License-Identifier: MIT
"""Arguments that several commands take, the types of their values, and the results they name."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ladder.io.notes import note
from ladder.model.errors import LadderError

if TYPE_CHECKING:
    from ladder.io.results import Results

RESULTS = "results files, '-' for stdin, or directories of *.json; docs/inputs.md has the formats"
EXIT_CODES = """\
exit codes:
  0  done, and no regression        3  a results file cannot be read
  1  compare, gate, check, and      4  compare, gate, check: rows missing or newly failing
     trend --fail: a regression        run: rows are missing, as when interrupted
     predict: an unexplained row
     run: rows failed
  2  wrong usage, nothing to do     5  results that must not be compared
                                  130  interrupted (run: 4)
report --base and collect exit as compare does, once the report is written.
"""

RUNS = """\
Files of one commit (git_commit in their context), GPU or kind of host, build and cache mode are one
run; a row in several of them was repeated. A file that does not name its commit is a run of its
own, unless --one-run makes all such files processes of one run. Rows of the same name are called
PROGRAM:NAME if several programs have them, and NAME#1, NAME#2 if several families of a file do.
"""


def add_results(parser: argparse.ArgumentParser) -> None:
    """Add RESULTS, --filter and --one-run."""
    parser.add_argument("results", nargs="+", metavar="RESULTS", help=RESULTS)
    add_filter(parser)
    add_one_run(parser)


def add_one_run(parser: argparse.ArgumentParser) -> None:
    """Add --one-run."""
    parser.add_argument(
        "--one-run",
        action="store_true",
        help="files that do not name their commit are processes of one run, if program, machine "
        "and build are the same",
    )


def loaded(options: argparse.Namespace) -> list[Results]:
    """Load RESULTS; note how files that may be one run become one. Raises ResultError."""
    from ladder.io.programs import identity
    from ladder.io.results import load_results  # pandas takes a while to load

    results = load_results(options.results, one_run=options.one_run)
    alike: dict[tuple[str, ...], list[Results]] = {}
    for result in results:
        if not result.commit:
            alike.setdefault(identity(result.context), []).append(result)
    for several in alike.values():
        if len(several) > 1:
            told = f"{several[0].program or several[0].file}: {len(several)} files do not name"
            note(f"{told} their commit, so each is a run of its own; --one-run makes them one")
    return results


def add_filter(parser: argparse.ArgumentParser) -> None:
    """Add --filter."""
    parser.add_argument(
        "--filter", type=regex, metavar="REGEX", help="only rows whose name contains a match"
    )


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Add --timeout."""
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=300.0,
        metavar="SECONDS",
        help="end a process that has no new row for this long; default: 300",
    )


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add --program."""
    parser.add_argument(
        "--program", type=Path, metavar="PATH", help="measure with this program, and build none"
    )


def add_shapes(parser: argparse.ArgumentParser) -> None:
    """Add --shape, which the programs parse."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="LADDER:AXIS=N,...",
        help="measure a ladder at these shapes instead of its own, and only ladders that are so "
        "named; may be repeated: sgemm:m=n=k=1024..8192*2 or histogram:bins=3,99,distribution=zipf",
    )


def shape_flags(options: argparse.Namespace) -> list[str]:
    """Return the flags of the programs for the shapes that were asked for."""
    return [f"--shape={shape}" for shape in options.shape]


def add_samples(parser: argparse.ArgumentParser) -> None:
    """Add --samples."""
    parser.add_argument(
        "--samples",
        action="store_true",
        help="keep the samples of all rows too, next to each results file as NAME.samples.jsonl: "
        "for 'ladder compare --distribution' and the figures of 'ladder plot'",
    )


def refuse(flags: Iterable[str], taken: Mapping[str, str]) -> None:
    """Refuse the flags for the program that begin with one that is `taken`, saying why.

    Raises LadderError.
    """
    for flag in flags:
        for name, why in taken.items():
            if flag.startswith(name):
                raise LadderError(f"{flag}: {why}")


def selected(options: argparse.Namespace) -> list[Results]:
    """Load RESULTS, less the rows that --filter does not want. Raises LadderError for no row."""
    return matching(loaded(options), options.filter)


def matching(results: list[Results], pattern: re.Pattern[str] | None) -> list[Results]:
    """Return results less the rows that --filter does not want. Raises LadderError for no row."""
    if pattern is None:
        return results
    kept = [result.keep(pattern) for result in results]
    if not (found := [result for result in kept if result.rows]):
        raise LadderError(f"--filter {pattern.pattern}: no row matches")
    return found


def regex(text: str) -> re.Pattern[str]:
    """Read a regular expression."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a regular expression: {error}"
        ) from error


def metric_name(text: str) -> str:
    """Read the name of a metric."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a metric is empty")
    return text


def whole(least: int) -> Callable[[str], int]:
    """Return what reads a whole number, `least` or more."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of {least} or more")
        return int(text)

    return read


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a time above zero")
    return value
