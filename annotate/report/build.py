"""Compute the document for a report, including its settings and the notes on how to read its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from annotate.agreement.one_field import check
from annotate.report import (
    alternative,
    cases,
    changes,
    classes,
    corrected,
    judges,
    origin,
    people,
    rulings,
    summary,
)
from annotate.report.corrected import REPLICATES
from annotate.report.model import ReportDocument, Ruling
from annotate.report.steps import list_steps
from annotate.report.subject import ReportOptions, Subject, load
from judge.document.blocks import Section, level_text
from judge.errors import BadInput
from judge.labels.panel import Panel
from judge.labels.reference import resolve
from judge.stats.bootstrap import IntervalSettings
from judge.store import Store
from judge.store.study import get_time
from judge.types import Json, attributes

METHODS = ("who", "sampling", "alternative", "latent", "runs", "imports", "citations")
"""The sections on how the labels and the numbers were made."""


def build(store: Store, options: ReportOptions) -> ReportDocument:
    """Return the report on one field. Raises UsageError if a name is unknown."""
    return _document(store, load(store, options))


def build_table(panel: Panel, options: ReportOptions) -> ReportDocument:
    """Return the report on a table of labels without a study (`panel.source` names its file).

    Raises UsageError if the reference is missing, and BadInput if there is nothing to compare.
    """
    check(panel)
    if panel.are_scores:
        raise BadInput(
            f"'{panel.field}' has {len(panel.domain):,} different numbers, too many for a report. Bin them into labels; "
            "`annotate agreement` accepts numbers without bins",
            path=panel.source,
        )
    # The sections that read texts, profiles, batches and runs from a study get an empty study in memory.
    with Store.open(":memory:") as store:
        return _document(
            store, Subject(options, panel, resolve(panel, options.reference), (), Path(panel.source))
        )


def _document(store: Store, subject: Subject) -> ReportDocument:
    name = subject.table.name if subject.table else store.path.name
    ruled, tests, none = rulings.rule(store, subject)
    ruled = [replace(r, steps=list_steps(store, subject, r)) for r in summary.with_numbers(subject, ruled)]
    sections = [
        summary.summary(subject, ruled),
        *rulings.power(ruled),
        people.describe_annotators(store, subject),
        people.sampling(store, subject),
        people.ceiling(subject),
        judges.against(subject),
        classes.confusions(subject),
        classes.class_shares(subject),
        classes.reliability(subject),
        *judges.routed(store, subject),
        cases.disagreements(store, subject),
        changes.consistency(store, subject),
        changes.revisions(store, subject),
        corrected.corrected(store, subject),
        alternative.alternative(subject, tests),
        alternative.latent(subject),
        origin.runs(store, subject),
        origin.imports(store, subject),
    ]
    # This section is last, because it lists the works that the other sections cite.
    sections.append(origin.citations(subject, sections))
    return ReportDocument(
        title=_title(subject),
        about=_about(name, subject, ruled),
        boxes=[ruling.box() for ruling in ruled],
        rulings=ruled,
        no_verdict=none,
        sections=[
            replace(section.drop_undefined(), is_method=section.key in METHODS)
            for section in _sort_sections(sections)
        ],
        facts={
            "study": name,
            "task": subject.panel.task.name if subject.panel.task else None,
            "field": subject.panel.field,
            "level": subject.panel.level,
            "labels": list(subject.panel.domain),
            "judges": [{"name": j, "run": subject.run_ids.get(j)} for j in subject.panel.judges],
            "people": list(subject.panel.people),
            "reference": subject.reference_kind,
            "conflicts": sum(subject.panel.conflicts.values()),
            "settings": settings(subject),
            "made": get_time(),
            "made_by": describe_program(),
        },
        reading=reading(subject, ruled),
        made_by=describe_program(),
    )


def _title(subject: Subject) -> str:
    if not subject.panel.judges:
        return f"How well do people agree on '{subject.panel.field}'?"
    which = "this judge" if len(subject.panel.judges) == 1 else "these judges"
    return f"How far can {which} be trusted on '{subject.panel.field}'?"


def _about(name: str, subject: Subject, rulings: Sequence[Ruling]) -> list[tuple[str, str]]:
    task = subject.panel.task
    rows = [("table" if subject.table else "study", name)]
    if task is not None:
        rows.append(("task", f"{task.name}: {task.spec.title}"))
    rows.append(("field", subject.panel.field + _find_neighbour(subject)))
    labels = "" if subject.panel.numeric else f"{', '.join(subject.panel.domain)} "
    rows.append(("labels", f"{labels}({subject.panel.level})" if labels else subject.panel.level))
    rows.append(
        ("judge" if len(subject.panel.judges) < 2 else "judges", "; ".join(subject.panel.judges) or "none")
    )
    rows.append(("people", f"{len(subject.panel.people):,}"))
    rows.append(("reference", subject.reference_text))
    rows += describe_settings(subject, rulings)
    rows.append(("made", f"{get_time()[:10]} {get_time()[11:16]} UTC by {describe_program()}"))
    return rows


def _find_neighbour(subject: Subject) -> str:
    others = ", ".join(subject.other_fields)
    return f" (the study also has labels for {others}; --field selects a field)" if others else ""


def _sort_sections(sections: list[Section]) -> list[Section]:
    """Return the sections that have content, then the empty sections, then the citations."""
    # Sections that only give the reason for their absence come after the sections with content.
    with_content = [s for s in sections if s.blocks and s.key != "citations"]
    without = [s for s in sections if not s.blocks]
    return [*with_content, *without, *(s for s in sections if s.key == "citations" and s.blocks)]


COVERAGE = (
    "Every value is shown with the number of units on which it is based. Coverage is the share of these units among all units "
    "that every annotator in the comparison was asked about. For a value about people alone, it is the share among the units that "
    "people labelled. For a corrected number, it is the share among the units that the judge was asked about. Units without a "
    "label, for example because of a refused or unparsed reply, lower the coverage."
)


def describe_program() -> str:
    """Return the program's name and version."""
    return f"adjudge {version('adjudge')}"


