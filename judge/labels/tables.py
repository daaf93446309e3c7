"""Read a table of labels as a Panel. The table may be long (one label per row) or wide (one column per annotator).

The file may be CSV, TSV, JSON, JSONL or Parquet. Cells are strings exactly as written: "nan", "NA" and "None"
are labels, and only an empty cell (JSON: null or "") is a missing label. Every error names the file and the
line.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from judge.errors import BadInput, UsageError
from judge.labels.panel import Distributions, Panel
from judge.labels.rows import read_rows, table
from judge.labels.values import NUMERIC, alike, number, probabilities
from judge.notes import Note
from judge.stats import MISSING, BoolArray, FloatArray, IntArray, Ratings
from judge.types import AnnotatorKind

REFERENCES = {"gold": AnnotatorKind.GOLD, "adjudicated": AnnotatorKind.ADJUDICATED}
"""As in a study, annotators with these names are references."""
NOT_PEOPLE = {*REFERENCES, "majority", "decided", ""}
"""Names that nobody's labels can have in a study, either."""
WEIGHT = "weight"
"""The name of the column with design weights in a table that was exported from a study."""
KINDS = ("annotator_kind", "kind", "annotator_type")
"""The names of a column that says what kind of annotator a row of a long table is from."""
MODEL_KINDS = {"judge", "model", "llm", "machine", "ai", "auto"}
HUMAN_KINDS = {"human", "person", "people", "annotator", "expert", "crowd"}
MODEL_NAMES = re.compile(
    r"(?<![a-z])(chatgpt|gpt|claude|gemini|gemma|llama|mistral|mixtral|qwen|qwq|command[-_ ]?r|deepseek|phi[-_ ]?\d|llm)"
    r"(?![a-z])"
)
"""What the name of a model usually contains, in lower case. A following digit or hyphen belongs to its version."""


@dataclass(frozen=True)
class Layout:
    """The roles of a table's columns.

    A long table has the columns `annotator` and `label`. A wide table has one column for each of the
    `annotators`. The column `probabilities` contains a judge's label probabilities as objects, such as
    {"yes": 0.8, "no": 0.2}. In a long table, they are on the judge's rows. In a wide table, they belong to
    the only judge.

    Raises UsageError if the roles are incomplete or contradictory.
    """

    unit: str
    annotator: str | None = None
    label: str | None = None
    annotators: tuple[str, ...] = ()
    cluster: str | None = None
    probabilities: str | None = None
    only: tuple[str, ...] = ()
    """The annotators to use from a long table. If empty, all are used."""

    def __post_init__(self) -> None:
        long = self.annotator is not None or self.label is not None
        if long == bool(self.annotators):
            raise UsageError(
                "specify either the annotator column and the label column (long table), or a column for each annotator (wide table)"
            )
        if long and (self.annotator is None or self.label is None):
            raise UsageError("a long table needs both an annotator column and a label column")
        if len(set(self.columns)) < len(self.columns):
            raise UsageError(
                f"a column can have only one role, but a column is given twice: {', '.join(self.columns)}"
            )

    @property
    def columns(self) -> list[str]:
        """Every column that is read: the unit, then the cluster (if any), then the other columns."""
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
    """Read a table of labels.

    `order` lists the labels in order, which is required if the level is ordinal. An annotator called `gold`
    or `adjudicated` is a reference.

    An empty cell is a missing label, with one exception: in a person's column of a wide table, it means that
    the person was not asked.

    Raises BadInput, with the file and the line, for a row that cannot be used. Raises UsageError for
    incompatible arguments.
    """
    if level == "ordinal" and not order:
        raise UsageError("--level ordinal must list the labels in order, as in ordinal:LOW,...,HIGH")
    # An empty cell means that a label is missing, so an empty text cannot be a label.
    if order is not None and (len(set(order)) < len(order) or "" in order):
        raise UsageError(f"--level {level}:{','.join(order)}: a label is empty or given twice")
    if order is not None and level in NUMERIC:
        raise UsageError(
            f"--level {level}:{','.join(order)}: omit the labels, because numbers have their own order"
        )
    if layout.probabilities is not None and level in NUMERIC:
        raise UsageError(f"probabilities require labels, but level {level} is numeric")
    # A row of a wide table has the labels of all annotators, so it does not say to whom the probabilities belong.
    if layout.probabilities is not None and layout.annotators and len(judges) != 1:
        raise UsageError("a wide table with probabilities needs exactly one --judge")
    cells = _read_cells(path, layout, judges)
    code_of, domain = _domain(cells, level, order)
    codes, requested = _matrix(cells, code_of)
    names, units = cells.annotators.names, cells.units.names
    kinds = _kinds(names, judges)
    stated = _read_kinds(path, layout)
    notes = _check_models(path, layout, names, kinds, stated)
    if layout.annotators:
        # In a wide table an empty cell of a person usually means that the unit was not assigned; a judge was asked about every unit.
        requested = (codes != MISSING) | np.array([kinds[name] is AnnotatorKind.JUDGE for name in names])
    clusters, cluster_notes = _clusters(cells)
    notes += cluster_notes
    ratings = Ratings.from_codes(codes, domain, names, clusters=clusters, units=units)
    # A table with swapped columns would be read without an error.
    if len(names) > len(units):
        notes.append(Note("swapped", annotators=len(names), units=len(units)))
    if level not in NUMERIC and order is None:
        notes += alike(domain)
    notes += alike(names, "annotators") + alike(units, "units", case=False)
    return Panel(
        field=layout.label or "label",
        level=level,
        ratings=ratings,
        requested=requested,
        kinds=kinds,
        notes=tuple(notes),
        source=str(path),
        distributions=_distributions(cells, layout, domain),
        weights=_weights(path, layout),
        left_out={
            name: AnnotatorKind.JUDGE if _is_model(name, stated) else AnnotatorKind.HUMAN
            for name in sorted((cells.left_out | _find_unlisted(path, layout, domain, level)) - NOT_PEOPLE)
        },
    )


