"""Calibrate a judge's label probabilities: without reference labels (batch), or on labels, cross-fitted by question."""

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
from judge.stats import MISSING, BoolArray, FloatArray, How, IntArray, Ratings
from judge.stats import calibrate as fits
from judge.stats.metrics import pair_kappa
from judge.store import derived
from judge.store.derived import Fitted
from judge.types import GOLD, Json, Measure

FOLDS = 5
FEWEST = 20
"""Below this number of labelled units, nothing is fitted."""
UNEVEN = (
    "units were drawn with unequal probabilities: agreement and calibration errors are weighted; the fit takes the units as they "
    "were drawn"
)
BEFORE, AFTER, TRUTH = "before", "after", "reference"


@dataclass(frozen=True)
class Prior:
    """The label shares that batch calibration targets: `uniform`, the reference's shares (`gold`), or given shares."""

    word: str
    shares: tuple[float, ...] | None = None

    @property
    def known(self) -> bool:
        """Whether the user named the shares; otherwise equal shares are assumed."""
        return self.word != "assumed"


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The result of a calibration: labels, the fit, and a comparison on units of questions that the fit left out.

    `measures`: (before, after, after - before) for each measure; empty without labels. `signal`: the information in
    the probabilities about a label beyond its share, in nats. `shares`: label -> (before, after). `n_plain` units
    have a label without probabilities, which is not changed.
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
    """The number of labels that calibration changed, on the units that the reference labels."""
    notes: tuple[str, ...]

    @property
    def repaired(self) -> bool | None:
        """Whether agreement rose (the lower bound of the difference is above 0); None if unknown for lack of labels."""
        if not self.measures:
            return None
        difference = self.measures[0][2]
        return difference is not None and difference.low is not None and difference.low > 0

    @property
    def has_signal(self) -> bool | None:
        """Whether the probabilities carry any information about the labels; None if unknown for lack of labels.

        True if the lower bound of their information or of a kappa is above 0.
        """
        if self.signal is None:
            return None
        # With few labels, a fit can cost more nats than a weak signal has, and still rank the units correctly.
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
    """Calibrate the only run of `table`. Questions of a sealed test are neither fitted on nor evaluated.

    Raises UsageError if the run has no probabilities or was already fitted on labels, if there are too few labels, or
    if the method does not suit the task.
    """
    labels_of_run = table.labels(field)
    _unfitted_yet(table)
    p = labels_of_run.probabilities[0]
    if p is None:
        raise UsageError(
            f"run {table.run_ids[0]} has no label probabilities to calibrate; run the task with a model that returns them: "
            + command("judge run", table.task.task_id, "-m", "MODEL", "--answers", "codes")
        )
    if method == "isotonic" and len(labels_of_run.domain) != 2:
        raise UsageError(
            f"--method isotonic needs a field with two labels; '{field}' has {len(labels_of_run.domain)}"
        )
    prior = prior or Prior("assumed")
    open_units, sealed_notes = _open(table)
    codes = np.where(open_units, MISSING if truth is None else truth.codes, MISSING)
    # A label without probabilities cannot be calibrated; it stays as it is and is counted as `n_plain`.
    usable = (codes != MISSING) & ~np.isnan(p[:, 0])
    numbers, _ = table.questions
    needs = method != "batch" or prior.word == "gold"
    if needs and truth is None:
        raise UsageError(
            f"--method {method} is fitted on labels, but '{field}' has no gold or human labels yet"
        )
    if needs and (usable.sum() < FEWEST or len(np.unique(numbers[usable])) < 2):
        raise UsageError(
            f"--method {method} needs {FEWEST} units with probabilities and a label, in at least two questions; "
            f"there are {int(usable.sum())}"
        )
    # Random folds would put passages of one question into the fit and the test: one classifier had kappa .51 by random folds
    # and .22 by question.
    fold = truth.by_question(FOLDS, usable) if truth is not None and usable.any() else np.full(len(codes), -1)
    fit = _fitter(method, prior, p, len(labels_of_run.domain))
    # What uses no label is fitted once: no question has to be left out.
    after, whole = fits.cross_fitted(p, codes, fold if needs else np.full_like(fold, -1), fit)
    before = labels_of_run.codes[:, 0]
    labels = fits.most_probable(after, before)
    if method == "temperature":
        # A temperature must not change a tie, or a label that another program chose.
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
        measured, notes = _compared(
            table, field, truth.word, labels_of_run.domain, (before, labels, codes), (p, after), **how
        )
        sealed_notes += notes
        signal = _signal(p, after, codes, fold, numbers, method, usable, field, **how)
    fitted = truth.fitted(truth.folds(fold), usable) if needs and truth is not None else None
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


