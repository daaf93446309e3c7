"""Import a test collection as items. Only documents named in the qrels or in a run become passages.

The formats `beir` and `trec` share this module. The corpus is streamed, and documents that neither the qrels
nor a run name are skipped. Ids are preserved (item `dataset:query`, passage `item/document`), so a judge's
labels can be exported as qrels. The gold field of a passage depends on the grades in the file, or on
--map-label:
    relevant         grades 0 and 1 only: not_relevant | relevant
    relevance_grade  grades up to 2: 0 | 1 | 2
    relevance_0_3    grades up to 3: 0 | 1 | 2 | 3
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.files import LONGEST, open_input
from judge.importers import fields
from judge.importers.base import Bad, Options, Row
from judge.importers.records import Records, add_place, build_all
from judge.types import Item, Passage, Vote, Where

NamedEntry = tuple[str, str, str | None]
"""A tuple (query id, document id, grade). The grade is None if the document comes from a run."""
TopicText = tuple[str, str, Mapping[str, Any], Where]
"""A tuple (query id, text of the query, the other keys of its record, its place)."""
CorpusText = tuple[str, tuple[str, Any], Any, Mapping[str, Any], Where]
"""A tuple (document id, {key: text}, title, the other keys of its record, its place)."""

GRADES = {
    "relevant": {"0": "not_relevant", "1": "relevant"},
    "relevance_grade": {str(n): str(n) for n in range(3)},
    "relevance_0_3": {str(n): str(n) for n in range(4)},
}
"""Maps each gold field to {grade in the file: our label}. The first field that includes all grades in the
file is used.
"""
LONGEST_ENTRY = 4096
"""Maximum length of a line in qrels or in a run, in characters."""


@dataclass(frozen=True, slots=True)
class Family:
    """The functions that recognise and read the files of one format. Readers call `bad` for each error.

    `topics` is the format's word for queries. `kind_of` returns the kind of a file: "corpus", "qrels", "run"
    or the value of `topics`. `documents` reads only the requested documents. `example` contains the file
    arguments of an example command, one file of each kind.
    """

    name: str
    topics: str
    example: str
    kind_of: Callable[[Path], str]
    graded: Callable[[str], NamedEntry | None]
    queries: Callable[[Path, Bad], Iterable[TopicText]]
    documents: Callable[[Path, set[str], Bad], Iterable[CorpusText]]

    def read_rows(self, paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
        """Yield one row for each query that has documents.

        If only queries are imported, yield one row for each query.

        Raises UsageError if a required file is missing.
        """
        fields.refuse_maps(self.name, options)
        kinds = {path: self.kind_of(path) for path in paths}
        # Topics alone are useful: a system answers them before anything is retrieved.
        alone = set(kinds.values()) == {self.topics}
        missing = {self.topics, "corpus"} - set(kinds.values())
        if not alone and (missing or not {"qrels", "run"} & set(kinds.values())):
            lacks = ", ".join(sorted(missing)) or "qrels or a run"
            raise UsageError(
                f"the {self.name} format also needs {lacks}, for example: "
                f"{command(f'judge items import {self.name} {self.example}')}"
            )
        # The corpus is read last and streamed: it may be larger than the memory.
        collection = Collection()
        for path, kind in kinds.items():
            if kind in ("qrels", "run"):
                entries(path, self.graded if kind == "qrels" else parse_run_line, collection, bad)
            elif kind == self.topics:
                for name, text, meta, where in self.queries(path, bad):
                    try:
                        if not name:
                            raise BadInput(
                                "a topic needs both an id and the text of the query", field="query"
                            )
                        collection.add_topic(name, Topic(text, dict(meta), where))
                    except BadInput as error:
                        bad(add_place(error, path, where.line))
        wanted = collection.documents()
        documents: dict[str, Passage] = {}
        for path in [path for path, kind in kinds.items() if kind == "corpus"]:
            documents |= self._corpus(path, wanted, bad)
        dataset = options.dataset or self.name
        if alone:
            for query, topic in collection.topics.items():
                item = Item(query, dataset, question=topic.text, meta=topic.meta)
                yield Row(fields.check_item(item), topic.where)
            return
        yield from rows(collection, documents, dataset, options, bad)

    def _corpus(self, path: Path, wanted: set[str], bad: Bad) -> dict[str, Passage]:
        documents: dict[str, Passage] = {}
        at: dict[str, int] = {}
        for name, (key, value), title, meta, where in self.documents(path, wanted, bad):
            try:
                made = passage(name, fields.word(value, key), fields.word(title, "title"), meta)
                keep(documents, at, made, where.line)
            except BadInput as error:
                bad(add_place(error, path, where.line))
        return documents


@dataclass(frozen=True, slots=True)
class Named:
    """A document listed for a query, either in the qrels (with a grade) or in a run (without a grade)."""

    query: str
    document: str
    grade: str | None
    where: Where


@dataclass(slots=True)
class Topic:
    """A query: its text, the other keys of its record, and its file and line."""

    text: str
    meta: dict[str, Any]
    where: Where


@dataclass(slots=True)
class Collection:
    """The contents of the imported files, except the documents."""

    topics: dict[str, Topic] = field(default_factory=dict)
    named: dict[str, dict[str, Named]] = field(default_factory=dict)

    def add_topic(self, name: str, topic: Topic) -> None:
        """Add a query. Raises BadInput if the query already exists."""
        if name in self.topics:
            raise BadInput(
                f"query '{name}' occurs twice (line {self.topics[name].where.line})", field="query"
            )
        self.topics[name] = topic

    def add(self, named: Named) -> None:
        """Add a document for a query. A line in the qrels takes precedence over a line in a run.

        Raises BadInput if the document already has a different grade for this query.
        """
        known = self.named.setdefault(named.query, {})
        before = known.get(named.document)
        # A run and qrels may name the same document; the grade is the information that must not be lost.
        if before is None or before.grade is None:
            known[named.document] = named
        elif named.grade not in (None, before.grade):
            raise BadInput(
                f"'{named.document}' has grade {named.grade} for query '{named.query}', but grade "
                f"{before.grade} on line {before.where.line}",
                field="grade",
            )

    def documents(self) -> set[str]:
        """Return the ids of all documents that the qrels or the runs name for a query."""
        return {document for known in self.named.values() for document in known}

    def gold_field(self, label_maps: Iterable[str]) -> str:
        """Return the gold field that matches the grades in the files."""
        for name in label_maps:
            if name in GRADES:
                return name
        grades = {n.grade for known in self.named.values() for n in known.values()}
        # A grade below 0 (spam, broken pages) is not part of any scale, so it does not affect the choice.
        grades = {g for g in grades if g and not g.startswith("-")}
        return next((name for name, labels in GRADES.items() if grades <= labels.keys()), "relevance_0_3")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) for each line that is not blank.

    Raises BadInput if a line is not UTF-8 or is longer than LONGEST bytes.
    """
    with open_input(path) as handle:
        number = 0
        # A file without line breaks would otherwise be read into memory as one line.
        while raw := handle.readline(LONGEST):
            number += 1
            if len(raw) == LONGEST and not raw.endswith(b"\n"):
                raise BadInput(f"the line is longer than {LONGEST >> 20} MB", path=str(path), line=number)
            try:
                text = raw.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise BadInput("not UTF-8", path=str(path), line=number) from error
            if text.strip():
                yield number, text


