# SPDX-License-Identifier: MIT
"""GPUs side by side: speeds, each GPU's own roof and naive rung, and which rung wins where."""

import csv
import io
import json
from pathlib import Path

import pytest
import suite
from ladder.commands.cli import main

LADDER = {
    "name": "scan",
    "title": "Scan",
    "quantity": "bytes",
    "axes": suite.axes("elements", order=["up", "down"]),
    "headline": "elements:4096/order:up",
    "ceiling": "roof/dram_copy",
    "rungs": [
        suite.rung("serial_cpu", "On the host."),
        suite.rung("naive", "A thread an element."),
        suite.rung("ring", "For Hopper alone."),
        suite.rung("lookback", "One pass."),
        suite.rung("cub", "cub::DeviceScan.", "peer"),
    ],
}
H200, RTX = "NVIDIA H200", "NVIDIA GeForce RTX 4090"


def measured(rung: str, speed: float, percent: float, order: str = "up", **more) -> dict:
    name = f"scan/{rung}/elements:4096/order:{order}"
    row = suite.row(name, speed * 1e9, 32768.0, percent_of_ceiling=percent, **more)
    if rung in ("serial_cpu", "cub"):
        del row["grid_blocks"]
    return row


def document(rows: list[dict], **context: str) -> dict:
    base = {"gpu_name": H200, "cache_mode": "cold", "git_commit": "aaaaaaaaaaaa"}
    base |= {"date": "2026-01-02T00:00:00+00:00", "ladders": json.dumps([LADDER])}
    return {"context": base | context, "benchmarks": rows}


def hopper(scale: float = 1.0) -> list[dict]:
    speeds = {"serial_cpu": 2, "naive": 100, "ring": 3600, "lookback": 3580, "cub": 3000}
    rows = [measured(r, scale * s, scale * s / 40) for r, s in speeds.items()]
    return [*rows, measured("naive", 90 * scale, 2.2, "down")]


def ada() -> list[dict]:
    failed = measured("cub", 1, 1) | {"error_occurred": True, "error_message": "wrong at 7"}
    name = "scan/ring/elements:4096/order:up"
    rows = [measured("naive", 50, 5.5), measured("lookback", 800, 88, throttled=1.0), failed]
    return [*rows, suite.skipped(name, "needs clusters")]


@pytest.fixture
def gpus(tmp_path):
    """Two GPUs, the first at three commits: the one measured last is named neither first nor last.

    Emulated results are beside them.
    """
    for commit, date, scale in (("aaa", 3, 0.5), ("bbb", 9, 1.0), ("ccc", 5, 0.25)):
        dated = {"date": f"2026-01-0{date}T00:00:00+00:00", "git_commit": commit * 4}
        suite.write(tmp_path / f"{commit}.json", document(hopper(scale), **dated))
    suite.write(tmp_path / "rtx.json", document(ada(), gpu_name=RTX))
    suite.write(tmp_path / "x.json", document(ada(), gpu_name="NVIDIA L4", emulated="true"))
    return tmp_path


@pytest.mark.parametrize(("form", "golden"), [("text", "matrix.txt"), ("markdown", "matrix.md")])
def test_two_gpus_read_as_they_did(gpus, data, capsys, form, golden):
    assert main(["matrix", str(gpus), "--format", form]) == 0
    assert capsys.readouterr().out == (data / golden).read_text(encoding="utf-8")


