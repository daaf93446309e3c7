"""The estimated cost and time of a run as a document."""

from collections.abc import Iterator
from typing import Any

from judge.document.blocks import Document, Notes, Section
from judge.document.cells import format_dollars, format_duration


def as_document(task: str, model: str, e: Any) -> Document:
    """Return the estimate `e`: calls, tokens, cost, time, and what it is based on."""
    title = f"{task} with {model}: {e.calls:,} calls for {e.units:,} units"
    return Document(title, list(_about(e)), sections=[Section("basis", "Based on", [Notes(list(e.basis))])])


def _about(e: Any) -> Iterator[tuple[str, str]]:
    yield (
        "tokens",
        f"about {e.input_tokens:,} in, {e.output_tokens:,} out (at most {e.most_output_tokens:,} out)",
    )
    if e.price is None:
        yield "cost", "no price is known for this model; to set a price, use --prices FILE"
    # A model in this process costs nothing, and a server may have a price of 0.
    elif e.most == 0:
        yield "cost", f"free of charge ({e.price.source})"
    else:
        batch = "no batch price" if e.batch is None else f"as a batch {format_dollars(e.batch)}"
        # Not every vendor charges less for a prompt that it has cached.
        saved = "" if e.cached == e.online else f", with a cached prompt prefix {format_dollars(e.cached)}"
        most = "" if e.most is None else f"; at most {format_dollars(e.most)} if no call has to be repeated"
        yield "cost", f"online {format_dollars(e.online)}{saved}; {batch}{most} ({e.price.source})"
    yield "time", e.speed if e.seconds is None else f"about {format_duration(e.seconds)}, {e.speed}"
