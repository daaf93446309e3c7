"""csv: the same rows through columns, JSON in cells, and tables that do not hold together."""

import gzip
from pathlib import Path

import pytest

from judge.errors import BadInput, UsageError
from judge.types import AnnotatorKind, Passage, Vote
from tests.importers.helpers import load, write


def test_columns_like_the_keys_of_jsonl(tmp_path: Path) -> None:
    text = (
        "id,claim,gold.claim_verdict,passages.text,passages.id,passages.gold.stance,passages.votes.stance,note\n"
        '1,"a, b",True,"two\nlines",p1,support,"{""ann"": ""refute""}",n\n'
        "2,c,,,,,,m\n"
    )
    loaded = load("csv", write(tmp_path / "d.csv", text), label_maps={"claim_verdict": {"True": "true"}})
    assert not loaded.bads
    first, second = loaded.items
    assert (first.claim, first.votes, first.meta) == ("a, b", [Vote("claim_verdict", "true")], {})
    assert first.passages == [
        Passage(
            "two\nlines",
            source_id="p1",
            meta={"note": "n"},
            votes=[Vote("stance", "support"), Vote("stance", "refute", "ann", AnnotatorKind.HUMAN)],
        )
    ]
    assert (second.votes, second.passages, second.meta) == ([], [], {"note": "m"})
    assert [w.line for w in loaded.wheres] == [2, 4]


def test_json_in_cells(tmp_path: Path) -> None:
    text = (
        "id,question,reference_answers,options,correct,passages,gold,meta\n"
        '1,q,"[""a"", ""b""]","{""A"": ""x""}",A,"[""p"", {""text"": ""r"", ""id"": 2}]","{""f"": 0}","{""k"": 1}"\n'
        "2,q,plain,,,a text,,\n"
        "3,q,[1] sic,,,[see] this,,\n"
    )
    loaded = load("csv", write(tmp_path / "d.csv", text))
    assert not loaded.bads
    first, second, third = loaded.items
    assert (first.reference_answers, first.options) == (["a", "b"], {"A": "x"})
    assert (first.votes, first.meta) == ([Vote("f", "0")], {"k": 1})
    assert first.passages == [Passage("p"), Passage("r", source_id="2")]
    assert (second.reference_answers, second.passages) == (["plain"], [Passage("a text")])
    assert (third.reference_answers, third.passages) == (["[1] sic"], [Passage("[see] this")])


def test_maps_and_columns_with_spaces(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", 'Claim ID,The claim,docs,empty\n1,c,"[{""body"": ""x""}]",\n')
    maps = {"id": "Claim ID", "claim": "The claim", "passages": "docs", "passages.text": "body",
            "question_date": "empty"}  # fmt: skip
    (item,) = load("csv", path, maps=maps).items
    assert (item.claim, item.passages, item.question_date) == ("c", [Passage("x")], None)
    with pytest.raises(UsageError, match="no row has 'The clam'"):
        load("csv", path, maps={**maps, "claim": "The clam"})


def test_tabs_gzip_and_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "d.tsv.gz", gzip.compress("\ufeffid\tclaim\n1\ta, b\u2028c\n".encode()))
    (item,) = load("csv", path).items
    assert (item.dataset, item.claim) == ("d", "a, b\u2028c")


@pytest.mark.parametrize(
    ("body", "place", "reason"),
    [
        (b'9,"c', (2, ""), "not CSV"),
        (b'9,"c"x\n', (2, ""), "not CSV"),
        (b"9,c,d\n1,c\n", (2, ""), "this row has 3 cells, but the header has 2"),
        (b"9\n1,c\n", (2, ""), "this row has 1 cells, but the header has 2"),
        (b"9,\xff\n1,\xc3\xa9\n", (2, "claim"), "not UTF-8"),
        (b'1,"two\nlines"\n9, \n', (4, "claim"), "the text is empty"),
        (b",c\n1,c\n", (2, "id"), "missing"),
    ],
)
def test_bad_rows(tmp_path: Path, body: bytes, place: tuple[int, str], reason: str) -> None:
    loaded = load("csv", write(tmp_path / "d.csv", b"id,claim\n" + body))
    assert loaded.places == [("d.csv", *place)]
    assert reason in loaded.bads[0].reason
    assert {i.source_id for i in loaded.items} <= {"1"}


@pytest.mark.parametrize("column", ["options", "gold", "votes.f", "passages"])
@pytest.mark.parametrize("cell", ['[{"a": ', "[" * 100_000, '{"a": "\\ud800"}', '{"a": 1, "a": 2}'])
def test_broken_json_in_a_cell(tmp_path: Path, column: str, cell: str) -> None:
    quoted = cell.replace('"', '""')
    loaded = load("csv", write(tmp_path / "d.csv", f'id,claim,{column}\n1,c,"{quoted}"\n'))
    assert loaded.places == [("d.csv", 2, column)]


def test_a_path_into_a_cell_that_is_nested_too_deeply_is_in_no_row(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", f"id,claim,more\n1,c,{'[' * 100_000}\n")
    with pytest.raises(UsageError, match=r"more\.0"):
        load("csv", path, maps={"passages.text": "more.0"})


@pytest.mark.parametrize(
    ("content", "line", "field"),
    [
        (b"", 0, ""),
        (b"claim\nc\n", 1, "id"),
        (b"id,claim,claim\n1,c,c\n", 1, "claim"),
        (b"id,,claim\n1,2,c\n", 1, ""),
    ],
    ids=["empty", "no-id", "twice", "no-name"],
)
def test_tables_that_cannot_be_used(tmp_path: Path, content: bytes, line: int, field: str) -> None:
    path = write(tmp_path / "d.csv", content)
    with pytest.raises(BadInput) as caught:
        load("csv", path)
    assert (caught.value.path, caught.value.line, caught.value.field) == (str(path), line, field)


def test_header_only(tmp_path: Path) -> None:
    loaded = load("csv", write(tmp_path / "d.csv", "id,claim\n"))
    assert (loaded.places, loaded.bads[0].reason) == (
        [("d.csv", 0, "")],
        "there are no rows under the header",
    )


def test_a_cell_over_pythons_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", "id,claim\n1," + "x" * 200_000 + "\n")
    assert len(load("csv", path).items[0].claim or "") == 200_000


def test_votes_may_have_a_column_for_each_person(tmp_path: Path) -> None:
    text = (
        "id,claim,passages.text,passages.votes.relevant.me,passages.votes.relevant.bob,votes.claim_verdict.me\n"
        "1,c,t,yes,,true\n2,c,u,no,yes,\n"
    )
    loaded = load("csv", write(tmp_path / "d.csv", text))
    assert not loaded.bads
    first, second = loaded.items
    human = AnnotatorKind.HUMAN
    assert first.passages[0].votes == [Vote("relevant", "yes", "me", human)]
    assert first.votes == [Vote("claim_verdict", "true", "me", human)]
    assert {(v.annotator, v.value) for v in second.passages[0].votes} == {("me", "no"), ("bob", "yes")}


def test_two_votes_of_a_person_are_an_error(tmp_path: Path) -> None:
    text = 'id,claim,votes.f,votes.f.me\n1,c,"{""me"": ""a""}",b\n'
    assert load("csv", write(tmp_path / "d.csv", text)).places == [("d.csv", 2, "votes.f.me")]
