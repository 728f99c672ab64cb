# SPDX-License-Identifier: MIT
"""Finds results files and reads each dialect of them into one form, Google Benchmark's JSON."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, TextIO, TypeVar

from ladder.io import csv_file, library_fields, nvbench
from ladder.io.notes import note
from ladder.io.text_forms import decoded, results_in
from ladder.model.errors import LadderError, ResultError
from ladder.model.text import legible

# What may stand for a character that is illegible: controls, halves of pairs, and no characters.
_ESCAPE = re.compile(r"\\(?:[bf]|u(?:00[01]|d[89a-f]|fff[ef]))", re.IGNORECASE)
_OBJECT = re.compile(r"\s*\{")
_Kind = TypeVar("_Kind")
_EXACT = 2.0**53  # integers that a float holds exactly

STDIN = "-"
# What stands beside results and is none itself: of an emulated one its details, of several noise.
DETAILS, NOISE = "details.json", "noise.json"
_DETAILS = (
    "details of emulated results, which are found next to these by name: name only the results"
)
_NOISE = "output of 'ladder noise', not results: pass it to compare, check or trend as --noise"
_SAMPLES = "samples of results, which are found next to these by name: name only the results"


def samples_beside(results: Path) -> Path:
    """Return where the samples of a results file are, if any: `study.samples.jsonl`."""
    stem, dot, rest = results.name.removesuffix(".gz").rpartition(".json")
    return results.with_name(f"{stem if dot else rest}.samples.jsonl{rest if dot else ''}")


def find(paths: Iterable[str | PathLike[str]]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Read the files, and every *.json and *.json.gz below the directories, each once and in order.

    `-` is stdin. Each comes with what `read` returns. What stands beside results is left out, with
    a note where it is named; below directories so is, with a note, what holds none: files of other
    programs, and empty ones. A cut off or damaged file is not.

    Raises ResultError for a file that cannot be read, for a directory without any results, and
    where nothing is left of the files.
    """
    found: set[Path] = set()
    beside = []
    for path in map(Path, paths):
        if path.is_dir():
            yield from _below(path, found)
        elif path.resolve() not in found:
            document = None if (told := _samples(path)) else _document(path, _filled(path))
            if told := told or _beside(document):
                beside.append(f"{path}: {told}")
                continue
            found.add(path.resolve())
            yield path, _checked(path, document)
    if beside and not found:
        raise ResultError(beside[0])
    for told in beside:
        note(told)


