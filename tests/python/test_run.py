# SPDX-License-Identifier: MIT
"""Runs in many processes: what a failure costs, what is kept of it, and what is gone on with."""

import atexit
import gzip
import json
import os
import py_compile
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT
from ladder.commands.cli import main
from ladder.measure import process, processes
from ladder.model.catalogue import parse
from ladder.model.ceilings import PERCENT, Ceilings

FAKE = Path(__file__).with_name("fake_bench.py")
EMULATED = ROOT / "build/default/benchmarks/emulated/ladder_bench_emulated"
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


def run(fake: Fake, out: Path, *more: str) -> int:
    return main(["run", str(fake.path), "-o", str(out), *more])


def rows_of(out: Path) -> dict[str, dict]:
    rows = json.loads(out.read_text())["benchmarks"]
    assert len({row["name"] for row in rows}) == len(rows)
    return {row["name"]: row for row in rows}


def errors_of(out: Path) -> dict[str, str]:
    found = rows_of(out).items()
    return {name: row["error_message"] for name, row in found if row.get("error_occurred")}


def check_nothing_else(out: Path) -> None:
    assert list(out.parent.iterdir()) == [out]


def test_a_run_in_many_processes_says_what_one_process_says(fake, out, tmp_path, capsys):
    assert run(fake, out) == 0
    assert len(fake.starts) == 8  # one a rung
    split, whole = json.loads(out.read_text()), fake.alone(tmp_path / "one.json")
    assert split["context"].pop("run_flags") == ""
    assert split["context"] == whole["context"]
    percents, wanted = (
        [row.pop(PERCENT, 0) for row in document["benchmarks"]] for document in (split, whole)
    )
    assert percents == pytest.approx(wanted)
    assert sum(percent > 0 for percent in percents) == 15
    for mine, its in zip(split["benchmarks"], whole["benchmarks"], strict=True):
        assert mine == {  # the file of many has 9 digits
            key: pytest.approx(value, rel=1e-8) if isinstance(value, float) else value
            for key, value in its.items()
        }
    check_nothing_else(out)
    assert capsys.readouterr().err.endswith(f"ladder: {out}: 24 of 24 rows\n")
    assert main(["table", str(out)]) == 0


def test_ceilings_are_measured_once_where_they_are_rows(fake, out, tmp_path):
    assert run(fake, out) == 0
    own = [start for start in fake.starts if "--ceilings=false" in start]
    assert len(own) == 5  # of the rungs that have a ceiling
    # Where they are none, the program's own figures stay.
    assert run(fake, tmp_path / "few" / "study.json", "--filter", "^mul/") == 0
    assert not any("--ceilings" in start for start in fake.starts[8:])
    few, every = rows_of(tmp_path / "few" / "study.json"), rows_of(out)
    for name, row in few.items():
        assert row.get(PERCENT, 0) == pytest.approx(every[name].get(PERCENT, 0))


def test_a_program_that_knows_no_such_flag_is_not_given_it(fake, out):
    fake.plan(ceilings=False)
    assert run(fake, out) == 0
    assert not any("--ceilings" in start for start in fake.starts)


