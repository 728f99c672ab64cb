# SPDX-License-Identifier: MIT
"""Ladders are trees: gains are over the parent, choices are of what they chose."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import pytest
import suite
from ladder.analysis.study import Study, studies
from ladder.commands.cli import main
from ladder.io.results import load_results
from ladder.model.catalogue import parse
from ladder.model.ceilings import PERCENT, Ceilings
from ladder.report import speed_tables, tree
from products import CATALOGUE, SPEEDS, cells, document


@pytest.fixture
def file(tmp_path) -> str:
    return str(suite.write(tmp_path / "a.json", document()))


@pytest.fixture
def study(file) -> Study:
    return studies(*load_results(file))[1]


@pytest.mark.parametrize(("ring", "best"), [(2.009, "tiled"), (2.011, "ring")])
def test_of_two_steps_as_fast_the_one_that_is_launched_is_the_best(
    tmp_path, monkeypatch, ring, best
):
    monkeypatch.setitem(SPEEDS, "ring", (ring, 9.5))
    made = studies(*load_results(suite.write(tmp_path / "a.json", document())))[1]
    assert made.best_step("n:8").rung == best


def test_a_path_goes_from_a_rung_to_its_root():
    _, ladder = parse(json.dumps(CATALOGUE))
    assert [rung.name for rung in ladder.path("ring")] == ["ring", "tiled", "naive"]
    assert [rung.name for rung in ladder.path("serial")] == ["serial"]
    with pytest.raises(ValueError, match="mul has no rung 'fused'"):
        ladder.path("fused")


def test_gains_are_over_the_parent_at_the_same_case(study):
    gains = {(row.rung, row.case): study.gain(row) for row in study.rows}
    assert gains["tiled", "n:64"] == pytest.approx(5)
    assert gains["ring", "n:64"] == pytest.approx(0.95)
    assert gains["split", "n:64"] == pytest.approx(5)  # not over the ring above it
    assert gains["split", "n:8"] == pytest.approx(0.5)
    for root in ("serial", "naive", "fastest"):
        assert math.isnan(gains[root, "n:64"])


def test_tables_name_the_parent_and_the_choice(file, capsys):
    assert main(["table", file, "--ladder", "mul"]) == 0
    out = capsys.readouterr().out
    found = cells(out)
    assert "× parent" in found["rung"]
    assert "5.00× tiled" in found["split"]
    assert "0.95× tiled" in found["ring"]
    assert {"2.00 (tiled)", "49.5 (split)"} <= set(found["fastest` (choice)"])
    assert "In parentheses: the rung chosen." in out


def test_a_path_is_shown_from_the_root_up(file, capsys):
    assert main(["table", file, "--path", "mul/ring"]) == 0
    out = capsys.readouterr().out
    assert "The path to `ring`, at n 64.\n" in out
    found = cells(out)
    assert list(found)[2:] == ["naive", "tiled", "ring"]
    assert {"9.50 TFLOP/s", "0.95× tiled"} <= set(found["ring"])
    assert found["ring"][-1].startswith("What a ring costs.")
    assert "| --: | :-- |\n" in out  # words, unlike numbers, begin at the left


def test_the_help_says_which_table_has_more_of_the_path_to_the_best(file, capsys):
    with pytest.raises(SystemExit):
        main(["table", "--help"])
    assert "--ladder climb/LADDER" in " ".join(capsys.readouterr().out.split())
    assert main(["table", file, "--ladder", "climb/mul"]) == 0
    assert "| rung | idea | speed | gain |" in capsys.readouterr().out


def test_the_path_of_a_choice_is_that_of_what_it_chose(file, capsys):
    assert main(["table", file, "--path", "mul/fastest"]) == 0
    out = capsys.readouterr().out
    assert "The path to `fastest`, which chose `split`, at n 64.\n" in out
    assert list(cells(out))[2:] == ["naive", "tiled", "split"]


def test_choices_have_a_line_per_ladder(file):
    (results,) = load_results(file)
    _, row = speed_tables.choices(results).rsplit("\n", 1)
    assert row == "| Products | `tiled` at 8; `split` at 64 |"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("mul/fused", "mul's rungs are "),
        ("fold/naive", "no timed results of a ladder fold\n"),
    ],
)
def test_a_path_to_no_rung_is_refused(file, capsys, path, why):
    assert main(["table", file, "--path", path]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"ladder: --path {path}: {why}")
    assert told.count("\n") == 1


def test_a_path_is_written_as_markdown_alone(file, capsys):
    assert main(["table", file, "--path", "mul/ring", "--format", "csv"]) == 2
    assert "--path does not go with" in capsys.readouterr().err


def test_tidy_rows_tell_the_gain_and_what_was_chosen(file, capsys):
    assert main(["table", file, "--format", "json", "--ladder", "mul"]) == 0
    rows = {(r["rung"], r["case"]): r for r in json.loads(capsys.readouterr().out)}
    assert rows["split", "n:64"]["gain"] == pytest.approx(5)
    assert rows["naive", "n:64"]["gain"] is None
    assert rows["fastest", "n:8"]["chosen"] == "tiled"
    assert main(["table", file, "--format", "csv"]) == 0
    (row,) = [
        row
        for row in csv.DictReader(io.StringIO(capsys.readouterr().out))
        if row["name"].startswith("mul/ring/n:8/")
    ]
    assert float(row["gain"]) == pytest.approx(0.75)


def test_a_choice_of_a_rung_that_is_not_there_is_named(tmp_path, capsys):
    broken = document()
    broken["benchmarks"][-1]["label"] = "chosen:fused"
    assert main(["table", str(suite.write(tmp_path / "b.json", broken))]) == 3
    assert "lists no rung 'fused', which was chosen" in capsys.readouterr().err


def test_the_report_tells_paths_gains_choices_and_signs(tmp_path):
    made = document()
    for row in made["benchmarks"]:
        if row["name"].startswith("mul/ring/"):
            row |= {"late_samples": 1.0, "warp_instructions": 1e6, "stall_drain": 0.02}
        elif row["name"].startswith("mul/tiled/"):
            row |= {"warp_instructions": 2e6, "stall_drain": 0.01}
    file = suite.write(tmp_path / "a.json", made)
    assert main(["report", str(file), "-o", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report/report.html").read_text(encoding="utf-8")

    def told(route: str) -> str:
        (section,) = re.findall(rf'data-route="/mul{route}">(.*?)</section>', page, re.DOTALL)
        return " ".join(re.sub("<[^>]*>", " ", section.replace("<wbr>", "")).split())

    assert "path naive → tiled → ring shows What a ring costs." in told("/ring")
    assert "9.50 TFLOP/s‡ × parent 0.95× tiled" in told("/ring")
    changed = "counter tiled ring warp_instructions 2,000,000 1,000,000 × 0.500 Source"
    assert changed in told("/ring")
    assert "What it changed" not in told("/naive")
    assert "chose split" in told("/fastest")
    assert "16% of roof/bf16 / 3 " in told("/fastest")  # the lower of two
    assert "‡ in some samples the GPU may have waited for the host" in told("")
    assert "fastest (split)" in page  # of all rows
    assert "ok: in some samples the GPU may have waited for the host" in page


def test_a_rung_that_skips_the_headline_shows_the_case_nearest_to_it(tmp_path):
    """Not its fastest case, which may be of easier input or one that it is not meant for."""
    cases = {"n:64/keys:zipf": 2.0, "n:8/keys:uniform": 3.0, "n:8/keys:zipf": 9.0}
    other = {"n:4/keys:zipf": 8.0, "n:2/keys:zipf": 7.0, "n:8/keys:uniform": 1.0}
    base = suite.rung("base", "Base.")
    rungs = [base, suite.rung("near", "Near.", builds_on="base")]
    rungs.append(suite.rung("skew", "Skew.", builds_on="base", meant_for=["n:2/keys:zipf"]))
    ladder = CATALOGUE[1] | {
        "axes": suite.axes("n", keys=["uniform", "zipf"]),
        "headline": "n:64/keys:uniform",
        "rungs": rungs,
    }
    speeds = {"base": {"n:64/keys:uniform": 5.0}, "near": cases, "skew": other}
    rows = [
        suite.row(f"mul/{rung}/{case}", speed * 1e12, 1e9, 1e9, bytes=1e7)
        for rung, found in speeds.items()
        for case, speed in found.items()
    ]
    context = suite.document()["context"] | {"ladders": json.dumps([ladder])}
    file = suite.write(tmp_path / "a.json", {"context": context, "benchmarks": rows})
    (found,) = studies(*load_results(file))
    leads = {rung.name: found.lead(rung).case for rung in found.rungs}
    assert leads == {
        "base": "n:64/keys:uniform",
        "near": "n:8/keys:uniform",
        "skew": "n:2/keys:zipf",
    }
    shown = tree.mermaid(found)
    assert 'near["near<br/>3.00 TFLOP/s at 8"]' in shown
    assert 'skew["skew<br/>7.00 TFLOP/s at 2, zipf"]' in shown


# Ceilings


def test_a_ceiling_is_the_lowest_of_those_listed_in_the_ladders_quantity(study):
    rows = {(row.rung, row.case): row for row in study.rows}
    split = rows["split", "n:64"]
    assert study.ceiling_of(split) == pytest.approx(3e14)  # not 4e12 bytes/s of 100 FLOP a byte
    assert study.percent(split) == pytest.approx(100 * 50 / 300)
    assert study.spell_ceiling(split) == "`roof/bf16` / 3 or `roof/read`"
    assert study.spell_lowest_ceiling(split) == "`roof/bf16` / 3"
    assert math.isnan(study.percent(rows["tiled", "n:64"]))  # lists none


def test_a_choice_has_the_ceiling_of_what_it_chose(study):
    rows = {row.case: row for row in study.rows if row.rung == "fastest"}
    assert study.percent(rows["n:64"]) == pytest.approx(100 * 49.5 / 300)
    assert math.isnan(study.percent(rows["n:8"]))


def test_percents_are_filled_in_from_the_ceilings_of_what_was_chosen():
    made = document()
    rows = {row["run_name"]: [row] for row in made["benchmarks"]}
    ceilings = Ceilings(parse(made["context"]["ladders"]), rows)
    name = "mul/fastest/n:{}/manual_time".format
    roofs = {"roof/read/manual_time", "roof/bf16/manual_time"}
    assert set(ceilings.rows(name(64))) == roofs  # whichever it chooses
    ceilings.fill(rows)
    assert rows[name(64)][0][PERCENT] == pytest.approx(100 * 49.5 / 300)
    assert PERCENT not in rows[name(8)][0]
