"""A study as a paper reads it: answers, labels and rankings as tables, and what is missing as steps.

Tables have one row a unit and plain columns (see `judge.scores.columns`). `unit_id` is the unit's number in the study.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from judge.errors import UsageError
from judge.prompts.load import Task, load_task
from judge.runner import contexts
from judge.runner.second import ShownProbabilities
from judge.scores.score import NO_ANSWER, NOT_JUDGED
from judge.store.export import stored_task
from judge.store.study import Store
from judge.suites import chosen
from judge.suites.chosen import Run
from judge.suites.labelled import Found, UnitNumbers, fitting, majority, of_run, put
from judge.suites.paper import Asked, Paper
from judge.suites.queries import PARTS, System
from judge.suites.reading import Reading
from judge.suites.steps import FALLBACK_MODEL, Step
from judge.types import Status

FAILURES = (str(Status.UNPARSED), str(Status.REFUSED), str(Status.TRUNCATED))
"""How a call to the system under test ends that brings no answer, and is its own failure."""


@dataclass(slots=True)
class Read:
    """A run that labels were read from, with its counts on the units asked about, and what was asked."""

    run: Run
    counts: Counter[str] = field(default_factory=Counter)


class PaperStudy(Reading):
    """One study as one paper reads it. Everything asked for is remembered: runs, notes, missing steps."""

    of_people = False
    """Whether people's labels stand where a judge's do (see `judge.suites.people`)."""

    def __init__(self, store: Store, paper: Paper, asked: Asked) -> None:
        super().__init__(store, paper, asked)
        self.read: list[Read] = []
        self.whose: System | None = None
        self.runs = [
            r for r in chosen.all_runs(store) if asked.rationale in (None, r.rationale or asked.rationale)
        ]
        self.pinned = chosen.named(store, asked.runs, self.runs)

    def ranking(self, name: str | None = None, stage: str | None = None) -> tuple[str, str] | None:
        """(name, stage) of the ranking of the data set that is meant. None, and a step, when there is none at all.

        Raises UsageError when several fit, or when the one named is not there.
        """
        there = self._rankings()
        fit = [(n, s) for n, s in there if name in (None, n) and stage in (None, s)]
        if len(fit) == 1:
            return fit[0]
        known = ", ".join(f"{n} ({s})" for n, s in there)
        if fit:
            raise UsageError(f"several rankings fit: choose with --ranking and --stage; there are: {known}")
        if there:
            raise UsageError(f"no such ranking of '{self.dataset}'; there are: {known}")
        if name or stage not in (None, "retrieve"):
            raise UsageError(f"no ranking of '{self.dataset}' yet; see judge retrieve, judge rankings import")
        self.need(Step("retrieve", f"no ranking of '{self.dataset}'", dataset=self.dataset))
        return None

    def rankings(self, name: str = "", stage: str = "") -> list[tuple[str, str]]:
        """(name, stage) of all rankings of the data set, or of those called so. Raises UsageError when none is."""
        there = self._rankings()
        fit = [(n, s) for n, s in there if name in ("", n) and stage in ("", s)]
        if not fit:
            known = (
                ", ".join(f"{n} ({s})" for n, s in there) or "none; see judge retrieve, judge rankings import"
            )
            raise UsageError(f"no such ranking of '{self.dataset}'; there are: {known}")
        return fit

    def _rankings(self) -> list[tuple[str, str]]:
        query = (
            "SELECT DISTINCT r.name, r.stage FROM rankings AS r JOIN items AS i USING (item_id) "
            "WHERE i.dataset = ? ORDER BY 1, 2"
        )
        return [(str(n), str(s)) for n, s in self.store.conn.execute(query, [self.dataset])]

    def system(self) -> System | None:
        """Whose answers are meant. None when there are none yet.

        Raises UsageError when several fit, or when what was asked for is not there.
        """
        there = self.systems()
        asked = self.asked
        fit = [
            s for s in there if asked.system in (None, s.system) and asked.condition in (None, s.condition)
        ]
        if len(fit) == 1:
            self.whose = fit[0]
            return fit[0]
        known = ", ".join(f"{s.system} ({s.condition})" for s in there)
        if fit:
            raise UsageError(f"several answers fit: choose with --system and --condition; there are: {known}")
        if there and (asked.system or asked.condition):
            raise UsageError(f"no answers of that system and condition; there are: {known}")
        return None

    def tested(self) -> str:
        """The name of the system under test: --system, else the model, else the only one with answers."""
        if self.asked.system is not None:
            return self.asked.system
        if self.asked.models:
            return self.asked.models[0]
        there = list(dict.fromkeys(s.system for s in self.systems()))
        if len(there) > 1:
            raise UsageError(
                f"several systems have answers: choose with --system; there are: {', '.join(there)}"
            )
        return there[0] if there else self.guess()

    def of_system(self, task: str) -> tuple[str, ...]:
        """The model that stands behind the system under test in runs of a task: of its name, else the judge."""
        system = self.tested()
        if self.asked.system is not None and any(r.task_id == task and r.model == system for r in self.runs):
            return (system,)
        return self.asked.models or ((system,) if "/" in system else ())

    @property
    def last_run(self) -> Run | None:
        """The run that labels were read from last."""
        return self.read[-1].run if self.read else None

    def generated(
        self,
        task: str,
        context: str,
        ranking: tuple[str, str] | None = None,
        *,
        only: str = "",
        system: str | None = None,
        examples: str = "",
        shown: ShownProbabilities | None = None,
    ) -> pd.DataFrame:
        """unit_id, item_id, question_id, label, status of each item: what the system under test answered.

        Of a run of `judge answers generate` under this context, with what was refused or not readable; else of
        imported answers under this condition. Items that there is nothing to give to are not judged; the others
        without an answer make a step. `only`: a condition on `unit_texts`; `examples`: items that are shown with
        every question, and are no rows; `shown`: a second pass, with these option probabilities.
        """
        system = system or self.tested()
        given = contexts.parse(
            self.store, context, ranking=(ranking or (None,))[0], stage=(ranking or (None, None))[1]
        )
        condition = given.name + (shown.mark if shown else "")
        own = {"context": condition, "system": system, **({"examples": examples} if examples else {})}
        own |= {"shown": shown.name} if shown else {}
        items = self._units("item", only, "n item_id question_id")
        items = items[~items["item_id"].isin(examples.split(","))].reset_index(drop=True)
        runs = [run for run in self.runs if run.task_id == task and run.serves(own)]
        runs = [run for run in self.pinned if run in runs] or runs
        loaded = self._task(task, own)
        if not runs and System(system, condition) in self.systems():
            self._not_of_another(task, system, condition)
            told = self.answers(System(system, condition), "answer").set_index("item_id")["answer"]
            items["label"] = told.reindex(items["item_id"]).to_numpy(dtype=object)
            there = items["item_id"].isin(told.index).to_numpy()
            items.loc[~there, "label"] = None
            items["status"] = np.where(there, str(Status.OK), NOT_JUDGED).astype(object)
            if not there.all():
                # What could have been answered and was not is a failure; the others were not asked.
                given_to = contexts.contexts(self.store, given)
                failed = ~there & items["item_id"].isin(given_to).to_numpy()
                items.loc[failed, "status"] = NO_ANSWER
                if failed.any():
                    self.note(
                        f"{system} has no answer to {int(failed.sum())} items under '{condition}': they count as wrong"
                    )
            return items
        found = self._best(runs, items["unit_id"].to_numpy(), loaded.spec.questions[0].field)
        missing = put(items, found)
        if missing.any() and not self.asked.partial:
            fit = fitting(
                self.store,
                loaded,
                items["unit_id"].to_numpy()[missing],
                contexts.contexts(self.store, given),
                probabilities=shown.texts if shown else None,
            )
            if fit:
                run = runs[0] if runs else None
                model = (
                    run.model
                    if run
                    else (self.asked.models or ((system,) if "/" in system else (self.guess(),)))[0]
                )
                self.need(
                    Step(
                        "generate",
                        f"{system} has {fit} items without an answer under '{condition}'",
                        loaded.name if run else task,
                        f"{only} AND {self.scope}" if only else self.scope,
                        model,
                        system,
                        context,
                        ranking,
                        examples=examples or None,
                        shown=shown.name if shown else None,
                        options=run.options if run else {},
                    )
                )
            if fit < missing.sum():
                self.note(
                    f"{int(missing.sum()) - fit} items have nothing to give under '{condition}': no answer"
                )
        return items

    def _not_of_another(self, task: str, system: str, condition: str) -> None:
        """Raises UsageError when these answers were made here with another task: another reading, or another prompt."""
        query = (
            "SELECT t.task_id FROM answers AS a JOIN runs AS r ON r.run_id = a.origin JOIN tasks AS t ON t.task = r.task "
            "WHERE a.system = ? AND a.condition = ? LIMIT 1"
        )
        row = self.store.conn.execute(query, [system, condition]).fetchone()
        if row is not None and row[0] != task:
            raise UsageError(
                f"the answers of '{system}' under '{condition}' were made with {row[0]}, not with {task}: choose its "
                "--reading, or name those that are to be made with --system"
            )

    def all_answers(self, of: System, columns: str = "", unanswered: str = "wrong") -> pd.DataFrame:
        """`answers` with a column `answered`, and a row for every item that the system has no answer to.

        `answered` is False for what is empty or missing: a failure of the system. The row of a missing answer has
        its item's unit. An item that a run of this study has not asked about yet, or could not reach the model for, is
        no failure and not in the table; nor is, with `unanswered` "left-out", any that has no answer.
        """
        found = self.answers(of, f"answer {columns}".strip())
        found["answered"] = found.pop("answer").map(lambda text: bool(text.strip())).astype(bool)
        items = self._units("item", "question IS NOT NULL OR claim IS NOT NULL", "n item_id question_id")
        lacking = items[~items["item_id"].isin(found["item_id"])]
        runs = [r for r in self.runs if r.serves({"context": of.condition, "system": of.system})]
        if runs and len(lacking):
            # Made here: only what was asked and brought no answer is one that failed.
            _, status, _ = self._best(runs[:1], lacking["unit_id"].to_numpy(), "")
            self.read.pop()
            lacking = lacking[np.isin(status, FAILURES)]
        if not len(lacking):
            return found
        told = f"{of.system} has no answer to {len(lacking)} of {len(items)} items"
        if unanswered == "left-out":
            self.note(f"{told}: left out")
            return found
        self.note(f"{told}: they count as failures")
        missing = lacking.assign(answered=False)
        return pd.concat([found, missing.reindex(columns=found.columns)], ignore_index=True)

    def finished(self, of: System) -> None:
        """Note the step that is left of generating these answers, when a run of this study was making them."""
        own = {"context": of.condition, "system": of.system}
        run = next((run for run in self.runs if run.serves(own)), None)
        if run is None or "+" in of.condition:
            return
        context: str = of.condition
        ranking: tuple[str, str] | None = None
        if context.startswith("top:"):
            top, k, name, stage = context.split(":", 3)
            context, ranking = f"{top}:{k}", (name, stage)
        self.generated(run.task_id, context, ranking, system=of.system)

    def labels(
        self,
        task: str,
        of: System | None = None,
        *,
        only: str | None = None,
        field: str | None = None,
        own: Mapping[str, str] | None = None,
        models: Sequence[str] | None = None,
        columns: str = "",
        together: str = "answer_unit",
    ) -> pd.DataFrame:
        """unit_id, item_id, question_id, answer_unit (of a part of an answer), label, status of each unit of the task.

        `of`: only the answers of this system, or parts of them; `only`: a condition on `unit_texts`; `field`: another
        field than the first; `own`: see `chosen.OWN`; `models`: other judges than those asked for; `columns`: more
        columns of `unit_texts`; `together`: the column that names what needs the labels of all its units (see
        `judge.suites.people`). Units that the judge has not been asked about make a step, unless the task cannot
        take them (an input is missing: noted) or a partial score was asked for.
        """
        loaded = self._task(task, own or {})
        where = " AND ".join(part for part in (of.where if of else "", only or "") if part)
        names = "n item_id question_id" + (" answer_id" if loaded.spec.unit in PARTS else "")
        units = self._units(loaded.spec.unit, where, f"{names} {columns}".strip())
        examples = [e.item_id for e in loaded.spec.examples if e.item_id]
        examples += (own or {}).get("examples", "").split(",")
        if examples:
            units = units[~units["item_id"].isin(examples)].reset_index(drop=True)
        asked = tuple(models) if models is not None else self.asked.models
        put(
            units,
            self._labelled(
                loaded, units, where, field or loaded.spec.questions[0].field, asked, own or {}, together
            ),
        )
        return units

    def _labelled(
        self,
        task: Task,
        units: pd.DataFrame,
        where: str,
        field: str,
        models: Sequence[str],
        own: Mapping[str, str],
        together: str,
    ) -> Found:
        """The judge's labels of a task on these units, or what most judges say, and a step where some are missing."""
        runs = chosen.candidates(self.runs, self.pinned, task.task_id, models, own)
        numbers = units["unit_id"].to_numpy()
        judges = list(models) or list(dict.fromkeys(run.model for run in runs))
        if not self.asked.majority or not judges:
            return self._of_judge(task, runs, numbers, where, field, models, own)
        each = []
        for judge in judges:
            theirs = [run for run in runs if run.model == judge]
            each.append(self._of_judge(task, theirs, numbers, where, field, (judge,), own))
        return majority(each)

    def _of_judge(
        self,
        task: Task,
        runs: Sequence[Run],
        units: UnitNumbers,
        where: str,
        field: str,
        models: Sequence[str],
        own: Mapping[str, str],
    ) -> Found:
        found = self._best(runs, units, field)
        if found[2].any() and not self.asked.partial:
            self._missing(task, runs, where, units[found[2]], models, own)
        return found

    def loaded(self, task: str) -> Task:
        """A task, as the study has it where it was run."""
        return self._task(task, {})

    def domain(self, task: str) -> list[str]:
        """The labels of a task's first field; none for numbers and texts."""
        loaded = self._task(task, {})
        return loaded.domain(loaded.spec.questions[0].field)

    def _task(self, task_id: str, own: Mapping[str, str]) -> Task:
        """The task as the study has it where a run of it is meant, else the newest version."""
        used = next((run.task for run in self.runs if run.task_id == task_id and run.serves(own)), None)
        return stored_task(self.store, used) if used else load_task(task_id, self.asked.prompts)

    def _best(self, runs: Sequence[Run], units: np.ndarray[Any, Any], field: str) -> Found:
        """Labels, statuses and which units have no judgement: of the newest complete run, else the fullest."""
        best = None
        for run in runs:
            found = of_run(self.store, run, units, field)
            if best is None or found[2].sum() < best[1][2].sum():
                best = run, found
            if not found[2].any():
                break
        if best is None:
            none = np.full(len(units), None, dtype=object)
            return none, np.full(len(units), NOT_JUDGED, dtype=object), np.ones(len(units), dtype=bool)
        self.read.append(Read(best[0], Counter(best[1][1].tolist())))
        if "rationale" in best[0].options:
            self.note(f"{best[0].task} was asked with --rationale {best[0].options['rationale']}")
        return best[1]

    def _missing(
        self,
        task: Task,
        runs: Sequence[Run],
        where: str,
        missing: np.ndarray[Any, Any],
        models: Sequence[str],
        own: Mapping[str, str],
    ) -> None:
        """Note the step that judges these units, and how many of them the task cannot take."""
        fit = fitting(self.store, task, missing, shown=own.get("relevant"))
        if fit < len(missing):
            self.note(
                f"{len(missing) - fit} units of {task.task_id} lack an input of the task "
                f"({', '.join(task.required_inputs)}) and are not judged"
            )
        if not fit:
            return
        made = [run.run_id for run in runs if run.derived]
        if made:
            self.note(
                f"{fit} units of {task.task_id} are not in run {made[0]}, which was made from others: judge them with those, "
                "and make it again"
            )
        asked = [run for run in runs if not run.derived]
        if made and not asked:
            return
        runs = asked
        judges = list(models) or list(dict.fromkeys(run.model for run in runs)) or [self.guess()]
        for model in judges:
            run = next((r for r in runs if r.model == model), None)
            self.need(
                Step(
                    "run",
                    f"{task.task_id} has {fit} units without a judgement of {model}",
                    task.name if run else task.task_id,
                    f"{where} AND {self.scope}" if where else self.scope,
                    model,
                    relevant=own.get("relevant"),
                    examples=own.get("examples"),
                    options=run.options if run else {},
                )
            )

    def guess(self) -> str:
        """The model to name in a command: the judge asked for, or the only one that the study has."""
        if self.asked.models:
            return self.asked.models[0]
        models = list(dict.fromkeys(run.model for run in self.runs if not run.derived))
        return models[0] if len(models) == 1 else FALLBACK_MODEL