def test_the_percent_of_measured_results_is_that_of_the_program():
    document = json.loads((ROOT / "results/nvidia-h200/study.json").read_text())
    rows = {row["run_name"]: [row] for row in document["benchmarks"]}
    written = {name: entry.pop(PERCENT, None) for name, (entry,) in rows.items()}
    assert sum(percent is not None for percent in written.values()) > 500
    ladders = parse(document["context"]["ladders"])
    if not any(rung.ceilings for ladder in ladders for rung in ladder.rungs):
        pytest.skip("the committed study lists no ceilings of its rungs")
    Ceilings(ladders, rows).fill(rows)
    for name, (entry,) in rows.items():
        assert entry.get(PERCENT, 0) == pytest.approx(written[name] or 0, rel=1e-8)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize(
    ("what", "told", "place"),
    [
        ("crash", "killed by SIGSEGV", 0),
        ("crash", "killed by SIGSEGV", 1),
        ("crash", "killed by SIGSEGV", 2),
        ("abort", "killed by SIGABRT: terminate called", 1),
        ("wait", "no result within 60 s", 1),
        ("exit", "it is all over", 1),
        ("leave", "ended without a result", 1),
    ],
)
def test_a_row_that_ends_its_process_costs_itself_alone(fake, out, capsys, what, told, place):
    fake.plan({TILED[place]: what})
    assert run(fake, out, "--filter", "^mul/(naive|tiled)/", "--timeout", "60") == 1
    assert list(rows_of(out)) == fake.listed("^mul/(naive|tiled)/")
    assert errors_of(out) == {TILED[place]: told}
    # Each row was begun once: in one process up to the bad one, in another after it.
    assert sorted(fake.rows) == sorted(fake.listed("^mul/(naive|tiled)/"))
    assert len(fake.starts) == (3 if place < 2 else 2)
    err = capsys.readouterr().err
    assert f"ladder: {TILED[place]}: {told}\n" in err
    assert err.endswith("6 of 6 rows, 1 of them failed\n")
    check_nothing_else(out)
    assert main(["table", str(out)]) == 0


def test_an_error_that_stays_with_the_process_costs_one_row(fake, out):
    fake.plan({TILED[0]: "sticky"})
    assert run(fake, out, "--filter", "^mul/") == 1
    assert errors_of(out) == {TILED[0]: "CUDA: an illegal memory access"}


def test_a_crash_after_an_error_is_no_fault_of_the_row_before_it_is_tried_again(fake, out):
    fake.plan({TILED[0]: "sticky", TILED[1]: "once"})
    assert run(fake, out, "--filter", "^mul/tiled/") == 1
    assert list(errors_of(out)) == [TILED[0]]


def test_rows_that_are_all_wrong_are_all_told(fake, out):
    fake.plan(dict.fromkeys(TILED, "wrong") | {"mul/naive/n:64/manual_time": "skip"})
    assert run(fake, out, "--filter", "^mul/(naive|tiled)/") == 1
    wrong = dict.fromkeys(TILED, "wrong result")
    assert errors_of(out) == {"mul/naive/n:64/manual_time": "skipped: does not fit"} | wrong


def test_a_ceiling_that_crashes_costs_no_row_under_it(fake, out):
    fake.plan({"roof/fma/n:4096/manual_time": "crash"})
    assert run(fake, out) == 1
    assert list(errors_of(out)) == ["roof/fma/n:4096/manual_time"]
    assert PERCENT in rows_of(out)[TILED[0]]  # of the roof's other rows


@pytest.mark.parametrize(("split", "starts"), [("ladder", 3), ("none", 1)])
def test_fewer_processes_give_the_same(fake, out, tmp_path, split, starts):
    assert run(fake, tmp_path / "rungs.json") == 0
    before = len(fake.starts)
    assert run(fake, out, "--split", split) == 0
    assert len(fake.starts) - before == starts
    assert rows_of(out) == rows_of(tmp_path / "rungs.json")


def test_rows_whose_names_are_too_much_for_a_process_go_to_several(fake, out, monkeypatch):
    monkeypatch.setattr(process, "_LONGEST_FILTER", 300)
    assert run(fake, out, "--split", "none") == 0
    assert len(fake.starts) == 3
    filters = [re.search("--benchmark_filter=([^ ]*)", start)[1] for start in fake.starts]
    assert max(map(len, filters)) <= 300
    assert fake.rows == list(rows_of(out)) == fake.listed()


def test_a_whole_study_is_told_of_in_filters_that_libstdc_takes():
    document = json.loads((ROOT / "results/nvidia-h200/study.json").read_text())
    names = [row["run_name"] for row in document["benchmarks"]]
    cut = list(process.batches(names))
    assert [name for batch in cut for name in batch] == names
    lengths = [len(process.filter_of(batch)) for batch in cut]
    assert 40_000 < max(lengths) < 50_000


