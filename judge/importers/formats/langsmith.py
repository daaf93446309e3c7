"""LangSmith traces: each retrieval becomes one item. Runs and feedback are imported together.

The files are JSON Lines, JSON, CSV or Parquet. They contain the objects from `client.list_runs(...)` and
`client.list_feedback(...)`, each written with `model_dump_json()`. Records are recognised by their keys:

    run       {id, trace_id, parent_run_id, run_type, start_time, inputs, outputs, extra: {metadata: {ls_model_name}}}
    feedback  {run_id, key, score, value, comment, feedback_source: {type, user_name}}

A run of type `retriever` is a retrieval, and its output is the list of documents. A run of type `llm` is a
model call. Feedback with the source type `app` becomes human labels. Other feedback becomes runs of a judge
named after the source, for example `langsmith-api` or `langsmith-model`. The module `judge.importers.traces`
builds the items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.importers import fields, traces
from judge.importers.trace_texts import get_word, parse_json_text
from judge.importers.traces import MODEL, RETRIEVER, TraceScore, TraceSpan

NAME = "langsmith"
HELP = "LangSmith runs: one item per retrieval, with the answer and the feedback"
TOGETHER = True
SIGNS = (("id", "run_type", "trace_id"),)
BESIDE = (("run_id", "key"),)
KINDS = {"retriever": RETRIEVER, "llm": MODEL}


def _read_record(row: Mapping[str, Any]) -> Iterator[TraceSpan | TraceScore]:
    if row.get("run_type") is not None:
        yield _run(row)
    elif row.get("run_id") is not None and row.get("key") is not None:
        yield from _feedback(row)
    else:
        raise traces.unknown(row, "a LangSmith run or feedback", "run_type")


def _run(row: Mapping[str, Any]) -> TraceSpan:
    name, trace = (fields.identifier(row.get(key), key) for key in ("id", "trace_id"))
    parent = get_word(row.get("parent_run_id"))
    span = TraceSpan(trace, name, parent, KINDS.get(str(row["run_type"]), ""))
    span.start = str(row.get("start_time") or "")
    span.input, span.output = parse_json_text(row.get("inputs")), parse_json_text(row.get("outputs"))
    if span.kind == MODEL:
        extra = fields.mapping(parse_json_text(row.get("extra")), "extra")
        metadata = fields.mapping(extra.get("metadata"), "extra.metadata")
        span.model = get_word(metadata.get("ls_model_name"))
    if span.kind == RETRIEVER:
        outputs = span.output
        documents = outputs.get("documents") if isinstance(outputs, dict) else outputs
        span.documents = documents if isinstance(documents, list) else []
        span.output = None
    return span


def _feedback(row: Mapping[str, Any]) -> Iterator[TraceScore]:
    """Yield the feedback's score or, if it has no score, its value. Feedback with only a comment is skipped."""
    source = fields.mapping(parse_json_text(row.get("feedback_source")), "feedback_source")
    kind = str(source.get("type") or "api")
    return traces.scores_of(
        row["key"],
        row.get("value") if row.get("score") is None else row["score"],
        tool=NAME,
        source=kind,
        # Feedback entered in LangSmith's web app is from people. All other feedback comes from programs.
        is_human=kind == "app",
        user=source.get("user_name"),
        trace=row.get("trace_id"),
        span=row["run_id"],
        comment=row.get("comment"),
    )


read_rows = traces.reader(NAME, _read_record)
