"""One document, five ways to write it: HTML, Markdown, JSON, CSV and LaTeX tables."""

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
"""Format (and file suffix) -> renderer."""

SHORT: Mapping[str, Callable[[Document], str]] = {"md": markdown.short, "tex": latex.short}
"""Format -> renderer of a paper's paragraph and one table."""
