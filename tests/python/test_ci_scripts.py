# SPDX-License-Identifier: MIT
"""The scripts that jobs of CI run: what they print and write, and how they end."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import emulated
import pytest
import suite
from comparison import document, timed
from conftest import ROOT
from fake_program import compiled
from shell import run

SAME = {"a": timed(1000), "b": timed(500)}
SLOWER = {"a": timed(1100), "b": timed(500)}


def python(path: Path) -> None:
    """Make what starts the Python of the tests, with its packages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]
    done = run(["git", *who, *arguments], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path) -> Path:
    """A repository with the project's scripts."""
    folder = tmp_path / "repository"
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__py*"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / ".gitignore").write_text(".venv\nbuild\n")
    python(folder / ".venv/bin/python")
    git(folder, "init", "-q")
    return folder


def commit(folder: Path, name: str) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "--allow-empty", "-m", name)
    return git(folder, "rev-parse", "HEAD")


def test_plan_takes_the_commit_that_head_left_base_at(repository):
    first = commit(repository, "first")
    git(repository, "checkout", "-q", "-b", "topic")
    head = commit(repository, "head")
    git(repository, "checkout", "-q", "main")
    commit(repository, "since")
    script = repository / "scripts/ci/plan"
    done = run([script], repository, BASE="main", HEAD="topic", GPUS='["h200", "l4", "l4"]')
    assert done.stdout == f'base={first}\nhead={head}\ngpus=["h200", "l4"]\n', done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"BASE": "nowhere"},
        {"BASE": "--all"},
        {"BASE": "topic"},
        {"GPUS": "h200"},
        {"GPUS": "[]"},
        {"GPUS": '["a b"]'},
        {"GPUS": '["$(id)"]'},
        {"GPUS": '{"a": 1}'},
    ],
    ids=lambda wrong: "=".join(*wrong.items()),
)
def test_plan_refuses_what_it_cannot_compare_or_run(repository, wrong):
    commit(repository, "first")
    git(repository, "checkout", "-q", "-b", "topic")
    commit(repository, "head")
    given = {"BASE": "main", "HEAD": "topic", "GPUS": '["h200"]'} | wrong
    done = run([repository / "scripts/ci/plan"], repository, **given)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("plan: ")


SETUP = r"""
configure() { mkdir -p build/default; }
has_cuda_build() { true; }
compile() {
  [ ! -e broken ] || return 1
  cp plan.json build/default/
  printf '#!/bin/sh\nexec %s -IS %s %s "$@"\n' PYTHON FAKE "$PWD/build/default" >build/default/"$1"
  chmod +x build/default/"$1"
}
"""


def test_bench_measures_what_each_commit_builds(repository, tmp_path):
    """With a stand-in for the build: of each commit another file is what it is to measure."""
    with (repository / "scripts/setup.sh").open("a") as file:
        file.write(SETUP.replace("PYTHON", sys.executable).replace("FAKE", str(compiled())))
    commits = []
    for name, rows in (("one", {}), ("two", {"mul/tiled/n:64/manual_time": "wrong"})):
        plan = {"rows": rows, "context": {"git_commit": name}}
        (repository / "plan.json").write_text(json.dumps(plan))
        commits.append(commit(repository, name))
    (repository / "broken").touch()
    commits.append(commit(repository, "does not build"))
    script, out = repository / "scripts/ci/bench", tmp_path / "out"
    flags = ["--filter", "^mul/tiled", "--split", "none", "--processes", "1"]
    done = run([script, *commits[:2], out, *flags], tmp_path)
    assert done.returncode == 1, done.stderr  # a row failed
    assert {path.name for path in out.iterdir()} == {"base.json", "head.json", "exit_code"}
    assert (out / "exit_code").read_text() == "1\n"
    sides = [json.loads((out / f"{side}.json").read_text()) for side in ("base", "head")]
    assert [side["context"]["git_commit"] for side in sides] == ["one", "two"]
    assert sum("error_message" in row for row in sides[1]["benchmarks"]) == 1

    broken = run([script, *commits[1:], tmp_path / "broken", *flags], tmp_path)  # trees are there
    assert broken.returncode == 1
    assert f"bench: head, {commits[2]}: ladder_bench does not build" in broken.stderr
    assert list((tmp_path / "broken").iterdir()) == []


