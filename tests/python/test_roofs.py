# SPDX-License-Identifier: MIT
"""Roofs: the best row of each, what datasheets say, and rows above either."""

import math
import re
from dataclasses import astuple

import limited
import pytest
import suite
from conftest import committed
from ladder.analysis import limits, roofs
from ladder.analysis.study import own_speed
from ladder.commands.cli import main
from ladder.io.results import load_results

BRIEF, AT = "transpose/vectorised/rows:1024/columns:1024/element:4/", 101.2


def above_a_brief_ceiling(**changes) -> dict:
    """A file with a row 1.2 % above a copy that takes 9 us, of a launch of 3.3 us."""
    document = suite.document(launch_nanoseconds="3300")
    (row,) = [r for r in document["benchmarks"] if r["name"].startswith(BRIEF)]
    row["percent_of_ceiling"] = changes.pop("percent", AT)
    document["context"] |= changes
    return document


def read(tmp_path, document):
    (results,) = load_results(suite.write(tmp_path / "a.json", document))
    return results


def test_the_fastest_row_of_a_roof_stands_for_it_in_its_own_quantity(tmp_path):
    document = suite.document()
    rows = [row for row in document["benchmarks"] if row["name"].startswith("roof/fma/")]
    document["benchmarks"].append(
        rows[0] | {"run_name": "roof/fma/size:4096/manual_time", "flops_per_second": 64e12}
    )
    best = roofs.measured(read(tmp_path, document))
    assert set(best) == set(suite.CEILINGS)
    assert best["fma"].case == "size:4096"
    assert best["dram_read"].bytes_per_second == pytest.approx(suite.CEILINGS["dram_read"])


def test_roofs_of_atomics_are_ranked_by_atomics(tmp_path):
    document = limited.document(limited.row("kernel"))
    for row in document["benchmarks"]:
        if "atomics_per_second" in row:
            del row["bytes_per_second"]
    (slow,) = [r for r in document["benchmarks"] if "/shared_atomics_same/" in r["name"]]
    name = slow["name"].replace("4096", "8192")
    faster = {"name": name, "run_name": name, "atomics_per_second": 2 * slow["atomics_per_second"]}
    document["benchmarks"].append(slow | faster)
    best = roofs.measured(read(tmp_path, document))
    assert best["shared_atomics_same"].case == "size:8192"
    assert set(best) == set(limited.ROOFS)


def test_a_roof_that_failed_is_none(tmp_path):
    document = suite.document()
    for row in document["benchmarks"]:
        if row["name"].startswith("roof/fma/"):
            row |= {"error_occurred": True, "error_message": "wrong"}
    assert "fma" not in roofs.measured(read(tmp_path, document))


def test_a_filter_leaves_the_roofs(tmp_path):
    results = read(tmp_path, suite.document()).keep(re.compile("^sgemm/"))
    assert set(roofs.measured(results)) == set(suite.CEILINGS)


def test_results_without_roofs_have_none(data):
    (results,) = load_results(data / "foreign.json")
    assert roofs.measured(results) == {}
    assert limits.problems(results) == []


def test_peaks_are_those_of_the_gpu():
    h200 = roofs.datasheet("NVIDIA H200")
    assert [h200.peak(name) for name in ("memcpy", "dram_read", "fma", "bf16")] == [
        4.8e12,
        4.8e12,
        67e12,
        989.5e12,
    ]
    assert math.isnan(h200.peak("shared_memory"))  # no datasheet gives it
    assert roofs.datasheet("NVIDIA H200 MIG 1g.18gb") is None  # not the whole GPU


def test_every_datasheet_is_whole_and_plausible():
    for gpu in roofs._datasheets():
        *figures, source = astuple(roofs.datasheet(gpu))
        memory, fp32, tf32, bf16 = figures
        assert 0.5e12 < memory < 10e12
        assert fp32 <= tf32 <= bf16 / 1.9
        assert source


