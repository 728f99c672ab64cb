# SPDX-License-Identifier: MIT
"""What the repository holds fits together: links, tables and figures are of the results in it."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import committed
from ladder.commands.cli import main
from ladder.io import files
from ladder.io.results import Results, load_results
from ladder.report import table

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TABLES = sorted((ROOT / "results").glob("*/tables.md"))
FIGURES = sorted((ROOT / "plots").rglob("*.svg"))


TOP = set(
    ".ci .clang-format .github .gitignore CMakeLists.txt CMakePresets.json LICENSE README.md "
    "benchmarks cmake docs emulator kernels mkdocs.yml plots pyproject.toml results scripts "
    "tests".split()
)


def anchors(document: Path) -> set[str]:
    """The fragments that headings can be linked by."""
    found = re.findall(r"^#+ (.*)", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", text)
    assert links
    for link in links:
        path, _, fragment = re.sub(r"\s", "", link).partition("#")
        target = document.parent / path if path else document
        assert target.exists(), link
        assert not fragment or fragment in anchors(target), link


@cache
def held_against(measured: str) -> list[Results]:
    return load_results([ROOT / "results" / name for name in ("emulated-h200", measured)])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_of_the_results(document, tmp_path):
    text = document.read_text(encoding="utf-8")
    if "<!-- ladder:table" not in text:
        pytest.skip("no table in it")
    copy = Path(shutil.copy(document, tmp_path))
    table.update(copy, held_against("nvidia-h200"))
    assert copy.read_text(encoding="utf-8") == text, "scripts/ci/plots"


def test_the_site_of_the_documents_has_no_broken_link():
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    done = subprocess.run(
        ["scripts/ci/site"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (ROOT / "build/site/html/docs/ladders/transpose/index.html").exists()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_wrapped_text_is_no_list(document):
    """A line of a paragraph that starts with `+` or `2.` would be shown as an item of a list."""
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    marker = re.compile(r"\s*([-+*]|\d+[.)]) ")
    for before, line in pairwise(text.splitlines()):
        in_list = not before.strip() or marker.match(before) or before.startswith(("  ", "<!--"))
        assert in_list or not marker.match(line), line
        assert not re.search(r" \d\.$", before) or not line.startswith("**"), before


def test_no_stray_file_lies_at_the_top():
    done = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    assert {name.split("/")[0] for name in done.stdout.splitlines()} == TOP


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 200


@pytest.mark.parametrize("tables", TABLES, ids=lambda path: path.parent.name)
def test_tables_beside_results_are_of_them(tables, capsys):
    assert main(["table", str(tables.parent)]) == 0
    assert capsys.readouterr().out == tables.read_text(encoding="utf-8")


def test_lines_in_the_documents_are_where_the_results_have_them():
    details = files.read_json(ROOT / "results/emulated-h200/details.json.gz")
    known = {
        (f"{line['file']}:{line['line']:.0f}", line["space"], line["operation"], line["requests"])
        for line in details["lines"]
    }
    pattern = r"^(\w+\.cuh?:\d+) +(global|shared) +(\w+) +\d+ B +(\d+) requests"
    text = (ROOT / "docs/emulator.md").read_text(encoding="utf-8")
    shown = {(*key, float(count)) for *key, count in re.findall(pattern, text, re.MULTILINE)}
    assert shown
    assert shown <= known


@pytest.mark.parametrize("figure", FIGURES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_figures_are_of_the_results(figure):
    studies = [path.parent.name for path in (ROOT / "results").glob("*/study.json*")]
    own = figure.parent.name
    found = {committed(name).commit for name in ([own] if own in studies else studies)}
    text = figure.read_text(encoding="utf-8")
    assert any(commit and f"commit {commit}" in text for commit in found)


def test_the_example_answers_its_questions():
    """Of the committed results: names and orders that the README's tables have too."""
    command = [sys.executable, str(ROOT / "docs/example.py"), str(ROOT / "results/nvidia-h200")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=True, env=environment
    )
    assert re.search(r"^ *transpose +rows:8192/columns:8192/element:8 +\w+ ", done.stdout, re.M)
    assert re.search(r"^sgemm +\d", done.stdout, re.M)
    assert re.search(r"^tiled +rows:\S+ +3[12]\.", done.stdout, re.M)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_the_rung_and_the_ladder_of_the_documents_compile(tmp_path):
    readme, extend = (
        re.findall(r"```cpp\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
        for page in ("README.md", "docs/extend.md")
    )
    kernel, row = (  # who tries it may keep its name
        re.sub(r"\bmine\b", "of_the_documents", block) for block in readme
    )
    ladder = extend[0]
    saxpy, line = re.split(r"^// benchmarks/model/catalogue.hpp.*\n", ladder, flags=re.MULTILINE)
    catalogue = (ROOT / "benchmarks/model/catalogue.hpp").read_text(encoding="utf-8")
    last = re.search(r"^  X\(\w+\)$", catalogue, re.MULTILINE)

    kernels = tmp_path / "kernels"
    shutil.copytree(ROOT / "kernels/transpose", kernels / "transpose")
    chapter = kernels / "transpose/01_tiled.cuh"
    text = chapter.read_text(encoding="utf-8")
    end = text.index("}  // namespace ladders")
    chapter.write_text(text[:end] + kernel + text[end:], encoding="utf-8")
    rungs = kernels / "transpose/ladder.cu"
    before, after = rungs.read_text(encoding="utf-8").split('      {.name = "tiled"', 1)
    rungs.write_text(f'{before}{row}      {{.name = "tiled"{after}', encoding="utf-8")
    (kernels / "saxpy").mkdir()
    (kernels / "saxpy/ladder.cu").write_text(saxpy, encoding="utf-8")
    listed = tmp_path / "catalogue.hpp"
    listed.write_text(catalogue[: last.start()] + line + catalogue[last.start() :], "utf-8")
    folders = [kernels]
    folders += [
        ROOT / each for each in ("benchmarks", "kernels", "emulator/cuda", "emulator/include")
    ]
    for file in (rungs, kernels / "saxpy/ladder.cu", listed):
        subprocess.run(
            [
                "g++",
                "-x",
                "c++",
                "-std=c++20",
                "-fsyntax-only",
                "-DCUDA_EMULATOR_ARCH=0",
                *(f"-I{each}" for each in folders),
                file,
            ],
            check=True,
        )
