# SPDX-License-Identifier: MIT
"""The committed figures: few, small, and legible where pages show them."""

import colorsys
import re
from pathlib import Path

import pytest
from conftest import committed
from figure import beyond, overlaps, seen
from ladder.io.results import load_results
from ladder.report import plots

ROOT = Path(__file__).parents[2]
NAMED = (ROOT / "plots/figures.txt").read_text(encoding="utf-8").split()
LEAST = {900: 8.0, 400: 6.0}  # points of text, by the pixels that a README and a phone show


def test_the_committed_figures_are_those_that_are_named():
    found = {str(p.relative_to(ROOT / "plots").with_suffix("")) for p in ROOT.glob("plots/**/*.*")}
    assert found == {*NAMED, "figures"}
    assert len(NAMED) == len(set(NAMED)) <= 20


def test_texts_are_legible_and_touch_neither_each_other_nor_the_edge():
    def finish(_stem, figure):
        found = seen(figure)
        smallest = min(text.get_size() for text, _ in found)
        pixels = 96 * figure.get_size_inches()[0]
        sizes = {width: smallest * min(1.0, width / pixels) for width in LEAST}
        small = [f"{size:.1f} points at {at}" for at, size in sizes.items() if size < LEAST[at]]
        return overlaps(figure, found) + beyond(figure, found) + small

    results = load_results([str(ROOT / "results")])
    found = plots.make(results, finish, lambda _: None, only=NAMED)
    assert set(found) == set(NAMED)
    assert {stem: told for stem, told in found.items() if told} == {}


def test_no_other_figure_of_two_ladders_has_texts_that_touch():
    def finish(_stem, figure):
        found = seen(figure)
        return overlaps(figure, found) + beyond(figure, found)

    results = committed("nvidia-h200")
    found = plots.make([results], finish, lambda _: None, only=("sgemm-*", "scan-*", "roofs"))
    assert len(found) > 10
    assert {stem: told for stem, told in found.items() if told} == {}


@pytest.mark.parametrize("stem", NAMED)
def test_files_are_small(stem):
    assert (ROOT / f"plots/{stem}.svg").stat().st_size < 100e3


def test_a_gpu_drawn_alone_has_the_same_figures(tmp_path):
    """`scripts/study` draws each GPU alone; CI and the committed figures are of all together."""
    gpu = "nvidia-h200"
    drawn = plots.draw(
        [committed(gpu)], tmp_path, ["svg"], lambda _: None, only=("overview", "latency")
    )
    assert len(drawn) == 2
    for file in drawn:
        assert file.read_bytes() == (ROOT / "plots" / gpu / file.name).read_bytes()


def hues(svg: str) -> set[int]:
    """The colours of a figure by ten degrees of hue; shades of one are one, grey is none."""
    found = set()
    for colour in set(re.findall(r"#[0-9a-f]{6}\b", svg)):
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        hue, saturation, _ = colorsys.rgb_to_hsv(red, green, blue)
        if saturation > 0.05:
            found.add(round(36 * hue) % 36)
    return found


@pytest.mark.parametrize("stem", NAMED)
def test_there_are_few_colours_on_a_page_of_its_own(stem):
    """White behind all of it keeps black text legible on a dark page."""
    svg = (ROOT / f"plots/{stem}.svg").read_text(encoding="utf-8")
    assert len(hues(svg)) <= 6
    assert re.search(r'id="patch_1">\n<path [^>]*style="fill: #ffffff"', svg)


def test_each_is_shown_on_a_page():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [stem for stem in NAMED if f"plots/{stem}.svg" not in text] == []
