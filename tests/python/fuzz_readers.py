# SPDX-License-Identifier: MIT
"""Mutates a valid file of every dialect: reading it ends in rows, or in one line that names it.

`python3 tests/python/fuzz_readers.py --minutes 10` takes the dialects in turn; the tests try a few
hundred examples of each. What fails is shrunk and told by hypothesis.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "scripts"), str(HERE)]

from hypothesis import HealthCheck, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from ladder.analysis import families  # noqa: E402
from ladder.io import emulator_details, ncu, results  # noqa: E402
from ladder.model.errors import LadderError  # noqa: E402
from ladder.report import sweep_tables  # noqa: E402
from ladder.stats import noise  # noqa: E402

INPUTS = HERE / "data/inputs"
LAUNCH = "smsp__inst_executed.sum"
PROFILE = f'==PROF== hi\n"ID","Kernel Name","{LAUNCH}","dram__bytes_read.sum"\n"","","","Kbyte"\n'
PROFILE += '"0","tiled(int)","12","1,024.5"\n"1","void naive<4>(int)","7","n/a"\n'


def _ncu(path: Path) -> None:
    rows = path.with_name("rows.txt")
    rows.write_text("a/tiled/n:4\ttiled\na/naive/n:4\tnaive<4>\n")
    ncu.convert(path, rows, None, "2026.1")


def _details(path: Path) -> None:
    beside = path.with_name("results.json")
    beside.write_text('{"context": {}, "benchmarks": [{"name": "a", "real_time": 1}]}')
    path.replace(path.with_name("details.json"))
    emulator_details.load(results.load_results([beside])[0])


def _line(row: str, line: int) -> dict[str, Any]:
    words = {"row": row, "kernel": "k<1>", "file": "k.cuh", "space": "shared", "operation": "load"}
    numbers = dict.fromkeys(("bytes", "requests", "transactions", "worst"), 4)
    return words | numbers | {"line": line, "worst_request": [None, *range(31)]}


DETAILS = {
    "lines": [_line("a", 3), _line("b", 4)],
    "occupancy": [
        {
            "row": "a",
            **dict.fromkeys(("registers", "static_shared_bytes", "dynamic_shared_bytes"), 8),
            "block_threads": 128,
            "by_block": [{"threads": 32, "occupancy": 0.5, "limiter": "blocks"}],
            "by_shared": [{"bytes": 0, "occupancy": 1, "limiter": "warps"}],
        }
    ],
}
FLOOR = {"floor": 0.01, "spread": 0.02, "seconds": 1e-6, "processes": 3, "medians": [1e-6, 2e-6]}
NOISE = {"context": {"gpu_name": "H200"}, "rows": {"a/b": FLOOR, "c": FLOOR}}


def _row(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "run_name": name, "real_time": 2, "cpu_time": 1, "time_unit": "us"} | more


def _fit(name: str, **more: Any) -> dict[str, Any]:
    return {"name": "", "run_name": name, "run_type": "aggregate", "time_unit": "ns"} | more


FITS = {
    "context": {"executable": "/a/b"},
    "benchmarks": [
        *(_row(f"f/n:{n}/n:3/threads:2", threads=2, iterations=9) for n in (8, 64)),
        *(
            _row(f"g/{n}", run_type="aggregate", aggregate_name=k)
            for n in (8, 64)
            for k in ("mean", "median")
        ),
        _fit(
            "f/threads:2", aggregate_name="BigO", big_o="N", real_coefficient=2, cpu_coefficient=1
        ),
        _fit("f/threads:2", aggregate_name="RMS", rms=0.5),
        _fit("g", aggregate_name="BigO", big_o="lgN", real_coefficient=2),
    ],
}


def _over_arguments(path: Path) -> None:
    for result in results.load_results(path):
        for sweep in families.sweeps(result):
            for metric in ("real_time", "cpu_time", "threads"):
                sweep_tables.table(result, sweep, metric)


# Each dialect: a valid file of it, its name, and what reads it.
Reader = Callable[[Path], object]
DIALECTS: dict[str, tuple[bytes, str, Reader]] = {
    "json": ((INPUTS / "printed_1_7_1.json").read_bytes(), "a.json", results.load),
    "aggregates": ((HERE / "data/aggregates_only.json").read_bytes(), "a.json", results.load),
    "ladders": ((HERE / "data/v1_9_1.json").read_bytes(), "a.json", results.load),
    "text around": (
        (HERE / "data/cases/text_before.json").read_bytes() + b"\nbye {\n",
        "a.json",
        results.load,
    ),
    "utf-16": ((HERE / "data/cases/utf16_powershell.json").read_bytes(), "a.json", results.load),
    "csv": ((INPUTS / "printed_1_7_1.csv").read_bytes(), "a.csv", results.load),
    "csv with context": ((INPUTS / "v1_7_1.csv").read_bytes(), "a.txt", results.load),
    "nvbench": ((INPUTS / "nvbench.json").read_bytes(), "a.json", results.load),
    "fits": (json.dumps(FITS).encode(), "a.json", _over_arguments),
    "noise": (json.dumps(NOISE).encode(), "noise.json", noise.read),
    "details": (json.dumps(DETAILS).encode(), "a.json", _details),
    "ncu": (PROFILE.encode(), "profile.csv", _ncu),
}

TOKENS = (
    '" \\ { } [ ] , : \n \r \0 null true NaN -Infinity 1e999 -1 0.0 1e-320 {"context": '
    '"benchmarks": [{ "states": [ "a":1,"a":2 _mean _median _BigO \ufeff \ud83d\ude00'
).split(" ")
WORDS = st.sampled_from([token.encode("utf-8", "replace") for token in TOKENS])
PIECES = (
    WORDS
    | st.sampled_from([b"9" * 400, b"\xff\xfe", b"\x1f\x8b", b"[" * 2000])
    | st.binary(max_size=6)
)
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "replace", "delete", "repeat", "cut"]),
        st.floats(0, 1),
        st.integers(0, 60),
        PIECES,
    ),
    min_size=1,
    max_size=5,
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["ns", "weeks", "iteration", "aggregate", "median", "1e999", "value", "["])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=5,
)


def edited(data: bytes, edits: list[tuple[str, float, int, bytes]]) -> bytes:
    """Apply edits of bytes, each at a fraction of the length."""
    for what, where, length, piece in edits:
        at = int(where * len(data))
        middle = data[at : at + length]
        new = {"insert": piece + middle, "replace": piece, "delete": b"", "repeat": middle * 2}
        data = data[:at] if what == "cut" else data[:at] + new[what] + data[at + length :]
    return data


def places(node: Any) -> list[tuple[Any, Any]]:
    """List all (container, key) of a JSON."""
    found = []
    keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        found += [(node, key), *places(node[key])]
    return found


def rebuilt(data: bytes, changes: list[tuple[float, Any]]) -> bytes:
    """Put other values at places of a JSON, each at a fraction of them."""
    document = json.loads(data)
    for where, value in changes:
        if found := places(document):
            container, key = found[min(int(where * len(found)), len(found) - 1)]
            container[key] = value
    return json.dumps(document).encode("utf-8", "surrogatepass")


def mutations(data: bytes) -> st.SearchStrategy[bytes]:
    """Return files that come of one."""
    by_bytes = EDITS.map(lambda edits: edited(data, edits))
    changes = st.lists(st.tuples(st.floats(0, 1), VALUES), min_size=1, max_size=4)
    try:
        json.loads(data)
    except ValueError:  # among text, or none
        plain = by_bytes
    else:
        plain = by_bytes | changes.map(lambda made: rebuilt(data, made))
    packed = EDITS.map(lambda edits: edited(gzip.compress(data, 1), edits))
    return st.one_of(plain, plain, plain, packed, plain.map(lambda made: gzip.compress(made, 1)))


def attempt(dialect: str, content: bytes) -> None:
    """Read a file of that content. Anything but rows or one line that names it is raised."""
    _, name, read = DIALECTS[dialect]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            read(path)
        except LadderError as error:
            if folder not in str(error) or "\n" in str(error):
                raise AssertionError(f"not one line that names the file: {error!r}") from error


def run(dialect: str, examples: int, start: int | None = None) -> None:
    """Try so many mutations of a dialect's file; without a start always the same ones."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=start is None,
        suppress_health_check=list(HealthCheck),
    )
    @given(mutations(DIALECTS[dialect][0]))
    def tried(content: bytes) -> None:
        attempt(dialect, content)

    (tried if start is None else seed(start)(tried))()


def main() -> None:
    """Go through the dialects until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--examples", type=int, default=500, help="of a dialect in each round")
    parser.add_argument("--dialect", choices=DIALECTS, help="this one alone")
    options = parser.parse_args()
    end, tried, start = time.monotonic() + 60 * options.minutes, 0, int(time.time())
    while time.monotonic() < end:
        for dialect in [options.dialect] if options.dialect else DIALECTS:
            run(dialect, options.examples, start)
            tried += options.examples
        start += 1
        print(f"{tried} examples, no traceback", flush=True)


if __name__ == "__main__":
    main()
