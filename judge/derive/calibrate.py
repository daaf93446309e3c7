"""Calibrate a judge's label probabilities, without reference labels (batch) or with them (cross-fitted by question)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from judge import stats
from judge.commands import command
from judge.derive.make import Made
from judge.derive.parents import RunTable, Truth
from judge.errors import UsageError
from judge.labels import split
from judge.labels.batches import weights
from judge.stats import MISSING, BoolArray, FloatArray, IntArray, IntervalOptions, Ratings
from judge.stats import calibrate as fits
from judge.stats.metrics import pair_kappa
from judge.store import derived
from judge.store.derived import Fitted
from judge.types import GOLD, Json, Measure

FOLDS = 5
FEWEST = 20
"""The minimum number of labelled units for a fit."""
UNEVEN = (
    "units were drawn with unequal probabilities, so agreement and calibration errors are weighted; the fit does not use the "
    "weights"
)
BEFORE, AFTER, TRUTH = "before", "after", "reference"


@dataclass(frozen=True)
class Prior:
    """The label shares that batch calibration should produce.

    They are equal (`uniform`), given by the user, or the shares in the reference (`gold`).
    """

    word: str
    shares: tuple[float, ...] | None = None

    @property
    def known(self) -> bool:
        """Whether the user specified the shares. If not, equal shares are assumed."""
        return self.word != "assumed"


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The result of a calibration: labels, the fit, and a comparison on questions that the fit left out.

    `measures` contains (before, after, after - before) for each measure. It is empty without reference labels. `signal`
    is the information, in nats, that the probabilities add to what the label shares already show.
    `shares` maps each label to its shares before and after calibration. `n_plain` is the number of units that have
    labels but no probabilities; these labels are not changed.
    """

    method: str
    field: str
    made: Made
    fit: fits.Fit
    domain: tuple[str, ...]
    parameters: Mapping[str, Json]
    fitted: Fitted | None
    measures: list[tuple[Measure, Measure, Measure | None]]
    signal: Measure | None
    shares: Mapping[str, tuple[float, float]]
    n_plain: int
    n_changed: int
    """The number of labels that calibration changed, on units with a reference label."""
    notes: tuple[str, ...]

    @property
    def repaired(self) -> bool | None:
        """Whether agreement increased (the lower bound of the difference is above 0); None without reference labels."""
        if not self.measures:
            return None
        difference = self.measures[0][2]
        return difference is not None and difference.low is not None and difference.low > 0

    @property
    def has_signal(self) -> bool | None:
        """Whether the probabilities carry information about the labels; None without reference labels.

        The value is True if the lower bound of the information or of a kappa is above 0.
        """
        if self.signal is None:
            return None
        # With few labels, the fit may lose more information than a weak signal has, and still rank the units correctly.
        lows = [self.signal.low, *(m.low for m in self.measures[0][:2] if m is not None)]
        return any(low is not None and low > 0 for low in lows)


