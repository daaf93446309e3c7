"""raguard: the real claims and samples, documents from the specification, and what has no text."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.errors import BadInput, UsageError
from judge.files import stop
from judge.importers import base
from judge.types import Passage, Vote
from tests import formats
from tests.importers.helpers import load, write
from tests.real import require

ROLES = {"supporting": 2685, "misleading": 1812, "irrelevant": 11834}  # definitions.md, RAGuard


def test_real_claims_alone() -> None:
    loaded = load("raguard", require("shared-data") / "raguard" / "claims.csv")
    assert (len(loaded.items), loaded.passages, loaded.bads, loaded.notes) == (2648, 0, [], [])
    assert loaded.gold("claim_verdict") == {"true": 1333, "false": 1315}
    labels = [i.meta["document_labels"] for i in loaded.items]
    assert Counter(x for row in labels for x in row) == ROLES
    owning = {role: sum(role in row for row in labels) for role in ROLES}
    assert (owning["supporting"], owning["misleading"]) == (955, 788)
    assert all(len(i.meta["document_ids"]) == len(i.meta["document_labels"]) for i in loaded.items)


def test_real_claims_with_written_documents(tmp_path: Path) -> None:
    claims = require("shared-data") / "raguard" / "claims.csv"
    loaded = load("raguard", claims, formats.raguard_documents(tmp_path / "documents.csv", claims))
    assert (len(loaded.items), loaded.passages, loaded.bads) == (2648, 16331, [])
    assert loaded.gold("raguard.role") == ROLES
    # The writer leaves every fourth document id without text: 16,331 // 4.
    assert loaded.notes[0].startswith("4082 of 16331 documents have no text")


def test_real_sample() -> None:
    path = require("shared-data") / "raguard" / "data" / "raguard" / "sample" / "sample_20.json"
    loaded = load("raguard", path)
    assert (len(loaded.items), loaded.passages, loaded.bads) == (20, 111, [])
    assert loaded.gold("raguard.role") == {"irrelevant": 91, "supporting": 14, "misleading": 6}
    assert sum(loaded.gold("claim_verdict").values()) == 20
    assert [note.split(" ")[0] for note in loaded.notes] == ["36"]


def test_claims_and_documents(tmp_path: Path) -> None:
    claims, documents = formats.raguard(tmp_path)
    loaded = load("raguard", documents, claims)
    first = loaded.items[0]
    assert (first.item_id, first.claim) == ("raguard:1", "Taxes rose.")
    assert first.votes == [Vote("claim_verdict", "true")]
    assert first.meta == {
        "document_ids": ["1", "2", "3"],
        "document_labels": ["supporting", "misleading", "irrelevant"],
        "original_verdict": "half-true",
    }
    assert first.passages[2] == Passage(
        "Post 3 says so.\n\nAll.",
        source_id="3",
        title="Title 3",
        meta={"link": "https://example.org/3"},
        votes=[Vote("raguard.role", "irrelevant")],
    )
    assert loaded.wheres[0].path == str(claims)


def rewrite(path: Path, change: dict[str, dict[str, Any]], key: str) -> Path:
    """The CSV with cells changed, by the row's key."""
    with path.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    for row in rows:
        row.update(change.get(row[key], {}))
    return formats.write_csv(path, list(rows[0]), rows)


def test_documents_without_text_are_counted_not_lost(tmp_path: Path) -> None:
    claims, documents = formats.raguard(tmp_path)
    rewrite(
        documents,
        {
            "1": {"Full Text": "[Link Post]"},
            "2": {"Full Text": "  ", "Title": ""},
            "3": {"Full Text": "[removed]"},
        },
        "Document ID",
    )
    loaded = load("raguard", claims, documents)
    first = loaded.items[0]
    assert [(p.source_id, p.text, p.title) for p in first.passages] == [
        ("1", "Title 1", None),
        ("3", "Title 3", None),
    ]
    assert first.passages[0].meta["text_from"] == "title"
    assert first.passages[0].meta["full_text"] == "[Link Post]"
    assert first.passages[0].votes == [Vote("raguard.role", "supporting")]
    assert first.meta["documents_without_text"] == ["2"]
    assert loaded.notes == [
        "4 of 6 documents have no text (it is empty or a placeholder): for 3, the title is used as text; "
        "1 have no title either and were not imported"
    ]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("Document Label", "wrong"),
        ("Document Label", "supporting"),
        ("Claim ID", "99"),
        ("Claim ID", ""),
        ("Document ID", "1"),
        ("Document ID", ""),
    ],
)
def test_bad_documents(tmp_path: Path, column: str, cell: str) -> None:
    claims, documents = formats.raguard(tmp_path)
    rewrite(documents, {"2": {column: cell}}, "Document ID")
    loaded = load("raguard", claims, documents)
    assert loaded.places == [("documents.csv", 5, column)]
    assert len(loaded.items) == 3
    assert loaded.passages == 5


