# SPDX-License-Identifier: MIT
"""Reads TOML, and writes it as people edit it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from ladder.io import files
from ladder.model.errors import ResultError


def read(path: Path) -> dict[str, Any]:
    """Return a document of TOML. Raises ResultError."""
    try:
        return tomllib.loads(files.read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ResultError(f"{path}: not TOML: {error}") from error


def array(name: str, tables: Iterable[Mapping[str, Any]]) -> str:
    """Return an array of tables, each a block of its own, where tomli_w packs small ones."""
    return "\n".join(f"[[{name}]]\n{tomli_w.dumps(table)}" for table in tables)
