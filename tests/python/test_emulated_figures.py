# SPDX-License-Identifier: MIT
"""Figures of emulated results: requests, banks and occupancy."""

import json
import re

import emulated
import matplotlib.image
import msgspec
import numpy as np
import pytest
import suite
from ladder.commands.cli import main
from ladder.report.plots import banks
from matplotlib.backends.backend_agg import FigureCanvasAgg

STEMS = """transpose-why transpose-occupancy transpose-banks smem_layout-occupancy smem_layout-banks
histogram-occupancy""".split()


def test_figures_are_complete_repeatable_and_within_their_margins(
    ladder, emulated_folder, tmp_path
):
    """The kinds that are of emulated results alone are drawn by another process too."""
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(["plot", str(emulated_folder), "--format", "svg,png", "-o", str(first)]) == 0
    assert {path.name for path in first.iterdir()} == {
        f"{stem}.{form}" for stem in STEMS for form in ("svg", "png")
    }
    own = ["transpose-occupancy", "transpose-banks"]
    done = ladder("plot", emulated_folder, "-o", second, "--only", *own)
    assert (done.returncode, done.stderr) == (0, "")
    for stem in own:
        assert (first / f"{stem}.svg").read_bytes() == (second / f"{stem}.svg").read_bytes()
    for path in first.glob("*.png"):
        ink = matplotlib.image.imread(path)[:, :, :3].min(axis=2) < 0.95
        edges = [ink[:4].ravel(), ink[-4:].ravel(), ink[:, :4].ravel(), ink[:, -4:].ravel()]
        assert not np.concatenate(edges).any(), f"{path.name} is clipped"


def test_what_an_idea_moved_is_drawn_without_speeds(draw, tmp_path):
    document = emulated.document()
    ladders = json.loads(document["context"]["ladders"])
    (transpose,) = (ladder for ladder in ladders if ladder["name"] == "transpose")
    for rung in transpose["rungs"]:
        if rung["name"] == "padded":
            rung["target"] = "shared_load_wavefronts_per_request"
    document["context"]["ladders"] = json.dumps(ladders)
    made, _ = draw(suite.write(tmp_path / "a.json", document))
    (moved,) = made["transpose-why"].axes
    texts = [text.get_text() for text in moved.texts]
    assert "32 → 1" in texts
    assert "gain" not in texts
    assert any(
        "Not drawn: no counter, or not counted: " in text.get_text()
        for text in made["transpose-why"].texts
    )
    assert "histogram-why" not in made  # none of its ideas names a counter


def test_ratios_that_differ_stand_right_of_the_dots_and_arrows_beyond_the_axes(
    draw, emulated_folder, tmp_path
):
    scale = {"transpose/tiled": 9.0, "smem_layout/row_row": 0.8, "histogram/distributed": 0.2}
    file = emulated.write_counters(tmp_path / "nvidia-h200", scale)
    made, _ = draw([emulated_folder, file], "prediction")
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


def test_the_catalogue_tells_which_rung_is_padded(draw, tmp_path):
    """Whatever its name: by its target, or by the factor of an experiment."""
    names = {"padded": "moved", "row_column_padded": "sheared"}

    def renamed(text: str) -> str:
        for old, new in names.items():
            text = re.sub(rf'(?<=[/"]){old}(?=[/"\\])', new, text)
        return text

    document, details = emulated.document(), emulated.details()
    file = suite.write(tmp_path / "study.json", json.loads(renamed(json.dumps(document))))
    suite.write(tmp_path / "details.json", json.loads(renamed(json.dumps(details))))
    made, _ = draw(file, "transpose-banks", "smem_layout-banks")
    for stem, name in (("transpose-banks", "moved"), ("smem_layout-banks", "sheared")):
        texts = [text.get_text() for axes in made[stem].axes for text in axes.texts]
        assert any(text.startswith(f"{name}: 1 wavefront") for text in texts)


def places(axes) -> list[tuple[float, float]]:
    """Bank and row of each square."""
    (squares,) = axes.collections
    return sorted(tuple(np.floor(path.vertices.min(axis=0))) for path in squares.get_paths())


def test_a_conflict_fills_one_bank_and_padding_spreads_it(draw, emulated_folder):
    stems = "transpose-banks", "smem_layout-banks"
    made, _ = draw(emulated_folder, *stems)
    for stem in stems:
        before, heights, after, spread = made[stem].axes
        assert places(before) == [(0, row) for row in range(32)]
        assert places(after) == [(bank, bank) for bank in range(32)]
        assert [bar.get_height() for bar in heights.patches] == [32]
        assert [bar.get_height() for bar in spread.patches] == [1] * 32
        told = [[text.get_text() for text in axes.texts] for axes in made[stem].axes]
        assert told[0][:5] == ["lane 0", "lane 8", "lane 16", "lane 24", "lane 31"]
        assert any("32 wavefronts" in text for text in told[0])
        assert told[1] == ["32 words from one bank"]
        assert any("1 wavefront" in text for text in told[2])
        assert told[3] == ["1 word from each bank"]


