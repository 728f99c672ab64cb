# SPDX-License-Identifier: MIT
"""The ladders as ReFrame tests, on its local scheduler: what a cluster's user relies on."""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
import suite
from ladder.commands.cli import main

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts/reframe"

# By its distribution: the folder of the scripts counts as a package of that name, and to find a
# module within the true one would load it.
pytestmark = pytest.mark.skipif(
    not [*importlib.metadata.distributions(name="reframe-hpc")],
    reason="needs ReFrame: pip install -r scripts/reframe/requirements.txt",
)

# Stands in for ladder_bench: writes those rows of a file that the filter finds, or dies.
PROGRAM = """#!{python}
import json, os, re, sys
flags = dict(flag.partition("=")[::2] for flag in sys.argv[1:])
if re.search(flags["--benchmark_filter"], "reduction/"):
    sys.exit("CUDA: out of memory")
with open("{whole}") as file:
    document = json.load(file)
document["context"]["gpu_uuid"] = os.environ.get("CUDA_VISIBLE_DEVICES", "")
pattern = re.compile(flags["--benchmark_filter"])
document["benchmarks"] = [row for row in document["benchmarks"] if pattern.search(row["name"])]
with open(flags["--benchmark_out"], "w") as file:
    json.dump(document, file)
"""

# Stands in for CMake: keeps its arguments, and builds the program that they name.
CMAKE = """#!{python}
import os, shutil, sys
arguments = sys.argv[1:]
with open("{log}", "a") as file:
    file.write(" ".join(arguments) + "\\n")
if arguments[0] == "--build":
    target = arguments[-1]
    folder = arguments[1] + ("/benchmarks/emulated" if target.endswith("emulated") else "")
    os.makedirs(folder, exist_ok=True)
    shutil.copy("{program}", folder + "/" + target)
"""

SITE = """
import runpy
site_configuration = runpy.run_path({settings!r})["site_configuration"]
local = site_configuration["systems"][-1]
(default,) = local["partitions"]
local["partitions"] = [default | {{"max_jobs": 4}} | more for more in {partitions!r}]
"""


def script(path: Path, text: str, **values: object) -> Path:
    path.write_text(text.format(python=sys.executable, **values), encoding="utf-8")
    path.chmod(0o755)
    return path


