# SPDX-License-Identifier: MIT
"""NVBench's JSON: its states are rows; what it did not measure is told of."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from inputs import INPUTS, put, rows_of, told
from ladder.commands.cli import main
from ladder.io import files


def test_nvbench_s_states_are_rows():
    assert files.read(INPUTS / "nvbench.json")["context"] == {
        "executable": "./cub.bench.reduce.sum.base",
        "nvbench_version": "0.1.0",
        "nvbench_time": "nv/cold/time/gpu/mean",
        "gpu_name": "NVIDIA H200",
        "cache_mode": "cold",
    }
    rows = rows_of(INPUTS / "nvbench.json")
    assert list(rows) == [
        "base/T{ct}:F32/Elements{io}:65536",
        "base/T{ct}:F32/Elements{io}:268435456",
        "base/T{ct}:C64/Elements{io}:268435456",
        "simple",
    ]
    row = rows["base/T{ct}:F32/Elements{io}:268435456"]
    assert row["seconds"] == pytest.approx(240e-6)
    assert row["bytes_per_second"] == pytest.approx(4 * 2**28 / 240e-6)
    assert row["items_per_second"] == pytest.approx(2**28 / 240e-6)
    assert row["dram_utilisation"] == pytest.approx(4 * 2**28 / 240e-6 / 4.8e12)
    assert (row["samples"], row["sm_clock_hz"]) == (1600, 1.98e9)
    assert row["median_noise"] == pytest.approx(0.002 / math.sqrt(1600))
    skipped = rows["base/T{ct}:C64/Elements{io}:268435456"]
    assert skipped["status"] == "skipped"
    assert skipped["reason"] == "Skipping: out of memory"
    assert rows["simple"]["peak_memory"] == 123456  # of the program's own


def state(summaries: dict[str, float | str], device: int = 0) -> dict:
    entries = [
        {"tag": tag, "data": [{"name": "value", "type": "float64", "value": str(value)}]}
        for tag, value in summaries.items()
    ]
    return {"device": device, "axis_values": None, "summaries": entries, "is_skipped": False}


def suite_of(*states: dict, **more) -> str:
    return json.dumps({"benchmarks": [{"name": "b", "states": list(states)}]} | more)


def only(tmp_path: Path, text: str) -> dict:
    (row,) = files.read(put(tmp_path, "a.json", text))["benchmarks"]
    return row


GPU = "nv/cold/time/gpu/"


def test_nvbench_s_median_goes_before_its_mean(tmp_path):
    times = {f"{GPU}mean": 2e-6, f"{GPU}median": 1e-6, f"{GPU}stdev/relative": 0.1}
    row = only(tmp_path, suite_of(state(times | {"nv/cold/sample_size": 25})))
    assert row["real_time"] == pytest.approx(1.0)
    assert row["median_noise"] == pytest.approx(math.sqrt(math.pi / 2) * 0.1 / 5)
    quartiles = {f"{GPU}q1": 0.9e-6, f"{GPU}q3": 1.2e-6}
    row = only(tmp_path, suite_of(state(times | quartiles | {"nv/cold/sample_size": 25})))
    assert "median_noise" not in row
    assert [row[f"{key}_seconds"] for key in ("q1", "median", "q3")] == [0.9e-6, 1e-6, 1.2e-6]


def test_nvbench_s_noise_of_few_samples_is_unknown(tmp_path):
    """It writes inf as the deviation of fewer than five."""
    times = {f"{GPU}mean": 2e-6, f"{GPU}stdev/relative": "inf", "nv/cold/sample_size": 3}
    assert "median_noise" not in only(tmp_path, suite_of(state(times)))


def test_other_times_of_nvbench_stand_in_for_cold_ones(tmp_path):
    for tag, mode in (("nv/batch/time/gpu/mean", "warm"), ("nv/cpu_only/time/cpu/mean", None)):
        document = files.read(put(tmp_path, "a.json", suite_of(state({tag: 3e-6}))))
        assert document["benchmarks"][0]["real_time"] == pytest.approx(3.0)
        assert document["context"].get("cache_mode") == mode
    row = rows_of(put(tmp_path, "a.json", suite_of(state({}))))["b"]
    assert (row["status"], row["reason"]) == ("error", "NVBench recorded no time")


def test_each_device_of_nvbench_has_rows_of_its_own(tmp_path):
    devices = [{"id": 0, "name": "A100"}, {"id": 1, "name": "H100"}, {"id": 2, "name": "L4"}]
    states = [state({f"{GPU}mean": 1e-6 * (n + 1)}, n) for n in range(2)]
    document = files.read(put(tmp_path, "a.json", suite_of(*states, devices=devices)))
    assert [row["name"] for row in document["benchmarks"]] == ["b/Device:0", "b/Device:1"]
    assert document["context"]["gpu_name"] == "A100, H100"


def test_nvbench_s_first_form_is_read(tmp_path):
    """Before file version 1.0.0 summaries were an object, and numbers were no texts."""
    values = [{"name": "value", "type": "float64", "value": 5e-6}]
    axes = [{"name": "Size", "type": "int64", "value": 4096}]
    old = {"device": 0, "axis_values": axes, "summaries": {f"{GPU}mean": {"values": values}}}
    row = only(tmp_path, suite_of(old, devices=[{"id": 0, "name": "V100"}]))
    assert (row["name"], row["real_time"]) == ("b/Size:4096", pytest.approx(5.0))


def test_a_summary_of_the_program_s_own_takes_no_field_s_place(tmp_path):
    times = {f"{GPU}mean": 2e-6, "nv/cold/sample_size": 25, "iterations": 3, "x": "much"}
    row = only(tmp_path, suite_of(state(times)))
    assert (row["iterations"], row["user_iterations"]) == (25, 3)
    assert "x" not in row


BROKEN_NVBENCH = {
    "no states": (suite_of(), "has no benchmark rows"),
    "states are null": (suite_of().replace("[]", "null"), "has no benchmark rows"),
    "states are text": (suite_of().replace("[]", '"x"'), "'states' of b is not a list of objects"),
    "a state is a number": (suite_of().replace("[]", "[1]"), "'states' of b is not a list of"),
    "no name": (suite_of(state({})).replace('"b"', "3"), "a benchmark of NVBench without a name"),
    "summaries are text": (
        suite_of({"summaries": "x"}),
        "not what NVBench writes: 'summaries' of b is not a list of objects",
    ),
    "the list of benchmarks": (
        json.dumps({"benchmarks": [{"name": "b", "axes": []}]}),
        "not a Google Benchmark result",
    ),
    "cut off": (suite_of(state({}))[:-7], "truncated or not JSON"),
}


@pytest.mark.parametrize(("content", "why"), BROKEN_NVBENCH.values(), ids=BROKEN_NVBENCH.keys())
def test_a_broken_file_of_nvbench_is_told_in_a_line(tmp_path, content, why):
    assert why in told(put(tmp_path, "a.json", content))


def test_a_change_is_found_between_files_of_nvbench(tmp_path, capsys):
    slower = json.loads((INPUTS / "nvbench.json").read_text())
    for entry in slower["benchmarks"][0]["states"][1]["summaries"]:
        if entry["tag"] == f"{GPU}mean":
            entry["data"][0]["value"] = "0.00030"
    head = put(tmp_path, "head.json", json.dumps(slower))
    assert main(["compare", str(INPUTS / "nvbench.json"), str(head)]) == 1
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("SLOWER ")]
    assert line.split()[1:6] == ["base/T{ct}:F32/Elements{io}:268435456", *"240 us 300 us".split()]
