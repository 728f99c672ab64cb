# SPDX-License-Identifier: MIT
"""Finds results files and reads the JSON that each version of Google Benchmark writes."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from ladder.io import library_fields
from ladder.model.errors import LadderError, ResultError
from ladder.model.text import legible

_ESCAPE = re.compile(r"\\[bfu]")  # what may be illegible in the JSON of ASCII

# What stands beside results and is none itself: of an emulated one its details, of several noise.
DETAILS, NOISE = "details.json", "noise.json"


def find(paths: Iterable[str | PathLike[str]]) -> list[Path]:
    """List the files, and every *.json below the directories, each once and in order.

    Files named `DETAILS` or `NOISE` are left out of directories. Raises ResultError for a directory
    without any file.
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        inside = [path]
        if path.is_dir():
            aside = (DETAILS, NOISE)
            inside = sorted(p for p in path.rglob("*.json") if p.is_file() and p.name not in aside)
        if not inside:
            raise ResultError(f"{path}: no *.json below this directory")
        for file in inside:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def read(path: Path) -> dict[str, Any]:
    """Return a results file's JSON. Raises ResultError saying what is wrong with it."""
    document = read_json(path)
    shape = {"context": dict, "benchmarks": list}
    if not isinstance(document, dict) or any(
        not isinstance(document.get(key), kind) for key, kind in shape.items()
    ):
        raise ResultError(f"{path}: not a Google Benchmark result (no 'context' and 'benchmarks')")
    if not document["benchmarks"]:
        raise ResultError(f"{path}: holds no benchmark rows")
    for row in document["benchmarks"]:
        # Aggregates share the run_name of what they were made from; old files have only a name.
        if not isinstance(row, dict) or not isinstance(
            row.setdefault("run_name", row.get("name")), str
        ):
            raise ResultError(f"{path}: a benchmark row without a name")
    return document


def read_text(path: Path) -> str:
    """Return a file's text. Raises ResultError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ResultError(f"{path}: not a text file") from error
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror}") from error


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: a full disk or power cut must not cost what was there."""
    new = path.with_name(path.name + ".new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise LadderError(f"{path}: {error.strerror}") from error


@contextmanager
def kept_unless_done(output: Path) -> Iterator[Path]:
    """Make a folder beside `output`. What is in it stays only if the block raises."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{output.name}.", dir=output.parent))
    except OSError as error:
        raise LadderError(f"{output.parent}: {error.strerror}") from error
    try:
        yield folder
    except BaseException:
        if not any(folder.iterdir()):
            folder.rmdir()
        raise
    shutil.rmtree(folder)


def read_json(path: Path) -> Any:
    """Return any JSON, its integers as floats. Raises ResultError saying what is wrong with it."""
    text = read_text(path)
    if not text.strip():
        raise ResultError(f"{path}: empty (did the benchmark filter match nothing?)")
    try:
        if text.isascii() and not _ESCAPE.search(text):  # legible, as it is JSON
            with suppress(json.JSONDecodeError):
                return json.loads(text, parse_int=float, object_pairs_hook=_unique)
        # 1.7.1 writes control characters unescaped, and NaN and Infinity bare, which Python reads.
        return json.loads(
            text,
            strict=False,
            parse_int=float,
            object_pairs_hook=_legible_and_unique,
        )
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")  # "Unterminated string starting at"
        raise ResultError(
            f"{path}: truncated or not JSON: {what} at line {error.lineno}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: not usable JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    return entries if len(entries) == len(pairs) else library_fields.told_apart(pairs)


def _legible_and_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return _unique([(legible(k), legible(v) if isinstance(v, str) else v) for k, v in pairs])
