# SPDX-License-Identifier: MIT
"""Reads Google Benchmark JSON, of libbenchmark 1.7.1 to 1.9.x, into a row per measurement."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from os import PathLike
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from ladder.io import files, library_fields
from ladder.model import catalogue, ceilings, counters
from ladder.model.catalogue import Ladder
from ladder.model.counters import Counter
from ladder.model.errors import ResultError
from ladder.model.rows import COUNTERS, Row
from ladder.model.text import in_line, legible

if TYPE_CHECKING:  # takes a while to load, and only tables want it
    import pandas as pd

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
WORST_FIRST = ("error", "skipped", "ok")
# Fields that only give a row's place in its file.
_OF_FILE = frozenset(
    "name run_name family_index per_family_instance_index repetition_index".split()
)
_NO_TIME = "no time was recorded"
_LEAST_SECONDS, _MOST_SECONDS = 1e-15, 1e9  # of a time that can be one
# Counters of ladders that figures divide by: values next to 0 are left out.
_DIVISOR = re.compile(r"_per_second$|^percent_of_ceiling$|^arithmetic_int|^predicted_")
_SPEED = re.compile(
    r"_per_second$|_seconds$|^(percent_of_ceiling|sm_clock_hz|throttled|late_samples)$"
)

# What makes two files of host code one program on one kind of machine. Of the executable it is
# the file's name: each checkout has it in another folder.
HOST_PROGRAM = ("executable", "library_build_type", "num_cpus", "caches")

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
        return _source(self.context)

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
        return self.named or _file_name(self.context)

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
    programs = _programs((d["context"], _names(d)) for _, d in documents)
    runs: dict[tuple[str, ...], list[tuple[Path, dict[str, Any]]]] = {}
    for path, document in documents:
        context = document["context"]
        run = (*identity(context), programs.get(_executable(context), ""))
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
    programs = _programs((r.context, {row.name for row in r.rows}) for side in found for r in side)
    return _programs_told_apart(found, programs)


def identity(context: dict[str, Any]) -> tuple[str, ...]:
    """Return what identifies program and machine of a file: equal if files may be merged.

    Of host code these are the file name of the executable, how the library was built, the number of
    CPUs and their caches. The host's name is none of it, since each container has another; nor is
    the clock, which is measured anew each time.
    """
    keys = ["gpu_name", "gpu_uuid", "git_commit", "git_dirty", "cache_mode", "build_type", "tuning"]
    own = [str(context.get(key, "")) for key in [*keys, "counters"]]
    return _source(context), *own, *(host_program(context) if "gpu_name" not in context else ())


def host_program(context: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what `HOST_PROGRAM` names, of the executable the file's name."""
    told = {**context, "executable": _file_name(context)}
    return tuple(str(told.get(key, "")) for key in HOST_PROGRAM)


def _file_name(context: Mapping[str, Any]) -> str:
    return _folders(_executable(context))[-1]


def _executable(context: Mapping[str, Any]) -> str:
    return str(context.get("executable", ""))


def _folders(path: str) -> list[str]:
    return re.split(r"[\\/]", path)


def _names(document: dict[str, Any]) -> set[str]:
    return {row["run_name"] for row in document["benchmarks"]}


def _programs(found: Iterable[tuple[Mapping[str, Any], set[str]]]) -> dict[str, str]:
    """Name the programs of host code that share an executable's file name and are not the same.

    `found` are the contexts of files with the names of their rows. One program in two checkouts has
    the same rows, or a filter's choice of them; two programs have less than half in common. Each
    such executable gets the end of its path that tells it apart; one that is alone is not named.
    """
    by_file: dict[str, dict[str, set[str]]] = {}
    for context, names in found:
        if "gpu_name" in context or "ladders" in context:  # known by GPU and commit
            continue
        by_path = by_file.setdefault(_file_name(context), {})
        by_path.setdefault(_executable(context), set()).update(names)
    told: dict[str, str] = {}
    for by_path in by_file.values():
        groups: list[tuple[list[str], set[str]]] = []
        for path, names in by_path.items():
            for members, known in groups:
                if 2 * len(names & known) >= min(len(names), len(known)):
                    members.append(path)
                    known |= names
                    break
            else:
                groups.append(([path], set(names)))
        if len(groups) < 2:
            continue
        for members, _ in groups:
            others = [p for group, _ in groups for p in group if group is not members]
            told |= dict.fromkeys(members, _distinct_end(members[0], others))
    return told


def _distinct_end(path: str, others: list[str]) -> str:
    """Return the shortest end of a path, in whole folders, that no other path has."""
    folders, theirs = _folders(path), [_folders(other) for other in others]
    for count in range(2, len(folders) + 1):
        if all(other[-count:] != folders[-count:] for other in theirs):
            return "/".join(folders[-count:])
    return path


