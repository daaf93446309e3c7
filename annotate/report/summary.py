"""What leads the report: kappa beside the human ceiling, each person beside the judge, and what the words mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from annotate.report.cells import brief, counted
from annotate.report.model import Block, Cell, Column, Document, Paragraph, Ruling, Section, Table
from annotate.report.people import NAMES
from annotate.report.subject import MANY, Subject
from judge.stats import MISSING, Ratings, majority, measures
from judge.types import Measure

KEY = "summary"
OTHERS = "the majority of the others"
LISTED = 20
WORDS = (
    "Kappa is agreement beyond what two who guess with the same shares of labels would reach: 1 is always alike, 0 is "
    "guessing. The human ceiling is how well people agree with each other: a judge near it agrees with people as well as a "
    "person does. Trust: every condition of the rule holds; do not trust: one of them is shown to fail; undecided: neither."
)


def summary(subject: Subject, rulings: Sequence[Ruling]) -> Section:
    """The numbers that the verdict rests on in one table, then people and judge against the majority of the others."""
    title = "The verdict in numbers"
    if not rulings:
        return Section(KEY, title, absent="there is no verdict")
    blocks: list[Block] = [
        Table("key_numbers", "The verdict in numbers", _columns(), _rows(subject, rulings))
    ]
    if len(subject.people) >= 2 and not subject.numeric:
        blocks += [_beside(subject, judge, i) for i, judge in enumerate(subject.judges, 1)]
    return Section(KEY, title, [*blocks, Paragraph(WORDS, "note")])


def _columns() -> list[Column]:
    return [Column("agreement"), Column("measure"), Column("value (95 % interval)", "brief"), Column("", "n")]


def _rows(subject: Subject, rulings: Sequence[Ruling]) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for ruling in rulings:
        pooled = next((m for m in ruling.measures if m.measure == "pooled_kappa"), None)
        if pooled is not None:
            rows.append([f"{ruling.judge} with people", NAMES[pooled.measure], pooled, pooled])
            among = next((c for c in ruling.conditions if c.name == "people_agree"), None)
            if among is not None and among.value is not None and among.confidence == pooled.confidence:
                m = replace(
                    pooled, value=among.value, low=among.low, high=among.high, n_units=among.n_units, notes=()
                )
                rows.append(["people with each other, on the same units", NAMES[pooled.measure], m, m])
        if subject.reference is not None and subject.reference != ruling.judge:
            m = subject.measure(ruling.judge, subject.reference)[0]
            rows.append([f"{ruling.judge} with {subject.reference_text}", subject.coefficient_name, m, m])
    if len(subject.people) >= 2:
        (m,) = subject.panel.measure(subject.people, subject.panel.keys(["krippendorff_alpha"]))
        rows.append(["people with each other: the human ceiling", NAMES["krippendorff_alpha"], m, m])
    return rows


def _beside(subject: Subject, judge: str, number: int) -> Table:
    """Each person, and the judge in the person's place, against the majority of the others."""
    people = most_labelled(subject)
    left = len(subject.people) - len(people)
    rows: list[list[Cell]] = []
    for person in people:
        mine, its = against_the_others(subject, person, judge)
        rows.append([person, mine, its, mine])
    name = subject.coefficient_name
    columns = [Column("person"), Column(f"{name} of the person", "brief"), Column(f"of {judge}", "brief")]
    notes = [
        "Both against the majority of the other people, on the units that the person, the judge and that majority have."
    ]
    if left:
        notes.append(
            f"The {len(people)} people with most units; {counted(left, 'other is', 'others are')} left out."
        )
    caption = f"Each person, and {judge} in that person's place, against {OTHERS}"
    return Table(f"beside_{number}", caption, [*columns, Column("", "n")], rows, notes, fold=10)


def most_labelled(subject: Subject) -> list[str]:
    """All people, or past MANY the LISTED who labelled most units."""
    if len(subject.people) <= MANY:
        return list(subject.people)
    given = {p: int((subject.labels_of(p) != MISSING).sum()) for p in subject.people}
    return sorted(subject.people, key=lambda p: (-given[p], p))[:LISTED]


def against_the_others(subject: Subject, person: str, judge: str) -> tuple[Measure, Measure]:
    """The coefficient of a person, and of the judge, with the majority of the other people: on the same units.

    Coverage: of the units that the person labelled and the judge was asked about.
    """
    ratings = subject.panel.ratings
    others = majority(ratings, [p for p in subject.people if p != person]).codes
    asked = (subject.labels_of(person) != MISSING) & subject.asked_units[judge]
    used = asked & (others != MISSING) & (subject.labels_of(judge) != MISSING)
    column = OTHERS if OTHERS not in ratings.annotators else f"{OTHERS} "
    table: Ratings = ratings.with_annotator(column, others).subset(used)
    keys = subject.panel.keys([subject.coefficient])
    share = float(used.sum() / asked.sum()) if asked.any() else None

    def of(name: str) -> Measure:
        pair = table.select([name, column])
        (found,) = measures(pair, keys, level=subject.level, pairwise=False, field=subject.field)
        return replace(found, coverage=share)

    return of(person), of(judge)


def short(document: Document) -> Document:
    """A paper's paragraph and one table: each number with its n."""
    section = next((s for s in document.sections if s.key == KEY and s.blocks), None)
    if section is None:
        return replace(document, sections=[], about=[], reading=[])
    table = next(iter(section.tables()))
    told = [
        f"{row[0]}: {row[1]} {_in_words(m)}" for row in table.rows for m in [row[2]] if isinstance(m, Measure)
    ]
    about = dict(document.about)
    start = (
        f"On the field {document.facts['field']} ({about.get('labels', '')}), {about.get('judge') or about.get('judges')} "
        f"was compared with {counted(len(document.facts['people']), 'person', 'people')}; the reference is {about['reference']}."
    )
    verdicts = " ".join(f"{r.sentence} {r.because}." for r in document.rulings)
    text = " ".join(
        [start, "; ".join(told) + ".", verdicts, f"Intervals: {about['intervals']}; {about['settings']}."]
    )
    return replace(document, sections=[Section(KEY, section.title, [Paragraph(text), table])])


def _in_words(m: Measure) -> str:
    value, interval = brief(m)
    n = f"n = {counted(m.n_units, 'unit')}"
    if m.n_clusters not in (None, m.n_units):
        n += f" of {counted(int(m.n_clusters or 0), 'question')}"
    return f"{value} ({interval}; {n})" if interval else f"{value} ({n})"


__all__ = ["OTHERS", "against_the_others", "most_labelled", "short", "summary"]
