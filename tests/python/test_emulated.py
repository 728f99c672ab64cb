# SPDX-License-Identifier: MIT
"""Emulated results: tables of requests, never of speed."""

import json
import math

import emulated
import ladder as package
import pytest
import suite
from conftest import ROOT
from ladder.commands.cli import main
from ladder.io import emulator_details
from ladder.io.results import load_results
from ladder.report import closing
from printed import table_rows


def test_no_time_of_an_emulated_row_is_kept(emulated_folder):
    rows = package.load(emulated_folder)
    assert set(rows["source"]) == {"emulated"}
    assert set(rows["status"]) == {"ok", "skipped"}
    assert rows["seconds"].isna().all()
    assert rows["bytes_per_second"].isna().all()


def test_rungs_without_registers_are_named_with_what_finds_them(tmp_path, capsys):
    document = emulated.document()
    for told in (False, True):
        (results,) = load_results(suite.write(tmp_path / "a.json", document))
        closing.emulated(results, [], checked=False)
        out = capsys.readouterr().out
        assert ("of transpose/padded: building ladder_bench" in out) == told
        for row in document["benchmarks"]:
            if row["name"].startswith("transpose/padded/"):
                row.pop("registers", None)


def test_a_study_of_all_ends_with_what_each_ladder_changed_most(capsys):
    (results,) = load_results(ROOT / "results/emulated-h200/study.json")
    closing.emulated(results, [], checked=False)
    told = capsys.readouterr().out.splitlines()
    counter = "shared load wavefronts per request"
    assert f"Matrix transpose: padded on tiled, {counter}: 32 → 1" in told
    assert not any(line.startswith("Latency: ") for line in told)  # no step of it has a target


def test_rates_in_an_emulated_file_are_dropped(tmp_path):
    document = emulated.document()
    for row in document["benchmarks"]:
        row |= {"bytes_per_second": 1e12, "median_seconds": 1.0, "percent_of_ceiling": 50.0}
    rows = package.load(suite.write(tmp_path / "a.json", document))
    assert rows[["bytes_per_second", "median_seconds", "percent_of_ceiling"]].isna().all(axis=None)


@pytest.mark.parametrize("swap", [False, True])
def test_emulated_results_are_never_compared(emulated_folder, whole, capsys, swap):
    sides = [str(whole), str(emulated_folder)]
    for options in ([], ["--force"]):
        assert main(["compare", *(reversed(sides) if swap else sides), *options]) == 5
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"ladder: {emulated_folder}: emulated: has no speeds to compare")
        assert "--metric shared_load_wavefronts" in err


def test_compare_passes_over_what_stands_beside_timed_results(whole, tmp_path, capsys):
    emulated.write(tmp_path / "emulated-h200")
    suite.write(tmp_path / "b.json", json.loads(whole.read_text()))
    assert main(["compare", str(whole), str(tmp_path)]) == 0
    timed = sum("real_time" in row for row in suite.rows())
    skipped = sum("skipped" in row for row in suite.rows())
    *_, last = capsys.readouterr().out.splitlines()
    assert "167 NOISY, 25 SKIPPED, 348 SAME" in last
    assert timed - skipped == 158 + 357


