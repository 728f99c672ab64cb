# SPDX-License-Identifier: MIT
"""Writes results, or a comparison, as JUnit XML, for CI systems that show tests."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as Xml

from ladder.io.results import Results
from ladder.model import units
from ladder.model.text import legible
from ladder.stats.compare import Comparison
from ladder.stats.verdicts import Change

_NEITHER = ("NOISY", "CLOCK", "SKIPPED", "ERROR", "MISSING")  # where they are no failures
_OUTCOMES = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def of_comparison(comparison: Comparison) -> bytes:
    """Return JUnit XML with a test case per row; its times are those of head, in seconds.

    A row that makes the exit code fail is a failure. A row that is SAME or better passes. Every
    other row is skipped, with the reason: NOISY, CLOCK, SKIPPED, an ERROR that base has too, a row
    that may be slower or lost, and one that is gone but was never measured. A comparison that was
    refused is one case in error.
    """
    suite = Xml.Element("testsuite", name="ladder compare")
    if comparison.refused:
        case = Xml.SubElement(suite, "testcase", classname="ladder", name="comparable")
        _add(case, "error", "refused", "; ".join(comparison.differences))
    for change in comparison.changes:
        case = _case(suite, change.gpu, change.name, change.head_seconds)
        if change.fails:
            _add(case, "failure", change.verdict, _told(change))
        elif change.allowed or change.verdict in _NEITHER:
            _add(case, "skipped", change.verdict, _told(change))
    return _document(suite)


def of_results(results: Iterable[Results]) -> bytes:
    """Return JUnit XML with a test case per row: passed, in error or skipped; times in seconds."""
    suite = Xml.Element("testsuite", name="ladder")
    for result in results:
        for row in result.rows:
            case = _case(suite, result.gpu, row.name, row.seconds)
            if row.status != "ok":
                outcome = "skipped" if row.status == "skipped" else "error"
                _add(case, outcome, row.status.upper(), row.reason or row.status)
    return _document(suite)


def _case(suite: Xml.Element, gpu: str, name: str, seconds: float) -> Xml.Element:
    case = Xml.SubElement(suite, "testcase", classname=gpu or "benchmarks", name=name)
    if seconds > 0:
        case.set("time", f"{seconds:.9g}")
    return case


def _told(change: Change) -> str:
    told = [change.verdict]
    if change.low <= change.high:
        told.append(f"{change.ratio:.3f} ({change.low:.3f} to {change.high:.3f})")
    if change.base_seconds > 0 and change.head_seconds > 0:
        times = map(units.duration, (change.base_seconds, change.head_seconds))
        told.append(" to ".join(times))
    return ", ".join([*told, *["allowed"] * change.allowed, *filter(None, [change.reason])])


def _add(case: Xml.Element, outcome: str, kind: str, message: str) -> None:
    Xml.SubElement(case, outcome, type=kind, message=legible(message))


def _document(suite: Xml.Element) -> bytes:
    suite.set("tests", str(len(suite)))
    for outcome, plural in _OUTCOMES.items():
        suite.set(plural, str(len(suite.findall(f"testcase/{outcome}"))))
    Xml.indent(suite)
    text: bytes = Xml.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text + b"\n"
