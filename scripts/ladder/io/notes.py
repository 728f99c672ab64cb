# SPDX-License-Identifier: MIT
"""Notes on stderr, which are no part of the results."""

from __future__ import annotations

import sys

from ladder.model.text import in_line

_told: set[str] = set()


def note(message: str) -> None:
    """Print a note that is no failure to stderr, once per command."""
    if message not in _told:
        _told.add(message)
        print(f"ladder: note: {in_line(message)}", file=sys.stderr)


def begin() -> None:
    """Forget earlier notes: another command begins."""
    _told.clear()
