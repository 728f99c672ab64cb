# SPDX-License-Identifier: MIT
"""Emulated results: tables and plots of requests, never of speed."""

import json
import math

import emulated
import ladder as package
import matplotlib.image
import numpy as np
import pytest
import suite
from ladder import plots
from ladder.cli import main
from ladder.plots import banks, style
from ladder.plots.transactions import START
from ladder.results import load_results
from matplotlib.backends.backend_agg import FigureCanvasAgg
from test_table import table_rows

STEMS = """transpose-transactions transpose-occupancy transpose-banks smem_layout-transactions
smem_layout-occupancy smem_layout-banks histogram-transactions histogram-occupancy""".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory of emulated results with their details."""
    return emulated.write(tmp_path_factory.mktemp("emulated-h200")).parent


@pytest.fixture
def figures(monkeypatch, tmp_path):
    """Draw results and return the figures by stem, and the warnings."""

    def draw(*paths):
        made = {}
        monkeypatch.setattr(style, "save", lambda f, _, stem, __: made.update({stem: f}) or [])
        warnings: list[str] = []
        plots.draw(load_results(paths), tmp_path, ["svg"], warnings.append)
        return made, warnings

    return draw


def test_no_time_of_an_emulated_row_is_kept(folder):
    rows = package.load(folder)
    assert set(rows["source"]) == {"emulated"}
    assert set(rows["status"]) == {"ok", "skipped"}
    assert rows["seconds"].isna().all()
    assert rows["bytes_per_second"].isna().all()


def test_rates_in_an_emulated_file_are_dropped(tmp_path):
    document = emulated.document()
    for row in document["benchmarks"]:
        row |= {"bytes_per_second": 1e12, "median_seconds": 1.0, "percent_of_ceiling": 50.0}
    rows = package.load(suite.write(tmp_path / "a.json", document))
    assert rows[["bytes_per_second", "median_seconds", "percent_of_ceiling"]].isna().all(axis=None)


@pytest.mark.parametrize("swap", [False, True])
def test_emulated_results_are_never_compared(folder, whole, capsys, swap):
    sides = [str(whole), str(folder)]
    for options in ([], ["--force"]):
        assert main(["compare", *(reversed(sides) if swap else sides), *options]) == 5
        out, err = capsys.readouterr()
        assert out == ""
        assert err == f"ladder: {folder}: emulated: holds no speeds to compare\n"


def test_compare_passes_over_what_stands_beside_timed_results(whole, tmp_path, capsys):
    emulated.write(tmp_path / "emulated-h200")
    suite.write(tmp_path / "b.json", json.loads(whole.read_text()))
    assert main(["compare", str(whole), str(tmp_path)]) == 0
    timed = sum("real_time" in row for row in suite.rows())
    skipped = sum("skipped" in row for row in suite.rows())
    *_, last = capsys.readouterr().out.splitlines()
    assert "167 NOISY, 25 SKIPPED, 348 SAME" in last
    assert timed - skipped == 158 + 357


@pytest.mark.parametrize("name", ["overview", "roof", "fish"])
def test_tables_of_speed_are_refused_in_one_line(folder, tmp_path, capsys, name):
    assert main(["table", str(folder), "--ladder", name]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ladder: no table '{name}' from emulated results, whose times are no")
    assert "transactions/transpose" in err
    readme = tmp_path / "README.md"
    readme.write_text(f"<!-- ladder:table {name} -->\n<!-- ladder:end -->\n")
    assert main(["table", str(folder), "--update", str(readme)]) == 2
    assert f"no table '{name}' from emulated results" in capsys.readouterr().err


def test_the_table_tells_transactions_and_limits(folder, capsys):
    assert main(["table", str(folder), "--ladder", "transpose"]) == 0
    out = capsys.readouterr().out
    rows = table_rows(out)
    told = dict(zip(rows["rung"], rows["`tiled`"], strict=True))
    assert told["shared wavefronts a request, load / store / atomic"] == "32 / 1 / –"
    assert told["global sectors a request, load / store / atomic"] == "4 / 4 / –"
    assert not any("limited by" in column for column in told)  # nothing does: all warps fit
    assert (told["registers"], told["shared"], told["occupancy"]) == ("32", "4.00 KiB", "100%")
    assert rows["`padded`"][2] == "1 / 1 / –"
    assert rows["`naive`"][2] == ""
    assert "- `cublas` skipped: a library's kernel" in out
    assert "rows = columns = 1024, element 4" in out  # the small headline
    assert "B/s" not in out


def test_each_value_of_a_sweep_has_its_line(folder, capsys):
    assert main(["table", str(folder), "--ladder", "histogram"]) == 0
    rows = table_rows(capsys.readouterr().out)
    told = dict(zip(rows["rung"], rows["`distributed (cluster 2)`"], strict=True))
    assert told["distributed accesses"] == "524,288"
    assert told["shared wavefronts a request, load / store / atomic"] == "– / – / 2.5"


@pytest.mark.parametrize(
    ("small", "headline", "shown"),
    [("repetitions:4", "x:1", 4), ("x:2", "repetitions:4", 4), ("", "", 4)],
)
def test_a_headline_that_was_not_run_gives_way(tmp_path, capsys, small, headline, shown):
    document = emulated.document()
    catalogue = json.loads(document["context"]["ladders"])
    catalogue[1] |= {"small_headline": small, "headline": headline}
    document["context"]["ladders"] = json.dumps(catalogue)
    file = suite.write(tmp_path / "study.json", document)
    assert main(["table", str(file), "--ladder", "smem_layout"]) == 0
    out = capsys.readouterr().out
    assert len(table_rows(out)) == shown + 2
    assert "repetitions 4" in out


def test_the_layout_experiment_sets_prediction_beside_count(folder, capsys):
    assert main(["table", str(folder), "--ladder", "smem_layout_experiment"]) == 0
    rows = table_rows(capsys.readouterr().out)
    assert rows["rung"][2:] == [
        *("load, predicted", "load, emulated", "store, predicted", "store, emulated")
    ]
    assert rows["`row_column`"][2:] == ["32", "32", "1", "1"]
    assert rows["`row_column_padded`"][2:] == ["1", "1", "1", "1"]


def test_measured_wavefronts_join_the_experiment(folder, tmp_path, capsys):
    emulated.write_counters(tmp_path)
    results = [str(folder), str(tmp_path / "counters.json")]
    assert main(["table", *results, "--ladder", "smem_layout_experiment"]) == 0
    rows = table_rows(capsys.readouterr().out)
    assert rows["rung"][4] == "load, measured"
    assert rows["`row_column`"][2:] == ["32", "32", "32", "1", "1", "1"]


def test_update_fills_every_name(folder, tmp_path):
    emulated.write_counters(tmp_path / "nvidia-h200")
    document = tmp_path / "emulator.md"
    names = ["transactions", "transactions/histogram", "smem_layout_experiment", "prediction"]
    document.write_text(
        "".join(f"<!-- ladder:table {name} -->\n<!-- ladder:end -->\n" for name in names)
    )
    command = ["table", str(folder), str(tmp_path / "nvidia-h200"), "--update", str(document)]
    assert main(command) == 0
    text = document.read_text(encoding="utf-8")
    assert text.count("Transpose: NVIDIA H200, emulated on a CPU") == 1
    assert text.count("Histogram: NVIDIA H200, emulated on a CPU") == 2
    assert "9 of 9 for global sectors" in text
    assert main(command) == 0
    assert document.read_text(encoding="utf-8") == text


def test_speed_and_requests_stay_apart(whole, tmp_path, capsys):
    results = tmp_path / "results"
    results.mkdir()
    emulated.write(results / "emulated-h200")
    suite.write(results / "study.json", json.loads(whole.read_text()))
    emulated.write_counters(results / "nvidia-h200")
    output = tmp_path / "out"
    options = ["--output", str(output), "--filter", "^(smem_layout|roof)/"]
    assert main(["plot", str(results), *options]) == 0
    capsys.readouterr()
    names = {str(path.relative_to(output)) for path in output.rglob("*.svg")}
    own = {f"emulated-h200/smem_layout-{kind}.svg" for kind in ("transactions", "occupancy")}
    own |= {"emulated-h200/smem_layout-banks.svg", "emulated-h200/prediction.svg"}
    assert names == own | {"smem_layout-climb.svg", "overview.svg", "roofs.svg"}
    assert main(["table", str(results), "--ladder", "overview"]) == 0
    assert capsys.readouterr().out.count("NVIDIA H200, ") == 1


def test_figures_are_complete_repeatable_and_within_their_margins(ladder, folder, tmp_path):
    for name in ("first", "second"):
        done = ladder("plot", folder, "-o", tmp_path / name, "--format", "svg,png")
        assert (done.returncode, done.stderr) == (0, "")
    names = {f"{stem}.{form}" for stem in STEMS for form in ("svg", "png")}
    assert {path.name for path in (tmp_path / "first").iterdir()} == names
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes()
    for path in (tmp_path / "first").glob("*.png"):
        ink = matplotlib.image.imread(path)[:, :, :3].min(axis=2) < 0.95
        edges = [ink[:4].ravel(), ink[-4:].ravel(), ink[:, :4].ravel(), ink[:, -4:].ravel()]
        assert not np.concatenate(edges).any(), f"{path.name} is clipped"


def ends(axes) -> list[float]:
    """Where horizontal bars end, in data units, from the top down."""
    bars = sorted(axes.patches, key=lambda bar: bar.get_y())
    return [bar.get_x() + bar.get_width() for bar in bars]


def test_bars_end_at_the_transactions_and_ticks_at_the_ideal(figures, folder):
    made, warnings = figures(folder)
    assert warnings == []
    shared, sectors = made["transpose-transactions"].axes
    assert ends(shared) == pytest.approx([32, 1, 1, 1])  # tiled: load, store; padded
    assert ends(sectors) == pytest.approx([4, 32, 4, 4, 4, 4])
    assert {bar.get_x() for bar in shared.patches} == {START}
    assert [line.get_xdata()[0] for line in shared.lines] == [1] * 4
    assert [line.get_xdata()[0] for line in sectors.lines] == [4] * 6
    rows = [round(bar.get_y() + bar.get_height() / 2) for bar in shared.patches]
    assert rows == [1, 1, 2, 2]  # beside their names
    assert [label.get_text() for label in shared.get_yticklabels()] == ["naive", "tiled", "padded"]


def test_what_an_idea_moved_is_drawn_without_speeds(figures, tmp_path):
    document = emulated.document()
    ladders = json.loads(document["context"]["ladders"])
    (transpose,) = (ladder for ladder in ladders if ladder["name"] == "transpose")
    for rung in transpose["rungs"]:
        if rung["name"] == "padded":
            rung["moves"] = "shared_load_wavefronts_per_request"
    document["context"]["ladders"] = json.dumps(ladders)
    made, _ = figures(suite.write(tmp_path / "a.json", document))
    (moved,) = made["transpose-why"].axes
    texts = [text.get_text() for text in moved.texts]
    assert "32 → 1" in texts
    assert "no counter named" in texts
    assert "gain" not in texts
    assert "histogram-why" not in made  # none of its ideas names a counter


def test_distributed_shared_memory_has_a_panel_of_its_own(figures, tmp_path):
    """What other blocks hold is no request of a block's own shared memory."""
    document = emulated.document()
    for row in document["benchmarks"]:
        if row.get("distributed_requests", 0) > 0:
            row["distributed_sectors"] = 11.0 * row["distributed_requests"]
    made, _ = figures(suite.write(tmp_path / "study.json", document))
    shared, _, distributed = made["histogram-transactions"].axes
    assert ends(shared) == pytest.approx([2.5, 2.5, 2.5])
    (bar,) = distributed.patches
    assert bar.get_x() + bar.get_width() == pytest.approx(11)
    assert bar.get_y() + bar.get_height() / 2 == pytest.approx(2)  # distributed, cluster 2
    assert [label.get_text() for label in shared.get_yticklabels()][2] == "distributed (cluster 2)"
    assert distributed.lines[0:] == []  # no fewest is known
    assert distributed.get_title("left") == "distributed shared memory:\nsectors a request"
    assert "■ requests of any kind" in [t.get_text() for t in made["histogram-transactions"].texts]
    assert len(made["transpose-transactions"].axes) == 2


