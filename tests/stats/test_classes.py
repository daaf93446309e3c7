"""Per label: confusion, precision, recall, F1, specific agreement, shares."""

import numpy as np
import pytest

from judge.stats import Ratings, class_agreement, class_scores, label_shares
from tests.stats.published import fleiss_1971, two_annotators

# Rows: what the judge (x) said; columns: the reference (y).
CELLS = ((30, 5, 0), (10, 40, 0), (0, 5, 0))


def test_scores_by_hand() -> None:
    result = {m.measure: m for m in class_scores(two_annotators(CELLS), "x", "y")}
    assert result["accuracy"].value == pytest.approx(70 / 90)
    assert result["precision:a"].value == pytest.approx(30 / 35)
    assert result["recall:a"].value == pytest.approx(30 / 40)
    assert result["f1:a"].value == pytest.approx(60 / 75)
    # The judge said c five times and was wrong: precision 0 is a value. The reference never did: no recall.
    assert result["precision:c"].value == 0.0
    assert result["recall:c"].value is None
    assert result["recall:c"].reason == "'y' never used the label 'c'"
    assert result["f1:c"].value == 0.0
    # Every label's row has its own n: the units of its denominator; the coverage is that of the pair.
    assert [result[f"{name}:a"].n_units for name in ("precision", "recall", "f1")] == [35, 40, 45]
    assert (result["recall:c"].n_units, result["precision:c"].n_units, result["accuracy"].n_units) == (
        0,
        5,
        90,
    )
    assert {m.coverage for m in result.values()} == {1.0}
    assert result["macro_f1"].value == pytest.approx((60 / 75 + 80 / 100 + 0) / 3)
    for measure in result.values():
        if measure.value not in (None, 0.0):
            assert measure.low < measure.value < measure.high


def test_a_precision_that_never_failed_has_the_exact_bound() -> None:
    result = {m.measure: m for m in class_scores(two_annotators(((20, 0), (7, 30))), "x", "y")}
    # 20 units called a, none wrong: at most 1 - .025^(1/20) = .168 are.
    assert result["precision:a"].value == 1.0
    assert result["precision:a"].low == pytest.approx(0.025 ** (1 / 20))
    assert result["precision:a"].high == 1.0
    other = {m.measure: m for m in class_scores(two_annotators(((0, 20), (7, 30))), "x", "y")}
    assert other["precision:a"].value == 0.0
    assert other["precision:a"].high == pytest.approx(1 - 0.025 ** (1 / 20))


def test_specific_agreement_of_two_is_the_f1_of_their_matrix() -> None:
    table = two_annotators(CELLS)
    agreement = {m.measure: m.value for m in class_agreement(table, interval=None)}
    # 2a / (2a + b + c), Cicchetti & Feinstein 1990.
    assert agreement["class_agreement:a"] == pytest.approx(60 / (35 + 40))
    assert agreement["class_agreement:b"] == pytest.approx(80 / (50 + 50))
    assert agreement["class_agreement:c"] == 0.0


def test_specific_agreement_of_many_averages_to_the_observed() -> None:
    table = fleiss_1971()
    result = class_agreement(table, interval=None)
    shares = table.counts.sum(axis=0) / table.counts.sum()
    # Weighted by how often each label was given, it is the observed agreement: Fleiss prints .556.
    total = sum(m.value * share for m, share in zip(result, shares, strict=True) if m.value is not None)
    assert total == pytest.approx(0.5556, abs=1e-4)
    # Fleiss 1971, p. 381: kappa .520 and share 30/180 for schizophrenia, so .1667 + .520 * .8333 = .600.
    assert result[2].value == pytest.approx(0.600, abs=5e-4)


def test_a_label_that_nobody_gave_has_no_agreement() -> None:
    result = class_agreement(Ratings.from_codes(np.array([[0, 0], [0, 1], [2, -1]]), list("abc"), ["x", "y"]))
    assert result[2].value is None
    assert result[2].reason == "nobody gave 'c' to a unit that two annotators labelled"


def test_shares_of_labels() -> None:
    table = Ratings.from_codes(np.array([[0, -1], [0, -1], [1, -1]]), ["a", "b"], ["x", "y"])
    assert label_shares(table) == {"x": {"a": pytest.approx(2 / 3), "b": pytest.approx(1 / 3)}, "y": None}
