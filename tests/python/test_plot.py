# SPDX-License-Identifier: MIT
"""Plots: complete, and honest about what they leave out."""

import json
import math
import re

import matplotlib.image
import numpy as np
import pytest
import suite
from ladder.analysis.study import studies
from ladder.commands.cli import main
from ladder.io.results import load_results
from ladder.report.plots import gpus, style
from matplotlib.backends.backend_agg import FigureCanvasAgg

STEMS = """transpose-climb transpose-light transpose-peers sgemm-climb sgemm-peers sgemm-roofline
reduction-climb reduction-roofline reduction-peers histogram-climb histogram-light histogram-peers
histogram-clusters overview roofs""".split()


@pytest.fixture(scope="module")
def drawn(ladder, whole, tmp_path_factory):
    """Every figure, drawn by a process of its own."""
    directory = tmp_path_factory.mktemp("drawn")
    return directory, ladder("plot", whole, "--output", directory, "--format", "png")


def test_every_ladder_has_its_figures(drawn):
    directory, done = drawn
    assert (done.returncode, done.stderr) == (0, "")
    names = {f"{stem}.png" for stem in STEMS}
    assert {path.name for path in directory.iterdir()} == names
    assert {line.rpartition("/")[2] for line in done.stdout.splitlines()} == names


def test_figures_are_not_blank_and_keep_their_margins(drawn):
    directory, _ = drawn
    for path in directory.glob("*.png"):
        ink = matplotlib.image.imread(path)[:, :, :3].min(axis=2) < 0.95
        assert ink.mean() > 0.01, path.name
        edges = np.concatenate(
            [ink[:4].ravel(), ink[-4:].ravel(), ink[:, :4].ravel(), ink[:, -4:].ravel()]
        )
        assert not edges.any(), f"{path.name} is clipped"


def texts(figure) -> list[str]:
    found = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        found += [text.get_text() for text in [*axes.texts, axes.title, *axes.get_yticklabels()]]
        found += [axes.get_title("left")]
    return found


@pytest.fixture
def figure(draw):
    """Draw a document and return one figure by name, or all without one, with the warnings."""

    def drawn(document: dict, name: str | None):
        figures, warnings = draw(document, *([name] if name else []))
        return (figures[name] if name else figures), warnings

    return drawn


def only(document: dict, ladder: str) -> dict:
    kept = [r for r in document["benchmarks"] if r["name"].startswith((f"{ladder}/", "roof/"))]
    return {**document, "benchmarks": kept}


def test_titles_say_gpu_cache_mode_and_commit(figure):
    made, _ = figure(only(suite.document(git_dirty="true"), "sgemm"), "sgemm-climb")
    assert "NVIDIA H200, cold cache, commit 0123456-dirty" in texts(made)


def test_bars_are_labelled_with_speed_percent_and_ratio(figure):
    made, _ = figure(only(suite.document(), "sgemm"), "sgemm-climb")
    found = texts(made)
    assert {"36.4", "57%", "0.71× cublas", "roof/fma 63.7", "register_tile"} <= set(found)


def test_bars_are_as_long_as_the_speeds(figure):
    made, _ = figure(only(suite.document(), "sgemm"), "sgemm-climb")
    bars = made.axes[0]
    names = [label.get_text() for label in bars.get_yticklabels()]
    lengths = {names[round(bar.get_y() + bar.get_height() / 2)]: bar for bar in bars.patches}
    for name, speeds in suite.SGEMM.items():
        bar = lengths[name]
        assert bar.get_x() == 0
        limit = bars.get_xlim()[1]  # where another precision is cut
        assert bar.get_width() == pytest.approx(min(speeds[3], limit))
    assert bars.get_xlim()[0] == 0
    ceiling = [line for line in bars.lines if line.get_linewidth() == 1.2]
    assert ceiling[0].get_xdata()[0] == pytest.approx(suite.CEILINGS["fma"] / 1e12)


