"""Convert a matplotlib figure to an SVG element for the page.

Marker colours become classes (`ink`, `judge`, `people`, `soft` ...). The style sheet assigns colours to the classes for
light mode, dark mode and print. Style attributes become presentation attributes.
"""

import re
import xml.etree.ElementTree as ET

from judge.console import visible

LABELS = 8
"""The maximum number of labels that can have different colours."""
# A map from marker colours to classes. The style sheet sets the colour of each class for light, dark and print.
MARKERS = {
    "#010101": "ink",
    "#020202": "soft",
    "#030303": "rule",
    "#040404": "judge",
    "#050505": "people",
    "#060606": "on",
    "#070707": "paper",
    "#080808": "heat",
    **{f"#0900{i:02x}": f"label{i}" for i in range(LABELS)},
}
SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"
# A drawing of at least this width would be unreadable if scaled down to a phone, so it scrolls there.
WIDE = 600


def inline(document: str, key: str, title: str, text: str) -> str:
    """Return a figure as an <svg> element with a title and a description. `key` makes its ids unique."""
    # Otherwise each element gets a prefix, and HTML does not recognise it as SVG.
    ET.register_namespace("", SVG[1:-1])
    root = ET.fromstring(document)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{SVG}metadata", f"{SVG}style"):
                parent.remove(child)
    for element in root.iter():
        _restyle(element)
        if "id" in element.attrib:
            element.set("id", f"{key}-{element.get('id')}")
        for name, value in list(element.attrib.items()):
            if "url(#" in value:
                element.set(name, value.replace("url(#", f"url(#{key}-"))
        if XLINK in element.attrib:
            element.set("href", element.attrib.pop(XLINK).replace("#", f"#{key}-"))
    _, _, width, height = (float(v) for v in root.attrib["viewBox"].split())
    # matplotlib measures in points, of which there are 72 in an inch; CSS has 96 pixels in an inch.
    pixels = width * 4 / 3
    root.attrib.update({"width": f"{pixels:.0f}", "height": f"{height * 4 / 3:.0f}"})
    if pixels > WIDE:
        root.set("class", "wide")
    root.set("role", "img")
    root.set("aria-labelledby", f"{key}-title {key}-desc")
    # Each is inserted at the beginning, so the title comes before the description. Screen readers read both.
    for tag, content in (("desc", text), ("title", title)):
        element = ET.Element(f"{SVG}{tag}", {"id": f"{key}-{tag}"})
        element.text = visible(content)
        root.insert(0, element)
    return ET.tostring(root, encoding="unicode")


def _restyle(element: ET.Element) -> None:
    """Replace style declarations with attributes, and marker colours with classes."""
    # The page's security policy forbids inline styles.
    declared = dict(part.split(":", 1) for part in element.attrib.pop("style", "").split(";") if ":" in part)
    classes = []
    for name, value in declared.items():
        name, value = name.strip(), value.strip()
        # Use the page's font, because the reader may not have matplotlib's font.
        if name == "font-family":
            continue
        if name in ("fill", "stroke") and value in MARKERS:
            classes.append(f"{'f' if name == 'fill' else 's'}-{MARKERS[value]}")
        elif not (name == "fill" and value == "#000000"):
            element.set(name, re.sub(r"(?<=\d)px$", "", value))
    if element.tag == f"{SVG}text" and not any(c.startswith("f-") for c in classes):
        classes.append("f-ink")
    if classes:
        element.set("class", " ".join(classes))