def first_line(path: Path) -> str:
    """Return the first line that is not blank. Raises BadInput if the file is empty."""
    for _, text in lines(path):
        return text
    raise BadInput("the file is empty", path=str(path))


def entries(path: Path, parse: Callable[[str], NamedEntry | None], collection: Collection, bad: Bad) -> None:
    """Parse each line, and add the result unless it is None.

    Each error is passed to `bad` with its file and line.
    """
    some = False
    for number, text in lines(path):
        try:
            if len(text) > LONGEST_ENTRY:
                raise BadInput(
                    f"the line has {len(text):,} characters, which is too long for a line with two ids and a number"
                )
            if got := parse(text):
                some = True
                collection.add(Named(*got, Where(str(path), number)))
        except BadInput as error:
            some = True
            bad(add_place(error, path, number))
    if not some:
        bad(BadInput("there are no lines under the header", path=str(path)))


def keep(documents: dict[str, Passage], lines_of: dict[str, int], document: Passage, number: int) -> None:
    """Add a document to `documents`. Raises BadInput if the same id was already read with a different text."""
    name = str(document.source_id)
    before = documents.setdefault(name, document)
    if (before.text, before.title) != (document.text, document.title):
        raise BadInput(
            f"the text of document '{name}' differs from its text on line {lines_of[name]}", field="text"
        )
    lines_of.setdefault(name, number)


