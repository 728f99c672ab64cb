# SPDX-License-Identifier: MIT
"""Expected values: verdicts, their exit codes, and files of them made from results."""

import json
from pathlib import Path

import pytest
import suite
from comparison import FAILED, SKIPPED, document, timed
from ladder.commands.cli import main
from ladder.io.results import load_results
from ladder.stats.references import read

ROOT = Path(__file__).parents[2]


def rated(percent: float, **more) -> dict:
    return timed(100) | {"percent_of_ceiling": percent} | more


@pytest.fixture
def checked(tmp_path, capsys):
    """Check rows of one GPU against the text of a references file; return code and lines."""

    def check(rows: dict, text: str, **context: str) -> tuple[int, list[str]]:
        results = suite.write(tmp_path / "results.json", document(rows, **context))
        file = tmp_path / "references.toml"
        file.write_text(text, encoding="utf-8")
        code = main(["check", str(results), "--references", str(file), "--all"])
        out, err = capsys.readouterr()
        return code, (out + err).splitlines()

    return check


def reference(row: str = "a/b", value: float = 90, **more) -> str:
    given = {"row": row, "value": value, "lower": -0.03, "upper": 0.05} | more
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items() if value is not None]
    return "\n".join(["[[reference]]", *lines, ""])


KNOWN = {"expected_failure": "known to spill"}
LESS = {"metric": "dram_bytes", "value": 100.0}
VERDICTS = {  # fields of the row, keys of the reference, verdict, exit code
    "within": (rated(88), {}, "OK", 0),
    "at the bound": (rated(87.3), {}, "OK", 0),
    "low": (rated(87), {}, "LOW", 1),
    "high": (rated(95), {}, "HIGH", 0),
    "no lower bound": (rated(1), {"lower": None}, "OK", 0),
    "no upper bound": (rated(400), {"upper": None}, "OK", 0),
    "less is better, high": (rated(1, dram_bytes=106.0), LESS, "HIGH", 1),
    "less is better, low": (rated(1, dram_bytes=96.0), LESS, "LOW", 0),
    "told which is better": (rated(1, x=9.0), {"metric": "x", "better": "less"}, "LOW", 0),
    "a time": (timed(106), {"metric": "real_time", "value": 1e-4}, "HIGH", 1),
    "missing": (None, {}, "MISSING", 4),
    "skipped": (SKIPPED, {}, "MISSING", 4),
    "without the metric": (timed(1), {}, "MISSING", 4),
    "failed": (FAILED, {}, "ERROR", 4),
    "expected to be low": (rated(80), KNOWN, "XFAIL", 0),
    "expected to be low, and failed": (FAILED, KNOWN, "ERROR", 4),
    "expected to be low, and skipped": (SKIPPED, KNOWN, "MISSING", 4),
    "expected to be low, without the metric": (timed(1), KNOWN, "MISSING", 4),
    "expected, and gone": (None, KNOWN, "MISSING", 4),  # else a misspelt row hides
    "no longer low": (rated(90), KNOWN, "XPASS", 0),
    "no longer low at all": (rated(99), KNOWN, "XPASS", 0),
    "below zero": (
        rated(1, drift_percent=-90.0),
        {"metric": "drift_percent", "value": -90, "better": "more"},
        "OK",
        0,
    ),
}


@pytest.mark.parametrize(("fields", "keys", "verdict", "code"), VERDICTS.values(), ids=VERDICTS)
def test_verdicts_and_exit_codes(checked, fields, keys, verdict, code):
    rows = {"anchor": 1.0} | ({"a/b/manual_time": fields} if fields else {})
    got, lines = checked(rows, reference(**keys))
    assert lines[0].split()[:2] == [verdict, "a/b"]
    assert lines[-1] == f"1 {verdict} of 1 references"
    assert got == code


