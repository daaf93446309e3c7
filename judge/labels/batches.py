"""What annotation batches say of labels: whose, on which units, and for how many units each stands."""

import sqlite3
from dataclasses import dataclass

from judge.errors import UsageError
from judge.labels.relation import judges_of
from judge.store import Store
from judge.store.export import stored_task
from judge.store.study import dumps

DRAWN = "SELECT unit_id, weight FROM batch_units WHERE batch = ? AND role = 'sample' AND weight IS NOT NULL"


@dataclass(frozen=True)
class Members:
    """The people of a batch and the units of its sample (training and attention units are none of them)."""

    people: frozenset[str]
    units: frozenset[str]


def members(store: Store, name: str) -> Members:
    """Raises UsageError when the study has no such batch."""
    known = [
        str(row[0]) for row in store.conn.execute("SELECT batch FROM batches ORDER BY created").fetchall()
    ]
    if name not in known:
        there = f"there are: {', '.join(known)}" if known else "the study has no batches"
        raise UsageError(f"{store.path}: no batch '{name}'; {there}; leave --batch out to use all labels")
    people = store.conn.execute("SELECT DISTINCT annotator_id FROM assignments WHERE batch = ?", [name])
    units = store.conn.execute("SELECT unit_id FROM batch_units WHERE batch = ? AND role = 'sample'", [name])
    return Members(frozenset(p for (p,) in people), frozenset(u for (u,) in units))


def asking(store: Store, field: str) -> list[tuple[str, str]]:
    """(batch, purpose) of the batches that ask for a field, the oldest first."""
    rows = store.conn.execute("SELECT batch, task, purpose FROM batches ORDER BY created").fetchall()
    return [(batch, purpose) for batch, task, purpose in rows if field in stored_task(store, task).fields]


def sampled(store: Store, name: str | None, field: str) -> set[str]:
    """The units that one batch, or all that ask for the field, drew by chance from all there was: none after a queue."""
    found: set[str] = set()
    for batch, purpose in asking(store, field):
        if purpose == "queue":
            break
        if name in (None, batch):
            found |= {str(unit) for unit, _ in store.conn.execute(DRAWN, [batch])}
    return found


def weights(store: Store, name: str | None, field: str) -> dict[str, float]:
    """Unit -> for how many units of the study it stands, for the samples of one batch, or of all that ask for the field.

    Empty when nobody drew by chance, or when every unit stands for as many. Each of several batches speaks for
    the whole study, with as much say as it has units.
    """
    found: dict[str, float] = {}
    for batch, purpose in asking(store, field):
        if name not in (None, batch):
            continue
        if purpose == "queue":
            return {}
        found |= _drawn(store, batch)
    return _uneven(found)


def _drawn(store: Store, batch: str) -> dict[str, float]:
    """The units of a batch's sample, each with its weight; these have a mean of 1."""
    own = dict(store.conn.execute(DRAWN, [batch]).fetchall())
    total = sum(own.values())
    return {str(unit): weight * len(own) / total for unit, weight in own.items()}


def _uneven(weights: dict[str, float]) -> dict[str, float]:
    """The weights, or none where all are the same."""
    even = not weights or max(weights.values()) - min(weights.values()) <= 1e-9
    return {} if even else weights


def fix_families(store: Store, field: str) -> None:
    """Fix which judges share one level on the units of a batch: those with labels on at least half of them.

    Called whenever people's labels are read beside a judge's: who sees how a judge does on them may choose the next judge by
    it. Batches without labels yet, and those whose judges are declared or fixed, stay as they are.
    """
    query = (
        "SELECT batch, task FROM batches AS b WHERE coalesce(json_array_length(options, '$.judges'), 0) = 0 AND EXISTS "
        "(SELECT 1 FROM assignments AS a WHERE a.batch = b.batch AND a.role = 'sample' AND a.status = 'done')"
    )
    for batch, task in store.conn.execute(query).fetchall():
        if field not in stored_task(store, task).fields:
            continue
        units = [
            u
            for (u,) in store.conn.execute(
                "SELECT unit_id FROM batch_units WHERE batch = ? AND role = 'sample'", [batch]
            )
        ]
        family = [run for run, n in judges_of(store.conn, field, units).items() if 2 * n >= len(units)]
        if not family:
            continue
        try:
            store.conn.execute(
                "UPDATE batches SET options = json_set(options, '$.judges', json(?)) WHERE batch = ?",
                [dumps(family), batch],
            )
        except sqlite3.OperationalError as e:
            # A study that nobody here can write is read all the same; whoever can write it fixes the family.
            if "readonly" not in str(e):
                raise


@dataclass(frozen=True)
class SampleDesign:
    """How labelled units were chosen. `honest`: those that a promise about all units may rest on,
    which were drawn with equal probability; `notes` say what was left out and what is not recorded."""

    honest: frozenset[str]
    notes: tuple[str, ...]


def design(store: Store, field: str, units: frozenset[str], *, people: bool) -> SampleDesign:
    """Which of these labelled units were drawn by chance from all there was, or are not known to have been chosen.

    `people`: the labels are theirs, so that batches say how units were drawn: a queue, training and attention units, and
    whatever was drawn after a queue (from what it left) speak for themselves only. Gold comes with the data.
    """
    if not people:
        return SampleDesign(units, ("how units came by their gold labels is not recorded",))
    batches = asking(store, field)
    if not batches:
        return SampleDesign(units, ("how the units that people labelled were chosen is not recorded",))
    drawn: set[str] = set()
    for batch, purpose in batches:
        if purpose == "queue":
            break
        query = "SELECT 1 FROM batches WHERE batch = ? AND json_extract(options, '$.where') IS NOT NULL"
        if store.conn.execute(query, [batch]).fetchone():
            continue  # drawn from some of the units only
        own = _drawn(store, batch)
        if not _uneven(own):
            # A promise holds for units drawn alike: weights do not make up for the few that stand for many.
            drawn |= own.keys()
    kept = frozenset(units & drawn)
    out = len(units) - len(kept)
    told = f"{out:,} labelled units are left out: no draw with equal probability from all units brought them (equal parts, a queue, training, or elsewhere)"
    return SampleDesign(kept, (told,) if out else ())
