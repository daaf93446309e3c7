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

GOLD = Vote("stance", "support")


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
    item = Item("7", "nq", question_id="q3")
    assert item.item_id == "nq:7"
    assert question_id(item) == "nq:q3"
    assert question_id(Item("7", "nq")) == "nq:7", "the cluster defaults to the item"
    assert passage_id(item, Passage("text", "p1")) == "nq:7/p1"
    # printf 'text' | sha256sum | cut -c1-16
    assert passage_id(item, Passage("text")) == "nq:7/982d9e3eb996f559"


def test_a_passage_without_id_is_known_by_its_text_in_nfc() -> None:
    item = Item("7", "nq")
    assert passage_id(item, Passage("caf\u00e9")) == passage_id(item, Passage("cafe\u0301"))
    assert passage_id(item, Passage("cafe")) != passage_id(item, Passage("Cafe"))


@pytest.mark.parametrize(
    ("second", "words"),
    [
        # d:a + /b is also the id of the item a/b, and a + b/c of a/b + c.
        (Item("a/b", "d", claim="x"), ["item 'd:a/b'", "passage of 'd:a'"]),
        (Item("a", "d", claim="c", passages=[Passage("other", "b")]), ["'d:a/b'", "other content"]),
    ],
)
def test_ids_that_would_clash_are_refused(second: Item, words: list[str]) -> None:
    with Store.open(":memory:") as store:
        add(store, [Item("a", "d", claim="c", passages=[Passage("text", "b")])])
        kept = dump(store)
        with pytest.raises(BadInput) as caught:
            add(store, [second])
        assert caught.value.path == "rows.jsonl"
        for word in words:
            assert word in str(caught.value)
        assert dump(store) == kept


def test_a_passage_is_never_taken_for_one_of_another_item() -> None:
    # The same text under the same joined id: a look at the text alone would call it unchanged and
    # leave the second item without its passage, and with its label on the first item's.
    first = Item("a/b", "d", claim="x", passages=[Passage("text", "c", votes=[GOLD])])
    second = Item("a", "d", claim="x", passages=[Passage("text", "b/c", votes=[GOLD])])
    with Store.open(":memory:") as store:
        with pytest.raises(BadInput, match=r"'d:a/b/c'.* passage of 'd:a/b'"):
            add(store, [first, second])
        assert stored(store.conn) == []


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
        assert dict(report.counts) == {"items": 0, "passages": 1, "answers": 0, "labels": 2, "unchanged": 0}
        [item] = stored(store.conn)
        assert [(p.source_id, p.votes) for p in item.passages] == [("a", [GOLD]), ("b", []), ("c", [])]
        assert item.votes == [GOLD]


def test_several_rows_with_the_same_id_are_one_item() -> None:
    rows = [Item("1", "d", claim="c", passages=[Passage(text)]) for text in ("one", "two", "one", "three")]
    with Store.open(":memory:") as store:
        report = add(store, rows)
        assert dict(report.counts) == {"items": 1, "passages": 3, "answers": 0, "labels": 0, "unchanged": 1}
        [item] = stored(store.conn)
        assert [p.text for p in item.passages] == ["one", "two", "three"]


def test_two_different_items_with_the_same_id_are_reported() -> None:
    with Store.open(":memory:") as store:
        with pytest.raises(
            BadInput, match=r"rows\.jsonl:2: field 'id': 'd:1' is in the study with other content"
        ):
            add(store, [Item("1", "d", claim="one"), Item("1", "d", claim="two")])
        report = add(store, [Item("1", "d", claim="one"), Item("1", "d", claim="two")], skip=True)
        assert len(report.skipped) == 1
        assert [i.claim for i in stored(store.conn)] == ["one"]


def test_two_passages_of_a_row_with_the_same_id_and_other_text_are_reported() -> None:
    with (
        Store.open(":memory:") as store,
        pytest.raises(BadInput, match="two passages of this row have the id 'a'"),
    ):
        add(store, [Item("1", "d", claim="c", passages=[Passage("x", "a"), Passage("y", "a")])])


# --- labels


