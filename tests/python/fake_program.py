# SPDX-License-Identifier: MIT
"""A stand-in for a benchmark program whose rows end as planned, and runs of it."""

import atexit
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from ladder.commands.cli import main

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).with_name("fake_bench.py")
EMULATED = ROOT / "build/default/benchmarks/emulated/ladder_bench_emulated"
# In place of nvidia-smi; a file beside it says that there is no GPU.
SMI = '#!/bin/sh\n[ ! -e "$0.none" ] || exit 9\necho "0, GPU-a, NVIDIA H200"\n'
TILED = [f"mul/tiled/n:{n}/manual_time" for n in (64, 1024, 4096)]


@cache
def compiled() -> Path:
    """The stand-in as byte code: its text would be compiled at each of a thousand starts."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    return Path(py_compile.compile(str(FAKE), f"{folder}/fake_bench.pyc", doraise=True))


class Fake:
    """A program whose rows end as its plan says."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.path = folder / "fake_bench"
        self.path.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {compiled()} "{folder}" "$@"\n')
        self.path.chmod(0o755)
        self.plan()

    def plan(self, rows: dict[str, str] | None = None, **more) -> None:
        """Change what is to happen."""
        (self.folder / "plan.json").write_text(json.dumps({"rows": rows or {}, **more}))

    @property
    def starts(self) -> list[str]:
        """The flags of each process that was to measure."""
        return self._lines("starts")

    @property
    def small_kernels(self) -> list[str]:
        """The time of small kernels that each of them was to look for."""
        return self._lines("small_kernels")

    @property
    def rows(self) -> list[str]:
        """What was begun, in order."""
        return self._lines("rows")

    @property
    def waits(self) -> bool:
        """Whether one of its processes is in a row that waits for its file to be removed."""
        return any(Path(f"/proc/{number}").exists() for number in self.waiting)

    @property
    def waiting(self) -> list[str]:
        """The numbers of the processes that came to such a row."""
        return self._lines("waiting")

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def listed(self, pattern: str = ".") -> list[str]:
        """Return the rows that a filter finds."""
        flags = ["--benchmark_list_tests", f"--benchmark_filter={pattern}"]
        return subprocess.check_output([self.path, *flags], text=True).split()

    def alone(self, out: Path) -> dict:
        """Return what one process writes of all rows."""
        subprocess.run([self.path, f"--benchmark_out={out}"], check=True)
        return json.loads(out.read_text())


def run(fake: Fake, out: Path, *more: str) -> int:
    return main(["run", str(fake.path), "-o", str(out), *more])


def run_study(fake: Fake, output: Path, *more: str) -> int:
    return main(["study", "--program", str(fake.path), "--output", str(output), *more])


def rows_of(out: Path) -> dict[str, dict]:
    rows = json.loads(out.read_text())["benchmarks"]
    assert len({row["name"] for row in rows}) == len(rows)
    return {row["name"]: row for row in rows}


def errors_of(out: Path) -> dict[str, str]:
    found = rows_of(out).items()
    return {name: row["error_message"] for name, row in found if row.get("error_occurred")}


def check_nothing_else(out: Path) -> None:
    assert list(out.parent.iterdir()) == [out]


def started(fake: Fake, out: Path, *more: str, **options) -> subprocess.Popen:
    """Start a run in a process of its own, and return it when a row of the program waits."""
    command = [sys.executable, "-m", "ladder", "run", str(fake.path), "-o", str(out), *more]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    pipes = {"stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment, **pipes, **options)
    until = time.monotonic() + 300
    while not (fake.folder / "waiting").exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    return process


def check_gone(fake: Fake) -> None:
    """The program leaves once nobody waits for it, or has left before: it begins no other row."""
    began = fake.rows
    (fake.folder / "waiting").unlink()
    time.sleep(0.3)
    assert fake.rows == began