def test_a_report_reads_as_it_did(checked, data):
    rows = {
        "a/good": rated(91),
        "a/slow": rated(80),
        "a/fast": rated(99),
        "a/known": rated(50),
        "a/skipped": SKIPPED,
    }
    text = "".join(reference(name, **(KNOWN if name == "a/known" else {})) for name in rows)
    text += reference("a/gone") + reference("a/good", gpu="NVIDIA L4")
    text += reference("a/good", cache_mode="warm")
    code, lines = checked(rows, text)
    assert code == 1  # before lost coverage
    assert "\n".join(lines) + "\n" == (data / "check.txt").read_text(encoding="utf-8")


def test_patterns_name_whole_rows_and_gpus(checked):
    rows = {"a/b/n:1": rated(90), "a/b/n:2": rated(50), "a/b/n:20": rated(90)}
    code, lines = checked(rows, reference("a/b/n:[12]", gpu="NVIDIA H.*"))
    assert code == 1
    assert [line.split()[:2] for line in lines[:-1]] == [["OK", "a/b/n:1"], ["LOW", "a/b/n:2"]]


def test_references_of_other_gpus_alone_check_nothing(checked):
    code, lines = checked({"a/b": rated(90)}, reference(gpu="NVIDIA L4"))
    assert code == 2
    assert lines == ["ladder: no reference is of NVIDIA H200, cold cache, results.json"]


BROKEN = {
    "empty": ("", "has no [[reference]]"),
    "no list": ("reference = 3", "has no [[reference]]"),
    "a single table": ("[reference]\nrow = 'a'\nvalue = 1", "has no [[reference]]"),
    "list of numbers": ("reference = [3]", "reference 1: Expected `object`, got `int`"),
    "not TOML": ("[[reference", "not TOML: "),
    "misspelt": (
        reference() + reference(lowr=-0.1),
        "reference 2: Object contains unknown field `lowr`",
    ),
    "no row": ("[[reference]]\nvalue = 1", "reference 1: Object missing required field `row`"),
    "no value": ("[[reference]]\nrow = 'a'", "reference 1: Object missing required field `value`"),
    "value of text": ("[[reference]]\nrow = 'a'\nvalue = '1'", "got `str` - at `$.value`"),
    "value of truth": ("[[reference]]\nrow = 'a'\nvalue = true", "got `bool` - at `$.value`"),
    "value of nan": ("[[reference]]\nrow = 'a'\nvalue = nan", "value is not finite"),
    "row of numbers": (
        "[[reference]]\nrow = 3\nvalue = 1",
        "Expected `str`, got `int` - at `$.row`",
    ),
    "positive lower": (reference(lower=0.03), "Expected `float` <= 0.0 - at `$.lower`"),
    "negative upper": (reference(upper=-0.03), "Expected `float` >= 0.0 - at `$.upper`"),
    "no regex": (reference("a("), "row 'a(' is not a regular expression"),
    "no gpu": (reference(gpu="*"), "gpu '*' is not a regular expression"),
    "which way": (reference(metric="x"), "is less or more of x better?"),
    "no way": (reference(better="up"), "Invalid enum value 'up' - at `$.better`"),
}


