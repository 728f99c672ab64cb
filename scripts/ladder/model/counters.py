# SPDX-License-Identifier: MIT
"""The registry of counters: of each its unit, its kind, which way it is better, group and title.

Of our own counters it knows each by name. A foreign name is judged by a few patterns, which tell a
direction or leave it to the user.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType

PROPERTY = "property"  # of the program: no two runs of one binary differ in it
MEASUREMENT = "measurement"  # differs from run to run
COUNT = "count"  # of events: a program repeats it, but for what hardware adds
KINDS = (PROPERTY, MEASUREMENT, COUNT)

LESS, MORE, ASK = "less", "more", ""  # what is better; ASK where only the user can tell

# What warps asked of memory, as an emulator or a profiler counts it: wavefronts or sectors.
SPACES = {"shared": "wavefronts", "global": "sectors"}
OPERATIONS = ("load", "store", "atomic")

CONTEXT = "counter_registry"  # the key in the context of a file that carries a registry


@dataclass(frozen=True)
class Counter:
    """What is known of a counter, so that nobody need guess it from the name."""

    name: str
    unit: str  # "s", "B", "B/s", "FLOP/s", "1/s", "Hz", "%", "share" of 1, "" of plain numbers
    kind: str  # one of KINDS
    better: str  # LESS, MORE or ASK
    group: str  # under which it is shown
    title: str

    def __post_init__(self) -> None:
        known = {"kind": KINDS, "better": (LESS, MORE, ASK)}
        for key, values in known.items():
            if (value := getattr(self, key)) not in values:
                raise ValueError(f"{key} '{value}' of counter {self.name} is not known")

    @property
    def follows_time(self) -> bool:
        """Whether it is the GPU's time or a speed, which launches and the SM clock move."""
        return self.unit.endswith("/s") or self.name in _GPU_TIMES


_GPU_TIMES = ("real_time", "median_seconds", "percent_of_ceiling")


def parse(text: str) -> dict[str, Counter]:
    """Read a registry: CSV with a line for each counter and the fields of `Counter` as columns.

    Columns that are not known are left out: a newer file may carry more. Raises ValueError.
    """
    found = {}
    for entry in csv.DictReader(text.splitlines(), strict=True):
        values = {each.name: entry.get(each.name) for each in fields(Counter)}
        if missing := [key for key, value in values.items() if value is None]:
            raise ValueError(f"counter {entry.get('name')} has no {missing[0]}")
        found[str(values["name"])] = Counter(**{key: str(value) for key, value in values.items()})
    return found


# Of our programs, and the times and rates of Google Benchmark. The programs are built with the same
# table and write it into their results.
OWN: Mapping[str, Counter] = MappingProxyType(
    parse(Path(__file__).with_name("counters.csv").read_text(encoding="utf-8"))
)

GROUPS = tuple(dict.fromkeys(counter.group for counter in OWN.values()))  # in the order shown
STALLS = tuple(name for name in OWN if name.startswith("stall_"))  # why a warp did not issue


@cache
def of_file(text: str) -> Mapping[str, Counter]:
    """Return our registry, and over it what a file carries. Raises ValueError."""
    try:
        return MappingProxyType({**OWN, **parse(text)}) if text else OWN
    except (ValueError, csv.Error) as error:
        raise ValueError(f"context '{CONTEXT}': {error}") from error


# Foreign names: the first that is found in a name's words decides. Words are lower case and apart
# by a blank; "/" is written "per", "%" "percent". Whatever may be meant either way asks first.
_SECOND = r"(?:s|sec|secs|seconds?)"
_STATISTIC = r"(?: (?:avg|average|mean|median|min|max|total|stddev|p\d+))*"
_FAULTS = (
    r"(?:miss(?:es|ed)?|errors?|fail(?:ed|ures?)?|collisions?|conflicts?|faults?|drop(?:s|ped)?|"
    r"retr(?:y|ies)|timeouts?|stall(?:s|ed)?|evict(?:ed|ions?)|spill(?:s|ed)?|aborts?|aborted|"
    r"reject(?:s|ed|ions?)?|loss(?:es)?|lost|overflows?|mispredict(?:s|ed|ions?)?|leak(?:s|ed)?|"
    r"switches|rollbacks?|false positives?|false negatives?)"
)
_COSTS = (
    r"(?:ns|us|ms|s|sec|secs|seconds?|cycles?|clocks?|ticks|time|latency|allocs?|allocations?|"
    r"allocated|instructions?|insns?|joules?|energy)"
)
_PART = r"(?:rate|ratio|fraction|share|frequency|probability|per)"
_SIZE = r"(?:bytes|memory|mem|heap|[kmgt]i?b)"
_TAKEN = r"(?:peak|max|maximum|used|usage|allocated|resident|growth|spilled)"