@pytest.mark.parametrize(
    "rows",
    [
        [
            Item("1", "d", claim="c", votes=[GOLD]),
            Item("1", "d", claim="c", votes=[Vote("stance", "refute")]),
        ],
        [Item("1", "d", claim="c", votes=[GOLD, Vote("stance", "refute")])],
        # The same text is the same passage, so these are two gold labels of one unit.
        [
            Item(
                "1",
                "d",
                claim="c",
                passages=[Passage("x", votes=[GOLD]), Passage("x", votes=[Vote("stance", "no")])],
            )
        ],
    ],
    ids=["two rows", "one row", "one passage twice"],
)
def test_conflicting_gold_is_reported(rows: list[Item]) -> None:
    with Store.open(":memory:") as store:
        with pytest.raises(BadInput, match=r"gold has labelled 'd:1.*' 'support' before") as caught:
            add(store, rows)
        assert (caught.value.line, caught.value.field) == (len(rows), "stance")
        assert stored(store.conn) == []


def test_the_same_label_twice_is_one_label() -> None:
    with Store.open(":memory:") as store:
        report = add(store, [Item("1", "d", claim="c", votes=[GOLD, GOLD])])
        assert report.counts["labels"] == 1
        assert report.label_counts == {"stance": {"support": 1}}


def test_people_are_annotators_of_their_own_names() -> None:
    item = Item("1", "d", claim="c", votes=[GOLD, human("ann"), human("bob", "refute")])
    with Store.open(":memory:") as store:
        add(store, [item])
        assert store.conn.execute("SELECT annotator_id, kind FROM annotators ORDER BY 1").fetchall() == [
            ("ann", "human"),
            ("bob", "human"),
            ("gold", "gold"),
        ]
        with pytest.raises(BadInput, match="ann has labelled 'd:1' 'support' before, and 'neutral' here"):
            add(store, [Item("1", "d", claim="c", votes=[human("ann", "neutral")])])


def test_a_person_cannot_have_the_name_of_a_run_or_of_gold() -> None:
    with Store.open(":memory:") as store:
        store.conn.execute("INSERT INTO annotators VALUES ('01RUN', 'judge', '{}')")
        with pytest.raises(BadInput, match="'01RUN' is a judge in this study, and a human here"):
            add(store, [Item("1", "d", claim="c", votes=[human("01RUN")])])
        add(store, [Item("1", "d", claim="c", votes=[GOLD])])
        with pytest.raises(BadInput, match="'gold' is a gold in this study, and a human here"):
            add(store, [Item("2", "d", claim="c", votes=[human("gold")])])


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (Item("1", "d", claim="\ud800"), "surrogate"),
        (Item("\udfff", "d", claim="c"), "surrogate"),
        (Item("1", "d", claim="c", passages=[Passage("a\ud83d")]), "surrogate"),
        (Item("1", "d", claim="c", meta={"x": ["\ud800"]}), "surrogate"),
        (Item("1", "d", claim="c", votes=[Vote("f", "\ud800")]), "surrogate"),
        (Item("1", "d", claim="c", meta={"x": float("nan")}), "JSON"),
        (Item("1", "d", claim="c", meta={"x": float("inf")}), "JSON"),
        (Item("1", "d", claim="c", meta={"x": {1, 2}}), "JSON"),
        (Item("1", "d", claim="c", passages=[Passage("a", meta={"x": float("nan")})]), "JSON"),
        (Item("1", "d", claim="c", pair_id="p", polarity="against"), "polarity"),
    ],
)
def test_what_cannot_be_stored_is_a_bad_row(item: Item, words: str) -> None:
    with Store.open(":memory:") as store:
        with pytest.raises(BadInput, match=words) as caught:
            add(store, [Item("0", "d", claim="good"), item])
        assert (caught.value.path, caught.value.line) == ("rows.jsonl", 2)
        report = add(store, [Item("0", "d", claim="good"), item], skip=True)
        assert (report.counts["items"], len(report.skipped)) == (1, 1)
        assert [i.source_id for i in stored(store.conn)] == ["0"], "nothing of the bad row is left"
