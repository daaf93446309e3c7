"""The writer of a document for each format, and pages written to files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from judge.console import note
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


def write_pages(paths: Sequence[Path], document: Document) -> None:
    """Write the document to each path, in the format of the path's suffix."""
    for path in paths:
        path.write_text(FORMATS[path.suffix.lower().removeprefix(".")](document), encoding="utf-8")
        note(f"wrote {path}")
