"""Conformal label sets: sets of labels that contain the true label with a guaranteed probability.

`thresholds` calibrates on one half of the questions. `members` forms the sets {k: score(k) <= threshold} on
the other half, and `judge.papers.urag` measures these sets. The caller splits by question, so that no
question is in both halves. The guarantee holds for exchangeable questions. With `exact`, sets can be empty.

LAC: Sadinle, Lei & Wasserman 2019. APS: Romano, Sesia & Candes 2020 (arXiv 2006.02544), not randomised.
`urag_repo` reproduces the code of URAG (arXiv 2603.19281), for comparison with its tables.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from judge.errors import BadInput
from judge.stats.patterns import n_present
from judge.stats.ratings import BoolArray, FloatArray, IntArray

Score = Literal["lac", "aps"]
Convention = Literal["exact", "urag_repo"]
# A threshold is one of the scores, and rounding must not decide whether that score reaches it.
TOLERANCE = 1e-12
# With fewer calibration questions the realised coverage may lie far from the requested one.
ENOUGH_CALIBRATION = 100


def note_few_questions(
    questions: IntArray, codes: IntArray, labels: Sequence[object] = (), alpha: float = 0.1
) -> tuple[str, ...]:
    """Return notes on calibration with fewer than ENOUGH_CALIBRATION questions: one note for each label in
    `labels`, which are calibrated separately.

    Over repeated calibrations with n questions, the coverage of the sets is distributed as Beta(k, n + 1 - k)
    (Vovk 2012).
    """
    groups: list[tuple[str, BoolArray]] = [("", np.ones(len(codes), dtype=bool))]
    if len(labels):
        groups = [(f" with the label '{label}'", codes == k) for k, label in enumerate(labels)]
    notes = []
    for suffix, mask in groups:
        n, units = n_present(questions[mask]), int(mask.sum())
        if n >= ENOUGH_CALIBRATION:
            continue
        counted = f"only {n} calibration question{'' if n == 1 else 's'}{suffix}"
        if _rank(units, alpha) > units:
            full = "the label is in every set" if suffix else "every set is full"
            notes.append(f"{counted}: too few for any threshold, so {full}")
            continue
        k = _rank(n, alpha)
        # The units give a threshold, but there are too few questions for a statement about its coverage.
        if k > n:
            notes.append(f"{counted}: too few to state the coverage of such sets")
            continue
        from scipy.special import betaincinv

        low, high = (float(betaincinv(k, n + 1 - k, level)) for level in (0.05, 0.95))
        notes.append(
            f"{counted}: the coverage of such sets is between {low:.0%} and {high:.0%} in nine of ten calibrations"
        )
    return tuple(notes)


def _rank(n: int, alpha: float) -> int:
    """Return the rank of the threshold among n sorted calibration scores, counting from 1."""
    # (n + 1)(1 - alpha) is a whole number for the usual n, and 1 - 0.1 is not exact.
    return int(np.ceil((n + 1) * (1 - alpha) - 1e-9))


def thresholds(
    probabilities: FloatArray,
    codes: IntArray,
    score: Score = "lac",
    alpha: float = 0.1,
    convention: Convention = "exact",
    *,
    by_class: bool = False,
) -> FloatArray:
    """Return the threshold for each label, `[labels]`. With `by_class`, each threshold is computed only from
    the units with that label; otherwise all labels share one threshold.

    `probabilities` has the shape [units, labels], and `codes` are the true labels. With `by_class`, the
    guarantee holds for each label, not only on average (Vovk 2012, arXiv 1209.2673). A label with too few
    calibration units is in every set. Raises the same errors as `threshold`, and BadInput for `by_class` with
    a convention other than exact.
    """
    n_labels = probabilities.shape[1]
    if not by_class:
        return np.full(n_labels, calibrate_threshold(probabilities, codes, score, alpha, convention))
    if convention != "exact":
        raise BadInput(
            f"label-by-label calibration of conformal sets requires the convention 'exact', not '{convention}'"
        )
    return np.array(
        [
            calibrate_threshold(probabilities[codes == k], codes[codes == k], score, alpha)
            # Without calibration units, no threshold can guarantee a coverage, so the label is in every set.
            if (codes == k).any()
            else np.inf
            for k in range(n_labels)
        ]
    )


def calibrate_threshold(
    probabilities: FloatArray,
    codes: IntArray,
    score: Score = "lac",
    alpha: float = 0.1,
    convention: Convention = "exact",
) -> float:
    """Return the threshold for the scores of the true labels. Raises the same errors as `threshold`."""
    true = np.take_along_axis(nonconformity(probabilities, score, convention), codes[:, None], axis=1)[:, 0]
    return threshold(true, alpha, convention)


def members(
    probabilities: FloatArray,
    limit: float | FloatArray,
    score: Score = "lac",
    convention: Convention = "exact",
) -> BoolArray:
    """Return the sets `[units, labels]` for one threshold, or for one threshold per label."""
    inside: BoolArray = nonconformity(probabilities, score, convention) <= limit + TOLERANCE
    if convention == "urag_repo" and score == "aps" and len(inside):
        # The repository puts the most probable label into an empty set.
        blank = ~inside.any(axis=1)
        inside[blank, _descending(probabilities)[blank, 0]] = True
    return inside


def nonconformity(
    probabilities: ArrayLike, score: Score = "lac", convention: Convention = "exact"
) -> FloatArray:
    """Return the nonconformity score of each label, `[units, labels]`: a larger score means a worse fit.

    LAC: 1 - p_k. APS: the total probability of all labels at least as likely as k, including k. Under
    `exact`, labels of equal probability have equal scores. Under `urag_repo`, they are ordered by a reversed
    argsort.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if score == "lac":
        lac: FloatArray = 1 - p
        return lac
    if score != "aps":
        raise BadInput(f"unknown score '{score}'; available: lac and aps")
    if convention == "exact":
        at_least: FloatArray = np.where(p[:, None, :] >= p[:, :, None], p[:, None, :], 0.0).sum(axis=2)
        return at_least
    order = _descending(p)
    cumulative = np.take_along_axis(p, order, axis=1).cumsum(axis=1)
    return np.take_along_axis(cumulative, np.argsort(order, axis=1), axis=1)


