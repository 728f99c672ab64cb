# SPDX-License-Identifier: MIT
"""Histories: the order of commits, change points at their place, and what few runs can tell."""

import json
import math
import subprocess
from statistics import mean

import calibration
import numpy as np
import pytest
import suite
from comparison import SKIPPED, document, timed
from ladder.commands.cli import main
from ladder.stats import trend
from ladder.stats.interval import Process
from ladder.stats.verdicts import Rules, Side

ROWS, RUNS = 200, 20
FULL, WOBBLE = 200.0, (0, 2, -1, 1, -2, 0, 1, -1, 2, 0)  # us, and thousandths of them


def write(folder, runs: list[dict], order: list[int] | None = None, **context: str) -> None:
    """Write a file per run, a day apart; files are named by `order`, commits 000..., 111..."""
    for i, rows in enumerate(runs):
        name = (order or range(len(runs)))[i]
        dated = {"git_commit": f"{i:x}" * 12, "date": f"2026-01-{i + 1:02d}T00:00:00+00:00"}
        suite.write(folder / f"{name}.json", document(rows, **(dated | context)))


def times(i: int, scale: float = 1.0) -> float:
    return FULL * scale * (1 + WOBBLE[i % 10] / 1000)


def history(count: int = 10) -> list[dict]:
    """Rows that stay, lose 4 % at run 6, gain 10 % at run 5, jump once, and are lost at last."""
    rows = [
        {
            "steady": times(i),
            "slower": times(i + 3, 1.04 if i >= 6 else 1.0),
            "faster": times(i + 5, 0.9 if i >= 5 else 1.0),
            "jumps": times(i + 2, 1.2 if i == 4 else 1.0),
            "lost": times(i + 7),
        }
        for i in range(count)
    ]
    rows[-1]["lost"] = SKIPPED
    return rows


@pytest.fixture
def told(tmp_path, capsys):
    """Run trend on tmp_path; return its exit code and JSON."""

    def run(*options: str) -> tuple[int, list[dict]]:
        code = main(["trend", str(tmp_path), "--format", "json", *options])
        return code, json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize(("form", "golden"), [("text", "trend.txt"), ("markdown", "trend.md")])
