# SPDX-License-Identifier: MIT
"""Counters of the program beside Nsight Compute's: their conversion and how far they agree."""

import ladder as package
import limited
import pytest
import suite
from ladder.analysis import prediction
from ladder.commands.cli import main
from ladder.io.results import load_results
from ladder.report import counter_tables
from printed import table_rows

PROFILE = {  # metric: (unit, value as ncu prints it)
    "dram__bytes_read.sum": ("Mbyte", "250.000000"),
    "dram__bytes_write.sum": ("Gbyte", "0.25"),
    "lts__t_sectors_srcunit_tex.sum": ("sector", "18,750,000"),
    "l1tex__t_bytes.sum": ("byte", "600,000,000"),
    "smsp__inst_executed.sum": ("inst", "10,000,000"),
    "smsp__thread_inst_executed_pred_on.sum": ("", "160,000,000"),
    "smsp__inst_issued.sum": ("inst", "1,000,000"),
    "smsp__cycles_active.sum": ("cycle", "10,000,000"),
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": ("inst", "400,000,000"),
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": ("inst", "150,000,000"),
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": ("inst", "50,000,000"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "70.4"),
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": ("%", "0"),
    "sm__warps_active.sum": ("warp", "2,000,000"),
    "smsp__warps_issue_stalled_long_scoreboard.sum": ("warp", "1,260,000"),
    "smsp__warps_issue_stalled_barrier.sum": ("warp", "400,000"),
    "lts__d_atomic_input_cycles_active.max": ("cycle", "900,000"),
    "lts__cycles_elapsed.max": ("cycle", "9,000,000"),
    "sm__cycles_active.max": ("cycle", "2,000,000"),
    "sm__cycles_elapsed.max": ("cycle", "10,000,000"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": ("", "31"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": ("", "1,000,000"),
    "l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum": ("byte", "n/a"),
}


def converted(folder, names, changes=()):
    """What ncu says of launches of these rows of "work", converted."""
    metrics = PROFILE | dict(changes)
    lines = [["ID", "Kernel Name", *metrics], ["", "", *(unit for unit, _ in metrics.values())]]
    lines += [[str(i), name, *(v for _, v in metrics.values())] for i, name in enumerate(names)]
    text = "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
    (folder / "ncu.csv").write_text(text)
    (folder / "rows.txt").write_text("".join(f"work/{n}/n:8/manual_time\t{n}\n" for n in names))
    like = suite.write(folder / "like.tmp", limited.document(*map(limited.row, names)))
    paths = [str(folder / name) for name in ("ncu.csv", "rows.txt", "counters.json")]
    flags = ("--profile", "--rows", "--output")
    options = [part for pair in zip(flags, paths, strict=True) for part in pair]
    assert main(["counters", *options, "--like", str(like), "--ncu", "2025.3"]) == 0
    return folder / "counters.json"


def test_a_profile_has_the_programs_counters_in_base_units(tmp_path):
    (row,) = package.load(converted(tmp_path, ["tiled"])).itertuples()
    assert row.dram_read_bytes == row.dram_write_bytes == 0.25e9
    assert row.dram_bytes == 0.5e9
    assert row.l2_bytes == 0.6e9
    assert row.l1_bytes == 0.6e9
    assert row.predicated_on_lanes == 16
    assert row.issue_utilisation == pytest.approx(0.1)
    assert row.fp32_operations == 2 * 4e8 + 1.5e8 + 0.5e8
    assert row.achieved_occupancy == pytest.approx(0.704)
    assert row.tensor_utilisation == 0
    assert row.l2_atomic_utilisation == pytest.approx(0.5)  # of the fifth in which SMs worked
    assert row.stall_long_scoreboard == pytest.approx(0.63)
    assert row.shared_load_conflicts == 31
    assert row.bulk_copy_bytes != row.bulk_copy_bytes  # not available


def test_an_instruction_that_was_not_counted_leaves_operations_unknown(tmp_path):
    metric = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
    file = converted(tmp_path, ["tiled"], {metric: ("inst", "n/a")})
    (row,) = package.load(file).itertuples()
    assert row.fp32_operations != row.fp32_operations


@pytest.mark.parametrize("text", ["n/a", "", "0"])
@pytest.mark.parametrize(
    "metric", ["lts__d_atomic_input_cycles_active.max", "lts__cycles_elapsed.max"]
)
def test_atomics_are_idle_only_where_that_was_counted(tmp_path, metric, text):
    (row,) = package.load(
        converted(tmp_path, ["tiled"], {metric: ("cycle", text)}.items())
    ).itertuples()
    if text == "0" and "atomic" in metric:
        assert row.l2_atomic_utilisation == 0
    else:
        assert row.l2_atomic_utilisation != row.l2_atomic_utilisation


@pytest.fixture
def agreement(tmp_path, capsys):
    """Compare rows of "work" with that profile; return the table's cells by counter."""

    def compare(*rows, **changes):
        names = [row["name"].split("/")[1] for row in rows]
        measured = converted(tmp_path, names, changes.items())
        study = suite.write(tmp_path / "study.json", limited.document(*rows))
        files = [str(measured), str(study)]
        assert main(["table", *files, "--ladder", "counters_agreement"]) == 0
        text = capsys.readouterr().out
        assert text.startswith(
            "NVIDIA H200, cold cache, commit 0123456: CUPTI 13.0, 9 passes, "
            "compared with Nsight Compute."
        )
        return {counter: cells[1:] for counter, cells in table_rows(text).items()}

    return compare


def test_each_counter_says_how_many_rows_agree_and_which_is_furthest_off(agreement):
    rows = [limited.row("even"), limited.row("near", dram_read_bytes=0.254e9)]
    rows.append(limited.row("off", dram_read_bytes=0.2e9, fp32_operations=1.5e9))
    found = agreement(*rows)
    assert found["counter"] == ["rows", "within 2%", "largest difference"]
    assert found["`dram_read_bytes`"] == ["3", "67%", "-20.0% in `work/off/n:8`"]
    assert found["`fp32_operations`"] == ["3", "67%", "+50.0% in `work/off/n:8`"]
    assert found["`l1_bytes`"] == ["3", "100%"]


def test_fractions_that_are_small_on_both_sides_are_left_out(agreement):
    found = agreement(limited.row("kernel", issue_utilisation=0.11, tensor_utilisation=0.01))
    assert found["`issue_utilisation`"] == ["1", "0%", "+10.0% in `work/kernel/n:8`"]
    assert "`tensor_utilisation`" not in found
    found = agreement(limited.row("kernel", tensor_utilisation=0.06))
    assert found["`tensor_utilisation`"] == ["1", "0%", "theirs is 0 in `work/kernel/n:8`"]


def test_nothing_on_both_sides_is_no_agreement(agreement):
    metric = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
    found = agreement(limited.row("kernel", shared_load_conflicts=0.0), **{metric: ("", "0")})
    assert "`shared_load_conflicts`" not in found


def test_short_rows_are_compared_by_counts_alone(agreement):
    found = agreement(limited.row("short", 19e-6), limited.row("long", 21e-6))
    assert found["`l1_bytes`"][0] == "2"
    assert found["`issue_utilisation`"][0] == "1"


def test_the_table_says_what_was_left_out(tmp_path):
    (results,) = load_results(suite.write(tmp_path / "study.json", limited.document()))
    figures = [
        ("a", "dram_bytes", 1e9, 1e9, 1.0),
        ("b", "dram_bytes", 1e3, 1e4, 1.0),
        ("c", "dram_bytes", 0.0, 0.0, 1.0),
        ("a", "stall_wait", 0.01, 0.04, 1.0),
        ("b", "stall_wait", 0.3, 0.3, 1e-6),
    ]
    pairs = [counter_tables.Agreement(*figure) for figure in figures]
    text = counter_tables.agreement(results, pairs)
    told = text.partition("Nsight Compute. ")[2].partition("\n")[0]
    assert told == (
        "1 of 3 rows that both counted are compared, 1 of 5 values. "
        "Left out: values that are 0 on both sides (1), fractions of rows under 20.0 us (1), "
        "fractions below 5% on both sides (1), "
        "counts of less than 0.1% of the counter's largest (1)."
    )
    assert list(table_rows(text)) == ["counter", ":--", "`dram_bytes`"]


def test_a_row_of_several_profiles_is_that_of_the_one_for_these_rows(tmp_path):
    """The order of files does not matter."""
    rows = [limited.row(name) for name in ("first", "second")]
    found = load_results(suite.write(tmp_path / "study.json", limited.document(*rows)))
    for name, commit, count in (("own", "abc", 2), ("other", "def", 1)):
        document = limited.document(*rows[:count], roofs=[], git_commit=commit, counters="Nsight")
        for row in document["benchmarks"]:
            row["dram_bytes"] = float(count)
        found += load_results(suite.write(tmp_path / f"{name}.json", document))
    for results in (found, found[::-1]):
        measured = prediction.counterpart(found[0], results)
        assert [row.dram_bytes for row in measured.values()] == [2, 2]


def test_what_one_side_alone_saw_disagrees(agreement):
    found = agreement(limited.row("kernel", shared_load_conflicts=5.0, l2_bytes=0.0))
    assert found["`l2_bytes`"] == ["1", "0%", "-100.0% in `work/kernel/n:8`"]
    metric = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
    found = agreement(limited.row("kernel", shared_load_conflicts=5.0), **{metric: ("", "0")})
    assert found["`shared_load_conflicts`"] == ["1", "0%", "theirs is 0 in `work/kernel/n:8`"]


def test_rows_with_next_to_nothing_are_left_out(tmp_path):
    (results,) = load_results(suite.write(tmp_path / "study.json", limited.document()))
    figures = {"much": (1e9, 1e9), "little": (3e6, 2e6), "less": (9e4, 4e3)}
    pairs = [
        counter_tables.Agreement(row, "dram_bytes", *both, 1.0) for row, both in figures.items()
    ]
    cells = table_rows(counter_tables.agreement(results, pairs))["`dram_bytes`"]
    assert cells[1:] == ["2", "50%", "+50.0% in `little`"]


@pytest.mark.parametrize(
    ("commit", "instructions", "compared"),
    [("abc", 2e6, True), ("def", 1.01e6, True), ("def", 2e6, False)],
)
def test_kernels_that_changed_since_the_profile_are_not_compared(
    tmp_path, commit, instructions, compared
):
    row = limited.row("kernel", warp_instructions=instructions, dram_bytes=3e9)
    found = load_results(
        suite.write(tmp_path / "study.json", limited.document(row, git_commit="abc"))
    )
    profiled = limited.row("kernel", warp_instructions=1e6, dram_bytes=1e9)
    profile = limited.document(profiled, roofs=[], git_commit=commit, counters="Nsight")
    found += load_results(suite.write(tmp_path / "profile.json", profile))
    pairs = counter_tables.compare(found[0], prediction.counterpart(found[0], found))
    text = counter_tables.agreement(found[0], pairs)
    why = f"values of rows that run other instructions since the profile's commit ({len(pairs)})"
    assert (why in text) != compared
    assert ("`dram_bytes`" in table_rows(text)) == compared


def test_counters_that_one_side_lacks_are_not_compared(agreement):
    found = agreement(limited.row("kernel"))
    assert "`shared_load_conflicts`" not in found  # not in the row
    assert "`global_load_sectors`" not in found  # not in the profile


def test_without_a_row_in_common_there_is_no_such_table(tmp_path, capsys):
    measured = converted(tmp_path, ["other"])
    study = suite.write(tmp_path / "study.json", limited.document(limited.row("kernel")))
    assert main(["table", str(measured), str(study), "--ladder", "counters_agreement"]) == 2
    assert "no ladder 'counters_agreement'" in capsys.readouterr().err


def counters_of(run, output):
    return main(["counters", str(run), "--output", str(output)])


def test_a_run_becomes_counters_without_times(tmp_path, capsys):
    rows = [limited.row(name, global_load_sectors=96, registers=40) for name in ("tiled", "naive")]
    rows[1]["error_occurred"], rows[1]["error_message"] = True, "wrong result"
    rows.append(rows[0] | {"repetition_index": 1})
    run = suite.write(tmp_path / "run.json", limited.document(*rows))
    made = tmp_path / "counters.json"
    assert counters_of(run, made) == 0
    (row,) = [row for row in package.load(made).itertuples() if row.name.startswith("work/")]
    assert row.source == "counters"
    assert (row.global_load_sectors, row.registers) == (96, 40)
    assert row.seconds != row.seconds
    # They are the program's own, not those of another tool to compare it with.
    assert main(["table", str(made), str(run), "--ladder", "counters_agreement"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_without_hardware_counters_is_one_line(tmp_path, capsys):
    run = suite.write(tmp_path / "run.json", suite.document())
    assert counters_of(run, tmp_path / "counters.json") == 3
    assert capsys.readouterr().err.startswith(f"ladder: {run}: no hardware counters: measure with")
    assert not (tmp_path / "counters.json").exists()


@pytest.mark.parametrize(
    "given",
    [[], ["run.json", "--profile", "a", "--rows", "b"], ["--rows=b"], ["run.json", "--like=a"]],
)
def test_counters_come_from_a_run_or_a_profile(tmp_path, capsys, given):
    assert main(["counters", *given, "-o", str(tmp_path / "counters.json")]) == 2
    assert "name the results of a run, or --profile and --rows" in capsys.readouterr().err
