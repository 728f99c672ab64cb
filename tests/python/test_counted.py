# SPDX-License-Identifier: MIT
"""Tables of results with hardware counters: gains, limiters, roofs beside datasheets, counters."""

import limited
import pytest
import suite
from ladder.commands.cli import main
from ladder.model import units
from printed import MARKED, table_rows

CONFLICTS = {"shared_load_wavefronts": 140e6, "shared_load_requests": 4.4e6}
FAST = {"dram_bytes": 3.0e9, "dram_read_bytes": 3.0e9, "dram_write_bytes": 0.0}


def rows() -> list[dict]:
    """Three rungs, of which the second has bank conflicts and the third reads at full speed."""
    return [
        limited.row("naive"),
        limited.row("tiled", 0.5e-3, **{k: v / 2 for k, v in CONFLICTS.items()}),
        limited.row("fast", 0.7e-3, **FAST),
    ]


@pytest.fixture
def table(tmp_path, capsys):
    """Write one table of a file; return its text and what stderr said."""

    def write(document: dict, name: str) -> tuple[str, str]:
        file = suite.write(tmp_path / "a.json", document)
        assert main(["table", str(file), "--ladder", name]) == 0
        return capsys.readouterr()

    return write


def test_each_rung_has_its_gain_and_its_limiter(table):
    text, said = table(limited.document(*rows()), "work")
    found = table_rows(text)
    assert found["rung"] == [
        "rung",
        "idea",
        "speed",
        "× parent",
        "% of `roof/dram_read`",
        "limited by",
    ]
    assert found["`naive`"][2:] == ["1000", "", "22%", "latency (memory 60%)"]
    assert found["`tiled`"][3::2] == ["2.00× naive", "shared memory 56%"]
    assert found["`fast`"][3::2] == ["0.71× tiled", "DRAM 93%"]
    assert "Gain, percent and limit at n 8." in text
    assert said == ""


def test_there_is_no_gain_over_a_parent_that_was_not_measured(table):
    naive, tiled, fast = rows()
    failed = {"error_occurred": True, "error_message": "wrong", "real_time": 0.0}
    text, _ = table(limited.document(naive, tiled | failed, fast), "work")
    assert "× parent" not in table_rows(text)["rung"]


def test_without_counters_the_table_has_resources_instead(table):
    document = limited.document(*rows())
    for row in document["benchmarks"]:
        for name in limited.IDLE:
            row.pop(name, None)
    text, _ = table(document, "work")
    assert table_rows(text)["rung"][3:] == [
        "× parent",
        "% of `roof/dram_read`",
        "registers",
        "shared",
        "occupancy",
    ]


def test_roofs_say_where_they_are_best_and_how_far_below_the_datasheet(table):
    text, said = table(limited.document(*rows()), "roof")
    found = table_rows(text)
    assert found["rung"] == ["rung", "idea", "speed", "best at", "of the datasheet", "limited by"]
    assert found["`dram_read` (ceiling)"][2:5] == [
        "4600 GB/s",
        "bytes 16, in_flight 4, blocks 2",
        "96% of 4800 GB/s",
    ]
    assert found["`fma` (ceiling)"][2:5] == ["65.0 TFLOP/s", "chains 16", "97% of 67.0 TFLOP/s"]
    assert found["`tf32` (ceiling, tf32)"][4] == "97% of 494 TFLOP/s"
    assert found["`global_atomics_same` (ceiling)"][2] == "1.36 G atomics/s"
    assert found["`shared_memory` (ceiling)"][4] == ""
    assert said == ""


def test_the_roof_of_l2_is_the_row_that_limits_are_of(table):
    """The row that reads fastest has a part of it from L1."""
    roofs = limited.roof_rows()
    slow, fast = [row for row in roofs if row["name"].startswith("roof/l2_read/")]
    slow["l2_bytes"], fast["l2_bytes"] = 6.2e9, 5.1e9
    found = table_rows(table(limited.document(*rows(), roofs=roofs), "roof")[0])
    assert found["`l2_read` (ceiling)"][2:4] == ["6200 GB/s", "mebibytes 1"]
    assert found["`l2_read` (ceiling)"][5] == "L2 100%"