def reframe(folder: Path, *arguments: str, partitions: list | None = None):
    """Run ReFrame on this machine; nothing is written outside `folder`."""
    site = folder / "site.py"
    site.write_text(
        SITE.format(settings=str(SCRIPTS / "settings.py"), partitions=partitions or [{}]),
        encoding="utf-8",
    )
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "scripts")}
    environment |= {"TMPDIR": str(folder)}
    command = ["reframe", "--nocolor", "-C", str(site), f"--prefix={folder}"]
    if not any(argument.startswith("--system") for argument in arguments):
        command += ["--system=local"]
    command += ["-c", str(SCRIPTS / "ladders.py"), f"--report-file={folder / 'report.json'}"]
    return subprocess.run(
        [*command, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def cases(folder: Path) -> dict[str, dict]:
    """What ReFrame's own report says of each ladder."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    found = [case for run in report["runs"] for case in run["testcases"]]
    return {f"{c['partition']} {c['ladder']}": c for c in found if "ladder" in c}


def test_the_slurm_template_asks_for_what_a_job_needs(tmp_path):
    select = ["--name=LadderTest.*%ladder=scan", "--parameterize=LadderTest.device=0,1"]
    done = reframe(tmp_path, "--system=cluster:gpu", "--dry-run", *select)
    assert done.returncode == 0, done.stdout
    build, *jobs = (
        file.read_text(encoding="utf-8")
        for name in ("rfm_build.sh", "rfm_job.sh")
        for file in tmp_path.rglob(name)
    )
    asked = [
        set(re.findall("^#SBATCH (--(?:gres|part|excl).*)", job, re.M)) for job in (build, *jobs)
    ]
    assert asked[0] == {"--partition=gpu", "--gres=gpu:1"}
    assert asked[1:] == [{"--partition=gpu", "--gres=gpu:4", "--exclusive"}] * 2
    assert sorted(re.search("CUDA_VISIBLE_DEVICES=(.*)", job)[1] for job in jobs) == ["0", "1"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Four ladders in one run: one is well, one slow, one has a wrong row, and one dies."""
    folder = tmp_path_factory.mktemp("reframe")
    whole = suite.document()
    wrong = next(row for row in whole["benchmarks"] if row["name"].startswith("sgemm/tiled/"))
    for figure in ("flops_per_second", "bytes_per_second"):
        del wrong[figure]
    wrong |= {"error_occurred": True, "error_message": "wrong result", "real_time": 0.0}
    earlier = suite.document()
    for row in earlier["benchmarks"]:
        if row["name"].startswith("histogram/"):
            row |= {"bytes_per_second": 2 * row.get("bytes_per_second", 0)}
    program = script(folder / "bench", PROGRAM, whole=suite.write(folder / "whole.json", whole))
    reference = suite.write(folder / "earlier.json", earlier)
    collected = folder / "results/local-default-nvidia-h200" / platform.node()
    collected.mkdir(parents=True)
    (collected / "transpose.json").write_text("earlier", encoding="utf-8")
    done = reframe(
        folder,
        "--name=LadderTest%ladder=(transpose|sgemm|reduction|histogram)$",
        f"--setvar=Program.program={program}",
        f"--setvar=LadderTest.collect={folder / 'results'}",
        "--run",
        partitions=[{"features": ["gpu"], "extras": {"reference": str(reference)}}],
    )
    return done, cases(folder), collected


def test_every_ladder_is_listed(tmp_path):
    done = reframe(tmp_path, "--list")
    assert done.returncode == 0, done.stdout + done.stderr
    study = json.loads((ROOT / "results/nvidia-h200/study.json").read_text(encoding="utf-8"))
    listed = re.findall(r"- LadderTest %ladder=(\w+)", done.stdout)
    assert listed == [ladder["name"] for ladder in json.loads(study["context"]["ladders"])]


def test_figures_are_of_the_best_rung_at_the_headline(ran):
    case = ran[1]["default transpose"]
    assert case["result"] == "pass", ran[0].stdout
    figures = {name.split(":")[-1]: value for name, value in case["perfvalues"].items()}
    assert figures["bandwidth"][0] == pytest.approx(3870)
    assert figures["bandwidth"][1] == pytest.approx(3870)  # the reference
    assert figures["bandwidth"][-2] == "GB/s"
    assert figures["percent_of_ceiling"][0] == pytest.approx(100 * 3870 / 4120)
    assert case["best_rung"] == "vectorised"


def test_results_gather_as_the_program_wrote_them(ran, capsys):
    kept = json.loads((ran[2] / "transpose.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in kept["benchmarks"]] == [
        row["name"] for row in suite.rows() if row["name"].startswith("transpose/")
    ]
    assert main(["table", str(ran[2].parent), "--ladder", "transpose"]) == 0
    assert "`vectorised`" in capsys.readouterr().out


def test_earlier_results_stay(ran):
    (old,) = ran[2].glob("transpose-*.json.old")
    assert old.read_text(encoding="utf-8") == "earlier"


def test_a_failed_row_fails_its_ladder_and_costs_no_measurement(ran):
    done, found, collected = ran
    assert done.returncode == 1
    assert found["default sgemm"]["result"] == "fail"
    assert re.search(r"1 of 48 rows failed: sgemm/tiled/m:512\S*: wrong result", done.stdout)
    assert len(json.loads((collected / "sgemm.json").read_text())["benchmarks"]) == 48


def test_without_results_it_says_what_the_program_said(ran):
    done, found, collected = ran
    assert found["default reduction"]["fail_phase"] == "sanity"
    assert "CUDA: out of memory" in found["default reduction"]["fail_reason"]
    assert not (collected / "reduction.json").exists()
    assert "Traceback" not in done.stdout + done.stderr


def test_slower_than_the_reference_fails(ran):
    case = ran[1]["default histogram"]
    assert case["fail_phase"] == "performance", ran[0].stdout
    assert (ran[2] / "histogram.json").exists()


def test_a_partition_builds_once_and_measures_each_of_its_gpus(tmp_path):
    whole = suite.write(tmp_path / "whole.json")
    program = script(tmp_path / "bench", PROGRAM, whole=whole)
    script(tmp_path / "cmake", CMAKE, log=tmp_path / "log", program=program)
    done = reframe(
        tmp_path,
        "--name=LadderTest.*%ladder=transpose",
        f"--setvar=LadderTest.collect={tmp_path / 'results'}",
        "--parameterize=LadderTest.device=0,1",
        "--setvar=LadderTest.rows=/padded/",
        "--run",
        partitions=[{"name": "gpu", "features": ["gpu"]}, {"name": "cpu", "features": []}],
    )
    assert done.returncode == 0, done.stdout
    log = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert sum(f"-S {ROOT}" in line and "-DLADDERS_CUDA=ON" in line for line in log) == 1
    built = sorted(line.split()[-1] for line in log if line.startswith("--build"))
    assert built == ["ladder_bench", "ladder_bench_emulated"]
    for device in "01":
        folder = tmp_path / f"results/local-gpu-nvidia-h200/{platform.node()}-gpu{device}"
        kept = json.loads((folder / "transpose.json").read_text(encoding="utf-8"))
        assert kept["context"]["gpu_uuid"] == device
        assert {row["name"].split("/")[1] for row in kept["benchmarks"]} == {"padded"}
