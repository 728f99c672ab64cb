# SPDX-License-Identifier: MIT
"""Writes TOML as people edit it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tomli_w


def array(name: str, tables: Iterable[Mapping[str, Any]]) -> str:
    """Return an array of tables, each a block of its own, where tomli_w packs small ones."""
    return "\n".join(f"[[{name}]]\n{tomli_w.dumps(table)}" for table in tables)
