# SPDX-License-Identifier: MIT
"""The map of clusters: every gain is of the best on either side, and every gap says why."""

import json
import math
from collections.abc import Callable

import pytest
import suite
from ladder.analysis.study import studies
from ladder.io.results import load_results
from ladder.report.plots import clusters
from matplotlib.colors import to_rgb

SIZES = (2, 4, 8, 16)
CASE = "bins:65536/keys:268435456/distribution:uniform"


def histogram(keep: Callable[[str], bool] | None = None) -> dict:
    document = suite.document()
    rows = [r for r in document["benchmarks"] if r["name"].startswith("histogram/")]
    return {**document, "benchmarks": [r for r in rows if not keep or keep(r["name"])]}


def one_case() -> dict:
    return histogram(lambda name: f"/{CASE}/" in name)


def row_of(document: dict, start: str) -> dict:
    found = [r for r in document["benchmarks"] if r["name"].startswith(f"histogram/{start}")]
    (row,) = [r for r in found if f"/{CASE}/" in r["name"]]
    return row


def in_clusters(document: dict, size: int) -> dict:
    (row,) = [r for r in document["benchmarks"] if f"/cluster:{size}/" in r["name"]]
    return row


def doubled(document: dict, old: str, new: str) -> dict:
    """The same rows once more under other names."""
    more = [
        {**row, **{key: row[key].replace(old, new) for key in ("name", "run_name")}}
        for row in document["benchmarks"]
    ]
    return {**document, "benchmarks": [*document["benchmarks"], *more]}


@pytest.fixture
def panels(draw):
    """Draw a document's map and return its panels by title."""

    def drawn(document: dict) -> dict:
        made, _ = draw(document, "histogram-clusters")
        return {
            a.get_title("left"): a for a in made["histogram-clusters"].axes if a.get_title("left")
        }

    return drawn


def cells(axes) -> dict[tuple[int, int], tuple[str, tuple]]:
    """Text and colour of each cell, by column and blocks per cluster; columns beyond have none."""
    sizes = [int(label.get_text().split()[0]) for label in axes.get_yticklabels()] or SIZES
    colours = {}
    for boxes in axes.collections:
        for path in boxes.get_paths():
            at = tuple(map(round, path.vertices[:4].mean(axis=0)))
            colours[at] = tuple(boxes.get_facecolor()[0][:3])
    texts = {tuple(text.xy): text.get_text() for text in axes.texts}
    assert set(texts) == set(colours)
    return {(x, sizes[y]): (texts[x, y], colour) for (x, y), colour in colours.items()}


