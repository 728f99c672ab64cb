# SPDX-License-Identifier: MIT
"""How far a run is, on stderr: one line over the last on a terminal, elsewhere one now and then."""

from __future__ import annotations

import shutil
import sys
import time

_BETWEEN_LINES = 30.0  # seconds, where lines stay


class Progress:
    """Counts rows, and tells from those done how long the others will take."""

    def __init__(self, rows: int) -> None:
        self.done = 0  # rows of the processes that have ended
        self._rows = rows
        self._started = time.monotonic()
        self._shown = -_BETWEEN_LINES
        self._over = sys.stderr.isatty()

    def show(self, more: int, now: str) -> None:
        """Show that `more` rows of the process at work are done, and what that process is."""
        time_now = time.monotonic()
        if not self._over and time_now - self._shown < _BETWEEN_LINES:
            return
        self._shown = time_now
        done = self.done + more
        line = f"[{done:{len(str(self._rows))}}/{self._rows}] {now}"
        if 0 < done < self._rows:
            line += f", {_words((time_now - self._started) / done * (self._rows - done))} left"
        if self._over:
            line = f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}"
        print(line, end="" if self._over else "\n", file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        """Say what is to stay."""
        self.end()
        print(f"ladder: {line}", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Take the line away."""
        if self._over:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