def test_collect_shows_its_summary_and_returns_the_exit_code(repository, artifacts, tmp_path):
    artifacts("h200", SAME, SLOWER)
    shown = tmp_path / "shown.md"
    shown.write_text("before\n")
    script = repository / "scripts/ci/collect"
    done = run([script, "in", "h200,l4", "out"], tmp_path, GITHUB_STEP_SUMMARY=str(shown))
    assert done.returncode == 1, done.stderr
    assert shown.read_text() == "before\n" + (tmp_path / "out/summary.md").read_text()
    assert "l4: MISSING" in done.stdout


@pytest.mark.parametrize(
    ("head", "threshold", "code", "verdict", "line"),
    [
        (SLOWER, "", 1, "regression", "regression: 1 SLOWER"),
        (SLOWER, "0.2", 0, "pass", "pass: "),
        (None, "", 3, "unreadable", "ladder: head.json: No such file"),
    ],
    ids=["regression", "threshold", "unreadable"],
)
def test_the_action_for_other_repositories(tmp_path, head, threshold, code, verdict, line):
    suite.write(tmp_path / "base.json", document(SAME))
    if head:
        suite.write(tmp_path / "head.json", document(head))
    installed = tmp_path / "bin/ladder"
    python(installed)
    installed.write_text(installed.read_text().replace('"$@"', '-m ladder "$@"'))
    given = {"BASE": "base.json", "HEAD": "head.json", "THRESHOLD": threshold}
    environment = given | {
        "PATH": f"{installed.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "scripts"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    done = run([ROOT / "scripts/ci/compare"], tmp_path, **environment)
    assert done.returncode == code, done.stderr
    outputs = (tmp_path / "output").read_text().splitlines()
    assert outputs[0] == f"verdict={verdict}"
    assert outputs[1].startswith(f"line={line}")
    assert len(outputs) == 2
    summary = (tmp_path / "summary").read_text()
    if verdict == "unreadable":
        assert summary.startswith(f"### Benchmarks: {verdict}\n")
        assert line in summary
    else:
        assert "Against base: " in summary
        assert (tmp_path / "bench-report/report.html").exists()


def test_plots_tells_what_is_not_of_the_results(repository):
    for folder in ("nvidia-h200", "emulated-h200"):
        (repository / "results" / folder).mkdir(parents=True)
    emulated.write(repository / "results/emulated-h200")
    committed = repository / "plots"
    committed.mkdir()
    study = suite.only(suite.document(), "transpose/naive")
    suite.write(repository / "results/nvidia-h200/study.json", study)
    (repository / "README.md").write_text("<!-- ladder:table transpose -->\n<!-- ladder:end -->\n")
    (committed / "figures.txt").write_text("overview\ntranspose-climb\n")
    for name in ("overview.svg", "stale.svg"):
        (committed / name).write_text("old")
    script, new = repository / "scripts/ci/plots", repository / "build/new"
    done = run([script, new], repository)
    assert done.returncode == 1
    assert re.search(r"^Files plots/overview.svg and .* differ$", done.stdout, re.MULTILINE)
    assert "Only in plots: stale.svg\n" in done.stdout
    assert f"Only in {new}/plots: transpose-climb.svg\n" in done.stdout
    assert "+| `naive` |" in done.stdout
    (committed / "stale.svg").unlink()
    shutil.copytree(new / "plots", committed, dirs_exist_ok=True)
    shutil.copy(new / "README.md", repository)
    done = run([script, new], repository)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_gpus_are_compared_by_their_results(repository, tmp_path):
    for gpu in ("H100", "H200"):
        folder = repository / f"results/nvidia-{gpu.lower()}"
        folder.mkdir(parents=True)
        study = suite.document(gpu_name=f"NVIDIA {gpu}")
        suite.write(folder / "study.json", suite.only(study, "transpose/tile/"))
    new, summary = tmp_path / "new", tmp_path / "summary"
    done = run([repository / "scripts/ci/gpus", new], repository, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 0, done.stderr
    assert "| NVIDIA H100 | NVIDIA H200 |" in re.sub(r" \(\w+\)", "", summary.read_text())
    assert "H200" in (new / "gpus.svg").read_text()
    assert "NVIDIA H200" in (new / "report.html").read_text()
