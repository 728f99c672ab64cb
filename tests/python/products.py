# SPDX-License-Identifier: MIT
"""A made-up suite: a ladder of products that is a tree with a choice, and the roofs over it."""

from __future__ import annotations

import json
from typing import Any

import suite

ROOFS = {"read": 4e12, "bf16": 9e14}
CATALOGUE = [
    {
        "name": "roof",
        "title": "Roofs",
        "quantity": "bytes",
        "axes": [],
        "rungs": [suite.rung(name, f"{name}.", "ceiling") for name in ROOFS],
    },
    {
        "name": "mul",
        "title": "Products",
        "quantity": "flops",
        "axes": suite.axes("n"),
        "headline": "n:64",
        "ceiling": "roof/read",
        "rungs": [
            suite.rung("serial", "On the host."),
            suite.rung("naive", "A thread an output."),
            suite.rung("tiled", "Tiles.", builds_on="naive"),
            suite.rung("ring", "A ring.", builds_on="tiled", shows="What a ring costs."),
            suite.rung(
                "split",
                "Pairs.",
                builds_on="tiled",
                meant_for=["n:64"],
                ceilings=[
                    {"rung": "roof/bf16", "products": 3},
                    {"rung": "roof/read", "products": 1, "quantity": "bytes"},
                ],
            ),
            suite.rung("fastest", "The fastest.", "choice"),
        ],
    },
]
SPEEDS = {  # TFLOP/s at 8 and 64
    "serial": (0.01, 0.02),
    "naive": (1.0, 2.0),
    "tiled": (2.0, 10.0),
    "ring": (1.5, 9.5),
    "split": (1.0, 50.0),
    "fastest": (2.0, 49.5),
}
CHOSEN = {8: "tiled", 64: "split"}


def document() -> dict[str, Any]:
    rows = [suite.row(f"roof/{name}", speed, 1e10) for name, speed in ROOFS.items()]
    rows[1]["flops_per_second"] = rows[1].pop("bytes_per_second")
    for name, speeds in SPEEDS.items():
        for n, speed in zip(CHOSEN, speeds, strict=True):
            made = suite.row(f"mul/{name}/n:{n}", speed * 1e12, 1e9, 1e9, bytes=1e7)
            rows.append(made | {"label": f"chosen:{CHOSEN[n]}"} if name == "fastest" else made)
    context = suite.document()["context"] | {"ladders": json.dumps(CATALOGUE)}
    return {"context": context, "benchmarks": rows}


def cells(text: str) -> dict[str, list[str]]:
    """Rows of a Markdown table by the rung they begin with."""
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0].removeprefix("| ").strip("`"): row for row in rows}
