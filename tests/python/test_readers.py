# SPDX-License-Identifier: MIT
"""Results files are for other programs too: what these ask of Google Benchmark's JSON.

Read from their sources: tools/gbench/report.py of google/benchmark (compare.py), extract.ts of
github-action-benchmark (`googlecpp`) and Bencher's adapter `cpp_google`.
"""

import json
from pathlib import Path

import pytest
from ladder.io import files
from ladder.measure import process

ROOT = Path(__file__).parents[2]
WRITTEN = sorted((ROOT / "results").glob("*/study.json*"))
LONGEST_NAME = 1024  # of a benchmark in Bencher


def strict(text: str) -> dict:
    """Parse as JavaScript and Rust do: without NaN and Infinity, and each key once."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    def once(pairs: list[tuple[str, object]]) -> dict:
        assert len(dict(pairs)) == len(pairs), "a key twice"
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=once)


def check_row(row: dict) -> None:
    """All three take times and unit of every row, also of one that failed or was skipped."""
    assert row["time_unit"] in ("ns", "us", "ms", "s")
    for key in ("real_time", "cpu_time"):
        assert isinstance(row[key], float | int), key
        assert row[key] >= 0
    for key in ("iterations", "threads", "repetitions", "repetition_index"):
        assert isinstance(row[key], int), key
    assert row["run_type"] == "iteration"
    assert row["run_name"] == row["name"]
    assert 0 < len(row["name"]) <= LONGEST_NAME


@pytest.mark.parametrize("file", WRITTEN, ids=lambda path: path.parent.name)
def test_other_readers_take_the_program_s_files(file):
    document = strict(files.read_text(file))
    context = document["context"]
    for key in ("date", "host_name", "executable", "num_cpus", "mhz_per_cpu", "load_avg"):
        assert key in context
    assert all(isinstance(cache, dict) for cache in context["caches"])  # Bencher wants the list
    for row in document["benchmarks"]:
        check_row(row)
    names = [row["name"] for row in document["benchmarks"]]  # compare.py pairs rows by them
    assert len(set(names)) == len(names) > 0


def test_they_take_rows_that_a_run_had_to_write_itself():
    check_row(strict(json.dumps(process.error_row("sgemm/tiled/n:8", "killed by SIGSEGV"))))


def test_a_reader_would_refuse_what_is_none():
    for text in ('{"real_time": NaN}', '{"real_time": Infinity}', '{"a": 1, "a": 2}'):
        with pytest.raises((ValueError, AssertionError)):
            strict(text)
