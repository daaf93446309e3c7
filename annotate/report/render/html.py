"""One self-contained page: no script, no network, everything that came from elsewhere escaped."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from annotate.report import plots
from annotate.report.cells import counted, grid
from annotate.report.model import Document, Figure
from judge.console import visible


def render(document: Document) -> str:
    """The document as a page. The style sheet is the only thing its security policy allows, by its hash."""
    folder = Path(__file__).parent
    style = (folder / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _page().render(
        document=document,
        style=Markup(style),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
    )


@cache
def _page() -> Template:
    return environment(_drawing).get_template("page.html.j2")


def environment(drawing: Callable[[Figure], Markup], prefix: str = "") -> Environment:
    """What the templates of this folder are rendered with; `prefix` stands before the ids of tables and figures."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        grid=grid,
        counted=counted,
        drawing=drawing,
        prefix=prefix,
        quote=_quote,
        kind=lambda block: type(block).__name__,
    )
    return made


def _shown(value: Any) -> Any:
    """Text from anywhere with its control and direction characters made visible; escaping follows."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_BOLD = re.compile(r"\*\*(.+?)\*\*")


def _quote(text: str) -> Markup:
    """The little Markdown that guidelines use: paragraphs, lists, bold. All else stays as it stands."""
    parts: list[Markup] = []
    for block in re.split(r"\n\s*\n", visible(text).strip()):
        # A line that starts no item goes on with the one before.
        lines = re.split(r"\n(?=[-*] )", block)
        flat = [_bold(" ".join(line.removeprefix("- ").removeprefix("* ").split())) for line in lines]
        if block.startswith(("- ", "* ")):
            parts.append(
                Markup("<ul>{}</ul>").format(Markup("").join(Markup("<li>{}</li>").format(x) for x in flat))
            )
        else:
            parts += [Markup("<p>{}</p>").format(x) for x in flat]
    return Markup("").join(parts)


def _bold(text: str) -> Markup:
    pieces = _BOLD.split(text)
    return Markup("").join(
        Markup("<strong>{}</strong>").format(p) if i % 2 else escape(p) for i, p in enumerate(pieces)
    )


def _drawing(figure: Figure) -> Markup:
    # The drawing's text went through an XML writer, which escapes it.
    return Markup(plots.draw(figure.draw, figure.data, f"fig-{figure.key}", figure.caption, figure.text))
