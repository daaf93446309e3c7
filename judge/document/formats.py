"""The writer of a document for each format."""

from collections.abc import Callable, Mapping

from judge.document import csv, html, json, latex, markdown
from judge.document.blocks import Document

FORMATS: Mapping[str, Callable[[Document], str]] = {
    "html": html.render,
    "md": markdown.render,
    "json": json.render,
    "csv": csv.render,
    "tex": latex.render,
}
"""A map from each format to its renderer. The format is also the suffix of the file."""

SHORT: Mapping[str, Callable[[Document], str]] = {"md": markdown.render_short, "tex": latex.render_short}
"""A map from each format to the renderer of the short report: a paragraph and a table for a paper."""
