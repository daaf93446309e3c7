"""Langfuse traces: each retrieval becomes one item. The files from one export are imported together.

The files are JSON Lines, JSON, CSV or Parquet. Records are recognised by their keys:

    trace        {id, input, output, observations: [...], scores: [...]}, as the API returns a single trace
    observation  {id, traceId, parentObservationId, type, startTime, input, output, model}, names in camelCase or snake_case
    score        {traceId, observationId, name, value, stringValue, source, comment, authorUserId}

An observation of type RETRIEVER is a retrieval, and its output is the list of documents. An observation of
type GENERATION is a model call. The trace itself becomes the parent of its observations. Scores with the
source ANNOTATION become human labels. Scores with the source EVAL or API become runs of the judge
`langfuse-eval` or `langfuse-api`. The module `judge.importers.traces` builds the items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.importers import fields, traces
from judge.importers.trace_texts import get_word, parse_json_text
from judge.importers.traces import MODEL, RETRIEVER, TraceScore, TraceSpan

NAME = "langfuse"
HELP = "Langfuse traces: one item per retrieval, with the answer and the scores"
TOGETHER = True
SIGNS = (
    ("id", "observations"),
    ("id", "traceId", "type", "startTime"),
    ("id", "trace_id", "type", "start_time"),
)
BESIDE = (("id", "timestamp"), ("name", "source"))
"""Keys of traces and scores that are in separate files.

Other tables may also have these keys, so the keys alone do not identify the format.
"""
KINDS = {"RETRIEVER": RETRIEVER, "GENERATION": MODEL}
_DOCUMENTS = ("documents", "chunks", "results", "context", "contexts")


def _read_record(row: Mapping[str, Any]) -> Iterator[TraceSpan | TraceScore]:
    observations = parse_json_text(row.get("observations"))
    if isinstance(observations, list) and all(isinstance(observation, dict) for observation in observations):
        trace = fields.identifier(row.get("id"), "id")
        # The trace becomes the root span of its observations. Its id differs from the ids of all
        # observations.
        yield TraceSpan(
            trace, trace, input=parse_json_text(row.get("input")), output=parse_json_text(row.get("output"))
        )
        for observation in observations:
            yield _observation(observation, trace)
        for score in fields.listing(parse_json_text(row.get("scores")), "scores"):
            # The API's list of traces contains only the ids of scores; the scores are in a separate file.
            if not isinstance(score, str):
                yield from _score(fields.record(score), trace)
    elif _get(row, "type") is not None and _get(row, "traceId") is not None:
        yield _observation(row, str(_get(row, "traceId")))
    elif row.get("name") is not None and row.get("source") is not None:
        yield from _score(row, str(_get(row, "traceId") or ""))
    elif row.get("timestamp") is not None:
        trace = fields.identifier(row.get("id"), "id")
        yield TraceSpan(
            trace, trace, input=parse_json_text(row.get("input")), output=parse_json_text(row.get("output"))
        )
    else:
        raise traces.unknown(row, "a Langfuse trace, observation or score", "type")


def _observation(row: Mapping[str, Any], trace: str) -> TraceSpan:
    name = fields.identifier(row.get("id"), "id")
    kind = KINDS.get(str(row.get("type")).upper(), "")
    span = TraceSpan(trace, name, str(_get(row, "parentObservationId") or trace), kind)
    span.start = str(_get(row, "startTime") or "")
    span.input, span.output = parse_json_text(row.get("input")), parse_json_text(row.get("output"))
    if kind == MODEL:
        model = row.get("model") or _get(row, "providedModelName")
        span.model = get_word(model)
    if kind == RETRIEVER:
        documents = span.output
        if isinstance(documents, dict):
            documents = next((documents[key] for key in _DOCUMENTS if key in documents), documents)
        if documents is not None:
            span.documents = documents if isinstance(documents, list) else [documents]
        span.output = None
    return span


def _score(row: Mapping[str, Any], trace: str) -> Iterator[TraceScore]:
    """Yield the score. Skip a score without a value, and a score about a session, which has no trace."""
    words = _get(row, "stringValue")
    source = str(row.get("source") or "API").upper()
    return traces.scores_of(
        row.get("name"),
        row.get("value") if words in (None, "") else words,
        tool=NAME,
        source=source,
        is_human=source == "ANNOTATION",
        user=_get(row, "authorUserId"),
        trace=_get(row, "traceId") or trace,
        span=_get(row, "observationId"),
        comment=row.get("comment"),
    )


def _get(row: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key under either of its names.

    The API uses names such as traceId, and a warehouse export uses names such as trace_id.
    """
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return row.get(name, row.get(snake))


read_rows = traces.reader(NAME, _read_record)
