"""What a report is about: one field, the people and judges who labelled it, and the reference.

`load` fills in what the command leaves open.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from functools import cached_property
from itertools import combinations
from pathlib import Path

from judge.errors import UsageError
from judge.labels.panel import Derived, Panel
from judge.labels.reference import Reference, resolve
from judge.labels.scope import Scope, all_in_conflict, fields_of, read
from judge.prompts.load import Task
from judge.stats.metrics import shown
from judge.stats.ratings import IntArray
from judge.store import Store
from judge.store.export import known_task, stored_task
from judge.types import AnnotatorKind, Measure

# More people than this make more pairs than a table can show: they are summarised.
MANY = 8
CEILING = ("percent", "krippendorff_alpha", "fleiss_kappa", "gwet_ac1")
ORDERED_CEILING = ("percent", "krippendorff_alpha", "gwet_ac2")


@dataclass(frozen=True)
class ReportOptions:
    """What the command asks for; None or empty takes the default that the report then names."""

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
    clustered: bool = True
    limit: int = 50
    curve: bool = False
    annotators: Sequence[str] | None = None
    level: str | None = None
    order: Sequence[str] | None = None
    view: str | None = None
    """A page of `annotate view`, to which the units of the report link."""


@dataclass(frozen=True, eq=False)
class Subject:
    """The labels of one field, and what judges are held against (None: there is nothing). `table`: they are no study's.

    `kept` and `others_of` are what `summary` has computed already, for the drawing and the table."""

    asked: ReportOptions
    panel: Panel
    held: Reference | None
    other_fields: Sequence[str] = ()
    table: Path | None = None
    kept: dict[tuple[str, str, bytes, bytes], Measure] = default(default_factory=dict)
    others_of: dict[str, IntArray] = default(default_factory=dict)

    @property
    def majority(self) -> str | None:
        """The column of the people's majority, where there are two people or more."""
        return self.panel.majority.name if self.panel.majority else None

    @property
    def n_tied(self) -> int:
        return self.panel.majority.n_tied if self.panel.majority else 0

    @property
    def decided(self) -> Derived | None:
        """What a lead decided, with what people agree on elsewhere."""
        return self.panel.decided if self.panel.of_kind(AnnotatorKind.ADJUDICATED) else None

    @property
    def reference(self) -> str | None:
        """The column that judges are held against."""
        return self.held.name if self.held else None

    @property
    def reference_kind(self) -> str | None:
        """The word for it: gold, decided, majority, or a person's name."""
        return self.held.word if self.held else None

    @property
    def reference_text(self) -> str:
        """The reference in words."""
        return self.held.text if self.held else "none"

    @property
    def coefficient_name(self) -> str:
        """The same in words."""
        return shown(self.panel.coefficient)

    @cached_property
    def run_ids(self) -> Mapping[str, str]:
        """Name of a judge in the table -> run id; judges of a table have none."""
        return {shown: run for run, shown in self.panel.shown.items()}

    @property
    def waiting(self) -> Mapping[str, Mapping[str, int]]:
        """Person -> layer -> labels that are not known to be blind, and are not used."""
        return {n: own for n, own in self.panel.layers.items() if n not in self.panel.others}

    @cached_property
    def pairs(self) -> list[tuple[str, str, Measure, Measure]]:
        """Percent agreement and the coefficient of every two people, on the units that people labelled."""
        # Numbers are seldom the same to the last digit: how often they are says nothing.
        keys = [self.panel.coefficient] if self.panel.numeric else ["percent", self.panel.coefficient]
        found = [
            (*pair, self.panel.measure(pair, self.panel.keys(keys)))
            for pair in combinations(self.panel.people, 2)
        ]
        return [(first, second, m[0], m[-1]) for first, second, m in found]

    def measure(self, first: str, second: str, *names: str) -> list[Measure]:
        """Coefficients of two annotators, by default the one of the level."""
        keys = self.panel.keys(names or [self.panel.coefficient])
        return self.panel.measure([first, second], keys, confidence=self.panel.confidence(first, second))


def load(store: Store, asked: ReportOptions) -> Subject:
    """The subject that the command asks for, with defaults filled in.

    Raises UsageError for names that are not in the study, and where a choice is left open.
    """
    task, field, others = _choose(store, asked)
    people = None if asked.annotators is None else tuple(asked.annotators)
    order = None if asked.order is None else tuple(asked.order)
    panel = read(store, Scope(field, task, asked.batch, tuple(asked.runs), people, asked.level, order))
    short = _shorter(panel)
    wanted = asked.reference
    # A run goes by the name that annotate agreement shows, too.
    held = resolve(short, None if wanted is None else dict(_renaming(panel)).get(wanted, wanted))
    return Subject(asked, short, held, others)


def _shorter(panel: Panel) -> Panel:
    """The same with judges under the shortest names that tell them apart: the model, or model and end of the run's id."""
    return panel.renamed(_renaming(panel))


def _renaming(panel: Panel) -> dict[str, str]:
    models = {name: name.rpartition(" · ")[0].rpartition(" · ")[0] for name in panel.shown.values()}
    taken = Counter([*models.values(), *(n for n in panel.ratings.annotators if n not in models)])
    return {
        name: model if model and taken[model] == 1 else f"{model} · {name.rpartition(' · ')[2]}"
        for name, model in models.items()
    }


def _choose(store: Store, asked: ReportOptions) -> tuple[str | None, str, list[str]]:
    """The task (None when no task defines the field), the field, and the task's other labelled fields."""
    labelled = fields_of(store)
    if not labelled:
        conflicts = all_in_conflict(store)
        raise UsageError(
            f"{store.path}: {conflicts or 'there are no labels yet (judge items import, judge run)'}"
        )
    if asked.field is not None and asked.task is None:
        return None, asked.field, []
    task = (
        known_task(store, asked.task)
        if asked.task is not None
        else _only_task(store, [row.task for row in labelled if row.task])
    )
    if task is None:
        fields = sorted({row.field for row in labelled})
        if len(fields) > 1:
            raise UsageError(f"name one field with --field: {', '.join(fields)}")
        return None, fields[0], []
    # A task that the study has not used is found again by what the user called it, which may be a path.
    name = task.name if _is_stored(store, task.name) else asked.task
    mine = {row.field: row.annotators for row in labelled if row.field in task.fields}
    if asked.field is not None:
        return name, asked.field, [f for f in mine if f != asked.field]
    if not mine:
        raise UsageError(f"nobody labelled a field of {task.name} ({', '.join(task.fields)})")
    usable = [f for f in task.fields if f in mine and task.level(f) != "text"] or list(mine)
    kinds = dict(store.conn.execute("SELECT annotator_id, kind FROM annotators").fetchall())
    # A judge and somebody else labelled them.
    compared = [f for f in usable if len(of := {kinds[a] for a in mine[f]}) > 1 and AnnotatorKind.JUDGE in of]
    field = (compared or usable)[0]
    return name, field, [f for f in usable if f != field]


def _is_stored(store: Store, task: str) -> bool:
    return store.conn.execute("SELECT 1 FROM tasks WHERE task = ?", [task]).fetchone() is not None


def _only_task(store: Store, labelled: Sequence[str]) -> Task | None:
    """The only task whose fields have labels."""
    names = [row[0] for row in store.conn.execute("SELECT task FROM tasks ORDER BY task_id, version DESC")]
    candidates = list(dict.fromkeys(n for n in names if n in labelled))
    if len(candidates) > 1:
        raise UsageError(
            f"the study has labels for several tasks; name one with --task: {', '.join(candidates)}"
        )
    return stored_task(store, candidates[0]) if candidates else None
