# SPDX-License-Identifier: MIT
"""The command `ladder sweep`."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from ladder.commands import arguments
from ladder.io.notes import note
from ladder.measure import build, devices, processes, runner
from ladder.measure.drawing import Range, Space, space
from ladder.measure.process import listed
from ladder.measure.progress import Progress
from ladder.measure.results_file import RunFile
from ladder.measure.runner import Job, Program
from ladder.model import errors
from ladder.model.errors import LadderError

DESCRIPTION = """\
Measures a ladder at shapes that are drawn at random, and writes in Markdown where its choices lose
to a library or to another rung, or are far from a ceiling that is a rung of the ladder. Numbers are
drawn log-uniformly from between the least and the greatest that the ladder is measured at. Two
thirds of the shapes have multiples of 32.
"""
EPILOG = arguments.EXIT_CODES

_ROOT = Path(__file__).resolve().parents[3]
_WITHIN = re.compile(r"([a-z][a-z0-9_]*)=(\d+)\.\.(\d+)")


def run(options: argparse.Namespace) -> int:
    """Draw, measure and tell; return the exit code."""
    code = errors.OK
    if options.output.is_dir():
        raise LadderError(f"{options.output}: a directory, not a file")
    if options.output.exists() and not options.resume:
        print(f"ladder: {options.output}: as measured before", file=sys.stderr)
    else:
        code = _measure(options)
    from ladder.analysis.study import studies
    from ladder.io.results import load_results
    from ladder.report import drawn

    found = [study for result in load_results(options.output) for study in studies(result)]
    own = [study for study in found if study.ladder.name == options.ladder]
    if not own:
        raise LadderError(f"{options.output}: no rows of ladder '{options.ladder}'")
    print("\n\n".join(map(drawn.text, own)))
    print(f"ladder: {options.output}", file=sys.stderr)
    failed = any(row.status == "error" for study in own for row in study.rows)
    return code or (errors.FAILED if failed else errors.OK)


def _measure(options: argparse.Namespace) -> int:
    """Draw and measure; return the exit code."""
    if not devices.first() and not options.program:
        raise LadderError("no GPU to measure")
    path = options.program or build.build(_ROOT, "ladder_bench")
    shapes = _space(path, options).shapes(options.draw, options.seed)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    if not shapes:
        raise LadderError("every shape of these ranges is larger than any that is measured")
    if len(shapes) < options.draw:
        note(f"only {len(shapes)} different shapes were found")
    flags = [*(f"--shape={shape}" for shape in shapes), "--ceilings=false", *options.flags]
    with processes.terminable():
        program = Program.find(path, flags, options.filter or ".", options.timeout)
        file = RunFile(options.output, flags, program.full, program.small)
        if options.resume:
            file.resume(program.later)
        job = Job(program, file, file.missing(program.rows), {})
        progress = Progress(len(job.todo))
        try:
            runner.run([[job]], "none", options.timeout, progress)
        except KeyboardInterrupt:
            progress.say("interrupted: the report is of what was measured; --resume continues")
        finally:
            progress.end()
    if not file.rows:
        raise LadderError(f"{path}: nothing was measured")
    missing = len(program.rows) - len(file.rows)
    return errors.LOST_COVERAGE if missing else errors.FAILED if job.failed else errors.OK


def _space(path: Path, options: argparse.Namespace) -> Space:
    """Return what to draw from. Raises LadderError for a ladder or an axis that is not there."""
    command = [str(path.resolve())]
    rows = listed([*command, "--cases=full"], options.timeout)
    known = dict.fromkeys(name.split("/")[0] for name in rows)
    if options.ladder not in known:
        raise LadderError(f"no ladder '{options.ladder}': {', '.join(known)} are there")

    def takes(shape: str) -> bool:
        try:
            return bool(listed([*command, f"--shape={shape}"], options.timeout))
        except LadderError:
            return False

    return space(options.ladder, rows, dict(options.within), takes)


def _within(text: str) -> tuple[str, Range]:
    match = _WITHIN.fullmatch(text)
    if not match or not 1 <= int(match[2]) <= int(match[3]):
        raise argparse.ArgumentTypeError(f"'{text}' is not AXIS=LOW..HIGH")
    return match[1], Range(int(match[2]), int(match[3]))


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("ladder", metavar="LADDER")
    parser.add_argument(
        "--draw",
        type=arguments.whole(1),
        default=100,
        metavar="N",
        help="number of shapes; default: 100",
    )
    parser.add_argument(
        "--seed",
        type=arguments.whole(0),
        default=1,
        metavar="N",
        help="of the random numbers; default: 1",
    )
    parser.add_argument(
        "--within",
        type=_within,
        action="append",
        default=[],
        metavar="AXIS=LOW..HIGH",
        help="draw an axis from this range; may be repeated",
    )
    parser.add_argument("--filter", metavar="REGEX", help="only rows that --benchmark_filter finds")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="the results file; if it exists, it is reported and nothing is measured",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="measure the rows that FILE lacks; the other arguments must be the same",
    )
    arguments.add_program(parser)
    arguments.add_timeout(parser)
