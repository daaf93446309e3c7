"""A run as a document: its settings and counts, its labels, and their agreement with gold labels."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.document.blocks import Block, Document, Paragraph, Section, list_measures
from judge.document.cells import format_dollars
from judge.scores.gold import FieldResult

ABOUT = ("run_id", "task", "model", "resolved_model", "options", "provider", "started", "finished")
STATUSES = ("ok", "unparsed", "refused", "truncated", "failed")


def as_document(
    run: Mapping[str, Any],
    results: Sequence[FieldResult],
    *,
    origin: str | None,
    unparsed: str | None,
    probes: Mapping[str, Any] | None,
    maps: Mapping[str, Any],
) -> Document:
    """Return the run. `unparsed` is a reply without a label, `probes` the test calls, and `maps` the renamed labels."""
    about = [(name, str(run[name])) for name in ABOUT]
    if origin:
        about.append(("origin", origin))
    counts = " · ".join(f"{run[status]} {status}" for status in STATUSES)
    cost = f"; {format_dollars(run['cost_usd'])}" if run["cost_usd"] is not None else ""
    about.append(("units", f"{run['units']} ({counts}); {_tokens(run)}{cost}"))
    if unparsed is not None:
        about.append(("an unparsed reply", repr(unparsed)))
    if probes is not None:
        about.append(("test calls to the server", describe_probes(probes)))
    about += [(f"labels for '{field}' were mapped on import", str(words)) for field, words in maps.items()]
    return Document(
        "", about, sections=[Section("gold", "Agreement with gold labels", list(list_fields(results)))]
    )


def list_fields(results: Sequence[FieldResult]) -> Iterator[Block]:
    """Yield the label counts of each field, and the agreement with gold labels or the reason why there is none."""
    for result in results:
        counts = ", ".join(f"{value} {n}" for value, n in result.labels.items())
        head = f"{result.field} ({result.level}): {counts or 'no labels'}"
        if result.why_none:
            yield Paragraph(f"\n{head}\n  no agreement: {result.why_none}")
        else:
            yield list_measures(f"gold_{result.field}", head, result.measures)


def describe_probes(probes: Mapping[str, Any]) -> str:
    """Return the number, tokens and cost of the test calls to the server."""
    lost = f", {probes['lost']} of them lost" if probes["lost"] else ""
    cost = "" if probes["cost_usd"] is None else f"; {format_dollars(probes['cost_usd'])}"
    return f"{probes['calls']} calls{lost}; {_tokens(probes)}{cost}"


def _tokens(counted: Mapping[str, Any]) -> str:
    return f"{counted['input_tokens']:,} tokens in, {counted['output_tokens']:,} out"