def test_what_beats_its_roof_or_its_datasheet_is_named(tmp_path):
    document = suite.document()
    for row in document["benchmarks"]:
        if row["name"].startswith("roof/fma/"):
            row["flops_per_second"] = 70e12
        if row["name"].startswith("reduction/cub/elements:4096/operation:sum/"):
            row["percent_of_ceiling"] = 120.0
    found = limits.problems(read(tmp_path, document))
    assert found == [
        "reduction/cub/elements:4096/operation:sum/manual_time: "
        "120.0% of its ceiling roof/dram_read",
        "roof/fma/size:2048/manual_time: 104.5% of the datasheet's peak",
    ]


def test_a_kernel_of_another_precision_is_no_limit():
    """Three products can be faster than a third of cuBLAS's speed where k is short."""
    results = committed("nvidia-h200")
    over = [
        row.name for row in results.rows if row.rung == "fp16x3" and row.percent_of_ceiling > 105
    ]
    assert over
    assert limits.problems(results) == []


def test_no_peak_is_known_of_another_gpu(tmp_path):
    document = suite.document(gpu_name="NVIDIA T4")
    assert limits.problems(read(tmp_path, document)) == []


def test_the_roof_of_l2_is_what_came_through_it(tmp_path):
    document = limited.document(limited.row("kernel"))
    slow, fast = [r for r in document["benchmarks"] if r["name"].startswith("roof/l2_read/")]
    slow["l2_bytes"], fast["l2_bytes"] = 6.2e9, 5.1e9  # the faster one shares its requests
    best = roofs.measured(read(tmp_path, document))["l2_read"]
    assert best.name.startswith(slow["name"])
    assert own_speed(best) == pytest.approx(6.2e9 / best.seconds)


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({}, False),
        ({"percent": 105.1}, True),  # more than the launch explains
        ({"launch_nanoseconds": "300"}, True),  # ten of them are shorter than the copy
        ({"launch_nanoseconds": "unknown"}, True),
    ],
)
def test_a_few_percent_above_a_ceiling_that_is_mostly_launch_are_no_fault(
    tmp_path, changes, reported
):
    document = above_a_brief_ceiling(**changes)
    found = limits.problems(read(tmp_path, document))
    assert any(BRIEF in told for told in found) == reported


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], True),
        (["--ladder", "transpose"], True),
        (["--ladder", "overview"], True),
        (["--ladder", "smem_layout"], False),
        (["--ladder", "nothing"], False),
        (["--format", "csv", "--ladder", "transpose"], True),
        (["--format", "csv", "--ladder", "sgemm"], False),
    ],
)
def test_notes_are_of_the_ladders_that_are_shown(tmp_path, capsys, options, told):
    file = suite.write(tmp_path / "a.json", above_a_brief_ceiling(percent=120.0))
    code = main(["table", str(file), *options])
    note = f"ladder: note: NVIDIA H200, cold cache, commit 0123456: {BRIEF}manual_time: 120.0% of "
    err = capsys.readouterr().err
    assert err.startswith(note if told else "ladder: no ladder" if code else "")
    assert err.count("\n") == (1 if told or code else 0)


def test_an_updated_document_has_the_notes_of_its_tables(tmp_path, capsys):
    file = suite.write(tmp_path / "a.json", above_a_brief_ceiling(percent=120.0))
    for ladder in ("sgemm", "transpose"):
        document = tmp_path / "a.md"
        document.write_text(f"<!-- ladder:table {ladder} -->\n<!-- ladder:end -->\n")
        assert main(["table", str(file), "--update", str(document)]) == 0
        assert capsys.readouterr().err.count("ladder: note: ") == (ladder == "transpose")


def test_an_error_of_a_plot_comes_without_notes(tmp_path, capsys):
    file = suite.write(tmp_path / "a.json", above_a_brief_ceiling(percent=120.0))
    (tmp_path / "out").write_text("a file in the way")
    assert main(["plot", str(file), "-o", str(tmp_path / "out"), "--filter", "^transpose/"]) == 2
    err = capsys.readouterr().err
    assert "note" not in err
    assert err.count("\n") == 1
