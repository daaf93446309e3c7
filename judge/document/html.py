"""The document as HTML: a self-contained page without network access, or an element for notebooks (`piece`).

The only script sorts a table by the column whose head is clicked, and shows the rows of a page of rows.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from judge.console import visible
from judge.document import plots
from judge.document.blocks import Document, Figure
from judge.document.environment import FOLDER, environment
from judge.document.rows import FIRST_PARTS, RowsPage


def render(document: Document) -> str:
    """Return the document as an HTML page."""
    return _render("page.html.j2", document=document)


def render_rows(page: RowsPage) -> str:
    """Return a page of rows as an HTML page."""
    data = {name: Markup(text) for name, text in page.data().items()}
    return _render(
        "rows.html.j2",
        document=page,
        data=data,
        first=FIRST_PARTS,
        filters=page.filters(),
        orders=page.orders(),
        meanings=page.meanings(),
    )


def _render(template: str, **values: Any) -> str:
    style, script = _read_file("page.css"), _read_file("page.js")
    return (
        _pages()
        .get_template(template)
        .render(values, style=Markup(style), script=Markup(script), policy=security_policy(style, script))
    )


def _read_file(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def security_policy(style: str, script: str) -> str:
    """Return the content security policy of a page that loads nothing and has this style sheet and this script."""
    # Texts in a study are untrusted. If escaping failed somewhere, the policy would still allow only these two.
    return f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _pages() -> Environment:
    return _environment("fig-", "")


def _environment(figures: str, prefix: str) -> Environment:
    """Return the environment for HTML.

    `figures` is a prefix for the ids inside drawings. `prefix` is a prefix for the ids of tables and figures.
    """

    def drawing(figure: Figure) -> Markup:
        # An XML writer has already escaped the drawing's text.
        key = f"{figures}{figure.key}"
        return Markup(plots.draw(figure.draw, figure.data, key, figure.caption, figure.text))

    # Each text passes through `finalize`, so no template can forget it.
    made = environment(autoescape=True, finalize=_escape_value)
    made.globals.update(drawing=drawing, prefix=prefix, quote=_quote)
    return made


def _escape_value(value: Any) -> Any:
    """Make the control and direction characters in a text visible. Jinja then escapes the text."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_BOLD = re.compile(r"\*\*(.+?)\*\*")


def _quote(text: str) -> Markup:
    """Convert paragraphs, lists and bold text from Markdown to HTML. Other markup in the guidelines stays as typed."""
    parts: list[Markup] = []
    for block in re.split(r"\n\s*\n", visible(text).strip()):
        # A line that does not start an item continues the previous one.
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


_ROOT = re.compile(r"(?<![\w.#-])(?::root|html|body)(?=\s*\{)")


def piece(document: Document) -> str:
    """Return the document's verdicts and figures as one HTML element that contains the style sheet."""
    figures = [b for section in document.sections for b in section.blocks if isinstance(b, Figure)]
    content = "\n".join(
        [document.title, *(box.sentence for box in document.boxes), *(f.text for f in figures)]
    )
    # Two reports in one notebook must not share the ids that drawings refer to.
    mark = f"adjudge-{hashlib.sha256(content.encode('utf-8', 'replace')).hexdigest()[:10]}"

    template = _environment(f"{mark}-", f"{mark}-").get_template("notebook.html.j2")
    return template.render(document=document, figures=figures, mark=mark, style=Markup(_piece_style()))


def _piece_style() -> str:
    """Return a style sheet that applies only to the report's element in a notebook.

    The rules of the page's style sheet are nested under the element's class, and `@page` rules are removed.
    """
    # Without nesting, the style sheet would also apply to the notebook around our output.
    style = _read_file("page.css")
    style = _ROOT.sub("&", re.sub(r"@page\s*\{[^}]*\}", "", style))
    frame = "& { padding: .25rem 1rem 1rem; margin: 0; } .title { font-size: 1.3rem; font-weight: 600; }"
    return f".adjudge-report {{\n{style}\n{frame}\n}}"
