"""Items in: what comes out is what went in, nothing is replaced, and a bad row leaves nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import BadInput
from judge.store import Store
from judge.store.items import passage_id, question_id
from judge.types import AnnotatorKind, Item, Passage, Vote
from tests.cli.helpers import ROWS, write_rows
from tests.store.helpers import add, dump, empty, import_jsonl, stored

GOLD, REFUTED = Vote("stance", "support"), Vote("stance", "refute")


def human(name: str, value: str = "support", field: str = "stance") -> Vote:
    return Vote(field, value, name, AnnotatorKind.HUMAN)


# --- item -> store -> item

texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)
maybe = st.none() | texts
ids = texts | st.sampled_from(
    ["a/b", "a#s1", "a@sys@oracle", "a b", "é", "a:b", "ünïcode/№ 7", "{}", "'; --"]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
metas = st.dictionaries(texts, json_values, max_size=2)
votes = st.lists(
    st.builds(Vote, texts, texts)
    | st.builds(Vote, texts, texts, texts.map("person ".__add__), st.just(AnnotatorKind.HUMAN), maybe),
    max_size=3,
    unique_by=lambda v: (v.annotator, v.field),
).map(lambda drawn: sorted(drawn, key=lambda v: (v.annotator, v.field)))
passages = st.builds(Passage, texts, ids, maybe, maybe, maybe, metas, votes)
pairs = st.just((None, None)) | st.tuples(texts, st.sampled_from(["original", "counter"]))


@st.composite
def items(draw: st.DrawFn) -> Item:
    pair, polarity = draw(pairs)
    return Item(
        source_id=draw(ids),
        dataset=draw(st.sampled_from(["d", "data set", "é"])),
        question_id=draw(maybe),
        question=draw(maybe),
        question_date=draw(maybe),
        claim=draw(maybe),
        reference_answers=draw(st.none() | st.lists(texts, max_size=2)),
        options=draw(st.none() | st.dictionaries(texts, texts, max_size=2)),
        correct=draw(maybe),
        pair_id=pair,
        polarity=polarity,
        meta=draw(metas),
        votes=draw(votes),
        passages=draw(st.lists(passages, max_size=3, unique_by=lambda p: p.source_id)),
    )


def _ids(item: Item) -> list[str]:
    return [item.item_id, *(passage_id(item, p) for p in item.passages)]


def _distinct(drawn: list[Item]) -> bool:
    every = [i for item in drawn for i in _ids(item)]
    # A question that is called like its item cannot be told from the default.
    return len(set(every)) == len(every) and all(i.question_id != i.source_id for i in drawn)


@settings(max_examples=30)
@given(st.lists(items(), min_size=1, max_size=3).filter(_distinct))
def test_what_comes_out_is_what_went_in(given_items: list[Item]) -> None:
    with empty() as store:
        report = add(store, given_items)
        assert stored(store.conn) == given_items
        assert report.counts["items"] == len(given_items)
        assert report.counts["passages"] == sum(len(i.passages) for i in given_items)
        kept = dump(store)
        again = add(store, given_items)
        assert dump(store) == kept, "importing twice changes nothing, not even a time"
        assert again.counts["unchanged"] == len(given_items)


# --- ids


def test_ids_are_made_of_data_set_item_and_passage() -> None:
    asked = Item("7", "nq", question_id="q3")
    assert asked.item_id == "nq:7"
    assert question_id(asked) == "nq:q3"
    assert question_id(Item("7", "nq")) == "nq:7", "the cluster defaults to the item"
    assert passage_id(asked, Passage("text", "p1")) == "nq:7/p1"
    # printf 'text' | sha256sum | cut -c1-16
    assert passage_id(asked, Passage("text")) == "nq:7/982d9e3eb996f559"


def test_a_passage_without_id_is_known_by_its_text_in_nfc() -> None:
    assert passage_id(item(), Passage("caf\u00e9")) == passage_id(item(), Passage("cafe\u0301"))
    assert passage_id(item(), Passage("cafe")) != passage_id(item(), Passage("Cafe"))


def item(*passages: Passage, name: str = "1", claim: str = "c", **more: Any) -> Item:
    return Item(name, "d", claim=claim, passages=list(passages), **more)


@pytest.mark.parametrize(
    ("rows", "field", "word"),
    [
        # d:a + /b is also the id of the item a/b.
        ([item(Passage("text", "b"), name="a"), item(name="a/b")], "id", "passage, in 'd:a'"),
        (
            [item(Passage("text", "b"), name="a"), item(Passage("other", "b"), name="a")],
            "id",
            "different content",
        ),
        # The same text under the same joined id: a look at the text alone would call it unchanged, and leave the second item
        # without its passage.
        (
            [item(Passage("text", "c"), name="a/b"), item(Passage("text", "b/c"), name="a")],
            "id",
            "in 'd:a/b'",
        ),
        ([item(claim="one"), item(claim="two")], "id", "different content"),
        (
            [item(Passage("x", "a"), Passage("y", "a"))],
            "passages",
            "two passages of this row have the id 'a'",
        ),
        ([item(votes=[GOLD]), item(votes=[REFUTED])], "stance", "gold has labelled"),
        ([item(votes=[GOLD, REFUTED])], "stance", "gold has labelled"),
        # The same text is the same passage, so these are two gold labels of one unit.
        ([item(Passage("x", votes=[GOLD]), Passage("x", votes=[REFUTED]))], "stance", "gold has labelled"),
        ([item(votes=[human("ann")]), item(votes=[human("ann", "refute")])], "stance", "ann has labelled"),
        ([item(votes=[GOLD]), item(name="2", votes=[human("gold")])], "stance", "'gold' of another kind"),
        ([item(votes=[human("01RUN")])], "stance", "'01RUN' of another kind"),
        ([item(claim="\ud800")], "", "surrogate"),
        ([item(name="\udfff")], "", "surrogate"),
        ([item(Passage("a\ud83d"))], "", "surrogate"),
        ([item(meta={"x": ["\ud800"]})], "", "surrogate"),
        ([item(votes=[Vote("f", "\ud800")])], "", "surrogate"),
        ([item(meta={"x": float("nan")})], "", "JSON"),
        ([item(meta={"x": float("inf")})], "", "JSON"),
        ([item(meta={"x": {1, 2}})], "", "JSON"),
        ([item(Passage("a", meta={"x": float("nan")}))], "", "JSON"),
        ([item(pair_id="p", polarity="against")], "polarity", "must be original or counter"),
    ],
)
def test_a_row_that_cannot_be_stored_is_refused_with_its_place(
    rows: list[Item], field: str, word: str
) -> None:
    with empty() as store:
        store.conn.execute("INSERT INTO annotators VALUES ('01RUN', 'judge', '{}')")
        kept = dump(store)
        with pytest.raises(BadInput) as caught:
            add(store, rows)
        assert (caught.value.path, caught.value.line) == ("rows.jsonl", len(rows))
        assert caught.value.field == field and word in str(caught.value)
        assert dump(store) == kept
        report = add(store, rows, skip=True)
        assert len(report.skipped) == 1
        assert stored(store.conn) == rows[:-1], "nothing of the bad row is left"


# --- one transaction, nothing replaced


def test_a_bad_row_at_the_end_leaves_nothing(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [*ROWS, {"id": "bad", "claim": 7}])
    with pytest.raises(BadInput) as caught:
        import_jsonl(tmp_path / "study.db", path)
    assert (caught.value.path, caught.value.line, caught.value.field) == (str(path), 3, "claim")
    with Store.open(tmp_path / "study.db") as store:
        for table in ("items", "passages", "units", "labels", "annotators", "imports"):
            assert store.conn.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


def test_each_file_is_a_transaction_of_its_own(tmp_path: Path) -> None:
    good = write_rows(tmp_path / "good.jsonl")
    bad = write_rows(tmp_path / "bad.jsonl", [{"id": "1", "claim": "c"}, {"id": "2"}])
    with pytest.raises(BadInput, match=r"bad\.jsonl:2"):
        import_jsonl(tmp_path / "study.db", good, bad)
    with Store.open(tmp_path / "study.db") as store:
        assert [i.item_id for i in stored(store.conn)] == ["good:moon", "good:tomato"]


def test_skip_bad_goes_on_and_lists(tmp_path: Path) -> None:
    rows = [ROWS[0], {"claim": "no id"}, ROWS[1], {"id": "x", "claim": "c", "passages": [{"text": ""}]}]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    [(_, report)] = import_jsonl(tmp_path / "study.db", path, skip_bad=True)
    assert [(e.line, e.field) for e in report.skipped] == [(2, "id"), (4, "passages.0.text")]
    with Store.open(tmp_path / "study.db") as store:
        assert [i.source_id for i in stored(store.conn)] == ["moon", "tomato"]
        [kept] = store.conn.execute("SELECT skipped FROM imports").fetchone()
    assert json.loads(kept) == [str(e) for e in report.skipped], "stored with the import"


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("claim", {"claim": "Earth has two moons."}),
    ("question", {"question": "New?"}),
    ("question_id", {"question_id": "q"}),
    ("question_date", {"question_date": "2024-01-01"}),
    ("reference_answers", {"reference_answers": ["one"]}),
    ("options", {"options": {"A": "x", "B": "y"}, "correct": "A"}),
    ("pair", {"pair_id": "p", "polarity": "counter"}),
    ("passage text", {"passages": [{"id": "a", "text": "Earth has one natural satellite!"}]}),
    ("passage title", {"passages": [{**ROWS[0]["passages"][0], "title": "T"}]}),
    ("passage date", {"passages": [{**ROWS[0]["passages"][0], "date": "2001"}]}),
    ("passage source", {"passages": [{**ROWS[0]["passages"][0], "source": "web"}]}),
    ("gold label", {"passages": [{**ROWS[0]["passages"][0], "gold": {"stance": "refute"}}]}),
]


@pytest.mark.parametrize("change", [c[1] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_a_change_under_the_same_id_is_reported_and_nothing_replaced(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    db, path = tmp_path / "study.db", tmp_path / "rows.jsonl"
    import_jsonl(db, write_rows(path))
    with Store.open(db) as store:
        kept = dump(store)
    write_rows(path, [{"id": "new", "claim": "A new one."}, ROWS[1], {**ROWS[0], **change}])
    with pytest.raises(BadInput) as caught:
        import_jsonl(db, path)
    assert (caught.value.path, caught.value.line) == (str(path), 3)
    assert caught.value.field
    with Store.open(db) as store:
        assert dump(store) == kept
    [(_, report)] = import_jsonl(db, path, skip_bad=True)
    assert (report.counts["items"], report.counts["unchanged"], len(report.skipped)) == (1, 1, 1)


def test_new_passages_and_labels_of_a_known_item_are_added() -> None:
    first = Item("1", "d", claim="c", passages=[Passage("one", "a"), Passage("two", "b")])
    more = Item(
        "1", "d", claim="c", votes=[GOLD], passages=[Passage("three", "c"), Passage("one", "a", votes=[GOLD])]
    )
    with Store.open(":memory:") as store:
        add(store, [first])
        report = add(store, [more])
        assert dict(report.counts) == {
            "items": 0,
            "passages": 1,
            "answers": 0,
            "empty": 0,
            "labels": 2,
            "unchanged": 0,
        }
        [only] = stored(store.conn)
        assert [(p.source_id, p.votes) for p in only.passages] == [("a", [GOLD]), ("b", []), ("c", [])]
        assert only.votes == [GOLD]


def test_several_rows_with_the_same_id_are_one_item() -> None:
    rows = [Item("1", "d", claim="c", passages=[Passage(text)]) for text in ("one", "two", "one", "three")]
    with Store.open(":memory:") as store:
        report = add(store, rows)
        assert dict(report.counts) == {
            "items": 1,
            "passages": 3,
            "answers": 0,
            "empty": 0,
            "labels": 0,
            "unchanged": 1,
        }
        [only] = stored(store.conn)
        assert [p.text for p in only.passages] == ["one", "two", "three"]


# --- labels


def test_the_same_label_twice_is_one_label() -> None:
    with Store.open(":memory:") as store:
        report = add(store, [Item("1", "d", claim="c", votes=[GOLD, GOLD])])
        assert report.counts["labels"] == 1
        assert report.label_counts == {"stance": {"support": 1}}


def test_people_are_annotators_of_their_own_names() -> None:
    labelled = item(votes=[GOLD, human("ann"), human("bob", "refute")])
    with Store.open(":memory:") as store:
        add(store, [labelled])
        assert store.conn.execute("SELECT annotator_id, kind FROM annotators ORDER BY 1").fetchall() == [
            ("ann", "human"),
            ("bob", "human"),
            ("gold", "gold"),
        ]
