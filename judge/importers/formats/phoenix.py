"""Phoenix spans (OpenInference): each retrieval becomes one item. Spans and annotations are imported together.

The files are JSON Lines, JSON or Parquet. Records are recognised by their keys:

    span         {context: {trace_id, span_id}, parent_id, span_kind, start_time, attributes}, as the client returns them, or a
                 row of `get_spans_dataframe()`, with columns as `context.span_id` and `attributes.retrieval.documents`
    annotation   {span_id, name, annotator_kind, result: {label, score, explanation}, document_position, user_id}, or a row
                 of `get_span_annotations_dataframe()`, with columns as `result.label`

A retrieval is a span of kind RETRIEVER. Annotations of kind HUMAN become human labels (the annotation's label
or, if it has none, its score). Annotations of kind LLM or CODE become runs of the judge `phoenix-llm` or
`phoenix-code`. The module `judge.importers.traces` builds the items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.importers import fields, traces
from judge.importers.formats._attributes import span_of
from judge.importers.paths import value_at
from judge.importers.traces import TraceScore, TraceSpan

NAME = "phoenix"
HELP = "Phoenix spans (OpenInference): one item per retrieval, with the answer and the annotations"
TOGETHER = True
SIGNS = (("context", "span_kind"), ("context.span_id", "context.trace_id"), ("annotator_kind", "span_id"))
_FLAT = "attributes."


def _part(row: Mapping[str, Any]) -> Iterator[TraceSpan | TraceScore]:
    if row.get("annotator_kind") is not None:
        yield from _annotation(row)
        return
    span, trace = value_at(row, "context.span_id"), value_at(row, "context.trace_id")
    if span is None or trace is None:
        raise traces.unknown(row, "a Phoenix span or annotation", "context.span_id")
    attributes = dict(row["attributes"]) if isinstance(row.get("attributes"), dict) else {}
    attributes |= {k.removeprefix(_FLAT): v for k, v in row.items() if k.startswith(_FLAT)}
    parent = value_at(row, "parent_id")
    # Times are ISO 8601 text, or milliseconds since the epoch. Within one file, both sort correctly.
    start = row.get("start_time")
    start = f"{start:020.0f}" if isinstance(start, int | float) else str(start or "")
    yield span_of(
        str(trace), str(span), parent and str(parent), start, str(row.get("span_kind") or ""), attributes
    )


def _annotation(row: Mapping[str, Any]) -> Iterator[TraceScore]:
    """Yield the annotation. Skip an annotation without a value."""
    # An annotation may have a label, a score or both. The label takes precedence, because it is the option
    # that a person chose.
    value = value_at(row, "result.label")
    kind, position = str(row["annotator_kind"]).upper(), row.get("document_position")
    return traces.scores_of(
        row.get("name") or row.get("annotation_name"),
        value_at(row, "result.score") if value in (None, "") else value,
        tool=NAME,
        source=kind,
        is_human=kind == "HUMAN",
        user=row.get("user_id"),
        trace=value_at(row, "trace_id"),
        span=fields.identifier(value_at(row, "span_id"), "span_id"),
        comment=value_at(row, "result.explanation"),
        document=int(position) if isinstance(position, int | float) else None,
    )


read_rows = traces.reader(NAME, _part)
