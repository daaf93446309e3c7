"""What must not change a measure, over the dict of all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.stats import METRICS, Ratings, measures
from judge.types import Measure

DOMAIN = ["1", "2", "4", "9"]
# Coefficients that see only whether labels are equal.
NOMINAL = [key for key, c in METRICS.items() if c.level in (None, "nominal") and c.weights is None]
# What those without a correction for chance say of random labels: with four, two draws are alike one time in four.
BY_CHANCE = {"percent": 1 / 4}
# Coefficients that count the sample itself, through n - 1 or a comparison without replacement.
SMALL_SAMPLE = [key for key in METRICS if key.startswith("krippendorff")]


@st.composite
def tables(draw: st.DrawFn) -> Ratings:
    rows = draw(st.lists(st.lists(st.integers(-1, 3), min_size=3, max_size=3), min_size=2, max_size=12))
    groups = draw(st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows)))
    return Ratings.from_codes(np.array(rows), DOMAIN, list("abc"), clusters=groups)


def of(ratings: Ratings, key: str, interval: bool = False) -> list[Measure]:
    return measures(ratings, [key], interval="bca" if interval else None, replicates=100)


def same(first: list[Measure], second: list[Measure]) -> None:
    assert [m.value is None for m in first] == [m.value is None for m in second]
    for old, new in zip(first, second, strict=True):
        assert old.value == pytest.approx(new.value, abs=1e-12)
        assert (old.n_units, old.n_clusters, old.coverage) == (new.n_units, new.n_clusters, new.coverage)


def rebuilt(ratings: Ratings, codes: np.ndarray, clusters: np.ndarray, domain: list[str] = DOMAIN) -> Ratings:
    return Ratings.from_codes(codes, domain, ratings.annotators, clusters=clusters)


@pytest.mark.parametrize("key", METRICS)
@settings(max_examples=12, deadline=None)
@given(table=tables())
def test_annotator_order(key: str, table: Ratings) -> None:
    first = {frozenset(m.annotators or ()): m for m in of(table, key)}
    second = {frozenset(m.annotators or ()): m for m in of(table.select(["c", "a", "b"]), key)}
    assert first.keys() == second.keys()
    same([first[k] for k in first], [second[k] for k in first])


@pytest.mark.parametrize("key", METRICS)
@settings(max_examples=12, deadline=None)
@given(table=tables(), seed=st.integers(0, 99))
def test_unit_order(key: str, table: Ratings, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(table.n_units)
    same(of(table, key), of(rebuilt(table, table.codes[order], table.clusters[order]), key))


@pytest.mark.parametrize("key", NOMINAL)
@settings(max_examples=12, deadline=None)
@given(table=tables(), order=st.permutations(range(4)))
def test_label_renaming(key: str, table: Ratings, order: list[int]) -> None:
    renamed = np.where(table.codes < 0, -1, np.array(order)[table.codes])
    same(of(table, key), of(rebuilt(table, renamed, table.clusters), key))


@pytest.mark.parametrize("key", [k for k, c in METRICS.items() if c.level != "ratio"])
@settings(max_examples=12, deadline=None)
@given(table=tables())
def test_reversed_order_of_labels(key: str, table: Ratings) -> None:
    # 1 2 4 9 read backwards keeps every distance when the numbers are mirrored as well: 10 - x.
    mirrored = ["1", "6", "8", "9"]
    turned = np.where(table.codes < 0, -1, 3 - table.codes)
    same(of(table, key), of(rebuilt(table, turned, table.clusters, mirrored), key))


@pytest.mark.parametrize("key", [k for k in METRICS if k not in SMALL_SAMPLE])
@settings(max_examples=12, deadline=None)
@given(table=tables())
def test_duplicated_units(key: str, table: Ratings) -> None:
    double = rebuilt(table, np.vstack([table.codes, table.codes]), np.concatenate([table.clusters] * 2))
    for once, twice in zip(of(table, key), of(double, key), strict=True):
        assert once.value == pytest.approx(twice.value, abs=1e-12)
        assert twice.n_units == 2 * once.n_units


@pytest.mark.parametrize("key", METRICS)
@settings(max_examples=8, deadline=None)
@given(table=tables())
def test_units_without_labels_change_only_the_coverage(key: str, table: Ratings) -> None:
    more = np.vstack([table.codes, np.full((table.n_units, 3), -1)])
    padded = rebuilt(table, more, np.concatenate([table.clusters, table.clusters]))
    for without, with_ in zip(of(table, key), of(padded, key), strict=True):
        assert without.value == pytest.approx(with_.value, abs=1e-12)
        assert without.n_units == with_.n_units
        assert without.coverage == pytest.approx(2 * (with_.coverage or 0.0))


@pytest.mark.parametrize("key", METRICS)
def test_perfect_agreement_is_one(key: str) -> None:
    table = Ratings.from_codes(np.repeat(np.arange(4), 3)[:, None].repeat(3, axis=1), DOMAIN, list("abc"))
    for result in of(table, key, interval=True):
        assert result.value == pytest.approx(1.0)
        assert result.low is not None
        assert result.low < 1.0


@pytest.mark.parametrize("key", METRICS)
def test_random_labels_are_near_zero(key: str) -> None:
    codes = np.random.default_rng(0).integers(0, 4, (20_000, 3))
    for result in of(Ratings.from_codes(codes, DOMAIN, list("abc")), key):
        assert result.value == pytest.approx(BY_CHANCE.get(key, 0.0), abs=0.02)


@pytest.mark.parametrize("per", (1, 3))
def test_names_of_labels_people_and_questions_do_not_change_intervals(per: int) -> None:
    """The seed alone decides the resamples: with other names, that is in another order, every interval is the same."""
    rng = np.random.default_rng(11)
    truth = rng.choice(3, size=120, p=(0.6, 0.3, 0.1))
    codes = np.column_stack([np.where(rng.random(120) < 0.7, truth, rng.integers(-1, 3, 120)) for _ in "abc"])
    labels, people, rows = (np.array(o) for o in ([2, 0, 1], [1, 2, 0], rng.permutation(120)))
    named = np.where(codes < 0, -1, labels[codes])[rows][:, people]
    questions = np.arange(120) // per
    clusters = rng.permutation(120)[questions[rows]]
    first = Ratings.from_codes(codes, DOMAIN[:3], list("abc"), clusters=questions)
    second = Ratings.from_codes(named, DOMAIN[:3], ["bca"[i] for i in range(3)], clusters=clusters)
    usual = measures(first)
    other = {(m.measure, frozenset(m.annotators or ())): m for m in measures(second)}
    assert len(other) == len(usual) == 8
    for m in usual:
        same_one = other[m.measure, frozenset(m.annotators or ())]
        assert (same_one.value, same_one.low, same_one.high) == pytest.approx(
            (m.value, m.low, m.high), abs=1e-12
        )
