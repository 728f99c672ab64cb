# SPDX-License-Identifier: MIT
"""Plots: complete, and honest about what they leave out."""

import json
import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import suite
from figure import beyond, only, overlaps
from ladder.analysis.study import studies
from ladder.commands.cli import main
from ladder.io.results import load_results
from ladder.report.plots import overview, style, wins

STEMS = """transpose-climb sgemm-climb sgemm-wins sgemm-roofline reduction-climb reduction-wins
reduction-roofline histogram-climb histogram-wins histogram-clusters smem_layout-matrix overview
roofs""".split()


@pytest.fixture(scope="module")
def drawn(whole, tmp_path_factory) -> Path:
    """Every figure."""
    folder = tmp_path_factory.mktemp("drawn")
    assert main(["plot", str(whole), "--output", str(folder), "--format", "png"]) == 0
    return folder


def test_every_ladder_has_its_figures(drawn):
    assert {path.name for path in drawn.iterdir()} == {f"{stem}.png" for stem in STEMS}


def test_figures_are_not_blank_and_keep_their_margins(drawn):
    for path in drawn.glob("*.png"):
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


def test_titles_say_gpu_cache_mode_and_commit(figure):
    made, _ = figure(only(suite.document(git_dirty="true"), "sgemm"), "sgemm-climb")
    assert "NVIDIA H200, cold cache, commit 0123456-dirty" in texts(made)


def test_the_climb_is_the_path_to_the_best_and_the_library(figure):
    document = only(suite.document(), "sgemm")
    ladders = json.loads(document["context"]["ladders"])
    (rungs,) = [x["rungs"] for x in ladders if x["name"] == "sgemm"]
    by_name = {rung["name"]: rung for rung in rungs}
    by_name["pipelined"]["builds_on"] = "tiled"
    document["context"]["ladders"] = json.dumps(ladders)
    made, _ = figure(document, "sgemm-climb")
    (bars,) = made.axes
    names = [label.get_text() for label in bars.get_yticklabels()]
    assert names == ["naive", "coalesced", "tiled", "pipelined", "cublas"]
    assert {"51.3", "81%", "12.4×", "5.64×", "limit: roof/fma 63.7"} <= set(texts(made))


def test_energy_is_drawn_over_speed_where_it_was_read(figure):
    document = only(suite.document(), "sgemm")
    document["context"] |= {"watts_limit": "700", "idle_watts": "125.4"}
    for row in document["benchmarks"]:
        if row["name"].startswith("sgemm/") and "/m:4096/" in row["name"]:
            flops = row.get("flops_per_second", 0) * row["real_time"] * 1e-6
            watts = 300 + 40 * (len(row["name"]) % 9)
            joules = watts * row["real_time"] * 1e-6
            row |= {"joules": joules, "watts": watts, "flops_per_joule": flops / joules}
    made, _ = figure(document, "sgemm-energy")
    assert {"700 W, the limit", "125 W, idle"} <= set(texts(made))
    assert made.axes[0].get_ylabel() == "pJ per FLOP"
    points = {line.get_label(): line for line in made.axes[0].lines}
    for row in document["benchmarks"]:
        if row["name"] in points:
            (x,), (y,) = points[row["name"]].get_data()
            assert x * y == pytest.approx(row["watts"], rel=1e-6)  # TFLOP/s by pJ per FLOP
    assert sum(name.startswith("sgemm/") for name in points) > 5
    assert not overlaps(made)
    assert not beyond(made)


def test_bars_are_as_long_as_the_parent_and_what_was_gained(figure):
    made, _ = figure(only(suite.document(), "sgemm"), "sgemm-climb")
    (bars,) = made.axes
    names = [label.get_text() for label in bars.get_yticklabels()]
    places = dict(zip(bars.get_yticks(), names, strict=True))
    ends: dict[str, list[tuple[float, float]]] = {}
    for bar in bars.patches:
        name = places[round(bar.get_y() + bar.get_height() / 2, 6)]
        ends.setdefault(name, []).append((bar.get_x(), bar.get_x() + bar.get_width()))
    speeds = {name: found[3] for name, found in suite.SGEMM.items()}
    assert ends["naive"] == [(0, pytest.approx(speeds["naive"]))]
    before, gained = ends["tiled"]
    assert before == (0, pytest.approx(speeds["coalesced"]))
    assert gained == (pytest.approx(speeds["coalesced"]), pytest.approx(speeds["tiled"]))
    (limit,) = [line for line in bars.lines if line.get_linewidth() == 1.2]
    assert limit.get_xdata()[0] == pytest.approx(suite.CEILINGS["fma"] / 1e12)


def test_what_a_rung_lost_is_drawn_hollow(figure):
    document = only(suite.document(), "sgemm")
    row = next(r for r in document["benchmarks"] if r["name"].startswith("sgemm/tiled/m:4096"))
    row["flops_per_second"] /= 4
    made, _ = figure(document, "sgemm-climb")
    (lost,) = [bar for bar in made.axes[0].patches if bar.get_linestyle() == ":"]
    assert lost.get_x() == pytest.approx(9.1 / 4)
    assert lost.get_x() + lost.get_width() == pytest.approx(6.2)
    assert {"0.37×", "lost"} <= set(texts(made))


