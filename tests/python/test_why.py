# SPDX-License-Identifier: MIT
"""The figure of what each idea moved, and what that bought."""

import json

import insight
import pytest
import suite
from figure import colour, markers, only, overlaps, texts

TRANSPOSE = "rows:8192/columns:8192/element:4"


def test_why_tells_what_padding_changed_and_what_it_bought(draw):
    figures, _ = draw(only(insight.document(), "transpose"), "transpose-why")
    moved, speeds = figures["transpose-why"].axes
    assert {"shared load wavefronts per request", "32 → 1", "25% → 25%"} <= set(texts(moved))
    assert {"padded", "One column of padding removes the bank conflicts."} <= set(texts(moved))
    assert {"1769", "1.74×", "1014", "1.82×", "4120"} <= set(texts(speeds))
    padded = 2.14  # the third of the steps
    after = markers(moved, "o", hollow=False)[colour("transpose", "padded")]
    assert after == pytest.approx((1 / 32, padded))
    below = [line for line in moved.lines if line.get_markerfacecolor() == "white"]
    ends = {float(line.get_ydata()[0]): float(line.get_xdata()[0]) for line in below}
    assert ends[padded] == pytest.approx(1.0)
    after = markers(speeds, "o", hollow=False)[colour("transpose", "padded")]
    assert after == pytest.approx((1769, padded))
    below = [line for line in speeds.lines if line.get_markerfacecolor() == "white"]
    ends = {float(line.get_ydata()[0]): float(line.get_xdata()[0]) for line in below}
    assert ends[padded] == pytest.approx(1014)


def test_why_says_what_is_not_known(draw):
    document = only(insight.document(), "transpose")
    for row in document["benchmarks"]:
        if row["name"].startswith("transpose/tile/"):
            del row["shared_load_wavefronts_per_request"]
    del insight.row(document, f"transpose/vectorised/{TRANSPOSE}")["stall_barrier"]
    figures, _ = draw(document, "transpose-why")
    found = texts(figures["transpose-why"].axes[0])
    assert {"a first rung", "none → 1", "not counted"} <= set(found)


def test_why_shows_a_case_in_which_the_parent_has_the_target_counter(draw):
    document = only(insight.document(), "transpose")
    for row in document["benchmarks"]:
        if row["name"].startswith("transpose/tile/") and "rows:1024/" not in row["name"]:
            del row["shared_load_wavefronts_per_request"]
    figures, _ = draw(document, "transpose-why")
    moved, speeds = figures["transpose-why"].axes
    assert "32 → 1" in texts(moved)
    assert [text for text in texts(speeds) if text.startswith("at ")] == [
        "at rows = columns = 1024, element 4"
    ]
    assert overlaps(figures["transpose-why"]) == []


def test_why_shows_no_gain_where_the_parent_did_not_run(draw):
    document = only(insight.document(), "transpose")
    rows = [row for row in document["benchmarks"] if not row["name"].startswith("transpose/tile/")]
    document["benchmarks"] = rows
    figures, _ = draw(document, "transpose-why")
    moved, speeds = figures["transpose-why"].axes
    assert [text for text in texts(speeds) if "×" in text] == ["2.02×", "1.08×"]
    assert "on tile" in texts(moved)
    assert "tile" not in texts(moved)


def test_why_goes_up_the_path_to_the_best_first(draw):
    document = only(insight.document(), "transpose")
    ladders = json.loads(document["context"]["ladders"])
    (rungs,) = [x["rungs"] for x in ladders if x["name"] == "transpose"]
    by_name = {rung["name"]: rung for rung in rungs}
    by_name["rows_per_thread"]["builds_on"] = "naive"
    document["context"]["ladders"] = json.dumps(ladders)
    figures, _ = draw(document, "transpose-why")
    moved, speeds = figures["transpose-why"].axes
    names = [text for text in texts(moved) if text in by_name]
    assert names == ["naive", "rows_per_thread", "vectorised", "tile", "padded"]
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
    moved, speeds = figures["histogram-why"].axes
    assert {"0 → 8.39 M", "distributed (cluster 4)"} <= set(texts(moved))
    assert "at cluster 4 (best: cluster 2, 532 GB/s)" in texts(speeds)
    assert overlaps(figures["histogram-why"]) == []


def test_why_says_nothing_of_the_best_where_it_shows_it(draw):
    figures, _ = draw(only(insight.document(), "histogram"), "histogram-why")
    assert not any(
        "best:" in text for axes in figures["histogram-why"].axes for text in texts(axes)
    )