def _below(folder: Path, found: set[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Read the results below a directory, but those `found` before; note files that have none."""
    files = sorted(p for end in ("", ".gz") for p in folder.rglob(f"*.json{end}") if p.is_file())
    if not files:
        raise ResultError(f"{folder}: no *.json below this directory")
    for path in files:
        if path.resolve() in found:
            continue
        text, document = read_text(path), None
        ours = path.name.removesuffix(".gz") in (DETAILS, NOISE)
        if not ours or '"benchmarks"' in text:  # ours may be large
            try:
                document = _document(path, text)
            except ResultError:
                if _may_have_rows(text):
                    raise
        if _has_rows(document):
            found.add(path.resolve())
            yield path, _checked(path, document)
        elif not ours and not _beside(document):
            note(f"{path}: {'has no results' if text.strip() else 'empty'}, left out")
    if not found & {path.resolve() for path in files}:
        raise ResultError(f"{folder}: no results below this directory")


def _may_have_rows(text: str) -> bool:
    """Whether a text that is no JSON looks like results that were damaged."""
    return '"benchmarks"' in text and ('"context"' in text or '"states"' in text)


def _has_rows(document: Any) -> bool:
    """Whether JSON holds results; other programs have "benchmarks" too."""
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        return False
    ours = isinstance(document.get("context"), dict) and len(document["benchmarks"]) > 0
    return ours or nvbench.found(document)


def _samples(path: Path) -> str:
    named = path.name.removesuffix(".gz").endswith(".samples.jsonl")
    return _SAMPLES if named and path.is_file() else ""


def _beside(document: Any) -> str:
    """Say what JSON next to results is and which option takes it; empty for any other."""
    entries = document if isinstance(document, dict) and not _has_rows(document) else {}
    if isinstance(entries.get("lines"), list):
        return _DETAILS
    rows = entries.get("rows")
    floors = rows.values() if isinstance(rows, dict) else ()
    return _NOISE if any(isinstance(row, dict) and "floor" in row for row in floors) else ""


def read(path: Path) -> dict[str, Any]:
    """Return the context and rows of a results file as Google Benchmark's JSON has them.

    It may be that JSON, with what the program printed around it, Google Benchmark's CSV, or
    NVBench's JSON. Raises ResultError saying what is wrong with it.
    """
    return _checked(path, _document(path, _filled(path)))


def _document(path: Path, text: str) -> Any:
    """Return what a text holds in the form of JSON."""
    if ".csv" in path.suffixes or (not _OBJECT.match(text) and csv_file.found(text)):
        with _named(path):
            return csv_file.document(text)
    return _parsed(path, text, printed=True)


def _checked(path: Path, document: Any) -> dict[str, Any]:
    """Return results in Google Benchmark's form. Raises ResultError where they are none."""
    if nvbench.found(document):
        with _named(path):
            document = nvbench.converted(document)
    shape = {"context": dict, "benchmarks": list}
    if not isinstance(document, dict) or any(
        not isinstance(document.get(key), kind) for key, kind in shape.items()
    ):
        raise ResultError(f"{path}: not a Google Benchmark result (no 'context' and 'benchmarks')")
    if not document["benchmarks"]:
        raise ResultError(f"{path}: has no benchmark rows")
    for row in document["benchmarks"]:
        # Aggregates share the run_name of what they were made from; old files have only a name.
        if not isinstance(row, dict) or not isinstance(
            row.setdefault("run_name", row.get("name")), str
        ):
            raise ResultError(f"{path}: a benchmark row without a name")
    return document


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ResultError(f"{path}: {error}") from error


def read_text(path: Path) -> str:
    """Return a file's text, `-` being stdin, unpacked and decoded. Raises ResultError."""
    try:
        data = _stdin(sys.stdin) if str(path) == STDIN else path.read_bytes()
    except OSError as error:
        raise ResultError(f"{path}: {error.strerror}") from error
    with _named(path):
        return decoded(data)


@lru_cache(maxsize=1)  # it can be read but once, and some commands read their results twice
def _stdin(stream: TextIO) -> bytes:
    return stream.buffer.read()


def short(value: Any) -> Any:
    """Return JSON with counts as integers and 9 digits of other numbers, finer than any timer."""
    if isinstance(value, dict):
        return {key: short(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [short(each) for each in value]
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    return int(value) if value.is_integer() and abs(value) < _EXACT else float(f"{value:.9g}")


def indented(value: Any) -> str:
    """Return JSON for other programs, also of dataclasses; unknown and infinite is null."""
    import msgspec

    text = msgspec.json.encode(value, enc_hook=lambda number: number.item())  # of numpy
    return msgspec.json.format(text, indent=1).decode() + "\n"


def by_row(context: Mapping[str, Any], key: str, rows: Sequence[Any] | Mapping[str, Any]) -> str:
    """Return JSON of a context and its rows, one per line: small, and its diffs can be read."""

    def line(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    if isinstance(rows, Mapping):
        (begin, end), lines = "{}", [f"{line(name)}:{line(row)}" for name, row in rows.items()]
    else:
        (begin, end), lines = "[]", [line(row) for row in rows]
    head, text = json.dumps(context, indent=2, ensure_ascii=False), ",\n".join(lines)
    return f'{{"context": {head},\n"{key}": {begin}\n{text}\n{end}}}\n'


def write(path: Path, content: bytes) -> None:
    """Write a file completely or not at all: a full disk must not destroy the old file."""
    new = path.with_name(path.name + ".new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise LadderError(f"{path}: {error.strerror}") from error


def read_json(path: Path) -> Any:
    """Return any JSON. Raises ResultError saying what is wrong with it."""
    return _parsed(path, _filled(path), printed=False)


def typed(path: Path, document: Any, kind: type[_Kind], name: str = "") -> _Kind:
    """Return what a file held, under `name` if given, as the dataclass `kind`, say.

    Further keys are left out. Raises ResultError saying where it is something else.
    """
    import msgspec

    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise ResultError(": ".join(filter(None, (str(path), name, str(error))))) from error


def _filled(path: Path) -> str:
    text = read_text(path)
    if not text.strip():
        raise ResultError(f"{path}: empty (did the benchmark filter match nothing?)")
    return text


def _parsed(path: Path, text: str, *, printed: bool) -> Any:
    """Parse JSON. Raises ResultError.

    `printed` looks for results among what a program printed, and has integers as floats.
    """
    number = float if printed else int
    try:
        # Of JSON as it should be all else is legible, since decoding leaves no half of a pair.
        if not ("\ufffe" in text or "\uffff" in text or _ESCAPE.search(text)):
            with suppress(json.JSONDecodeError):
                return json.loads(text, parse_int=number, object_pairs_hook=_unique)
        # 1.7.1 writes control characters unescaped, and NaN and Infinity bare, which Python reads.
        decoder = json.JSONDecoder(
            strict=False, parse_int=number, object_pairs_hook=_legible_and_unique
        )
        try:
            return decoder.decode(text)
        except json.JSONDecodeError as error:
            if not printed:
                raise
            return results_in(text, decoder.raw_decode, error)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")  # "Unterminated string starting at"
        raise ResultError(
            f"{path}: truncated or not JSON: {what} at line {error.lineno}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: not usable JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    return entries if len(entries) == len(pairs) else library_fields.told_apart(pairs)


def _legible_and_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return _unique([(legible(k), legible(v) if isinstance(v, str) else v) for k, v in pairs])
