# SPDX-License-Identifier: MIT
"""Google Benchmark's CSV holds what its JSON does; a broken one is told of in a line."""

from __future__ import annotations

import pytest
from inputs import INPUTS, put, rows_of
from ladder.commands.cli import main
from ladder.io import files


def test_the_csv_holds_what_the_json_of_the_same_run_does():
    """Both are what version 1.7.1 wrote in one run, the CSV between lines of the program."""
    csv, full = (rows_of(INPUTS / f"printed_1_7_1.{kind}") for kind in ("csv", "json"))
    assert list(csv) == list(full)
    for name, row in full.items():
        assert csv[name]["seconds"] == pytest.approx(row["seconds"], rel=1e-5, nan_ok=True)
        for key in ("status", "reason", "label", "repetitions"):
            assert csv[name][key] == row[key], (name, key)
        for key in ("bytes_per_second", "items_per_second", "hit_rate"):
            assert csv[name][key] == pytest.approx(row[key], rel=1e-5, nan_ok=True), (name, key)
    assert csv["BM_error"]["reason"] == 'no "device", sorry'
    assert csv["BM_label/1/min_time:0.001"]["label"] == 'say "hi", twice'


def test_aggregates_are_told_from_rows():
    rows = files.read(INPUTS / "v1_7_1.csv")["benchmarks"]
    full = files.read(INPUTS / "printed_1_7_1.json")["benchmarks"]
    keys = ("name", "run_name", "run_type", "aggregate_name")
    assert [[row.get(key) for key in keys] for row in rows] == [
        [row.get(key) for key in keys] for row in full
    ]
    medians = [row for row in rows if row.get("aggregate_name") == "median"]
    assert [row["repetitions"] for row in medians] == [3.0, 3.0]


def test_the_lines_above_it_are_its_context(tmp_path):
    context = files.read(INPUTS / "v1_7_1.csv")["context"]
    assert context["executable"] == "./b"
    assert context["num_cpus"] == 2
    assert context["library_build_type"] == "debug"
    assert context["date"] == "2026-11-25T18:16:00+00:00"
    text = (
        "Run on (8 X 3000 MHz CPU s)\ngpu_name: NVIDIA H200\n***WARNING*** CPU scaling is enabled,"
    )
    text += " the benchmark\nname,iterations,real_time,cpu_time\n" + '"a",1,2,3\n'
    document = files.read(put(tmp_path, "a.csv", text))
    assert document["context"] == {
        "num_cpus": 8,
        "mhz_per_cpu": 3000,
        "library_build_type": "release",
        "gpu_name": "NVIDIA H200",
        "cpu_scaling_enabled": True,
    }


HEAD = (
    "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,"
    "error_occurred,error_message\n"
)
KINDS = {"mean": 3, "median": 2, "stddev": 0.1, "p99": 9}


def test_aggregates_alone_are_read_as_such(tmp_path):
    lines = [f'"a_b_{kind}",5,{time},1,us,,,,,\n' for kind, time in KINDS.items()]
    path = put(tmp_path, "a.csv", HEAD + "".join(lines))
    row = rows_of(path)["a_b"]
    assert (row["seconds"], row["time_unit"]) == (2e-6, "us")
    # A benchmark whose name ends as an aggregate's does, beside another, is none.
    path = put(tmp_path, "b.csv", HEAD + '"a",9,1,1,us,,,,,\n"a_mean",9,2,1,us,,,,,\n')
    assert list(rows_of(path)) == ["a", "a_mean"]


def test_a_skipped_row_is_no_error(tmp_path):
    path = put(tmp_path, "a.csv", HEAD + '"a",,,,,,,,false,"no ""GPU"""\n"b",1,1,1,ms,,,,,\n')
    rows = rows_of(path)
    assert [rows["a"][key] for key in ("status", "reason")] == ["skipped", 'no "GPU"']
    assert rows["b"]["seconds"] == 1e-3


def test_words_in_the_column_of_a_counter_are_no_counter(tmp_path):
    head = HEAD.replace("\n", ',"x"\n')
    (row,) = files.read(put(tmp_path, "a.csv", head + '"a",7,1,1,ms,9,,,,,many\n'))["benchmarks"]
    assert "x" not in row
    assert row["bytes_per_second"] == 9


def test_runs_appended_to_one_csv_are_repetitions(tmp_path):
    one = HEAD + '"a",1,1,1,ms,,,,,\n'
    assert rows_of(put(tmp_path, "a.csv", one + one))["a"]["repetitions"] == 2


def test_a_counter_may_have_the_name_of_a_column(tmp_path):
    head = HEAD.replace("\n", ',"iterations","x"\n')
    (row,) = files.read(put(tmp_path, "a.csv", head + '"a",7,1,1,ms,,,,,,9,\n'))["benchmarks"]
    assert (row["iterations"], row["user_iterations"]) == (7, 9)
    assert "x" not in row


BROKEN_CSV = {
    "no column of times": (HEAD.replace("real_time,", ""), "no column 'real_time' in its CSV"),
    "no column of errors": (
        HEAD.replace("error_occurred,", "") + '"a",1,1,1,ns,,,,"no"',
        "no column 'error_occurred' in its CSV",
    ),
    "no column of names": (HEAD.removeprefix("name,"), "not Google Benchmark's CSV: no header"),
    "a column twice": (HEAD.replace("\n", ',"x","x"\n'), "two columns 'x' in its CSV"),
    "a line break in the header": (
        HEAD.replace("label", "la\rbel"),
        "truncated or broken: new-line",
    ),
    "a quote in the header that never ends": (
        HEAD.replace("error_occurred", '"error_occurre') + '"a",1,1,1,ns,,,,true,"no"',
        "line 2: truncated or broken: 10 columns, not 9",
    ),
    "another program's": ("a,b\n1,2\n", "not Google Benchmark's CSV: no header"),
    "a header alone": (HEAD, "has no benchmark rows"),
    "cut off in a row": (HEAD + '"a",1,2', "line 2: truncated or broken: 3 columns, not 10"),
    "cut off in a name": (HEAD + '"a', "line 2: truncated or broken: unexpected end of data"),
    "a word for a time": (HEAD + '"a",1,x,1,us,,,,,', "line 2: real_time is 'x'"),
    "no time": (HEAD + '\n"a",1,,1,us,,,,,', "line 3: no real_time of a"),
    "no iterations": (HEAD + '"a",,1,1,us,,,,,', "line 2: no iterations of a"),
    "an unknown unit": (HEAD + '"a",1,1,1,weeks,,,,,', "unknown time unit 'weeks'"),
}


@pytest.mark.parametrize(("content", "why"), BROKEN_CSV.values(), ids=BROKEN_CSV.keys())
def test_a_broken_csv_is_told_in_a_line(tmp_path, capsys, content, why):
    file = put(tmp_path, "a.csv", content)
    assert main(["table", str(file)]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"ladder: {file}: ")
    assert why in err
