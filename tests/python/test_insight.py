# SPDX-License-Identifier: MIT
"""Figures that tell why: what the counters of a file add, and that without them nothing is lost."""

import json
import math
import re
from itertools import pairwise
from pathlib import Path

import insight
import matplotlib.image
import numpy as np
import pytest
import suite
from figure import only, overlaps, seen, texts
from ladder.commands.cli import main
from ladder.report.plots import quantities, style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

ADDED = """transpose-limits transpose-why sgemm-limits sgemm-why reduction-limits reduction-why
histogram-limits histogram-why smem_layout-limits""".split()
PLAIN = """transpose-climb sgemm-climb sgemm-wins sgemm-roofline reduction-climb
reduction-wins reduction-roofline histogram-climb histogram-wins histogram-clusters
smem_layout-matrix overview roofs""".split()
SOME = "sgemm-limits transpose-why reduction-roofline histogram-clusters roofs".split()
SGEMM = "m:4096/n:4096/k:4096"
TRANSPOSE = "rows:8192/columns:8192/element:4"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> tuple[Path, Path]:
    """A file with counters, and figures of the kinds that are drawn of them, or not committed."""
    folder = tmp_path_factory.mktemp("counted")
    file = suite.write(folder / "h200.json", insight.document())
    options = ["--format", "svg,png", "--only", *SOME]
    assert main(["plot", str(file), "--output", str(folder / "plots"), *options]) == 0
    return file, folder / "plots"


def test_counters_add_figures_and_take_none(draw):
    figures, said = draw(insight.document())
    assert set(figures) == {*PLAIN, *ADDED}
    assert said == []


def test_the_same_counters_give_the_same_bytes(drawn, ladder, tmp_path):
    """In a process of its own too."""
    file, first = drawn
    done = ladder("plot", file, "--output", tmp_path, "--only", *SOME)
    assert (done.returncode, done.stderr) == (0, "")
    names = {f"{stem}.svg" for stem in SOME}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert {line.rpartition("/")[2] for line in done.stdout.splitlines()} == names
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (first / path.name).read_bytes(), path.name


def test_svg_tells_nothing_of_when_or_where(drawn):
    for path in drawn[1].glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"<dc:date>|matplotlib v|/tmp/", text, re.IGNORECASE), path.name


def test_figures_with_counters_keep_their_margins(drawn):
    for path in drawn[1].glob("*.png"):
        ink = matplotlib.image.imread(path)[:, :, :3].min(axis=2) < 0.95
        assert ink.mean() > 0.01, path.name
        edges = [ink[:4].ravel(), ink[-4:].ravel(), ink[:, :4].ravel(), ink[:, -4:].ravel()]
        assert not np.concatenate(edges).any(), f"{path.name} is clipped"


def test_long_names_do_not_collide(draw):
    document = insight.document()
    ladders = json.loads(document["context"]["ladders"])
    for entry in ladders[:-1]:
        for rung in entry["rungs"]:
            longer = (rung["name"] + "_and_all_that_this_needs_to_be_long")[:30]
            was, rung["name"] = rung["name"], f"{longer}_{rung['name'][-8:]}"
            for other in entry["rungs"]:
                if other.get("builds_on") == was:
                    other["builds_on"] = rung["name"]
            rung["idea"] = (rung["idea"] * 9)[:140]
            start, becomes = (f"{entry['name']}/{name}/" for name in (was, rung["name"]))
            for row in document["benchmarks"]:
                for key in ("name", "run_name"):
                    if row[key].startswith(start):
                        row[key] = becomes + row[key].removeprefix(start)
    document["context"]["ladders"] = json.dumps(ladders)
    stems = [*ADDED, "roofs", "sgemm-roofline", "reduction-roofline", "transpose-limits"]
    figures, _ = draw(document, *stems)
    for stem in stems:
        assert overlaps(figures[stem]) == [], stem


def test_without_counters_a_study_draws_what_it_drew(draw):
    document = insight.document()
    for row in document["benchmarks"]:
        for counter in insight.COUNTERS:
            row.pop(counter, None)
    figures, said = draw(document)
    assert set(figures) == set(PLAIN)
    assert said == []
    axes = figures["sgemm-roofline"].axes[0]
    assert axes.get_xlabel() == "FLOP per byte of the algorithm"
    assert texts(axes)[-1] == "cublas  51.1 TFLOP/s"


