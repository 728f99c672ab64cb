# SPDX-License-Identifier: MIT
"""Reading what each version of Google Benchmark writes."""

import json
import math

import ladder as package
import numpy as np
import pandas as pd
import pytest
import suite
from ladder.analysis.study import studies
from ladder.io import files
from ladder.io.results import load_results

DIALECTS = ["v1_7_1.json", "v1_8_3.json", "v1_9_1.json"]
NAIVE = "scan/naive/n:4096/kind:sum/manual_time"


def named(rows: pd.DataFrame, name: str) -> pd.Series:
    (row,) = [row for _, row in rows.iterrows() if row["name"] == name]
    return row


@pytest.mark.parametrize("file", DIALECTS)
def test_repetitions_fold_to_their_median_and_widest_quartiles(data, file):
    row = named(package.load(data / file), NAIVE)
    assert row["repetitions"] == 3
    assert row["seconds"] == pytest.approx(16.4e-6)
    assert row["q1_seconds"] == pytest.approx(16.0e-6 * 0.99)
    assert row["q3_seconds"] == pytest.approx(18.0e-6 * 1.01)
    assert row["bytes_per_second"] == pytest.approx(16384 / 16.4e-6, rel=1e-3)


@pytest.mark.parametrize("file", DIALECTS)
def test_skips_and_errors_are_told_apart_with_their_reasons(data, file):
    rows = package.load(data / file)
    skipped = named(rows, "scan/clustered/n:65536/kind:sum/cluster:2/manual_time")
    failed = named(rows, "scan/naive/n:65536/kind:sum/manual_time")
    assert (skipped["status"], skipped["reason"]) == ("skipped", "needs compute capability 9.0")
    assert (failed["status"], failed["reason"]) == ("error", "wrong at [7]: 3 instead of 4")
    assert math.isnan(skipped["seconds"])
    assert math.isnan(failed["seconds"])


@pytest.mark.parametrize("file", DIALECTS)
def test_names_are_spelled_out(data, file):
    row = named(package.load(data / file), "scan/clustered/n:4096/kind:sum/cluster:4/manual_time")
    expected = {
        "ladder": "scan",
        "rung": "clustered",
        "role": "step",
        "case": "n:4096/kind:sum",
        "sweep": "4",
        "axis_n": "4096",
        "axis_kind": "sum",
        "gpu": "NVIDIA H200",
        "commit": "89abcde-dirty",
        "label": "tail",
    }
    assert {key: row[key] for key in expected} == expected


def test_bare_nan_and_infinity_are_missing_values(data):
    assert "NaN" in (data / "v1_7_1.json").read_text()
    row = named(package.load(data / "v1_7_1.json"), NAIVE)
    assert math.isnan(row["relative_error"])
    assert math.isnan(row["waves"])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"a\u0007b", "a\ufffdb"),
        (r"a\bb", "a\ufffdb"),
        (r"a\ud800b", "a\ufffdb"),
        ("a\x07b", "a\ufffdb"),  # as 1.7.1 writes it
        ("a\uffffb", "a\ufffdb"),
        (r"a\tb \"c\" \\", 'a\tb "c" \\'),
        ("a × b", "a × b"),
    ],
)
def test_what_no_font_has_is_replaced(tmp_path, written, read):
    document = {"context": {}, "benchmarks": [{"name": "x", "real_time": 1.0, "label": "HERE"}]}
    (tmp_path / "r.json").write_text(json.dumps(document).replace("HERE", written), "utf-8")
    assert list(package.load(tmp_path)["label"]) == [read]


def test_a_file_of_aggregates_gives_its_median(data):
    rows = package.load(data / "aggregates_only.json")
    assert list(rows["name"]) == [NAIVE]
    assert rows["seconds"][0] == pytest.approx(16.4e-6)


def test_another_suite_loads_without_its_fits(data):
    rows = package.load(data / "foreign.json")
    names = ["sort/ok/8/repeats:3", "sort/err/8", "sort/big/8", "sort/big/16", "sort/big/32"]
    assert list(rows["name"]) == names
    assert set(rows["ladder"]) == {""}
    assert rows["seconds"][2] == pytest.approx(275.7e-9, rel=1e-3)


