# SPDX-License-Identifier: MIT
"""What the tests share: the data, a whole results file and the command as a user runs it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import emulated
import pytest
import suite
from comparison import document
from fake_program import Fake
from ladder.commands.cli import main
from ladder.io.results import Results, load_results
from ladder.measure import process
from page import Page, Report

ROOT = Path(__file__).resolve().parents[2]
SHA = "0123456789abcdef0123456789abcdef01234567"

gc.set_threshold(1_000_000)  # searches for garbage take a tenth of the tests' time


def pytest_collection_finish() -> None:
    """Search no more for garbage among modules and tests, which stay."""
    gc.freeze()


@cache
def committed(folder: str) -> Results:
    """The study of one folder of `results/`, which many tests read and none may change."""
    (found,) = load_results([*(ROOT / "results" / folder).glob("study.json*")])
    return found


@pytest.fixture(scope="session", autouse=True)
def _one_core():
    """Draw in the tests' own processes: these share the cores already, and put drawing to test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: {0})
        yield


@pytest.fixture(scope="session")
def data() -> Path:
    """Golden files."""
    return Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every ladder on one GPU."""
    return suite.write(tmp_path_factory.mktemp("whole") / "h200.json")


@pytest.fixture(scope="session")
def emulated_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of emulated results with their details."""
    return emulated.write(tmp_path_factory.mktemp("emulated-h200")).parent


@pytest.fixture(scope="session")
def ladder() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `python3 -m ladder` in a process of its own, with nothing installed."""

    def run(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts"), "PYTHONUTF8": "1"}
        command = [sys.executable, "-m", "ladder", *map(str, arguments)]
        options = {"capture_output": True, "text": True, "timeout": 300} | options
        return subprocess.run(command, env=environment, check=False, **options)

    return run


@pytest.fixture
def draw(monkeypatch, tmp_path):
    """Draw a document, or files, and return the figures by name, with what was warned of.

    Of named figures only those are drawn: to draw all takes most of a test's time.
    """
    from ladder.report import plots  # loads matplotlib, which most tests do without
    from ladder.report.plots import style

    finished = plots._finished

    def drawn(what: dict | Path | list[Path], *names: str) -> tuple[dict, list[str]]:
        figures = {}
        said: list[str] = []

        def named(makers: dict, *more) -> dict:
            return finished({n: m for n, m in makers.items() if not names or n in names}, *more)

        monkeypatch.setattr(plots, "_finished", named)
        monkeypatch.setattr(style, "save", lambda f, _, stem, __: figures.update({stem: f}) or [])
        files = suite.write(tmp_path / "a.json", what) if isinstance(what, dict) else what
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plots.draw(load_results(files), tmp_path, ["svg"], said.append)
        return figures, said

    return drawn


@pytest.fixture
def report(tmp_path, capsys):
    """Report documents, with those of a base or without."""

    def make(*heads: dict, base: dict | None = None, options: tuple = ()) -> Report:
        files = [str(suite.write(tmp_path / f"{i}.json", d)) for i, d in enumerate(heads)]
        given = ["--base", str(suite.write(tmp_path / "base.json", base))] if base else []
        code = main(["report", *files, "-o", str(tmp_path / "out"), *given, *map(str, options)])
        return Report(code, tmp_path / "out", capsys.readouterr().err)

    return make


@pytest.fixture(scope="session")
def transposed(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of two ladders of the suite, with figures, made once."""
    folder = tmp_path_factory.mktemp("report")
    content = suite.only(suite.document(), "transpose/", "sgemm/", "roof/")
    path = suite.write(folder / "h200.json", content)
    made = Report(main(["report", str(path), "-o", str(folder / "out")]), folder / "out")
    assert made.code == 0
    return made


@pytest.fixture(scope="session")
def page(transposed: Report) -> Page:
    return transposed.page


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
def on_path(tmp_path, monkeypatch):
    """Put a program first on the PATH: a stand-in with this name and this script."""

    def make(name: str, script: str) -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(script)
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
        return path

    return make


@pytest.fixture
def fake(tmp_path):
    return Fake(tmp_path / "program")


@pytest.fixture
def _impatient(fake, monkeypatch):
    """Have minutes pass between two looks at a row that waits, as a run reckons."""
    passed = 0.0

    def monotonic() -> float:
        nonlocal passed
        passed += 100.0 * fake.waits
        return time.monotonic() + passed

    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=monotonic))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out" / "study.json"
