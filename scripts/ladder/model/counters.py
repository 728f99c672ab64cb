# SPDX-License-Identifier: MIT
"""The registry of counters: of each its unit, its kind, which way it is better, group and title.

Of our own counters it knows each by name. A foreign name is judged by a few patterns, which tell a
direction or leave it to the user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType

PROPERTY = "property"  # of the program: no two runs of one binary differ in it
MEASUREMENT = "measurement"  # differs from run to run
COUNT = "count"  # of events: a program repeats it, but for what hardware adds
KINDS = (PROPERTY, MEASUREMENT, COUNT)

LESS, MORE, ASK = "less", "more", ""  # what is better; ASK where only the user can tell

# Groups, in the order in which they are shown.
SPEED = "Time and speed"
WAITS = "Waits, of the warps' cycles"
LAUNCH = "Launch"
ACCURACY = "Accuracy"
PREDICTED = "Predicted"
TRAFFIC = "Traffic"
WORK = "Work"
GROUPS = (SPEED, WAITS, LAUNCH, ACCURACY, PREDICTED, TRAFFIC, WORK)

# What warps asked of memory, as an emulator or a profiler counts it: wavefronts or sectors.
SPACES = {"shared": "wavefronts", "global": "sectors"}
OPERATIONS = ("load", "store", "atomic")

# Why a warp did not issue, after `stall_`: it waited ...
STALLS = {
    "long_scoreboard": "for global, local or texture memory",
    "short_scoreboard": "for shared memory or a special function",
    "barrier": "for other warps at a barrier",
    "membar": "for a memory barrier",
    "mio_throttle": "for the full shared-memory queue",
    "lg_throttle": "for the full L1 queue",
    "math_pipe_throttle": "for a busy pipe",
    "wait": "for dependent instructions",
    "not_selected": "ready, but another warp issued",
    "drain": "for stores to drain",
    "no_instruction": "for instructions",
    "branch_resolving": "for a branch",
    "dispatch_stall": "for the dispatcher",
    "imc_miss": "for constants",
    "gmma": "for wgmma",
}


@dataclass(frozen=True)
class Counter:
    """What is known of a counter, so that nobody need guess it from the name."""

    name: str
    unit: str  # "s", "B", "B/s", "FLOP/s", "1/s", "Hz", "%", "share" of 1, "" of plain numbers
    kind: str  # one of KINDS
    better: str  # LESS, MORE or ASK
    group: str  # one of GROUPS
    title: str

    def __post_init__(self) -> None:
        known = {"kind": KINDS, "better": (LESS, MORE, ASK), "group": GROUPS}
        for key, values in known.items():
            if (value := getattr(self, key)) not in values:
                raise ValueError(f"{key} '{value}' of counter {self.name} is not known")

    @property
    def follows_time(self) -> bool:
        """Whether it is the GPU's time or a speed, which launches and the SM clock move."""
        return self.unit.endswith("/s") or self.name in _GPU_TIMES


_GPU_TIMES = ("real_time", "median_seconds", "percent_of_ceiling")


