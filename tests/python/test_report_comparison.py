# SPDX-License-Identifier: MIT
"""A report against a base, its test cases for CI, and its summary, which fits a job's page."""

import re
from xml.etree import ElementTree

import pytest
import suite
from comparison import FAILED, SKIPPED, document, timed
from ladder.io.results import load_results
from ladder.report import comparison_text, summary
from page import Report


def cases(made: Report) -> dict[str, list[str]]:
    """The outcomes of the test cases by their names."""
    root = ElementTree.parse(made.folder / "junit.xml").getroot()
    found = {case.get("name"): [outcome.tag for outcome in case] for case in root}
    assert root.get("tests") == str(len(root)) == str(len(found))
    for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert root.get(plural) == str(sum(tag in outcomes for outcomes in found.values()))
    return found


def test_a_comparison_is_told_first_and_ends_as_compare_does(report):
    rows = {f"row/{i}": timed(100) for i in range(5)}
    head = rows | {"row/1": timed(120), "row/2": timed(80), "row/3": FAILED}
    del head["row/4"]
    made = report(document(head), base=document(rows))
    assert made.code == 1
    page = made.page
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

    text = made.summary
    assert "| SLOWER | row/1 | 100 us | 120 us | 0.833 | 0.826–0.841 |" in text
    assert text.index("SLOWER") < text.index("Lost: 2 rows") < text.index("Other benchmarks")
    assert text.count("| MISSING | row/4 |") == 2
    assert "SAME |" not in text

    failed = {f"row/{i}": ["failure"] for i in (1, 3, 4)}
    assert cases(made) == {f"row/{i}": [] for i in (0, 2)} | failed


def test_without_a_base_what_failed_is_in_error(report):
    made = report(document({"a": timed(10), "b": FAILED, "c": SKIPPED}))
    assert made.code == 0
    assert cases(made) == {"a": [], "b": ["error"], "c": ["skipped"]}


def test_each_file_is_a_process_of_its_side(report, tmp_path):
    base = [suite.write(tmp_path / f"b{us}.json", document({"a": timed(us)})) for us in (95, 105)]
    heads = [document({"a": timed(us)}) for us in (98, 110, 99)]
    made = report(*heads, options=("--base", *base))
    assert made.code == 0
    assert re.search(r"1 NOISY .*2 and 3 processes", made.summary)


def test_known_losses_are_allowed(report):
    base = document({"a": timed(100), "b/1": timed(100)})
    assert report(document({"a": timed(100)}), base=base).code == 4
    made = report(document({"a": timed(100)}), base=base, options=("--allow", "^b/"))
    assert made.code == 0
    assert cases(made) == {"a": [], "b/1": ["skipped"]}
    made = report(document({"a": timed(100)}), base=base, options=("--filter", "^b/"))
    assert made.code == 4  # head has no row at all
    assert cases(made) == {"b/1": ["failure"]}


def test_what_cannot_be_compared_is_reported_all_the_same(report):
    base = document({"a": timed(10)}, cache_mode="warm")
    made = report(document({"a": timed(10)}), base=base)
    assert made.code == 5
    assert "different cache modes" in made.html
    assert "different cache modes" in made.summary


def test_a_comparison_goes_by_noise(report, tmp_path):
    noise = {"context": {"gpu_name": "NVIDIA H200", "cache_mode": "cold"}}
    noise["rows"] = {"a": {"floor": 0.1, "spread": 0.2, "seconds": 1e-5, "processes": 5}}
    options = ("--noise", suite.write(tmp_path / "noise.txt", noise))
    base, head = document({"a": timed(10)}), document({"a": timed(11)})
    assert report(head, base=base).code == 1
    assert report(head, base=base, options=options).code == 0
    assert report(head, options=options).code == 2


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
