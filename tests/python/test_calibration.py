# SPDX-License-Identifier: MIT
"""What compare promises of its verdicts, on noise as recorded and simulated.

LADDERS_CALIBRATION=full draws thirty times as many rows.
"""

import itertools
import math
import os

import calibration
import pytest

FULL = os.environ.get("LADDERS_CALIBRATION") == "full"
ROWS = 10_000 if FULL else 300
SHAPES = list(itertools.product(calibration.REPETITIONS, calibration.PROCESSES))
if not FULL:  # the fewest of each, and all of the other
    SHAPES = [shape for shape in SHAPES if shape[0] == 3 or shape == (5, 1)]


def slack(rate: float) -> float:
    """Three standard errors of a rate that is counted in ROWS rows."""
    return 3 * math.sqrt(rate * (1 - rate) / ROWS)


@pytest.mark.parametrize("model", calibration.MODELS)
def test_equal_programs_are_rarely_called_different(model):
    for processes in (1, 2, 3, 5):
        counts = calibration.verdicts(calibration.MODELS[model], processes, 0.0, ROWS)
        assert calibration.called(counts) <= 0.05 + slack(0.05), processes


@pytest.mark.parametrize("name", calibration.FIELDS)
def test_verdicts_hold_for_few_repetitions(name):
    """Equal programs are rarely called different, half as long again always slower."""
    for repetitions, processes in SHAPES:
        equal = calibration.field(name, repetitions, processes, 0.0, ROWS)
        assert equal["ladder"] <= 0.05 + slack(0.05), (repetitions, processes)
        half = calibration.field(name, repetitions, processes, 0.5, ROWS)
        assert half["ladder"] <= 0.01 + slack(0.01), (repetitions, processes)
        if processes > 1 and name in calibration.FINE:
            fine = calibration.field(name, repetitions, processes, 0.03, ROWS)
            assert fine["ladder"] <= 0.05 + slack(0.05), (repetitions, processes)


def test_other_methods_miss_a_doubling_behind_a_warm_up():
    """Three repetitions, the first slow: what the methods beside ours are there to show."""
    missed = calibration.field("first slow", 3, 1, 1.0, ROWS, others=True)
    assert missed["ladder"] <= 0.01 + slack(0.01)
    assert all(missed[other] > 0.2 for other in calibration.OTHERS)


@pytest.mark.parametrize("model", calibration.CHANGED)
def test_a_change_of_three_percent_is_found(model):
    for processes in (1, 2, 3, 5):
        counts = calibration.verdicts(calibration.CHANGED[model], processes, 0.03, ROWS)
        assert counts["SLOWER"] / counts.total() >= 0.95 - slack(0.05), processes
        assert not counts["FASTER"]
        assert not counts["SAME"]


def test_quiet_long_rows_are_the_same_and_not_just_noisy():
    quiet = calibration.Model(calibration.normal(0.001))
    for processes, least in ((1, 0.7), (3, 0.99)):
        counts = calibration.verdicts(quiet, processes, 0.0, ROWS)
        assert counts["SAME"] / counts.total() >= least - slack(least)


def test_a_true_change_of_the_threshold_is_rarely_called_the_same():
    """Sameness is claimed where the whole interval lies within the threshold only."""
    model = calibration.Model(calibration.normal(0.003))
    for processes in (1, 3, 5):
        counts = calibration.verdicts(model, processes, 0.0101, ROWS)
        assert counts["SAME"] / counts.total() <= 0.05 + slack(0.05)


@pytest.mark.parametrize("noise", [False, True])
def test_a_row_of_a_whole_suite_is_found_to_be_a_tenth_slower(noise):
    file, suites = calibration.RECORDED["quieter"], 100 if FULL else 12
    assert calibration.finding(file, 3, suites, 0.1, noise=noise) >= 0.9
    assert calibration.finding(file, 1, suites, 0.1, noise=noise) >= 0.6  # not the shortest
