"""Find the labelled units that determine the verdict on each judge, and how they were drawn.

Tables, imported labels and drawn batches differ only in the `Draw` that this module returns. The function
`judge.stats.verdict` decides all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from annotate.drawing.sequences import DrawnBatch, DrawnSequence, read_drawn_batches, seats_of, sequences
from judge.commands import command
from judge.labels.panel import Panel
from judge.labels.relation import judges_of, read_people, read_units_with_labels
from judge.labels.split import find
from judge.labels.words import MAJORITY
from judge.run_options import repeat_command
from judge.stats import MISSING, Ratings
from judge.stats.looks import ONE_LOOK, Draw, Looks, compute_spent, places_until
from judge.stats.ratings import BoolArray
from judge.store import Store
from judge.store.derived import read_derivation
from judge.store.label_rows import OLD_TEXT, find_outdated
from judge.store.splits import read_closed_units
from judge.store.study import dumps
from judge.types import AnnotatorKind


@dataclass(frozen=True, eq=False)
class VerdictSource:
    """The labels of a field, and how the labelled units were drawn.

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

    def of_judge(self, judge: str) -> "JudgeUnits":
        """Return the units for a judge in the panel.

        If no batch tests the judge, these are the units of the newest sampling frame. They give only
        estimates.
        """
        run = self.run_of(judge)
        tested = self._newest([b for b in self.batches if run in b.judges])
        return JudgeUnits(self, judge, tested or self._newest(self.batches), tested is not None)

    def _newest(self, batches: Sequence[DrawnBatch]) -> DrawnSequence | None:
        candidates = sequences(self.store, batches)
        if self.batch is not None:
            candidates = [s for s in candidates if self.batch in (b.name for b in s.batches)]
        return candidates[-1] if candidates else None

    def run_of(self, judge: str) -> str | None:
        """Return the id of the run that has this name in the panel, or None for a judge in a table."""
        return next((run for run, name in self.panel.shown.items() if name == judge), None)

    @cached_property
    def n_judges(self) -> int:
        """The number of judges that share the level if there is no batch: all with any label on these units."""
        panel = self.panel
        if self.is_table:
            left_out = sum(kind is AnnotatorKind.JUDGE for kind in panel.left_out.values())
            return max(1, left_out + sum(not panel.lacks_labels(judge) for judge in panel.judges))
        # Read from the study, because the panel lacks annotators and judges that the user left out.
        units = read_units_with_labels(self.store.conn, panel.field)
        return max(1, len(judges_of(self.store.conn, panel.field, sorted(units))))

    def draw_command(self, judge: str) -> str:
        """Return the command that draws units with equal probabilities, on which this judge is tested."""
        task = self.batches[-1].task if self.batches else self.panel.task.name if self.panel.task else "TASK"
        people = ",".join(self.panel.people) or "A,B"
        run = self.run_of(judge)
        options = ["--judges", run] if run is not None else []
        return command("annotate batches new NAME", task, "-n", 300, "--annotators", people, *options)


