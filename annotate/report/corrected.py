"""The judge's numbers corrected by human labels: PPI++ and Rogan-Gladen.

An estimand is the mean of one value per unit. This module computes the estimands for single labels. The measures from
papers (eligibility, factuality, RAF, deflection, SR, CR, CBR, ...) combine several labels. They come from
`judge.papers.engine`, which computes each of them once from the judge's labels and once from the reference labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from annotate.report.subject import Subject
from judge.document.blocks import Block, Cell, Column, Paragraph, Section, Table, heads
from judge.document.cells import format_count
from judge.errors import AdjudgeError, NothingToScore
from judge.labels.batches import read_sampled_units
from judge.labels.reference import ReferenceLabels
from judge.papers.engine import chosen
from judge.papers.engine.chosen import Run
from judge.papers.engine.paper import Paper, Part, ScoreRequest
from judge.papers.engine.papers import list_papers
from judge.stats import Estimand, Ratings
from judge.stats.ratings import FloatArray
from judge.store import Store
from judge.store.answers import HUMAN
from judge.store.distractors import PREFIX
from judge.types import GOLD

# Intervals of rates no longer use resampling. The report's JSON keeps this fact, because its readers may expect it.
REPLICATES = 1000


def _iterate_label_estimands(
    subject: Subject, judge: str, reference: str, weights: Mapping[str, float]
) -> Iterator[Estimand]:
    """Yield the estimands of a field: the share of each label and the judge's accuracy, or the mean of a numeric field."""
    for estimand in _estimands_on_all_units(subject, judge, reference):
        yield _on_judged_units(subject, judge, estimand, weights)


def _estimands_on_all_units(subject: Subject, judge: str, reference: str) -> Iterator[Estimand]:
    if subject.panel.numeric:
        values = np.array([float(v) for v in subject.panel.domain])
        numbers = (
            np.where(subject.has_label(name), values[subject.panel.labels_of(name)], np.nan)
            for name in (judge, reference)
        )
        yield _pair_labels(subject, f"mean of '{subject.panel.field}'", *numbers)
        return
    for code, label in enumerate(subject.panel.domain):
        shares = (_mask_code(subject.panel.table, name, code) for name in (judge, reference))
        yield _pair_labels(subject, f"share of '{label}'", *shares, rate=True)
    yield _accuracy(subject, judge, reference)


def _accuracy(subject: Subject, judge: str, reference: str) -> Estimand:
    """Return the estimand for the judge's accuracy.

    The judge's value for a unit is its probability for the label that it gave. The human value is 1 if this
    label equals the reference label, otherwise 0. Units without a reference label have no human value.
    """
    table = subject.panel.table
    judged = table.codes[:, table.annotators.index(judge)]
    sure = subject.panel.distributions.get(judge)
    stated = np.full(len(judged), np.nan) if sure is None else sure.of_labels(judged)
    both = np.flatnonzero(table.has_label(judge) & table.has_label(reference))
    right = np.full(len(judged), np.nan)
    right[both] = judged[both] == table.codes[both, table.annotators.index(reference)]
    name = f"accuracy of the judge against {subject.reference_text}"
    # With few labels, a corrected share can be outside 0 to 1.
    return replace(_pair_labels(subject, name, stated, right), bounds=(0.0, 1.0))


def corrected(store: Store, subject: Subject) -> Section:
    """Return the section with the estimates "judge only", "human only", PPI++ and Rogan-Gladen for each estimand."""
    title = "Corrected numbers"
    reference = subject.reference
    if reference is None or not subject.panel.judges:
        return Section("corrected", title, absent="there is no judge, or no reference to correct it with")
    # Gold labels came with the data and were not drawn, so they have no weights.
    weights = {} if subject.reference_kind == "gold" else subject.panel.weights
    blocks: list[Block] = []
    notes: dict[str, None] = {}
    for i, judge in enumerate(subject.panel.judges, 1):
        of_papers, remarks = _paper_measures(store, subject, judge)
        rows: list[list[Cell]] = []
        weighing = _Weighing()
        # Each has a number for every unit of the study, so only one of them is in memory at a time.
        for e in chain(_iterate_label_estimands(subject, judge, reference, weights), of_papers):
            rows.append(_row(e, subject.panel.confidence(judge)))
            weighing.add(e)
        columns = [Column("estimand"), Column("judge only", "brief"), Column("human only", "brief")]
        columns += [Column("PPI++", "brief"), Column("lambda", "number"), Column("Rogan-Gladen", "brief")]
        columns += heads("number", "units judged", "units labelled")
        caption = f"{judge}, corrected by {subject.reference_text}"
        blocks.append(Table(f"corrected_{i}", caption, columns, rows))
        notes |= dict.fromkeys(remarks)
        notes |= {f"Not corrected: {e.refused}.": None for e in of_papers if e.refused}
        notes |= dict.fromkeys(weighing.notes())
    notes |= dict.fromkeys(
        [
            f"All numbers are for the units that the judge was asked about. Judge only: the units that the judge labelled. "
            f"Human only: the units with {subject.reference_text}. PPI++ combines both; lambda is the weight of the judge "
            "(0: human only).",
            "The correction holds if the units with a reference label are a random sample of the judged units. "
            + _sample(store, subject),
            *_ties(subject),
        ]
    )
    if not subject.panel.numeric:
        notes[
            "Accuracy, judge only: the mean probability that the judge assigns to its own label, if probabilities are "
            "stored. Accuracy, human only: the share of units with a reference label on which the judge is right."
        ] = None
    blocks += [Paragraph(text, "note") for text in notes]
    return Section("corrected", title, blocks, ["ppi", "rogan", "judgerates"])


