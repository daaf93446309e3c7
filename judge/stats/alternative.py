"""The alternative annotator test: can the judge replace a human annotator?

Calderon, Reichart & Dror 2025, arXiv 2501.10970, sections 3 and 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from judge.errors import BadInput, UsageError
from judge.notes import Note
from judge.stats.bootstrap import FEWEST_CLUSTERS
from judge.stats.multiple import benjamini_yekutieli
from judge.stats.patterns import n_present
from judge.stats.ratings import FloatArray, IntArray, Ratings

EPSILON = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}
# The authors require at least 30 items for the t-test (here questions, or units without clusters). With fewer items,
# the alt-test uses the signed-rank test, and condition (c) of the verdict stays open.
FEWEST_FOR_T_TEST = 30


def epsilon_of(given: str | float) -> tuple[float, str]:
    """Return epsilon and the word that specified it ("" if a number was given). Raises UsageError for an
    invalid epsilon.
    """
    try:
        value = EPSILON[given] if isinstance(given, str) and given in EPSILON else float(given)
    except (TypeError, ValueError):
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"--epsilon {given}: must be one of {', '.join(EPSILON)}, or a number from 0 to 1")
    return value, str(given) if given in EPSILON else ""


CLOSENESS = {
    "nominal": "the share of equal labels",
    "ordinal": "the distance between the labels' positions (root mean square)",
    "interval": "the distance between the numbers (root mean square)",
    "ratio": "the distance between the numbers (root mean square)",
}
# Up to this number of values, scipy also enumerates all choices of signs.
ALL_SIGNS = 13


@dataclass(frozen=True)
class Compared:
    """The comparison of the judge with one annotator.

    `judge_wins` is the share of units on which the judge is at least as close to the other annotators as this
    annotator is. `annotator_wins` is the share of units on which this annotator is at least as close to them
    as the judge is. Ties count in both shares. `error` is the standard error of annotator_wins - judge_wins.

    `test` is "t" or "wilcoxon". It is "none" for weighted units, which are not tested and have no p-value.
    `adjusted` is the Benjamini-Yekutieli p-value. `won` is the result of the paper's test. `lost` is the
    result of the opposite test, which is not in the paper: whether the annotator wins by more than epsilon.
    """

    annotator: str
    n_units: int
    n_clusters: int
    judge_wins: float
    annotator_wins: float
    error: float
    test: Literal["t", "wilcoxon", "none"]
    p_value: float | None
    adjusted: float | None
    won: bool
    lost: bool = False


@dataclass(frozen=True)
class AltTest:
    """The result of the alternative annotator test.

    `winning_rate` is the share of tested annotators that the judge beats, or None if no annotator was tested;
    `reason` then says why. `advantage` is the mean of `judge_wins`, or None if no annotator was compared.
    `skipped` lists the annotators who were not compared, each with the reason.

    A unit counts only if at least `least_others` annotators labelled it in addition to the compared
    annotator. `notes` describe differences from the paper in `least_others` or in the test.
    """

    judge: str
    epsilon: float
    q: float
    compared: tuple[Compared, ...]
    skipped: tuple[tuple[str, str], ...]
    least_others: int
    winning_rate: float | None = None
    advantage: float | None = None
    passed: bool | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()


def alt_test(
    ratings: Ratings,
    judge: str,
    annotators: Sequence[str] | None = None,
    *,
    epsilon: float = 0.2,
    q: float = 0.05,
    level: str = "nominal",
    least_others: int = 1,
    clustered: bool = True,
) -> AltTest:
    """Test for each annotator whether the judge is at least as close to the others as that annotator, within
    epsilon.

    Closeness is the share of equal labels (nominal) or the negative root mean square distance between
    positions (ordinal) or numbers (interval). H1: judge_wins > annotator_wins - epsilon, tested with a
    one-sided t-test of the differences, or with Wilcoxon's signed-rank test of the cluster means if there are
    fewer than 30 clusters. The judge passes if it wins against at least half of the annotators after the
    Benjamini-Yekutieli correction at level `q`. `epsilon` is an allowance for the cost of a human annotator:
    0.2 for experts, 0.15 for skilled annotators, 0.1 for a crowd. A unit counts if the judge, the annotator
    and at least `least_others` other annotators labelled it. The t-test is cluster-robust if the table has
    clusters. Otherwise, or if `clustered` is False, the test treats units as independent, like the test of
    the paper's authors.

    Raises BadInput if the judge is unknown, if there are fewer than two annotators, or if epsilon or q is
    outside 0..1.
    """
    names = [name for name in (annotators or ratings.annotators) if name != judge]
    if len(names) < 2:
        raise BadInput("the alt-test needs at least two annotators besides the judge")
    if not 0 <= epsilon <= 1 or not 0 < q < 1:
        raise BadInput("the alt-test needs an epsilon from 0 to 1, and a q greater than 0 and less than 1")
    if least_others < 1:
        raise BadInput(f"least_others must be at least 1 in the alt-test, not {least_others}")
    humans = ratings.select(names)
    verdicts = ratings.column(judge)
    values = _values(ratings, level)
    # Units of one question are alike. Treating them as independent would make the test easier to pass.
    by_question = ratings.clustered and clustered
    groups = ratings.clusters if by_question else np.arange(ratings.n_units)
    rows: list[Compared] = []
    skipped: list[tuple[str, str]] = []
    mirrored: list[float] = []
    for name in names:
        labels = humans.column(name)
        others = (humans.codes >= 0).sum(axis=1) - (labels >= 0)
        # The authors' code requires one other annotator, which reproduces all published winning rates. The paper's
        # text suggests two.
        used = (labels >= 0) & (verdicts >= 0) & (others >= least_others)
        clusters = groups[used]
        n, g = int(used.sum()), n_present(clusters)
        if g < FEWEST_CLUSTERS:
            kind = ("question" if by_question else "unit") + ("" if g == 1 else "s")
            who = "another annotator" if least_others == 1 else f"{least_others} other annotators"
            skipped.append((name, f"shares only {g} {kind} with the judge and {who}"))
            continue
        rest = humans.counts[used].astype(np.float64)
        # Annotators must not be compared with themselves, so their own votes are subtracted from the counts.
        rest[np.arange(n), labels[used]] -= 1
        of_judge, of_person = _closeness(verdicts[used], rest, values), _closeness(labels[used], rest, values)
        # Closeness is a quotient of floats, so equal values may differ in the last digit; ties count for both sides.
        judge_wins, person_wins = of_judge >= of_person - 1e-12, of_person >= of_judge - 1e-12
        difference = person_wins.astype(np.float64) - judge_wins
        error = _robust_error(difference, clusters)
        w = None if ratings.weights is None else ratings.weights[used]
        shares = float(np.average(judge_wins, weights=w)), float(np.average(person_wins, weights=w))
        if w is not None:
            rows.append(Compared(name, n, g, *shares, error, "none", None, None, False))
            continue
        p = _p_value(difference, clusters, error, epsilon, g)
        kind_of_test: Literal["t", "wilcoxon"] = "t" if g >= FEWEST_FOR_T_TEST else "wilcoxon"
        rows.append(Compared(name, n, g, *shares, error, kind_of_test, p, p, False))
        mirrored.append(_p_lost(difference, error, epsilon, g))
    untested = AltTest(judge, epsilon, q, tuple(rows), tuple(skipped), least_others)
    if not rows:
        other = "one other annotator" if least_others == 1 else f"{least_others} other annotators"
        reason = f"no annotator shares {FEWEST_CLUSTERS} units with the judge and {other}"
        return replace(
            untested, reason=reason, notes=_notes(least_others, (), by_question, ratings.clustered)
        )
    if ratings.weights is not None:
        # As in the verdict: a single unit with a large weight would decide the test.
        advantage = float(np.mean([row.judge_wins for row in rows]))
        reason = (
            "the units were drawn with unequal probabilities, so their shares are weighted and not tested"
        )
        return replace(untested, advantage=advantage, reason=reason)
    adjusted = benjamini_yekutieli([row.p_value for row in rows if row.p_value is not None]).tolist()
    lost = benjamini_yekutieli(mirrored) <= q
    compared = tuple(
        replace(row, adjusted=a, won=a <= q, lost=bool(b))
        for row, a, b in zip(rows, adjusted, lost, strict=True)
    )
    rate = sum(row.won for row in compared) / len(compared)
    advantage = sum(row.judge_wins for row in compared) / len(compared)
    notes = _notes(least_others, compared, by_question, ratings.clustered)
    return replace(
        untested,
        compared=compared,
        winning_rate=rate,
        advantage=advantage,
        passed=rate >= 0.5,
        notes=notes,
    )


def _notes(
    least_others: int, compared: Sequence[Compared], clustered: bool, could_cluster: bool
) -> tuple[str, ...]:
    notes = [Note("least_others", n=least_others)] if least_others > 1 else []
    few = [row.n_clusters for row in compared if row.test == "wilcoxon"]
    if few:
        counts = {"n": len(few), "of": len(compared), "fewest": min(few), "least": FEWEST_FOR_T_TEST}
        notes.append(Note("signed_rank", **counts, noun="question" if clustered else "unit"))
    if clustered:
        notes.append(Note("by_question"))
    elif could_cluster:
        notes.append(Note("by_unit"))
    return tuple(notes)


def _values(ratings: Ratings, level: str) -> FloatArray | None:
    if level == "nominal":
        return None
    if level == "ordinal":
        return np.arange(len(ratings.domain), dtype=np.float64)
    if level == "interval":
        return ratings.numbers(level)
    raise BadInput(
        f"the alt-test does not support the level '{level}'; available: nominal, ordinal and interval"
    )


def _closeness(codes: IntArray, rest: FloatArray, values: FloatArray | None) -> FloatArray:
    """Return, for each unit, how close one label is to the other annotators' labels (given as counts)."""
    m = rest.sum(axis=1)
    if values is None:
        share: FloatArray = rest[np.arange(len(codes)), codes] / m
        return share
    squared = (values[codes][:, None] - values[None, :]) ** 2
    distance: FloatArray = -np.sqrt((squared * rest).sum(axis=1) / m)
    return distance