def calibrate(
    table: RunTable,
    truth: Truth | None,
    field: str,
    method: str,
    prior: Prior | None = None,
    **options: Unpack[IntervalOptions],
) -> Calibrated:
    """Calibrate the only run of `table`. Questions in a sealed test are used for neither the fit nor the evaluation.

    Raises UsageError if the run has no probabilities or was already fitted on labels, if there are too few labels, or
    if the method does not suit the task.
    """
    labels_of_run = table.labels(field)
    _require_unfitted(table)
    p = labels_of_run.probabilities[0]
    if p is None:
        raise UsageError(
            f"run {table.run_ids[0]} has no label probabilities to calibrate; run the task with a model that returns probabilities: "
            + command("judge run", table.task.task_id, "-m", "MODEL", "--answers", "codes")
        )
    if method == "isotonic" and len(labels_of_run.domain) != 2:
        raise UsageError(
            f"--method isotonic requires a field with two labels, but '{field}' has {len(labels_of_run.domain)}"
        )
    prior = prior or Prior("assumed")
    open_units, sealed_notes = _open(table)
    codes = np.where(open_units, MISSING if truth is None else truth.codes, MISSING)
    # A label without probabilities cannot be calibrated; it stays as it is and is counted as `n_plain`.
    usable = (codes != MISSING) & ~np.isnan(p[:, 0])
    numbers, _ = table.questions
    needs = method != "batch" or prior.word == "gold"
    if needs and truth is None:
        raise UsageError(f"--method {method} is fitted on labels, but '{field}' has no gold or human labels")
    if needs and (usable.sum() < FEWEST or len(np.unique(numbers[usable])) < 2):
        raise UsageError(
            f"--method {method} requires at least {FEWEST} units with probabilities and a reference label, from at least two "
            f"questions; there are {int(usable.sum())} such units"
        )
    # With random folds, passages of a question would be in both the fit and the test. One classifier had kappa .51 with random
    # folds, and .22 with folds by question.
    fold = truth.deal_folds(FOLDS, usable) if truth is not None and usable.any() else np.full(len(codes), -1)
    fit = _fitter(method, prior, p, len(labels_of_run.domain))
    # A method that uses no labels is fitted once, because no question has to be left out.
    after, whole = fits.cross_fitted(p, codes, fold if needs else np.full_like(fold, -1), fit)
    before = labels_of_run.codes[:, 0]
    labels = fits.find_most_probable(after, before)
    if method == "temperature":
        # A temperature does not change the most probable label. Ties, and labels of other programs, must not change either.
        labels = before
    labelled = before != MISSING
    first, second = (
        np.bincount(stage[labelled], minlength=len(labels_of_run.domain)) / max(1, int(labelled.sum()))
        for stage in (before, labels)
    )
    shares = dict(zip(labels_of_run.domain, zip(first.tolist(), second.tolist(), strict=True), strict=True))
    measured: list[tuple[Measure, Measure, Measure | None]] = []
    signal = None
    if truth is not None and usable.any():
        measured, notes = _compare_measures(
            table, field, truth.word, labels_of_run.domain, (before, labels, codes), (p, after), **options
        )
        sealed_notes += notes
        signal = _signal(p, after, codes, fold, numbers, method, usable, field, **options)
    fitted = truth.describe_fit(truth.folds(fold), usable) if needs and truth is not None else None
    return Calibrated(
        method,
        field,
        Made(labels, after),
        whole,
        labels_of_run.domain,
        _parameters(whole, labels_of_run.domain, method, prior, fitted),
        fitted,
        measured,
        signal,
        shares,
        int((labelled & np.isnan(p[:, 0])).sum()),
        int((labels != before)[codes != MISSING].sum()),
        sealed_notes,
    )


def _require_unfitted(table: RunTable) -> None:
    """Raise UsageError if the run was already fitted on labels, directly or through its parents."""
    # The run's probabilities depend on the labels of all questions, so no question can be left out of the fit.
    conn, [run] = table.store.conn, table.run_ids
    if derived.folds(conn, run):
        sources = [parent for parent in derived.sources(conn, run) if parent != run]
        raise UsageError(
            f"run {run} was already fitted on labels, directly or through its parents"
            + (f"; calibrate a run that it was derived from: {' or '.join(sources)}" if sources else "")
        )


def _open(table: RunTable) -> tuple[BoolArray, tuple[str, ...]]:
    """Return a mask of the units outside the task's sealed test, and a note on the other units."""
    task_split = split.find(table.store, table.task)
    numbers, names = table.questions
    if task_split is None:
        return np.ones(len(numbers), dtype=np.bool_), ()
    sealed = task_split.questions("test")
    inside = np.fromiter((name in sealed for name in names), dtype=np.bool_, count=len(names))[numbers]
    if not inside.any():
        return ~inside, ()
    note = f"{int(inside.sum()):,} units are in the sealed test and are used for neither the fit nor the evaluation"
    return ~inside, (note,)


def _fitter(method: str, prior: Prior, p: FloatArray, k: int) -> Callable[[FloatArray, IntArray], fits.Fit]:
    by_method = {"bias": fits.fit_bias, "temperature": fits.fit_temperature, "isotonic": fits.fit_isotonic}
    if method != "batch":
        return by_method[method]

    def batch(_: FloatArray, codes: IntArray) -> fits.Fit:
        # The mean is taken over the whole run, because it does not depend on labels.
        shares = np.full(k, 1 / k) if prior.shares is None else np.asarray(prior.shares)
        if prior.word == "gold":
            # Half a unit is added to each label, so that no label gets the share 0.
            counts = np.bincount(codes, minlength=k) + 0.5
            shares = counts / counts.sum()
        return fits.fit_batch(p, shares)

    return batch


