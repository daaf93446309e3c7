"""Property: item -> row -> file -> item, through jsonl and through csv."""

import csv
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.types import AnnotatorKind, Item, Passage, Vote
from tests.formats import write_jsonl
from tests.importers.helpers import load

text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)
word = st.none() | text
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
meta = st.dictionaries(text.map(lambda k: f"x-{k}"), json_value, max_size=3)


@st.composite
def votes(draw: st.DrawFn) -> list[Vote]:
    gold = draw(st.dictionaries(text, text, max_size=3))
    people = draw(
        st.dictionaries(
            text, st.dictionaries(text.filter(lambda n: n != "gold"), text, min_size=1), max_size=2
        )
    )
    return [Vote(f, v) for f, v in gold.items()] + [
        Vote(f, v, who, AnnotatorKind.HUMAN) for f, given in people.items() for who, v in given.items()
    ]


passages = st.lists(
    st.builds(
        Passage, text=text, source_id=text, title=word, date=word, source=word, meta=meta, votes=votes()
    ),
    max_size=3,
    unique_by=lambda p: p.source_id,
)


@st.composite
def items(draw: st.DrawFn) -> Item:
    options = draw(st.none() | st.dictionaries(text, text, min_size=1, max_size=4))
    pair = draw(st.none() | st.tuples(text, st.sampled_from(["original", "counter"])))
    return Item(
        source_id=draw(text),
        dataset=draw(text.filter(lambda t: ":" not in t)),
        question_id=draw(word),
        question=draw(text),
        question_date=draw(word),
        claim=draw(word),
        reference_answers=draw(st.none() | st.lists(text, max_size=3)),
        options=options,
        correct=draw(st.sampled_from(sorted(options))) if options else None,
        pair_id=pair[0] if pair else None,
        polarity=pair[1] if pair else None,
        meta=draw(meta),
        votes=draw(votes()),
        passages=draw(passages),
    )


def row_of(item: Item | Passage) -> dict[str, Any]:
    """The row that says the same."""
    row: dict[str, Any] = {"id": item.source_id, "meta": item.meta, "gold": {}, "votes": {}}
    for vote in item.votes:
        if vote.kind is AnnotatorKind.GOLD:
            row["gold"][vote.field] = vote.value
        else:
            row["votes"].setdefault(vote.field, {})[vote.annotator] = vote.value
    names = ("text", "title", "date", "source") if isinstance(item, Passage) else (
        "dataset", "question_id", "question", "question_date", "claim", "reference_answers", "options",
        "correct", "pair_id", "polarity",
    )  # fmt: skip
    row |= {n: getattr(item, n) for n in names}
    if isinstance(item, Item):
        row["passages"] = [row_of(p) for p in item.passages]
    return row


relaxed = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None
)


@relaxed
@given(given_items=st.lists(items(), min_size=1, max_size=3))
def test_through_jsonl(tmp_path: Path, given_items: list[Item]) -> None:
    loaded = load("jsonl", write_jsonl(tmp_path / "d.jsonl", map(row_of, given_items)))
    assert not loaded.bads
    assert loaded.items == given_items


@relaxed
@given(item=items())
def test_through_csv(tmp_path: Path, item: Item) -> None:
    row = {
        k: json.dumps(v) if isinstance(v, list | dict) else v
        for k, v in row_of(item).items()
        if v is not None
    }
    with (tmp_path / "d.csv").open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(row))
        writer.writeheader()
        writer.writerow(row)
    loaded = load("csv", tmp_path / "d.csv")
    assert not loaded.bads
    assert loaded.items == [item]
