# SPDX-License-Identifier: MIT
"""Every dialect of results is read into the same rows; what is broken or foreign is told of."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import sys
from pathlib import Path

import pytest
import suite
from ladder.commands.cli import main
from ladder.io import files
from ladder.io.results import load, load_results
from ladder.model.errors import ResultError

INPUTS = Path(__file__).parent / "data/inputs"
CASES = Path(__file__).parent / "data/cases"
GOOD = {"context": {}, "benchmarks": [{"name": "a", "real_time": 1.0}]}
TEXT = json.dumps(GOOD, indent=1)


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def told(path: Path) -> str:
    """Return what is wrong with a file, less its name."""
    with pytest.raises(ResultError) as error:
        files.read(path)
    start = f"{path}: "
    assert str(error.value).startswith(start)
    return str(error.value).removeprefix(start)


# Forms of text


@pytest.mark.parametrize("name", ["text_before.json", "text_after.json", "utf16_powershell.json"])
def test_a_file_as_users_have_it_is_read(name, capsys):
    assert main(["table", str(CASES / name)]) == 0
    out, err = capsys.readouterr()
    assert "| `BM_A` | 1.00 us |" in out
    assert err == ""


FORMS = {
    "utf-8 with a mark": TEXT.encode("utf-8-sig"),
    "utf-16, big end first": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "utf-16 without a mark": TEXT.encode("utf-16-le"),
    "utf-32": TEXT.encode("utf-32"),
    "gzip": gzip.compress(TEXT.encode()),
    "gzip of utf-16": gzip.compress(TEXT.encode("utf-16")),
    "two gzip files, one after the other": gzip.compress(TEXT[:9].encode())
    + gzip.compress(TEXT[9:].encode()),
    "lines end as on Windows": TEXT.replace("\n", "\r\n").encode(),
    "text on the first line": f"working... {TEXT}".encode(),
    "braces in the text": f"options {{x}}\n{{y\n{TEXT}\n}} done".encode(),
    "text between the lines": TEXT.replace(",\n", ",\nloading, 10 %\n").encode(),
    "text before, between and after": f"hi\n{TEXT}\n".replace('"name"', '\nx = 3\n"name"').encode(),
    "another JSON before": f'{{"config": [1, 2]}}\n{TEXT}'.encode(),
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS.keys())
def test_forms_of_text_are_read(tmp_path, content):
    document = files.read(put(tmp_path, "a.json", content))
    assert document["context"] == GOOD["context"]
    assert [(row["name"], row["real_time"]) for row in document["benchmarks"]] == [("a", 1.0)]


BROKEN_FORMS = {
    "truncated gzip": (gzip.compress(TEXT.encode())[:-9], "truncated: the gzip file ends too"),
    "damaged gzip": (b"\x1f\x8b\x08\x00garbage that is none", "a damaged gzip file: "),
    "gzip of nothing": (gzip.compress(b""), "empty"),
    "half a character": (TEXT.encode("utf-16")[:-1], "not a text file"),
    "no text": (b"\x89PNG\r\n\x1a\n\xff", "not a text file"),
    "text before, cut off": (f"hi\n{TEXT[:-9]}", "truncated or not JSON: "),
    "text between, cut off": (
        f"hi\n{TEXT[:-9]}".replace(",\n", ",\nhm\n"),
        "truncated or not JSON: ",
    ),
    "two of them": (TEXT + "\n" + TEXT, "two results, one after the other: each needs a file"),
    "text within a line": (TEXT.replace('"name"', 'x "name"'), "truncated or not JSON: "),
    "only the word": ('say "benchmarks": [1 and "context": {', "truncated or not JSON: "),
    "a key twice after text": (
        f"hi\n{TEXT}".replace('"name"', '"x": 1, "x": 2, "name"'),
        "duplicate",
    ),
}


@pytest.mark.parametrize(("content", "why"), BROKEN_FORMS.values(), ids=BROKEN_FORMS.keys())
def test_broken_forms_are_told_in_a_line(tmp_path, content, why):
    assert why in told(put(tmp_path, "a.json", content))


def test_an_error_names_the_line_of_the_file(tmp_path):
    cut = "hi\nthere\n" + TEXT[: TEXT.index("real_time")]
    assert told(put(tmp_path, "a.json", cut)).endswith(f"at line {cut.count(chr(10)) + 1}")


def test_stdin_is_read_as_a_file(monkeypatch, capsys):
    for content in (TEXT.encode(), gzip.compress(TEXT.encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert main(["table", "-"]) == 0
        assert "| `a` | 1.00 ns |" in capsys.readouterr().out


def test_stdin_serves_a_side_of_a_comparison(ladder, tmp_path):
    file = put(tmp_path, "a.json", TEXT)
    done = ladder("compare", file, "-", input=TEXT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 NOISY" in done.stdout
    empty = ladder("table", "-", input="")
    assert (empty.returncode, empty.stdout) == (3, "")
    assert empty.stderr == "ladder: -: empty (did the benchmark filter match nothing?)\n"


# Google Benchmark's CSV


def rows_of(path: Path) -> dict[str, dict]:
    return {row["name"]: row for row in load(path).to_dict("records")}


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
    "no column of names": (HEAD.removeprefix("name,"), "not Google Benchmark's CSV: no header"),
    "a column twice": (HEAD.replace("\n", ',"x","x"\n'), "two columns 'x' in its CSV"),
    "a line break in the header": (
        HEAD.replace("label", "la\rbel"),
        "truncated or broken: new-line",
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


# NVBench


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


# Directories, and what stands beside results


def test_what_is_foreign_in_a_directory_stops_nothing(capsys):
    assert main(["table", str(CASES / "mixed_dir")]) == 0
    out, err = capsys.readouterr()
    assert "| `BM_A` | 1.00 us |" in out
    assert err.splitlines() == [
        f"ladder: note: {CASES}/mixed_dir/compile_commands.json: has no results, left out",
        f"ladder: note: {CASES}/mixed_dir/nothing_matched.json: empty, left out",
    ]


def test_a_note_is_told_once_by_a_command(capsys):
    for _ in range(2):
        assert main(["compare", str(CASES / "mixed_dir"), str(CASES / "mixed_dir")]) == 0
        assert capsys.readouterr().err.count("left out") == 2


@pytest.mark.parametrize("name", ["compile_commands.json", "nothing_matched.json"])
def test_what_is_foreign_and_named_is_an_error(name, capsys):
    file = CASES / "mixed_dir" / name
    assert main(["table", str(CASES / "mixed_dir/a.json"), str(file)]) == 3
    assert capsys.readouterr().err.startswith(f"ladder: {file}: ")


def test_a_directory_of_nothing_else_is_an_error(tmp_path, capsys):
    put(tmp_path, "tsconfig.json", "{}")
    put(tmp_path, "pytest.json", '{"machine_info": {}, "benchmarks": [{"name": "a"}]}')
    put(tmp_path, "settings.json", '{"benchmarks": 1} // no JSON, and no results')
    put(tmp_path, "filtered.json", '{"context": {}, "benchmarks": []}')
    assert main(["table", str(tmp_path)]) == 3
    *notes, last = capsys.readouterr().err.splitlines()
    assert len(notes) == 4
    assert last == f"ladder: {tmp_path}: no results below this directory"


def test_a_damaged_file_in_a_directory_is_an_error(tmp_path):
    """It may be the one that holds the regression."""
    put(tmp_path, "a.json", TEXT)
    cut = put(tmp_path, "b.json.gz", gzip.compress(TEXT.encode())[:-5])
    with pytest.raises(ResultError, match="truncated"):
        load(tmp_path)
    cut.write_bytes(TEXT[:-5].encode())
    with pytest.raises(ResultError, match="truncated"):
        load(tmp_path)


def test_packed_files_in_a_directory_are_found(tmp_path):
    put(tmp_path, "a.json.gz", gzip.compress(TEXT.encode()))
    assert [path.name for path, _ in files.find([tmp_path])] == ["a.json.gz"]


NOISE = json.dumps({"context": {}, "rows": {"a": {"floor": 0.1, "spread": 0.2}}}, indent=1)
DETAILS = '{"lines":[\n],"occupancy":[]}'


@pytest.mark.parametrize(
    ("content", "what"), [(NOISE, "--noise"), (DETAILS, "details of emulated results")]
)
def test_what_stands_beside_results_is_told_by_what_it_holds(tmp_path, capsys, content, what):
    beside, good = put(tmp_path, "x.json", content), put(tmp_path, "a.json", TEXT)
    assert main(["table", str(beside)]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"ladder: {beside}: ")
    assert what in err
    assert main(["table", str(good), str(beside)]) == 0
    assert capsys.readouterr().err.startswith(f"ladder: note: {beside}: ")
    assert main(["table", str(tmp_path)]) == 0  # beside results is where it belongs
    assert capsys.readouterr().err == ""


def test_results_may_have_the_name_of_what_stands_beside(tmp_path):
    for name in (files.NOISE, files.DETAILS):
        put(tmp_path, name, TEXT)
    assert len([*files.find([tmp_path])]) == 2


def test_a_csv_whose_header_lacks_a_column_says_which(tmp_path, capsys):
    header = "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,"
    file = tmp_path / "a.csv"
    file.write_text(f'{header}label,"error_occurre,error_message\n"a",1,1,1,ns,,,,true,"no"\n')
    assert main(["table", str(file)]) == 3
    err = capsys.readouterr().err
    assert err.startswith(f"ladder: {file}: ")
    assert err.count("\n") == 1
    file.write_text(f'{header}label,error_message\n"a",1,1,1,ns,,,,"no"\n')
    assert main(["table", str(file)]) == 3
    assert "'error_occurred'" in capsys.readouterr().err


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


def test_a_name_of_a_file_need_not_be_text(tmp_path, capsys):
    path = tmp_path / os.fsdecode(b"b\xff.json")
    path.write_text(TEXT)
    assert main(["table", "--format", "json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["file"].endswith("b\ufffd.json")
