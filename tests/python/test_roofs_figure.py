# SPDX-License-Identifier: MIT
"""The figure of the roofs: bars beside the datasheet, lines along an axis."""

import insight
import pytest
import suite
from figure import overlaps, texts


def panels(figure) -> dict:
    return {axes.get_title("left"): axes for axes in figure.axes}


def test_roofs_are_bars_of_the_best_with_their_sweep_and_the_datasheet(draw):
    figures, _ = draw(insight.document(), "roofs")
    found = panels(figures["roofs"])
    dram = found["DRAM"]
    names = [label.get_text() for label in dram.get_yticklabels()]
    assert names == ["memcpy", "dram_copy", "dram_read", "dram_write"]
    widths = [bar.get_width() for bar in dram.patches]
    assert widths == pytest.approx([4.27, 4.12, 4.54, 4.36])
    sweeps = [list(line.get_xdata()) for line in dram.lines if line.get_marker() == "o"]
    assert sweeps[1] == pytest.approx([4.54 * part for part in (0.625, 0.75, 0.875, 1.0)])
    dashed = [float(line.get_xdata()[0]) for line in dram.lines if line.get_linestyle() == "--"]
    assert dashed == pytest.approx([4.8] * 4)
    assert {"4.54 TB/s", "95%"} <= set(texts(dram))
    assert [b.get_width() for b in found["arithmetic"].patches] == pytest.approx([65, 400, 800])
    assert found["DRAM"].get_xlim()[0] == 0


def test_roofs_far_apart_are_on_a_logarithmic_scale_that_says_so(draw):
    figures, _ = draw(insight.document(), "roofs")
    atomics = panels(figures["roofs"])["atomics"]
    assert atomics.get_xscale() == "log"
    assert atomics.get_xlabel() == "G atomics/s, logarithmic"
    ends = [bar.get_x() + bar.get_width() for bar in atomics.patches]
    assert ends == pytest.approx([7100, 6500, 40, 840, 104])


def test_roofs_along_an_axis_are_lines(draw):
    figures, _ = draw(insight.document(), "roofs")
    found = panels(figures["roofs"])
    line = found["l2_read"].lines[0]
    assert list(line.get_xdata()) == [16, 32, 64, 128]
    assert list(line.get_ydata()) == pytest.approx([8.45 * p for p in (1, 0.875, 0.75, 0.625)])
    assert "L2, 60 MiB" in texts(found["l2_read"])
    assert list(found["distributed_shared_memory"].lines[0].get_xdata()) == [2, 4, 8, 16]


def test_the_roof_of_l2_is_set_beside_what_l2_gave(draw):
    """Where L1 holds part of the working set the kernel reads faster than L2 gives."""
    document = insight.document()
    for row in document["benchmarks"]:
        if row["name"].startswith("roof/l2_read/"):
            row["l2_bytes"] = row["bytes_per_second"] * row["median_seconds"] * 0.8
    figures, _ = draw(document, "roofs")
    found = panels(figures["roofs"])
    given, read, *_ = found["l2_read"].lines
    assert list(given.get_xdata()) == list(read.get_xdata())
    assert list(given.get_ydata()) == pytest.approx([0.8 * y for y in read.get_ydata()])
    assert "● what came through L2\n○ what the kernel read" in texts(found["l2_read"])


def test_the_bar_of_l2_is_what_came_through_it(draw):
    document = insight.document()
    for row in document["benchmarks"]:
        if row["name"].startswith("roof/l2_read/"):
            part = 0.6 if "mebibytes:16" in row["name"] else 0.9  # the fastest has most from L1
            row["l2_bytes"] = row["bytes_per_second"] * row["median_seconds"] * part
    figures, _ = draw(document, "roofs")
    chip = panels(figures["roofs"])["memory on the chip"]
    assert chip.patches[0].get_width() == pytest.approx(8.45 * 0.875 * 0.9)
    assert "6.65 TB/s" in texts(chip)


def test_roofs_below_the_full_clock_are_marked(draw):
    document = insight.document(sm_clock_max_hz="1980000000")
    for row in document["benchmarks"]:
        if "/tf32/" in row["name"]:
            row |= {"sm_clock_hz": 1.756e9, "throttled": 1.0}
        else:
            row["sm_clock_hz"] = 1.806e9 if "/bf16/" in row["name"] else 1.98e9
    made = draw(document, "roofs")[0]["roofs"]
    assert {"400 TFLOP/s†", "800 TFLOP/s"} <= set(texts(panels(made)["arithmetic"]))
    told = "† the clock was throttled to 1756 MHz of 1980"
    assert told in [text.get_text() for text in made.texts]
    assert overlaps(made) == []


def test_roofs_of_an_old_file_have_no_sweep(draw):
    figures, _ = draw(suite.document(), "roofs")
    found = panels(figures["roofs"])
    assert list(found) == ["DRAM", "memory on the chip", "arithmetic"]
    assert [len(axes.patches) for axes in found.values()] == [2, 1, 1]
    assert not any("sweep" in text.get_text() for text in figures["roofs"].texts)


def test_a_sweep_is_one_roof_in_every_other_figure(draw):
    """The best row stands for it; a row that failed is none."""
    document = insight.document()
    best = insight.row(document, "roof/dram_read/size:2048/bytes:16/unroll:4")
    best |= {"error_occurred": True, "error_message": "wrong"}
    figures, _ = draw(document, "reduction-climb", "overview")
    climb = texts(figures["reduction-climb"].axes[0])
    assert "limit: roof/dram_read 3972" in climb  # 0.875 of 4540
    assert not any(
        "unroll" in text
        for f in ("reduction-climb", "overview")
        for a in figures[f].axes
        for text in texts(a)
    )
