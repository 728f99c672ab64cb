# SPDX-License-Identifier: MIT
"""The plots of a page: the SVG that matplotlib writes, made small and given links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from matplotlib.figure import Figure

from ladder.report.plots import style

_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_DIGITS = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"#([\w.-]+)")
_FONT = re.compile(r"font-family: [^;]*;?")  # the page names it
_EMPTY = re.compile(r"^\s+$")


def inline(
    figure: Figure,
    salt: str,
    title: str,
    points: Mapping[str, tuple[str, str]],
) -> str:
    """Return a figure as SVG to stand within a page, its text as text, coordinates to 0.01 pt.

    `salt` tells it from the page's other figures, `title` is its name for who cannot see it.
    `points` are the link and the tip of rows by their names: lines that were labelled with one
    become links.
    """
    links: dict[str, dict[str, str]] = {}
    for axes in figure.axes:
        for line in axes.lines:
            if found := points.get(str(line.get_label())):
                gid = f"point{len(links)}"
                line.set_gid(gid)
                links[gid] = {"href": found[0], "aria-label": found[1], "class": "point"}
                if line.get_alpha() != 1:  # many: found with a pointer, not with the tab key
                    links[gid]["tabindex"] = "-1"
    root = ElementTree.fromstring(style.svg(figure, salt))
    for extra in root.findall(f"{_SVG}metadata"):
        root.remove(extra)
    for definitions in root.findall(f"{_SVG}defs"):  # a style would be the whole page's
        for rules in definitions.findall(f"{_SVG}style"):
            definitions.remove(rules)
    for element in root.iter():
        if link := links.get(element.get("id", "")):
            element.tag = f"{_SVG}a"
            element.attrib |= link
        for key, value in list(element.attrib.items()):
            del element.attrib[key]
            element.set("href" if key == _LINK else key, _short(key, value))
        element.text, element.tail = (
            None if _EMPTY.match(text or "") else text for text in (element.text, element.tail)
        )
    _drop_names(root)
    width, height = root.get("viewBox", "").split()[2:]
    root.attrib |= {"width": width, "height": height, "role": "img", "aria-label": title}
    if links:
        root.set("role", "group")
    ElementTree.register_namespace("", _SVG[1:-1])
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)


def _short(key: str, value: str) -> str:
    if key == "style":
        return _FONT.sub("", value).replace("; ", ";").replace(": ", ":")
    if key in ("d", "x", "y", "points", "transform"):
        rounded = _DIGITS.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), value)
        return re.sub(r"\s*\n\s*", "", rounded) if key == "d" else rounded
    return value


def _drop_names(root: ElementTree.Element) -> None:
    """Drop the ids that nothing refers to: other figures of the page have the same."""
    used = {
        name
        for element in root.iter()
        for value in element.attrib.values()
        for name in _REFERENCE.findall(value)
    }
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