def test_a_filter_escapes_what_posix_knows_as_special_alone():
    # libstdc++ refuses any other escape.
    assert process.filter_of(["a[1]{2}", "b.c|d"]) == r"^(a\[1]\{2}|b\.c\|d)$"


def test_a_ceiling_is_the_median_of_its_repetitions(fake, tmp_path):
    rows = fake.alone(tmp_path / "one.json")
    entries = {row["name"]: [row] for row in rows["benchmarks"]}
    ceiling, row = "turn/copy/n:64/manual_time", entries["turn/tile/n:64/manual_time"][0]
    (first,) = entries[ceiling]
    rate = first["bytes_per_second"]
    entries[ceiling] = [
        *(first | {"bytes_per_second": factor * rate} for factor in (3, 2, 1)),
        first | {"run_type": "aggregate", "aggregate_name": "cv", "bytes_per_second": 1e-3},
    ]
    wanted = row[PERCENT] / 2
    Ceilings(parse(rows["context"]["ladders"]), entries).fill(entries)
    assert row[PERCENT] == pytest.approx(wanted)


def test_the_small_kernels_of_all_processes_are_kept(fake, out):
    for taken, pattern in (("3300", "naive"), ("3100", "tiled"), ("unknown", "split")):
        fake.plan(context={"small_kernel_nanoseconds": taken})
        assert run(fake, out, "--filter", pattern, "--resume") == 0
    context = json.loads(out.read_text())["context"]
    assert context["small_kernel_nanoseconds"] == "3300"  # of the first
    assert context["run_small_kernel_nanoseconds"] == "3100 3300"


def test_processes_look_for_a_context_as_quick_as_the_first(fake, out, monkeypatch):
    fake.plan(context={"small_kernel_nanoseconds": "3187.5"})
    assert run(fake, out, "--filter", "naive|tiled") == 0
    assert fake.small_kernels == ["any"] + ["3187.5"] * (len(fake.starts) - 1)
    before = len(fake.starts)
    fake.plan(context={"small_kernel_nanoseconds": "3205"})
    assert run(fake, out, "--filter", "split", "--resume") == 0
    assert set(fake.small_kernels[before:]) == {"3187.5"}
    before = len(fake.starts)
    monkeypatch.setenv("LADDER_SMALL_KERNEL_NANOSECONDS", "3300")  # the user knows better
    assert run(fake, out.with_name("other.json"), "--filter", "naive|tiled") == 0
    assert set(fake.small_kernels[before:]) == {"3300"}


def test_base_and_head_look_for_contexts_alike(fake, tmp_path):
    fake.plan(context={"small_kernel_nanoseconds": "3187.5"})
    base = Fake(tmp_path / "base")
    base.plan(context={"small_kernel_nanoseconds": "3240"})
    both = ["--filter", "naive", "--base", str(base.path), "--processes", "2"]
    assert run(fake, tmp_path / "pair", *both) == 0
    assert [*fake.small_kernels, *base.small_kernels].count("any") == 1
    assert len({*fake.small_kernels, *base.small_kernels} - {"any"}) == 1


def test_failed_rows_are_tried_again_only_when_asked(fake, out):
    fake.plan({TILED[1]: "crash"})
    assert run(fake, out, "--filter", "^mul/tiled/") == 1
    fake.plan()
    began = len(fake.rows)
    assert run(fake, out, "--filter", "^mul/tiled/", "--resume") == 1
    assert len(fake.rows) == began
    assert run(fake, out, "--filter", "^mul/tiled/", "--resume", "--retry-failed") == 0
    assert fake.rows[began:] == [TILED[1]]
    assert not errors_of(out)


def test_resume_adds_the_rows_of_another_filter(fake, out):
    assert run(fake, out, "--filter", "^turn/") == 0
    assert run(fake, out, "--filter", "^roof/", "--resume") == 0
    assert list(rows_of(out)) == fake.listed("^(roof|turn)/")
    assert [row["family_index"] for row in rows_of(out).values()] == list(range(12))