def test_without_roofs_counters_still_tell_what_they_can(draw):
    document = insight.document()
    rows = [row for row in document["benchmarks"] if not row["name"].startswith("roof/")]
    figures, said = draw({**document, "benchmarks": rows})
    missing = {"sgemm-roofline", "reduction-roofline", "roofs"}
    missing |= {stem for stem in ADDED if stem.endswith("-limits")}
    assert set(figures) == {*PLAIN, *ADDED} - missing
    assert len(said) == 2
    assert all("no measured memory and arithmetic roofs" in text for text in said)


def without(document: dict, counters: tuple[str, ...] | list[str], value: float | None) -> dict:
    """Return the document with these counters gone from every row, or at one value."""
    for row in document["benchmarks"]:
        for counter in counters:
            row.pop(counter, None)
            if value is not None and not row.get("skipped"):
                row[counter] = value
    return document


def written(figures: dict) -> str:
    return "\n".join(t for figure in figures.values() for axes in figure.axes for t in texts(axes))


@pytest.mark.parametrize("value", [0.0, math.nan])
def test_counters_may_be_nothing(draw, value):
    document = only(insight.document(), "transpose", "sgemm", "smem_layout")
    figures, _ = draw(without(document, insight.COUNTERS, value))
    for figure in figures.values():
        assert seen(figure)
    assert not re.search(r"\b(nan|inf)\b", written(figures))


@pytest.mark.parametrize("counter", insight.COUNTERS)
def test_any_counter_may_be_missing(draw, counter):
    document = only(insight.document(), "transpose")
    kept = [
        row
        for row in document["benchmarks"]
        if "transpose" not in row["name"] or f"/{TRANSPOSE}/" in row["name"]
    ]
    # The figure of the roofs is of their rows alone, which have few counters.
    roofs = {"roofs"} if any(counter in r for r in kept if r["name"].startswith("roof/")) else set()
    stems = {"transpose-limits", "transpose-why"} | roofs
    figures, _ = draw(without({**document, "benchmarks": kept}, [counter], None), *stems)
    assert roofs < set(figures)
    assert not re.search(r"\b(nan|inf)\b", written(figures))


# The roofline.


def points(axes) -> dict[str, tuple[float, float]]:
    """The points of a roofline, by rung."""
    found = {}
    for line in axes.lines:
        if line.get_label().startswith("sgemm/"):
            found[line.get_label().split("/")[1]] = line.get_xdata()[0], line.get_ydata()[0]
    return found


def test_points_of_a_roofline_are_at_the_bytes_that_came_through_l2(draw):
    figures, _ = draw(only(insight.document(), "sgemm"), "sgemm-roofline")
    (axes,) = figures["sgemm-roofline"].axes
    assert axes.get_xlabel() == "FLOP per byte moved through L2"
    found = points(axes)
    assert set(found) == set(suite.SGEMM) - {"cublas_tf32"}  # of another precision
    for rung, at in found.items():
        moved = insight.row(insight.document(), f"sgemm/{rung}/{SGEMM}")["l2_bytes"]
        assert at == pytest.approx((2.0 * 4096**3 / moved, suite.SGEMM[rung][3]))


def test_arrows_join_the_rungs_that_are_named(draw):
    figures, _ = draw(only(insight.document(), "sgemm"), "sgemm-roofline")
    (axes,) = figures["sgemm-roofline"].axes
    at = {place: rung for rung, place in points(axes).items()}
    arrows = [text for text in axes.texts if text.arrow_patch]
    joined = [(at[tuple(map(float, a.xyann))], at[tuple(map(float, a.xy))]) for a in arrows]
    path = ["naive", "coalesced", "tiled", "register_tile", "pipelined"]
    assert joined == [*pairwise(path)]
    told = {text.split("  ")[0] for text in texts(axes)}
    assert {*path, "cublas"} <= told
    assert "vectorised" not in told


def lines(axes, *, dashed: bool) -> list[tuple]:
    """Lines of the roofs: (their ends)."""
    found = [line for line in axes.lines if to_hex(line.get_color()) == style.GREY]
    found = [
        line for line in found if 0.8 < line.get_linewidth() < 2
    ]  # no ceiling's own: also grey
    found = [line for line in found if len(line.get_xdata()) == 2]
    found = [line for line in found if (line.get_linestyle() == "--") == dashed]
    return [tuple(zip(*line.get_data(), strict=True)) for line in found]