def _unfitted_yet(table: RunTable) -> None:
    """Raise UsageError if the run was already fitted on labels, directly or through its parents."""
    # Its probabilities on other questions depend on the labels of a left-out question, so cross-fitting would be biased.
    conn, [run] = table.store.conn, table.run_ids
    if derived.folds(conn, run):
        sources = [parent for parent in derived.sources(conn, run) if parent != run]
        raise UsageError(
            f"run {run} was already fitted on labels, directly or through its parents"
            + (f"; calibrate a run that it was derived from: {' or '.join(sources)}" if sources else "")
        )


def _open(table: RunTable) -> tuple[BoolArray, tuple[str, ...]]:
    """Return the units outside the task's sealed test, and a note on it."""
    task_split = split.find(table.store, table.task)
    numbers, names = table.questions
    if task_split is None:
        return np.ones(len(numbers), dtype=np.bool_), ()
    sealed = task_split.questions("test")
    inside = np.fromiter((name in sealed for name in names), dtype=np.bool_, count=len(names))[numbers]
    if not inside.any():
        return ~inside, ()
    note = f"{int(inside.sum()):,} units are in the sealed test and are neither fitted on nor counted here"
    return ~inside, (note,)


def _fitter(method: str, prior: Prior, p: FloatArray, k: int) -> Callable[[FloatArray, IntArray], fits.Fit]:
    by_method = {"bias": fits.fit_bias, "temperature": fits.fit_temperature, "isotonic": fits.fit_isotonic}
    if method != "batch":
        return by_method[method]

    def batch(_: FloatArray, codes: IntArray) -> fits.Fit:
        # The mean is that of the whole run, because it uses no label.
        shares = np.full(k, 1 / k) if prior.shares is None else np.asarray(prior.shares)
        if prior.word == "gold":
            # Half a unit keeps an unseen label possible.
            counts = np.bincount(codes, minlength=k) + 0.5
            shares = counts / counts.sum()
        return fits.fit_batch(p, shares)

    return batch


def _compared(
    table: RunTable,
    field: str,
    reference: str,
    domain: tuple[str, ...],
    codes: tuple[IntArray, IntArray, IntArray],
    probabilities: tuple[FloatArray, FloatArray],
    **how: Unpack[How],
) -> tuple[list[tuple[Measure, Measure, Measure | None]], tuple[str, ...]]:
    """Return agreement and calibration error before and after, on the units that the reference labels, and notes on them.

    Units that were drawn with unequal probabilities are weighted.
    """
    in_reference = codes[2] != MISSING
    # How gold units were chosen is not recorded.
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
        ratings = ratings.weighted(w[in_reference])
    results: list[tuple[Measure, Measure, Measure | None]] = []
    names = (pair_kappa(level), "percent")
    first, second = (
        stats.measures(ratings.select([stage, TRUTH]), names, level=level, pairwise=False, field=field, **how)
        for stage in (BEFORE, AFTER)
    )
    for name, earlier, later in zip(names, first, second, strict=True):
        [changed] = stats.compare(ratings, [BEFORE, AFTER], TRUTH, name, level=level, field=field, **how)
        results.append((earlier, later, changed.difference))
    errors = [
        stats.calibration(
            values[in_reference],
            codes[2][in_reference],
            clusters=numbers,
            field=field,
            weights=w[in_reference] if is_weighted else None,
            **how,
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
    **how: Unpack[How],
) -> Measure | None:
    """Return the information (in nats) in cross-fitted probabilities, which always come from the bias fit."""
    if usable.sum() < FEWEST or len(np.unique(fold[fold >= 0])) < 2:
        return None
    stated = after if method == "bias" else fits.cross_fitted(p, codes, fold, fits.fit_bias)[0]
    information_by_unit = fits.information(stated, codes, fold)
    defined = ~np.isnan(information_by_unit)
    # The decision about a signal needs an interval, even if the user did not request intervals.
    how["interval"] = how.get("interval") or "bca"
    return stats.mean(
        information_by_unit[defined], measure="information", clusters=numbers[defined], field=field, **how
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
