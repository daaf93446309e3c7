"""claim-pairs: a pair a row, a claim a row, halves and mistakes."""

from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from tests.formats import write_jsonl
from tests.importers.helpers import Loaded, load, write


def told(loaded: Loaded) -> list[tuple[str, str | None, str | None, str | None]]:
    return [(i.source_id, i.claim, i.pair_id, i.polarity) for i in loaded.items]


WHOLE = [("p1-original", "It helps.", "p1", "original"), ("p1-counter", "It harms.", "p1", "counter")]


def test_a_pair_a_row(tmp_path: Path) -> None:
    row = {"pair_id": "p1", "original": "It helps.", "counter": "It harms.", "topic": "x", "gold": {"g": 1}}
    loaded = load("claim-pairs", write_jsonl(tmp_path / "d.jsonl", [row]))
    assert told(loaded) == WHOLE
    assert [i.meta for i in loaded.items] == [{"topic": "x"}] * 2
    assert loaded.gold("g") == {"1": 2}
    assert not loaded.notes


def test_a_claim_a_row_and_csv(tmp_path: Path) -> None:
    rows = [
        {"pair_id": "p1", "polarity": "original", "claim": "It helps."},
        {"pair_id": "p1", "polarity": "counter", "claim": "It harms."},
    ]
    assert told(load("claim-pairs", write_jsonl(tmp_path / "d.jsonl", rows))) == WHOLE
    assert told(load("claim-pairs", write(tmp_path / "d.csv", "pair_id,original,counter\np1,It helps.,It harms.\n"))) == WHOLE  # fmt: skip
    lines = "pair_id,polarity,claim,id\np1,original,It helps.,\np1,counter,It harms.,own\n"
    loaded = load("claim-pairs", write(tmp_path / "e.csv", lines))
    assert told(loaded) == [WHOLE[0], ("own", *WHOLE[1][1:])]


def test_maps(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"n": 1, "texts": {"a": "x", "b": "y"}}])
    maps = {"pair_id": "n", "original": "texts.a", "counter": "texts.b"}
    loaded = load("claim-pairs", path, maps=maps)
    assert told(loaded) == [("1-original", "x", "1", "original"), ("1-counter", "y", "1", "counter")]
    assert [i.meta for i in loaded.items] == [{}, {}]
    with pytest.raises(UsageError, match=r"no row has 'texts\.c'"):
        load("claim-pairs", path, maps={**maps, "claim": "texts.c"})
    with pytest.raises(UsageError, match="no field 'originals'"):
        load("claim-pairs", path, maps={"originals": "texts.a"})


def test_a_map_that_meets_nothing(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"pair_id": 1, "polarity": "counter", "claim": "c"}])
    with pytest.raises(UsageError, match="--map original=first: no row has the key 'first'"):
        load("claim-pairs", path, maps={"original": "first"})


def test_halves_are_noted(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"pair_id": "p9", "polarity": "counter", "claim": "c"}])
    assert load("claim-pairs", path).notes == ["1 pairs have only one of their two claims (p9)"]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"original": "a", "counter": "b"}, "pair_id"),
        ({"pair_id": 1, "original": "a"}, "counter"),
        ({"pair_id": 1, "original": "a", "counter": " "}, "counter"),
        ({"pair_id": 1, "original": ["a"], "counter": "b"}, "original"),
        ({"pair_id": 1, "claim": "a"}, "polarity"),
        ({"pair_id": 1, "claim": "a", "polarity": "against"}, "polarity"),
        ({"pair_id": 1, "polarity": "original", "question": "q"}, "claim"),
        ({"pair_id": "p1", "polarity": "original", "claim": "again"}, "polarity"),
        (["a"], ""),
    ],
)
def test_bad_rows(tmp_path: Path, row: Any, field: str) -> None:
    first = {"pair_id": "p1", "original": "It helps.", "counter": "It harms."}
    loaded = load("claim-pairs", write_jsonl(tmp_path / "d.jsonl", [first, row, {**first, "pair_id": "p2"}]))
    assert loaded.places == [("d.jsonl", 2, field)]
    assert len(loaded.items) == 4