def test_wide_accesses_cover_their_words():
    lines = emulated.details()["lines"]
    line = lines[0] | {"bytes": 16, "worst_request": [16 * lane for lane in range(32)]}
    words = banks._words(package_line(line))
    assert words == {word: word // 4 for word in range(128)}
    lanes = [0.0, *([None] * 31)]
    assert banks._words(package_line(line | {"worst_request": lanes})) == dict.fromkeys(range(4), 0)


def package_line(entry):
    from ladder.io import emulator_details

    return msgspec.convert(entry, emulator_details.Line)


def test_occupancy_bars_are_as_high_as_told_and_mark_the_launch(draw, emulated_folder):
    made, _ = draw(emulated_folder, "transpose-occupancy")
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


def test_kernels_share_panels_that_are_alike_and_tell_what_they_take(draw, tmp_path):
    emulated.write(tmp_path)
    details = emulated.details()
    take = {curves["row"].split("/")[1]: curves for curves in details["occupancy"][::-1]}
    take["row_column"]["registers"] = 24  # as many blocks fit as with 32
    take["row_column_padded"]["static_shared_bytes"] = 4224
    take["column_column"]["static_shared_bytes"] = 5120  # the next bar
    (tmp_path / "details.json").write_text(json.dumps(details))
    made, _ = draw(tmp_path, "smem_layout-occupancy")
    axes = made["smem_layout-occupancy"].axes[::2]
    assert [tuple(text.get_text() for text in panel.texts) for panel in axes] == [
        (
            "row_row, row_column, row_column_padded",
            "24 to 32 registers, 1024 threads, 4.00 KiB to 4.12 KiB shared: 100%",
        ),
        ("column_column", "32 registers, 1024 threads, 5.00 KiB shared: 100%"),
    ]


def test_a_launch_in_clusters_is_marked_at_its_own_occupancy(draw, tmp_path):
    document = emulated.document()
    for row in document["benchmarks"]:
        if row["name"].startswith("smem_layout/row_column/"):
            row["theoretical_occupancy"] = 0.9394
        if row["name"].startswith("smem_layout/row_column_padded/"):
            row.pop("theoretical_occupancy", None)  # then the curve tells it
    emulated.write(tmp_path)
    suite.write(tmp_path / "study.json", document)
    made, _ = draw(tmp_path, "smem_layout-occupancy")
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
    assert names == {stem for stem in STEMS if stem.endswith("-why")}


def test_a_title_calls_nothing_measured(tmp_path, capsys, draw):
    document = emulated.document()
    ladders = json.loads(document["context"]["ladders"])
    ladders[0]["title"] = "Measured roofs"
    document["context"]["ladders"] = json.dumps(ladders)
    file = suite.write(tmp_path / "study.json", document)
    suite.write(tmp_path / "details.json", emulated.details())
    assert main(["table", str(file), "--ladder", "transpose"]) == 0
    assert capsys.readouterr().out.startswith("Kernels of the roofs: NVIDIA H200, emulated")
    made, _ = draw(file)
    for kind in ("occupancy", "banks"):
        titles = [text.get_text() for text in made[f"transpose-{kind}"].texts]
        assert any(title.startswith("Kernels of the roofs: ") for title in titles)


def test_figures_go_where_the_study_writes_them(emulated_folder, whole, tmp_path):
    document = emulated.document(gpu_name="NVIDIA GeForce RTX 4090", modelled_gpu="rtx4090")
    other = suite.write(tmp_path / "study.json", document)
    suite.write(tmp_path / "details.json", emulated.details())
    output = tmp_path / "out"
    options = ["-o", str(output), "--filter", "^smem_layout/"]
    assert main(["plot", str(emulated_folder), str(other), str(whole), *options]) == 0
    folders = {path.name for path in output.iterdir() if path.is_dir()}
    assert folders == {"emulated-h200", "emulated-rtx4090"}
    again = suite.write(tmp_path / "again.json", emulated.document(git_commit="fedcba9"))
    assert (
        main(["plot", str(emulated_folder), str(again), "-o", str(tmp_path / "two"), *options[2:]])
        == 0
    )
    folders = {path.name for path in (tmp_path / "two").iterdir()}
    assert folders == {"emulated-h200-0123456", "emulated-h200-fedcba9"}
