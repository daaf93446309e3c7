"""The result of a search.

It contains the agreement of people with each other and with the judge, the candidates, and the result on the
sealed test.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as default

import numpy as np

from judge.improve.contest import Contest
from judge.improve.recipe import Recipe
from judge.labels import relation
from judge.labels.panel import Panel
from judge.labels.scope import Scope, read_panel
from judge.labels.split import Split
from judge.prompts.load import Task
from judge.stats import MISSING
from judge.store.study import Store
from judge.types import AnnotatorKind


@dataclass(frozen=True)
class People:
    """The agreement of people with each other (`people`) and with the judge (`judge`).

    Both are measured outside the sealed test. `pairs` lists the pairs of labels that people confuse, with
    their frequency. `notes` contains the lead annotator's notes.
    """

    judge: float
    people: float
    pairs: Sequence[tuple[str, str, int]]
    notes: Sequence[str]
    clauses: Sequence[str] = ()
    """Parts of the guidelines about the labels that people confuse most often."""

    @property
    def as_well(self) -> bool:
        """Whether the judge agrees with people at least as well as people agree with each other."""
        return self.judge >= self.people


def people_of(store: Store, split: Split, task: Task, field: str, run: str) -> People | None:
    """Return how well people agree with each other and with the judge, outside the sealed test.

    Return None if fewer than two people have labelled these questions, or if the agreement cannot be
    computed.
    """
    panel = read_panel(store, Scope(field, task.name, runs=(run,)), distributions=False)
    panel = panel.select(split.mask(panel, "learn", "tune"), panel.ratings.annotators)
    people = [name for name in panel.people if (panel.labels_of(name) != MISSING).any()]
    if len(people) < 2 or panel.numeric:
        return None
    [judge] = panel.judges
    # Only units that the judge has judged are used, because the two agreements must be computed on the same units.
    panel = panel.select(panel.asked_units[judge], panel.ratings.annotators)
    among_people = _mean_kappa(panel, [(a, b) for i, a in enumerate(people) for b in people[i + 1 :]])
    with_judge = _mean_kappa(panel, [(judge, person) for person in people])
    if among_people is None or with_judge is None:
        return None
    pairs = _pairs(panel, people)
    return People(
        with_judge,
        among_people,
        pairs,
        _lead_notes(store, field, panel),
        clauses(task, field, pairs),
    )


def _mean_kappa(panel: Panel, pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return the mean kappa over pairs of annotators, weighted by the number of units that both labelled."""
    kappas = [panel.measure(pair, [panel.coefficient], interval=None)[0] for pair in pairs]
    n = sum(m.n_units for m in kappas)
    # An undefined kappa counts as 0, the agreement expected by chance.
    return sum((m.value or 0.0) * m.n_units for m in kappas) / n if n else None


def _lead_notes(store: Store, field: str, panel: Panel) -> list[str]:
    """Return at most five of the lead annotator's notes on decisions.

    Notes on questions in the sealed test are omitted.
    """
    notes: list[str] = []
    for name in panel.select_kinds(AnnotatorKind.ADJUDICATED):
        for at in np.flatnonzero(panel.labels_of(name) != MISSING).tolist():
            unit = panel.table.units[at]
            if len(notes) < 5 and (text := relation.rationale(store.conn, name, field, unit).strip()):
                notes.append(f"{unit}: {' '.join(text.split())}")
    return notes


def clauses(task: Task, field: str, pairs: Sequence[tuple[str, str, int]]) -> list[str]:
    """Return the parts of the task that explain the two labels that are confused most often.

    The parts are the meaning of each of the two labels, and every list entry or paragraph of the guidelines
    that names one of them.
    """
    if not pairs:
        return []
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)", task.spec.guidelines)
    words = "|".join(re.escape(label) for label in pairs[0][:2])
    # Only whole words match, because a label such as "no" also occurs in "not".
    named = re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)
    labels = task.question(field).labels
    meanings = [f"{x.value}: {x.meaning}" for x in labels if x.value in pairs[0][:2] and x.meaning]
    return [*meanings, *(" ".join(part.split()) for part in parts if named.search(part))]


def _pairs(panel: Panel, people: Sequence[str]) -> list[tuple[str, str, int]]:
    """Return the pairs of different labels that people gave to the same unit, most frequent first.

    Each pair has the number of such units.
    """
    codes = panel.ratings.select(people).codes
    counts: Counter[tuple[int, int]] = Counter()
    for row in codes.tolist():
        codes_of_unit = sorted({code for code in row if code != MISSING})
        counts.update((a, b) for i, a in enumerate(codes_of_unit) for b in codes_of_unit[i + 1 :])
    return [(panel.domain[a], panel.domain[b], n) for (a, b), n in counts.most_common()]


@dataclass(frozen=True)
class Tried:
    """A candidate and its score on `n_questions` tuning questions.

    `score` is kappa multiplied by `coverage`, the share of units that the candidate labelled. `kappa` is None
    if it is undefined. `tokens` is the number of tokens per unit, or None if it is unknown.
    """

    rung: str
    recipe: Recipe
    run_id: str
    score: float
    kappa: float | None
    coverage: float
    n_units: int
    n_questions: int
    tokens: float | None


@dataclass
class Improved:
    """The outcome of a search. `proof` is the comparison on the sealed test, or None if the test was not opened."""

    task: Task
    field: str
    reference: str
    model: str
    tried: list[Tried] = default(default_factory=list)
    people: People | None = None
    refused: bool = False
    winner: Recipe | None = None
    proof: Contest | None = None
    level: float = 0.05
    difference: tuple[float, float | None, float | None] | None = None
    """The difference on the sealed test, winner minus current task, with its interval."""
    needed: int | None = None
    """The number of labelled units in the sealed test that are needed to detect a difference of this size."""
    spent: Counter[str] = default(default_factory=Counter)
    cost: float | None = None
    stopped: str | None = None
    notes: list[str] = default(default_factory=list)

    @property
    def proved(self) -> bool:
        """Whether the confidence interval of the difference lies above 0."""
        return self.difference is not None and self.difference[1] is not None and self.difference[1] > 0
