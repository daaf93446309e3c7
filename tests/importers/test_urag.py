"""urag: options out of the question's text, splits, search results of several shapes."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.errors import BadInput
from judge.types import Passage
from tests import formats
from tests.importers.helpers import load, write


def test_a_file_from_the_specification(tmp_path: Path) -> None:
    loaded = load("urag", formats.urag(tmp_path / "u.json"))
    assert not loaded.bads
    assert [i.item_id for i in loaded.items] == ["SciQ:calibration-0", "SciQ:calibration-1", "SciQ:test-0"]
    assert [i.meta["split"] for i in loaded.items] == ["calibration", "calibration", "test"]
    assert [w.line for w in loaded.wheres] == [1, 2, 1]
    second = loaded.items[1]
    assert (second.question, second.correct, second.meta["id"]) == ("Which of these is 1?", "C", 1)
    assert second.options == {"A": "One", "B": "Two, or\n   more", "C": "Vitamin A. and C"}
    assert second.passages == [
        Passage("Result about 1.", source_id="r1"),
        Passage("More.", source_id="r2", title="T", source="https://example.org"),
    ]


def read_one(tmp_path: Path, **change: Any) -> Any:
    path = write(tmp_path / "u.json", json.dumps({"test": [formats.urag_row(0) | change]}))
    loaded = load("urag", path)
    assert not loaded.bads, loaded.bads
    return loaded.items[0]


@pytest.mark.parametrize(
    ("question", "stem", "options"),
    [
        ("Why?\nA. x\nB. y", "Why?", ["x", "y"]),
        ("Why? A. x B. y", "Why?", ["x", "y"]),
        ("Why?\n(A) x\n(B) y\nAnswer:", "Why?", ["x", "y"]),
        ("Is A. Smith a B. Sc.?\nA) x\nB) y", "Is A. Smith a B. Sc.?", ["x", "y"]),
        ("Why?\n\n  A: x\n  B: the B. y\n", "Why?", ["x", "the B. y"]),
    ],
)
def test_options_in_the_text(tmp_path: Path, question: str, stem: str, options: list[str]) -> None:
    item = read_one(tmp_path, question=question, options=["A", "B"])
    assert item.dataset == "urag"
    assert (item.question, list(item.options.values())) == (stem, options)
    assert item.meta["question"] == question


def test_options_as_an_object(tmp_path: Path) -> None:
    item = read_one(tmp_path, question="Why?", options={"A": "x", "B": "y"})
    assert (item.question, item.options) == ("Why?", {"A": "x", "B": "y"})


@pytest.mark.parametrize("given", ["B", "B. Two, or\n   more", "Two, or\n   more"])
def test_ways_to_give_the_correct_answer(tmp_path: Path, given: str) -> None:
    assert read_one(tmp_path, correct_answer=given).correct == "B"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": None}, "id"),
        ({"question": "Why?\nA. x\nB. y"}, "question"),
        ({"question": "A. x\nB. y\nC. z"}, "question"),
        ({"options": []}, "options"),
        ({"options": None}, "options"),
        ({"correct_answer": "D"}, "correct_answer"),
        ({"correct_answer": None}, "correct"),
        ({"search_results": "x"}, "search_results"),
        ({"search_results": ["a", ""]}, "search_results.1"),
        ({"search_results": [{"title": "t"}]}, "search_results.0"),
        ({"search_results": [5]}, "search_results.0"),
        ({"search_results": [{"id": 1, "text": "a"}, {"id": 1, "text": "b"}]}, "passages.1.id"),
    ],
)
def test_bad_rows(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    rows = [formats.urag_row(0) | change, formats.urag_row(1)]
    loaded = load("urag", write(tmp_path / "u.json", json.dumps({"name": "n", "calibration": rows})))
    assert loaded.places == [("u.json", 1, field)]
    assert loaded.bads[0].reason.startswith("calibration element 1: ")
    assert [i.source_id for i in loaded.items] == ["calibration-1"]


@pytest.mark.parametrize("content", [b"{}", b"[]", b'{"test": []}'])
def test_files_without_questions(tmp_path: Path, content: bytes) -> None:
    assert load("urag", write(tmp_path / "u.json", content)).places == [("u.json", 0, "")]


@pytest.mark.parametrize("content", [b"", b'{"test": [{"id"'])
def test_files_that_break_off(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadInput) as caught:
        load("urag", write(tmp_path / "u.json", content))
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "u.json"), 1)
