# SPDX-License-Identifier: MIT
"""The command `ladder study`, which scripts/study calls."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ladder.commands import arguments
from ladder.io.notes import note
from ladder.measure import build, devices, processes
from ladder.measure.progress import Progress
from ladder.measure.results_file import alone
from ladder.measure.runner import NoRowError, Program, heat_warning, not_read
from ladder.measure.study import Measurement
from ladder.model import errors
from ladder.model.errors import LadderError, LostError

if TYPE_CHECKING:
    from ladder.io.results import Results

USAGE = "%(prog)s [-h] [options] [-- FLAGS...]"
DESCRIPTION = """\
Measures the ladders on this machine's GPU, or counts on an emulated one, and draws figures. FLAGS
are passed on to ladder_bench or ladder_bench_emulated, which is built first. <gpu> is the GPU's
name, or emulated-NAME. An emulated study also draws the repository's measurements of the same
ladders.

Results and plots replace earlier ones of the same <gpu>, even if those have more rows; earlier
results are kept as *.json.old, from which `ladder plot` draws the plots again. A row that crashes
is recorded as failed, and the rest is measured in a fresh process. What an interrupted study
measured is kept as study.json.unfinished; --resume continues it.
"""
EPILOG = """\
exit codes: 0 done; 1 rows failed, or the programs cannot be built; 2 wrong usage, no such rows;
  3 results cannot be read; 4 rows could not be measured; 5 --resume with other flags, program or
  GPU; 128 plus the number of the signal that interrupted it
