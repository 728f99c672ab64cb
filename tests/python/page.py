# SPDX-License-Identifier: MIT
"""What tests of the report share: what was made, the page in its parts, and hostile results."""

import json
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path

import suite
from comparison import FAILED, document, timed

VOID = {"meta", "link", "input", "br", "wbr", "path", "use", "rect"}
ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "a|b`c*[d](javascript:alert(1))",
    "\x00\x1b\ud800",
)


class Page(HTMLParser):
    """What the tests look at: elements, the texts of those of one kind, and what is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []  # innermost element, text
        self.open: list[str] = []
        self.blocks: dict[str, str] = {}
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            if tag == "script":
                self.block_name = dict(attrs).get("id", "")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.blocks[self.block_name] = self.blocks.get(self.block_name, "") + data
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def routes(self) -> set[str]:
        return {a["data-route"] for a in self.all("section") if "data-route" in a}

    def block(self, name: str) -> dict:
        """A block as the page's script sees it: in those of rows a number stands for a text."""
        found = json.loads(self.blocks[name])
        if texts := found.pop("texts", None):
            for i, (title, link, bad, *cells) in enumerate(found["rows"]):
                told = [texts[cell] if isinstance(cell, int) else cell for cell in cells]
                row = {"name": texts[title], "link": texts[link], "bad": bool(bad), "cells": told}
                found["rows"][i] = row
        return found


@dataclass
class Report:
    """A report that was made: the exit code, its folder and what was said."""

    code: int
    folder: Path
    said: str = ""

    @property
    def html(self) -> str:
        return (self.folder / "report.html").read_text(encoding="utf-8")

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text(encoding="utf-8")

    @cached_property
    def page(self) -> Page:
        return Page(self.html)


def hostile() -> dict:
    """A ladder and a foreign row whose every text is an attack."""
    texts = "".join(ATTACKS)
    ladder = {
        "name": "x<b>",
        "title": texts,
        "quantity": "bytes",
        "axes": suite.axes("n"),
        "headline": "n:1",
        "ceiling": "",
        "rungs": [suite.rung(a.replace("/", ""), a) for a in ATTACKS],
    }
    names = [f"x<b>/{a.replace('/', '')}/n:{n}" for a in ATTACKS for n in (1, 2)]
    made = document({name: timed(10) for name in names})
    for row in made["benchmarks"]:
        row["bytes_per_second"] = 1e12
    failed = document({a: FAILED | {"error_message": a} for a in ATTACKS})
    made["benchmarks"] += failed["benchmarks"]
    made["context"] |= {"ladders": json.dumps([ladder]), "gpu_name": texts, "git_commit": texts}
    made["context"] |= {"driver_version": texts, "host_name": texts, "cache_mode": "cold"}
    return made
