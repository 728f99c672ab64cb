# SPDX-License-Identifier: MIT
"""Failures that the command line reports in one line, each with its exit code."""

OK, REGRESSION, USAGE, UNREADABLE, LOST_COVERAGE, INCOMPARABLE = range(6)
FAILED = REGRESSION  # rows of a run


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
