# SPDX-License-Identifier: MIT
"""Runs that are ended: by signals, full disks, programs that come to nothing, and wrong usage."""

import os
import re
import resource
import select
import signal

import pytest
from fake_program import TILED, check_gone, check_nothing_else, errors_of, rows_of, run, started
from ladder.commands.cli import main
from ladder.measure import process, processes


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_was_measured_when_a_run_is_ended_is_kept(fake, out, number):
    fake.plan({TILED[1]: "wait"})
    measured = [*fake.listed("^mul/naive/"), TILED[0]]
    flags = ["--filter", "^mul/(naive|tiled)/", "--split", "rung"]
    with started(fake, out, *flags) as process:
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
    check_gone(fake)
    assert main(["table", str(out)]) == 0
    if number != signal.SIGKILL:
        assert process.returncode == 4
        assert "interrupted: --resume continues from here\n" in said
        assert "4 of 6 rows" in said
        assert "Traceback" not in said
        assert sorted(rows_of(out)) == sorted(measured)
        check_nothing_else(out)
    fake.plan()
    began = len(fake.rows)
    assert run(fake, out, *flags, "--resume") == 0
    assert fake.rows[began:] == TILED[1:]  # not what was measured before
    assert list(rows_of(out)) == fake.listed("^mul/(naive|tiled)/")
    check_nothing_else(out)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_a_row_is_read_costs_none(fake, out, monkeypatch, number):
    parse = process._Stream._parse

    def interrupted(stream):
        if TILED[0] in stream._text:
            signal.raise_signal(number)
        return parse(stream)

    monkeypatch.setattr(process._Stream, "_parse", interrupted)
    fake.plan({TILED[1]: "wait"})
    assert run(fake, out, "--filter", "^mul/tiled/") == 4
    assert list(rows_of(out)) == TILED[:1]
    check_nothing_else(out)


def test_what_a_program_started_ends_with_it():
    reader, writer = os.pipe()
    with processes.started(["sh", "-c", "sleep 77 & exit 0"], stdout=writer) as process:
        os.close(writer)
        process.wait()
    assert select.select([reader], [], [], 300)[0]  # nobody has its other end
    os.close(reader)


@pytest.mark.usefixtures("_impatient")
def test_a_process_that_cannot_be_ended_ends_the_run(fake, out, monkeypatch, capsys):
    monkeypatch.setattr(processes, "_PATIENCE", 0.1)
    monkeypatch.setattr(os, "killpg", lambda *_: None)  # as when it is stuck in a driver
    fake.plan({TILED[1]: "wait"})
    try:
        assert run(fake, out, "--filter", "^mul/tiled/", "--timeout", "60") == 4
    finally:
        (fake.folder / "waiting").unlink()
    said = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(rf"ladder: {fake.path}: process \d+ cannot be ended", said)
    assert list(rows_of(out)) == TILED[:1]


def test_a_full_disk_costs_nothing_that_was_there(fake, out, capsys):
    """Stood in for by a limit of the size of files."""
    assert run(fake, out, "--filter", "^turn/") == 0
    before = out.read_bytes()
    capsys.readouterr()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    flags = ["--filter", "^(turn|mul)/", "--split", "rung", "--resume"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
    try:
        assert run(fake, out, *flags) == 4
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert f"ladder: {out}: File too large; earlier results stay" in capsys.readouterr().err
    assert out.read_bytes() == before
    began = len(fake.rows)
    assert run(fake, out, *flags) == 0
    assert len(fake.rows) - began == 9  # the first rung's three had been kept beside it
    check_nothing_else(out)


def test_a_row_is_not_blamed_for_a_full_disk(fake, out, capsys):
    fake.plan({TILED[1]: "disk"})
    assert run(fake, out, "--filter", "^mul/tiled/") == 4
    assert "out.json could not be written: is the disk full?\n" in capsys.readouterr().err
    assert list(rows_of(out)) == TILED[:1]
    assert not errors_of(out)


@pytest.mark.parametrize(
    ("plan", "code", "told"),
    [
        ({"garbage": "no JSON"}, 3, "exited with 0, but left no readable results"),
        ({"garbage": '{"context": 3, "benchmarks": [1]}'}, 3, "left no readable results"),
        ({"context": {"ladders": "[3]"}}, 3, "context 'ladders'"),
        ({"start": "crash"}, 4, "killed by SIGSEGV, 3 times in turn before the first row"),
        ({"start": "usage"}, 2, "/fake_bench: no CUDA device 0"),
    ],
)
def test_a_program_that_comes_to_no_row_ends_the_run(fake, out, capsys, plan, code, told):
    fake.plan(**plan)
    assert run(fake, out) == code
    err = capsys.readouterr().err
    assert told in err.splitlines()[-1]
    assert err.count("ladder: ") == 1
    assert not any(out.parent.iterdir())


def test_wrong_usage_is_told_in_a_line(fake, out, tmp_path, capsys):
    path = str(fake.path)
    for arguments, told in (
        (["--filter", "^nothing$", path], f"{path}: no row matches --filter ^nothing$"),
        ([path, "--", "--bogus"], "fake: unknown flag --bogus"),
        ([path, "--", "--benchmark_out=x"], "--benchmark_out=x: use --output instead"),
        ([path, "--", "--details_out=x"], "--details_out=x: needs a single process"),
        ([path, "--devices", "0", "--", "--device=1"], "--device=1: --devices names it"),
        ([path, "--processes", "2"], "several results: name a directory"),
        ([path, "--retry-failed"], "--retry-failed needs --resume"),
        ([str(tmp_path / "none")], f"{tmp_path / 'none'}: No such file or directory"),
        ([str(tmp_path)], f"{tmp_path}: Permission denied"),
        (["/bin/true"], "/bin/true: no row matches --filter ."),
    ):
        assert main(["run", "-o", str(out), *arguments]) == 2
        err = capsys.readouterr().err
        assert told in err
        assert err.count("\n") == 1
        assert not out.parent.exists()


def test_a_renamed_program_is_not_told_by_two_names(fake, out, capsys):
    for name in (fake.path.name, "ladder_bench", "ladder_bench_emulated"):
        fake.plan(start="usage", name=name)
        assert run(fake, out) == 2
        assert capsys.readouterr().err.endswith("/fake_bench: no CUDA device 0\n")
