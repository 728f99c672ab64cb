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


def test_the_committed_figures_are_those_that_are_named():
    found = {str(p.relative_to(ROOT / "plots").with_suffix("")) for p in ROOT.glob("plots/**/*.*")}
    assert found == {*NAMED, "figures"}
    assert len(NAMED) == len(set(NAMED)) <= 20


def test_texts_are_legible_and_touch_neither_each_other_nor_the_edge():
    def finish(stem, figure):
        size = smallest(figure) * min(1.0, 9 / figure.get_size_inches()[0])
        least = LANES.get(stem, LEAST) * (1.0 if stem not in LANES else 9 / 10.3)
        small = [f"text of {size:.1f} points"] if size < least else []
        return overlaps(figure) + beyond(figure) + small

    results = load_results([str(ROOT / "results")])
    found = plots.make(results, finish, lambda _: None, only=NAMED)
    assert set(found) == set(NAMED)
    assert {stem: told for stem, told in found.items() if told} == {}


def test_no_other_figure_of_two_ladders_has_texts_that_touch():
    def finish(_stem, figure):
        return overlaps(figure) + beyond(figure)

    results = load_results([str(ROOT / "results/nvidia-h100-80gb-hbm3")])
    found = plots.make(results, finish, lambda _: None, only=("sgemm-*", "scan-*", "roofs"))
    assert len(found) > 10
    assert {stem: told for stem, told in found.items() if told} == {}


@pytest.mark.parametrize("stem", NAMED)
def test_files_are_small(stem):
    assert (ROOT / f"plots/{stem}.svg").stat().st_size < (200e3 if stem in LETTERS else 120e3)


def test_each_is_shown_on_a_page():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [stem for stem in NAMED if f"plots/{stem}.svg" not in text] == []
