"""Pairs of many annotators at once: the same numbers as one by one."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from annotate.agreement.every_pair import Pairs, all_pairs
from judge.stats import METRICS, Ratings, measures

NOMINAL = ["percent", "cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1", "pabak"]
ORDINAL = ["percent", "cohen_kappa:linear", "cohen_kappa:quadratic", "krippendorff_alpha", "gwet_ac2"]


def table(seed: int, annotators: int = 9, q: int = 3) -> Ratings:
    rng = np.random.default_rng(seed)
    codes = np.where(rng.random((60, annotators)) < 0.4, rng.integers(0, q, (60, annotators)), -1)
    codes[:, 0] = np.where(codes[:, 0] >= 0, 0, -1)  # a constant one
    codes[:30, 1], codes[30:, 2] = -1, -1  # two without a unit in common
    return Ratings.from_codes(codes, [str(i) for i in range(q)], [f"a{i}" for i in range(annotators)])


def rows(found: Pairs) -> dict[tuple[str, str], int]:
    names = found.annotators
    pairs = zip(found.first.tolist(), found.second.tolist(), strict=True)
    return {(names[a], names[b]): i for i, (a, b) in enumerate(pairs)}


@pytest.mark.parametrize(
    ("level", "keys"), [("nominal", NOMINAL), ("ordinal", ORDINAL), ("interval", ["krippendorff_alpha"])]
)
@pytest.mark.parametrize("seed", range(3))
def test_each_value_is_that_of_the_pair_alone(level: str, keys: list[str], seed: int) -> None:
    ratings = table(seed)
    names = ratings.annotators
    found = all_pairs(ratings, keys, level=level, first=names, second=names)
    place = rows(found)
    assert found.n_pairs == len(list(combinations(names, 2)))
    for pair in combinations(names, 2):
        two = ratings.select(pair)
        # AC1 and Fleiss' kappa also learn from units that only one labelled; pairs here share theirs.
        alone = measures(two.subset((two.codes >= 0).all(axis=1)), keys, level=level, interval=None)
        if pair not in place:
            assert alone[0].n_units == 0
            continue
        i = place[pair]
        assert found.n_units[i] == alone[0].n_units > 0
        for key, one in zip(found.values, alone, strict=True):
            value = found.values[key][i]
            assert METRICS[key].measure == one.measure
            assert np.isnan(value) if one.value is None else value == pytest.approx(one.value, abs=1e-12)


def test_two_lists_are_paired_across() -> None:
    ratings = table(0)
    found = all_pairs(ratings, ["percent"], level="nominal", first=["a8"], second=["a3", "a4", "a8"])
    assert set(rows(found)) <= set(product(["a8"], ["a3", "a4"])) and found.n_pairs == 2


def test_the_summary_has_quartiles_and_both_means() -> None:
    codes = np.array([[0, 0, 1], [0, 0, -1], [1, 0, 1], [1, 1, -1]])
    ratings = Ratings.from_codes(codes, ["x", "y"], ["a", "b", "c"])
    row = all_pairs(ratings, ["percent"], level="nominal", first="abc", second="abc").summary("percent")
    # a-b agree on 3 of 4 units, a-c on 1 of 2, b-c on 0 of 2.
    assert (row["n_pairs"], row["n_sharing"], row["n_defined"]) == (3, 3, 3)
    assert (row["min"], row["median"], row["max"]) == (0.0, 0.5, 0.75)
    assert row["mean"] == pytest.approx(1.25 / 3)
    assert row["weighted_mean"] == pytest.approx((3 + 1 + 0) / 8)


def test_nothing_in_common_is_no_number() -> None:
    ratings = Ratings.from_codes(np.array([[0, -1], [-1, 1]]), ["x", "y"], ["a", "b"])
    row = all_pairs(ratings, ["cohen_kappa"], level="nominal", first="ab", second="ab").summary("cohen_kappa")
    assert (row["n_pairs"], row["n_sharing"], row["n_defined"], row["mean"], row["max"]) == (
        1,
        0,
        0,
        None,
        None,
    )
