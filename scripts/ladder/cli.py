# SPDX-License-Identifier: MIT
"""The command line: plot, table, predict and counters, and what the commands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ladder import (
    check_command,
    collect_command,
    compare_command,
    errors,
    files,
    matrix,
    noise_command,
    report_command,
    run_command,
    trend_command,
)
from ladder.arguments import add_results, selected
from ladder.errors import LadderError
from ladder.results import load_results
from ladder.study import describe

_EPILOG = """\
exit codes:
  0  done, and no regression        3  a results file cannot be read
  1  compare, gate, check, and      4  compare, gate, check: rows missing or newly failing
     trend --fail: a regression        noise: not every process came to its end
     predict: an unexplained row       run: rows are missing, as when interrupted
     run: rows failed
  2  wrong usage, nothing to do     5  results that must not be set side by side
                                  130  interrupted (noise and run: 4)
report --base and collect end as compare does, once the report is written.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    flags: list[str] = []
    if arguments[:1] in (["noise"], ["run"]) and "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1 :]
    options = _parser().parse_args(arguments, argparse.Namespace(flags=flags))
    try:
        code = options.run(options)
        sys.stdout.flush()
    except LadderError as error:
        print(f"ladder: {error}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        return errors.lacking(error)
    except KeyboardInterrupt:
        return errors.interrupted()
    except BrokenPipeError:
        # The reader left; keep the interpreter from flushing into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except OSError as error:  # a full disk behind stdout must not look like a regression
        print(f"ladder: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.USAGE
    return code


def _plot(options: argparse.Namespace) -> int:
    from ladder import plots  # matplotlib takes a second to load

    results = selected(options)
    for path in plots.draw(results, options.output, options.format, _note):
        print(path)
    return errors.OK


def _table(options: argparse.Namespace) -> int:
    from ladder import limits, table

    if options.update and options.format != "markdown":
        raise LadderError(f"--update writes Markdown, not --format {options.format}")
    if options.path and (options.update or options.ladder or options.format != "markdown"):
        raise LadderError("--path writes Markdown of its own, without --update, --ladder, --format")
    results = selected(options)
    shown, text = [options.ladder], ""
    if options.path:
        shown, text = [options.path.partition("/")[0]], table.path(results, options.path)
    elif options.update:
        shown = table.update(options.update, results, options.ladder)
    elif options.format == "markdown":
        text = table.markdown(results, options.ladder)
    else:
        text = table.tidy(results, options.format, options.ladder)
    sys.stdout.write(text)
    sys.stdout.flush()
    for result in results:  # once the tables are written: an error comes alone
        if result.source == "timed":
            for problem in limits.problems(result, table.ladders(result, shown)):
                _note(f"{describe(result)}: {problem}")
    return errors.OK


def _predict(options: argparse.Namespace) -> int:
    from ladder import prediction, table

    emulated = [r for r in load_results(options.emulated) if r.source == "emulated"]
    if not emulated:
        raise LadderError(f"{options.emulated}: not an emulated result")
    counters = [r for r in load_results(options.counters) if r.source == "counters"]
    if not counters:
        raise LadderError(f"{options.counters}: no hardware counters")
    for result in emulated:
        prediction.check_gpu(result, counters)
    if options.update:
        results = [*emulated, *counters]
        table.update(options.update, results, "prediction", options.differences)
    code = errors.OK
    for result in emulated:
        measured = prediction.counterpart(result, counters)
        found = prediction.predict(result, measured, options.differences)
        if not options.update:
            print(table.predicted(found, describe(result)))
        code = max(code, found.exit_code)
    return code


def _counters(options: argparse.Namespace) -> int:
    from ladder import counters

    text = counters.convert(options.profile, options.rows, options.like, options.ncu)
    files.write(options.output, text.encode())
    return errors.OK


def _note(message: str) -> None:
    print(f"ladder: note: {message}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong with its arguments in one line, like every other error."""

    def parse_known_args(self, args=None, namespace=None):
        """Refuse what is unknown here, where the command is known whose help tells more."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        self.exit(errors.USAGE, f"ladder: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ladder",
        description="Plots, tables and comparisons of ladder results (Google Benchmark JSON).",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run_command.add(commands, _EPILOG)

    plot = commands.add_parser("plot", help="draw the figures of each ladder and an overview")
    add_results(plot)
    plot.add_argument(
        "-o", "--output", type=Path, default=Path("plots"), metavar="DIR", help="default: plots"
    )
    plot.add_argument(
        "--format", type=_formats, default=["svg"], metavar="svg,png", help="default: svg"
    )
    plot.set_defaults(run=_plot)

    table = commands.add_parser("table", help="write tables, or update those in a README")
    add_results(table)
    table.add_argument("--format", choices=["markdown", "csv", "json"], default="markdown")
    table.add_argument(
        "--ladder", metavar="NAME", help="this table alone: a ladder, 'overview' or 'counters'"
    )
    table.add_argument(
        "--path",
        metavar="LADDER/RUNG",
        help="instead: the rungs that this one builds on, from the first up, with their speeds at "
        "the headline and the gain of each step; of a choice, those of what it chose",
    )
    table.add_argument(
        "--update",
        type=Path,
        metavar="FILE",
        help="replace the tables between '<!-- ladder:table NAME -->' and '<!-- ladder:end -->'",
    )
    table.set_defaults(run=_table)

    report_command.add(commands, _EPILOG)
    compare_command.add(commands, _EPILOG)
    collect_command.add(commands, _EPILOG)
    noise_command.add(commands)
    matrix.add(commands)
    check_command.add(commands)
    trend_command.add(commands)

    predict = commands.add_parser("predict", help="hold emulated counts against the hardware's")
    predict.add_argument("emulated", metavar="EMULATED", help="emulated results")
    predict.add_argument("counters", metavar="COUNTERS", help="what 'ladder counters' wrote")
    predict.add_argument(
        "--differences",
        type=Path,
        metavar="FILE",
        help='TOML lines "ladder/rung" = "why it differs"; default: differences.toml in the '
        "directory above that of COUNTERS, or in it",
    )
    predict.add_argument(
        "--update", type=Path, metavar="FILE", help="replace the table 'prediction' in a document"
    )
    predict.set_defaults(run=_predict)

    counters = commands.add_parser(
        "counters", help="make a results file of a Nsight Compute profile"
    )
    counters.add_argument(
        "--profile", type=Path, required=True, metavar="CSV", help="from ncu --csv --page raw"
    )
    counters.add_argument(
        "--rows",
        type=Path,
        required=True,
        metavar="FILE",
        help="a line for each profiled launch, in order: row name, tab, kernel name",
    )
    counters.add_argument(
        "--like",
        type=Path,
        metavar="RESULTS",
        help="results file of the same rows, whose GPU, commit and ladders are taken over",
    )
    counters.add_argument("--ncu", default="", metavar="VERSION", help="of Nsight Compute")
    counters.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    counters.set_defaults(run=_counters)
    return parser


def _formats(text: str) -> list[str]:
    formats = list(dict.fromkeys(text.split(",")))
    if unknown := set(formats) - {"svg", "png"}:
        raise argparse.ArgumentTypeError(f"unknown format '{min(unknown)}'; there are svg and png")
    return formats
