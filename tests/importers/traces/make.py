"""Write the traces of this folder with the vendors' own models and libraries.

    python make.py langfuse | langsmith | phoenix | otlp

in a throwaway environment: `uv pip install "langfuse<4"`; `uv pip install langsmith langchain-core`; `uv pip install arize-phoenix-client openinference-instrumentation`;
`uv pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-common opentelemetry-semantic-conventions`. Nothing is sent
anywhere. The packages are no dependencies of adjudge. README.md has the versions that wrote what is here.

Two traces. In the first a guard span comes before the retrieval, and a person and a program have scored it. In the second an
agent retrieves twice before one answer.
"""

import base64
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).parent
START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
DOCUMENTS = {
    "How many moons has Mars?": ["Mars has two moons, Phobos and Deimos.", "Mars is red."],
    "moons of Venus": ["Venus has no moon."],
    "moons of Mercury": ["Mercury has no moon."],
}
ANSWERS = ["Mars has two moons.", "Neither has a moon."]
ASKED = ["How many moons has Mars?", "Which of Venus and Mercury has a moon?"]


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def write_langfuse() -> None:
    """Traces with details, as the API returns them (`TraceWithFullDetails`), a line each."""
    from langfuse.api import ObservationsView, ScoreV1_Boolean, ScoreV1_Numeric, TraceWithFullDetails

    def observation(name: str, trace: str, kind: str, second: int, **more: object) -> ObservationsView:
        empty = {"usage": {"input": 0, "output": 0, "total": 0}, "usageDetails": {}, "costDetails": {}}
        common = {"id": name, "traceId": trace, "type": kind, "name": name, "startTime": at(second)}
        return ObservationsView(**common, **empty, level="DEFAULT", environment="default", **more)

    def search(name: str, trace: str, second: int, query: str, **more: object) -> ObservationsView:
        output = [{"page_content": text, "metadata": {"source": "kb"}} for text in DOCUMENTS[query]]
        return observation(name, trace, "RETRIEVER", second, input=query, output=output, **more)

    def call(name: str, trace: str, second: int, output: object, **more: object) -> ObservationsView:
        return observation(name, trace, "GENERATION", second, model="gpt-5-mini", output=output, **more)

    def score(kind: type, name: str, value: float, source: str, **more: object) -> object:
        times = {"timestamp": at(60), "createdAt": at(60), "updatedAt": at(60)}
        own = {"id": f"{first}-{name}", "traceId": first, "name": name, "value": value, "source": source}
        return kind(**own, **times, environment="default", metadata=None, **more)

    first, second = "trace-1", "trace-2"
    by_ana = {"stringValue": "True", "authorUserId": "ana", "comment": "short"}
    by_judge = {"observationId": "call-1", "comment": "one claim open"}
    scores = [
        score(ScoreV1_Boolean, "helpful", 1, "ANNOTATION", **by_ana),
        score(ScoreV1_Numeric, "faithfulness", 0.75, "EVAL", **by_judge),
        score(ScoreV1_Numeric, "relevance", 0.5, "API", observationId="search-1"),
    ]
    one = [
        observation("guard-1", first, "GUARDRAIL", 0, input=ASKED[0], output="guardrail ok"),
        search("search-1", first, 1, ASKED[0]),
        call("call-1", first, 2, {"role": "assistant", "content": ANSWERS[0]}),
    ]
    below = {"parentObservationId": "agent-2"}
    two = [
        observation("agent-2", second, "AGENT", 0, input={"question": ASKED[1]}, output=ANSWERS[1]),
        # The later span stands first: exports do not promise an order.
        call("call-3", second, 5, ANSWERS[1], **below),
        call("call-2", second, 1, "search", **below),
        search("search-2", second, 2, "moons of Venus", **below),
        search("search-3", second, 3, "moons of Mercury", **below),
    ]
    with (HERE / "langfuse.jsonl").open("w") as file:
        for own in (
            {"id": first, "input": ASKED[0], "output": ANSWERS[0], "observations": one, "scores": scores},
            {"id": second, "input": None, "output": None, "observations": two, "scores": []},
        ):
            common = {"timestamp": at(0), "name": "rag", "htmlPath": "", "latency": 3.0, "totalCost": 0.0}
            trace = TraceWithFullDetails(**own, **common, environment="default", tags=[], public=False)
            file.write(json.dumps(json.loads(trace.json())) + "\n")


