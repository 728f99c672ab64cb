# SPDX-License-Identifier: MIT
"""The command `ladder run`."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from pathlib import Path

from ladder.commands import arguments
from ladder.io import files
from ladder.io.notes import note
from ladder.measure import devices, processes, runner
from ladder.measure.progress import Progress
from ladder.measure.results_file import RunFile, alone
from ladder.measure.runner import SPLITS, Job, Program
from ladder.model import errors
from ladder.model.errors import LadderError, LostError
from ladder.model.text import in_line

USAGE = "%(prog)s [-h] -o PATH [options] PROGRAM [-- FLAGS...]"
DESCRIPTION = """\
Runs each ladder of a benchmark program in a process of its own. If a row crashes, hangs or leaves
CUDA in error, it is recorded as failed, and the next rows are measured in a fresh process. The
results file is complete JSON at any moment; --resume continues it.
"""
EPILOG = arguments.EXIT_CODES

_TO_COMPARE = 3  # processes per side

_TAKEN = {
    "--benchmark_out": "use --output instead",
    "--benchmark_filter": "use --filter instead",
    "--benchmark_list_tests": "measures nothing",
    "--details_out": "needs a single process",
    "--samples_out": "use --samples instead",
}


def run(options: argparse.Namespace) -> int:
    """Run what the options say; return the exit code."""
    if options.processes is None:
        options.processes = _TO_COMPARE if options.base else 1
    options.split = options.split or ("rung" if options.base else "ladder")
    gpus = _check(options)
    try:
        with processes.terminable():
            programs = _programs(options)
            told = (p.notes(options.filter or ".", options.timeout) for p in programs.values())
            for line in dict.fromkeys(line for lines in told for line in lines):
                note(line)
            folder = options.output
            with alone(folder.parent if folder.suffix == ".json" else folder):
                rounds = [_rounds(options, programs, gpu) for gpu in gpus]
                if len(gpus) > 1 and not options.in_turn:
                    return _measure_at_once(rounds, options)
                return _measure(rounds, options)
    except KeyboardInterrupt as error:
        raise LostError("interrupted before the first row") from error


def _measure_at_once(devices: list[list[list[Job]]], options: argparse.Namespace) -> int:
    """Measure the rounds of each device in a process of its own; return the gravest exit code."""
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_child, args=(rounds, options)) for rounds in devices]
    for child in children:
        child.start()
    try:
        for child in children:
            child.join()
    except KeyboardInterrupt:
        for child in children:
            child.terminate()  # it says what it has
            child.join()
    codes = [child.exitcode for child in children]
    return max(code if code is not None and code >= 0 else errors.LOST_COVERAGE for code in codes)


def _child(rounds: list[list[Job]], options: argparse.Namespace) -> None:
    processes.end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal; the parent passes it on once
    os.environ["TERM"] = "dumb"  # bars of several processes would overwrite each other
    try:
        code = _measure([rounds], options)
    except LadderError as error:
        print(f"ladder: {in_line(str(error))}", file=sys.stderr)
        code = error.exit_code
    sys.exit(code)


def _measure(devices: list[list[list[Job]]], options: argparse.Namespace) -> int:
    """Measure the rounds of each device in turn, and say what came of it."""
    jobs = [job for rounds in devices for jobs in rounds for job in jobs]
    progress = Progress(sum(job.program.passes * len(job.todo) for job in jobs))
    code = errors.OK
    try:
        for rounds in devices:
            runner.run(rounds, options.split, options.timeout, progress)
        progress.end()
    except KeyboardInterrupt:
        progress.say("interrupted: --resume continues from here")
        code = errors.LOST_COVERAGE
    except LadderError:
        progress.end()
        if any(job.file.rows for job in jobs):
            _summary(jobs)
        raise
    return max(code, _summary(jobs))


def _check(options: argparse.Namespace) -> list[devices.Gpu | None]:
    """Refuse flags that do not go together; return the GPUs to measure, None for the program's."""
    taken = _TAKEN | ({"--device": "--devices names it"} if options.devices else {})
    arguments.refuse(options.flags, taken)
    if options.in_turn and not options.devices:
        raise LadderError("--in-turn goes with --devices")
    if options.retry_failed and not options.resume:
        raise LadderError("--retry-failed needs --resume")
    several = options.devices or options.base or options.processes > 1
    if several and options.output.suffix == ".json":
        raise LadderError(f"{options.output}: several results: name a directory")
    return [*devices.select(options.devices)] if options.devices else [None]


