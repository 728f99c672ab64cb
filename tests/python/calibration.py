# SPDX-License-Identifier: MIT
"""How often compare calls equal programs different, and finds a change that is there.

    PYTHONPATH=scripts python3 tests/python/calibration.py

prints the rates of many draws as tables; test_calibration.py holds fewer against the promise.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ladder.stats.interval import Process
from ladder.stats.noise import floor_of
from ladder.stats.verdicts import Rules, Side, judge, together

# Three processes of one binary each, on two H200.
RECORDED = {
    "quieter": Path(__file__).resolve().parents[2] / "results/nvidia-h200/noise.json",
    "noisier": Path(__file__).with_name("data") / "noise-h200.json",
}
WITHIN = 0.0005  # relative standard error of the median of a row's samples
LONG, SHORT = 200e-6, 6e-6  # seconds
Draw = Callable[[np.random.Generator, int, int], np.ndarray]


@dataclass(frozen=True)
class Model:
    """A population of processes: `draw` gives relative medians, (rows, processes in turn).

    A process has `samples` that scatter by `within`; a single one comes with `within` as its noise.
    """

    draw: Draw
    seconds: float = LONG
    within: float = WITHIN
    samples: int = 1
    outliers: float = 0.0  # share of samples that take half as long again
    measured: int = 0  # processes that `ladder noise` ran before


def normal(deviation: float) -> Draw:
    return lambda rng, rows, count: 1 + deviation * rng.standard_normal((rows, count))


def modes(share: float, apart: float = 0.2e-6 / SHORT) -> Draw:
    """Two speeds, one of them in a share of all processes."""
    return lambda rng, rows, count: (
        (1 + apart * (rng.random((rows, count)) < share)) * normal(0.002)(rng, rows, count)
    )


def drift(rng: np.random.Generator, rows: int, count: int) -> np.ndarray:
    """A random walk, as of temperature; base runs before head."""
    return 1 + np.cumsum(normal(0.002)(rng, rows, count) - 1, axis=1)


def trend(rng: np.random.Generator, rows: int, count: int) -> np.ndarray:
    """Each process 0.1 % slower than the last; base runs before head."""
    return normal(0.002)(rng, rows, count) + 0.001 * np.arange(count)


def slow_processes(share: float) -> Draw:
    """A share of processes that something slows by a tenth."""
    return lambda rng, rows, count: (
        (1 + 0.1 * (rng.random((rows, count)) < share)) * normal(0.002)(rng, rows, count)
    )


def rows_of(file: Path) -> list[dict]:
    """Rows as `ladder noise` keeps them, but those that a CPU ran."""
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    return [row for name, row in rows.items() if "_cpu" not in name]


def recorded(low: float, high: float) -> Model:
    """Rows of so many seconds, each process of each row drawn for itself."""
    rows = (row for file in RECORDED.values() for row in rows_of(file))
    kept = [row for row in rows if low <= row["seconds"] < high]
    triples = np.array([row["medians"] for row in kept])
    triples /= np.median(triples, axis=1, keepdims=True)

    def draw(rng: np.random.Generator, count_rows: int, count: int) -> np.ndarray:
        row = rng.integers(len(kept), size=(count_rows, 1))
        return triples[row, rng.integers(3, size=(count_rows, count))]

    return Model(draw, float(np.median([row["seconds"] for row in kept])), within=WITHIN)


MODELS = {
    "recorded, below 30 us": recorded(0, 30e-6),
    "recorded, from 30 us": recorded(30e-6, 10),
    "normal, 0.5 %": Model(normal(0.005)),
    "drift, 0.2 % a process": Model(drift),
    "trend, 0.1 % a process": Model(trend),
    "two modes, half and half": Model(modes(0.5), SHORT),
    "two modes, one in five": Model(modes(0.2), SHORT),
    "short, normal, 1.5 %": Model(normal(0.015), SHORT),
    "a process in 50 slow": Model(slow_processes(0.02)),
    "samples 0.5 %, one in 20 slow": Model(normal(0.001), within=0.005, samples=12, outliers=0.05),
    "three samples of 0.5 %": Model(normal(0.001), within=0.005, samples=3),
    "two modes, 5 measured before": Model(modes(0.5), SHORT, measured=5),
    "long, 2 %, 5 measured before": Model(normal(0.02), measured=5),
}
CHANGED = {
    "normal, 0.5 %": Model(normal(0.005)),
    "a dozen samples of 0.5 %": Model(normal(0.001), within=0.005, samples=12),
}


def verdicts(model: Model, processes: int, change: float, rows: int, seed: int = 1) -> Counter:
    """Count the verdicts on `rows` pairs of so many processes a side, head slower by `change`."""
    rng = np.random.default_rng(seed)
    seconds = model.seconds * model.draw(rng, rows, 2 * processes)
    seconds[:, processes:] *= 1 + change
    scatter = rng.standard_normal((*seconds.shape, model.samples))
    slow = rng.random(scatter.shape) < model.outliers
    samples = seconds[:, :, None] * (1 + model.within * scatter) * (1 + 0.5 * slow)
    known = model.within if model.samples == 1 else 0.0
    pairs, floors = {}, {}
    for number, row in enumerate(samples.tolist()):
        found = [Process(tuple(values), known) for values in row]
        sides = found[:processes], found[processes:]
        name = str(number)
        pairs["", name] = tuple(
            Side(name, "ok", "", model.seconds, np.nan, False, tuple(side)) for side in sides
        )
        if model.measured:
            before = model.seconds * model.draw(rng, 1, model.measured)[0]
            floors[name] = floor_of(before.tolist())
    judged = judge(pairs, Rules(), floors, more=False)
    return Counter(change.verdict for change in judged.values())


def called(counts: Counter) -> float:
    """Return the share of rows that are said to have changed."""
    return (counts["FASTER"] + counts["SLOWER"]) / counts.total()


def suite(
    rows: list[dict],
    processes: int,
    rng: np.random.Generator,
    *,
    alone: bool = False,
    noise: bool = False,
    slower: float = 0.0,
) -> tuple[list[str], str]:
    """Judge all rows of a file, one slower by so much; return verdicts, and that row's own.

    `noise` has compare know how far the processes of the file were apart.
    """
    pairs, floors, changed = {}, {}, str(rng.integers(len(rows)))
    for number, row in enumerate(rows):
        name = str(number)
        times = rng.choice(row["medians"], 2 * processes)
        times[processes:] *= 1 + slower * (name == changed)
        found = [Process((time,), WITHIN) for time in times.tolist()]
        sides = found[:processes], found[processes:]
        pairs["", name] = tuple(
            Side(name, "ok", "", row["seconds"], np.nan, False, tuple(side)) for side in sides
        )
        floors[name] = floor_of(row["medians"])
    judged = judge(pairs, Rules(), floors if noise else None, more=False)
    judged = judged if alone else together(judged, Rules().confidence)
    return [change.verdict for change in judged.values()], judged["", changed].verdict


def failing(file: Path, processes: int, suites: int, *, alone: bool, seed: int = 1) -> float:
    """Return the share of equal suites of a file's rows in which any row is called slower."""
    rng, rows = np.random.default_rng(seed), rows_of(file)
    failed = ("SLOWER" in suite(rows, processes, rng, alone=alone)[0] for _ in range(suites))
    return sum(failed) / suites