def test_without_parents_the_climb_is_of_rungs_faster_than_all_before(figure):
    document = only(suite.document(), "sgemm")
    ladders = json.loads(document["context"]["ladders"])
    for ladder in ladders:
        for rung in ladder["rungs"]:
            rung.pop("builds_on", None)
    document["context"]["ladders"] = json.dumps(ladders)
    row = next(r for r in document["benchmarks"] if r["name"].startswith("sgemm/tiled/m:4096"))
    row["flops_per_second"] = 1e12
    made, _ = figure(document, "sgemm-climb")
    names = [label.get_text() for label in made.axes[0].get_yticklabels()]
    assert names == ["naive", "coalesced", "register_tile", "vectorised", "pipelined", "cublas"]
    assert "gain on\nparent" not in texts(made)


def test_rungs_that_failed_are_reported(figure):
    document = only(suite.document(), "sgemm")
    for row in document["benchmarks"]:
        if row["name"].startswith("sgemm/naive/m:4096"):
            row |= {"error_occurred": True, "error_message": "wrong at [3]"}
    made, warnings = figure(document, "sgemm-climb")
    assert "naive" not in texts(made)
    assert len(warnings) == 1
    assert "sgemm/naive/m:4096" in warnings[0]
    assert "wrong at [3]" in warnings[0]


@pytest.mark.parametrize(
    ("rung", "stem", "mark"),
    [
        ("sgemm/tiled", "sgemm-roofline", "tiled: above its roof"),
        ("sgemm/tiled/m:4096", "sgemm-climb", "130%"),
    ],
)
def test_what_is_above_its_roof_is_shown_and_reported(figure, rung, stem, mark):
    document = only(suite.document(), rung.partition("/")[0])
    rows = [r for r in document["benchmarks"] if r["name"].startswith(f"{rung}/m:4096")]
    row = next(iter(rows or [r for r in document["benchmarks"] if r["name"].startswith(rung)]))
    row["percent_of_ceiling"] = 130.0
    made, warnings = figure(document, stem)
    assert [w for w in warnings if "130.0% of its ceiling" in w and row["name"] in w]
    assert mark in texts(made)


def cells(axes) -> dict[str, list[str]]:
    """What a table of wins has in each row, by the rung."""
    names = [label.get_text() for label in axes.get_yticklabels()]
    found: dict[str, list[str]] = {name: [] for name in names}
    for text in sorted(axes.texts, key=lambda text: text.xy[0]):
        found[names[round(text.xy[1])]].append(text.get_text())
    return found


def test_wins_are_of_the_fewest_rungs_near_the_fastest(figure):
    made, _ = figure(only(suite.document(), "sgemm"), "sgemm-wins")
    sizes, odd = made.axes
    assert list(cells(sizes)) == ["vectorised", "pipelined", "cublas"] or list(cells(sizes)) == [
        "tiled",
        "pipelined",
        "cublas",
    ]
    expected = [f"{100 * x * 1e12 / suite.CEILINGS['fma']:.0f}" for x in suite.SGEMM["pipelined"]]
    assert cells(sizes)["pipelined"] == expected[:5]
    labels = [label.get_text() for axes in made.axes for label in axes.get_xticklabels()]
    assert labels == ["512", "1024", "2048", "4096", "8192", "1000×3000×77"]
    assert odd.get_title("left") == "other shapes"


def test_the_fastest_of_a_column_is_told_without_colour(figure):
    made, _ = figure(only(suite.document(), "sgemm"), "sgemm-wins")
    bold = [t.get_text() for t in made.axes[0].texts if t.get_weight() == "bold"]
    best = [
        max(suite.SGEMM[name][i] for name in suite.SGEMM if "cublas" not in name) for i in range(5)
    ]
    library = [
        speed for speed, own in zip(suite.SGEMM["cublas"], best, strict=False) if speed > own
    ]
    percents = [f"{100 * x * 1e12 / suite.CEILINGS['fma']:.0f}" for x in [*best, *library]]
    assert sorted(bold) == sorted(percents)


def test_of_many_distributions_there_is_a_strip_each(figure, monkeypatch):
    monkeypatch.setattr(wins, "_FEW", 1)
    made, _ = figure(only(suite.document(), "histogram"), "histogram-wins")
    (strips,) = made.axes
    titles = [label.get_text() for label in strips.get_yticklabels()]
    assert titles == ["uniform", "constant", "zipf", "sorted"] or len(titles) > 4
    assert strips.get_xlabel() in ("bins (1K = 1024)", "keys")
    assert overlaps(made) == []


def test_strips_of_many_columns_have_numbers_and_names_where_there_is_room(figure, monkeypatch):
    monkeypatch.setattr(wins, "_FEW", 0)
    content = only(suite.document(), "reduction")
    for row in list(content["benchmarks"]):
        for more in "123":
            name = re.sub(r"(elements:\d+)", rf"\g<1>{more}", row["name"])
            content["benchmarks"].append(row | {"name": name, "run_name": name})
    made, _ = figure(content, "reduction-wins")
    (strips,) = made.axes
    assert 1 < len(strips.get_xticks()) < 20
    assert not [pair for pair in overlaps(made) if all(text[0].isdigit() for text in pair)]


