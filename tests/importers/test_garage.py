"""garage: the class of each passage, insufficient rows, lists that do not fit."""

from pathlib import Path
from typing import Any

import pytest

from judge.types import Passage, Vote
from tests import formats
from tests.importers.helpers import load


def test_rows_from_the_specification(tmp_path: Path) -> None:
    loaded = load("garage", formats.garage(tmp_path / "g.jsonl"))
    assert (len(loaded.items), loaded.passages, loaded.bads) == (3, 9, [])
    # g1 has one of each, its empty class with evidence_relevant NO; g2 adds one ANSWER and one that
    # is relevant without a class (no label); g3 one RELATED and one irrelevant.
    assert loaded.gold("relevance") == {
        "ANSWER-THE-QUESTION": 2, "RELATED-INFORMATION": 2, "OUTDATED": 1, "UNKNOWN": 1, "IRRELEVANT": 2,
    }  # fmt: skip
    assert loaded.gold("insufficient") == {"false": 2, "true": 1}


def test_one_row_in_full(tmp_path: Path) -> None:
    row = formats.garage_row("g", ["ANSWER-THE-QUESTION", "?"])
    (item,) = load("garage", formats.write_jsonl(tmp_path / "g.jsonl", [row])).items
    assert (item.item_id, item.question, item.question_date) == (
        "garage:g",
        "What is new in g?",
        "2024-11-02",
    )
    assert item.reference_answers is None
    assert item.meta == {
        "question_valid": "VALID", "question_type": "Fast-Changing", "answer_generate": "It is so [cite_1].",
        "answer_related_info": "", "answer_validate": "It is so [cite_1].", "comments": "",
        "question_tag": "web", "topic_tag": "ent",
    }  # fmt: skip
    assert item.passages == [
        Passage(
            "Passage 1 of g.",
            source_id="cite_1",
            date="2024-10-01",
            source="web",
            meta={
                "age": "1 days", "evidence_relevant": "YES", "evidence_correct": "ANSWER-THE-QUESTION",
                "evidence_cited": "YES",
            },
            votes=[Vote("relevance", "ANSWER-THE-QUESTION")],
        ),
        Passage(
            "Passage 2 of g.",
            source_id="cite_2",
            date="2024-10-01",
            source="ent",
            meta={"age": "2 days", "evidence_relevant": "YES", "evidence_correct": "", "evidence_cited": "NO"},
        ),
    ]  # fmt: skip


def test_brackets_around_the_marker_and_lists_that_are_not_there(tmp_path: Path) -> None:
    row = {"sample_id": 1, "question": "q", "grounding": [{"[cite_4]": "t"}], "related_info": "r"}
    (item,) = load("garage", formats.write_jsonl(tmp_path / "g.jsonl", [row])).items
    assert item.passages == [Passage("t", source_id="cite_4")]
    assert (item.votes, item.meta) == ([], {"related_info": "r"})


def test_label_maps_collapse_classes(tmp_path: Path) -> None:
    loaded = load("garage", formats.garage(tmp_path / "g.jsonl"),
                  label_maps={"relevance": {"UNKNOWN": "no", "IRRELEVANT": "no"}})  # fmt: skip
    assert loaded.gold("relevance")["no"] == 3


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"evidence_correct": ["UNKNOWN"]}, "evidence_correct"),
        ({"evidence_correct": ["WRONG", "UNKNOWN"]}, "evidence_correct.0"),
        ({"evidence_correct": [["UNKNOWN"], ""]}, "evidence_correct.0"),
        ({"evidence_relevant": ["YES", "MAYBE"]}, "evidence_relevant.1"),
        ({"evidence_cited": "YES"}, "evidence_cited"),
        ({"grounding": {}}, "grounding"),
        ({"grounding": [{"cite_1": "a"}, {"text": "b"}]}, "grounding.1"),
        ({"grounding": [{"cite_1": "a"}, {"cite_1": "a", "cite_2": "b"}]}, "grounding.1"),
        ({"grounding": [{"cite_1": "a"}, {"cite_1": "b"}]}, "passages.1.id"),
        ({"grounding": [{"cite_1": "a"}, {"cite_2": ""}]}, "grounding.1.cite_2"),
        ({"grounding": [{"cite_1": "a"}, "b"]}, "grounding.1"),
        ({"sample_id": None}, "sample_id"),
        ({"question": ""}, "question"),
    ],
)
def test_bad_rows(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    good = formats.garage_row("g", ["UNKNOWN", ""])
    path = formats.write_jsonl(tmp_path / "g.jsonl", [{**good, **change}, {**good, "sample_id": "h"}])
    loaded = load("garage", path)
    assert loaded.places == [("g.jsonl", 1, field)]
    assert [i.source_id for i in loaded.items] == ["h"]
