"""Several judges as one: the label that most give, the mean of their probabilities, or Dawid and Skene's latent labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from judge.derive.make import Made
from judge.derive.parents import RunTable, reference
from judge.errors import UsageError
from judge.labels import split as parts
from judge.stats import MISSING, Ratings, dawid_skene, measures
from judge.stats.aggregate import tally_votes, vote
from judge.stats.bootstrap import How
from judge.stats.ratings import BoolArray, FloatArray
from judge.store.derived import seen
from judge.types import Json, Measure

TIED = "tied"
"""Why a unit has no label of a panel whose members differ and none is in the majority."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """A panel's labels. `only`: the units that every member was asked about, which it speaks of; `unanimous` of the
    `n_full` units that all members labelled have one label of all. `n_tied` have none.
    """

    made: Made
    only: BoolArray
    parameters: Mapping[str, Json]
    n_tied: int
    n_full: int
    unanimous: int
    notes: tuple[str, ...] = ()


def pool(table: RunTable, field: str, method: str) -> Pooled:
    """The members' labels as one. A member without a label on a unit has no say there.

    Raises UsageError for fewer than two members and, for `mean`, a member without probabilities.
    """
    if len(table.runs) < 2:
        raise UsageError("a panel takes two judges or more: give --run several times")
    found = table.labels(field, probabilities=method == "mean")
    q = len(found.domain)
    only: BoolArray = np.asarray(table.asked.all(axis=1))
    codes = found.codes
    full = only & (codes != MISSING).all(axis=1)
    unanimous = int((codes[full] == codes[full, :1]).all(axis=1).sum())
    notes: list[str] = []
    left = int((~only).sum())
    if left:
        notes.append(f"{left:,} units that not every member was asked about are left out")
    probabilities: FloatArray | None = None
    parameters: dict[str, Json] = {}
    tied: BoolArray = np.zeros(len(codes), dtype=np.bool_)
    if method == "majority":
        labels, tied = vote(tally_votes(codes, q))
    elif method == "mean":
        probabilities, raw = _mean(table, found.probabilities)
        notes += raw
        labels = np.where(
            np.isnan(probabilities[:, 0]), MISSING, np.nan_to_num(probabilities).argmax(axis=1)
        ).astype(np.int64)
    else:
        if not (codes[only] != MISSING).any():
            raise UsageError("no member has a label")
        names = list(table.run_ids)
        model = dawid_skene(Ratings.from_codes(codes[only], found.domain, names))
        probabilities = np.full((len(codes), q), np.nan)
        probabilities[only] = model.posterior
        labels = np.full(len(codes), MISSING, dtype=np.int64)
        labels[only] = model.codes
        parameters["prevalence"] = dict(
            zip(found.domain, np.round(model.prevalence, 6).tolist(), strict=True)
        )
        notes.append(
            "Dawid and Skene take members' errors as independent given the true label, which judges asked alike are not"
        )
        if not model.converged:
            notes.append(f"the estimate had not settled after {model.iterations} steps")
    tied = np.asarray(tied & only)
    why = dict.fromkeys(np.flatnonzero(tied).tolist(), TIED)
    return Pooled(
        Made(labels, probabilities, why),
        only,
        parameters,
        int(tied.sum()),
        int(full.sum()),
        unanimous,
        tuple(notes),
    )


def agreement(
    table: RunTable, field: str, pooled: Pooled, run_id: str, wanted: str | None = None, **how: Unpack[How]
) -> tuple[str | None, list[Measure], list[str]]:
    """How each member and, last, the panel (kept as `run_id`) agree with the reference where it has a label, outside a
    sealed test: whose labels they are, the measures, and what to say of them. No measures without a reference.
    """
    found, told = table.labels(field, probabilities=False), list[str]()
    numbers, questions = table.questions
    inside = np.ones(len(numbers), dtype=np.bool_)
    split = parts.find(table.store, table.task)
    if split is not None:
        inside = np.array([split.parts.get(q) in ("learn", "tune") for q in questions])[numbers]
        if not inside.all():
            told.append(
                f"{int((~inside).sum()):,} units outside learn and tune are not counted: {split.told}"
            )
    truth = reference(table.store, table, field, wanted)
    if truth is None:
        return None, [], [*told, "no gold and no people's labels: how good it is is unknown"]
    inside &= truth.codes != MISSING
    level = table.task.level(field)
    key = "cohen_kappa:quadratic" if level == "ordinal" else "cohen_kappa"
    measured = []
    for r, run in enumerate((*table.run_ids, run_id)):
        last = r == len(table.run_ids)
        here = inside & (pooled.only if last else table.asked[:, r])
        if fitted := seen(table.store.conn, run):
            here &= np.fromiter((u not in fitted for u in table.units), np.bool_, len(table.units))
        rows = np.flatnonzero(here)
        own = pooled.made.codes if last else found.codes[:, r]
        both = Ratings.from_codes(
            np.column_stack([own[rows], truth.codes[rows]]), found.domain, [run, truth.word],
            clusters=numbers[rows], units=[table.units[at] for at in rows.tolist()],
        )  # fmt: skip
        measured += measures(both, [key], level=level, pairwise=False, field=field, **how)
    return truth.word, measured, told


def _mean(table: RunTable, each: tuple[FloatArray | None, ...]) -> tuple[FloatArray, list[str]]:
    """The mean over the members that have probabilities of a unit, and which of them are not calibrated."""
    lacking = [run for run, p in zip(table.run_ids, each, strict=True) if p is None]
    if lacking:
        raise UsageError(
            f"run {lacking[0]} stored no label probabilities: --method mean needs those of every member; majority does not"
        )
    total = np.zeros(each[0].shape if each[0] is not None else (0, 0))
    n = np.zeros(len(total))
    for p in each:
        assert p is not None
        there = ~np.isnan(p[:, 0])
        total[there] += p[there]
        n += there
    mean = np.divide(total, n[:, None], out=np.full_like(total, np.nan), where=n[:, None] > 0)
    raw = [
        str(run["run_id"])
        for run in table.runs
        if '"kind":"calibrated"' not in str(run["derived_from"]).replace(" ", "")
    ]
    told = (
        [
            f"not calibrated: {', '.join(raw)}; the surest member decides, right or wrong (judge calibrate {table.task.task_id} "
            "--run RUN makes one to pool)"
        ]
        if raw
        else []
    )
    return mean, told
