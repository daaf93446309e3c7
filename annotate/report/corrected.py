"""What the judge's numbers are after correction by the people's labels: PPI++ and Rogan-Gladen.

An estimand is a mean of one value per unit. Add another (eligibility, factuality, ...) to `ESTIMANDS`: a
function from the subject, a judge and the reference to `Estimand`s; the section prints whatever comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from annotate.report.model import Block, Cell, Column, Paragraph, Section, Table
from annotate.report.subject import Subject
from judge.stats import MISSING, corrected_mean, rogan_gladen
from judge.stats.ratings import FloatArray, IntArray

# Rates resample every question that was judged, not only those with labels: fewer resamples are enough there.
REPLICATES = 1000


@dataclass(frozen=True, eq=False)
class Estimand:
    """One mean over the units that the judge was asked about.

    `judge` and `human` hold a value per unit of the subject, nan where there is none.

    A `rate` has values 0 and 1 only, and can be corrected by sensitivity and specificity too.
    """

    name: str
    judge: FloatArray
    human: FloatArray
    rate: bool


def class_shares(subject: Subject, judge: str, reference: str) -> Iterator[Estimand]:
    """The share of each label."""
    if subject.numeric:
        return
    for code, label in enumerate(subject.found.domain):
        mine, theirs = _is(subject.labels_of(judge), code), _is(subject.labels_of(reference), code)
        yield Estimand(f"share of '{label}'", mine, theirs, rate=True)


def mean_number(subject: Subject, judge: str, reference: str) -> Iterator[Estimand]:
    """The mean of a field whose labels are numbers."""
    if not subject.numeric:
        return
    values = np.array([float(v) for v in subject.found.domain])
    mine, theirs = subject.labels_of(judge), subject.labels_of(reference)
    yield Estimand(
        f"mean of '{subject.field}'",
        np.where(mine == MISSING, np.nan, values[mine]),
        np.where(theirs == MISSING, np.nan, values[theirs]),
        rate=False,
    )


def accuracy(subject: Subject, judge: str, reference: str) -> Iterator[Estimand]:
    """How often the judge is right: by its own probability on every unit, by the reference where there is one."""
    sure = subject.found.distributions.get(judge)
    if subject.numeric or sure is None:
        return
    mine, theirs = subject.labels_of(judge), subject.labels_of(reference)
    given = mine != MISSING
    total = sure.sum(axis=1)
    stated = np.full(len(mine), np.nan)
    stated[given] = sure[given, mine[given]] / total[given]
    right = np.where(given & (theirs != MISSING), (mine == theirs).astype(np.float64), np.nan)
    yield Estimand(f"accuracy of the judge against {subject.reference_text}", stated, right, rate=False)


ESTIMANDS: tuple[Callable[[Subject, str, str], Iterator[Estimand]], ...] = (
    class_shares,
    mean_number,
    accuracy,
)


def corrected(subject: Subject) -> Section:
    """Judge only, human only, PPI++ and Rogan-Gladen side by side, for every estimand."""
    title = "Corrected numbers"
    reference = subject.reference
    if reference is None or not subject.judges:
        return Section("corrected", title, absent="there is no judge, or no reference to correct it with")
    blocks: list[Block] = []
    for i, judge in enumerate(subject.judges, 1):
        rows = [_row(subject, judge, e) for make in ESTIMANDS for e in make(subject, judge, reference)]
        columns = [Column("estimand"), Column("judge only", "brief"), Column("human only", "brief")]
        columns += [Column("PPI++", "brief"), Column("lambda", "number"), Column("Rogan-Gladen", "brief")]
        columns += [Column("units judged", "number"), Column("units labelled", "number")]
        caption = f"{judge}, corrected by {subject.reference_text}"
        blocks.append(Table(f"corrected_{i}", caption, columns, rows))
    notes = [
        f"Of the units that the judge was asked about. Judge only: those it labelled. Human only: those with "
        f"{subject.reference_text}. PPI++ takes both, with lambda as the weight of the judge (0: human only).",
        "The correction holds when the units with a reference label are a random sample of the units judged.",
        "Measures made of several labels (factuality, RAF, support ratio, CBR, ...) are corrected in the same way by "
        "judge score PAPER --correct-by WHO.",
    ]
    if any(
        make is accuracy and judge in subject.found.distributions
        for make in ESTIMANDS
        for judge in subject.judges
    ):
        notes.append("Accuracy, judge only: the mean probability that the judge gives to its own label.")
    blocks += [Paragraph(text, "note") for text in notes]
    return Section("corrected", title, blocks, ["ppi", "rogan", "judgerates"])


def _row(subject: Subject, judge: str, e: Estimand) -> list[Cell]:
    # Units that the judge never saw belong to another population than the one its mean speaks of.
    mask = subject.asked_units[judge]
    f, y, clusters = e.judge[mask], e.human[mask], subject.ratings.clusters[mask]
    found = corrected_mean(f, y, clusters=clusters, field=subject.field)
    rate = (
        rogan_gladen(f, y, clusters=clusters, field=subject.field, replicates=REPLICATES) if e.rate else None
    )
    judged, labelled = int((~np.isnan(f)).sum()), int((~np.isnan(y)).sum())
    return [e.name, found.judge_only, found.human_only, found.ppi, found.lam, rate, judged, labelled]


def _is(codes: IntArray, code: int) -> FloatArray:
    values: FloatArray = np.where(codes == MISSING, np.nan, (codes == code).astype(np.float64))
    return values
