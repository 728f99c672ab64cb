# SPDX-License-Identifier: MIT
"""Tables: the text users paste and the rows other programs read."""

import csv
import io
import json

import pytest
import suite
from ladder.commands.cli import main
from printed import MARKED, table_rows


@pytest.mark.parametrize("file", ["v1_7_1", "v1_8_3", "v1_9_1"])
def test_each_dialect_gives_the_golden_table(data, capsys, file):
    assert main(["table", str(data / f"{file}.json")]) == 0
    assert capsys.readouterr().out == (data / "table.md").read_text(encoding="utf-8")


def test_another_suite_gives_a_plain_table(data, capsys):
    assert main(["table", str(data / "foreign.json")]) == 0
    assert capsys.readouterr().out == (data / "foreign.md").read_text(encoding="utf-8")


def test_ratios_are_to_the_best_peer_of_the_same_precision(whole, capsys):
    assert main(["table", str(whole), "--ladder", "sgemm"]) == 0
    rows = table_rows(capsys.readouterr().out)
    assert "0.71× cublas" in rows["`register_tile`"]
    assert "57%" in rows["`register_tile`"]
    tf32 = rows["`cublas_tf32` (peer, tf32)"]
    assert "393" in tf32
    assert not any("%" in cell and cell != "75%" for cell in tf32)  # the FP32 roof is not its own


def test_the_best_of_a_sweep_stands_for_its_rung(whole, capsys):
    assert main(["table", str(whole), "--ladder", "histogram"]) == 0
    rows = table_rows(capsys.readouterr().out)
    assert "532 (2)" in rows["`distributed`"]
    assert "311 (8)" in rows["`distributed`"]
    assert "skipped" in rows["`shared`"]


def test_predicted_wavefronts_are_shown(whole, capsys):
    assert main(["table", str(whole), "--ladder", "smem_layout"]) == 0
    rows = table_rows(capsys.readouterr().out)
    assert "wavefronts, load / store" in rows["rung"]
    assert rows["rung"][2:4] == ["layout", "padding"]
    assert rows["`row_write_column_read`"][2:4] == ["row_write_column_read", "0"]
    assert rows["`row_write_column_read`"][6:9] == ["32 / 1", "16.5×", "16.5×"]
    assert "× parent" not in rows["rung"]  # an experiment has no steps


def test_roofs_have_a_unit_each(whole, capsys):
    assert main(["table", str(whole), "--ladder", "roof"]) == 0
    rows = table_rows(capsys.readouterr().out)
    assert rows["`fma` (ceiling)"][2] == "63.7 TFLOP/s"
    assert rows["`dram_read` (ceiling)"][2] == "4658 GB/s"
    assert rows["`shared_memory` (ceiling)"][2] == "32.6 TB/s"


def test_every_measured_roof_has_its_resources(whole, capsys):
    """Also the one whose speed is not in the ladder's quantity."""
    assert main(["table", str(whole), "--ladder", "roof"]) == 0
    out = capsys.readouterr().out
    assert table_rows(out)["`fma` (ceiling)"][3:] == ["40", "4.12 KiB", "75%"]
    assert "commit 0123456. Resources at size 2048.\n" in out


def test_the_caption_names_only_the_columns_there_are(whole, capsys):
    captions = {
        "sgemm": "Gain, percent, ratio and resources",
        "smem_layout": "Percent and resources",
    }
    for ladder, caption in captions.items():
        assert main(["table", str(whole), "--ladder", ladder]) == 0
        assert f". {caption} at " in capsys.readouterr().out


def test_throttled_figures_are_marked_and_explained(tmp_path, capsys):
    document = suite.document()
    for row in document["benchmarks"]:
        if row["name"].startswith(("sgemm/cublas_tf32/m:4096", "sgemm/cublas_tf32/m:8192")):
            row["throttled"] = 1.0
    file = suite.write(tmp_path / "a.json", document)
    assert main(["table", str(file), "--ladder", "sgemm"]) == 0
    out = capsys.readouterr().out
    assert {"393†", "416†"} < set(table_rows(out)["`cublas_tf32` (peer, tf32)"])
    told = "- † `cublas_tf32`: the clock was throttled (m = n = k = 4096; m = n = k = 8192)"
    assert out.splitlines()[-1] == told
    assert out.count("†") == 3


