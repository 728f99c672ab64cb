"""The benchmark program as a user runs it: exit codes, formats, result files."""

import json
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "build/default/ladder_bench"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="ladder_bench is not built")


def run(*arguments, **options):
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, timeout=300, check=False, **options
    )


def has_gpu():
    """Whether the program itself finds a device."""
    return PROGRAM.exists() and "no CUDA device" not in run("--benchmark_filter=^none$").stderr


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="no GPU")
QUICK = ("--benchmark_min_time=3x", "--benchmark_filter=^(roof/fma|histogram/.*bins:32/.*constant)")


def test_rows_are_listed_without_a_gpu():
    listed = run("--benchmark_list_tests", "--benchmark_filter=^sgemm/tiled/")
    assert listed.returncode == 0
    names = listed.stdout.split()
    assert "sgemm/tiled/m:4096/n:4096/k:4096/manual_time" in names
    assert all(name.startswith("sgemm/tiled/") for name in names)


def test_help_has_the_programs_and_the_librarys_flags():
    shown = run("--help").stdout
    assert "--cache=cold|warm" in shown
    assert "--benchmark_filter" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bogus"],
        ["--cache=lukewarm"],
        ["--benchmark_format=csv"],
        ["--device=99"],
        ["--device=first"],
        ["--benchmark_min_time=soon"],
        ["--shape=sgemm:m=q"],
        ["--benchmark_list_tests", "--benchmark_filter=^nothing$"],
    ],
)
def test_bad_usage_is_one_line_and_not_zero(arguments, tmp_path):
    out = tmp_path / "out.json"
    failed = run(*arguments, f"--benchmark_out={out}")
    assert failed.returncode == 2
    assert len(failed.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_small_kernel_to_look_for_is_a_number():
    environment = os.environ | {"LADDER_SMALL_KERNEL_NANOSECONDS": "soon"}
    failed = run("--benchmark_filter=^roof/memcpy", env=environment)
    assert failed.returncode == 2
    assert failed.stderr == "ladder_bench: LADDER_SMALL_KERNEL_NANOSECONDS=soon: not a number\n"


@needs_gpu
def test_results_are_whole_and_valid(tmp_path):
    out = tmp_path / "out.json"
    assert run(*QUICK, f"--benchmark_out={out}").returncode == 0
    assert list(tmp_path.iterdir()) == [out]
    data = json.loads(out.read_text(), parse_constant=pytest.fail)
    rows = data["benchmarks"]
    assert {row["name"].split("/")[0] for row in rows} == {"roof", "histogram"}
    assert all(row["samples"] == 3 for row in rows if "samples" in row)
    assert json.loads(data["context"]["ladders"])[0]["name"] == "roof"


@needs_gpu
@pytest.mark.parametrize(
    "extra",
    [[], ["--benchmark_enable_random_interleaving"], ["--benchmark_report_aggregates_only"]],
)
def test_repetitions_are_aggregated(tmp_path, extra):
    out = tmp_path / "out.json"
    done = run(*QUICK, "--benchmark_repetitions=3", *extra, f"--benchmark_out={out}")
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text())["benchmarks"]
    names = {row["run_name"] for row in rows if row["run_name"].startswith("roof/fma")}
    assert names
    for name in names:
        kinds = [row.get("aggregate_name", "run") for row in rows if row["run_name"] == name]
        assert kinds.count("median") == 1
        assert kinds.count("run") == (0 if "aggregates_only" in str(extra) else 3)


@needs_gpu
def test_samples_are_kept_a_line_a_repetition(tmp_path):
    kept = tmp_path / "kept.jsonl"
    kept.write_text('{"name":"half a li')
    assert run(*QUICK, "--benchmark_repetitions=2", f"--samples_out={kept}").returncode == 0
    torn, *lines = kept.read_text().splitlines()
    assert torn == '{"name":"half a li'
    rows = [json.loads(line) for line in lines]
    assert all(len(row["nanoseconds"]) == 3 and min(row["nanoseconds"]) > 0 for row in rows)
    names = [row["name"] for row in rows]
    assert any(name.startswith("roof/fma") for name in names)
    assert all(names.count(name) == 2 for name in names)


@needs_gpu
@pytest.mark.parametrize("mode", ["cold", "warm"])
def test_the_cache_mode_is_in_the_context(tmp_path, mode):
    out = tmp_path / "out.json"
    assert run(*QUICK, f"--cache={mode}", f"--benchmark_out={out}").returncode == 0
    assert json.loads(out.read_text())["context"]["cache_mode"] == mode


def small_files_only():
    """A stand-in for a full disk: no file grows beyond 1 KiB, and writing on is an error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


@needs_gpu
def test_a_full_disk_leaves_no_result(tmp_path):
    out = tmp_path / "out.json"
    failed = run(*QUICK, f"--benchmark_out={out}", preexec_fn=small_files_only)
    assert failed.returncode == 1
    assert "is the disk full?" in failed.stderr
    assert list(tmp_path.iterdir()) == []


@needs_gpu
def test_a_filter_that_matches_nothing_fails_and_keeps_the_old_file(tmp_path):
    out = tmp_path / "out.json"
    out.write_text("before")
    failed = run("--benchmark_filter=^nothing$", f"--benchmark_out={out}")
    assert failed.returncode == 2
    assert "Failed to match" in failed.stderr
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]
