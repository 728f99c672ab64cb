# SPDX-License-Identifier: MIT
"""What limits a row: the share of each limit that it uses, from its hardware counters.

Below, t is the time of the row (`median_seconds`). A roof is the best row of that name in the same
results.

- DRAM: bytes / t over the roof of the same mix. That is `dram_read` where under a tenth of the
  bytes is written, `dram_write` where under a tenth is read, and else the better of `memcpy` and
  `dram_copy`.
- L2: bytes between L1 and L2 / t over the roof `l2_read`. Its speed is that of the bytes which came
  through L2: requests of neighbouring SMs for the same data are merged before they reach it.
- L1: 128 bytes for each wavefront of global memory / t over `shared_memory`, since L1 and shared
  memory are one array. Where `l1_wavefronts` were not counted, a lower bound stands in: the
  requests, or the bytes / 128 if that is more. Scattered requests take more than the bound.
- shared memory: 128 bytes for each wavefront / t over `shared_memory`. Where `shared_wavefronts`
  were counted, they include those of asynchronous copies, of wgmma, of shuffles and of requests
  without an active lane.
- distributed shared memory: 32 bytes for each sector / t over `distributed_shared_memory`.
- distributed atomics: sectors of atomics on another block's memory / t, over the highest rate of
  any roof.
- issue slots: cycles in which a scheduler issued, over cycles in which it had warps.
- FP32: operations / t over `fma`. Where operations were not counted, as in launches longer than
  0.1 s, those of the algorithm stand in, unless tensor cores worked.
- tensor cores: cycles in which they worked, over cycles in which the SM did. mma.sync keeps them as
  busy as wgmma does, at two thirds of its speed.
- atomics: the larger of two shares. One is sectors / t over the highest rate of any roof; the other
  is the utilisation of the busiest L2 slice over the highest of any roof, at most 1.
- block launches: blocks / t over the highest rate of any roof of DRAM.
- launch: the time of an empty kernel (`launch_nanoseconds`) over t.
- power: the power of launches back to back, over the board's limit.
- heat: the driver's readings that named a temperature limit, of all readings.

The limiter is found by these rules, of which the first that applies counts:

1. Power or heat, if the driver named such a limit in half of its readings and the clock was lower
   by more than 3 %.
2. The launch, if it takes two fifths of the time.
3. The largest share that counts. A share on the SM (L1, shared memory, issue slots, FP32, tensor
   cores) counts from one half: work comes in phases, and two phases of one block do not overlap. A
   share off the SM (DRAM, L2, distributed shared memory, atomics there and in the L2, block
   launches) counts from 0.7: below that, more requests in flight would still raise the speed. Every
   instruction takes an issue slot. So issue slots yield to a limit on the SM that reaches four
   fifths of their share, and to a larger share of any limit off the SM.
4. Latency: warps wait. The longest stall is named, with its share of their cycles, and so is an
   occupancy below one half. Where warps wait for a full queue or for stores to drain, the limiter
   is called unexplained: something without a roof here limits the row. The two largest shares are
   named then.

What this cannot see:

- Limits without a roof: tags of L1, sectors written in part, and atomics on floats (L2 adds them
  more slowly than integers) or on one address after the other.
- Phases that differ. Counters are of another launch than the time, and sums over the kernels of a
  row.
- Shares of small cases. A roof that is itself launch by more than a tenth is not used. Where the
  roofs of DRAM, L2 and shared memory were not measured, no row is called limited by issue slots or
  latency.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ladder.analysis import roofs
from ladder.analysis.study import own_speed
from ladder.io.results import Results
from ladder.model import units
from ladder.model.counters import HELD, OPERATIONS
from ladder.model.rows import Row

LAUNCH, LATENCY, UNKNOWN, SLOTS = "launch", "latency", "unexplained", "issue slots"
POWER, HEAT = "power", "heat"
COUNTS_FROM = {  # least share that makes a limiter
    "DRAM": 0.7,
    "L2": 0.7,
    "L1": 0.5,
    "shared memory": 0.5,
    "distributed shared memory": 0.7,
    "distributed atomics": 0.7,
    SLOTS: 0.5,
    "FP32": 0.5,
    "tensor cores": 0.5,
    "atomics": 0.7,
    "block launches": 0.7,
    LAUNCH: 0.4,
}
_OFF_SM = {name for name, least in COUNTS_FROM.items() if least == 0.7}
_YIELDS_TO = 0.8  # of the issue slots' share
_WAVEFRONT_BYTES, _SECTOR_BYTES = 128, 32
_ONE_WAY = 0.1  # largest share of the other direction in traffic that counts as one
_MOST_LAUNCH = 0.1  # of a roof's own time
_IMPOSSIBLE = 1.05  # a share beyond it is a fault: counters and time are of two launches
_LOW_OCCUPANCY = 0.5
_CANDIDATES = 2
_FULL_CLOCK = 0.97  # of the SM clock's maximum
_TENSOR_CORES_IDLE = 0.05  # utilisation under which no products were theirs
STALLS = {  # what a warp waits for; a warp that is not selected could have gone on
    "stall_long_scoreboard": "memory",
    "stall_short_scoreboard": "shared memory",
    "stall_barrier": "barriers",
    "stall_membar": "fences",
    "stall_mio_throttle": "a full shared-memory queue",
    "stall_lg_throttle": "a full L1 queue",
    "stall_math_pipe_throttle": "busy pipes",
    "stall_wait": "dependent instructions",
    "stall_drain": "stores to drain",
    "stall_no_instruction": "instructions to fetch",
    "stall_branch_resolving": "branches",
    "stall_dispatch_stall": "dispatch",
    "stall_imc_miss": "constants",
    "stall_gmma": "tensor cores",
}
_QUEUES = {STALLS[name] for name in ("stall_drain", "stall_lg_throttle", "stall_mio_throttle")}


@dataclass(frozen=True)
class Limiter:
    """What limits a row, and the share of that limit (0 to 1) that the row uses.

    For LATENCY and UNKNOWN, `stall` says what warps wait for, and `share` is the share of their
    cycles that this wait takes. Where no stalls were counted, `stall` is empty and `share` is NaN.
    """

    name: str  # a key of COUNTS_FROM, or POWER, HEAT, LATENCY or UNKNOWN
    share: float
    stall: str = ""
    few_warps: bool = False  # latency at an occupancy below one half
    candidates: str = ""  # of what is not known: the two limits that the row uses most

    def __str__(self) -> str:
        """Write it for a table: `DRAM 94%`, `latency at low occupancy (memory 57%)`."""
        share = units.percent(100 * self.share)
        if self.name not in (LATENCY, UNKNOWN):
            return f"{self.name} {share}" if self.share == self.share else self.name
        name = f"{self.name} at low occupancy" if self.few_warps else self.name
        waits = f"{self.stall} {share}" if self.stall else ""
        about = "; ".join(filter(None, (waits, self.candidates)))
        return f"{name} ({about})" if about else name


class Limits:
    """The limits of one GPU, as its own results hold them."""

    def __init__(self, results: Results) -> None:
        self._launch = units.parse(results.context.get("launch_nanoseconds")) * 1e-9
        self._watts = units.parse(results.context.get("watts_limit"))
        self._clock = units.parse(results.context.get("sm_clock_max_hz"))
        self._roofs = {
            name: own_speed(row)
            for name, row in roofs.measured(results).items()
            if not self._launch / row.seconds > _MOST_LAUNCH
        }
        ladders = {ladder.name for ladder in results.ladders if ladder.is_roof}
        roof = [row for row in results.ceilings if row.ladder in ladders]
        # Of the rungs that are made for it: where these were not measured, others are no roof.
        atomics = [row for row in roof if row.rung.startswith("global_atomics_")]
        remote = [row for row in roof if row.rung.startswith("distributed_atomics_")]
        dram = [row for row in roof if row.rung.startswith("dram_")]
        self._atomic_sectors = _most(row.global_atomic_sectors / row.seconds for row in atomics)
        self._atomic_utilisation = _most(row.l2_atomic_utilisation for row in atomics)
        self._remote = _most(row.distributed_atomic_sectors / row.seconds for row in remote)
        self._blocks = _most(row.grid_blocks / row.seconds for row in dram)

    def shares(self, row: Row) -> dict[str, float]:
        """Return the share of each limit that `row` uses, 0 to 1, by the names of COUNTS_FROM.

        A limit is left out where its counter or its roof is missing. The result is empty for a row
        without hardware counters.
        """
        if not (row.seconds > 0 and row.issue_utilisation >= 0):
            return {}
        shared = sum(row.counter(f"shared_{op}_wavefronts") for op in OPERATIONS)
        if row.shared_wavefronts >= 0:
            shared = row.shared_wavefronts
        requests = row.global_load_requests + row.global_store_requests
        wavefronts = _most((row.l1_wavefronts, requests, row.l1_bytes / _WAVEFRONT_BYTES))
        data = self._roof("shared_memory") * row.seconds
        distributed = self._roof("distributed_shared_memory") * row.seconds
        found = {
            "DRAM": row.dram_bytes / row.seconds / self._dram(row),
            "L2": row.l2_bytes / row.seconds / self._roof("l2_read"),
            "L1": wavefronts * _WAVEFRONT_BYTES / data,
            "shared memory": shared * _WAVEFRONT_BYTES / data,
            "distributed shared memory": row.distributed_sectors * _SECTOR_BYTES / distributed,
            "distributed atomics": row.distributed_atomic_sectors / row.seconds / self._remote,
            SLOTS: row.issue_utilisation,
            "FP32": _fp32_per_second(row) / self._roof("fma"),
            "tensor cores": row.tensor_utilisation,
            "atomics": _largest(
                row.global_atomic_sectors / row.seconds / self._atomic_sectors,
                min(row.l2_atomic_utilisation / self._atomic_utilisation, 1.0),
            ),
            "block launches": row.grid_blocks / row.seconds / self._blocks,
            LAUNCH: self._launch / row.seconds,
        }
        return {name: share for name, share in found.items() if share == share}

    def limiter(self, row: Row) -> Limiter | None:
        """Return what limits `row` by the rules above; None for a row without counters."""
        shares = self.shares(row)
        if not shares:
            return None
        if row.sm_clock_hz < _FULL_CLOCK * self._clock:
            if row.clock_held_by_power >= HELD:
                return Limiter(POWER, row.watts / self._watts)
            if row.clock_held_by_heat >= HELD:
                return Limiter(HEAT, row.clock_held_by_heat)
        counting = {name: s for name, s in shares.items() if s >= COUNTS_FROM[name]}
        if LAUNCH in counting:
            return Limiter(LAUNCH, counting[LAUNCH])
        slots = counting.pop(SLOTS, 0.0)
        rivals = {name: s for name, s in counting.items() if s >= _YIELDS_TO * slots}
        if slots > 0:
            rivals |= {name: s for name, s in shares.items() if name in _OFF_SM and s > slots}
        if rivals:
            return Limiter(*max(rivals.items(), key=lambda item: item[1]))
        if math.isnan(self._dram(row) + self._roof("l2_read") + self._roof("shared_memory")):
            return None
        if slots > 0:
            return Limiter(SLOTS, slots)
        stall, share = longest_stall(row)
        few_warps = row.achieved_occupancy < _LOW_OCCUPANCY
        if stall not in _QUEUES:
            return Limiter(LATENCY, share, stall, few_warps)
        most = sorted(shares.items(), key=lambda item: item[1], reverse=True)
        nearest = [
            f"{name} {units.percent(100 * share_of_it)}"
            for name, share_of_it in most
            if name not in (LAUNCH, SLOTS)
        ]
        return Limiter(UNKNOWN, share, stall, few_warps, ", ".join(nearest[:_CANDIDATES]))

    def impossible(self, row: Row) -> list[str]:
        """Name the limits that `row` exceeds, which is a fault of the accounting."""
        return [
            f"{name} {units.percent(100 * share)}"
            for name, share in self.shares(row).items()
            if name != LAUNCH and share > _IMPOSSIBLE
        ]

    def _roof(self, name: str) -> float:
        return self._roofs.get(name, math.nan)

    def _dram(self, row: Row) -> float:
        """The roof of the same mix of reads and writes, or the copy's where that is missing."""
        copy = _most((self._roof("memcpy"), self._roof("dram_copy")))
        if row.dram_write_bytes < _ONE_WAY * row.dram_bytes:
            return self._roofs.get("dram_read", copy)
        if row.dram_read_bytes < _ONE_WAY * row.dram_bytes:
            return self._roofs.get("dram_write", copy)
        return copy


