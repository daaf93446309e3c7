"""Agreement with one reference, compared pair by pair: the test that report, judge compare and calibration share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from judge.errors import BadInput
from judge.stats import Ratings, compare, measures
from judge.stats.multiple import holm


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
    [found] = compare(table, ["one", "two"], "gold", name, level=level)

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
    m = found.difference
    assert (m.value, m.n_units, m.n_clusters, m.coverage) == (pytest.approx(whole), 120, 40, 1.0)
    assert (m.low, m.high) == pytest.approx(student.interval(0.95, 39, whole, error), abs=1e-9)
    assert found.p_value == pytest.approx(2 * student.sf(abs(whole) / error, 39), rel=1e-6)
    assert m.annotators == ("one", "two", "gold")


def test_only_units_that_all_labelled_count() -> None:
    table = people(200, {"gold": 0.0, "one": 0.2, "two": 0.1, "three": 0.1})
    codes = table.codes.copy()
    codes[:50, 0], codes[50:80, 2], codes[80:90, 3] = -1, -1, -1
    partial = Ratings.from_codes(codes, table.domain, table.annotators)
    found = compare(partial, ["one", "two", "three"], "gold")
    whole = compare(partial.subset(np.arange(200) >= 90), ["one", "two", "three"], "gold")
    for mine, theirs in zip(found, whole, strict=True):
        assert (mine.difference.n_units, mine.difference.coverage) == (110, 0.55)
        assert mine.difference.value == theirs.difference.value and mine.p_value == theirs.p_value


def test_pairing_makes_the_interval_narrow() -> None:
    # Two judges that differ on few units: their kappas move together.
    rng = np.random.default_rng(1)
    table = people(300, {"gold": 0.0, "one": 0.25})
    other = np.where(rng.random(300) < 0.03, 1 - table.column("one"), table.column("one"))
    table = table.with_annotator("two", other)
    m = compare(table, ["one", "two"], "gold")[0].difference
    each = measures(table.select(["one", "gold"]), ["cohen_kappa"])[0]
    assert m.high - m.low < 0.5 * (each.high - each.low)  # type: ignore[operator]


def test_p_values_are_holms_over_all_pairs_and_agree_with_the_intervals() -> None:
    table = people(400, {"gold": 0.0, "good": 0.05, "bad": 0.3, "same": 0.3}, seed=3)
    found = compare(table, ["good", "bad", "same"], "gold")
    assert [(c.first, c.second) for c in found] == [("good", "bad"), ("good", "same"), ("bad", "same")]
    p = [c.p_value for c in found]
    assert [c.adjusted for c in found] == pytest.approx(holm([x for x in p if x is not None]).tolist())
    sides = [(c.difference.low <= 0 <= c.difference.high, c.p_value >= 0.05) for c in found]  # type: ignore[operator]
    assert sides == [(False, False), (False, False), (True, True)]
    assert found[0].difference.value < 0  # type: ignore[operator]


def test_p_values_are_uniform_without_a_difference() -> None:
    small = 0
    for seed in range(200):
        table = people(100, {"gold": 0.0, "one": 0.2, "two": 0.2}, seed=seed)
        small += compare(table, ["one", "two"], "gold")[0].p_value <= 0.1  # type: ignore[operator]
    # Binomial(200, .1): 20, standard deviation 4.2
    assert 8 <= small <= 34


def test_an_undefined_comparison_has_a_reason() -> None:
    table = people(40, {"gold": 0.0, "one": 0.1, "two": 0.1})
    flat = table.subset(table.column("gold") == 0)
    codes = np.zeros_like(flat.codes)
    found = compare(Ratings.from_codes(codes, ["0", "1"], flat.annotators), ["one", "two"], "gold")[0]
    assert found.difference.value is None and found.p_value is None and found.adjusted is None
    assert found.difference.reason == "undefined on the shared questions, or on all but one of them"
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
    with pytest.raises(BadInput, match="not 'gwet_ac1'"):
        compare(table, ["one", "two"], "gold", "gwet_ac1")
