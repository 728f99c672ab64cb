# SPDX-License-Identifier: MIT
"""Which chapters of a ladder's source a rung belongs to, for its page in the report."""

import re
from pathlib import Path

import pytest
from conftest import ROOT, committed
from ladder.report.html.source import Sources


@pytest.mark.parametrize(
    ("ladder", "rung", "chapters"),
    [
        ("transpose", "padded", ["01_tiled.cuh"]),
        ("transpose", "in_place", ["06_in_place.cuh"]),
        ("transpose", "fastest", ["ladder.cu"]),
        ("transpose", "cublas_geam", ["peers.cu"]),
        ("sgemm", "tf32x3", ["09_tf32x3.cuh"]),
        ("sgemm", "fp16x3", ["11_fp16x3_split.cuh", "12_fp16x3_multiply.cuh"]),
        ("smem_layout", "row_column_8_bytes", ["01_layout.cuh", "02_tiles.cuh"]),
    ],
)
def test_a_rung_belongs_to_chapters(ladder, rung, chapters):
    place = Sources(ROOT).place(ladder, rung)
    assert [Path(file).name for file in place.chapters] == chapters
    file, _, line = place.row.partition(":")
    found = (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert f'"{rung}"' in found


def test_every_step_is_in_a_chapter_and_every_chapter_has_one():
    sources = Sources(ROOT)
    for ladder in committed("emulated-h200").ladders:
        named = set()
        for rung in ladder.rungs:
            place = sources.place(ladder.name, rung.name)
            assert place.row, f"{ladder.name}/{rung.name}: {place.why}"
            assert all(map(sources.text, place.files)), place
            if rung.role == "step":
                assert re.search(r"/\d\d_\w+\.cuh", place.chapters[0]), place
            named |= {Path(file).name for file in place.chapters}
        chapters = (ROOT / "kernels" / ladder.name).glob("[0-9]*.cuh")
        assert {path.name for path in chapters} <= named


@pytest.mark.parametrize(
    ("ladder", "rung", "why"),
    [
        ("no_ladder", "padded", "no kernels/no_ladder/ladder.cu"),
        ("../etc", "padded", "no kernels/../etc/ladder.cu"),
        ("transpose", "no_rung", "no row of kernels/transpose is named no_rung"),
        ("transpose", "transpose", "no row"),  # the ladder's own name
    ],
)
def test_what_is_not_found_is_said(ladder, rung, why):
    found = Sources(ROOT).place(ladder, rung)
    assert why in found.why
    assert not found.row
    assert not found.chapters
