"""Confirmation bias of retrieval and answers."""

import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import BadInput
from judge.papers import confirmation
from tests.scores.helpers import numbers, points, table

PAIRS = table("pair_id original counter", ("p1", "o1", "c1"), ("p2", "o2", "c2"), ("p3", "o3", "c3"))


def stances(stage: str, **lists: str) -> pd.DataFrame:
    """`o1="ssrn."`: support, support, refute, neutral, no label; documents are named by position."""
    words = {"s": "support", "r": "refute", "n": "neutral", ".": None}
    return table(
        "unit_id claim_id stage label rank document status",
        *(
            (f"{claim}/{i}", claim, stage, words[c], i + 1, f"d{i}", "unparsed" if c == "." else "ok")
            for claim, result in lists.items()
            for i, c in enumerate(result)
        ),
    )


RETRIEVE = stances("retrieve", o1="sssr", c1="sr", o2="rn", c2="snn", o3="nn", c3="s")


def test_support_ratios() -> None:
    result = confirmation.ratios(PAIRS, RETRIEVE, "retrieve")
    # o1 3 of 4; c1 1 of 2; o2 0 of 1; c2 1 of 1; o3 neither.
    assert [None if math.isnan(v) else v for v in result["sr"].loc[["o1", "c1", "o2", "c2", "o3", "c3"]]] == [
        0.75, 0.5, 0.0, 1.0, None, 1.0,
    ]  # fmt: skip
    assert result.loc["o1", "rr"] == 0.25


def test_bias_of_one_stage() -> None:
    result = points(confirmation.retrieval_bias(PAIRS, RETRIEVE, "retrieve"))
    # p1: .75 + .5 - 1 = .25. p2: 0 + 1 - 1 = 0. p3 is undefined and leaves N.
    assert result["cr[retrieve]"].value == 0.125
    assert result["signed_cr[retrieve]"].value == 0.125
    assert (result["cr[retrieve]"].n_units, result["cr[retrieve]"].coverage) == (2, pytest.approx(2 / 3))
    assert result["cr[retrieve]"].notes == (
        "1 of 3 units have no value: 1 no supporting or refuting passage on one side",
    )
    assert result["defined_pairs[retrieve]"].value == pytest.approx(2 / 3)
    # Neutral: o2 1, c2 2, o3 2 of 14 passages. Per claim: 0, 0, 1/2, 2/3, 1, 0.
    assert result["neutral_share[retrieve]"].value == pytest.approx(5 / 14)
    assert result["neutral_share_per_claim[retrieve]"].value == pytest.approx((1 / 2 + 2 / 3 + 1) / 6)
    # Documents d0..: p1 2 of 4 shared; p2 2 of 3; p3 1 of 2.
    assert result["overlap[retrieve]"].value == pytest.approx((2 / 4 + 2 / 3 + 1 / 2) / 3)


def test_the_signed_mean_tells_the_direction() -> None:
    opposed = stances("s", o1="s", c1="s", o2="r", c2="r", o3="s", c3="r")
    result = numbers(confirmation.retrieval_bias(PAIRS, opposed, "s"))
    # +1 (each its own side), -1 (each the other side), 0: unsigned 2/3, signed 0.
    assert (result["cr[s]"], result["signed_cr[s]"]) == (pytest.approx(2 / 3), 0.0)


def test_missing_stances_are_counted() -> None:
    some = stances("s", o1="s.", c1="s", o2="..", c2="s", o3="r", c3="s")
    result = points(confirmation.retrieval_bias(PAIRS, some, "s"))
    assert result["missing_stances[s]"].value == pytest.approx(3 / 8)
    # The neutral share is over the passages that have a stance: 1 of 6.
    neutral = stances("s", o1="s.", c1="s", o2="..n", c2="s", o3="r", c3="s")
    assert numbers(confirmation.retrieval_bias(PAIRS, neutral, "s"))["neutral_share[s]"] == pytest.approx(
        1 / 6
    )
    assert result["cr[s]"].notes == ("1 of 3 units have no value: 1 unparsed",)


def test_change_from_retrieve_to_rerank() -> None:
    rerank = stances("rerank", o1="s", c1="s", o2="s", c2="s", o3="s", c3="s")
    result = points(
        confirmation.changes(
            confirmation.retrieval_bias(PAIRS, RETRIEVE, "retrieve"),
            confirmation.retrieval_bias(PAIRS, rerank, "rerank"),
        )
    )
    # On p1 and p2, the pairs that have both: from .125 to 1.
    change = result["cr_change[retrieve to rerank]"]
    assert (change.value, change.n_units) == (0.875, 2)


ANSWERS = table(
    "claim_id label valid",
    ("o1", "Yes", True),
    ("c1", "Yes", True),
    ("o2", "Yes", True),
    ("c2", "Others", True),
    ("o3", "Yes", True),
    ("c3", "Yes", False),
)


def test_biased_answers() -> None:
    # p1 biased; p2 valid and not (Others does not support); p3 has an answer that is not valid.
    result = points(confirmation.answer_bias(PAIRS, ANSWERS))
    assert (result["cbr"].value, result["cbr"].n_units) == (0.5, 2)
    assert result["cbr"].notes == ("1 of 3 units have no value: 1 one of the answers is not valid",)
    assert result["valid_pairs"].value == pytest.approx(2 / 3)


def test_an_unparsed_answer_and_an_absent_one() -> None:
    answers = table(
        "claim_id label status", ("o1", "Yes", "ok"), ("c1", None, "unparsed"), ("o2", "Yes", "ok")
    )
    result = points(confirmation.answer_bias(PAIRS, answers))["cbr"]
    assert str(result.reason).endswith("1 unparsed, 2 not judged")


@pytest.mark.parametrize(
    ("pairs", "stage", "message"),
    [
        (PAIRS, "top-k", "there is no stance at stage 'top-k'; available stages: retrieve"),
        (PAIRS.assign(counter="c1"), "retrieve", "claim 'c1' is in two pairs"),
        (PAIRS.assign(counter=None), "retrieve", "a pair has no counter claim"),
    ],
)
def test_bad_pairs(pairs: pd.DataFrame, stage: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        confirmation.retrieval_bias(pairs, RETRIEVE, stage)


LISTS = st.lists(st.text("srn.", max_size=5), min_size=6, max_size=6)


@settings(max_examples=25)
@given(LISTS)
def test_the_papers_formula(lists: list[str]) -> None:
    """(1/2N) sum (|SR_o - RR_c| + |SR_c - RR_o|), from the counts themselves."""
    names = ["o1", "c1", "o2", "c2", "o3", "c3"]
    some = stances("s", **dict(zip(names, lists, strict=True)), extra="s")
    result: Any = points(confirmation.retrieval_bias(PAIRS, some, "s"))
    terms = []
    for o, c in (lists[0:2], lists[2:4], lists[4:6]):
        s_o, r_o, s_c, r_c = o.count("s"), o.count("r"), c.count("s"), c.count("r")
        if s_o + r_o and s_c + r_c:
            sr_o, sr_c = s_o / (s_o + r_o), s_c / (s_c + r_c)
            terms.append((abs(sr_o - (1 - sr_c)) + abs(sr_c - (1 - sr_o))) / 2)
    assert result["cr[s]"].n_units == len(terms)
    assert result["cr[s]"].value == (pytest.approx(sum(terms) / len(terms)) if terms else None)
    if terms:
        assert abs(result["signed_cr[s]"].value) <= result["cr[s]"].value + 1e-12
