"""Paired differences of agreement."""

from __future__ import annotations

import numpy as np
import pytest

from judge.errors import BadInput
from judge.stats import Ratings, compare, compare_judges, measures
from judge.stats.multiple import holm


def people(n: int, noise: dict[str, float], seed: int = 0, clusters: np.ndarray | None = None) -> Ratings:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    columns = [np.where(rng.random(n) < chance, 1 - truth, truth) for chance in noise.values()]
    return Ratings.from_codes(np.column_stack(columns), ["a", "b"], list(noise), clusters=clusters)


@pytest.mark.parametrize("name", ["cohen_kappa", "krippendorff_alpha", "percent"])
def test_the_value_is_the_difference_of_the_means(name: str) -> None:
    table = people(300, {"judge": 0.1, "h1": 0.2, "h2": 0.05})
    found = compare(table, [("judge", "h1"), ("judge", "h2")], [("h1", "h2")], name)
    values = {
        pair: measures(table.select(pair), [name], interval=None)[0].value
        for pair in (("judge", "h1"), ("judge", "h2"), ("h1", "h2"))
    }
    expected = (values["judge", "h1"] + values["judge", "h2"]) / 2 - values["h1", "h2"]
    assert found.difference.value == pytest.approx(expected, abs=1e-12)
    assert found.difference.low < expected < found.difference.high
    assert found.difference.annotators == ("judge", "h1", "h2")


def test_only_common_units_count() -> None:
    table = people(200, {"judge": 0.1, "h1": 0.2, "h2": 0.1})
    codes = table.codes.copy()
    codes[:50, 0], codes[50:80, 2] = -1, -1
    partial = Ratings.from_codes(codes, table.domain, table.annotators)
    found = compare(partial, [("judge", "h1")], [("h1", "h2")]).difference
    whole = compare(partial.subset(np.arange(200) >= 80), [("judge", "h1")], [("h1", "h2")]).difference
    assert (found.n_units, found.coverage) == (120, 0.6)
    assert found.value == pytest.approx(whole.value, abs=1e-12)


def test_pairing_makes_the_interval_narrow() -> None:
    # Two judges that differ on few units: their kappas move together.
    rng = np.random.default_rng(1)
    table = people(300, {"gold": 0.0, "one": 0.25})
    other = np.where(rng.random(300) < 0.03, 1 - table.column("one"), table.column("one"))
    table = table.with_annotator("two", other)
    found = compare(table, [("one", "gold")], [("two", "gold")]).difference
    each = measures(table.select(["one", "gold"]), ["cohen_kappa"])[0]
    assert found.high - found.low < 0.5 * (each.high - each.low)


def test_a_judge_against_itself_is_no_different() -> None:
    table = people(300, {"gold": 0.0, "one": 0.2})
    table = table.with_annotator("copy", table.column("one"))
    found = compare(table, [("one", "gold")], [("copy", "gold")])
    assert found.difference.value == 0.0
    assert found.p_value == 1.0


def test_p_values() -> None:
    table = people(400, {"gold": 0.0, "good": 0.05, "bad": 0.3, "same": 0.3}, seed=3)
    found = compare_judges(table, ["good", "bad", "same"], "gold")
    assert [(c.plus[0][0], c.minus[0][0]) for c in found] == [
        ("good", "bad"),
        ("good", "same"),
        ("bad", "same"),
    ]
    p = [c.p_value for c in found]
    assert p[0] == p[1] == pytest.approx(2 / 2001)  # no resample on the other side
    assert p[2] > 0.05
    assert [c.adjusted for c in found] == pytest.approx(holm(p).tolist())
    assert found[0].difference.low > 0
    assert found[2].difference.low < 0 < found[2].difference.high


def test_p_values_are_uniform_without_a_difference() -> None:
    small = 0
    for seed in range(200):
        table = people(100, {"gold": 0.0, "one": 0.2, "two": 0.2}, seed=seed)
        found = compare(table, [("one", "gold")], [("two", "gold")], replicates=200)
        small += found.p_value <= 0.1
    # Binomial(200, .1): 20, standard deviation 4.2
    assert 8 <= small <= 34


def test_all_agreeing_is_not_certain() -> None:
    table = people(40, {"judge": 0.0, "h1": 0.0, "h2": 0.0})
    found = compare(table, [("judge", "h1"), ("judge", "h2")], [("h1", "h2")]).difference
    assert found.value == 0.0
    # At most 1 - .025^(1/40) = .088 of the units would differ, over a chance of about one half.
    assert found.low == pytest.approx(-0.176, abs=0.01)
    assert found.high == pytest.approx(0.176, abs=0.01)


def test_an_undefined_side_is_said() -> None:
    table = people(40, {"judge": 0.1, "h1": 0.1}).with_annotator("h2", np.zeros(40, dtype=int))
    found = compare(table, [("judge", "h1")], [("h1", "h2")])
    assert found.difference.value is None
    assert found.difference.reason == "one of the two sides is undefined on the units they share"
    assert found.p_value is None
    apart = Ratings.from_codes(np.array([[0, 0, -1], [-1, 1, 1]]), ["a", "b"], ["x", "y", "z"])
    assert (
        compare(apart, [("x", "y")], [("y", "z")]).difference.reason
        == "no unit is labelled by all of x, y, z"
    )


def test_bad_calls_are_refused() -> None:
    table = people(40, {"judge": 0.1, "h1": 0.1})
    with pytest.raises(BadInput, match="at least one pair on each side"):
        compare(table, [("judge", "h1")], [])
    with pytest.raises(BadInput, match="no annotator 'h9'"):
        compare(table, [("judge", "h1")], [("judge", "h9")])
    with pytest.raises(BadInput, match="unknown measure"):
        compare(table, [("judge", "h1")], [("h1", "judge")], "f1")


@pytest.mark.parametrize("interval", ["bca", "percentile"])
def test_p_values_and_intervals_agree(interval: str) -> None:
    # Two judges on 60 units against one reference, the second a little worse each time: where the interval leaves zero
    # out p lies below .05, and nowhere else.
    sides = set()
    for seed in range(25):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 60)
        one, two = (np.where(rng.random(60) < e, 1 - truth, truth) for e in (0.1, 0.1 + 0.012 * seed))
        table = Ratings.from_codes(np.column_stack([one, two, truth]), ["a", "b"], ["one", "two", "gold"])
        found = compare(
            table, [("one", "gold")], [("two", "gold")], interval=interval, replicates=500, seed=seed
        )
        d = found.difference
        outside = not d.low <= 0 <= d.high
        assert outside == (found.p_value < 0.05), (seed, d.low, d.high, found.p_value)
        sides.add(outside)
    assert sides == {True, False}
