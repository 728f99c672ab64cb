# SPDX-License-Identifier: MIT
"""The map of clusters: every ratio is of the best on either side, and every gap says why."""

import json
import math
from collections.abc import Callable

import pytest
import suite
from ladder.analysis.study import studies
from ladder.io.results import load_results
from ladder.report.plots import clusters
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

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


def cells(axes) -> dict[tuple[int, str], tuple[list[str], tuple]]:
    """Texts and colour of each cell, by column and name of the row."""
    rows = [label.get_text() for label in axes.get_yticklabels()]
    found = {}
    for box in (patch for patch in axes.patches if isinstance(patch, Rectangle)):
        x, y = round(box.get_x() + box.get_width() / 2), round(box.get_y() + box.get_height() / 2)
        lines = [t.get_text() for t in axes.texts if t.xy == (x, y) and t.xycoords == "data"]
        words = "\n".join(lines).replace("_\n", "_").split("\n")  # long names are broken
        found[x, rows[y]] = words, box.get_facecolor()[:3]
    return found


def test_panels_are_facets_and_cells_are_cases_by_sizes(panels):
    found = panels(histogram())
    assert list(found) == [f"distribution {d}, keys 2²⁸" for d in suite.SKEW]
    for axes in found.values():
        assert [t.get_text() for t in axes.get_xticklabels()] == [str(b) for b in suite.BINS]
        rows = ["no cluster", *(f"cluster {size}" for size in SIZES)]
        assert [t.get_text() for t in axes.get_yticklabels()] == rows
        assert len(cells(axes)) == len(rows) * len(suite.BINS)


@pytest.mark.parametrize("distribution", suite.SKEW)
def test_every_ratio_is_of_the_best_on_either_side(panels, distribution):
    found = cells(panels(histogram())[f"distribution {distribution}, keys 2²⁸"])
    skew = suite.SKEW[distribution]
    for x in range(len(suite.BINS)):
        speeds = {
            n: v[x] * (1 if n == "shared" else skew) for n, v in suite.HISTOGRAM.items() if v[x]
        }
        base, name = max((s, n) for n, s in speeds.items() if not n.isdigit())
        words, _ = found[x, "no cluster"]
        assert words == [name]
        for size in SIZES:
            words, colour = found[x, f"cluster {size}"]
            if speed := speeds.get(str(size)):
                ratio = float(words[0].removesuffix("×"))
                assert ratio == pytest.approx(speed / base, abs=0.005)
                assert len(words) == 1  # `distributed`, as nearly everywhere
                assert colour == pytest.approx(clusters.colour(speed / base))
            else:
                assert words[0].startswith("the bins do")


