"""Any table of labels as a Panel: long (one label a row) or wide (one column an annotator); CSV, TSV, JSON, JSONL, Parquet.

Cells are text as they stand: "nan", "NA" and "None" are labels, and only an empty cell (JSON: null
or "") is a missing one. Every complaint names file and line.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from judge.errors import BadInput, UsageError
from judge.labels.panel import Panel
from judge.labels.rows import read_rows, table
from judge.labels.values import NUMERIC, alike, number, probabilities
from judge.notes import Note
from judge.stats import MISSING, Ratings
from judge.stats.ratings import BoolArray, FloatArray, IntArray
from judge.types import AnnotatorKind

REFERENCES = {"gold": AnnotatorKind.GOLD, "adjudicated": AnnotatorKind.ADJUDICATED}
"""Annotators of these names are references, as they are in a study."""
WEIGHT = "weight"
"""The column of weights in a table that was exported from a study."""


@dataclass(frozen=True)
class Layout:
    """Which column is what. Long tables name `annotator` and `label`, wide ones list `annotators`.

    `probabilities` are those of a judge for its labels, an object as in {"yes": 0.8, "no": 0.2}: on the judge's rows of a long
    table, or of the one judge of a wide one.

    Raises UsageError when the columns do not fit together.
    """

    unit: str
    annotator: str | None = None
    label: str | None = None
    annotators: tuple[str, ...] = ()
    cluster: str | None = None
    probabilities: str | None = None

    def __post_init__(self) -> None:
        long = self.annotator is not None or self.label is not None
        if long == bool(self.annotators):
            raise UsageError("name --annotator and --label (long table) or --annotators A,B,... (wide table)")
        if long and (self.annotator is None or self.label is None):
            raise UsageError("a long table needs both --annotator and --label")
        if len(set(self.columns)) < len(self.columns):
            raise UsageError(f"one column cannot be two things: {', '.join(self.columns)}")

    @property
    def columns(self) -> list[str]:
        """Every column that is read: the unit, the cluster if any, then the rest."""
        named = [
            *(self.unit, self.cluster, self.probabilities),
            *(self.annotator, self.label, *self.annotators),
        ]
        return [name for name in named if name is not None]


def read_table(
    path: Path,
    layout: Layout,
    *,
    level: str = "nominal",
    order: Sequence[str] | None = None,
    judges: Sequence[str] = (),
) -> Panel:
    """Read a table of labels. `order` declares the labels, in order; an ordinal level needs it.

    An annotator called `gold` or `adjudicated` is a reference. A row of a long table with an empty
    label counts as asked for; in a wide table only an empty cell of a judge does.

    Raises BadInput with file and line for rows that cannot be used, UsageError for arguments that do
    not fit together.
    """
    if level == "ordinal" and not order:
        raise UsageError("--level ordinal needs --order LOW,...,HIGH: the alphabet is not an order")
    if order is not None and (len(set(order)) < len(order) or "" in order):
        raise UsageError(f"--order {','.join(order)}: labels are not empty and not named twice")
    if order is not None and level in NUMERIC:
        raise UsageError(f"--order is for labels; on level {level} numbers have their own")
    if layout.probabilities is not None and level in NUMERIC:
        raise UsageError(f"--probabilities are for labels; level {level} has numbers")
    if layout.probabilities is not None and layout.annotators and len(judges) != 1:
        raise UsageError("--probabilities of a wide table are those of one --judge")
    cells = _read(path, layout, judges)
    code_of, domain = _domain(cells, level, order)
    codes, asked = _matrix(cells, code_of)
    names, units = cells.annotators.names, cells.units.names
    kinds = _kinds(names, judges)
    if layout.annotators:
        asked = (codes != MISSING) | np.array([kinds[name] is AnnotatorKind.JUDGE for name in names])
    clusters, notes = _clusters(cells)
    ratings = Ratings.from_codes(codes, domain, names, clusters=clusters, units=units)
    if len(names) > len(units):
        notes.append(Note("swapped", annotators=len(names), units=len(units)))
    if level not in NUMERIC and order is None:
        notes += alike(domain)
    notes += alike(names, "annotators") + alike(units, "units", case=False)
    return Panel(
        field=layout.label or "label",
        level=level,
        ratings=ratings,
        asked=asked,
        kinds=kinds,
        notes=tuple(notes),
        source=str(path),
        distributions=_distributions(cells, layout, domain),
        weights=_weights(path, layout),
    )


def _weights(path: Path, layout: Layout) -> dict[str, float]:
    """For how many units each stands, from the column `weight` that `annotate export --labels` writes.

    Empty where all stand for as many, and where the column is somebody else's: it has what is no number above 0, two
    numbers for one unit, or its name twice.
    """
    if WEIGHT in layout.columns or list(table(path, layout.columns).columns).count(WEIGHT) != 1:
        return {}
    found: dict[str, float] = {}
    for _, (unit, text) in read_rows(path, [layout.unit, WEIGHT]):
        try:
            weight = float(text) if text else None
        except ValueError:
            return {}
        if weight is None:
            continue  # A training unit, or one that was not drawn.
        if not 0 < weight < math.inf or found.setdefault(unit, weight) != weight:
            return {}
    return found if len(set(found.values())) > 1 else {}


@dataclass(eq=False)
class _Names:
    """Strings numbered in the order of their first appearance."""

    names: list[str] = field(default_factory=list)
    place: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        found = self.place.setdefault(name, len(self.names))
        if found == len(self.names):
            self.names.append(name)
        return found

    def sort(self) -> IntArray:
        """Renumber in alphabetical order; the new number of each old one."""
        old, self.names = self.names, sorted(self.names)
        self.place = {name: i for i, name in enumerate(self.names)}
        return np.array([self.place[name] for name in old], dtype=np.int64)


@dataclass(eq=False)
class _Cells:
    """Every label as read, in four parallel lists; a `label` is a number or MISSING."""

    path: str
    line: list[int] = field(default_factory=list)
    unit: list[int] = field(default_factory=list)
    annotator: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    units: _Names = field(default_factory=_Names)
    annotators: _Names = field(default_factory=_Names)
    labels: _Names = field(default_factory=_Names)
    cluster_of: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Unit -> its cluster, and the first line that says so."""
    masses: list[tuple[str, str, str, int]] = field(default_factory=list)
    """(annotator, unit, what stands under the probabilities, line)."""

    def line_of_label(self, number: int) -> int:
        return self.line[self.label.index(number)]


