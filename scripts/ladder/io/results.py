# SPDX-License-Identifier: MIT
"""Reads Google Benchmark JSON, of libbenchmark 1.7.1 to 1.9.x, into a row per measurement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladder.io import files
from ladder.io.entries import families_told_apart, measure, slim, spell
from ladder.io.programs import executable, file_name, identity, name_programs, source_of
from ladder.model import catalogue, counters
from ladder.model.catalogue import Ladder
from ladder.model.counters import Counter
from ladder.model.errors import ResultError
from ladder.model.rows import COUNTERS, Row
from ladder.model.text import legible

if TYPE_CHECKING:  # takes a while to load, and only tables want it
    import pandas as pd

Written = dict[str, list[dict[str, Any]]]  # rows as the files have them, by name
Paths = str | PathLike[str] | Iterable[str | PathLike[str]]


@dataclass(frozen=True)
class Results:
    """What one GPU measured, or an emulator counted, at one commit, merged from all its files."""

    context: dict[str, Any]
    ladders: tuple[Ladder, ...]
    rows: list[Row]
    ceilings: list[Row]  # rows that measured limits, also when `rows` was filtered
    written: Written = field(default_factory=dict, repr=False)  # repetitions and aggregates
    registry: Mapping[str, Counter] = field(default_factory=lambda: counters.OWN, repr=False)
    files: tuple[Path, ...] = ()  # all that it was merged from
    named: str = ""  # the program with its folder, where another of its file name is beside it

    @property
    def source(self) -> str:
        """What the rows hold: `timed` speeds, or the requests `emulated` or from `counters`."""
        return source_of(self.context)

    @property
    def file(self) -> str:
        """The file of the first row; empty where a filter left none."""
        return self.rows[0].file if self.rows else ""

    @property
    def gpu(self) -> str:
        """The GPU's name, or empty in a file of another suite."""
        return str(self.context.get("gpu_name", ""))

    @property
    def cache_mode(self) -> str:
        """`cold`, `warm`, or empty in a file of another suite."""
        return str(self.context.get("cache_mode", ""))

    @property
    def conditions(self) -> str:
        """How it was measured: `cold cache`, or what counted; empty for another suite's file."""
        if self.source != "timed":
            return str(self.context.get("counters", "emulated on a CPU"))
        return f"{self.cache_mode} cache" if self.cache_mode else ""

    @property
    def commit(self) -> str:
        """Short commit, marked when the tree held changes."""
        commit = str(self.context.get("git_commit", ""))[:7]
        return commit + ("-dirty" if commit and self.context.get("git_dirty") == "true" else "")

    @property
    def hardware_counters(self) -> str:
        """What counted; "none: " and why not; or empty if nobody asked."""
        return str(self.context.get("hardware_counters", ""))

    @property
    def with_counters(self) -> bool:
        """Whether hardware counters were read."""
        return bool(self.hardware_counters) and not self.hardware_counters.startswith("none")

    @property
    def program(self) -> str:
        """The program that measured: its file name, with its folder where that is of several."""
        return self.named or file_name(self.context)

    @property
    def build_type(self) -> str:
        """How the measuring program was built; the library's own build type for other suites."""
        return str(self.context.get("build_type") or self.context.get("library_build_type", ""))

    def keep(self, pattern: re.Pattern[str]) -> Results:
        """Return these results with only the rows whose name contains a match of `pattern`."""
        return replace(self, rows=[row for row in self.rows if pattern.search(row.name)])

    def with_status(self, status: str) -> list[Row]:
        """Return the rows of a status: "ok", "skipped" or "error"."""
        return [row for row in self.rows if row.status == status]