"""

_ROOT = Path(__file__).resolve().parents[3]
_TAKEN = {
    "--benchmark_out": "results go to --output",
    "--details_out": "results go to --output",
    "--samples_out": "use --samples instead",
    "--benchmark_filter": "use --filter instead",
    "--benchmark_list_tests": "measures nothing",
    "--per_line": "needs ladder_bench_emulated itself, see docs/emulator.md",
}
_COUNTERS, _ENERGY = "--hardware_counters", "--energy"
_FAILURES, _NOTES, _REASONS = 5, 3, 3  # said at most
_ROOFS = "^roof/"  # what limits a row is a share of these
_DRAWN = ("svg", "png")  # as this and earlier studies drew them


@dataclass(frozen=True)
class _Plan:
    """What is to be measured, with which program, and where to."""

    output: Path
    gpu: str  # as the results' directory is called
    pattern: str
    flags: list[str]
    target: str
    emulate: bool
    asked: bool  # to emulate; else there is nothing to measure on

    @property
    def folder(self) -> Path:
        return self.output / "results" / self.gpu

    @property
    def plots(self) -> Path:
        return self.output / "plots" / self.gpu


def run(options: argparse.Namespace) -> int:
    """Measure and draw; return the exit code."""
    arguments.refuse(options.flags, _TAKEN)
    if options.retry_failed and not options.resume:
        raise LadderError("--retry-failed needs --resume")
    output = options.output.absolute()
    _writable(output)
    with processes.terminable() as came:
        try:
            return _study(_plan(options, output), options)
        except KeyboardInterrupt:
            said = signal.Signals(came[-1] if came else signal.SIGINT)
    return _end_by(said)


def _end_by(number: signal.Signals) -> int:
    """End as by the signal itself, so that a loop in the caller's shell ends too."""
    sys.stdout.flush()
    print(f"ladder: interrupted by {number.name}", file=sys.stderr, flush=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def _plan(options: argparse.Namespace, output: Path) -> _Plan:
    asked = options.emulate or options.gpu is not None
    found = devices.first()
    lacking = "" if found else "no GPU"
    if not (asked or options.program or build.has_nvcc(_ROOT)):
        lacking = lacking or "no nvcc (CUDA Toolkit 12.6 or later)"
    if lacking and not asked:
        _say(f"{lacking}: counting on an emulated GPU instead")
    flags = [*arguments.shape_flags(options), *options.flags]
    if found and not (asked or lacking):
        pattern = options.filter
        if options.energy:
            flags = [f"{_ENERGY}={options.energy}", *flags]
        if options.hardware_counters:
            pattern, flags = f"({pattern})|{_ROOFS}", [_COUNTERS, *flags]
        return _Plan(output, found, pattern, flags, "ladder_bench", emulate=False, asked=False)
    for flag, asked_for in (
        ("hardware-counters", options.hardware_counters),
        ("energy", options.energy),
        ("samples", options.samples),
    ):
        if asked_for:
            _say(f"--{flag}: an emulated GPU has none")
    gpu = options.gpu or "h200"
    named = [flag.removeprefix("--gpu=") for flag in flags if flag.startswith("--gpu=")]
    return _Plan(
        output,
        f"emulated-{named[-1] if named else gpu}",
        options.filter,
        [f"--gpu={gpu}", *flags],
        "ladder_bench_emulated",
        emulate=True,
        asked=asked,
    )


def _study(plan: _Plan, options: argparse.Namespace) -> int:
    measured = _measured_earlier(plan.pattern) if plan.emulate else {}
    _check_tuning(plan.flags, builds=options.program is None)
    if options.program is None:
        _check_ladders(options.shape)
    try:
        path = options.program or build.build(_ROOT, plan.target)
        program = Program.find(path, plan.flags, plan.pattern, options.timeout)
    except (build.SetupError, NoRowError) as error:
        if plan.asked or not measured or options.shape:
            raise
        _draw_measured(plan.output, measured)
        from ladder.report import closing

        closing.measured_earlier(_overview(measured))
        _say(f"nothing was emulated: {error}")
        _say(f"plots: {plan.output / 'plots'}")
        return errors.OK
    _writable(plan.folder)
    with alone(plan.folder):
        sampled = options.samples and not plan.emulate
        measurement = Measurement(plan.folder, program, emulated=plan.emulate, sampled=sampled)
        failed = _measure(plan, measurement, options)
        if plan.emulate:
            _show_emulated(plan, measurement, measured)
        else:
            _show_timed(plan, measurement)
    if failed:
        where = "above" if len(failed) <= _FAILURES else f"above, and {measurement.path}"
        _say(f"{len(failed)} row{'s' * (len(failed) > 1)} failed: see {where}")
    return errors.FAILED if failed else errors.OK


def _check_tuning(flags: list[str], *, builds: bool) -> None:
    """Raise ResultError for a broken tuning file: a program would only say so once it is built."""
    from ladder.analysis import crossovers

    named = [Path(flag.removeprefix("--tuning=")) for flag in flags if flag.startswith("--tuning=")]
    compiled = sorted((_ROOT / "results").glob("*/tuning.toml")) if builds else []
    for path in [*named, *compiled]:
        crossovers.read(path)


def _check_ladders(shapes: list[str]) -> None:
    """Raise LadderError for a shape of an unknown ladder, likewise before a build."""
    known = sorted(path.parent.name for path in (_ROOT / "kernels").glob("*/ladder.cu"))
    for name in (shape.partition(":")[0] for shape in shapes):
        if known and name not in known:
            raise LadderError(f"--shape: '{name}' is no ladder ({', '.join(known)})")


def _measure(plan: _Plan, measurement: Measurement, options: argparse.Namespace) -> list[str]:
    """Measure, and put the results in the place of earlier ones; return the rows that failed."""
    path = measurement.file.path
    if options.resume:
        measurement.resume()
    elif measurement.interrupted and (kept := measurement.set_aside()):
        _say(f"an interrupted study is kept as {kept}; --resume would have continued it")
    job = measurement.job(retry_failed=options.retry_failed)
    count = len(job.todo)
    gone = f", {len(measurement.program.rows) - count} are there" if options.resume else ""
    doing = "emulating" if plan.emulate else "measuring"
    rows = f"{count} row" + "s" * (count != 1)
    _say(f"{doing} {rows} on {plan.gpu.removeprefix('emulated-')}{gone}")
    if plan.emulate:
        for line in job.program.notes(plan.pattern, options.timeout):
            note(line)
    progress = Progress(job.program.passes * count, _FAILURES)
    # The emulator runs large cases for hours without a new row.
    timeout = float("inf") if plan.emulate else options.timeout
    try:
        measurement.measure(job, timeout, progress)
    except BaseException:
        progress.end()
        if measurement.file.rows:
            _say(f"{measurement.kept} rows are kept in {path}: --resume continues it")
        raise
    progress.end()
    for line in not_read(measurement.file.context) + heat_warning(measurement.file.rows.values()):
        _say(line)
    if not measurement.file.rows:
        raise LostError(f"{measurement.program.path}: no results")
    if plan.emulate and not measurement.counted and measurement.path.exists():
        measurement.discard()
        _say("no row was counted: earlier results stay")
    elif kept := measurement.publish():
        _say(f"earlier results: {kept}")
    return job.failed


def _show_timed(plan: _Plan, measurement: Measurement) -> None:
    from ladder.io.results import load_results
    from ladder.report import closing

    results = load_results([measurement.path])
    _draw(results, plan.plots)
    for result in results:
        closing.timed(result)
    _say(f"results: {measurement.path}")
    _say(f"plots: {plan.plots}")


def _show_emulated(plan: _Plan, measurement: Measurement, measured: _Measured) -> None:
    from ladder.io import files
    from ladder.io.results import load_results
    from ladder.report import closing, table

    names = {name.split("/")[0] for name in measurement.program.rows}
    whole = f"^({'|'.join(sorted(names))})/"  # ladders of which the filter finds rows
    if measured:
        measured = _measured_earlier(whole)
    told = []
    if measurement.counted:
        results = load_results([measurement.path])
        _draw(results, plan.plots)
        _draw_measured(plan.output, measured)
        files.write(plan.plots / "tables.md", table.markdown(results).encode())
        checked = "--check" in plan.flags
        for result in results:
            closing.emulated(result, _overview(measured), checked=checked)
        told = [f"tables: {plan.plots / 'tables.md'}", f"plots: {plan.plots}"]
    else:
        reasons = "; ".join(measurement.reasons[:_REASONS])
        _say("nothing to draw: no row was counted" + f" ({reasons})" * bool(reasons))
        _draw_measured(plan.output, measured)
        if measured:
            closing.measured_earlier(_overview(measured))
    _say(f"results: {measurement.path}")
    for line in told:
        _say(line)
    if measured:
        _say(f"plots of the measurements in results/: {plan.output / 'plots'}")


_Measured = dict[Path, "list[Results]"]  # by directory


def _measured_earlier(pattern: str) -> _Measured:
    """Return what the repository holds of measurements of such rows. Raises ResultError."""
    from ladder.io.results import load_results

    found: _Measured = {}
    for folder in sorted((_ROOT / "results").glob("*/")):
        if folder.name.startswith("emulated-") or not any(folder.glob("*.json*")):
            continue  # GPUs that are tuned may not be measured yet
        kept = [result.keep(re.compile(pattern)) for result in load_results([folder])]
        if any(result.rows and result.source == "timed" for result in kept):
            found[folder] = [result for result in kept if result.rows]
    return found


def _overview(measured: _Measured) -> list[Results]:
    return [result for found in measured.values() for result in found if result.source == "timed"]


def _draw_measured(output: Path, measured: _Measured) -> None:
    if measured:
        _say("drawing the measurements in results/")
    for folder, results in measured.items():
        _draw(results, output / "plots" / folder.name)


def _draw(results: list[Results], folder: Path) -> None:
    """Draw figures; those of earlier results give way: with a filter not all are drawn again."""
    from ladder.report import plots

    _writable(folder)
    notes: list[str] = []
    drawn: list[Path] = []
    try:
        drawn = plots.draw(results, folder, ["svg"], notes.append)
    except LadderError as error:
        if "nothing to plot" not in str(error):
            raise
        notes.append(str(error))  # no failure, as where all rows were skipped
    for form in _DRAWN:
        for path in folder.glob(f"*.{form}"):
            if path not in drawn:
                path.unlink()
    for told in notes[:_NOTES]:
        note(told)
    if len(notes) > _NOTES:
        note(f"and {len(notes) - _NOTES} more, which `ladder plot` tells")


def _writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _CannotWriteError(f"cannot write to {folder}") from error
    if not os.access(folder, os.W_OK):
        raise _CannotWriteError(f"cannot write to {folder}")


class _CannotWriteError(LadderError):
    """A directory that cannot be written to."""

    exit_code = errors.FAILED


def _say(line: str) -> None:
    bold, plain = ("\033[1m", "\033[0m") if sys.stderr.isatty() else ("", "")
    print(f"{bold}{line}{plain}", file=sys.stderr, flush=True)


def _pattern(text: str) -> str:
    arguments.regex(text)
    return text


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.add_argument(
        "--filter",
        type=_pattern,
        default=".",
        metavar="REGEX",
        help="only rows that match, such as '^sgemm/' or '/n:4096/'",
    )
    arguments.add_shapes(parser)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("study"),
        metavar="DIR",
        help="results go to DIR/results/<gpu>/, plots to DIR/plots/<gpu>/; default: study",
    )
    parser.add_argument(
        "--hardware-counters",
        "--hardware_counters",
        action="store_true",
        help="once all rows are timed, run each again and let the GPU count what it does; this "
        "shows why a row is as fast as it is, and takes longer than the timing (needs CUPTI, "
        "permission, and the roof ladder, which is added to the filter)",
    )
    parser.add_argument(
        "--energy",
        nargs="?",
        choices=("headline", "all"),
        const="headline",
        help="once all rows are timed, run each at the headline shape of its ladder or under a "
        "power limit, or all, for one or two seconds, and read power and energy of the board "
        "(needs NVML, which comes with the driver)",
    )
    arguments.add_samples(parser)
    parser.add_argument(
        "--emulate",
        action="store_true",
        help="count what small cases do on an emulated GPU; the default if there is no GPU or no "
        "nvcc",
    )
    parser.add_argument("--gpu", metavar="NAME", help="the GPU to emulate; default: h200")
    parser.add_argument(
        "--resume", action="store_true", help="continue a study that was interrupted"
    )
    parser.add_argument(
        "--retry-failed", action="store_true", help="also measure what failed in it"
    )
    arguments.add_timeout(parser)
    arguments.add_program(parser)