def test_several_numbers_of_keys_stand_beside_each_other(panels):
    fewer = histogram(lambda name: "/bins:256/" in name and "uniform" in name)
    more = doubled(fewer, "keys:268435456", "keys:16777216")["benchmarks"]
    both = histogram()
    both["benchmarks"] += more[len(more) // 2 :]
    found = panels(both)
    (left, right) = (found[f"distribution uniform, keys {keys}"] for keys in ("2²⁸", "2²⁴"))
    assert left.get_position().y0 == pytest.approx(right.get_position().y0)
    assert left.get_position().x1 < right.get_position().x0
    assert [t.get_text() for t in right.get_xticklabels()] == ["256"]
    absent = found["distribution zipf, keys 2²⁴"]
    assert [t.get_text() for t in absent.texts] == ["not run in clusters"]
    assert not absent.patches


def test_colours_are_symmetrical_and_white_between():
    assert clusters.colour(1.0) == clusters.colour(1.009) == clusters.colour(1 / 1.009) == (1, 1, 1)
    wins = [clusters.colour(ratio) for ratio in (1.02, 1.2, 1.9, 2.0, 50.0)]
    losses = [clusters.colour(1 / ratio) for ratio in (1.02, 1.2, 1.9, 2.0, 50.0)]
    assert len(set(wins)) == len(set(losses)) == 4
    assert wins[3] == wins[4]
    assert all(blue > red for red, _, blue in wins)
    assert all(blue < red for red, _, blue in losses)


def test_gaps_say_why(panels):
    document = one_case()
    in_clusters(document, 4).update(error_occurred=True, error_message="wrong at [3]")
    document["benchmarks"].remove(in_clusters(document, 8))
    in_clusters(document, 2)["bytes_per_second"] = 0
    found = cells(panels(document)["distribution uniform, keys 2²⁸"])
    assert found[0, "cluster 2"][0] == ["no speed"]
    assert found[0, "cluster 4"][0] == ["failed"]
    assert (0, "cluster 8") not in found
    assert found[0, "cluster 16"][0] == ["0.77×"]
    row = suite.skipped(f"histogram/distributed/{CASE}/cluster:8", "does not fit: 262144 bytes")
    document["benchmarks"].append(row)
    found = cells(panels(document)["distribution uniform, keys 2²⁸"])
    assert found[0, "cluster 8"][0] == ["does not fit"]


def test_a_size_that_only_other_cases_ran_at_was_not_run(panels):
    document = histogram(
        lambda name: "uniform" in name and not ("s:65536" in name and "r:8" in name)
    )
    axes = panels(document)["distribution uniform, keys 2²⁸"]
    assert cells(axes)[suite.BINS.index(65536), "cluster 8"][0] == ["not run"]


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


def test_a_case_without_the_other_side_shows_its_speed(panels):
    document = histogram(
        lambda name: "uniform" in name and ("s:65536" not in name or "er:" in name)
    )
    found = cells(panels(document)["distribution uniform, keys 2²⁸"])
    at = suite.BINS.index(65536)
    assert found[at, "no cluster"][0] == ["not run"]
    assert found[at, "cluster 2"][0] == ["655 GB/s"]


def test_a_cluster_of_one_block_is_none(panels, draw):
    document = one_case()
    row = in_clusters(document, 16)
    for key in ("name", "run_name"):
        row[key] = row[key].replace("cluster:16", "cluster:1")
    row["bytes_per_second"] = 400e9
    found = cells(panels(document)["distribution uniform, keys 2²⁸"])
    assert found[0, "no cluster"][0] == ["distributed (1)"]
    assert found[0, "cluster 2"][0] == ["1.64×"]
    assert (0, "cluster 16") not in found
    made, _ = draw(document, "histogram-clusters")
    assert any(
        "(1): a cluster of one block" in t.get_text() for t in made["histogram-clusters"].texts
    )


def test_the_launch_tells_what_the_name_does_not(panels):
    """A rung of no own axis may run in clusters, and one that has it may not have got them."""
    document = one_case()
    row_of(document, "global")["cluster_size"] = 8.0
    in_clusters(document, 2)["cluster_size"] = 1.0
    found = cells(panels(document)["distribution uniform, keys 2²⁸"])
    assert found[0, "no cluster"][0] == ["distributed (1)"]
    assert found[0, "cluster 8"][0] == ["0.56×", "global"]
    assert (0, "cluster 2") not in found


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
    found = cells(panels(document)["distribution uniform, keys 2²⁸"])
    assert found[0, "no cluster"][0] == ["cub"]
    assert found[0, "cluster 2"][0] == ["0.66×"]


@pytest.mark.parametrize("slow", ["global", "distributed"])
def test_ratios_of_a_throttled_clock_are_marked(draw, slow):
    document = one_case()
    row = in_clusters(document, 2) if slow == "distributed" else row_of(document, slow)
    row["throttled"] = 1.0
    made, _ = draw(document, "histogram-clusters")
    figure = made["histogram-clusters"]
    texts = [t.get_text() for axes in figure.axes for t in axes.texts]
    assert "1.78×†" in texts
    assert ("0.82×†" in texts) == (slow == "global")
    assert any("†: the clock was throttled" in t.get_text() for t in figure.texts)


def test_near_level_a_third_decimal_tells_the_side(panels):
    document = one_case()
    in_clusters(document, 2)["bytes_per_second"] = 367e9 * 1.012
    in_clusters(document, 4)["bytes_per_second"] = 367e9 * 0.994
    found = cells(panels(document)["distribution uniform, keys 2²⁸"])
    assert found[0, "cluster 2"][0][0] == "1.012×"
    assert found[0, "cluster 4"] == (["0.994×"], to_rgb("white"))


def test_cases_that_no_rung_tried_in_clusters_are_counted(draw):
    made, _ = draw(
        histogram(lambda name: "/cluster:" not in name or "uniform" in name), "histogram-clusters"
    )
    (note,) = [
        t.get_text() for t in made["histogram-clusters"].texts if "Not shown" in t.get_text()
    ]
    assert note == "Not shown: 24 other cases, which no rung ran in clusters."
    titles = [axes.get_title("left") for axes in made["histogram-clusters"].axes]
    assert [title for title in titles if title] == ["distribution uniform, keys 2²⁸"]


def test_square_shapes_of_any_ladder_go_across_whole(draw):
    document = suite.document()
    catalogue = json.loads(document["context"]["ladders"])
    (ladder,) = [entry for entry in catalogue if entry["name"] == "sgemm"]
    ladder["rungs"].append(suite.rung("shared_operands", "More.", sweeps=["cluster"]))
    document["context"]["ladders"] = json.dumps(catalogue)
    document["benchmarks"] = [r for r in document["benchmarks"] if r["name"].startswith("sgemm/")]
    for n in (4096, 8192):
        case = f"sgemm/shared_operands/m:{n}/n:{n}/k:{n}/cluster:4"
        document["benchmarks"].append(
            suite.row(case, 55e12, 2.0 * n**3, 2.0 * n**3, bytes=12.0 * n**2)
        )
    made, _ = draw(document, "sgemm-clusters")
    (_, axes) = made["sgemm-clusters"].axes
    assert axes.get_title("left") == ""
    assert [t.get_text() for t in axes.get_xticklabels()] == ["4096", "8192"]
    assert cells(axes)[0, "cluster 4"][0] == ["1.07×"]
