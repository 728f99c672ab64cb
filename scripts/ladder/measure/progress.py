# SPDX-License-Identifier: MIT
"""How far a run is, on stderr: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import math
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_BETWEEN_LINES = 30.0  # seconds, where lines stay


class Progress:
    """Counts rows, and estimates how long the remaining ones will take.

    Of failed rows it prints the first `failures`, or all if that is None.
    """

    def __init__(self, rows: int, failures: int | None = None) -> None:
        self.done = 0  # rows of the processes that have ended
        self._rows = rows
        self._left_to_say = math.inf if failures is None else failures
        self._started = time.monotonic()
        self._shown = -_BETWEEN_LINES
        self._bar: Bar | None = None
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._bar, self._task = _bar(rows)

    def show(self, more: int, now: str) -> None:
        """Show that `more` rows of the process at work are done, and what that process is."""
        time_now = time.monotonic()
        done, left = self.done + more, ""
        if 0 < done < self._rows:
            left = f"{_words((time_now - self._started) / done * (self._rows - done))} left"
        if self._bar:
            self._bar.start()
            self._bar.update(self._task, completed=done, description=now, left=left, refresh=True)
        elif time_now - self._shown >= _BETWEEN_LINES:
            self._shown = time_now
            line = f"[{done:{len(str(self._rows))}}/{self._rows}] {now}"
            print(", ".join(filter(None, (line, left))), file=sys.stderr, flush=True)

    def add(self, rows: int) -> None:
        """Count more rows."""
        self._rows += rows
        if self._bar:
            self._bar.update(self._task, total=self._rows)

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self.end()
        print(f"ladder: {line}", file=sys.stderr, flush=True)

    def fail(self, name: str, reason: str) -> None:
        """Print that a row failed, unless enough failures were printed."""
        if self._left_to_say > 0:
            self._left_to_say -= 1
            self.say(f"{name}: {reason}")

    def end(self) -> None:
        """Remove the bar."""
        if self._bar:
            self._bar.stop()


def _bar(rows: int) -> tuple[Bar, TaskID]:
    from rich import progress  # takes a while to load
    from rich.console import Console
    from rich.table import Column

    columns = (
        progress.MofNCompleteColumn(),
        progress.BarColumn(16),
        progress.TextColumn(
            "{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)
        ),
        progress.TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True)),
    )
    # No thread that refreshes it: processes are started meanwhile, and little is safe in a fork.
    bar = progress.Progress(
        *columns, console=Console(stderr=True), auto_refresh=False, transient=True, expand=True
    )
    return bar, bar.add_task("", total=rows, left="")


def _words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
