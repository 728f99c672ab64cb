# SPDX-License-Identifier: MIT
"""Writes a comparison as JUnit XML, for CI systems that show tests."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from ladder import units
from ladder.compare import Comparison
from ladder.verdicts import Change

_FORBIDDEN = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML


def xml(comparison: Comparison) -> bytes:
    """Write a test case a row: failed where the exit code tells of it, passed if SAME or better.

    What shows neither (NOISY, CLOCK, SKIPPED, an ERROR of old, what is allowed) is skipped, with
    the reason. Runs that were refused are one case in error.
    """
    suite = Xml.Element("testsuite", name="ladder compare")
    if comparison.refused:
        case = Xml.SubElement(suite, "testcase", classname="ladder", name="comparable")
        _add(case, "error", "refused", "; ".join(comparison.differences))
    for change in comparison.changes:
        _add_case(suite, change)
    cases = list(suite)
    counts = {tag: sum(case.find(tag) is not None for case in cases) for tag in _OUTCOMES}
    told = zip(("failures", "errors", "skipped"), counts.values(), strict=True)
    suite.attrib |= {"tests": str(len(cases)), **{name: str(count) for name, count in told}}
    Xml.indent(suite)
    return Xml.tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n"


_OUTCOMES: Sequence[str] = ("failure", "error", "skipped")


def _add_case(suite: Xml.Element, change: Change) -> None:
    case = Xml.SubElement(
        suite, "testcase", classname=_clean(change.gpu or "benchmarks"), name=_clean(change.name)
    )
    if not math.isnan(change.head_seconds):
        case.set("time", f"{change.head_seconds:.9g}")
    told = [change.verdict]
    if not math.isnan(change.low):
        told.append(f"{change.ratio:.3f} ({change.low:.3f} to {change.high:.3f})")
    if not math.isnan(change.base_seconds + change.head_seconds):
        times = map(units.duration, (change.base_seconds, change.head_seconds))
        told.append(" to ".join(times))
    told += ["allowed"] * change.allowed + [change.reason] * bool(change.reason)
    if change.fails:
        _add(case, "failure", change.verdict, ", ".join(told))
    elif change.allowed or change.verdict in ("NOISY", "CLOCK", "SKIPPED", "ERROR"):
        _add(case, "skipped", change.verdict, ", ".join(told))


def _add(case: Xml.Element, outcome: str, kind: str, message: str) -> None:
    Xml.SubElement(case, outcome, type=kind, message=_clean(message))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
