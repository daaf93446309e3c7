"""The papers' measures that rest on the labels of a report: eligibility, factuality, RAF, deflection, SR, CR, CBR, ...

The papers are read by `judge.suites`, once with the judge's labels and once with the reference's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from annotate.report.subject import Subject
from judge.errors import AdjudgeError, NothingToScore
from judge.labels.reference import ReferenceLabels
from judge.stats import Estimand
from judge.store import Store
from judge.store.distractors import PREFIX
from judge.suites import chosen
from judge.suites.chosen import Run
from judge.suites.paper import Asked, Paper, Part
from judge.suites.papers import every
from judge.types import GOLD


@dataclass(frozen=True)
class PaperMeasures:
    """Measures of one judge beside the reference, under names that tell data set and system where there are several."""

    measures: list[Estimand]
    notes: list[str]


def measures(store: Store, subject: Subject, judge: str) -> PaperMeasures:
    """Every mean over units of every paper that rests on this judge's run; none for tasks that no paper asks for."""
    if judge not in subject.run_ids:
        return PaperMeasures([], [])
    run = next(r for r in chosen.all_runs(store) if r.run_id == subject.run_ids[judge])
    found = PaperMeasures([], [])
    weighted = bool(subject.panel.weights) and subject.reference_kind != GOLD
    parts = [(paper, several) for paper in every() for several in _together(paper, run, weighted)]
    if not parts:
        return found
    word = subject.reference_kind or ""
    held = ReferenceLabels(store, subject.run_ids.get(word, word), subject.asked.batch)
    own = held.weights(subject.panel.field)
    places = _places(store, run)
    for paper, several in parts:
        for place in places:
            if not paper.present(store, place.dataset):
                continue
            try:
                sides = _sides(store, paper, several, run, place, held, own)
            except NothingToScore:
                continue
            except AdjudgeError as e:
                found.notes.append(f"{paper.name}: {e}")
                continue
            told = place.told(places)
            known = {one.measure for one in found.measures}
            new = [
                replace(one, measure=f"{_readable(one.measure, paper.abbreviations)}{told}") for one in sides
            ]
            found.measures.extend(one for one in new if one.measure not in known)
    return found


def _readable(measure: str, abbreviations: Collection[str]) -> str:
    """A measure as a paper writes it: `unadjusted_raf` is unadjusted RAF, `cr[rerank]` CR [rerank]."""
    words = measure.replace("_", " ").replace("[", " [").split(" ")
    return " ".join(word.upper() if word in abbreviations else word for word in words)


def _together(paper: Paper, run: Run, weighted: bool) -> list[list[Part]]:
    """The parts that rest on a run; those of one task apart from others where they are weighted."""
    mine = [part for part in paper.parts if _rests(part, run)]
    # The probability of a unit to be labelled for two tasks is not that of either.
    apart = (
        [[p for p in mine if len(p.tasks) == 1], [p for p in mine if len(p.tasks) > 1]]
        if weighted
        else [mine]
    )
    return [parts for parts in apart if parts]


def _rests(part: Part, run: Run) -> bool:
    return run.task_id in part.tasks or run.task_id in part.instead


@dataclass(frozen=True)
class _Place:
    """What a run judged: a data set, and whose answers where the units are answers or parts of them."""

    dataset: str
    system: str | None
    condition: str | None

    def told(self, places: list[_Place]) -> str:
        """What tells it from the others: data set, system and condition where there are several."""
        told = [self.dataset] if len({p.dataset for p in places}) > 1 else []
        if self.system is not None and len({(p.system, p.condition) for p in places}) > 1:
            told.append(f"{self.system} ({self.condition})")
        return "".join(f" · {text}" for text in told)


def _places(store: Store, run: Run) -> list[_Place]:
    """What a run judged, but for the answers of people, which papers hold systems against, and distractors."""
    from judge.suites.queries import HUMAN

    query = (
        "SELECT DISTINCT i.dataset, a.system, a.condition FROM (SELECT DISTINCT u.item_id, u.answer_id "
        "FROM judgements AS j JOIN units AS u USING (unit_id) WHERE j.run_id = ?) AS x "
        "JOIN items AS i ON i.item_id = x.item_id LEFT JOIN answers AS a ON a.answer_id = x.answer_id ORDER BY 1, 2, 3"
    )
    places = [_Place(*row) for row in store.conn.execute(query, [run.run_id])]
    return [p for p in places if p.system is None or not (p.system == HUMAN or p.system.startswith(PREFIX))]


def _sides(
    store: Store,
    paper: Paper,
    parts: list[Part],
    run: Run,
    place: _Place,
    held: ReferenceLabels,
    weights: Mapping[int | str, float],
) -> list[Estimand]:
    from judge.suites.correction import beside
    from judge.suites.result import scores_of

    asked = Asked(
        models=(run.model,),
        runs=(run.run_id,),
        system=place.system,
        condition=place.condition,
        dataset=place.dataset,
        parts=tuple(part.name for part in parts),
        partial=True,
        options=paper.reads(run),
    )
    scores, study = scores_of(store, paper, asked, None)
    sides = beside(study, scores, held, weights if all(len(part.tasks) == 1 for part in parts) else {})
    return [one for one in sides.found if not np.isnan(one.judge).all()]