def format_grade(cell: str) -> str:
    """Return a grade as a string in its shortest form. Raises BadInput if the grade is not a whole number."""
    try:
        number = float(cell)
    except ValueError:
        number = 0.5
    if not number.is_integer():
        raise BadInput(f"'{cell}' is not a whole number", field="grade")
    return str(int(number))


def parse_run_line(text: str) -> NamedEntry:
    """Parse a line in a TREC run, which has the columns query, Q0, document, rank, score and tag."""
    cells = text.split()
    if len(cells) != 6:
        raise BadInput(
            f"the line has {len(cells)} columns, but each line in a run must have six: query Q0 "
            "document rank score tag"
        )
    return cells[0], cells[2], None


def texts(records: Records, names: Sequence[str], bad: Bad) -> Iterator[tuple[str, Mapping[str, Any], Where]]:
    """Yield (id, record, place) for each JSON record.

    The id is the value of the first key in `names` that the record has.
    """

    def named(raw: Any) -> list[tuple[str, Mapping[str, Any]]]:
        row = fields.record(raw)
        name = next((n for n in names if n in row), names[0])
        return [(fields.identifier(row.get(name), name), row)]

    yield from ((name, row, where) for (name, row), where in build_all(records, named, bad))


def passage(name: str, text: str | None, title: str | None, meta: Mapping[str, Any]) -> Passage:
    """Return a document as a passage. If the document has no text, its title is used as the text.

    Raises BadInput if the document has neither text nor title.
    """
    body = next((t for t in (text, title) if t and t.strip()), None)
    if body is None:
        raise BadInput(f"document '{name}' has neither text nor title", field="text")
    return Passage(body, source_id=name, title=title or None, meta=dict(meta))


def rows(
    collection: Collection, documents: Mapping[str, Passage], dataset: str, options: Options, bad: Bad
) -> Iterator[Row]:
    """Yield one row for each query that has documents, in the order of the topics.

    A note reports how many queries have no documents.
    """
    labels = fields.Labels(options)
    gold = collection.gold_field(options.label_maps)
    for query, known in collection.named.items():
        if query not in collection.topics:
            where = next(iter(known.values())).where
            bad(
                BadInput(
                    f"query '{query}' is not in the topics", path=where.path, line=where.line, field="query"
                )
            )
    idle = 0
    for query, topic in collection.topics.items():
        item = Item(query, dataset, question=topic.text, meta=topic.meta)
        for named in collection.named.get(query, {}).values():
            try:
                item.passages.append(_add_label(named, documents, gold, labels))
            except BadInput as error:
                bad(add_place(error, Path(named.where.path), named.where.line))
        if item.passages:
            yield Row(fields.check_item(item), topic.where)
        else:
            idle += 1
    if idle:
        options.note(
            f"{idle} queries were not imported, because neither qrels nor a run names a document for them"
        )
    labels.finish()


def _add_label(named: Named, documents: Mapping[str, Passage], gold: str, labels: fields.Labels) -> Passage:
    if named.document not in documents:
        raise BadInput(f"document '{named.document}' is not in the corpus", field="document")
    known = documents[named.document]
    votes: list[Vote] = []
    if named.grade is not None:
        try:
            votes = list(labels.read_fixed(gold, named.grade, "grade", GRADES[gold]))
        except BadInput as error:
            hint = f"{error.reason}; to assign a label to this grade, pass --map-label {gold}:{named.grade}=LABEL"
            raise BadInput(hint, field="grade") from error
    return Passage(known.text, known.source_id, known.title, meta=dict(known.meta), votes=votes)
