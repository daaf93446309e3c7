"""The report on one field of a study: how far a judge can be trusted, and the judge's numbers after
correction by human labels.

    with Store.open("study.db", create=False) as store:
        document = build(store, ReportOptions(task="stance"))   # everything is computed here, once
    Path("report.html").write_text(FORMATS["html"](document), encoding="utf-8")

`subject` loads the labels. `rulings` and the section modules (people, judges, classes, cases, changes,
corrected, alternative, origin) build a `model.Document`, and `render` writes this document in a format.
"""

from annotate.report.build import build, build_table
from annotate.report.subject import ReportOptions
from annotate.report.summary import shorten_document
from judge.document.formats import FORMATS, SHORT

__all__ = ["FORMATS", "SHORT", "ReportOptions", "build", "build_table", "shorten_document"]
