"""Several judges as one: the label that most give, the mean of their probabilities, or Dawid and Skene's latent labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from judge.derive.make import Made
from judge.derive.table import Table
from judge.errors import UsageError
from judge.stats import MISSING, Ratings, dawid_skene
from judge.stats.aggregate import tally_votes, vote
from judge.stats.ratings import BoolArray, FloatArray
from judge.types import Json

METHODS = ("majority", "mean", "dawid-skene")
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


def pool(table: Table, field: str, method: str) -> Pooled:
    """The members' labels as one. A member without a label on a unit has no say there.

    Raises UsageError for fewer than two members and, for `mean`, a member without probabilities.
    """
    if len(table.runs) < 2:
        raise UsageError("a panel takes two judges or more: give --run several times")
    found = table.labels(field)
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


def _mean(table: Table, each: tuple[FloatArray | None, ...]) -> tuple[FloatArray, list[str]]:
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