def test_strips_are_as_high_as_the_percentages(figure):
    made, _ = figure(only(suite.document(), "transpose"), "transpose-light")
    strips = [bars for axes in made.axes for bars in axes.collections]
    padded = next(bars for bars in strips if bars.get_label() == "padded")
    expected = [
        100 * s / c for s, c in zip(*(suite.TRANSPOSE[n] for n in ("padded", "copy")), strict=True)
    ]
    heights = [2 * np.ptp(bar.vertices[:, 1]) for bar in padded.get_paths()]  # of half an inch
    assert [100 * height for height in heights] == pytest.approx(expected)


def test_lines_go_through_the_speeds(figure):
    made, _ = figure(only(suite.document(), "sgemm"), "sgemm-climb")
    (panel,) = line_panels(made)
    drawn = [list(line.get_ydata()) for line in panel.lines if len(line.get_ydata()) == 5]
    for name, speeds in suite.SGEMM.items():
        assert any(line == pytest.approx(speeds[:5]) for line in drawn), name


def test_rungs_without_a_figure_keep_their_place_and_say_why(figure):
    document = only(suite.document(), "sgemm")
    for i, row in enumerate(document["benchmarks"]):
        if row["name"].startswith("sgemm/tiled/m:4096"):
            document["benchmarks"][i] = suite.skipped(row["name"][:-12], "needs sm_100")
        if row["name"].startswith("sgemm/naive/m:4096"):
            row |= {"error_occurred": True, "error_message": "wrong at [3]"}
    made, warnings = figure(document, "sgemm-climb")
    assert {"skipped: needs sm_100", "error: wrong at [3]", "tiled", "naive"} <= set(texts(made))
    assert len(warnings) == 1
    assert "sgemm/naive/m:4096" in warnings[0]
    assert "wrong at [3]" in warnings[0]


@pytest.mark.parametrize(
    ("rung", "stem", "mark"),
    [
        ("sgemm/tiled", "sgemm-roofline", "tiled: above its roof"),
        ("sgemm/tiled/m:4096", "sgemm-climb", "above roof"),
        ("histogram/global", "histogram-light", "130"),
    ],
)
def test_points_above_their_roof_are_marked_and_reported(figure, rung, stem, mark):
    document = only(suite.document(), rung.partition("/")[0])
    row = next(r for r in document["benchmarks"] if r["name"].startswith(f"{rung}/"))
    row["percent_of_ceiling"] = 130.0
    made, warnings = figure(document, stem)
    assert [w for w in warnings if "130.0% of its ceiling" in w and row["name"] in w]
    assert mark in texts(made)


def test_a_ceiling_is_not_above_itself(figure):
    document = only(suite.document(), "transpose")
    for row in document["benchmarks"]:
        if row["name"].startswith("transpose/copy/"):
            row["percent_of_ceiling"] = 103.0
    made, warnings = figure(document, "transpose-light")
    assert warnings == []
    assert "copy" not in texts(made)  # it is the line that the others are measured by


def test_dashes_are_explained_where_there_are_any(figure):
    document = only(suite.document(), "histogram")
    made, _ = figure(document, "histogram-light")
    (subtitle,) = [text for text in texts(made) if "percent of" in text]
    assert subtitle.endswith("the line above each strip. –: skipped")
    ran = [row for row in document["benchmarks"] if not row.get("skipped")]
    made, _ = figure({**document, "benchmarks": ran}, "histogram-light")
    assert any(text.endswith(". –: not measured") for text in texts(made))
    ran = [row for row in ran if "/bins:256/" in row["name"]]
    made, _ = figure({**document, "benchmarks": ran}, "histogram-light")
    assert not any("–" in text for text in texts(made))


def test_another_precision_is_not_above_the_roof(figure):
    _, warnings = figure(only(suite.document(), "sgemm"), "sgemm-roofline")
    assert warnings == []


