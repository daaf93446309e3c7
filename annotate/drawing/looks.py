"""On which units the verdict on each judge rests, how often they were looked at, and which judges share the level."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from annotate.drawing.sequences import DrawnBatch, DrawnSequence, drawn_batches, sequences
from judge.labels.panel import Panel
from judge.labels.relation import judges_of
from judge.labels.split import find
from judge.labels.words import MAJORITY
from judge.stats import MISSING, Ratings, Verdict
from judge.stats.looks import ONE_LOOK, Draw, Looks, places_until, spent_at
from judge.stats.multiple import holm_steps
from judge.store import Store
from judge.store.study import dumps

STAND_IN = "scripted/"
"""Models of this provider stand in for a judge in tests and documentation."""


@dataclass(frozen=True, eq=False)
class StudyDraws:
    """How the labelled units of a field were drawn. `batch`: only its labels were asked for; `is_table`: there is no study."""

    store: Store
    panel: Panel
    batch: str | None = None
    is_table: bool = False

    @cached_property
    def batches(self) -> list[DrawnBatch]:
        """The batches that ask for the field, the oldest first."""
        return [] if self.is_table else drawn_batches(self.store, self.panel.field)

    @cached_property
    def sequence(self) -> DrawnSequence | None:
        """The sequence that decides: that of the batch asked for, else of the newest frame."""
        found = sequences(self.store, self.panel.field) if self.batches else []
        if self.batch is not None:
            found = [s for s in found if self.batch in (b.name for b in s.batches)]
        return found[-1] if found else None

    @cached_property
    def _handed(self) -> dict[str, set[str]]:
        """Person -> the units of the deciding sequence that they were handed; without people whom a lead stopped."""
        handed: dict[str, set[str]] = {}
        if self.sequence is not None:
            query = (
                "SELECT annotator_id, unit_id FROM assignments AS a WHERE role = 'sample' "
                "AND batch IN (SELECT value FROM json_each(?)) AND NOT EXISTS (SELECT 1 FROM stopped AS s "
                "WHERE s.batch = a.batch AND s.annotator_id = a.annotator_id)"
            )
            for person, unit in self.store.conn.execute(
                query, [dumps([b.name for b in self.sequence.batches])]
            ):
                handed.setdefault(person, set()).add(unit)
        return handed

    def people(self, labelled_by: Sequence[str]) -> list[str]:
        """The people whose labels decide: beside a batch, those who were handed units of it (all, while there are none)."""
        return [person for person in labelled_by if person in self._handed] or list(labelled_by)

    def reference(self, name: str | None, people: Sequence[str]) -> str | None:
        """The reference beside these people: no imported label is one beside a batch, nor a majority with imported votes."""
        if self.sequence is None or not people or name in people:
            return name
        of_batch = (
            self.panel.kind(name) == MAJORITY and set(people) == set(self.panel.people) if name else False
        )
        return name if of_batch else None

    def table(self, ratings: Ratings) -> Ratings:
        """A judge's table for the verdict. Labels of units that a person was not handed are left out: somebody may have
        chosen these units, say those on which the judge is right."""
        codes = ratings.codes.copy()
        for column, person in enumerate(ratings.annotators):
            if person in self._handed:
                codes[~_among(ratings, self._handed[person]), column] = MISSING
        return replace(ratings, codes=codes) if self._handed else ratings

    def of(self, judge: str, ratings: Ratings, people: Sequence[str]) -> Draw:
        """How the units of a judge's table were drawn, with the looks at them; `people` are compared with the judge."""
        draw = self._drawn(judge, ratings)
        if draw.refused or draw.looks is None:
            return draw
        if not set(people) & set(self._handed):
            return Draw(
                "whose labels were imported",
                refused="these labels were imported, and beside a batch imported labels give estimates only: compare "
                "the judge with the people of the batch (leave out --reference and --annotators)",
            )
        if absent := sorted(self._labelled - set(people)):
            return Draw(
                draw.words,
                refused=f"the verdict rests on everybody who labelled these units, also {', '.join(absent)}: leave out "
                "--annotators",
            )
        return draw

    @cached_property
    def _labelled(self) -> set[str]:
        """The people with a finished unit of the deciding sequence."""
        query = "SELECT DISTINCT annotator_id FROM assignments WHERE role = 'sample' AND status = 'done' AND batch IN (SELECT value FROM json_each(?))"
        names = dumps([b.name for b in self.sequence.batches] if self.sequence else [])
        return {person for (person,) in self.store.conn.execute(query, [names]) if person in self._handed}

    def _drawn(self, judge: str, ratings: Ratings) -> Draw:
        if self.is_table:
            return Draw()
        if not self.batches:
            return Draw("as they were imported; how they were chosen is not recorded, so this is one look")
        found = self.sequence
        if found is None:
            return Draw(self._uneven_words, refused=self._uneven)
        words = f"drawn with equal probability from {found.frame}"
        if self.batch is not None and len(found.batches) > 1:
            names = ", ".join(b.name for b in found.batches)
            return Draw(
                words, refused=f"one verdict rests on all batches of this frame ({names}): leave out --batch"
            )
        if judge in self.panel.looks:
            return self._sealed(judge, ratings, found)
        first = self._first_batch(judge, found)
        if first is None:
            return Draw(words, refused=self._late(judge, found))
        return self._looks(words, ratings, found, first, judge)

    @property
    def _uneven_words(self) -> str:
        return "drawn with unequal probabilities"

    @property
    def _uneven(self) -> str:
        return f"these units were not drawn with equal probability. A plain draw decides: {self._command()}"

    def _command(self, n: int = 300) -> str:
        """The command that draws a plain part."""
        task = self.batches[-1].task
        people = ",".join(self.panel.people) or "A,B"
        return f"annotate batches new NAME {task} -n {n} --annotators {people}"

    def _late(self, judge: str, found: DrawnSequence) -> str:
        left = found.end - len(found.units)
        command = f"Its verdict takes units drawn since: {self._command(min(300, left))}; or a sealed split: judge split"
        if not left:
            # A command that asks for more units than there are would fail as printed.
            command = "No unit of this frame is left to draw: import more items, or use a sealed split (judge split)"
        why = "was added after the first verdict on these units, so it may have been chosen with their labels in view"
        return f"{judge} {why}. {command}"

    def _sealed(self, judge: str, ratings: Ratings, found: DrawnSequence) -> Draw:
        """A judge that the sealed test was opened for: one look at the level of that look, .05 / 2^k."""
        used = _among(ratings, found.units)
        task = self.panel.task
        if self._first_batch(judge, found) is None and task is not None and (split := find(self.store, task)):
            query = "SELECT unit_id FROM units WHERE question_id IN (SELECT value FROM json_each(?))"
            sealed = self.store.conn.execute(query, [dumps(sorted(split.questions("test")))])
            used &= _among(ratings, {unit for (unit,) in sealed})
        n = int(used.sum())
        level = self.panel.looks[judge].level / 2
        return Draw("of the sealed test and others drawn alike", looks=Looks((used,), (n,), (), (level,), n))

    def _looks(self, words: str, ratings: Ratings, found: DrawnSequence, first: int, judge: str) -> Draw:
        """The looks at the units from batch number `first` on."""
        start = found.since(first)
        size = len(found.units) - start
        places = places_until(found.end - start)
        spent = spent_at(places, found.end - start)
        if found.one_look and first == 0:
            places, spent = (len(found.batches[0].units),), (ONE_LOOK,)
        ends = [found.place(start + place) for place in places]
        done = [
            end
            for place, end in zip(places, ends, strict=True)
            if end - start >= place and end <= found.complete
        ]
        handed, skipped = (sum(x[start : done[-1]] if done else ()) for x in (found.handed, found.skipped))
        looks = Looks(
            tuple(_among(ratings, found.units[start:end]) for end in done),
            tuple(end - start for end in done),
            places[len(done) :],
            spent,
            size,
            skipped / handed if handed else 0.0,
        )
        family = self.family(found, first) if done else ()
        draw = Draw(
            words, looks=looks, family=len([run for run in family if not self._is_stand_in(run)]) or 1
        )
        if done:
            return draw
        return replace(
            draw,
            refused=f"no verdict yet: the first is computed when {places[0]:,} units are labelled or skipped by everybody who was handed them",
        )

    def _first_batch(self, judge: str, found: DrawnSequence) -> int | None:
        """From which batch on the units were drawn with no label of theirs in the judge's choice; None where there is none."""
        run = next((run for run, name in self.panel.shown.items() if name == judge), judge)
        if run in self.family(found, 0) or self._is_stand_in(run):
            return 0
        started = self.store.conn.execute("SELECT started FROM runs WHERE run_id = ?", [run]).fetchone()
        later = [i for i, b in enumerate(found.batches) if i and started and b.created > started[0]]
        return later[0] if later else None

    def family(self, found: DrawnSequence, first: int) -> Sequence[str]:
        """The runs that share the level on the units from a batch on: declared at its draw, or fixed by the first verdict.

        Before any verdict it is who has labels on at least half of the units now.
        """
        plan = found.batches[first].plan
        if plan.judges:
            return plan.judges
        start = found.since(first)
        places = [1] if found.one_look else places_until(found.end - start)
        end = found.place(start + places[0])
        units = found.units[start : len(found.batches[0].units) if found.one_look else end]
        given = judges_of(self.store.conn, self.panel.field, units)
        family = [run for run, n in given.items() if 2 * n >= len(units)]
        if family and len(found.units) - start >= len(units) and found.complete >= start + len(units):
            self._keep(found.batches[first].name, family)
        return family

    def _keep(self, batch: str, family: Sequence[str]) -> None:
        """Fix the family: a judge that comes later may have been chosen with these labels in view."""
        try:
            with self.store.transaction() as conn:
                conn.execute(
                    "UPDATE batches SET options = json_set(options, '$.judges', json(?)) WHERE batch = ? "
                    "AND coalesce(json_array_length(options, '$.judges'), 0) = 0",
                    [dumps(list(family)), batch],
                )
        except sqlite3.OperationalError as e:
            # A study that nobody here can write shows its verdict all the same; whoever can write it fixes the family.
            if "readonly" not in str(e):
                raise

    def _is_stand_in(self, run: str) -> bool:
        row = self.store.conn.execute("SELECT model FROM runs WHERE run_id = ?", [run]).fetchone()
        return row is not None and str(row[0]).startswith(STAND_IN)


def _among(ratings: Ratings, units: Sequence[str] | set[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    chosen = set(units)
    return np.array([unit in chosen for unit in ratings.units], dtype=np.bool_)


def verdicts(draws: dict[str, Draw], decide: Callable[[str, Draw, bool], Verdict]) -> dict[str, Verdict]:
    """The verdict on each judge; `decide(judge, draw, whole)` computes one, with what is still needed where it is whole.

    Judges of a family share the level by Holm: each is decided at 1 / m of it, and a decided one gives its part to the others.
    """
    families: dict[int, list[str]] = {}
    for judge, draw in draws.items():
        families.setdefault(draw.family if not draw.refused else 1, []).append(judge)
    share = dict.fromkeys(draws, 1.0)
    for size, judges in families.items():
        if size > 1:
            share |= holm_steps(
                judges,
                size,
                lambda judge, part: (
                    decide(judge, replace(draws[judge], share=part), False).decision != "undecided"
                ),
            )
    return {judge: decide(judge, replace(draw, share=share[judge]), True) for judge, draw in draws.items()}
