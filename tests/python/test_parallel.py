# SPDX-License-Identifier: MIT
"""Drawing in several processes: the same outcome, and one line where one of them is killed."""

import os
import signal

import pytest
from ladder.commands.cli import main
from ladder.model.errors import LadderError
from ladder.report.plots import parallel


@pytest.fixture(autouse=True)
def _cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def test_jobs_run_in_other_processes_and_come_back_in_order():
    # what a job holds need not be such as can be pickled
    found = parallel.run([lambda number=number: (number, os.getpid()) for number in range(9)])
    assert [number for number, _ in found] == list(range(9))
    assert os.getpid() not in {process for _, process in found}


def test_an_error_of_a_job_is_raised_here():
    def fail():
        raise LadderError("no space")

    with pytest.raises(LadderError, match="no space"):
        parallel.run([fail, lambda: 1])


def test_a_job_that_is_killed_is_an_error():
    with pytest.raises(LadderError, match="was killed"):
        parallel.run([lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1])


def test_a_figure_has_the_same_bytes_from_any_process(whole, tmp_path, monkeypatch):
    for cores in ({0, 1}, {0}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: cores)
        folder = str(tmp_path / str(len(cores)))
        some = ["--filter", "^sgemm/", "--only", "sgemm-climb", "sgemm-wins"]
        assert main(["plot", str(whole), *some, "-o", folder]) == 0
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert len(names) == 2
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
