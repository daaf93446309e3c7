"""The subject of a report: one field, the people and judges who labelled it, and the reference."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from functools import cached_property
from itertools import combinations
from pathlib import Path

from judge.commands import command
from judge.errors import UsageError
from judge.labels.panel import Derived, Panel
from judge.labels.reference import Reference, resolve
from judge.labels.scope import Scope, describe_conflicts, fields_of, read_panel
from judge.prompts.load import Task
from judge.stats.metrics import get_title
from judge.stats.ratings import BoolArray, IntArray
from judge.store import Store
from judge.store.export import find_task, read_stored_task
from judge.store.runs import read_tried
from judge.types import AnnotatorKind, Measure

# Nine people form 36 pairs, more than a reader can compare, so pairs of more people are summarised.
MANY = 8
CEILING = ("percent", "krippendorff_alpha", "fleiss_kappa", "gwet_ac1")
ORDERED_CEILING = ("percent", "krippendorff_alpha", "gwet_ac2")


@dataclass(frozen=True)
class ReportOptions:
    """The options of the report command. None or an empty value selects the default, and the report names this default."""

    task: str | None = None
    field: str | None = None
    runs: Sequence[str] = ()
    batch: str | None = None
    reference: str | None = None
    epsilon: float = 0.2
    epsilon_name: str = ""
    margin: float = -0.1
    threshold: float = 0.667
    least_others: int = 1
    annotators: Sequence[str] | None = None
    level: str | None = None
    order: Sequence[str] | None = None
    view: str | None = None
    """A page written by `annotate view`, to which the units in the report link."""


@dataclass(frozen=True, eq=False)
class Subject:
    """The labels for one field, and the reference labels.

    `resolved` is None if there is no reference. `table` is the file with the labels if there is no study.
    `measured` and `others_of` are caches for the module `summary`.
    """

    options: ReportOptions
    panel: Panel
    resolved: Reference | None
    other_fields: Sequence[str] = ()
    table: Path | None = None
    measured: dict[tuple[str, str, bytes, bytes], Measure] = default(default_factory=dict)
    others_of: dict[str, IntArray] = default(default_factory=dict)

    @property
    def majority(self) -> str | None:
        """The name of the column with the human majority, or None if there are fewer than two people."""
        return self.panel.majority.name if self.panel.majority else None

    @property
    def n_tied(self) -> int:
        return self.panel.majority.n_tied if self.panel.majority else 0

    @property
    def decided(self) -> Derived | None:
        """The lead's decisions, combined with the labels on which people agree."""
        return self.panel.decided if self.panel.select_kinds(AnnotatorKind.ADJUDICATED) else None

    @property
    def reference(self) -> str | None:
        """The name of the column with the reference labels, or None if there is no reference."""
        return self.resolved.name if self.resolved else None

    @property
    def reference_kind(self) -> str | None:
        """The kind of reference: gold, decided or majority. If the reference is one person, this is the
        person's name.

        None if there is no reference.
        """
        return self.resolved.word if self.resolved else None

    @property
    def reference_text(self) -> str:
        """The phrase for the reference in the report's sentences, or "none" if there is no reference."""
        return self.resolved.text if self.resolved else "none"

    @property
    def coefficient_name(self) -> str:
        """The readable name of the coefficient of agreement."""
        return get_title(self.panel.coefficient)

    @cached_property
    def run_ids(self) -> Mapping[str, str]:
        """A map from each judge's name in the panel to its run id. Judges in a table of labels have no run id."""
        return {shown: run for run, shown in self.panel.shown.items()}

    @property
    def waiting(self) -> Mapping[str, Mapping[str, int]]:
        """The number of each person's unused labels, by layer. For example, labels that may not be blind are not used."""
        return {n: layers for n, layers in self.panel.layers.items() if n not in self.panel.others}

    @cached_property
    def pairs(self) -> list[tuple[str, str, Measure, Measure]]:
        """Every pair of people, with the pair's percent agreement and coefficient of agreement."""
        # Numbers are seldom equal to the last digit, so percent agreement would be near 0 even for close numbers.
        keys = [self.panel.coefficient] if self.panel.numeric else ["percent", self.panel.coefficient]
        measured = [
            (*pair, self.panel.measure(pair, self.panel.keys(keys)))
            for pair in combinations(self.panel.people, 2)
        ]
        return [(first, second, m[0], m[-1]) for first, second, m in measured]

    def has_label(self, name: str) -> BoolArray:
        """Return a mask of the units that have a label in this column."""
        return self.panel.has_label(name)

    def measure(self, first: str, second: str, *names: str) -> list[Measure]:
        """Return the named coefficients for two annotators.

        If no names are given, return the default coefficient for the level of measurement.
        """
        keys = self.panel.keys(names or [self.panel.coefficient])
        return self.panel.measure([first, second], keys, confidence=self.panel.confidence(first, second))