def test_ratios_that_differ_stand_right_of_the_dots_and_arrows_beyond_the_axes(
    figures, folder, tmp_path
):
    scale = {"transpose/tiled": 9.0, "smem_layout/row_row": 0.8, "histogram/distributed": 0.2}
    file = emulated.write_counters(tmp_path / "nvidia-h200", scale)
    made, _ = figures(folder, file)
    shared, _ = made["prediction"].axes
    names = [label.get_text() for label in shared.get_yticklabels()]
    shapes = {names[int(line.get_ydata()[0])]: line for line in shared.lines}
    low, high = shared.get_xlim()
    found = shapes["transpose/tiled"]
    assert (found.get_marker(), found.get_xdata()[0]) == ("<", pytest.approx(low))
    found = shapes["histogram/distributed"]
    assert (found.get_marker(), found.get_xdata()[0]) == (">", pytest.approx(high))
    assert shapes["smem_layout/row_row"].get_marker() == "o"
    told = {names[int(text.xy[1])]: text for text in shared.texts}
    assert {name: text.get_text() for name, text in told.items()} == {
        "transpose/tiled": "0.111",
        "smem_layout/row_row": "1.25",
        "histogram/distributed": "5",
    }
    renderer = FigureCanvasAgg(made["prediction"]).get_renderer()
    edge = shared.get_window_extent(renderer).x1
    for text in told.values():
        box = text.get_window_extent(renderer)
        assert edge + 4 < box.x0 < box.x1 < made["prediction"].axes[1].get_window_extent().x0
    assert any("beyond the axes" in text.get_text() for text in made["prediction"].texts)