def test_roofs_are_solid_where_measured_and_dashed_where_promised(draw):
    figures, _ = draw(only(insight.document(), "sgemm"), "sgemm-roofline")
    (axes,) = figures["sgemm-roofline"].axes
    solid, dashed = (lines(axes, dashed=d) for d in (False, True))
    slopes_of = {round(y / x, 4) for ends in solid for x, y in ends[:1] if ends[0][1] < ends[1][1]}
    assert slopes_of == {8.45}  # TB/s: of the level that the bytes came through
    flats = {round(ends[0][1], 4) for ends in solid if ends[0][1] == ends[1][1]}
    assert flats == {65.0}  # other precisions are no limit of what is shown
    assert {round(ends[0][1], 4) for ends in dashed} == {67.0}


def test_a_rung_of_several_products_has_the_roof_over_so_many(draw):
    document = only(insight.document(), "sgemm")
    ladders = json.loads(document["context"]["ladders"])
    (sgemm,) = [ladder for ladder in ladders if ladder["name"] == "sgemm"]
    (rung,) = [rung for rung in sgemm["rungs"] if rung["name"] == "coalesced"]
    rung["ceilings"] = [{"rung": "roof/bf16", "products": 3}]
    document["context"]["ladders"] = json.dumps(ladders)
    figures, _ = draw(document, "sgemm-roofline")
    (axes,) = figures["sgemm-roofline"].axes
    (text,) = [text for text in texts(axes) if text.startswith("bf16 / 3: ")]
    flats = {ends[0][1] for ends in lines(axes, dashed=False) if ends[0][1] == ends[1][1]}
    assert f"{max(flats - {65.0}):.0f} of 330 TFLOP/s" in text


def test_a_kernel_that_limits_a_rung_is_drawn_as_a_roof_is(draw):
    document = only(insight.document(), "sgemm")
    ladders = json.loads(document["context"]["ladders"])
    (sgemm,) = [ladder for ladder in ladders if ladder["name"] == "sgemm"]
    rungs = {rung["name"]: rung for rung in sgemm["rungs"]}
    rungs["coalesced"]["ceilings"] = [{"rung": "sgemm/cublas_tf32", "products": 3}]
    rungs["cublas_tf32"]["role"] = "ceiling"
    document["context"]["ladders"] = json.dumps(ladders)
    figures, _ = draw(document, "sgemm-roofline")
    (axes,) = figures["sgemm-roofline"].axes
    (text,) = [text for text in texts(axes) if text.startswith("cublas_tf32 / 3: ")]
    flats = {ends[0][1] for ends in lines(axes, dashed=False) if ends[0][1] == ends[1][1]}
    assert f" {max(flats - {65.0}):.0f} TFLOP/s" in text


def test_roofs_that_would_lie_on_each_other_are_drawn_as_one(draw):
    document = only(insight.document(), "sgemm")
    ladders = json.loads(document["context"]["ladders"])
    (sgemm,) = [ladder for ladder in ladders if ladder["name"] == "sgemm"]
    for name, ceiling, products in (("naive", "roof/bf16", 6), ("coalesced", "roof/tf32", 3)):
        (rung,) = [rung for rung in sgemm["rungs"] if rung["name"] == name]
        rung["ceilings"] = [{"rung": ceiling, "products": products}]
    document["context"]["ladders"] = json.dumps(ladders)
    figures, _ = draw(document, "sgemm-roofline")
    (axes,) = figures["sgemm-roofline"].axes
    (text,) = [text for text in texts(axes) if "bf16 / 6" in text or "tf32 / 3" in text]
    assert "bf16 / 6" in text
    assert "tf32 / 3" in text
    flats = {ends[0][1] for ends in lines(axes, dashed=False) if ends[0][1] == ends[1][1]}
    assert len(flats - {65.0}) == 1