def _own() -> list[Counter]:
    """List the counters of our own programs, and the times and rates of Google Benchmark."""
    times = [
        ("real_time", "s", LESS, "time of a launch, or of an iteration"),
        ("cpu_time", "s", LESS, "CPU time of an iteration"),
        ("median_seconds", "s", LESS, "median time of a launch"),
        ("min_seconds", "s", LESS, "shortest time of a launch"),
        ("q1_seconds", "s", LESS, "first quartile of the times"),
        ("q3_seconds", "s", LESS, "third quartile of the times"),
        ("measuring_seconds", "s", LESS, "time spent on samples"),
        ("wall_seconds", "s", LESS, "time spent on the row"),
        ("median_noise", "", LESS, "relative standard error of the median"),
        ("samples", "", ASK, "launches that were timed"),
        ("late_samples", "", LESS, "samples that may hold time of the host"),
        ("throttled", "", LESS, "SM clock below 90 % of its maximum"),
        ("sm_clock_hz", "Hz", MORE, "SM clock"),
        ("percent_of_ceiling", "%", MORE, "speed over the measured ceiling"),
        ("flops_per_second", "FLOP/s", MORE, "arithmetic speed"),
        ("bytes_per_second", "B/s", MORE, "memory speed"),
        ("atomics_per_second", "atomics/s", MORE, "atomics a second"),
        ("items_per_second", "items/s", MORE, "items a second"),
    ]
    launch = [
        ("registers", "", LESS, "registers a thread"),
        ("spilled_bytes", "B", LESS, "local memory a thread"),
        ("static_shared_bytes", "B", LESS, "static shared memory a block"),
        ("dynamic_shared_bytes", "B", LESS, "dynamic shared memory a block"),
        ("block_threads", "", ASK, "threads a block"),
        ("grid_blocks", "", ASK, "blocks of the grid"),
        ("blocks_per_sm", "", ASK, "blocks that an SM holds"),
        ("waves", "", ASK, "waves of blocks"),
        ("cluster_size", "", ASK, "blocks a cluster"),
        ("resident_clusters", "", ASK, "clusters that the GPU holds"),
        ("theoretical_occupancy", "share", MORE, "occupancy that the launch allows"),
        ("occupancy_limit_blocks", "", MORE, "blocks an SM, as slots for blocks allow"),
        ("occupancy_limit_warps", "", MORE, "blocks an SM, as slots for warps allow"),
        ("occupancy_limit_registers", "", MORE, "blocks an SM, as registers allow"),
        ("occupancy_limit_shared", "", MORE, "blocks an SM, as shared memory allows"),
    ]
    accuracy = [
        ("relative_error", LESS, "error of the whole result"),
        ("worst_error", LESS, "error of the worst element"),
        ("library_relative_error", LESS, "the library's error of the whole result"),
        ("library_worst_error", LESS, "the library's error of the worst element"),
        ("error_over_library", LESS, "error over the library's"),
        ("verified", MORE, "result compared with the reference"),
    ]
    predicted = [
        ("predicted_load_wavefronts", "", LESS, "wavefronts a load"),
        ("predicted_store_wavefronts", "", LESS, "wavefronts a store"),
        ("predicted_bytes_per_wavefront", "B", MORE, "bytes a wavefront"),
        ("predicted_distributed_sectors_per_request", "", LESS, "sectors a distributed request"),
    ]
    traffic = [
        ("arithmetic_intensity", "FLOP/B", PROPERTY, ASK, "FLOP a byte"),
        *[
            (f"{level}_bytes", "B", COUNT, LESS, title)
            for level, title in {
                "dram": "DRAM",
                "dram_read": "read from DRAM",
                "dram_write": "written to DRAM",
                "l2": "between SMs and L2",
                "l2_read": "read from L2",
                "l2_write": "written to L2",
                "l1": "through L1's tags",
                "bulk_copy": "fetched by TMA",
                "global": "asked of global memory",
                "compulsory": "touched in global memory",
                "distributed": "of other blocks' shared memory",
            }.items()
        ],
        ("l1_wavefronts", "", COUNT, LESS, "passes of L1's data stage"),
        ("constant_requests", "", COUNT, LESS, "requests of constant memory"),
        ("distributed_requests", "", COUNT, LESS, "requests of distributed shared memory"),
        ("distributed_sectors", "", COUNT, LESS, "sectors of distributed shared memory"),
        ("distributed_sectors_per_request", "", COUNT, LESS, "sectors a distributed request"),
        ("distributed_atomic_sectors", "", COUNT, LESS, "sectors of distributed atomics"),
        ("distributed_accesses", "", COUNT, LESS, "lanes that reach another block's memory"),
        ("shared_wavefronts", "", COUNT, LESS, "all wavefronts of the shared-memory pipe"),
    ]
    for space, unit in SPACES.items():
        for operation in OPERATIONS:
            stem = f"{space}_{operation}"
            about = f"of {space} {operation}s"
            traffic += [
                (f"{stem}_requests", "", COUNT, LESS, f"requests {about}"),
                (f"{stem}_{unit}", "", COUNT, LESS, f"{unit} {about}"),
                (f"{stem}_{unit}_ideal", "", COUNT, LESS, f"fewest {unit} {about}"),
                (f"{stem}_{unit}_per_request", "", COUNT, LESS, f"{unit} a request {about}"),
            ]
            if space == "shared":
                traffic.append((f"{stem}_conflicts", "", COUNT, LESS, f"conflicts {about}"))
    work = [
        ("active_lanes", "", COUNT, MORE, "active lanes of 32"),
        ("predicated_on_lanes", "", COUNT, MORE, "lanes of 32 that are not predicated off"),
        ("barriers", "", COUNT, LESS, "block barriers"),
        ("cluster_barriers", "", COUNT, LESS, "cluster barriers"),
        ("fp32_operations", "", COUNT, ASK, "FP32 operations"),
        ("warp_instructions", "", COUNT, LESS, "warp instructions"),
        ("warp_operations", "", COUNT, LESS, "operations of warps"),
        ("shared_atomic_serialised", "", COUNT, LESS, "turns of a shared atomic"),
        ("global_atomic_serialised", "", COUNT, LESS, "turns of a global atomic"),
        ("achieved_occupancy", "share", MEASUREMENT, MORE, "resident warps over the SM's limit"),
        ("issue_utilisation", "share", MEASUREMENT, MORE, "cycles in which a scheduler issued"),
        (
            "tensor_utilisation",
            "share",
            MEASUREMENT,
            MORE,
            "cycles in which the tensor pipe worked",
        ),
        (
            "l2_atomic_utilisation",
            "share",
            MEASUREMENT,
            MORE,
            "cycles of the busiest L2 atomic unit",
        ),
    ]
    on_launch = "achieved_occupancy"  # beside the theoretical one
    return [
        *(Counter(n, u, MEASUREMENT, b, SPEED, t) for n, u, b, t in times),
        *(
            Counter(f"stall_{n}", "share", MEASUREMENT, LESS, WAITS, t.removeprefix("for "))
            for n, t in STALLS.items()
        ),
        *(Counter(n, u, PROPERTY, b, LAUNCH, t) for n, u, b, t in launch),
        *(Counter(n, "", MEASUREMENT, b, ACCURACY, t) for n, b, t in accuracy),
        *(Counter(n, u, PROPERTY, b, PREDICTED, t) for n, u, b, t in predicted),
        *(Counter(n, u, k, b, TRAFFIC, t) for n, u, k, b, t in traffic),
        *(Counter(n, u, k, b, LAUNCH if n == on_launch else WORK, t) for n, u, k, b, t in work),
    ]