@pytest.mark.parametrize("name", ["overview", "roof", "fish"])
def test_tables_of_speed_are_refused_in_one_line(emulated_folder, tmp_path, capsys, name):
    assert main(["table", str(emulated_folder), "--ladder", name]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ladder: no table '{name}' from emulated results, whose times are no")
    assert "transactions/transpose" in err
    readme = tmp_path / "README.md"
    readme.write_text(f"<!-- ladder:table {name} -->\n<!-- ladder:end -->\n")
    assert main(["table", str(emulated_folder), "--update", str(readme)]) == 2
    assert f"no table '{name}' from emulated results" in capsys.readouterr().err


def test_the_table_tells_transactions_and_limits(emulated_folder, capsys):
    assert main(["table", str(emulated_folder), "--ladder", "transpose"]) == 0
    out = capsys.readouterr().out
    rows = table_rows(out)
    told = dict(zip(rows["rung"], rows["`tiled`"], strict=True))
    assert told["shared wavefronts per request, load / store / atomic"] == "32 / 1 / –"
    assert told["global sectors per request, load / store / atomic"] == "4 / 4 / –"
    assert not any("limited by" in column for column in told)  # nothing does: all warps fit
    assert (told["registers"], told["shared"], told["occupancy"]) == ("32", "4.00 KiB", "100%")
    assert rows["`padded`"][2] == "1 / 1 / –"
    assert rows["`naive`"][2] == ""
    assert "- `cublas` skipped: a library's kernel" in out
    assert "rows = columns = 1024, element 4" in out  # the small headline
    assert "B/s" not in out


def test_each_value_of_a_sweep_has_its_line(emulated_folder, capsys):
    assert main(["table", str(emulated_folder), "--ladder", "histogram"]) == 0
    out = capsys.readouterr().out
    rows = table_rows(out)
    told = dict(zip(rows["rung"], rows["`distributed (cluster 2)`"], strict=True))
    assert told["distributed accesses"] == "524,288"
    assert "\nIn these tables:\n- " in out
    assert told["shared wavefronts per request, load / store / atomic"] == "– / – / 2.5"


@pytest.mark.parametrize(
    ("small", "headline", "shown"),
    [("repetitions:4", "x:1", 4), ("x:2", "repetitions:4", 4), ("", "", 4)],
)
def test_a_headline_that_was_not_run_gives_way(tmp_path, capsys, small, headline, shown):
    document = emulated.document()
    catalogue = json.loads(document["context"]["ladders"])
    catalogue[1] |= {"small_headline": small, "headline": headline}
    document["context"]["ladders"] = json.dumps(catalogue)
    file = suite.write(tmp_path / "study.json", document)
    assert main(["table", str(file), "--ladder", "smem_layout"]) == 0
    out = capsys.readouterr().out
    assert len(table_rows(out)) == shown + 2
    assert "repetitions 4" in out


def test_the_layout_experiment_sets_prediction_beside_count(emulated_folder, capsys):
    assert main(["table", str(emulated_folder), "--ladder", "smem_layout_experiment"]) == 0
    rows = table_rows(capsys.readouterr().out)
    assert rows["rung"][2:] == [
        *("load, predicted", "load, emulated", "store, predicted", "store, emulated")
    ]
    assert rows["`row_column`"][2:] == ["32", "32", "1", "1"]
    assert rows["`row_column_padded`"][2:] == ["1", "1", "1", "1"]


def test_measured_wavefronts_join_the_experiment(emulated_folder, tmp_path, capsys):
    emulated.write_counters(tmp_path)
    results = [str(emulated_folder), str(tmp_path / "counters.json")]
    assert main(["table", *results, "--ladder", "smem_layout_experiment"]) == 0
    rows = table_rows(capsys.readouterr().out)
    assert rows["rung"][4] == "load, measured"
    assert rows["`row_column`"][2:] == ["32", "32", "32", "1", "1", "1"]


def test_update_fills_every_name(emulated_folder, tmp_path):
    emulated.write_counters(tmp_path / "nvidia-h200")
    document = tmp_path / "emulator.md"
    names = ["transactions", "transactions/histogram", "smem_layout_experiment", "prediction"]
    document.write_text(
        "".join(f"<!-- ladder:table {name} -->\n<!-- ladder:end -->\n" for name in names)
    )
    command = [
        "table",
        str(emulated_folder),
        str(tmp_path / "nvidia-h200"),
        "--update",
        str(document),
    ]
    assert main(command) == 0
    text = document.read_text(encoding="utf-8")
    assert text.count("Transpose: NVIDIA H200, emulated on a CPU") == 1
    assert text.count("Histogram: NVIDIA H200, emulated on a CPU") == 2
    assert "9 of 9 for global sectors" in text
    assert main(command) == 0
    assert document.read_text(encoding="utf-8") == text


def test_speed_and_requests_stay_apart(whole, tmp_path, capsys):
    results = tmp_path / "results"
    results.mkdir()
    emulated.write(results / "emulated-h200")
    suite.write(results / "study.json", json.loads(whole.read_text()))
    emulated.write_counters(results / "nvidia-h200")
    output = tmp_path / "out"
    options = ["--output", str(output), "--filter", "^(smem_layout|roof)/"]
    assert main(["plot", str(results), *options]) == 0
    capsys.readouterr()
    names = {str(path.relative_to(output)) for path in output.rglob("*.svg")}
    own = {f"emulated-h200/smem_layout-{kind}.svg" for kind in ("occupancy", "banks")}
    own |= {"emulated-h200/prediction.svg"}
    assert names == own | {"smem_layout-matrix.svg", "roofs.svg"}
    assert main(["table", str(results), "--ladder", "overview"]) == 0
    assert capsys.readouterr().out.count("NVIDIA H200, ") == 1


def broken(change) -> str:
    document = emulated.details()
    change(document)
    return json.dumps(document)


BROKEN = {
    "empty": ("", "empty"),
    "truncated": ('{"lines": [', "truncated or not JSON"),
    "list": ("[]", "Expected `object`, got `array`"),
    "no occupancy": ('{"lines": []}', "missing required field `occupancy`"),
    "line is text": ('{"lines": ["a"], "occupancy": []}', "at `$.lines[0]`"),
    "line lacks a row": (
        broken(lambda d: d["lines"][1].pop("row")),
        "field `row` - at `$.lines[1]`",
    ),
    "31 lanes": (
        broken(lambda d: d["lines"][0]["worst_request"].pop()),
        "length >= 32 - at `$.lines[0].worst_request`",
    ),
    "lane is text": (
        broken(lambda d: d["lines"][0]["worst_request"].__setitem__(3, "x")),
        "Expected `float | null`, got `str` - at `$.lines[0].worst_request[3]`",
    ),
    "lane is negative": (
        broken(lambda d: d["lines"][0]["worst_request"].__setitem__(3, -1)),
        "Expected `float` >= 0.0 - at `$.lines[0].worst_request[3]`",
    ),
    "curve is a number": (
        broken(lambda d: d["occupancy"][0].update(by_block=3)),
        "at `$.occupancy[0].by_block`",
    ),
    "point is text": (
        broken(lambda d: d["occupancy"][0].update(by_block=["x"])),
        "at `$.occupancy[0].by_block[0]`",
    ),
    "empty curve": (
        broken(lambda d: d["occupancy"][0].update(by_shared=[])),
        "length >= 1 - at `$.occupancy[0].by_shared`",
    ),
    "registers is text": (
        broken(lambda d: d["occupancy"][0].update(registers="32")),
        "Expected `float`, got `str` - at `$.occupancy[0].registers`",
    ),
}


@pytest.mark.parametrize(("content", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_details_are_named_in_one_line(tmp_path, capsys, content, told):
    emulated.write(tmp_path)
    file = tmp_path / "details.json"
    file.write_text(content)
    assert main(["plot", str(tmp_path), "--output", str(tmp_path / "out")]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ladder: {file}: ")
    assert told in err
    assert err.count("\n") == 1
    assert main(["table", str(tmp_path)]) == 0  # the tables need none of it


def test_details_alone_are_no_result(tmp_path, capsys):
    emulated.write(tmp_path)
    (tmp_path / "study.json").unlink()
    assert main(["table", str(tmp_path)]) == 3
    assert capsys.readouterr().err == f"ladder: {tmp_path}: no results below this directory\n"
    assert main(["table", str(tmp_path / "details.json")]) == 3
    assert "details.json: details of emulated results" in capsys.readouterr().err


def test_an_earlier_study_has_its_own_details(tmp_path):
    earlier = emulated.write(tmp_path).rename(tmp_path / "study-20260101T000000Z.json.old")
    (tmp_path / "details.json").rename(tmp_path / "details-20260101T000000Z.json.old")
    emulated.write(tmp_path, with_details=False)
    assert emulator_details.load(load_results(tmp_path / "study.json")[0]) is None
    found = emulator_details.load(load_results(earlier)[0])
    assert len(found.lines) == len(emulated.details()["lines"])


def test_a_rung_that_failed_to_verify_is_reported(tmp_path, capsys):
    document = emulated.document()
    document["benchmarks"][0] |= {"error_occurred": True, "error_message": "wrong at [7]"}
    file = suite.write(tmp_path / "study.json", document)
    assert main(["table", str(file), "--ladder", "transpose"]) == 0
    assert r"- `naive` error: wrong at \[7\]" in capsys.readouterr().out
    assert main(["plot", str(file), "--output", str(tmp_path / "out")]) == 0
    assert "transpose/naive" in capsys.readouterr().err


def test_nan_counters_leave_gaps_only(tmp_path, capsys):
    document = emulated.document()
    for row in document["benchmarks"]:
        for key in row:
            if key.endswith(("_ideal", "occupancy")) or key == "compulsory_bytes":
                row[key] = math.nan
    file = suite.write(tmp_path / "study.json", document)
    assert main(["table", str(file)]) == 0
    assert "nan" not in capsys.readouterr().out
    assert main(["plot", str(file), "--output", str(tmp_path / "out")]) == 0


def told_of(out: str, rung: str) -> dict[str, str]:
    rows = table_rows(out)
    return dict(zip(rows["rung"], rows[f"`{rung}`"], strict=True))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"theoretical_occupancy": 0.5, "occupancy_limit_shared": 1.0}, "shared memory"),
        ({"theoretical_occupancy": 0.9394, "resident_clusters": 124.0}, "clusters"),
        ({"theoretical_occupancy": 0.5, "resident_clusters": 132.0}, "warps, registers"),
    ],
)
def test_what_limits_occupancy_is_named_as_that(tmp_path, capsys, more, told):
    document = emulated.document()
    for row in document["benchmarks"]:
        if row["name"].endswith("/cluster:2/manual_time"):
            row |= more
    file = suite.write(tmp_path / "study.json", document)
    assert main(["table", str(file), "--ladder", "histogram"]) == 0
    out = capsys.readouterr().out
    assert told_of(out, "distributed (cluster 2)")["occupancy limited by"] == told
    assert table_rows(out)["`shared`"][-1] == "100%"  # and nothing after it
    assert "| limited by" not in out