def _robust_error(difference: FloatArray, clusters: IntArray) -> float:
    """Return the standard error of the mean. With one unit per cluster it is s / sqrt(n)."""
    totals = np.bincount(clusters, weights=difference - difference.mean())
    g = n_present(clusters)
    return float(np.sqrt(g / (g - 1) * (totals**2).sum()) / len(difference))


def _p_value(difference: FloatArray, clusters: IntArray, error: float, epsilon: float, g: int) -> float:
    """Return the one-sided p-value of H1: mean difference < epsilon."""
    if g < FEWEST_FOR_T_TEST:
        from scipy.stats import wilcoxon  # the import takes a second

        sizes = np.bincount(clusters)
        means = np.bincount(clusters, weights=difference)[sizes > 0] / sizes[sizes > 0]
        # The signed-rank test leaves zeros out, and with zeros only it is undefined.
        if np.allclose(means, epsilon):
            return 1.0
        moved = means - epsilon
        if len(moved) <= ALL_SIGNS:
            return _exact_signed_rank(moved)
        return float(wilcoxon(moved, alternative="less").pvalue)
    return _t_below_zero(float(difference.mean()) - epsilon, error, g)


def _p_lost(difference: FloatArray, error: float, epsilon: float, g: int) -> float:
    """Return the t-test's one-sided p-value of H1: mean difference > epsilon.

    The p-value is 1 if there are too few questions for the test.
    """
    # The signed-rank test rejects too often on few questions, so it must not call a judge worse.
    if g < FEWEST_FOR_T_TEST:
        return 1.0
    return _t_below_zero(epsilon - float(difference.mean()), error, g)


def _t_below_zero(distance: float, error: float, g: int) -> float:
    """Return the one-sided p-value of a t-test of H1: the mean is below 0.

    `distance` is the estimated mean, `error` is its standard error, and `g` is the number of clusters.
    """
    # No cluster differs from another: the quotient below would be 0 / 0.
    if error < 1e-15:
        return 0.0 if distance < 0 else 1.0
    from scipy.special import stdtr

    return float(stdtr(g - 1, distance / error))


def _exact_signed_rank(values: FloatArray) -> float:
    """Return P(sum of the positive ranks <= the observed sum) when every sign is as likely as its opposite.

    The result equals scipy's `wilcoxon` for small samples. Ties are allowed, and zeros are left out.
    """
    from scipy.stats import rankdata

    # scipy ranks anew for each of the 2^n choices of signs, which took most of a report's time with many annotators.
    values = values[values != 0]
    ranks = rankdata(np.abs(values))
    sums = np.zeros(1)
    for rank in ranks:
        sums = np.concatenate([sums, sums + rank])
    return float((sums <= ranks[values > 0].sum() + 1e-9).mean())
