# SPDX-License-Identifier: MIT
"""Plots: complete, repeatable to the byte, and honest about what they leave out."""

import json
import re

import matplotlib.image
import numpy as np
import pytest
import suite
from ladder import plots
from ladder.cli import main
from ladder.plots import style
from ladder.results import load_results

LADDERS = ["transpose", "sgemm", "reduction", "histogram", "smem_layout"]


@pytest.fixture(scope="module")
def drawn(ladder, whole, tmp_path_factory):
    """Every figure, drawn by two processes."""
    directories = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
    runs = [ladder("plot", whole, "--output", d, "--format", "svg,png") for d in directories]
    return directories, runs


def test_every_ladder_has_its_figures(drawn):
    (directory, _), (done, _) = drawn
    assert (done.returncode, done.stderr) == (0, "")
    stems = {f"{ladder}-{kind}" for ladder in LADDERS for kind in ("climb", "roofline")}
    names = {f"{stem}.{form}" for stem in [*stems, "overview"] for form in ("svg", "png")}
    assert {path.name for path in directory.iterdir()} == names
    assert {line.rpartition("/")[2] for line in done.stdout.splitlines()} == names


def test_the_same_results_give_the_same_bytes(drawn):
    (first, second), _ = drawn
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name


def test_figures_are_not_blank_and_keep_their_margins(drawn):
    (directory, _), _ = drawn
    for path in directory.glob("*.png"):
        ink = matplotlib.image.imread(path)[:, :, :3].min(axis=2) < 0.95
        assert ink.mean() > 0.01, path.name
        edges = np.concatenate(
            [ink[:4].ravel(), ink[-4:].ravel(), ink[:, :4].ravel(), ink[:, -4:].ravel()]
        )
        assert not edges.any(), f"{path.name} is clipped"


def test_svg_tells_nothing_of_when_or_where(drawn):
    (directory, _), _ = drawn
    for path in directory.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"<dc:date>|matplotlib v|/tmp/", text, re.IGNORECASE), path.name


def texts(figure) -> list[str]:
    found = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        found += [text.get_text() for text in [*axes.texts, axes.title, *axes.get_yticklabels()]]
        found += [axes.get_title("left")]
    return found


@pytest.fixture
def figure(monkeypatch, tmp_path):
    """Draw a document and return one figure by name, with the warnings."""

    def draw(document: dict, name: str):
        figures = {}
        monkeypatch.setattr(style, "save", lambda f, _, stem, __: figures.update({stem: f}) or [])
        warnings: list[str] = []
        file = suite.write(tmp_path / "a.json", document)
        plots.draw(load_results(file), tmp_path, ["svg"], warnings.append)
        return figures[name], warnings

    return draw


def only(document: dict, ladder: str) -> dict:
    kept = [r for r in document["benchmarks"] if r["name"].startswith((f"{ladder}/", "roof/"))]
    return {**document, "benchmarks": kept}


def test_titles_say_gpu_cache_mode_and_commit(figure):
    made, _ = figure(only(suite.document(git_dirty="true"), "smem_layout"), "smem_layout-climb")
    assert "NVIDIA H200, cold cache, commit 0123456-dirty" in texts(made)


def test_bars_are_labelled_with_speed_percent_and_ratio(figure):
    made, _ = figure(only(suite.document(), "sgemm"), "sgemm-climb")
    found = texts(made)
    assert {"36.4", "57%", "0.71× cublas", "roof/fma 63.7", "register_tile"} <= set(found)


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
    ("ladder", "mark"), [("sgemm", "tiled: above its roof"), ("histogram", None)]
)
def test_points_above_their_roof_are_marked_and_reported(figure, ladder, mark):
    document = only(suite.document(), ladder)
    row = next(
        r for r in document["benchmarks"] if re.match(rf"{ladder}/(tiled|global)/", r["name"])
    )
    row["percent_of_ceiling"] = 130.0
    made, warnings = figure(document, f"{ladder}-roofline")
    assert [w for w in warnings if "130.0% of its ceiling" in w and row["name"] in w]
    assert mark is None or mark in texts(made)


def test_another_precision_is_not_above_the_roof(figure):
    _, warnings = figure(only(suite.document(), "sgemm"), "sgemm-roofline")
    assert warnings == []


def test_ladders_without_flops_get_no_roofline(figure):
    made, _ = figure(only(suite.document(), "histogram"), "histogram-roofline")
    assert "Histogram: speed of light" in texts(made)


def test_a_roofline_without_roofs_says_what_is_missing(whole, tmp_path, capsys):
    document = json.loads(whole.read_text())
    rows = [row for row in document["benchmarks"] if row["name"].startswith("sgemm/")]
    file = suite.write(tmp_path / "a.json", {**document, "benchmarks": rows})
    assert main(["plot", str(file), "--output", str(tmp_path / "out")]) == 0
    missing = "the results hold no measured memory and arithmetic roofs"
    assert capsys.readouterr().err == f"ladder: sgemm-roofline not drawn: {missing}\n"
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
