# SPDX-License-Identifier: MIT
"""How often compare calls equal programs different, and finds a change that is there.

    PYTHONPATH=scripts python3 tests/python/calibration.py

prints the rates of many draws as tables; with --fields that of the fields which other methods are
tried on too. test_calibration.py holds fewer draws against the promise.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from ladder.io import files
from ladder.stats.interval import Process
from ladder.stats.noise import floor_of
from ladder.stats.verdicts import Rules, Side, judge, together
from scipy.optimize import brentq
from scipy.special import stdtrit

# Three processes of one binary each, on two H200.
RECORDED = {
    "quieter": Path(__file__).resolve().parents[2] / "results/nvidia-h200/noise.json.gz",
    "noisier": Path(__file__).with_name("data") / "noise-h200.json.gz",
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
    slow: str = ""  # one repetition takes 1.5 to 10 times as long: the "first", or "any"
    creep: float = 0.0  # each repetition takes so much longer than the one before
    flips: float = 0.0  # half of all repetitions take so much longer
    host: bool = False  # a CPU runs it


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
    rows = files.read_json(file)["rows"]
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
# What ladder's verdicts are promised for: 3, 5 and 10 repetitions of 1, 3 and 5 processes per side.
REPETITIONS, PROCESSES = (3, 5, 10), (1, 3, 5)
# Rows of 100 ns in 40 processes on two shared cores of an EPYC: their medians scattered by 3 % (by
# the median absolute deviation), repetitions by 2 %, but for one process in five that was slowed as
# a whole by up to twice.
CPU = {"seconds": 100e-9, "within": 0.02, "host": True}
QUIET = {"within": 0.005}
FIELDS = {
    "repetitions 0.5 %": Model(normal(0.001), **QUIET),
    "processes 0.5 %": Model(normal(0.005), within=0.001),
    "first slow": Model(normal(0.001), slow="first", **QUIET),
    "any slow": Model(normal(0.001), slow="any", **QUIET),
    "drift between processes, 0.2 %": Model(drift, within=0.002),
    "drift within, 0.5 % a repetition": Model(normal(0.002), within=0.003, creep=0.005),
    "launches: two modes, 0.2 us of 6 us": Model(modes(0.5), SHORT, within=0.002),
    "launches: recorded, below 30 us": replace(recorded(0, 30e-6), within=0.002),
    "repetitions in two modes, 2 %": Model(normal(0.001), within=0.002, flips=0.02),
    "CPU, 100 ns": Model(normal(0.04), **CPU),
    "CPU, first slow": Model(normal(0.04), slow="first", **CPU),
    "CPU, any slow": Model(normal(0.04), slow="any", **CPU),
    "CPU, two modes, 10 %": Model(modes(0.5, 0.1), **CPU | {"within": 0.01}),
    "CPU, 0.5 %": Model(normal(0.0035), **CPU | {"within": 0.0035}),
}
# Of 0.5 % noise in all: a change of 3 % is to be found in these.
FINE = [name for name in FIELDS if name.endswith(" 0.5 %")] + ["first slow", "any slow"]


def u_test(drawn: np.ndarray) -> np.ndarray:
    """Mann and Whitney's U test at 5 %, two-sided, as Google Benchmark's compare.py has it."""
    from scipy.stats import mannwhitneyu  # takes a second to load, which few tests want

    base, head = _pooled(drawn)
    return mannwhitneyu(base, head, axis=1, alternative="two-sided").pvalue < 0.05


def nvbench(drawn: np.ndarray) -> np.ndarray:
    """nvbench_compare's rule: means are further apart than the smaller relative deviation."""
    base, head = _pooled(drawn)
    means = base.mean(axis=1), head.mean(axis=1)
    noise = [
        side.std(axis=1, ddof=1) / mean for side, mean in zip((base, head), means, strict=True)
    ]
    return np.abs(means[1] - means[0]) / means[0] > np.minimum(*noise)


