"""A judge whose label probabilities are calibrated: without labels (batch), or by labels, cross-fitted by question."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from judge.derive.make import Made
from judge.derive.parents import RunTable, Truth
from judge.errors import UsageError
from judge.labels import split
from judge.stats import MISSING, Ratings, calibration, compare, mean, measures
from judge.stats.bootstrap import How
from judge.stats.calibrate import (
    Fit,
    cross_fitted,
    fit_batch,
    fit_bias,
    fit_isotonic,
    fit_temperature,
    information,
)
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.store import derived
from judge.store.derived import Fitted
from judge.types import Json, Measure

FOLDS = 5
FEWEST = 20
"""Labelled units below which nothing is fitted."""
BEFORE, AFTER, TRUTH = "before", "after", "reference"


@dataclass(frozen=True)
class Prior:
    """The label shares that batch calibration aims at: `uniform`, those of the reference (`gold`), or given ones."""

    word: str
    shares: tuple[float, ...] | None = None

    @property
    def known(self) -> bool:
        """Whether somebody said so; equal shares are otherwise only assumed."""
        return self.word != "assumed"


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What calibrating gave: the labels, what it was fitted on (None: no labels), and before and after on units whose
    questions the fit that labelled them has not seen.

    `measures`: (before, after, after - before) of each measure; empty without labels. `signal` is how many nats the
    probabilities tell of a label beyond its share. `shares`: label -> (before, after). `n_plain` units have a label
    without probabilities, and keep it.
    """

    method: str
    field: str
    made: Made
    fit: Fit
    domain: tuple[str, ...]
    parameters: Mapping[str, Json]
    fitted: Fitted | None
    measures: list[tuple[Measure, Measure, Measure | None]]
    signal: Measure | None
    shares: Mapping[str, tuple[float, float]]
    n_plain: int
    n_changed: int
    """Labels that are others than before, on the units that the reference labels."""
    notes: tuple[str, ...]

    @property
    def repaired(self) -> bool | None:
        """Whether agreement rose for sure (the lower bound of the difference is above 0); None: unknown, no labels."""
        if not self.measures:
            return None
        difference = self.measures[0][2]
        return difference is not None and difference.low is not None and difference.low > 0

    @property
    def has_signal(self) -> bool | None:
        """Whether the probabilities tell anything of the labels; None: unknown, no labels.

        Either their information or the kappa that they give is above 0 for sure: with few labels a fit can cost more
        nats than a weak signal has, and still order the units rightly.
        """
        if self.signal is None:
            return None
        lows = [self.signal.low, *(m.low for m in self.measures[0][:2] if m is not None)]
        return any(low is not None and low > 0 for low in lows)


def calibrate(
    table: RunTable,
    truth: Truth | None,
    field: str,
    method: str,
    prior: Prior | None = None,
    **how: Unpack[How],
) -> Calibrated:
    """Calibrate the only run of `table`. Questions of a sealed test are neither fitted on nor looked at.

    Raises UsageError where the run has no probabilities, is fitted on labels already, labels are too few, or the
    method does not fit the task.
    """
    found = table.labels(field)
    _unfitted_yet(table)
    p = found.probabilities[0]
    if p is None:
        raise UsageError(
            f"run {table.run_ids[0]} stored no label probabilities: nothing to calibrate (judge run --answers codes, with a "
            "model that gives them)"
        )
    if method == "isotonic" and len(found.domain) != 2:
        raise UsageError(f"--method isotonic is for two labels; '{field}' has {len(found.domain)}")
    prior = prior or Prior("assumed")
    open_units, told = _open(table)
    codes = _opened(truth, open_units, len(table.units))
    usable = (codes != MISSING) & ~np.isnan(p[:, 0])
    numbers, _ = table.questions
    needs = method != "batch" or prior.word == "gold"
    if needs and truth is None:
        raise UsageError(
            f"--method {method} is fitted on labels: no gold and no people's labels of '{field}' yet"
        )
    if needs and (usable.sum() < FEWEST or len(np.unique(numbers[usable])) < 2):
        raise UsageError(
            f"--method {method} needs {FEWEST} units with probabilities and a label, in two questions or more; "
            f"there are {int(usable.sum())}"
        )
    fold = truth.by_question(FOLDS, usable) if truth is not None and usable.any() else np.full(len(codes), -1)
    fit = _fitter(method, prior, p, len(found.domain))
    after, whole = cross_fitted(p, codes, fold, fit) if needs else _unfitted(p, fit)
    before = found.codes[:, 0]
    labels = np.where(np.isnan(after[:, 0]), before, np.nan_to_num(after).argmax(axis=1))
    if method == "temperature":
        labels = before  # a tie, or a label that another program chose, is not for a temperature to decide
    seen = range(len(found.domain))
    given = before != MISSING
    shares = {found.domain[k]: (_share(before[given], k), _share(labels[given], k)) for k in seen}
    measured: list[tuple[Measure, Measure, Measure | None]] = []
    signal = None
    if truth is not None and usable.any():
        measured = _compared(table, field, found.domain, (before, labels, codes), (p, after), **how)
        signal = _signal(p, after, codes, fold, numbers, method, usable, field, **how)
    fitted = truth.fitted(truth.folds(fold), usable) if needs and truth is not None else None
    return Calibrated(
        method,
        field,
        Made(labels, after),
        whole,
        found.domain,
        _parameters(whole, found.domain, method, prior, fitted),
        fitted,
        measured,
        signal,
        shares,
        int((given & np.isnan(p[:, 0])).sum()),
        int((labels != before)[codes != MISSING].sum()),
        told,
    )