def _find_unlisted(path: Path, layout: Layout, domain: Sequence[str], level: str) -> set[str]:
    """Return the columns of a wide table that contain nothing but labels, although they are not listed.

    Numbers are no evidence, because a column of numbers can be anything.
    """
    if not layout.annotators or level in NUMERIC:
        return set()
    unlisted = set()
    for column in table(path, layout.columns).columns:
        if column not in layout.columns and _has_only_labels(path, column, set(domain)):
            unlisted.add(column)
    return unlisted


def _has_only_labels(path: Path, column: str, labels: set[str]) -> bool:
    """Return whether every cell of a column is a label or empty, and at least one is a label."""
    has_labels = False
    # A column of another kind may mix text with numbers, which is an error for labels only.
    with suppress(BadInput):
        for _, (cell,) in read_rows(path, [column]):
            if cell.strip() and cell not in labels:
                return False
            has_labels = has_labels or cell in labels
        return has_labels
    return False


def _weights(path: Path, layout: Layout) -> dict[str, float]:
    """Return the design weight of each unit from the column `weight`, which `annotate export --labels`
    writes.

    The result is empty if all weights are equal.
    """
    # A column of that name may mean something else. It is ignored if a value is not a positive number, if a unit has
    # two values, or if two columns have the name.
    if WEIGHT in layout.columns or list(table(path, layout.columns).columns).count(WEIGHT) != 1:
        return {}
    by_unit: dict[str, float] = {}
    for _, (unit, text) in read_rows(path, [layout.unit, WEIGHT]):
        try:
            weight = float(text) if text else None
        except ValueError:
            return {}
        if weight is None:
            # A training unit, or one that was not drawn.
            continue
        if not 0 < weight < math.inf or by_unit.setdefault(unit, weight) != weight:
            return {}
    return by_unit if len(set(by_unit.values())) > 1 else {}


@dataclass(eq=False)
class _Names:
    """Strings, numbered in the order in which they first appear."""

    names: list[str] = field(default_factory=list)
    place: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        at = self.place.setdefault(name, len(self.names))
        if at == len(self.names):
            self.names.append(name)
        return at

    def sort(self) -> IntArray:
        """Renumber the strings in alphabetical order. Return the new number for each old number."""
        old, self.names = self.names, sorted(self.names)
        self.place = {name: i for i, name in enumerate(self.names)}
        return np.array([self.place[name] for name in old], dtype=np.int64)


@dataclass(eq=False)
class _Cells:
    """All labels in the table, as four parallel lists. `label` contains the number of each label, or MISSING."""

    path: str
    line: list[int] = field(default_factory=list)
    unit: list[int] = field(default_factory=list)
    annotator: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    units: _Names = field(default_factory=_Names)
    annotators: _Names = field(default_factory=_Names)
    labels: _Names = field(default_factory=_Names)
    left_out: set[str] = field(default_factory=set)
    """The annotators of a long table that --annotators leaves out."""
    cluster_of: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Each unit's cluster, and the line on which it was first given."""
    masses: list[tuple[str, str, str, int]] = field(default_factory=list)
    """A tuple (annotator, unit, cell, line) for each cell with probabilities."""

    def line_of_label(self, number: int) -> int:
        return self.line[self.label.index(number)]


