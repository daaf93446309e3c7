"""Annotators compared with one reference: the paired test by hand and against scipy, and duels of judges."""

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_rel
from sklearn.metrics import cohen_kappa_score

from judge.errors import BadInput
from judge.stats import Ratings, measures
from judge.stats.coefficients import ratio
from judge.stats.multiple import holm
from judge.stats.paired import Duel, compare, contest, kappa_of, kappa_sums, paired_difference, pseudo_values


def people(n: int, noise: dict[str, float], seed: int = 0, clusters: np.ndarray | None = None) -> Ratings:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    columns = [np.where(rng.random(n) < chance, 1 - truth, truth) for chance in noise.values()]
    return Ratings.from_codes(np.column_stack(columns), ["0", "1"], list(noise), clusters=clusters)


@pytest.mark.parametrize(
    ("name", "level"),
    [("cohen_kappa", "nominal"), ("krippendorff_alpha", "nominal"), ("krippendorff_alpha", "interval")],
)
def test_the_test_is_students_t_on_values_left_one_question_out(name: str, level: str) -> None:
    # By the definition: G d - (G - 1) d(without g) for each of 40 questions, each d by `measures` on the table itself.
    table = people(120, {"gold": 0.0, "one": 0.2, "two": 0.1}, clusters=np.arange(120) // 3)
    [result] = compare(table, ["one", "two"], "gold", name, level=level)

    def apart(of: Ratings) -> float:
        one, two = (
            measures(of.select([who, "gold"]), [name], level=level, interval=None)[0].value
            for who in ("one", "two")
        )
        assert one is not None and two is not None
        return two - one

    whole = apart(table)
    pseudo = [40 * whole - 39 * apart(table.subset(table.clusters != g)) for g in range(40)]
    error = np.std(pseudo, ddof=1) / 40**0.5
    m = result.difference
    assert (m.value, m.n_units, m.n_clusters, m.coverage) == (pytest.approx(whole), 120, 40, 1.0)
    assert (m.low, m.high) == pytest.approx(student.interval(0.95, 39, whole, error), abs=1e-9)
    assert result.p_value == pytest.approx(2 * student.sf(abs(whole) / error, 39), rel=1e-6)
    assert m.annotators == ("one", "two", "gold")


def test_only_units_that_all_labelled_count() -> None:
    table = people(200, {"gold": 0.0, "one": 0.2, "two": 0.1, "three": 0.1})
    codes = table.codes.copy()
    codes[:50, 0], codes[50:80, 2], codes[80:90, 3] = -1, -1, -1
    partial = Ratings.from_codes(codes, table.domain, table.annotators)
    result = compare(partial, ["one", "two", "three"], "gold")
    whole = compare(partial.subset(np.arange(200) >= 90), ["one", "two", "three"], "gold")
    for part, full in zip(result, whole, strict=True):
        assert (part.difference.n_units, part.difference.coverage) == (110, 0.55)
        assert part.difference.value == full.difference.value and part.p_value == full.p_value


def test_p_values_are_adjusted_over_all_pairs_and_agree_with_the_intervals() -> None:
    table = people(400, {"gold": 0.0, "good": 0.05, "bad": 0.3, "same": 0.3}, seed=3)
    result = compare(table, ["good", "bad", "same"], "gold")
    assert [(c.first, c.second) for c in result] == [("good", "bad"), ("good", "same"), ("bad", "same")]
    p = [c.p_value for c in result]
    assert [c.adjusted for c in result] == pytest.approx(holm([x for x in p if x is not None]).tolist())
    sides = [(c.difference.low <= 0 <= c.difference.high, c.p_value >= 0.05) for c in result]  # type: ignore[operator]
    assert sides == [(False, False), (False, False), (True, True)]
    assert result[0].difference.value < 0  # type: ignore[operator]


def test_an_undefined_comparison_has_a_reason() -> None:
    table = people(40, {"gold": 0.0, "one": 0.1, "two": 0.1})
    flat = table.subset(table.column("gold") == 0)
    codes = np.zeros_like(flat.codes)
    result = compare(Ratings.from_codes(codes, ["0", "1"], flat.annotators), ["one", "two"], "gold")[0]
    assert result.difference.value is None and result.p_value is None and result.adjusted is None
    assert (
        result.difference.reason
        == "the measure is undefined on the shared questions, or would be if one of them were left out"
    )
    apart = Ratings.from_codes(np.array([[0, 0, -1], [-1, 1, 1]]), ["a", "b"], ["x", "y", "z"])
    assert compare(apart, ["x", "z"], "y")[0].difference.reason == "no unit is labelled by all of x, z, y"


def test_bad_calls_are_refused() -> None:
    table = people(40, {"gold": 0.0, "one": 0.1, "two": 0.1})
    with pytest.raises(BadInput, match="at least two annotators"):
        compare(table, ["one"], "gold")
    with pytest.raises(BadInput, match="no annotator 'h9'"):
        compare(table, ["one", "h9"], "gold")
    with pytest.raises(BadInput, match="unknown measure"):
        compare(table, ["one", "two"], "gold", "f1")
    with pytest.raises(BadInput, match="not by 'gwet_ac1'"):
        compare(table, ["one", "two"], "gold", "gwet_ac1")


def one_unit_each(values: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """One unit a question."""
    column = np.asarray(values, dtype=np.float64)
    return np.column_stack([column, np.ones(len(column))])


def mean_of(
    rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return ratio(rows[:, 0], rows[:, -1])


def test_pseudo_values_of_a_quotient_by_hand() -> None:
    # hits 1, 2, 0 of 2, 2, 1: 3/5. Without each: 2/3, 1/3, 3/4; three times .6 minus twice these.
    rows = np.array([[1, 2, 1], [2, 2, 1], [0, 1, 1]], dtype=np.float64)
    whole, values = pseudo_values(rows, lambda s: ratio(s[:, 0], s[:, 1]))
    assert whole == pytest.approx(0.6)
    np.testing.assert_allclose(values, [1.8 - 4 / 3, 1.8 - 2 / 3, 1.8 - 1.5])


@pytest.mark.parametrize(("shift", "p"), [(0.0, 1.0), (0.5, 2.0**-4)])
def test_a_difference_without_spread_has_the_sign_tests_p(shift: float, p: float) -> None:
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.4])
    result = paired_difference(
        pseudo_values(one_unit_each(values), mean_of), pseudo_values(one_unit_each(values + shift), mean_of)
    )
    assert (result.difference, result.low, result.p) == (pytest.approx(shift), None, p)


def test_a_difference_that_cannot_be_tested_has_a_reason() -> None:
    single = pseudo_values(one_unit_each([1.0]), mean_of)
    assert "number of shared questions is 1" in str(paired_difference(single, single).reason)
    # Without the only question that has a denominator the quotient is undefined.
    rows = np.array([[1, 1, 1], [0, 0, 1]], dtype=np.float64)
    thin = pseudo_values(rows, lambda s: ratio(s[:, 0], s[:, 1]))
    result = paired_difference(thin, thin)
    assert (result.p, result.difference) == (None, None)
    assert "undefined" in str(result.reason)
    with pytest.raises(BadInput, match="same questions"):
        paired_difference(single, thin)


def planted(n: int = 300, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Truth of three labels, and judges right on 85, 60 and 33 %."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    return truth, np.column_stack(
        [np.where(rng.random(n) < right, truth, rng.integers(0, 3, n)) for right in (0.8, 0.5, 0.0)]
    )


def table(codes: np.ndarray, truth: np.ndarray, clusters: np.ndarray | None = None) -> Ratings:
    names = ["gold", *(f"judge {i}" for i in range(codes.shape[1]))]
    return Ratings.from_codes(np.column_stack([truth, codes]), ["a", "b", "c"], names, clusters=clusters)


def duels_of(codes: np.ndarray, truth: np.ndarray, clusters: np.ndarray | None = None) -> list[Duel]:
    return contest(table(codes, truth, clusters), "gold")


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_differences_are_those_of_scikit_learn_and_do_not_depend_on_questions(weights: str | None) -> None:
    truth, codes = planted()
    wanted = [
        cohen_kappa_score(truth, judge_codes, labels=[0, 1, 2], weights=weights) for judge_codes in codes.T
    ]
    name = "cohen_kappa" if weights is None else f"cohen_kappa:{weights}"
    for clusters in (None, np.arange(300) // 10):
        for d in contest(table(codes, truth, clusters), "gold", name):
            assert d.kappa.difference.value == pytest.approx(wanted[d.second] - wanted[d.first])


def test_agreement_of_single_units_is_the_paired_t_test() -> None:
    truth, codes = planted()
    right = codes == truth[:, None]
    for d in duels_of(codes, truth):
        known = ttest_rel(right[:, d.second].astype(float), right[:, d.first].astype(float))
        assert d.agreement.p_value == pytest.approx(known.pvalue, rel=1e-9)
        low, high = known.confidence_interval(0.95)
        m = d.agreement.difference
        assert (m.low, m.high) == (pytest.approx(low), pytest.approx(high))


def test_equal_judges_differ_significantly_in_five_percent_of_studies() -> None:
    # 60 questions of 5 units, two judges of the same accuracy whose errors cluster; 400 studies: 5 % + 3 s.e. is 8.3 %.
    rng = np.random.default_rng(11)
    n, shown = 300, 0
    questions = np.arange(n) // 5
    for _ in range(400):
        truth = rng.integers(0, 2, n)
        codes = np.empty((n, 2), dtype=np.int64)
        for j in range(2):
            hard = rng.beta(3, 1, 60)[questions]
            codes[:, j] = np.where(rng.random(n) < hard, truth, 1 - truth)
        [result] = compare(table(codes, truth, questions), ["judge 0", "judge 1"], "gold")
        shown += result.adjusted is not None and result.adjusted <= 0.05
    assert 0.02 <= shown / 400 <= 0.083


def test_errors_of_both_judges_are_counted_by_label() -> None:
    truth = np.array([0, 0, 0, 1, 1, 2])
    codes = np.array([[0, 0], [0, 1], [0, 1], [0, 1], [0, 0], [2, 2]])
    [duel] = duels_of(codes, truth)
    assert duel.both == (1, 0, 1) and duel.only_first == (2, 0, 0)
    assert duel.only_second == (0, 1, 0) and duel.neither == (0, 1, 0)


def test_a_judge_of_one_label_counts_as_no_skill() -> None:
    truth, codes = planted()
    codes[:, 2] = 1
    first = cohen_kappa_score(truth, codes[:, 0])
    assert duels_of(codes, truth)[1].kappa.difference.value == pytest.approx(-first)
    flat = kappa_sums(np.zeros(4, int), np.zeros(4, int), np.arange(4), 3)
    assert np.isnan(kappa_of(flat.sum(axis=0, keepdims=True)))[0], "chance alone agrees: undefined"


def test_two_shares_differ_by_at_most_one() -> None:
    # Three units: the second judge is right on the first alone, the first on all but the first. t(2) = 4.3 reaches past 1.
    codes = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0]])
    table = Ratings.from_codes(codes, ["a", "b"], ["gold", "one", "two"])
    (result,) = compare(table, ["one", "two"], "gold", "percent")
    assert result.difference.low is not None and result.difference.high is not None
    assert -1 <= result.difference.low < result.difference.high <= 1


def test_binary_outcomes_have_the_exact_test() -> None:
    """12 questions, the second wins 5 and loses none: McNemar's exact p is 2 / 2^5 = .0625 (the t-test says .017)."""
    first = np.zeros(12)
    second = np.array([1.0] * 5 + [0.0] * 7)
    result = paired_difference((0.0, first), (5 / 12, second), exact=True)
    assert result.p == pytest.approx(0.0625)
    # One win against four: 2 (1 + 5) / 2^5 = .375.
    mixed = np.array([1.0] + [0.0] * 11)
    other = np.array([0.0] + [1.0] * 4 + [0.0] * 7)
    assert paired_difference((1 / 12, mixed), (4 / 12, other), exact=True).p == pytest.approx(0.375)
