"""What a search found: how people agree with each other and with the judge, what was tried, and what came out of it."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as default

import numpy as np

from judge.improve.recipe import Recipe
from judge.labels import relation
from judge.labels.panel import Panel
from judge.labels.scope import Scope, read
from judge.labels.split import Split
from judge.prompts.load import Task
from judge.stats import MISSING
from judge.store.study import Store
from judge.suites.contest import Contest
from judge.types import AnnotatorKind


@dataclass(frozen=True)
class People:
    """People against each other and the judge against them, on the open questions, and what people differ on."""

    judge: float
    people: float
    pairs: Sequence[tuple[str, str, int]]
    notes: Sequence[str]
    clauses: Sequence[str] = ()
    """What the guidelines say of the labels on which people differ most."""

    @property
    def as_well(self) -> bool:
        """The judge agrees with people as well as they agree with each other."""
        return self.judge >= self.people


def people_of(store: Store, split: Split, task: Task, field: str, run: str) -> People | None:
    """Two people or more, with each other and with the judge, on the open questions; None for fewer."""
    panel = read(store, Scope(field, task.name, runs=(run,)), distributions=False)
    panel = panel.only(split.mask(panel, "learn", "tune"), panel.ratings.annotators)
    people = [name for name in panel.people if (panel.labels_of(name) != MISSING).any()]
    if len(people) < 2 or panel.numeric:
        return None
    [judge] = panel.judges
    # On the units that the judge was asked about: people on others would be another comparison.
    panel = panel.only(panel.asked_units[judge], panel.ratings.annotators)
    between = _mean_kappa(panel, [(a, b) for i, a in enumerate(people) for b in people[i + 1 :]])
    own = _mean_kappa(panel, [(judge, person) for person in people])
    if between is None or own is None:
        return None
    pairs = _pairs(panel, people)
    return People(own, between, pairs, _lead_notes(store, field, panel), clauses(task.spec.guidelines, pairs))


def _mean_kappa(panel: Panel, pairs: Sequence[tuple[str, str]]) -> float | None:
    """The mean kappa of pairs, weighed by the units that both labelled; a pair without a kappa agrees by chance."""
    found = [panel.measure(pair, [panel.coefficient], interval=None)[0] for pair in pairs]
    n = sum(m.n_units for m in found)
    return sum((m.value or 0.0) * m.n_units for m in found) / n if n else None


def _lead_notes(store: Store, field: str, panel: Panel) -> list[str]:
    """What a lead wrote beside decisions on units of the open questions, five at most."""
    told: list[str] = []
    for name in panel.of_kind(AnnotatorKind.ADJUDICATED):
        for at in np.flatnonzero(panel.labels_of(name) != MISSING).tolist():
            unit = panel.table.units[at]
            if len(told) < 5 and (text := relation.rationale(store.conn, name, field, unit).strip()):
                told.append(f"{unit}: {' '.join(text.split())}")
    return told


def clauses(guidelines: str, pairs: Sequence[tuple[str, str, int]]) -> list[str]:
    """The clauses of the guidelines (list entries, paragraphs) that name a label of the most frequent pair."""
    if not pairs:
        return []
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)", guidelines)
    words = "|".join(re.escape(label) for label in pairs[0][:2])
    named = re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)
    return [" ".join(part.split()) for part in parts if named.search(part)]


def _pairs(panel: Panel, people: Sequence[str]) -> list[tuple[str, str, int]]:
    """Unordered pairs of labels that two people gave one unit, with how many units, the most frequent first."""
    codes = panel.ratings.select(people).codes
    counts: Counter[tuple[int, int]] = Counter()
    for row in codes.tolist():
        given = sorted({code for code in row if code != MISSING})
        counts.update((a, b) for i, a in enumerate(given) for b in given[i + 1 :])
    return [(panel.domain[a], panel.domain[b], n) for (a, b), n in counts.most_common()]


@dataclass(frozen=True)
class Tried:
    """One candidate: its agreement with the reference (kappa times the share of units with a label; None: undefined) on
    so many questions of tune, and the tokens a unit takes (None: not known).
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
    """What came out. `proof` is the comparison on the sealed test, None when nothing was opened."""

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
    """On the sealed test: winner minus today, with its interval."""
    needed: int | None = None
    """How many labelled test units would show a difference like the one that was seen."""
    spent: Counter[str] = default(default_factory=Counter)
    cost: float | None = None
    stopped: str | None = None
    notes: list[str] = default(default_factory=list)

    @property
    def proved(self) -> bool:
        """The lower bound of the difference is above 0."""
        return self.difference is not None and self.difference[1] is not None and self.difference[1] > 0
