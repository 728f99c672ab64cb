# SPDX-License-Identifier: MIT
"""Combines comparisons of two programs on several GPUs: an outcome per GPU, and one for all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ladder.io import files
from ladder.io.results import Results, load_results
from ladder.model import errors
from ladder.model.errors import LadderError
from ladder.report import comparison_text
from ladder.stats.compare import Comparison
from ladder.stats.sides import compared
from ladder.stats.verdicts import Change, Rules

EXIT_CODE = "exit_code"  # a file with that of `ladder run`, beside what it measured
_FOLDER = re.compile(r"bench-(.+)-([0-9a-f]{7,40})")
# What all GPUs come to is the first of these; gate, too, finds what is unreadable before all else.
_WORDS = {
    errors.UNREADABLE: "unreadable",
    errors.INCOMPARABLE: "incomparable",
    errors.REGRESSION: "regression",
    errors.LOST_COVERAGE: "lost coverage",
    errors.USAGE: "nothing compared",
    errors.OK: "pass",
}
_GRAVEST = list(_WORDS)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one GPU, by the name of its runner; `code` is an exit code of gate."""

    gpu: str
    code: int
    told: str  # in a line
    comparison: Comparison | None = None  # none where there was nothing to compare
    head: list[Results] = field(default_factory=list)
    gap: str = ""  # why not every row was compared

    @property
    def verdict(self) -> str:
        """The code in words, or MISSING."""
        missing = self.code == errors.LOST_COVERAGE and not self.comparison
        return "MISSING" if missing else _WORDS[self.code]


def judge(
    folder: Path, expected: Iterable[str], rules: Rules, noise: Path | None, *, force: bool
) -> list[Outcome]:
    """Compare base and head of each `bench-<gpu>-<commit>` in a folder.

    Each of these holds `EXIT_CODE`, and `base.json` and `head.json`, or the directories `base` and
    `head` with a file per process. An expected GPU without results is MISSING. If the folder does
    not exist, all are. `noise` is a file, or a directory with a file per GPU, `<gpu>.json`.

    Raises:
        LadderError: no GPU is expected, and none has results.
    """
    found: dict[str, list[Path]] = {gpu: [] for gpu in expected}
    for path in sorted(folder.glob("bench-*")):
        match = _FOLDER.fullmatch(path.name)
        found.setdefault(match[1] if match else path.name, []).append(path)
    if not found:
        raise LadderError(f"{folder}: no bench-<gpu>-<commit> in it, and --expect names no GPU")
    return [_judge(gpu, paths, rules, noise, force=force) for gpu, paths in found.items()]


def overall(codes: Iterable[int]) -> int:
    """Return the worst of the GPUs' exit codes."""
    return min(codes, key=_GRAVEST.index)


def in_words(code: int) -> str:
    """Say what an exit code of `overall` means."""
    return _WORDS[code]


def merged(outcomes: Sequence[Outcome], rules: Rules) -> Comparison:
    """Return one comparison of all GPUs; the names of the runners tell its changes apart.

    A GPU that could not be compared is a change of its own, which counts as lost.
    """
    made = {outcome.gpu: c for outcome in outcomes if (c := outcome.comparison) and not c.refused}
    found = [replace(change, gpu=gpu) for gpu, c in made.items() for change in c.changes]
    for outcome in outcomes:
        if outcome.gap or outcome.gpu not in made:
            lost = outcome.gap or outcome.verdict == "MISSING"
            verdict = "MISSING" if lost else "ERROR"
            reason = outcome.gap or outcome.told
            found.append(Change(outcome.gpu, "(all rows)", verdict, reason=reason, lost=True))

    def most(side: int) -> int:
        return max([1, *(c.processes[side] for c in made.values())])

    return Comparison(
        rules.threshold,
        [f"{gpu}: {told}" for gpu, c in made.items() for told in c.differences],
        [f"{gpu}: {told}" for gpu, c in made.items() for told in c.notes],
        refused=False,
        changes=found,
        confidence=rules.confidence,
        processes=(most(0), most(1)),
        noise_measured=bool(made) and all(c.noise_measured for c in made.values()),
    )


def _judge(
    gpu: str, paths: list[Path], rules: Rules, noise: Path | None, *, force: bool
) -> Outcome:
    if not paths:
        return Outcome(gpu, errors.LOST_COVERAGE, "no results came")
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths)
        return Outcome(gpu, errors.UNREADABLE, f"results of one GPU twice: {names}")
    (folder,) = paths
    if not _FOLDER.fullmatch(folder.name):
        return Outcome(gpu, errors.UNREADABLE, "not named bench-<gpu>-<commit>")
    sides = {side: _side(folder, side) for side in ("base", "head")}
    try:
        gap = _gap(folder)
        if lacking := [side for side, path in sides.items() if not path]:
            told = f"no results of {' and '.join(lacking)}"
            return Outcome(gpu, errors.LOST_COVERAGE, ": ".join(filter(None, (told, gap))))
        base, head = ([str(path)] for path in sides.values())
        if noise and noise.is_dir():
            noise = own if (own := noise / f"{gpu}.json").exists() else None
        comparison = compared(base, head, rules, noise, force=force)
        results = load_results(head)
    except LadderError as error:
        return Outcome(gpu, error.exit_code, str(error).replace(f"{folder}/", ""))
    code, told = comparison.exit_code, comparison_text.line(comparison).partition(": ")[2]
    if gap:
        code, told = overall([code, errors.LOST_COVERAGE]), f"{told}; {gap}"
    return Outcome(gpu, code, told, comparison, results, gap)


def _side(folder: Path, side: str) -> Path | None:
    """Return where the results of a side are: one file, or a directory of processes."""
    for path in (folder / f"{side}.json", folder / side):
        if path.exists():
            return path
    return None


def _gap(folder: Path) -> str:
    """Say why the run may have missed rows; empty if it ran all, even if some failed."""
    path = folder / EXIT_CODE
    code = files.read_text(path).strip() if path.exists() else ""
    if code in (str(errors.OK), str(errors.FAILED)):
        return ""
    return f"not every row was run: ladder run ended with {code}" if code else "its job ended early"