def threshold(scores: ArrayLike, alpha: float = 0.1, convention: Convention = "exact") -> float:
    """Return the largest score at which a label is still in the set, computed from the calibration scores of
    the true labels.

    `exact`: the k-th smallest score, with k = ceil((n + 1)(1 - alpha)). It is inf (the full set) if k > n, i.e.
    if n < 1/alpha - 1.

    `urag_repo`: numpy's quantile(ceil((n + 1)(1 - alpha)) / n, method="higher"), which is one rank higher. If
    that rank exceeds the number of scores, the largest score is used.

    Raises BadInput if there are no scores, alpha is outside (0, 1), or the convention is unknown.
    """
    s = np.sort(np.asarray(scores, dtype=np.float64))
    n = len(s)
    if not n:
        raise BadInput("conformal sets need at least one calibration unit")
    if not 0 < alpha < 1:
        raise BadInput(f"alpha must be between 0 and 1, not {alpha}")
    k = _rank(n, alpha)
    if convention == "exact":
        return float(s[k - 1]) if k <= n else float("inf")
    if convention != "urag_repo":
        raise BadInput(f"unknown convention '{convention}'; available: exact and urag_repo")
    # The repository's rule is one rank higher; it is repeated so that results can be compared with its tables.
    return float(np.quantile(s, min(1.0, float(np.ceil((n + 1) * (1 - alpha))) / n), method="higher"))


def _descending(p: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    return np.argsort(p, axis=1)[:, ::-1]