def test_a_conflict_fills_one_bank_and_padding_spreads_it(figures, folder):
    made, _ = figures(folder)
    for stem in ("transpose-banks", "smem_layout-banks"):
        before, heights, after, spread = made[stem].axes
        cells = [(cell.get_x(), cell.get_y()) for cell in before.patches]
        assert sorted(cells) == [(0, row) for row in range(32)]
        assert sorted(c.get_x() for c in after.patches) == list(range(32))
        assert sorted(c.get_y() for c in after.patches) == list(range(32))
        assert [text.get_text() for text in before.texts[:32]] == [str(i) for i in range(32)]
        assert [bar.get_height() for bar in heights.patches] == [32]
        assert [bar.get_height() for bar in spread.patches] == [1] * 32
        assert "32 wavefronts" in before.texts[-2].get_text()
        assert "1 wavefront" in after.texts[-2].get_text()


def test_wide_accesses_cover_their_words():
    lines = emulated.details()["lines"]
    line = lines[0] | {"bytes": 16, "worst_request": [16 * lane for lane in range(32)]}
    words = banks._words(package_line(line))
    assert words == {word: word // 4 for word in range(128)}
    lanes = [0.0, *([None] * 31)]
    assert banks._words(package_line(line | {"worst_request": lanes})) == dict.fromkeys(range(4), 0)


def package_line(entry):
    from ladder import details

    return details._line(json.loads(json.dumps(entry), parse_int=float))


def test_occupancy_bars_are_as_high_as_told_and_mark_the_launch(figures, folder):
    made, _ = figures(folder)
    by_block, by_shared = made["transpose-occupancy"].axes[2:4]  # tiled
    told = next(c for c in emulated.details()["occupancy"] if "/tiled/" in c["row"])
    for axes, key, size in ((by_block, "by_block", "threads"), (by_shared, "by_shared", "bytes")):
        for point in told[key]:
            (bar,) = [
                bar
                for bar in axes.patches
                if bar.get_x() < point[size] < bar.get_x() + bar.get_width()
            ]
            assert bar.get_height() == pytest.approx(100 * point["occupancy"])
    assert [tuple(map(float, line.get_data()[0])) for line in by_block.lines] == [(1024.0,)]
    assert [line.get_xydata().tolist() for line in by_block.lines] == [[[1024.0, 100.0]]]
    assert [line.get_xydata().tolist() for line in by_shared.lines] == [[[4096.0, 100.0]]]


def test_kernels_share_panels_that_are_alike_and_tell_what_they_take(figures, tmp_path):
    emulated.write(tmp_path)
    details = emulated.details()
    take = {curves["row"].split("/")[1]: curves for curves in details["occupancy"][::-1]}
    take["row_column"]["registers"] = 24  # as many blocks fit as with 32
    take["row_column_padded"]["static_shared_bytes"] = 4224
    take["column_column"]["static_shared_bytes"] = 5120  # the next bar
    (tmp_path / "details.json").write_text(json.dumps(details))
    made, _ = figures(tmp_path)
    axes = made["smem_layout-occupancy"].axes[::2]
    assert [tuple(text.get_text() for text in panel.texts) for panel in axes] == [
        (
            "row_row, row_column, row_column_padded",
            "24 to 32 registers, 1024 threads, 4.00 KiB to 4.12 KiB shared: 100%",
        ),
        ("column_column", "32 registers, 1024 threads, 5.00 KiB shared: 100%"),
    ]


def test_a_launch_in_clusters_is_marked_at_its_own_occupancy(figures, tmp_path):
    document = emulated.document()
    for row in document["benchmarks"]:
        if row["name"].startswith("smem_layout/row_column/"):
            row["theoretical_occupancy"] = 0.9394
        if row["name"].startswith("smem_layout/row_column_padded/"):
            row.pop("theoretical_occupancy", None)  # then the curve tells it
    emulated.write(tmp_path)
    suite.write(tmp_path / "study.json", document)
    made, _ = figures(tmp_path)
    axes = made["smem_layout-occupancy"].axes
    told = {panel.texts[0].get_text(): panel.texts[1].get_text() for panel in axes[::2]}
    assert told["row_column"].endswith("94% in its clusters, 100% without")
    at = list(told).index("row_column")
    for panel in axes[2 * at : 2 * at + 2]:
        assert [float(line.get_ydata()[0]) for line in panel.lines] == [93.94]
    assert sum("100%" in text and "clusters" not in text for text in told.values()) == len(told) - 1


def test_without_details_the_rest_is_drawn(tmp_path, capsys):
    file = emulated.write(tmp_path / "in", with_details=False)
    assert main(["plot", str(file), "--output", str(tmp_path / "out")]) == 0
    told = "occupancy and banks not drawn: no details.json beside it"
    assert capsys.readouterr().err == f"ladder: note: {file}: {told}\n"
    names = {path.stem for path in (tmp_path / "out").iterdir()}
    assert names == {stem for stem in STEMS if stem.endswith("-transactions")}


def broken(change) -> str:
    document = emulated.details()
    change(document)
    return json.dumps(document)


BROKEN = {
    "empty": ("", "empty"),
    "truncated": ('{"lines": [', "truncated or not JSON"),
    "list": ("[]", "no list of 'lines'"),
    "no occupancy": ('{"lines": []}', "no list of 'occupancy'"),
    "line is text": ('{"lines": ["a"], "occupancy": []}', "lines[0]: "),
    "line lacks a row": (broken(lambda d: d["lines"][1].pop("row")), "lines[1]: no 'row'"),
    "31 lanes": (broken(lambda d: d["lines"][0]["worst_request"].pop()), "no list of 32 lanes"),
    "lane is text": (
        broken(lambda d: d["lines"][0]["worst_request"].__setitem__(3, "x")),
        "worst_request holds something else",
    ),
    "lane is negative": (
        broken(lambda d: d["lines"][0]["worst_request"].__setitem__(3, -1)),
        "worst_request holds something else",
    ),
    "curve is a number": (
        broken(lambda d: d["occupancy"][0].update(by_block=3)),
        "occupancy[0]: ",
    ),
    "point is text": (broken(lambda d: d["occupancy"][0].update(by_block=["x"])), "occupancy[0]: "),
    "empty curve": (broken(lambda d: d["occupancy"][0].update(by_shared=[])), "an empty curve"),
    "registers is text": (
        broken(lambda d: d["occupancy"][0].update(registers="32")),
        "registers is not a float",
    ),
}


@pytest.mark.parametrize(("content", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_details_are_named_in_one_line(tmp_path, capsys, content, told):
    emulated.write(tmp_path)
    file = tmp_path / "details.json"
    file.write_text(content)
    assert main(["plot", str(tmp_path), "--output", str(tmp_path / "out")]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ladder: {file}: ")
    assert told in err
    assert err.count("\n") == 1
    assert main(["table", str(tmp_path)]) == 0  # the tables need none of it


def test_details_alone_are_no_result(tmp_path, capsys):
    emulated.write(tmp_path)
    (tmp_path / "study.json").unlink()
    assert main(["table", str(tmp_path)]) == 3
    assert capsys.readouterr().err == f"ladder: {tmp_path}: no *.json below this directory\n"
    assert main(["table", str(tmp_path / "details.json")]) == 3
    assert "not a Google Benchmark result" in capsys.readouterr().err


def test_a_rung_that_failed_to_verify_is_reported(tmp_path, capsys):
    document = emulated.document()
    document["benchmarks"][0] |= {"error_occurred": True, "error_message": "wrong at [7]"}
    file = suite.write(tmp_path / "study.json", document)
    assert main(["table", str(file), "--ladder", "transpose"]) == 0
    assert "- `naive` error: wrong at [7]" in capsys.readouterr().out
    assert main(["plot", str(file), "--output", str(tmp_path / "out")]) == 0
    assert "transpose/naive" in capsys.readouterr().err


def test_nan_counters_leave_gaps_only(tmp_path, capsys):
    document = emulated.document()
    for row in document["benchmarks"]:
        for key in row:
            if key.endswith(("_ideal", "occupancy")) or key == "compulsory_bytes":
                row[key] = math.nan
    file = suite.write(tmp_path / "study.json", document)
    assert main(["table", str(file)]) == 0
    assert "nan" not in capsys.readouterr().out
    assert main(["plot", str(file), "--output", str(tmp_path / "out")]) == 0


def told_of(out: str, rung: str) -> dict[str, str]:
    rows = table_rows(out)
    return dict(zip(rows["rung"], rows[f"`{rung}`"], strict=True))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"theoretical_occupancy": 0.5, "occupancy_limit_shared": 1.0}, "shared memory"),
        ({"theoretical_occupancy": 0.9394, "resident_clusters": 124.0}, "clusters"),
        ({"theoretical_occupancy": 0.5, "resident_clusters": 132.0}, "warps, registers"),
    ],
)
def test_what_limits_occupancy_is_named_as_that(tmp_path, capsys, more, told):
    document = emulated.document()
    for row in document["benchmarks"]:
        if row["name"].endswith("/cluster:2/manual_time"):
            row |= more
    file = suite.write(tmp_path / "study.json", document)
    assert main(["table", str(file), "--ladder", "histogram"]) == 0
    out = capsys.readouterr().out
    assert told_of(out, "distributed (cluster 2)")["occupancy limited by"] == told
    assert table_rows(out)["`shared`"][-1] == "100%"  # and nothing after it
    assert "| limited by" not in out


