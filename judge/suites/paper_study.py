"""A study as a paper reads it: answers, labels and rankings as tables, and missing ones as steps.

Tables have one row per unit and plain columns (see `judge.scores.columns`). `unit_id` is the unit's number in the study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from judge.errors import NothingToScore, UsageError
from judge.importers.conditions import DOCUMENT, name_of
from judge.labels.reference import ReferenceLabels
from judge.prompts.load import Task
from judge.run_options import in_words
from judge.runner import contexts
from judge.runner.second import ShownProbabilities
from judge.scores.score import NO_ANSWER, NOT_JUDGED
from judge.store.runs import ADDED
from judge.store.study import Store
from judge.suites import chosen
from judge.suites.labelled import fitting, of_run, put
from judge.suites.paper import Paper, ScoreRequest
from judge.suites.people import PeopleLabels
from judge.suites.queries import Rows, System
from judge.suites.run_labels import LabelsWanted, RunLabels
from judge.suites.steps import Step
from judge.suites.system_reading import SystemReading
from judge.types import PARTS_OF_ANSWERS, Json, Status

FAILURES = (str(Status.UNPARSED), str(Status.REFUSED), str(Status.TRUNCATED))
"""Statuses of calls in which the system under test itself failed to give an answer."""


class PaperStudy(SystemReading):
    """One reading of one study for a paper: options, notes and steps of the reading, the requested `rows`, and labels.

    `judges` has the runs, and the outputs of the system under test. `labelled` returns the labels of units: those by the
    judges, or by people in their place (`judge.suites.people`).
    """

    def __init__(self, store: Store, paper: Paper, request: ScoreRequest, rows: Rows | None = None) -> None:
        """`rows`: the rows of another reading with the same request, so that they are read only once."""
        super().__init__(store, paper, request, rows)
        self.labelled: RunLabels | PeopleLabels = self.judges

    def by_people(
        self, request: ScoreRequest, reference_labels: ReferenceLabels | None, *, same_rows: bool = False
    ) -> PaperStudy:
        """Return a reading of the same rows with human labels in place of the judge's; with None, a reading without labels.

        `same_rows`: both readings are compared only on the fully labelled answers (`PeopleLabels`).
        """
        study = PaperStudy(self.store, self.paper, request, self.rows)
        study.labelled = PeopleLabels(reference_labels, self.judges, study, same_rows=same_rows)
        return study

    @property
    def of_people(self) -> bool:
        """Whether human labels replace the judge's."""
        return self.labelled is not self.judges

    @property
    def refused(self) -> list[str]:
        """The reasons why human labels were left out: they cover a biased selection of the answers."""
        return self.labelled.refused if isinstance(self.labelled, PeopleLabels) else []

    @property
    def last_run(self) -> chosen.Run | None:
        """The run that labels were read from last."""
        return self.labelled.last_run

    def answering(self, task: str, context: str) -> System:
        """Return `system`. If a run is still generating its answers, completing that run is recorded as a step.

        If the system has no answers, the step is to generate them with this task and context. Raises Incomplete in that case, or
        NothingToScore if nothing can be generated.
        """
        system = self.system()
        if system is None:
            self.generated(task, context)
            self.check()
            raise NothingToScore(
                f"'{self.tested()}' has no answers in '{self.dataset}': "
                f"{self.import_words('FILE', '--system', self.tested())}"
            )
        self._finished(system)
        return system

    def on_documents(self, task: str, only: str, examples: str) -> pd.DataFrame | None:
        """Return the outputs of the system under test about one passage at a time: a table as from `labels`, with passage_id.

        They come from runs whose model is the system: imported ones, or one that was made here. If some were imported, none
        are made: a passage without an output is then a failure of the system. If there is no such run, and no model to make
        one, record the lacking condition and return None.
        """
        system = self.tested()
        imported = [r for r in self.judges.runs if r.task_id == task and r.model == system and r.imported]
        if imported:
            self.n_outputs += 1
            # A model's output must never fill a gap of an imported system: the score would be another system's.
            return self._imported_on_documents(imported, only, examples)
        maker = self.maker(system)
        if maker is None and not any(run.added for run in self.judges.made_for(system, task)):
            self.lack(system, name_of(self.paper.name, DOCUMENT))
            return None
        purpose = {"examples": examples}
        model, made_with = maker or (system, {})
        began = {"asked_as": made_with.get("asked_as") or model} if model != system else {}
        # The mark makes the run the system's in later scores, without the option.
        began |= {ADDED: True} if system in self.rows.imported else {}
        self.n_outputs += 1
        return self.labels(
            task,
            only=only,
            columns="passage_id",
            models=(system,),
            purpose=purpose,
            begin=began,
            role="system",
        )

    def _imported_on_documents(self, runs: Sequence[chosen.Run], only: str, examples: str) -> pd.DataFrame:
        """Return imported outputs about one passage at a time; each imported file is a separate run."""
        loaded = self.judges.task(runs[0].task_id, {})
        units = self.rows.units("passage", only, "n item_id question_id passage_id")
        units = units[~units["item_id"].isin(examples.split(","))].reset_index(drop=True)
        numbers, field = units["unit_id"].to_numpy(), loaded.spec.questions[0].field
        labels, status, missing = self.judges.best(runs[:1], numbers, field, "system")
        # A file may have verdicts on some passages only, so all files are read as one.
        for run in runs[1:]:
            more, ended, without = self.judges.best([run], numbers, field, "system")
            new = missing & ~without
            labels, status = np.where(new, more, labels), np.where(new, ended, status)
            missing = missing & without
        units, missing = put(units, (labels, status, missing))
        if missing.any():
            units.loc[missing, "status"] = NO_ANSWER
            self.note(
                f"{runs[0].model} has no output for {int(missing.sum())} passages, which count as wrong"
            )
        return units

    def generated(
        self,
        task: str,
        context: str,
        ranking: tuple[str, str] | None = None,
        *,
        only: str = "",
        system: str | None = None,
        examples: str | None = None,
        shown: ShownProbabilities | None = None,
    ) -> pd.DataFrame | None:
        """Return unit_id, item_id, question_id, label, status of each item: the answers of the system under test.

        The answers come from a run of `judge answers generate` under this context, including refused and unreadable ones; else
        they are the imported answers under this condition. If the system has neither, and no model makes its outputs (`maker`),
        record the lacking condition and return None. Items without an input or a context are not judged; the others without an
        answer are recorded as a step. `only`: a condition on `unit_texts`; `examples`: items that the paper shows with every question,
        and that are not rows (None: unspecified); `shown`: a second pass, with these option probabilities.
        """
        system = system or self.tested()
        items = self.rows.units("item", only, "n item_id question_id")
        items = items[~items["item_id"].isin((examples or "").split(","))].reset_index(drop=True)
        purpose: dict[str, str] = {"system": system}
        purpose |= {} if examples is None else {"examples": examples}
        purpose |= {"shown": shown.name} if shown else {}
        mark = shown.mark if shown else ""
        given = None
        runs: list[chosen.Run] = []
        if ranking is not None or not context.startswith("top:"):
            given = self.given(context, ranking)
            purpose["context"] = given.name + mark
            runs = [run for run in self.judges.runs if run.task_id == task and run.serves(purpose)]
            runs = [run for run in self.judges.pinned if run in runs] or runs
        loaded = self.judges.task(task, purpose)
        stored = self.stored(system, context + mark, ranking)
        pinned = any(run in runs for run in self.judges.pinned)
        if (
            stored is not None
            and runs
            and not pinned
            and given is not None
            and stored.condition != purpose["context"]
        ):
            # Imported under the paper's name and made under ours: two outputs of one system for one condition.
            raise UsageError(
                f"'{system}' has two sets of outputs for '{stored.condition}': imported ones, and those made by {runs[0].model} "
                f"(run {runs[0].run_id}); pass --run to read those of the run, or import the others under another --system name"
            )
        if stored is not None and not runs:
            self.n_outputs += 1
            self._check_made_so(task, stored, given)
            return self._imported(items, stored, given)
        maker = self.maker(system)
        if given is None or (not runs and maker is None):
            self.lack(system, name_of(self.paper.name, context + mark))
            return None
        self.n_outputs += 1
        condition = given.name + mark
        labels = self.judges.best(runs, items["unit_id"].to_numpy(), loaded.spec.questions[0].field, "system")
        items, missing = put(items, labels)
        if missing.any() and not self.request.partial:
            fit = fitting(
                self.store,
                loaded,
                items["unit_id"].to_numpy()[missing],
                contexts.contexts(self.store, given),
                probabilities=shown.texts if shown else None,
            )
            if fit:
                run = runs[0] if runs else None
                model, began = maker or (system, {})
                if run is not None:
                    model, began = run.model, run.options
                self.need(
                    Step(
                        "generate",
                        f"{system} has {fit} items without an answer under '{condition}'",
                        loaded.name if run else task,
                        f"{only} AND {self.rows.scope}" if only else self.rows.scope,
                        model,
                        system,
                        context,
                        ranking,
                        examples=examples or None,
                        shown=shown.name if shown else None,
                        options=began if run else {k: v for k, v in began.items() if k == "asked_as"},
                    )
                )
            if fit < missing.sum():
                self.note(
                    f"{int(missing.sum()) - fit} items lack an input or a context under '{condition}' and therefore have no answer"
                )
        return items

    def _imported(self, items: pd.DataFrame, of: System, given: contexts.Context | None) -> pd.DataFrame:
        """Return imported answers to these items; `given` is None if the ranking that they rest on is not recorded."""
        answers = self.rows.answers(of, "answer").set_index("item_id")["answer"]
        items["label"] = answers.reindex(items["item_id"]).to_numpy(dtype=object)
        there = items["item_id"].isin(answers.index).to_numpy()
        items.loc[~there, "label"] = None
        items["status"] = np.where(there, str(Status.OK), NOT_JUDGED).astype(object)
        failed = ~there
        if given is not None and failed.any():
            # What could have been answered and was not is a failure; the others were not asked.
            failed &= items["item_id"].isin(contexts.contexts(self.store, given)).to_numpy()
        if failed.any():
            items.loc[failed, "status"] = NO_ANSWER
            n = int(failed.sum())
            self.note(f"{of.system} has no answer to {n} items under '{of.condition}', which count as wrong")
        return items

    def made_by(self, tasks: Sequence[str]) -> chosen.Run | None:
        """Return the newest run in this study that made outputs of the system under test with one of these tasks. A named run
        comes first."""
        system = self.tested()
        every = (run for run in (*self.judges.pinned, *self.judges.runs) if run.task_id in tasks)
        return next(
            (run for run in every if not run.imported and run.options.get("system", run.model) == system),
            None,
        )

    def _check_made_so(self, task: str, of: System, given: contexts.Context | None) -> None:
        """Check how answers were made. Raises UsageError if they were made in this study, but not as this score requests.

        They may have been made with another task (another reading or prompt), or with other settings. `given` is None if the
        ranking that they rest on is unknown.
        """
        query = "SELECT origin FROM answers WHERE system = ? AND condition = ?"
        origins = {row[0] for row in self.store.conn.execute(query, [of.system, of.condition])}
        run = next((run for run in chosen.all_runs(self.store) if run.run_id in origins), None)
        if run is None or (run.task_id == task and given is None):
            return
        if run.task_id != task:
            made, remedy = f"with {run.task_id}, not with {task}", "ask with that task"
        else:
            made = f"with {in_words(run.settings)}, which differs from the request"
            remedy = "ask for that"
        raise UsageError(
            f"the answers of '{of.system}' under '{of.condition}' were made {made} (run {run.run_id}): {remedy}, or use "
            "--system with a new name to generate others"
        )

    def all_answers(self, of: System, columns: str = "") -> pd.DataFrame:
        """Return `answers` with a column `answered`, and a row for every item without an answer by the system.

        `answered` is False for an empty or missing answer, which is a failure of the system. The row of a missing answer has
        its item's unit. Items that a run of this study has not asked about yet, or for which it could not reach the model, are
        not failures and not in the table.
        """
        answers = self.rows.answers(of, f"answer {columns}".strip())
        answers["answered"] = answers.pop("answer").map(lambda text: bool(text.strip())).astype(bool)
        items = self.rows.units("item", "question IS NOT NULL OR claim IS NOT NULL", "n item_id question_id")
        lacking = items[~items["item_id"].isin(answers["item_id"])]
        runs = [r for r in self.judges.runs if r.serves({"context": of.condition, "system": of.system})]
        if runs and len(lacking):
            # Made here: only what was asked and brought no answer is one that failed. No label is read for the paper, so
            # the run is none of those that are listed beside its numbers.
            _, status, _ = of_run(self.store, runs[0], lacking["unit_id"].to_numpy(), "")
            lacking = lacking[np.isin(status, FAILURES)]
        if not len(lacking):
            return answers
        self.note(
            f"{of.system} has no answer to {len(lacking)} of {len(items)} items, which count as failures"
        )
        missing = lacking.assign(answered=False)
        return pd.concat([answers, missing.reindex(columns=answers.columns)], ignore_index=True)

    def _finished(self, of: System) -> None:
        """If a run of this study was generating these answers, record the step that completes them."""
        purpose = {"context": of.condition, "system": of.system}
        run = next((run for run in self.judges.runs if run.serves(purpose)), None)
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
        purpose: Mapping[str, str] | None = None,
        models: Sequence[str] | None = None,
        columns: str = "",
        together: str = "answer_unit",
        begin: Mapping[str, Json] | None = None,
        role: str = "judge",
    ) -> pd.DataFrame:
        """Return unit_id, item_id, question_id, answer_unit (of a part of an answer), label, status of each unit of the task.

        `of`: only the answers of this system, or parts of them; `only`: a condition on `unit_texts`; `field`: the field to
        read (default: the first); `purpose`: see `chosen.PURPOSE`; `models`: judges to read instead of the requested ones;
        `columns`: more columns of `unit_texts`; `together`: the column that names the whole (an answer, a list) whose units must
        all be labelled (see `judge.suites.people`). Units that the judge has not been asked about are recorded as a step, unless
        a partial score was requested, or the task cannot take them (an input is missing), which is noted.
        """
        loaded = self.judges.task(task, purpose or {})
        where = " AND ".join(part for part in (of.where if of else "", only or "") if part)
        names = "n item_id question_id" + (" answer_id" if loaded.spec.unit in PARTS_OF_ANSWERS else "")
        units = self.rows.units(loaded.spec.unit, where, f"{names} {columns}".strip())
        # The model sees the answers of examples, so its labels of them test nothing.
        examples = [e.item_id for e in loaded.spec.examples if e.item_id]
        examples += (purpose or {}).get("examples", "").split(",")
        if examples:
            units = units[~units["item_id"].isin(examples)].reset_index(drop=True)
        judges = tuple(models) if models is not None else self.request.models
        name = field or loaded.spec.questions[0].field
        wanted = LabelsWanted(loaded, units, where, name, judges, purpose or {}, together, begin or {}, role)
        return put(units, self.labelled.of(wanted))[0]

    def loaded(self, task: str) -> Task:
        """Return a task in the version that was run in the study."""
        return self.judges.task(task, {})

    def domain(self, task: str) -> list[str]:
        """Return the labels of a task's first field; empty for numeric and text fields."""
        loaded = self.loaded(task)
        return loaded.domain(loaded.spec.questions[0].field)
