# SPDX-License-Identifier: MIT
"""Latencies: told as times, with the bytes in flight that they ask for, and drawn over a size."""

import json

import limited
import pytest
import suite
from figure import overlaps
from ladder.analysis import roofs
from ladder.analysis.study import studies
from ladder.commands.cli import main
from ladder.io.results import load_results
from ladder.report.plots import latency

MEASURED = {  # ns by rung and KiB
    "shared": {32: 11.7, 128: 11.8},
    "global_l2": {1024: 142.0, 65536: 225.0},
    "global_dram": {65536: 346.0, 4194304: 351.0},
}


def document(measured=MEASURED):
    made = limited.document(limited.row("kernel"), sms="100", l2_bytes=str(60 * 2**20))
    ladder = {
        "name": "latency",
        "title": "Latency",
        "quantity": "bytes",
        "axes": [{"name": "kibibytes"}, {"name": "loads"}],
        "headline": "kibibytes:32/loads:1000",
        "rungs": [suite.rung(name, f"Idea of {name}.", "ceiling") for name in MEASURED],
    }
    ladders = [*json.loads(made["context"]["ladders"]), ladder]
    made["context"]["ladders"] = json.dumps(ladders)
    for rung, by_size in measured.items():
        for size, nanoseconds in by_size.items():
            row = suite.row(f"latency/{rung}/kibibytes:{size}/loads:1000", 1.0, 1e-6 * nanoseconds)
            del row["bytes_per_second"]
            row |= {"loads_per_second": 1e9 / nanoseconds, "cycles_per_load": 2 * nanoseconds}
            made["benchmarks"].append(row)
    return made


@pytest.fixture
def tables(tmp_path, capsys):
    def told(made):
        assert main(["table", str(suite.write(tmp_path / "a.json", made))]) == 0
        return capsys.readouterr().out

    return told


@pytest.fixture
def read(tmp_path):
    def results(made):
        (found,) = load_results(suite.write(tmp_path / "a.json", made))
        return found

    return results


def study_of(results):
    return next(study for study in studies(results) if study.ladder.name == "latency")


def test_a_table_tells_latencies_as_times_by_size(tables):
    out = tables(document())
    (l2,) = [line for line in out.splitlines() if line.startswith("| `global_l2`")]
    cells = [cell.strip() for cell in l2.strip("|").split("|")]
    assert cells[2:8] == ["", "", "142 ns", "225 ns", "", "142 ns, 284 cycles"]
    assert "| 32 KiB | 128 KiB | 1 MiB | 64 MiB | 4 GiB | latency |" in out


def test_bytes_in_flight_are_bandwidth_times_the_least_latency(read, tables):
    found = read(document())
    assert roofs.bytes_in_flight(found, "dram_read") == pytest.approx(4.6e12 * 346e-9)
    assert roofs.bytes_in_flight(found, "dram_write") != roofs.bytes_in_flight(found, "dram_write")
    (dram,) = [line for line in tables(document()).splitlines() if "`dram_read`" in line]
    assert " 15.5 KiB " in dram  # per SM of 100
    assert "bytes in flight" not in tables(document({}))
    without = document()
    without["context"]["sms"] = "0"
    assert "bytes in flight" not in tables(without)


def test_each_memory_is_a_line_over_the_bytes_read(read, draw):
    study = study_of(read(document()))
    lines = latency.lines_of(study)
    assert [line.rung.name for line in lines] == ["shared", "global_l2", "global_dram"]
    assert list(lines[1].rows) == [2**20, 2**26]
    figures, _ = draw(document(), "latency")
    (axes,) = figures["latency"].axes
    told = {text.get_text() for text in axes.texts}
    assert {"global_dram  346 ns, 692 cycles", "L2, 60 MiB"} <= told
    drawn = [list(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) == 2]
    assert [142.0, 225.0] in [[pytest.approx(y) for y in ys] for ys in drawn]
    assert not overlaps(figures["latency"])


@pytest.mark.parametrize("size", ["big", "0", "-5", "1e999", ""])
def test_a_size_that_is_none_is_told_as_it_is_and_not_drawn(read, tables, draw, size):
    made = document({"shared": {32: 11.7, size: 12.0, 64: 12.5}})
    assert " 12.0 ns " in tables(made)
    (line,) = latency.lines_of(study_of(read(made)))
    assert list(line.rows) == [2**15, 2**16]
    assert "latency" in draw(made, "latency")[0]
