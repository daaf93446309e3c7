"""The labels of one reference over all fields of a study, for measures that put labels of several fields together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from judge.errors import UsageError
from judge.labels import relation
from judge.labels.batches import members, weights
from judge.labels.panel import Panel
from judge.labels.scope import Scope, read
from judge.labels.words import ALIASES, DECIDED, MAJORITY
from judge.stats import MISSING
from judge.stats.ratings import IntArray
from judge.store import Store
from judge.types import GOLD, AnnotatorKind


class Held:
    """Whose labels stand for the truth: `word` is gold, decided, majority, or an annotator (of a study: its id).

    Labels are those that `reference.resolve` gives for a field by itself. Where a field has no decisions but another
    has, what people agree on is decided all the same. `batch`: only labels of its people on its units.
    """

    def __init__(self, store: Store, word: str, batch: str | None = None) -> None:
        """Raises UsageError when nobody of this name has labelled anything, or there is no such batch."""
        self.store, self.word, self.batch = store, ALIASES.get(word, word), batch
        if batch is not None:
            members(store, batch)
        self._kinds = {name: AnnotatorKind(kind) for name, kind in relation.labellers(store.conn).items()}
        known = [word for word in (DECIDED, GOLD, MAJORITY) if self._whose(word)]
        known += [name for name in self._kinds if self._kinds[name] == AnnotatorKind.HUMAN]
        if self.word not in known and word not in self._runs:
            told = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
            raise UsageError(
                f"--reference {word}: no labels of such an annotator; there are: {told or 'none'}"
            )
        self._found: dict[tuple[str, str], dict[str, str]] = {}

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Unit -> its number in the study."""
        return {unit: n for n, unit in self.store.conn.execute("SELECT rowid, unit_id FROM units")}

    @cached_property
    def _runs(self) -> set[str]:
        return {run for (run,) in self.store.conn.execute("SELECT run_id FROM runs")}

    def _whose(self, word: str) -> list[str]:
        """The annotators that a word's labels are made of; none where it has none."""
        kinds = {GOLD: {AnnotatorKind.GOLD}, MAJORITY: {AnnotatorKind.HUMAN}}
        if word == DECIDED:
            ruled = AnnotatorKind.ADJUDICATED in self._kinds.values()
            kinds[DECIDED] = {AnnotatorKind.HUMAN, AnnotatorKind.ADJUDICATED} if ruled else set()
        return [name for name, kind in self._kinds.items() if kind in kinds.get(word, ())]

    def labels(self, field: str, task: str) -> Mapping[str, str]:
        """Unit -> label of a field as a task declares it."""
        if (field, task) not in self._found:
            self._found[field, task] = self._read(field, task)
        return self._found[field, task]

    def by_number(self, field: str, task: str) -> Mapping[int, str]:
        """The same by the units' numbers in the study."""
        return {self.numbers[unit]: label for unit, label in self.labels(field, task).items()}

    def weights(self, field: str) -> dict[int | str, float]:
        """For how many units a labelled unit stands, by its number, and by question where its units have one weight.

        Empty where all stand for as many, and for gold: how units came by it is not recorded.
        """
        if self.word == GOLD or not (own := weights(self.store, self.batch, field)):
            return {}
        found: dict[int | str, float] = {}
        questions: dict[str, set[float]] = {}
        for n, unit, question in self.store.conn.execute("SELECT rowid, unit_id, question_id FROM units"):
            if unit in own:
                found[n] = own[unit]
                questions.setdefault(question, set()).add(own[unit])
        return found | {q: some.pop() for q, some in questions.items() if len(some) == 1}

    def _read(self, field: str, task: str) -> dict[str, str]:
        there = relation.labellers(self.store.conn, field)
        whose = tuple(name for name in self._whose(self.word) or [self.word] if name in there)
        if not whose and self.word not in self._runs:
            return {}
        scope = Scope(field, task, self.batch, annotators=whose or (self.word,))
        try:
            panel = read(self.store, scope, distributions=False, text=True)
        except UsageError:  # nobody labelled it within the batch, or the run did not ask for it
            return {}
        codes = self._codes(panel)
        given = zip(panel.ratings.units, codes.tolist(), strict=True) if codes is not None else ()
        return {unit: panel.domain[code] for unit, code in given if code != MISSING}

    def _codes(self, panel: Panel) -> IntArray | None:
        made = {DECIDED: panel.decided, MAJORITY: panel.majority}.get(self.word)
        if made is not None:
            return made.codes
        names = list(panel.ratings.annotators)
        if self.word == DECIDED:
            names = panel.of_kind(AnnotatorKind.ADJUDICATED)
        elif self.word == MAJORITY and len(names) > 1:
            names = []  # numbers have no majority
        return panel.ratings.column(names[0]) if names else None
