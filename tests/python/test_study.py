# SPDX-License-Identifier: MIT
"""Studies: what is written where, what an interruption keeps, and scripts/study around it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import ROOT
from fake_program import EMULATED, SMI, TILED, Fake, compiled, errors_of, rows_of
from fake_program import run_study as run
from ladder.commands import study
from ladder.commands.cli import main
from ladder.measure.progress import Progress
from ladder.measure.runner import Program
from ladder.measure.study import Measurement


@pytest.fixture
def smi(on_path) -> Path:
    """A stand-in for nvidia-smi; a file beside it says that there is no GPU."""
    return on_path("nvidia-smi", SMI)


@pytest.fixture
def fake(tmp_path, smi) -> Fake:  # noqa: ARG001
    return Fake(tmp_path / "a program")


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """Figures take a second each."""
    monkeypatch.setattr(study, "_draw", lambda *_: None)


@pytest.fixture
def output(tmp_path) -> Path:
    return tmp_path / "an output"


@pytest.fixture
def file(output) -> Path:
    return output / "results/nvidia-h200/study.json"


@contextmanager
def started(fake: Fake, output: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A study that waits in a row until a file is removed."""
    command = [sys.executable, "-m", "ladder", "study", "--program", str(fake.path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    with subprocess.Popen(
        [*command, "--output", str(output), *more],
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        # As from a terminal, where nohup runs these tests too.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    ) as process:
        while not (fake.folder / "waiting").exists() and process.poll() is None:
            time.sleep(0.02)
        yield process


def test_a_study_measures_and_draws(fake, output, file, capsys):
    assert run(fake, output) == 0
    assert len(rows_of(file)) == 24
    assert len(fake.starts) == 1  # a process as long as nothing fails
    assert [path.name for path in file.parent.iterdir()] == ["study.json"]
    plots = output / "plots/nvidia-h200"
    assert "overview.svg" in {path.name for path in plots.iterdir()}
    assert not [*plots.glob("*.png")]
    said = capsys.readouterr()
    assert "measuring 24 rows on nvidia-h200\n" in said.err
    assert said.err.endswith(f"results: {file}\nplots: {plots}\n")
    assert said.out.startswith("NVIDIA H200, cold cache, commit abc.")
    assert len((said.out + said.err).splitlines()) <= 30


@pytest.mark.usefixtures("undrawn")
def test_a_crash_costs_one_row(fake, output, file, capsys):
    fake.plan({TILED[1]: "crash"})
    assert run(fake, output) == 1
    assert errors_of(file) == {TILED[1]: "killed by SIGSEGV"}
    assert len(rows_of(file)) == 24
    assert len(fake.starts) == 2
    said = capsys.readouterr().err
    assert f"ladder: {TILED[1]}: killed by SIGSEGV\n" in said
    assert said.endswith("1 row failed: see above\n")


@pytest.mark.usefixtures("undrawn")
def test_of_many_failures_a_few_are_said(fake, output, file, capsys):
    fake.plan(dict.fromkeys(fake.listed(), "wrong"))
    assert run(fake, output) == 1
    assert len(errors_of(file)) == 24
    said = capsys.readouterr().err
    assert said.count(": wrong result\n") < 12
    assert said.endswith(f"24 rows failed: see above, and {file}\n")


def test_earlier_results_are_kept_and_their_plots_are_not(fake, output, file, capsys):
    assert run(fake, output, "--filter", "^(mul|roof)/") == 0
    before = file.read_bytes()
    plots = output / "plots/nvidia-h200"
    assert (plots / "mul-climb.svg").exists()
    capsys.readouterr()
    assert run(fake, output, "--filter", "^turn/") == 0
    (kept,) = file.parent.glob("*.old")
    assert kept.read_bytes() == before
    assert f"earlier results: {kept}\n" in capsys.readouterr().err
    assert {name.split("/")[0] for name in rows_of(file)} == {"turn"}
    assert (plots / "turn-climb.svg").exists()
    assert not (plots / "mul-climb.svg").exists()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_study_is_gone_on_with(fake, output, file, number, capsys):
    assert run(fake, output, "--filter", "^turn/") == 0
    before = file.read_bytes()
    fake.plan({TILED[1]: "wait"})
    began = len(fake.rows)
    with started(fake, output) as process:
        process.send_signal(number)
        _, said = process.communicate()
    assert process.returncode == -number
    unfinished = file.with_name("study.json.unfinished")
    done = list(rows_of(unfinished))
    assert done == fake.rows[began:-1]
    assert TILED[1] not in done
    assert f"{len(done)} rows are kept in {unfinished}: --resume continues it\n" in said
    assert file.read_bytes() == before
    assert {path.name for path in file.parent.iterdir()} == {file.name, unfinished.name}
    fake.plan()
    began = len(fake.rows)
    capsys.readouterr()
    assert run(fake, output, "--resume") == 0
    left = [name for name in fake.listed() if name not in done]
    assert fake.rows[began:] == left
    assert f"measuring {len(left)} rows on nvidia-h200, {len(done)} are there\n" in (
        capsys.readouterr().err
    )
    assert len(rows_of(file)) == 24
    assert not unfinished.exists()
    assert [path.read_bytes() for path in file.parent.glob("*.old")] == [before]


@pytest.mark.usefixtures("undrawn")
def test_what_an_interrupted_study_counted_of_other_ladders_stays(fake, output, file, capsys):
    fake.plan({TILED[1]: "wait"})
    with started(fake, output, "--hardware-counters") as process:
        process.terminate()
        _, said = process.communicate()
    roofs = fake.listed("^roof/")
    assert f"{len(roofs)} rows are kept in " in said
    fake.plan()
    capsys.readouterr()
    assert run(fake, output, "--resume", "--hardware-counters") == 0
    left = len(fake.listed(".")) - len(roofs)
    assert f"measuring {left} rows on nvidia-h200, {len(roofs)} are there\n" in (
        capsys.readouterr().err
    )
    assert all(row["dram_bytes"] == 7 for row in rows_of(file).values())


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_study_that_is_not_gone_on_with_is_kept(fake, output, file, capsys):
    fake.plan({TILED[1]: "wait"})
    with started(fake, output) as process:
        process.terminate()
        process.communicate()
    before = file.with_name("study.json.unfinished").read_bytes()
    fake.plan()
    assert run(fake, output) == 0
    assert len(rows_of(file)) == 24
    (kept,) = file.parent.glob("*.old")
    assert kept.read_bytes() == before
    told = f"an interrupted study is kept as {kept}; --resume would have continued it\n"
    assert told in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_counters_come_with_the_roofs(fake, output, file):
    assert run(fake, output, "--hardware-counters", "--filter", "^mul/tiled/") == 0
    assert list(rows_of(file)) == fake.listed("^(roof|mul/tiled)/")
    assert all(row["dram_bytes"] == 7 for row in rows_of(file).values())


@pytest.mark.usefixtures("undrawn")
def test_energy_comes_with_the_times(fake, output, file):
    assert run(fake, output, "--energy", "--filter", "^mul/tiled/") == 0
    assert list(rows_of(file)) == fake.listed("^mul/tiled/")
    assert all(row["joules"] == 3 for row in rows_of(file).values())


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("more", [[], ["--hardware-counters"]])
def test_a_shape_of_the_users_takes_the_place_of_the_ladders_own(fake, output, file, more):
    assert run(fake, output, "--shape", "mul:n=77", *more) == 0
    found = rows_of(file)
    ladders = {name.split("/")[0] for name in found}
    assert ladders == ({"mul", "roof"} if more else {"mul"})
    assert {name for name in found if name.startswith("mul/")} == {
        f"mul/{rung}/n:77/manual_time" for rung in ("naive", "tiled", "split", "tensor")
    }
    # The share of the roofs, which have their own shapes, whether they are measured here or not.
    assert all(
        (row.get("percent_of_ceiling", 0) > 0) == ("tensor" not in name)
        for name, row in found.items()
        if name.startswith("mul/")
    )


@pytest.mark.usefixtures("undrawn")
def test_a_shape_that_is_large_for_the_emulator_is_told_before_it_runs(fake, output, capsys):
    fake.plan(context={"emulated": "true"})
    told = "ladder: note: mul/n:77 takes long\n"
    run(fake, output, "--emulate", "--shape", "mul:n=77")
    assert capsys.readouterr().err.count(told) == 1
    run(fake, output, "--emulate")
    run(fake, output, "--shape", "mul:n=77")  # on a GPU
    assert told not in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_flags_are_passed_on(fake, output):
    assert run(fake, output, "--filter", "^turn/", "--", "--noise=0.1", "--cases=full") == 0
    assert all("--noise=0.1 --cases=full" in start for start in fake.starts)


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (["--filter", "("], 2, "'(' is not a regular expression"),
        (["--", "--benchmark_out=x"], 2, "--benchmark_out=x: results go to --output"),
        (["--", "--details_out=x"], 2, "--details_out=x: results go to --output"),
        (["--", "--per_line"], 2, "--per_line: needs ladder_bench_emulated itself"),
        (["--retry-failed"], 2, "--retry-failed needs --resume"),
        (["--nonsense"], 2, "unrecognized arguments: --nonsense"),
        (["--filter", "^nothing/"], 2, "no row matches --filter ^nothing/"),
        (["--", "--bogus"], 2, "fake: unknown flag --bogus"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(fake, output, capsys, more, code, told):
    try:
        ended = run(fake, output, *more)
    except SystemExit as stop:  # as argparse ends
        ended = stop.code
    assert ended == code
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert not fake.starts


def test_where_nothing_can_be_written_nothing_is_measured(fake, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert run(fake, tmp_path / "file") == 1
    assert capsys.readouterr().err == f"ladder: cannot write to {tmp_path / 'file'}\n"
    assert not fake.starts


def test_an_unknown_ladder_is_told_before_anything_is_built(output, monkeypatch, capsys):
    monkeypatch.setattr(study.build, "build", lambda *_: pytest.fail("built"))
    arguments = ["study", "--emulate", "--output", str(output), "--shape", "nosuch:m=3"]
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(
        "ladder: --shape: 'nosuch' is no ladder (byte_histogr"
    )


def test_a_broken_tuning_file_is_told_before_anything_is_built(fake, output, tmp_path, capsys):
    file = tmp_path / "tuning.toml"
    file.write_text("gpu = ")
    assert run(fake, output, "--", f"--tuning={file}") == 3
    assert f"{file}: not TOML: Invalid value" in capsys.readouterr().err
    assert fake.starts == []


@pytest.mark.usefixtures("undrawn")
def test_a_program_that_comes_to_no_row_leaves_earlier_results(fake, output, file):
    assert run(fake, output, "--filter", "^turn/") == 0
    before = file.read_bytes()
    fake.plan(start="crash")
    assert run(fake, output, "--filter", "^turn/") == 4
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["study.json"]


@pytest.fixture
def checkout(tmp_path, whole, monkeypatch) -> Path:
    """A checkout that holds measurements of one GPU."""
    path = tmp_path / "checkout"
    measured = path / "results/nvidia-h200"
    measured.mkdir(parents=True)
    shutil.copy(whole, measured)
    monkeypatch.setattr(study, "_ROOT", path)
    return path


@pytest.mark.usefixtures("checkout")
def test_without_a_gpu_measurements_are_drawn(fake, output, smi, capsys):
    smi.with_name("nvidia-smi.none").touch()
    fake.plan(context={"emulated": "true"})
    assert run(fake, output, "--filter", "^transpose/padded/") == 0  # no row of the program
    said = capsys.readouterr()
    assert said.err.startswith("no GPU: counting on an emulated GPU instead\n")
    assert "nothing was emulated: " in said.err
    assert "\nTranspose  padded 1769 GB/s 43%\n" in said.out
    assert (output / "plots/nvidia-h200/transpose-climb.svg").exists()
    # Where that was asked for, they do not stand in for it.
    assert run(fake, output, "--emulate", "--filter", "^transpose/padded/") == 2
    assert capsys.readouterr().err.endswith("no row matches --filter ^transpose/padded/\n")
    shape = ("--shape", "turn:n=8", "--filter", "^transpose/padded/")
    assert run(fake, output, *shape) == 2
    assert "nothing was emulated" not in capsys.readouterr().err


@pytest.mark.usefixtures("checkout")
def test_where_no_row_is_counted_earlier_results_stay(fake, output, capsys):
    fake.plan(dict.fromkeys(fake.listed(), "skip"), context={"emulated": "true"})
    assert run(fake, output, "--gpu", "t4") == 0
    file = output / "results/emulated-t4/study.json"
    before = file.read_bytes()  # there were none
    assert run(fake, output, "--emulate", "--", "--gpu=t4") == 0
    said = capsys.readouterr().err
    assert "no row was counted: earlier results stay\n" in said
    assert "nothing to draw: no row was counted (does not fit)\n" in said
    assert file.read_bytes() == before
    assert all(start.count("--gpu=t4") for start in fake.starts)


def emulate(fake: Fake, folder: Path) -> tuple[Measurement, list[str]]:
    """Go on with, or begin, what the fake counts; return it and the rows that failed."""
    folder.mkdir(exist_ok=True)
    program = Program.find(fake.path, ["--gpu=h200"], "^mul/tiled|turn", 60)
    measurement = Measurement(folder, program, emulated=True)
    measurement.resume()
    job = measurement.job(retry_failed=False)
    measurement.measure(job, 60, Progress(len(job.todo)))
    return measurement, job.failed


def test_rows_whose_details_are_lost_are_counted_again(fake, tmp_path):
    fake.plan({TILED[2]: "crash"}, counted=True)
    folder = tmp_path / "results"
    measurement, failed = emulate(fake, folder)
    assert failed == [TILED[2]]
    ends = sum(start.count("^mul") + start.count("(mul") for start in fake.starts)
    assert ends == 2  # that crashed, and again without the row
    measurement.publish()
    assert {path.name for path in folder.iterdir()} == {"study.json", "details.json"}
    details = json.loads((folder / "details.json").read_text())
    counted = [name.removesuffix("/manual_time") for name in rows_of(folder / "study.json")]
    counted.remove(TILED[2].removesuffix("/manual_time"))
    assert [entry["row"] for entry in details["lines"]] == sorted(counted)
    assert [entry["row"] for entry in details["occupancy"]] == sorted(counted)


def test_lost_details_are_found_when_a_study_is_gone_on_with(fake, tmp_path):
    fake.plan(counted=True)
    folder = tmp_path / "results"
    emulate(fake, folder)
    (folder / "details.json.unfinished").write_text('{"lines": [')
    began = len(fake.rows)
    emulate(fake, folder)
    assert len(fake.rows) == 2 * began
    emulate(fake, folder)
    assert len(fake.rows) == 2 * began


@pytest.mark.skipif(not EMULATED.exists(), reason="ladder_bench_emulated is not built")
@pytest.mark.usefixtures("smi")
def test_emulated_details_are_those_of_one_process(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "_ROOT", tmp_path)  # which holds no measurements
    monkeypatch.chdir(tmp_path)
    pattern = "^(smem_layout/row_row|smem_layout/row_column|transpose/tiled/rows:512)/.*"
    program = ["--program", str(EMULATED)]
    assert main(["study", "--emulate", *program, "--filter", pattern]) == 0
    whole = tmp_path / "whole.json"
    flags = [f"--benchmark_filter={pattern}", f"--details_out={whole}"]
    subprocess.run([EMULATED, *flags], check=True, capture_output=True)
    folder = tmp_path / "study/results/emulated-h200"
    assert json.loads((folder / "details.json").read_text()) == json.loads(whole.read_text())
    plots = tmp_path / "study/plots/emulated-h200"
    assert (plots / "tables.md").read_text().startswith("Matrix transpose: NVIDIA H200")
    assert (plots / "transpose-occupancy.svg").exists()
    assert "Rows verified and counted: " in capsys.readouterr().out


SETUP = r"""
setup_python() { python=PYTHON; }
has_nvcc() { [ ! -e no-nvcc ]; }
configure() { [ ! -e broken ]; }
has_cuda_build() { true; }
compile() {
  mkdir -p build/default
  printf '{"rows": {}}' >build/default/plan.json
  cd build/default
  printf '#!/bin/sh\nexec %s -IS %s "%s" "$@"\n' PYTHON FAKE "$PWD" >"$1"
  chmod +x "$1"
}
"""


@pytest.mark.usefixtures("smi")
def test_the_script_builds_and_measures_from_anywhere(tmp_path):
    """With a stand-in for the build, in paths with spaces."""
    tree, elsewhere = tmp_path / "a tree", tmp_path / "else where"
    elsewhere.mkdir()
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "scripts", tree / "scripts", ignore=ignore)
    with (tree / "scripts/setup.sh").open("a") as file:
        file.write(SETUP.replace("PYTHON", sys.executable).replace("FAKE", str(compiled())))

    def script(*more: str) -> subprocess.CompletedProcess[str]:
        command = [tree / "scripts/study", *more]
        return subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)

    done = script("--filter", "^turn/", "--output", "my study")
    assert done.returncode == 0, done.stderr
    results = elsewhere / "my study/results/nvidia-h200/study.json"
    assert len(rows_of(results)) == 6
    assert script("--help").stdout.startswith("usage: ladder study ")
    (tree / "broken").touch()
    broken = script("--output", "my study")
    assert broken.returncode == 1
    assert broken.stderr == "ladder: the build cannot be set up, see above\n"
    (tree / "no-nvcc").touch()
    told = "no nvcc (CUDA Toolkit 12.6 or later): counting on an emulated GPU instead\n"
    assert script("--output", "my study").stderr == told + broken.stderr
    assert not (elsewhere / "study").exists()
