"""mirage: the real questions, chunks from the specification, RAMDocs in this shape."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.errors import BadInput, UsageError
from judge.types import Passage, Vote
from tests import formats
from tests.importers.helpers import load, write
from tests.real import require


def test_real_questions_alone() -> None:
    loaded = load("mirage", require("shared-data") / "mirage" / "dataset.json")
    assert (len(loaded.items), loaded.passages, loaded.bads) == (7560, 0, [])
    assert sum(len(i.reference_answers or []) for i in loaded.items) == 16812
    first = loaded.items[0]
    assert first.question == "What is John Mayne's occupation?"
    assert first.reference_answers == ["journalist", "journo", "journalists"]
    assert first.meta["doc_name"] == "John Mayne"


def test_real_ramdocs_in_this_shape(tmp_path: Path) -> None:
    paths = formats.ramdocs_as_mirage(require("shared-data") / "ramdocs" / "documents.jsonl", tmp_path)
    loaded = load("mirage", *paths)
    assert (len(loaded.items), loaded.passages, loaded.bads) == (500, 2766, [])
    assert loaded.gold("support") == {"supported": 1918, "not_supported": 307 + 541}


def test_five_chunks_a_question(tmp_path: Path) -> None:
    dataset, pool, oracle = formats.mirage(tmp_path)
    loaded = load("mirage", oracle, pool, dataset)
    assert (len(loaded.items), loaded.passages) == (3, 15)
    second = loaded.items[1]
    assert (second.item_id, second.reference_answers) == ("mirage:m1", ["m1", "it"])
    assert second.passages[0] == Passage(
        "Chunk 0 about m1.", title="Page of m1", votes=[Vote("support", "not_supported")]
    )
    assert [p.meta for p in second.passages] == [{}, {"oracle": True}, {}, {}, {}]
    assert (loaded.wheres[1].path, loaded.wheres[1].line) == (str(pool), 6)


def test_an_oracle_chunk_outside_the_pool_and_a_question_without_chunks(tmp_path: Path) -> None:
    dataset, pool, oracle = formats.mirage(tmp_path)
    chunks = [c for c in json.loads(pool.read_text()) if c["mapped_id"] == "m0"]
    formats.write_json(pool, chunks)
    formats.write_json(oracle, {"m1": formats.mirage_chunk("m1", "Only here.", 1)})
    loaded = load("mirage", dataset, pool, oracle)
    assert [(i.source_id, len(i.passages)) for i in loaded.items] == [("m0", 5), ("m1", 1), ("m2", 0)]
    assert loaded.items[1].passages[0].meta == {"oracle": True}


def test_scattered_chunks_give_rows_of_the_same_item(tmp_path: Path) -> None:
    dataset, pool, _ = formats.mirage(tmp_path, questions=2)
    chunks = json.loads(pool.read_text())
    formats.write_json(pool, chunks[::2] + chunks[1::2])
    loaded = load("mirage", dataset, pool)
    assert [i.source_id for i in loaded.items] == ["m0", "m1", "m0", "m1"]
    assert loaded.passages == 10


def test_words_for_support_and_answers_as_printed_lists(tmp_path: Path) -> None:
    question = {**formats.mirage_question("m", "q", []), "answer": "['a', 'b']"}
    chunks = [{**formats.mirage_chunk("m", str(n), 0), "support": s} for n, s in enumerate(
        (1, 0, True, False, "supported", "not supported", None))]  # fmt: skip
    loaded = load("mirage", formats.write_json(tmp_path / "d.json", [question]),
                  formats.write_json(tmp_path / "p.json", chunks))  # fmt: skip
    assert loaded.items[0].reference_answers == ["a", "b"]
    assert loaded.gold("support") == {"supported": 3, "not_supported": 3}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"mapped_id": "no"}, "mapped_id"),
        ({"mapped_id": None}, "mapped_id"),
        ({"support": 2}, "support"),
        ({"doc_chunk": " "}, "doc_chunk"),
        ({"doc_chunk": None}, "doc_chunk"),
    ],
)
def test_bad_chunks(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    dataset, pool, _ = formats.mirage(tmp_path, questions=1)
    chunks = json.loads(pool.read_text())
    formats.write_json(pool, [chunks[0], {**chunks[1], **change}, *chunks[2:]])
    loaded = load("mirage", dataset, pool)
    assert loaded.places == [("doc_pool.json", 2, field)]
    assert loaded.bads[0].reason.startswith("element 2: ")
    assert loaded.passages == 4


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"query_id": None}, "query_id"),
        ({"query_id": "m0"}, "query_id"),
        ({"query": 5}, "query"),
        ({"answer": "['a'"}, "answer"),
        ({"answer": [None]}, "answer.0"),
    ],
)
def test_bad_questions(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    dataset, _, _ = formats.mirage(tmp_path)
    rows = json.loads(dataset.read_text())
    formats.write_json(dataset, [rows[0], {**rows[1], **change}, rows[2]])
    loaded = load("mirage", dataset)
    assert loaded.places == [("dataset.json", 2, field)]
    assert [i.source_id for i in loaded.items] == ["m0", "m2"]


def test_an_oracle_of_no_question(tmp_path: Path) -> None:
    dataset, _, oracle = formats.mirage(tmp_path)
    formats.write_json(oracle, {"no": formats.mirage_chunk("no", "t", 1), "m0": {"doc_chunk": 1}})
    assert load("mirage", dataset, oracle).places == [
        ("oracle.json", 1, "no"),
        ("oracle.json", 2, "m0.doc_chunk"),
    ]


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    dataset, pool, oracle = formats.mirage(tmp_path)
    with pytest.raises(UsageError, match="needs the file with the questions"):
        load("mirage", pool, oracle)
    assert load("mirage", write(tmp_path / "e.json", "[]")).places == [("e.json", 0, "")]
    cut = write(tmp_path / "cut.json", pool.read_bytes()[:-40])
    with pytest.raises(BadInput) as caught:
        load("mirage", dataset, cut)
    assert (caught.value.path, caught.value.line) == (str(cut), 15)