def _programs(options: argparse.Namespace) -> dict[str, Program]:
    paths = (
        {"base": options.base, "head": options.program} if options.base else {"": options.program}
    )
    pattern = options.filter or "."
    return {
        side: Program.find(
            path, [*arguments.shape_flags(options), *options.flags], pattern, options.timeout
        )
        for side, path in paths.items()
    }


def _rounds(
    options: argparse.Namespace, programs: dict[str, Program], gpu: devices.Gpu | None
) -> list[list[Job]]:
    """Return the jobs on a GPU, of each round those to be run in turn."""
    numbers = [str(n + 1) for n in range(options.processes)] if options.processes > 1 else [""]
    return [
        [_job(options, program, gpu, [side, number]) for side, program in programs.items()]
        for number in numbers
    ]


def _job(
    options: argparse.Namespace, program: Program, gpu: devices.Gpu | None, parts: list[str]
) -> Job:
    named = [part for part in [gpu.slug if gpu else "", *parts] if part]
    path = options.output
    if path.suffix != ".json":
        path = path.joinpath(*named[:-1], f"{named[-1] if named else 'study'}.json")
    file = RunFile(path, program.flags, program.full, program.small)
    samples = files.samples_beside(path)
    if options.resume:
        file.resume(program.later)
    elif found := [each for each in (path, samples) if each.exists()]:
        raise LadderError(f"{found[0]}: exists already: --resume continues it")
    # What is measured again must not be told by the samples of before.
    flags = program.samples_to(samples) if options.samples or samples.exists() else []
    path.parent.mkdir(parents=True, exist_ok=True)
    todo = file.missing(program.rows, or_failed=options.retry_failed)
    label = f" ({' '.join(named)})" if named else ""
    return Job(program, file, todo, gpu.environment if gpu else {}, label, flags)


def _summary(jobs: list[Job]) -> int:
    """Say what each file holds; return the exit code."""
    code = errors.OK
    for job in jobs:
        rows, failed = job.program.rows, len(job.failed)
        missing = sum(name not in job.file.rows for name in rows)
        told = f"{len(rows) - missing} of {len(rows)} rows"
        if failed:
            told += f", {failed} of them failed"
            code = max(code, errors.FAILED)
        if missing:
            code = errors.LOST_COVERAGE
        warning = runner.heat_warning(job.file.rows.values())
        for line in [*runner.not_read(job.file.context), *warning, told]:
            print(f"ladder: {job.file.path}: {line}", file=sys.stderr)
    return code


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument("program", type=Path, metavar="PROGRAM", help="ladder_bench")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="PATH",
        help="FILE.json; or a directory, for study.json or for [GPU/](base|head)[/N].json",
    )
    parser.add_argument("--filter", metavar="REGEX", help="only rows that --benchmark_filter finds")
    arguments.add_shapes(parser)
    parser.add_argument(
        "--base", type=Path, metavar="BIN", help="measure this program too, in turn with PROGRAM"
    )
    parser.add_argument(
        "--processes",
        type=arguments.whole(1),
        metavar="N",
        help=f"processes of each program; default: 1, with --base {_TO_COMPARE}, since comparing "
        "two programs needs the difference between processes of one",
    )
    parser.add_argument(
        "--devices",
        metavar="all|0,1",
        help="measure these GPUs, as nvidia-smi numbers them, all at once",
    )
    parser.add_argument(
        "--in-turn", action="store_true", help="measure one of --devices after the other"
    )
    arguments.add_timeout(parser)
    parser.add_argument(
        "--split",
        choices=list(SPLITS),
        help="start a fresh process for each of these, and after failures; default: ladder, with "
        "--base rung: the two programs take turns",
    )
    arguments.add_samples(parser)
    parser.add_argument("--resume", action="store_true", help="measure rows that the results lack")
    parser.add_argument("--retry-failed", action="store_true", help="also measure rows that failed")
