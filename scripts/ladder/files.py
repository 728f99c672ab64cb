# SPDX-License-Identifier: MIT
"""Finds results files and reads the JSON that each version of Google Benchmark writes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from ladder.errors import ResultError


def find(paths: Iterable[str | PathLike[str]]) -> list[Path]:
    """List the files, and every *.json below the directories, each once and in order.

    Raises ResultError for a directory without any.
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        inside = sorted(p for p in path.rglob("*.json") if p.is_file()) if path.is_dir() else [path]
        if not inside:
            raise ResultError(f"{path}: no *.json below this directory")
        for file in inside:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def read(path: Path) -> dict[str, Any]:
    """Return a file's JSON. Raises ResultError saying what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ResultError(f"{path}: not a text file") from error
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror}") from error
    if not text.strip():
        raise ResultError(f"{path}: empty (did the benchmark filter match nothing?)")
    try:
        # 1.7.1 writes control characters unescaped, and NaN and Infinity bare, which Python reads.
        document = json.loads(
            text,
            strict=False,
            parse_int=float,
            object_pairs_hook=_unique,
        )
    except json.JSONDecodeError as error:
        raise ResultError(
            f"{path}: truncated or not JSON: {error.msg} at line {error.lineno}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: not usable JSON: {error}") from error
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


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key '{next(key for key in keys if keys.count(key) > 1)}'")
    return entries
