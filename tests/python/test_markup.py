# SPDX-License-Identifier: MIT
"""What files say reaches a reader of Markdown as it stands, whatever marks are in it."""

import shutil

import pytest
import suite
from comparison import document
from ladder.commands.cli import main
from ladder.io.results import load_results
from ladder.report.markdown import aligned, code, escape, table
from ladder.report.plots import style
from markdown_it import MarkdownIt

MARKS = [
    "Run<`anonymous-namespace'::Fast`, *x*>",
    "vector<int>, a|b",
    "a\\|b\\\\|`c`",
    "_init_ and BM_x_y __all__",
    "~~gone~~ [a](b) ![c](d) <b>&amp;</b> $x$ #1 **",
    "two\nlines  here",
]


def cells(text: str) -> list[list[str]]:
    """Return the texts of a table's cells as a reader sees them, row by row."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    rows: list[list[str]] = []
    before = ""
    for token in parser.parse(text):
        if token.type == "tr_open":
            rows.append([])
        elif before == "td_open":
            parts = [part for part in token.children if part.type != "html_inline"]
            assert {part.type for part in parts} <= {"text", "code_inline"}, token.content
            rows[-1].append("".join(part.content for part in parts))
        before = token.type
    return [row for row in rows if row]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("text", MARKS)
def test_a_cell_shows_what_was_written(text):
    lines = [{"rung": code(text), "idea": escape(text), "note": "x|y"}]
    assert cells(table(lines)) == [[flat(text), flat(text), "x|y"]]


def test_plain_tables_keep_a_row_to_a_line():
    assert aligned([{"a": "two\nlines", "b": "x"}]).splitlines()[1:] == ["two lines  x"]


def test_names_that_need_no_care_are_code_spans_as_ever():
    assert code("sgemm/tiled/m:4096") == "`sgemm/tiled/m:4096`"


@pytest.fixture
def marked(tmp_path):
    """A file whose names, labels and reasons are MARKS."""
    made = document({name: {"label": name} for name in MARKS})
    made["benchmarks"][1] |= {"error_occurred": True, "error_message": MARKS[4]}
    made["context"] = {"host_name": "a|b", "executable": "./*bench*"}
    return str(suite.write(tmp_path / "x.json", made))


@pytest.mark.parametrize(
    ("command", "column"),
    [
        (["table", "{}"], 0),
        (["trend", "{}", "{}.json", "--format", "markdown"], 0),
        (["compare", "{}", "{}", "--all", "--format", "markdown"], 1),
    ],
)
def test_each_report_shows_all_names(marked, capsys, command, column):
    shutil.copy(marked, f"{marked}.json")  # a second run
    assert main([part.format(marked) for part in command]) == 0
    shown = [row[column] for row in cells(capsys.readouterr().out)]
    failed = MARKS[1] if command[0] == "trend" else ""
    assert shown == [flat(name) for name in MARKS if name != failed]


def test_the_summary_shows_all_names_and_reasons(marked, tmp_path):
    assert main(["report", marked, "-o", str(tmp_path / "out")]) == 0
    rows = cells((tmp_path / "out/summary.md").read_text(encoding="utf-8"))
    assert (rows[0][0], rows[0][-1]) == (flat(MARKS[1]), f"error: {MARKS[4]}")
    assert [row[0] for row in rows[1:]] == list(map(flat, MARKS))


def test_titles_of_host_code_name_program_and_host(marked, capsys):
    assert main(["table", marked]) == 0
    assert capsys.readouterr().out.startswith("\\*bench\\*, host a\\|b, x.json.\n")


def test_labels_and_reasons_of_a_foreign_file(data, capsys):
    assert main(["table", str(data / "cases/label_markup.json")]) == 0
    notes = [row[-1] for row in cells(capsys.readouterr().out)]
    assert notes == ["vector<int>, a|b", "error: no device <gpu0> found", ""]


def test_names_of_results_without_a_gpu_tell_the_host(data):
    results = load_results(data / "cases/label_markup.json")
    assert style.distinct_names(results) == ["bench, host ci, label_markup.json"]