def test_one_bad_repetition_spoils_the_row(tmp_path):
    good = suite.row("x", 1e9, 1e3)
    bad = {**good, "error_occurred": True, "error_message": "wrong"}
    file = suite.write(tmp_path / "a.json", {"context": {}, "benchmarks": [good, bad, good]})
    assert list(package.load(file)["status"]) == ["error"]


def test_one_throttled_repetition_marks_the_row(tmp_path):
    good = suite.row("x", 1e9, 1e3)
    runs = [good | {"throttled": value} for value in (0.0, 1.0, 0.0)]
    file = suite.write(tmp_path / "a.json", {"context": {}, "benchmarks": runs})
    assert list(package.load(file)["throttled"]) == [1.0]


def test_a_row_without_a_time_is_an_error(tmp_path):
    row = {"name": "x", "real_time": 0.0, "time_unit": "ns"}
    file = suite.write(tmp_path / "a.json", {"context": {}, "benchmarks": [row]})
    assert list(package.load(file)["status"]) == ["error"]


def test_files_of_one_gpu_and_commit_are_merged(tmp_path):
    document = suite.document()
    for i in range(2):
        part = {**document, "benchmarks": document["benchmarks"][i::2]}
        suite.write(tmp_path / f"{i}.json", part)
    (merged,) = load_results(tmp_path)
    assert {row.name for row in merged.rows} == {row["name"] for row in document["benchmarks"]}
    suite.write(tmp_path / "2.json", suite.document(gpu_uuid="another board"))
    assert len(load_results(tmp_path)) == 2


def test_other_suites_of_two_machines_stay_apart_but_not_of_two_containers(data, tmp_path):
    document = json.loads((data / "foreign.json").read_text())
    document["context"]["git_commit"] = "abc"  # without a commit each is a run of its own
    for host in "ab":
        document["context"]["host_name"] = host
        suite.write(tmp_path / f"{host}.json", document)
    assert len(load_results(tmp_path)) == 1
    for key, value in (("num_cpus", 96), ("caches", [{"size": 1}]), ("executable", "./other")):
        document["context"][key] = value
        suite.write(tmp_path / f"{key}.json", document)
    assert len(load_results(tmp_path)) == 4


def test_a_file_of_other_shapes_leaves_the_headlines_of_a_study(tmp_path):
    """With --shape a program's headlines are of those shapes; files come in any order."""
    other = suite.document(cases="full transpose:rows=77")
    ladders = json.loads(other["context"]["ladders"])
    for ladder in ladders:
        ladder["headline"] = "of another shape"
    other["context"]["ladders"] = json.dumps(ladders)
    wanted = {ladder["name"]: ladder["headline"] for ladder in suite.CATALOGUE}
    for pair in ((suite.document(), other), (other, suite.document())):
        for name, made in zip(("a.json", "b.json"), pair, strict=True):
            (tmp_path / name).write_text(json.dumps(made))
        (found,) = load_results([tmp_path])
        assert {ladder.name: ladder.headline for ladder in found.ladders} == wanted


def test_a_file_named_twice_is_read_once(data):
    file = data / "v1_9_1.json"
    assert package.load([file, file])["repetitions"].max() == 3


def test_loading_takes_every_documented_column(whole):
    rows = package.load([whole])
    documented = package.load.__doc__
    columns = "file gpu name case status seconds time_unit commit worst_error throttled".split()
    for column in columns:
        assert f"`{column}`" in documented
        assert column in rows
    assert rows["status"].value_counts()["ok"] == sum(
        "skipped" not in row for row in json.loads(whole.read_text())["benchmarks"]
    )


def with_roof(rung: dict, *segments: str) -> dict:
    """A file of one roof, a row for each of `segments`, each faster than the one before."""
    roof = {"name": "roof", "title": "Roofs", "quantity": "bytes", "axes": [{"name": "size"}]}
    catalogue = [roof | {"rungs": [{"name": "read", "role": "ceiling"} | rung]}]
    rows = [
        suite.row(f"roof/read/size:8/{segment}", (i + 1) * 1e12, 1e9)
        for i, segment in enumerate(segments)
    ]
    return {"context": {"ladders": json.dumps(catalogue)}, "benchmarks": rows}


