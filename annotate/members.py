"""Whose labels on which units belong to an annotation batch.

The tables of batches are optional (migration set `annotate`): a study of imported labels has none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from annotate.study import Labelled
from judge.errors import UsageError
from judge.store import Store
from judge.types import AnnotatorKind, Json


@dataclass(frozen=True)
class Members:
    """The people of a batch and the units of its sample (training and attention units are none of them)."""

    people: frozenset[str]
    units: frozenset[str]


def batch_rows(store: Store, query: str) -> list[tuple[Json, ...]]:
    """The rows of a query on batches; none where the study has no such table."""
    found = store.conn.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'batches'"
    ).fetchone()
    return store.conn.execute(query).fetchall() if found else []


def batch_members(store: Store, name: str) -> Members:
    """Raises UsageError when the study has no such batch."""
    known = [str(row[0]) for row in batch_rows(store, "SELECT batch FROM batches ORDER BY created")]
    if name not in known:
        there = f"there are: {', '.join(known)}" if known else "the study has no batches"
        raise UsageError(f"{store.path}: no batch '{name}'; {there}; leave --batch out to use all labels")
    people = store.conn.execute("SELECT DISTINCT annotator_id FROM assignments WHERE batch = ?", [name])
    units = store.conn.execute("SELECT unit_id FROM batch_units WHERE batch = ? AND role = 'sample'", [name])
    return Members(frozenset(p for (p,) in people), frozenset(u for (u,) in units))


def within(found: Labelled, members: Members) -> Labelled:
    """Everybody's labels on the units of a batch, without people who are not in it.

    Raises UsageError when none of its units has a label.
    """
    inside = np.array([unit in members.units for unit in found.ratings.units], dtype=np.bool_)
    if not inside.any():
        raise UsageError(f"no unit of the batch has a label of '{found.field}'")
    out = [n for n in found.of_kind(AnnotatorKind.HUMAN) if n not in members.people]
    names = [n for n in found.ratings.annotators if n not in out]
    columns = [found.ratings.annotators.index(n) for n in names]
    return replace(
        found,
        ratings=found.ratings.subset(inside).select(names),
        asked=found.asked[inside][:, columns],
        kinds={n: found.kinds[n] for n in names},
        scores=None if found.scores is None else found.scores[inside][:, columns],
        distributions={n: p[inside] for n, p in found.distributions.items()},
    )
