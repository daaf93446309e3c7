"""TREC: topics, qrels, runs and documents, in the file formats of trec_eval and the TREC tracks.

Files are recognised by their content. Topics and documents are also recognised by their file names. Topics that are imported without documents become items without passages.
    qrels    four columns: query 0 document grade
    run      six columns: query Q0 document rank score tag
    topics   <top> blocks with <num> and <title> (<desc> and <narr> are kept), <topic number=...> with <query>, lines
             `query TAB text`, or JSON lines {qid | query_id | _id | id, query | text | title}
    corpus   lines `document TAB text`; with a header (id, text, title in any order) those columns; MS MARCO's
             `document TAB url TAB title TAB text`; or JSON lines {docid | docno | _id | id, title, text | contents | body}

Each query is one item. Its passages are the documents that qrels or a run name for it. Ids are preserved, so
trec_eval accepts the file that `judge runs export --to qrels` writes. For the gold labels of passages, see
`judge.importers.formats._collection`. The ranked lists of a run are imported with `judge systems import`.
"""

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.errors import BadInput, UsageError
from judge.files import open_input
from judge.importers.base import Bad
from judge.importers.formats import _collection as collection
from judge.importers.records import json_records
from judge.types import Where

NAME = "trec"
HELP = "TREC: topics, with optional documents, qrels and runs"
TOGETHER = True

TOPIC_IDS = ("qid", "query_id", "_id", "id")
DOCUMENT_IDS = ("docid", "docno", "_id", "id", "doc_id")
# Topics of the ad hoc tracks are in <top> elements. Topics of later tracks are in <topic number="...">
# elements.
_TOPIC = re.compile(
    r"<top>(?P<top>.*?)</top>|<topic\s+number=\"(?P<number>[^\"]+)\"[^>]*>(?P<topic>.*?)</topic>", re.S | re.I
)
_PART = r"<{0}>\s*(?:{1}\s*:)?\s*(.*?)\s*(?=<|\Z)"
_MOST_TOPICS = 64 * 2**20


def recognises(path: Path) -> bool:
    """Return whether the file is recognised as qrels, a run or topics, mainly by its first line.

    The user need not name the format of a recognised file. Topics with a tab between id and text look like
    any other table without a header, so they are only recognised if the file's name begins with `topics`.
    """
    try:
        first = collection.first_line(path)
    except BadInput:
        return False
    cells = first.split("\t")
    named = path.name.lower().startswith("topics") and len(cells) == 2
    return _kind_by_content(path, first) is not None or (named and cells[0].strip().lower() not in TOPIC_IDS)


def _kind_by_content(path: Path, first: str) -> str | None:
    """Return the kind of a file according to its first line.

    Return None if the line does not show the kind. The kind may then be shown by the file's name.
    """
    cells = first.split()
    # `id TAB three word text` also consists of four words. In qrels, all separators are equal.
    same_separator = first.count("\t") in (0, len(cells) - 1)
    looks_like_qrels = cells[1:2] in (["0"], ["Q0"]) or "qrel" in path.name.lower()
    if looks_like_qrels and len(cells) == 4 and same_separator and re.fullmatch(r"-?\d+", cells[3]):
        return "qrels"
    if len(cells) == 6 and cells[1].upper() == "Q0":
        return "run"
    if re.match(r"\s*<(\?xml|top|topics)\b", first, re.I):
        return "topics"
    return None


def _kind_of(path: Path) -> str:
    """Return the kind of file: qrels, run, topics or corpus.

    Raises UsageError if neither the file's content nor its name shows the kind.
    """
    if kind := _kind_by_content(path, collection.first_line(path)):
        return kind
    name = path.name.lower()
    topics = any(word in name for word in ("topic", "quer"))
    corpus = any(word in name for word in ("corpus", "collection", "doc", "passage"))
    if topics != corpus:
        return "topics" if topics else "corpus"
    raise UsageError(
        f"{path}: it is unclear whether this file has topics or documents; rename it to topics... or "
        "corpus...; qrels must have four columns (query 0 document grade), and runs must have six (query "
        "Q0 document rank score tag)"
    )


def _parse_grade(text: str) -> collection.NamedEntry:
    cells = text.split()
    if len(cells) != 4:
        raise BadInput(
            f"the line has {len(cells)} columns, but each line in qrels must have four: query 0 document grade"
        )
    return cells[0], cells[2], collection.format_grade(cells[3])