def _compare_measures(
    table: RunTable,
    field: str,
    reference: str,
    domain: tuple[str, ...],
    codes: tuple[IntArray, IntArray, IntArray],
    probabilities: tuple[FloatArray, FloatArray],
    **options: Unpack[IntervalOptions],
) -> tuple[list[tuple[Measure, Measure, Measure | None]], tuple[str, ...]]:
    """Return agreement and calibration errors before and after calibration, and notes.

    Only units with a reference label are used. Units that were drawn with unequal probabilities are weighted.
    """
    in_reference = codes[2] != MISSING
    # There are no design weights for gold labels, because it is not recorded how their units were chosen.
    of_units = weights(table.store, None, field) if reference != GOLD else {}
    w = np.array([of_units.get(unit, np.nan) for unit in table.units])
    is_weighted = bool((in_reference & np.isfinite(w)).any())
    if is_weighted:
        in_reference = in_reference & np.isfinite(w)
    numbers = table.questions[0][in_reference]
    level = table.task.level(field)
    units = [table.units[at] for at in np.flatnonzero(in_reference).tolist()]
    columns = np.column_stack([values[in_reference] for values in codes])
    ratings = Ratings.from_codes(columns, domain, [BEFORE, AFTER, TRUTH], clusters=numbers, units=units)
    if is_weighted:
        ratings = ratings.with_weights(w[in_reference])
    results: list[tuple[Measure, Measure, Measure | None]] = []
    names = (pair_kappa(level), "percent")
    first, second = (
        stats.measures(
            ratings.select([stage, TRUTH]), names, level=level, pairwise=False, field=field, **options
        )
        for stage in (BEFORE, AFTER)
    )
    for name, earlier, later in zip(names, first, second, strict=True):
        [changed] = stats.compare(ratings, [BEFORE, AFTER], TRUTH, name, level=level, field=field, **options)
        results.append((earlier, later, changed.difference))
    errors = [
        stats.calibration(
            values[in_reference],
            codes[2][in_reference],
            clusters=numbers,
            field=field,
            weights=w[in_reference] if is_weighted else None,
            **options,
        )
        for values in probabilities
    ]
    results.append((errors[0].ece, errors[1].ece, None))
    results.append((errors[0].log_loss, errors[1].log_loss, None))
    return results, (UNEVEN,) if is_weighted else ()


def _signal(
    p: FloatArray,
    after: FloatArray,
    codes: IntArray,
    fold: IntArray,
    numbers: IntArray,
    method: str,
    usable: BoolArray,
    field: str,
    **options: Unpack[IntervalOptions],
) -> Measure | None:
    """Return the information, in nats, that cross-fitted probabilities contain about the labels.

    The probabilities are from bias calibration, even if another method was chosen.
    """
    if usable.sum() < FEWEST or len(np.unique(fold[fold >= 0])) < 2:
        return None
    stated = after if method == "bias" else fits.cross_fitted(p, codes, fold, fits.fit_bias)[0]
    information_by_unit = fits.information(stated, codes, fold)
    defined = ~np.isnan(information_by_unit)
    # The decision about a signal needs an interval, even if the user did not request intervals.
    options["interval"] = options.get("interval") or "bca"
    return stats.mean(
        information_by_unit[defined], measure="information", clusters=numbers[defined], field=field, **options
    )


def _parameters(
    fit: fits.Fit, domain: tuple[str, ...], method: str, prior: Prior, fitted: Fitted | None
) -> dict[str, Json]:
    parameters: dict[str, Json] = {}
    if method == "batch":
        parameters["prior"] = prior.word
        if prior.shares is not None:
            parameters["shares"] = dict(zip(domain, prior.shares, strict=True))
    if fit.steps is not None:
        parameters["steps"] = [list(step) for step in fit.steps]
    else:
        parameters["temperature"] = round(fit.temperature, 6)
    if fit.bias:
        parameters["bias"] = {label: round(b, 6) for label, b in zip(domain, fit.bias, strict=True)}
    if fitted is not None:
        parameters["folds"] = len(set(fitted.folds.values()))
    return parameters
