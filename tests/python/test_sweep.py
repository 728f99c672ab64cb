# SPDX-License-Identifier: MIT
"""Drawn shapes: within what a ladder takes, the same for one seed, and where it loses by them."""

import json
import re
import sys

import pytest
from ladder.commands.cli import main
from ladder.measure.drawing import Range, space
from ladder.model.errors import IncomparableError

STAND_IN = """#!{python}
import json, re, sys
shapes = [f[8:] for f in sys.argv[1:] if f.startswith("--shape=")]
flags = dict(f.partition("=")[::2] for f in sys.argv[1:] if not f.startswith("--shape="))
if "--help" in flags:
    print("--cases=CASES --ceilings=BOOL")
    sys.exit()
cases = [(n, k, kind) for n in (16, 4096) for k in (3, 5) for kind in ("flat", "steep")]
if shapes:
    cases = []
    for shape in shapes:
        ladder, _, text = shape.partition(":")
        at = {{"n": 16, "k": 3, "kind": "flat"}} | dict(p.split("=") for p in text.split(","))
        if int(at["k"]) not in (3, 5):
            sys.exit("--shape: k may be 3 or 5")
        cases.append((int(at["n"]), int(at["k"]), at["kind"]))
rows = {{
    f"sum/{{rung}}/n:{{n}}/k:{{k}}/kind:{{kind}}" + more + "/manual_time": (rung, n)
    for n, k, kind in cases for rung, more in
    (("fastest", ""), ("tiled", ""), ("wide", "/width:2"), ("cub", ""), ("copy", ""))
}}
chosen = [name for name in rows if re.search(flags.get("--benchmark_filter", "."), name)]
if "--benchmark_list_tests" in flags:
    print("\\n".join(chosen))
    sys.exit(0 if chosen else "Failed to match any benchmarks")
ladder = {{"name": "sum", "title": "Sum", "quantity": "bytes",
    "axes": [{{"name": "n"}}, {{"name": "k"}}, {{"name": "kind"}}], "rungs": [
    {{"name": "tiled", "role": "step"}},
    {{"name": "wide", "role": "step", "builds_on": "tiled", "sweeps": ["width"],
      "ceilings": [{{"rung": "sum/copy", "products": 2}}]}},
    {{"name": "fastest", "role": "choice"}}, {{"name": "cub", "role": "peer"}},
    {{"name": "copy", "role": "ceiling"}}]}}
def speed(rung, n):  # a choice that is wrong for n of 100 to 999
    wrong = 100 <= n < 1000
    return {{"fastest": 6e11 if wrong else 1e12, "tiled": 9e11, "wide": 1e12, "cub": 8e11,
             "copy": 2e12 if n < 2000 else 2.5e12}}[rung]
benchmarks = [
    {{"name": name, "run_name": name, "real_time": 8e3 * rows[name][1] / speed(*rows[name]) * 1e6,
      "time_unit": "us", "iterations": 1, "bytes_per_second": speed(*rows[name]),
      "label": "chosen:wide" if "/fastest/" in name else ""}} for name in chosen
]
with open(flags["--benchmark_out"], "w") as file:
    json.dump({{"context": {{"ladders": json.dumps([ladder]), "gpu_name": "GPU",
        "git_commit": "abc"}}, "benchmarks": benchmarks}}, file)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "bench"
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(0o755)
    return path


ROWS = [
    f"l/{rung}/n:{n}/k:{k}/kind:{kind}{more}"
    for n in (16, 4096)
    for k in (3, 5)
    for kind in ("flat", "steep")
    for rung, more in (("a", ""), ("b", "/width:2"))
]


def drawn(count=300, seed=1, given=None, **more):
    found = space("l", ROWS, given or {}, lambda shape: "k=" not in shape, **more)
    return found, [
        dict(part.split("=") for part in shape.removeprefix("l:").split(","))
        for shape in found.shapes(count, seed)
    ]


def test_numbers_come_from_the_measured_range_and_values_from_those_measured():
    found, shapes = drawn()
    assert list(found.axes) == ["n", "k", "kind"]  # the width is a rung's own
    numbers = [int(shape["n"]) for shape in shapes]
    assert min(numbers) >= 16
    assert max(numbers) <= 4096
    assert {shape["k"] for shape in shapes} == {"3", "5"}
    assert {shape["kind"] for shape in shapes} == {"flat", "steep"}
    low = sum(number < 256 for number in numbers)  # half of the range in its logarithm
    assert 0.35 * len(numbers) < low < 0.65 * len(numbers)


def test_a_third_is_as_drawn_and_two_thirds_are_aligned():
    numbers = [int(shape["n"]) for shape in drawn()[1] if int(shape["n"]) >= 64]
    aligned = sum(number % 32 == 0 for number in numbers)
    assert 0.5 * len(numbers) < aligned < 0.8 * len(numbers)


def test_one_seed_draws_the_same_and_another_draws_others():
    assert drawn(20)[1] == drawn(20)[1]
    assert drawn(20)[1] != drawn(20, seed=2)[1]


def test_a_range_that_is_given_is_drawn_from():
    numbers = {int(shape["n"]) for shape in drawn(given={"n": Range(1, 9)})[1]}
    assert numbers <= set(range(1, 10))
    assert {1, 9} <= numbers


def test_where_a_choice_loses_is_told_worst_first(program, tmp_path, capsys):
    out = tmp_path / "drawn.json"
    arguments = ["sweep", "sum", "--program", str(program), "--draw", "30", "-o", str(out)]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    sizes = {int(n) for n in re.findall(r"/n:(\d+)/", out.read_text())}
    wrong = sum(100 <= n < 1000 for n in sizes)
    assert 0 < wrong < len(sizes)
    shapes = {row["name"].partition("/n:")[2] for row in json.loads(out.read_text())["benchmarks"]}
    count = len({re.sub("/width:2", "", shape) for shape in shapes})
    assert f", {count} drawn shapes." in told
    library, rung, _ = re.findall(r"least ([\d.]+)×, below [\d.]+ at (\d+) of", told)
    assert (library[0], rung[0]) == ("0.75", "0.60")
    assert int(library[1]) == int(rung[1]) > 0
    first = next(line for line in told.splitlines() if line.endswith("| 0.75× |"))
    assert "| `wide` |" in first
    assert "| `cub` |" in first
    before = out.read_bytes()
    assert main(arguments) == 0  # what was measured is told again, and not overwritten
    again = capsys.readouterr()
    assert again.out == told
    assert "as measured before" in again.err
    assert out.read_bytes() == before


def test_shares_of_a_ceiling_that_the_ladder_has_are_told(program, tmp_path, capsys):
    out = tmp_path / "drawn.json"
    arguments = ["sweep", "sum", "--program", str(program), "--draw", "30"]
    assert main([*arguments, "-o", str(out)]) == 0
    told = capsys.readouterr().out
    sizes = [int(n) for n in re.findall(r'"name":\s*"sum/fastest/n:(\d+)/', out.read_text())]
    large, far = sum(n > 1000 for n in sizes), sum(100 <= n < 1000 or n >= 2000 for n in sizes)
    assert 0 < large < len(sizes)
    said, table = told.split("`fastest` against its ceiling: ")[1].split("\n\n")
    assert said.endswith(
        f"least 0.60×, below 0.9 at {far} of {len(sizes)} shapes, least 0.80× at the {large} that "
        "move more than 8 MB."
    )
    assert table.splitlines()[2].endswith("| `sum/copy` / 2 | 0.60× |")
    out = tmp_path / "without.json"
    assert main([*arguments, "-o", str(out), "--filter", "/(fastest|tiled|wide|cub)/"]) == 0
    assert capsys.readouterr().out == told.split("\n\n`fastest` against its ceiling")[0] + "\n"


def test_a_roof_of_another_ladder_is_no_ceiling_of_drawn_shapes(program, tmp_path, capsys):
    out = tmp_path / "drawn.json"
    arguments = ["sweep", "sum", "--program", str(program), "--draw", "2", "-o", str(out)]
    assert main(arguments) == 0
    assert "its ceiling" in capsys.readouterr().out
    text = out.read_text().replace('\\"sum/copy\\"', '\\"roof/dram_copy\\"')
    assert "roof/dram_copy" in text
    out.write_text(text)  # of which each row tells its percent
    assert main(arguments) == 0
    assert "its ceiling" not in capsys.readouterr().out


def test_what_a_file_lacks_is_measured_on_request(program, tmp_path, capsys):
    out = tmp_path / "drawn.json"
    arguments = ["sweep", "sum", "--program", str(program), "-o", str(out), "--draw", "4"]
    assert main(arguments) == 0
    told, whole = capsys.readouterr().out, json.loads(out.read_text())
    whole["benchmarks"] = whole["benchmarks"][:5]
    out.write_text(json.dumps(whole))
    assert main([*arguments, "--resume"]) == 0
    assert capsys.readouterr().out == told
    assert main([*arguments, "--resume", "--seed", "2"]) == IncomparableError.exit_code
    assert "different flags" in capsys.readouterr().err


def test_a_file_that_is_there_needs_the_ladder_and_its_failed_rows_count(program, tmp_path, capsys):
    out = tmp_path / "drawn.json"
    arguments = ["--program", str(program), "--draw", "2", "-o", str(out)]
    assert main(["sweep", "sum", *arguments]) == 0
    capsys.readouterr()
    assert main(["sweep", "scan", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "no rows of ladder 'scan'" in told.err
    document = json.loads(out.read_text())
    document["benchmarks"][0] |= {"error_occurred": True, "error_message": "wrong result"}
    out.write_text(json.dumps(document))
    assert main(["sweep", "sum", *arguments]) == 1  # as where it was measured
    assert "wrong result" in capsys.readouterr().out
    assert main(["sweep", "sum", "-o", str(tmp_path)]) == 2
    assert "a directory" in capsys.readouterr().err


def test_fewer_shapes_than_asked_for_are_noted(program, tmp_path, capsys):
    out = str(tmp_path / "new folder/drawn.json")
    few = ["--draw", "30", "--within", "n=1..3"]
    assert main(["sweep", "sum", "--program", str(program), *few, "-o", out]) == 0
    told = capsys.readouterr()
    assert ", 12 drawn shapes." in told.out
    assert "only 12 different shapes" in told.err


def code(arguments):
    try:
        return main(arguments)
    except SystemExit as error:  # as of argparse
        return error.code


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "no ladder 'nothing': sum are there"),
        (["sum", "--within", "m=1..2"], "no axis 'm': n, k, kind are there"),
        (["sum", "--within", "kind=1..2"], "'kind' has labels, and no range"),
        (["sum", "--within", "n=2..1"], "'n=2..1' is not AXIS=LOW..HIGH"),
        (["sum", "--within", "n=9000..9999"], "every shape of these ranges is larger than any"),
        (["sum", "--draw", "0"], "--draw"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(program, tmp_path, capsys, arguments, told):
    arguments = ["sweep", *arguments, "--program", str(program), "-o", str(tmp_path / "a.json")]
    assert code(arguments) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
