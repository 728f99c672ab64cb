# SPDX-License-Identifier: MIT
"""Distinguishes Google Benchmark's own fields from a program's counters of the same name.

Its JSON reporter writes an object's own fields first, then the program's: counters in a row, added
context in the context. So a key stands twice, and the first is the library's. Only a label comes
after the counters, and is text, as no counter is.
"""

from __future__ import annotations

from typing import Any

# Numbers and texts that every row has. Others are told from a counter by their type.
ROW = frozenset(
    "name family_index per_family_instance_index run_name run_type repetitions repetition_index "
    "threads iterations real_time cpu_time time_unit".split()
)
_SOME = frozenset(
    "aggregate_name aggregate_unit label error_occurred error_message skipped skip_message "
    "cpu_coefficient real_coefficient big_o rms".split()
)
FIELDS = ROW | _SOME
_CONTEXT = frozenset(
    "date host_name executable num_cpus mhz_per_cpu cpu_scaling_enabled aslr_enabled caches "
    "load_avg library_version library_build_type json_schema_version".split()
)


def told_apart(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the entries of a JSON object in which keys may appear twice.

    The program's own is found as `user_KEY`. Raises ValueError for a key that is not the library's.
    """
    found: dict[str, Any] = {}
    fields = FIELDS if any(key == "name" for key, _ in pairs) else _CONTEXT
    for key, value in pairs:
        if key not in found:
            found[key] = value
            continue
        own = f"user_{key}"
        if key not in fields or own in found:
            raise ValueError(f"duplicate key '{key}'")
        if key == "label" and isinstance(value, str):
            found[key], found[own] = value, found[key]
        else:
            found[own] = value
    return found
