# SPDX-License-Identifier: MIT
"""The workflows, the action and the scripts: well formed, and they call what is there."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from ladder.commands.cli import main
from shell import run

WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))


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
