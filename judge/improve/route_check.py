"""Check the promise of a stored route on labels that have not been used to test this promise before."""

import json
from dataclasses import asdict, dataclass
from itertools import compress

import numpy as np

from judge import derive
from judge.commands import command
from judge.errors import UsageError
from judge.improve.route import among, confidences, mask_fitted
from judge.labels.batches import design
from judge.stats import MISSING
from judge.stats.selective import disagreement_p
from judge.store.derived import folds
from judge.store.export import find_named_run
from judge.store.study import Store
from judge.types import GOLD, Json


@dataclass(frozen=True, slots=True)
class RouteCheck:
    """The result of checking a route's promise on new labels.

    `p` is the p value of the test that can confirm the promise. Its null hypothesis is that the agreement is
    too low. `p_broken` is the p value of the test that can show that the promise is broken. Its null
    hypothesis is that the agreement is high enough.
    """

    run: str
    field: str
    reference: str
    agree: float
    level: float
    units: int
    questions: int
    wrong: int
    p: float
    p_broken: float
    since: str | None = None

    @property
    def holds(self) -> bool:
        """Whether the labels confirm the promise."""
        return self.p <= self.level

    @property
    def is_broken(self) -> bool:
        """Whether the labels show that the promise is broken."""
        return self.p_broken <= self.level

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        return {**asdict(self), "holds": self.holds, "broken": self.is_broken}


def check_again(store: Store, run: str, since: str | None = None) -> RouteCheck:
    """Test the promise of a stored route again, on units that it accepts and that have new labels.

    A label is new if its question was not used to test the route. The labelled units must have been drawn
    with equal probability, as for the first test of the route. With `since` (a date such as 2026-11-01), only
    units that the route's first judge labelled on or after that day are used. Older units would delay the
    detection of a change in the judge. Raises UsageError if the run is not a route.
    """
    made = find_named_run(store, run)
    info = json.loads(made["derived_from"] or "{}")
    if info.get("method") != "threshold" or info.get("kind") != "routed":
        raise UsageError(
            f"--check {run}: this run is not a route; to list the stored routes: {command('judge runs list')}"
        )
    given, [field] = info["parameters"], info["fields"]
    parents = [parent["run"] for parent in info["parents"]]
    table = derive.read_runs(store, parents, field)
    labels = table.labels(field)
    truth = derive.reference(store, table, field, given["reference"])
    if truth is None:
        raise UsageError(f"--check {run}: the study no longer has human or gold labels for '{field}'")
    numbers, names = table.questions
    accepted, which = np.zeros(len(numbers), dtype=np.bool_), np.zeros(len(numbers), dtype=np.int64)
    for j, (threshold, believed) in enumerate(zip(given["thresholds"], given["believed"], strict=True)):
        sure = confidences(labels, j)
        # Without a threshold, all labels of a believed judge are accepted.
        here = ~np.isnan(sure) & ~accepted & believed & (np.nan_to_num(sure) >= (threshold or 0.0))
        accepted |= here
        which[here] = j
    used = folds(store.conn, made["run_id"])
    fresh = accepted & (truth.codes != MISSING) & ~mask_fitted(store, table)
    # The promise holds on the questions that it was tested on, so they would confirm it again.
    fresh &= ~np.array([name in used for name in names], dtype=np.bool_)[numbers]
    if since is not None:
        query = "SELECT unit_id FROM latest_judgements WHERE run_id = ? AND judged_at >= ?"
        newer = {unit for (unit,) in store.conn.execute(query, [parents[0], since])}
        fresh &= among(table, newer)
    chosen = design(store, field, frozenset(compress(table.units, fresh.tolist())), people=truth.word != GOLD)
    fresh &= among(table, chosen.honest)
    codes = np.where(which == 1, labels.codes[:, -1], labels.codes[:, 0])
    wrong, clusters = (codes != truth.codes)[fresh], numbers[fresh]
    return RouteCheck(
        made["run_id"],
        field,
        truth.word,
        given["agree"],
        1 - given["confidence"],
        int(fresh.sum()),
        len(np.unique(clusters)),
        int(wrong.sum()),
        disagreement_p(wrong, clusters, 1 - given["agree"]),
        disagreement_p(~wrong, clusters, given["agree"]),
        since,
    )
