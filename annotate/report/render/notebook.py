"""The verdicts and the drawings as a piece of a page that is not ours: a notebook's output.

The style sheet of the page, nested under our own element; no script, no link, everything that came from elsewhere escaped.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from markupsafe import Markup

from annotate.report import plots
from annotate.report.model import Document, Figure
from annotate.report.render.html import environment

_ROOT = re.compile(r"(?<![\w.#-])(?::root|html|body)(?=\s*\{)")


def render(document: Document) -> str:
    """The document's verdicts and figures as one element."""
    figures = [b for section in document.sections for b in section.blocks if isinstance(b, Figure)]
    told = "\n".join([document.title, *(r.sentence for r in document.rulings), *(f.text for f in figures)])
    # Two reports in one notebook must not share the ids that drawings refer to.
    mark = f"adjudge-{hashlib.sha256(told.encode('utf-8', 'replace')).hexdigest()[:10]}"

    def drawing(figure: Figure) -> Markup:
        return Markup(
            plots.draw(figure.draw, figure.data, f"{mark}-{figure.key}", figure.caption, figure.text)
        )

    template = environment(drawing, f"{mark}-").get_template("notebook.html.j2")
    return template.render(document=document, figures=figures, mark=mark, style=Markup(_style()))


def _style() -> str:
    """The page's style sheet, for our element only (CSS nesting); what is of a page as a whole is left out."""
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    style = _ROOT.sub("&", re.sub(r"@page\s*\{[^}]*\}", "", style))
    own = "& { padding: .25rem 1rem 1rem; margin: 0; } .title { font-size: 1.3rem; font-weight: 600; }"
    return f".adjudge-report {{\n{style}\n{own}\n}}"
