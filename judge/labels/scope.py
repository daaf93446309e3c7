"""Read a panel from a study: the labels from people, judge runs, decisions and gold side by side.

panel = read_panel(store, Scope(field="stance"))     # all annotators
panel.ratings                                  # judge.stats.Ratings, units in the order of the study
fields_of(store)                               # the fields that can be read
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from judge.errors import BadInput, UsageError
from judge.labels import reader, relation
from judge.labels.annotators import find_annotators
from judge.labels.batches import members, weights
from judge.labels.definitions import definition_of, definitions_of, read_stored_tasks
from judge.labels.panel import Distributions, Panel
from judge.labels.values import NUMERIC, alike, canonical
from judge.notes import Note
from judge.prompts.load import Task
from judge.stats import Ratings
from judge.stats.ratings import IntArray, UnitIds
from judge.store import Store, splits
from judge.store.label_rows import OLD_TEXT
from judge.store.origin import origins
from judge.store.splits import Look
from judge.types import AnnotatorKind


@dataclass(frozen=True)
class Scope:
    """The labels to read: the field, and optionally its task, the batch, the runs and the annotators.

    `task` (`stance`, `stance.v2`) is needed only if the study's tasks define the field differently. `version`
    (`stance.v2`) leaves out people's labels from batches of other versions, and runs of other versions that are not
    named. Labels without a batch are kept, because the study does not record their version.

    Without `runs`, all judge runs with this field are read. Without `annotators`, all human annotators are
    read. If only `annotators` is given, only these are read, and they may include runs. A run is named by its
    model (or `--as` name), its id, the start or end of the id, or `last`.

    `level` replaces the level of measurement that the task declares, and `order` replaces its list of labels.
    """

    field: str
    task: str | None = None
    batch: str | None = None
    runs: tuple[str, ...] = ()
    annotators: tuple[str, ...] | None = None
    level: str | None = None
    order: tuple[str, ...] | None = None
    version: str | None = None


class FieldOf(NamedTuple):
    """A labelled field. `task` is the newest task that defines the field, or None if no task in the study
    defines it.
    """

    field: str
    task: str | None
    annotators: list[str]


def fields_of(store: Store) -> list[FieldOf]:
    """Return every labelled field with its annotators (run ids for judges).

    A field that tasks define with different labels is listed once for each definition.
    """
    tasks = read_stored_tasks(store)
    rows = []
    for name, annotators in relation.fields(store.conn).items():
        names: list[str | None] = [group[0].name for group in definitions_of(tasks, name)]
        rows += [FieldOf(name, task, annotators) for task in names or [None]]
    return rows


def describe_conflicts(store: Store, field: str | None = None) -> str:
    """Return a sentence for messages that describes the conflicting labels, or "" if there are none.

    If a field is given, only the labels for that field are described.
    """
    by_person = [n for name, n in relation.conflict_counts(store.conn).items() if field in (None, name)]
    people = sorted({annotator for counts in by_person for annotator in counts})
    return (
        str(Note("in_conflict", n=sum(sum(counts.values()) for counts in by_person), who=tuple(people)))
        if by_person
        else ""
    )


def read_panel(
    store: Store,
    scope: Scope,
    *,
    distributions: bool = True,
    text: bool = False,
    opened: bool = False,
    only_drawn: bool = False,
) -> Panel:
    """Return all annotators' labels for the field.

    Each row is a unit that at least one of the annotators labelled or was asked to label. People who have no
    usable label for the field are left out. A batch restricts the human labels to the batch's annotators and
    units, but does not restrict the judges' labels, unless `only_drawn` is True: then only the batch's units are read.

    If human labels are also read, a run's labels on the task's sealed test are left out until a use of the
    test is logged for that run. If `opened` is True, these labels are kept. The caller must then log the use,
    or leave out the units of the test.

    If `distributions` is False, the panel has no distributions. If `text` is True, a text field is also accepted; the labels that occur are its domain.

    Raises UsageError for unknown names, for a text field and for a field without labels. Raises BadInput if a
    label of a numeric field is not a number.
    """
    name = scope.field
    chosen, comparable, notes = definition_of(store, name, scope.task)
    usual = comparable if scope.version is None else comparable & {scope.version}
    names, shown, kinds = find_annotators(
        store, name, comparable, list(scope.runs), scope.annotators, usual=usual
    )
    if not names:
        known = ", ".join(sorted({row.field for row in fields_of(store)})) or "none yet"
        raise UsageError(f"{store.path}: nobody labelled '{name}'; fields with labels: {known}")
    level = scope.level or (chosen.level(name) if chosen else "nominal")
    if level == "text" and not text:
        coded = ", ".join(sorted({row.field for row in fields_of(store)} - {name})) or "none yet"
        raise UsageError(
            f"'{name}' is a text field, and agreement is not computed for text; choose another field with --field "
            f"(fields with labels: {coded})"
        )
    batch = members(store, scope.batch) if scope.batch is not None else None
    drawn = reader.rowids_of(store.conn, batch.units) if batch is not None else None
    columns = [
        reader.read_judge(store.conn, n, name, drawn if only_drawn else None)
        if kinds[n] is AnnotatorKind.JUDGE
        else reader.read_other(store.conn, n, name, kinds[n], batch, scope.version)
        for n in names
    ]
    # A look must be logged before anybody can read a number on the sealed test. Otherwise the number spends none of
    # the error rate.
    closed = 0
    if chosen is not None and not opened and any(kinds[n] is not AnnotatorKind.JUDGE for n in names):
        closed = _close(store, chosen, [c for c in columns if kinds[c.annotator] is AnnotatorKind.JUDGE])
    # A person without any label in this batch would only lower every coverage.
    columns = [c for c in columns if len(c.requested) or kinds[c.annotator] is not AnnotatorKind.HUMAN]
    if drawn is not None and not any(np.isin(drawn, c.requested).any() for c in columns):
        raise UsageError(f"no unit in the batch has a label for '{name}'")
    # Some columns were removed above, and all later arrays are in the order of the remaining columns.
    names = [c.annotator for c in columns]
    rowids = reader.union(columns)
    if not len(rowids):
        raise BadInput(f"{store.path}: there is no first label for '{name}'")
    # A column stores its distinct labels once; after a batch or a sealed test is cut out, some of them no longer occur.
    values = set[str]().union(*(c.labels.find_used_values() for c in columns))
    if not values and (conflicts_text := describe_conflicts(store, name)):
        raise BadInput(f"{store.path}: no label for '{name}' can be used: {conflicts_text}")
    domain = _domain(scope, level, chosen, values)
    if chosen is None and scope.order is None:
        notes.append(Note("no_task", field=name, level=level))
        notes += alike(domain)
    codes, requested, strangers = reader.tabulate(columns, rowids, domain, name if level in NUMERIC else None)
    table_names = [shown.get(n, n) for n in names]
    outside = {n: dict(o) for n, o in zip(table_names, strangers, strict=True) if o}
    for annotator, unknown_labels in outside.items():
        notes.append(Note("outside", who=annotator, field=name, labels=tuple(unknown_labels.items())[:5]))
    notes += [Note("origin", who=shown[run], text=text) for run, text in origins(store.conn, names).items()]
    looks: dict[str, Look] = {}
    if chosen is not None and (sealed := _note_sealed_test(store, chosen, rowids, closed)):
        notes += sealed
        logged = splits.looks(store, splits.home(store, chosen))
        looks = {shown[run]: look for run in names if run in shown for look in logged if run in look.runs}
    probabilities = {
        shown[c.annotator]: Distributions(
            rowids, len(domain), partial(reader.read_distributions, store.conn, c.annotator, name, domain)
        )
        for c in columns
        if distributions
        and kinds[c.annotator] is AnnotatorKind.JUDGE
        and level not in NUMERIC
        and relation.has_distributions(store.conn, c.annotator, name)
    }
    conflicts = {c.annotator: c.n_in_conflict for c in columns if c.n_in_conflict}
    if conflicts:
        notes.append(Note("in_conflict", n=sum(conflicts.values()), who=tuple(conflicts)))
    by_layer = {
        shown.get(n, n): layers for n, layers in relation.layers(store.conn, name).items() if n in kinds
    }
    old = {who: layers[OLD_TEXT] for who, layers in by_layer.items() if OLD_TEXT in layers}
    versions = relation.count_by_version(store.conn, name, scope.batch)
    unversioned = versions.pop(None, 0)
    listed = tuple(sorted((task, n) for task, n in versions.items() if task))
    if (len(listed) > 1 or (scope.version and listed)) and AnnotatorKind.HUMAN in {kinds[n] for n in names}:
        notes.append(Note("versions", labels=listed, only=scope.version, unversioned=unversioned))
    if old:
        notes.append(Note("old_text", n=sum(old.values()), who=tuple(old)))
    notes += [Note("fitted_on", who=shown[c.annotator], n=c.n_seen) for c in columns if c.n_seen]
    return Panel(
        field=name,
        task=chosen,
        level=level,
        ratings=Ratings.from_codes(
            codes,
            domain,
            table_names,
            clusters=reader.read_questions(store.conn, rowids),
            units=UnitIds(rowids, reader.StudyUnits(store.conn)),
        ),
        requested=requested,
        kinds={shown.get(n, n): kinds[n] for n in names},
        shown={run: n for run, n in shown.items() if run in names},
        distributions=probabilities,
        outside=outside,
        notes=tuple(notes),
        inside=None if drawn is None else np.isin(rowids, drawn),
        weights=weights(store, scope.batch, name),
        layers=by_layer,
        looks=looks,
        conflicts=conflicts,
    )


def _domain(scope: Scope, level: str, task: Task | None, values: set[str]) -> list[str]:
    """Return the labels in order.

    These are the labels that the task declares. If it declares none, or the level is numeric or text, they are the
    labels that occur.
    """
    if level in NUMERIC:
        # Ratings need at least one label in the domain, even where nobody gave a usable one.
        return sorted({canonical(v, scope.field) for v in values}, key=float) or ["0"]
    if level == "text":
        return sorted(values)
    return list(scope.order or (task.domain(scope.field) if task else sorted(values)))


def _close(store: Store, task: Task, judges: Sequence[reader.AnnotatorColumn]) -> int:
    """Remove a run's labels on the sealed test, unless a use of the test is logged for this run.

    Return the number of runs whose labels were removed.
    """
    n, home = 0, splits.home(store, task)
    for column in judges:
        units = reader.rowids_of(store.conn, splits.read_closed_units(store, home, column.annotator))
        if reader.locate(column.requested, units)[1].any():
            column.leave_out(units)
            n += 1
    return n


def _note_sealed_test(store: Store, task: Task, rowids: IntArray, closed: int) -> list[Note]:
    """Return notes on the sealed test, if some of these units belong to it. The list is empty if there is no
    split.
    """
    home = splits.home(store, task)
    if splits.read_split(store, home) is None:
        return []
    test = [question for question, part in splits.questions(store, home).items() if part == "test"]
    n = int(np.isin(rowids, reader.rowids_of_questions(store.conn, test)).sum())
    if not n:
        return []
    looked = splits.describe_looks(store, home)
    notes = [Note("sealed", n=n, task=home, looked=looked)]
    return [*notes, Note("closed", n=closed, task=home)] if closed else notes
