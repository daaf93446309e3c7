"""Label distributions from token log-probabilities: mass is neither lost nor invented."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.providers.tokens import label_distribution, token_choices
from judge.types import TokenChoice

LABELS = ["support", "refute", "neutral"]


def position(chances: dict[str, float]) -> TokenChoice:
    """One token position; the first alternative is the chosen one."""
    return TokenChoice(next(iter(chances)), [(t, math.log(p)) for t, p in chances.items()])


def test_the_mass_of_a_code_is_summed_over_its_spellings() -> None:
    # A: 0.5 + 0.25, B: 0.2, C: 0.01; the rest, 0.04, is nobody's.
    tokens = [position({"A": 0.5, " A": 0.25, "B": 0.2, "\n\tC": 0.01, "A.": 0.02, "Ab": 0.01})]
    distribution, reason = label_distribution(tokens, "ABC", LABELS)
    assert reason is None and distribution is not None
    assert distribution.probabilities == pytest.approx({"support": 0.75, "refute": 0.2, "neutral": 0.01})
    assert distribution.unassigned == pytest.approx(0.04)
    assert distribution.argmax() == "support"


@pytest.mark.parametrize("stray", ["A.", "Ab", "a", "A ", "", " ", "AB", "The"])
def test_what_is_not_exactly_a_code_is_unassigned(stray: str) -> None:
    distribution, _ = label_distribution([position({"A": 0.96, stray: 0.03})], "ABC", LABELS)
    assert distribution is not None
    assert distribution.probabilities["support"] == pytest.approx(0.96)
    assert distribution.unassigned == pytest.approx(0.04)


def test_white_space_before_the_answer_is_skipped() -> None:
    tokens = [position({" ": 0.9, "A": 0.1}), position({"\n": 1.0}), position({"C": 1.0})]
    distribution, _ = label_distribution(tokens, "ABC", LABELS)
    assert distribution is not None
    assert distribution.argmax() == "neutral"


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ([], "no token"),
        ([position({" ": 1.0})], "no token"),
        ([position({"A": 0.6, "B": 0.3, "Sure": 0.1})], "10.0 %"),
        ([position({"Sure": 1.0})], "100.0 %"),
        ([TokenChoice("A", [])], "100.0 %"),
        ([TokenChoice("A", [("A", float("nan"))])], "100.0 %"),
    ],
)
def test_no_distribution_has_a_reason(tokens: list[TokenChoice], says: str) -> None:
    distribution, reason = label_distribution(tokens, "ABC", LABELS)
    assert distribution is None
    assert reason is not None and says in reason


def test_codes_and_labels_must_pair_up() -> None:
    with pytest.raises(ValueError, match="one label for each code"):
        label_distribution([], "AB", LABELS)


@given(
    st.lists(st.floats(0.001, 1.0), min_size=2, max_size=20),
    st.floats(0.0, 0.2),
    st.permutations(["A", " A", "B", " B", "C", "\nC", "D.", "x"]),
)
def test_probabilities_and_unassigned_sum_to_one(
    weights: list[float], missing: float, names: list[str]
) -> None:
    total = sum(weights[: len(names)]) / (1.0 - missing)
    tokens = [position({n: w / total for n, w in zip(names, weights, strict=False)})]
    distribution, reason = label_distribution(tokens, "ABC", LABELS)
    assert (distribution is None) == (reason is not None)
    if distribution is not None:
        assert list(distribution.probabilities) == LABELS
        assert sum(distribution.probabilities.values()) + distribution.unassigned == pytest.approx(1.0)
        assert 0.0 <= distribution.unassigned <= 0.05


def test_a_sum_a_little_over_one_is_scaled() -> None:
    distribution, _ = label_distribution([position({"A": 0.7, "B": 0.31})], "AB", LABELS[:2])
    assert distribution is not None
    assert sum(distribution.probabilities.values()) == pytest.approx(1.0)
    assert distribution.unassigned == 0.0


def test_the_chosen_token_counts_when_it_is_not_listed() -> None:
    content = [{"token": "C", "logprob": -0.5, "top_logprobs": [{"token": "A", "logprob": -2.0}]}]
    (choice,) = token_choices({"content": content}) or []
    assert choice.alternatives == [("A", -2.0), ("C", -0.5)]
    assert token_choices(None) is None
    assert token_choices({"content": []}) is None