def _read_cells(path: Path, layout: Layout, judges: Sequence[str]) -> _Cells:
    cells = _Cells(str(path))
    wide = [cells.annotators.number(name) for name in layout.annotators]
    clustered, has_probabilities = layout.cluster is not None, layout.probabilities is not None
    skip = 1 + clustered + has_probabilities
    for line, row in read_rows(path, layout.columns, [layout.probabilities] if layout.probabilities else []):
        name = row[0]
        if layout.only and row[skip] not in (*layout.only, *judges):
            cells.left_out.add(row[skip])
            continue
        if not name:
            raise BadInput(
                "this cell is empty; every row needs a unit", path=str(path), line=line, field=layout.unit
            )
        unit = cells.units.number(name)
        if layout.cluster is not None:
            earlier, first = cells.cluster_of.setdefault(name, (row[1], line))
            if earlier != row[1]:
                reason = f"unit '{name}' is in '{row[1]}' here, but in '{earlier}' on line {first}"
                raise BadInput(reason, path=str(path), line=line, field=layout.cluster)
        if wide:
            labels = list(zip(wide, row[skip:], strict=True))
        elif row[skip]:
            labels = [(cells.annotators.number(row[skip]), row[skip + 1])]
        else:
            raise BadInput(
                "this cell is empty; every row needs an annotator",
                path=str(path),
                line=line,
                field=layout.annotator or "",
            )
        if has_probabilities and row[skip - 1].strip():
            judge = judges[0] if wide else row[skip]
            if judge not in judges:
                reason = f"'{judge}' has probabilities but is not declared as a judge; add --judge {judge}"
                raise BadInput(reason, path=str(path), line=line, field=layout.probabilities or "")
            cells.masses.append((judge, name, row[skip - 1], line))
        for annotator, label in labels:
            cells.line.append(line)
            cells.unit.append(unit)
            cells.annotator.append(annotator)
            cells.label.append(cells.labels.number(label) if label.strip() else MISSING)
    if not cells.line:
        missing_rows = f"rows of {', '.join(layout.only)}" if layout.only else "rows"
        raise BadInput(f"the file has a header but no {missing_rows}", path=str(path))
    if missing := [name for name in layout.only if name not in cells.annotators.place]:
        raise UsageError(f"--annotators {missing[0]}: no such column or annotator in {path}")
    # Alphabetical, so that no result depends on the order of rows; the columns of a wide table keep the user's order.
    cells.unit = cells.units.sort()[cells.unit].tolist()
    if not wide:
        cells.annotator = cells.annotators.sort()[cells.annotator].tolist()
    return cells


def _distributions(cells: _Cells, layout: Layout, domain: Sequence[str]) -> dict[str, Distributions]:
    """Return each judge's label probabilities."""
    by_judge: dict[str, FloatArray] = {}
    for judge, unit, text, line in cells.masses:
        try:
            distribution = probabilities(text, domain)
        except BadInput as e:
            raise BadInput(e.reason, path=cells.path, line=line, field=layout.probabilities or "") from e
        table = by_judge.setdefault(judge, np.full((len(cells.units.names), len(domain)), np.nan))
        table[cells.units.place[unit]] = [distribution.probabilities[label] for label in domain]
    numbers = np.arange(len(cells.units.names))
    return {
        judge: Distributions(numbers, len(domain), partial(_read_rows, table))
        for judge, table in by_judge.items()
    }


def _read_rows(table: FloatArray, only: IntArray | None) -> Iterator[tuple[IntArray, FloatArray]]:
    numbers = np.arange(len(table)) if only is None else only
    yield numbers, table[numbers]


def _domain(cells: _Cells, level: str, order: Sequence[str] | None) -> tuple[IntArray, tuple[str, ...]]:
    """Return the code of every label, and the domain.

    The domain consists of the declared labels or, if none are declared, of the labels in the table, sorted.
    """
    labels = list(cells.labels.names)
    if not labels:
        raise BadInput("the table has no labels", path=cells.path)
    if level in NUMERIC:
        for i, label in enumerate(labels):
            try:
                labels[i] = number(label)
            except BadInput as e:
                raise BadInput(e.reason, path=cells.path, line=cells.line_of_label(i)) from e
            if level == "ratio" and float(labels[i]) < 0:
                reason = f"{labels[i]} is negative, which is not allowed if the level is ratio"
                raise BadInput(reason, path=cells.path, line=cells.line_of_label(i))
        # As text, 10 would come before 2.
        domain = sorted(set(labels), key=float)
    else:
        domain = sorted(labels) if order is None else list(order)
    place = {label: code for code, label in enumerate(domain)}
    for i, label in enumerate(labels):
        if label not in place:
            reason = f"unknown label '{label}'; the labels of --level are {', '.join(domain)}"
            raise BadInput(reason, path=cells.path, line=cells.line_of_label(i))
    return np.array([place[label] for label in labels], dtype=np.int64), tuple(domain)