@dataclass(frozen=True, eq=False)
class JudgeUnits:
    """The units on which one judge is compared with people.

    `sequence` contains the drawn units, or is None if no units were drawn with equal probabilities. `is_tested`
    states whether the draw declared this judge.
    """

    source: VerdictSource
    judge: str
    sequence: DrawnSequence | None
    is_tested: bool

    @cached_property
    def _given(self) -> dict[str, set[str]]:
        """For each annotator, the labelled units of the sequence. Annotators stopped by a lead are excluded."""
        given: dict[str, set[str]] = {}
        for batch in self.sequence.batches if self.sequence else ():
            for seat in seats_of(self.source.store, batch.name):
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
        panel = self.source.panel
        # Imported labels are not drawn with known probabilities, so no verdict may rest on them if there is a
        # batch.
        if self.sequence is None or not people or name in people:
            return name
        # A majority with the votes of other people would bring imported labels back in.
        of_batch = panel.kind(name) == MAJORITY and set(people) == set(panel.people) if name else False
        return name if of_batch else None

    def table(self, reference: str | None, people: Sequence[str]) -> Ratings:
        """Return the labels that the verdict uses. Every unit in the table counts as drawn.

        If there is a sequence, human labels that were not given in it are removed. Otherwise the units are
        all that the judge or one of the people (or the reference) labelled or was asked to label.
        """
        panel = self.source.panel
        others = [*people, *([reference] if reference else [])]
        ratings = panel.select_judged(self.judge, others)
        if not self._given:
            return ratings
        # The units of other labels may have been chosen, for example because the judge is right on them.
        ratings = ratings.subset(_among(ratings, self.sequence.units if self.sequence else ()))
        codes = ratings.codes.copy()
        for column, person in enumerate(ratings.annotators):
            if person in self._given:
                codes[~_among(ratings, self._given[person]), column] = MISSING
        columns = {person: column for column, person in enumerate(ratings.annotators)}
        rows = {unit: row for row, unit in enumerate(ratings.units)}
        for person, unit, value in _read_lost_labels(self.source.store, panel.field, self.sequence):
            if person in columns and unit in rows and value in ratings.domain:
                codes[rows[unit], columns[person]] = ratings.domain.index(value)
        return replace(ratings, codes=codes)

    def draw(self, ratings: Ratings, people: Sequence[str]) -> Draw:
        """Return how the units in `ratings`, the result of `table`, were drawn, and the looks at them.

        `people` are the annotators with whom the judge is compared.
        """
        panel, sequence = self.source.panel, self.sequence
        if reason := self._explain_no_labels():
            return Draw("that it labelled", refused=reason, no_labels=True)
        held_up = ""
        if n := sum(panel.conflicts.values()):
            # Leaving hard units in conflict must not help: the other units could look better than the sample is.
            noun = "label is" if n == 1 else "labels are"
            held_up = f"{n:,} {noun} in conflict ({command('annotate conflicts list')})"
        if self._unequal:
            how = " (column 'weight')" if self.source.is_table or not self.source.batches else ""
            refused = f"these units were not drawn with equal probability{how}. For a verdict, draw a batch: {self._draw_command}"
            return Draw(f"drawn with unequal probabilities{how}", True, refused=refused)
        # Whoever leaves people out would choose those who agree with the judge.
        absent = sorted(self._labelled_by - set(people)) if people else []
        if sequence is None:
            words = "in the table" if self.source.is_table else "with imported labels"
            draw = Draw(words, judges=self.source.n_judges, objection=held_up, remedy=self._remedy())
            # Somebody who corrects texts after seeing a verdict, and has their units labelled again, looks twice.
            if n := self._count_corrected(ratings):
                reason = (
                    f"texts were corrected after they were labelled ({n:,} units), which costs the one look at imported labels. "
                    f"For a verdict, draw a batch: {self._draw_command}"
                )
                draw = replace(draw, refused=reason)
        else:
            draw = replace(self._draw_looks(sequence, ratings), objection=held_up, remedy=self._remedy())
            if not set(people) & set(self._given):
                reason = "the study has batches, so imported labels give only estimates: omit --reference and --annotators"
                return Draw("whose labels were imported", refused=reason)
        if absent and not draw.refused:
            way = (
                "add them to --annotators, or remove the column"
                if self.source.is_table
                else "omit --annotators"
            )
            reason = f"the verdict rests on everybody who labelled these units, including {', '.join(absent)}: {way}"
            draw = replace(draw, refused=reason)
        return draw

    @cached_property
    def _labelled_by(self) -> set[str]:
        """The people who labelled these units and were not stopped, also those that the panel leaves out."""
        if self.sequence is not None:
            return {person for person, units in self._given.items() if units}
        if self.source.is_table:
            left_out = self.source.panel.left_out
            return {name for name, kind in left_out.items() if kind is AnnotatorKind.HUMAN}
        return read_people(self.source.store.conn, self.source.panel.field)

    @cached_property
    def _draw_command(self) -> str:
        return self.source.draw_command(self.judge)

    @property
    def _unequal(self) -> bool:
        """Whether the labelled units are known to be drawn with unequal probabilities."""
        if self.sequence is not None:
            return False
        if self.source.is_table:
            return bool(self.source.panel.weights)
        return bool(self.source.batches) or _has_unequal_import(self.source.store, self.source.panel.field)

    def _count_corrected(self, ratings: Ratings) -> int:
        """Return how many of these units a person and the judge had labelled before their text was corrected."""
        run = self.source.run_of(self.judge)
        if run is None:
            return 0
        outdated = find_outdated(self.source.store.conn, run, self.source.panel.field, OLD_TEXT)
        return int(_among(ratings, outdated).sum())

    def _explain_no_labels(self) -> str:
        """Return the reason why the judge cannot be compared, and what the user can do.

        Return "" if the judge labelled at least one of the units that others labelled.
        """
        panel, run = self.source.panel, self.source.run_of(self.judge)
        if not panel.lacks_labels(self.judge):
            return ""
        units = list(panel.table.subset(panel.by_others).units)
        # The judge has labels, but it was fitted on these questions, or their sealed test is closed for it.
        if run is not None and run in judges_of(self.source.store.conn, panel.field, units):
            return ""
        reason = f"no labels from {self.judge} on the {len(units):,} units that others labelled"
        if run is None:
            return reason
        # Only a run that judged these units has stored a reason, such as unparsed replies.
        if (panel.asked_units[self.judge] & panel.by_others).any():
            return f"{reason}. To see why: {command('judge runs show', run)}"
        again = repeat_command(self.source.store, run)
        return f"{reason}. To judge these units: {again}" if again else reason

    def _remedy(self) -> str:
        """Return what adds the labels that the judge lacks on these units."""
        store, run, task = self.source.store, self.source.run_of(self.judge), self.source.panel.task
        if run is None:
            return ""
        split = find(store, task) if task is not None else None
        if split is not None and read_closed_units(store, split.task_id, run):
            return f"Some are in the sealed test; comparing two runs opens it: {command('judge compare', split.task_id, '--part', 'test')}"
        if made := read_derivation(store.conn, run):
            if made["kind"] == "routed":
                return "A route has a guarantee instead of a verdict"
            return "Run its parents on new units, and derive it again"
        again = repeat_command(store, run)
        return f"To judge them: {again}" if again else ""

    def _draw_looks(self, sequence: DrawnSequence, ratings: Ratings) -> Draw:
        """Return the draw of a sequence, with the looks (planned computations of the verdict)."""
        words = f"drawn with equal probability from {sequence.frame}"
        if sequence.stopped:
            # Stopping an annotator is a choice of labels, so the sentence on the verdict must name it.
            who = (
                next(iter(sequence.stopped))
                if len(sequence.stopped) == 1
                else f"{len(sequence.stopped)} people"
            )
            words += f" ({who} stopped)"
        draw = Draw(words, True, sequence.n_judges)
        if not self.is_tested:
            others = " and ".join(sorted({self._name(run) for b in sequence.batches for run in b.judges}))
            reason = f"these units test {others or 'the first run that is made'}. To test {self.judge}, draw units for it: {self._draw_command}"
            return replace(draw, refused=reason, is_tested=False)
        if self.source.batch is not None and len(sequence.batches) > 1:
            names = ", ".join(b.name for b in sequence.batches)
            reason = f"one verdict rests on all batches of this frame ({names}): omit --batch"
            return replace(draw, refused=reason)
        places = places_until(sequence.end)
        spent = compute_spent(places, sequence.end)
        if sequence.one_look:
            places, spent = (len(sequence.batches[0].units),), (ONE_LOOK,)
        done = [sequence.place(place) for place in places if sequence.is_complete(place)]
        looks = Looks(
            tuple(_among(ratings, sequence.units[:end]) for end in done),
            tuple(done),
            places[len(done) :],
            spent,
            len(sequence.units),
        )
        units = [u for u, is_covered in zip(sequence.units, sequence.covered, strict=True) if is_covered]
        draw = replace(draw, looks=looks, fresh=_among(ratings, units))
        if not done:
            waits = "labelled or skipped by everybody"
            if sequence.closed is not None:
                undo = command("annotate batches close", sequence.closed, "--undo")
                waits += (
                    f"; batch '{sequence.closed}' is closed with open units: stop their annotators, or {undo}"
                )
            reason = f"the first verdict is computed when the first {places[0]:,} units are {waits}"
            return replace(draw, refused=reason)
        # Somebody who could stop the person whose removal helps most, and compute the verdict again on the same
        # units, would have a judge at the margin trusted in 8 % of studies.
        costly = sorted(who for who, seen in sequence.stopped.items() if seen >= done[-1])
        # The same holds for somebody who corrects texts and has their units labelled again.
        change = f"{costly[0]} was stopped" if costly else "a text was corrected"
        if costly or sequence.corrected >= done[-1]:
            after = f"at {looks.ahead[0]:,} units" if looks.ahead else "on another batch"
            reason = f"{change} after the look at {done[-1]:,} units, which costs this look: the next verdict is computed {after}"
            draw = replace(draw, refused=reason)
        return draw

    def _name(self, run: str) -> str:
        """Return the name of a run in the panel or, if the panel leaves it out, its model."""
        if run in self.source.panel.shown:
            return self.source.panel.shown[run]
        row = self.source.store.conn.execute("SELECT model FROM runs WHERE run_id = ?", [run]).fetchone()
        return str(row[0]) if row else run


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


def _among(ratings: Ratings, units: Sequence[str] | set[str]) -> BoolArray:
    """Return a boolean mask over the table's units that is true for each of the given units."""
    chosen = set(units)
    return ratings.find(chosen)
