# SPDX-License-Identifier: MIT
"""Text as figures and files can show it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache

_NEAR = 12  # names in a message
_ILLEGIBLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@lru_cache(1000)  # rows have the same keys
def legible(text: str) -> str:
    """Put U+FFFD where a control character stands, or half a surrogate pair.

    Neither fonts nor XML have them, and the latter no file can hold.
    """
    return text if text.isprintable() else _ILLEGIBLE.sub("\ufffd", text)


def in_line(text: str) -> str:
    """Put a text of several lines, as an error of a program may be, in one."""
    return " ".join(part for line in text.splitlines() if (part := line.strip()))


def last_line(text: str) -> str:
    """Return the last line that says anything; empty if none does."""
    return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")


def slug(name: str) -> str:
    """Return a name as paths and links have it: `nvidia-h200`."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def nearest(wanted: str, names: Iterable[str]) -> str:
    """Tell what may have been meant by a name that is not there: `nearest: a, b`, or all names."""
    known = list(names)
    within = [name for name in known if wanted and wanted in name]
    near = [*dict.fromkeys([*within, *get_close_matches(wanted, known, n=5)])]
    return f"nearest: {first_of(near, _NEAR)}" if near else f"there are: {', '.join(known)}"


def first_of(names: Sequence[str], shown: int = 1, between: str = ", ") -> str:
    """Name the first few and count the others: `a, b and 3 more`."""
    left = len(names) - shown
    return between.join(names[:shown]) + (f" and {left} more" if left > 0 else "")