def test_work_per_joule_is_shown_where_it_was_read(tmp_path, whole, capsys):
    document = suite.document()
    for row in document["benchmarks"]:
        if row["name"].startswith("sgemm/tiled/m:4096"):
            row |= {"joules": 0.5, "flops_per_joule": 2.75e11, "bytes_per_joule": 4e8}
        if row["name"].startswith("transpose/padded/rows:8192"):
            row |= {"joules": 0.5, "bytes_per_joule": 6.3e9}
    file = suite.write(tmp_path / "a.json", document)
    for ladder, rung, told in (("sgemm", "tiled", "275 GFLOP"), ("transpose", "padded", "6.30 GB")):
        assert main(["table", str(file), "--ladder", ladder]) == 0
        out = capsys.readouterr().out
        assert " per joule |" in out
        assert told in table_rows(out)[f"`{rung}`"]
        assert ", energy and resources at " in out
    assert main(["table", str(whole), "--ladder", "sgemm"]) == 0
    assert "joule" not in capsys.readouterr().out


def test_a_best_rung_that_was_throttled_is_marked(tmp_path, capsys):
    document = suite.document()
    for row in document["benchmarks"]:
        if row["name"].startswith("sgemm/"):
            row["throttled"] = 1.0
    file = suite.write(tmp_path / "a.json", document)
    assert main(["table", str(file), "--ladder", "overview"]) == 0
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if "TFLOP/s" in line]
    assert "TFLOP/s† |" in line
    assert out.splitlines()[-1] == "- † the clock was throttled"


@pytest.mark.parametrize(("shapes", "shown"), [(8, 8), (9, 6)])
def test_a_table_shows_eight_shapes_or_thins_them_to_six(tmp_path, capsys, shapes, shown):
    document = suite.document()
    kept = [row for row in document["benchmarks"] if not row["name"].startswith("reduction/")]
    (some, *_) = [row for row in document["benchmarks"] if row["name"].startswith("reduction/")]
    rung = some["name"].split("/")[1]
    axes = some["name"].split("/")[3:]
    for i in range(shapes):
        name = "/".join(["reduction", rung, f"elements:{1 << (20 + i)}", *axes])
        kept.append(some | {"name": name, "run_name": name})
    file = suite.write(tmp_path / "a.json", document | {"benchmarks": kept})
    assert main(["table", str(file), "--ladder", "reduction"]) == 0
    (header,) = [line for line in capsys.readouterr().out.splitlines() if "| idea |" in line]
    assert header.count("2²") + header.count("2³") == shown


def test_a_filter_keeps_percentages(whole, capsys):
    """The ceiling stays known when its own row is filtered away."""
    assert main(["table", str(whole), "--filter", "^transpose/(tile|cublas)/"]) == 0
    rows = table_rows(capsys.readouterr().out)
    assert "25%" in rows["`tile`"]
    assert "`copy` (ceiling)" not in rows


