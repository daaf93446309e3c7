"""Prevalence from a judge with known sensitivity and specificity: Rogan and Gladen's estimate, with Lang and
Reiczigel's interval.
"""

from dataclasses import replace
from math import sqrt
from statistics import NormalDist
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from judge.errors import BadInput
from judge.notes import Note
from judge.stats.bootstrap import FEW_UNITS, IntervalOptions, IntervalSettings
from judge.stats.coefficients import ratio
from judge.stats.continuous import cluster_numbers, numbers
from judge.stats.correction import design_weights, effective_share
from judge.stats.estimate import about
from judge.stats.patterns import n_present
from judge.stats.ratings import FloatArray
from judge.types import Measure


def rogan_gladen(
    judge: ArrayLike,
    human: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    field: str | None = None,
    **options: Unpack[IntervalOptions],
) -> Measure:
    """Return a rate corrected for the judge's sensitivity and specificity: (p + spec - 1) / (sens + spec - 1).

    p is the judge's rate on all units that it judged; sens and spec come from the units with a human label.
    Rogan & Gladen 1978; for judges Lee et al. 2025, arXiv 2511.21140, section 3. The value is clipped to
    0..1. The interval is Lang and Reiczigel's (2014, Preventive Veterinary Medicine 113(1), 13-22). Each of
    the three shares counts with its effective number of independent units. The value is None if a class has
    no human label, or if sens + spec <= 1. For `weights`, see `correct_mean`; with weights, sens and spec are
    weighted shares.

    `judge` and `human` are 0, 1 or nan. Raises BadInput for other values. For `options`, see `measures`; only
    `interval` (None for no interval) and `confidence` are used.
    """
    settings = IntervalSettings(**options)
    f, y = numbers(judge, "judge", dimensions=1), numbers(human, "human", dimensions=1)
    if f.shape != y.shape:
        raise BadInput(f"there are {len(f)} judge values, but {len(y)} human values")
    for name, values in (("judge", f), ("human", y)):
        if not ((values == 0) | (values == 1) | np.isnan(values)).all():
            raise BadInput(f"{name} must contain only 0, 1 and nan, because it is a rate")
    groups, _ = cluster_numbers(clusters, len(f))
    judged = ~np.isnan(f)
    # Only units with a human label count towards the sensitivity and the specificity, and they are few.
    labelled = judged & ~np.isnan(y)
    of_labelled, right, label_groups = f[labelled], y[labelled], groups[labelled]
    used_weights = np.ones(len(right))
    if weights is not None:
        used_weights = design_weights(weights, ~np.isnan(y))[labelled]
    used_groups = groups
    if not judged.all():
        f, used_groups = f[judged], groups[judged]
    ones, zeros = used_weights * (right == 1), used_weights * (right == 0)
    total = np.array(
        [len(f), f.sum(), ones.sum(), ones @ of_labelled, zeros.sum(), zeros @ (1 - of_labelled)], np.float64
    )
    raw = float(_rogan_gladen(total[None, :])[0]) if len(f) else np.nan
    base = replace(
        about("rogan_gladen", len(f), len(judged), n_present(used_groups), field=field),
        confidence=settings.confidence,
    )
    notes = [Note("cut", least=0, most=1, value=raw)] if raw < 0 or raw > 1 else []
    n_ones, n_zeros = int((right == 1).sum()), int((right == 0).sum())
    if 0 < min(n_ones, n_zeros) < FEW_UNITS:
        notes.append(Note("few_for_rates", ones=n_ones, zeros=n_zeros, least=FEW_UNITS))
    if not judged.all():
        notes.append(Note("left_out", n=int((~judged).sum())))
    if not np.isfinite(raw):
        return replace(base, reason=_explain_no_rate(total), notes=tuple(notes))
    base = replace(base, value=min(1.0, max(0.0, raw)), notes=tuple(notes))
    if settings.interval is None:
        return base
    shares = (
        effective_share(f, None, used_groups),
        effective_share(of_labelled, ones, label_groups),
        effective_share(1 - of_labelled, zeros, label_groups),
    )
    # The coverage of this interval was .98 to .99 where that of a bootstrap was .67 to .86.
    low, high = lang_reiczigel(*shares, confidence=settings.confidence)
    # The bounds rest on shares with added successes and failures, so they may lie on one side of the plain estimate.
    return replace(base, low=min(low, base.value or 0.0), high=max(high, base.value or 0.0))


def lang_reiczigel(
    positive: tuple[float, float],
    sensitivity: tuple[float, float],
    specificity: tuple[float, float],
    *,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Return the bounds of a prevalence from three independent pairs (share, units). Lang & Reiczigel 2014,
    section 2.

    One success and one failure are added to the sensitivity and to the specificity, and z^2 units, half of
    them positive, to the judge's rate. The bounds are 0 and 1 if the judge's labels carry no information.
    """
    z = NormalDist().inv_cdf(1 - (1 - confidence) / 2)
    (p, n), (se, n_se), (sp, n_sp) = positive, sensitivity, specificity
    p = (n * p + z * z / 2) / (n + z * z)
    se, sp = (n_se * se + 1) / (n_se + 2), (n_sp * sp + 1) / (n_sp + 2)
    # At 0 or below the judge is no better than chance, and the correction would divide by it.
    youden = se + sp - 1
    if youden <= 0:
        return 0.0, 1.0
    value = (p + sp - 1) / youden
    of_se, of_sp = se * (1 - se) / (n_se + 2), sp * (1 - sp) / (n_sp + 2)
    error = sqrt(p * (1 - p) / (n + z * z) + value**2 * of_se + (1 - value) ** 2 * of_sp) / youden
    shift = 2 * z * z * (value * of_se - (1 - value) * of_sp)
    return max(0.0, min(1.0, value + shift - z * error)), max(0.0, min(1.0, value + shift + z * error))


def _rogan_gladen(sums: FloatArray) -> FloatArray:
    n, positive, ones, true_ones, zeros, true_zeros = sums.T
    sensitivity, specificity = ratio(true_ones, ones), ratio(true_zeros, zeros)
    return ratio(ratio(positive, n) + specificity - 1, sensitivity + specificity - 1)


def _explain_no_rate(total: FloatArray) -> str:
    n, _, ones, _, zeros, _ = total
    if not n:
        return "the judge labelled no unit"
    if not ones or not zeros:
        return f"no unit has the human label {0 if ones else 1}, so " + (
            "the specificity is unknown" if ones else "the sensitivity is unknown"
        )
    return "sensitivity + specificity is not above 1: the judge's labels carry no information about this rate"
