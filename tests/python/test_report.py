# SPDX-License-Identifier: MIT
"""The report is one page that needs nothing else, in which names from files stay text."""

import re
import sys
from xml.etree import ElementTree

import pytest
import suite
from comparison import document, timed
from ladder.commands.cli import main
from ladder.report.html import charts
from page import ATTACKS, hostile


def test_the_page_needs_no_other_file(page, transposed):
    assert not page.open
    for tag, attributes in page.elements:
        assert not (tag in ("script", "img", "iframe", "link") and attributes.get("src"))
        link = attributes.get("href") or attributes.get("xlink:href") or "#"
        assert link.startswith(("#", "data:,")), link
    text = re.sub(r"<script.*?</script>", "", transposed.html, flags=re.DOTALL)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert sorted(path.name for path in transposed.folder.iterdir()) == [
        "junit.xml",
        "report.html",
        "summary.md",
    ]


def test_links_lead_to_pages(page):
    links = {a["href"].partition("?")[0] for a in page.all("a")} - {"#main"}
    assert {"#/", "#/sgemm", "#/transpose/padded", "#rows"} <= links
    assert links <= {f"#{route}" for route in page.routes()}


def test_ids_are_one_each(page):
    ids = [a["id"] for _, a in page.elements if a.get("id")]
    assert len(ids) > 10
    assert len(ids) == len(set(ids))


def test_what_is_there_for_keyboard_and_screen_reader(page):
    assert page.all("html")[0]["lang"] == "en"
    assert any(a.get("class") == "skip" and a["href"] == "#main" for a in page.all("a"))
    regions = [a for _, a in page.elements if a.get("role") == "region"]
    for labelled in (page.all("nav"), regions, page.all("svg")):
        assert labelled
        assert all(a.get("aria-label") for a in labelled)
    style = next(text for tag, text in page.texts if tag == "style")
    for needed in ("prefers-color-scheme: dark", "@media print", ":focus-visible"):
        assert needed in style


def test_a_report_without_the_chart_library_says_so(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    made = report(suite.only(suite.document(), "sgemm/"))
    assert made.code == 0
    assert made.said == (
        "ladder: note: no interactive charts: pip install '.[charts]' in the checkout adds them\n"
    )
    page = made.page
    assert any("vl-convert-python is not installed" in text for _, text in page.texts)
    assert page.all("svg")
    assert not [a for a in page.all("div") if a.get("class") == "chart"]
    assert "charts-1" not in page.blocks


def test_names_from_files_stay_text(report):
    made = report(hostile(), base=hostile())
    assert made.code == 0
    page = made.page
    assert not page.open
    assert len(page.all("img")) == 0
    assert not [a for _, a in page.elements for name in a if name.startswith("on")]
    kinds = [a.get("type") for a in page.all("script")]
    assert set(kinds) == {None, "application/json"}
    assert ATTACKS[0] in {row["name"] for row in page.block("rows-1")["rows"]}
    assert not [a for a in page.all("a") if "javascript" in (a["href"] or "").partition("%")[0]]

    assert not re.search(r"(?<!\\)[<`]", made.summary)
    cases = ElementTree.parse(made.folder / "junit.xml").iter("testcase")
    names = {case.get("name") for case in cases}
    assert {ATTACKS[0], f"x<b>/{ATTACKS[0].replace('/', '')}/n:1"} <= names


def test_the_library_of_the_charts_is_bundled_once(monkeypatch, tmp_path):
    vl_convert = pytest.importorskip("vl_convert", reason="no Python package vl-convert-python")
    made = []
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda _: made.append("") or "«vega»")
    monkeypatch.setattr(charts.mpl, "get_cachedir", lambda: str(tmp_path))
    for _ in range(2):  # as two processes would
        script, versions = charts._bundled.__wrapped__()
        assert script == "«vega»"
        assert versions.startswith("Vega ")
    assert len(made) == 1
    monkeypatch.setattr(charts.mpl, "get_cachedir", lambda: str(tmp_path / "none"))
    assert charts._bundled.__wrapped__()[0] == "«vega»"
    assert len(made) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["missing.json"], 3, "missing.json: No such file"),
        (["{good}", "--base", "missing.json"], 3, "missing.json: No such file"),
        (["{good}", "--allow", "a"], 2, "nothing to compare with"),
        (["{good}", "--threshold", "0.02"], 2, "nothing to compare with"),
        (["{good}", "--source", "{good}"], 2, "no directory of kernels in it"),
        (["{good}", "--filter", "nothing"], 2, "no row matches"),
        (["{good}", "-o", "{good}"], 2, "File exists"),
        (["{good}", "-o", "{good}/x"], 2, "Not a directory"),
    ],
)
def test_broken_input_is_one_line(tmp_path, capsys, arguments, code, said):
    good = suite.write(tmp_path / "good.json", document({"a": timed(10)}))
    given = [argument.format(good=good) for argument in arguments]
    output = [] if "-o" in given else ["-o", str(tmp_path / "out")]
    assert main(["report", *given, *output]) == code
    error = capsys.readouterr().err
    assert error.startswith("ladder: ")
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