def test_the_overview_has_first_best_and_library_of_every_ladder(figure):
    made, _ = figure(suite.document(), "overview")
    (axes,) = made.axes
    found = set(texts(made))
    titles = {ladder["title"] for ladder in suite.CATALOGUE[:-1] if not ladder.get("factors")}
    assert titles <= found
    assert {"pipelined\n81%, 51.3 TFLOP/s", "1.00×", "m = n = k = 4096"} <= found
    y = next(t.xy[1] for t in axes.texts if t.get_text() == "SGEMM") + overview._UP + overview._DOWN
    dots = {
        line.get_marker(): line.get_xdata()[0]
        for line in axes.lines
        if list(line.get_ydata()) == [pytest.approx(y)]
    }
    assert dots["D"] == pytest.approx(100 * 51.1e12 / suite.CEILINGS["fma"])
    assert overlaps(made) == []


@pytest.mark.parametrize(
    ("pattern", "stems", "ceiling"),
    [
        (
            "^reduction/",
            {"reduction-climb", "reduction-wins", "overview"},
            "roof/dram_read 4658",
        ),
        ("^transpose/padded/", {"transpose-climb", "overview"}, "transpose/copy"),
        ("^sgemm/.*(naive|tiled)/", {"sgemm-climb", "overview"}, "roof/fma 63.7"),
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
    assert any(text.startswith(f"limit: {ceiling}") for text in texts(climb))


def test_only_those_that_are_asked_for_are_drawn(whole, tmp_path):
    output = tmp_path / "out"
    options = ["--output", str(output), "--filter", "^sgemm/.*/n:4096/"]
    assert main(["plot", str(whole), *options, "--only", "*-climb", "overview"]) == 0
    assert {path.name for path in output.iterdir()} == {"sgemm-climb.svg", "overview.svg"}


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
    options = ["--output", str(output), "--filter", "^sgemm/"]
    assert main(["plot", str(whole), str(file), *options]) == 0
    found = {str(path.relative_to(output)) for path in output.rglob("*.svg")}
    assert {"gpus.svg", "nvidia-h200/sgemm-climb.svg", "nvidia-a100/sgemm-climb.svg"} < found


@pytest.mark.parametrize("count", [2, 4, 7])
def test_gpus_with_long_names_stay_on_the_page(whole, count):
    (results,) = load_results([str(whole)])
    name = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    with style.look():
        made = overview.compare([(f"{name} {i}", studies(results)) for i in range(count)])
    assert overlaps(made) == []
    assert beyond(made) == []
    assert texts(made).count("81%\n51.3 TFLOP/s") == count


def test_another_precision_is_not_above_the_roof(figure):
    _, warnings = figure(only(suite.document(), "sgemm"), "sgemm-roofline")
    assert warnings == []


def test_a_roofline_without_roofs_says_what_is_missing(whole, tmp_path, capsys):
    document = json.loads(whole.read_text())
    file = suite.write(tmp_path / "a.json", suite.only(document, "sgemm/"))
    assert main(["plot", str(file), "--output", str(tmp_path / "out")]) == 0
    missing = "the results hold no measured memory and arithmetic roofs"
    assert capsys.readouterr().err == f"ladder: note: sgemm-roofline not drawn: {missing}\n"
    assert not (tmp_path / "out" / "sgemm-roofline.svg").exists()
    assert (tmp_path / "out" / "sgemm-climb.svg").exists()


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
    wanted = ["plot", str(file), "--output", str(tmp_path / "out"), "--filter", "sort/ok"]
    assert main(wanted) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"ladder: {file}: nothing to plot: ")
    assert "lists no ladder" in err
    assert err.count("\n") == 1


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


def test_figures_go_beside_the_results_unless_a_place_is_named(data, tmp_path, monkeypatch, capsys):
    """Never into plots/ below the current directory, which may hold committed ones."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some").mkdir()
    file = tmp_path / "some" / "foreign.json"
    file.write_bytes((data / "foreign.json").read_bytes())
    for given, place in (
        ("some/foreign.json", "some/foreign-plots"),
        ("some", "some-plots"),
        (str(file), str(tmp_path / "some/foreign-plots")),
    ):
        assert main(["plot", given]) == 0
        assert capsys.readouterr().out == f"{place}/over-argument.svg\n"
    assert main(["plot", "-"]) == 2
    assert "-o" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"some", "some-plots"}


def test_a_figure_that_there_is_not_is_named(tmp_path, capsys):
    file = suite.write(tmp_path / "study.json", only(suite.document(), "sgemm"))
    assert main(["plot", str(file), "-o", str(tmp_path), "--only", "sgemm-clim"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("ladder: no figure 'sgemm-clim'; nearest: sgemm-climb")
    assert err.count("\n") == 1
