# SPDX-License-Identifier: MIT
"""The command line: finds the command, and ends as it ends."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ladder.commands.arguments import EXIT_CODES
from ladder.io import notes
from ladder.model import errors
from ladder.model.errors import LadderError
from ladder.model.text import in_line

# In the order of --help. Each is a module here: what it takes, and `run`, which imports the rest.
COMMANDS = {
    "study": "build, measure this machine's GPU or count on an emulated one, and draw figures",
    "run": "measure; a crash or a hang costs one row only",
    "tune": "find where choices change kernels on this GPU",
    "sweep": "measure a ladder at drawn shapes, and tell where it loses",
    "plot": "draw the figures of each ladder and an overview",
    "table": "write tables, or update those in a README",
    "report": "one HTML file of everything, a summary in Markdown and JUnit XML",
    "compare": "compare two runs; the exit code says the outcome",
    "gate": "compare, in one line and an exit code",
    "collect": "compare what several GPUs measured, with one report of all, for CI",
    "noise": "how far the rows of one program differ from process to process",
    "matrix": "rungs by GPUs: speed, percent of each GPU's own roof, which rung wins where",
    "check": "compare results with expected values; exit 1 if one is worse",
    "trend": "the history of rows over commits, with its change points",
    "predict": "compare emulated counts with those of the hardware",
    "counters": "make a results file of what a run or Nsight Compute counted",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    flags: list[str] = []
    notes.begin()
    if arguments[:1] in (["run"], ["study"], ["sweep"]) and "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1 :]
    options = _parser(arguments).parse_args(arguments, argparse.Namespace(flags=flags))
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except LadderError as error:
        print(f"ladder: {in_line(str(error))}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        return errors.lacking(error)
    except KeyboardInterrupt:
        return errors.interrupted()
    except BrokenPipeError:
        # The reader left; keep the interpreter from flushing into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except OSError as error:
        told = f"{error.filename or 'output'}: {error.strerror}"
        print(f"ladder: {in_line(told)}", file=sys.stderr)
        if not error.filename:  # a full disk behind stdout must not look like a regression
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.USAGE
    return code


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong with its arguments in one line, like every other error."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str], namespace: argparse.Namespace
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse what is unknown here, where the command is known whose help tells more."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        self.exit(errors.USAGE, f"ladder: error: {message} (see {self.prog} --help)\n")


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser of all commands, of which the one that `arguments` name has its options."""
    parser = _Parser(
        prog="ladder",
        description="Plots, tables and comparisons of ladder results (Google Benchmark JSON).",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    named = next((word for word in arguments if not word.startswith("-")), "")
    for name, about in COMMANDS.items():
        command = commands.add_parser(
            name, help=about, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name == named:
            module = importlib.import_module(f"ladder.commands.{name}")
            command.usage = getattr(module, "USAGE", None)
            command.description = getattr(module, "DESCRIPTION", None)
            command.epilog = getattr(module, "EPILOG", None)
            module.add(command)
            command.set_defaults(run=module.run)
    return parser
