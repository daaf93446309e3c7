"""What a verdict on a judge still needs: for each person of the alt-test, or for the one comparison that decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal, Unpack

from judge.errors import BadInput
from judge.stats.alternative import ENOUGH, AltTest, comparable, to_win
from judge.stats.bootstrap import FEWEST_CLUSTERS, NO_WIDTH, How
from judge.stats.decision import MARGIN, THRESHOLD, Decision, Verdict, verdict
from judge.stats.patterns import n_present
from judge.stats.planning import still_needed
from judge.stats.ratings import Ratings
from judge.types import Measure

Regime = Literal["alt_test", "difference", "threshold"]


@dataclass(frozen=True)
class Needed:
    """One comparison: what `annotators` have labelled so far, and what is missing for it to decide.

    `value` is held against `limit`: the gap annotator_wins - judge_wins of a person against epsilon (the judge
    wins below it), else the difference or the agreement against the margin or the threshold. `more_*`
    are None where no number of labels decides; `why` says so, or says what is there.
    """

    annotators: tuple[str, ...]
    value: float | None
    limit: float
    n_clusters: int
    n_units: int
    more_clusters: int | None
    more_units: int | None
    why: str


@dataclass(frozen=True)
class VerdictPlan:
    """`rows` are the comparisons that the rule rests on, `more_*` what it needs over all of them: the questions
    and units that each of `people_needed` people still labels; 0 when decided, None when no number decides."""

    judge: str
    regime: Regime
    verdict: Verdict
    rows: tuple[Needed, ...]
    people_needed: int
    more_clusters: int | None
    more_units: int | None
    assumed: tuple[str, ...]

    @property
    def decision(self) -> Decision:
        """The verdict on the labels there are."""
        return self.verdict.decision


def plan_verdict(
    ratings: Ratings,
    judge: str,
    people: Sequence[str] = (),
    *,
    reference: str | None = None,
    epsilon: float = 0.2,
    margin: float = MARGIN,
    threshold: float = THRESHOLD,
    name: str = "cohen_kappa",
    level: str = "nominal",
    power: float = 0.8,
    **how: Unpack[How],
) -> VerdictPlan:
    """What `verdict` with the same arguments still needs to decide, with this chance, if the values stay.

    Raises BadInput as `verdict` does, and for a power that is not between 1/2 and 1: with less, fewer labels
    than there are would do.
    """
    if not 0.5 <= power < 1:
        raise BadInput(f"a verdict is planned with a chance from 0.5 and below 1, not {power:g}")
    found = verdict(
        ratings,
        judge,
        people,
        reference=reference,
        epsilon=epsilon,
        margin=margin,
        threshold=threshold,
        name=name,
        level=level,
        **how,
    )
    if found.alt_test is not None:
        return _by_alt_test(ratings, found, found.alt_test, people, power)
    (measure,) = found.measures
    regime: Regime = "threshold" if found.comparison is None else "difference"
    limit = threshold if found.comparison is None else margin
    row = _of_measure(found, measure, limit, power)
    others = [person for person in row.annotators if person != judge]
    assumed = [
        f"new units and questions will be like the {row.n_units:,} units of {row.n_clusters:,} questions there are, "
        f"and the {measure.measure} will stay what it is",
        f"{' and '.join(others)} label{'s' if len(others) == 1 else ''} the new units, and so does {judge}",
        f"the interval narrows with the root of the number of questions; {FEWEST_CLUSTERS} are the fewest that decide",
        f"the chance of a decision then is {100 * power:g} %",
    ]
    return VerdictPlan(
        judge, regime, found, (row,), len(others), row.more_clusters, row.more_units, tuple(assumed)
    )


def _of_measure(found: Verdict, measure: Measure, limit: float, power: float) -> Needed:
    n, units = measure.n_clusters or 0, measure.n_units

    def row(more: tuple[int, int] | None, why: str) -> Needed:
        clusters, more_units = more if more is not None else (None, None)
        who = measure.annotators or ()
        return Needed(who, measure.value, limit, n, units, clusters, more_units, why)

    if found.decision != "undecided":
        return row((0, 0), "decided")
    if measure.value is None:
        return row(None, f"undefined: {measure.reason}")
    if measure.low is None or n < FEWEST_CLUSTERS:
        return row(_whole(found), f"too few for an interval: plan again with {ENOUGH} questions")
    if NO_WIDTH in measure.notes:
        return row(None, f"{NO_WIDTH}, so it says nothing of the next question")
    more = still_needed(measure, limit, power=power)
    if more is None:
        return row(None, "the value is the limit: no number of labels decides that")
    return row((max(1, more[0]), max(1, more[1])), "undecided")


def _by_alt_test(
    ratings: Ratings, found: Verdict, test: AltTest, people: Sequence[str], power: float
) -> VerdictPlan:
    rows = []
    for row in test.compared:
        gap = row.annotator_wins - row.judge_wins
        more = to_win(row, test, power)
        if more is None:
            why = "the gap is not below epsilon: more labels win nothing"
        elif row.won and more[0]:
            why = f"won, but on fewer than {ENOUGH} questions"
        else:
            why = "won" if row.won else "not won yet"
        clusters, units = more if more is not None else (None, None)
        rows.append(
            Needed((row.annotator,), gap, test.epsilon, row.n_clusters, row.n_units, clusters, units, why)
        )
    humans = ratings.select([person for person in people if person != test.judge])
    for name, reason in test.skipped:
        used = comparable(humans, ratings.column(test.judge), name, test.least_others)
        g, n = n_present(ratings.clusters[used]), int(used.sum())
        clusters = max(1, ENOUGH - g)
        units = ceil(clusters * n / g) if g else clusters
        rows.append(Needed((name,), None, test.epsilon, g, n, clusters, units, f"not tested: {reason}"))
    # Three people make a test; of more, half of those tested have to be won.
    half = ceil(max(3, len(test.compared)) / 2)
    whole: tuple[int, int] | None = (0, 0) if found.decision != "undecided" else _whole(found)
    assumed = (
        "new units will be like those there are: each gap stays what it is, and so does its spread between questions",
        f"every new unit is labelled by {test.judge} and by {test.least_others} other people beside the person",
        f"half of the people tested have to be won, at the Benjamini-Yekutieli limit of q = {test.q:g} for that many; "
        f"on fewer than {ENOUGH} questions no win counts",
        f"the chance of a win for each person then is {100 * power:g} %",
    )
    if found.decision == "undecided" and len(test.compared) >= 3:
        known = sorted(
            (row.more_clusters, row.more_units or 0)
            for row in rows
            if row.value is not None and row.more_clusters is not None
        )
        whole = known[half - 1] if len(known) >= half else None
    clusters, units = whole if whole is not None else (None, None)
    # A unit counts for a person when others labelled it too.
    people_needed = max(half, 1 + test.least_others)
    return VerdictPlan(
        test.judge,
        "alt_test",
        found,
        tuple(rows),
        people_needed,
        clusters,
        units,
        assumed,
    )


def _whole(found: Verdict) -> tuple[int, int] | None:
    if found.more_clusters is None or found.more_units is None:
        return None
    return found.more_clusters, found.more_units
