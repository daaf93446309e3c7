"""The reference labels that judges are compared with, by one word in every command: gold, decided, majority, or a name."""

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Reference:
    """The reference of one field. `word` is gold, decided, majority, or the annotator's name; `name` is the column of the
    panel's table, and `text` the words for it.

    `chosen`: it was asked for by name, not taken by default.
    """

    word: str
    name: str
    text: str
    chosen: bool = False


def there(panel: Panel) -> list[Reference]:
    """The words that can be held against, in the order in which they are taken by default."""
    found = []
    ruled = panel.of_kind(AnnotatorKind.ADJUDICATED)
    if ruled and panel.decided is not None:
        d = panel.decided
        text = f"the adjudicated labels ({_units(d.n_ruled)}) and those that people agree on ({d.n_agreed:,})"
        found.append(Reference(DECIDED, d.name, text))
    elif ruled:
        found.append(Reference(DECIDED, ruled[0], "the adjudicated labels"))
    if gold := panel.of_kind(AnnotatorKind.GOLD):
        found.append(Reference(GOLD, gold[0], "the gold labels"))
    if panel.majority is not None:
        found.append(Reference(MAJORITY, panel.majority.name, "the people's majority"))
    elif len(panel.people) == 1:
        found.append(Reference(MAJORITY, panel.people[0], f"the labels of {panel.people[0]}"))
    return found


def resolve(panel: Panel, wanted: str | None = None) -> Reference | None:
    """The reference of this word or name; without one the first that there is, None when there is nothing.

    Raises UsageError for a word that the field has no labels of, a name that is nobody's, and the only judge itself.
    """
    known = there(panel)
    if wanted is None:
        return next(iter(known), None)
    word = ALIASES.get(wanted, wanted)
    if panel.judges == [wanted]:
        raise UsageError(f"--reference {wanted}: that is the judge, and nothing is held against itself")
    for found in known:
        if word == found.word:
            return Reference(found.word, found.name, found.text, chosen=True)
    if wanted in panel.ratings.annotators:
        return Reference(wanted, wanted, f"the labels of {wanted}", chosen=True)
    names = [found.word for found in known] + panel.people
    told = ", ".join(list(dict.fromkeys(names))[:20]) or "none"
    raise UsageError(f"--reference {wanted}: no such labels of '{panel.field}'; references there are: {told}")


def voices(panel: Panel, reference: Reference | None) -> list[str]:
    """The people that a verdict compares the judge with: a single one does not speak where another was asked for by name."""
    alone = len(panel.people) == 1 and reference is not None and reference.chosen
    return [] if alone and reference is not None and reference.name not in panel.people else panel.people


def _units(n: int) -> str:
    return f"{n:,} unit" if n == 1 else f"{n:,} units"


class ReferenceLabels:
    """The labels of one reference over all fields of a study, for measures that combine the labels of several fields.

    `word` is gold, decided, majority, or an annotator (a judge by the id of its run). The labels of a field are those
    that `resolve` selects for that field alone, with one exception: where a field has no decisions but another field
    has, what people agree on counts as decided. `batch`: only labels of its people on its units.
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
        computed = {DECIDED: panel.decided, MAJORITY: panel.majority}.get(self.word)
        if computed is not None:
            return computed.codes
        names = list(panel.ratings.annotators)
        if self.word in (DECIDED, GOLD, MAJORITY):
            names = [found.name for found in there(panel) if found.word == self.word]
        return panel.ratings.column(names[0]) if names else None