def test_where_the_headline_counts_no_flops_the_last_case_with_most_rungs_is_named(draw):
    document = only(insight.document(), "reduction")
    document["benchmarks"] = [
        row
        for row in document["benchmarks"]
        if "/elements:268435456/operation:sum/" not in row["name"] or "/cub/" in row["name"]
    ]
    figures, _ = draw(document, "reduction-roofline")
    told = " ".join(texts(figures["reduction-roofline"]))
    assert "at elements 2²⁷, sum." in told


def test_a_ladder_of_bytes_stands_under_the_roof_of_its_traffic(draw):
    document = only(insight.document(), "reduction")
    figures, _ = draw(document, "reduction-roofline")
    (axes,) = figures["reduction-roofline"].axes
    assert axes.get_xlabel() == "FLOP per byte moved through DRAM"
    assert any(text.startswith("dram_read") for text in texts(axes))
    for row in document["benchmarks"]:
        if row["name"].startswith("reduction/"):
            row["dram_write_bytes"] = row["dram_read_bytes"] = row["dram_bytes"] / 2
    figures, _ = draw(document, "reduction-roofline")
    (axes,) = figures["reduction-roofline"].axes
    assert "memcpy: 4270 of 4800 GB/s" in texts(axes)  # the better of two copies
    assert not any("dram_" in text for text in texts(axes))


def test_a_gpu_without_a_datasheet_has_no_dashes(draw):
    figures, _ = draw(only(insight.document(gpu_name="NVIDIA Z1"), "sgemm"), "sgemm-roofline")
    (axes,) = figures["sgemm-roofline"].axes
    assert lines(axes, dashed=True) == []
    assert "fma: 65.0 TFLOP/s" in texts(axes)


def test_the_name_of_a_slope_keeps_clear_of_points(draw):
    """A point above the roof moves the name along the slope, or below it."""

    def named(document: dict) -> tuple[float, float, str]:
        figures, _ = draw(document, "sgemm-roofline")
        (name,) = [text for text in figures["sgemm-roofline"].axes[0].texts if text.get_rotation()]
        return *name.xy, name.get_va()

    document = only(insight.document(), "sgemm")
    x, y, side = named(document)
    assert side == "bottom"
    row = insight.row(document, f"sgemm/coalesced/{SGEMM}")
    flops = row["flops_per_second"] * row["median_seconds"]
    row["l2_bytes"] = flops / (0.97 * x)
    row["flops_per_second"] = 0.97 * y * 1e12
    row["median_seconds"] = flops / row["flops_per_second"]
    moved, _, side = named(document)
    assert moved < 0.95 * x or side == "top"


# What limits a rung.


def shares(figure) -> tuple[dict[str, dict[str, Rectangle]], list[str]]:
    """The bars of a figure of limits, by column and rung, and what is said to limit each rung."""
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    heads = [text for text in axes.texts if text.xycoords != "data"]
    *starts, end = [text.xy[0] for text in heads]
    columns = [text.get_text() for text in heads[:-1]]
    bars = {
        column: {
            names[round(bar.get_y() + 0.34)]: bar for bar in axes.patches if bar.get_x() == start
        }
        for column, start in zip(columns, starts, strict=True)
    }
    assert heads[-1].get_text() == "limited by"
    return bars, [t.get_text() for t in axes.texts if t.xycoords == "data" and t.xy[0] == end]


def test_bars_are_as_long_as_the_shares(draw):
    figures, _ = draw(only(insight.document(), "transpose"), "transpose-limits")
    bars, _ = shares(figures["transpose-limits"])
    assert list(bars)[:5] == ["speed", "DRAM", "L2", "L1", "shared\nmemory"]
    assert list(bars["speed"]) == list(suite.TRANSPOSE)
    row = insight.row(insight.document(), f"transpose/naive/{TRANSPOSE}")
    seconds = row["median_seconds"]
    expected = {
        "speed": 100 * 557 / 4120,
        "DRAM": 100 * row["dram_bytes"] / seconds / 4.27e12,
        "L2": 100 * row["l2_bytes"] / seconds / 8.45e12,
        "issue\nslots": 30.0,
    }
    _, tracks = figures["transpose-limits"].axes[0].collections
    (full,) = {round(float(np.ptp(track.vertices[:, 0])), 9) for track in tracks.get_paths()}
    for name, percent in expected.items():
        assert bars[name]["naive"].get_width() == pytest.approx(full * percent / 100), name


