# SPDX-License-Identifier: MIT
"""Hardware counters: their conversion, and the emulator held against them."""

import json

import emulated
import ladder as package
import pytest
from ladder.commands.cli import main
from ladder.io.ncu import base_name
from printed import table_rows


@pytest.fixture
def files(tmp_path):
    """Emulated results, and the profile of a GPU that does the same."""
    study = emulated.write(tmp_path / "results" / "emulated-h200")
    return study, emulated.write_counters(tmp_path / "results" / "nvidia-h200")


def converted(folder, *options):
    paths = [str(folder / name) for name in ("ncu.csv", "rows.txt", "made.json")]
    command = ["counters", "--profile", paths[0], "--rows", paths[1], "--output", paths[2]]
    return main([*command, *options])


def test_the_profile_becomes_counters_of_the_same_names(files):
    study, counters = files
    assert converted(counters.parent, "--like", str(study), "--ncu", "2025.3.1") == 0
    made = counters.parent / "made.json"
    context = json.loads(made.read_text())["context"]
    assert context["counters"] == "Nsight Compute 2025.3.1"
    assert context["gpu_name"] == "NVIDIA H200"
    assert "emulated" not in context
    rows = package.load(made).set_index("name")
    assert set(rows["source"]) == {"counters"}
    assert rows["seconds"].isna().all()
    row = rows.loc[f"transpose/tiled/{emulated.SHAPE}/manual_time"]
    assert row["shared_load_wavefronts"] == 32 * 32768  # 1,048,576 in the profile
    assert row["shared_load_wavefronts_per_request"] == 32
    assert row["global_store_sectors_per_request"] == 4
    assert (row["registers"], row["theoretical_occupancy"]) == (32, 1.0)
    assert row["shared_atomic_requests"] == 0
    assert row["distributed_requests"] != row["distributed_requests"]  # no metric of it
    row = rows.loc["histogram/shared/bins:256/keys:1048576/manual_time"]
    assert row["global_atomic_sectors"] == 4 * 2112  # reductions count as atomics
    assert row["shared_atomic_wavefronts_per_request"] == 2.5


def test_without_a_likeness_rows_are_still_paired(files, capsys):
    study, counters = files
    assert converted(counters.parent) == 0
    assert main(["predict", str(study), str(counters.parent / "made.json")]) == 0
    assert "9 of 9 for global sectors" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("tiled", "tiled"),
        ("void tiled<unsigned int, (int)32>(T1 *, const T1 *, int)", "tiled"),
        ("ladders::(anonymous namespace)::tiled<ladders::Tile<32, 33>>(float*)", "tiled"),
        ("void tiled<unsigned int, ladders::Ti...", "tiled"),
        ("", ""),
    ],
)
def test_kernels_are_told_by_their_base_name(kernel, name):
    assert base_name(kernel) == name


