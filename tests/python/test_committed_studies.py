# SPDX-License-Identifier: MIT
"""The committed studies: each step is level with its parent, each choice with the best step."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
import suite
from conftest import ROOT, committed
from ladder.analysis.study import Study, studies
from ladder.io.results import Results, load_results
from ladder.model.catalogue import Ladder
from products import document

LEVEL = 0.98  # of another speed: what is level with it
THROTTLED_LEVEL = 0.96  # likewise, under a power limit (docs/power.md)
CHOICE_LEVEL = 0.97  # likewise, for a choice: two rows of one small kernel can differ by as much


def trees() -> list[tuple[str, Results, Ladder]]:
    """The trees of the committed studies, or why there are none."""
    found = [
        (file.parent.name, committed(file.parent.name), ladder)
        for file in sorted((ROOT / "results").glob("*/study.json*"))
        if committed(file.parent.name).source == "timed"
        for ladder in committed(file.parent.name).ladders
        if ladder.is_tree
    ]
    if not found:
        why = pytest.mark.skip(reason="no committed study says what its rungs build on")
        return [pytest.param("", None, None, marks=why)]
    return [pytest.param(*each, id=f"{each[0]}-{each[2].name}") for each in found]


def slower(study: Study, row: Any, other: Any) -> bool:
    """Whether `row` is slower than `other` by more than is level, and than the noise of both.

    Nothing follows from a row whose clock alone was throttled. Where both were, the clock varies
    more than the samples of one row show.
    """
    if row.throttled > 0:
        return other.throttled > 0 and study.speed(row) < THROTTLED_LEVEL * study.speed(other)
    noises = [each.counter("median_noise") for each in (row, other)]
    noise = sum(each for each in noises if each > 0)
    return study.speed(row) * (1 + 2 * noise) < LEVEL * study.speed(other)


@functools.cache
def emulated_ladders() -> dict[str, Ladder]:
    """The ladders of the emulated study, which are of these sources."""
    return {ladder.name: ladder for ladder in committed("emulated-h200").ladders}


def behind(study: Study) -> list[str]:
    """Name the rows of steps that are slower than their parents where they are not meant to be.

    A rung is meant for what both the study and the sources say, which may be newer: a rung that
    the sources do not mean to be faster anywhere is not one in an older study.
    """
    now = emulated_ladders().get(study.ladder.name, study.ladder)
    meant_for = {rung.name: [rung.meant_for] if rung.meant_for else [] for rung in study.rungs}
    shows = {rung.name for rung in study.rungs if rung.shows}
    for rung in now.rungs:
        if rung.meant_for:
            meant_for.setdefault(rung.name, []).append(rung.meant_for)
        elif rung.shows:
            meant_for[rung.name] = []
            shows.add(rung.name)
    return [
        f"{row.name}: {study.gain(row):.3f}x {rung.builds_on}"
        for rung in study.rungs
        for case in study.cases
        if rung.is_step
        and (
            all(case in cases for cases in meant_for[rung.name])
            if meant_for[rung.name]
            else rung.name not in shows
        )
        and (row := study.ok(rung, case))
        and (parent := study.parent(row))
        and slower(study, row, parent)
    ]


def poor_choices(study: Study) -> list[str]:
    """Name the rows of `fastest` that are slower than the best step that it may choose.

    It may not choose steps for those who ask by name, nor one that errs more than the library.
    It may be 3 % slower than the best: the row of a choice and the row of the rung that it chose
    are of the same kernels, and small ones differ by as much from row to row.
    """
    offered = [rung for rung in study.rungs if rung.is_step and not rung.by_name_only]
    found = []
    for choice in (rung for rung in study.rungs if rung.name == "fastest"):
        for case in study.cases:
            rows = [
                row
                for rung in offered
                if (row := study.ok(rung, case)) and not row.error_over_library > 1
            ]
            best = max(rows, key=study.speed, default=None)
            row = study.ok(choice, case)
            if row and best and slower(study, row, best):
                share = study.speed(row) / study.speed(best)
                if share > CHOICE_LEVEL:
                    continue
                found.append(f"{row.name}: {share:.3f}x {best.rung}, chose {row.chosen}")
    return found


@pytest.mark.parametrize(("_gpu", "results", "ladder"), trees())
def test_each_step_is_level_with_its_parent_where_it_is_meant_to_be(_gpu, results, ladder):
    assert behind(Study(results, ladder)) == []


@pytest.mark.parametrize(("_gpu", "results", "ladder"), trees())
def test_what_is_called_fastest_is_level_with_the_best_step_it_may_choose(_gpu, results, ladder):
    assert poor_choices(Study(results, ladder)) == []


def test_steps_behind_and_poor_choices_are_found(tmp_path):
    made = document()
    _, study = studies(*load_results(suite.write(tmp_path / "good.json", made)))
    assert behind(study) == []  # the ring shows something, the split is not meant for 8
    assert poor_choices(study) == []
    ladders = json.loads(made["context"]["ladders"])
    *_, ring, split, _ = ladders[1]["rungs"]
    del ring["shows"], split["meant_for"]
    made["context"]["ladders"] = json.dumps(ladders)
    made["benchmarks"][-1]["flops_per_second"] = 4e13
    _, worse = studies(*load_results(suite.write(tmp_path / "worse.json", made)))
    names = [told.split("/manual_time")[0] for told in behind(worse)]
    assert names == ["mul/ring/n:8", "mul/ring/n:64", "mul/split/n:8"]
    assert poor_choices(worse) == ["mul/fastest/n:64/manual_time: 0.800x split, chose split"]
    made["benchmarks"][-1]["throttled"] = 1.0  # nothing follows from a lower clock
    _, slow = studies(*load_results(suite.write(tmp_path / "slow.json", made)))
    assert poor_choices(slow) == []
    del made["benchmarks"][-1]["throttled"]
    split["by_name_only"] = True
    made["context"]["ladders"] = json.dumps(ladders)
    _, spared = studies(*load_results(suite.write(tmp_path / "worse.json", made)))
    assert poor_choices(spared) == []
