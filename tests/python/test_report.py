# SPDX-License-Identifier: MIT
"""The report: one page that needs nothing else, a summary that fits, test cases for CI."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
import suite
from comparison import FAILED, SKIPPED, document, timed
from conftest import ROOT
from ladder.commands.cli import main
from ladder.io.results import load_results
from ladder.report import comparison_text, summary
from ladder.report.html import charts

VOID = {"meta", "link", "input", "br", "wbr", "path", "use", "rect"}
ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "a|b`c*[d](javascript:alert(1))",
    "\x00\x1b\ud800",
)


class Page(HTMLParser):
    """What the tests look at: elements, the texts of those of one kind, and what is not closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []  # innermost element, text
        self.open: list[str] = []
        self.blocks: dict[str, str] = {}
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            if tag == "script":
                self.block_name = dict(attrs).get("id", "")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.blocks[self.block_name] = self.blocks.get(self.block_name, "") + data
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def routes(self) -> set[str]:
        return {a["data-route"] for a in self.all("section") if "data-route" in a}

    def block(self, name: str) -> dict:
        """A block as the page's script sees it: in those of rows a number stands for a text."""
        found = json.loads(self.blocks[name])
        if texts := found.pop("texts", None):
            for i, (title, link, bad, *cells) in enumerate(found["rows"]):
                told = [texts[cell] if isinstance(cell, int) else cell for cell in cells]
                row = {"name": texts[title], "link": texts[link], "bad": bool(bad), "cells": told}
                found["rows"][i] = row
        return found


@pytest.fixture
def report(tmp_path, capsys):
    """Report documents; return the exit code, the folder and what was said."""

    def make(*heads: dict, base: dict | None = None, options: tuple = ()) -> tuple[int, Path, str]:
        files = [str(suite.write(tmp_path / f"{i}.json", d)) for i, d in enumerate(heads)]
        given = ["--base", str(suite.write(tmp_path / "base.json", base))] if base else []
        code = main(["report", *files, "-o", str(tmp_path / "out"), *given, *map(str, options)])
        return code, tmp_path / "out", capsys.readouterr().err

    return make


def cases(folder: Path) -> dict[str, list[str]]:
    """The outcomes of the test cases by their names."""
    suite = ElementTree.parse(folder / "junit.xml").getroot()
    found = {case.get("name"): [outcome.tag for outcome in case] for case in suite}
    assert suite.get("tests") == str(len(suite)) == str(len(found))
    for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert suite.get(plural) == str(sum(tag in outcomes for outcomes in found.values()))
    return found


