# SPDX-License-Identifier: MIT
"""Jobs shared out over processes, since drawing a figure takes a core a second."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from ladder.measure import processes
from ladder.model.errors import LadderError

_jobs: Sequence[Callable[[], Any]] = ()


def run(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run jobs, as many at once as there are cores, and return what each returns, in their order.

    The processes are forks of this one, so that jobs may hold anything; what they return, or raise,
    is pickled. Raises LadderError where a process was killed.
    """
    workers = min(len(jobs), len(os.sched_getaffinity(0)))
    if workers < 2:
        return [job() for job in jobs]
    try:
        with ProcessPoolExecutor(workers, get_context("fork"), _start, (jobs,)) as pool:
            return list(pool.map(_run, range(len(jobs))))
    except BrokenProcessPool as error:
        raise LadderError("a process that drew figures was killed: out of memory?") from error


def _start(jobs: Sequence[Callable[[], Any]]) -> None:
    global _jobs
    _jobs = jobs
    gc.freeze()  # what this process shares with its parent stays, and so is never searched
    processes.end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends all: the parent tells of it


def _run(number: int) -> Any:
    return _jobs[number]()