def _sample(store: Store, subject: Subject) -> str:
    """Return a sentence on whether the labelled units are known to be a random sample."""
    if subject.reference_kind == "gold":
        return "The study does not record how units were selected for gold labels."
    used = set(subject.panel.table.subset(subject.has_label(subject.reference or "")).units)
    drawn = read_sampled_units(store, subject.options.batch, subject.panel.field)
    if outside := len(used - drawn):
        return f"The study does not record that {outside:,} of the {len(used):,} labelled units were drawn at random."
    text = "They were drawn at random, by batches of this study (see the section on how units were chosen)."
    if without := len(drawn - used):
        text += (
            f" {without:,} of the {format_count(len(drawn), 'unit')} drawn have no reference label (not asked, open, skipped or disputed). "
            "They are assumed to resemble the others; the data cannot show whether they do."
        )
    return text


def _ties(subject: Subject) -> list[str]:
    if subject.reference_kind != "majority" or not subject.n_tied:
        return []
    return [
        f"The majority vote of people leaves out {format_count(subject.n_tied, 'unit')} with a tie, so the corrected numbers are for "
        "units on which people agree more than usual. Adjudicate the units with a tie to include them."
    ]


@dataclass
class _Weighing:
    """Collects which estimands have design weights, for a note."""

    weighted: bool = False
    without: list[str] = field(default_factory=list)

    def add(self, e: Estimand) -> None:
        self.weighted |= e.weights is not None
        if e.weights is None and e.n_labelled:
            self.without.append(e.measure)

    def notes(self) -> Iterator[str]:
        if not self.weighted:
            return
        yield (
            "The labelled units were drawn with unequal probabilities, so human only, PPI++ and Rogan-Gladen weight each unit "
            "by the number of units that it represents. The intervals ignore stratification, so they tend to be too wide."
        )
        if self.without:
            yield f"Not weighted, because their units have equal weights, no weights or several weights: {', '.join(self.without)}."


def _pair_labels(
    subject: Subject, name: str, judge: FloatArray, human: FloatArray, *, rate: bool = False
) -> Estimand:
    bounds, clusters = (0.0, 1.0) if rate else None, subject.panel.table.clusters
    return Estimand(name, judge, human, clusters, None, rate, bounds, subject.panel.field)


def _on_judged_units(subject: Subject, judge: str, e: Estimand, weights: Mapping[str, float]) -> Estimand:
    """Restrict an estimand to the units that the judge was asked about. Other units belong to a different population."""
    mask = subject.panel.asked_units[judge]
    if not mask.all():
        e = replace(e, judge=e.judge[mask], human=e.human[mask], clusters=e.clusters[mask])
    unit_weights = None
    if weights:
        of = subject.panel.table.spread(weights)[mask]
        used = of[~np.isnan(e.human)]
        # Equal weights do not change an estimate. A unit without a weight has nan.
        unit_weights = of if len(used) and np.ptp(used) > 1e-9 else None
    return replace(e, weights=unit_weights)


def _row(e: Estimand, confidence: float) -> list[Cell]:
    estimates, rate = e.correct(confidence), e.correct_by_rates(confidence)
    ways = (estimates.judge_only, estimates.human_only, estimates.ppi, estimates.lam, rate)
    return [e.measure, *ways, e.n_judged, e.n_labelled]


def _mask_code(table: Ratings, name: str, code: int) -> FloatArray:
    values = table.has_code(name, code).astype(np.float64)
    values[~table.has_label(name)] = np.nan
    return values


