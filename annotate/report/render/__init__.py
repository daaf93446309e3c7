"""Renderers that write a document in five formats: HTML, Markdown, JSON, CSV and LaTeX tables."""

from collections.abc import Callable, Mapping

from annotate.report.model import Document
from annotate.report.render import html, json, latex, markdown, table

FORMATS: Mapping[str, Callable[[Document], str]] = {
    "html": html.render,
    "md": markdown.render,
    "json": json.render,
    "csv": table.render,
    "tex": latex.render,
}
"""A map from each format to its renderer. The format is also the suffix of the file."""

SHORT: Mapping[str, Callable[[Document], str]] = {"md": markdown.render_short, "tex": latex.render_short}
"""A map from each format to the renderer of the short report: a paragraph and a table for a paper."""
