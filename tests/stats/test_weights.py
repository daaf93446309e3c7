"""Units drawn with unequal probabilities: a unit of weight 2 counts as two units that are alike."""

from __future__ import annotations

import numpy as np
import pytest

from annotate.agreement.every_pair import compute_pairs
from judge.errors import BadInput
from judge.notes import Note, code_of
from judge.stats import (
    METRICS,
    Ratings,
    alt_test,
    class_scores,
    compare,
    confusion,
    dawid_skene,
    label_shares,
    measures,
    verdict,
)
from judge.stats.estimate import LEAST_EFFECTIVE
from judge.stats.ratings import effective_size

NAMES = ("a", "b", "c", "judge")


def tables(n: int = 120) -> tuple[Ratings, Ratings]:
    """Units with the weights 1, 2 and 3 in turn, and the same units repeated as often."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 3, n)
    codes = np.column_stack([np.where(rng.random(n) < 0.7, truth, rng.integers(0, 3, n)) for _ in NAMES])
    weights = 1.0 + np.arange(n) % 3
    domain = ["1", "2", "3"]
    repeated = Ratings.from_codes(np.repeat(codes, weights.astype(int), axis=0), domain, NAMES)
    return Ratings.from_codes(codes, domain, NAMES).with_weights(weights), repeated


@pytest.mark.parametrize("key", METRICS)
def test_a_unit_of_weight_n_counts_as_n_units(key: str) -> None:
    weighted, repeated = tables()
    level = key.partition(":")[2] if key.startswith("krippendorff") else "ordinal"
    usual = measures(repeated, [key], level=level, interval=None)
    for measure, other in zip(measures(weighted, [key], level=level), usual, strict=True):
        assert measure.value == pytest.approx(other.value, abs=1e-9) and measure.low is None
        # 40 units each of 1, 2 and 3: (40 6)^2 / (40 14) = 102.86 units.
        note = measure.notes[-1]
        assert isinstance(note, Note) and note.code == "weighted"
        assert note.parameters["n_eff"] == pytest.approx(57600 / 560)


def test_recall_precision_shares_and_comparisons_are_weighted() -> None:
    weighted, repeated = tables()
    for measure, other in zip(
        class_scores(weighted, "judge", "a"), class_scores(repeated, "judge", "a", interval=None), strict=True
    ):
        assert measure.value == pytest.approx(other.value)
    for name, shares in label_shares(weighted).items():
        assert shares == pytest.approx(label_shares(repeated)[name])
    (measure,), (other,) = (compare(t, ["b", "judge"], "a") for t in (weighted, repeated))
    assert measure.difference.value == pytest.approx(other.difference.value)
    assert measure.difference.low is None and measure.p_value is None


def test_the_numbers_of_a_verdict_are_weighted() -> None:
    first, second = (verdict(t, "judge", ["a", "b"], power=None) for t in tables())
    for a, b in zip(first.measures, second.measures, strict=True):
        assert a.value == pytest.approx(b.value) and a.low is None
    assert first.of.n_units == 120 and first.of.n_effective == pytest.approx(57600 / 560)


def test_a_confusion_matrix_has_counts_of_the_sample_and_shares_of_all_units() -> None:
    weighted, repeated = tables()
    result, whole = confusion(weighted, "judge", "a"), confusion(repeated, "judge", "a")
    assert result.n_units == 120 and result.matrix.sum() == 120 and whole.shares is None
    assert result.shares == pytest.approx(whole.matrix / 240)


def test_estimated_classes_apply_to_all_units() -> None:
    result, whole = map(dawid_skene, tables())
    assert result.prevalence == pytest.approx(whole.prevalence, abs=1e-6)
    assert result.accuracies == pytest.approx(whole.accuracies, abs=1e-6)


def test_the_alt_test_has_weighted_shares_and_no_test() -> None:
    result, whole = (alt_test(table, "judge", NAMES[:3]) for table in tables())
    for row, other in zip(result.compared, whole.compared, strict=True):
        assert (row.judge_wins, row.annotator_wins) == pytest.approx((other.judge_wins, other.annotator_wins))
        assert (row.n_units, row.p_value, row.adjusted, row.won) == (120, None, None, False)
    assert result.advantage == pytest.approx(whole.advantage)
    assert (result.winning_rate, result.passed) == (None, None) and result.reason


def test_many_pairs_are_weighted_and_count_units_once() -> None:
    result, whole = (
        compute_pairs(table, ["percent", "cohen_kappa"], level="nominal", first=NAMES[:3], second=NAMES[:3])
        for table in tables()
    )
    for key in result.values:
        assert result.values[key] == pytest.approx(whole.values[key])
    assert result.n_units.tolist() == [120] * 3


def test_weighted_units_have_an_interval_if_there_are_enough() -> None:
    # Kish: (2 n)^2 / (14 n / 3) = 6 n / 7, of which 250 takes 292 units.
    assert 6 * 288 / 7 < LEAST_EFFECTIVE < 6 * 294 / 7
    tested = [tables(n)[0].select(["a", "judge"]) for n in (288, 294)]
    (few,), (enough,) = (measures(table, ["percent"]) for table in tested)
    assert few.low is None and code_of(few.notes[-1]) == "weighted"
    assert enough.low is not None and enough.low < enough.value < enough.high
    # A share p has the standard error sqrt(sum w^2 (x - p)^2) / sum w; t with 251 degrees of freedom is 1.97.
    codes = tested[1].codes
    agree, w = codes[:, 0] == codes[:, 1], 1.0 + np.arange(294) % 3
    p = float(np.average(agree, weights=w))
    error = float(np.sqrt((w**2 * (agree - p) ** 2).sum()) / w.sum())
    assert enough.value == pytest.approx(p)
    assert enough.high - enough.value == pytest.approx(1.97 * error, rel=0.02)


def test_bad_weights_are_refused_and_weights_follow_their_units() -> None:
    weighted, _ = tables()
    kept = weighted.subset(np.arange(120) < 3).select(["a"])
    assert kept.weights.tolist() == [1, 2, 3]
    assert effective_size(np.array([1.0, 1.0, 1.0])) == 3 and effective_size(np.array([])) == 0
    with pytest.raises(BadInput, match=r"weight above 0.*120 units"):
        weighted.with_weights(np.zeros(120))