def _source(context: dict[str, Any]) -> str:
    if "counters" in context:
        return "counters"
    return "emulated" if str(context.get("emulated")).lower() == "true" else "timed"


def _programs_told_apart(
    sides: Iterable[list[Results]], programs: Mapping[str, str]
) -> list[list[Results]]:
    """Put the program before the names that rows of several on a side have: they differ.

    `programs` are those that their file names do not tell apart, as `_programs` names them.
    """
    named = [
        [replace(result, named=programs.get(_executable(result.context), "")) for result in side]
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
        for i, (name, entry) in enumerate(_families_told_apart(entries, ladders)):
            origins.setdefault(name, file)
            written.setdefault(name, []).append(_slim(entry))
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
            _measure(row, used, of_ladder=name.partition("/")[0] in ladders)
            _spell(row, ladders)
        except ValueError as error:
            raise ResultError(f"{row.file}: {name}: {error}") from error
        results.rows.append(row)
    if not results.rows:
        raise ResultError(f"{documents[0][0]}: has no measurements, only derived rows")
    results.ceilings.extend(r for r in results.rows if (r.role, r.status) == ("ceiling", "ok"))
    return results


def _slim(entry: dict[str, Any]) -> dict[str, Any]:
    """Return only the fields that are used, since many rows with all fields are large."""
    found = {key: value for key, value in entry.items() if key not in _OF_FILE}
    if found.get("run_type") == "iteration":  # as those are that do not tell
        del found["run_type"]
        found.pop("repetitions", None)  # of an aggregate it counts
    if isinstance(unit := found.get("time_unit"), str):
        found["time_unit"] = sys.intern(unit)
    return found


def _families_told_apart(
    entries: list[dict[str, Any]], ladders: Mapping[str, Ladder]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the rows of one file with their names, numbered where families have the same one.

    They end in `#1`, `#2` in the order of `family_index`, which is of one process alone: a filter
    moves it. Rows of known ladders, whose names are unique, may come from several processes.
    """
    first: dict[str, float] = {}
    several: dict[str, set[float]] = {}  # of names that several families have
    for entry in entries:
        name, family = entry["run_name"], _family(entry)
        if first.setdefault(name, family) != family:
            several.setdefault(name, {first[name]}).add(family)
    for entry in entries:
        name = entry["run_name"]
        if name in several and name.partition("/")[0] not in ladders:
            yield f"{name}#{sorted(several[name]).index(_family(entry)) + 1}", entry
        else:
            yield name, entry


def _family(entry: dict[str, Any]) -> float:
    index = entry.get("family_index")
    return index if isinstance(index, float) and math.isfinite(index) else -1.0


def _measure(row: Row, entries: list[dict[str, Any]], *, of_ladder: bool) -> None:
    """Merge repetitions; the worst status of any of them is the benchmark's.

    What rows that are not `timed` tell of time is that of an emulator or of a profiler: dropped.
    """
    timed = row.source == "timed"
    units = [entry.get("time_unit", "ns") for entry in entries]
    if unknown := [unit for unit in units if unit not in list(SECONDS)]:
        raise ValueError(f"unknown time unit '{unknown[0]}'")
    found = (_status(entry, timed=timed) for entry in entries)
    row.status, row.reason = min(found, key=lambda pair: WORST_FIRST.index(pair[0]))
    label = entries[0].get("label")
    row.label = label if isinstance(label, str) else ""
    row.time_unit = units[0]
    row.repetitions = sum(map(_repetitions, entries))
    row.threads = _typical(entries, "threads", least=1)
    if row.status != "ok":
        return
    counters = _folded([_counters(entry, of_ladder=of_ladder) for entry in entries])
    if timed:
        times = [e["real_time"] * SECONDS[unit] for e, unit in zip(entries, units, strict=True)]
        row.seconds = counters.get("median_seconds") or median(times)
        if not _LEAST_SECONDS <= row.seconds <= _MOST_SECONDS:
            row.status, row.reason, row.seconds = "error", _NO_TIME, math.nan
            return
        scales = [SECONDS[unit] for unit in units]
        row.cpu_seconds = _typical(entries, "cpu_time", scales)
        # The iterations of an aggregate are the repetitions that it was made of.
        row.iterations = _typical(
            [entry for entry in entries if entry.get("run_type") != "aggregate"], "iterations"
        )
    else:
        counters = {key: value for key, value in counters.items() if not _SPEED.search(key)}
    row.counters = counters


def _typical(
    entries: list[dict[str, Any]],
    key: str,
    scales: Iterable[float] | None = None,
    least: float = 0,
) -> float:
    """Return the median of one of the library's own numbers, each times its scale.

    NaN where no entry has it; what is below `least` was not recorded.
    """
    values = [entry.get(key) for entry in entries]
    pairs = zip(values, scales, strict=False) if scales else ((value, 1) for value in values)
    found = [
        value if scale == 1 else value * scale  # a number as it stands takes no memory again
        for value, scale in pairs
        if isinstance(value, float) and least <= value < math.inf
    ]
    return median(found) if found else math.nan


def _repetitions(entry: dict[str, Any]) -> int:
    """Return how many repetitions an entry stands for: an aggregate stands for all of its own."""
    count = entry.get("repetitions") if entry.get("run_type") == "aggregate" else None
    return int(count) if isinstance(count, float) and 1 <= count < math.inf else 1


def _counters(entry: dict[str, Any], *, of_ladder: bool) -> dict[str, float]:
    """Return a row's counters that are usable numbers; as read, all of them are floats."""
    keys, divisors = _counter_keys(tuple(entry))
    values = [*map(entry.__getitem__, keys)]
    # As a rule all are: a finite sum has finite terms.
    if {*map(type, values)} == {float} and math.isfinite(sum(values)):
        found = dict(zip(keys, values, strict=True))
    else:
        pairs = zip(keys, values, strict=True)
        found = {k: v for k, v in pairs if isinstance(v, float) and math.isfinite(v)}
    for key in divisors if of_ladder else ():
        if key in found and not 1e-9 <= found[key] <= 1e24:
            del found[key]
    return found


@cache  # rows of a rung have the same keys
def _counter_keys(keys: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the keys that may be counters, and those among them that others are divided by."""
    counters = [key for key in keys if key not in library_fields.ROW]
    return counters, [key for key in counters if _DIVISOR.search(key)]


def _folded(repetitions: list[dict[str, float]]) -> dict[str, float]:
    if len(repetitions) == 1:
        return repetitions[0]
    folds: dict[str, Callable[[list[float]], float]] = {"q1_seconds": min, "min_seconds": min}
    folds |= {"q3_seconds": max, "throttled": max, "samples": sum, "late_samples": sum}
    keys = dict.fromkeys(key for counters in repetitions for key in counters)
    return {
        key: folds.get(key, median)([counters[key] for counters in repetitions if key in counters])
        for key in keys
    }


def _status(entry: dict[str, Any], *, timed: bool) -> tuple[str, str]:
    """Return (status, reason); 1.7.1 has only errors, so the message marks a skip."""
    told = (entry.get("skip_message"), entry.get("error_message"))
    message = next((in_line(text) for text in told if text and isinstance(text, str)), "")
    message = message or "no reason given"
    if entry.get("skipped") is True or message.startswith("skipped: "):  # a number is a counter
        return "skipped", message.removeprefix("skipped: ")
    if entry.get("error_occurred") is True:
        return "error", message
    time = entry.get("real_time")
    good = isinstance(time, float) and 0 < time < math.inf
    return ("ok", "") if good or not timed else ("error", _NO_TIME)


def _spell(row: Row, ladders: Mapping[str, Ladder]) -> None:
    """Split `ladder/rung/axis:value/...`; a row of no known ladder keeps its whole name."""
    ladder_name, _, rest = row.name.partition("/")
    rung_name, *segments = rest.split("/")
    if not (ladder := ladders.get(ladder_name)):
        return
    if not (rung := ladder.rung(rung_name)):
        raise ValueError(f"ladder '{ladder_name}' lists no rung '{rung_name}'")
    values = dict(segment.split(":", 1) for segment in segments if ":" in segment)
    row.axes = {axis.name: values[axis.name] for axis in ladder.axes if axis.name in values}
    row.ladder, row.rung, row.role = ladder.name, rung.name, rung.role
    row.precision, row.sweep = rung.precision, _sweep(rung.sweeps, values)
    if rung.role == "choice" and (step := ceilings.chosen(row.label)):
        if not ladder.rung(step):
            raise ValueError(f"ladder '{ladder_name}' lists no rung '{step}', which was chosen")
        row.chosen = step
    row.case = "/".join(f"{axis}:{value}" for axis, value in row.axes.items())


def _sweep(axes: tuple[str, ...], values: dict[str, str]) -> str:
    """Spell the values of a rung's own axes: `16`, or `bytes 16, blocks 2` of several."""
    found = [axis for axis in axes if axis in values]
    if len(axes) == 1:
        return "".join(values[axis] for axis in found)
    return ", ".join(f"{axis} {values[axis]}" for axis in found)