def _topics(path: Path, bad: Bad) -> Iterator[collection.TopicText]:
    first = next((text for _, text in collection.lines(path)), "").lstrip()
    if first.startswith("<"):
        given = _read_topics(path)
    elif first[:1] in "[{":
        given = (_read_json_topic(*row) for row in collection.texts(json_records(path, bad), TOPIC_IDS, bad))
    else:
        given = ((*_two(text), {}, Where(str(path), number)) for number, text in collection.lines(path))
    for name, text, meta, where in given:
        # A topic without text is rejected, like a topic without an id.
        yield name.strip() if text.strip() else "", text.strip(), meta, where


def _two(text: str) -> tuple[str, str]:
    name, _, rest = text.partition("\t")
    return name, rest


def _read_json_topic(
    name: str, row: Mapping[str, Any], where: Where
) -> tuple[str, str, dict[str, Any], Where]:
    key = next((k for k in ("query", "text", "title") if isinstance(row.get(k), str)), "query")
    used = {key, *TOPIC_IDS}
    return name, str(row.get(key) or ""), {k: v for k, v in row.items() if k not in used}, where


def _read_topics(path: Path) -> Iterator[tuple[str, str, dict[str, Any], Where]]:
    """Yield the topics in <top> or <topic> elements. HTML entities are decoded."""
    with open_input(path) as handle:
        raw = handle.read(_MOST_TOPICS)
        if handle.read(1):
            raise BadInput(f"the file with the topics is larger than {_MOST_TOPICS >> 20} MB", path=str(path))
    text = raw.decode("utf-8", "replace")
    for match in _TOPIC.finditer(text):
        body = match["top"] if match["top"] is not None else match["topic"]
        line = text.count("\n", 0, match.start()) + 1
        name = match["number"] or _part(body, "num", "Number")
        query = _part(body, "title", "Topic") or _part(body, "query", "Query")
        meta = {
            key: part
            for key, tag, word in (
                ("description", "desc", "Description"),
                ("narrative", "narr", "Narrative"),
                ("question", "question", "Question"),
            )
            if (part := _part(body, tag, word))
        }
        yield name, query, meta, Where(str(path), line)


def _part(body: str, tag: str, word: str) -> str:
    match = re.search(_PART.format(tag, word), body, re.S | re.I)
    return " ".join(html.unescape(match[1]).split()) if match else ""


def _documents(path: Path, wanted: set[str], bad: Bad) -> Iterator[collection.CorpusText]:
    first = collection.first_line(path).lstrip()
    if first[:1] in "[{":
        for name, row, where in collection.texts(json_records(path, bad), DOCUMENT_IDS, bad):
            if name in wanted:
                key = next((k for k in ("text", "contents", "body") if row.get(k)), "text")
                meta = {k: v for k, v in row.items() if k not in (key, "title", *DOCUMENT_IDS)}
                yield name, (key, row.get(key)), row.get("title"), meta, where
        return
    columns = _columns(first)
    for number, line in collection.lines(path):
        # The id is compared before the text is split, because most documents are named in neither qrels nor a
        # run.
        name, _, rest = line.partition("\t")
        if name not in wanted or (number == 1 and columns and "id" in columns):
            continue
        # Without named columns, tabs may be part of the text.
        cells = (
            dict(zip(columns, line.split("\t", len(columns) - 1), strict=False))
            if columns
            else {"text": rest}
        )
        meta = {
            key: cell for key, cell in cells.items() if key not in ("id", "text", "title") and key and cell
        }
        yield name, ("text", cells.get("text")), cells.get("title"), meta, Where(str(path), number)


def _columns(first: str) -> tuple[str, ...]:
    """Return the names of the columns in a corpus file, given its first line.

    If this line is a header (such as `id TAB text TAB title`), its names are returned. If it looks like a
    line of MS MARCO's documents, MS MARCO's column names are returned. Otherwise, no names are returned.
    """
    cells = tuple(cell.strip().lower() for cell in first.split("\t"))
    if cells[0] == "id" and "text" in cells:
        return cells
    if len(cells) == 4 and re.match(r"https?://", cells[1]):
        return ("", "url", "title", "text")
    return ()


read_rows = collection.Family(
    NAME, "topics", "topics.tsv corpus.tsv qrels.txt", _kind_of, _parse_grade, _topics, _documents
).read_rows
