"""The first section of a report, which compares the judge's kappa with the human ceiling, and each person with the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from annotate.report.model import ReportDocument, Ruling
from annotate.report.subject import MANY, Subject
from judge.document.blocks import (
    COUNTS,
    Block,
    Cell,
    Document,
    Paragraph,
    Section,
    Table,
    heads,
    interval_head,
    level_text,
)
from judge.document.cells import brief, format_count
from judge.document.cells import number as cell
from judge.stats import MISSING, measures
from judge.stats.bootstrap import IntervalSettings
from judge.stats.metrics import get_title
from judge.stats.ratings import BoolArray, IntArray
from judge.types import Measure

KEY = "summary"
POOLED = "pooled kappa"
"""The name that tables use for a kappa that combines the kappas of several pairs."""
OTHERS = "the majority of the others"
LISTED = 20
WORDS = (
    "Kappa is the agreement beyond that of two annotators who guess with the same label shares: 1 is perfect agreement, 0 is "
    "guessing. The human ceiling is how well people agree with each other; a judge near it agrees with people as well as a "
    "person does. Trust: every condition of the rule holds. Do not trust: a condition is shown to fail. Undecided: neither."
)

COVERED = (
    "Coverage is the share of units on which the number is based, among all units that the judge was asked about. For people with "
    "each other, it is the share among all units that people labelled. The other units lack a label that the number needs."
)


def with_numbers(subject: Subject, rulings: Sequence[Ruling]) -> list[Ruling]:
    """Return the rulings with the numbers for their boxes: judge-human agreement and human-human agreement."""
    ceiling = _ceiling(subject)
    return [
        replace(r, numbers=_numbers(f"key_numbers_{i}", [*_agreements(subject, r), *ceiling]))
        for i, r in enumerate(rulings, 1)
    ]


def summary(subject: Subject, rulings: Sequence[Ruling]) -> Section:
    """Return the section with the numbers on which the verdicts are based.

    For each person, it also compares the person and the judge with the majority of the other people.
    """
    title = "The verdict in detail"
    if not rulings:
        return Section(KEY, title, absent="there is no verdict")
    # All judges share the row of the human ceiling.
    rows = [row for r in rulings if r.numbers for row in r.numbers.rows]
    blocks: list[Block] = [
        replace(_numbers("key_numbers", list({id(row): row for row in rows}.values())), boxed=True)
    ]
    blocks += [_labels(subject, r, i) for i, r in enumerate(rulings, 1) if r.labels]
    if len(subject.panel.people) >= 2 and not subject.panel.numeric:
        blocks += [_tabulate_annotators(subject, judge, i) for i, judge in enumerate(subject.panel.judges, 1)]
    return Section(KEY, title, [*blocks, Paragraph(WORDS, "note")], leading=True)


def _numbers(key: str, rows: Sequence[Sequence[Cell]]) -> Table:
    head = interval_head(
        "value", (m.confidence for row in rows for m in row if isinstance(m, Measure) and m.low is not None)
    )
    columns = heads("text", "agreement", "measure") + heads("brief", head) + COUNTS
    partly = any(isinstance(m, Measure) and (m.coverage or 1) < 1 for row in rows for m in row)
    return Table(key, "The verdict in numbers", columns, rows, (COVERED,) if partly else ())


def _agreements(subject: Subject, ruling: Ruling) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    pooled = next((m for m in ruling.measures if m.measure == "pooled_kappa"), None)
    if pooled is not None:
        rows.append([f"{ruling.judge} with people", POOLED, pooled, pooled])
        # The verdict has two measures: the judge with people, then people with each other.
        among = [m for m in ruling.measures if m.measure == "pooled_kappa"][-1]
        if among.value is not None:
            rows.append(["people with each other, on the same units", POOLED, among, among])
    source = None
    if pooled is None and ruling.measures:
        # With a single source of labels, this is the verdict's number. The reference has another number if the source is a
        # person and the reference is gold.
        alone = ruling.measures[0]
        source = next(who for who in alone.annotators or () if who != ruling.judge)
        text = subject.reference_text if source == subject.reference else f"the labels of {source}"
        rows.append([f"{ruling.judge} with {text}", subject.coefficient_name, alone, alone])
    if subject.reference is not None and subject.reference not in (ruling.judge, source):
        m = subject.measure(ruling.judge, subject.reference)[0]
        rows.append([f"{ruling.judge} with {subject.reference_text}", subject.coefficient_name, m, m])
    return rows


def _ceiling(subject: Subject) -> list[list[Cell]]:
    if len(subject.panel.people) < 2:
        return []
    (m,) = subject.panel.measure(subject.panel.people, subject.panel.keys(["krippendorff_alpha"]))
    return [["people with each other: the human ceiling", get_title("krippendorff_alpha"), m, m]]


def _labels(subject: Subject, ruling: Ruling, number: int) -> Table:
    """Return a table that shows for each label whether condition (d) of the verdict (docs/verdict.md) holds.

    Each row also has the number of units.
    """
    rows: list[list[Cell]] = []
    for row in ruling.labels:
        span = "" if row.low is None or row.high is None else f" ({cell(row.low)} to {cell(row.high)})"
        shown = "undefined" if row.difference is None else f"{cell(row.difference)}{span}"
        state = f"{row.state}: {row.why}" if row.why else row.state
        rows.append([row.label, row.direction, state, row.judge, row.people, shown, f"{row.n_units:,.4g}"])
    head = interval_head("difference", [ruling.confidence])
    columns = heads("text", "label", "", "the judge on it") + heads("share", "judge", "another person")
    columns += heads("number", head, "units")
    note = (
        "Finds (recall): how often the judge, or another person, gives the label to a unit to which a person gives it. Means "
        "(precision): how often a person gives the label to a unit to which the judge, or another person, gives it. A unit is "
        "weighted by the share of its people who gave the label."
    )
    return Table(f"labels_{number}", f"{ruling.judge}, label by label", columns, rows, (note,))


def _tabulate_annotators(subject: Subject, judge: str, number: int) -> Table:
    """Return a table that compares each person, and the judge, with the majority of the other people."""
    people = most_labelled(subject)
    n_others = len(subject.panel.people) - len(people)
    rows: list[list[Cell]] = []
    for person in people:
        # Both are measured on the same units: a person may have labelled harder units than the judge.
        units = subject.panel.asked_units[judge], subject.has_label(judge)
        of_person, of_judge = (with_the_others(subject, person, who, *units) for who in (person, judge))
        if of_person.n_units:
            rows.append([person, of_person, of_judge, of_person])
    name = subject.coefficient_name
    columns = heads("text", "person") + heads("brief", f"{name} of the person", f"of {judge}") + COUNTS
    notes = [
        "Both are compared with the majority of the other people, on the units that the person, the judge and the majority "
        "labelled."
    ]
    if n_others:
        notes.append(
            f"Only the {len(people)} people with the most units are listed; {format_count(n_others, 'other is', 'others are')} left out."
        )
    if empty := len(people) - len(rows):
        notes.append(f"{format_count(empty, 'person has', 'people have')} no such unit.")
    caption = f"Each person, and {judge} in that person's place, against {OTHERS}"
    return Table(f"beside_{number}", caption, columns, rows, notes, fold=10)


def most_labelled(subject: Subject) -> list[str]:
    """Return the names of all people or, if there are more than MANY, of the LISTED people who gave the most labels."""
    if len(subject.panel.people) <= MANY:
        return list(subject.panel.people)
    n_labels = {p: int(subject.has_label(p).sum()) for p in subject.panel.people}
    return sorted(subject.panel.people, key=lambda p: (-n_labels[p], p))[:LISTED]


def with_the_others(
    subject: Subject,
    person: str,
    who: str,
    judged: BoolArray | None = None,
    labelled: BoolArray | None = None,
) -> Measure:
    """Return the agreement of `who` with the majority of the people other than `person`.

    `who` is either `person` or a judge. Only units that `person` labelled are used. To compare a person and a
    judge on the same units, pass two masks: `judged` marks the units that the judge was asked about, and
    `labelled` marks the units that the judge labelled. Coverage is the number of used units divided by the number
    of units that `person` labelled and the judge was asked about.
    """
    by_person = subject.has_label(person)
    judged = by_person if judged is None else by_person & judged
    others = _mask_others(subject, person)
    used = judged & (others != MISSING) & (by_person if labelled is None else labelled)
    # Cached, because the figure and the table of judges need the same measures, and each needs a bootstrap.
    key = (person, who, np.packbits(used).tobytes(), np.packbits(judged).tobytes())
    measure = subject.measured.get(key)
    if measure is None:
        ratings = subject.panel.ratings
        # An annotator can have any name.
        column = OTHERS if OTHERS not in ratings.annotators else f"{OTHERS} "
        pair = ratings.select([who]).with_annotator(column, others).subset(used)
        pair = subject.panel.add_weights(pair, person, who)
        keys = subject.panel.keys([subject.panel.coefficient])
        sure = subject.panel.confidence(who)
        (measure,) = measures(
            pair, keys, level=subject.panel.level, pairwise=False, field=subject.panel.field, confidence=sure
        )
        # The table has only the units that are used, so its own coverage would always be 1.
        measure = replace(measure, coverage=float(used.sum() / judged.sum()) if judged.any() else None)
        subject.measured[key] = measure
    return measure


def _mask_others(subject: Subject, person: str) -> IntArray:
    if person not in subject.others_of:
        others = [p for p in subject.panel.people if p != person]
        subject.others_of[person] = subject.panel.vote(others)[0]
    return subject.others_of[person]


def shorten_document(document: ReportDocument) -> ReportDocument:
    """Return a short document for a paper: one paragraph and one table. Each number is given with its number of units."""
    section = next((s for s in document.sections if s.key == KEY and s.blocks), None)
    # If there is no verdict, only the reason is reported, which the renderers add.
    if section is None:
        return replace(document, sections=[], about=[], reading=[])
    table = next(iter(section.tables()))
    agreements = [
        f"{row[0]}: {row[1]} {_describe_measure(m)}"
        for row in table.rows
        for m in [row[2]]
        if isinstance(m, Measure)
    ]
    # The head of a report has the key `judge` or `judges`, depending on their number.
    about = dict(document.about)
    start = (
        f"The field {document.facts['field']} ({about.get('labels', '')}) was labelled by {about.get('judge') or about.get('judges')} "
        f"and {format_count(len(document.facts['people']), 'person', 'people')}; the reference is {about['reference']}."
    )
    verdicts = " ".join(_verdict(r) for r in document.rulings)
    text = " ".join(
        [
            start,
            *_annotators(document),
            "; ".join(agreements) + ".",
            verdicts,
            f"Intervals: {about['intervals']}; {about['settings']}.",
            *levels(document.rulings),
        ]
    )
    return replace(document, sections=[Section(KEY, section.title, [Paragraph(text), table])])


def levels(rulings: Sequence[Ruling]) -> list[str]:
    """Return sentences that name the verdicts whose confidence level differs from the default, and the reason."""
    judges: dict[tuple[str, str], list[str]] = {}
    for r in rulings:
        if r.shared_by and r.confidence != IntervalSettings().confidence and has_intervals(r):
            judges.setdefault((level_text(r.confidence), r.shared_by), []).append(r.judge)
    return [
        f"The verdict on {', '.join(names)} has wider intervals, of {level} each, because one error rate of 5 % is shared by {by}."
        for (level, by), names in judges.items()
    ]


def has_intervals(ruling: Ruling) -> bool:
    """Return whether any of the numbers that the verdict is based on has an interval."""
    return any(m.low is not None for m in ruling.measures)


PROFILE = {
    "qualification": "qualification",
    "training": "training",
    "paid": "payment",
    "consent": "consent",
}
"""A map from keys in an annotator's profile to words in the report. Reviewers of papers ask for each of these facts."""


