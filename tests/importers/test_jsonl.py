"""jsonl: our own keys, every kind of bad row with its line and field, and files that do not read."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from judge.errors import BadInput
from judge.files import stop
from judge.importers import base
from judge.types import AnnotatorKind, Item, Passage, Vote
from tests.formats import write_jsonl
from tests.importers.helpers import load, write


def test_every_key_of_a_row(tmp_path: Path) -> None:
    row = {
        "id": 7,
        "dataset": "mine",
        "question_id": "q",
        "question": "Why?",
        "question_date": 2024,
        "claim": "So.",
        "reference_answers": ["a", 3],
        "options": {"A": "x", "B": "y"},
        "correct": "B",
        "pair_id": "p",
        "polarity": "counter",
        "gold": {"claim_verdict": True, "none": None, "empty": ""},
        "votes": {"raguard.role": {"ann": 0, "bob": "1"}},
        "passages": [
            "plain",
            {"id": 1, "text": "t", "title": "T", "date": 2020, "source": "web", "gold": {"stance": "support"},
             "votes": {"stance": {"ann": "refute"}}, "url": "u", "meta": {"k": [1]}},
        ],
        "extra": {"a": 1},
        "meta": {"b": 2},
    }  # fmt: skip
    (item,) = load("jsonl", write_jsonl(tmp_path / "d.jsonl", [row])).items
    assert item == Item(
        source_id="7",
        dataset="mine",
        question_id="q",
        question="Why?",
        question_date="2024",
        claim="So.",
        reference_answers=["a", "3"],
        options={"A": "x", "B": "y"},
        correct="B",
        pair_id="p",
        polarity="counter",
        meta={"b": 2, "extra": {"a": 1}},
        votes=[
            Vote("claim_verdict", "true"),
            Vote("raguard.role", "0", "ann", AnnotatorKind.HUMAN),
            Vote("raguard.role", "1", "bob", AnnotatorKind.HUMAN),
        ],
        passages=[
            Passage("plain"),
            Passage(
                "t",
                source_id="1",
                title="T",
                date="2020",
                source="web",
                meta={"k": [1], "url": "u"},
                votes=[Vote("stance", "support"), Vote("stance", "refute", "ann", AnnotatorKind.HUMAN)],
            ),
        ],
    )


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz", "d.json"])
def test_lines_gzip_and_arrays(tmp_path: Path, name: str) -> None:
    rows = [{"id": n, "claim": "c"} for n in range(3)]
    text = json.dumps(rows) if name == "d.json" else "\n".join(map(json.dumps, rows)) + "\n\n"
    data = b"\xef\xbb\xbf" + text.encode()
    path = write(tmp_path / name, gzip.compress(data) if name.endswith("gz") else data)
    loaded = load("jsonl", path)
    assert not loaded.bads
    assert [i.item_id for i in loaded.items] == ["d:0", "d:1", "d:2"]
    assert [w.line for w in loaded.wheres] == [1, 2, 3]


def test_dataset_option_wins_and_keeps_the_rows_own(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"id": 1, "claim": "c", "dataset": "old"}])
    (item,) = load("jsonl", path, dataset="new").items
    assert (item.dataset, item.meta) == ("new", {"dataset": "old"})


BAD_ROWS: list[tuple[Any, str, str]] = [
    ([1], "", "must be an object"),
    ({"claim": "c"}, "id", "missing"),
    ({"id": " ", "claim": "c"}, "id", "missing"),
    ({"id": {}, "claim": "c"}, "id", "not an object"),
    ({"id": 1}, "question", "the row has no question, claim or passages"),
    ({"id": 1, "claim": 5}, "claim", "must be text, not a number"),
    ({"id": 1, "claim": ""}, "claim", "the text is empty"),
    ({"id": 1, "claim": "c", "dataset": "a:b"}, "dataset", "':'"),
    ({"id": 1, "claim": "c", "question_date": []}, "question_date", "not a list"),
    ({"id": 1, "claim": "c", "reference_answers": [""]}, "reference_answers.0", "missing"),
    ({"id": 1, "claim": "c", "reference_answers": {"a": 1}}, "reference_answers.0", "not an object"),
    ({"id": 1, "claim": "c", "options": {"A": "x"}}, "correct", "the correct option is not given"),
    ({"id": 1, "claim": "c", "options": {"A": "x"}, "correct": "B"}, "correct", "not among the options"),
    ({"id": 1, "claim": "c", "correct": "B"}, "correct", "not among the options"),
    ({"id": 1, "claim": "c", "options": {"A": 1}, "correct": "A"}, "options.A", "must be text"),
    ({"id": 1, "claim": "c", "polarity": "original"}, "pair_id", "missing"),
    ({"id": 1, "claim": "c", "pair_id": "p"}, "polarity", "missing"),
    ({"id": 1, "claim": "c", "pair_id": "p", "polarity": "x"}, "polarity", "must be original or counter"),
    ({"id": 1, "passages": [""]}, "passages.0", "the text is empty"),
    ({"id": 1, "passages": ["a", {"text": " "}]}, "passages.1.text", "the text is empty"),
    ({"id": 1, "passages": [{"id": 1}]}, "passages.0.text", "missing"),
    ({"id": 1, "passages": [{}]}, "passages.0.text", "missing"),
    ({"id": 1, "passages": ["a", 5]}, "passages.1", "text or an object"),
    ({"id": 1, "passages": 5}, "passages.text", "must be text"),
    ({"id": 1, "passages": [{"text": "a", "title": []}]}, "passages.0.title", "not a list"),
    ({"id": 1, "passages": [{"id": 1, "text": "a"}, {"id": "1", "text": "b"}]}, "passages.1.id", "same id"),
    ({"id": 1, "passages": ["a", {"text": "a", "title": "b"}]}, "passages.1.text", "same text"),
    ({"id": 1, "claim": "c", "gold": "x"}, "gold", "must be an object"),
    ({"id": 1, "claim": "c", "gold": {"f": []}}, "gold.f", "not a list"),
    ({"id": 1, "claim": "c", "votes": {"f": "x"}}, "votes.f", "must be an object"),
    ({"id": 1, "claim": "c", "votes": {"f": {"gold": "x"}}}, "votes.f", "annotator's name"),
    ({"id": 1, "claim": "c", "votes": {"f": {"ann": {}}}}, "votes.f.ann", "not an object"),
    ({"id": 1, "passages": [{"text": "a", "votes": {"f": 1}}]}, "passages.0.votes.f", "must be an object"),
    ({"id": 1, "claim": "c", "k": 1, "meta": {"k": 2}}, "k", "different values"),
]


@pytest.mark.parametrize(("row", "field", "reason"), BAD_ROWS, ids=lambda v: json.dumps(v)[:60])
def test_bad_row_says_where_and_reading_goes_on(tmp_path: Path, row: Any, field: str, reason: str) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"id": "a", "claim": "c"}, row, {"id": "b", "claim": "c"}])
    loaded = load("jsonl", path)
    assert [i.source_id for i in loaded.items] == ["a", "b"]
    assert loaded.places == [("d.jsonl", 2, field)]
    assert loaded.bads[0].path == str(path)
    assert reason in str(loaded.bads[0])
    # In an array the number of the element takes the place of the line.
    (bad,) = load("jsonl", write(tmp_path / "d.json", json.dumps([{"id": "a", "claim": "c"}, row]))).bads
    assert (bad.line, bad.reason.startswith("element 2: ")) == (2, True)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{'id': 1}", "not JSON"),
        (b'{"id": 1', "not JSON"),
        (b'{"id": 1, "claim": NaN}', "NaN is not valid JSON"),
        (b'{"id": 1, "claim": "\xff"}', "not UTF-8"),
        (b'{"id": 1, "claim": "\\ud800"}', "surrogate pair"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (b'{"id": ' + b"9" * 5000 + b"}", "5,000 digits"),
        (b'{"score": ' + b"9" * 400 + b".5}", "too large"),
        # Legal JSON, so the message does not call it something else.
        (b'{"id": {"x": 1, "x": 1}}', "the key 'x' occurs twice"),
        (b'{"meta": {" \xc2\xa0": "a"}}', "a key without a name"),
    ],
    ids=["quotes", "cut", "nan", "bytes", "surrogate", "deep", "digits", "overflow", "twice", "nameless"],
)
def test_a_line_that_is_no_json(tmp_path: Path, line: bytes, reason: str) -> None:
    good = b'{"id": 2, "claim": "c"}'
    loaded = load("jsonl", write(tmp_path / "d.jsonl", b"\n".join([good.replace(b"2", b"1"), line, good])))
    assert loaded.places == [("d.jsonl", 2, "")]
    assert reason in loaded.bads[0].reason
    is_legal = reason.endswith(("occurs twice", "without a name"))
    assert is_legal != ("not JSON" in loaded.bads[0].reason or "not UTF-8" in loaded.bads[0].reason)
    assert [i.source_id for i in loaded.items] == ["1", "2"]


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.files.LONGEST", 64)
    lines = [
        b'{"id": 1, "claim": "c"}',
        b'{"id": 2, "claim": "' + b"c" * 500 + b'"}',
        b'{"id": 3, "claim": "c"}',
    ]
    loaded = load("jsonl", write(tmp_path / "d.jsonl", b"\n".join(lines)))
    assert [i.source_id for i in loaded.items] == ["1", "3"]
    assert loaded.places == [("d.jsonl", 2, "")]


@pytest.mark.parametrize(
    "content", [b"", b"\n \n", gzip.compress(b""), b"[]"], ids=["0", "blank", "gz", "[]"]
)
def test_a_file_without_rows(tmp_path: Path, content: bytes) -> None:
    loaded = load("jsonl", write(tmp_path / "d.jsonl", content))
    assert loaded.places == [("d.jsonl", 0, "")]
    assert "empty" in loaded.bads[0].reason


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (gzip.compress(b'{"id": 1, "claim": "c"}\n' * 2000)[:-30], 0),
        (b'[{"id": 1, "claim": "c"}, {"id": 2', 2),
        (b'[{"id": 1, "claim": "c"}, {"id": "\xff"}]', 2),
        (b"[{]", 1),
    ],
    ids=["cut-gzip", "cut-array", "bytes", "broken"],
)
def test_a_file_that_breaks_off_is_never_half_imported(tmp_path: Path, content: bytes, line: int) -> None:
    path = write(tmp_path / "d.jsonl", content)
    with pytest.raises(BadInput) as caught:
        load("jsonl", path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        load("jsonl", tmp_path / "no.jsonl")


def test_without_skip_the_first_bad_row_raises(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"id": 1, "claim": "c"}, {"id": 2}, {"id": 3, "claim": "c"}])
    rows = base.get("jsonl").read_rows([path], base.Options(), stop)
    assert next(rows).item.source_id == "1"
    with pytest.raises(BadInput) as caught:
        next(rows)
    assert (caught.value.path, caught.value.line, caught.value.field) == (str(path), 2, "question")


def test_reading_streams(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    line = json.dumps({"id": 1, "passages": ["x" * 2000] * 2}) + "\n"
    with path.open("w") as handle:
        for _ in range(5000):  # 20 MB
            handle.write(line)
    tracemalloc.start()
    bads: list[BadInput] = []
    rows = sum(1 for _ in base.get("jsonl").read_rows([path], base.Options(), bads.append))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (rows, bads) == (5000, [])
    assert peak < 2 * 2**20