@dataclass(frozen=True)
class _Pattern:
    better: str
    words: str  # regular expression
    example: str
    speed: bool = False  # a rate over time, which moves as the time does


_PATTERNS = (
    _Pattern(ASK, r"\b(?:percent(?:age)?|pct)\b", "overhead_percent, hit%"),
    _Pattern(ASK, r"\bper\b.*time\b", "items/cpu_time"),
    _Pattern(
        ASK,
        rf"\b{_FAULTS}\b.*\b{_PART}\b|\b(?:{_PART} of|throughput|bandwidth|speed) {_FAULTS}\b",
        "collisions/s, miss_rate, throughput_loss",
    ),
    _Pattern(ASK, r"\b(?:free|available|saved|spare|remaining|left|idle)\b", "free_bytes"),
    _Pattern(MORE, r"\bhits?\b", "cache_hits, hit_rate"),
    _Pattern(MORE, rf"\bper [mun]?{_SECOND}{_STATISTIC}$", "GB/s, rows_per_sec", speed=True),
    _Pattern(MORE, r"\bper (?:cycle|clock|clk|watt|joule)$", "instructions_per_cycle"),
    _Pattern(LESS, rf"\b{_COSTS}\b.* ?\bper\b", "cycles_per_byte, allocs_per_iter, ns/op"),
    _Pattern(
        MORE,
        r"\b(?:[kmgtpe]?flops|[kmgt]?i?bps|[kmgt]bit ?ps|[kmg]?(?:iops|qps|tps|rps|fps|pps)|"
        r"[kmgt]ops|mips|throughput|bandwidth|bw|speed)\b",
        "GFLOPS, MBps, Mops",
        speed=True,
    ),
    _Pattern(MORE, r"\b(?:[kmgt]i?b|ops|bytes|items|[kmgt]?flops?) s$", "GB_s", speed=True),
    _Pattern(
        MORE, r"\b(?:ipc|speedup|efficiency|occupancy|utili[sz]ation|[kmg]?hz)$", "IPC, clock_hz"
    ),
    _Pattern(
        LESS,
        r"(?:\b(?:latency|duration|elapsed|jitter|delay|overhead|cpi)|"
        rf"\b(?:cpu|real|wall|run)?time){_STATISTIC}(?: (?:[mun]s|{_SECOND}))?{_STATISTIC}$",
        "latency_p99, time_ms, cpu_time",
    ),
    _Pattern(LESS, rf"\b(?:[mun]s|sec|secs|seconds?){_STATISTIC}$", "parse_ns, p99_us"),
    _Pattern(
        LESS,
        rf"\b{_TAKEN}\b.*\b{_SIZE}\b|\b{_SIZE} {_TAKEN}\b|\b(?:rss|footprint)\b|^(?:memory|heap)$",
        "max_bytes_used, peak_memory, maxrss_kb",
    ),
    _Pattern(
        LESS,
        rf"\b(?:{_FAULTS}|cycles|instructions|allocs|allocations|noise|stddev|deviation|variance|"
        r"rmse?)$",
        "cache_misses, cycles, relative_error",
    ),
)


def better(name: str, own: Mapping[str, Counter] = OWN) -> str:
    """Say whether LESS or MORE of a counter is better; ASK where nothing tells."""
    if counter := own.get(name):
        return counter.better
    pattern = _guess(name)
    return pattern.better if pattern else ASK


def is_exact(name: str, own: Mapping[str, Counter] = OWN) -> bool:
    """Whether two runs of one program never differ in it."""
    counter = own.get(name)
    return counter is not None and counter.kind == PROPERTY


def follows_time(name: str, own: Mapping[str, Counter] = OWN) -> bool:
    """Whether it is the GPU's time or a speed, which launches and the SM clock move."""
    if counter := own.get(name):
        return counter.follows_time
    pattern = _guess(name)
    return pattern is not None and pattern.speed


@cache
def _guess(name: str) -> _Pattern | None:
    words = _words(name)
    return next((pattern for pattern in _PATTERNS if re.search(pattern.words, words)), None)


def _words(name: str) -> str:
    """Write a name's words in lower case: `bytesPerSec`, `bytes/s` and `bytes_per_s` are alike."""
    apart = re.sub(r"(?<=[a-z]{2})(?=[A-Z])", " ", name)  # but not KiB
    apart = apart.replace("%", " percent ").replace("/", " per ").replace("µ", "u")
    return re.sub(r"[^0-9a-z]+", " ", apart.lower()).strip()