def test_a_title_calls_nothing_measured(tmp_path, capsys, figures):
    document = emulated.document()
    ladders = json.loads(document["context"]["ladders"])
    ladders[0]["title"] = "Measured roofs"
    document["context"]["ladders"] = json.dumps(ladders)
    file = suite.write(tmp_path / "study.json", document)
    suite.write(tmp_path / "details.json", emulated.details())
    assert main(["table", str(file), "--ladder", "transpose"]) == 0
    assert capsys.readouterr().out.startswith("Kernels of the roofs: NVIDIA H200, emulated")
    made, _ = figures(file)
    for kind in ("transactions", "occupancy", "banks"):
        titles = [text.get_text() for text in made[f"transpose-{kind}"].texts]
        assert any(title.startswith("Kernels of the roofs: ") for title in titles)


def test_counts_are_written_in_one_way(tmp_path, capsys):
    document = emulated.document()
    for row in document["benchmarks"]:
        if row["name"].startswith("histogram/shared/"):
            row |= {"global_bytes": 8448.0 * row["compulsory_bytes"], "barriers": 1081344.0}
            row["global_load_sectors_per_request"] = 999.7
    file = suite.write(tmp_path / "study.json", document)
    assert main(["table", str(file), "--ladder", "histogram"]) == 0
    told = told_of(capsys.readouterr().out, "shared")
    assert told["global bytes asked for / touched"] == "8,448"
    assert told["barriers"] == "1,081,344"
    assert told["global sectors a request, load / store / atomic"] == "1,000 / – / 4"


def test_figures_go_where_the_study_writes_them(folder, whole, tmp_path):
    document = emulated.document(gpu_name="NVIDIA GeForce RTX 4090", modelled_gpu="rtx4090")
    other = suite.write(tmp_path / "study.json", document)
    output = tmp_path / "out"
    options = ["-o", str(output), "--filter", "^smem_layout/"]
    assert main(["plot", str(folder), str(other), str(whole), *options]) == 0
    folders = {path.name for path in output.iterdir() if path.is_dir()}
    assert folders == {"emulated-h200", "emulated-rtx4090"}
    again = suite.write(tmp_path / "again.json", emulated.document(git_commit="fedcba9"))
    assert main(["plot", str(folder), str(again), "-o", str(tmp_path / "two"), *options[2:]]) == 0
    folders = {path.name for path in (tmp_path / "two").iterdir()}
    assert folders == {"emulated-h200-0123456", "emulated-h200-fedcba9"}
