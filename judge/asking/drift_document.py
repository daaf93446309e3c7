"""A drift check, and the draw of its anchor units, as documents."""

from collections.abc import Iterator

from judge.asking.anchors import CHANGED, REPLIES, AnchorDraw
from judge.asking.drift import DriftCheck
from judge.document.blocks import Document, Notes, Section
from judge.document.cells import difference, interval, number, share

ENOUGH = 0.8
"""If the power is below this value, the output says that the set is too small or too noisy."""
MOST_NAMED = 5


def describe_draw(drawn: AnchorDraw) -> Document:
    """Return the drawn set: its size, its noise, and how likely a check detects a change."""
    about = [
        (
            f"set {drawn.number}",
            f"{drawn.units:,} anchors, {drawn.labelled:,} of them with a human or gold label, {REPLIES} replies each",
        ),
        (
            "reply noise",
            f"{share(drawn.noise)}; a check detects a change in {share(CHANGED)} of the anchors with probability {drawn.power:.2f} (simulated)",
        ),
    ]
    if drawn.power < ENOUGH:
        advice = (
            f"that is less than {ENOUGH:g}: draw more anchors (--anchors N --again), or lower the temperature"
        )
        about.append(("", advice))
    return Document("", about)


def as_document(result: DriftCheck) -> Document:
    """Return the check: how many replies differ, which labels changed, and the agreement with people."""
    return Document("", list(_about(result)), sections=[Section("notes", "Notes", [Notes(result.notes)])])


def _about(result: DriftCheck) -> Iterator[tuple[str, str]]:
    lost = f"; {result.left_out:,} left out, because calls for them failed" if result.left_out else ""
    yield (
        f"set {result.number}, check {result.check}",
        f"{result.units:,} anchors, {REPLIES} replies each{lost}",
    )
    first, now = result.apart
    yield "differing pairs", f"{share(now)} of a first and a new reply ({share(first)} of two first replies)"
    if result.changed:
        shown = result.changed[:MOST_NAMED]
        more = len(result.changed) - len(shown)
        some = ", ".join(f"{unit} ({first_label} -> {now_label})" for unit, first_label, now_label in shown)
        text = some + (f" and {more:,} more" if more else "")
        yield f"the most frequent label changed for {len(result.changed):,} anchors", text
    d = result.difference
    if d.value is None:
        yield "the change in agreement with people is undefined", str(d.reason)
        return
    span = f" ({interval(d.low, d.high)})" if d.low is not None else ""
    yield (
        f"agreement with {result.reference}",
        f"{number(result.first.value)}, now {number(result.now.value)}, change {difference(d.value)}{span} on {d.n_units:,} anchors",
    )
