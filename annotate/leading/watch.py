"""Describe the progress, pace, checks, current agreement and flags of a batch in words, for its lead.

Nothing here reveals a label, because the person who monitors a batch may also be labelling it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from annotate.leading.progress import show_batch
from judge.commands import command
from judge.document.terminal import align_rows
from judge.store import Store

BAR = 10
NAME = 14
RECENT = 300
"""A person counts as working if their last event is at most this many seconds old."""


@dataclass(frozen=True, slots=True)
class WatchSection:
    """One section of the screen: a heading and lines of text. A section with warnings is highlighted."""

    title: str
    lines: Sequence[str]
    warns: bool = False


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
        parts.append(f"{'at least ' if unknown else ''}{duration(max(left) * 3600)} left")
    return "   ".join(parts)


def sections(document: dict[str, Any], at: datetime) -> list[WatchSection]:
    """Return the sections of the screen, the most urgent first.

    `at` is the current time. The sections contain the texts of flags, which are untrusted input.
    """
    people = document["annotators"]
    shown = [WatchSection("To look at", list(_urgent(document)), warns=True)]
    progress = [["", "", "done", "per hour", "left", "last", "skip", "flag"]]
    checks = [["", "training", "attention", "repeats", "too fast"]]
    for p in people:
        left = _hours(p)
        progress.append(
            [
                _truncate(p["annotator"], NAME), _bar(p["done"], p["units"]), f"{p['done']:,}/{p['units']:,}",
                "" if p["units_per_hour"] is None else f"{p['units_per_hour']:,.0f}",
                "" if left is None else duration(left * 3600),
                "never" if (ago := _ago(p, at)) is None else f"{duration(ago)} ago",
                _number(p["skipped"]), _number(p["flagged"]),
            ]
        )  # fmt: skip
        checks.append(
            [
                _truncate(p["annotator"], NAME), part(p, "training_right", "training_answered"),
                part(p, "attention_right", "attention_answered"), part(p, "repeats_same", "repeats_answered"),
                part(p, "fast", "timed"),
            ]
        )  # fmt: skip
    shown.append(WatchSection("Progress", _align(progress)))
    if any(any(row[1:]) for row in checks[1:]):
        shown.append(WatchSection("Checks (correct or consistent answers)", _align(checks)))
    shown.append(WatchSection("Agreement so far (blind labels)", list(_agreement(document["measures"]))))
    flags = document["flags"][::-1]
    lines = [
        f"{f['annotator']}, {f['unit']}: {f['flag']}" + (f" ({f['note']})" if f["note"] else "")
        for f in flags
    ]
    shown.append(WatchSection(f"Flags ({len(lines):,})", lines or ["none"]))
    return [section for section in shown if section.lines]


def duration(seconds: float) -> str:
    """Format a duration in its largest unit: 40 s, 12 min, 3.5 h, 2 d."""
    if seconds < 60:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} d"


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


def _bar(done: int, units: int) -> str:
    full = BAR * done // units if units else 0
    return "█" * full + "░" * (BAR - full)


def part(person: dict[str, Any], right: str, of: str) -> str:
    """Format two counts as a fraction, such as 3/4. Return an empty string if the second count is 0."""
    return f"{person[right]}/{person[of]}" if person[of] else ""


def _number(value: int | None) -> str:
    return f"{value:,}" if value else ""


def _truncate(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows with aligned columns. The first column is left-aligned, and the others are right-aligned."""
    return align_rows(rows, ["left", *["right"] * (len(rows[0]) - 1)])
