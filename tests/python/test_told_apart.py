# SPDX-License-Identifier: MIT
"""What has one name and is not the same: counters, families, programs, and runs of a history."""

from __future__ import annotations

import json
import math

import ladder as package
import pytest
import suite
from ladder.commands.cli import main
from ladder.io.results import load_processes, load_results
from ladder.model.rows import COUNTERS, Row

FOREIGN = {"host_name": "ci", "executable": "./bench", "library_build_type": "release"}


def entry(name: str = "BM", time: float = 1.0, **more) -> dict:
    """A row as Google Benchmark writes it."""
    fixed = {"name": name, "run_name": name, "run_type": "iteration", "iterations": 10}
    return fixed | {"real_time": time, "cpu_time": time, "time_unit": "us"} | more


def write(path, *rows, **context):
    return suite.write(path, {"context": FOREIGN | context, "benchmarks": list(rows)})


def only(path, *rows) -> Row:
    (results,) = load_results(write(path / "a.json", *rows))
    (row,) = results.rows
    return row


def times(results) -> dict[str, float]:
    """Microseconds by name."""
    return {row.name: round(1e6 * row.seconds, 6) for r in results for row in r.rows}


# Rows


def test_a_row_has_every_known_counter_and_no_other(tmp_path):
    row = only(tmp_path, entry(dram_bytes=5.0, mine=2.0))
    assert (row.dram_bytes, row.counter("mine"), row.repetitions) == (5.0, 2.0, 1)
    assert all(math.isnan(getattr(row, name)) for name in COUNTERS if name != "dram_bytes")
    assert math.isnan(row.counter("never"))
    with pytest.raises(AttributeError, match="'mine'"):
        _ = row.mine


