# SPDX-License-Identifier: MIT
"""Forms of a text: packed, in other encodings, with a program's output around it."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable
from typing import Any

_GZIP = b"\x1f\x8b"
# How the JSON of results begins: Google Benchmark's, and NVBench's since 2021 and before.
_START = re.compile(r'\{\s*"(?:context|meta|devices|benchmarks)"\s*:')
# What a line of indented JSON begins with, and what no line has that holds nothing of it.
_JSON_LINE = re.compile(r'\s*(?:["{}\[\]]|(?:-?\d[\d.eE+-]*|true|false|null)\s*,?\s*$|$)')
_JSON_IN_LINE = re.compile(r'"\s*:|[{}\[\],]\s*$')

Decode = Callable[[str, int], tuple[Any, int]]  # as json.JSONDecoder.raw_decode


def decoded(data: bytes) -> str:
    """Return the text of a file, unpacked where it is a gzip file.

    UTF-8, UTF-16 or UTF-32, with a byte order mark or told by the zeros of its first characters,
    which JSON and CSV have in ASCII (RFC 4627, section 3).

    Raises:
        ValueError: it is truncated, damaged, or no text; the message says which.
    """
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except EOFError:
            raise ValueError("truncated: the gzip file ends too early") from None
        except (OSError, zlib.error) as error:
            raise ValueError(f"a damaged gzip file: {error}") from None
    try:
        return data.decode(json.detect_encoding(data))
    except UnicodeDecodeError:
        raise ValueError("not a text file") from None


def results_in(text: str, decode: Decode, error: json.JSONDecodeError) -> Any:
    """Return the JSON of results in a text in which a program printed before, after or in between.

    Printed lines between the lines of the JSON are left out. A line that holds both is not mended.

    Raises:
        json.JSONDecodeError: it is cut off or broken; `error`, that of the whole, if there is none.
        ValueError: there are two.
    """
    first: json.JSONDecodeError | None = None
    begun = None
    at = 0
    found = []
    while match := _START.search(text, at):
        begun = match.start() if begun is None else begun
        try:
            document, at = decode(text, match.start())
            found.append(document)
        except json.JSONDecodeError as broken:
            first = first or broken
            at = match.end()
    if not found and begun is not None and first is not None:
        found = _between_prints(text[begun:], decode, first)
    if len(found) > 1:
        raise ValueError("two results, one after the other: each needs a file of its own")
    if not found:
        raise first or error
    return found[0]


def _between_prints(text: str, decode: Decode, first: json.JSONDecodeError) -> list[Any]:
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if _JSON_LINE.match(line) or _JSON_IN_LINE.search(line)]
    if len(kept) == len(lines):
        raise first
    try:
        return [decode("".join(kept), 0)[0]]
    except json.JSONDecodeError:
        raise first from None