def test_a_roofline_names_points_of_a_case_that_counts_flops(figure):
    made, _ = figure(only(suite.document(), "reduction"), "reduction-roofline")
    (subtitle,) = [text for text in texts(made) if "Named points" in text]
    assert "elements 2²⁸, operation sum;" in subtitle
    assert {"vectorised", "fma 63.7 of 67.0 TFLOP/s", "shared_memory 32.6 TB/s"} <= set(texts(made))


def test_the_climb_goes_up_the_path_to_the_best_first_and_names_parents(figure):
    document = only(suite.document(), "sgemm")
    ladders = json.loads(document["context"]["ladders"])
    (rungs,) = [x["rungs"] for x in ladders if x["name"] == "sgemm"]
    by_name = {rung["name"]: rung for rung in rungs}
    by_name["pipelined"]["builds_on"] = "tiled"
    document["context"]["ladders"] = json.dumps(ladders)
    made, _ = figure(document, "sgemm-climb")
    names = [label.get_text() for label in made.axes[0].get_yticklabels()]
    first = ["naive", "coalesced", "tiled", "pipelined", "register_tile", "vectorised"]
    assert names == [*first, "cublas", "cublas_tf32"]
    assert {"to parent", "5.64× tiled", "4.00× tiled", "1.33× register_tile"} <= set(texts(made))


def test_beside_the_library_are_times_its_speed_from_half_of_it_on(figure):
    made, _ = figure(only(suite.document(), "sgemm"), "sgemm-peers")
    (panel,) = made.axes
    assert panel.get_ylabel() == "× cublas"
    drawn = [list(line.get_ydata()) for line in panel.lines if len(line.get_ydata()) == 5]
    times = {
        name: [own / peer for own, peer in zip(speeds, suite.SGEMM["cublas"], strict=True)][:5]
        for name, speeds in suite.SGEMM.items()
    }
    for name in ("register_tile", "pipelined", "cublas"):
        shown = [value if value >= 0.5 else math.nan for value in times[name]]
        assert any(line == pytest.approx(shown, nan_ok=True) for line in drawn), name
    assert {"pipelined", "cublas"} <= set(texts(made))
    assert not {"naive", "cublas_tf32"} & set(texts(made))


def test_facets_without_the_library_are_not_set_beside_it(figure):
    document = only(suite.document(), "reduction")
    kept = [r for r in document["benchmarks"] if not re.search("/cub/.*:sum/", r["name"])]
    made, _ = figure({**document, "benchmarks": kept}, "reduction-peers")
    assert [axes.get_title("left") for axes in made.axes] == ["operation sum of squares"]


def line_panels(figure) -> list:
    return [axes for axes in figure.axes if axes.get_yscale() == "log"]


def test_facets_stand_in_one_row_on_one_scale(figure):
    made, _ = figure(only(suite.document(), "transpose"), "transpose-climb")
    panels = line_panels(made)
    assert [axes.get_title("left") for axes in panels] == ["element 4", "element 2", "element 8"]
    assert len({(axes.get_position().y0, axes.get_ylim()) for axes in panels}) == 1
    assert made.get_size_inches()[0] == pytest.approx(style.PAGE)


def test_only_a_series_of_sizes_is_joined(figure):
    document = only(suite.document(), "sgemm")
    document["benchmarks"].reverse()
    made, _ = figure(document, "sgemm-climb")
    (panel,) = line_panels(made)
    labels = [label.get_text() for label in panel.get_xticklabels()]
    assert labels == ["512", "1024", "2048", "4096", "8192", "1000×3000×77"]
    joined = [line for line in panel.lines if line.get_linestyle() == "--"]
    assert {tuple(line.get_xdata()) for line in joined} == {(0, 1, 2, 3, 4)}


