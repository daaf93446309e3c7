"""BEIR: queries, a corpus and qrels, as its data sets come (and as many others are shared).

Thakur et al., "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models",
NeurIPS 2021 (arXiv 2104.08663); files as its loader reads them.

Files, together in one import, told apart by their content:
    qrels/test.tsv   a header, then query-id TAB corpus-id TAB score
    corpus.jsonl     {_id, title, text, metadata}
    queries.jsonl    {_id, text, metadata}; told from the corpus by its name, or by having no title
A run in TREC's six columns may come too: its documents are taken as well.

One item a query, its passages the documents that qrels or a run name for it; ids stay as they are. Gold of a passage:
see `judge.importers.formats._collection`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from judge.errors import BadInput, UsageError
from judge.importers import fields
from judge.importers.base import Bad, Options, Row
from judge.importers.formats import _collection as collection
from judge.importers.records import json_records, placed
from judge.types import Passage, Where

NAME = "beir"
HELP = "BEIR: queries.jsonl, corpus.jsonl and qrels (TSV), with or without runs"
TOGETHER = True
SIGNS = (("_id", "text"), ("query-id", "corpus-id", "score"))

_HEADER = ("query-id", "corpus-id", "score")


def read(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """One row a query with documents. Raises UsageError when a kind of file is missing."""
    fields.no_maps(NAME, options)
    kinds = {path: _kind_of(path) for path in paths}
    missing = {"queries", "corpus"} - set(kinds.values())
    if missing or not {"qrels", "run"} & set(kinds.values()):
        lacks = ", ".join(sorted(missing)) or "qrels or a run"
        raise UsageError(
            f"beir lacks {lacks}: judge items import beir queries.jsonl corpus.jsonl qrels/test.tsv"
        )
    found = collection.Collection()
    for path, kind in kinds.items():
        if kind in ("qrels", "run"):
            parse = _graded if kind == "qrels" else _ranked
            collection.entries(path, parse, lambda got, where: _name(found, got, where), bad)
        elif kind == "queries":
            _queries(path, found, bad)
    wanted = found.documents()
    documents: dict[str, Passage] = {}
    for path, kind in kinds.items():
        if kind == "corpus":
            documents |= _corpus(path, wanted, bad)
    yield from collection.rows(found, documents, options.dataset or NAME, options, bad)


def _kind_of(path: Path) -> str:
    """qrels, run, queries or corpus. Raises UsageError for a file that is none of them."""
    first = collection.first_line(path)
    if first.lstrip()[:1] in "[{":
        named = path.name.lower()
        if "corpus" in named or "quer" in named:
            return "corpus" if "corpus" in named else "queries"
        return "corpus" if '"title"' in first else "queries"
    if len(first.split("\t")) == 3:
        return "qrels"
    if len(first.split()) == 6:
        return "run"
    raise UsageError(
        f"{path}: neither queries or corpus (JSON lines), nor qrels (query-id, corpus-id, score between tabs), "
        "nor a run (six columns); the format trec reads others"
    )


def _graded(text: str) -> tuple[str, str, str] | None:
    """(query, document, grade) of a line of qrels; None for the header."""
    cells = [cell.strip() for cell in text.split("\t")]
    if tuple(cells) == _HEADER:
        return None
    if len(cells) != 3:
        raise BadInput(f"{len(cells)} columns; qrels have three between tabs: query-id, corpus-id, score")
    return cells[0], cells[1], collection.whole(cells[2])


def _ranked(text: str) -> tuple[str, str, None]:
    return collection.ranked(text.split())


def _name(found: collection.Collection, got: tuple[str, str, str | None], where: Where) -> None:
    query, document, grade = got
    found.add(collection.Named(query, document, grade, where))


def _queries(path: Path, found: collection.Collection, bad: Bad) -> None:
    for name, row, where in collection.texts(json_records(path, bad), ("_id", "id"), bad):
        try:
            text = fields.required(row.get("text"), "text")
            meta = {k: v for k, v in row.items() if k not in ("_id", "id", "text") and v not in ({}, None)}
            found.add_topic(name, collection.Topic(text, meta, where))
        except BadInput as error:
            bad(placed(error, path, where.line))


def _corpus(path: Path, wanted: set[str], bad: Bad) -> dict[str, Passage]:
    documents: dict[str, Passage] = {}
    at: dict[str, int] = {}
    for name, row, where in collection.texts(json_records(path, bad), ("_id", "id"), bad):
        if name not in wanted:
            continue
        try:
            title = fields.word(row.get("title"), "title")
            text = fields.word(row.get("text"), "text")
            meta = {k: v for k, v in row.items() if k not in ("_id", "id", "title", "text") and v != {}}
            collection.keep(documents, at, collection.passage(name, text, title, meta), where.line)
        except BadInput as error:
            bad(placed(error, path, where.line))
    return documents
