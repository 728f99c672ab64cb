# SPDX-License-Identifier: MIT
"""One process of a benchmark program: what it writes row by row, and why it ended."""

from __future__ import annotations

import codecs
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ladder.measure import processes
from ladder.model import units
from ladder.model.ceilings import Entries
from ladder.model.errors import LadderError
from ladder.model.text import last_line
from ladder.model.units import SMALL_KERNEL

_POLL = 0.2  # seconds between polls of a process and of what it has written
_LONGEST_FILTER = 50_000  # characters; libstdc++ takes 100 000, an argument of Linux 128 KiB
_ROWS = re.compile(r'"benchmarks":\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_SMALL_KERNEL_VARIABLE = "LADDER_SMALL_KERNEL_NANOSECONDS"

_LEFT_OUT = 2  # `incomplete` of a row that a pass did not run; 1 if it ran and could not be read


def failure(entries: Entries) -> str:
    """Return why a row failed, or empty."""
    failed = (e for e in entries if e.get("error_occurred") and not _skipped(e))
    return next((str(e.get("error_message") or "no reason given") for e in failed), "")


def _skipped(entry: dict[str, Any]) -> bool:
    """Return whether a row did not apply; libbenchmark 1.7.1 writes it as an error of that name."""
    message = str(entry.get("error_message", ""))
    return bool(entry.get("skipped")) or message.startswith("skipped: ")


def lacks(entries: Entries) -> bool:
    """Whether a row was timed, but its energy or counters could not be read."""
    return _incomplete(entries) > 0


def _incomplete(entries: Entries) -> float:
    return max((e.get("incomplete", 0) for e in entries), default=0)


def error_row(name: str, reason: str) -> dict[str, Any]:
    """Return a failed row, as the library writes one, for a row that has no result."""
    return {
        "name": name,
        "family_index": 0,
        "per_family_instance_index": 0,
        "run_name": name,
        "run_type": "iteration",
        "repetitions": 1,
        "repetition_index": 0,
        "threads": 1,
        "error_occurred": True,
        "error_message": reason,
        "iterations": 0,
        "real_time": 0.0,
        "cpu_time": 0.0,
        "time_unit": "us",
    }


class _Stream:
    """The rows in a results file that grows."""

    def __init__(self, file: BinaryIO) -> None:
        self.context: dict[str, Any] | None = None
        self.rows: dict[str, Entries] = {}
        self.file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._json = json.JSONDecoder(strict=False)  # 1.7.1 leaves control characters as they are
        self._text = ""

    def read(self) -> bool:
        """Take in what is new; return whether anything whole came."""
        if not (new := self.file.read()):
            return False
        self._text += self._decoder.decode(new)
        try:
            return self._parse()
        except (ValueError, RecursionError):  # not yet whole, or no JSON at all
            return False

    def _parse(self) -> bool:
        came = False
        if self.context is None:
            if not (start := _ROWS.search(self._text)):
                return False
            document = self._json.decode(self._text[: start.end()] + "]}")
            if not isinstance(document.get("context"), dict):
                return False
            self.context, self._text = document["context"], self._text[start.end() :]
            came = True
        while True:
            between = _BETWEEN.match(self._text)
            at = between.end() if between else 0
            try:
                row, end = self._json.raw_decode(self._text, at)
            except ValueError:
                return came
            if not isinstance(row, dict):
                return came
            self._text, came = self._text[end:], True
            self.rows.setdefault(str(row.get("run_name", row.get("name"))), []).append(row)

    def last_failed(self) -> list[str]:
        """Return the names of the rows that failed and were followed by none that was measured."""
        failed: list[str] = []
        for name, entries in self.rows.items():
            if failure(entries):
                failed.append(name)
            elif not any(map(_skipped, entries)):
                failed = []
        return failed


class Output:
    """What a process has written so far, to `file`.partial, which becomes `file` when complete.

    If rows are also run for their energy or counters, there is a pass for each of these after the
    one that times all rows, and each pass writes a new file. `passes` has the key that the context
    gains with each later pass, in their order.
    """

    def __init__(self, file: Path, passes: Sequence[str] = ()) -> None:
        self.files = [file, file.with_name(file.name + ".partial")]
        self._later = passes
        self._streams: dict[int, _Stream] = {}  # by the number of the file, which may be renamed

    def read(self) -> bool:
        """Take in what is new; return whether anything whole came."""
        for path in self.files:
            with suppress(FileNotFoundError):
                if path.stat().st_ino not in self._streams:
                    # Stays open: what is written of it can be read when it is gone.
                    file = path.open("rb")
                    self._streams[os.fstat(file.fileno()).st_ino] = _Stream(file)
        return sum(stream.read() for stream in self._streams.values()) > 0  # all of them

    def close(self) -> None:
        """Let go of the files."""
        for stream in self._streams.values():
            stream.file.close()

    def remove(self) -> None:
        """Let go of the files and remove them."""
        self.close()
        for path in self.files:
            path.unlink(missing_ok=True)

    @property
    def context(self) -> dict[str, Any] | None:
        """The context, none while there is none; of the last pass that has begun."""
        found = [stream.context for stream in self._passes() if stream.context is not None]
        return found[-1] if found else None

    def rows(self) -> dict[str, Entries]:
        """Return by name the rows that stand, in the order that they came in.

        Of those that failed with none measured since, the first alone: an error of CUDA may stay
        with its process.
        """
        found: dict[str, Entries] = {}
        for stream in self._passes():
            found |= stream.rows
            for name in stream.last_failed()[1:]:
                del found[name]
        return found

    @property
    def broken(self) -> bool:
        """Whether the last rows failed, so that what came after them may be no fault of its own."""
        return any(stream.last_failed() for stream in self._passes()[-1:])

    def unfinished(self) -> set[str]:
        """Return the names of rows that were timed, but are not through all passes yet.

        Those too that a pass left out, since a row before had left the device in error.
        """
        rows: set[str] = set()
        for stream in self._passes():
            last = self._number(stream) == len(self._later)
            for name, entries in stream.rows.items():
                if failure(entries) or (last and _incomplete(entries) < _LEFT_OUT):
                    rows.discard(name)
                else:
                    rows.add(name)
        return rows & set(self.rows()) if self._later else set()

    @property
    def done(self) -> int:
        """How many rows were run, in all passes together."""
        return sum(len(stream.rows) for stream in self._streams.values())

    def under_way(self, names: Sequence[str]) -> str | None:
        """Return the row that a process was at when it ended: the first that its pass lacks."""
        newest = self._passes()[-1].rows
        return next((name for name in names if name not in newest), None)

    def _passes(self) -> list[_Stream]:
        return sorted(self._streams.values(), key=self._number)

    def _number(self, stream: _Stream) -> int:
        return sum(key in (stream.context or {}) for key in self._later)


def alike(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment that makes ladder_bench look for a CUDA context as fast as another's.

    Small kernels take up to 4 % longer in one process than in another, and equally long within
    one. That of the first process is in `context`, its results' context, for the others to match.
    Other programs ignore it. Empty where there is no such time, or the user set one.
    """
    known = 0 < units.parse(context.get(SMALL_KERNEL)) < float("inf")
    if not known or _SMALL_KERNEL_VARIABLE in os.environ:
        return {}
    return {_SMALL_KERNEL_VARIABLE: str(context[SMALL_KERNEL])}


def attend(
    command: Sequence[str],
    output: Output,
    timeout: float,
    came: Callable[[], None],
    environment: Mapping[str, str],
) -> tuple[int | None, str]:
    """Run a command to its end; call `came` whenever its output grew. Return exit code and reason.

    The reason is for where that end was too early. A process that writes nothing for `timeout`
    seconds is ended, and its code is None. Raises LadderError where it cannot be started, LostError
    where it cannot be ended.
    """
    try:
        with (
            tempfile.TemporaryFile() as errors,
            processes.started(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, **environment},
            ) as process,
        ):
            last = time.monotonic()
            while not _ended(process):
                with processes.undisturbed():  # what is read but not kept is lost
                    if output.read():
                        last = time.monotonic()
                        came()
                    elif time.monotonic() - last > timeout:
                        return None, f"no result within {timeout:g} s"
            return process.returncode, _reason(process.returncode, errors)
    except OSError as error:
        raise LadderError(f"{command[0]}: {error.strerror}") from error


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL)
    except subprocess.TimeoutExpired:
        return False
    return True


def _reason(code: int, errors: BinaryIO) -> str:
    errors.seek(0)
    said = _said(errors.read())
    if code == 0:
        return "ended without a result"
    if code < 0:
        told = f"killed by {signal.Signals(-code).name}"
        return f"{told}: {said}" if said and code == -signal.SIGABRT else told
    return said or f"ended with exit code {code}"


def _said(text: bytes) -> str:
    return last_line(text.decode("utf-8", "replace"))[:300]  # enough for a message


def without_name(program: str, said: str) -> str:
    """Remove the program's name from what it said: ours say their own, whatever the file's is."""
    names = f"{re.escape(Path(program).name)}|ladder_bench(?:_emulated)?"
    return re.sub(f"^(?:{names}): ", "", said)


def listed(command: Sequence[str], timeout: float) -> list[str]:
    """Return the names of a program's rows, none where a filter among its flags finds none.

    Raises LadderError with what the program says.
    """
    try:
        done = subprocess.run(
            [*command, "--benchmark_list_tests"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as error:
        raise LadderError(f"{command[0]}: does not list its rows within {timeout:g} s") from error
    except OSError as error:
        raise LadderError(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        said = _said(done.stderr) or f"ended with exit code {done.returncode}"
        if said.startswith("Failed to match"):  # as the library says
            return []
        raise LadderError(f"{command[0]}: {without_name(command[0], said)}")
    return list(dict.fromkeys(done.stdout.decode("utf-8", "replace").split("\n")[:-1]))


def filter_of(names: Iterable[str]) -> str:
    """Return the --benchmark_filter that these rows alone match."""
    # POSIX's extended regular expressions know fewer escapes than re.escape() makes: no \] or \}.
    plain = (re.sub(r"[\\.^$*+?()\[{|]", r"\\\g<0>", name) for name in names)
    return f"^({'|'.join(plain)})$"


def batches(names: Iterable[str]) -> Iterator[list[str]]:
    """Cut rows into lists whose filters a program can take."""
    batch: list[str] = []
    length = 0
    for name in names:
        more = len(filter_of([name]))  # a little more than it adds
        if batch and length + more > _LONGEST_FILTER:
            yield batch
            batch, length = [], 0
        batch.append(name)
        length += more
    if batch:
        yield batch
