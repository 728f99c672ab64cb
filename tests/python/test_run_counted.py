# SPDX-License-Identifier: MIT
"""Runs that also count or read energy: what a failure there costs."""

import json
import signal

import pytest
from fake_program import TILED, rows_of, run, started

COUNT = ("--filter", "^mul/tiled/", "--", "--hardware_counters")


def test_what_the_hardware_counts_comes_with_the_times(fake, out):
    assert run(fake, out, *COUNT) == 0
    assert all(row["dram_bytes"] == 7 for row in rows_of(out).values())
    assert json.loads(out.read_text())["context"]["hardware_counters"] == "fake"


def test_a_crash_while_counting_costs_no_times(fake, out, capsys):
    fake.plan({f"count {TILED[1]}": "crash"})
    assert run(fake, out, *COUNT) == 1
    assert [("dram_bytes" in row, row["real_time"]) for row in rows_of(out).values()] == [
        (True, 10),
        (False, 10),
        (True, 10),
    ]
    assert f"ladder: {TILED[1]}: killed by SIGSEGV\n" in capsys.readouterr().err
    fake.plan()
    assert run(fake, out, "--resume", *COUNT) == 0
    assert all("dram_bytes" in row for row in rows_of(out).values())
    assert "run_unfinished" not in json.loads(out.read_text())["context"]


BOTH = (*COUNT, "--energy=headline")


@pytest.mark.parametrize("what", ["energy", "count"])
def test_a_crash_in_any_pass_costs_what_that_row_lacks(fake, out, capsys, what):
    fake.plan({f"{what} {TILED[1]}": "crash"})
    assert run(fake, out, *BOTH) == 1
    assert [("joules" in row, "dram_bytes" in row) for row in rows_of(out).values()] == [
        (True, True),
        (what == "count", False),
        (True, True),
    ]
    assert all(row["real_time"] == 10 for row in rows_of(out).values())
    assert f"ladder: {TILED[1]}: killed by SIGSEGV\n" in capsys.readouterr().err
    fake.plan()
    assert run(fake, out, "--resume", *BOTH) == 0
    assert all("joules" in row and "dram_bytes" in row for row in rows_of(out).values())
    assert json.loads(out.read_text())["context"]["energy_source"] == "fake"


def test_what_could_not_be_read_is_told_and_tried_again(fake, out, capsys):
    fake.plan({f"energy {TILED[1]}": "lack"})
    assert run(fake, out, *BOTH) == 1
    assert len(fake.starts) == 1
    told = capsys.readouterr().err
    assert f"ladder: {TILED[1]}: timed, but incomplete: no energy: refused\n" in told
    assert told.endswith("3 of 3 rows, 1 of them failed\n")
    fake.plan()
    began = len(fake.rows)
    assert run(fake, out, "--resume", "--retry-failed", *BOTH) == 0
    assert fake.rows[began:] == [TILED[1]]
    assert not any("incomplete" in row for row in rows_of(out).values())


@pytest.mark.parametrize("what", ["energy ", "count ", ""])
def test_a_device_in_error_costs_the_row_that_broke_it(fake, out, what):
    """Rows after it are run in another process, and those before it that lost their energy."""
    fake.plan({f"{what}{TILED[1]}": "die" if what else "sticky"})
    assert run(fake, out, *BOTH) == 1
    assert len(fake.starts) == 2
    rows = list(rows_of(out).values())
    assert ["joules" in row and "incomplete" not in row for row in rows] == [True, False, True]
    assert ["error_message" in row for row in rows] == [False, not what, False]
    assert "run_unfinished" not in json.loads(out.read_text())["context"]


def test_a_driver_that_tells_nothing_is_said_once_and_no_row_fails(fake, out, capsys):
    fake.plan(energy="none: libnvidia-ml.so.1 cannot be loaded")
    assert run(fake, out, *BOTH) == 0
    told = f"ladder: {out}: no energy: libnvidia-ml.so.1 cannot be loaded\n"
    assert capsys.readouterr().err.count(told) == 1
    assert all("dram_bytes" in row for row in rows_of(out).values())


def test_a_program_that_never_comes_to_count_is_not_tried_for_ever(fake, out):
    fake.plan({TILED[2]: "wrong", "between": "crash"})
    assert run(fake, out, *COUNT) == 1
    assert [row["real_time"] for row in rows_of(out).values()] == [10, 10, 0]
    assert len(fake.starts) == 3


@pytest.mark.parametrize(("what", "read"), [("energy", "joules"), ("count", "dram_bytes")])
def test_an_interruption_in_any_pass_costs_no_times(fake, out, what, read):
    fake.plan({f"{what} {TILED[1]}": "wait"})
    with started(fake, out, *BOTH) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert process.returncode == 4
    assert [read in row for row in rows_of(out).values()] == [True, False, False]
    fake.plan()
    began = len(fake.rows)
    assert run(fake, out, "--resume", *BOTH) == 0
    assert fake.rows[began:] == (TILED[1:] if what == "count" else TILED)
    assert all("joules" in row and "dram_bytes" in row for row in rows_of(out).values())
