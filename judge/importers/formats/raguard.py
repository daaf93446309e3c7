"""RAGuard: political claims with supporting, misleading and irrelevant Reddit documents.

Zeng et al., "Worse than Zero-shot? A Fact-Checking Dataset for Evaluating the Robustness of RAG Against
Misleading Retrievals", 2025 (arXiv 2502.16101). Verdicts are from PolitiFact ("half true" and better count as
true). Documents were labelled with the help of a language model.

The files are imported together:
    claims.csv     Claim ID, Claim, Verdict (or Label), Document IDs and Document Labels (lists as
                   Python prints them), Original Verdict
    documents.csv  Document ID, Title, Full Text, Claim ID, Document Label[, Link]. Optional:
                   without it, claims have no passages. Documents are kept in memory until their claim is read
    JSON samples   [{claim_id, claim, verdict, original_verdict, document_ids, document_labels,
                   documents: [a row of documents.csv]}]

Each claim is one item. Gold fields are `claim_verdict` (item): true | false, and `raguard.role` (passage):
supporting | misleading | irrelevant (`unrelated` in the files). The item's meta has original_verdict,
document_ids and document_labels (with our label names), so the labels can be counted even if the texts were
not imported.

A Full Text that is empty or a bracketed placeholder ("[Link Post]", "[deleted]") does not count as text. The
title of such a document is used as its text, because a link post has nothing else to judge, and its meta has
text_from = "title". If it has no title either, the document is not imported, but its id is listed in the
item's meta documents_without_text. A note reports how often each case occurred.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.importers import fields
from judge.importers.base import Bad, Options, Row, ignore
from judge.importers.cells import parse_cell
from judge.importers.records import Records, build_all, build_each, csv_records, is_array, json_records
from judge.store.imports import error_at
from judge.types import Item, Passage, Where

NAME = "raguard"
HELP = "RAGuard: claims.csv with optional documents.csv, or JSON samples"
TOGETHER = True
SIGNS = (("Claim ID", "Verdict"), ("Document ID", "Full Text"), ("claim_id", "verdict", "documents"))

# About a quarter of the Full Text cells are empty or a placeholder.
PLACEHOLDER = re.compile(r"\s*(\[[^\[\]]{0,30}\]|nan)?\s*", re.IGNORECASE)
"""Matches a Full Text without content: blank, pandas' nan, or a single remark in brackets such as "[Link
Post]".
"""

_SAMPLE_KEYS = {
    "Claim ID": "claim_id",
    "Claim": "claim",
    "Verdict": "verdict",
    "Original Verdict": "original_verdict",
    "Document IDs": "document_ids",
    "Document Labels": "document_labels",
}


def kind_of(path: Path) -> str:
    """Return the kind of file: claims, documents or sample.

    Raises BadInput if a table contains neither claims nor documents.
    """
    if is_array(path) or path.name.removesuffix(".gz").endswith((".json", ".jsonl")):
        return "sample"
    header, _ = csv_records(path, ignore)
    if "Document ID" in header:
        return "documents"
    if "Claim" in header:
        return "claims"
    raise BadInput(
        f"the table has neither RAGuard's claims nor its documents; its columns are: {', '.join(header)}",
        path=str(path),
        line=1,
        field="Claim",
    )


def parse_list(cell: Any, field: str) -> list[Any]:
    """Return the list in a cell, which may be a list as printed by Python. Return [] for an empty cell."""
    if isinstance(cell, list) or cell is None or cell == "":
        return cell or []
    try:
        value = parse_cell(cell) if isinstance(cell, str) else None
    except ValueError:
        value = None
    if not isinstance(value, list):
        raise BadInput(f"must be a list such as [1, 2], not '{str(cell)[:40]}'", field=field)
    return value


# The released data contain only True and False, to which the paper reduces PolitiFact's six grades.
VERDICTS = {"True": "true", "False": "false", "TRUE": "true", "FALSE": "false"}
ROLES = {
    "supporting": "supporting",
    "misleading": "misleading",
    # The paper writes "irrelevant" and its data set "unrelated". Both are accepted.
    "unrelated": "irrelevant",
    "irrelevant": "irrelevant",
}
Shelf = dict[str, list[tuple[Where, Passage | None, str]]]
"""Maps each Claim ID to a list of (place, passage, Document ID). The passage is None if the document has
neither a text nor a title.
"""


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield one row per claim. Raises UsageError if there are documents but no claims."""
    fields.refuse_maps(NAME, options)
    kinds = {path: kind_of(path) for path in paths}
    claims = [p for p in paths if kinds[p] == "claims"]
    documents = [p for p in paths if kinds[p] == "documents"]
    if documents and not claims:
        raise UsageError(
            "the raguard format also requires the claims file, for example: "
            f"{command('judge items import raguard claims.csv documents.csv')}"
        )
    builder = _Builder(options, bad)
    # Documents are read first, because a claim is yielded together with its documents.
    for path in documents:
        builder.shelve(csv_records(path, bad, ("Document ID", "Title", "Full Text", "Claim ID"))[1])
    for path in claims:
        _, records = csv_records(path, bad, ("Claim ID", "Claim"))
        yield from build_each(records, builder.claim, bad)
    builder.report_unused()
    for path in paths:
        if kinds[path] == "sample":
            yield from build_each(json_records(path, bad), builder.sample, bad)
    builder.finish(complete=bool(documents))


