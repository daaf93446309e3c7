"""One test for each way in which agreement software is known to mislead (statistics notes, "Traps")."""

import tracemalloc

import krippendorff
import numpy as np
import pytest

from judge.errors import BadInput
from judge.notes import code_of
from judge.stats import Ratings, measures, scores_alpha
from judge.types import Measure
from tests.stats.published import krippendorff_2011, two_annotators

ALL = ["percent", "cohen_kappa", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1", "pabak"]
CHANCE_FROM_DATA = ["cohen_kappa", "fleiss_kappa", "krippendorff_alpha"]


def by_name(table: Ratings, names: list[str] | None = None, level: str = "nominal") -> dict[str, Measure]:
    return {m.measure: m for m in measures(table, names or ALL, level=level, interval=None)}


def pair(codes: list[list[int]], domain: str = "ab") -> Ratings:
    return Ratings.from_codes(np.array(codes), list(domain), ["x", "y"])


def test_the_default_level_is_nominal_not_interval() -> None:
    table = krippendorff_2011()
    (result,) = measures(table, ["krippendorff_alpha"], interval=None)
    by_default = krippendorff.alpha(value_counts=table.counts)
    assert result.level == "nominal"
    assert result.value == pytest.approx(0.743421, abs=1e-6)
    assert by_default == pytest.approx(0.849107, abs=1e-6)  # what the package gives unasked: interval


def rows(*pairs: tuple[str, str | None]) -> list[tuple[str, str, str | None]]:
    """Labels of x and y on one unit after the other."""
    return [
        (f"u{i}", who, label) for i, pair in enumerate(pairs) for who, label in zip("xy", pair, strict=True)
    ]


def test_a_label_called_nan_is_a_label() -> None:
    result = by_name(Ratings.from_rows(rows(("nan", "nan"), ("b", "nan"), ("b", "b")), ["nan", "b"]))
    assert result["percent"].value == pytest.approx(2 / 3)
    # Three of each: De = (36 - 18) / 30 = .6, Do = 2 / 6: alpha = 1 - .3333 / .6 = .4444
    assert result["krippendorff_alpha"].value == pytest.approx(4 / 9)
    assert result["krippendorff_alpha"].n_units == 3


def test_none_is_missing_and_not_a_category() -> None:
    result = by_name(Ratings.from_rows(rows(("a", "a"), ("b", "b"), ("a", None)), ["a", "b"]))
    assert result["percent"].value == 1.0
    assert (result["percent"].n_units, result["percent"].coverage) == (2, pytest.approx(2 / 3))


def test_two_constant_annotators_have_no_kappa() -> None:
    result = by_name(pair([[0, 0]] * 20))
    for name in CHANCE_FROM_DATA:
        assert result[name].value is None
        assert result[name].reason == "every label is 'a', so agreement cannot be distinguished from chance"
    assert result["percent"].value == 1.0
    assert result["percent"].n_units == 20


def test_one_constant_annotator_has_no_kappa() -> None:
    result = by_name(pair([[0, 0]] * 15 + [[0, 1]] * 5))
    assert result["cohen_kappa"].value is None
    assert (
        result["cohen_kappa"].reason == "'x' used only the label 'a', so kappa would be 0 for any agreement"
    )
    # Fleiss and alpha pool the annotators, so they are defined.
    assert result["krippendorff_alpha"].value is not None


def test_an_unused_middle_category_keeps_its_place() -> None:
    codes = [[0, 0]] * 30 + [[2, 2]] * 30 + [[0, 2]] * 10 + [[2, 0]] * 5 + [[1, 2]] * 5
    three = by_name(pair(codes, "abc"), ["cohen_kappa:linear"])
    wide = by_name(pair([[2 * a, 2 * b] for a, b in codes], "abcde"), ["cohen_kappa:linear"])
    # Squeezing b and d out of (a, b, c, d, e) leaves (a, c, e): distances double, their ratios stay.
    assert wide["cohen_kappa"].value == pytest.approx(three["cohen_kappa"].value)
    squeezed = by_name(pair([[a, b] for a, b in codes if 1 not in (a, b)], "abc"), ["cohen_kappa:linear"])
    dropped = by_name(pair([[a // 2, b // 2] for a, b in codes if 1 not in (a, b)]), ["cohen_kappa:linear"])
    assert squeezed["cohen_kappa"].value == pytest.approx(dropped["cohen_kappa"].value)
    moved = by_name(
        pair([[3 if a == 2 else a, 3 if b == 2 else b] for a, b in codes], "abcd"), ["cohen_kappa:linear"]
    )
    assert moved["cohen_kappa"].value != pytest.approx(three["cohen_kappa"].value, abs=1e-3)


def test_weights_follow_the_declared_order_not_the_alphabet() -> None:
    five = (("low", "low"), ("low", "mid"), ("mid", "high"), ("high", "high"), ("low", "high"))
    declared, alphabet = (
        by_name(Ratings.from_rows(rows(*five * 8), domain), ["cohen_kappa:quadratic"])
        for domain in (["low", "mid", "high"], ["high", "low", "mid"])
    )
    # Per five units, squared steps: 0 1 1 0 4 = 6; margins x (3 1 1), y (1 1 3): by chance
    # (3*1*1 + 3*3*4 + 1*1*1 + 1*3*1 + 1*1*4 + 1*1*1) / 25 = 48/25 a unit: 1 - (6/5) / (48/25) = .375
    assert declared["cohen_kappa"].value == pytest.approx(0.375)
    assert alphabet["cohen_kappa"].value != pytest.approx(0.375, abs=0.05)


def test_no_overlap_gives_a_reason() -> None:
    result = by_name(pair([[0, -1], [1, -1], [-1, 0]]))
    assert all(m.value is None for m in result.values())
    assert result["cohen_kappa"].reason == "no unit is labelled by both 'x' and 'y'"
    assert result["krippendorff_alpha"].reason == "no unit is labelled by two annotators"
    assert result["krippendorff_alpha"].n_units == 0


def test_one_label_in_the_domain_gives_a_reason() -> None:
    result = by_name(pair([[0, 0], [0, 0]], "a"))
    assert result["krippendorff_alpha"].value is None
    assert result["krippendorff_alpha"].reason == "'a' is the only label in the domain"
    assert result["pabak"].value is None


def test_nan_is_never_a_value() -> None:
    for table in (pair([[0, 0]] * 4), pair([[0, -1]]), pair([[0, 1]] * 3), pair([[0, 0], [1, 1]])):
        for result in measures(table, [*ALL, "gwet_ac2"]):
            assert (result.value is None) == (result.reason is not None)
            for number in (result.value, result.low, result.high, result.coverage):
                assert number is None or np.isfinite(number)


def test_fifteen_hundred_distinct_values_fit_in_memory() -> None:
    rng = np.random.default_rng(0)
    pool = np.round(np.sort(rng.choice(10**6, 1500, replace=False)) / 1000, 3)
    near = np.clip(rng.integers(0, 1500, (500, 1)) + rng.integers(-40, 41, (500, 4)), 0, 1499)
    tracemalloc.start()
    result = scores_alpha(pool[near])
    table = Ratings.from_codes(near, [repr(float(v)) for v in pool], list("abcd"))
    (same,) = measures(table, ["krippendorff_alpha"], level="interval")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6  # the package would take 500 x 1,500 x 1,500 x 8 bytes = 9 GB, more than once
    assert result.value == pytest.approx(same.value, abs=1e-12)
    # All units, pair by pair as the definition has it: 6 pairs a unit over m - 1 = 3, and every pair of values.
    values = pool[near]
    within = ((values[:, :, None] - values[:, None, :]) ** 2).sum() / 3 / values.size
    flat = values.ravel()
    among = ((flat[:, None] - flat[None, :]) ** 2).sum() / (flat.size * (flat.size - 1))
    assert result.value == pytest.approx(1 - within / among, abs=1e-12)
    # And by the package, which can hold the 160 values of forty units.
    forty = scores_alpha(values[:40], interval=None)
    assert forty.value == pytest.approx(krippendorff.alpha(values[:40].T), abs=1e-12)


def test_ordinal_alpha_of_very_many_labels_is_refused() -> None:
    codes = np.arange(200).reshape(100, 2)
    table = Ratings.from_codes(codes, [str(i) for i in range(200)], ["x", "y"])
    with pytest.raises(BadInput, match="at most 64 labels, not 200"):
        measures(table, ["krippendorff_alpha"], level="ordinal")


def clustered(n_questions: int, per_question: int, seed: int = 1) -> Ratings:
    """Two annotators who agree on 90 % of the units of easy questions and on 40 % of those of hard ones."""
    rng = np.random.default_rng(seed)
    n = n_questions * per_question
    clusters = np.arange(n) // per_question
    agree = rng.random(n) < np.where(clusters % 2 == 0, 0.9, 0.4)
    first = rng.integers(0, 2, n)
    codes = np.column_stack([first, np.where(agree, first, 1 - first)])
    return Ratings.from_codes(codes, ["a", "b"], ["x", "y"], clusters=clusters)


@pytest.mark.parametrize(
    ("table", "noted"),
    [
        (clustered(19, 10), {"few_questions": {"n": 19, "least": 20, "covered": 0.94}}),
        (clustered(20, 10), {}),
        (two_annotators(((20, 5), (4, 20))), {"few_units": {"n": 49, "least": 50}}),
        (two_annotators(((20, 5), (5, 20))), {}),
        (
            two_annotators(((80, 5, 0), (5, 20, 0), (0, 2, 1))),
            {"rare_labels": {"least": 10, "labels": (("c", 3),)}},
        ),
        (clustered(1, 60), {"one_cluster": {}, "few_questions": {"n": 1, "least": 20, "covered": 0.94}}),
    ],
)
def test_small_samples_are_noted(table: Ratings, noted: dict[str, dict[str, object]]) -> None:
    (result,) = measures(table, ["cohen_kappa"])
    assert {code_of(note): note.parameters for note in result.notes} == noted  # type: ignore[attr-defined]
    assert result.value is not None and (result.low is None) == ("one_cluster" in noted)
