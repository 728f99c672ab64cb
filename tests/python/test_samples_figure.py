# SPDX-License-Identifier: MIT
"""The figure of samples: which rows, what is beyond the axis, and several results side by side."""

from __future__ import annotations

import json
from pathlib import Path

import figure
import numpy as np
import pytest
import suite
from ladder.analysis.study import studies
from ladder.commands.cli import main
from ladder.io import samples as reader
from ladder.io.results import load_results
from ladder.report.plots import samples, style

CASE = "rows:8192/columns:8192/element:4"


def write(path: Path, pattern: str, seed: int = 1, **context: str) -> Path:
    """Write the suite with samples of rows that begin so: `tile` drifts, `padded` warms up."""
    document = suite.document(**context)
    random, lines = np.random.default_rng(seed), []
    for row in document["benchmarks"]:
        if row["name"].startswith(pattern) and "skipped" not in row:
            times = random.normal(1, 0.002, 100)
            times *= np.linspace(1, 1.05, 100) if "/tile/" in row["name"] else 1
            times[0] *= 3 if "/padded/" in row["name"] else 1
            times *= 1000 * row["real_time"]
            name = row["name"].removesuffix("/manual_time")
            lines.append(json.dumps({"name": name, "nanoseconds": times.tolist()}))
    path.with_name(f"{path.stem}.samples.jsonl").write_text("\n".join(lines))
    return suite.write(path, document)


def side(path: Path, label: str = "x") -> samples.Side:
    (results,) = load_results(path)
    study = next(study for study in studies(results) if study.ladder.name == "transpose")
    return samples.Side(label, study, reader.beside(results))


def names(made) -> list[str]:
    return [title for axes in made.axes if (title := axes.get_title("left"))]


@style.look()
def drawn(*sides: samples.Side):
    return samples.draw(sides, samples.chosen(sides[0]))


def test_of_many_rows_those_of_the_headline_are_drawn_in_climbing_order(tmp_path):
    made = drawn(side(write(tmp_path / "a.json", "transpose/")))
    wanted = "copy naive tile padded rows_per_thread vectorised cublas".split()
    assert [name.split()[0] for name in names(made)] == wanted
    assert any("rows not shown" in text.get_text() for text in made.texts)
    assert figure.overlaps(made) == []


def test_a_few_rows_are_all_drawn_whatever_their_case(tmp_path):
    made = drawn(side(write(tmp_path / "a.json", "transpose/tile/")))
    assert len(names(made)) == 7
    assert all(name.startswith("transpose/tile/rows:") for name in names(made))
    assert not any("not shown" in text.get_text() for text in made.texts)
    assert figure.overlaps(made) == []


def test_samples_stand_in_their_order_and_what_is_far_off_is_told(tmp_path):
    path = write(tmp_path / "a.json", f"transpose/padded/{CASE}")
    (times,) = side(path).samples[f"transpose/padded/{CASE}"]
    taken, shares = drawn(side(path)).axes
    points, far = (line for line in taken.lines if len(line.get_xdata()))
    np.testing.assert_allclose(points.get_ydata(), 1e6 * times[1:])
    np.testing.assert_allclose(points.get_xdata(), range(2, 101))
    assert list(far.get_xdata()) == [1]  # the warm-up is no reason to flatten the rest
    assert taken.get_ylim() == shares.get_ylim()
    assert taken.get_ylim()[1] < 1.1e6 * np.median(times)
    assert any(text.startswith("1 △ to") for text in figure.texts(taken))
    assert [text.split()[0] for text in figure.texts(shares)] == ["p90", "p50", "p10"]


def test_several_results_have_a_panel_each_and_share_one_distribution(tmp_path):
    first = side(write(tmp_path / "a.json", f"transpose/naive/{CASE}"), "one")
    second = side(write(tmp_path / "b.json", f"transpose/naive/{CASE}", 2), "other")
    made = drawn(first, second)
    *taken, shares = made.axes
    assert len(taken) == len(shares.patches) == 2
    assert {axes.get_ylim() for axes in made.axes} == {shares.get_ylim()}
    assert {"one", "other"} <= {text.get_text() for text in made.texts}
    assert figure.overlaps(made) == []


@pytest.mark.parametrize("single", [700, 699])
def test_plot_draws_them_where_there_are_any_and_again_to_the_byte(tmp_path, monkeypatch, single):
    """Many points are drawn as a picture within the SVG, which has to be the same again."""
    monkeypatch.setattr(samples, "_SINGLE", single)
    write(tmp_path / "a.json", "transpose/")
    found = []
    for output in ("one", "two") if single < 700 else ("one",):
        options = ["-o", str(tmp_path / output), "--filter", f"/{CASE}|^sgemm/naive"]
        options += ["--only", "*-samples"]
        assert main(["plot", str(tmp_path / "a.json"), *options]) == 0
        assert not (tmp_path / output / "sgemm-samples.svg").exists()
        found.append((tmp_path / output / "transpose-samples.svg").read_bytes())
    assert found[0] == found[-1]
    assert (b"<image" in found[0]) == (single < 700)


def test_two_commits_are_overlaid_beside_the_figures_of_each(tmp_path):
    files = [
        str(write(tmp_path / f"{i}.json", f"transpose/naive/{CASE}", i, git_commit=f"{i}" * 40))
        for i in (1, 2)
    ]
    output = tmp_path / "out"
    assert main(["plot", *files, "-o", str(output), "--filter", "^transpose/naive"]) == 0
    found = {str(path.relative_to(output)) for path in output.rglob("*-samples.svg")}
    own = {f"nvidia-h200-{i * 7}/transpose-samples.svg" for i in ("1", "2")}
    assert found == {"transpose-samples.svg", *own}