def load(store: Store, options: ReportOptions) -> Subject:
    """Return the subject for these options, using defaults for missing options.

    Raises UsageError if a name is unknown or several fields, tasks or references are possible.
    """
    task, field, others = _choose(store, options)
    people = None if options.annotators is None else tuple(options.annotators)
    order = None if options.order is None else tuple(options.order)
    scope = Scope(field, task, options.batch, tuple(options.runs), people, options.level, order)
    with store.reading_once():
        panel = read_panel(store, scope)
    short_names = _make_short_names(panel, _find_versioned(store))
    # The report must not begin with a run that has nothing to compare.
    short = panel.rename(short_names).move_unlabelled_last()
    # A run can also be named as in the output of `annotate agreement`.
    name = options.reference
    reference = resolve(short, None if name is None else short_names.get(name, name))
    return Subject(options, short, reference, others)


def _find_versioned(store: Store) -> set[tuple[str, str]]:
    """Return each (model, task) with runs on more than one version of the task.

    The task's name is given without the version.
    """
    only_tried = read_tried(store.conn)
    versions: dict[tuple[str, str], set[str]] = {}
    for run, model, task in store.conn.execute("SELECT run_id, model, task FROM runs"):
        if run not in only_tried:
            versions.setdefault((model, task.rpartition(".v")[0]), set()).add(task)
    return {key for key, tasks in versions.items() if len(tasks) > 1}


def _make_short_names(panel: Panel, in_versions: Collection[tuple[str, str]]) -> dict[str, str]:
    """Return a short unique name for each judge: the model and, if necessary, the task's version and the end
    of the run id.

    The name includes the version if the model has runs on several versions of the task, even if only one of
    these runs was chosen. The reader may know the other runs.
    """
    models: dict[str, str] = {}
    for name in panel.shown.values():
        model, task, _ = name.rsplit(" · ", 2)
        has_versions = model and (model, task.rpartition(".v")[0]) in in_versions
        models[name] = f"{model} · {task}" if has_versions else model
    # A person's name may equal the name of a model.
    uses = Counter([*models.values(), *(n for n in panel.ratings.annotators if n not in models)])
    return {
        name: model if model and uses[model] == 1 else f"{model} · {name.rpartition(' · ')[2]}"
        for name, model in models.items()
    }


def _choose(store: Store, options: ReportOptions) -> tuple[str | None, str, list[str]]:
    """Return the task (or None if no task defines the field), the field, and the other labelled fields of the task."""
    labelled = fields_of(store)
    if not labelled:
        conflicts = describe_conflicts(store)
        raise UsageError(
            f"{store.path}: {conflicts or 'there are no labels yet; to start a judge: ' + command('judge run TASK -m MODEL')}"
        )
    # A field can come from another program, without any task that defines it.
    if options.field is not None and options.task is None:
        return None, options.field, []
    task = (
        find_task(store, options.task)
        if options.task is not None
        else _get_only_task(store, [row.task for row in labelled if row.task])
    )
    if task is None:
        fields = sorted({row.field for row in labelled})
        if len(fields) > 1:
            raise UsageError(f"several fields have labels; name one with --field: {', '.join(fields)}")
        return None, fields[0], []
    # A task that the study has not used is loaded by the given name, which may be a path.
    name = task.name if _is_stored(store, task.name) else options.task
    annotators = {row.field: row.annotators for row in labelled if row.field in task.fields}
    if options.field is not None:
        return name, options.field, [f for f in annotators if f != options.field]
    if not annotators:
        raise UsageError(f"no field of {task.name} has labels yet ({', '.join(task.fields)})")
    # There is no coefficient of agreement for free text.
    usable = [f for f in task.fields if f in annotators and task.level(f) != "text"] or list(annotators)
    kind_of = dict(store.conn.execute("SELECT annotator_id, kind FROM annotators").fetchall())
    kinds = {f: {kind_of[a] for a in annotators[f]} for f in usable}
    # Prefer a field that was labelled by a judge and by somebody else.
    compared = [f for f in usable if len(kinds[f]) > 1 and AnnotatorKind.JUDGE in kinds[f]]
    field = (compared or usable)[0]
    return name, field, [f for f in usable if f != field]


def _is_stored(store: Store, task: str) -> bool:
    return store.conn.execute("SELECT 1 FROM tasks WHERE task = ?", [task]).fetchone() is not None


def _get_only_task(store: Store, labelled: Sequence[str]) -> Task | None:
    """Return the only task whose fields have labels. Raises UsageError if there are several."""
    names = [row[0] for row in store.conn.execute("SELECT task FROM tasks ORDER BY task_id, version DESC")]
    candidates = list(dict.fromkeys(n for n in names if n in labelled))
    if len(candidates) > 1:
        raise UsageError(
            f"the study has labels for several tasks; name one with --task: {', '.join(candidates)}"
        )
    return read_stored_task(store, candidates[0]) if candidates else None
