"""Read the annotators, units and design weights of annotation batches."""

from dataclasses import dataclass

from judge.errors import UsageError
from judge.store import Store
from judge.store.export import read_stored_task

DRAWN = "SELECT unit_id, weight FROM batch_units WHERE batch = ? AND role = 'sample' AND weight IS NOT NULL"


@dataclass(frozen=True)
class Members:
    """A batch's annotators and sampled units, excluding training and attention units."""

    people: frozenset[str]
    units: frozenset[str]


def members(store: Store, name: str) -> Members:
    """Return a batch's annotators and sampled units. Raises UsageError if the study has no such batch."""
    check_batch(store, name, "omit --batch to use all labels")
    people = store.conn.execute("SELECT DISTINCT annotator_id FROM assignments WHERE batch = ?", [name])
    units = store.conn.execute("SELECT unit_id FROM batch_units WHERE batch = ? AND role = 'sample'", [name])
    return Members(frozenset(p for (p,) in people), frozenset(u for (u,) in units))


def check_batch(store: Store, name: str, hint: str) -> None:
    """Raise UsageError with this hint if the study has no batch of this name."""
    # A study in which nobody has annotated anything has no such table.
    exists = store.conn.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone()
    query = "SELECT batch FROM batches ORDER BY created"
    batches = [str(row[0]) for row in store.conn.execute(query)] if exists else []
    if name not in batches:
        listed = f"available: {', '.join(batches)}" if batches else "the study has no batches"
        raise UsageError(f"{store.path}: no batch '{name}'; {listed}; {hint}")


def asking(store: Store, field: str) -> list[tuple[str, str]]:
    """Return (batch, purpose) for each batch whose task has this field, oldest first."""
    rows = store.conn.execute("SELECT batch, task, purpose FROM batches ORDER BY created").fetchall()
    return [
        (batch, purpose) for batch, task, purpose in rows if field in read_stored_task(store, task).fields
    ]


def read_sampled_units(store: Store, name: str | None, field: str) -> set[str]:
    """Return the units that a batch drew as a sample of the whole study.

    If `name` is None, return the sampled units of all batches with the field.

    Batches that were created after the first queue are ignored. A queue requests selected units, so later
    batches are not random samples.
    """
    units: set[str] = set()
    for batch, purpose in asking(store, field):
        # A queue removes the units that it requests, so a later draw is not a random sample.
        if purpose == "queue":
            break
        if name in (None, batch):
            units |= {str(unit) for unit, _ in store.conn.execute(DRAWN, [batch])}
    return units


def weights(store: Store, name: str | None, field: str) -> dict[str, float]:
    """Return the design weight of each sampled unit in one batch, or in all batches with the field.

    The result is empty if nothing was sampled, or if all weights are equal.
    """
    by_unit: dict[str, float] = {}
    for batch, purpose in asking(store, field):
        if name not in (None, batch):
            continue
        # Units that were chosen because the judge was unsure of them have no inclusion probability.
        if purpose == "queue":
            return {}
        by_unit |= _read_weights(store, batch)
    return _uneven(by_unit)


def _read_weights(store: Store, batch: str) -> dict[str, float]:
    """Return the sampled units of a batch with their weights, scaled to a mean of 1."""
    stored_weights = dict(store.conn.execute(DRAWN, [batch]).fetchall())
    # With a mean of 1, each of several batches represents the study in proportion to its number of units.
    total = sum(stored_weights.values())
    return {str(unit): weight * len(stored_weights) / total for unit, weight in stored_weights.items()}


def _uneven(weights: dict[str, float]) -> dict[str, float]:
    """Return the weights, or an empty dict if all are equal."""
    # The tolerance covers the rounding of stored weights.
    even = not weights or max(weights.values()) - min(weights.values()) <= 1e-9
    return {} if even else weights


@dataclass(frozen=True)
class SampleDesign:
    """How the labelled units were chosen.

    `honest` contains the units that were drawn with equal probability and therefore represent all units.
    `notes` states which units were left out, and what is not recorded.
    """

    honest: frozenset[str]
    notes: tuple[str, ...]


def design(store: Store, field: str, units: frozenset[str], *, people: bool) -> SampleDesign:
    """Return which of these labelled units can be treated as a random sample of the whole study.

    All of the units are returned if the study does not record how they were chosen. This is always the case
    for gold labels (`people` is False).
    """
    # Gold labels come with the data, and nothing records why these units have them.
    if not people:
        return SampleDesign(units, ("how the units with gold labels were chosen is not recorded",))
    batches = asking(store, field)
    if not batches:
        return SampleDesign(units, ("how the units that people labelled were chosen is not recorded",))
    drawn: set[str] = set()
    for batch, purpose in batches:
        # A queue, training and attention units, and everything drawn after a queue represent only themselves.
        if purpose == "queue":
            break
        query = "SELECT 1 FROM batches WHERE batch = ? AND json_extract(options, '$.where') IS NOT NULL"
        if store.conn.execute(query, [batch]).fetchone():
            # This batch was drawn from only a part of the units, so it says nothing about the others.
            continue
        batch_weights = _read_weights(store, batch)
        if not _uneven(batch_weights):
            # Route's guarantee needs an equal probability for all units. Weights do not remove the risk that a few
            # units represent many.
            drawn |= batch_weights.keys()
    kept = frozenset(units & drawn)
    n_left_out = len(units) - len(kept)
    left_out_note = (
        f"{n_left_out:,} labelled units are left out, because they were not drawn with equal probability from all "
        "units (for example, they come from equal parts, a queue or training)"
    )
    return SampleDesign(kept, (left_out_note,) if n_left_out else ())
