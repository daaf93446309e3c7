"""The reference labels that judges are compared with.

Every command selects them with one word: gold, decided, majority, or the name of an annotator.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from judge.errors import UsageError
from judge.labels.batches import members, weights
from judge.labels.panel import Panel
from judge.labels.scope import Scope, read_panel
from judge.labels.words import ALIASES, DECIDED, MAJORITY
from judge.stats import MISSING, IntArray
from judge.store import Store, label_rows
from judge.types import GOLD, AnnotatorKind


@dataclass(frozen=True)
class Reference:
    """The reference labels for one field.

    `word` is gold, decided, majority, or an annotator's name. `name` is the column in the panel's table, and
    `text` describes the reference. `chosen` is True if the user requested this reference, and False if it is
    the default.
    """

    word: str
    name: str
    text: str
    chosen: bool = False


def available_references(panel: Panel) -> list[Reference]:
    """Return the available references, in order of preference. The first one is the default."""
    references = []
    # A lead decides only where people differ. Decisions alone are the hardest units: a share of .25 there was .71 on all units.
    ruled = panel.select_kinds(AnnotatorKind.ADJUDICATED)
    if ruled and panel.decided is not None:
        d = panel.decided
        text = f"the adjudicated labels ({_units(d.n_ruled)}) and those that people agree on ({d.n_agreed:,})"
        references.append(Reference(DECIDED, d.name, text))
    elif ruled:
        references.append(Reference(DECIDED, ruled[0], "the adjudicated labels"))
    if gold := panel.select_kinds(AnnotatorKind.GOLD):
        references.append(Reference(GOLD, gold[0], "the gold labels"))
    if panel.majority is not None:
        references.append(Reference(MAJORITY, panel.majority.name, "the people's majority"))
    elif len(panel.people) == 1:
        references.append(Reference(MAJORITY, panel.people[0], f"the labels of {panel.people[0]}"))
    return references


def resolve(panel: Panel, requested: str | None = None) -> Reference | None:
    """Return the reference with this word or name.

    If no word is given, return the default reference, or None if no reference is available.

    Raises UsageError if the reference has no labels for the field, if the name is unknown, or if it is the name
    of the only judge.
    """
    known = available_references(panel)
    if requested is None:
        return next(iter(known), None)
    word = ALIASES.get(requested, requested)
    if panel.judges == [requested]:
        raise UsageError(f"--reference {requested}: this is the judge itself; choose another reference")
    for candidate in known:
        if word == candidate.word:
            return Reference(candidate.word, candidate.name, candidate.text, chosen=True)
    if requested in panel.ratings.annotators:
        return Reference(requested, requested, f"the labels of {requested}", chosen=True)
    names = [candidate.word for candidate in known] + panel.people
    available = ", ".join(list(dict.fromkeys(names))[:20]) or "none"
    raise UsageError(
        f"--reference {requested}: '{panel.field}' has no labels from this reference; available references: {available}"
    )


def list_compared_people(panel: Panel, reference: Reference | None) -> list[str]:
    """Return the people with whom the judge is compared in a verdict."""
    # A single annotator is ignored when another reference is requested by name.
    alone = len(panel.people) == 1 and reference is not None and reference.chosen
    return [] if alone and reference is not None and reference.name not in panel.people else panel.people


def _units(n: int) -> str:
    return f"{n:,} unit" if n == 1 else f"{n:,} units"


class ReferenceLabels:
    """The reference labels for all fields in a study, for measures that combine several fields.

    `word` is gold, decided, majority, or an annotator (for a judge, its run id). The labels for a field are
    the same as those of `resolve`, except if the word is `decided`. If `batch` is given, only the labels that
    the batch's annotators assigned to its units are used.
    """

    def __init__(self, store: Store, word: str, batch: str | None = None) -> None:
        """Check the reference. Raises UsageError if the reference has no labels, or if the batch does not exist."""
        self.store, self.word, self.batch = store, ALIASES.get(word, word), batch
        if batch is not None:
            members(store, batch)
        self._kinds = {name: AnnotatorKind(kind) for name, kind in label_rows.labellers(store.conn).items()}
        available = [word for word in (DECIDED, GOLD, MAJORITY) if self._find_annotators(word)]
        available += [name for name in self._kinds if self._kinds[name] == AnnotatorKind.HUMAN]
        if self.word not in available and word not in self._runs:
            listed = ", ".join(available[:10]) + (", …" if len(available) > 10 else "")
            raise UsageError(
                f"--reference {word}: no annotator with this name has any labels; available: {listed or 'none'}"
            )
        self._cache: dict[tuple[str, str], dict[str, str]] = {}

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The rowid of each unit in the study."""
        return {unit: n for n, unit in self.store.conn.execute("SELECT rowid, unit_id FROM units")}

    @cached_property
    def _runs(self) -> set[str]:
        return {run for (run,) in self.store.conn.execute("SELECT run_id FROM runs")}

    def _find_annotators(self, word: str) -> list[str]:
        """Return the annotators whose labels form this reference. The list is empty if there are none."""
        kinds = {GOLD: {AnnotatorKind.GOLD}, MAJORITY: {AnnotatorKind.HUMAN}}
        if word == DECIDED:
            # Without any decision, `decided` would be another word for `majority`.
            ruled = AnnotatorKind.ADJUDICATED in self._kinds.values()
            kinds[DECIDED] = {AnnotatorKind.HUMAN, AnnotatorKind.ADJUDICATED} if ruled else set()
        return [name for name, kind in self._kinds.items() if kind in kinds.get(word, ())]

    def labels(self, field: str, task: str) -> Mapping[str, str]:
        """Return each unit's label for a field that the task declares."""
        if (field, task) not in self._cache:
            self._cache[field, task] = self._read_labels(field, task)
        return self._cache[field, task]

    def read_by_number(self, field: str, task: str) -> Mapping[int, str]:
        """Return each unit's label for a field. The keys are the rowids of the units."""
        return {self.numbers[unit]: label for unit, label in self.labels(field, task).items()}

    def weights(self, field: str) -> dict[int | str, float]:
        """Return design weights for units and for questions. The keys are the rowids of units and the ids of
        questions.

        A question has a weight only if all its units have the same weight. The result is empty if all weights
        are equal, or if the reference is gold.
        """
        # How gold units were chosen is not recorded.
        if self.word == GOLD or not (by_unit := weights(self.store, self.batch, field)):
            return {}
        result: dict[int | str, float] = {}
        questions: dict[str, set[float]] = {}
        for n, unit, question in self.store.conn.execute("SELECT rowid, unit_id, question_id FROM units"):
            if unit in by_unit:
                result[n] = by_unit[unit]
                questions.setdefault(question, set()).add(by_unit[unit])
        return result | {
            q: unit_weights.pop() for q, unit_weights in questions.items() if len(unit_weights) == 1
        }

    def _read_labels(self, field: str, task: str) -> dict[str, str]:
        annotators = label_rows.labellers(self.store.conn, field)
        annotator_ids = tuple(
            name for name in self._find_annotators(self.word) or [self.word] if name in annotators
        )
        if not annotator_ids and self.word not in self._runs:
            return {}
        scope = Scope(field, task, self.batch, annotators=annotator_ids or (self.word,))
        try:
            panel = read_panel(self.store, scope, distributions=False, text=True)
        except UsageError:
            # No label within the batch, or a run of a task without the field.
            return {}
        codes = self._codes(panel)
        labelled = zip(panel.ratings.units, codes.tolist(), strict=True) if codes is not None else ()
        return {unit: panel.domain[code] for unit, code in labelled if code != MISSING}

    def _codes(self, panel: Panel) -> IntArray | None:
        # If people agree on all units of a field, a lead decides nothing there. The labels on which they agree count
        # as decided.
        computed = {DECIDED: panel.decided, MAJORITY: panel.majority}.get(self.word)
        if computed is not None:
            return computed.codes
        names = list(panel.ratings.annotators)
        if self.word in (DECIDED, GOLD, MAJORITY):
            names = [
                candidate.name for candidate in available_references(panel) if candidate.word == self.word
            ]
        return panel.ratings.column(names[0]) if names else None