@pytest.mark.parametrize("change", ["git_commit", "cache_mode"])
def test_resume_refuses_what_was_measured_otherwise(fake, out, capsys, change):
    assert run(fake, out, "--filter", "^turn/copy/") == 0
    before = out.read_bytes()
    fake.plan(context={change: "other"})
    capsys.readouterr()
    assert run(fake, out, "--resume") == 5
    old = {"git_commit": "abc", "cache_mode": "cold"}[change]
    told = f"ladder: {out}: different {change}: {old} there, other now\n"
    assert capsys.readouterr().err.endswith(told)
    assert out.read_bytes() == before
    check_nothing_else(out)


def test_resume_refuses_other_flags_before_it_starts_anything(fake, out, capsys):
    assert run(fake, out, "--filter", "^turn/copy/", "--", "--noise=1") == 0
    starts = len(fake.starts)
    assert run(fake, out, "--resume", "--", "--noise=2") == 5
    told = f"ladder: {out}: different flags: --noise=1 there, --noise=2 now\n"
    assert capsys.readouterr().err.endswith(told)
    assert len(fake.starts) == starts


def test_results_that_exist_are_not_written_over(fake, out, capsys):
    assert run(fake, out, "--filter", "^turn/copy/") == 0
    before = out.read_bytes()
    capsys.readouterr()
    assert run(fake, out) == 2
    assert capsys.readouterr().err == f"ladder: {out}: exists already: --resume continues it\n"
    assert out.read_bytes() == before


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_was_measured_when_a_run_is_ended_is_kept(fake, out, number):
    fake.plan({TILED[1]: "wait"})
    measured = [*fake.listed("^mul/naive/"), TILED[0]]
    with started(fake, out, "--filter", "^mul/(naive|tiled)/") as process:
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
    check_gone(fake)
    assert main(["table", str(out)]) == 0
    if number != signal.SIGKILL:
        assert process.returncode == 4
        assert "interrupted: --resume continues from here\n" in said
        assert "4 of 6 rows" in said
        assert "Traceback" not in said
        assert sorted(rows_of(out)) == sorted(measured)
        check_nothing_else(out)
    fake.plan()
    began = len(fake.rows)
    assert run(fake, out, "--filter", "^mul/(naive|tiled)/", "--resume") == 0
    assert fake.rows[began:] == TILED[1:]  # not what was measured before
    assert list(rows_of(out)) == fake.listed("^mul/(naive|tiled)/")
    check_nothing_else(out)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_a_row_is_read_costs_none(fake, out, monkeypatch, number):
    parse = process._Stream._parse

    def interrupted(stream):
        if TILED[0] in stream._text:
            signal.raise_signal(number)
        return parse(stream)

    monkeypatch.setattr(process._Stream, "_parse", interrupted)
    fake.plan({TILED[1]: "wait"})
    assert run(fake, out, "--filter", "^mul/tiled/") == 4
    assert list(rows_of(out)) == TILED[:1]
    check_nothing_else(out)


def test_what_a_program_started_ends_with_it():
    reader, writer = os.pipe()
    with processes.started(["sh", "-c", "sleep 77 & exit 0"], stdout=writer) as process:
        os.close(writer)
        process.wait()
    assert select.select([reader], [], [], 300)[0]  # nobody has its other end
    os.close(reader)


@pytest.mark.usefixtures("_impatient")
def test_a_process_that_cannot_be_ended_ends_the_run(fake, out, monkeypatch, capsys):
    monkeypatch.setattr(processes, "_PATIENCE", 0.1)
    monkeypatch.setattr(os, "killpg", lambda *_: None)  # as when it is stuck in a driver
    fake.plan({TILED[1]: "wait"})
    try:
        assert run(fake, out, "--filter", "^mul/tiled/", "--timeout", "60") == 4
    finally:
        (fake.folder / "waiting").unlink()
    said = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(rf"ladder: {fake.path}: process \d+ cannot be ended", said)
    assert list(rows_of(out)) == TILED[:1]


