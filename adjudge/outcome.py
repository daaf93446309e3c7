"""The result of a method of `Study`: a title, notes, a table, a JSON document and, if there is one, an HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.console import visible
from judge.errors import UsageError
from judge.files import PAGE, format_of

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 60
"""The maximum number of table rows that a notebook shows."""


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """The result of a method. `document` is the document that the command prints with --json, and `rows` is its table.

    `run_id` is the run that the method created, if any. `page` is the complete HTML page that the command writes with -o,
    or None if the command writes no page.
    """

    title: str
    document: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    run_id: str | None = None
    page: str | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """The table as a DataFrame. Undefined values are NaN or <NA>."""
        from adjudge.frames import frame

        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        return frame(self.rows, columns, notes=list(self.notes))

    def save(self, path: str | Path) -> Path:
        """Write the page to `path`. Raises UsageError if there is no page, or if `path` does not have an HTML extension."""
        path = Path(path)
        if self.page is None:
            raise UsageError(f"{self.title}: this result has no page to write")
        # A page with another extension would not open in a browser.
        format_of(path, PAGE)
        path.write_text(self.page, encoding="utf-8")
        return path

    def __str__(self) -> str:
        return visible("\n".join([self.title, *(f"- {text}" for text in self.notes)]))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {visible(self.title)}>"

    def _repr_html_(self) -> str:
        """Return the title, the table and the notes as HTML, with all text escaped."""
        parts = [f"<p><b>{_text(self.title)}</b></p>"]
        if self.rows:
            columns = list(dict.fromkeys(name for row in self.rows for name in row))
            head = "".join(f"<th>{_text(name)}</th>" for name in columns)
            body = "".join(
                "<tr>" + "".join(f"<td>{_cell(row.get(name))}</td>" for name in columns) + "</tr>"
                for row in self.rows[:MOST_ROWS]
            )
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
            if len(self.rows) > MOST_ROWS:
                parts.append(f"<p>{len(self.rows) - MOST_ROWS:,} more rows are in .frame</p>")
        if self.notes:
            parts.append("<ul>" + "".join(f"<li>{_text(text)}</li>" for text in self.notes) + "</ul>")
        return "".join(parts)


def _text(value: Any) -> str:
    # Labels and names come from other people's files, and a notebook runs the scripts in its HTML.
    return escape(visible(str(value)))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return _text(f"{value:.3f}" if isinstance(value, float) else value)
