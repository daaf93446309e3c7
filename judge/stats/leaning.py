"""People who do not bear a judge's agreement out where others agree with it: do the others know, or did they copy?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from judge.stats.conditions import DIGITS, ConditionArrays, rule
from judge.stats.pairwise import ALIKE
from judge.stats.ratings import MISSING, BoolArray, FloatArray, IntArray, Ratings
from judge.stats.verdict_inputs import DISTRUST, FEWEST_QUESTIONS, Limits, case, sums

FEW = 0.2
"""Fewer than this share of the people may fail to bear a judge out: one of six, not one of five."""
KNOWS = 0.9
"""Confidence at which somebody who does not bear the judge out is seen to agree with others: here silence is the risk."""


@dataclass(frozen=True)
class Leaning:
    """`people` agree with the judge, by `agreement`; the `others` do not (`rest`)."""

    people: tuple[str, ...]
    others: tuple[str, ...]
    agreement: float
    rest: float


class LeaningArrays(NamedTuple):
    """`far` [studies, people]: who does not bear the judge out; `carried` [studies]: the rest may have copied it.
    `agreement` of the judge with those who do, and with the far."""

    far: BoolArray
    carried: BoolArray
    agreement: FloatArray
    rest: FloatArray


def leaning(
    ratings: Ratings, judge: str, people: Sequence[str], limits: Limits, name: str, level: str
) -> Leaning | None:
    """Those who alone carry the judge's agreement with people; None where the others bear it out."""
    if len(people) < 2:
        return None
    weights = case(ratings, judge, people, name=name, level=level).sums.agreement
    codes = ratings.select(people).codes[None]
    found = carried(ratings.column(judge)[None], codes, ratings.clusters, weights, limits)
    if not found.carried[0]:
        return None
    far = found.far[0].tolist()
    return Leaning(
        tuple(p for p, is_far in zip(people, far, strict=True) if not is_far),
        tuple(p for p, is_far in zip(people, far, strict=True) if is_far),
        float(found.agreement[0]),
        float(found.rest[0]),
    )


def carried(
    judge: IntArray, people: IntArray, clusters: IntArray, agreement: FloatArray, limits: Limits
) -> LeaningArrays:
    """Codes of the judge [studies, units] and of people [studies, units, people], as `sums` takes them.

    A judge that knows something agrees with everybody who does. Far are those whose agreement with it lies, with its
    whole interval, below that of the other people. The judge is carried by the rest where one of the far has no skill
    seen in it (condition b), or two of them or more would distrust it. One without may be somebody who guesses: that is
    believed where nobody else agrees with them either, and the rest, below ALIKE, agree with each other beyond
    what the judge's labels explain, which copies of it do not.
    """
    everybody = range(people.shape[2])

    def found(by: IntArray, of: IntArray, limits: Limits = limits, fewest: int = 1) -> ConditionArrays:
        return rule(sums(by, of, clusters, agreement, 1 - agreement, fewest=fewest), limits)

    def only(who: BoolArray) -> IntArray:
        return np.where(who[:, None, :], people, MISSING)

    but = [only(np.arange(len(everybody))[None] != i) for i in everybody]
    alone = [found(judge, people[:, :, [i]]) for i in everybody]
    # Kappa is the same both ways, its interval is not: it asks how often `of` gives the rarer labels. The narrower one
    # is taken: from somebody who gives three of them it is so wide that nobody is far.
    turned = [found(people[:, :, i], judge[:, :, None]) for i in everybody]
    low = np.stack([np.fmax(f.skill.low, t.skill.low) for f, t in zip(alone, turned, strict=True)], axis=1)
    high = np.stack([np.fmin(f.skill.high, t.skill.high) for f, t in zip(alone, turned, strict=True)], axis=1)
    questions = np.stack([f.questions for f in alone], axis=1)
    of_rest = np.stack([found(judge, rest).agreement.value for rest in but], axis=1)
    far = (questions >= FEWEST_QUESTIONS) & (high < of_rest)
    near = only(~far)
    with_near, with_far = (found(judge, of).agreement.value for of in (near, only(far)))
    unborne = far & (low <= 0)
    sure = replace(limits, skill_confidence=KNOWS)
    knows = np.stack([found(people[:, :, i], but[i], sure).skill.low > 0 for i in everybody], axis=1)
    guesses = (
        ~knows & ((_beyond(judge, near, clusters, agreement, limits) > 0) & (with_near < ALIKE))[:, None]
    )
    doubted = (unborne & ~guesses).sum(axis=1) >= FEW * len(everybody)
    distrusted = (far.sum(axis=1) > 1) & (found(judge, only(far), fewest=2).decision == DISTRUST)
    return LeaningArrays(far, far.any(axis=1) & (doubted | distrusted), with_near, with_far)


def _beyond(
    judge: IntArray, people: IntArray, clusters: IntArray, agreement: FloatArray, limits: Limits
) -> FloatArray:
    """The lower bound [studies] of how far people agree beyond what they would if each looked at the judge's label alone.

    (A - E) / (1 - E), where E is the agreement of two people who are independent given that label (Dawid 1979).
    """
    from scipy.special import stdtrit

    n = len(agreement)
    votes = np.stack([(people == code).sum(axis=2) for code in range(n)], axis=-1).astype(np.float64)
    m = votes.sum(axis=-1)
    used = (m > 1) & (judge != MISSING)
    alike = np.where(used, (votes * (votes @ agreement)).sum(axis=-1) - m, 0.0) / np.where(
        used, m * (m - 1), 1.0
    )
    by_label = votes / np.where(used, m, np.inf)[..., None]
    given = ((judge[..., None] == np.arange(n))[..., None] * by_label[..., None, :]).reshape(
        *used.shape, n * n
    )
    order = np.argsort(clusters, kind="stable")
    starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
    rows = np.concatenate([used[..., None], alike[..., None], given], axis=-1)[:, order]
    rows = np.add.reduceat(rows, starts, axis=1)

    def value(total: FloatArray) -> FloatArray:
        table = total[..., 2:].reshape(*total.shape[:-1], n, n)
        says = np.maximum(table.sum(axis=-1), 1e-300)
        expected = (((table @ agreement) * table).sum(axis=-1) / says).sum(axis=-1) / total[..., 0]
        return np.asarray((total[..., 1] / total[..., 0] - expected) / (1 - expected))

    there = rows[..., 0] > 0
    questions = there.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        all_but = np.where(there, value(rows.sum(axis=1, keepdims=True) - rows), 0.0)
        around = np.where(there, all_but - (all_but.sum(axis=1) / questions)[:, None], 0.0)
        error = np.sqrt((questions - 1) / questions * (around**2).sum(axis=1))
        reach = stdtrit(np.maximum(questions - 1, 1), (1 + limits.confidence) / 2) * error
        bound: FloatArray = np.round(value(rows.sum(axis=1)) - reach, DIGITS)
    return bound
