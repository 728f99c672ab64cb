#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of docs/gpus.md: which rungs run on GPUs of which architecture, and how.

    docs/gpus.py PROGRAM DOCUMENT

PROGRAM is build/default/benchmarks/emulated/ladder_bench_emulated, and DOCUMENT docs/gpus.md. What
stands between the markers of DOCUMENT is replaced. Registers of kernels that g++ cannot compile
come from results/kernel_resources.csv.
"""

from __future__ import annotations

import csv
import functools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

# One of each architecture, as the emulator knows them.
GPUS = {
    "t4": "T4, sm_75",
    "a100": "A100, sm_80",
    "rtx3090": "RTX 3090, sm_86",
    "l40s": "L40S, sm_89",
    "h100": "H100, sm_90",
    "b200": "B200, sm_100",
    "rtx5090": "RTX 5090, sm_120",
}
# Kernels for tensor cores, which the emulated program does not know: the host chooses among them.
TENSOR_KERNELS = {
    "tf32": "roof.*tensor_by_warp.*Tf32",
    "bf16": "roof.*tensor_by_warp.*Bf16",
    "tf32x3": "sgemm.*split_products.*TwoOfTf32",
    "bf16x6": "sgemm.*split_products.*ThreeOfBf16",
    "fp16x3": "sgemm.*fp16_products",
}
LIBRARY_CALLS = {"memcpy", "copy", "cublas_fp16"}
RESOURCES = Path(__file__).resolve().parent.parent / "results" / "kernel_resources.csv"
BEGIN, END = "<!-- gpus -->\n", "<!-- gpus:end -->\n"


def tables(program: Path) -> str:
    """Return the tables of all ladders, as Markdown."""
    documents = {gpu: plans(program, gpu) for gpu in GPUS}
    ladders = json.loads(documents["h100"]["context"]["ladders"])
    lines: list[str] = []
    for ladder in ladders:
        steps = [rung["name"] for rung in ladder["rungs"] if rung["role"] in ("step", "ceiling")]
        steps = [name for name in steps if name not in LIBRARY_CALLS]
        cells = {gpu: of_ladder(document, ladder, gpu) for gpu, document in documents.items()}
        lines += [
            f"## {ladder['title']}",
            "",
            f"At {ladder['headline'].replace('/', ', ')}.",
            "",
            "| rung | " + " | ".join(GPUS.values()) + " |",
            "| :-- |" + " :-- |" * len(GPUS),
        ]
        for step in steps:
            told = [cells[gpu].get(step, "") for gpu in GPUS]
            lines.append(f"| `{step}` | " + " | ".join(told) + " |")
        lines.append("")
    return "\n".join(lines)


def plans(program: Path, gpu: str) -> dict[str, Any]:
    """Return how a GPU would launch each row, without a run."""
    command = [program, "--plans", "--cases=full", f"--gpu={gpu}", "--benchmark_format=json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def of_ladder(document: dict[str, Any], ladder: dict[str, Any], gpu: str) -> dict[str, str]:
    """Return the cell of each rung, at the headline or, where it does not run there, elsewhere."""
    found: dict[str, tuple[bool, bool, str]] = {}
    for row in document["benchmarks"]:
        name, rung, *axes = row["name"].removesuffix("/manual_time").split("/")
        if name != ladder["name"]:
            continue
        at_headline = "/".join(axes).startswith(ladder["headline"])
        this = ("registers" in row, at_headline, cell(row, rung, gpu))
        if rung not in found or this[:2] > found[rung][:2]:
            found[rung] = this
    return {
        rung: told if at_headline or not has_registers else f"{told} *"
        for rung, (has_registers, at_headline, told) in found.items()
    }


@functools.cache
def resources() -> list[dict[str, str]]:
    """Return what ptxas told of each kernel for each architecture."""
    with RESOURCES.open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def registers_of(rung: str, gpu: str) -> str:
    """Return the registers of a rung for tensor cores: the least and the most of its kernels."""
    architecture = GPUS[gpu].rpartition("sm_")[2]
    found = [
        int(kernel["registers"])
        for kernel in resources()
        if kernel["architecture"] == architecture
        and re.search(TENSOR_KERNELS[rung], kernel["symbol"])
    ]
    found = [registers for registers in found if registers > 8]  # others are empty there
    least, most = min(found), max(found)
    return f"{most}" if least == most else f"{least} to {most}"


def cell(row: dict[str, Any], rung: str, gpu: str) -> str:
    """Return registers per thread, bytes spilled and occupancy, or why a row does not run."""
    if "registers" in row:
        spilled = f" + {row['spilled_bytes']:.0f} bytes" if row.get("spilled_bytes") else ""
        return f"{row['registers']:.0f}{spilled}, {row['theoretical_occupancy']:.0%}"
    why = str(row.get("error_message") or row.get("skip_message") or "")
    why = why.removeprefix("skipped: ")
    if "not emulated" in why:
        return registers_of(rung, gpu) if rung in TENSOR_KERNELS else "compiles"
    if why.startswith("needs compute capability "):
        return "needs " + why.removeprefix("needs compute capability ")
    if why.startswith("not ported"):
        return "not ported"
    if "shared memory" in why:
        return "too little shared memory"
    return why or "registers unknown"


def main() -> int:
    """Write the document."""
    if len(sys.argv) != 3 or {"-h", "--help"} & set(sys.argv):
        print(__doc__, end="")
        return 0 if {"-h", "--help"} & set(sys.argv) else 2
    program, document = map(Path, sys.argv[1:])
    before, _, rest = document.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    document.write_text(f"{before}{BEGIN}{tables(program)}{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
