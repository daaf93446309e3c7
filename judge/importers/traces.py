"""Turn production traces into items: one item per retrieval, with one passage per retrieved document.

Each format (such as `langfuse`, `phoenix` or `otlp`) turns its records into `TraceSpan` and `TraceScore`
objects, which this module turns into items. A span is recognised by its kind (retriever or model), not by its
position in the file or the trace.

- The question is the input of the nearest span that contains both the retrieval and a later model call. If
  there is no such span, or if its input is not text, the question is the retriever's query.
- The answer is the output of the last model call in that span. If several retrievals lead to the same call,
  the answer belongs to the last of them, and the documents of all of them are its context.
- A score on the call, or on a span that contains it, is about the answer. A score on the retrieval is about
  the item, and a score on a document is about the passage. A person's score becomes a human label. The scores
  from a program become a run of this program.

The spans of a trace may be anywhere in the files. They are first written to a SQLite file in a temporary
directory, so that only one trace at a time is in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from judge.errors import BadInput
from judge.importers import fields, roles
from judge.importers.base import Bad, Options, Row
from judge.importers.naming import dataset_name, hash_parts, name_by_content, remove_joints, system_name
from judge.importers.records import add_place, build_all, table_or_json
from judge.importers.trace_texts import ANSWER_KEYS, QUESTION_KEYS, get_word, text_of
from judge.store.items import passage_id
from judge.store.tool_scores import field_name
from judge.types import DEFAULT_CONDITION, AnnotatorKind, Answer, Item, Passage, ToolScore, Vote, Where

RETRIEVER, MODEL = "retriever", "model"


@dataclass(slots=True)
class TraceSpan:
    """One step of a trace. `kind` is RETRIEVER, MODEL or empty. `start` is a time that sorts correctly as
    text.
    """

    trace: str
    span: str
    parent: str | None = None
    kind: str = ""
    start: str = ""
    input: Any = None
    output: Any = None
    documents: list[Any] = field(default_factory=list)
    model: str | None = None


@dataclass(slots=True)
class TraceScore:
    """A score or label in a trace. `by` names the person or program that assigned it.

    If `span` is None, the score is about the whole trace. `trace` is empty if only the span is known.
    `document` is the index of the scored document, from 0, or None.
    """

    trace: str
    span: str | None
    name: str
    value: str | int | float
    by: str
    is_human: bool
    comment: str | None = None
    document: int | None = None


def scores_of(
    name: Any,
    value: Any,
    *,
    tool: str,
    source: str,
    is_human: bool,
    user: Any,
    trace: Any,
    span: Any,
    comment: Any,
    document: int | None = None,
) -> Iterator[TraceScore]:
    """Yield the score if it has a value.

    A score from a program is attributed to a judge with the name `TOOL-SOURCE`.
    """
    # A boolean score is a label, formatted as in JSON.
    value = json.dumps(value) if isinstance(value, bool) else value
    if not isinstance(value, str | int | float) or value == "":
        return
    by = str(user or tool) if is_human else f"{tool}-{source.lower()}"
    name = fields.identifier(name, "name")
    yield TraceScore(
        str(trace or ""), get_word(span or None), name, value, by, is_human, comment or None, document
    )


def unknown(row: Mapping[str, Any], expected: str, field: str) -> BadInput:
    """Return the error for a record that does not have the expected format."""
    return BadInput(f"the record is not {expected}; its keys are: {', '.join(list(row)[:12])}", field=field)


def reader(
    name: str, parse: Callable[[Mapping[str, Any]], Iterable[TraceSpan | TraceScore]]
) -> Callable[[Sequence[Path], Options, Bad], Iterator[Row]]:
    """Return the `read_rows` function for a format.

    `parse` turns a record (one line or element) into spans and scores.
    """

    def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
        """Yield one row for each retrieval. Raises BadInput if the files contain no retrieval."""
        fields.refuse_maps(name, options)
        yield from items(paths, _parts_of(paths, parse, bad), options, bad)

    return read_rows


def _parts_of(
    paths: Sequence[Path], parse: Callable[[Mapping[str, Any]], Iterable[TraceSpan | TraceScore]], bad: Bad
) -> Iterator[tuple[TraceSpan | TraceScore, Where]]:
    """Yield the spans and scores in the files. If `parse` raises BadInput, pass the error to `bad` with the
    record's place.
    """
    for path in paths:
        records, is_table = table_or_json(path, bad)

        def parts(record: Any, is_table: bool = is_table) -> Iterable[TraceSpan | TraceScore]:
            row = fields.record(record)
            # An empty cell is not a value, but an empty string in JSON is.
            return parse({name: cell or None for name, cell in row.items()} if is_table else row)

        yield from build_all(records, parts, bad)


def items(
    paths: Sequence[Path], parts: Iterable[tuple[TraceSpan | TraceScore, Where]], options: Options, bad: Bad
) -> Iterator[Row]:
    """Yield the items from all traces, in the order in which their retrievals occur.

    Notes report how many parts were not imported: documents without text, retrievals without any text, and
    scores that belong to no item. Raises BadInput if there is no retrieval.
    """
    system = options.system or system_name(paths[0])
    dataset = options.dataset or dataset_name(paths[0])
    with TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder) / "spans.db")) as conn:
        left = Counter[str]()
        n_spans, n_retrievals = _fill(conn, parts)
        if not n_retrievals:
            reason = (
                f"the files have {n_spans:,} spans, but no retrieval; a retrieval is a span of kind RETRIEVER, or one whose operation "
                "is retrieval"
            )
            raise BadInput(reason, path=str(paths[0]))
        for trace in _Trace.all_of(conn):
            try:
                yield from trace.rows(dataset, system, left)
            except BadInput as error:
                bad(add_place(error, Path(trace.where.path), trace.where.line))
        for message, n in left.items():
            options.note(f"note: {n:,} {message}")


def _fill(conn: sqlite3.Connection, parts: Iterable[tuple[TraceSpan | TraceScore, Where]]) -> tuple[int, int]:
    """Write the spans and scores to the temporary database. Return (number of spans, number of retrievals)."""
    # The file is temporary and useless after a crash, so neither a journal nor fsync is needed.
    conn.execute("PRAGMA journal_mode = OFF")
    conn.execute("PRAGMA synchronous = OFF")
    conn.execute("CREATE TABLE spans (trace, span, kind, path, line, data)")
    conn.execute("CREATE TABLE given (trace, span, data)")
    counts: Counter[str] = Counter()
    for part, where in parts:
        try:
            data = json.dumps({name: getattr(part, name) for name in part.__slots__})
        except RecursionError:
            raise BadInput(
                "lists and objects are nested too deeply", path=where.path, line=where.line
            ) from None
        if isinstance(part, TraceScore):
            conn.execute("INSERT INTO given VALUES (?, ?, ?)", [part.trace, part.span, data])
        else:
            counts[part.kind] += 1
            row = [part.trace, part.span, part.kind, where.path, where.line, data]
            conn.execute("INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?)", row)
    # The indexes are created after the rows are inserted, which is faster than updating them for each row.
    conn.execute("CREATE INDEX spans_of ON spans (trace)")
    conn.execute("CREATE INDEX given_to ON given (trace)")
    # A score that names only its span belongs to the trace of that span.
    if conn.execute("SELECT 1 FROM given WHERE trace = ''").fetchone():
        conn.execute("CREATE INDEX span_ids ON spans (span)")
        conn.execute(
            "UPDATE given SET trace = coalesce((SELECT trace FROM spans AS s WHERE s.span = given.span), '') WHERE trace = ''"
        )
    return sum(counts.values()), counts[RETRIEVER]


class _Trace:
    """One trace: its spans as a tree, and the items in it."""

    def __init__(
        self, name: str, spans: Sequence[TraceSpan], given: Sequence[TraceScore], where: Where
    ) -> None:
        self.name, self.given, self.where = name, given, where
        self.spans = {span.span: span for span in spans}
        self.retrievals = sorted((s for s in spans if s.kind == RETRIEVER), key=lambda s: s.start)
        self.calls = sorted((s for s in spans if s.kind == MODEL), key=lambda s: s.start)

    @classmethod
    def all_of(cls, conn: sqlite3.Connection) -> Iterator[_Trace]:
        """Yield all traces that contain a retrieval, in the order of their first retrievals."""
        query = f"SELECT trace, min(rowid) FROM spans WHERE kind = '{RETRIEVER}' GROUP BY trace ORDER BY 2"
        for name, first in conn.execute(query):
            path, line = conn.execute("SELECT path, line FROM spans WHERE rowid = ?", [first]).fetchone()
            rows = conn.execute("SELECT data FROM spans WHERE trace = ? ORDER BY rowid", [name])
            spans = [TraceSpan(**json.loads(data)) for (data,) in rows]
            rows = conn.execute("SELECT data FROM given WHERE trace = ? ORDER BY rowid", [name])
            yield cls(name, spans, [TraceScore(**json.loads(data)) for (data,) in rows], Where(path, line))

    def rows(self, dataset: str, system: str, left: Counter[str]) -> Iterator[Row]:
        """Yield the items for the trace's retrievals. All items are checked before the first one is yielded."""
        made: dict[str, Item] = {}
        answers: dict[str, Answer] = {}
        shared: dict[str, list[str]] = defaultdict(list)
        for retrieval in self.retrievals:
            above, call = self._find_answering_call(retrieval)
            item = self._item(retrieval, above, dataset, left)
            if item is None:
                continue
            made[retrieval.span] = item
            source = call or above
            if source is not None:
                shared[source.span].append(retrieval.span)
        # If several retrievals lead to the same call, their documents together are the context of its answer.
        for span, retrievals in shared.items():
            item = made[retrievals[-1]]
            text = text_of(self.spans[span].output, ANSWER_KEYS)
            if text is None:
                left["answers have no text and were not imported"] += 1
                continue
            context = [passage_id(made[r], p) for r in retrievals for p in made[r].passages]
            meta = {"trace_id": self.name, "span_id": span}
            # If a file contains different models, they are different systems.
            model = self.spans[span].model or system
            named = remove_joints(model)
            if named != model:
                # Cloud providers use `@` in model names (claude-opus-4@20250514), but in an answer id, `@`
                # ends the system's name.
                left[f"answers of '{model}' are stored under the system '{named}'"] += 1
            answers[span] = Answer(item.item_id, named, DEFAULT_CONDITION, text, context=context, meta=meta)
            item.answers.append(answers[span])
        for given in self.given:
            self._attach_score(given, made, answers, left)
        checked = [fields.check_item(item) for item in made.values()]
        # An answer's context may contain passages of another item in the trace, so that item must be stored
        # first.
        yield from (Row(item, self.where) for item in sorted(checked, key=lambda item: bool(item.answers)))

    def _iterate_ancestors(self, span: TraceSpan) -> Iterator[TraceSpan]:
        """Yield the ancestors of a span, nearest first. In a malformed tree with a cycle, each span is
        yielded only once.
        """
        seen = {span.span}
        parent = span.parent
        while parent is not None and parent in self.spans and parent not in seen:
            seen.add(parent)
            yield self.spans[parent]
            parent = self.spans[parent].parent

    def _find_answering_call(self, retrieval: TraceSpan) -> tuple[TraceSpan | None, TraceSpan | None]:
        """Return the span that gives the question, and the model call that gives the answer.

        The span is the nearest ancestor of the retrieval that contains a later model call. The answer is from
        the last such call. If there is no such ancestor, the topmost ancestor gives the question, and the
        answer is from the trace's last model call after the retrieval. The call is None if no model was
        called after the retrieval.
        """
        # A model call before the retrieval, such as one that rewrites the question, cannot have used the
        # retrieved documents.
        later = [call for call in self.calls if call.start >= retrieval.start]
        top: TraceSpan | None = None
        for above in self._iterate_ancestors(retrieval):
            top = above
            under = [call for call in later if above.span in (s.span for s in self._iterate_ancestors(call))]
            if under:
                return above, under[-1]
        if self.calls:
            # Some tracers do not record parents: fall back to the last call after the retrieval.
            return top, later[-1] if later else None
        return top, None

    def _item(
        self, retrieval: TraceSpan, above: TraceSpan | None, dataset: str, left: Counter[str]
    ) -> Item | None:
        passages: dict[str, Passage] = {}
        for place, value in enumerate(retrieval.documents):
            document = {"text": value} if isinstance(value, str) else roles.document(fields.record(value))
            text = document.get("text")
            if not isinstance(text, str) or not text.strip():
                left["retrieved documents have no text and were not imported"] += 1
                continue
            passage = Passage(
                text, title=get_word(document.get("title")), date=get_word(document.get("date"))
            )
            meta = document.get("meta")
            passage.meta = {**(meta if isinstance(meta, dict) else {}), "document_position": place}
            if document.get("id") is not None:
                passage.meta["id"] = document["id"]
            name_by_content(passage)
            passages.setdefault(passage.source_id or passage.text, passage)
        if not passages:
            left["retrievals have no document with text and were not imported"] += 1
            return None
        words = text_of(above.input, QUESTION_KEYS) if above is not None else None
        words = words or text_of(retrieval.input, QUESTION_KEYS)
        if words is None:
            raise BadInput(
                f"retrieval '{retrieval.span}' of trace '{self.name}' has no question, because neither the "
                "retrieval nor the span above it has text as its input"
            )
        meta = {"trace_id": self.name, "span_id": retrieval.span}
        query = text_of(retrieval.input, QUESTION_KEYS)
        if query is not None and query != words:
            meta["query"] = query
        return Item(
            source_id=f"{self.name}-{retrieval.span}",
            dataset=dataset,
            question_id=hash_parts([words]),
            question=words,
            passages=list(passages.values()),
            meta=meta,
        )

    def _attach_score(
        self, given: TraceScore, made: Mapping[str, Item], answers: Mapping[str, Answer], left: Counter[str]
    ) -> None:
        """Attach a score to a passage, a retrieval or the answer."""
        item = made.get(given.span or "")
        target: Item | Answer | Passage | None = item
        if item is not None and given.document is not None:
            places = {p.meta["document_position"]: p for p in item.passages}
            target = places.get(given.document)
        elif item is None:
            # A score of the whole trace is about its last answer or, if there is no answer, about its last
            # retrieval.
            under = [s for s in answers if given.span is None or self._is_at_or_under(s, given.span)]
            if under:
                target = answers[under[-1]]
            elif given.span is None and made:
                target = list(made.values())[-1]
        if target is None:
            left[
                "scores were not imported, because they are not about an imported retrieval, document or "
                "answer"
            ] += 1
        elif given.is_human:
            label = Vote(
                field_name(given.name), str(given.value), given.by, AnnotatorKind.HUMAN, given.comment
            )
            target.votes.append(label)
        else:
            target.scores.append(ToolScore(given.by, given.name, given.value, given.comment))

    def _is_at_or_under(self, span: str, other: str) -> bool:
        return span == other or other in (above.span for above in self._iterate_ancestors(self.spans[span]))
