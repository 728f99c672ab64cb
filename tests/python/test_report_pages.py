# SPDX-License-Identifier: MIT
"""What the report's pages tell: of ladders, of rungs, of GPUs, of commits and of other suites."""

import json
import re

import pytest
import suite
from comparison import FAILED, SKIPPED, document, timed
from conftest import ROOT


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
    text = transposed.html
    section = text[text.index('data-route="/sgemm">') :]
    tree = re.search(r'<details class="tree".*?</details>', section, re.DOTALL)[0]
    tree = re.sub(r"\s+", " ", tree)
    inside = r'<li><a href="#/sgemm/naive">naive</a> <span>500 GFLOP/s</span> <ul> <li><a href="#'
    assert inside + "/sgemm/coalesced" in tree
    assert '<li class="best"><a href="#/sgemm/pipelined">' in tree
    assert "cublas</a> <small>library</small>" in tree
    assert tree.count("<ul>") == tree.count("</ul>") == 6


def test_samples_that_were_kept_are_told(report, tmp_path):
    wanted = ("sgemm/tiled/m:4096", "sgemm/naive/m:4096", "roof/")
    content = suite.only(suite.document(), *wanted)
    name = next(r["name"] for r in content["benchmarks"] if r["name"].startswith("sgemm/tiled"))
    entry = {"name": name, "nanoseconds": [1e6 + i for i in range(99)] + [9e6]}
    (tmp_path / "0.samples.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")
    made = report(content)
    assert made.code == 0
    page = made.page
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
        heads.append(suite.only(head, "sgemm/tiled/", "roof/"))
    made = report(*heads[::-1])
    assert made.code == 0
    page = made.page
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
    made = report(
        json.loads((ROOT / "results/nvidia-h200/study.json").read_text(encoding="utf-8")),
        options=("--filter", "^(roof|sgemm/(producer_warps|stream_k))/"),
    )
    assert made.code == 0
    text = made.html
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
    content = suite.only(suite.document(), "sgemm/", "roof/")
    for row in content["benchmarks"]:
        if row["name"].startswith(f"sgemm/tiled/{headline}"):
            row |= {"skipped": True, "skip_message": "too large"}
        elif row["name"].startswith("sgemm/vectorised/"):
            row |= FAILED
        elif "/m:8192/" in row["name"]:
            row["flops_per_second"] *= 1.5  # the fastest
    gone = f"sgemm/register_tile/{headline}"
    content["benchmarks"] = [r for r in content["benchmarks"] if not r["name"].startswith(gone)]
    made = report(content)
    assert made.code == 0

    def told(rung: str) -> str:
        pattern = rf'data-route="/sgemm/{rung}">(.*?)<h2>Source'
        (section,) = re.findall(pattern, made.html, re.DOTALL)
        return " ".join(re.sub("<[^>]*>", " ", section).split())

    assert "At m = n = k = 4096 speed" in told("naive")
    wanted = "At m = n = k = 8192 headline m = n = k = 4096: {} speed"
    assert wanted.format("skipped: too large") in told("tiled")
    assert wanted.format("not measured") in told("register_tile")
    path = "path naive → coalesced → tiled → register_tile → vectorised"
    wanted = f"Not measured headline m = n = k = 4096: error: wrong {path}"
    assert told("vectorised").endswith(wanted)


def test_results_of_another_suite_have_rows_and_say_why_no_plots(report):
    made = report(document({"BM_copy/8": timed(10), "BM_copy/9": SKIPPED}))
    assert made.code == 0
    page = made.page
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
    heads = [suite.document(), suite.document(0.5, gpu_name="NVIDIA A100", gpu_uuid="other")]
    heads = [suite.only(head, "transpose/", "roof/") for head in heads]
    for head in heads:
        head["benchmarks"] = [row for row in head["benchmarks"] if "16384" not in row["name"]]
    made = report(*heads, options=("--filter", "^transpose/.*/rows:8192.*element:4"))
    assert made.code == 0
    page = made.page
    assert {a["value"] for a in page.all("option")} == {"1", "2"}
    shown = {(a.get("data-run"), a.get("data-route")) for a in page.all("section")}
    assert {("1", "/transpose/padded"), ("2", "/transpose/padded")} <= shown
    assert "#/transpose/padded?gpu=2" in {a["href"] for a in page.all("a")}
    assert "GPUs side by side" in [text for _, text in page.texts]


def test_each_file_is_told_of_by_its_own_commit(report):
    timed_at, counted_at = (suite.only(suite.document(), "smem_layout/") for _ in range(2))
    counted_at["context"] |= {"git_commit": "fedcba9876543210", "counters": "Nsight Compute 2025.3"}
    made = report(counted_at, timed_at)
    assert made.code == 0
    texts = [text for _, text in made.page.texts]
    counted = "NVIDIA H200 fedcba9, Nsight Compute 2025.3"
    assert {"NVIDIA H200 0123456", counted} <= set(texts)
    sources = {text.rpartition(";")[2] for text in texts if text.startswith("Source of ")}
    assert sources == {f" the results are of {commit}." for commit in ("0123456", "fedcba9")}


def test_emulated_results_have_what_was_counted(report):
    results = ROOT / "results/emulated-h200/study.json"
    content = json.loads(results.read_text(encoding="utf-8"))
    content = suite.only(content, "transpose/padded/")
    made = report(content)
    assert made.code == 0
    page = made.page
    names = [name for _, name in page.block("counters-1")["names"]]
    assert "shared_load_wavefronts_per_request" in names
    assert "/transpose/padded" in page.routes()
    assert "speed" not in [title for title, _ in page.block("rows-1")["columns"]]

    made = report(content, document({"BM_copy": timed(10)}))
    assert made.code == 0
    assert made.page.block("rows-1")["rows"][0]["name"] == "BM_copy"