class _Builder:
    """Turns rows into items, and counts the documents that are missing or have no text."""

    def __init__(self, options: Options, bad: Bad) -> None:
        self._dataset = options.dataset or NAME
        self._note = options.note
        self._bad = bad
        self._labels = fields.Labels(options)
        self._shelf: Shelf = {}
        self._ids: set[str] = set()
        self._documents = self._titles = self._nothing = self._absent = 0

    def shelve(self, records: Records) -> None:
        """Read documents.csv, and group the documents by claim."""
        for (claim, passage, name), where in build_all(records, self._add_document, self._bad):
            self._shelf.setdefault(claim, []).append((where, passage, name))

    def _add_document(self, row: Mapping[str, Any]) -> Iterator[tuple[str, Passage | None, str]]:
        name = fields.identifier(row["Document ID"], "Document ID")
        if name in self._ids:
            raise BadInput(f"document {name} occurs twice", field="Document ID")
        self._ids.add(name)
        yield fields.identifier(row["Claim ID"], "Claim ID"), self._passage(row, ""), name

    def claim(self, row: Mapping[str, Any]) -> list[Item]:
        """Return the item in a row of claims.csv, with the documents that were read for its claim."""
        shelved = self._shelf.pop(row["Claim ID"], [])
        item = self._item(row)
        ids, roles = item.meta.get("document_ids", []), item.meta.get("document_labels", [])
        listed_roles = dict(zip(ids, roles, strict=True))
        self._absent += len(set(listed_roles) - {name for *_, name in shelved})
        order = {name: n for n, name in enumerate(listed_roles)}
        for where, passage, name in sorted(shelved, key=lambda e: order.get(e[2], len(order))):
            role = next((v.value for v in passage.votes), None) if passage else None
            if role is not None and listed_roles.get(name, role) != role:
                # The two files contradict each other, so neither label can be trusted.
                reason = f"the label is '{role}' here, but '{listed_roles[name]}' in the claims file"
                self._bad(error_at(where, reason, "Document Label"))
            else:
                self._add(item, passage, name)
        return [fields.check_item(item)]

    def report_unused(self) -> None:
        """Call `bad` for each document whose claim is missing from the claims file."""
        for claim, entries in self._shelf.items():
            for where, *_ in entries:
                self._bad(error_at(where, f"the claims file has no claim {claim}", "Claim ID"))

    def sample(self, raw: Any) -> list[Item]:
        """Return the item in an element of a JSON sample."""
        row = fields.record(raw)
        try:
            item = self._item({name: row.get(key) for name, key in _SAMPLE_KEYS.items()})
        except BadInput as error:
            raise BadInput(error.reason, field=_SAMPLE_KEYS[error.field]) from error
        for number, document in enumerate(fields.listing(row.get("documents"), "documents")):
            place = f"documents.{number}."
            passage = self._passage(fields.mapping(document, place[:-1]), place)
            self._add(item, passage, str(document.get("Document ID") or number))
        return [fields.check_item(item)]

    def finish(self, *, complete: bool) -> None:
        """Issue notes about how many documents had no text, and how many were missing."""
        if self._titles or self._nothing:
            self._note(
                f"{self._titles + self._nothing} of {self._documents} documents have no text (it is empty "
                f"or a placeholder): for {self._titles}, the title is used as text; {self._nothing} have no "
                "title either and were not imported"
            )
        if complete and self._absent:
            self._note(
                f"the documents file lacks {self._absent} documents that are listed in the claims file"
            )
        self._labels.finish()

    def _item(self, row: Mapping[str, Any]) -> Item:
        # Some copies of the data set call the column Label.
        verdict = "Verdict" if "Verdict" in row else "Label"
        ids = [str(i) for i in parse_list(row.get("Document IDs"), "Document IDs")]
        words = parse_list(row.get("Document Labels"), "Document Labels")
        if len(ids) != len(words):
            raise BadInput(f"there are {len(words)} labels for {len(ids)} documents", field="Document Labels")
        roles = [self._labels.read_one_of("raguard.role", w, "Document Labels", ROLES) for w in words]
        item = Item(
            source_id=fields.identifier(row["Claim ID"], "Claim ID"),
            dataset=self._dataset,
            claim=fields.require_text(row["Claim"], "Claim"),
            meta={"document_ids": ids, "document_labels": roles} if ids else {},
            votes=list(self._labels.read_fixed("claim_verdict", row.get(verdict), verdict, VERDICTS)),
        )
        original = fields.word(row.get("Original Verdict"), "Original Verdict")
        if original is not None:
            item.meta["original_verdict"] = original
        return item

    def _passage(self, row: Mapping[str, Any], place: str) -> Passage | None:
        """Return a document as a passage, or None if it has neither a text nor a title."""
        title = fields.word(row.get("Title"), f"{place}Title")
        body = fields.word(row.get("Full Text"), f"{place}Full Text") or ""
        meta = {k.lower(): row[k] for k in ("Link",) if row.get(k)}
        if PLACEHOLDER.fullmatch(body):
            if title is None or PLACEHOLDER.fullmatch(title):
                return None
            body, title, meta = title, None, {**meta, "text_from": "title", "full_text": body}
        votes = self._labels.read_fixed(
            "raguard.role", row.get("Document Label"), f"{place}Document Label", ROLES
        )
        name = fields.word(row.get("Document ID"), f"{place}Document ID")
        return Passage(body, source_id=name or "", title=title, meta=meta, votes=list(votes))

    def _add(self, item: Item, passage: Passage | None, name: str) -> None:
        self._documents += 1
        if passage is None:
            self._nothing += 1
            item.meta.setdefault("documents_without_text", []).append(name)
            return
        self._titles += passage.meta.get("text_from") == "title"
        item.passages.append(passage)