def write_phoenix() -> None:
    """Spans as `client.spans.get_spans` returns them, the same as a DataFrame's records, and annotations."""
    import pandas as pd
    from openinference.instrumentation import (
        get_input_attributes,
        get_llm_attributes,
        get_output_attributes,
        get_retriever_attributes,
        get_span_kind_attributes,
    )
    from phoenix.client.__generated__ import v1

    def span(
        name: str, trace: str, kind: str, second: int, parent: str | None, attributes: dict[str, object]
    ) -> v1.Span:
        made = v1.Span(
            name=name,
            context=v1.SpanContext(trace_id=trace, span_id=name),
            span_kind=kind,
            status_code="OK",
            start_time=at(second).isoformat(),
            end_time=at(second + 1).isoformat(),
            attributes={**get_span_kind_attributes(kind.lower()), **attributes},
        )
        return made if parent is None else {**made, "parent_id": parent}

    def search(query: str) -> dict[str, object]:
        found = [
            {"content": text, "id": f"d{n}", "score": 0.9 - n / 10, "metadata": {"date": "2025-01-01"}}
            for n, text in enumerate(DOCUMENTS[query])
        ]
        return {**get_input_attributes(query), **get_retriever_attributes(documents=found)}

    def call(text: str) -> dict[str, object]:
        messages = [{"role": "assistant", "content": text}]
        return {
            **get_llm_attributes(model_name="gpt-5-mini", output_messages=messages),
            **get_output_attributes(text),
        }

    def whole(asked: str, answer: str) -> dict[str, object]:
        return {**get_input_attributes(asked), **get_output_attributes(answer)}

    spans = [
        span("guard1", "t1", "GUARDRAIL", 0, "root1", get_output_attributes("guardrail ok")),
        span("root1", "t1", "CHAIN", 0, None, whole(ASKED[0], ANSWERS[0])),
        span("search1", "t1", "RETRIEVER", 1, "root1", search(ASKED[0])),
        span("call1", "t1", "LLM", 2, "root1", call(ANSWERS[0])),
        span("call3", "t2", "LLM", 5, "root2", call(ANSWERS[1])),
        span("root2", "t2", "AGENT", 0, None, whole(ASKED[1], ANSWERS[1])),
        span("call2", "t2", "LLM", 1, "root2", call("search")),
        span("search2", "t2", "RETRIEVER", 2, "root2", search("moons of Venus")),
        span("search3", "t2", "RETRIEVER", 3, "root2", search("moons of Mercury")),
    ]
    annotations = [
        v1.SpanAnnotationData(
            span_id="root1",
            name="helpful",
            annotator_kind="HUMAN",
            result={"label": "True", "score": 1.0, "explanation": "short"},
        ),
        v1.SpanAnnotationData(
            span_id="call1",
            name="faithfulness",
            annotator_kind="LLM",
            result={"score": 0.75, "explanation": "one claim open"},
        ),
        v1.SpanDocumentAnnotationData(
            span_id="search1",
            document_position=1,
            name="relevance",
            annotator_kind="LLM",
            result={"label": "irrelevant"},
        ),
    ]
    for name, rows in (("phoenix_spans", spans), ("phoenix_annotations", annotations)):
        (HERE / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    # As get_spans_dataframe() names the columns; its documents are a list under one name.
    flat = []
    for row in spans:
        own = {
            f"attributes.{k}": v
            for k, v in row["attributes"].items()
            if not k.startswith("retrieval.documents.")
        }
        if row["span_kind"] == "RETRIEVER":
            own["attributes.retrieval.documents"] = [
                {"document.content": text, "document.id": f"d{n}"}
                for n, text in enumerate(DOCUMENTS[row["attributes"]["input.value"]])
            ]
        context = {f"context.{k}": v for k, v in row["context"].items()}
        flat.append(
            {
                **context,
                "parent_id": row.get("parent_id"),
                "span_kind": row["span_kind"],
                "start_time": row["start_time"],
                **own,
            }
        )
    pd.DataFrame(flat).to_json(HERE / "phoenix_frame.jsonl", orient="records", lines=True)


def write_otlp() -> None:
    """One export of the SDK's spans, in the JSON that a collector writes: ids in hexadecimal."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("rag")

    def run(
        name: str,
        operation: str,
        second: int,
        parent: object,
        attributes: dict[str, object],
        score: float | None = None,
    ) -> object:
        context = None if parent is None else trace.set_span_in_context(parent)
        own = {gen_ai.GEN_AI_OPERATION_NAME: operation, **attributes}
        made = tracer.start_span(name, context, attributes=own, start_time=int(at(second).timestamp() * 1e9))
        if score is not None:
            event = {
                gen_ai.GEN_AI_EVALUATION_NAME: "faithfulness",
                gen_ai.GEN_AI_EVALUATION_SCORE_VALUE: score,
            }
            made.add_event("gen_ai.evaluation.result", event)
        made.end(int(at(second + 1).timestamp() * 1e9))
        return made

    def message(role: str, text: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    def search(query: str, parent: object, second: int) -> None:
        found = [
            {"id": f"d{n}", "score": 0.9 - n / 10, "content": text} for n, text in enumerate(DOCUMENTS[query])
        ]
        own = {
            gen_ai.GEN_AI_RETRIEVAL_QUERY_TEXT: query,
            gen_ai.GEN_AI_RETRIEVAL_DOCUMENTS: json.dumps(found),
        }
        run("retrieval", "retrieval", second, parent, own)

    def call(text: str, parent: object, second: int, score: float | None = None) -> None:
        own = {
            gen_ai.GEN_AI_REQUEST_MODEL: "gpt-5-mini",
            gen_ai.GEN_AI_OUTPUT_MESSAGES: message("assistant", text),
        }
        run("chat gpt-5-mini", "chat", second, parent, own, score)

    root = run("rag", "invoke_agent", 0, None, {gen_ai.GEN_AI_INPUT_MESSAGES: message("user", ASKED[0])})
    run("guard", "execute_tool", 0, root, {})
    search(ASKED[0], root, 1)
    call(ANSWERS[0], root, 2, score=0.75)
    root = run("rag", "invoke_agent", 0, None, {gen_ai.GEN_AI_INPUT_MESSAGES: message("user", ASKED[1])})
    call("search", root, 1)
    search("moons of Venus", root, 2)
    search("moons of Mercury", root, 3)
    call(ANSWERS[1], root, 5)
    found = MessageToDict(encode_spans(exporter.get_finished_spans()))
    for resource in found["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for made in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in made:
                        made[name] = base64.b64decode(made[name]).hex()
    (HERE / "otlp.json").write_text(json.dumps(found, indent=1))


def write_langsmith() -> None:
    """Runs and feedback, as the client returns them, a line each; outputs as LangChain's tracer writes them."""
    from uuid import NAMESPACE_DNS, uuid5

    from langchain_core.documents import Document
    from langsmith.schemas import Feedback, FeedbackSourceBase, Run

    def named(name: str) -> object:
        return uuid5(NAMESPACE_DNS, name)

    def run(name: str, trace: str, parent: str | None, kind: str, second: int, **more: object) -> Run:
        return Run(
            id=named(name), name=name, trace_id=named(trace), parent_run_id=named(parent) if parent else None,
            run_type=kind, start_time=at(second), dotted_order=name, **more,
        )  # fmt: skip

    def search(name: str, trace: str, second: int, query: str) -> Run:
        found = [
            Document(page_content=text, metadata={"source": "kb"}).model_dump() for text in DOCUMENTS[query]
        ]
        return run(
            name, trace, trace, "retriever", second, inputs={"query": query}, outputs={"documents": found}
        )

    def call(name: str, trace: str, second: int, text: str) -> Run:
        outputs = {"generations": [[{"text": text, "type": "ChatGeneration"}]]}
        extra = {"metadata": {"ls_model_name": "gpt-5-mini"}}
        return run(name, trace, trace, "llm", second, inputs={}, outputs=outputs, extra=extra)

    runs = [
        run("rag-1", "rag-1", None, "chain", 0, inputs={"question": ASKED[0]}, outputs={"answer": ANSWERS[0]}),
        run("guard-1", "rag-1", "rag-1", "tool", 0, inputs={"input": ASKED[0]}, outputs={"output": "guardrail ok"}),
        search("search-1", "rag-1", 1, ASKED[0]),
        call("call-1", "rag-1", 2, ANSWERS[0]),
        run("rag-2", "rag-2", None, "chain", 0, inputs={"question": ASKED[1]}, outputs={"answer": ANSWERS[1]}),
        call("call-3", "rag-2", 5, ANSWERS[1]),
        call("call-2", "rag-2", 1, "search"),
        search("search-2", "rag-2", 2, "moons of Venus"),
        search("search-3", "rag-2", 3, "moons of Mercury"),
    ]  # fmt: skip

    def feedback(
        run_name: str, key: str, score: float, source: FeedbackSourceBase, comment: str | None = None
    ) -> Feedback:
        return Feedback(
            id=named(key), created_at=at(9), modified_at=at(9), run_id=named(run_name), trace_id=named("rag-1"), key=key,
            score=score, comment=comment, feedback_source=source,
        )  # fmt: skip

    person = FeedbackSourceBase(type="app", user_name="ana")
    given = [
        feedback("rag-1", "helpful", 1.0, person, "short"),
        feedback("call-1", "faithfulness", 0.75, FeedbackSourceBase(type="model"), "one claim open"),
        feedback("search-1", "relevance", 0.5, FeedbackSourceBase(type="api")),
    ]
    for path, rows in (("langsmith_runs.jsonl", runs), ("langsmith_feedback.jsonl", given)):
        lines = [row.model_dump_json(exclude_none=True) + "\n" for row in rows]
        (HERE / path).write_text("".join(lines))


if __name__ == "__main__":
    globals()[f"write_{sys.argv[1]}"]()