def pyperf(drawn: np.ndarray) -> np.ndarray:
    """The is_significant of pyperf: Student's t test at 95 %, of all values."""
    from scipy.stats import ttest_ind

    return ttest_ind(*_pooled(drawn), axis=1).pvalue <= 0.05


def _pooled(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all samples of either side: (rows, samples)."""
    rows, processes, _ = drawn.shape
    base, head = drawn[:, : processes // 2], drawn[:, processes // 2 :]
    return base.reshape(rows, -1), head.reshape(rows, -1)


OTHERS = {"U test": u_test, "NVBench": nvbench, "pyperf": pyperf}


def field(
    name: str, repetitions: int, processes: int, change: float, rows: int, *, others: bool = False
) -> dict[str, float]:
    """Return the share of rows that each method gets wrong, ladder's first.

    Of equal ones those called different, of others those not called slower.
    """
    rng = np.random.default_rng([repetitions, processes])
    model = replace(FIELDS[name], samples=repetitions)
    drawn = samples(model, processes, change, rows, rng)
    counts = judged(model, drawn, rng)
    if not change:
        found = {"ladder": called(counts)}
        return found | {n: float(f(drawn).mean()) for n, f in OTHERS.items() if others}
    base, head = _pooled(drawn)
    slower = head.mean(axis=1) > base.mean(axis=1)
    found = {"ladder": 1 - counts["SLOWER"] / counts.total()}
    return found | {n: 1 - float((f(drawn) & slower).mean()) for n, f in OTHERS.items() if others}


CHANGED = {
    "normal, 0.5 %": Model(normal(0.005)),
    "a dozen samples of 0.5 %": Model(normal(0.001), within=0.005, samples=12),
}


def samples(
    model: Model, processes: int, change: float, rows: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw seconds: (rows, processes of base and then head, samples), head slower by `change`."""
    seconds = model.seconds * model.draw(rng, rows, 2 * processes)
    seconds[:, processes:] *= 1 + change
    scatter = rng.standard_normal((*seconds.shape, model.samples))
    slow = rng.random(scatter.shape) < model.outliers
    found = seconds[:, :, None] * (1 + model.within * scatter) * (1 + 0.5 * slow)
    found *= 1 + model.creep * np.arange(model.samples)
    found *= 1 + model.flips * (rng.random(found.shape) < 0.5)
    if model.slow:
        first = model.slow == "first"
        places = rng.integers(1 if first else model.samples, size=(*seconds.shape, 1))
        times = np.exp(rng.uniform(np.log(1.5), np.log(10), places.shape))
        np.put_along_axis(found, places, np.take_along_axis(found, places, 2) * times, 2)
    return found


def verdicts(model: Model, processes: int, change: float, rows: int, seed: int = 1) -> Counter:
    """Count the verdicts on `rows` pairs of so many processes per side, head slower by `change`."""
    rng = np.random.default_rng(seed)
    return judged(model, samples(model, processes, change, rows, rng), rng)


def judged(model: Model, drawn: np.ndarray, rng: np.random.Generator) -> Counter:
    """Count the verdicts of compare on what was drawn, each row as if compared alone."""
    known = model.within if model.samples == 1 else 0.0
    processes = drawn.shape[1] // 2
    pairs, floors = {}, {}
    for number, row in enumerate(drawn.tolist()):
        found = [Process(tuple(values), known) for values in row]
        sides = found[:processes], found[processes:]
        name = str(number)
        pairs["", name] = tuple(
            Side(name, "ok", "", model.seconds, np.nan, False, tuple(side), model.host)
            for side in sides
        )
        if model.measured:
            before = model.seconds * model.draw(rng, 1, model.measured)[0]
            floors[name] = floor_of(before.tolist())
    found = judge(pairs, Rules(), floors, more=False)
    return Counter(change.verdict for change in found.values())


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


def fields(rows: int) -> None:
    """Print what each method gets wrong: false alarms / missed 3 % / missed 50 %.

    Of each kind of noise and number of processes, the worst of 3, 5 and 10 repetitions.
    """
    print(
        f"| false alarms / missed 3 % / missed 50 % | a side | {' | '.join(['ladder', *OTHERS])} |"
    )
    print("| :-- | --: |" + " --: |" * (1 + len(OTHERS)))
    for name in FIELDS:
        for processes in PROCESSES:
            worst = [
                [
                    field(name, repetitions, processes, change, rows, others=True)
                    for repetitions in REPETITIONS
                ]
                for change in (0.0, 0.03, 0.5)
            ]
            told = [
                " / ".join(f"{100 * max(found[m] for found in kind):.1f}" for kind in worst)
                for m in ("ladder", *OTHERS)
            ]
            print(f"| {name} | {processes} | {' | '.join(told)} |", flush=True)
    print()


def _degrees(off: np.ndarray, share: float) -> float:
    """Return the df of Student's t that is within so much in that share of cases."""
    least = np.quantile(off, share)
    return brentq(lambda df: stdtrit(df, (1 + share) / 2) - least, 0.3, 1e3)


def halves(draws: int = 300_000) -> None:
    """Print what the shortest half of n normal samples tells: the constants of interval.py.

    The factor makes its square right on average. The df are Student's by whose quantile as many
    differences of two medians are called as ought to be, the halves of both sides put together.
    """
    rng = np.random.default_rng(1)
    print("| samples | factor | df at 95 % | at 99 % | 0.83 for every two |")
    print("| --: | --: | --: | --: | --: |")
    for count in (*range(2, 11), 12, 15, 20, 30):
        drawn = rng.standard_normal((draws, count))
        ordered, kept = np.sort(drawn, axis=1), count // 2 + 1
        length = (ordered[:, kept - 1 :] - ordered[:, : count - kept + 1]).min(axis=1)
        factor = 1 / np.sqrt(np.mean(length**2))
        middle = np.median(drawn, axis=1)
        both = np.sqrt(length[::2] ** 2 + length[1::2] ** 2) * factor * middle.std()
        off = np.abs(middle[::2] - middle[1::2]) / both
        found = [_degrees(off, share) / 2 for share in (0.95, 0.99)]
        told = " | ".join(f"{value:.2f}" for value in (*found, 0.83 * (count // 2)))
        print(f"| {count} | {factor:.3f} | {told} |", flush=True)
    print()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Draws how often compare errs.")
    parser.add_argument("--fields", action="store_true", help="what other methods are tried on too")
    parser.add_argument("--rows", type=int, default=10_000, help="of each rate; default: 10000")
    parser.add_argument("--halves", action="store_true", help="the constants of interval.py")
    options = parser.parse_args()
    if options.halves:
        halves()
        return
    rows, counts = options.rows, (1, 2, 3, 5)
    if options.fields:
        fields(rows)
        return
    for title, models, change in (
        ("equal, called different", MODELS, 0.0),
        ("3 % slower, found", CHANGED, 0.03),
    ):
        print(f"| {title} | {' | '.join(f'{n} per side' for n in counts)} |")
        print("| :-- |" + " --: |" * len(counts))
        for name, model in models.items():
            rates = (100 * called(verdicts(model, n, change, rows)) for n in counts)
            print(f"| {name} | {' | '.join(f'{rate:.1f} %' for rate in rates)} |", flush=True)
        print()
    print(f"| equal suites, exit code 1 | {' | '.join(f'{n} per side' for n in counts)} |")
    print("| :-- |" + " --: |" * len(counts))
    for name, file in RECORDED.items():
        for alone in (True, False):
            told = f"the {name}, {'each row alone' if alone else 'together'}"
            rates = (100 * failing(file, n, 100, alone=alone) for n in counts)
            print(f"| {told} | {' | '.join(f'{rate:.0f} %' for rate in rates)} |", flush=True)
    print()
    print(f"| one row of a suite slower, found | {' | '.join(f'{n} per side' for n in counts)} |")
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
