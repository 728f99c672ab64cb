# SPDX-License-Identifier: MIT
"""The command `ladder tune`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from ladder.commands import arguments
from ladder.io import files
from ladder.measure import build, devices, processes, runner
from ladder.measure.progress import Progress
from ladder.measure.results_file import RunFile
from ladder.measure.runner import Job, Program
from ladder.model import errors
from ladder.model.errors import LadderError, LostError
from ladder.model.text import slug

DESCRIPTION = """\
Measures on this GPU where `fastest` and `robust` change from one kernel to another, and writes
results/<gpu>/tuning.toml. Programs that are built afterwards choose by it on this GPU, and on
others that have no file and to which its architecture is the nearest; --tuning=FILE gives them
another one.
"""
EPILOG = arguments.EXIT_CODES

_ROOT = Path(__file__).resolve().parents[3]
_WITHIN = 0.03


def run(options: argparse.Namespace) -> int:
    """Measure both ways of each crossover and write where they meet; return the exit code."""
    from ladder.analysis import crossovers

    if not devices.first() and not options.program:
        raise LadderError("no GPU to tune for")
    if options.output and options.output.exists():
        crossovers.read(options.output)  # refuses what cannot be added to
    path = options.program or build.build(_ROOT, "ladder_bench")
    flags = ["--tune", "--ceilings=false", "--settle=1"]
    with processes.terminable(), tempfile.TemporaryDirectory() as scratch:
        program = Program.find(path, flags, ".", options.timeout)
        known = {name.split("/")[0] for name in program.rows}
        if unknown := [name for name in options.ladders if name not in known]:
            told = f"'{unknown[0]}' has no crossover to tune: {', '.join(sorted(known))} have"
            raise LadderError(told)
        wanted = options.ladders or known
        program = replace(program, rows=[n for n in program.rows if n.split("/")[0] in wanted])
        file = RunFile(Path(scratch) / "tune.json", flags, program.full, program.small)
        job = Job(program, file, program.rows, {})
        progress = Progress(len(program.rows))
        try:
            runner.run([[job]], "none", options.timeout, progress)
        except KeyboardInterrupt as error:
            raise LostError("interrupted: nothing is tuned") from error
        finally:
            progress.end()
    found = crossovers.find(file.rows)
    if not found:
        raise LostError(f"{path}: no crossover could be measured")
    # CUDA's first GPU need not be that of nvidia-smi.
    folder = _ROOT / "results" / slug(str(file.context["gpu_name"]))
    output = options.output or folder / "tuning.toml"
    before = crossovers.read(output) if output.exists() else None
    output.parent.mkdir(parents=True, exist_ok=True)
    files.write(output, crossovers.to_toml(file.context, found, before).encode())
    for each in found:
        changed = "" if each.value == each.before else f", {each.gain():.1%} faster at its probes"
        print(f"{each.name:42} {each.before:12.6g} -> {each.value:12.6g}{changed}")
    promised = [each for each in found if each.choice == "fastest"]  # at each shape
    good, count = crossovers.held_out(promised, _WITHIN)
    if count:
        print(
            f"Tuned by half of the probes, `fastest` is within {_WITHIN:.0%} of the faster way at "
            f"{good} of the other {count}."
        )
    print(f"ladder: {output}", file=sys.stderr)
    return errors.FAILED if job.failed else errors.OK


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("ladders", nargs="*", metavar="LADDER", help="these alone; default: all")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="default: results/<gpu>/tuning.toml of this checkout; what it says of other ladders "
        "stays",
    )
    arguments.add_program(parser)
    arguments.add_timeout(parser)
