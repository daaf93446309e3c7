"""scifact: the real files, the shipped sample, and claims that do not add up."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.importers.formats.scifact import sentences_of
from judge.types import Vote
from tests.formats import write_jsonl
from tests.importers.helpers import load
from tests.real import ROOT, require

SAMPLE = ROOT / "data" / "scifact"
CORPUS = [
    {"doc_id": n, "title": f"T{n}", "abstract": [f"One {n}. ", "Two."], "structured": n == 2}
    for n in range(1, 5)
]


def claims(tmp_path: Path, *rows: Any) -> tuple[Path, Path]:
    return write_jsonl(tmp_path / "claims.jsonl", rows), write_jsonl(tmp_path / "corpus.jsonl", CORPUS)


def claim(name: int = 1, evidence: Any = None, cited: Any = (1, 2), **other: Any) -> dict[str, Any]:
    row = {"id": name, "claim": f"Claim {name}.", "evidence": evidence or {}, "cited_doc_ids": list(cited)}
    return row | other


def evidence(*labels: str) -> list[dict[str, Any]]:
    return [{"sentences": [n], "label": label} for n, label in enumerate(labels)]


# Pairs as SOURCE.md counts them; not_supported by hand: cited without evidence, the claim has a verdict.
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("claims_dev.jsonl", (300, 339, 138, 71, 130, 17)),
        ("claims_train.jsonl", (809, 919, 370, 194, 355, 25)),
    ],
)
def test_real_claims(name: str, counts: tuple[int, ...]) -> None:
    folder = require("shared-data") / "scifact"
    loaded = load("scifact", folder / name, folder / "corpus_train.csv")
    assert not loaded.bads
    items, passages, support, refute, neutral, unsupported = counts
    assert (len(loaded.items), loaded.passages) == (items, passages)
    assert loaded.gold("stance") == {"support": support, "refute": refute, "neutral": neutral}
    assert loaded.gold("support") == {"supported": support + refute, "not_supported": unsupported}
    assert loaded.gold("relevance") == {
        "ANSWER-THE-QUESTION": support + refute,
        "RELATED-INFORMATION": neutral,
    }


def test_the_text_is_the_real_abstract() -> None:
    folder = require("shared-data") / "scifact"
    pairs = {}
    for line in (folder / "pairs_dev.jsonl").read_text().splitlines():
        row = json.loads(line)
        # The derived pairs left the \n and \' of numpy's printing as they stand there.
        pairs[row["id"]] = row["evidence"].replace("\\n", " ").replace("\\'", "'")
    loaded = load("scifact", folder / "claims_dev.jsonl", folder / "corpus_train.csv")
    ours = {f"{i.source_id}-{p.source_id}": f"{p.title}\n{p.text}" for i in loaded.items for p in i.passages}
    assert {k: " ".join(v.split()) for k, v in ours.items()} == {
        k: " ".join(v.split()) for k, v in pairs.items()
    }


def test_the_shipped_sample() -> None:
    loaded = load("scifact", SAMPLE / "claims.jsonl", SAMPLE / "corpus.jsonl")
    assert not loaded.bads
    assert loaded.gold("stance") == {"support": 8, "refute": 8, "neutral": 8}
    assert loaded.gold("support") == {"supported": 16, "not_supported": 5}
    assert loaded.gold("relevance") == {"ANSWER-THE-QUESTION": 16, "RELATED-INFORMATION": 8}
    assert loaded.gold("claim_verdict") == {"true": 8, "false": 7}


def test_sources_lists_every_shipped_file_with_its_sum() -> None:
    sources = (ROOT / "data" / "SOURCES.md").read_text()
    listed = dict(re.findall(r"^\| (\S+) \| ([0-9a-f]{64}) \|$", sources, re.MULTILINE))
    folders = [SAMPLE, ROOT / "data" / "minilm", ROOT / "data" / "noveleval"]
    shipped = {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for folder in folders
        for p in folder.rglob("*")
        if p.is_file()
    }
    assert listed == shipped
    assert {p.name for p in (ROOT / "data").iterdir() if p.is_dir()} == {
        "scifact",
        "minilm",
        "noveleval",
        "examples",
    }


def test_the_shipped_sample_is_as_the_originals_say() -> None:
    folder = require("shared-data") / "scifact"
    original = {}
    for name in ("claims_train.jsonl", "claims_dev.jsonl"):
        loaded = load("scifact", folder / name, folder / "corpus_train.csv")
        original.update({i.source_id: i for i in loaded.items})
    for item in load("scifact", SAMPLE / "claims.jsonl", SAMPLE / "corpus.jsonl").items:
        assert item == original[item.source_id]


def test_one_claim_in_full(tmp_path: Path) -> None:
    # Document 1 has two sets of evidence, 2 none; 3 is evidence without being cited.
    row = claim(
        7, {"1": evidence("CONTRADICT", "REFUTE"), "3": evidence("REFUTE")}, cited=(2, 1, 2), topic="x"
    )
    (item,) = load("scifact", *claims(tmp_path, row)).items
    assert (item.item_id, item.claim, item.meta) == ("scifact:7", "Claim 7.", {"topic": "x"})
    assert (item.question, item.reference_answers) == ("Is it true that Claim 7?", ["No"])
    assert item.votes == [Vote("claim_verdict", "false")]
    assert [p.source_id for p in item.passages] == ["2", "1", "3"]
    neutral, refuting, _ = item.passages
    assert (neutral.title, neutral.text) == ("T2", "One 2. Two.")
    assert neutral.meta == {"structured": True, "sentences": 2}
    assert refuting.meta == {"structured": False, "sentences": 2, "evidence_sentences": [[0], [1]]}
    assert neutral.votes == [
        Vote("stance", "neutral"), Vote("relevance", "RELATED-INFORMATION"), Vote("support", "not_supported"),
    ]  # fmt: skip
    assert refuting.votes == [
        Vote("stance", "refute"), Vote("relevance", "ANSWER-THE-QUESTION"), Vote("support", "supported"),
    ]  # fmt: skip


def test_documents_that_disagree_leave_the_claim_without_a_verdict(tmp_path: Path) -> None:
    row = claim(1, {"1": evidence("SUPPORT"), "2": evidence("CONTRADICT")}, cited=(1, 2, 3))
    loaded = load("scifact", *claims(tmp_path, row))
    (item,) = loaded.items
    assert (item.votes, item.reference_answers) == ([], None)
    assert loaded.gold("stance") == {"support": 1, "refute": 1, "neutral": 1}
    assert not loaded.gold("support")
    assert loaded.notes == ["1 claims have no verdict, because their documents disagree (1)"]


def test_no_evidence_key_means_no_gold(tmp_path: Path) -> None:
    loaded = load("scifact", *claims(tmp_path, {"id": 1, "claim": "c", "cited_doc_ids": [1]}))
    assert loaded.items[0].passages[0].votes == []


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        (claim(evidence={"1": evidence("SUPPORT", "CONTRADICT")}), "evidence.1", "both supports and refutes"),
        (claim(evidence={"1": evidence("MAYBE")}), "evidence.1.label", "not one of SUPPORT"),
        (claim(evidence={"1": [{"sentences": [1]}]}), "evidence.1.label", "missing"),
        (claim(evidence={"1": "x"}), "evidence.1", "must be a list"),
        (claim(evidence=[1]), "evidence", "must be an object"),
        (claim(cited=[9]), "cited_doc_ids", "document 9 is not in the corpus"),
        (claim(cited_doc_ids=5), "cited_doc_ids", "must be a list"),
        (claim(2), "id", "occurs twice"),
        (claim(claim=None), "claim", "missing"),
        ("x", "", "must be an object"),
    ],
)
def test_bad_claims(tmp_path: Path, row: Any, field: str, reason: str) -> None:
    loaded = load("scifact", *claims(tmp_path, claim(2), row, claim(3)))
    assert loaded.places == [("claims.jsonl", 2, field)]
    assert reason in loaded.bads[0].reason
    assert [i.source_id for i in loaded.items] == ["2", "3"]


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"doc_id": 1, "title": "T", "abstract": []}, "abstract"),
        ({"doc_id": 1, "title": "T", "abstract": "['a' b]"}, "abstract"),
        ({"doc_id": 1, "title": "T", "abstract": [5]}, "abstract.0"),
        ({"title": "T", "abstract": ["a"]}, "doc_id"),
    ],
)
def test_bad_documents(tmp_path: Path, document: Any, field: str) -> None:
    paths = (
        write_jsonl(tmp_path / "c.jsonl", [claim(cited=[1])]),
        write_jsonl(tmp_path / "k.jsonl", [document]),
    )
    loaded = load("scifact", *paths)
    assert loaded.places == [("k.jsonl", 1, field), ("c.jsonl", 1, "cited_doc_ids")]


def test_numpys_way_of_printing() -> None:
    assert sentences_of("['It''s' \"a 'b'\"\n 'c \\'d\\'']") == ["It", "s", "a 'b'", "c 'd'"]
    assert sentences_of("[]") == []


def test_what_it_asks_for(tmp_path: Path) -> None:
    one, corpus = claims(tmp_path, claim())
    for paths in ([one], [corpus]):
        with pytest.raises(UsageError, match="needs both files"):
            load("scifact", *paths)
    with pytest.raises(UsageError, match="--map claim"):
        load("scifact", one, corpus, maps={"claim": "x"})


def test_label_maps_speak_of_either_word(tmp_path: Path) -> None:
    row = claim(1, {"1": evidence("CONTRADICT")})
    for old in ("CONTRADICT", "refute"):
        loaded = load("scifact", *claims(tmp_path, row), label_maps={"stance": {old: "against"}})
        assert loaded.gold("stance")["against"] == 1
        assert not loaded.notes
