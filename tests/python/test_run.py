# SPDX-License-Identifier: MIT
"""Runs in many processes: what a failure costs, and what is gone on with."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from fake_program import EMULATED, TILED, Fake, check_nothing_else, errors_of, rows_of, run, started
from ladder.commands.cli import main
from ladder.measure import process
from ladder.model.catalogue import parse
from ladder.model.ceilings import PERCENT, Ceilings


def test_a_run_in_many_processes_says_what_one_process_says(fake, out, tmp_path, capsys):
    assert run(fake, out, "--split", "rung") == 0
    assert len(fake.starts) == 8  # one per rung
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
    assert run(fake, out, "--split", "rung") == 0
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
    flags = ["--filter", "^mul/(naive|tiled)/", "--timeout", "60", "--split", "rung"]
    assert run(fake, out, *flags) == 1
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


def test_rows_of_a_gpu_that_is_too_hot_are_counted(fake, out, capsys):
    fake.plan({TILED[0]: "hot", TILED[2]: "hot"})
    assert run(fake, out, "--filter", "^mul/tiled/") == 0
    err = capsys.readouterr().err
    assert f"ladder: {out}: heat lowered the clock in 2 rows: a cooler GPU is faster\n" in err
    fake.plan({})
    assert run(fake, out.with_name("cool.json"), "--filter", "^mul/tiled/") == 0
    assert "heat" not in capsys.readouterr().err


def test_an_error_that_stays_with_the_process_costs_one_row(fake, out):
    fake.plan({TILED[0]: "sticky"})
    assert run(fake, out, "--filter", "^mul/") == 1
    assert errors_of(out) == {TILED[0]: "CUDA: an illegal memory access"}


def test_a_crash_after_an_error_is_no_fault_of_the_row_before_it_is_tried_again(fake, out):
    fake.plan({TILED[0]: "sticky", TILED[1]: "once"})
    assert run(fake, out, "--filter", "^mul/tiled/") == 1
    assert list(errors_of(out)) == [TILED[0]]


def test_a_shape_that_is_large_for_the_emulator_is_told_before_it_runs(fake, out, capsys):
    assert run(fake, out, "--shape", "mul:n=77") == 0
    assert capsys.readouterr().err.startswith("ladder: note: mul/n:77 takes long\n")


@pytest.mark.parametrize("lacks", ["cases", "plans"])
def test_only_an_emulated_program_of_ours_is_asked_for_its_plans(fake, out, lacks):
    fake.plan(**{lacks: False})
    assert run(fake, out, "--shape", "mul:n=77") == 0
    assert not (fake.folder / "plans").exists()


def test_a_note_of_two_programs_is_told_once(fake, tmp_path, capsys):
    base = Fake(tmp_path / "base")
    shape = ["--base", str(base.path), "--processes", "1", "--shape", "mul:n=77"]
    assert run(fake, tmp_path / "out", *shape) == 0
    assert capsys.readouterr().err.count("mul/n:77 takes long") == 1


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


@pytest.mark.parametrize(("split", "starts"), [([], 3), (["--split", "none"], 1)])
def test_fewer_processes_give_the_same(fake, out, tmp_path, split, starts):
    assert run(fake, tmp_path / "rungs.json", "--split", "rung") == 0
    before = len(fake.starts)
    assert run(fake, out, *split) == 0
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
    assert re.search(r"\r *6/24 \S+ mul +\d s left\r", shown)
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