def test_the_values_of_several_axes_of_a_rung_are_spelled_with_their_names(tmp_path):
    sweeps = {"sweeps": ["bytes", "in_flight"], "target": "dram_bytes"}
    file = suite.write(
        tmp_path / "a.json",
        with_roof(sweeps, "bytes:4/in_flight:1", "bytes:16/in_flight:4"),
    )
    (results,) = load_results(file)
    assert [row.sweep for row in results.rows] == ["bytes 4, in_flight 1", "bytes 16, in_flight 4"]
    assert {row.case for row in results.rows} == {"size:8"}
    (rung,) = results.ladders[0].rungs
    assert (rung.sweeps, rung.target) == (("bytes", "in_flight"), "dram_bytes")


def test_one_axis_of_a_rung_needs_no_name(tmp_path):
    document = with_roof({"sweeps": ["cluster"]}, "cluster:2", "cluster:4")
    (results,) = load_results(suite.write(tmp_path / "a.json", document))
    assert [row.sweep for row in results.rows] == ["2", "4"]
    assert results.ladders[0].rungs[0].sweep == "cluster"


def test_a_ceiling_is_the_best_over_its_sweep(tmp_path):
    document = with_roof({"sweeps": ["bytes"]}, "bytes:4", "bytes:16", "bytes:8")
    document["benchmarks"][2]["bytes_per_second"] = 1.5e12
    ladder = {"name": "sum", "title": "Sum", "quantity": "bytes", "axes": [], "headline": ""}
    ladder |= {"ceiling": "roof/read"}
    ladder |= {"rungs": [{"name": "plain", "ceilings": [{"rung": "roof/read"}]}]}
    catalogue = [*json.loads(document["context"]["ladders"]), ladder]
    document["context"]["ladders"] = json.dumps(catalogue)
    document["benchmarks"].append(suite.row("sum/plain", 1e12, 1e9))
    (results,) = load_results(suite.write(tmp_path / "a.json", document))
    _, study = studies(results)
    (row,) = study.rows
    assert study.ceiling(row.case) == 2e12
    assert study.percent(row) == pytest.approx(50)


def test_of_two_ceilings_the_lower_one_at_a_case_is_told_by_its_rows(tmp_path):
    document = with_roof({"sweeps": ["bytes"]}, "bytes:4")
    ladder = {"name": "blur", "title": "Blur", "quantity": "flops", "headline": "side:3"}
    both = [{"rung": "roof/fma"}, {"rung": "roof/read", "quantity": "bytes"}]
    ladder |= {"axes": suite.axes("side"), "rungs": [{"name": "plain", "ceilings": both}]}
    ladder |= {"ceiling": "roof/fma", "other_ceiling": "roof/read"}
    catalogue = [*json.loads(document["context"]["ladders"]), ladder]
    document["context"]["ladders"] = json.dumps(catalogue)
    for side, percent in ((3, 50.0), (5, 20.0)):
        row = suite.row(f"blur/plain/side:{side}", 1e12, 1e9)
        row |= {"flops_per_second": 1e13, "percent_of_ceiling": percent}
        document["benchmarks"].append(row)
    (results,) = load_results(suite.write(tmp_path / "a.json", document))
    _, study = studies(results)
    assert [study.ceiling(case) for case in study.cases] == pytest.approx([2e13, 5e13])
    assert [study.percent(row) for row in study.rows] == [50, 20]
    assert study.spell_ceiling(study.rows[0]) == "`roof/fma` or `roof/read`"
    assert not study.has_own_ceiling(study.rows[0])
    assert all(study.shapes.in_line(case) for case in study.cases)  # odd sides are one series


def test_hardware_counters_stand_beside_the_times(tmp_path):
    row = suite.row("x", 1e9, 1e3, dram_bytes=5e3, stall_barrier=0.25)
    context = {"hardware_counters": "CUPTI 13.0, 9 passes"}
    file = suite.write(tmp_path / "a.json", {"context": context, "benchmarks": [row]})
    (results,) = load_results(file)
    assert results.source == "timed"
    assert results.hardware_counters == "CUPTI 13.0, 9 passes"
    (read,) = results.rows
    assert (read.dram_bytes, read.stall_barrier) == (5e3, 0.25)
    assert math.isnan(read.l2_atomic_utilisation)


def test_json_for_other_programs_has_null_for_what_is_no_number():
    value = [math.nan, -math.inf, np.float64(1.5), np.float64("nan"), np.int64(3), "é"]
    text = files.indented({"a": value})
    assert json.loads(text) == {"a": [None, None, 1.5, None, 3, "é"]}
    assert text.startswith('{\n "a": [\n')
