# SPDX-License-Identifier: MIT
"""The package is built in layers: each imports only from those before it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from ladder.commands import cli

PACKAGE = Path(__file__).resolve().parents[2] / "scripts/ladder"
LAYERS = ["model", "io", "measure", "analysis", "stats", "report", "commands"]


def imported(file: Path) -> set[str]:
    """Return the layers that a module imports from."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "ladder":
            found |= {f"ladder.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    return {name.split(".")[1] for name in found if name.startswith("ladder.")}


def test_every_module_is_in_a_layer():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_from_those_before_it(layer):
    allowed = {*LAYERS[: LAYERS.index(layer) + 1]}
    for file in (PACKAGE / layer).rglob("*.py"):
        assert imported(file) <= allowed, file


def test_help_loads_none_of_what_takes_long():
    told = (
        "import contextlib, sys\n"
        "from ladder.commands import cli\n"
        "for command in ([], *([name] for name in cli.COMMANDS)):\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        cli.main([*command, '--help'])\n"
        "heavy = {'jinja2', 'matplotlib', 'msgspec', 'numpy', 'pandas', 'rich', 'ruptures',"
        " 'scipy', 'tomli_w'}\n"
        "print('loaded:', *sorted(heavy & set(sys.modules)))\n"
    )
    environment = {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.count("usage: ladder ") == 1 + len(cli.COMMANDS)
    assert done.stdout.splitlines()[-1] == "loaded:"
