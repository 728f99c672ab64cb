# SPDX-License-Identifier: MIT
"""Samples that may have waited for the host are marked, explained and counted."""

from __future__ import annotations

import suite
from ladder.commands.cli import main
from ladder.io.results import load_results
from products import cells, document


def test_late_samples_are_marked_and_explained(tmp_path, capsys):
    made = document()
    for row in made["benchmarks"]:
        if row["name"].startswith("mul/tiled/"):
            row["late_samples"] = 3.0
        elif row["name"].startswith("mul/split/"):
            row |= {"late_samples": 1.0, "throttled": 1.0}
    file = str(suite.write(tmp_path / "late.json", made))
    assert main(["table", file]) == 0
    out = capsys.readouterr().out
    told = "in some samples the GPU may have waited for the host"
    assert {"2.00‡", "10.0‡"} <= set(cells(out)["tiled"])
    assert f"- ‡ `tiled`, `split`: {told} (n 8; n 64)" in out  # a line per reason, not per rung
    assert f"- ‡ {told}\n" in out  # of the overview, whose best rung has it
    assert "50.0†‡" in cells(out)["split"]
    assert main(["matrix", file, "--ladder", "mul"]) == 0
    assert f"‡: {told}" in capsys.readouterr().out


def test_late_samples_of_repetitions_add_up(tmp_path):
    made = document()
    row = made["benchmarks"][-1]
    made["benchmarks"] += [row | {"late_samples": 2.0}, row | {"late_samples": 3.0}]
    (results,) = load_results(suite.write(tmp_path / "b.json", made))
    assert results.rows[-1].late_samples == 5
