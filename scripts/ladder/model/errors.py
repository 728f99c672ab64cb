# SPDX-License-Identifier: MIT
"""Failures that the command line reports in one line, each with its exit code."""

import sys

OK, REGRESSION, USAGE, UNREADABLE, LOST_COVERAGE, INCOMPARABLE = range(6)
FAILED = REGRESSION  # rows of a run
INTERRUPTED = 128 + 2  # as shells say of what SIGINT ended


class LadderError(Exception):
    """A failure the user can act on; `exit_code` is what the command returns."""

    exit_code = USAGE


class ResultError(LadderError):
    """A results file that cannot be read or is not a Google Benchmark result."""

    exit_code = UNREADABLE


class LostError(LadderError):
    """Measurements that were wanted and are missing."""

    exit_code = LOST_COVERAGE


class IncomparableError(LadderError):
    """Results that must not be set side by side."""

    exit_code = INCOMPARABLE


def lacking(error: ModuleNotFoundError) -> int:
    """Print which package is not installed; a missing module of our own is a bug, and raised."""
    if (error.name or "ladder").partition(".")[0] == "ladder":
        raise error
    told = f"needs {error.name}: run scripts/study once, or pip install -e ."
    print(f"ladder: {told}", file=sys.stderr)
    return USAGE


def interrupted() -> int:
    """Tell that the user stopped it."""
    print("ladder: interrupted", file=sys.stderr)
    return INTERRUPTED
