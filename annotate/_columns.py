"""One annotator's labels as they stand in a study, and several of them as a table of codes."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotate.sheet import number
from judge.errors import BadInput
from judge.stats import MISSING
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.store import Store
from judge.types import AnnotatorKind


@dataclass(eq=False)
class Column:
    """One annotator's labels as read: unit -> value, and the units that were asked about."""

    annotator: str
    labels: dict[str, str]
    asked: set[str]
    distributions: dict[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(
        cls,
        store: Store,
        annotator: str,
        field: str,
        repeat: int,
        layer: str,
        kind: AnnotatorKind,
        distributions: bool,
    ) -> Column:
        """Read one annotator's labels of one field; a judge was asked about every unit it has judged."""
        key = [annotator, field, layer, repeat]
        where = "FROM labels WHERE annotator_id = ? AND field = ? AND layer = ? AND repeat = ?"
        labels = dict(store.conn.execute(f"SELECT unit_id, value {where}", key))
        if kind is not AnnotatorKind.JUDGE:
            return cls(annotator, labels, set(labels))
        judged = "SELECT unit_id FROM judgements WHERE run_id = ? AND repeat = ?"
        asked = {unit for (unit,) in store.conn.execute(judged, [annotator, repeat])} | set(labels)
        if not distributions:
            return cls(annotator, labels, asked)
        stored = f"SELECT unit_id, distribution {where} AND distribution IS NOT NULL"
        return cls(annotator, labels, asked, dict(store.conn.execute(stored, key)))


@dataclass(eq=False)
class Table:
    """`codes` and `asked` as in Labelled; `outside` counts labels outside the domain, by annotator."""

    codes: IntArray
    asked: BoolArray
    outside: list[Counter[str]]


def tabulate(
    columns: Sequence[Column], units: Sequence[str], domain: Sequence[str], field: str | None
) -> Table:
    """Codes over the domain; labels outside it are counted and left out. `field`: the labels are numbers."""
    row_of = {unit: i for i, unit in enumerate(units)}
    code_of = {label: code for code, label in enumerate(domain)}
    codes = np.full((len(units), len(columns)), MISSING, dtype=np.int64)
    asked = np.zeros(codes.shape, dtype=np.bool_)
    outside: list[Counter[str]] = []
    for j, column in enumerate(columns):
        asked[[row_of[u] for u in column.asked], j] = True
        written = {v: canonical(v, field) for v in set(column.labels.values())}
        code = {v: code_of.get(label, MISSING) for v, label in written.items()}
        rows = np.fromiter((row_of[u] for u in column.labels), dtype=np.int64, count=len(column.labels))
        given = np.fromiter((code[v] for v in column.labels.values()), dtype=np.int64, count=len(rows))
        codes[rows, j] = given
        # Nothing can be computed from a label outside the domain, so the unit does not count as asked.
        asked[rows[given == MISSING], j] = False
        outside.append(Counter(v for v in column.labels.values() if code[v] == MISSING))
    return Table(codes, asked, outside)


def canonical(value: str, field: str | None) -> str:
    """The label that a stored value stands for: itself, or a number in its shortest spelling.

    `field` names a field of numbers, None one of labels. Raises BadInput.
    """
    if field is None:
        return value
    try:
        return number(value)
    except BadInput as e:
        raise BadInput(e.reason, field=field) from e


def probabilities(column: Column, units: Sequence[str], domain: Sequence[str]) -> FloatArray:
    """The stored distributions of a column, units x labels, rows of nan where there is none."""
    row_of = {unit: i for i, unit in enumerate(units)}
    table = np.full((len(units), len(domain)), np.nan)
    # One document instead of one a unit: a third of the time.
    every = json.loads(f"[{','.join(column.distributions.values())}]")
    rows = [row_of[unit] for unit in column.distributions]
    for k, label in enumerate(domain):
        table[rows, k] = [masses.get(label, 0.0) for masses in every]
    return table
