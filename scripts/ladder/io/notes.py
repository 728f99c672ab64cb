# SPDX-License-Identifier: MIT
"""What is told beside the results: the one way that notes take to stderr."""

from __future__ import annotations

import sys


def note(message: str) -> None:
    """Say on stderr what is no failure."""
    print(f"ladder: note: {message}", file=sys.stderr)