def load(paths: Paths, *, one_run: bool = False) -> pd.DataFrame:
    """Read files, or every *.json below directories, as tidy rows: one per benchmark and run.

    Files of one commit (`git_commit` in their context), of the same GPU or kind of host, build and
    cache mode are one run: a benchmark that is in several of them was repeated. A file that does
    not name its commit is a run of its own, since nothing says that it measured the same as others.
    With `one_run` such files are processes of one run, if all else is the same.

    Columns: `file`; `source` ("timed", "emulated", or hardware "counters": only timed rows have
    seconds and speeds); `gpu`, `gpu_uuid`, `commit`, `cache_mode`, `build_type`, `executable` (the
    program without its folders); `name` (the benchmark's run_name; where families of one file have
    the same it ends in `#1`, `#2`, in their order, and where several programs have it their name
    stands before it: `program:name`) and what it spells: `ladder`, `rung`, `case`
    ("axis:value/..."), `sweep` (the value of the rung's own axis, or "axis value, ..." of several)
    and one `axis_<name>` column per axis; `role` and `precision` of the rung; `chosen`, the step
    that a rung of the role "choice" ran; `status` ("ok", "skipped", "error") and
    its `reason`; `label`; `time_unit` as written; `repetitions`; `seconds`, the median time of
    one run, and `cpu_seconds`, Google Benchmark's cpu_time, likewise, both in seconds whatever the
    unit; `threads` that ran it at once; `iterations` of its loop, which aggregates alone do not
    tell. Then the counters under their own names, in the unit the name ends in:
    `*_per_second` in bytes/s, FLOP/s or atomics/s, `*_seconds`, `*_bytes`, `*_hz`;
    `arithmetic_intensity` in FLOP/byte, `percent_of_ceiling` in percent, `*_occupancy`,
    `*_utilisation` and `stall_*` (of the cycles that warps were resident) as fractions;
    `relative_error` of the whole result and `worst_error` of the worst element, relative to its
    own scale, as fractions; `throttled`, 1 where the SM clock was under 90 % of its maximum;
    `late_samples`, of the `samples` those that may have waited for the host. A counter that has the
    name of a column, or of a field of Google Benchmark's own, stands under `user_<name>`.
    Counts of the hardware (requests, wavefronts, sectors, bytes) are of one launch. Repetitions
    are folded by their median, quartiles by the widest range, `throttled` by any. What was not
    recorded is NaN, or "" in text.

    Raises:
        ResultError: a file is missing, unreadable or not a Google Benchmark result.
    """
    return frame(row for r in load_results(paths, one_run=one_run) for row in r.rows)


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows as the table that `load` documents."""
    import numpy as np
    import pandas as pd

    rows = list(rows)
    names = [entry.name for entry in fields(Row) if entry.name not in ("axes", "counters")]
    axes = dict.fromkeys(axis for row in rows for axis in row.axes)
    columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in names}
    columns |= {f"axis_{axis}": [row.axes.get(axis, "") for row in rows] for axis in axes}
    counters = dict.fromkeys([*COUNTERS, *(name for row in rows for name in row.counters)])
    values = np.empty((len(counters), len(rows)))  # in one piece, as pandas keeps them
    for i, counter in enumerate(counters):
        values[i] = [row.counter(counter) for row in rows]
    own = [f"user_{name}" if name in columns else name for name in counters]
    return pd.concat(
        [pd.DataFrame(columns), pd.DataFrame(values.T, columns=own, copy=False)], axis=1
    )


def load_results(paths: Paths, *, one_run: bool = False) -> list[Results]:
    """Read as `load` does, a Results for each run, source, and mode of its cache."""
    documents = [*files.find([paths] if isinstance(paths, str | PathLike) else paths)]
    programs = name_programs((d["context"], _names(d)) for _, d in documents)
    runs: dict[tuple[str, ...], list[tuple[Path, dict[str, Any]]]] = {}
    for path, document in documents:
        context = document["context"]
        run = (*identity(context), programs.get(executable(context), ""))
        if not context.get("git_commit") and not one_run:
            run += (str(path),)
        runs.setdefault(run, []).append((path, document))
    del documents  # a large file is merged with no second one in memory
    merged = [_merge(runs.pop(run)) for run in list(runs)]
    return _programs_told_apart([merged], programs)[0]


def registry_of(results: Iterable[Results]) -> Mapping[str, Counter]:
    """Return the counters of all these results; later results take precedence."""
    found: dict[str, Counter] = {}
    for result in results:
        found |= result.registry
    return found or counters.OWN


def load_processes(paths: Iterable[str | PathLike[str]]) -> list[Results]:
    """Read as `load_results` does, but each file, which is one process, as a Results of its own."""
    return load_sides(paths)[0]


def load_sides(*sides: Iterable[str | PathLike[str]]) -> list[list[Results]]:
    """Read sides of a comparison as `load_processes` does.

    Rows that several programs have on any side are called `program:name` on every one of them.
    """
    found = [[_merge([one]) for one in files.find(paths)] for paths in sides]
    programs = name_programs(
        (r.context, {row.name for row in r.rows}) for side in found for r in side
    )
    return _programs_told_apart(found, programs)


def _names(document: dict[str, Any]) -> set[str]:
    return {row["run_name"] for row in document["benchmarks"]}


def _programs_told_apart(
    sides: Iterable[list[Results]], programs: Mapping[str, str]
) -> list[list[Results]]:
    """Put the program before the names that rows of several on a side have: they differ.

    `programs` are those that their file names do not tell apart, as `name_programs` names them.
    """
    named = [
        [replace(result, named=programs.get(executable(result.context), "")) for result in side]
        for side in sides
    ]
    shared: set[str] = set()
    for side in named:
        found: dict[str, set[str]] = {}
        for result in side:
            for row in result.rows:
                if not row.ladder:
                    found.setdefault(row.name, set()).add(result.program)
        shared |= {name for name, several in found.items() if len(several) > 1}
    for result in (result for side in named for result in side) if shared else ():
        for row in result.rows:
            if row.name in shared and not row.ladder and result.program:
                written = result.written.pop(row.name)
                row.name = f"{result.program}:{row.name}"
                result.written[row.name] = written
    return named


def _merge(documents: list[tuple[Path, dict[str, Any]]]) -> Results:
    """Merge the files of one run: a benchmark found twice counts as repeated."""
    # With --shape a program's headlines are of those shapes ("cases": "full sgemm:m=77").
    documents = sorted(documents, key=lambda found: " " in str(found[1]["context"].get("cases")))
    ladders: dict[str, Ladder] = {}
    origins: dict[str, str] = {}  # where a name was found first
    written: Written = {}
    registry = dict(counters.OWN)
    for path, document in documents:
        file = legible(str(path))
        try:
            registry |= counters.of_file(str(document["context"].get(counters.CONTEXT, "")))
            for ladder in catalogue.parse(document["context"].get("ladders") or "[]"):
                ladders.setdefault(ladder.name, ladder)
        except ValueError as error:
            raise ResultError(f"{path}: {error}") from error
        entries = document["benchmarks"]
        for i, (name, entry) in enumerate(families_told_apart(entries, ladders)):
            origins.setdefault(name, file)
            written.setdefault(name, []).append(slim(entry))
            entries[i] = None  # a large file is not in memory twice

    context, known = documents[0][1]["context"], tuple(ladders.values())
    read = tuple(path for path, _ in documents)
    results = Results(context, known, [], [], written, registry, read)
    common: dict[str, Any] = {
        "source": results.source,
        "gpu": results.gpu,
        "gpu_uuid": str(results.context.get("gpu_uuid", "")),
        "commit": results.commit,
        "cache_mode": results.cache_mode,
        "build_type": results.build_type,
        "executable": results.program,
    }
    for name, entries in written.items():
        # Means, deviations and fits (BigO, RMS) are no measurements: only a median stands in.
        used = [entry for entry in entries if entry.get("run_type") != "aggregate"]
        used = used or [entry for entry in entries if entry.get("aggregate_name") == "median"]
        if not used:
            continue
        row = Row(origins[name], name=name, **common)
        try:
            measure(row, used, of_ladder=name.partition("/")[0] in ladders)
            spell(row, ladders)
        except ValueError as error:
            raise ResultError(f"{row.file}: {name}: {error}") from error
        results.rows.append(row)
    if not results.rows:
        raise ResultError(f"{documents[0][0]}: has no measurements, only derived rows")
    results.ceilings.extend(r for r in results.rows if (r.role, r.status) == ("ceiling", "ok"))
    return results