OWN: Mapping[str, Counter] = MappingProxyType({counter.name: counter for counter in _own()})


def parse(text: str) -> dict[str, Counter]:
    """Read a registry that a results file carries: a JSON list of objects, as `Counter` has them.

    Keys that are not known are left out: a newer file may carry more. Raises ValueError.
    """
    known = [each.name for each in fields(Counter)]
    try:
        entries = [{key: entry[key] for key in known} for entry in json.loads(text)]
    except (KeyError, TypeError) as error:
        raise ValueError(f"context 'counters': {error}") from error
    for entry in entries:
        if not all(isinstance(value, str) for value in entry.values()):
            raise ValueError(f"context 'counters': {entry['name']} is not of texts")
    return {entry["name"]: Counter(**entry) for entry in entries}


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


def known(name: str, own: Mapping[str, Counter] = OWN) -> Counter | None:
    """Return what a registry (`own`, or what a file carries) has of a counter, or None."""
    return own.get(name)


def better(name: str, own: Mapping[str, Counter] = OWN) -> str:
    """Say whether LESS or MORE of a counter is better; ASK where nothing tells."""
    if counter := known(name, own):
        return counter.better
    pattern = _guess(name)
    return pattern.better if pattern else ASK


def is_exact(name: str, own: Mapping[str, Counter] = OWN) -> bool:
    """Whether two runs of one program never differ in it."""
    counter = known(name, own)
    return counter is not None and counter.kind == PROPERTY


def follows_time(name: str, own: Mapping[str, Counter] = OWN) -> bool:
    """Whether it is the GPU's time or a speed, which launches and the SM clock move."""
    if counter := known(name, own):
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