def test_a_full_disk_costs_nothing_that_was_there(fake, out, capsys):
    """Stood in for by a limit of the size of files."""
    assert run(fake, out, "--filter", "^turn/") == 0
    before = out.read_bytes()
    capsys.readouterr()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
    try:
        assert run(fake, out, "--filter", "^(turn|mul)/", "--resume") == 4
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert f"ladder: {out}: File too large; earlier results stay" in capsys.readouterr().err
    assert out.read_bytes() == before
    began = len(fake.rows)
    assert run(fake, out, "--filter", "^(turn|mul)/", "--resume") == 0
    assert len(fake.rows) - began == 9  # the first rung's three had been kept beside it
    check_nothing_else(out)


def test_a_row_is_not_blamed_for_a_full_disk(fake, out, capsys):
    fake.plan({TILED[1]: "disk"})
    assert run(fake, out, "--filter", "^mul/tiled/") == 4
    assert "out.json could not be written: is the disk full?\n" in capsys.readouterr().err
    assert list(rows_of(out)) == TILED[:1]
    assert not errors_of(out)


@pytest.mark.parametrize(
    ("plan", "code", "told"),
    [
        ({"garbage": "no JSON"}, 3, "exited with 0, but left no readable results"),
        ({"garbage": '{"context": 3, "benchmarks": [1]}'}, 3, "left no readable results"),
        ({"context": {"ladders": "[3]"}}, 3, "context 'ladders'"),
        ({"start": "crash"}, 4, "killed by SIGSEGV, 3 times in turn before the first row"),
        ({"start": "usage"}, 2, "no CUDA device 0"),
    ],
)
def test_a_program_that_comes_to_no_row_ends_the_run(fake, out, capsys, plan, code, told):
    fake.plan(**plan)
    assert run(fake, out) == code
    err = capsys.readouterr().err
    assert told in err.splitlines()[-1]
    assert err.count("ladder: ") == 1
    assert not any(out.parent.iterdir())


def test_wrong_usage_is_told_in_a_line(fake, out, tmp_path, capsys):
    path = str(fake.path)
    for arguments, told in (
        (["--filter", "^nothing$", path], f"{path}: no row matches --filter ^nothing$"),
        ([path, "--", "--bogus"], "fake: unknown flag --bogus"),
        ([path, "--", "--benchmark_out=x"], "--benchmark_out=x: use --output instead"),
        ([path, "--", "--details_out=x"], "--details_out=x: needs a single process"),
        ([path, "--devices", "0", "--", "--device=1"], "--device=1: --devices names it"),
        ([path, "--processes", "2"], "several results: name a directory"),
        ([path, "--retry-failed"], "--retry-failed needs --resume"),
        ([str(tmp_path / "none")], f"{tmp_path / 'none'}: No such file or directory"),
        ([str(tmp_path)], f"{tmp_path}: Permission denied"),
        (["/bin/true"], "/bin/true: no row matches --filter ."),
    ):
        assert main(["run", "-o", str(out), *arguments]) == 2
        err = capsys.readouterr().err
        assert told in err
        assert err.count("\n") == 1
        assert not out.parent.exists()


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


COUNT = ("--filter", "^mul/tiled/", "--", "--hardware_counters")


def test_what_the_hardware_counts_comes_with_the_times(fake, out):
    assert run(fake, out, *COUNT) == 0
    assert all(row["dram_bytes"] == 7 for row in rows_of(out).values())
    assert json.loads(out.read_text())["context"]["hardware_counters"] == "fake"


