"""The document as Markdown with pipe tables. Every text is escaped, so markup in it has no effect."""

import re
from functools import cache

from jinja2 import Environment

from judge.console import visible
from judge.document.blocks import CaseLabel, Document
from judge.document.cells import Shown
from judge.document.environment import environment
from judge.markdown import quote, text


def render(document: Document) -> str:
    """Return the whole document as Markdown."""
    return _environment().get_template("page.md.j2").render(document=document)


def render_short(document: Document) -> str:
    """Return the document's blocks for a paper, without the head of the report."""
    return _environment().get_template("short.md.j2").render(document=document).rstrip() + "\n"


@cache
def _environment() -> Environment:
    made = environment()
    made.filters |= {"text": text, "quoted": quote, "cell": _cell, "label": _label, "code": _code}
    return made


def _cell(cell: Shown) -> str:
    shown = text(f"{cell.value} ({cell.interval})" if cell.interval else cell.value)
    if cell.compared == "best":
        shown = f"**{shown}**"
    return "<br>".join([shown, *map(text, cell.below)]) + (f" <sup>{cell.marks}</sup>" if cell.marks else "")


def _code(value: str) -> str:
    """Return a command as a span of code. A longer fence is used if the command contains backticks."""
    fence = "`" * (1 + max([0, *map(len, re.findall("`+", value))]))
    return f"{fence} {' '.join(visible(value).split())} {fence}"


def _label(label: CaseLabel) -> str:
    sure = f" ({text(label.how_sure)})" if label.how_sure else ""
    return f"{text(label.who)}: **{text(label.label)}**{sure}"