def test_an_odd_size_stands_beside_the_line(figure):
    document = only(suite.document(), "sgemm")
    odd = [dict(r) for r in document["benchmarks"] if "/m:2048/" in r["name"]]
    for row in odd:
        for key in ("name", "run_name"):
            row[key] = row[key].replace(":2048", ":2047")
    made, _ = figure({**document, "benchmarks": document["benchmarks"] + odd}, "sgemm-climb")
    (panel,) = line_panels(made)
    labels = [label.get_text() for label in panel.get_xticklabels()]
    assert labels == ["512", "1024", "2048", "4096", "8192", "2047", "1000×3000×77"]
    joined = [line for line in panel.lines if line.get_linestyle() == "--"]
    assert {tuple(line.get_xdata()) for line in joined} == {(0, 1, 2, 3, 4)}


def test_the_overview_names_every_rung_its_ceiling_is_for(figure):
    made, _ = figure(suite.document(), "overview")
    found = set(texts(made))
    for ladder in suite.CATALOGUE[:-1]:
        for rung in ladder["rungs"]:
            named = any(text.partition(" (")[0] == rung["name"] for text in found)
            assert named == (rung["role"] != "ceiling" and not rung["precision"]), rung["name"]
    assert {"pipelined 51.3 TFLOP/s, 1.00× cublas", "roof/fma 63.7 TFLOP/s"} <= found


@pytest.mark.parametrize(
    ("pattern", "stems", "ceiling"),
    [
        ("^reduction/", {"reduction-climb", "reduction-peers", "overview"}, "roof/dram_read 4658"),
        (
            "^transpose/padded/",
            {"transpose-climb", "transpose-light", "overview"},
            "transpose/copy",
        ),
        ("^sgemm/cublas", {"sgemm-climb"}, "roof/fma 63.7"),
        (
            "^histogram/.*zipf",
            {
                "histogram-climb",
                "histogram-light",
                "histogram-peers",
                "histogram-clusters",
                "overview",
            },
            "roof/dram_read",
        ),
    ],
)
def test_a_run_of_a_few_rungs_draws_what_it_can(figure, pattern, stems, ceiling):
    """The context lists every ladder, but no roof was measured: percent_of_ceiling tells it."""
    document = suite.document()
    rows = [row for row in document["benchmarks"] if re.match(pattern, row["name"])]
    drawn, warnings = figure({**document, "benchmarks": rows}, None)
    assert set(drawn) == stems
    assert all("not drawn: " in warning and "\n" not in warning for warning in warnings)
    climb = next(drawn[stem] for stem in stems if stem.endswith("-climb"))
    assert any(text.startswith(ceiling) for text in texts(climb))
    assert len({axes.get_ylim() for axes in line_panels(climb)}) <= 1


def test_a_roofline_without_roofs_says_what_is_missing(whole, tmp_path, capsys):
    document = json.loads(whole.read_text())
    rows = [row for row in document["benchmarks"] if row["name"].startswith("sgemm/")]
    file = suite.write(tmp_path / "a.json", {**document, "benchmarks": rows})
    assert main(["plot", str(file), "--output", str(tmp_path / "out")]) == 0
    missing = "the results hold no measured memory and arithmetic roofs"
    assert capsys.readouterr().err == f"ladder: note: sgemm-roofline not drawn: {missing}\n"
    assert not (tmp_path / "out" / "sgemm-roofline.svg").exists()
    assert (tmp_path / "out" / "sgemm-climb.svg").exists()


def test_a_filter_keeps_the_roofs(whole, tmp_path, capsys):
    output = tmp_path / "out"
    assert main(["plot", str(whole), "--output", str(output), "--filter", "^sgemm/.*/n:4096/"]) == 0
    names = {path.name for path in output.iterdir()}
    assert names == {"sgemm-climb.svg", "sgemm-roofline.svg", "overview.svg"}
    assert capsys.readouterr().err == ""


def test_two_gpus_are_compared(whole, tmp_path):
    other = suite.document(0.5, gpu_name="NVIDIA A100", gpu_uuid="GPU-1")
    file = suite.write(tmp_path / "a100.json", other)
    output = tmp_path / "out"
    pattern = "^(sgemm|smem_layout)/"
    options = ["--output", str(output), "--format", "svg", "--filter", pattern]
    assert main(["plot", str(whole), str(file), *options]) == 0
    found = {str(path.relative_to(output)) for path in output.rglob("*.svg")}
    assert {"sgemm-compare.svg", "smem_layout-compare.svg"} < found
    assert {"nvidia-h200/sgemm-climb.svg", "nvidia-a100/sgemm-climb.svg"} < found


