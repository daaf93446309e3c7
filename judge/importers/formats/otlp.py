"""OpenTelemetry traces (OTLP JSON) that follow the GenAI or OpenInference conventions: each retrieval becomes
one item.

A file contains one export ({resourceSpans: [...]}), or one export per line, as the collector's file exporter
writes it. A retrieval is a span whose `gen_ai.operation.name` is `retrieval` (with its documents in
`gen_ai.retrieval.documents`), or whose `openinference.span.kind` is RETRIEVER. The GenAI conventions require
only the id and the score of a document, so its text must have been recorded as `content`.
`gen_ai.evaluation.result` events become runs of the judge `gen_ai.evaluation`. The module
`judge.importers.traces` builds the items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.errors import BadInput
from judge.importers import fields, traces
from judge.importers.base import Bad, Options, Row
from judge.importers.formats._attributes import span_of
from judge.importers.records import Records, build_all, json_elements
from judge.importers.traces import TraceScore, TraceSpan
from judge.types import Where

NAME = "otlp"
HELP = "OpenTelemetry traces (OTLP JSON): one item per retrieval, with the answer and the evaluations"
TOGETHER = True
SIGNS = (("resourceSpans",),)
EVALUATION = "gen_ai.evaluation.result"
SPANS = "resourceSpans.item.scopeSpans.item.spans.item"
DEEPEST = 20


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield one row per retrieval. Raises BadInput if the files contain no retrieval."""
    fields.refuse_maps(NAME, options)
    yield from traces.items(paths, _parts(paths, bad), options, bad)


def _parts(paths: Sequence[Path], bad: Bad) -> Iterator[tuple[TraceSpan | TraceScore, Where]]:
    for path in paths:
        # The file is streamed span by span, because an export may be a single line of many megabytes.
        spans = Records(path, "span", json_elements(path, SPANS, lines=True))
        yield from build_all(spans, lambda record: _read_span(fields.record(record)), bad)


def _read_span(row: Mapping[str, Any]) -> Iterator[TraceSpan | TraceScore]:
    trace = fields.identifier(row.get("traceId"), "traceId")
    name = fields.identifier(row.get("spanId"), "spanId")
    parent = fields.word(row.get("parentSpanId"), "parentSpanId")
    # The time is in nanoseconds since the epoch, as text or a number. Padded to the same length, times sort
    # correctly as text.
    start = str(row.get("startTimeUnixNano") or "").zfill(20)
    yield span_of(trace, name, parent, start, "", _attributes(row.get("attributes"), "attributes"))
    for event in fields.listing(row.get("events"), "events"):
        if isinstance(event, dict) and event.get("name") == EVALUATION:
            attributes = _attributes(event.get("attributes"), "events")
            value = attributes.get(
                "gen_ai.evaluation.score.value", attributes.get("gen_ai.evaluation.score.label")
            )
            if value is not None and attributes.get("gen_ai.evaluation.name"):
                by, reason = "gen_ai.evaluation", attributes.get("gen_ai.evaluation.explanation")
                yield TraceScore(
                    trace, name, str(attributes["gen_ai.evaluation.name"]), value, by, False, reason
                )


def _attributes(value: Any, field: str) -> dict[str, Any]:
    """Convert a list of {key, value} objects to one object. Raises BadInput if the list is malformed."""
    attributes = {}
    for entry in fields.listing(value, field):
        attributes[fields.identifier(fields.record(entry).get("key"), f"{field}.key")] = _to_json(
            entry.get("value"), 0
        )
    return attributes


def _to_json(value: Any, depth: int) -> Any:
    """Convert an OTLP value to plain JSON: a string, a number, a list or an object."""
    # The file is untrusted, and deeply nested lists would exceed Python's recursion limit.
    if not isinstance(value, dict) or depth > DEEPEST:
        return None
    if isinstance(value.get("arrayValue"), dict):
        return [_to_json(element, depth + 1) for element in value["arrayValue"].get("values") or []]
    if isinstance(value.get("kvlistValue"), dict):
        pairs = value["kvlistValue"].get("values") or []
        return {
            str(pair.get("key")): _to_json(pair.get("value"), depth + 1)
            for pair in pairs
            if isinstance(pair, dict)
        }
    if "intValue" in value:
        # 64-bit numbers are text in OTLP's JSON.
        try:
            return int(value["intValue"])
        except (TypeError, ValueError):
            raise BadInput("not a whole number", field="attributes.value.intValue") from None
    return next((value[name] for name in ("stringValue", "doubleValue", "boolValue") if name in value), None)
