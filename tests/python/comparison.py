# SPDX-License-Identifier: MIT
"""Small files to compare: rows by name, each a time, what failed or what was skipped."""

SKIPPED = {"skipped": True, "skip_message": "no cluster"}
FAILED = {"error_occurred": True, "error_message": "wrong"}


def document(rows: dict[str, dict | float], **context: str) -> dict:
    """A small file: rows by name, each a time in us or the fields that differ."""
    base = {"gpu_name": "NVIDIA H200", "cache_mode": "cold", "build_type": "Release"}
    made = []
    for name, fields in rows.items():
        if not isinstance(fields, dict):
            fields = {"real_time": fields}
        made.append({"name": name, "run_name": name, "time_unit": "us", "real_time": 1.0, **fields})
    return {"context": base | context, "benchmarks": made}


def timed(us: float, spread: float = 0.001, clock: float | None = None) -> dict:
    seconds = us * 1e-6
    quartiles = {"q1_seconds": seconds * (1 - spread), "q3_seconds": seconds * (1 + spread)}
    counters = {"sm_clock_hz": clock} if clock else {}
    return {"real_time": us, "median_seconds": seconds, **quartiles, **counters}
