# SPDX-License-Identifier: MIT
"""What a comparison prints: which rows, in which order, what it supposes and its last line."""

import json

import pytest
import suite
from comparison import FAILED, SKIPPED, document, timed
from ladder.commands.cli import main

TERMS = "threshold 1%, 95% intervals"
SUPPOSED = (
    "note: one process per side: runs are assumed to differ by 0.5% and 200 ns; "
    "several processes measure it: 'ladder run --base OLD --processes 3 -o DIR NEW', or more files "
    "per side"
)


@pytest.fixture
def told(tmp_path, capsys):
    """Compare two documents; return the exit code and what is printed."""

    def tell(base: dict, head: dict, *options: str, command: str = "compare") -> tuple[int, str]:
        files = [suite.write(tmp_path / f"{i}.json", d) for i, d in enumerate((base, head))]
        code = main([command, *map(str, files), *options])
        return code, capsys.readouterr().out

    return tell


def test_gate_is_compare_quiet(told):
    base, head = document({"x": 100.0}), document({"x": 200.0})
    code, out = told(base, head, command="gate")
    assert code == 1
    assert out.startswith("regression: 1 SLOWER (")
    assert told(base, head, "--quiet") == (code, out)


def test_a_gpu_that_did_not_report_is_missing(tmp_path, capsys):
    for side in ("base", "head"):
        (tmp_path / side).mkdir()
        suite.write(tmp_path / side / "a.json", document({"x": 10.0}))
    suite.write(tmp_path / "base" / "b.json", document({"x": 9.0}, gpu_name="NVIDIA L4"))
    code = main(["compare", str(tmp_path / "base"), str(tmp_path / "head")])
    assert code == 4
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("MISSING") and "NVIDIA L4: x" in line for line in lines)


def test_many_rows_of_a_rung_that_one_side_lacks_take_one_line(told):
    ours = {f"scan/tiled/n:{n}/type:int": 10.0 for n in range(5)}
    theirs = {f"ns::sort/{n}": 10.0 for n in range(4)} | {f"ns::find/{n}": 10.0 for n in range(3)}
    base, head = document({"x": 10.0} | ours), document({"x": 10.0} | theirs)
    code, out = told(base, head)
    assert code == 4
    _, *listed = out.splitlines()[:6]
    assert [line.split()[1] for line in listed] == [
        "scan/tiled/n:0/type:int",
        "ns::sort/0",
        *(f"ns::find/{n}" for n in range(3)),
    ]
    assert listed[0].endswith("and 4 more rows of scan/tiled (--all)")
    assert listed[1].endswith("and 3 more rows of ns::sort (--all)")
    code, out = told(base, head, "--all")
    assert code == 4
    assert all(name in out for name in [*ours, *theirs])
    assert "5 MISSING, 1 NOISY, 7 NEW" in out


@pytest.mark.parametrize("values", [(-5, -4, 0, 5), (1.5, 2.5, 3, 4), ("1k", "4k", "2M", 8)])
def test_rows_of_a_family_are_told_by_any_argument(told, values):
    lost = {f"BM/{value}": 10.0 for value in values}
    code, out = told(document({"x": 10.0} | lost), document({"x": 10.0}))
    assert code == 4
    assert "and 3 more rows of BM (--all)\n" in out


def test_rows_that_no_side_lacks_are_never_put_in_one_line(told):
    base, head = ({f"BM/{n}": timed(us) for n in range(5)} for us in (100, 120))
    code, out = told(document(base), document(head))
    assert code == 1
    assert out.count("SLOWER  ") == 5
    assert "more rows" not in out


def test_remarks_are_escaped_in_markdown_as_cells_are(told):
    base, head = (document({"x": 1.0}, driver_version=each) for each in ("13<b>", "12|*"))
    code, out = told(base, head, "--format", "markdown")
    assert code == 0
    assert out.splitlines()[0] == r"- note: driver_version: 13\<b\> in base, 12\|\* in head"


def test_other_suites_compare(data, capsys):
    file = str(data / "foreign.json")
    assert main(["compare", file, file]) == 0
    out = capsys.readouterr().out
    assert out.endswith("1 ERROR, 4 NOISY (threshold 1%, 95% intervals, 1 process per side)\n")


def test_only_changes_are_listed_unless_all_are_wanted(told):
    rows = {
        "same": timed(1000),
        "never": SKIPPED,
        "gone": timed(1),
        "bad": FAILED,
        "slow": timed(100),
    }
    base = document(rows)
    head = document(rows | {"gone": SKIPPED, "bad": SKIPPED, "slow": timed(110)})
    # What is listed alone begins with the worst.
    summary = f"1 SLOWER, 3 SKIPPED, 1 SAME ({TERMS}, 1 process per side)"
    for options, names in (([], ["slow", "gone", "bad"]), (["--all"], list(rows))):
        code, out = told(base, head, *options)
        assert code == 1
        header, *lines, note, mean, last = out.splitlines()
        assert header.startswith("verdict")
        assert ([line.split()[1] for line in lines], note, last) == (names, SUPPOSED, summary)
        assert mean == "geometric mean of 2 ratios: 0.953"
        code, out = told(base, head, *options, "--format", "markdown")
        assert code == 1
        first, second, third, *table = out.splitlines()
        assert (first, second, third) == (f"- {SUPPOSED}", f"- {mean}", f"- {summary}")
        assert [line.split(" | ")[1] for line in table[3:]] == names
    code, out = told(base, head, "--format", "json")
    assert code == 1
    assert len(json.loads(out)["changes"]) == len(rows)


def test_the_report_comes_before_the_exit_as_a_process(ladder, whole, tmp_path):
    slower = suite.write(tmp_path / "slower.json", suite.document(0.9))
    done = ladder("compare", whole, slower, "--format", "markdown", "--filter", "^sgemm/")
    assert done.returncode == 1
    assert done.stderr == ""
    assert f"- 48 SLOWER ({TERMS}, 1 process per side)\n" in done.stdout
    assert "| SLOWER | sgemm/tiled/m:4096/n:4096/k:4096 |" in done.stdout


def test_a_whole_suite_does_not_change_against_itself(whole, capsys):
    """Of short rows one process cannot even tell that."""
    assert main(["compare", str(whole), str(whole)]) == 0
    out = capsys.readouterr().out.splitlines()
    summary = f"167 NOISY, 25 SKIPPED, 348 SAME ({TERMS}, 1 process per side)"
    same = "base and head are the same files"
    note = f"note: {same}: nothing changed, and NOISY rows tell of noise alone"
    assert out == [note, SUPPOSED, "geometric mean of 515 ratios: 1.000", summary]
    short = sum(row["real_time"] < 40 for row in suite.rows() if "skipped" not in row)
    assert short == 167
    assert main(["gate", str(whole), str(whole)]) == 0
    line = capsys.readouterr().out
    assert line.startswith(f"pass: {summary}, {same}; one process per side rests on assumptions")
    assert "'ladder run --base OLD --processes 3 -o DIR NEW'" in line