def test_a_crash_while_counting_costs_no_times(fake, out, capsys):
    fake.plan({f"count {TILED[1]}": "crash"})
    assert run(fake, out, *COUNT) == 1
    assert [("dram_bytes" in row, row["real_time"]) for row in rows_of(out).values()] == [
        (True, 10),
        (False, 10),
        (True, 10),
    ]
    assert f"ladder: {TILED[1]}: killed by SIGSEGV\n" in capsys.readouterr().err
    fake.plan()
    assert run(fake, out, "--resume", *COUNT) == 0
    assert all("dram_bytes" in row for row in rows_of(out).values())
    assert "run_unfinished" not in json.loads(out.read_text())["context"]


BOTH = (*COUNT, "--energy=headline")


@pytest.mark.parametrize("what", ["energy", "count"])
def test_a_crash_in_any_pass_costs_what_that_row_lacks(fake, out, capsys, what):
    fake.plan({f"{what} {TILED[1]}": "crash"})
    assert run(fake, out, *BOTH) == 1
    assert [("joules" in row, "dram_bytes" in row) for row in rows_of(out).values()] == [
        (True, True),
        (what == "count", False),
        (True, True),
    ]
    assert all(row["real_time"] == 10 for row in rows_of(out).values())
    assert f"ladder: {TILED[1]}: killed by SIGSEGV\n" in capsys.readouterr().err
    fake.plan()
    assert run(fake, out, "--resume", *BOTH) == 0
    assert all("joules" in row and "dram_bytes" in row for row in rows_of(out).values())
    assert json.loads(out.read_text())["context"]["energy_source"] == "fake"


def test_what_could_not_be_read_is_told_and_tried_again(fake, out, capsys):
    fake.plan({f"energy {TILED[1]}": "lack"})
    assert run(fake, out, *BOTH) == 1
    assert len(fake.starts) == 1
    told = capsys.readouterr().err
    assert f"ladder: {TILED[1]}: timed, but incomplete: no energy: refused\n" in told
    assert told.endswith("3 of 3 rows, 1 of them failed\n")
    fake.plan()
    began = len(fake.rows)
    assert run(fake, out, "--resume", "--retry-failed", *BOTH) == 0
    assert fake.rows[began:] == [TILED[1]]
    assert not any("incomplete" in row for row in rows_of(out).values())


@pytest.mark.parametrize("what", ["energy ", "count ", ""])
def test_a_device_in_error_costs_the_row_that_broke_it(fake, out, what):
    """Rows after it are run in another process, and those before it that lost their energy."""
    fake.plan({f"{what}{TILED[1]}": "die" if what else "sticky"})
    assert run(fake, out, *BOTH) == 1
    assert len(fake.starts) == 2
    rows = list(rows_of(out).values())
    assert ["joules" in row and "incomplete" not in row for row in rows] == [True, False, True]
    assert ["error_message" in row for row in rows] == [False, not what, False]
    assert "run_unfinished" not in json.loads(out.read_text())["context"]


def test_a_driver_that_tells_nothing_is_said_once_and_no_row_fails(fake, out, capsys):
    fake.plan(energy="none: libnvidia-ml.so.1 cannot be loaded")
    assert run(fake, out, *BOTH) == 0
    told = f"ladder: {out}: no energy: libnvidia-ml.so.1 cannot be loaded\n"
    assert capsys.readouterr().err.count(told) == 1
    assert all("dram_bytes" in row for row in rows_of(out).values())


def test_a_program_that_never_comes_to_count_is_not_tried_for_ever(fake, out):
    fake.plan({TILED[2]: "wrong", "between": "crash"})
    assert run(fake, out, *COUNT) == 1
    assert [row["real_time"] for row in rows_of(out).values()] == [10, 10, 0]
    assert len(fake.starts) == 3


@pytest.mark.parametrize(("what", "read"), [("energy", "joules"), ("count", "dram_bytes")])
def test_an_interruption_in_any_pass_costs_no_times(fake, out, what, read):
    fake.plan({f"{what} {TILED[1]}": "wait"})
    with started(fake, out, *BOTH) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert process.returncode == 4
    assert [read in row for row in rows_of(out).values()] == [True, False, False]
    fake.plan()
    began = len(fake.rows)
    assert run(fake, out, "--resume", *BOTH) == 0
    assert fake.rows[began:] == (TILED[1:] if what == "count" else TILED)
    assert all("joules" in row and "dram_bytes" in row for row in rows_of(out).values())


