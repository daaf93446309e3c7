"""The progress of a batch as a document, and the table of its strata. Nothing here reveals a label."""

from collections.abc import Iterator, Mapping
from typing import Any

from judge.commands import command
from judge.document.blocks import Block, Cell, Document, Notes, Paragraph, Section, Table, heads
from judge.document.cells import interval, number


def as_document(batch: Mapping[str, Any]) -> Document:
    """Return the progress, pace and checks of each annotator, the strata, and the agreement so far."""
    state = f"closed {batch['closed'][:10]}" if batch["closed"] else "open"
    about = []
    if assisted := batch["options"].get("assisted"):
        about.append(("assisted, not blind", f"people see predictions in {assisted}"))
    strata = [[s["stratum"], s["units"], format_weight(s)] for s in batch["strata"]]
    columns = heads("text", "stratum") + heads("number", "units", "weight")
    sections = [
        Section("people", "Annotators", [_people(batch), Notes(list(_remarks(batch)))]),
        Section("strata", "Strata", [Table("strata", "", columns, strata)]),
        Section("lead", "For the lead", list(_for_the_lead(batch))),
        Section("agreement", "Agreement so far", list(_agreement(batch))),
    ]
    return Document(f"{batch['batch']}: {batch['task']}, {state}", about, sections=sections)


def list_strata(strata: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the number of units in each stratum, and the units drawn from it with their weights."""
    rows: list[list[Cell]] = [[name, n["frame"], n["drawn"], format_weight(n)] for name, n in strata.items()]
    return Table("strata", "", heads("text", "stratum") + heads("number", "frame", "drawn", "weight"), rows)


def format_weight(stratum: Mapping[str, Any]) -> str:
    """Return the weight of the units as text: one number, or the smallest and the largest weight."""
    low, high = stratum["weight_low"], stratum["weight_high"]
    # Weights differ within a stratum if its units were drawn with unequal probabilities.
    return number(low) if low == high else interval(low, high)


def format_part(person: Mapping[str, Any], right: str, of: str) -> str:
    """Format two counts as a fraction, such as 3/4. Return an empty string if the second count is 0."""
    return f"{person[right]}/{person[of]}" if person[of] else ""


def _people(batch: Mapping[str, Any]) -> Table:
    rows: list[list[Cell]] = [
        [
            *(p["annotator"], f"{p['done']}/{p['units']}", p["skipped"], p["flagged"]),
            *(p["units_per_hour"], p["median_seconds"]),
            *(f"{p['active_seconds'] / 60:.1f}", f"{p['idle_seconds'] / 60:.1f}"),
            format_part(p, "training_right", "training_answered")
            + (" failed" if p["training_passed"] is False else ""),
            format_part(p, "attention_right", "attention_answered"),
            format_part(p, "repeats_same", "repeats_answered"),
        ]
        for p in batch["annotators"]
    ]
    columns = heads("text", "annotator") + heads(
        "number", "done", "skipped", "flagged", "per hour", "median s"
    )
    columns += heads("number", "active min", "idle min", "training", "attention", "repeats")
    return Table("people", "", columns, rows)


def _remarks(batch: Mapping[str, Any]) -> Iterator[str]:
    for p in batch["annotators"]:
        if n := p["second_layer_open"]:
            yield f"{p['annotator']}: the choice to keep or revise is missing for {n:,} units"
        if p["stopped"]:
            yield f"{p['annotator']}: excluded ({p['stopped']}); no result uses these labels"
    yield from batch["too_fast"]


def _for_the_lead(batch: Mapping[str, Any]) -> Iterator[Block]:
    adjudication, waiting = batch["adjudication"], batch["for_the_lead"]
    if adjudication["units"]:
        yield Paragraph(f"\nadjudicated: {adjudication['decided']} of {adjudication['units']}")
    if adjudication["policy"]:
        yield Paragraph(f"policy: {adjudication['policy']}")
    parts = [f"people disagree on {waiting['differ']} units"] if waiting["differ"] else []
    parts += [f"everybody skipped or flagged {waiting['stuck']} units"] if waiting["stuck"] else []
    if parts:
        decide = command("annotate adjudicate", batch["batch"], "--as", "NAME")
        yield Paragraph(f"\nfor the lead: {', '.join(parts)}; to decide them: {decide}")
    for flag in batch["flags"]:
        more = f" ({flag['note']})" if flag["note"] else ""
        text = f"flag by {flag['annotator']} on {flag['unit']}: {flag['flag']}{more}"
        # A note with several lines could look like other output.
        yield Paragraph(" ".join(text.split()))


def _agreement(batch: Mapping[str, Any]) -> Iterator[Block]:
    rows: list[list[Cell]] = [
        [
            m["field"],
            m["measure"],
            ", ".join(m["annotators"] or []) or "all",
            m["value"],
            m["n_units"],
            m["reason"],
        ]
        for m in batch["measures"]
    ]
    columns = heads("text", "field", "measure", "who") + heads("number", "value", "units")
    # Labels that were given after an exposure would agree too well.
    if rows:
        yield Table("agreement", "Agreement so far (blind labels)", columns + heads("text", "why not"), rows)