def test_a_bad_document_stops_a_strict_import_at_its_own_line(tmp_path: Path) -> None:
    claims, documents = formats.raguard(tmp_path)
    rewrite(documents, {"2": {"Document Label": "supporting"}}, "Document ID")
    with pytest.raises(BadInput) as caught:
        list(base.get("raguard").read_rows([claims, documents], base.Options(), stop))
    assert (caught.value.path, caught.value.line) == (str(documents), 5)
    assert "'supporting' here, but 'misleading' in the claims file" in caught.value.reason


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"Verdict": "half"}, "Verdict"),
        ({"Claim": ""}, "Claim"),
        ({"Claim ID": ""}, "Claim ID"),
        ({"Document IDs": "1, 2"}, "Document IDs"),
        ({"Document IDs": "[4]"}, "Document Labels"),
        ({"Document Labels": "['unrelated', 'x']"}, "Document Labels"),
        ({"Document Labels": "__import__('os')"}, "Document Labels"),
    ],
)
def test_bad_claims(tmp_path: Path, change: dict[str, str], field: str) -> None:
    claims, _ = formats.raguard(tmp_path)
    rewrite(claims, {"2": change}, "Claim ID")
    loaded = load("raguard", claims)
    assert loaded.places == [("claims.csv", 3, field)]
    assert [i.source_id for i in loaded.items] == ["1", "3"]


def test_a_bad_claim_does_not_blame_its_documents(tmp_path: Path) -> None:
    claims, documents = formats.raguard(tmp_path)
    rewrite(claims, {"2": {"Verdict": "half"}}, "Claim ID")
    assert load("raguard", claims, documents).places == [("claims.csv", 3, "Verdict")]


def test_documents_that_are_not_there_are_noted(tmp_path: Path) -> None:
    claims, documents = formats.raguard(tmp_path)
    lines = documents.read_text().splitlines(keepends=True)
    write(documents, "".join(lines[:-1]))
    note = "the documents file lacks 1 documents that are listed in the claims file"
    assert note in load("raguard", claims, documents).notes


def test_the_verdict_column_may_be_called_label(tmp_path: Path) -> None:
    claims, _ = formats.raguard(tmp_path)
    write(claims, claims.read_text().replace("Verdict", "Label", 1))
    assert load("raguard", claims).gold("claim_verdict") == {"true": 1, "false": 2}


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    _, documents = formats.raguard(tmp_path)
    with pytest.raises(UsageError, match=r"claims\.csv"):
        load("raguard", documents)
    with pytest.raises(BadInput, match="neither RAGuard's claims nor its documents") as caught:
        load("raguard", write(tmp_path / "x.csv", "a,b\n1,2\n"))
    assert (caught.value.line, caught.value.field) == (1, "Claim")
    without_text = write(tmp_path / "d.csv", "Document ID,Title,Claim ID\n1,t,1\n")
    with pytest.raises(BadInput) as caught:
        load("raguard", tmp_path / "claims.csv", without_text)
    assert (caught.value.path, caught.value.line, caught.value.field) == (str(without_text), 1, "Full Text")


@pytest.mark.parametrize(
    ("element", "field"),
    [
        ({"claim_id": 1, "claim": "c", "verdict": "Maybe"}, "verdict"),
        ({"claim_id": 1, "claim": "c", "verdict": "True", "documents": {}}, "documents"),
        ({"claim_id": 1, "claim": "c", "documents": [{"Full Text": "t", "Document Label": "x"}]},
         "documents.0.Document Label"),
        ({"claim_id": 1, "claim": "c", "documents": [{"Full Text": 5}, {"Full Text": []}]}, "documents.1.Full Text"),
        ({"claim_id": 1, "claim": 5}, "claim"),
        ({"claim": "c"}, "claim_id"),
        ({"claim_id": 1, "claim": "c", "document_ids": [1], "document_labels": []}, "document_labels"),
    ],
)  # fmt: skip
def test_bad_elements_of_a_sample(tmp_path: Path, element: Any, field: str) -> None:
    path = write(tmp_path / "s.json", json.dumps([element]))
    loaded = load("raguard", path)
    assert [(b.line, b.reason.startswith("element 1: ")) for b in loaded.bads] == [(1, True)]
    assert loaded.bads[0].field == field