def test_one_run_at_a_time_writes_into_a_directory(fake, out, capsys):
    fake.plan({TILED[1]: "wait"})
    with started(fake, out) as process:
        fake.plan()
        assert run(fake, out, "--resume") == 2
        told = f"ladder: {out.parent}: another run is writing there\n"
        assert capsys.readouterr().err == told
        (fake.folder / "waiting").unlink()
        process.communicate(timeout=300)
    assert process.returncode == 0


def test_progress_tells_the_time_left_on_one_line_of_a_terminal(fake, out):
    terminal, other = os.openpty()
    command = [sys.executable, "-m", "ladder", "run", str(fake.path), "-o", str(out)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts"), "COLUMNS": "60"}
    fake.plan({"turn/tile/n:64/manual_time": "crash"})
    done = subprocess.run(command, env=environment, stderr=other, check=False, timeout=300)
    os.close(other)
    said = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert done.returncode == 1
    assert "ladder: turn/tile/n:64/manual_time: killed by SIGSEGV\r\n" in said
    assert said.endswith(f"ladder: {out}: 24 of 24 rows, 1 of them failed\r\n")
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", said)  # less colours and moves of the cursor
    assert re.search(r"\r *6/24 \S+ mul/naive +\d s left\r", shown)
    bars = [part for line in shown.split("\r\n") for part in line.split("\r") if "/24 " in part]
    assert bars
    assert all(len(bar.rstrip("\n")) <= 60 for bar in bars)


@pytest.mark.skipif(not EMULATED.exists(), reason="ladder_bench_emulated is not built")
def test_the_emulated_program_counts_the_same_in_many_processes(tmp_path):
    pattern = "^(smem_layout/row_row|smem_layout/row_column|transpose/tiled/rows:512)/.*"
    out, whole = tmp_path / "study.json", tmp_path / "whole.json"
    assert main(["run", str(EMULATED), "-o", str(out), "--filter", pattern]) == 0
    flags = [f"--benchmark_filter={pattern}", f"--benchmark_out={whole}"]
    subprocess.run([EMULATED, *flags], check=True, capture_output=True)
    times = {"real_time", "cpu_time", "iterations"}
    split, one = (
        [{k: v for k, v in row.items() if k not in times} for row in rows_of(file).values()]
        for file in (out, whole)
    )
    assert split == one


@pytest.mark.parametrize(
    "content",
    [
        b'hello\n{"context": {}, "benchmarks": [{"name": "a", "real_time": 1}]}',
        b'{"context": {"executable": "x"}, "benchmarks": [{"name": "a", "real_time": 1}]}',
        b'{"context": {"run_unfinished": 3}, "benchmarks": [{"name": "a", "real_time": 1}]}',
        b"name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,"
        b'error_occurred,error_message\n"a",1,1,1,ns,,,,,\n',
        (Path(__file__).parent / "data/inputs/nvbench.json").read_bytes(),
        '{"context": {}, "benchmarks": [{"name": "a", "real_time": 1}]}'.encode("utf-16"),
        gzip.compress(b'{"context": {}, "benchmarks": [{"name": "a", "real_time": 1}]}'),
    ],
    ids=["text before", "other program", "word", "csv", "nvbench", "utf-16", "gzip"],
)
def test_resume_refuses_in_a_line_what_no_run_wrote(fake, out, capsys, content):
    out.parent.mkdir(exist_ok=True)
    out.write_bytes(content)
    assert run(fake, out, "--resume") in (3, 5)
    err = capsys.readouterr().err
    assert str(out) in err
    assert err.count("\n") == 1
    assert out.read_bytes() == content