def test_bars_of_two_gpus_are_as_long_as_their_speeds(tmp_path):
    suite.write(tmp_path / "b.json", suite.document(0.5, gpu_name="NVIDIA A100"))
    results = load_results(tmp_path / "b.json")
    whole = load_results(suite.write(tmp_path / "c.json"))
    found = [(name, studies(r[0])[1]) for name, r in (("H200", whole), ("A100", results))]
    made = gpus.draw(found)
    speed = made.axes[0]
    bars = sorted(speed.patches, key=lambda bar: bar.get_y())
    limit = speed.get_xlim()[1]
    expected = [min(s[3] * f, limit) for s in suite.SGEMM.values() for f in (1, 0.5)]
    assert [bar.get_width() for bar in bars] == pytest.approx(expected)


@pytest.mark.parametrize("count", [2, 4, 7])
def test_a_legend_of_many_long_names_stays_on_the_page(whole, count):
    (study,) = [s for s in studies(load_results(whole)[0]) if s.ladder.name == "sgemm"]
    found = [(f"NVIDIA RTX PRO 6000 Blackwell Server Edition {i}", study) for i in range(count)]
    with style.look():
        made = gpus.draw(found)
    renderer = FigureCanvasAgg(made).get_renderer()
    legend = [text for text in made.texts if text.get_text().startswith("■ ")]
    assert len(legend) == count
    boxes = [text.get_window_extent(renderer) for text in legend]
    assert all(0 < box.x0 < box.x1 < made.bbox.width for box in boxes)
    assert all(not a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert min(box.y0 for box in boxes) > made.axes[0].get_window_extent(renderer).y1


def test_equal_gpus_are_told_apart_by_commit(whole, tmp_path):
    second = suite.write(tmp_path / "b.json", suite.document(git_commit="fedcba9876543210"))
    names = style.distinct_names(load_results([whole, second]))
    assert names == ["NVIDIA H200 0123456", "NVIDIA H200 fedcba9"]


def test_warm_and_cold_are_never_in_one_plot(whole, tmp_path, capsys):
    warm = suite.write(tmp_path / "warm.json", suite.document(cache_mode="warm"))
    assert main(["plot", str(whole), str(warm), "--output", str(tmp_path / "out")]) == 5
    assert "cache modes cold and warm" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_another_suite_says_in_one_line_what_is_missing(data, tmp_path, capsys):
    file = data / "foreign.json"
    assert main(["plot", str(file), "--output", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert (
        err == f"ladder: {file}: nothing to plot: the file's context does not list their ladder\n"
    )


def test_an_output_that_cannot_be_written_is_one_line(whole, tmp_path, capsys):
    (tmp_path / "file").touch()
    output = str(tmp_path / "file" / "out")
    assert main(["plot", str(whole), "--output", output, "--filter", "^smem"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("ladder: ")
    assert "Not a directory" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], []),
        ([0.5], [0.5]),
        ([0.2, 0.8], [0.2, 0.8]),
        ([0.5, 0.5], [0.45, 0.55]),
        ([0.0, 0.0, 0.0], [0.0, 0.1, 0.2]),
        ([1.0, 0.98], [1.0, 0.9]),
        ([0.5, 0.9, 0.52], [0.46, 0.9, 0.56]),
    ],
)
def test_labels_are_spread_no_further_than_needed(wanted, expected):
    assert style.spread(wanted, 0.1, 0.0, 1.0) == pytest.approx(expected)


def test_crowded_labels_still_stay_within_bounds():
    placed = style.spread([0.5] * 50, 0.1, 0.0, 1.0)
    assert placed.min() == pytest.approx(0.0)
    assert placed.max() == pytest.approx(1.0)
