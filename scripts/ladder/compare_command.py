# SPDX-License-Identifier: MIT
"""The commands compare and gate: their options, what they read and what they write."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ladder import arguments, files
from ladder.errors import IncomparableError, LadderError
from ladder.results import Results, load_processes

if TYPE_CHECKING:  # scipy takes a while to load
    from ladder.compare import Comparison
    from ladder.verdicts import Rules

_MORE = """\
Each file is one process; files of one program on a side are compared as its processes, whose
differences make the interval. FASTER and SLOWER want all of the confidence interval of the ratio
beyond the threshold and the row's own noise, SAME wants it within the threshold; NOISY is neither.
CLOCK: the time moved no further than the SM clock. What is not known of noise is supposed: with
one process a side, runs differ by 0.5% and 0.2 us, and however many there are, changes count beyond
0.1 us only; 'ladder noise' of five processes tells of each row what it is. Of many rows some are
off by chance: FASTER and SLOWER that so many rows explain (Benjamini-Hochberg) are NOISY. Uneven
rows escape that: recorded noise of 925 equal rows fails 37% of runs with one process a side, at
most 11% with three, 1% with five. Run several a side, with --noise.

"""


def add(commands: argparse._SubParsersAction, epilog: str) -> None:
    """Add compare and gate, which share what they compare and how."""
    for name, about, run in (
        ("compare", "compare two runs; the exit code tells the outcome", _compare),
        ("gate", "compare, in one line and an exit code", _gate),
    ):
        parser = commands.add_parser(
            name,
            help=about,
            usage="%(prog)s [OPTIONS] BASE HEAD\n       %(prog)s [OPTIONS] --base RESULTS... "
            "--head RESULTS...",
            epilog=_MORE + epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        _add_options(parser)
        if name == "compare":
            parser.add_argument("--format", choices=["text", "markdown", "json"], default="text")
            parser.add_argument(
                "--all",
                action="store_true",
                help="list also the rows that did not change, as json does",
            )
        parser.set_defaults(run=run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option("results", nargs="*", metavar="BASE HEAD", help="results files or directories")
    option("--base", nargs="+", default=[], metavar="RESULTS", help="any number of them")
    option("--head", nargs="+", default=[], metavar="RESULTS", help="any number of them")
    option(
        "--metric",
        default="real_time",
        metavar="NAME",
        help="cpu_time or a counter of the rows; default: real_time",
    )
    option("--better", choices=["less", "more"], help="where the metric's name does not tell")
    arguments.add_filter(parser)
    option(
        "--map",
        type=_map,
        action="append",
        default=[],
        metavar="'A=>B'",
        help="compare rows of BASE that begin with A, as sgemm/tiled, with those of HEAD that "
        "begin with B and go on alike; may be repeated, and BASE be HEAD",
    )
    add_rules(parser)
    option("--junit", type=Path, metavar="FILE", help="write JUnit XML, a test case a row")


def add_rules(parser: argparse._ActionsContainer) -> None:
    """Add what decides between verdicts."""
    option = parser.add_argument
    option(
        "--threshold",
        type=_threshold,
        default=0.01,
        metavar="FRACTION",
        help="relative change that counts; default: 0.01",
    )
    option(
        "--confidence",
        type=_confidence,
        default=0.95,
        metavar="FRACTION",
        help="of the intervals; default: 0.95",
    )
    option(
        "--noise",
        type=Path,
        metavar="FILE",
        help="what 'ladder noise' wrote: how each row differs from process to process",
    )
    option("--force", action="store_true", help="compare what is incomparable")
    option(
        "--allow",
        type=arguments.regex,
        metavar="REGEX",
        help="rows that may be slower or lost: counted",
    )
    option("--allow-lost", action="store_true", help="any row may be missing or newly failing")


def rules_of(options: argparse.Namespace) -> Rules:
    """Return what `add_rules` and --filter ask for, of times."""
    from ladder.verdicts import Rules

    return Rules(
        options.threshold,
        options.confidence,
        pattern=options.filter,
        allow=options.allow,
        allow_lost=options.allow_lost,
    )


def _compare(options: argparse.Namespace) -> int:
    from ladder import changes

    comparison = _compared(options)
    if options.format == "text" and sys.stdout.isatty():
        changes.terminal(comparison, every=options.all)
    elif options.format == "json":
        sys.stdout.write(changes.to_json(comparison))
    else:
        write = {"text": changes.text, "markdown": changes.markdown}[options.format]
        sys.stdout.write(write(comparison, every=options.all))
    return comparison.exit_code


def _gate(options: argparse.Namespace) -> int:
    from ladder import changes

    comparison = _compared(options)
    print(changes.line(comparison))
    return comparison.exit_code


def _compared(options: argparse.Namespace) -> Comparison:
    from ladder import junit
    from ladder.verdicts import Rules

    rules = Rules(
        options.threshold,
        options.confidence,
        options.metric,
        options.better,
        options.filter,
        options.map,
        options.allow,
        options.allow_lost,
    )
    comparison = compared(*_sides(options), rules, options.noise, force=options.force)
    if options.junit:
        files.write(options.junit, junit.of_comparison(comparison))
    return comparison


def compared(
    base: Sequence[str], head: Sequence[str], rules: Rules, noise: Path | None, *, force: bool
) -> Comparison:
    """Compare the results in files or directories, each file a process.

    `noise` is what 'ladder noise' wrote. Raises LadderError.
    """
    from ladder import metrics
    from ladder.compare import compare

    timed = metrics.is_time(rules.metric) or metrics.follows_time(rules.metric)
    loaded = [load_processes(paths) for paths in (base, head)]
    sides = _of_one_source(loaded, [base, head], timed=timed)
    floors = read_floors(noise, [result for side in sides for result in side]) if noise else None
    return compare(*sides, force=force, floors=floors, rules=rules)


def _sides(options: argparse.Namespace) -> list[list[str]]:
    """Return the paths of base and head, given in either form."""
    named = [options.base, options.head]
    if options.results and not any(named) and len(options.results) == 2:
        return [[path] for path in options.results]
    if not options.results and all(named):
        return named
    raise LadderError("either BASE and HEAD, or --base RESULTS... and --head RESULTS...")


def _of_one_source(
    loaded: list[list[Results]], sides: list[Sequence[str]], *, timed: bool
) -> list[list[Results]]:
    """Leave out what is not timed, or for counters what the other side has none of.

    Raises IncomparableError where a side has no times to compare.
    """
    sources = [{result.source for result in side} for side in loaded]
    for paths, found in zip(sides, sources, strict=True):
        if timed and "timed" not in found:
            what = "emulated" if "emulated" in found else "hardware counters"
            raise IncomparableError(f"{paths[0]}: {what}: holds no speeds to compare")
    common = sources[0] & sources[1]
    kept = next((source for source in ("timed", "counters", "emulated") if source in common), None)
    return [[r for r in side if kept in (None, r.source)] for side in loaded]


def read_floors(path: Path, results: list[Results]):
    """Read the noise floors of the same GPU and cache mode. Raises IncomparableError."""
    from ladder import noise

    context, floors = noise.read(path)
    for key in ("gpu_name", "cache_mode"):
        measured = str(context.get(key, ""))
        if other := [value for r in results if (value := str(r.context.get(key, ""))) != measured]:
            raise IncomparableError(
                f"{path}: noise of {measured or 'an unknown'} {key}, not of {other[0] or 'another'}"
            )
    return floors


def _map(text: str) -> tuple[str, str]:
    left, arrow, right = (part.strip(" /") for part in text.partition("=>"))
    if not (left and arrow and right):
        raise argparse.ArgumentTypeError(f"'{text}' is not A=>B, the beginnings of two rows' names")
    return left, right


def _threshold(text: str) -> float:
    value = _float(text)
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not a fraction of zero or more")
    return value


def _confidence(text: str) -> float:
    value = _float(text)
    if not 0.5 <= value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a fraction of a half or more, below 1")
    return value


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