def test_results_load_without_pandas(tmp_path, ladder):
    """As on a machine that only compares: a module of that name stands in for its lack."""
    (tmp_path / "pandas.py").write_text("raise ModuleNotFoundError(name='pandas')\n")
    file = write(tmp_path / "a.json", entry())
    done = ladder("table", file, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "`BM`" in done.stdout


# Counters with the names of Google Benchmark's own fields


def test_the_librarys_fields_come_first_and_a_counter_is_kept_beside_them(data):
    (results,) = load_results(data / "cases/counter_named_iterations.json")
    row, other = results.rows
    assert (row.seconds, other.seconds) == pytest.approx((250e-6, 1e-6))
    assert row.counters == {"user_iterations": 17, "user_threads": 8}
    assert results.written[row.name][0]["iterations"] == 100  # the library's own


@pytest.mark.parametrize("key", ["run_name", "repetitions", "real_time", "time_unit", "name"])
def test_a_counter_may_have_the_name_of_any_field(tmp_path, key):
    text = json.dumps({"context": FOREIGN, "benchmarks": [entry(repetitions=1) | {"last": 2.0}]})
    (tmp_path / "a.json").write_text(text.replace('"last"', f'"{key}"'))
    (results,) = load_results(tmp_path)
    assert times([results]) == {"BM": 1.0}
    assert results.rows[0].counters == {f"user_{key}": 2.0}


@pytest.mark.parametrize(
    ("last", "label", "counters"),
    [
        ('"label": 2.0, "label": "told"', "told", {"user_label": 2.0}),  # the label comes last
        ('"label": 2.0', "", {"label": 2.0}),
        ('"label": "told"', "told", {}),
        ('"skipped": 2.0, "error_occurred": 1.0', "", {"skipped": 2.0, "error_occurred": 1.0}),
        ('"rms": 2.0', "", {"rms": 2.0}),
    ],
)
def test_what_only_some_rows_have_is_told_from_a_counter_by_its_type(
    tmp_path, last, label, counters
):
    text = json.dumps({"context": FOREIGN, "benchmarks": [entry() | {"last": 0}]})
    (tmp_path / "a.json").write_text(text.replace('"last": 0', last))
    (results,) = load_results(tmp_path)
    (row,) = results.rows
    assert (row.status, row.label, row.counters) == ("ok", label, counters)


def test_added_context_may_have_the_name_of_the_librarys(tmp_path):
    text = json.dumps({"context": FOREIGN | {"last": "mine"}, "benchmarks": [entry()]})
    (tmp_path / "a.json").write_text(text.replace('"last"', '"host_name"'))
    (results,) = load_results(tmp_path)
    assert (results.context["host_name"], results.context["user_host_name"]) == ("ci", "mine")


def test_a_counter_with_the_name_of_a_column_is_another_column(tmp_path, capsys):
    file = write(tmp_path / "a.json", entry(seconds=7.0, status=8.0, gain=9.0))
    rows = package.load(file)
    assert rows.loc[0, ["seconds", "status"]].tolist() == [1e-6, "ok"]
    assert rows.loc[0, ["user_seconds", "user_status", "gain"]].tolist() == [7, 8, 9]
    assert main(["table", str(file), "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["seconds"], row["user_gain"]) == (1e-6, 9)


def test_a_rate_of_nothing_is_a_rate(tmp_path):
    row = only(tmp_path, entry(items_per_second=0.0, bytes_per_second=1e-12))
    assert row.counters == {"items_per_second": 0.0, "bytes_per_second": 1e-12}


def test_a_file_of_aggregates_tells_how_many_repetitions_they_are_of(data):
    (row,) = package.load(data / "aggregates_only.json").itertuples()
    written = json.loads((data / "aggregates_only.json").read_text())["benchmarks"]
    assert row.repetitions == written[0]["repetitions"] == 3


# Families


def test_families_of_one_name_are_different_rows(data):
    base, head = (load_results(data / f"cases/same_name_{side}.json") for side in ("base", "head"))
    assert times(base) == {"BM_Sort/8#1": 10, "BM_Sort/8#2": 1000}
    assert times(head) == {"BM_Sort/8#1": 20, "BM_Sort/8#2": 1000}


def test_a_slower_one_of_two_families_is_found(data, capsys):
    files = [str(data / f"cases/same_name_{side}.json") for side in ("base", "head")]
    assert main(["compare", *files]) == 1
    assert "SLOWER   BM_Sort/8#1" in capsys.readouterr().out


def test_repetitions_of_families_stay_theirs_in_any_order(tmp_path):
    made = [
        entry("x", time, family_index=family, per_family_instance_index=0)
        for time, family in ((9.0, 1), (1.0, 0), (3.0, 0), (7.0, 1), (5.0, 2))
    ]
    (results,) = load_results(write(tmp_path / "a.json", *made))
    assert times([results]) == {"x#1": 2, "x#2": 8, "x#3": 5}


def test_rows_of_a_ladder_may_come_from_processes_that_number_them_anew(tmp_path):
    made = suite.document()
    row = made["benchmarks"][0]
    made["benchmarks"] = [row | {"family_index": family} for family in (0, 3)]
    (results,) = load_results(suite.write(tmp_path / "a.json", made))
    assert [(found.name, found.repetitions) for found in results.rows] == [(row["run_name"], 2)]


# Programs


def test_equal_names_of_two_programs_are_different_rows(data):
    for read in (load_results, lambda folder: load_processes([folder])):
        assert times(read(data / "cases/two_programs_base")) == {
            "bench_list:BM_Insert": 700,
            "bench_list:BM_Erase": 90,
            "bench_vector:BM_Insert": 100,
            "bench_vector:BM_Erase": 50,
        }


def test_a_slower_one_of_two_programs_is_found(data, capsys):
    sides = [str(data / f"cases/two_programs_{side}") for side in ("base", "head")]
    assert main(["compare", *sides]) == 1
    out = capsys.readouterr().out
    assert "SLOWER   bench_vector:BM_Insert  100 us  200 us" in out
    assert out.count("SLOWER   ") == 1


def test_what_one_program_alone_has_keeps_its_name(tmp_path):
    write(tmp_path / "a.json", entry("both"), entry("a"), executable="/x/one")
    write(tmp_path / "b.json", entry("both"), entry("b"), executable=r"C:\y\two.exe")
    write(tmp_path / "c.json", entry("both"), entry("c"), executable="/elsewhere/one")
    results = load_results(tmp_path)
    assert set(times(results)) == {"one:both", "two.exe:both", "a", "b", "c"}


def test_histories_of_two_programs_stay_apart(data, capsys):
    folders = [str(data / f"cases/two_programs_{side}") for side in ("base", "head")]
    assert main(["trend", *folders]) == 0
    out = capsys.readouterr().out
    titles = [line for line in out.splitlines() if "real_time in 2 runs" in line]
    assert [title.partition(",")[0] for title in titles] == ["bench_list", "bench_vector"]


# Runs


def test_a_history_is_not_one_run(data, capsys):
    folder = str(data / "cases/history")
    assert main(["table", folder]) == 0
    out = capsys.readouterr().out
    told = [line for line in out.splitlines() if "BM_Insert" in line or "host" in line]
    assert told[::2] == [f"bench, host ci, same{i}.json." for i in range(8)]
    times = [line.split(" | ")[1] for line in told[1::2]]
    assert times == ["100 us"] * 4 + ["130 us"] * 4


def test_a_report_names_each_run_of_a_history(data, tmp_path):
    assert main(["report", str(data / "cases/history"), "-o", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(f"<h1>bench, host ci, same{i}.json" in page for i in range(8))


def test_loading_a_history_keeps_its_runs(data):
    rows = package.load(data / "cases/history")
    insert = rows[rows["name"] == "BM_Insert"]
    assert insert["seconds"].tolist() == pytest.approx([100e-6] * 4 + [130e-6] * 4)
    assert insert["repetitions"].tolist() == [1] * 8
    assert insert["executable"].unique().tolist() == ["bench"]


def test_processes_of_one_commit_are_one_run(tmp_path):
    for i in range(3):
        write(
            tmp_path / f"{i}.json", entry(time=1.0 + i), git_commit="abc", date=f"2026-01-0{i + 1}"
        )
    (results,) = load_results(tmp_path)
    assert [(row.repetitions, row.seconds) for row in results.rows] == [(3, pytest.approx(2e-6))]


# Runs that do not tell their commit


@pytest.fixture
def three(tmp_path):
    """Three processes of one program whose file names no commit."""
    for i in range(3):
        write(tmp_path / f"{i}.json", entry("BM_a/8", time=1.0 + i))
    return tmp_path


def test_files_without_commit_are_one_run_where_the_user_says_so(three, capsys):
    (results,) = load_results(three, one_run=True)
    assert [(row.repetitions, row.seconds) for row in results.rows] == [(3, pytest.approx(2e-6))]
    assert package.load(three, one_run=True)["repetitions"].tolist() == [3]
    for command in ("table", "matrix"):
        assert main([command, str(three), "--one-run"]) == 0
        out, err = capsys.readouterr()
        assert ("2.00 us" in out, "3.00 us" in out, err) == (True, False, "")


def test_files_without_commit_that_may_be_one_run_are_told_of(three, capsys):
    assert main(["table", str(three)]) == 0
    out, err = capsys.readouterr()
    assert all(time in out for time in ("1.00 us", "2.00 us", "3.00 us"))
    assert "3 files" in err
    assert "--one-run" in err
    assert err.count("\n") == 1
    write(three / "0.json", entry("BM_a/8"), git_commit="abc")
    write(three / "1.json", entry("BM_a/8"), executable="other")
    assert main(["table", str(three)]) == 0
    assert capsys.readouterr().err == ""


def test_files_of_other_builds_and_machines_are_not_one_run(three):
    write(three / "1.json", entry("BM_a/8"), library_build_type="debug")
    write(three / "2.json", entry("BM_a/8"), num_cpus=64)
    assert len(load_results(three, one_run=True)) == 3


def test_references_of_files_without_commit(three, capsys):
    out = three / "made.toml"
    wanted = ["check", str(three), "--write", str(out), "--metric", "real_time"]
    assert main(wanted) == 5
    assert "--one-run" in capsys.readouterr().err.splitlines()[-1]
    assert main([*wanted, "--one-run"]) == 0
    assert "value = 2e-06" in out.read_text()
    assert main(["check", str(three), "--one-run", "--references", str(out)]) == 0
    assert main(["check", str(three), "--write", str(three / "x.toml"), "--one-run"]) == 2
    assert "--metric real_time" in capsys.readouterr().err


# Executables


def test_one_program_built_in_two_checkouts_is_one(tmp_path, capsys):
    rows = [entry("BM_a"), entry("BM_b")]
    paths = [
        write(tmp_path / f"{i}.json", *rows, executable=f"/{folder}/build/bench")
        for i, folder in enumerate("abc")
    ]
    base, head = map(str, paths[:2]), map(str, paths[2:])
    assert main(["compare", "--base", *base, "--head", *head]) == 0
    assert "2 and 1 processes" in capsys.readouterr().out
    assert main(["trend", *map(str, paths)]) == 0
    assert "in 3 runs" in capsys.readouterr().out
    for path in paths:
        content = json.loads(path.read_text())
        content["context"]["git_commit"] = "abc"
        suite.write(path, content)
    (results,) = load_results(paths)
    assert [row.repetitions for row in results.rows] == [3, 3]


def test_two_programs_of_one_file_name_are_told_apart_by_their_folders(tmp_path, capsys):
    """Where less than half of their rows have the same name."""
    for side in "ab":
        folder = tmp_path / side
        folder.mkdir()
        for program, time in (("sort", 1.0), ("search", 5.0)):
            rows = [entry("BM_empty", time), *(entry(f"BM_{program}/{i}") for i in range(3))]
            write(folder / f"{program}.json", *rows, executable=f"/{side}/build/{program}/bench")
    found = times(load_processes([tmp_path / "a"]))
    assert (found["sort/bench:BM_empty"], found["search/bench:BM_empty"]) == (1.0, 5.0)
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--all"]) == 0
    out = capsys.readouterr().out
    assert "sort/bench:BM_empty" in out
    assert "MISSING" not in out


def test_a_ladders_program_in_several_folders_is_one_run(tmp_path):
    """As jobs of a cluster measure a ladder each, in a folder each."""
    whole = suite.document()
    for ladder in ("sgemm", "transpose"):
        rows = [row for row in whole["benchmarks"] if row["name"].startswith(f"{ladder}/")]
        context = whole["context"] | {"executable": f"/stage/{ladder}/ladder_bench"}
        suite.write(tmp_path / f"{ladder}.json", {"context": context, "benchmarks": rows})
    (results,) = load_results(tmp_path)
    assert {row.ladder for row in results.rows} == {"sgemm", "transpose"}


def test_a_row_that_two_programs_have_on_one_side_only_is_compared(tmp_path, capsys):
    for side, programs in (("base", ("sort", "search")), ("head", ("sort",))):
        folder = tmp_path / side
        folder.mkdir()
        for program in programs:
            write(folder / f"{program}.json", entry("BM_copy"), executable=f"./{program}")
    sides = [str(tmp_path / side) for side in ("base", "head")]
    for base, head in (sides, sides[::-1]):
        main(["compare", base, head, "--all", "--format", "json"])
        changes = json.loads(capsys.readouterr().out)["changes"]
        verdicts = {change["name"]: change["verdict"] for change in changes}
        lacking = "MISSING" if base == sides[0] else "NEW"
        assert verdicts == {"sort:BM_copy": "NOISY", "search:BM_copy": lacking}


def test_programs_of_two_names_are_compared_row_by_row(tmp_path, capsys):
    """One a side, as before and after a renaming."""
    old = write(tmp_path / "a.json", entry("BM_copy"), executable="./old")
    new = write(tmp_path / "b.json", entry("BM_copy"), executable="./new")
    assert main(["compare", str(old), str(new), "--all"]) == 0
    assert "MISSING" not in capsys.readouterr().out