def _paper_measures(store: Store, subject: Subject, judge: str) -> tuple[list[Estimand], list[str]]:
    """Return the papers' measures that use this judge's run, and a note on each paper whose measures raised
    an error.

    If the run covers several data sets or systems, the name of each measure includes them.
    """
    measures: dict[str, Estimand] = {}
    notes: list[str] = []
    if judge not in subject.run_ids:
        return [], notes
    run = next(r for r in chosen.list_runs(store) if r.run_id == subject.run_ids[judge])
    weighted = bool(subject.panel.weights) and subject.reference_kind != GOLD
    parts = [(paper, several) for paper in list_papers() for several in _group_parts(paper, run, weighted)]
    if not parts:
        return [], notes
    word = subject.reference_kind or ""
    reference = ReferenceLabels(store, subject.run_ids.get(word, word), subject.options.batch)
    weights = reference.weights(subject.panel.field)
    places = _places(store, run)
    for paper, several in parts:
        for place in places:
            if not paper.present(store, place.dataset):
                continue
            try:
                sides = _sides(store, paper, several, run, place, reference, weights)
            except NothingToScore:
                # The run has units from this data set, but none that the paper scores.
                continue
            except AdjudgeError as e:
                notes.append(f"{paper.name}: {e}")
                continue
            suffix = place.distinction(places)
            for estimand in sides:
                name = f"{paper.readable(estimand.measure)}{suffix}"
                # Two papers can share a measure, which then has the same value in both.
                measures.setdefault(name, replace(estimand, measure=name))
    return list(measures.values()), notes


def _group_parts(paper: Paper, run: Run, weighted: bool) -> list[list[Part]]:
    """Return the parts of a paper that use the run's task, in one or more groups.

    If the units are `weighted`, parts that combine several tasks form a separate group.
    """
    parts = [part for part in paper.parts if run.task_id in part.tasks or run.task_id in part.instead]
    # If a unit is drawn for two tasks, neither task's inclusion probability is the unit's.
    groups = (
        [[p for p in parts if (len(p.tasks) > 1) is many] for many in (False, True)] if weighted else [parts]
    )
    return [group for group in groups if group]


@dataclass(frozen=True)
class _Place:
    """One data set that a run covers and, if the run's units are answers or parts of answers, one system."""

    dataset: str
    system: str | None
    condition: str | None

    def distinction(self, places: list[_Place]) -> str:
        """Return a suffix that distinguishes this place from the others in `places`.

        The suffix names the data set if there are several, and the system if there are several. Otherwise, it is empty.
        """
        parts = [self.dataset] if len({p.dataset for p in places}) > 1 else []
        if self.system is not None and len({(p.system, p.condition) for p in places}) > 1:
            parts.append(f"{self.system} ({self.condition})")
        return "".join(f" · {text}" for text in parts)


def _places(store: Store, run: Run) -> list[_Place]:
    """Return each combination of data set and system that a run covers.

    Human answers and distractors (answers written to mislead) are left out, because no system produced them.
    """
    query = (
        "SELECT DISTINCT i.dataset, a.system, a.condition FROM (SELECT DISTINCT u.item_id, u.answer_id "
        "FROM judgements AS j JOIN units AS u USING (unit_id) WHERE j.run_id = ?) AS x "
        "JOIN items AS i ON i.item_id = x.item_id LEFT JOIN answers AS a ON a.answer_id = x.answer_id ORDER BY 1, 2, 3"
    )
    # A distractor is an answer that was written to mislead; it does not come from a system.
    places = [_Place(*row) for row in store.conn.execute(query, [run.run_id])]
    return [p for p in places if p.system is None or not (p.system == HUMAN or p.system.startswith(PREFIX))]


def _sides(
    store: Store,
    paper: Paper,
    parts: list[Part],
    run: Run,
    place: _Place,
    reference: ReferenceLabels,
    weights: Mapping[int | str, float],
) -> list[Estimand]:
    from judge.papers.engine.correction import pair_scores
    from judge.papers.engine.result import scores_of

    request = ScoreRequest(
        models=(run.model,),
        runs=(run.run_id,),
        system=place.system,
        condition=place.condition,
        dataset=place.dataset,
        parts=tuple(part.name for part in parts),
        partial=True,
        options=paper.reads(run),
    )
    scores, study = scores_of(store, paper, request, None)
    of_parts = weights if all(len(part.tasks) == 1 for part in parts) else {}
    estimands, _, _ = pair_scores(study, scores, reference, of_parts)
    return [estimand for estimand in estimands if not np.isnan(estimand.judge).all()]
