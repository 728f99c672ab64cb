# SPDX-License-Identifier: MIT
"""The committed figures: few, small, and legible where pages show them."""

from pathlib import Path

import pytest
from figure import beyond, overlaps, smallest
from ladder.io.results import load_results
from ladder.report import plots

ROOT = Path(__file__).parents[2]
NAMED = (ROOT / "plots/figures.txt").read_text(encoding="utf-8").split()
LEAST = 8.0  # points, of text in a figure shown 900 pixels wide
LANES = {"emulated-h200/transpose-banks": 5.5}  # a number in each of 32 cells
LETTERS = {"nvidia-h100-80gb-hbm3/histogram-clusters"}  # many cells make a long file


@pytest.fixture(scope="module")
def looked_at():
    """What is wrong with the texts of each figure, by its stem."""

    def finish(_stem, figure):
        width = figure.get_size_inches()[0]
        return overlaps(figure), beyond(figure), smallest(figure) * min(1.0, 9 / width)

    results = load_results([str(ROOT / "results")])
    return plots.make(results, finish, lambda _: None, only=NAMED)


def test_the_committed_figures_are_those_that_are_named():
    found = {str(p.relative_to(ROOT / "plots").with_suffix("")) for p in ROOT.glob("plots/**/*.*")}
    assert found == {*NAMED, "figures"}
    assert len(NAMED) == len(set(NAMED)) <= 20


@pytest.mark.parametrize("stem", NAMED)
def test_texts_touch_neither_each_other_nor_the_edge(looked_at, stem):
    touching, outside, size = looked_at[stem]
    assert touching == []
    assert outside == []
    assert size >= LANES.get(stem, LEAST) * (1.0 if stem not in LANES else 9 / 10.3)


def test_no_figure_of_the_study_has_texts_that_touch():
    def finish(_stem, figure):
        return overlaps(figure) + beyond(figure)

    results = load_results([str(ROOT / "results/nvidia-h100-80gb-hbm3")])
    found = plots.make(results, finish, lambda _: None)
    assert {stem: told for stem, told in found.items() if told} == {}


@pytest.mark.parametrize("stem", NAMED)
def test_files_are_small(stem):
    assert (ROOT / f"plots/{stem}.svg").stat().st_size < (200e3 if stem in LETTERS else 120e3)


def test_each_is_shown_on_a_page():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [stem for stem in NAMED if f"plots/{stem}.svg" not in text] == []
