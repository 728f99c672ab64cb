# SPDX-License-Identifier: MIT
"""Finds what a rung runs in a checkout: its row of the ladder's table, and the kernels it names.

No compiler is asked. Of a ladder are the files `kernels/LADDER/*.cu` and the headers below
`kernels/` which they include. A rung's row is the initializer that says `.name = "RUNG"`, or the
call whose first argument is "RUNG". Its kernels are the `__global__` functions of those files that
the row names by themselves, not as a member or in a namespace, or that a function does which the
row names so, and so on, but for the functions that hold the tables. Which of several runs, a shape
or a template's argument may decide.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

_INERT = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])\'', re.DOTALL
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_NAME = re.compile(r"(?<![\w.:>])(?!\d)\w+\b(?!::)")
_CALL = re.compile(r"\b(\w+)\s*\(")
_TABLE = re.compile(r'\{\s*\.name\s*=\s*"')
_BODY = re.compile(r"\s*(?:const|noexcept|->[^;{}()]*)*\s*\{")
_NO_FUNCTION = {"if", "for", "while", "switch", "catch", "return", "decltype", "sizeof"}
_PAIRS = {"(": ")", "{": "}", "<": ">"}


@dataclass(frozen=True)
class Piece:
    """A part of a file, from a line on."""

    file: str  # as in the checkout
    line: int
    text: str


@dataclass(frozen=True)
class Excerpt:
    """A rung's row and kernels; `why` says why there is no row, or no kernel."""

    row: Piece | None = None
    kernels: list[Piece] = field(default_factory=list)
    why: str = ""


@dataclass(frozen=True)
class _Function:
    piece: Piece
    body: str  # without comments and strings
    is_kernel: bool


class Sources:
    """The kernels of a checkout."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self._ladders: dict[str, tuple[dict[Path, str], dict[str, list[_Function]]]] = {}

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

    def excerpt(self, ladder: str, rung: str) -> Excerpt:
        """Find a rung's row and kernels."""
        if ladder not in self._ladders:
            self._ladders[ladder] = self._read(ladder)
        files, functions = self._ladders[ladder]
        if not files:
            return Excerpt(why=f"there is no kernels/{ladder}/ladder.cu in {self.checkout}")
        for path, text in files.items():
            if span := _row(text, rung):
                row = self._piece(path, text, *span)
                kernels = _kernels(_bare(text)[slice(*span)], functions, set())
                why = "" if kernels else "its row names no kernel of these files"
                return Excerpt(row, list(dict.fromkeys(kernels)), why)
        return Excerpt(why=f"no row of kernels/{ladder} is named {rung}")

    def _read(self, ladder: str) -> tuple[dict[Path, str], dict[str, list[_Function]]]:
        folder = self.checkout / "kernels"
        wanted = sorted((folder / ladder).glob("*.cu")) if re.fullmatch(r"\w+", ladder) else []
        if folder / ladder / "ladder.cu" not in wanted:
            return {}, {}
        texts: dict[Path, str] = {}
        while wanted:
            path = wanted.pop(0)
            if path not in texts and path.is_file():
                texts[path] = path.read_text(encoding="utf-8", errors="replace")
                wanted += [folder / name for name in _INCLUDE.findall(texts[path])]
        functions: dict[str, list[_Function]] = {}
        for path, text in texts.items():
            code = _bare(text)
            for name, start, body, end in _functions(code):
                if _TABLE.search(text, body, end):
                    continue
                piece = self._piece(path, text, _with_comment(text, start), end)
                found = _Function(piece, code[body:end], "__global__" in code[start:body])
                functions.setdefault(name, []).append(found)
        return texts, functions

    def _piece(self, path: Path, text: str, start: int, end: int) -> Piece:
        start = text.rfind("\n", 0, start) + 1
        file = path.relative_to(self.checkout).as_posix()
        return Piece(file, text.count("\n", 0, start) + 1, text[start:end])


@cache
def _bare(text: str) -> str:
    """Blank out comments and what stands in quotes, every other character where it was."""
    return _INERT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _functions(code: str) -> list[tuple[str, int, int, int]]:
    """List the functions that are defined: name, start, start of the body, end."""
    found = []
    for match in _CALL.finditer(code):
        closed = _close(code, match.end() - 1)
        if match[1] in _NO_FUNCTION or not (body := _BODY.match(code, closed)):
            continue
        before = max(code.rfind(mark, 0, match.start()) for mark in ";{}") + 1
        directive = code.rfind("\n#", before, match.start())
        if directive >= 0:
            before = code.find("\n", directive + 1)
        start = before + len(code[before:]) - len(code[before:].lstrip())
        found.append((match[1], start, body.end() - 1, _close(code, body.end() - 1)))
    return found


def _close(code: str, at: int) -> int:
    """Return where the bracket that opens at `at` has been closed; the end if it is not."""
    depth, pair = 0, (code[at], _PAIRS[code[at]])
    for match in re.compile("[" + re.escape("".join(pair)) + "]").finditer(code, at):
        depth += 1 if match[0] == pair[0] else -1
        if depth == 0:
            return match.end()
    return len(code)


def _with_comment(text: str, start: int) -> int:
    """Move a start up over the comment lines right above it."""
    start = text.rfind("\n", 0, start) + 1
    while (line := text.rfind("\n", 0, max(start - 1, 0)) + 1) < start and text[
        line:start
    ].lstrip().startswith("//"):
        start = line
    return start


def _row(text: str, rung: str) -> tuple[int, int] | None:
    """Find the row of a rung: where it starts and ends."""
    code, quoted = _bare(text), re.escape(f'"{rung}"')
    for match in re.finditer(r"\{\s*\.name\s*=\s*" + quoted, text):
        end = _close(code, match.start())
        if not re.search(r"\.rungs\s*=", code[match.start() : end]):  # else a ladder
            return match.start(), end
    for match in re.finditer(r"\b\w+(<[^;{}()]*>)?(\()\s*" + quoted + r"\s*,", text):
        return match.start(), _close(code, match.start(2))
    return None


def _kernels(code: str, functions: dict[str, list[_Function]], seen: set[str]) -> list[Piece]:
    """List the kernels that code names, also through other functions."""
    found = []
    for name in dict.fromkeys(_NAME.findall(code)):
        if name in seen or name not in functions:
            continue
        seen.add(name)
        kernels = [function.piece for function in functions[name] if function.is_kernel]
        found += kernels
        for function in () if kernels else functions[name]:
            found += _kernels(function.body, functions, seen)
    return found
