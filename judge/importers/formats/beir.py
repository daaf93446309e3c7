"""BEIR: queries, a corpus and qrels. Many data sets outside BEIR also use this format.

Thakur et al., "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models",
NeurIPS 2021 (arXiv 2104.08663). Files are interpreted as in BEIR's own loader.

The files in an import are recognised by their content:
    qrels/test.tsv   a header, then query-id TAB corpus-id TAB score
    corpus.jsonl     {_id, title, text, metadata}
    queries.jsonl    {_id, text, metadata}; recognised by its name, or because it has no title
A run with TREC's six columns may be added. Its documents also become passages.

Each query is one item. Its passages are the documents that qrels or a run name for it. Ids are preserved. For
the gold labels of passages, see `judge.importers.formats._collection`.
"""

from collections.abc import Iterator
from pathlib import Path

from judge.errors import BadInput, UsageError
from judge.importers import fields
from judge.importers.base import Bad
from judge.importers.formats import _collection as collection
from judge.importers.records import add_place, json_records

NAME = "beir"
HELP = "BEIR: queries.jsonl, corpus.jsonl and qrels (TSV), with optional runs"
TOGETHER = True
SIGNS = (("_id", "text"), ("query-id", "corpus-id", "score"))

_IDS = ("_id", "id")
_HEADER = ("query-id", "corpus-id", "score")


def _kind_of(path: Path) -> str:
    """Return the kind of file: qrels, run, queries or corpus. Raises UsageError if it is not recognised."""
    first = collection.first_line(path)
    if first.lstrip()[:1] in "[{":
        # The name first, because the title of a document may be missing.
        named = path.name.lower()
        if "corpus" in named or "quer" in named:
            return "corpus" if "corpus" in named else "queries"
        return "corpus" if '"title"' in first else "queries"
    if len(first.split("\t")) == 3:
        return "qrels"
    if len(first.split()) == 6:
        return "run"
    raise UsageError(
        f"{path}: not recognised as queries or corpus (JSON Lines), qrels (query-id TAB corpus-id TAB "
        "score) or a run (six columns); for other file layouts, use the trec format"
    )


def _parse_grade(text: str) -> collection.NamedEntry | None:
    """Parse a line in qrels, or return None if it is the header."""
    cells = [cell.strip() for cell in text.split("\t")]
    if tuple(cells) == _HEADER:
        return None
    if len(cells) != 3:
        raise BadInput(
            f"the line has {len(cells)} columns, but qrels must have three, separated by tabs: "
            "query-id, corpus-id, score"
        )
    return cells[0], cells[1], collection.format_grade(cells[2])


def _queries(path: Path, bad: Bad) -> Iterator[collection.TopicText]:
    for name, row, where in collection.texts(json_records(path, bad), _IDS, bad):
        try:
            text = fields.require_text(row.get("text"), "text")
        except BadInput as error:
            bad(add_place(error, path, where.line))
        else:
            meta = {k: v for k, v in row.items() if k not in (*_IDS, "text") and v not in ({}, None)}
            yield name, text, meta, where


def _documents(path: Path, wanted: set[str], bad: Bad) -> Iterator[collection.CorpusText]:
    for name, row, where in collection.texts(json_records(path, bad), _IDS, bad):
        if name in wanted:
            meta = {k: v for k, v in row.items() if k not in (*_IDS, "title", "text") and v != {}}
            yield name, ("text", row.get("text")), row.get("title"), meta, where


read_rows = collection.Family(
    NAME, "queries", "queries.jsonl corpus.jsonl qrels/test.tsv", _kind_of, _parse_grade, _queries, _documents
).read_rows