def _matrix(cells: _Cells, code_of: IntArray) -> tuple[IntArray, BoolArray]:
    """Return two arrays of units x annotators: the codes, and whether each label was requested.

    Raises BadInput if a unit has two labels from the same annotator.
    """
    unit, annotator = np.array(cells.unit), np.array(cells.annotator)
    shape = (len(cells.units.names), len(cells.annotators.names))
    key = unit * shape[1] + annotator
    _, first = np.unique(key, return_index=True)
    if len(first) < len(key):
        repeated = int(np.setdiff1d(np.arange(len(key)), first)[0])
        first_at = int(np.flatnonzero(key == key[repeated])[0])
        named, of = cells.annotators.names[annotator[repeated]], cells.units.names[unit[repeated]]
        reason = (
            f"a second label from '{named}' for unit '{of}' (the first is on line {cells.line[first_at]})"
        )
        raise BadInput(reason, path=cells.path, line=cells.line[repeated])
    label = np.array(cells.label)
    codes = np.full(shape, MISSING, dtype=np.int64)
    requested = np.zeros(shape, dtype=np.bool_)
    codes[unit, annotator] = np.where(label == MISSING, MISSING, code_of[label])
    requested[unit, annotator] = True
    return codes, requested


def _clusters(cells: _Cells) -> tuple[IntArray | None, list[Note]]:
    """Return the number of each unit's cluster. A unit without a cluster forms a cluster of its own."""
    if not cells.cluster_of:
        return None, []
    named = [cells.cluster_of[unit][0] for unit in cells.units.names]
    numbers = {name: i for i, name in enumerate(sorted({name for name in named if name}))}
    alone = named.count("")
    place = [numbers[name] if name else len(numbers) + i for i, name in enumerate(named)]
    return np.array(place), [Note("no_cluster", n=alone)] if alone else []


def looks_like_model(name: str) -> bool:
    """Return whether an annotator's name contains the name of a language model, such as `gemini_flash`."""
    return MODEL_NAMES.search(name.lower()) is not None


def _is_model(name: str, stated: Mapping[str, str]) -> bool:
    """Return whether an annotator is probably a model. `stated` has the kinds that the table gives."""
    if kind := stated.get(name):
        return kind in MODEL_KINDS and kind not in HUMAN_KINDS
    return looks_like_model(name)


def _check_models(
    path: Path,
    layout: Layout,
    names: Sequence[str],
    kinds: dict[str, AnnotatorKind],
    stated: Mapping[str, str],
) -> list[Note]:
    """Raise UsageError if an annotator who would count as a person is probably a model.

    A column for the kind of annotator (`KINDS`) says so, or else the name does. If the user has named the
    annotators (--annotators), the result is a note instead.
    """
    people = [name for name in names if kinds[name] is AnnotatorKind.HUMAN]
    models = [name for name in people if _is_model(name, stated)]
    if not models:
        return []
    if layout.annotators or layout.only:
        return [Note("models_as_people", who=tuple(models))]
    reason = (
        "the column for the kind of annotator says model"
        if stated
        else "a name like this is usually a model's"
    )
    others = [name for name in people if name not in models]
    judges = [name for name in names if kinds[name] is AnnotatorKind.JUDGE]
    # Without another person, the first way on is to insist that they are people.
    way, listed = ("leave them out", [*others, *judges]) if others else ("count them as people", list(names))
    raise UsageError(
        f"{path}: {', '.join(models)} would count as people, but {reason}; to {way}: "
        f"--annotators {','.join(listed)}; to use them as judges: {' '.join(f'--judge {n}' for n in models)}"
    )


def _read_kinds(path: Path, layout: Layout) -> dict[str, str]:
    """Return the kind of each annotator that a long table gives in one of the columns `KINDS`, in lower case."""
    if layout.annotator is None:
        return {}
    free = [c for c in table(path, layout.columns).columns if c not in layout.columns]
    column = next((c for name in KINDS for c in free if c.strip().lower() == name), None)
    if column is None:
        return {}
    return {
        name: kind.strip().lower()
        for _, (name, kind) in read_rows(path, [layout.annotator, column])
        if kind.strip().lower() in MODEL_KINDS | HUMAN_KINDS
    }


def _kinds(names: Sequence[str], judges: Sequence[str]) -> dict[str, AnnotatorKind]:
    for judge in judges:
        if judge not in names:
            listed = ", ".join(names[:20]) + (" ..." if len(names) > 20 else "")
            raise UsageError(f"--judge {judge}: no such annotator; the annotators are {listed}")
    kinds = {name: REFERENCES.get(name, AnnotatorKind.HUMAN) for name in names}
    return kinds | dict.fromkeys(judges, AnnotatorKind.JUDGE)