def _unfitted_yet(table: RunTable) -> None:
    """Raises UsageError for a run that is fitted on labels, itself or through what it is made of.

    What stands on other questions would then know the labels of a question that is left out.
    """
    conn, [run] = table.store.conn, table.run_ids
    if derived.folds(conn, run):
        asked = [parent for parent in derived.sources(conn, run) if parent != run]
        raise UsageError(
            f"run {run} is fitted on labels already, itself or through what it is made of"
            + (f": calibrate what it was made from, {' or '.join(asked)}" if asked else "")
        )


def _open(table: RunTable) -> tuple[BoolArray, tuple[str, ...]]:
    """The units outside the sealed test of the task, and what to say of it."""
    found = split.find(table.store, table.task)
    numbers, names = table.questions
    if found is None:
        return np.ones(len(numbers), dtype=np.bool_), ()
    sealed = found.questions("test")
    inside = np.fromiter((name in sealed for name in names), dtype=np.bool_, count=len(names))[numbers]
    if not inside.any():
        return ~inside, ()
    told = f"{int(inside.sum()):,} units are in the sealed test: neither fitted on nor counted here"
    return ~inside, (told,)


def _opened(truth: Truth | None, open_units: BoolArray, n: int) -> IntArray:
    codes = np.full(n, MISSING, dtype=np.int64)
    return codes if truth is None else np.where(open_units, truth.codes, MISSING)


def _fitter(method: str, prior: Prior, p: FloatArray, k: int) -> Callable[[FloatArray, IntArray], Fit]:
    fits = {"bias": fit_bias, "temperature": fit_temperature, "isotonic": fit_isotonic}
    if method != "batch":
        return fits[method]

    def batch(_: FloatArray, codes: IntArray) -> Fit:
        # The mean is that of the whole run, which takes no label; half a unit keeps an unseen label possible.
        shares = np.full(k, 1 / k) if prior.shares is None else np.asarray(prior.shares)
        if prior.word == "gold":
            counts = np.bincount(codes, minlength=k) + 0.5
            shares = counts / counts.sum()
        return fit_batch(p, shares)

    return batch


def _unfitted(p: FloatArray, fit: Callable[[FloatArray, IntArray], Fit]) -> tuple[FloatArray, Fit]:
    found = fit(p, np.empty(0, dtype=np.int64))
    return found.apply(p), found


def _share(codes: IntArray, k: int) -> float:
    return float((codes == k).mean()) if len(codes) else 0.0


def _compared(
    table: RunTable,
    field: str,
    domain: tuple[str, ...],
    codes: tuple[IntArray, IntArray, IntArray],
    probabilities: tuple[FloatArray, FloatArray],
    **how: Unpack[How],
) -> list[tuple[Measure, Measure, Measure | None]]:
    """Agreement and calibration error before and after, on the units that the reference labels."""
    some = codes[2] != MISSING
    numbers = table.questions[0][some]
    level = table.task.level(field)
    units = [table.units[at] for at in np.flatnonzero(some).tolist()]
    given = np.column_stack([own[some] for own in codes])
    ratings = Ratings.from_codes(given, domain, [BEFORE, AFTER, TRUTH], clusters=numbers, units=units)
    key = "cohen_kappa:quadratic" if level == "ordinal" else "cohen_kappa"
    found: list[tuple[Measure, Measure, Measure | None]] = []
    names = (key, "percent")
    first, second = (
        measures(ratings.select([who, TRUTH]), names, level=level, pairwise=False, field=field, **how)
        for who in (BEFORE, AFTER)
    )
    for name, one, two in zip(names, first, second, strict=True):
        [changed] = compare(ratings, [BEFORE, AFTER], TRUTH, name, level=level, field=field, **how)
        found.append((one, two, changed.difference))
    each = [
        calibration(own[some], codes[2][some], clusters=numbers, field=field, **how) for own in probabilities
    ]
    found.append((each[0].ece, each[1].ece, None))
    found.append((each[0].log_loss, each[1].log_loss, None))
    return found


def _signal(
    p: FloatArray,
    after: FloatArray,
    codes: IntArray,
    fold: IntArray,
    numbers: IntArray,
    method: str,
    usable: BoolArray,
    field: str,
    **how: Unpack[How],
) -> Measure | None:
    """Nats of information on cross-fitted probabilities: those of the bias fit, whatever the method."""
    if usable.sum() < FEWEST or len(np.unique(fold[fold >= 0])) < 2:
        return None
    stated = after if method == "bias" else cross_fitted(p, codes, fold, fit_bias)[0]
    told = information(stated, codes, fold)
    some = ~np.isnan(told)
    # Whether there is a signal is decided by an interval, asked for or not.
    how["interval"] = how.get("interval") or "bca"
    return mean(told[some], measure="information", clusters=numbers[some], field=field, **how)


def _parameters(
    fit: Fit, domain: tuple[str, ...], method: str, prior: Prior, fitted: Fitted | None
) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if method == "batch":
        found["prior"] = prior.word
        if prior.shares is not None:
            found["shares"] = dict(zip(domain, prior.shares, strict=True))
    if fit.steps is not None:
        found["steps"] = [list(own) for own in fit.steps]
    else:
        found["temperature"] = round(fit.temperature, 6)
    if fit.bias:
        found["bias"] = {label: round(b, 6) for label, b in zip(domain, fit.bias, strict=True)}
    if fitted is not None:
        found["folds"] = len(set(fitted.folds.values()))
    return found
