"""RAGuard's files: which is which, lists as Python prints them, and the two kinds of JSON sample."""

from __future__ import annotations

import ast
import hashlib
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.errors import BadInput
from judge.importers import fields
from judge.importers.records import csv_records, is_array

PLACEHOLDER = re.compile(r"\s*(\[[^\[\]]{0,30}\]|nan)?\s*", re.IGNORECASE)
"""A Full Text that is none: blank, pandas' nan, or one bracketed remark such as "[Link Post]"."""

_CLAIM = re.compile(r'.*?\bClaim: "(.*)"\s*', re.DOTALL)
_TYPES = {"correct": "supporting", "misinfo": "misleading", "noise": "unrelated"}
_RAW = {
    "Claim ID": "claim_id",
    "Claim": "claim",
    "Verdict": "verdict",
    "Original Verdict": "original_verdict",
    "Document IDs": "document_ids",
    "Document Labels": "document_labels",
}
_PREPROCESSED = {
    "Claim": "question",
    "Verdict": "gold_answers",
    "Full Text": "text",
    "Document Label": "type",
}


def kind_of(path: Path) -> str:
    """claims, documents or sample. Raises BadInput for a table that is neither of the two."""
    if is_array(path) or path.name.removesuffix(".gz").endswith((".json", ".jsonl")):
        return "sample"
    header, _ = csv_records(path, _ignore)
    if "Document ID" in header:
        return "documents"
    if "Claim" in header:
        return "claims"
    raise BadInput(
        f"neither claims nor documents of RAGuard; the columns are: {', '.join(header)}",
        path=str(path),
        line=1,
        field="Claim",
    )


def _ignore(error: BadInput) -> None:
    """Rows are judged when they are read for good."""


def listed(cell: Any, field: str) -> list[Any]:
    """A list, or one as Python prints it; [] when there is none."""
    if isinstance(cell, list) or cell is None or cell == "":
        return cell or []
    try:
        value = ast.literal_eval(cell) if isinstance(cell, str) else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        value = None
    if not isinstance(value, list):
        raise BadInput(f"must be a list such as [1, 2], is '{str(cell)[:40]}'", field=field)
    return value


def from_sample(row: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, str]]:
    """(an element of a sample under the names of the CSV files, those names -> the element's own)."""
    if "claim" in row:
        found = {name: row.get(own) for name, own in _RAW.items()}
        return {**found, "documents": row.get("documents")}, _RAW
    question = fields.required(row.get("question"), "question")
    claim = _CLAIM.fullmatch(question)
    if claim is None:
        raise BadInput("has no 'Claim: \"...\"'", field="question")
    answers = fields.texts(row.get("gold_answers"), "gold_answers")
    documents = fields.listing(row.get("documents"), "documents")
    text = unicodedata.normalize("NFC", claim[1])
    return {
        "Claim ID": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "Claim": claim[1],
        "Verdict": answers[0] if answers else None,
        "documents": [_document(d, f"documents.{n}") for n, d in enumerate(documents)],
    }, _PREPROCESSED


def _document(raw: Any, place: str) -> dict[str, Any]:
    row = fields.mapping(raw, place)
    word = row.get("type")
    label = _TYPES.get(word, word) if isinstance(word, str) else word
    return {"Full Text": row.get("text"), "Document Label": label}
