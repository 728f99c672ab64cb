# SPDX-License-Identifier: MIT
"""Compares what the emulator counted with what the hardware's counters say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from ladder.analysis.emulated_study import total
from ladder.io import toml_file
from ladder.io.results import Results
from ladder.model import errors
from ladder.model.counters import OPERATIONS, SPACES
from ladder.model.errors import IncomparableError, LadderError, ResultError
from ladder.model.rows import Row, bare

TOLERANCE = 0.01  # of the hardware's figure
REASONS = "differences.toml"  # beside the results' directories: "ladder/rung" = "one line"


@dataclass(frozen=True)
class Pair:
    """Transactions of one space in one row; NaN where the hardware did not count them."""

    emulated: float
    measured: float

    @property
    def known(self) -> bool:
        """Whether there is something to compare: both sides are known, and not both are 0."""
        return self.emulated + self.measured > 0

    @property
    def ratio(self) -> float:
        """Emulated over measured; infinite where only the emulator saw any."""
        return self.emulated / self.measured if self.measured else math.inf

    @property
    def agrees(self) -> bool:
        """Whether they are equal within the tolerance."""
        return abs(self.emulated - self.measured) <= TOLERANCE * self.measured


@dataclass(frozen=True)
class Prediction:
    """One row in both files."""

    rung: str  # "ladder/rung"
    case: str  # with the value of a sweep
    sweep: str  # that value alone, if any
    pairs: dict[str, Pair]  # by space
    reason: str  # why they differ, as far as someone wrote it down

    @property
    def agrees(self) -> bool:
        """Whether every figure that both sides know is the same."""
        return all(pair.agrees for pair in self.pairs.values() if pair.known)


@dataclass(frozen=True)
class Predictions:
    """All rows that both sides counted."""

    rows: list[Prediction]
    unmeasured: list[str]  # counted by the emulator alone
    stale: list[str]  # rungs with a reason that do not differ

    @property
    def exit_code(self) -> int:
        """One where a difference has no reason."""
        unexplained = any(not (row.agrees or row.reason) for row in self.rows)
        return errors.REGRESSION if unexplained else errors.OK

    @property
    def rungs(self) -> dict[str, list[Prediction]]:
        """The cases of each rung."""
        found: dict[str, list[Prediction]] = {}
        for row in self.rows:
            found.setdefault(row.rung, []).append(row)
        return found

    def summary(self) -> list[str]:
        """Say how many rungs agree in all their cases, and what to know of the others."""
        rungs = self.rungs.values()
        both = sum(all(row.agrees for row in rows) for rows in rungs)
        counts = [f"{both} of {len(rungs)} rungs are within {TOLERANCE:.0%} in every case"]
        for space, unit in SPACES.items():
            known = [rows for rows in rungs if any(row.pairs[space].known for row in rows)]
            agree = sum(
                all(row.pairs[space].agrees for row in rows if row.pairs[space].known)
                for rows in known
            )
            counts.append(f"{agree} of {len(known)} for {space} {unit}")
        lines = [", ".join(counts) + "."]
        if self.unmeasured:
            lines.append(f"No hardware counters: {', '.join(_by_rung(self.unmeasured))}.")
        if self.stale:
            lines.append(f"A reason is given, but no difference found: {', '.join(self.stale)}.")
        return lines


def _by_rung(names: list[str]) -> list[str]:
    """Name the row of a rung that has one, and how many there are of the others."""
    rungs: dict[str, list[str]] = {}
    for name in names:
        rungs.setdefault("/".join(name.split("/")[:2]), []).append(name)
    return [
        rows[0] if len(rows) == 1 else f"{rung} ({len(rows)} cases)" for rung, rows in rungs.items()
    ]


def worst(rows: list[Prediction], space: str) -> Pair | None:
    """Return the pair that is furthest from equal; None where nothing is known."""
    known = [row.pairs[space] for row in rows if row.pairs[space].known]
    return max(known, key=lambda pair: abs(math.log(pair.ratio or math.ulp(0))), default=None)


def counterpart(emulated: Results, results: list[Results]) -> dict[str, Row]:
    """Return the hardware's rows of the GPU that was modelled or timed, by bare name.

    A profile that does not name its GPU counts as one of that GPU. Where several profiles have a
    row, it is taken from the one with most of the rows asked for. Empty where no profile fits.
    """
    names = {bare(row.name) for row in emulated.rows}
    profiles = [r for r in results if r.source == "counters" and r.gpu in ("", emulated.gpu)]
    profiles.sort(key=lambda profile: len(names & {bare(row.name) for row in profile.rows}))
    return {
        bare(row.name): row for profile in profiles for row in profile.rows if row.status == "ok"
    }


def check_gpu(emulated: Results, counters: list[Results]) -> None:
    """Raise IncomparableError if all counters are of other GPUs than the modelled one."""
    counted = {r.gpu for r in counters}
    if not counted & {"", emulated.gpu}:
        model, others = emulated.gpu or "an unknown GPU", " and ".join(sorted(counted))
        raise IncomparableError(f"emulated {model}, counted on {others}: not the same GPU")


def predict(
    emulated: Results, measured: dict[str, Row], differences: Path | None = None
) -> Predictions:
    """Pair the rows of an emulated result with the hardware's.

    `differences` is the file of reasons. By default it is `REASONS` beside the directory of the
    measured file, or in it, if that exists. Raises LadderError when no row is in both.
    """
    rows, alone = [], []
    reasons = _reasons(differences or _beside(measured))
    for row in emulated.rows:
        if row.status != "ok" or not row.grid_blocks > 0:
            continue
        if not (other := measured.get(bare(row.name))):
            alone.append(bare(row.name))
            continue
        pairs = {space: _pair(row, other, space) for space in SPACES}
        rung = f"{row.ladder}/{row.rung}"
        case = bare(row.name).removeprefix(f"{rung}/")
        rows.append(Prediction(rung, case, row.sweep, pairs, reasons.get(rung, "")))
    if not rows:
        raise LadderError("the emulated results and the hardware counters have no row in common")
    differing = {row.rung for row in rows if not row.agrees}
    present = {row.rung for row in rows}
    stale = [rung for rung in reasons if rung in present - differing]
    return Predictions(rows, alone, stale)


def _pair(emulated: Row, measured: Row, space: str) -> Pair:
    """Sum over the operations that the hardware counted."""
    counted = tuple(
        operation
        for operation in OPERATIONS
        if not math.isnan(measured.counter(f"{space}_{operation}_{SPACES[space]}"))
    )
    if not counted:
        return Pair(math.nan, math.nan)
    return Pair(total(emulated, space, counted), total(measured, space, counted))


def _beside(measured: dict[str, Row]) -> Path | None:
    folders = [Path(row.file).resolve().parent for row in measured.values()]
    places = [place / REASONS for folder in folders[:1] for place in (folder.parent, folder)]
    return next((place for place in places if place.exists()), None)


def _reasons(path: Path | None) -> dict[str, str]:
    if not path:
        return {}
    reasons = toml_file.read(path)
    for rung, reason in reasons.items():
        if not isinstance(reason, str) or "\n" in reason or not reason.strip():
            raise ResultError(f'{path}: wants lines of the form "ladder/rung" = "reason": {rung}')
    return reasons
