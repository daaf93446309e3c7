"""Calibrate a judge's label probabilities with batch calibration, temperature scaling or isotonic regression.

The functions `fit_*` accept probabilities [units, labels] and codes [units] without missing values.
`Fit.apply` accepts any probabilities, and returns rows that sum to 1; rows of nan stay nan.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from judge.errors import BadInput
from judge.stats.ratings import FloatArray, IntArray
from judge.stats.reliability import across, scale, softmax, temperature

TINY = 1e-9
# Weight of the penalty RIDGE * |bias|^2: an unused label gets a bias near -ln(n / 0.02), not minus infinity.
RIDGE = 0.02
# Parameters are fitted on at most this number of units, drawn at random: more units would not change a printed digit.
ENOUGH = 200_000


@dataclass(frozen=True)
class Fit:
    """A fitted calibration: `temperature` and `bias` (in nats, one per label, mean 0), or the `steps` (x, y)
    of isotonic regression.
    """

    temperature: float = 1.0
    bias: tuple[float, ...] = ()
    steps: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    why: str = ""
    """The reason why no calibration could be fitted, or "". Without a fit, `apply` returns the probabilities
    unchanged.
    """

    def apply(self, probabilities: FloatArray) -> FloatArray:
        """Return the calibrated probabilities."""
        if self.steps is not None:
            second = np.interp(probabilities[:, 1], *self.steps)
            return np.column_stack([1 - second, second])
        logits = np.log(np.maximum(probabilities, TINY)) / self.temperature
        return (
            softmax(logits + np.asarray(self.bias)) if self.bias else scale(probabilities, self.temperature)
        )


def find_most_probable(probabilities: FloatArray, otherwise: IntArray | int) -> IntArray:
    """Return the most probable label of each unit, or `otherwise` for a unit without probabilities."""
    best: IntArray = np.where(
        np.isnan(probabilities[:, 0]), otherwise, np.nan_to_num(probabilities).argmax(axis=1)
    )
    return best


def fit_batch(probabilities: FloatArray, prior: FloatArray) -> Fit:
    """Fit batch calibration: subtract the log of the mean probabilities from ln p, and add the log of a
    target `prior`.

    Zhou et al. 2023, arXiv 2309.17249, eq. 3-5.
    """
    known = probabilities[~np.isnan(probabilities[:, 0])]
    if not len(known):
        raise BadInput("batch calibration needs probabilities")
    # The paper assumes equal label shares. With a class of 5 %, this assumption lowered kappa from .51 to .19, so the
    # caller passes the prior.
    bias = np.log(np.maximum(prior, TINY)) - np.log(np.maximum(known.mean(axis=0), TINY))
    return Fit(bias=tuple((bias - bias.mean()).tolist()))


def fit_bias(probabilities: FloatArray, codes: IntArray) -> Fit:
    """Fit bias-corrected temperature scaling: softmax(w ln p + b) by maximum likelihood.

    Alexandari et al. 2020, arXiv 1901.06852, section 3.2, with w >= 0 and a weak penalty on b.
    """
    p, y = _select_rows(probabilities, codes)
    n, k = p.shape
    logits = np.log(np.maximum(p, TINY))
    logits -= (across(np.add, logits) / k)[:, None]
    hot = np.eye(k)[y]
    theta = np.zeros(k + 1)
    theta[0] = 1.0

    def loss(at: FloatArray) -> float:
        z = at[0] * logits + at[1:]
        top = across(np.maximum, z)
        total = np.log(across(np.add, np.exp(z - top[:, None]))) + top
        return float((total - z[np.arange(n), y]).sum() + RIDGE * (at[1:] @ at[1:]))

    best = loss(theta)
    for _ in range(50):
        q = softmax(theta[0] * logits + theta[1:])
        gradient = np.concatenate(
            [[((q - hot) * logits).sum()], (q - hot).sum(axis=0) + 2 * RIDGE * theta[1:]]
        )
        mean = across(np.add, q * logits)
        cross = (q * (logits - mean[:, None])).sum(axis=0)
        hessian = np.empty((k + 1, k + 1))
        hessian[0, 0] = (q * logits**2).sum() - (mean**2).sum()
        hessian[0, 1:] = hessian[1:, 0] = cross
        hessian[1:, 1:] = np.diag(q.sum(axis=0) + 2 * RIDGE) - q.T @ q
        # At the bound w = 0, if the gradient points below the bound, only the biases are updated.
        free = slice(1, None) if theta[0] <= 0 and gradient[0] > 0 else slice(None)
        step = np.zeros(k + 1)
        step[free] = np.linalg.lstsq(hessian[free, free] + 1e-9 * np.eye(k + 1)[free, free], gradient[free])[
            0
        ]
        size = 1.0
        # A full Newton step can overshoot where probabilities are near 0 or 1; halving it keeps the loss falling.
        while size > 1e-6:
            tried = theta - size * step
            # A negative w would reverse the labels of a judge that is mostly wrong.
            tried[0] = max(tried[0], 0.0)
            if (tried_loss := loss(tried)) <= best:
                break
            size /= 2
        else:
            break
        done = best - tried_loss < 1e-10 * n
        theta, best = tried, tried_loss
        if done:
            break
    if theta[0] < 1e-3:
        # The probabilities carry no information: every unit gets the label shares.
        shares = np.log(np.bincount(y, minlength=k) + 0.5)
        return Fit(1000.0, tuple((shares - shares.mean()).tolist()))
    bias = theta[1:] - theta[1:].mean()
    return Fit(float(1 / theta[0]), tuple(bias.tolist()))


def fit_temperature(probabilities: FloatArray, codes: IntArray) -> Fit:
    """Fit temperature scaling (Guo et al. 2017, arXiv 1706.04599). It does not change the most probable label."""
    fitted, reason = temperature(*_select_rows(probabilities, codes))
    return Fit(why=reason or "") if fitted is None else Fit(fitted)


def fit_isotonic(probabilities: FloatArray, codes: IntArray) -> Fit:
    """Fit isotonic regression to the probability of the second of two labels (Zadrozny and Elkan 2002).

    Raises BadInput unless there are two labels.
    """
    if probabilities.shape[1] != 2:
        raise BadInput(f"isotonic calibration needs exactly two labels, not {probabilities.shape[1]}")
    # The import takes a second or more.
    from sklearn.isotonic import isotonic_regression

    x, inverse, count = np.unique(probabilities[:, 1], return_inverse=True, return_counts=True)
    y = np.bincount(inverse, weights=(codes == 1).astype(np.float64)) / count
    fitted = isotonic_regression(y, sample_weight=count)
    # Values stay half a unit away from 0 and 1: a 0 or 1 from a few units would give an infinite log loss.
    edge = 0.5 / len(codes)
    return Fit(steps=(tuple(x.tolist()), tuple(np.clip(fitted, edge, 1 - edge).tolist())))


def _select_rows(probabilities: FloatArray, codes: IntArray) -> tuple[FloatArray, IntArray]:
    if not len(codes):
        raise BadInput("a calibration cannot be fitted, because no unit has both probabilities and a label")
    if len(codes) <= ENOUGH:
        return probabilities, codes
    # Units are drawn at random, with a fixed seed, because every k-th unit could be the first passage of its
    # question.
    some = np.sort(np.random.default_rng(0).choice(len(codes), ENOUGH, replace=False))
    return probabilities[some], codes[some]


def cross_fitted(
    probabilities: FloatArray,
    codes: IntArray,
    fold: IntArray,
    fit: Callable[[FloatArray, IntArray], Fit],
) -> tuple[FloatArray, Fit]:
    """Return cross-fitted probabilities for all units, and the fit on all labels.

    A unit with fold k >= 0 gets probabilities from a fit on the labels in the other folds. A unit with fold
    -1 is not used for fitting and gets probabilities from the fit on all labels. A code of -1 is an unknown
    label.
    """
    usable = (codes >= 0) & (fold >= 0) & ~np.isnan(probabilities[:, 0])
    fit_on_all = fit(probabilities[usable], codes[usable])
    calibrated = np.full_like(probabilities, np.nan)
    for k in np.unique(fold).tolist():
        here = fold == k
        # A judge is never scored on questions that it was fitted on.
        others = usable & ~here
        if k < 0:
            fold_fit = fit_on_all
        elif not others.any():
            raise BadInput("cross-fitting needs labels from at least two questions")
        else:
            fold_fit = fit(probabilities[others], codes[others])
        calibrated[here] = fold_fit.apply(probabilities[here])
    return calibrated, fit_on_all


def information(probabilities: FloatArray, codes: IntArray, fold: IntArray) -> FloatArray:
    """Return how much better each unit's probabilities predict its label than the label shares do, in nats.

    The value of a unit is ln(probability of its label) - ln(share of that label in the other folds). It is
    nan if the unit is in no fold, or if a probability or the label is unknown. Cross-fitted probabilities are
    informative if the mean of these values is above 0.
    """
    nats = np.full(len(codes), np.nan)
    k = probabilities.shape[1]
    usable = (codes >= 0) & (fold >= 0) & ~np.isnan(probabilities[:, 0])
    total = np.bincount(codes[usable], minlength=k).astype(np.float64)
    for f in np.unique(fold[usable]).tolist():
        here = usable & (fold == f)
        # Each label gets half a count: a label that is missing from the other folds would have a share of 0, whose
        # log is infinite.
        shares = total - np.bincount(codes[here], minlength=k) + 0.5
        shares /= shares.sum()
        fold_codes = codes[here]
        stated = np.maximum(probabilities[here, :][np.arange(len(fold_codes)), fold_codes], TINY)
        nats[here] = np.log(stated) - np.log(shares[fold_codes])
    return nats