def test_the_limiter_is_named_and_stands_out(draw):
    figures, _ = draw(only(insight.document(), "transpose"), "transpose-limits")
    bars, told = shares(figures["transpose-limits"])
    assert dict(zip(bars["speed"], told, strict=True))["tile"] == "shared memory 50%"
    for name in ("DRAM", "shared\nmemory"):
        face = to_hex(bars[name]["tile"].get_facecolor())
        assert (face == to_hex(style.OURS)) == (name != "DRAM")


def test_red_is_over_a_threshold_that_the_figure_states(draw):
    document = only(insight.document(), "transpose")
    for rung, percent in (("padded", 100.9), ("vectorised", 101.1)):
        insight.row(document, f"transpose/{rung}/{TRANSPOSE}")["percent_of_ceiling"] = percent
    figures, said = draw(document, "transpose-limits")
    made = figures["transpose-limits"]
    told = [text.get_text() for text in made.texts]
    assert [t for t in told if t.startswith("Red: over 101%") and "more than a limit" in t]
    renderer = FigureCanvasAgg(made).get_renderer()
    ends = [t.get_window_extent(renderer).x1 for t in made.texts if t.get_text()]
    assert max(ends) < made.bbox.width - 10
    speed = [to_hex(bar.get_facecolor()) for bar in shares(made)[0]["speed"].values()]
    assert speed.count(style.ALARM) == 1
    assert len([text for text in said if "101.1% of its ceiling" in text]) == 1


def test_without_red_the_figure_says_nothing_of_it(draw):
    figures, _ = draw(only(insight.document(), "transpose"), "transpose-limits")
    assert not any("Red" in text.get_text() for text in figures["transpose-limits"].texts)


def test_a_dash_among_the_shares_is_explained(draw):
    document = only(insight.document(), "transpose")
    figures, _ = draw(document, "transpose-limits")
    assert "–: not known" not in [text.get_text() for text in figures["transpose-limits"].texts]
    del insight.row(document, f"transpose/padded/{TRANSPOSE}")["dram_bytes"]
    figures, _ = draw(document, "transpose-limits")
    assert "–: not known" in [text.get_text() for text in figures["transpose-limits"].texts]


def test_a_share_above_its_limit_is_red(draw):
    document = only(insight.document(), "transpose")
    insight.row(document, f"transpose/padded/{TRANSPOSE}")["dram_bytes"] *= 10
    figures, _ = draw(document, "transpose-limits")
    red = [
        (column, rung)
        for column, bars in shares(figures["transpose-limits"])[0].items()
        for rung, bar in bars.items()
        if to_hex(bar.get_facecolor()) == style.ALARM
    ]
    assert red == [("DRAM", "padded")]


def test_a_limit_that_no_rung_uses_has_no_column(draw):
    figures, _ = draw(
        only(insight.document(), "transpose", "sgemm"), "sgemm-limits", "transpose-limits"
    )
    assert "tensor\ncores" not in shares(figures["transpose-limits"])[0]
    assert "FP32" in shares(figures["sgemm-limits"])[0]


# Rows above a limit.


def test_a_row_that_moves_more_than_its_roof_is_reported(draw):
    document = only(insight.document(), "transpose")
    insight.row(document, f"transpose/padded/{TRANSPOSE}")["dram_bytes"] *= 10
    _, said = draw(document, "transpose-limits")
    assert [text for text in said if "transpose/padded/" in text and "DRAM" in text]


# Figures in words.


@pytest.mark.parametrize(
    ("counter", "amount", "text"),
    [
        ("shared_load_wavefronts_per_request", 31.98, "32"),
        ("shared_load_wavefronts_per_request", 1.012, "1.01"),
        ("stall_barrier", 0.292, "29%"),
        ("achieved_occupancy", 0.0123, "1.2%"),
        ("dram_bytes", 5.12e8, "512 MB"),
        ("static_shared_bytes", 4224.0, "4.12 KiB"),
        ("warp_instructions", 1.11e8, "111 M"),
        ("warp_instructions", 999.7e6, "1.00 G"),
        ("global_atomic_requests", 0.0, "0"),
        ("active_lanes", 31.8, "31.8"),
        ("dram_bytes", math.nan, ""),
    ],
)
def test_counters_are_written_in_their_unit(counter, amount, text):
    assert quantities.value(counter, amount) == text
