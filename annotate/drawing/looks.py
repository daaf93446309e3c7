"""Find the units that determine the verdict on each judge, and the judges that share a significance level.

The verdict is computed after planned numbers of units. Each of these computations is called a look.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from annotate.drawing.sequences import DrawnBatch, DrawnSequence, read_drawn_batches, seats_of, sequences
from judge.commands import command
from judge.labels.panel import Panel
from judge.labels.relation import count_labelled_since, judges_of
from judge.labels.split import find
from judge.labels.words import MAJORITY
from judge.stats import MISSING, Ratings
from judge.stats.looks import MOST_MISSING, ONE_LOOK, Draw, Looks, compute_spent, places_until
from judge.stats.ratings import BoolArray
from judge.store import Store
from judge.store.derived import read_derivation
from judge.store.runs import IMPORTED
from judge.store.splits import read_closed_units
from judge.store.study import dumps

STAND_IN = "scripted/"
"""The prefix of models that replace a judge in tests and documentation."""
FROM_FILE = "scripted/file"
"""The exception to `STAND_IN`. This model reads its answers from a file, and a real judge may have given them."""
# A verdict also makes no statement on a label with fewer units.
LEAST_UNITS = 10
"""The share of missing labels is checked for each label that at least this many units have."""


@dataclass(frozen=True, eq=False)
class StudyDraws:
    """How the labelled units of a field were drawn.

    If `batch` is given, only labels from this batch are used. If `is_table` is true, the labels come from a
    table, and there is no study.
    """

    store: Store
    panel: Panel
    batch: str | None = None
    is_table: bool = False

    @cached_property
    def batches(self) -> list[DrawnBatch]:
        """The batches whose task has the field, the oldest first."""
        return [] if self.is_table else read_drawn_batches(self.store, self.panel.field)

    @cached_property
    def sequence(self) -> DrawnSequence | None:
        """The sequence of units that is used for the verdict, or None if there is none.

        If a batch was requested, this is the sequence that contains the batch. Otherwise, it is the sequence
        of the newest frame.
        """
        candidates = sequences(self.store, self.panel.field) if self.batches else []
        if self.batch is not None:
            candidates = [s for s in candidates if self.batch in (b.name for b in s.batches)]
        return candidates[-1] if candidates else None

    @cached_property
    def _given(self) -> dict[str, set[str]]:
        """For each annotator, the labelled units of the sequence. Annotators stopped by a lead are excluded."""
        given: dict[str, set[str]] = {}
        for batch in self.sequence.batches if self.sequence else ():
            for seat in seats_of(self.store, batch.name):
                if not seat.stopped:
                    given.setdefault(seat.person, set()).update([seat.unit] if seat.counts else [])
        return given

    def people(self, labelled_by: Sequence[str]) -> list[str]:
        """Return the people whose labels count for the verdict: the annotators of the sequence, or all people
        if there is no sequence.
        """
        return [person for person in labelled_by if person in self._given] or list(labelled_by)

    def reference(self, name: str | None, people: Sequence[str]) -> str | None:
        """Return `name`, the reference for a comparison with these people, or None if the verdict must not use it.

        If there is a sequence, the verdict must not use a reference that may contain imported labels.
        """
        # Imported labels are not drawn with known probabilities, so no verdict may rest on them if there is a
        # batch.
        if self.sequence is None or not people or name in people:
            return name
        # A majority with the votes of other people would bring imported labels back in.
        of_batch = (
            self.panel.kind(name) == MAJORITY and set(people) == set(self.panel.people) if name else False
        )
        return name if of_batch else None

    def table(self, ratings: Ratings) -> Ratings:
        """Return the labels that the verdict on a judge uses.

        Human labels that were not given in the sequence are removed.
        """
        # The units of other labels may have been chosen, for example because the judge is right on them.
        codes = ratings.codes.copy()
        drawn = _among(ratings, self.sequence.units if self.sequence else ())
        for column, person in enumerate(ratings.annotators):
            if person in self._given:
                codes[~_among(ratings, self._given[person]), column] = MISSING
            elif person not in self.panel.judges:
                # A majority also counts only on the drawn units.
                codes[~drawn, column] = MISSING
        columns = {person: column for column, person in enumerate(ratings.annotators)}
        rows = {unit: row for row, unit in enumerate(ratings.units)}
        for person, unit, value in _read_lost_labels(self.store, self.panel.field, self.sequence):
            if person in columns and unit in rows and value in ratings.domain:
                codes[rows[unit], columns[person]] = ratings.domain.index(value)
        return replace(ratings, codes=codes) if self._given else ratings

    def find_draw(self, judge: str, ratings: Ratings, people: Sequence[str]) -> Draw:
        """Return how the units in a judge's table were drawn, and the looks (computations of the verdict).

        `people` are the annotators with whom the judge is compared.
        """
        draw = self._find_draw(judge, ratings)
        closed = self._read_closed(judge, self.run_of(judge))
        if closed:
            draw = replace(draw, words=f"outside the sealed test, {draw.words}")
        if draw.refused or draw.looks is None:
            return draw
        if closed and self.panel.task is not None:
            # Looks at a part of the units, and further looks at the test, would spend the level twice.
            return replace(
                draw,
                refused="its looks include the units of the sealed test; to open the test: "
                + command("judge compare", self.panel.task.task_id, "--part", "test"),
            )
        if not set(people) & set(self._given):
            return Draw(
                "whose labels were imported",
                refused="the study has batches, so imported labels give only estimates: omit --reference and --annotators",
            )
        if absent := sorted({person for person, units in self._given.items() if units} - set(people)):
            return Draw(
                draw.words,
                refused=f"the verdict rests on everybody who labelled these units, including {', '.join(absent)}: omit "
                "--annotators",
            )
        return draw

    @cached_property
    def _stopped(self) -> list[str]:
        """The annotators whom a lead stopped in the sequence. Their labels do not count."""
        batches = self.sequence.batches if self.sequence else ()
        return sorted({seat.person for b in batches for seat in seats_of(self.store, b.name) if seat.stopped})

    def _explain_no_labels(self, judge: str) -> str:
        """Return the reason why a judge cannot be compared, and what the user can do.

        Return "" if the judge labelled at least one of the units that others labelled.
        """
        panel, run = self.panel, self.run_of(judge)
        if not panel.lacks_labels(judge):
            return ""
        units = [panel.table.units[i] for i in np.flatnonzero(panel.by_others)]
        # The judge has labels, but it was fitted on these questions, or their sealed test is closed for it.
        if run is not None and run in judges_of(self.store.conn, panel.field, units):
            return ""
        reason = f"no labels from {judge} on the {len(units):,} units that others labelled"
        if run is None:
            return reason
        # Only a run that judged these units has stored a reason, such as unparsed replies.
        if (panel.asked_units[judge] & panel.by_others).any():
            return f"{reason}. To see why: {command('judge runs show', run)}"
        task = panel.task.name if panel.task is not None else "TASK"
        return f"{reason}. To judge these units: {command('judge run', task, '-m', self._model(run))}"

    def _find_draw(self, judge: str, ratings: Ratings) -> Draw:
        if reason := self._explain_no_labels(judge):
            return Draw("that it labelled", refused=reason, no_labels=True)
        if self.is_table and self.panel.weights:
            return Draw(
                "drawn with unequal probabilities (column 'weight')",
                refused="these units were not drawn with equal probability: column 'weight' has several values. For a "
                f"verdict, draw a batch: {command('annotate batches new NAME TASK -n 300', '--annotators', ','.join(self.panel.people) or 'A,B')}",
            )
        if self.is_table:
            # The judges share the significance level, because the best of them is chosen on these labels.
            return Draw(family=tuple(name for name in self.panel.judges if not self.panel.lacks_labels(name)))
        if not self.batches and _has_unequal_import(self.store, self.panel.field):
            return Draw(
                "drawn with unequal probabilities (column 'weight' of their file)", refused=self._uneven
            )
        if not self.batches:
            words = "as they were imported; how they were chosen is not recorded: one look"
            # A sealed test has its own significance level.
            alone = judge in self.panel.looks or self._is_stand_in(self.run_of(judge) or judge)
            family = () if alone else self._beside_imported
            return Draw(words, unlabelled=self._warn_unlabelled(judge, None), family=family)
        sequence = self.sequence
        if sequence is None:
            return Draw("drawn with unequal probabilities", refused=self._uneven)
        words = f"drawn with equal probability from {sequence.frame}"
        if self._stopped:
            # Stopping an annotator is a choice of labels, so the sentence on the verdict must name it.
            who = self._stopped[0] if len(self._stopped) == 1 else f"{len(self._stopped)} people"
            words += f" ({who} stopped)"
        if sequence.later is not None:
            return Draw(
                words,
                refused=f"batch '{sequence.later}' was drawn later from a frame that shares units with this frame, and replaces this verdict",
            )
        if not sequence.level:
            return Draw(
                words,
                refused="looks at a frame that shares units with this frame have spent the significance level. Draw other units "
                "(a new batch with --where)",
            )
        if self.batch is not None and len(sequence.batches) > 1:
            names = ", ".join(b.name for b in sequence.batches)
            return Draw(
                words, refused=f"one verdict rests on all batches of this frame ({names}): omit --batch"
            )
        first = self._first_batch(judge, sequence)
        if first is None and judge in self.panel.looks:
            return self._find_sealed_draw(judge, ratings, sequence)
        if first is None:
            return Draw(words, refused=self._describe_late(judge, sequence))
        return self._looks(words, ratings, sequence, first, judge)

    @cached_property
    def _beside_imported(self) -> tuple[str, ...]:
        """The judges that share one significance level when all human labels were imported.

        These are the judges that labelled at least half of the units that others labelled.
        """
        table = self.panel.table
        labelled = np.zeros(len(table.units), dtype=np.bool_)
        for name in table.annotators:
            if name not in self.panel.judges:
                labelled |= self.panel.labels_of(name) != MISSING
        units = [table.units[i] for i in np.flatnonzero(labelled)]
        judges = judges_of(self.store.conn, self.panel.field, units)
        return tuple(run for run, n in judges.items() if 2 * n >= len(units) and not self._is_stand_in(run))

    @property
    def _uneven(self) -> str:
        return f"these units were not drawn with equal probability. For a verdict, draw a batch: {self._command()}"

    def _command(self, n: int = 300) -> str:
        """Return the command that draws units with equal probabilities."""
        task = self.batches[-1].task if self.batches else self.panel.task.name if self.panel.task else "TASK"
        people = ",".join(self.panel.people) or "A,B"
        return command("annotate batches new NAME", task, "-n", n, "--annotators", people)

    def _describe_late(self, judge: str, sequence: DrawnSequence) -> str:
        left = sequence.end - len(sequence.units)
        # A test that is sealed from now on does not help: this judge may have been chosen with its labels.
        command = f"For a verdict, draw more units: {self._command(min(300, left))}"
        if not left:
            # A command that asks for more units than there are would fail as printed.
            command = "No unit is left to draw: import more items"
        reason = f"labels for these units were compared with another judge before {judge} was added"
        return f"{reason}. {command}"

    def _warn_unlabelled(self, judge: str, drawn: Sequence[str] | None) -> str:
        """Return a warning if the judge did not label enough of the units that other annotators labelled.

        The warning contains a command that adds the missing labels. Return "" if no warning is needed.
        `drawn` contains the units of the sequence. If it is None, the units in the judge's run are used.
        """
        run = self.run_of(judge)
        made = read_derivation(self.store.conn, run) if run is not None else None
        # A route leaves units out on purpose.
        if run is None or (made and made["kind"] == "routed"):
            return ""
        table = self.panel.table
        judged = self.panel.asked_units[judge]
        if drawn is not None:
            judged = _among(table, set(drawn) - self._read_closed(judge, run))
        if self.panel.people:
            judged = judged & self.panel.by_people
        if not (missing := _missing_labels(self.panel, judge, judged)):
            return ""
        task = self.panel.task.name if self.panel.task is not None else "TASK"
        how = command("judge run", task, "-m", self._model(run))
        if made:
            how = "run its parents on them, and derive it again"
        return f"the judge has no label on {missing}, which may be harder: {how}"

    def _read_closed(self, judge: str, run: str | None) -> set[str]:
        """Return the units of a sealed test that was not opened for the judge. The judge therefore has no
        labels on these units.
        """
        if self.panel.task is None or run is None or judge in self.panel.looks:
            return set()
        split = find(self.store, self.panel.task)
        return read_closed_units(self.store, split.task_id, run) if split is not None else set()

    def _model(self, run: str) -> str:
        row = self.store.conn.execute("SELECT model FROM runs WHERE run_id = ?", [run]).fetchone()
        return str(row[0]) if row is not None else "MODEL"

    def run_of(self, judge: str) -> str | None:
        """Return the id of the run that has this name in the panel, or None for a judge in a table."""
        return next((run for run, name in self.panel.shown.items() if name == judge), None)

    def _find_sealed_draw(self, judge: str, ratings: Ratings, sequence: DrawnSequence) -> Draw:
        """Return the sample of sealed-test units on which the verdict on a judge can rest.

        This applies to a judge that was added after labels had been compared with other judges. The verdict
        is computed once, on the labels that existed when the test was opened for the judge. For the k-th
        opening of the test, the significance level is .05 / 2^k.
        """
        # The look counts only labels that existed when it was logged.
        words, look, task = (
            "of the sealed test, drawn with equal probability",
            self.panel.looks[judge],
            self.panel.task,
        )
        split = find(self.store, task) if task is not None else None
        if split is None:
            return Draw(words, refused="the task no longer has a split")
        run = self.run_of(judge) or judge
        (started,) = self.store.conn.execute("SELECT started FROM runs WHERE run_id = ?", [run]).fetchone()
        opened = split.looks[0].at
        if not split.drawn.made <= started <= opened:
            # Labels of the test were shown before it was sealed, or from the first look on.
            when = f"opened before {judge} was" if started > opened else f"sealed after {judge} was"
            return Draw(
                words,
                refused=f"the test was {when} added, so labels for these units may have influenced the choice of the judge: draw more units",
            )
        query = "SELECT unit_id FROM units WHERE question_id IN (SELECT value FROM json_each(?))"
        sealed = {u for (u,) in self.store.conn.execute(query, [dumps(sorted(split.questions("test")))])}
        used = _among(ratings, sealed & set(sequence.units))
        units = [unit for unit, is_used in zip(ratings.units, used.tolist(), strict=True) if is_used]
        if later := count_labelled_since(self.store.conn, self.panel.field, units, look.at):
            return Draw(
                words,
                refused=f"{later:,} of these units were labelled after look {look.look} at the sealed test; for the next look: "
                f"{command('judge compare TASK', '--part', 'test')}",
            )
        n = int(used.sum())
        # The level of a look at the test is two-sided, and those of `Looks` are one-sided.
        return Draw(words, looks=Looks((used,), (n,), (), (look.level / 2,), n))

    def _looks(self, words: str, ratings: Ratings, sequence: DrawnSequence, first: int, judge: str) -> Draw:
        """Return the draw for a judge, including the looks (planned computations of the verdict).

        Only units of the batch with the index `first` and of later batches are used.
        """
        start = sequence.since(first)
        size = len(sequence.units) - start
        places = places_until(sequence.end - start)
        spent = compute_spent(places, sequence.end - start)
        if sequence.one_look and first == 0:
            places, spent = (len(sequence.batches[0].units),), (ONE_LOOK,)
        spent = tuple(sequence.level * level for level in spent)
        done = [sequence.place(start + place) for place in places if sequence.is_complete(start + place)]
        covered = sequence.covered[start : done[-1]] if done else ()
        looks = Looks(
            tuple(_among(ratings, sequence.units[start:end]) for end in done),
            tuple(end - start for end in done),
            places[len(done) :],
            spent,
            size,
            1 - sum(covered) / len(covered) if covered else 0.0,
        )
        # A scripted judge in the family would leave the real judges a smaller share of the level.
        family = [run for run in sequence.batches[first].plan.judges if not self._is_stand_in(run)]
        missing = self._warn_unlabelled(judge, sequence.units[start : done[-1]]) if done else ""
        draw = Draw(words, looks=looks, unlabelled=missing, family=tuple(family) if done else ())
        if done:
            return draw
        waits = "labelled or skipped by everybody"
        if sequence.closed is not None:
            waits += f"; batch '{sequence.closed}' is closed with open units: stop their annotators, or {command('annotate batches close', sequence.closed, '--undo')}"
        return replace(
            draw, refused=f"the first verdict is computed when the first {places[0]:,} units are {waits}"
        )

    def _first_batch(self, judge: str, sequence: DrawnSequence) -> int | None:
        """Return the index of the first batch whose labels cannot have influenced the choice of the judge.
        Return None if there is no such batch.
        """
        run = self.run_of(judge) or judge
        if self._is_stand_in(run):
            return 0
        families = [batch.plan.judges for batch in sequence.batches]
        # A family is declared at the draw, or fixed when labels of the batch are first compared with a judge.
        # So no label of a batch without a family has been shown yet.
        return next((i for i, family in enumerate(families) if not family or run in family), None)

    def _is_stand_in(self, run: str) -> bool:
        """Return whether the scripted provider gave the labels in this run. Imported labels never count as
        scripted.
        """
        query = (
            "SELECT coalesce(json_extract(options, '$.asked_as'), model), options FROM runs WHERE run_id = ?"
        )
        row = self.store.conn.execute(query, [run]).fetchone()
        if row is None:
            return False
        model, options = row
        return str(model).startswith(STAND_IN) and model != FROM_FILE and IMPORTED not in json.loads(options)


def _has_unequal_import(store: Store, field: str) -> bool:
    """Return whether labels of this field were imported from a file with unequal design weights.

    Only imports that do not belong to a batch count.
    """
    query = "SELECT 1 FROM label_imports AS i, json_each(i.counts, '$.unequal') AS f WHERE i.batch IS NULL AND f.value = ?"
    return store.conn.execute(query, [field]).fetchone() is not None


def _read_lost_labels(store: Store, field: str, sequence: DrawnSequence | None) -> list[tuple[str, str, str]]:
    """Return (person, unit, label) for each label in a sequence that was overridden later.

    A label is overridden when its conflict with a label from another source is resolved.
    """
    # The verdict keeps these labels. Otherwise, somebody who imports labels and resolves conflicts could make
    # people agree with the judge.
    query = (
        "SELECT s.annotator_id, s.unit_id, s.value FROM label_sources AS s JOIN label_resolutions AS r "
        "USING (annotator_id, unit_id, repeat, source, field, value) WHERE r.given IS s.given AND s.field = ? "
        "AND s.repeat = 0 AND s.layer = 'first' AND s.source IN (SELECT value FROM json_each(?))"
    )
    names = [f"batch:{b.name}" for b in sequence.batches] if sequence else []
    return store.conn.execute(query, [field, dumps(names)]).fetchall()


def _missing_labels(panel: Panel, judge: str, judged: BoolArray) -> str:
    """Describe how many of the `judged` units lack a label from the judge. Return "" if the number is acceptable."""
    table = panel.table
    missing = panel.labels_of(judge) == MISSING
    others = panel.people or [name for name in table.annotators if name not in panel.judges]
    # A judge that fails on most units of a rare label lacks few labels in all, and would seem better than it
    # is. So the units of each label count separately.
    parts = [("", judged)]
    for code, label in enumerate(panel.domain):
        given = np.zeros_like(judged)
        for other in others:
            given |= panel.labels_of(other) == code
        if (judged & given).sum() >= LEAST_UNITS:
            parts.append((f" labelled '{label}'", judged & given))
    for words, part in parts:
        units = np.flatnonzero(part & missing)
        if len(units) > MOST_MISSING * int(part.sum()):
            return f"{len(units):,} of {int(part.sum()):,} units{words} ({table.units[units[0]]} ...)"
    return ""


def _among(ratings: Ratings, units: Sequence[str] | set[str]) -> BoolArray:
    """Return a boolean mask over the table's units that is true for each of the given units."""
    chosen = set(units)
    return np.array([unit in chosen for unit in ratings.units], dtype=np.bool_)