def percent(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


def test_panels_are_facets_and_cells_are_cases_by_sizes(panels):
    found = panels(histogram())
    assert list(found) == [f"{d}, keys 2²⁸" for d in suite.SKEW]
    for axes in found.values():
        labels = [text.get_text() for text in axes.get_xticklabels()]
        assert labels == [f"{b // 1024}K" if b >= 1024 else str(b) for b in suite.BINS]
        assert len(cells(axes)) == len(SIZES) * len(suite.BINS)
    first = found[f"{next(iter(suite.SKEW))}, keys 2²⁸"]
    rows = [text.get_text() for text in first.get_yticklabels()]
    assert rows == [f"{size} blocks" for size in SIZES]


@pytest.mark.parametrize("distribution", suite.SKEW)
def test_every_gain_is_of_the_best_on_either_side(panels, distribution):
    found = cells(panels(histogram())[f"{distribution}, keys 2²⁸"])
    skew = suite.SKEW[distribution]
    for x in range(len(suite.BINS)):
        speeds = {
            n: v[x] * (1 if n == "shared" else skew) for n, v in suite.HISTOGRAM.items() if v[x]
        }
        base = max(speed for name, speed in speeds.items() if not name.isdigit())
        for size in SIZES:
            text, colour = found[x, size]
            if speed := speeds.get(str(size)):
                assert percent(text) == pytest.approx(100 * (speed / base - 1), abs=1)
                assert colour == pytest.approx(clusters.colour(speed / base))
            else:
                assert text == "–"


def test_only_the_numbers_of_keys_that_ran_have_a_panel(panels):
    fewer = histogram(lambda name: "/bins:256/" in name and "uniform" in name)
    more = doubled(fewer, "keys:268435456", "keys:16777216")["benchmarks"]
    both = histogram()
    both["benchmarks"] += more[len(more) // 2 :]
    found = panels(both)
    assert [text.get_text() for text in found["uniform, keys 2²⁴"].get_xticklabels()] == ["256"]
    assert "zipf, keys 2²⁴" not in found


def test_colours_are_symmetrical_and_white_between():
    assert clusters.colour(1.0) == clusters.colour(1.009) == clusters.colour(1 / 1.009) == (1, 1, 1)
    wins = [clusters.colour(ratio) for ratio in (1.02, 1.2, 1.9, 2.0, 50.0)]
    losses = [clusters.colour(1 / ratio) for ratio in (1.02, 1.2, 1.9, 2.0, 50.0)]
    assert len(set(wins)) == len(set(losses)) == 4
    assert wins[3] == wins[4]
    assert all(blue > red for red, _, blue in wins)
    assert all(blue < red for red, _, blue in losses)


def test_gaps_say_why(panels, draw):
    document = one_case()
    in_clusters(document, 4).update(error_occurred=True, error_message="wrong at [3]")
    document["benchmarks"].remove(in_clusters(document, 8))
    in_clusters(document, 2)["bytes_per_second"] = 0
    found = cells(panels(document)["uniform, keys 2²⁸"])
    assert {size: text for (_, size), (text, _) in found.items()} == {
        2: "–",
        4: "–",
        16: "\N{MINUS SIGN}23",
    }
    row = suite.skipped(f"histogram/distributed/{CASE}/cluster:8", "does not fit: 262144 bytes")
    document["benchmarks"].append(row)
    made, _ = draw(document, "histogram-clusters")
    told = {text.get_text() for text in made["histogram-clusters"].texts}
    assert {"no speed", "failed", "does not fit"} <= told


def test_a_size_that_only_other_cases_ran_at_was_not_run(draw):
    document = histogram(
        lambda name: "uniform" in name and not ("s:65536" in name and "r:8" in name)
    )
    made, _ = draw(document, "histogram-clusters")
    (axes,) = made["histogram-clusters"].axes
    assert cells(axes)[suite.BINS.index(65536), 8][0] == "–"
    assert "not run" in {text.get_text() for text in made["histogram-clusters"].texts}


@pytest.mark.parametrize(
    "keep",
    [
        lambda name: "/cluster:" not in name,
        lambda name: "/cluster:" not in name or ("/bins:458752/" in name and ":2/" in name),
    ],
)
def test_nothing_is_drawn_where_nothing_ran_in_clusters(draw, keep):
    made, warnings = draw(histogram(keep))
    assert "histogram-climb" in made
    assert not [stem for stem in made if "clusters" in stem]
    assert warnings == []


def test_a_ladder_without_the_axis_has_no_map(whole):
    (results,) = load_results(whole)
    drawn = [s.ladder.name for s in studies(results) if clusters.chosen(s)]
    assert drawn == ["histogram"]


def test_clusters_alone_are_not_drawn_and_it_is_said(draw):
    made, warnings = draw(histogram(lambda name: "/cluster:" in name))
    assert "histogram-clusters" not in made
    why = "no case ran both in clusters and without"
    assert f"histogram-clusters not drawn: {why}" in warnings


def test_a_case_without_the_other_side_has_no_number(draw):
    document = histogram(
        lambda name: "uniform" in name and ("s:65536" not in name or "er:" in name)
    )
    made, _ = draw(document, "histogram-clusters")
    (axes,) = made["histogram-clusters"].axes
    assert cells(axes)[suite.BINS.index(65536), 2][0] == "–"
    assert "not run without" in {text.get_text() for text in made["histogram-clusters"].texts}


def test_a_cluster_of_one_block_is_none(panels):
    document = one_case()
    row = in_clusters(document, 16)
    for key in ("name", "run_name"):
        row[key] = row[key].replace("cluster:16", "cluster:1")
    row["bytes_per_second"] = 400e9
    found = cells(panels(document)["uniform, keys 2²⁸"])
    assert found[0, 2][0] == "+64"
    assert (0, 16) not in found


def test_the_launch_tells_what_the_name_does_not(panels):
    """A rung of no own axis may run in clusters, and one that has it may not have got them."""
    document = one_case()
    row_of(document, "global")["cluster_size"] = 8.0
    in_clusters(document, 2)["cluster_size"] = 1.0
    found = cells(panels(document)["uniform, keys 2²⁸"])
    assert found[0, 8][0] == "\N{MINUS SIGN}44"
    assert (0, 2) not in found


@pytest.mark.parametrize(
    ("counter", "value", "size"),
    [
        (None, "4", 4),
        (None, "1", 1),
        (None, "many", None),
        (None, "inf", None),
        (None, "-2", None),
        (None, "2.5", None),
        (8.0, "many", 8),
        (0.0, "4", 4),
        (-1.0, "4", 4),
        (2.5, "4", None),
        (math.nan, "4", 4),
        (math.inf, "4", 4),
        ("2", "4", 4),
    ],
)
def test_a_size_that_is_none_is_on_neither_side(tmp_path, counter, value, size):
    document = one_case()
    row = in_clusters(document, 2)
    for key in ("name", "run_name"):
        row[key] = row[key].replace("cluster:2", f"cluster:{value}")
    if counter is not None:
        row["cluster_size"] = counter
    document["benchmarks"] = [row]
    (results,) = load_results(suite.write(tmp_path / "a.json", document))
    (measured,) = results.rows
    assert clusters.cluster_size(measured) == size


def test_peers_count_and_other_precisions_and_ceilings_do_not(panels):
    document = one_case()
    catalogue = json.loads(document["context"]["ladders"])
    (ladder,) = [entry for entry in catalogue if entry["name"] == "histogram"]
    for name, role, precision in (("short", "step", "bf16"), ("limit", "ceiling", "")):
        ladder["rungs"].append(suite.rung(name, "More.", role, precision))
        document["benchmarks"].append(suite.row(f"histogram/{name}/{CASE}", 9e12, 1e9))
    document["context"]["ladders"] = json.dumps(catalogue)
    row_of(document, "cub")["bytes_per_second"] = 1000e9
    found = cells(panels(document)["uniform, keys 2²⁸"])
    assert found[0, 2][0] == "\N{MINUS SIGN}34"


@pytest.mark.parametrize("slow", ["global", "distributed"])
def test_gains_of_a_throttled_clock_are_marked(draw, slow):
    document = one_case()
    row = in_clusters(document, 2) if slow == "distributed" else row_of(document, slow)
    row["throttled"] = 1.0
    made, _ = draw(document, "histogram-clusters")
    figure = made["histogram-clusters"]
    texts = [t.get_text() for axes in figure.axes for t in axes.texts]
    assert "+78†" in texts
    assert ("\N{MINUS SIGN}18†" in texts) == (slow == "global")
    assert any("†: the clock was throttled" in t.get_text() for t in figure.texts)


def test_what_is_no_change_to_compare_is_none_here(panels):
    document = one_case()
    in_clusters(document, 2)["bytes_per_second"] = 367e9 * 1.012
    in_clusters(document, 4)["bytes_per_second"] = 367e9 * 0.994
    found = cells(panels(document)["uniform, keys 2²⁸"])
    assert found[0, 2][0] == "+1"
    assert found[0, 4] == ("0", to_rgb("white"))


def test_cases_that_no_rung_tried_in_clusters_are_counted(draw):
    made, _ = draw(
        histogram(lambda name: "/cluster:" not in name or "uniform" in name), "histogram-clusters"
    )
    figure = made["histogram-clusters"]
    assert any(text.get_text().endswith(". 24 cases ran in no cluster") for text in figure.texts)
    assert [axes.get_title("left") for axes in figure.axes] == ["uniform, keys 2²⁸"]


def test_square_shapes_of_any_ladder_go_across_whole(draw):
    document = suite.document()
    catalogue = json.loads(document["context"]["ladders"])
    (ladder,) = [entry for entry in catalogue if entry["name"] == "sgemm"]
    ladder["rungs"].append(suite.rung("shared_operands", "More.", sweeps=["cluster"]))
    document["context"]["ladders"] = json.dumps(catalogue)
    document = suite.only(document, "sgemm/")
    for n in (4096, 8192):
        case = f"sgemm/shared_operands/m:{n}/n:{n}/k:{n}/cluster:4"
        document["benchmarks"].append(
            suite.row(case, 55e12, 2.0 * n**3, 2.0 * n**3, bytes=12.0 * n**2)
        )
    made, _ = draw(document, "sgemm-clusters")
    (axes,) = made["sgemm-clusters"].axes
    assert axes.get_title("left") == ""
    assert [t.get_text() for t in axes.get_xticklabels()] == ["4K", "8K"]
    assert cells(axes)[0, 4][0] == "+7"