@pytest.mark.parametrize(("text", "told"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_named_in_one_line(checked, tmp_path, text, told):
    code, lines = checked({"a/b": rated(90)}, text)
    assert code == 3
    assert len(lines) == 1
    assert lines[0].startswith(f"ladder: {tmp_path / 'references.toml'}: ")
    assert told in lines[0]


def test_what_is_written_passes_and_tells_a_change(whole, tmp_path, capsys):
    file = str(tmp_path / "new.toml")
    assert main(["check", str(whole), "--write", file, "--filter", "^sgemm/.*4096"]) == 0
    assert capsys.readouterr().out == f"{file}: 7 references\n"
    assert main(["check", str(whole), "--references", file]) == 0
    assert capsys.readouterr().out == "7 OK of 7 references\n"
    worse = suite.document()
    for row in worse["benchmarks"]:
        row["percent_of_ceiling"] = 0.94 * row.get("percent_of_ceiling", 1.0)
    changed = str(suite.write(tmp_path / "worse.json", worse))
    assert main(["check", changed, "--references", file]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "7 LOW of 7 references"
    slow = str(suite.write(tmp_path / "slow.json", suite.document(0.5)))
    assert main(["check", slow, "--references", file]) == 0  # a ratio to its own roof


def test_bounds_come_from_noise(tmp_path, capsys):
    rows = {"quiet": 100, "noisy": 100, "b.c+(d)<e>": 100}
    runs = []
    for i, spread in enumerate((0.0, 0.03)):
        made = {
            n: rated(90) | {"real_time": us * (1 + spread * (n == "noisy"))}
            for n, us in rows.items()
        }
        for row in made.values():
            row["median_seconds"] = row["real_time"] * 1e-6
        runs.append(str(suite.write(tmp_path / f"{i}.json", document(made))))
    noise, file = str(tmp_path / "noise.json"), tmp_path / "new.toml"
    assert main(["noise", *runs, "-o", noise]) == 0
    write = ["--write", str(file), "--noise", noise, "--metric", "real_time"]
    assert main(["check", runs[0], *write, "--metric", "percent_of_ceiling"]) == 0
    text = file.read_text(encoding="utf-8")
    assert text.count("lower = -0.02\nupper = 0.02") == 4
    assert text.count("lower = -0.06\nupper = 0.06") == 2
    capsys.readouterr()
    assert main(["check", runs[1], "--references", str(file)]) == 0
    assert capsys.readouterr().out == "6 OK of 6 references\n"


def test_exact_metrics_pass_with_all_their_digits(tmp_path, capsys):
    fields = {"theoretical_occupancy": 2 / 3, "dynamic_shared_bytes": 199_681.0}
    results = str(suite.write(tmp_path / "a.json", document({"a/b": rated(90) | fields})))
    file = str(tmp_path / "new.toml")
    wanted = [argument for metric in fields for argument in ("--metric", metric)]
    assert main(["check", results, "--write", file, *wanted]) == 0
    capsys.readouterr()
    assert main(["check", results, "--references", file]) == 0
    assert capsys.readouterr().out == "2 OK of 2 references\n"


def test_a_name_that_is_written_matches_itself_alone(tmp_path, capsys):
    names = ["a/n:0.5", "a/n:0x5", "a/b(c)", "a/bc"]
    results = str(suite.write(tmp_path / "a.json", document({n: rated(90) for n in names})))
    file = tmp_path / "new.toml"
    assert main(["check", results, "--write", str(file)]) == 0
    assert 'gpu = "NVIDIA H200"\n' in file.read_text()
    capsys.readouterr()
    assert main(["check", results, "--references", str(file)]) == 0
    assert capsys.readouterr().out == "4 OK of 4 references\n"


def test_a_file_with_bounds_of_its_own_is_not_overwritten(whole, tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text("mine")
    assert main(["check", str(whole), "--write", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"ladder: {file}: exists")
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--filter", "nine", "--write", "{0}/x"], 2, "--filter nine: no row matches"),
        (["--metric", "x", "--references", "{0}/x"], 2, "--filter, --metric, --better and --noise"),
        (["--metric", "time", "--write", "{0}/x"], 2, "--metric time: no row has it; nearest: "),
        (["--references", "{0}/none.toml"], 3, "{0}/none.toml: No such file"),
        (
            ["{0}/board.json", "--write", "{0}/x"],
            5,
            "a/b: measured twice: several commits or boards",
        ),
    ],
)
def test_wrong_usage_is_told_in_a_line(tmp_path, capsys, arguments, code, told):
    file = suite.write(tmp_path / "a.json", document({"a/b": rated(90)}))
    suite.write(tmp_path / "board.json", document({"a/b": rated(90)}, gpu_uuid="GPU-1"))
    assert main(["check", str(file), *(a.format(tmp_path) for a in arguments)]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"ladder: {told.format(tmp_path)}")
    assert not (tmp_path / "x").exists()


def test_other_suites_are_checked_too(data, tmp_path, capsys):
    file = str(tmp_path / "foreign.toml")
    foreign = str(data / "foreign.json")
    assert main(["check", foreign, "--write", file, "--metric", "cpu_time"]) == 0
    assert main(["check", foreign, "--references", file, "--all"]) == 0
    assert "OK       sort/big/8  cpu_time 276 ns, expected 276 ns (262 ns to 289 ns)\n" in (
        capsys.readouterr().out
    )


def test_a_metric_that_is_not_known_is_written_with_its_direction(tmp_path, capsys):
    file, wanted = str(tmp_path / "new.toml"), ["--metric", "fish", "--metric", "registers"]
    rows = document({"a": rated(90, fish=3.0, registers=32.0)})
    results = str(suite.write(tmp_path / "a.json", rows))
    assert main(["check", results, "--write", file, *wanted]) == 2
    assert "--metric fish: is less or more of it better? (--better" in capsys.readouterr().err
    assert main(["check", results, "--write", file, *wanted, "--better", "more"]) == 0
    assert Path(file).read_text().count("better = ") == 1
    assert [reference.more for reference in read(Path(file))] == [True, False]


DIALECTS = ["v1_7_1", "v1_8_3", "v1_9_1", "foreign", "aggregates_only", "cases/manual_and_plain"]
DIALECTS += ["cases/label_markup", "cases/unit_base", "cases/removed_base"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_written_of_a_dialect_passes_row_by_row(data, tmp_path, capsys, dialect):
    results, file = str(data / f"{dialect}.json"), tmp_path / "r.toml"
    (loaded,) = load_results(results)
    measured = len(loaded.with_status("ok"))
    assert main(["check", results, "--write", str(file), "--metric", "real_time"]) == 0
    capsys.readouterr()
    assert main(["check", results, "--references", str(file)]) == 0
    assert capsys.readouterr().out == f"{measured} OK of {measured} references\n"


@pytest.mark.parametrize("name", ["BM_scan/1024", "BM_scan/1024/manual_time"])
def test_of_rows_that_differ_in_their_clock_the_one_that_was_meant_is_checked(
    data, tmp_path, capsys, name
):
    results, file = str(data / "cases/manual_and_plain.json"), str(tmp_path / "r.toml")
    write = ["--write", file, "--metric", "real_time", "--filter", f"^{name}$"]
    assert main(["check", results, *write]) == 0
    capsys.readouterr()
    assert main(["check", results, "--references", file, "--all"]) == 0
    line, _ = capsys.readouterr().out.splitlines()
    assert line.split()[:2] == ["OK", name]


def test_a_name_with_a_control_character_is_written_and_read(tmp_path, capsys):
    document_ = document({"a/\x7fb\n": 1.0})
    del document_["context"]["gpu_name"]
    results = str(suite.write(tmp_path / "x.json", document_))
    file = str(tmp_path / "r.toml")
    assert main(["check", results, "--write", file, "--metric", "real_time"]) == 0
    assert main(["check", results, "--references", file]) == 0
    assert "1 OK of 1 references" in capsys.readouterr().out


def test_emulated_results_hold_no_times(tmp_path, capsys):
    file = suite.write(tmp_path / "e.json", document({"a/b": rated(90)}, emulated="true"))
    assert main(["check", str(file), "--write", str(tmp_path / "x")]) == 5
    assert capsys.readouterr().err == f"ladder: {file}: has no times to check\n"


def test_the_committed_results_are_as_expected(capsys):
    """The references are of these results: docs say how to make them anew."""
    committed = [str(path) for path in sorted((ROOT / "results").glob("nvidia-*/study.json*"))]
    assert main(["check", *committed, "--references", str(ROOT / "results/references.toml")]) == 0
    counted, _, rest = capsys.readouterr().out.partition(" OK of ")
    assert int(counted) >= 30 * len(committed)
    assert rest == f"{counted} references\n"
