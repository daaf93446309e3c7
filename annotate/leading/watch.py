"""Describe the progress, pace, checks, current agreement and flags of a batch in words, for its lead.

Nothing here reveals a label, because the person who monitors a batch may also be labelling it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from annotate.leading.progress import show_batch
from annotate.leading.progress_document import format_part
from judge.commands import command
from judge.console import shorten
from judge.document.blocks import Cell, Notes, Section, Table, heads
from judge.document.cells import draw_share, format_duration, interval, number
from judge.store import Store

URGENT = "urgent"
"""The key of the section that is highlighted."""
DEVIATIONS = (
    "Agreement of the others, minus that with each person; and the share of the person's commonest label"
)
NAME = 14
RECENT = 300
"""A person counts as working if their last event is at most this many seconds old."""


def look(store: Store, name: str) -> dict[str, Any]:
    """Read the progress of a batch from one snapshot of the file."""
    # Without a transaction, a label could arrive between two queries, so that only one of them counts it.
    store.conn.execute("BEGIN")
    try:
        return show_batch(store, name)
    finally:
        store.conn.execute("ROLLBACK")


def title(document: dict[str, Any], at: datetime) -> str:
    """Return one line about the batch: its progress, the number of people at work, and the remaining time."""
    people = document["annotators"]
    done, units = (sum(p[key] for p in people) for key in ("done", "units"))
    busy = sum((ago := _ago(p, at)) is not None and ago < RECENT for p in people)
    state = f"closed {document['closed'][:10]}" if document["closed"] else f"{busy} at work"
    parts = [f"{document['batch']}", f"{done:,}/{units:,} done ({_percent(done, units)})", state]
    left = [hours for p in people if (hours := _hours(p)) is not None]
    # A person who has not begun has no pace, so the remaining time is a lower bound.
    unknown = any(p["open"] and _hours(p) is None and not p["stopped"] for p in people)
    if left and not document["closed"]:
        parts.append(f"{'at least ' if unknown else ''}{format_duration(max(left) * 3600)} left")
    return "   ".join(parts)


def sections(document: dict[str, Any], at: datetime) -> list[Section]:
    """Return the sections of the screen, the most urgent first.

    `at` is the current time. The sections contain the texts of flags, which are untrusted input.
    """
    flags = [
        f"{f['annotator']}, {f['unit']}: {f['flag']}" + (f" ({f['note']})" if f["note"] else "")
        for f in document["flags"][::-1]
    ]
    urgent, checks = list(_urgent(document)), _checks(document)
    shown = [
        Section(URGENT, "To look at", [Notes(urgent)] if urgent else []),
        Section("progress", "Progress", [_progress(document, at)]),
        Section("checks", "Checks (correct or consistent answers)", [checks] if checks else []),
        Section(
            "agreement", "Agreement so far (blind labels)", [Notes(list(_agreement(document["measures"])))]
        ),
        Section("deviations", DEVIATIONS, [_deviations(document)] if document["deviations"] else []),
        # A note with several lines could look like other entries.
        Section(
            "flags",
            f"Flags ({len(flags):,})",
            [Notes([" ".join(flag.split()) for flag in flags] or ["none"])],
        ),
    ]
    return [section for section in shown if section.blocks]


def _progress(document: dict[str, Any], at: datetime) -> Table:
    rows: list[list[Cell]] = []
    for p in document["annotators"]:
        left, ago = _hours(p), _ago(p, at)
        rows.append(
            [
                *(
                    shorten(p["annotator"], NAME),
                    draw_share(p["done"], p["units"]),
                    f"{p['done']:,}/{p['units']:,}",
                ),
                "" if p["units_per_hour"] is None else f"{p['units_per_hour']:,.0f}",
                "" if left is None else format_duration(left * 3600),
                "never" if ago is None else f"{format_duration(ago)} ago",
                *(p["skipped"] or None, p["flagged"] or None),
            ]
        )
    columns = heads("text", "", "") + heads("number", "done", "per hour", "left", "last", "skip", "flag")
    return Table("progress", "", columns, rows)


def _checks(document: dict[str, Any]) -> Table | None:
    """Return the results of the checks, or None if nobody has answered one."""
    rows: list[list[Cell]] = [
        [
            *(shorten(p["annotator"], NAME), format_part(p, "training_right", "training_answered")),
            format_part(p, "attention_right", "attention_answered"),
            *(format_part(p, "repeats_same", "repeats_answered"), format_part(p, "fast", "timed")),
        ]
        for p in document["annotators"]
    ]
    columns = heads("text", "") + heads("number", "training", "attention", "repeats", "too fast")
    return Table("checks", "", columns, rows) if any(any(row[1:]) for row in rows) else None


def _deviations(document: dict[str, Any]) -> Table:
    rows: list[list[Cell]] = [
        [
            *(shorten(d["person"], NAME), d["field"], d["n_units"]),
            "" if d["low"] is None else f"{number(d['value'])} ({interval(d['low'], d['high'])})",
            *(d["commonest"], d["others"]),
        ]
        for d in document["deviations"]
    ]
    columns = heads("text", "", "field") + heads("number", "units", "difference")
    return Table("deviations", "", columns + heads("share", "own share", "others' share"), rows)


def _urgent(document: dict[str, Any]) -> Iterator[str]:
    for p in document["annotators"]:
        who = p["annotator"]
        if p["stopped"]:
            yield f"{who} is stopped: {p['stopped']}"
        if p["training_passed"] is False:
            yield f"{who} failed the training: {p['training_right']} of {p['training_answered']} correct"
        if missed := p["attention_answered"] - p["attention_right"]:
            yield f"{who} missed {missed} of {p['attention_answered']} attention checks"
        if p["second_layer_open"]:
            yield f"{who} must still keep or revise the labels of {p['second_layer_open']:,} units"
    yield from document["too_fast"]
    look_at = command("annotate view", "--batch", document["batch"], "-o", "units.html")
    yield from (
        f"{d['text']}. Look at their units and talk to them: {look_at}"
        for d in document["deviations"]
        if d["is_named"]
    )
    waiting = document["for_the_lead"]
    if waiting["differ"]:
        yield f"people disagree on {waiting['differ']:,} units: {command('annotate adjudicate', document['batch'], '--as', 'NAME')}"
    if waiting["stuck"]:
        yield f"everybody skipped or flagged {waiting['stuck']:,} units"
    if assisted := document["options"].get("assisted"):
        yield f"assisted, not blind: people see predictions in {assisted}"


def _agreement(measures: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not measures:
        yield "no unit has the labels of two people yet"
    for m in measures:
        value = m["reason"] if m["value"] is None else f"{m['value']:.3f}"
        covered = "" if m["coverage"] is None else f", coverage {m['coverage']:.2f}"
        yield f"{m['field']}: {m['measure'].replace('_', ' ')} {value} (n = {m['n_units']:,}{covered})"


def _hours(person: dict[str, Any]) -> float | None:
    """Return the hours that a person's open units will take at the person's current pace."""
    if not person["open"] or person["stopped"] or not person["units_per_hour"]:
        return None
    return float(person["open"] / person["units_per_hour"])


def _ago(person: dict[str, Any], at: datetime) -> float | None:
    last = person["last_event"]
    return None if last is None else (at - datetime.fromisoformat(last)).total_seconds()


def _percent(part: int, of: int) -> str:
    return f"{100 * part // of} %" if of else "no units"
