"""SciFact's files as records: claims and corpus, each as JSON Lines or as CSV.

The CSV copies hold numpy's way of printing: `[2 5]` for numbers, and for an abstract the quoted
sentences one under another without commas.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.errors import BadInput
from judge.importers import fields
from judge.importers.base import Bad
from judge.importers.records import Records, csv_records, json_records, opened, placed

_CLAIM_COLUMNS = ("id", "claim", "evidence_doc_id", "evidence_label", "evidence_sentences", "cited_doc_ids")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_NUMBERS = re.compile(r"\[[\s\d,]*\]\s*$")


@dataclass(slots=True)
class Abstract:
    """One abstract of the corpus."""

    title: str | None
    sentences: list[str]
    structured: bool


def is_csv(path: Path) -> bool:
    """True for a file whose name says CSV."""
    return path.name.removesuffix(".gz").endswith(".csv")


def is_corpus(path: Path) -> bool:
    """True when the file's first line (header or object) speaks of documents with abstracts."""
    with opened(path) as handle:
        return b"abstract" in handle.readline(2**20)


def claims(path: Path, bad: Bad) -> Records:
    """Claims as SciFact's own objects: {id, claim, evidence, cited_doc_ids}."""
    if not is_csv(path):
        return json_records(path, bad)
    _, rows = csv_records(path, bad, _CLAIM_COLUMNS)
    return Records(path, "line", _claims_of(rows, bad))


def _claims_of(rows: Records, bad: Bad) -> Iterator[tuple[int, Any]]:
    """Consecutive CSV rows of one claim as one object, at the line of the first."""
    start, claim, broken = 0, None, False
    for line, row in rows.rows:
        if claim is None or claim["id"] != row["id"] or claim["claim"] != row["claim"]:
            if claim is not None and not broken:
                yield start, claim
            start, broken = line, False
            claim = {"id": row["id"], "claim": row["claim"], "evidence": {}, "cited_doc_ids": []}
        try:
            claim["cited_doc_ids"] = numbers(row["cited_doc_ids"], "cited_doc_ids")
            if row["evidence_doc_id"]:
                found = numbers(row["evidence_sentences"], "evidence_sentences")
                sets = claim["evidence"].setdefault(row["evidence_doc_id"], [])
                sets.append({"sentences": found, "label": row["evidence_label"]})
        except BadInput as error:
            broken = True
            bad(placed(error, rows.path, line))
    if claim is not None and not broken:
        yield start, claim


def numbers(cell: str, field: str) -> list[int]:
    """`[2 5]` or `[2, 5]` as a list."""
    if not _NUMBERS.match(cell):
        raise BadInput(f"must be a list of numbers, is '{cell[:40]}'", field=field)
    return [int(n) for n in re.findall(r"\d+", cell)]


def corpus(path: Path, bad: Bad, wanted: set[str]) -> Iterator[tuple[str, Abstract]]:
    """(doc_id, Document) of the documents in `wanted`."""
    if is_csv(path):
        _, records = csv_records(path, bad, ("doc_id", "title", "abstract"))
    else:
        records = json_records(path, bad)
    for line, raw in records.rows:
        try:
            row = fields.record(raw)
            name = fields.identifier(row.get("doc_id"), "doc_id")
            if name in wanted:
                yield name, _document(row)
        except BadInput as error:
            bad(placed(error, path, line, records.word))


def _document(row: Any) -> Abstract:
    abstract = row.get("abstract")
    sentences = sentences_of(abstract) if isinstance(abstract, str) else fields.listing(abstract, "abstract")
    if not sentences:
        raise BadInput("no sentences", field="abstract")
    return Abstract(
        title=fields.word(row.get("title"), "title"),
        sentences=[fields.required(s, f"abstract.{n}").strip() for n, s in enumerate(sentences)],
        structured=str(row.get("structured")) == "True",
    )


def sentences_of(cell: str) -> Sequence[str]:
    """The sentences of an abstract that was printed as a list or a numpy array of strings."""
    if _QUOTED.sub("", cell).replace(",", "").split() not in (["[", "]"], ["[]"]):
        raise BadInput("must be a list of quoted sentences", field="abstract")
    try:
        return [ast.literal_eval(part) for part in _QUOTED.findall(cell)]
    except (ValueError, SyntaxError) as error:
        raise BadInput(f"a sentence is not quoted as Python quotes: {error}", field="abstract") from error
