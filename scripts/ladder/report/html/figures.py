# SPDX-License-Identifier: MIT
"""The plots of a page: the SVG that matplotlib writes, made small."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from matplotlib.figure import Figure

from ladder.report.plots import style

_SVG, _HREF = "{http://www.w3.org/2000/svg}", {"{http://www.w3.org/1999/xlink}href": "href"}
_DIGITS = re.compile(r"-?\d+\.\d{3,}")
_AROUND_LETTERS = re.compile(r"\s*([A-Za-z])\s*")
_REFERENCE = re.compile(r"#([\w.-]+)")
_FONT = re.compile(r"font-family: [^;]*;?")  # the page names it
_NO_TURN = re.compile(r"rotate\(-?0 [^)]*\)")
_STYLE = re.compile(r' style="([^"]*)"')
_LEAST_SCALE = 0.6  # of a figure that is wider than a page, on a narrow screen
_TITLES, _SOURCE = 27.0, 14.0  # points that a figure's title and source take


def inline(figure: Figure, salt: str, title: str) -> str:
    """Return a figure as SVG to stand within a page: text stays text, coordinates to 0.01 pt.

    `salt` makes its ids differ from those of the page's other figures. `title` is its name for
    screen readers. The figure's own title and source are left out, since the page says the same.
    """
    page_title, _, source = figure.texts[:3]
    page_title.set_visible(False)
    source.set_visible(False)
    halos = 0
    for text in (text for axes in figure.axes for text in axes.texts):
        if text.get_path_effects():  # would be drawn as outlines, each letter of them
            text.set_path_effects([])
            text.set_gid(f"halo{(halos := halos + 1)}")
    root = ElementTree.fromstring(style.svg(figure, salt))
    for extra in root.findall(f"{_SVG}metadata"):
        root.remove(extra)
    for definitions in root.findall(f"{_SVG}defs"):  # a style would be the whole page's
        for rules in definitions.findall(f"{_SVG}style"):
            definitions.remove(rules)
    for element in root.iter():
        if element.get("id", "").startswith("halo"):
            element.attrib = {"class": "halo"}
        short = {key: _short(key, value) for key, value in element.attrib.items()}
        element.attrib = {_HREF.get(key, key): value for key, value in short.items() if value}
        if element.text and element.text.isspace():
            element.text = None
        if element.tail and element.tail.isspace():
            element.tail = None
    _drop_names(root)
    _drop_groups(root)
    width, height = map(float, root.get("viewBox", "").split()[2:])
    height -= _TITLES + (_SOURCE if source.get_text() else 0)
    root.set("viewBox", f"0 {_TITLES:g} {width:g} {height:g}")
    root.attrib |= {"width": f"{width:g}pt", "height": f"{height:g}pt"}
    if width > 72 * style.PAGE:  # on a phone it scrolls sideways, or its text would be too small
        root.attrib["style"] = f"min-width:{_LEAST_SCALE * width:.0f}pt"
    root.attrib |= {"role": "img", "aria-label": title}
    ElementTree.register_namespace("", _SVG[1:-1])
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)


def share_styles(svgs: list[str]) -> tuple[list[str], str]:
    """Return figures whose elements have classes instead of styles, and the rules of those."""
    classes: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        return f' class="{classes.setdefault(match[1], f"s{len(classes)}")}"'

    shared = [_STYLE.sub(named, svg) for svg in svgs]
    return shared, "".join(f".{name}{{{rules}}}" for rules, name in classes.items())


def _short(key: str, value: str) -> str:
    if key == "style":
        return _FONT.sub("", value).replace("; ", ";").replace(": ", ":")
    if key in ("d", "x", "y", "points", "transform"):
        rounded = _DIGITS.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), value)
        if key == "transform":
            return _NO_TURN.sub("", rounded).strip()
        return _AROUND_LETTERS.sub(r"\1", rounded) if key == "d" else rounded
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


def _drop_groups(parent: ElementTree.Element) -> None:
    """Replace each group that has no attributes by what is in it."""
    kept: list[ElementTree.Element] = []
    for child in parent:
        _drop_groups(child)
        bare = child.tag == f"{_SVG}g" and not child.attrib
        kept += child if bare else [child]
    parent[:] = kept