def test_a_history_reads_as_it_did(tmp_path, data, capsys, form, golden):
    write(tmp_path, history(), order=[9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
    assert main(["trend", str(tmp_path), "--format", form]) == 0
    assert capsys.readouterr().out == (data / golden).read_text(encoding="utf-8")


def test_change_points_have_their_place_and_ratio(tmp_path, told):
    write(tmp_path, history())
    (found,) = told()[1]
    rows = {row["name"]: row for row in found["rows"]}
    shifts = {name: [(s["at"], s["verdict"]) for s in r["shifts"]] for name, r in rows.items()}
    assert shifts == {
        "steady": [],
        "slower": [(6, "SLOWER")],
        "faster": [(5, "FASTER")],
        "jumps": [],
        "lost": [],
    }
    assert rows["slower"]["shifts"][0]["ratio"] == pytest.approx(1 / 1.04, rel=0.003)
    assert rows["faster"]["shifts"][0]["ratio"] == pytest.approx(1 / 0.9, rel=0.003)
    assert rows["jumps"]["outliers"] == [4]
    assert (rows["lost"]["values"][-1], rows["lost"]["reason"]) == (None, "no cluster")


def test_more_is_better_of_a_speed(tmp_path, told):
    runs = [{"x": {"real_time": 1.0, "bytes_per_second": 1e9 * (1 + (i > 4))}} for i in range(9)]
    write(tmp_path, runs)
    (found,) = told("--metric", "bytes_per_second")[1]
    (shift,) = found["rows"][0]["shifts"]
    assert (shift["at"], shift["verdict"]) == (5, "FASTER")
    assert shift["ratio"] == pytest.approx(2)


@pytest.mark.parametrize(("row", "code"), [("slower", 1), ("faster", 0), ("steady|jumps", 0)])
def test_fail_tells_of_a_newest_segment_that_is_slower(tmp_path, told, row, code):
    write(tmp_path, history())
    assert told("--row", row)[0] == 0
    assert told("--row", row, "--fail")[0] == code


def test_a_regression_that_was_mended_does_not_fail(tmp_path, told):
    write(tmp_path, [{"x": times(i, 1.05 if 4 <= i < 8 else 1.0)} for i in range(12)])
    code, (found,) = told("--fail")
    assert [s["verdict"] for s in found["rows"][0]["shifts"]] == ["SLOWER", "FASTER"]
    assert code == 0


def test_a_clock_that_fell_is_no_slower_kernel(tmp_path, told):
    runs = [
        {
            "x": {
                "real_time": times(i, 1.1 if i > 4 else 1),
                "sm_clock_hz": 1.8e9 if i > 4 else 1.98e9,
            }
        }
        for i in range(10)
    ]
    write(tmp_path, runs)
    code, (found,) = told("--fail")
    assert [s["verdict"] for s in found["rows"][0]["shifts"]] == ["CLOCK"]
    assert code == 0


def test_few_runs_are_compared_with_their_neighbours(tmp_path, capsys):
    write(tmp_path, [{"x": 100.0}, {"x": 100.1}, {"x": 110.0}])
    assert main(["trend", str(tmp_path), "--fail"]) == 1
    out = capsys.readouterr().out
    assert "SLOWER 0.910 at 2222222" in out
    assert "note: fewer than 5 runs: neighbours compared, as 'ladder compare' does\n" in out


def test_changes_of_few_rows_among_many_may_be_chance(tmp_path, told):
    """As compare calls them NOISY; a change of all rows is none."""
    rows = {f"x{i}": timed(100) for i in range(200)}
    write(tmp_path, [rows, rows | {"x7": timed(102)}, {name: timed(104) for name in rows}])
    (found,) = told()[1]
    by_name = {row["name"]: row for row in found["rows"]}
    assert [shift["at"] for shift in by_name["x7"]["shifts"]] == [2]
    assert [shift["at"] for shift in by_name["x8"]["shifts"]] == [2]


def test_files_of_one_commit_are_its_processes(tmp_path, told):
    for i in range(6):
        for process, us in enumerate((100, 101, 108)):
            rows = {"x": us * (1.0 if i < 3 else 1.1)}
            context = {"git_commit": f"{i}" * 12, "date": f"2026-01-0{i + 1}T0{process}:00:00Z"}
            suite.write(tmp_path / f"{i}{process}.json", document(rows, **context))
    (found,) = told()[1]
    assert len(found["runs"]) == 6
    assert found["rows"][0]["values"] == pytest.approx([101e-6] * 3 + [111.1e-6] * 3)


def test_gpus_and_cache_modes_have_histories_of_their_own(tmp_path, told):
    for name, context in (
        ("a", {}),
        ("b", {"gpu_name": "NVIDIA L4"}),
        ("c", {"cache_mode": "warm"}),
    ):
        (tmp_path / name).mkdir()
        write(tmp_path / name, [{"x": 1.0}, {"x": 1.0}], **context)
    write(tmp_path, [{"x": 5.0}], emulated="true")
    titles = [found["title"] for found in told()[1]]
    assert sorted(titles) == [
        "NVIDIA H200, cold cache, Release",
        "NVIDIA H200, warm cache, Release",
        "NVIDIA L4, cold cache, Release",
    ]


def test_a_repository_orders_commits_when_it_has_them(tmp_path, capsys):
    repository, results = tmp_path / "repository", tmp_path / "results"
    repository.mkdir()
    results.mkdir()

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(repository), *who, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    commits = []
    for i in range(3):
        git("commit", "-q", "--allow-empty", "-m", str(i))
        commits.append(git("rev-parse", "HEAD")[:12])
    for day, commit in zip((3, 1, 2), commits, strict=True):  # measured in another order
        context = {"git_commit": commit, "date": f"2026-01-0{day}T00:00:00+00:00"}
        suite.write(results / f"{day}.json", document({"x": 1.0}, **context))

    def order(*options: str) -> list[str]:
        assert main(["trend", str(results), "--format", "json", *options]) == 0
        (found,) = json.loads(capsys.readouterr().out)
        return [run["commit"] for run in found["runs"]], found["notes"]

    by_date = [commits[1], commits[2], commits[0]]
    assert order() == (by_date, ["note: fewer than 5 runs: " + FEW])
    assert order("--repository", str(repository))[0] == commits
    context = {"git_commit": "f" * 12, "date": "2026-01-09T00:00:00+00:00"}
    suite.write(results / "other.json", document({"x": 1.0}, **context))
    runs, notes = order("--repository", str(repository))
    assert runs == [*by_date, "f" * 12]
    assert notes[0] == "note: ordered by date: fffffff is not in the repository"
    assert main(["trend", str(results), "--repository", str(results / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_single_run_has_no_trend(tmp_path, capsys):
    write(tmp_path, [{"x": 1.0, "y": 1.0}])
    for form in ("text", "markdown"):
        assert main(["trend", str(tmp_path), "--format", form]) == 0
        told = "NVIDIA H200, cold cache, Release: one run, 0000000: no trend.\n"
        assert capsys.readouterr().out == told


def test_a_single_run_tells_its_notes_and_failures(tmp_path, capsys):
    failed = {"error_occurred": True, "error_message": "wrong result"}
    for i, rows in enumerate(({"x": 1.0, "y": 1.0}, {"x": 1.0, "y": failed})):
        suite.write(tmp_path / f"{i}.json", document(rows, git_commit="0" * 12, gpu_uuid=str(i)))
    assert main(["trend", str(tmp_path)]) == 0
    title, _, *notes = capsys.readouterr().out.splitlines()
    assert title.endswith("one run, 0000000: no trend.")
    assert notes == ["note: measured on 2 boards, which may differ", "y: error: wrong result"]
    assert main(["trend", str(tmp_path), "--row", "y", "--plot", str(tmp_path / "y.svg")]) == 2


FEW = "neighbours compared, as 'ladder compare' does"


def test_files_of_other_suites_are_runs_of_their_host(tmp_path, data, capsys):
    foreign = json.loads((data / "foreign.json").read_text())
    for i in range(6):
        foreign["context"]["date"] = f"2026-01-0{6 - i}T00:00:00+00:00"
        suite.write(tmp_path / f"night-{i}.json", foreign)
    assert main(["trend", str(tmp_path), "--row", "big"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "g.py, host builder, release: real_time in 6 runs, from night-5 to night-0.\n"
    )
    assert out.endswith("3 rows, 0 changed, 0 slower since their last change\n")


def test_containers_of_one_program_make_one_history(data, capsys):
    files = map(str, sorted((data / "cases/containers").glob("trend*.json")))
    assert main(["trend", *files, "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["title"] == "bench, 8 hosts, release"
    assert found["notes"] == ["note: measured on 8 hosts of one kind, which may differ"]
    assert [run["label"] for run in found["runs"]] == [f"trend{i}" for i in range(8)]


def test_programs_and_machines_of_other_suites_have_histories_of_their_own(tmp_path, capsys):
    host = {"host_name": "a", "executable": "b/bench", "num_cpus": 8, "library_build_type": "debug"}
    changes = ({}, {"num_cpus": 96}, {"executable": "c/bench"}, {"executable": "b/other"})
    for i, change in enumerate(changes):
        made = document({"y" if change.get("executable") == "c/bench" else "x": 1.0})
        for run in range(2):
            day = {"date": f"2026-01-0{run + 1}T00:00:00+00:00"}
            made["context"] = host | change | day
            suite.write(tmp_path / f"{i}{run}.json", made)
    assert main(["trend", str(tmp_path), "--format", "json"]) == 0
    titles = [found["title"] for found in json.loads(capsys.readouterr().out)]
    assert titles == [
        "b/bench, host a, debug, b/bench, 8 CPUs",
        "b/bench, host a, debug, b/bench, 96 CPUs",
        "c/bench, host a, debug",
        "other, host a, debug",
    ]


@pytest.mark.parametrize(
    ("dates", "labels"),
    [
        (["2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"], ["2026-01-01", "2026-01-02"]),
        (
            ["2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", "2026-01-02T10:00:00Z"],
            ["2026-01-01 10:00", "2026-01-01 11:00", "2026-01-02"],
        ),
        (["2026-01-01T10:00:00Z"] * 2, ["{}/0/bench.json", "{}/1/bench.json"]),
        (["", ""], ["{}/0/bench.json", "{}/1/bench.json"]),
    ],
)
def test_runs_without_a_commit_have_labels_of_their_own(tmp_path, told, dates, labels):
    for i, date in enumerate(dates):
        (tmp_path / str(i)).mkdir()
        suite.write(tmp_path / str(i) / "bench.json", document({"x": 1.0}, date=date))
    (found,) = told()[1]
    assert [run["label"] for run in found["runs"]] == [label.format(tmp_path) for label in labels]


def test_the_plot_is_the_same_every_time(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    write(folder, history())
    drawn = [tmp_path / str(i) / "trend.svg" for i in range(2)]
    for path in [*drawn, tmp_path / "trend.png"]:
        assert main(["trend", str(folder), "--row", "slower|jumps", "--plot", str(path)]) == 0
    assert drawn[0].read_bytes() == drawn[1].read_bytes()
    assert (tmp_path / "trend.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--row", "nine"], "no row whose name contains 'nine' has a real_time"),
        (["--metric", "l2_bytes"], "--metric l2_bytes: no row has it; there are: cpu_time, new"),
        (["--metric", "new"], "--metric new: is less or more of it better?"),
    ],
)
def test_what_leaves_nothing_is_told_in_a_line(tmp_path, capsys, options, told):
    write(tmp_path, [{"x": {"real_time": 1.0, "new": 1.0}}])
    assert main(["trend", str(tmp_path), *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"ladder: {told}")


def test_notes_are_escaped_in_markdown_alone(tmp_path, capsys):
    write(tmp_path, [{"x": 1.0}, {"x": SKIPPED}], gpu_name="GPU<b>", gpu_uuid="1")
    for form, title in (("markdown", r"GPU\<b\>, cold"), ("text", "GPU<b>, cold")):
        assert main(["trend", str(tmp_path), "--format", form]) == 0
        assert capsys.readouterr().out.startswith(title)


def test_a_file_without_a_date_has_none(tmp_path, told):
    write(tmp_path, [{"x": 1.0}], date="soon")
    suite.write(tmp_path / "dated.json", document({"x": 1.0}, date="2026-01-02T00:00:00+00:00"))
    (found,) = told()[1]
    assert [run["date"] for run in found["runs"]] == [None, "2026-01-02T00:00:00+00:00"]


def test_a_long_history_of_an_exact_metric_is_judged_once(tmp_path, told, monkeypatch):
    """Not anew for each pair of neighbours that are alike."""
    calls = []
    judge = trend.judge
    monkeypatch.setattr(trend, "judge", lambda *a, **k: calls.append(1) or judge(*a, **k))
    counts = [0, 0, 4, 4, 4, 4, 0, *[8] * 20]
    write(tmp_path, [{"x": {"spilled_bytes": float(n)}} for n in counts])
    code, (found,) = told("--metric", "spilled_bytes", "--fail")
    shifts = [(s["at"], s["verdict"]) for s in found["rows"][0]["shifts"]]
    assert shifts == [(2, "SLOWER"), (6, "FASTER"), (7, "SLOWER")]
    assert (code, len(calls)) == (1, 1)


def follow(sides: list[Side], rules: Rules) -> trend.Track:
    """Find the change points of one row from what each run measured of it."""
    points = trend._points("x", sides, rules, None, exact=False)
    return trend._followed([points], rules, None, more=False, exact=False)[0]


def test_a_history_with_zeros_costs_no_more_than_its_length(monkeypatch):
    """Of neighbours that are dropped one by one, only those beside them are judged anew."""
    judged = []
    judge = trend.judge
    monkeypatch.setattr(trend, "judge", lambda p, *a, **k: judged.extend(p) or judge(p, *a, **k))
    counts = [0.0] * 100 + [1000.0 + WOBBLE[i % 10] for i in range(100)]
    sides = [Side("x", "ok", "", 1e-3, math.nan, False, (Process((n,)),)) for n in counts]
    track = follow(sides, Rules(metric="l2_bytes"))
    assert [(s.at, s.verdict) for s in track.shifts] == [(100, "SLOWER")]
    assert len(judged) <= 3 * 100


def test_a_plot_of_another_kind_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["trend", "x", "--plot", "a.pdf"])
    assert stop.value.code == 2
    assert "'a.pdf' is neither .svg nor .png" in capsys.readouterr().err


def simulated(model: calibration.Model, runs: int, step: float = 0.0, at: int = 0) -> list:
    """Follow ROWS rows of that noise, `step` slower from run `at` on."""
    values = model.seconds * model.draw(np.random.default_rng(7), ROWS, runs)
    values[:, at:] *= 1 + step
    sides = [
        [Side("x", "ok", "", s, math.nan, False, (Process((s,), model.within),)) for s in row]
        for row in values.tolist()
    ]
    return [follow(row, Rules()) for row in sides]


UNEVEN = ("two modes, half and half", "a process in 50 slow", "short, normal, 1.5 %")
NOISE = calibration.Model(calibration.normal(0.005))


@pytest.mark.parametrize("runs", [5, RUNS, 60])
def test_equal_runs_rarely_show_a_change(runs):
    assert mean(bool(track.shifts) for track in simulated(NOISE, runs)) <= 0.05


@pytest.mark.parametrize("model", ["recorded, below 30 us", "recorded, from 30 us", *UNEVEN])
def test_noise_of_other_kinds_rarely_shows_a_change(model):
    tracks = simulated(calibration.MODELS[model], RUNS)
    assert mean(bool(track.shifts) for track in tracks) <= 0.05


@pytest.mark.parametrize("at", [2, 10, RUNS - 2])
def test_a_step_of_three_percent_is_found_at_its_place(at):
    tracks = simulated(NOISE, RUNS, 0.03, at)
    found = [[s.at for s in track.shifts if s.verdict == "SLOWER"] for track in tracks]
    assert mean(len(f) == 1 and abs(f[0] - at) <= 1 for f in found) >= 0.95
    assert mean(track.slower for track in tracks) >= 0.95
