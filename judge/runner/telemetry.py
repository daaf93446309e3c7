"""OpenTelemetry for the calls of a run, by the GenAI conventions: a span a call, and histograms of duration and tokens.

https://opentelemetry.io/docs/specs/semconv/gen-ai/ (spans: `chat MODEL`, kind client; metrics:
`gen_ai.client.operation.duration` and `gen_ai.client.token.usage`). Where they are sent, and as which service, say the
usual variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER).
Spans hold no prompt, no reply and no message of an error. The libraries are an extra: `adjudge[otel]`.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from judge.errors import MissingExtra
from judge.providers.base import Provider
from judge.providers.replicas import replicas
from judge.types import Reply, Request

DURATION_BOUNDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Seconds; these and the next are the boundaries that the conventions ask for."""
TOKEN_BOUNDS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
FLUSH_MS = 10_000


class ExportFaults(logging.Handler):
    """What the libraries say of a collector that is gone or slow: kept here, since they say it at every try.

    `lost` counts what was given up, `first` is the first word of it.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lost, self.first = 0, ""

    def emit(self, record: logging.LogRecord) -> None:
        """One of their messages."""
        self.lost += 1
        self.first = self.first or record.getMessage()


@contextmanager
def _heard() -> Iterator[ExportFaults]:
    logger, faults = logging.getLogger("opentelemetry"), ExportFaults()
    passed_on, logger.propagate = logger.propagate, False
    logger.addHandler(faults)
    try:
        yield faults
    finally:
        logger.removeHandler(faults)
        logger.propagate = passed_on


@contextmanager
def telemetry(provider: Provider, model: str) -> Iterator[ExportFaults]:
    """Watch every call of a provider, of each of its replicas, until the end; what was lost is known then.

    A collector that does not answer costs the run nothing but FLUSH_MS for each of both at its end. Raises
    MissingExtra.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as e:
        raise MissingExtra("--otel needs OpenTelemetry: pip install 'adjudge[otel]'") from e
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "adjudge"}
    resource = Resource.create(named)
    spans = TracerProvider(resource=resource)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    metrics = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource)
    members = replicas(provider)
    before = [member.complete for member in members]
    for member in members:
        # On the object, not around it: what a provider can do beside its calls is asked of the provider itself.
        member.complete = _watched(member, model, spans, metrics)  # type: ignore[method-assign, assignment]
    with _heard() as faults:
        try:
            yield faults
        finally:
            for member, complete in zip(members, before, strict=True):
                member.complete = complete  # type: ignore[method-assign]
            spans.force_flush(FLUSH_MS)
            spans.shutdown()
            metrics.shutdown(FLUSH_MS)


def _watched(
    provider: Provider, model: str, spans: Any, metrics: Any
) -> Callable[[Request], Coroutine[Any, Any, Reply]]:
    from opentelemetry.trace import SpanKind, Status, StatusCode

    tracer, meter = spans.get_tracer("adjudge"), metrics.get_meter("adjudge")
    lasted = meter.create_histogram(
        "gen_ai.client.operation.duration", "s", "GenAI operation duration",
        explicit_bucket_boundaries_advisory=DURATION_BOUNDS,
    )  # fmt: skip
    used = meter.create_histogram(
        "gen_ai.client.token.usage", "{token}", "Number of input and output tokens used",
        explicit_bucket_boundaries_advisory=TOKEN_BOUNDS,
    )  # fmt: skip
    complete = provider.complete
    vendor, _, name = model.partition("/")
    common: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": vendor,
        "gen_ai.request.model": name,
        **_server(provider),
    }

    async def call(request: Request) -> Reply:
        asked = {
            "gen_ai.request.max_tokens": request.max_tokens,
            "gen_ai.request.temperature": request.temperature,
            "gen_ai.request.seed": request.seed,
        }
        given = {**common, **{k: v for k, v in asked.items() if v is not None}}
        begun, told = time.monotonic(), dict(common)
        with tracer.start_as_current_span(
            f"chat {name}", kind=SpanKind.CLIENT, attributes=given, record_exception=False, set_status_on_exception=False
        ) as span:  # fmt: skip
            try:
                reply: Reply = await complete(request)
            except BaseException as e:
                told["error.type"] = type(e).__name__
                span.set_attribute("error.type", type(e).__name__)
                span.set_status(Status(StatusCode.ERROR))
                raise
            finally:
                lasted.record(time.monotonic() - begun, told)
            if reply.resolved_model:
                told["gen_ai.response.model"] = reply.resolved_model
                span.set_attribute("gen_ai.response.model", reply.resolved_model)
            span.set_attribute("gen_ai.response.finish_reasons", [reply.stop])
            for kind, n in (("input", reply.usage.input_tokens), ("output", reply.usage.output_tokens)):
                if n is not None:
                    span.set_attribute(f"gen_ai.usage.{kind}_tokens", n)
                    used.record(n, {**told, "gen_ai.token.type": kind})
            return reply

    return call


def _server(provider: Provider) -> dict[str, Any]:
    url = provider.describe().get("base_url")
    if not isinstance(url, str):
        return {}
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return {"server.address": parts.hostname or "", **({"server.port": port} if port else {})}