def test_counts_are_written_in_one_way(tmp_path, capsys):
    document = emulated.document()
    for row in document["benchmarks"]:
        if row["name"].startswith("histogram/shared/"):
            row |= {"global_bytes": 8448.0 * row["compulsory_bytes"], "barriers": 1081344.0}
            row["global_load_sectors_per_request"] = 999.7
    file = suite.write(tmp_path / "study.json", document)
    assert main(["table", str(file), "--ladder", "histogram"]) == 0
    told = told_of(capsys.readouterr().out, "shared")
    assert told["requested / compulsory bytes"] == "8,448"
    assert told["barriers"] == "1,081,344"
    assert told["global sectors per request, load / store / atomic"] == "1,000 / – / 4"


def test_the_columns_that_a_table_has_are_explained_below_it(emulated_folder, whole, capsys):
    for ladder, explained in (("transpose", False), ("histogram", True)):
        assert main(["table", str(emulated_folder), "--ladder", ladder]) == 0
        out = capsys.readouterr().out
        assert "\n- requested / compulsory bytes: bytes of " in out
        assert ("\n- distributed accesses: accesses of " in out) == explained
        assert "\n\n\n" not in out
        assert out.endswith("explains every count\n")
    assert main(["table", str(whole), "--ladder", "transpose"]) == 0
    assert "explains every count" not in capsys.readouterr().out