def _read(path: Path, layout: Layout, judges: Sequence[str]) -> _Cells:
    cells = _Cells(str(path))
    wide = [cells.annotators.number(name) for name in layout.annotators]
    clustered, sure = layout.cluster is not None, layout.probabilities is not None
    skip = 1 + clustered + sure
    for line, row in read_rows(path, layout.columns, [layout.probabilities] if layout.probabilities else []):
        name = row[0]
        if not name:
            raise BadInput("is empty", path=str(path), line=line, field=layout.unit)
        unit = cells.units.number(name)
        if layout.cluster is not None:
            known, first = cells.cluster_of.setdefault(name, (row[1], line))
            if known != row[1]:
                reason = f"unit '{name}' is in '{row[1]}' here and in '{known}' on line {first}"
                raise BadInput(reason, path=str(path), line=line, field=layout.cluster)
        if wide:
            given = list(zip(wide, row[skip:], strict=True))
        elif row[skip]:
            given = [(cells.annotators.number(row[skip]), row[skip + 1])]
        else:
            raise BadInput("is empty", path=str(path), line=line, field=layout.annotator or "")
        if sure and row[skip - 1].strip():
            who = judges[0] if wide else row[skip]
            if who not in judges:
                reason = f"probabilities of '{who}', who is no judge (--judge {who})"
                raise BadInput(reason, path=str(path), line=line, field=layout.probabilities or "")
            cells.masses.append((who, name, row[skip - 1], line))
        for annotator, label in given:
            cells.line.append(line)
            cells.unit.append(unit)
            cells.annotator.append(annotator)
            cells.label.append(cells.labels.number(label) if label.strip() else MISSING)
    if not cells.line:
        raise BadInput("the file has a header and no rows", path=str(path))
    cells.unit = cells.units.sort()[cells.unit].tolist()
    if not wide:
        cells.annotator = cells.annotators.sort()[cells.annotator].tolist()
    return cells


