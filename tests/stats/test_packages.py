"""Equality with krippendorff and scikit-learn to 1e-12, on random tables with missing labels."""

import warnings

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)

from judge.stats import METRICS, Ratings, class_scores, confusion, measures
from judge.stats.metrics import estimate
from judge.stats.patterns import collapse

# Numbers in an order that is neither ascending nor alphabetical, unequally spaced, with a zero for ratio.
DOMAIN = ["3", "0", "10", "4.5", "1"]


@st.composite
def tables(draw: st.DrawFn, annotators: int | None = None) -> Ratings:
    q = draw(st.integers(2, 5))
    a = annotators or draw(st.integers(2, 5))
    rows = draw(st.lists(st.lists(st.integers(-1, q - 1), min_size=a, max_size=a), min_size=1, max_size=14))
    return Ratings.from_codes(np.array(rows), DOMAIN[:q], list("abcde")[:a])


def ours(ratings: Ratings, key: str) -> float | None:
    """Our own formula, which the bootstrap uses, without the package's value in front of it."""
    kappa = estimate(METRICS[key], ratings, collapse(ratings.counts))
    value = float(kappa.value(kappa.tally.total[None, :])[0]) if kappa.tally.n_clusters else float("nan")
    return value if np.isfinite(value) else None


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
@settings(max_examples=50, deadline=None)
@given(table=tables())
def test_alpha_equals_that_of_the_krippendorff_package(level: str, table: Ratings) -> None:
    numbers = np.array([float(label) for label in table.domain])
    domain = numbers if level in ("interval", "ratio") else np.arange(len(numbers), dtype=float)
    data = np.where(table.codes < 0, np.nan, domain[table.codes]).T
    pairable = table.counts[table.counts.sum(axis=1) >= 2].sum(axis=0)
    key = f"krippendorff_alpha:{level}"
    (shown,) = measures(table, [key], interval=None)
    if np.count_nonzero(pairable) < 2:  # the package raises or divides zero by zero
        assert shown.value is None
        assert shown.reason
        assert ours(table, key) is None
        return
    expected = krippendorff.alpha(reliability_data=data, value_domain=domain, level_of_measurement=level)
    assert shown.value == pytest.approx(expected, abs=1e-12)
    assert ours(table, key) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
@settings(max_examples=50, deadline=None)
@given(table=tables(annotators=2))
def test_kappa_equals_that_of_scikit_learn(weights: str | None, table: Ratings) -> None:
    first, second = table.codes[(table.codes >= 0).all(axis=1)].T
    (shown,) = measures(table, ["cohen_kappa" + (f":{weights}" if weights else "")], interval=None)
    if len(first) == 0 or len(set(first)) == 1 or len(set(second)) == 1:
        assert shown.value is None
        assert shown.reason
        return
    labels = np.arange(len(table.domain))
    expected = cohen_kappa_score(first, second, labels=labels, weights=weights)
    assert shown.value == pytest.approx(expected, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(table=tables(annotators=2))
def test_class_scores_equal_those_of_scikit_learn(table: Ratings) -> None:
    both = (table.codes >= 0).all(axis=1)
    names = np.array(table.domain)
    predicted, reference = (names[column[both]] for column in table.codes.T)
    result = {m.measure: m for m in class_scores(table, "a", "b", interval=None)}
    cells = confusion(table, "a", "b")
    if not both.any():
        assert all(m.value is None and m.reason for m in result.values())
        assert cells.n_units == 0
        return
    labels = list(table.domain)
    assert cells.matrix.tolist() == confusion_matrix(reference, predicted, labels=labels).tolist()
    assert result["accuracy"].value == pytest.approx(accuracy_score(reference, predicted), abs=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = precision_recall_fscore_support(reference, predicted, labels=labels, zero_division=np.nan)
        used = sorted(set(reference) | set(predicted))
        macro = f1_score(reference, predicted, labels=used, average="macro", zero_division=np.nan)
    assert result["macro_f1"].value == pytest.approx(macro, abs=1e-12)
    for name, values in zip(("precision", "recall", "f1"), scores[:3], strict=True):
        for label, expected in zip(labels, values, strict=True):
            shown = result[f"{name}:{label}"]
            if np.isnan(expected):
                assert shown.value is None
                assert shown.reason
            else:
                assert shown.value == pytest.approx(expected, abs=1e-12)