@pytest.fixture(scope="module")
def transposed(tmp_path_factory) -> Path:
    """The report of one ladder of the suite, with figures, made once."""
    folder = tmp_path_factory.mktemp("report")
    content = suite.document()
    wanted = ("transpose/", "sgemm/", "roof/")
    content["benchmarks"] = [r for r in content["benchmarks"] if r["name"].startswith(wanted)]
    path = suite.write(folder / "h200.json", content)
    assert main(["report", str(path), "-o", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def page(transposed) -> Page:
    return Page(transposed / "report.html")


def hostile() -> dict:
    """A ladder and a foreign row whose every text is an attack."""
    texts = "".join(ATTACKS)
    ladder = {
        "name": "x<b>",
        "title": texts,
        "quantity": "bytes",
        "axes": suite.axes("n"),
        "headline": "n:1",
        "ceiling": "",
        "rungs": [suite.rung(a.replace("/", ""), a) for a in ATTACKS],
    }
    names = [f"x<b>/{a.replace('/', '')}/n:{n}" for a in ATTACKS for n in (1, 2)]
    made = document({name: timed(10) for name in names})
    for row in made["benchmarks"]:
        row["bytes_per_second"] = 1e12
    made["benchmarks"] += document({a: FAILED | {"error_message": a} for a in ATTACKS})[
        "benchmarks"
    ]
    made["context"] |= {"ladders": json.dumps([ladder]), "gpu_name": texts, "git_commit": texts}
    made["context"] |= {"driver_version": texts, "host_name": texts, "cache_mode": "cold"}
    return made


def test_the_page_needs_no_other_file(page, transposed):
    assert not page.open
    for tag, attributes in page.elements:
        assert not (tag in ("script", "img", "iframe", "link") and attributes.get("src"))
        link = attributes.get("href") or attributes.get("xlink:href") or "#"
        assert link.startswith(("#", "data:,")), link
    text = (transposed / "report.html").read_text(encoding="utf-8")
    text = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert sorted(path.name for path in transposed.iterdir()) == [
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
    assert all(a.get("aria-label") for a in page.all("nav"))
    assert all(a.get("aria-label") for _, a in page.elements if a.get("role") == "region")
    assert all(a.get("aria-label") for a in page.all("svg"))
    scripts = "".join(text for tag, text in page.texts if tag == "script")
    for needed in ('"aria-sort"', 'make("label"', '"aria-live"', 'make("button"'):
        assert needed in scripts
    style = next(text for tag, text in page.texts if tag == "style")
    for needed in ("prefers-color-scheme: dark", "@media print", ":focus-visible"):
        assert needed in style


def test_a_report_without_the_chart_library_says_so(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    content = suite.document()
    content["benchmarks"] = [r for r in content["benchmarks"] if r["name"].startswith("sgemm/")]
    code, folder, said = report(content)
    assert code == 0
    assert said == (
        "ladder: note: no interactive charts: pip install '.[charts]' in the checkout adds them\n"
    )
    page = Page(folder / "report.html")
    assert any("vl-convert-python is not installed" in text for _, text in page.texts)
    assert page.all("svg")
    assert not [a for a in page.all("div") if a.get("class") == "chart"]
    assert "charts-1" not in page.blocks


def test_charts_have_the_speeds_of_the_rows(page):
    pytest.importorskip("vl_convert", reason="no Python package vl-convert-python")
    chart = page.block("charts-1")["/sgemm"]["climb"]
    names = [name for name, *_ in chart["rungs"]]
    assert names == [rung["name"] for rung in suite.CATALOGUE[1]["rungs"]]
    assert chart["rungs"][names.index("tiled")] == ["tiled", "/sgemm/tiled", "step", "coalesced"]
    labels = [label for label, *_ in chart["cases"]]
    points = {(names[r], labels[c]): (speed, percent) for r, c, speed, percent in chart["points"]}
    speed, percent = points["cublas", "4096"]
    assert (chart["unit"], round(speed, 1), round(percent)) == ("TFLOP/s", 51.1, 80)
    assert {names[i] for i in chart["named"]} >= {"naive", "pipelined"}
    assert len(chart["named"]) == 5
    assert any("Vega-Lite" in text and "BSD-3-Clause" in text for _, text in page.texts)


def test_a_ladder_is_navigated_as_its_tree(transposed):
    text = (transposed / "report.html").read_text(encoding="utf-8")
    section = text[text.index('data-route="/sgemm">') :]
    tree = re.search(r'<details class="tree".*?</details>', section, re.DOTALL)[0]
    tree = re.sub(r"\s+", " ", tree)
    inside = r'<li><a href="#/sgemm/naive">naive</a> <span>500 GFLOP/s</span> <ul> <li><a href="#'
    assert inside + "/sgemm/coalesced" in tree
    assert '<li class="best"><a href="#/sgemm/pipelined">' in tree
    assert "cublas</a> <small>library</small>" in tree
    assert tree.count("<ul>") == tree.count("</ul>") == 6


def test_samples_that_were_kept_are_told(report, tmp_path):
    content = suite.document()
    wanted = ("sgemm/tiled/m:4096", "sgemm/naive/m:4096", "roof/")
    content["benchmarks"] = [r for r in content["benchmarks"] if r["name"].startswith(wanted)]
    name = next(r["name"] for r in content["benchmarks"] if r["name"].startswith("sgemm/tiled"))
    entry = {"name": name, "nanoseconds": [1e6 + i for i in range(99)] + [9e6]}
    (tmp_path / "0.samples.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")
    code, folder, _ = report(content)
    assert code == 0
    page = Page(folder / "report.html")
    told = [text for tag, text in page.texts if tag == "p" and "samples: p10" in text]
    wanted = "100 samples: p10 1.000 ms, p50 1.000 ms, p90 1.000 ms"
    assert told == [f"{wanted}; beyond the scale, and drawn at its end: 1."]
    pytest.importorskip("vl_convert", reason="no Python package vl-convert-python")
    chart = page.block("charts-1")["/sgemm/tiled"]["samples"]
    assert sum(count for *_, count in chart["bins"]) == len(chart["taken"]) == 100


def test_commits_of_one_gpu_are_a_history(report):
    heads = []
    for i, (commit, factor) in enumerate([("a" * 9, 1.0), ("b" * 9, 1.0), ("c" * 9, 0.5)]):
        head = suite.document(factor, git_commit=commit, date=f"2026-01-0{i + 1}T00:00:00+00:00")
        head["benchmarks"] = [
            r for r in head["benchmarks"] if r["name"].startswith(("sgemm/tiled/", "roof/"))
        ]
        heads.append(head)
    code, folder, _ = report(*heads[::-1])
    assert code == 0
    page = Page(folder / "report.html")
    texts = [text for _, text in page.texts]
    assert {a["data-run"] for a in page.all("section") if "data-run" in a} == {"1"}
    assert "NVIDIA H200, cold cache, commit ccccccc" in texts
    assert any("oldest first: aaaaaaa, bbbbbbb, ccccccc" in text for text in texts)
    assert sum(text.startswith("SLOWER 0.500 at ccccccc") for text in texts) == 10  # of each row
    pytest.importorskip("vl_convert", reason="no Python package vl-convert-python")
    track = page.block("charts-1")["/sgemm/tiled"]["track"]
    assert [label for label, _ in track["runs"]] == ["aaaaaaa", "bbbbbbb", "ccccccc"]
    assert [shift[1] for shift in track["shifts"]] == ["SLOWER"]


def test_a_share_above_the_limiters_says_why_it_is_not_it(report):
    code, folder, _ = report(
        json.loads((ROOT / "results/nvidia-h200/study.json").read_text(encoding="utf-8")),
        options=("--filter", "^(roof|sgemm/(producer_warps|stream_k))/"),
    )
    assert code == 0
    text = (folder / "report.html").read_text(encoding="utf-8")
    section = text[text.index('data-route="/sgemm/stream_k">') :]
    shares = re.search(r'<table class="shares">.*?</table>', section, re.DOTALL)[0]
    before, limiter, _ = shares.partition('<tr class="limiter">')
    assert limiter
    assert before.count('scope="row"') == before.count("<small>not the limiter: ") == 1


def test_rows_of_a_page_are_those_of_the_results(page):
    block = page.block("rows-1")
    titles = [title for title, _ in block["columns"]]
    rows = {row["name"]: dict(zip(titles, row["cells"], strict=True)) for row in block["rows"]}
    found = rows["transpose/padded/rows:8192/columns:8192/element:4"]
    assert found["rung"] == "padded"
    assert [row["link"].startswith("/roof/") for row in block["rows"]].index(True) > 0
    assert block["rows"][-1]["link"].startswith("/roof/")
    assert found["speed"] == ["1769 GB/s", 1.769e12]
    assert found["% of ceiling"][0] == "43%"
    assert found["× peer"] == ["0.48× cublas", 0.47579]
    skipped = rows["transpose/cublas/rows:8192/columns:8192/element:2"]
    assert skipped["status"] == "skipped: cuBLAS has no 2-byte geam"
    assert skipped["speed"] is None


def test_a_rung_has_its_idea_its_counters_and_its_source(page):
    texts = [text for _, text in page.texts]
    assert "One column of padding removes the bank conflicts." in texts
    counters = page.block("counters-1")
    at = [name for _, name in counters["names"]].index("static_shared_bytes")
    assert counters["rungs"]["/transpose/padded"][at]
    shown = {a["data-source"] for a in page.all("details") if "data-source" in a}
    assert "kernels/transpose/01_tiled.cuh" in shown
    assert {f"source/{file}" for file in shown} <= page.routes()
    chapter = (ROOT / "kernels/transpose/01_tiled.cuh").read_text(encoding="utf-8")
    source = "".join(text for tag, text in page.texts if tag in ("pre", "i"))
    assert "".join(chapter.split()) in "".join(source.split())
    assert any("the results are of 0123456" in text for text in texts)


def test_a_rung_leads_with_the_case_that_it_ran(report):
    headline = "m:4096/n:4096/k:4096"
    content = suite.document()
    rows = [r for r in content["benchmarks"] if r["name"].startswith(("sgemm/", "roof/"))]
    for row in rows:
        if row["name"].startswith(f"sgemm/tiled/{headline}"):
            row |= {"skipped": True, "skip_message": "too large"}
        elif row["name"].startswith("sgemm/vectorised/"):
            row |= FAILED
        elif "/m:8192/" in row["name"]:
            row["flops_per_second"] *= 1.5  # the fastest
    gone = f"sgemm/register_tile/{headline}"
    content["benchmarks"] = [row for row in rows if not row["name"].startswith(gone)]
    code, folder, _ = report(content)
    assert code == 0
    page = (folder / "report.html").read_text(encoding="utf-8")

    def told(rung: str) -> str:
        (section,) = re.findall(rf'data-route="/sgemm/{rung}">(.*?)<h2>Source', page, re.DOTALL)
        return " ".join(re.sub("<[^>]*>", " ", section).split())

    assert "At m = n = k = 4096 speed" in told("naive")
    wanted = "At m = n = k = 8192 headline m = n = k = 4096: {} speed"
    assert wanted.format("skipped: too large") in told("tiled")
    assert wanted.format("not measured") in told("register_tile")
    path = "path naive → coalesced → tiled → register_tile → vectorised"
    wanted = f"Not measured headline m = n = k = 4096: error: wrong {path}"
    assert told("vectorised").endswith(wanted)


def test_names_from_files_stay_text(report):
    code, folder, _ = report(hostile(), base=hostile())
    assert code == 0
    page = Page(folder / "report.html")
    assert not page.open
    assert len(page.all("img")) == 0
    assert not [a for _, a in page.elements for name in a if name.startswith("on")]
    kinds = [a.get("type") for a in page.all("script")]
    assert set(kinds) == {None, "application/json"}
    assert ATTACKS[0] in {row["name"] for row in page.block("rows-1")["rows"]}
    assert not [a for a in page.all("a") if "javascript" in (a["href"] or "").partition("%")[0]]

    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert not re.search(r"(?<!\\)[<`]", text)
    cases = {c.get("name") for c in ElementTree.parse(folder / "junit.xml").iter("testcase")}
    assert {ATTACKS[0], f"x<b>/{ATTACKS[0].replace('/', '')}/n:1"} <= cases


def test_a_comparison_is_told_first_and_ends_as_compare_does(report):
    rows = {f"row/{i}": timed(100) for i in range(5)}
    head = rows | {"row/1": timed(120), "row/2": timed(80), "row/3": FAILED}
    del head["row/4"]
    code, folder, _ = report(document(head), base=document(rows))
    assert code == 1
    page = Page(folder / "report.html")
    texts = [text for _, text in page.texts]
    assert "1 SLOWER, 1 ERROR, 1 MISSING, 1 FASTER, 1 SAME" in texts
    assert "Lost: 2 rows that base measured and head does not" in texts
    assert {"row/3: ERROR, wrong", "row/4: MISSING"} <= set(texts)
    block = page.block("changes")
    verdicts = [row["cells"][0][0] for row in block["rows"]]
    assert verdicts == ["SLOWER", "ERROR", "MISSING", "FASTER", "SAME"]
    slower = dict(zip(comparison_text.HEADER, block["rows"][0]["cells"], strict=True))
    assert (slower["ratio"], slower["interval"]) == (["0.833", 0.83333], "0.826–0.841")
    assert "changes" in page.routes()

    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert "| SLOWER | row/1 | 100 us | 120 us | 0.833 | 0.826–0.841 |" in text
    assert text.index("SLOWER") < text.index("Lost: 2 rows") < text.index("Other benchmarks")
    assert text.count("| MISSING | row/4 |") == 2
    assert "SAME |" not in text

    outcomes = cases(folder)
    assert outcomes == {f"row/{i}": [] for i in (0, 2)} | {
        f"row/{i}": ["failure"] for i in (1, 3, 4)
    }


def test_without_a_base_what_failed_is_in_error(report):
    code, folder, _ = report(document({"a": timed(10), "b": FAILED, "c": SKIPPED}))
    assert code == 0
    assert cases(folder) == {"a": [], "b": ["error"], "c": ["skipped"]}


def test_each_file_is_a_process_of_its_side(report, tmp_path):
    base = [suite.write(tmp_path / f"b{us}.json", document({"a": timed(us)})) for us in (95, 105)]
    heads = [document({"a": timed(us)}) for us in (98, 110, 99)]
    code, folder, _ = report(*heads, options=("--base", *base))
    assert code == 0
    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert re.search(r"1 NOISY .*2 and 3 processes", text)


def test_known_losses_are_allowed(report):
    base = document({"a": timed(100), "b/1": timed(100)})
    assert report(document({"a": timed(100)}), base=base)[0] == 4
    code, folder, _ = report(document({"a": timed(100)}), base=base, options=("--allow", "^b/"))
    assert code == 0
    assert cases(folder) == {"a": [], "b/1": ["skipped"]}
    code, folder, _ = report(document({"a": timed(100)}), base=base, options=("--filter", "^b/"))
    assert code == 4  # head has no row at all
    assert cases(folder) == {"b/1": ["failure"]}


def test_what_cannot_be_compared_is_reported_all_the_same(report):
    base = document({"a": timed(10)}, cache_mode="warm")
    code, folder, _ = report(document({"a": timed(10)}), base=base)
    assert code == 5
    assert "different cache modes" in (folder / "report.html").read_text(encoding="utf-8")
    assert "different cache modes" in (folder / "summary.md").read_text(encoding="utf-8")


def test_a_comparison_goes_by_noise(report, tmp_path):
    noise = {"context": {"gpu_name": "NVIDIA H200", "cache_mode": "cold"}}
    noise["rows"] = {"a": {"floor": 0.1, "spread": 0.2, "seconds": 1e-5, "processes": 5}}
    options = ("--noise", suite.write(tmp_path / "noise.txt", noise))
    base, head = document({"a": timed(10)}), document({"a": timed(11)})
    assert report(head, base=base)[0] == 1
    assert report(head, base=base, options=options)[0] == 0
    assert report(head, options=options)[0] == 2


def test_results_of_another_suite_have_rows_and_say_why_no_plots(report):
    code, folder, _ = report(document({"BM_copy/8": timed(10), "BM_copy/9": SKIPPED}))
    assert code == 0
    page = Page(folder / "report.html")
    assert not page.all("svg")
    assert page.routes() == {"/", "rows"}
    assert any("lists no ladder" in text for _, text in page.texts)
    block = page.block("rows-1")
    assert [r["name"] for r in block["rows"]] == ["BM_copy/8", "BM_copy/9"]
    shown = [
        t for i, (t, _) in enumerate(block["columns"]) if any(r["cells"][i] for r in block["rows"])
    ]
    assert shown == ["benchmark", "time", "status"]


def test_several_gpus_have_pages_each(report):
    wanted = re.compile(r"^(transpose|roof)/")
    heads = [suite.document(), suite.document(0.5, gpu_name="NVIDIA A100", gpu_uuid="other")]
    for head in heads:
        head["benchmarks"] = [
            r for r in head["benchmarks"] if wanted.match(r["name"]) and "16384" not in r["name"]
        ]
    code, folder, _ = report(*heads, options=("--filter", "^transpose/.*/rows:8192.*element:4"))
    assert code == 0
    page = Page(folder / "report.html")
    assert {a["value"] for a in page.all("option")} == {"1", "2"}
    shown = {(a.get("data-run"), a.get("data-route")) for a in page.all("section")}
    assert {("1", "/transpose/padded"), ("2", "/transpose/padded")} <= shown
    assert "#/transpose/padded?gpu=2" in {a["href"] for a in page.all("a")}
    assert "GPUs side by side" in [text for _, text in page.texts]


def test_each_file_is_told_of_by_its_own_commit(report):
    timed_at, counted_at = suite.document(), suite.document()
    for made in (timed_at, counted_at):
        made["benchmarks"] = [r for r in made["benchmarks"] if r["name"].startswith("smem_layout/")]
    counted_at["context"] |= {"git_commit": "fedcba9876543210", "counters": "Nsight Compute 2025.3"}
    code, folder, _ = report(counted_at, timed_at)
    assert code == 0
    texts = [text for _, text in Page(folder / "report.html").texts]
    counted = "NVIDIA H200 fedcba9, Nsight Compute 2025.3"
    assert {"NVIDIA H200 0123456", counted} <= set(texts)
    sources = {text.rpartition(";")[2] for text in texts if text.startswith("Source of ")}
    assert sources == {f" the results are of {commit}." for commit in ("0123456", "fedcba9")}


def test_emulated_results_have_what_was_counted(report):
    results = ROOT / "results/emulated-h200/study.json"
    content = json.loads(results.read_text(encoding="utf-8"))
    content["benchmarks"] = [
        row for row in content["benchmarks"] if row["name"].startswith("transpose/padded/")
    ]
    code, folder, _ = report(content)
    assert code == 0
    page = Page(folder / "report.html")
    names = [name for _, name in page.block("counters-1")["names"]]
    assert "shared_load_wavefronts_per_request" in names
    assert "/transpose/padded" in page.routes()
    assert "speed" not in [title for title, _ in page.block("rows-1")["columns"]]

    code, folder, _ = report(content, document({"BM_copy": timed(10)}))
    assert code == 0
    assert Page(folder / "report.html").block("rows-1")["rows"][0]["name"] == "BM_copy"


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


@pytest.mark.parametrize("rows", [10, 10_000])
def test_a_summary_fits_and_counts_what_it_leaves_out(tmp_path, rows):
    content = document({f"row{i:05}/" + "é" * 80: timed(10) for i in range(rows)})
    results = load_results(suite.write(tmp_path / "many.json", content))
    text = summary.markdown(results)
    assert len(text.encode()) <= summary.LIMIT < 1 << 20
    left_out = re.search(r"^(\d+) more rows are left out\.$", text, re.MULTILINE)
    assert bool(left_out) == (rows == 10_000)
    shown = len(re.findall(r"^\| row", text, re.MULTILINE))
    assert shown + (int(left_out[1]) if left_out else 0) == rows


def test_a_small_limit_keeps_the_overview(whole):
    text = summary.markdown(load_results(whole), limit=4000)
    assert len(text.encode()) <= 4000
    assert "register_tile" not in text
    assert "| Transpose | rows = columns = 8192, element 4 | vectorised |" in text
    assert re.search(r"^\d+ rows of further tables are left out\.$", text, re.MULTILINE)


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
