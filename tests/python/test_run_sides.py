# SPDX-License-Identifier: MIT
"""Runs of two programs, and on several GPUs."""

import json
import threading
import time
from pathlib import Path

import pytest
from fake_program import (
    Fake,
    run,
)
from ladder.commands.cli import main


def test_two_programs_run_in_turn_and_the_other_way_round_next_time(fake, tmp_path):
    base, folder = Fake(tmp_path / "base"), tmp_path / "out"
    for program in (fake, base):
        for log in ("starts", "rows"):
            (program.folder / log).symlink_to(tmp_path / log)
    both = ["--base", str(base.path), "--filter", "^turn/.*/n:64/"]
    assert run(fake, folder, *both, "--processes", "2") == 0
    sides = [start.split("--benchmark_out=")[1].split(".json")[0] for start in fake.starts]
    assert [side.removeprefix(f"{folder}/") for side in sides] == [
        *["base/1", "head/1"] * 2,
        *["head/2", "base/2"] * 2,
    ]
    assert main(["compare", str(folder / "base"), str(folder / "head")]) == 0
    assert run(fake, tmp_path / "once", *both, "--processes", "1") == 0
    assert sorted(p.name for p in (tmp_path / "once").iterdir()) == ["base.json", "head.json"]


def test_two_programs_have_three_processes_each(fake, tmp_path):
    base, folder = Fake(tmp_path / "base"), tmp_path / "out"
    assert run(fake, folder, "--base", str(base.path), "--filter", "^turn/copy/") == 0
    for side in ("base", "head"):
        assert sorted(p.name for p in (folder / side).iterdir()) == ["1.json", "2.json", "3.json"]
    assert main(["compare", str(folder / "base"), str(folder / "head")]) == 0


SMI = """#!/bin/sh
echo "0, GPU-a, NVIDIA H200"
echo "1, GPU-b, NVIDIA H200"
echo "2, GPU-c, NVIDIA A100-SXM4-80GB"
"""


@pytest.fixture
def smi(on_path, monkeypatch) -> Path:
    """A stand-in for nvidia-smi."""
    path = on_path("nvidia-smi", SMI)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.mark.usefixtures("smi")
@pytest.mark.parametrize(
    ("devices", "shown", "files"),
    [
        ("all", None, ["nvidia-h200-0", "nvidia-h200-1", "nvidia-a100-sxm4-80gb"]),
        ("2,1", None, ["nvidia-a100-sxm4-80gb", "nvidia-h200-1"]),
        ("all", "GPU-c,0,GPU-a", ["nvidia-a100-sxm4-80gb", "nvidia-h200-0"]),
    ],
)
@pytest.mark.parametrize("more", [(), ("--in-turn",)])
def test_each_gpu_has_a_file(fake, tmp_path, monkeypatch, devices, shown, files, more):
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    if shown:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    out = tmp_path / "out"
    assert run(fake, out, "--devices", devices, "--filter", "^turn/copy/", *more) == 0
    assert sorted(path.stem for path in out.iterdir()) == sorted(files)
    uuids = dict(zip(["nvidia-h200-0", "nvidia-h200-1"], ["GPU-a", "GPU-b"], strict=True))
    wanted = [uuids.get(file, "GPU-c") for file in files]
    starts = [start.split()[0] for start in fake.starts]
    assert (starts if more else sorted(starts)) == [
        f"GPU={uuid}" for uuid in (wanted if more else sorted(wanted))
    ]
    for file, uuid in zip(files, wanted, strict=True):
        assert json.loads((out / f"{file}.json").read_text())["context"]["gpu_uuid"] == uuid


@pytest.mark.usefixtures("smi")
def test_gpus_are_measured_at_once(fake, tmp_path):
    fake.plan({"mul/tensor/n:64/manual_time": "wait"})  # until both are there
    waiting: list[str] = []

    def release():
        for _ in range(6000):
            waiting[:] = fake.waiting
            if len(waiting) == 2:
                break
            time.sleep(0.01)
        (fake.folder / "waiting").unlink()

    releasing = threading.Thread(target=release)
    releasing.start()
    assert run(fake, tmp_path / "out", "--devices", "0,1", "--filter", "^mul/tensor/") == 0
    releasing.join()
    assert len(waiting) == 2


@pytest.mark.usefixtures("smi")
def test_a_failure_of_one_gpu_is_that_of_the_run(fake, tmp_path, capfd):
    fake.plan({"turn/copy/n:64/manual_time": "wrong"})
    out = tmp_path / "out"
    assert run(fake, out, "--devices", "0,1", "--filter", "^turn/copy/") == 1
    assert len(list(out.iterdir())) == 2
    assert capfd.readouterr().err.count("3 of 3 rows, 1 of them failed") == 2
    fake.plan(start="usage")
    assert run(fake, tmp_path / "other", "--devices", "0,1", "--filter", "^turn/copy/") == 2
    assert capfd.readouterr().err.count("no CUDA device 0") == 2


def test_numbers_of_cuda_are_taken_only_where_they_are_those_of_nvidia_smi(
    fake, tmp_path, monkeypatch, smi, capsys
):
    folder = tmp_path / "out"
    for shown, told in (
        ("0", "numbers of different GPUs need CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        ("MIG-a", "parts of a GPU (MIG) are not supported"),
    ):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
        assert run(fake, folder, "--devices", "all") == 2
        line = f"ladder: --devices: CUDA_VISIBLE_DEVICES={shown}: {told}\n"
        assert capsys.readouterr().err == line
    smi.write_text("".join(line for line in SMI.splitlines(True) if "A100" not in line))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert run(fake, folder, "--devices", "all", "--filter", "^turn/copy/") == 0
    assert [path.name for path in folder.iterdir()] == ["nvidia-h200-1.json"]


def test_a_gpu_that_is_not_there_is_told(fake, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(fake, tmp_path / "out", "--devices", "all") == 2
    assert capsys.readouterr().err == "ladder: --devices: nvidia-smi: No such file or directory\n"