def _distributions(cells: _Cells, layout: Layout, domain: Sequence[str]) -> dict[str, FloatArray]:
    """Judge -> units x labels, rows of nan where the table has no probabilities."""
    found: dict[str, FloatArray] = {}
    for judge, unit, text, line in cells.masses:
        try:
            told = probabilities(text, domain)
        except BadInput as e:
            raise BadInput(e.reason, path=cells.path, line=line, field=layout.probabilities or "") from e
        table = found.setdefault(judge, np.full((len(cells.units.names), len(domain)), np.nan))
        table[cells.units.place[unit]] = [told.probabilities[label] for label in domain]
    return found


def _domain(cells: _Cells, level: str, order: Sequence[str] | None) -> tuple[IntArray, tuple[str, ...]]:
    """The code of every label found, and the domain: as declared, else the labels found, sorted."""
    found = list(cells.labels.names)
    if not found:
        raise BadInput("there is not a single label", path=cells.path)
    if level in NUMERIC:
        for i, label in enumerate(found):
            try:
                found[i] = number(label)
            except BadInput as e:
                raise BadInput(e.reason, path=cells.path, line=cells.line_of_label(i)) from e
            if level == "ratio" and float(found[i]) < 0:
                reason = f"{found[i]} is negative, which a ratio level excludes"
                raise BadInput(reason, path=cells.path, line=cells.line_of_label(i))
        domain = sorted(set(found), key=float)
    else:
        domain = sorted(found) if order is None else list(order)
    place = {label: code for code, label in enumerate(domain)}
    for i, label in enumerate(found):
        if label not in place:
            reason = f"unknown label '{label}'; --order has {', '.join(domain)}"
            raise BadInput(reason, path=cells.path, line=cells.line_of_label(i))
    return np.array([place[label] for label in found], dtype=np.int64), tuple(domain)


def _matrix(cells: _Cells, code_of: IntArray) -> tuple[IntArray, BoolArray]:
    """Codes and asked-for marks, units x annotators. Raises BadInput for a second label on one cell."""
    unit, annotator = np.array(cells.unit), np.array(cells.annotator)
    shape = (len(cells.units.names), len(cells.annotators.names))
    key = unit * shape[1] + annotator
    _, first = np.unique(key, return_index=True)
    if len(first) < len(key):
        again = int(np.setdiff1d(np.arange(len(key)), first)[0])
        before = int(np.flatnonzero(key == key[again])[0])
        who, what = cells.annotators.names[annotator[again]], cells.units.names[unit[again]]
        reason = f"a second label by '{who}' on unit '{what}' (the first is on line {cells.line[before]})"
        raise BadInput(reason, path=cells.path, line=cells.line[again])
    label = np.array(cells.label)
    codes = np.full(shape, MISSING, dtype=np.int64)
    asked = np.zeros(shape, dtype=np.bool_)
    codes[unit, annotator] = np.where(label == MISSING, MISSING, code_of[label])
    asked[unit, annotator] = True
    return codes, asked


def _clusters(cells: _Cells) -> tuple[IntArray | None, list[Note]]:
    """A number for each unit's cluster; a unit without one stands for itself."""
    if not cells.cluster_of:
        return None, []
    named = [cells.cluster_of[unit][0] for unit in cells.units.names]
    numbers = {name: i for i, name in enumerate(sorted({name for name in named if name}))}
    alone = named.count("")
    place = [numbers[name] if name else len(numbers) + i for i, name in enumerate(named)]
    return np.array(place), [Note("no_cluster", n=alone)] if alone else []


def _kinds(names: Sequence[str], judges: Sequence[str]) -> dict[str, AnnotatorKind]:
    for judge in judges:
        if judge not in names:
            told = ", ".join(names[:20]) + (" ..." if len(names) > 20 else "")
            raise UsageError(f"--judge {judge}: there is no such annotator; there are {told}")
    kinds = {name: REFERENCES.get(name, AnnotatorKind.HUMAN) for name in names}
    return kinds | dict.fromkeys(judges, AnnotatorKind.JUDGE)
