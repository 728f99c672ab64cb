# SPDX-License-Identifier: MIT
"""Words: the field's terms, in documents, comments and messages."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_COUNTED = (
    "wavefronts?|sectors?|requests?|bytes|words?|elements?|outputs?|registers?|"
    "blocks?|threads?|warps?|atomics?|instructions|keys|tiles?|stages?|copies|pixels?|"
    "process(?:es)?|files?|rows?|columns?|bars?|lines?|rungs?|figures?|tables?|"
    "lookups?|additions|steps?|pages?|cases?"
)
_EACH = (
    "thread|block|second|request|clock|SM|warp|lane|row|launch|case|rung|ladder|GPU|side|kernel|"
    "bin|bank|load|store|cluster|tile|pixel|line|step|run|process|node|partition|cycle|"
    "repetition|benchmark|file|facet|word|key|group|panel|wavefront"
)
SAY = {  # what is not said: what is
    rf"\b(?:{_COUNTED}) an? (?:{_EACH})s?\b": "per",
    r"\bno known limit\b": "unexplained",
    r"\bmeasured apart\b": "in a separate run",
    r"\bdata sheets?\b": "datasheet",
    r"\brung below\b": "parent",
    r"\bround in circles\b": "livelock",
    r"\bsums that move\b": "non-deterministic sums",
    r"\bnobody to meet\b": "needs no synchronization",
    r"\bright once and wrong\b": "not idempotent",
    r"\bat (?:its|that|this|twice that) pace\b": "rate, throughput",
    r"\blooks? on\b": "polls",
    r"\bwaves? that (?:is|are) not whole\b": "partial wave",
}
_TEXT = re.compile(r"\.(md|cu|cuh|cpp|hpp|h|py|toml|cmake|csv|yml)$")
_GENERATED = re.compile(r"<!-- ladder:table.*?<!-- ladder:end -->", re.DOTALL)  # of older results


def _files() -> list[str]:
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    names = [name for name in listed.stdout.splitlines() if _TEXT.search(name)]
    return [name for name in names if not name.startswith(("results/", "tests/", "plots/"))]


@pytest.mark.skipif(not _files(), reason="no git checkout")
def test_terms_are_the_fields():
    found = []
    for name in _files():
        path = ROOT / name
        text = _GENERATED.sub("", path.read_text(encoding="utf-8")) if path.exists() else ""
        for said, say in SAY.items():
            for match in re.finditer(said, text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{name}:{line}: {match[0]}: say {say}")
    assert not found, "\n".join(found)
