# SPDX-License-Identifier: MIT
"""The figure of what each idea moved, and what it gained."""

import json

import insight
import pytest
import suite
from figure import only, overlaps, texts

TRANSPOSE = "rows:8192/columns:8192/element:4"


def arrows(axes) -> dict[int, tuple[float, float]]:
    """Where the arrows of a panel start and end, by row."""
    found = [text for text in axes.texts if text.arrow_patch]
    return {round(text.xy[1]): (float(text.xyann[0]), float(text.xy[0])) for text in found}


def names(axes, ladder: str) -> list[str]:
    """The rungs of a figure, from the top down."""
    (found,) = [entry for entry in insight.catalogue() if entry["name"] == ladder]
    known = {rung["name"] for rung in found["rungs"]}
    return [text for text in texts(axes) if text in known]


def test_why_tells_what_padding_changed_and_what_it_gained(draw):
    figures, _ = draw(only(insight.document(), "transpose"), "transpose-why")
    moved, speeds = figures["transpose-why"].axes
    assert {"shared load wavefronts per request", "32 → 1", "25% → 25%"} <= set(texts(moved))
    assert {"padded", "on tile"} <= set(texts(moved))
    assert {"1.74×", "1.82×"} <= set(texts(speeds))
    row = names(moved, "transpose").index("padded")
    assert arrows(moved)[row] == pytest.approx((1.0, 1 / 32))
    assert arrows(speeds)[row] == pytest.approx((1014, 1769))
    limit = [line for line in speeds.lines if line.get_linewidth() == 1.2]
    assert limit[0].get_xdata()[0] == pytest.approx(4120)


def test_why_names_what_it_does_not_draw_and_says_why(draw):
    document = only(insight.document(), "transpose")
    for row in document["benchmarks"]:
        if row["name"].startswith("transpose/tile/"):
            del row["shared_load_wavefronts_per_request"]
    del insight.row(document, f"transpose/vectorised/{TRANSPOSE}")["stall_barrier"]
    figures, _ = draw(document, "transpose-why")
    made = figures["transpose-why"]
    assert not {"padded", "vectorised"} & set(names(made.axes[0], "transpose"))
    assert any(
        text.get_text().endswith("no counter, or not counted: padded, vectorised")
        for text in made.texts
    )


def test_why_shows_a_case_in_which_the_parent_has_the_target_counter(draw):
    document = only(insight.document(), "transpose")
    for row in document["benchmarks"]:
        if row["name"].startswith("transpose/tile/") and "rows:1024/" not in row["name"]:
            del row["shared_load_wavefronts_per_request"]
    figures, _ = draw(document, "transpose-why")
    moved, _ = figures["transpose-why"].axes
    assert {"32 → 1", "on tile, at 1024"} <= set(texts(moved))
    assert overlaps(figures["transpose-why"]) == []


def test_why_shows_nothing_where_the_parent_did_not_run(draw):
    document = only(insight.document(), "transpose")
    rows = [row for row in document["benchmarks"] if not row["name"].startswith("transpose/tile/")]
    document["benchmarks"] = rows
    figures, _ = draw(document, "transpose-why")
    moved, speeds = figures["transpose-why"].axes
    assert [text for text in texts(speeds) if "×" in text] == ["2.02×", "1.08×"]
    assert not {"tile", "padded"} & set(names(moved, "transpose"))


def test_why_goes_up_the_path_to_the_best_first(draw):
    document = only(insight.document(), "transpose")
    ladders = json.loads(document["context"]["ladders"])
    (rungs,) = [x["rungs"] for x in ladders if x["name"] == "transpose"]
    by_name = {rung["name"]: rung for rung in rungs}
    by_name["rows_per_thread"]["builds_on"] = "naive"
    document["context"]["ladders"] = json.dumps(ladders)
    figures, _ = draw(document, "transpose-why")
    moved, speeds = figures["transpose-why"].axes
    assert names(moved, "transpose") == ["rows_per_thread", "vectorised", "tile", "padded"]
    assert "6.41×" in texts(speeds)  # rows_per_thread over naive
    assert overlaps(figures["transpose-why"]) == []


def test_a_list_that_is_no_tree_gives_no_picture(draw):
    document = only(insight.document(), "transpose")
    ladders = json.loads(document["context"]["ladders"])
    for rung in (rung for ladder in ladders for rung in ladder["rungs"]):
        rung.pop("builds_on", None)
    document["context"]["ladders"] = json.dumps(ladders)
    figures, _ = draw(document, "transpose-climb", "transpose-why")
    assert list(figures) == ["transpose-climb"]


def test_rungs_that_name_no_counter_give_no_picture(draw):
    document = insight.document(ladders=json.dumps(suite.CATALOGUE[:-1]))
    rows = [row for row in document["benchmarks"] if not row["name"].startswith("roof/")]
    document = only({**document, "benchmarks": rows}, "transpose")
    figures, _ = draw(document, "transpose-climb", "transpose-why")
    assert list(figures) == ["transpose-climb"]


def test_a_fall_of_speed_is_a_gain_below_one(draw):
    document = only(insight.document(), "transpose")
    row = insight.row(document, f"transpose/padded/{TRANSPOSE}")
    row["bytes_per_second"] /= 4
    figures, _ = draw(document, "transpose-why")
    assert "0.44×" in texts(figures["transpose-why"].axes[1])


def test_why_shows_the_row_of_a_sweep_which_has_some_of_the_target_counter(draw):
    document = only(insight.document(), "histogram")
    ladders = json.loads(document["context"]["ladders"])
    (rung,) = [r for x in ladders for r in x["rungs"] if r["name"] == "distributed"]
    rung["target"] = "distributed_requests"
    document["context"]["ladders"] = json.dumps(ladders)
    for row in document["benchmarks"]:
        if not row.get("skipped"):
            row["distributed_requests"] = 8.39e6 if "/cluster:" in row["name"] else 0.0
    # The fastest cluster, as if of one block.
    headline = "histogram/distributed/bins:256/keys:268435456/distribution:uniform"
    insight.row(document, f"{headline}/cluster:2")["distributed_requests"] = 0.0
    figures, _ = draw(document, "histogram-why")
    moved, _ = figures["histogram-why"].axes
    assert {"0 → 8.39 M", "distributed (cluster 4)"} <= set(texts(moved))
    assert any(text.endswith("(best: cluster 2)") for text in texts(moved))
    assert overlaps(figures["histogram-why"]) == []


def test_why_says_nothing_of_the_best_where_it_shows_it(draw):
    figures, _ = draw(only(insight.document(), "histogram"), "histogram-why")
    assert not any(
        "best:" in text for axes in figures["histogram-why"].axes for text in texts(axes)
    )
