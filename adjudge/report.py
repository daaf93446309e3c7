"""The report on one field, shown in a notebook or written to files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from judge.console import visible
from judge.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from annotate.report.model import ReportDocument


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """The report on the judges of one field. In a notebook, the report is displayed as its verdicts and figures.

    `document` contains the complete report as data (`annotate.report.model`).
    """

    document: ReportDocument

    @property
    def verdicts(self) -> pd.DataFrame:
        """One row per judge: the decision, a sentence that states it, and how many more units are needed."""
        from adjudge.frames import frame

        columns = ("judge", "decision", "sentence", "because", "more_units", "more_questions")
        rows = [{name: getattr(ruling, name) for name in columns} for ruling in self.document.rulings]
        return frame(rows, columns, no_ruling=self.document.no_verdict)

    @property
    def measures(self) -> pd.DataFrame:
        """Every measure in the report, with its section."""
        from adjudge.frames import MEASURES, frame

        rows = [{"section": section, **m.as_json()} for section, m in self.document.measures()]
        return frame(rows, ("section", *MEASURES))

    def text(self, form: str = "md") -> str:
        """Return the report as html, md, tex, json or csv. Raises UsageError for another format."""
        from annotate.report import FORMATS

        if form not in FORMATS:
            raise UsageError(f"no format '{form}'; available: {', '.join(FORMATS)}")
        return FORMATS[form](self.document)

    def save(self, *paths: str | Path) -> None:
        """Write the report to files. The extension of a file selects its format.

        If an extension is unknown, raises UsageError before any file is written.
        """
        from annotate.report import FORMATS

        for path in map(Path, paths):
            # All names are checked before the first file is written.
            if path.suffix.lstrip(".").lower() not in FORMATS:
                raise UsageError(
                    f"{path}: the extension must be one of {', '.join('.' + name for name in FORMATS)}"
                )
        for path in map(Path, paths):
            path.write_text(self.text(path.suffix.lstrip(".").lower()), encoding="utf-8")

    def __str__(self) -> str:
        said = [ruling.sentence for ruling in self.document.rulings] or [self.document.no_verdict]
        return visible("\n".join([self.document.title, *said]))

    def __repr__(self) -> str:
        decisions = ", ".join(f"{ruling.judge}: {ruling.decision}" for ruling in self.document.rulings)
        return f"<Report: {visible(decisions or self.document.no_verdict)}>"

    def _repr_html_(self) -> str:
        """Return the verdicts and the figures as HTML without scripts, with all text escaped."""

        from judge.document.html import piece

        return piece(self.document)
