# SPDX-License-Identifier: MIT
"""Text as figures and files can show it."""

from __future__ import annotations

import re
from functools import lru_cache

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
