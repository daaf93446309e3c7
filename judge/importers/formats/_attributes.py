"""Read a span's attributes, which follow OpenInference (Phoenix) or OpenTelemetry's GenAI conventions.

A span's kind is read from `openinference.span.kind` or, if that is missing, derived from
`gen_ai.operation.name`. Both conventions are tried for every span, because an export does not say which
convention the tracer used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from judge.importers.paths import value_at
from judge.importers.trace_texts import parse_json_text
from judge.importers.traces import MODEL, RETRIEVER, TraceSpan

KINDS = {"RETRIEVER": RETRIEVER, "LLM": MODEL}
"""Maps OpenInference's span kinds to ours."""
OPERATIONS = {"retrieval": RETRIEVER, "chat": MODEL, "text_completion": MODEL, "generate_content": MODEL}
"""Maps the operations in the GenAI conventions to our span kinds."""
_NUMBERED = re.compile(r"retrieval\.documents\.(\d+)\.(.+)")


def span_of(
    trace: str, span: str, parent: str | None, start: str, kind: str, attributes: Mapping[str, Any]
) -> TraceSpan:
    """Build a span from its attributes, which are either nested or have dotted names.

    `kind` is the value of the record's `kind` field, if the record has this field.
    """

    def get(*names: str) -> Any:
        values = (value_at(attributes, name) for name in names)
        return next((value for value in values if value is not None), None)

    kind = str(kind or get("openinference.span.kind") or "").upper()
    span_kind = KINDS.get(kind) or OPERATIONS.get(str(get("gen_ai.operation.name") or ""), "")
    made = TraceSpan(trace, span, parent or None, span_kind, start)
    made.input = get("input.value", "gen_ai.retrieval.query.text", "gen_ai.input.messages")
    made.output = get("output.value", "gen_ai.output.messages")
    if span_kind == RETRIEVER:
        made.documents = _documents(attributes, get("retrieval.documents", "gen_ai.retrieval.documents"))
        # The output of a retriever is its documents. If it were kept as text, it could be mistaken for an
        # answer.
        made.output = None
    if span_kind == MODEL:
        model = get("llm.model_name", "gen_ai.response.model", "gen_ai.request.model")
        made.model = None if model is None else str(model)
        # The messages are read first, because the raw output value of a model's span is often the complete
        # response as JSON.
        made.output = get("llm.output_messages", "gen_ai.output.messages", "output.value") or made.output
        made.output = _messages(attributes) or made.output
    return made


def _documents(attributes: Mapping[str, Any], value: Any) -> list[Any]:
    """Return the retrieved documents.

    They may be stored as a list, as a JSON string, or as attributes with an index (`documents.0`).
    """
    value = parse_json_text(value)
    if isinstance(value, dict):
        # Some exports nest numbered attributes into an object with the numbers as keys.
        value = [value[key] for key in sorted(value, key=lambda key: int(key) if key.isdecimal() else 0)]
    if not isinstance(value, list):
        numbered: dict[int, dict[str, Any]] = {}
        for name, part in attributes.items():
            if match := _NUMBERED.fullmatch(name):
                numbered.setdefault(int(match[1]), {})[match[2]] = part
        value = [numbered[n] for n in sorted(numbered)]
    return [_document(document) for document in value]


def _document(value: Any) -> Any:
    """Return a document whose keys have no prefix (`document.content` becomes `content`).

    Metadata given as a JSON string are parsed.
    """
    if not isinstance(value, dict):
        return value
    inner = value["document"] if isinstance(value.get("document"), dict) else value
    plain = {name.removeprefix("document."): part for name, part in inner.items()}
    if isinstance(plain.get("metadata"), str):
        metadata = parse_json_text(plain["metadata"])
        plain["metadata"] = {"text": metadata} if isinstance(metadata, str) else metadata
    return plain


def _messages(attributes: Mapping[str, Any]) -> Any:
    """Return the text of the last output message.

    Messages are stored as attributes with an index (`llm.output_messages.0.message.content`).
    """
    start, end = "llm.output_messages.", ".message.content"
    texts = [value for name, value in attributes.items() if name.startswith(start) and name.endswith(end)]
    return texts[-1] if texts else None