def swap(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([lines[1], lines[0], *lines[2:]])


BROKEN = {  # (what to break, how, what is said)
    "too few rows": ("rows.txt", lambda t: t.split("\n", 1)[1], "launches, but"),
    "too many rows": ("rows.txt", lambda t: t + "a/b\tc\n", "launches, but"),
    "no rows": ("rows.txt", lambda _: "\n", "names no rows"),
    "another order": ("rows.txt", swap, "launch 1 is of naive, but"),
    "a row twice": (
        "rows.txt",
        lambda t: "".join([t.splitlines(keepends=True)[0].split("\t")[0] + "\n"] * 11),
        "appears twice",
    ),
    "no csv": ("ncu.csv", lambda _: "==ERROR== no permission\n", "no column 'ID'"),
    "empty": ("ncu.csv", lambda _: "", "no column 'ID'"),
    "text for a number": ("ncu.csv", lambda t: t.replace('"1,048,576"', '"many"'), "is 'many'"),
    "a cell without an end": ("ncu.csv", lambda t: t + '"' + "9" * 200_000, "field larger than"),
    "negative": ("ncu.csv", lambda t: t.replace('"1,048,576"', '"-4"'), "is '-4'"),
    "binary": ("ncu.csv", lambda _: "\udcff", "not a text file"),
}


@pytest.mark.parametrize(("name", "change", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_profile_that_does_not_fit_is_one_line(files, capsys, name, change, told):
    folder = files[1].parent
    file = folder / name
    file.write_text(change(file.read_text()), errors="surrogateescape")
    assert converted(folder) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ladder: {folder}/")
    assert told in err
    assert err.count("\n") == 1
    assert not (folder / "made.json").exists()


def test_missing_columns_are_not_compared(files, capsys):
    study, counters = files
    file = counters.parent / "ncu.csv"
    file.write_text(file.read_text().replace("mem_shared_op_atom", "mem_shared_op_other"))
    assert converted(counters.parent) == 0
    assert main(["predict", str(study), str(counters.parent / "made.json")]) == 0
    row = table_rows(capsys.readouterr().out)["`histogram/shared`"]
    assert row[2] == ""  # only atomics touch shared memory there


def test_equal_counts_agree(files, capsys):
    assert main(["predict", *map(str, files)]) == 0
    out = capsys.readouterr().out
    row = table_rows(out)["`transpose/tiled`"]
    assert row[2:5] == ["1,081,344", "1,081,344", "1.000"]
    assert row[-1] == "yes"
    assert "- 9 of 9 rungs are within 1% in every case, 8 of 8 for shared wavefronts" in out


@pytest.mark.parametrize(("factor", "code"), [(1.009, 0), (0.991, 0), (1.02, 1), (0.98, 1)])
def test_more_than_a_percent_is_a_difference(files, capsys, factor, code):
    study, counters = files
    emulated.write_counters(counters.parent, {"transpose/tiled": factor})
    assert main(["predict", str(study), str(counters)]) == code
    row = table_rows(capsys.readouterr().out)["`transpose/tiled`"]
    assert ("unexplained" in row) == bool(code)


def test_a_difference_with_a_reason_is_no_failure(files, capsys):
    study, counters = files
    emulated.write_counters(counters.parent, {"transpose/tiled": 1.5})
    reasons = counters.parents[1] / "differences.toml"
    reasons.write_text('"transpose/tiled" = "because"\n"transpose/naive" = "no more"\n')
    assert main(["predict", str(study), str(counters)]) == 0
    out = capsys.readouterr().out
    assert table_rows(out)["`transpose/tiled`"][-2:] == ["no", "because"]
    assert "- A reason is given, but no difference found: transpose/naive." in out
    elsewhere = counters.parent / "none.toml"
    elsewhere.write_text("")
    command = ["predict", str(study), str(counters), "--differences", str(elsewhere)]
    assert main(command) == 1


@pytest.mark.parametrize("text", ["x = ", '"a/b" = 3\n', '"a/b" = ""\n', "a/b = 'x'\n"])
def test_broken_reasons_are_one_line(files, capsys, text):
    study, counters = files
    reasons = counters.parents[1] / "differences.toml"
    reasons.write_text(text)
    assert main(["predict", str(study), str(counters)]) == 3
    err = capsys.readouterr().err
    assert err.startswith(f"ladder: {reasons}: ")
    assert err.count("\n") == 1


def test_what_was_not_profiled_is_named(files, capsys):
    study, counters = files
    document = json.loads(counters.read_text())
    document["benchmarks"] = document["benchmarks"][1:]
    counters.write_text(json.dumps(document))
    assert main(["predict", str(study), str(counters)]) == 0
    assert f"No hardware counters: transpose/naive/{emulated.SHAPE}" in capsys.readouterr().out


def test_several_cases_of_a_rung_that_were_not_profiled_are_counted(files, capsys):
    study, counters = files
    document = json.loads(study.read_text())
    naive = json.dumps(document["benchmarks"][0])
    for other in ("n:64", "n:96"):
        document["benchmarks"].append(json.loads(naive.replace(emulated.SHAPE, other)))
    study.write_text(json.dumps(document))
    document = json.loads(counters.read_text())
    document["benchmarks"] = document["benchmarks"][1:]
    counters.write_text(json.dumps(document))
    assert main(["predict", str(study), str(counters)]) == 0
    assert "No hardware counters: transpose/naive (3 cases)" in capsys.readouterr().out


def test_predict_updates_a_document(files, tmp_path, capsys):
    document = tmp_path / "emulator.md"
    document.write_text("<!-- ladder:table prediction -->\n<!-- ladder:end -->\n")
    assert main(["predict", *map(str, files), "--update", str(document)]) == 0
    assert capsys.readouterr().out == ""
    assert "`transpose/tiled`" in document.read_text()


def test_predict_wants_an_emulated_and_a_counted_file(files, whole, capsys):
    study, counters = map(str, files)
    assert main(["predict", str(whole), counters]) == 2
    assert capsys.readouterr().err == f"ladder: {whole}: not an emulated result\n"
    assert main(["predict", study, str(whole)]) == 2
    assert capsys.readouterr().err == (
        f"ladder: {whole}: no file of counters: make one with `ladder counters`\n"
    )


@pytest.mark.parametrize("command", ["table", "plot"])
def test_counters_alone_show_nothing(files, tmp_path, capsys, command):
    options = ["--output", str(tmp_path / "out")] if command == "plot" else []
    assert main([command, str(files[1]), *options]) == 2
    err = capsys.readouterr().err
    assert "hardware counters alone" in err
    assert err.count("\n") == 1


def test_dots_stand_at_the_ratio_and_what_differs_is_labelled(files, draw):
    study, counters = files
    emulated.write_counters(counters.parent, {"transpose/tiled": 0.8})
    made, said = draw([study, counters], "prediction")
    assert said == []
    shared, sectors = made["prediction"].axes
    names = [label.get_text() for label in shared.get_yticklabels()]
    dots = {names[int(line.get_ydata()[0])]: line.get_xdata()[0] for line in shared.lines}
    assert len(dots) == 8
    assert dots.pop("transpose/tiled") == pytest.approx(1.25, rel=1e-4)
    assert set(dots.values()) == {1.0}
    assert [text.get_text() for text in shared.texts] == ["1.25"]
    assert len(sectors.lines) == 10  # one rung has two cases
    band = shared.patches[0]
    assert (band.get_x(), band.get_width()) == pytest.approx((0.99, 0.02))


def test_counters_of_another_gpu_are_refused(files, capsys):
    study, counters = files
    document = json.loads(study.read_text())
    document["context"] |= {"gpu_name": "NVIDIA GeForce RTX 4090", "modelled_gpu": "rtx4090"}
    study.write_text(json.dumps(document))
    assert main(["predict", str(study), str(counters)]) == 5
    out, err = capsys.readouterr()
    assert out == ""
    told = "emulated NVIDIA GeForce RTX 4090, counted on NVIDIA H200: not the same GPU"
    assert err == f"ladder: {told}\n"