def test_a_joule_does_what_a_roof_counts(table):
    roofs = limited.roof_rows()
    for row in roofs:
        row["joules"] = 0.5
        row["bytes_per_joule"] = 1e9  # also of roofs of atomics
    found = table_rows(table(limited.document(*rows(), roofs=roofs), "roof")[0])
    at = found["rung"].index("per joule")
    seconds = limited.SECONDS
    assert found["`dram_read` (ceiling)"][at] == units.scaled(4600e9 * seconds / 0.5, "B")
    assert found["`fma` (ceiling)"][at] == units.scaled(65e12 * seconds / 0.5, "FLOP")
    assert found["`global_atomics_same` (ceiling)"][at].endswith(" atomics")


def test_roofs_at_a_lower_clock_say_so(table):
    roofs = limited.roof_rows()
    clocks = {"fma": 1.93e9, "tf32": 1.8061e9, "bf16": 1.7501e9}
    for row in roofs:
        row["sm_clock_hz"] = clocks.get(row["name"].split("/")[1], 1.98e9)
        if "/bf16/" in row["name"]:
            row["throttled"] = 1.0
    document = limited.document(*rows(), roofs=roofs, sm_clock_max_hz="1980000000")
    text, _ = table(document, "roof")
    found = table_rows(text)
    assert found["`bf16` (ceiling, bf16)"][2].endswith("TFLOP/s†")
    assert found["`tf32` (ceiling, tf32)"][2] == "480 TFLOP/s"  # 91 %, as in every other table
    assert found["`fma` (ceiling)"][2] == "65.0 TFLOP/s"
    told = "- † `bf16`: the clock was throttled to 1750 MHz of 1980"
    assert [line for line in text.splitlines() if line.startswith("- ")] == [told]


def test_what_is_above_a_limit_is_said(table):
    roofs = limited.roof_rows(fma=70e12)
    work = rows()
    work[0] |= {"bytes_per_second": 5e12, "dram_bytes": 6e9, "dram_read_bytes": 6e9}
    text, said = table(limited.document(*work, roofs=roofs), "roof")
    assert "104% of 67.0 TFLOP/s" in text
    note = "ladder: note: NVIDIA H200, cold cache, commit 0123456: {}".format
    roof = note("roof/fma/size:4096/chains:16/manual_time: 104.5% of the datasheet's peak")
    assert said.splitlines() == [roof]
    _, said = table(limited.document(*work, roofs=roofs), "overview")
    assert said.splitlines() == [
        note("work/naive/n:8/manual_time: 108.7% of its ceiling roof/dram_read"),
        roof,
        note("work/naive/n:8/manual_time: DRAM 130% of its limit"),
    ]


def test_the_table_of_counters_has_what_each_rung_asked_for(table):
    text, _ = table(limited.document(*rows()), "counters/work")
    assert text.startswith(
        "Work: NVIDIA H200, cold cache, commit 0123456; CUPTI 13.0, 9 passes, one launch at n 8."
    )
    line = dict(zip(*(table_rows(text)[rung] for rung in ("rung", "`tiled`")), strict=True))
    assert line == {
        "rung": "`tiled`",
        "DRAM, × algorithm": "0.500",
        "L2, × algorithm": "0.600",
        "shared wavefronts per request, load / store / atomic": "1 / 2 / –",
        "global sectors per request, load / store / atomic": "4 / 32 / –",
        "active lanes": "32",
        "issue slots": "10%",
        "waits for": "memory 60%",
        "registers": "40",
        "shared": "4.12 KiB",
        "occupancy": "70% of 75%",
    }


def test_counters_of_all_ladders_make_one_block_of_a_document(tmp_path):
    file = suite.write(tmp_path / "a.json", limited.document(*rows()))
    document = tmp_path / "README.md"
    document.write_text(MARKED.format("counters"), encoding="utf-8")
    assert main(["table", str(file), "--update", str(document)]) == 0
    text = document.read_text(encoding="utf-8")
    assert text.index("Measured roofs: ") < text.index("Work: ")
    assert text.count("CUPTI 13.0") == 2


@pytest.mark.parametrize(
    ("context", "why"),
    [
        ({"hardware_counters": "none: this build has no CUPTI"}, "none: this build has no CUPTI"),
        ({}, "no row carries counters"),
    ],
)
def test_why_there_is_no_table_of_counters(tmp_path, capsys, context, why):
    file = suite.write(tmp_path / "a.json", suite.document(**context))
    assert main(["table", str(file), "--ladder", "counters/sgemm"]) == 2
    said = capsys.readouterr().err
    assert said == f"ladder: no table 'counters/sgemm': {why}\n"
