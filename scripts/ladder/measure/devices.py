# SPDX-License-Identifier: MIT
"""The GPUs of a machine, as nvidia-smi lists them, and the names of their results."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from ladder.model.errors import LadderError
from ladder.model.text import slug


@dataclass(frozen=True)
class Gpu:
    """One GPU: the driver's number, name and identifier of it, and what its results are called."""

    index: int
    name: str
    uuid: str
    slug: str  # nvidia-h200, or nvidia-h200-3 where there are several of that name

    @property
    def environment(self) -> dict[str, str]:
        """Return what makes it the only device of a process: CUDA's own numbers are others."""
        return {"CUDA_VISIBLE_DEVICES": self.uuid}


def select(wanted: str) -> list[Gpu]:
    """Return the GPUs of a list of numbers such as `0,1`, or `all` of them.

    Those that CUDA_VISIBLE_DEVICES hides are none; where its numbers may be other GPUs than
    nvidia-smi's, it is refused. Raises LadderError.
    """
    gpus = _visible(_all())
    if wanted == "all":
        return gpus
    by_index = {str(gpu.index): gpu for gpu in gpus}
    if unknown := [index for index in wanted.split(",") if index not in by_index]:
        raise LadderError(f"--devices {wanted}: no GPU '{unknown[0]}', of {', '.join(by_index)}")
    return list(dict.fromkeys(by_index[index] for index in wanted.split(",")))


def first() -> str | None:
    """Return what results of the driver's first GPU are called, None where there is none."""
    try:
        return slug(_all()[0].name)
    except LadderError:
        return None


def _all() -> list[Gpu]:
    command = ["nvidia-smi", "--query-gpu=index,uuid,name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LadderError(f"--devices: nvidia-smi: {error.strerror}") from error
    lines = [line.split(", ", 2) for line in done.stdout.splitlines()]
    if done.returncode or not lines or any(len(line) != 3 for line in lines):
        raise LadderError("--devices: nvidia-smi lists no GPU")
    slugs = [slug(name) for _, _, name in lines]
    return [
        Gpu(int(index), name, uuid, f"{slug}-{index}" if slugs.count(slug) > 1 else slug)
        for (index, uuid, name), slug in zip(lines, slugs, strict=True)
    ]


def _visible(gpus: list[Gpu]) -> list[Gpu]:
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is None:
        return gpus
    keys = [key.strip() for key in shown.split(",") if key.strip()]
    told = f"--devices: CUDA_VISIBLE_DEVICES={shown}"
    if any(key.startswith("MIG-") for key in keys):
        raise LadderError(f"{told}: parts of a GPU (MIG) are not supported")
    by_bus = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"  # else the fastest comes first
    if any(map(str.isdecimal, keys)) and not by_bus and len({gpu.name for gpu in gpus}) > 1:
        raise LadderError(f"{told}: numbers of different GPUs need CUDA_DEVICE_ORDER=PCI_BUS_ID")
    found = [g for k in keys for g in gpus if k == str(g.index) or g.uuid.startswith(k)]
    if not found:
        raise LadderError(f"{told} hides every GPU")
    return list(dict.fromkeys(found))
