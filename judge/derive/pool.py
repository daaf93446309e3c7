"""Pool several judges into one judge by the majority label, the mean probability, or the method of Dawid and Skene."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from judge.commands import command
from judge.derive.make import Made
from judge.derive.parents import RunTable, reference
from judge.errors import UsageError
from judge.labels import split as parts
from judge.stats import MISSING, BoolArray, FloatArray, IntervalOptions, Ratings, dawid_skene, measures, vote
from judge.stats.aggregate import tally_votes
from judge.stats.calibrate import find_most_probable
from judge.stats.metrics import pair_kappa
from judge.store.derived import read_seen_units
from judge.types import Json, Measure

TIED = "tied"
"""The reason for a missing label if the members disagree and no label has a majority."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """The labels of a panel.

    `only` selects the units that every member has judged; the panel covers only these units. `n_full` is the number of
    units that every member has labelled, and `unanimous` is the number of these on which all labels are equal. `n_tied`
    is the number of units without a label because of a tie.
    """

    made: Made
    only: BoolArray
    parameters: Mapping[str, Json]
    n_tied: int
    n_full: int
    unanimous: int
    notes: tuple[str, ...] = ()


def pool(table: RunTable, field: str, method: str) -> Pooled:
    """Combine the labels of the members. On each unit, members without a label are ignored.

    Raises UsageError if there are fewer than two members or, for the method mean, if a member has no probabilities.
    """
    if len(table.runs) < 2:
        raise UsageError("a panel needs at least two judges: repeat --run for each judge")
    labels_of_runs = table.labels(field, probabilities=method == "mean")
    q = len(labels_of_runs.domain)
    only: BoolArray = np.asarray(table.judged.all(axis=1))
    codes = labels_of_runs.codes
    # Unanimity is only defined on units that all members labelled.
    full = only & (codes != MISSING).all(axis=1)
    unanimous = int((codes[full] == codes[full, :1]).all(axis=1).sum())
    notes: list[str] = []
    n_left_out = int((~only).sum())
    if n_left_out:
        notes.append(f"{n_left_out:,} units are left out, because not every member has judged them")
    probabilities: FloatArray | None = None
    parameters: dict[str, Json] = {}
    tied: BoolArray = np.zeros(len(codes), dtype=np.bool_)
    # A tie gives no label, because breaking it by the order of labels would favour some labels.
    if method == "majority":
        labels, tied = vote(tally_votes(codes, q))
    elif method == "mean":
        probabilities, raw = _mean(table, labels_of_runs.probabilities)
        notes += raw
        labels = find_most_probable(probabilities, MISSING)
    else:
        if not (codes[only] != MISSING).any():
            raise UsageError("none of the members of this panel has a label")
        names = list(table.run_ids)
        model = dawid_skene(Ratings.from_codes(codes[only], labels_of_runs.domain, names))
        probabilities = np.full((len(codes), q), np.nan)
        probabilities[only] = model.posterior
        labels = np.full(len(codes), MISSING, dtype=np.int64)
        labels[only] = model.codes
        parameters["prevalence"] = dict(
            zip(labels_of_runs.domain, np.round(model.prevalence, 6).tolist(), strict=True)
        )
        notes.append(
            "the method of Dawid and Skene assumes that the errors of members are independent given the true label, but similar "
            "judges make the same errors"
        )
        # The result is used although it has not converged, so the user must be told.
        if not model.converged:
            notes.append(f"the estimate did not converge in {model.iterations} steps")
    tied = np.asarray(tied & only)
    reason = dict.fromkeys(np.flatnonzero(tied).tolist(), TIED)
    return Pooled(
        Made(labels, probabilities, reason),
        only,
        parameters,
        int(tied.sum()),
        int(full.sum()),
        unanimous,
        tuple(notes),
    )


def agreement(
    table: RunTable,
    field: str,
    pooled: Pooled,
    run_id: str,
    wanted: str | None = None,
    **options: Unpack[IntervalOptions],
) -> tuple[str | None, list[Measure], list[str]]:
    """Measure how well each member and the panel (the run `run_id`) agree with the reference.

    Units in a sealed test are not used. Return the name of the reference, the measures, and notes. The measures of the
    panel come last. Without a reference, there are no measures.
    """
    labels_of_runs, remarks = table.labels(field, probabilities=False), list[str]()
    numbers, questions = table.questions
    counted = np.ones(len(numbers), dtype=np.bool_)
    split = parts.find(table.store, table.task)
    if split is not None:
        # Agreement on the sealed test must not be shown before a look is logged, because it would use no error rate.
        counted = np.array([split.parts.get(q) in ("learn", "tune") for q in questions])[numbers]
        if not counted.all():
            remarks.append(
                f"{int((~counted).sum()):,} units outside the learning and tuning questions are not used: {split.look_note}"
            )
    truth = reference(table.store, table, field, wanted)
    if truth is None:
        return (
            None,
            [],
            [*remarks, "there are no gold or human labels, so the agreement of the panel is unknown"],
        )
    counted &= truth.codes != MISSING
    level = table.task.level(field)
    measured = []
    for r, run in enumerate((*table.run_ids, run_id)):
        last = r == len(table.run_ids)
        usable = counted & (pooled.only if last else table.judged[:, r])
        # A judge is never scored on questions that it was fitted on.
        if fitted := read_seen_units(table.store.conn, run):
            usable &= np.fromiter((u not in fitted for u in table.units), np.bool_, len(table.units))
        rows = np.flatnonzero(usable)
        codes_of_run = pooled.made.codes if last else labels_of_runs.codes[:, r]
        both = Ratings.from_codes(
            np.column_stack([codes_of_run[rows], truth.codes[rows]]), labels_of_runs.domain, [run, truth.word],
            clusters=numbers[rows], units=[table.units[at] for at in rows.tolist()],
        )  # fmt: skip
        measured += measures(both, [pair_kappa(level)], level=level, pairwise=False, field=field, **options)
    return truth.word, measured, remarks


def _mean(table: RunTable, each: tuple[FloatArray | None, ...]) -> tuple[FloatArray, list[str]]:
    """Return the mean probabilities of each unit. If some members are not calibrated, also return a note about them."""
    lacking = [run for run, p in zip(table.run_ids, each, strict=True) if p is None]
    if lacking:
        raise UsageError(
            f"run {lacking[0]} has no label probabilities, but --method mean requires them from every member; use --method majority"
        )
    total = np.zeros(each[0].shape if each[0] is not None else (0, 0))
    n = np.zeros(len(total))
    for p in each:
        assert p is not None
        defined = ~np.isnan(p[:, 0])
        total[defined] += p[defined]
        n += defined
    mean = np.divide(total, n[:, None], out=np.full_like(total, np.nan), where=n[:, None] > 0)
    # An overconfident member outweighs the others in a mean of probabilities.
    raw = [
        str(run["run_id"])
        for run in table.runs
        if json.loads(str(run["derived_from"] or "{}")).get("kind") != "calibrated"
    ]
    remarks = (
        [
            f"these members are not calibrated: {', '.join(raw)}; in a mean, the most confident member dominates even if it is "
            "wrong, so calibrate them first: "
            + command("judge calibrate", table.task.task_id, "--run", "RUN")
        ]
        if raw
        else []
    )
    return mean, remarks
