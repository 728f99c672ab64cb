"""The emulated benchmark program as a user runs it: flags, exit codes, formats, result files."""

import json
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build/default"
PROGRAM = BUILD / "benchmarks/emulated/ladder_bench_emulated"
FOR_GPUS = BUILD / "ladder_bench"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="ladder_bench_emulated is not built")

# Every kind of row in a second: steps of shared and of global memory, a library's, a ceiling's.
QUICK = "--benchmark_filter=^(smem_layout/row_(row|column)/|transpose/(copy|tiled)/rows:512/.*:8/)"
SKIPPED = "--benchmark_filter=^transpose/copy/"
TIMES = {"real_time", "cpu_time", "iterations"}
GPUS = ["t4", "a100", "h100", "h200", "b200", "rtx4090"]


def run(*arguments, program=PROGRAM, **options):
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=300, check=False, **options
    )


def strict(text):
    return json.loads(text, parse_constant=pytest.fail)


def rows_of(*arguments):
    done = run(*arguments, "--benchmark_format=json")
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in strict(done.stdout)["benchmarks"]}


def counted(rows):
    """Rows without what differs from run to run."""
    return {
        name: {key: value for key, value in row.items() if key not in TIMES}
        for name, row in rows.items()
    }


def skipped(row):
    return bool(row.get("error_occurred") or row.get("skipped"))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The two files of one run."""
    directory = tmp_path_factory.mktemp("results")
    out, details = directory / "study.json", directory / "details.json"
    done = run(QUICK, f"--benchmark_out={out}", f"--details_out={details}")
    assert done.returncode == 0, done.stderr
    assert sorted(directory.iterdir()) == [details, out]
    return strict(out.read_text()), strict(details.read_text())


def test_help_has_its_own_flags_and_the_librarys():
    shown = run("--help").stdout
    for flag in ("--gpu=", "--order=", "--check", "--details_out=", "--benchmark_filter"):
        assert flag in shown
    assert "--cache" not in shown


def test_small_cases_are_the_default():
    names = run("--benchmark_list_tests").stdout.split()
    assert names == run("--benchmark_list_tests", "--cases=small").stdout.split()
    assert len(names) == len(set(names)) > 100
    full = run("--benchmark_list_tests", "--cases=full").stdout.split()
    assert "sgemm/tiled/m:4096/n:4096/k:4096/manual_time" in set(full) - set(names)


@pytest.mark.skipif(not FOR_GPUS.exists(), reason="ladder_bench is not built")
@pytest.mark.parametrize("cases", ["small", "full"])
def test_rows_are_those_of_ladder_bench(cases):
    listing = ("--benchmark_list_tests", f"--cases={cases}")
    assert run(*listing).stdout == run(*listing, program=FOR_GPUS).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bogus"],
        ["--gpu=h2000"],
        ["--gpu="],
        ["--gpu=H200"],
        ["--cases=huge"],
        ["--order=sideways"],
        ["--workers=many"],
        ["--workers=-1"],
        ["--device=1"],
        ["--cache=cold"],
        ["--noise=0.1"],
        ["--wall_limit=1"],
        ["--profile"],
        ["--ceilings=false"],
        ["--benchmark_min_time=soon"],
        ["--details_out=/nowhere/details.json"],
        ["--shape=sgemm:m=q"],
        ["--shape=sgemm:m=n=k=2^20"],
        ["--benchmark_list_tests", "--benchmark_filter=^nothing$"],
        ["--benchmark_filter=^nothing$"],
    ],
)
def test_bad_usage_is_one_line_and_not_zero(arguments, tmp_path):
    out, details = tmp_path / "out.json", tmp_path / "details.json"
    out.write_text("before")
    details.write_text("before")
    failed = run(f"--benchmark_out={out}", f"--details_out={details}", *arguments)
    assert failed.returncode == 2
    said = [line for line in failed.stderr.splitlines() if not line.startswith("emulated: ")]
    assert len(said) == 1
    assert sorted(tmp_path.iterdir()) == [details, out]
    assert out.read_text() == details.read_text() == "before"


def test_an_unknown_gpu_is_told_the_known_ones():
    failed = run("--gpu=h2000")
    assert "--gpu=h2000" in failed.stderr
    assert all(gpu in failed.stderr for gpu in GPUS)


@pytest.mark.parametrize("gpu", GPUS)
def test_every_gpu_counts_conflicts_alike(gpu):
    rows = rows_of(f"--gpu={gpu}", "--benchmark_filter=^smem_layout/row_column/")
    (row,) = rows.values()
    assert row["shared_load_wavefronts_per_request"] == 32
    assert row["shared_store_wavefronts_per_request"] == 1
    if "blocks_per_sm" not in row:
        pytest.skip("no table of registers for this GPU and these kernels")
    assert row["blocks_per_sm"] == {"t4": 1, "rtx4090": 1}.get(gpu, 2)


def measured_rungs():
    """The titles of ladders that a GPU was measured with, and their rungs."""
    study = json.loads((ROOT / "results/nvidia-h200/study.json").read_text())
    ladders = json.loads(study["context"]["ladders"])
    return {ladder["title"]: {rung["name"] for rung in ladder["rungs"]} for ladder in ladders}


def by_rung(tables):
    """The lines of the tables by ladder and rung, in order; those of no rung under an empty one.

    Without figures, which are of the compiler that built the programs here.
    """
    found = {}
    title = ""
    for line in re.sub(r"\d+, \d+%", "n", tables).splitlines():
        title = line.removeprefix("## ") if line.startswith("## ") else title
        rung = re.match(r"\| `(\w+)` ", line)
        found.setdefault((title, rung[1] if rung else ""), []).append(line)
    return found


def test_the_page_of_gpus_is_of_these_rungs():
    """A rung or a ladder that is new here may be missing until it is measured."""
    sys.path.insert(0, str(ROOT / "docs"))
    import gpus

    page = (ROOT / "docs/gpus.md").read_text()
    shown = by_rung(page.partition(gpus.BEGIN)[2].partition(gpus.END)[0])
    measured = measured_rungs()
    made = {
        (title, rung): lines
        for (title, rung), lines in by_rung(gpus.tables(PROGRAM)).items()
        if (title, rung) in shown or (rung in {"", *measured.get(title, ())} and title in measured)
    }
    assert list(shown.items()) == list(made.items())


@pytest.mark.parametrize(("flags", "code"), [(["--help"], 0), ([], 2), (["one"], 2)])
def test_the_writer_of_the_page_of_gpus_says_how_it_is_called(flags, code):
    done = run(*flags, program=ROOT / "docs/gpus.py")
    assert done.returncode == code
    assert "docs/gpus.py PROGRAM DOCUMENT" in done.stdout
    assert not done.stderr


def test_the_page_of_commands_lists_all_axes_and_their_labels():
    done = run("--plans", "--benchmark_format=json")
    ladders = {x["name"]: x for x in json.loads(json.loads(done.stdout)["context"]["ladders"])}
    page = (ROOT / "docs/cli.md").read_text()
    for name, ladder in ladders.items():
        line = next(told for told in page.splitlines() if told.startswith(f"| `{name}` | `"))
        like = ladders["histogram"]["axes"] if "(as `histogram`)" in line else []
        for axis in ladder["axes"]:
            assert f"`{axis['name']}`" in line
            known = next((a["labels"] for a in like if a["name"] == axis["name"]), [])
            unlisted = [x for x in axis.get("labels", []) if f"`{x}`" not in line]
            assert unlisted == known


def test_plans_run_nothing():
    done = run("--plans", "--cases=full", "--gpu=t4", "--benchmark_format=json")
    assert done.returncode == 0
    rows = {row["name"]: row for row in json.loads(done.stdout)["benchmarks"]}
    row = rows["sgemm/tiled/m:8192/n:8192/k:8192/manual_time"]
    assert row["block_threads"] == 1024
    assert row["theoretical_occupancy"] == 1
    assert "global_load_requests" not in row


def test_the_context_says_what_was_emulated(results):
    context = results[0]["context"]
    assert context["emulated"] == "true"
    assert context["modelled_gpu"] == "h200"
    assert context["gpu_name"] == "NVIDIA H200"
    assert context["cases"] == "small"
    assert json.loads(context["ladders"])[0]["name"] == "roof"
    # Nothing that only a real GPU and its driver could tell.
    assert not {
        "gpu_uuid",
        "driver_version",
        "cache_mode",
        "launch_nanoseconds",
        "small_kernel_nanoseconds",
    } & set(context)


def test_rows_hold_counts_and_no_speeds(results):
    rows = results[0]["benchmarks"]
    assert {skipped(row) for row in rows} == {True, False}
    for row in rows:
        assert not [key for key in row if key.endswith("_per_second")]
        assert not {"percent_of_ceiling", "median_seconds", "samples", "throttled"} & set(row)
        if not skipped(row):
            assert row["verified"] == 1
            assert row["relative_error"] == 0
            assert row["global_store_requests"] > 0
            if "registers" in row:  # without nvcc a table has them, which may lack a new kernel
                assert 0 < row["theoretical_occupancy"] <= 1


def test_details_have_the_lines_and_the_occupancy_of_every_counted_row(results):
    measured, details = results
    names = {
        row["name"].removesuffix("/manual_time")
        for row in measured["benchmarks"]
        if not skipped(row)
    }
    assert {line["row"] for line in details["lines"]} == names
    known = [row for row in measured["benchmarks"] if "registers" in row]
    assert {f"{curve['row']}/manual_time" for curve in details["occupancy"]} == {
        row["name"] for row in known
    }
    for row in measured["benchmarks"]:
        loads = [
            line["requests"]
            for line in details["lines"]
            if f"{line['row']}/manual_time" == row["name"]
            and (line["space"], line["operation"]) == ("shared", "load")
        ]
        assert sum(loads) == row.get("shared_load_requests", 0)
    files = {line["file"].rpartition(".")[2] for line in details["lines"]}
    assert files <= {"cu", "cuh"}
    assert all(line["line"] > 0 for line in details["lines"])


def test_full_cases_tell_how_long_a_row_may_take():
    told = run("--cases=full", "--benchmark_filter=^sgemm/none").stderr.splitlines()[0]
    assert re.fullmatch(
        r"emulated: note: sgemm/.* may take the emulator \d+ minutes per row: .*", told
    )
    assert "may take" not in run("--benchmark_filter=^sgemm/none").stderr


@pytest.mark.parametrize("more", [[], ["--plans"]])
def test_a_named_shape_tells_how_long_a_row_may_take(more):
    told = run("--shape=sgemm:m=n=k=8192", "--benchmark_filter=^sgemm/none", *more).stderr
    assert re.match(r"emulated: note: sgemm/.* may take the emulator \d+ minutes per row: ", told)


def test_the_page_names_all_gpus_that_can_be_emulated():
    listed = re.search(r"the GPU to emulate \(h200\): ((?:\w+,\s+)+\w+)", run("--help").stdout)[1]
    page = (ROOT / "docs/emulator.md").read_text(encoding="utf-8")
    told = re.search(r"`--gpu` takes (.*?)\. For", page, re.DOTALL)[1]
    assert re.findall(r"`(\w+)`", told) == re.split(r",\s+", listed)


def test_counts_do_not_depend_on_the_workers():
    alone, together = (rows_of(QUICK, f"--workers={workers}") for workers in (1, 2))
    assert counted(alone) == counted(together)


@pytest.mark.parametrize("order", ["reverse", "random"])
def test_another_order_is_right_as_well(order):
    rows = rows_of(QUICK, f"--order={order}", "--check")
    assert all(skipped(row) or row["verified"] == 1 for row in rows.values())


def test_per_line_prints_below_the_row():
    shown = run("--benchmark_filter=^smem_layout/row_column/", "--per_line").stdout.splitlines()
    at = next(i for i, line in enumerate(shown) if line.startswith("smem_layout/row_column/"))
    assert any(
        re.match(r"\w+\.cuh?:\d+ ", line) and " 32.00 " in line
        for line in (line.lstrip() for line in shown[at + 1 :])
    )


def test_per_line_leaves_json_alone():
    done = run(
        "--benchmark_filter=^smem_layout/row_column/", "--per_line", "--benchmark_format=json"
    )
    assert len(strict(done.stdout)["benchmarks"]) == 1
    assert re.search(r"\.cuh?:\d+ +shared ", done.stderr)


@pytest.mark.parametrize(
    ("name", "told"), [("csv", "ladder table --format csv"), ("xml", "not console or json")]
)
def test_other_formats_are_left_to_the_scripts(name, told):
    done = run(QUICK, f"--benchmark_format={name}")
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_skipped_rows_are_no_failure(tmp_path):
    out, details = tmp_path / "out.json", tmp_path / "details.json"
    done = run(SKIPPED, f"--benchmark_out={out}", f"--details_out={details}")
    assert done.returncode == 0, done.stderr
    rows = strict(out.read_text())["benchmarks"]
    assert rows
    assert all(map(skipped, rows))
    assert strict(details.read_text()) == {"lines": [], "occupancy": []}


@pytest.mark.parametrize("bad", ["--benchmark_out", "--details_out"])
def test_a_file_that_cannot_be_written_leaves_none(tmp_path, bad):
    good = {"--benchmark_out": "--details_out", "--details_out": "--benchmark_out"}[bad]
    failed = run(QUICK, f"{bad}={tmp_path}/no/such/file.json", f"{good}={tmp_path}/file.json")
    assert failed.returncode in (1, 2)
    assert not (tmp_path / "file.json").exists()


def small_files_only():
    """A stand-in for a full disk: no file grows beyond 1 KiB, and writing on is an error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


@pytest.mark.parametrize("flag", ["--benchmark_out", "--details_out"])
def test_a_full_disk_leaves_no_result(tmp_path, flag):
    failed = run(QUICK, f"{flag}={tmp_path}/out.json", preexec_fn=small_files_only)
    assert failed.returncode == 1
    assert "is the disk full?" in failed.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_leaves_the_earlier_result(tmp_path):
    out, details = tmp_path / "out.json", tmp_path / "details.json"
    out.write_text("before")
    details.write_text("before")
    # Minutes of work, so that it is still at it.
    flags = ("--benchmark_filter=^(reduction|transpose)/", f"--benchmark_out={out}")
    with subprocess.Popen(
        [PROGRAM, *flags, f"--details_out={details}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        while "/manual_time" not in program.stdout.readline():
            time.sleep(0.01)
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=300)
    assert program.returncode != 0
    assert out.read_text() == details.read_text() == "before"
