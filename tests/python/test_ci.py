# SPDX-License-Identifier: MIT
"""Jobs that compare commits on several GPUs: what fails, what is shown, what the workflows call."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import emulated
import pytest
import suite
from comparison import FAILED, document, timed
from conftest import ROOT
from fake_program import compiled
from ladder.commands.cli import main

SHA = "0123456789abcdef0123456789abcdef01234567"
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))
SAME = {"a": timed(1000), "b": timed(500)}
SLOWER = {"a": timed(1100), "b": timed(500)}
FASTER = {"a": timed(900), "b": timed(500)}


@pytest.fixture
def artifacts(tmp_path):
    """Lay out what was downloaded of a GPU; return its folder."""

    def make(gpu: str, base: dict, head: dict, ended: str | None = "0", sha: str = SHA) -> Path:
        folder = tmp_path / "in" / f"bench-{gpu}-{sha}"
        folder.mkdir(parents=True)
        for side, rows in (("base", base), ("head", head)):
            suite.write(folder / f"{side}.json", document(rows, gpu_name=f"NVIDIA {gpu.upper()}"))
        if ended is not None:
            (folder / "exit_code").write_text(f"{ended}\n")
        return folder

    return make


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


# The scripts, in a repository of their own


def python(path: Path) -> None:
    """Make what starts the Python of the tests, with its packages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)


def run(command: list[str | Path], folder: Path, **environment: str):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "GIT_"))}
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


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
    for wrong in (
        {"BASE": "nowhere"},
        {"BASE": "--all"},
        {"BASE": "topic"},
        {"GPUS": "h200"},
        {"GPUS": "[]"},
        {"GPUS": '["a b"]'},
        {"GPUS": '["$(id)"]'},
        {"GPUS": '{"a": 1}'},
    ):
        given = {"BASE": "main", "HEAD": "topic", "GPUS": '["h200"]'} | wrong
        done = run([script], repository, **given)
        assert (done.returncode, done.stdout) == (2, ""), wrong
        assert done.stderr.startswith("plan: "), wrong


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
    content = suite.document()
    rows = [row for row in content["benchmarks"] if row["name"].startswith("transpose/naive")]
    for folder in ("nvidia-h200", "emulated-h200"):
        (repository / "results" / folder).mkdir(parents=True)
    emulated.write(repository / "results/emulated-h200")
    committed = repository / "plots"
    committed.mkdir()
    suite.write(repository / "results/nvidia-h200/study.json", content | {"benchmarks": rows})
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
    content = suite.document()
    rows = [row for row in content["benchmarks"] if row["name"].startswith("transpose/tile/")]
    for gpu in ("H100", "H200"):
        folder = repository / f"results/nvidia-{gpu.lower()}"
        folder.mkdir(parents=True)
        context = content["context"] | {"gpu_name": f"NVIDIA {gpu}"}
        suite.write(folder / "study.json", {"context": context, "benchmarks": rows})
    new, summary = tmp_path / "new", tmp_path / "summary"
    done = run([repository / "scripts/ci/gpus", new], repository, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 0, done.stderr
    assert "| NVIDIA H100 | NVIDIA H200 |" in re.sub(r" \(\w+\)", "", summary.read_text())
    assert "H200" in (new / "gpus.svg").read_text()
    assert "NVIDIA H200" in (new / "report.html").read_text()


# The workflows


def test_the_workflows_pass_actionlint():
    if not (actionlint := shutil.which("actionlint")):
        pytest.skip("no actionlint")
    done = run([actionlint, *(path for path in WORKFLOWS if "workflows" in path.parts)], ROOT)
    assert done.returncode == 0, done.stdout


def test_the_workflows_and_the_action_fit_githubs_schema():
    pytest.importorskip("check_jsonschema")
    for kind in ("workflows", "actions"):
        paths = [path for path in WORKFLOWS if kind in path.parts]
        schema = f"vendor.github-{kind}"
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *paths]
        done = run(command, ROOT)
        assert done.returncode == 0, done.stdout


def test_the_scripts_pass_shellcheck():
    if not (shellcheck := shutil.which("shellcheck")):
        pytest.skip("no shellcheck")
    scripts = sorted((ROOT / "scripts/ci").iterdir())
    done = run([shellcheck, "--external-sources", "--source-path", ROOT, *scripts], ROOT)
    assert done.returncode == 0, done.stdout


def steps(path: Path) -> list[dict]:
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    jobs = [content["runs"]] if "runs" in content else content.get("jobs", {}).values()
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_what_is_there(path):
    if path.stem == "zizmor":
        pytest.skip("calls nothing")
    found = steps(path)
    assert found
    called = set()
    for step in found:
        text = step.get("run", "")
        # What others may name has to come through the environment, for no shell to run it.
        assert "${{" not in text, text
        called |= set(re.findall(r"(?<![\w.])(?:scripts|\.ci)/[\w/]+", text))
        called |= set(re.findall(r"/\.\./\.\./\.\./([\w/]+)", text))
    assert called
    for name in called:
        assert os.access(ROOT / name, os.X_OK), name


def test_scripts_call_commands_that_exist(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    known = set(re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE))
    named = set()
    for path in [*WORKFLOWS, *(ROOT / "scripts/ci").iterdir()]:
        text = path.read_text(encoding="utf-8")
        named |= set(re.findall(r"(?:^\s*|[(`)] ?|-m )ladder (\w+)", text, re.MULTILINE))
    assert {"collect", "run", "gate", "report", "plot", "table"} <= named <= known


def test_a_pull_request_needs_a_label_to_run_here():
    yaml = pytest.importorskip("yaml")
    text = (ROOT / ".github/workflows/bench.yml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    triggers = content[True]  # what YAML 1.1 makes of `on`
    assert triggers.keys() == {"workflow_dispatch", "pull_request"}
    assert triggers["pull_request"] == {"types": ["labeled"]}
    assert content["permissions"] == {"contents": "read"}
    plan = content["jobs"].pop("plan")
    assert "github.event.label.name == 'bench'" in plan["if"]
    assert all("plan" in job["needs"] for job in content["jobs"].values())
