# SPDX-License-Identifier: MIT
"""Processes that end with the command that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ladder.model.errors import LostError

_PATIENCE = 5.0  # seconds that a process has to end once asked, and once killed
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_INTERRUPTING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_LIBC = ctypes.CDLL(None)  # loaded here: little can be done safely between fork and exec


def end_with_parent() -> None:
    """Have the kernel kill this process once the one that started it is gone."""
    _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


@contextmanager
def terminable() -> Iterator[list[int]]:
    """Let SIGTERM, and the SIGHUP of a closed terminal, interrupt as SIGINT does.

    The list given has the numbers of those that came.
    """
    came: list[int] = []

    def interrupt(number: int, _: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # as under nohup
            signal.signal(number, interrupt)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Delay interrupting signals until the block is done, which must not be left half done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTING)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command in a process group of its own; what of it still runs ends with the block.

    It ends too where this process is killed. Raises OSError where it cannot be started, LostError
    where it cannot be ended, as when it is stuck in a driver.
    """
    # No `with`: at its end Popen would wait for ever.
    process = subprocess.Popen(
        command,
        start_new_session=True,
        preexec_fn=end_with_parent,
        **options,
    )
    try:
        yield process
    finally:
        try:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PATIENCE)
        finally:
            _kill(process, command[0])


def _kill(process: subprocess.Popen[bytes], name: str) -> None:
    """Kill a process and what it started, which may outlive it. Raises LostError."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise LostError(f"{name}: process {process.pid} cannot be ended") from error
