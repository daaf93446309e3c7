"""Tables that cannot be used are refused by name, with the row."""

import re
from typing import Any

import numpy as np
import pytest

from judge.errors import BadInput
from judge.stats import Ratings

GOOD = [("u2", "b", "no", "q1"), ("u1", "a", "yes", "q1"), ("u2", "a", "no", "q1"), ("u3", "a", "yes", "q2")]


def test_rows_become_sorted_codes() -> None:
    table = Ratings.from_rows(GOOD, ["yes", "no"])
    assert table.units == ("u1", "u2", "u3")
    assert table.annotators == ("a", "b")
    assert table.codes.tolist() == [[0, -1], [1, 1], [0, -1]]
    assert table.clusters.tolist() == [0, 0, 1]
    assert table.clustered
    assert table.n_clusters == 2
    assert table.counts.tolist() == [[1, 0], [0, 2], [1, 0]]


def test_a_unit_asked_but_not_labelled_stays() -> None:
    table = Ratings.from_rows([("u1", "a", None), ("u2", "a", "yes")], ["yes", "no"])
    assert table.n_units == 2
    assert table.codes.tolist() == [[-1], [0]]
    assert not table.clustered


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("u1", "a", "no", "q1"), "row 5: annotator 'a' already has a label for unit 'u1'"),
        (("u9", "a", "maybe", "q1"), "row 5: unknown label 'maybe'; the labels are yes, no"),
        (("u9", "a", True, "q1"), "row 5: unknown label True; the labels are yes, no"),
        (("u1", "c", "no", "q2"), "row 5: unit 'u1' is in cluster 'q1' and in 'q2'"),
    ],
)
def test_a_bad_row_is_named(row: tuple[Any, ...], message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        Ratings.from_rows([*GOOD, row], ["yes", "no"])


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(BadInput, match="there are no rows"):
        Ratings.from_rows([], ["yes", "no"])


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ([], "at least one label"),
        ("yes", "at least one label"),
        (["yes", False], "the label False in the domain"),
        (["yes", "no", "yes"], "'yes' is in the domain twice"),
    ],
)
def test_a_bad_domain_is_refused(domain: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Ratings.from_rows(GOOD, domain)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros((3, 2), dtype=bool), "must be integers"),
        (np.zeros((3, 2)), "must be integers"),
        (np.array([["a", "b"]]), "must be integers"),
        (np.array([[0, None]], dtype=object), "must be integers"),
        (np.zeros(3, dtype=int), "units x annotators"),
        (np.zeros((2, 3), dtype=int), "units x annotators"),
        (np.array([[0, 2]]), "code 2 of 'b' on row 0 is outside 0..1"),
        (np.array([[0, -2]]), "code -2 of 'b' on row 0 is outside 0..1"),
    ],
)
def test_bad_codes_are_refused(codes: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Ratings.from_codes(codes, ["yes", "no"], ["a", "b"])


def test_lengths_must_fit() -> None:
    codes = np.zeros((3, 2), dtype=int)
    with pytest.raises(BadInput, match="one value for each of 3 units"):
        Ratings.from_codes(codes, ["yes"], ["a", "b"], clusters=[0, 1])
    with pytest.raises(BadInput, match="2 unit ids for 3 rows"):
        Ratings.from_codes(codes, ["yes"], ["a", "b"], units=["u", "v"])
    with pytest.raises(BadInput, match="'a' is named twice"):
        Ratings.from_codes(codes, ["yes"], ["a", "a"])


def test_columns_can_be_chosen_and_added() -> None:
    table = Ratings.from_rows(GOOD, ["yes", "no"])
    assert table.select(["b", "a"]).codes.tolist() == [[-1, 0], [1, 1], [-1, 0]]
    more = table.with_annotator("c", np.array([1, 1, -1]))
    assert more.annotators == ("a", "b", "c")
    assert more.column("c").tolist() == [1, 1, -1]
    assert more.clusters.tolist() == table.clusters.tolist()
    assert table.subset(np.array([True, False, True])).units == ("u1", "u3")
    with pytest.raises(BadInput, match="no annotator 'z'; available: a, b"):
        table.select(["z"])
    with pytest.raises(BadInput, match="annotator 'a'"):
        table.with_annotator("a", np.array([1, 1, 1]))


@pytest.mark.parametrize(
    ("domain", "level", "message"),
    [
        (["1", "two"], "interval", "the label 'two'"),
        (["1", "nan"], "interval", "needs finite numbers"),
        (["1", "1.0"], "interval", "the same number"),
        (["-1", "1"], "ratio", "non-negative"),
    ],
)
def test_numbers_must_be_numbers(domain: list[str], level: str, message: str) -> None:
    table = Ratings.from_codes(np.array([[0, 1]]), domain, ["a", "b"])
    with pytest.raises(BadInput, match=message):
        table.numbers(level)


def test_a_unit_without_a_cluster_is_its_own() -> None:
    rows = [("u1", "a", "yes", None), ("u2", "a", "no", None), ("u3", "a", "no", "q"), ("u4", "a", "no", "q")]
    table = Ratings.from_rows(rows, ["yes", "no"])
    assert table.n_clusters == 3 and table.clustered
