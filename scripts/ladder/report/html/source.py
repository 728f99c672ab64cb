# SPDX-License-Identifier: MIT
"""Finds the chapter that a rung belongs to: the file of its kernel, which a page shows as a whole.

A ladder is `kernels/LADDER/*.cu`, whose tables have a row for each rung. The chapters of the rows
below it are named by a comment of file names alone, as `// 01_tiled.cuh`. Where no comment stands
above a row it is the file of the row itself, as of a library.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_FILE = r"\w+\.cuh?"
_CHAPTERS = re.compile(rf"\s*// ({_FILE}(?:, {_FILE})*)")
_ROW = r'\s*(?:.*\.name = |(?!chosen)(?:\w+(?:<[^"]*>)?\()?)"{}"'


@dataclass(frozen=True)
class Place:
    """Where a rung is: its row of the table, and the files of its chapter; or why it is unknown."""

    row: str = ""  # FILE:LINE
    chapters: tuple[str, ...] = ()  # as in the checkout
    why: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The chapters and the file of the row."""
        return (*self.chapters, self.row.partition(":")[0])


class Sources:
    """The kernels of a checkout."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout

    @cached_property
    def commit(self) -> str:
        """The checkout's commit, marked where the kernels differ from it; empty if not known."""
        commit = self._git("rev-parse", "HEAD")
        changed = commit and self._git("status", "--porcelain", "--", "kernels")
        return commit + ("-dirty" if changed else "")

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.checkout), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return ""
        return done.stdout.strip()

    def place(self, ladder: str, rung: str) -> Place:
        """Find a rung's row and chapters."""
        folder = self.checkout / "kernels" / ladder
        if not re.fullmatch(r"\w+", ladder) or not (folder / "ladder.cu").is_file():
            return Place(why=f"there is no kernels/{ladder}/ladder.cu in {self.checkout}")
        is_row = re.compile(_ROW.format(re.escape(rung)))
        for path in sorted(folder.glob("*.cu")):
            chapters = [path.name]
            for number, line in enumerate(self.text(path).splitlines(), 1):
                if named := _CHAPTERS.fullmatch(line):
                    chapters = named[1].split(", ")
                elif is_row.match(line) and rung != ladder:
                    named_files = [self._name(folder / name) for name in chapters]
                    return Place(f"{self._name(path)}:{number}", tuple(named_files))
        return Place(why=f"no row of kernels/{ladder} is named {rung}")

    def text(self, file: str | Path) -> str:
        """Return the text of a file of the checkout; empty where there is none."""
        path = self.checkout / file
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def _name(self, path: Path) -> str:
        return path.relative_to(self.checkout).as_posix()