def _verdict(ruling: Ruling) -> str:
    """Return the verdict's sentence and the reason for the verdict, unless the sentence already contains the reason."""
    return ruling.sentence if ruling.detail != ruling.because else f"{ruling.sentence} {ruling.because}."


def _annotators(document: Document) -> list[str]:
    """Return sentences on the annotators. A sentence in brackets lists the unrecorded facts that the author
    must add.
    """
    people = [str(name) for name in document.facts["people"]]
    if not people:
        return []
    tables = [t for s in document.sections if s.key == "who" for t in s.tables() if t.key == "annotators"]
    profiles = {
        str(row[0]): {column.title: str(value) for column, value in zip(t.columns, row, strict=True) if value}
        for t in tables
        for row in t.rows
    }
    texts = []
    known = {name: [k for k in PROFILE if k in profiles.get(name, {})] for name in people}
    if len(people) <= MANY:
        described = [
            f"{name} ({'; '.join(f'{PROFILE[k]}: {profiles[name][k]}' for k in known[name])})"
            for name in people
            if known[name]
        ]
        texts += [f"Annotators: {', '.join(described)}."] if described else []
    missing = [word for k, word in PROFILE.items() if any(k not in known[name] for name in people)]
    if missing:
        lacking = [name for name in people if len(known[name]) < len(PROFILE)]
        whom = ", ".join(lacking) if len(lacking) <= MANY else f"{len(lacking)} annotators"
        texts.append(f"[The author must add: {', '.join(missing)} of {whom}.]")
    return texts


def _describe_measure(m: Measure) -> str:
    value, interval = brief(m)
    # The level of the verdict's intervals can differ from that of other intervals, so each level is printed.
    interval = f"{level_text(m.confidence)} interval {interval}" if interval else ""
    n = f"n = {format_count(m.n_units, 'unit')}"
    if m.n_clusters not in (None, m.n_units):
        n += f" of {format_count(int(m.n_clusters or 0), 'question')}"
    return f"{value} ({interval}; {n})" if interval else f"{value} ({n})"