def settings(subject: Subject) -> dict[str, Json]:
    """Return the settings on which the numbers depend."""
    options, interval = subject.options, IntervalSettings()
    return {
        "epsilon": options.epsilon,
        "epsilon_name": options.epsilon_name or None,
        **attributes(options, "margin", "threshold", "least_others"),
        "alt_test_by": "questions" if subject.panel.table.clustered else "units",
        "coefficient": subject.panel.coefficient,
        **attributes(interval, "confidence", "interval", "replicates"),
        "replicates_of_rates": REPLICATES,
        "resampled": _describe_resampling(subject),
        "seed": interval.seed,
    }


def describe_settings(subject: Subject, rulings: Sequence[Ruling]) -> list[tuple[str, str]]:
    """Return the settings as (name, value) pairs, for the head of the report."""
    options, interval, clusters = subject.options, IntervalSettings(), _describe_resampling(subject)
    epsilon = f"{options.epsilon:g}" + (f" ({options.epsilon_name})" if options.epsilon_name else "")
    looked_at = _find_looked_at(subject)
    # The level .05 / 2^k for look k needs more digits than 95 does.
    sure = "".join(f", {100 * at:.6g} % of {judge}" for judge, at in looked_at.items())
    sure += "".join(
        f", {level_text(r.confidence)} in the verdict on {r.judge}"
        for r in rulings
        if r.confidence != interval.confidence and summary.has_intervals(r)
    )
    return [
        ("settings", f"epsilon {epsilon}, margin {options.margin:g}, threshold {options.threshold:g}"),
        (
            "intervals",
            f"{interval.confidence * 100:g} %{sure}: jackknife t by {clusters[:-1]} in the verdict and between judges, BCa bootstrap "
            f"elsewhere ({interval.replicates:,} resamples of {clusters}, seed {interval.seed})",
        ),
    ]


def reading(subject: Subject, rulings: Sequence[Ruling]) -> list[str]:
    """Return sentences on how to read values, intervals and coverage."""
    interval, clusters = IntervalSettings(), _describe_resampling(subject)
    intervals = (
        f"Intervals are {interval.confidence * 100:g} % intervals unless another level is printed. Intervals of the verdict and of "
        f"differences between judges are jackknife intervals by {clusters[:-1]} with quantiles of Student's t. Intervals of corrected "
        f"numbers use standard errors clustered by {clusters[:-1]}; those of Rogan-Gladen are by Lang and Reiczigel. All other intervals, "
        f"unless a note says otherwise, are BCa bootstrap intervals from {interval.replicates:,} resamples of {clusters} "
        f"(seed {interval.seed})."
    )
    sealed = [
        f"The sealed test was opened for {judge}, so this judge's intervals are {100 * at:.6g} % intervals."
        for judge, at in _find_looked_at(subject).items()
    ]
    return [intervals, *summary.levels(rulings), *sealed, COVERAGE]


def _find_looked_at(subject: Subject) -> dict[str, float]:
    """Return the confidence level for each judge whose sealed test was opened."""
    return {
        judge: subject.panel.confidence(judge)
        for judge in subject.panel.judges
        if judge in subject.panel.looks
    }


def _describe_resampling(subject: Subject) -> str:
    return "questions" if subject.panel.table.clustered else "units"
