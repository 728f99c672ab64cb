# SPDX-License-Identifier: MIT
"""What is told beside the results: the one way that notes take to stderr."""

from __future__ import annotations

import sys

from ladder.model.text import in_line

_told: set[str] = set()


def note(message: str) -> None:
    """Say on stderr what is no failure; once, where a command comes by it several times."""
    if message not in _told:
        _told.add(message)
        print(f"ladder: note: {in_line(message)}", file=sys.stderr)


def begin() -> None:
    """Forget what was told: another command begins."""
    _told.clear()
