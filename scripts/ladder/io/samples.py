# SPDX-License-Identifier: MIT
"""Reads the samples beside results: a line of JSON for each repetition of a row.

A process that is killed leaves half a line, and a row that is measured again more lines than its
results have repetitions: the last ones count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ladder.io import files
from ladder.io.results import Results, load_processes
from ladder.model.errors import ResultError
from ladder.model.rows import bare

Samples = dict[str, list[NDArray[np.float64]]]  # by bare name: a repetition each, seconds in order


def beside(results: Results) -> Samples:
    """Return the samples of the rows that were measured well, those of all files one after another.

    Empty where no file has any beside it. Raises ResultError.
    """
    found: Samples = {}
    for path in results.files:
        plain = files.samples_beside(path)
        packed = plain.with_name(plain.name + ".gz")
        if file := next((each for each in (plain, packed) if each.exists()), None):
            own = results if len(results.files) == 1 else load_processes([path])[0]
            wanted = {bare(row.name): row.repetitions for row in own.with_status("ok")}
            for name, repetitions in read(file, wanted).items():
                found.setdefault(name, []).extend(repetitions)
    return found


def read(path: Path, wanted: Mapping[str, int]) -> Samples:
    """Read a file of samples: of each row `wanted` as many repetitions, the last ones.

    Raises ResultError where it holds something else.
    """
    found: Samples = {}
    for number, line in enumerate(files.read_text(path).split("\n"), 1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):  # cut off
            continue
        try:
            name, samples = bare(entry["name"]), np.array(entry["nanoseconds"], dtype=float)
            good = samples.ndim == 1 and bool((samples > 0).all() and np.isfinite(samples).all())
        except (AttributeError, KeyError, TypeError, ValueError):
            good = False
        if not good:
            raise ResultError(f"{path}: line {number}: no name with nanoseconds above 0")
        if name in wanted and len(samples):
            found.setdefault(name, []).append(samples * 1e-9)
    return {name: repetitions[-wanted[name] :] for name, repetitions in found.items()}