def finding(
    file: Path, processes: int, suites: int, slower: float, *, noise: bool, seed: int = 1
) -> float:
    """Return the share of suites of a file's rows in which the one slower row is called so."""
    rng, rows = np.random.default_rng(seed), rows_of(file)
    told = (suite(rows, processes, rng, noise=noise, slower=slower)[1] for _ in range(suites))
    return sum(verdict == "SLOWER" for verdict in told) / suites


def main() -> None:
    """Print the tables."""
    rows, counts = 10_000, (1, 2, 3, 5)
    for title, models, change in (
        ("equal, called different", MODELS, 0.0),
        ("3 % slower, found", CHANGED, 0.03),
    ):
        print(f"| {title} | {' | '.join(f'{n} a side' for n in counts)} |")
        print("| :-- |" + " --: |" * len(counts))
        for name, model in models.items():
            rates = (100 * called(verdicts(model, n, change, rows)) for n in counts)
            print(f"| {name} | {' | '.join(f'{rate:.1f} %' for rate in rates)} |", flush=True)
        print()
    print(f"| equal suites, exit code 1 | {' | '.join(f'{n} a side' for n in counts)} |")
    print("| :-- |" + " --: |" * len(counts))
    for name, file in RECORDED.items():
        for alone in (True, False):
            told = f"the {name}, {'each row alone' if alone else 'together'}"
            rates = (100 * failing(file, n, 100, alone=alone) for n in counts)
            print(f"| {told} | {' | '.join(f'{rate:.0f} %' for rate in rates)} |", flush=True)
    print()
    print(f"| one row of a suite slower, found | {' | '.join(f'{n} a side' for n in counts)} |")
    print("| :-- |" + " --: |" * len(counts))
    for noise in (False, True):
        for slower in (0.03, 0.05, 0.1):
            told = f"by {100 * slower:.0f} %, {'with' if noise else 'without'} `--noise`"
            rates = (
                100 * finding(RECORDED["quieter"], n, 100, slower, noise=noise) for n in counts
            )
            print(f"| {told} | {' | '.join(f'{rate:.0f} %' for rate in rates)} |", flush=True)


if __name__ == "__main__":
    main()