def problems(results: Results, ladders: Collection[str] | None = None) -> list[str]:
    """Say which rows exceed a limit, by speed or by counters, and which roofs a datasheet.

    Only the ladders named in `ladders` are searched; by default all that have rows.
    """
    names = {row.ladder for row in results.rows} if ladders is None else set(ladders)
    limits = Limits(results)
    return roofs.problems(results, names) + [
        f"{row.name}: {', '.join(found)} of its limit"
        for row in results.rows
        if row.ladder in names and row.status == "ok" and (found := limits.impossible(row))
    ]


def longest_stall(row: Row) -> tuple[str, float]:
    """Return what warps waited for most, and the share of their cycles that it took.

    It is "" and NaN where no stall was counted, or where stalls that were not counted took more.
    """
    found = {what: share for name, what in STALLS.items() if (share := row.counter(name)) > 0}
    stall, share = max(found.items(), key=lambda item: item[1], default=("", math.nan))
    rest = 1 - sum(found.values()) - max(row.stall_not_selected, 0.0)
    return (stall, share) if share >= rest else ("", math.nan)


def _fp32_per_second(row: Row) -> float:
    if math.isnan(row.fp32_operations) and row.tensor_utilisation < _TENSOR_CORES_IDLE:
        return row.flops_per_second
    return row.fp32_operations / row.seconds


def _most(values: Iterable[float]) -> float:
    """Return the largest value above zero, or NaN: what was never used is no roof."""
    return max((value for value in values if value > 0), default=math.nan)


def _largest(*values: float) -> float:
    """Return the largest value, or NaN where there is none."""
    return max((value for value in values if value == value), default=math.nan)
