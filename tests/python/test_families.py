# SPDX-License-Identifier: MIT
"""Suites of any project over their arguments: tables, figures, and the fits that the file has."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import suite
from figure import beyond
from ladder.analysis import families
from ladder.commands.cli import main
from ladder.io.results import load_results


@pytest.fixture
def arguments(data) -> Path:
    """What libbenchmark 1.7.1 wrote of a program with arguments, fits, templates and threads."""
    return data / "suites/arguments.json"


def row(name: str, time: float = 1.0, **more) -> dict:
    return {"name": name, "run_name": name, "real_time": time, "cpu_time": 2 * time} | {
        "time_unit": "us",
        "threads": 1,
        "iterations": 10,
        **more,
    }


def fit(family: str, coefficient: float, curve: str, unit: str = "us") -> list[dict]:
    common = {"run_name": family, "run_type": "aggregate", "threads": 1}
    times = {"real_coefficient": coefficient, "cpu_coefficient": 2 * coefficient}
    return [
        {"name": f"{family}_BigO", "aggregate_name": "BigO", "big_o": curve, "time_unit": unit}
        | common
        | times,
        {"name": f"{family}_RMS", "aggregate_name": "RMS", "rms": 0.25} | common,
    ]


def sweeps(tmp_path: Path, rows: list[dict]) -> list[families.Sweep]:
    file = suite.write(tmp_path / "a.json", {"context": {}, "benchmarks": rows})
    return [sweep for result in load_results(file) for sweep in families.sweeps(result)]


def cells(text: str, name: str) -> list[str]:
    """Return the cells of the first line of a Markdown table that begins with a name."""
    found = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    return next(line for line in found if line[0] == f"`{name}`")


@pytest.mark.parametrize(
    ("name", "family", "values"),
    [
        ("BM_a", "BM_a", {}),
        ("BM_a/64", "BM_a", {"argument": "64"}),
        ("BM_a/64/-8", "BM_a", {"argument 1": "64", "argument 2": "-8"}),
        ("BM_a/n:64/k:3/threads:8", "BM_a", {"n": "64", "k": "3", "threads": "8"}),
        ("BM_a<x<1/2>, y>/64/real_time", "BM_a<x<1/2>, y>/real_time", {"argument": "64"}),
        ("BM_a/64/repeats:3/manual_time", "BM_a/repeats:3/manual_time", {"argument": "64"}),
        ("BM_a/min_time:2.000/iterations:5", "BM_a/min_time:2.000/iterations:5", {}),
        ("std::a/b::c/64", "std::a/b::c", {"argument": "64"}),
        ("operator<</64", "operator<<", {"argument": "64"}),
        ("parse/a.json/level:high", "parse/a.json", {"level": "high"}),
        ("1024/64", "1024", {"argument": "64"}),
        ("BM_a/64#2", "BM_a#2", {"argument": "64"}),
    ],
)
def test_a_name_is_a_family_and_its_arguments(name, family, values):
    spelled = families.spell(name)
    assert (spelled.family, spelled.values) == (family, values)


def test_a_family_is_shown_over_the_argument_with_most_values(tmp_path):
    rows = [row(f"BM_a/n:{n}/k:{k}/threads:{t}") for n in (1, 2, 3) for k in (1, 2) for t in (1, 8)]
    rows += [row(f"BM_t/threads:{t}") for t in (1, 2, 4)]
    first, second = sweeps(tmp_path, rows)
    assert (first.title, [*first.labels]) == ("n", [1, 2, 3])
    assert [line.name for line in first.lines] == [
        f"BM_a/k:{k}/threads:{t}" for k in (1, 2) for t in (1, 8)
    ]
    assert (second.title, [*second.labels.values()]) == ("threads", ["1", "2", "4"])


def test_arguments_that_go_together_are_one(tmp_path):
    rows = [row(f"BM_square/{n}/{n}/{n}/{flag}") for n in (64, 128) for flag in (0, 1)]
    rows += [row(f"BM_half/rows:{2 * n}/columns:{n}") for n in (64, 128)]
    first, second = sweeps(tmp_path, rows)
    assert first.title == "argument 1 = argument 2 = argument 3"
    assert [*first.labels.values()] == ["64", "128"]
    assert [line.name for line in first.lines] == [f"BM_square/*/*/*/{flag}" for flag in (0, 1)]
    assert (second.title, [*second.labels.values()]) == ("rows, columns", ["128, 64", "256, 128"])
    assert [line.name for line in second.lines] == ["BM_half"]


def test_of_as_many_values_the_wider_range_is_the_axis(tmp_path):
    rows = [row(f"BM_a/flag:{flag}/size:{size}") for flag in (0, 1) for size in (256, 1024)]
    (sweep,) = sweeps(tmp_path, rows)
    assert sweep.title == "size"


def test_families_stand_together_where_they_have_the_same_sizes(tmp_path):
    rows = [row(f"BM_{name}/{n}") for name in "ab" for n in (8, 64, 512)]
    rows += [row(f"BM_c/{n}") for n in (1, 2, 3, 8)]
    assert [[line.name for line in sweep.lines] for sweep in sweeps(tmp_path, rows)] == [
        ["BM_a", "BM_b"],
        ["BM_c"],
    ]


def test_rows_whose_argument_does_not_vary_are_in_no_sweep(tmp_path):
    assert sweeps(tmp_path, [row("BM_a/8"), row("BM_b/type:x"), row("BM_b/type:y")]) == []


def test_a_fit_of_the_library_is_over_the_argument_that_gives_its_coefficient(arguments):
    """Whatever N the program set: here it was told of, or is not among the arguments."""
    found = {}
    for sweep in families.sweeps(load_results(arguments)[0]):
        found |= sweep.fits
    told = {row["name"]: row for row in json.loads(arguments.read_text())["benchmarks"]}
    assert {family: (each.curve, each.argument) for family, each in found.items()} == {
        "BM_Sort": ("NlgN", "argument"),
        "BM_Sum": ("N", "argument"),  # its rows are in us, its coefficient in ns
        "BM_SumLambda": ("f(N)", ""),
        "BM_Map": ("N", ""),  # N is the product of both
    }
    for family, each in found.items():
        big_o = told[f"{family}_BigO"]
        assert each.seconds == pytest.approx(big_o["real_coefficient"] * 1e-9)
        assert each.cpu_seconds == pytest.approx(big_o["cpu_coefficient"] * 1e-9)
        assert each.rms == told[f"{family}_RMS"]["rms"]


@pytest.mark.parametrize(
    ("curve", "of"),
    [
        ("(1)", lambda _: 1),
        ("lgN", math.log2),
        ("N", float),
        ("NlgN", lambda n: n * math.log2(n)),
        ("N^2", lambda n: n**2),
        ("N^3", lambda n: n**3),
    ],
)
def test_the_drawn_fit_is_the_curve_that_the_file_names(tmp_path, curve, of):
    rows = [row(f"BM_a/n:{n}", 3 * of(n)) for n in (8, 64, 512)] + fit("BM_a", 3, curve)
    (sweep,) = sweeps(tmp_path, rows)
    assert sweep.fits["BM_a"].argument == "n"
    assert sweep.fits["BM_a"].at(512) == pytest.approx(3e-6 * of(512))
    assert sweep.fits["BM_a"].at(512, cpu=True) == pytest.approx(6e-6 * of(512))


def test_a_fit_of_another_argument_chooses_the_axis(tmp_path):
    rows = [row(f"BM_a/k:{k}/n:{n}", 2.0 * n) for k in (1, 2, 3) for n in (8, 64)]
    (sweep,) = sweeps(tmp_path, [*rows, *fit("BM_a", 2, "N")])
    assert (sweep.title, sweep.fits["BM_a"].argument) == ("n", "n")


def test_no_fit_is_made_up(tmp_path, capsys):
    file = suite.write(
        tmp_path / "a.json",
        {"context": {}, "benchmarks": [row(f"BM_a/{2**i}", 2**i) for i in range(3, 12)]},
    )
    assert main(["table", str(file)]) == 0
    out = capsys.readouterr().out
    assert "BigO" not in out
    assert "RMS" not in out


def test_the_fit_of_a_csv_is_read_in_the_unit_that_its_rows_give(tmp_path):
    lines = ["name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,"]
    lines[0] += "label,error_occurred,error_message"
    lines += [f'"BM_a/{n}",10,{3 * n},{2 * n},us,,,,,' for n in (8, 64)]
    lines += ['"BM_a_BigO",,3000,2000,N,,,,,', '"BM_a_RMS",,0.5,0.25,,,,,,']
    file = tmp_path / "a.csv"
    file.write_text("\n".join(lines) + "\n")
    (sweep,) = families.sweeps(load_results(file)[0])
    assert sweep.fits["BM_a"].seconds == pytest.approx(3e-6)
    assert (sweep.fits["BM_a"].rms, sweep.fits["BM_a"].argument) == (0.25, "argument")


def test_tables_have_families_by_argument_and_the_fit(arguments, capsys):
    assert main(["table", str(arguments), "--ladder", "arguments"]) == 0
    out = capsys.readouterr().out
    times = {
        each["name"]: each["real_time"]
        for each in json.loads(arguments.read_text())["benchmarks"]
        if "real_time" in each
    }
    sort = cells(out, "BM_Sort")
    assert sort[1] == f"{times['BM_Sort/1024'] / 1e3:.1f} us"
    assert sort[-2:] == ["10.5 ns × NlgN", "5.8%"]
    assert cells(out, "BM_Map/k:3")[-2:] == ["", ""]  # the fit is the family's, told once
    assert cells(out, "BM_Skip")[1:] == ["error", "error", "error"]
    assert main(["table", str(arguments), "--ladder", "arguments", "--metric", "cpu_time"]) == 0
    assert cells(capsys.readouterr().out, "BM_Sort")[-2:] == ["2.66 ns × NlgN", "5.8%"]


def test_tables_of_a_rate_leave_out_what_has_none(arguments, capsys):
    assert main(["table", str(arguments), "--metric", "items_per_second"]) == 0
    out = capsys.readouterr().out.split("\n\n")[1]
    assert "`BM_Sort`" in out
    assert "`BM_Sum`" not in out
    assert "NlgN" not in out
    assert main(["table", str(arguments), "--metric", "fish"]) == 2
    assert "fish: no row has it; there are: " in capsys.readouterr().err


def test_a_long_series_is_thinned_and_says_so(tmp_path, capsys):
    rows = [row(f"BM_a/{n}") for n in range(100)]
    file = suite.write(tmp_path / "a.json", {"context": {}, "benchmarks": rows})
    assert main(["table", str(file), "--ladder", "arguments"]) == 0
    about, _, table = capsys.readouterr().out.partition("\n\n")
    header = table.splitlines()[0].strip("| ").split(" | ")
    assert (header[1], header[-1], len(header)) == ("0", "99", 11)
    assert "90 more" in about


def test_figures_have_a_named_line_a_family_and_the_fit(draw, arguments):
    figures, said = draw(json.loads(arguments.read_text()))
    figure = figures["over-argument"]
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    texts = [text.get_text() for text in axes.texts]
    assert {"BM_Sort", "BM_Sum", "BM_SumLambda"} <= {*texts}
    assert any("10.5 ns × NlgN" in text for text in texts)
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert len(dashed) == 2  # the lambda's curve is not known
    last = dashed[0].get_xydata()[-1]
    assert last == pytest.approx([65536, 10.515882e-9 * 65536 * 16], rel=1e-4)
    assert beyond(figure) == beyond(figures["over-size"]) == []  # names and fits beside them too
    assert any("lists no ladder" in note for note in said)
    assert any("BM_Counters/iterations:1000" in note for note in said)


def test_small_ranges_are_drawn_on_linear_axes(draw):
    rows = [row(f"BM_a/{n}", 5.0 + n) for n in (-2, 0, 2)]
    figures, _ = draw({"context": {}, "benchmarks": rows})
    (axes,) = figures["over-argument"].axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    assert axes.get_ylim()[0] == 0


def test_many_families_take_several_panels_and_what_is_left_out_is_told(draw):
    rows = [row(f"BM_{i}<{'x' * 90}>/{n}") for i in range(60) for n in (1, 2)]
    figures, _ = draw({"context": {}, "benchmarks": rows})
    figure = figures["over-argument"]
    assert len(figure.axes) == 6
    assert any("12 more lines" in text.get_text() for text in figure.texts)


def test_a_figure_of_another_metric(arguments, tmp_path, capsys):
    out = tmp_path / "plots"
    wanted = ["plot", str(arguments), "-o", str(out), "--metric"]
    assert main([*wanted, "bytes_per_second"]) == 0
    assert [path.name for path in out.iterdir()] == ["over-argument.svg"]
    assert main([*wanted, "item_per_second"]) == 2
    assert "nearest: items_per_second" in capsys.readouterr().err


def test_a_report_has_the_tables_and_the_figures(arguments, tmp_path):
    assert main(["report", str(arguments), "-o", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "Time over the argument" in page
    assert "10.5 ns × NlgN" in page
    assert page.count('aria-label="bench, host ci, arguments.json: over-') == 4
    assert "10.5 ns × NlgN" in (tmp_path / "summary.md").read_text()