def test_csv_and_json_hold_one_row_a_measurement(whole, capsys):
    assert main(["table", str(whole), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == len(suite.rows())
    by_name = {row["name"]: row for row in rows}
    row = by_name["sgemm/tiled/m:4096/n:4096/k:4096/manual_time"]
    assert float(row["flops_per_second"]) == pytest.approx(9.1e12)
    assert (row["axis_m"], row["registers"], row["status"]) == ("4096", "40", "ok")

    assert main(["table", str(whole), "--format", "json", "--ladder", "histogram"]) == 0

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    rows = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert {row["ladder"] for row in rows} == {"histogram"}
    skipped = next(row for row in rows if row["status"] == "skipped")
    assert skipped["seconds"] is None
    assert skipped["reason"] == "the bins do not fit in shared memory"


def test_an_unknown_ladder_is_an_error(whole, capsys):
    for form in ("markdown", "csv"):
        assert main(["table", str(whole), "--ladder", "fish", "--format", form]) == 2
        err = capsys.readouterr().err
        assert "no ladder 'fish'" in err
        assert "sgemm" in err


def test_update_replaces_only_what_is_marked_and_settles(whole, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(MARKED.format("sgemm") + MARKED.format("overview"), encoding="utf-8")
    assert main(["table", str(whole), "--update", str(readme)]) == 0
    first = readme.read_bytes()
    text = first.decode()
    assert "\nold\n" not in text
    assert "`register_tile`" in text
    assert "| SGEMM |" in text
    assert text.startswith("# Title\n<!-- ladder:table sgemm -->\n")
    assert text.endswith("\n<!-- ladder:end -->\ntail\n")
    assert main(["table", str(whole), "--update", str(readme)]) == 0
    assert readme.read_bytes() == first


def test_update_of_one_ladder_leaves_the_others(whole, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(MARKED.format("sgemm") + MARKED.format("roof"), encoding="utf-8")
    assert main(["table", str(whole), "--update", str(readme), "--ladder", "roof"]) == 0
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(MARKED.format("sgemm"))
    assert "`fma`" in text


def test_update_keeps_windows_line_ends(whole, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_bytes(MARKED.format("roof").replace("\n", "\r\n").encode())
    assert main(["table", str(whole), "--update", str(readme)]) == 0
    content = readme.read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n") > 5


@pytest.mark.parametrize("form", ["csv", "json"])
def test_update_in_another_format_is_wrong_usage(whole, tmp_path, capsys, form):
    readme = tmp_path / "README.md"
    readme.write_text(MARKED.format("roof"))
    assert main(["table", str(whole), "--update", str(readme), "--format", form]) == 2
    assert capsys.readouterr().err == f"ladder: --update writes Markdown, not --format {form}\n"
    assert readme.read_text() == MARKED.format("roof")


@pytest.mark.parametrize(
    "text",
    ["no marker\n", "<!-- ladder:table sgemm -->\nnever closed\n", MARKED.format("fish")],
)
def test_update_without_usable_markers_changes_nothing(whole, tmp_path, capsys, text):
    readme = tmp_path / "README.md"
    readme.write_text(text)
    assert main(["table", str(whole), "--update", str(readme)]) == 2
    assert capsys.readouterr().err.startswith(f"ladder: {readme}: ")
    assert readme.read_text() == text


def test_host_rows_tell_cpu_time_threads_and_iterations(tmp_path, capsys):
    """As medians, and in seconds whatever the unit; of aggregates the loop's are not known."""
    rows = [
        {"name": "BM_a/threads:8", "real_time": time, "cpu_time": 3 * time, "time_unit": "us"}
        | {"threads": 8, "iterations": 1200 * time, "items_per_second": 2.5e6}
        for time in (2, 1, 3)
    ]
    aggregate = {"run_type": "aggregate", "aggregate_name": "median", "run_name": "BM_b"}
    rows.append(
        {"name": "BM_b_median", "real_time": 5, "cpu_time": 4, "time_unit": "ns", "iterations": 3}
        | aggregate
    )
    file = suite.write(tmp_path / "a.json", {"context": {}, "benchmarks": rows})
    assert main(["table", str(file), "--format", "csv"]) == 0
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (float(first["cpu_seconds"]), first["threads"], first["iterations"]) == (
        6e-6,
        "8",
        "2400",
    )
    assert (float(second["cpu_seconds"]), second["iterations"]) == (4e-9, "")
    for form, name in (("markdown", "`BM_a/threads:8`"), ("text", "BM_a/threads:8")):
        assert main(["table", str(file), "--format", form]) == 0
        cells = [
            [cell.strip() for cell in line.strip("|").replace(" | ", "  ").split("  ")]
            for line in capsys.readouterr().out.splitlines()
        ]
        assert any({"CPU time", "iterations", "threads"} <= {*line} for line in cells)
        (line,) = [line for line in cells if name in line]
        assert {"2.00 us", "6.00 us", "2,400", "8", "2.50 M items/s"} <= {*line}


def test_text_has_the_tables_without_markup(tmp_path, capsys):
    name = r"BM_a<std::pair<int, char>>|x\y*z`/8"
    row = {"name": name, "real_time": 1, "cpu_time": 1, "time_unit": "ns", "label": "a_b *c* <d>"}
    file = suite.write(tmp_path / "a.json", {"context": {}, "benchmarks": [row]})
    assert main(["table", str(file), "--format", "text"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith(name)
    assert line.endswith("a_b *c* <d>")
