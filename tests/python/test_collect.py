# SPDX-License-Identifier: MIT
"""Jobs that compare commits on several GPUs: what fails, and what is told of each GPU."""

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
import suite
from comparison import FAILED, document, timed
from ladder.commands.cli import main

SAME = {"a": timed(1000), "b": timed(500)}
SLOWER = {"a": timed(1100), "b": timed(500)}
FASTER = {"a": timed(900), "b": timed(500)}


@pytest.fixture
def collected(tmp_path, capsys):
    """Collect what is there; return the exit code, the outcomes by GPU and the summary."""

    def collect(*options: str) -> tuple[int, dict[str, str], str]:
        out = tmp_path / "out"
        code = main(["collect", str(tmp_path / "in"), "-o", str(out), *options])
        said = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
        return code, said, (out / "summary.md").read_text(encoding="utf-8")

    return collect


def failures(folder: Path) -> set[tuple[str, str]]:
    """GPU and row of each test case that failed."""
    cases = ElementTree.parse(folder / "junit.xml").getroot()
    return {(c.get("classname"), c.get("name")) for c in cases if c.find("failure") is not None}


def test_one_report_has_all_gpus(artifacts, collected, tmp_path):
    artifacts("h200", SAME, SAME)
    artifacts("rtx-4090", SAME, FASTER)  # a dash in a name is no part of the commit
    code, said, summary = collected("--expect", "h200,rtx-4090")
    assert code == 0
    assert said["h200"].startswith("pass: 2 SAME")
    assert said["rtx-4090"].startswith("pass: 1 FASTER, 1 SAME")
    assert summary.startswith("### Benchmarks: pass\n")
    assert "| FASTER | rtx-4090: a | 1.00 ms | 900 us |" in summary
    assert "NVIDIA RTX-4090" in (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert failures(tmp_path / "out") == set()


def test_one_slower_gpu_fails_all(artifacts, collected, tmp_path):
    artifacts("h200", SAME, SLOWER)
    artifacts("l4", SAME, SAME)
    code, said, summary = collected("--expect", "h200,l4")
    assert code == 1
    assert said["h200"].startswith("regression: 1 SLOWER")
    assert said["l4"].startswith("pass")
    assert "| SLOWER | h200: a |" in summary
    assert failures(tmp_path / "out") == {("h200", "a")}
    assert collected("--threshold", "0.2")[0] == 0
    assert collected("--allow", "^a$")[0] == 0
    assert collected("--filter", "^b$")[0] == 0


def test_an_expected_gpu_that_did_not_report_is_missing(artifacts, collected, tmp_path):
    artifacts("h200", SAME, SAME)
    code, said, summary = collected("--expect", "l4, h200", "--allow-lost")
    assert code == 4
    assert said["l4"] == "MISSING: no results came"
    assert said["h200"].startswith("pass")
    assert "| l4 | MISSING | no results came |" in summary
    assert "| MISSING | l4: (all rows) |" in summary
    assert failures(tmp_path / "out") == {("l4", "(all rows)")}


@pytest.mark.parametrize("folder", [True, False], ids=["empty", "none"])
def test_an_empty_download_is_every_gpu_missing(collected, tmp_path, folder):
    if folder:
        (tmp_path / "in").mkdir()
    code, said, summary = collected("--expect", "h200,l4")
    assert code == 4
    assert set(said) == {"h200", "l4"}
    assert summary.startswith("### Benchmarks: lost coverage\n")
    assert failures(tmp_path / "out") == {("h200", "(all rows)"), ("l4", "(all rows)")}
    assert not (tmp_path / "out/report.html").exists()  # nothing to report of


def test_nothing_expected_and_nothing_there_is_wrong_usage(tmp_path, capsys):
    assert main(["collect", str(tmp_path), "-o", str(tmp_path / "out")]) == 2
    told = "no bench-<gpu>-<commit> in it, and --expect names no GPU"
    assert capsys.readouterr().err == f"ladder: {tmp_path}: {told}\n"


def test_a_broken_artifact_costs_no_other_gpu(artifacts, collected, tmp_path):
    (artifacts("l4", SAME, SAME) / "head.json").write_text('{"context": ')
    artifacts("h200", SAME, SLOWER)
    code, said, summary = collected("--expect", "h200,l4")
    assert code == 3
    assert said["l4"].startswith("unreadable: head.json: truncated or not JSON")
    assert said["h200"].startswith("regression")
    assert "| SLOWER | h200: a |" in summary
    assert (tmp_path / "out/report.html").exists()
    assert failures(tmp_path / "out") == {("h200", "a"), ("l4", "(all rows)")}


@pytest.mark.parametrize(
    ("ended", "why"),
    [
        (None, "its job ended early"),
        ("4", "not every row was run: ladder run ended with 4"),
        ("137", "not every row was run: ladder run ended with 137"),
    ],
)
def test_a_run_that_was_cut_off_is_lost_coverage(artifacts, collected, tmp_path, ended, why):
    """Its files are whole, and alike in both: neither has the rows that were not reached."""
    artifacts("h200", SAME, SAME, ended)
    code, said, summary = collected()
    assert code == 4
    assert said["h200"].startswith("lost coverage: 2 SAME")
    assert said["h200"].endswith(why)
    assert f"| MISSING | (all rows) |  |  |  |  | {why} |" in summary
    assert failures(tmp_path / "out") == {("h200", "(all rows)")}


def test_a_cut_off_run_hides_no_regression(artifacts, collected):
    artifacts("h200", SAME, SLOWER, None)
    assert collected()[0] == 1


def test_rows_that_failed_are_for_the_comparison_to_judge(artifacts, collected):
    """The run ends with 1 then."""
    artifacts("h200", {**SAME, "c": FAILED}, {**SAME, "c": FAILED}, "1")
    artifacts("l4", SAME, {**SAME, "b": FAILED}, "1")
    code, said, _ = collected()
    assert said["h200"].startswith("pass: 1 ERROR, 2 SAME")
    assert said["l4"].startswith("lost coverage")
    assert code == 4


def test_a_side_that_was_not_measured_is_missing(artifacts, collected):
    (artifacts("h200", SAME, SAME, None) / "head.json").unlink()
    code, said, _ = collected()
    assert (code, said["h200"]) == (4, "MISSING: no results of head: its job ended early")


def test_what_cannot_be_compared_is_refused_and_the_rest_is_not(artifacts, collected):
    folder = artifacts("h200", SAME, SAME)
    suite.write(folder / "head.json", document(SAME, gpu_name="NVIDIA L4"))
    artifacts("l4", SAME, SAME)
    code, said, summary = collected()
    assert code == 5
    assert said["h200"].startswith("incomparable: different GPUs: ")
    assert "| ERROR | h200: (all rows) |" in summary


def test_two_commits_of_one_gpu_are_not_mixed(artifacts, collected):
    artifacts("h200", SAME, SAME)
    artifacts("h200", SAME, SAME, sha="fedcba9")
    code, said, _ = collected()
    assert code == 3
    assert said["h200"].startswith("unreadable: results of one GPU twice: ")


def test_two_boards_of_one_model_are_two(artifacts, collected, tmp_path):
    for name, head in (("node-1", SAME), ("node-2", SLOWER)):
        folder = artifacts(name, SAME, SAME)
        suite.write(folder / "base.json", document(SAME))
        suite.write(folder / "head.json", document(head))
    code, said, _ = collected("--expect", "node-1,node-2")
    assert code == 1
    assert said["node-1"].startswith("pass")
    assert failures(tmp_path / "out") == {("node-2", "a")}


def test_processes_and_the_noise_of_each_gpu_are_taken_up(artifacts, collected, tmp_path):
    folder = artifacts("h200", SAME, SAME)
    for side in ("base", "head"):
        (folder / side).mkdir()
        (folder / f"{side}.json").rename(folder / side / "1.json")
        shutil.copy(folder / side / "1.json", folder / side / "2.json")
    artifacts("l4", SAME, SAME)
    noise = tmp_path / "noise"
    noise.mkdir()
    (noise / "h200.json").write_text("{}")
    code, said, _ = collected("--noise", str(noise))
    assert code == 3
    assert said["h200"].startswith(f"unreadable: {noise / 'h200.json'}: ")
    assert said["l4"].startswith("pass")
    (noise / "h200.json").unlink()
    code, said, _ = collected("--noise", str(noise))
    assert code == 0
    assert "2 processes per side)" in said["h200"]


@pytest.mark.parametrize("names", ["a b", "../x", "h200,a/b", '["h200"]'])
def test_a_name_that_no_artifact_can_have_is_wrong_usage(names, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["collect", str(tmp_path), "--expect", names, "-o", str(tmp_path / "out")])
    assert stop.value.code == 2
    assert "is not a name of a GPU" in capsys.readouterr().err
