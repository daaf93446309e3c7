"""From a study to the document: everything is computed here, once."""

from __future__ import annotations

from pathlib import Path

from annotate.agreement.one_field import check
from annotate.report import (
    alternative,
    cases,
    changes,
    confusions,
    corrected,
    judges,
    origin,
    people,
    power,
    routed,
    rulings,
    shares,
    summary,
)
from annotate.report.loading import load
from annotate.report.model import Document, Section
from annotate.report.reading import in_words, made_by, reading, settings
from annotate.report.subject import ReportOptions, Subject
from judge.errors import BadInput
from judge.labels.panel import Panel
from judge.labels.reference import resolve
from judge.store import Store
from judge.store.study import now


def build(store: Store, asked: ReportOptions) -> Document:
    """The report of one field. Raises UsageError for names that are not in the study."""
    return _document(store, load(store, asked))


def build_table(panel: Panel, asked: ReportOptions) -> Document:
    """The same of a table of labels that is no study's (`panel.source` names its file).

    Raises UsageError for a reference that it has not, BadInput where there is nothing to compare.
    """
    check(panel)
    if panel.are_scores:
        raise BadInput(
            f"'{panel.field}' has {len(panel.domain):,} different numbers, too many for a report: bin them into labels; "
            "annotate agreement takes them as they are",
            path=panel.source,
        )
    # What a study would say beside the labels (texts, profiles, batches, runs) is not there: an empty one, in memory.
    with Store.open(":memory:") as store:
        return _document(
            store, Subject(asked, panel, resolve(panel, asked.reference), (), Path(panel.source))
        )


def _document(store: Store, subject: Subject) -> Document:
    name = subject.table.name if subject.table else store.path.name
    ruled, tests, none = rulings.rule(subject)
    ruled = summary.with_numbers(subject, ruled)
    sections = [
        summary.summary(subject, ruled),
        *power.power(ruled),
        *power.limits(subject, ruled),
        people.who(store, subject),
        people.sampling(store, subject),
        people.ceiling(subject),
        judges.against(subject),
        confusions.confusions(subject),
        shares.class_shares(subject),
        shares.reliability(subject),
        *routed.routed(store, subject),
        cases.disagreements(store, subject),
        changes.consistency(store, subject),
        changes.revisions(store, subject),
        corrected.corrected(store, subject),
        alternative.alternative(subject, tests),
        alternative.latent(subject),
        origin.runs(store, subject),
        origin.imports(store, subject),
    ]
    sections.append(origin.citations(subject, sections))
    return Document(
        title=_title(subject),
        about=_about(name, subject),
        rulings=ruled,
        no_ruling=none,
        sections=[section.telling() for section in _in_order(sections)],
        facts={
            "study": name,
            "task": subject.panel.task.name if subject.panel.task else None,
            "field": subject.panel.field,
            "level": subject.panel.level,
            "labels": list(subject.panel.domain),
            "judges": [{"name": j, "run": subject.run_ids.get(j)} for j in subject.panel.judges],
            "people": list(subject.panel.people),
            "reference": subject.reference_kind,
            "settings": settings(subject),
            "made": now(),
            "made_by": made_by(),
        },
        reading=reading(subject),
    )


def _title(subject: Subject) -> str:
    if not subject.panel.judges:
        return f"How well do people agree on '{subject.panel.field}'?"
    which = "this judge" if len(subject.panel.judges) == 1 else "these judges"
    return f"How far can {which} be trusted on '{subject.panel.field}'?"


def _about(name: str, subject: Subject) -> list[tuple[str, str]]:
    task = subject.panel.task
    rows = [("table" if subject.table else "study", name)]
    if task is not None:
        rows.append(("task", f"{task.name}: {task.spec.title}"))
    rows.append(("field", subject.panel.field + _beside(subject)))
    labels = "" if subject.panel.numeric else f"{', '.join(subject.panel.domain)} "
    rows.append(("labels", f"{labels}({subject.panel.level})" if labels else subject.panel.level))
    rows.append(
        ("judge" if len(subject.panel.judges) < 2 else "judges", "; ".join(subject.panel.judges) or "none")
    )
    rows.append(("people", f"{len(subject.panel.people):,}"))
    rows.append(("reference", subject.reference_text))
    rows += in_words(subject)
    rows.append(("made", f"{now()[:10]} {now()[11:16]} UTC by {made_by()}"))
    return rows


def _beside(subject: Subject) -> str:
    others = ", ".join(subject.other_fields)
    return f" (the study also has labels of {others}: --field)" if others else ""


def _in_order(sections: list[Section]) -> list[Section]:
    """What can be said first, in order; what cannot comes together at the end, before the citations."""
    said = [s for s in sections if s.blocks and s.key != "citations"]
    silent = [s for s in sections if not s.blocks]
    return [*said, *silent, *(s for s in sections if s.key == "citations" and s.blocks)]