def test_figures_are_each_gpus_own(gpus, capsys):
    assert main(["matrix", str(gpus), "--format", "csv"]) == 0
    rows = {(r["gpu"], r["rung"]): r for r in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert float(rows[H200, "ring"]["speedup"]) == pytest.approx(36)  # the host's is no naive rung
    assert float(rows[RTX, "lookback"]["speedup"]) == pytest.approx(16)
    assert float(rows[RTX, "lookback"]["percent_of_ceiling"]) == 88
    assert float(rows[H200, "ring"]["speed"]) == pytest.approx(3.6e12)
    best = {key for key, row in rows.items() if row["best"] == "True"}
    assert best == {(H200, "ring"), (RTX, "lookback")}
    told = {rung: rows[RTX, rung]["status"] for rung in ("serial_cpu", "ring", "cub")}
    assert told == {"serial_cpu": "not run", "ring": "skipped", "cub": "error"}
    assert rows[RTX, "ring"]["reason"] == "needs clusters"
    assert {row["commit"] for (gpu, _), row in rows.items() if gpu == H200} == {"bbbbbbb"}


def test_a_counter_is_shown_instead_of_the_speed(tmp_path, capsys):
    rows = [
        measured("naive", 50, 5, joules=0.25, throttled=1.0, bytes_per_joule=4.6e9),
        measured("lookback", 800, 88),
    ]
    file = str(suite.write(tmp_path / "a.json", document(rows)))
    assert main(["matrix", file, "--metric", "joules"]) == 0
    title, _, *table = capsys.readouterr().out.splitlines()
    assert title.endswith(". Shown: joules; marked: the fastest rung.")
    assert [line.split() for line in table[1:3]] == [["naive", "0.250†"], ["lookback"]]
    assert table[-1] == "- †: the clock was throttled"
    assert main(["matrix", file, "--metric", "bytes_per_joule"]) == 0
    assert "4.60 G†" in capsys.readouterr().out
    assert main(["matrix", file, "--metric", "joule"]) == 2
    assert "no row has it; nearest: bytes_per_joule, joules\n" in capsys.readouterr().err


def test_json_has_null_for_what_is_not_known(gpus, capsys):
    assert main(["matrix", str(gpus), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["ladder"], found["naive"]) == ("scan", "naive")
    assert found["gpus"] == {H200: "bbbbbbb", RTX: "aaaaaaa"}
    assert found["cells"][1]["speed"] is None
    assert f"best on {H200}: ring (lookback within 1%); on {RTX}: lookback" in found["notes"]


def test_a_gpu_without_the_naive_rung_has_no_speedup(tmp_path, capsys):
    """A speed-up over another rung would pass for one over the naive rung."""
    suite.write(tmp_path / "a.json", document(hopper()))
    only = [measured("lookback", 800, 88), measured("ring", 700, 80)]
    suite.write(tmp_path / "b.json", document(only, gpu_name=RTX))
    assert main(["matrix", str(tmp_path), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert {c["speedup"] for c in found["cells"] if c["gpu"] == RTX} == {None}


def test_cases_and_ladders_can_be_chosen(gpus, capsys):
    file = str(gpus / "aaa.json")
    assert main(["matrix", file, "--ladder", "scan", "--case", "order:", "--format", "json"]) == 0
    cases = [matrix["case"] for matrix in json.loads(capsys.readouterr().out)]
    assert cases == ["elements:4096/order:up", "elements:4096/order:down"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--ladder", "sort"], 2, "no ladder 'sort'; there are: scan"),
        (["--case", "nine"], 2, "--case nine: no case matches"),
        (["{data}/foreign.json", "--ladder", "sort"], 2, "no ladder 'sort'"),
        (["{gpus}/warm.json"], 5, "cache modes cold and warm do not belong in one table"),
    ],
)
def test_what_leaves_nothing_is_told_in_a_line(gpus, data, capsys, arguments, code, told):
    suite.write(gpus / "warm.json", document(ada(), cache_mode="warm"))
    given = [a.format(data=data, gpus=gpus) for a in arguments]
    assert main(["matrix", str(gpus / "aaa.json"), *given]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"ladder: {told}")


def test_files_of_other_suites_have_no_ladder(data, capsys):
    assert main(["matrix", str(data / "foreign.json"), "--ladder", "sort"]) == 2
    assert "no ladder 'sort'" in capsys.readouterr().err


def test_a_whole_suite_on_one_gpu_says_which_rung_wins(whole, capsys):
    assert main(["matrix", str(whole)]) == 0
    out = capsys.readouterr().out
    assert out.count("- best on NVIDIA H200: ") == 5  # the roofs are no contest
    assert "best on NVIDIA H200: pipelined\n" in out  # cuBLAS on tensor cores has another precision


def test_notes_are_escaped_in_markdown_alone(tmp_path, capsys):
    failed = measured("cub", 1, 1) | {"error_occurred": True, "error_message": "wrong <b>*"}
    file = str(suite.write(tmp_path / "a.json", document([measured("naive", 50, 5.5), failed])))
    for form, told in (("markdown", r"wrong \<b\>\*"), ("text", "wrong <b>*")):
        assert main(["matrix", file, "--format", form]) == 0
        assert f"cub failed: {told}\n" in capsys.readouterr().out


def host(tmp_path, name: str, times: dict[str, float], **context) -> Path:
    rows = [
        {"name": row, "run_name": row, "real_time": time, "cpu_time": time, "time_unit": "us"}
        | ({} if time else {"error_occurred": True, "error_message": "no luck"})
        for row, time in times.items()
    ]
    about = {"executable": "./bench", "host_name": name} | context
    return suite.write(tmp_path / f"{name}.json", {"context": about, "benchmarks": rows})


def test_roofs_that_the_headline_lacks_are_shown_where_they_are_fastest(capsys):
    study = str(Path(__file__).parents[2] / "results/nvidia-h200/study.json")
    assert main(["matrix", study, "--ladder", "latency", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == len({matrix["case"] for matrix in found}) > 1
    shown = [cell["rung"] for matrix in found for cell in matrix["cells"]]
    assert shown == ["shared", "distributed", "global_l1", "global_l2", "global_dram"]


def test_roofs_of_several_gpus_that_are_fastest_at_one_case_are_all_shown(tmp_path, capsys):
    """On the second GPU the L2 is fastest where DRAM is on the first."""
    source = Path(__file__).parents[2] / "results/nvidia-h200/study.json"
    document = json.loads(source.read_text())
    rows = [row for row in document["benchmarks"] if row["name"].startswith("latency/")]
    l2 = [row for row in rows if "/global_l2/" in row["name"]]
    dram = [row for row in rows if "/global_dram/" in row["name"]]
    first = min(dram, key=lambda row: row["real_time"])["name"].partition("/global_dram/")[2]
    only = [row for row in l2 if row["name"].endswith(f"/global_l2/{first}")]
    assert only
    kept = [row for row in rows if row not in l2 and row not in dram]
    suite.write(tmp_path / "a.json", document | {"benchmarks": rows})
    context = document["context"] | {"gpu_name": RTX}
    suite.write(tmp_path / "b.json", {"context": context, "benchmarks": [*kept, *only]})
    assert main(["matrix", str(tmp_path), "--ladder", "latency", "--format", "json"]) == 0
    found = {matrix["case"]: matrix for matrix in json.loads(capsys.readouterr().out)}
    (at,) = [case for case in found if first.startswith(case)]
    assert {cell["rung"] for cell in found[at]["cells"]} == {"global_l2", "global_dram"}


def test_rows_of_any_suite_are_set_beside_each_other_by_machine(tmp_path, capsys):
    one = host(tmp_path, "one", {"BM_a/8": 8.0, "BM_b": 1.0, "BM_c": 0})
    two = host(tmp_path, "two", {"BM_a/8": 2.0, "BM_b": 1.5})
    assert main(["matrix", str(one), str(two)]) == 0
    told = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert told["BM_a/8"].split()[1:] == ["8.00", "us", "*", "2.00", "us", "·", "4.00×"]
    assert "* 1.00 us" in told["BM_b"]
    assert "0.667×" in told["BM_b"]
    assert "failed" in told["BM_c"]
    assert "not run" in told["BM_c"]
    assert main(["matrix", str(one), str(two), "--format", "csv", "--case", "BM_a"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(r["gpu"], float(r["seconds"]), float(r["over_first"])) for r in rows] == [
        ("host one", pytest.approx(8e-6), 1.0),
        ("host two", pytest.approx(2e-6), pytest.approx(4.0)),
    ]
    assert main(["matrix", str(one), str(two), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [cell["fastest"] for cell in found["cells"][:2]] == [False, True]


def test_of_a_machine_the_newest_run_counts(tmp_path, capsys):
    old = host(tmp_path, "a", {"BM_a": 8.0}, date="2026-01-01T00:00:00+00:00", host_name="ci")
    new = host(tmp_path, "b", {"BM_a": 2.0}, date="2026-01-02T00:00:00+00:00", host_name="ci")
    assert main(["matrix", str(new), str(old), "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert "2.00 us" in out
    assert "8.00 us" not in out
    assert "2026-01-01" in out


def test_ladders_and_rows_of_none_are_in_one_matrix(whole, tmp_path, capsys):
    assert main(["matrix", str(whole), str(host(tmp_path, "one", {"BM_a": 8.0}))]) == 0
    out = capsys.readouterr().out
    assert "SGEMM" in out
    assert "BM_a" in out


def test_with_a_metric_the_fastest_is_not_called_the_best(tmp_path, capsys):
    rows = [measured("ring", 800, 88, joules=0.3), measured("lookback", 799, 88, joules=0.2)]
    file = str(suite.write(tmp_path / "a.json", document(rows)))
    assert main(["matrix", file, "--metric", "joules"]) == 0
    told = "- fastest on NVIDIA H200: ring (lookback within 1% of its speed)\n"
    assert capsys.readouterr().out.endswith(told)


def test_ladders_without_a_value_of_the_metric_are_left_out(tmp_path, capsys):
    other = LADDER | {"name": "sort", "title": "Sort"}
    rows = [measured("naive", 50, 5, joules=0.2), measured("ring", 80, 8), measured("ring", 80, 8)]
    rows[2] |= {key: rows[2][key].replace("scan", "sort") for key in ("name", "run_name")}
    both = document(rows, ladders=json.dumps([LADDER, other]))
    asked = ["matrix", str(suite.write(tmp_path / "a.json", both)), "--metric", "joules"]
    assert main([*asked, "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Scan")
    assert "Sort" not in out
    assert "****" not in out  # the fastest lacks it
    assert main([*asked, "--ladder", "sort"]) == 2
    assert capsys.readouterr() == ("", "ladder: --metric joules: no row of --ladder sort has it\n")


@pytest.mark.parametrize(("metric", "signs"), [("real_time", "†‡"), ("joules", "†"), ("new", "")])
def test_signs_are_shown_with_the_metrics_that_they_concern(tmp_path, capsys, metric, signs):
    row = measured("naive", 50, 5, joules=1.0, new=1.0, throttled=1.0, late_samples=1.0)
    file = str(suite.write(tmp_path / "a.json", document([row])))
    assert main(["matrix", file, "--metric", metric]) == 0
    told = capsys.readouterr().out
    assert [sign for sign in "†‡" if told.count(sign) == 2] == list(signs)
    assert ("†" in told, "‡" in told) == ("†" in signs, "‡" in signs)


def test_with_a_metric_a_choice_still_tells_its_rung(capsys):
    study = str(Path(__file__).parents[2] / "results/nvidia-h200/study.json")
    choices = []
    for more in ([], ["--metric", "joules"]):
        assert main(["matrix", study, "--ladder", "transpose", *more]) == 0
        (line,) = (li for li in capsys.readouterr().out.splitlines() if "(choice)" in li)
        choices.append(line.split(" · ")[-1])
    assert choices == ["banded", "banded"]


def test_what_reads_emulated_results_is_told_with_a_metric(gpus, capsys):
    assert main(["matrix", str(gpus / "x.json"), "--metric", "global_load_sectors"]) == 2
    told = "matrix shows timed results only (compare --metric global_load_sectors reads emulated"
    assert told in capsys.readouterr().err


def test_rows_without_a_ladder_are_not_left_out_in_silence(whole, tmp_path, capsys):
    alone = str(host(tmp_path, "one", {"BM_a": 8.0, "BM_b": 8.0}))
    assert main(["matrix", str(whole), alone, "--metric", "registers"]) == 0
    assert "2 rows without a ladder left out: --metric is of ladders" in capsys.readouterr().err
    assert main(["matrix", alone, "--metric", "cpu_time"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("ladder: no row has a ladder: --metric is of ladders; compare --metric")


def test_json_and_csv_name_the_metric_where_one_was_asked_for(tmp_path, capsys):
    rows = [measured("naive", 50, 5, joules=0.25)]
    file = str(suite.write(tmp_path / "a.json", document(rows)))
    for more, metric, value in (([], None, None), (["--metric", "joules"], "joules", 0.25)):
        assert main(["matrix", file, "--format", "json", *more]) == 0
        (found,) = json.loads(capsys.readouterr().out)
        assert (found.get("metric"), found["cells"][0].get("value")) == (metric, value)
        assert main(["matrix", file, "--format", "csv", *more]) == 0
        (line,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
        assert (line.get("metric"), line.get("value")) == (metric, value and str(value))


def test_values_of_a_column_have_the_same_digits(tmp_path, capsys):
    rows = [
        measured("naive", 50, 5, joules=0.1, registers=14.0),
        measured("ring", 80, 8, joules=0.098, registers=255.0),
    ]
    file = str(suite.write(tmp_path / "a.json", document(rows)))
    for metric, values in (("joules", ["0.100", "0.0980"]), ("registers", ["14", "255"])):
        assert main(["matrix", file, "--metric", metric]) == 0
        lines = capsys.readouterr().out.splitlines()[3:5]
        assert [line.split()[-1] for line in lines] == values
