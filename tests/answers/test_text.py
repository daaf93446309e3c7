"""Sentences as spans of code points, and citation markers."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.text import markers, sentences


def split(text: str) -> list[str]:
    return [text[a:b] for a, b in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n ", []),
        ("Hello world", ["Hello world"]),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        # A marker after the full stop belongs to the sentence before it, with and without a space.
        ("Tea is old. [cite_3][cite_5] Coffee is not.", ["Tea is old. [cite_3][cite_5]", "Coffee is not."]),
        ("Tea is old.[1] Coffee is not [2].", ["Tea is old.[1]", "Coffee is not [2]."]),
        ("Tea is old.\n[1]\nCoffee.", ["Tea is old.\n[1]", "Coffee."]),
        # Decimals, addresses, abbreviations, initials.
        ("It rose 3.5 percent at example.org.", ["It rose 3.5 percent at example.org."]),
        ("Dr. Smith of the U.S. army came. He left.", ["Dr. Smith of the U.S. army came.", "He left."]),
        ("J. R. Brown wrote it, e.g. in 1990. It sold.", ["J. R. Brown wrote it, e.g. in 1990.", "It sold."]),
        ("See Fig. 3 for more.", ["See Fig. 3 for more."]),
        ("It was in 1990. Then it ended.", ["It was in 1990.", "Then it ended."]),
        # Lists: their numbers end nothing, their lines do.
        ("1. First.\n2. Second. More.", ["1. First.", "2. Second.", "More."]),
        ("Reasons:\n- cheap\n- good", ["Reasons:", "- cheap", "- good"]),
        # A wrapped line goes on; a paragraph does not.
        ("A line that is\nwrapped. Next", ["A line that is\nwrapped.", "Next"]),
        ("A title\n\nand a text", ["A title", "and a text"]),
        (
            'He asked "why?" and left. "No." She stayed.',
            ['He asked "why?" and left.', '"No."', "She stayed."],
        ),
        ("他来了。她走了！", ["他来了。", "她走了！"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert split(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a [cite_3] b", [("cite_3",)]),
        ("a [cite_3][cite_5]", [("cite_3",), ("cite_5",)]),
        ("a [cite_3, cite_5]", [("cite_3", "cite_5")]),
        ("a [3]", [("3",)]),
        ("a [1, 2; 4]", [("1", "2", "4")]),
        ("a [1-3] [cite_1-cite_3]", [("1", "2", "3"), ("cite_1", "cite_2", "cite_3")]),
        ("a [2,2]", [("2",)]),
        ("a [3-1] [1-900] [2019] [sic] [] [note 1]", []),
        ("a [doc-7] [doc-8]", [("doc-7",)]),
    ],
)
def test_markers(text: str, expected: list[tuple[str, ...]]) -> None:
    assert [m.ids for m in markers(text, {"doc-7"})] == expected
    assert all(text[m.start] == "[" and text[m.end - 1] == "]" for m in markers(text, {"doc-7"}))


PIECES = st.sampled_from(
    ["Tea", "is", "old", ".", "!", "?", " ", " ", "\n", "\n\n", "[1]", "[cite_2]", "Dr.", "3.5", "- ", "2. ", "é", "𝒳", "。"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=60).map("".join)))
def test_sentences_hold_every_visible_character_once_and_in_order(text: str) -> None:
    spans = sentences(text)
    assert all(0 <= a < b <= len(text) for a, b in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(text[a:b] == text[a:b].strip() for a, b in spans)
    outside = set(range(len(text))) - {n for a, b in spans for n in range(a, b)}
    assert all(text[n].isspace() for n in outside)
    assert sentences(text) == spans


@given(st.lists(PIECES, max_size=60).map("".join))
def test_no_marker_is_cut_by_a_sentence(text: str) -> None:
    spans = sentences(text)
    for marker in markers(text):
        assert any(a <= marker.start and marker.end <= b for a, b in spans)
