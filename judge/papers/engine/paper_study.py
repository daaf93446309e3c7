"""The interface between papers and a study. It returns answers, labels and rankings as tables, and records
missing data as steps.

Tables have one row per unit and plain columns (see `judge.scores.columns`). `unit_id` is the number of the unit in the study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from judge.errors import NothingToScore, UsageError
from judge.free_text import read_alone
from judge.importers.conditions import DOCUMENT, name_of
from judge.labels.reference import ReferenceLabels
from judge.papers.engine import chosen
from judge.papers.engine.paper import Paper, ScoreRequest
from judge.papers.engine.people import PeopleLabels
from judge.papers.engine.queries import Rows, System
from judge.papers.engine.run_labels import LabelsWanted, RunLabels, add_labels, fitting, read_run_labels
from judge.papers.engine.steps import Step
from judge.papers.engine.system_reading import SystemReading
from judge.prompts.load import Task
from judge.run_options import describe
from judge.runner import contexts
from judge.runner.second import ShownProbabilities
from judge.scores.score import NO_ANSWER, NOT_JUDGED
from judge.store.runs import ADDED
from judge.store.study import Store
from judge.types import PARTS_OF_ANSWERS, Json, Status

FAILURES = (str(Status.UNPARSED), str(Status.REFUSED), str(Status.TRUNCATED))
"""Statuses that mean that the system under test failed to answer."""


class PaperStudy(SystemReading):
    """A study as a paper reads it: options, notes, missing steps, the requested `rows`, and labels.

    `judges` selects the runs of judges and of the system under test. `labelled` returns the labels of units.
    They come from judges or from people (`judge.papers.engine.people`).
    """

    def __init__(self, store: Store, paper: Paper, request: ScoreRequest, rows: Rows | None = None) -> None:
        """Start a reading. `rows` can be passed from another reading with the same request, to avoid reading them twice."""
        super().__init__(store, paper, request, rows)
        self.labelled: RunLabels | PeopleLabels = self.judges

    def read_by_people(
        self, request: ScoreRequest, reference_labels: ReferenceLabels | None, *, same_rows: bool = False
    ) -> PaperStudy:
        """Return a reading of the same rows that uses human labels instead of the judge's labels.

        If `reference_labels` is None, the new reading has no labels. `same_rows` is True if the caller
        compares the two readings only on fully labelled answers (see `PeopleLabels`).
        """
        study = PaperStudy(self.store, self.paper, request, self.rows)
        study.labelled = PeopleLabels(reference_labels, self.judges, study, same_rows=same_rows)
        return study

    @property
    def of_people(self) -> bool:
        """Whether this reading uses human labels instead of the judge's labels."""
        return self.labelled is not self.judges

    @property
    def refused(self) -> list[str]:
        """The reasons why human labels were left out. An example is that they cover a biased selection of the
        answers.
        """
        return self.labelled.refused if isinstance(self.labelled, PeopleLabels) else []

    @property
    def last_run(self) -> chosen.Run | None:
        """The run that labels were read from most recently."""
        return self.labelled.last_run

    def answering(self, task: str, context: str) -> System:
        """Return the system and condition whose answers are scored.

        If a run has generated only some of the system's answers, a step that completes the run is recorded. If
        the system has no answers, raises Incomplete with the step that generates answers with this task and
        context. If no model can generate answers, raises NothingToScore.
        """
        system = None if self._can_generate() else self.system()
        if system is None:
            self.read_generated(task, context)
            self.check()
            raise NothingToScore(
                f"'{self.get_tested()}' has no answers in '{self.dataset}': "
                f"{self.import_words('FILE', '--system', self.get_tested())}"
            )
        self._record_finished(system)
        return system

    def _can_generate(self) -> bool:
        """Return whether the requested system has no answers yet, and a model can generate them."""
        name = self.request.system
        if name is None or self.request.condition is not None:
            return False
        return all(s.system != name for s in self.rows.systems()) and self.maker(name) is not None

    def on_documents(self, task: str, only: str, examples: str) -> pd.DataFrame | None:
        """Return a table of the system's outputs about single passages, one row per passage.

        The table has the columns of `labels` and the column passage_id. If outputs were imported, only these
        are used. A passage without an output then counts as a failure of the system. Otherwise, the outputs
        come from a run in this study. If there is no such run, and no model can generate the outputs, the
        condition is recorded as missing and the result is None.
        """
        system = self.get_tested()
        imported = [r for r in self.judges.runs if r.task_id == task and r.model == system and r.imported]
        if imported:
            self.n_outputs += 1
            # Outputs of a model must not fill gaps of an imported system, because the score would be of a different system.
            return self._read_document_outputs(imported, only)
        maker = self.maker(system)
        if maker is None and not any(run.added for run in self.judges.find_runs(system, task)):
            self.record_missing(system, name_of(self.paper.name, DOCUMENT))
            return None
        purpose = {"examples": examples}
        model, made_with = maker or (system, {})
        began = {"asked_as": made_with.get("asked_as") or model} if model != system else {}
        # Because of this mark, later scores use the run for the system even without --also-generate.
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

    def _read_document_outputs(self, runs: Sequence[chosen.Run], only: str) -> pd.DataFrame:
        """Return imported outputs about single passages. Each imported file is a separate run."""
        loaded = self.judges.task(runs[0].task_id, {})
        units = self.rows.units("passage", only, "n item_id question_id passage_id")
        numbers, field = units["unit_id"].to_numpy(), loaded.spec.questions[0].field
        labels, status, missing = self.judges.best(runs[:1], numbers, field, "system")
        # A file may have verdicts on some passages only, so all files are read as one.
        for run in runs[1:]:
            more, ended, without = self.judges.best([run], numbers, field, "system")
            new = missing & ~without
            labels, status = np.where(new, more, labels), np.where(new, ended, status)
            missing = missing & without
        units, missing = add_labels(units, (labels, status, missing))
        self._read_again(units, runs, loaded.domain(field))
        if missing.any():
            units.loc[missing, "status"] = NO_ANSWER
            self.note(f"{runs[0].model} has no output for {int(missing.sum())} passages; they count as wrong")
        return units

    def _read_again(self, units: pd.DataFrame, runs: Sequence[chosen.Run], labels: Sequence[str]) -> None:
        """Read the outputs that had no label when they were imported, because an older version had a stricter rule."""
        unread = units["status"] == str(Status.UNPARSED)
        if not unread.any():
            return
        query = (
            "SELECT u.rowid, j.reply FROM judgements AS j JOIN units AS u USING (unit_id) WHERE j.status = 'unparsed' "
            f"AND j.run_id IN ({','.join('?' * len(runs))})"
        )
        replies = dict(self.store.conn.execute(query, [run.run_id for run in runs]))
        given = [read_alone(replies.get(n) or "", labels) for n in units["unit_id"][unread]]
        units.loc[unread, "label"] = given
        units.loc[unread & units["label"].notna(), "status"] = str(Status.OK)

    def read_generated(
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
        """Return the system's answers, one row per item: unit_id, item_id, question_id, label, status.

        The answers come from a run of `judge answers generate` under this context, including refused and
        malformed answers. If there is no such run, imported answers are used. If there are none, and no model
        can generate them (see `maker`), the condition is recorded as missing and the result is None.

        Items without an input or a context are not judged. If other items have no answer, a step is recorded.
        `only` is a condition on `unit_texts`. `examples` lists the items that are shown as examples and are
        not scored (None: unspecified). `shown` contains the option probabilities for a second pass.
        """
        system = system or self.get_tested()
        items = self.rows.units("item", only, "n item_id question_id")
        purpose: dict[str, str] = {"system": system}
        purpose |= {} if examples is None else {"examples": examples}
        purpose |= {"shown": shown.name} if shown else {}
        mark = shown.mark if shown else ""
        given = None
        runs: list[chosen.Run] = []
        if ranking is not None or not context.startswith("top:"):
            given = self.parse_context(context, ranking)
            purpose["context"] = given.name + mark
            runs = [run for run in self.judges.runs if run.task_id == task and run.serves(purpose)]
            runs = [run for run in self.judges.pinned if run in runs] or runs
        loaded = self.judges.task(task, purpose)
        stored = self.find_stored(system, context + mark, ranking)
        pinned = any(run in runs for run in self.judges.pinned)
        if (
            stored is not None
            and runs
            and not pinned
            and given is not None
            and stored.condition != purpose["context"]
        ):
            # The condition has two names, the paper's (imported answers) and ours (generated answers), so there are two sets.
            raise UsageError(
                f"'{system}' has two sets of outputs for '{stored.condition}': imported outputs, and outputs that {runs[0].model} "
                f"generated (run {runs[0].run_id}); pass --run {runs[0].run_id} to use the generated outputs, or import the other "
                "outputs with a different --system name"
            )
        if stored is not None and not runs:
            self.n_outputs += 1
            self._check_made_so(task, stored, given)
            return self._read_imported(items, stored, given, loaded.domain(loaded.spec.questions[0].field))
        maker = self.maker(system)
        if given is None or (not runs and maker is None):
            self.record_missing(system, name_of(self.paper.name, context + mark))
            return None
        self.n_outputs += 1
        condition = given.name + mark
        # Only the outputs that are generated here were made with the examples.
        items = items[~items["item_id"].isin((examples or "").split(","))].reset_index(drop=True)
        labels = self.judges.best(runs, items["unit_id"].to_numpy(), loaded.spec.questions[0].field, "system")
        items, missing = add_labels(items, labels)
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

    def _read_imported(
        self, items: pd.DataFrame, system: System, given: contexts.Context | None, labels: Sequence[str]
    ) -> pd.DataFrame:
        """Return the imported answers to these items.

        `given` is the context of the answers. It is None if the ranking that supplied the context is unknown. If the task has labels, the answers are read as labels, by the same rule as the replies of a run.
        """
        answers = self.rows.answers(system, "answer").set_index("item_id")["answer"]
        there = items["item_id"].isin(answers.index).to_numpy()
        status = np.where(there, str(Status.OK), NOT_JUDGED).astype(object)
        if labels:
            of = {text: read_alone(text, labels) for text in answers.unique()}
            answers = answers.map(of)
        items["label"] = answers.reindex(items["item_id"]).to_numpy(dtype=object)
        items.loc[items["label"].isna(), "label"] = None
        items["status"] = np.where(there & items["label"].isna(), str(Status.UNPARSED), status)
        failed = ~there
        if given is not None and failed.any():
            # A claim without an associated document, for example, has no oracle context, so it has no answer.
            failed &= items["item_id"].isin(contexts.contexts(self.store, given)).to_numpy()
        if failed.any():
            items.loc[failed, "status"] = NO_ANSWER
            n = int(failed.sum())
            self.note(
                f"{system.system} has no answer to {n} items under '{system.condition}'; they count as wrong"
            )
        return items

    def find_run(self, tasks: Sequence[str]) -> chosen.Run | None:
        """Return the newest run in this study that generated outputs of the system under test in one of these tasks.

        Runs named with --run take precedence.
        """
        system = self.get_tested()
        every = (run for run in (*self.judges.pinned, *self.judges.runs) if run.task_id in tasks)
        return next(
            (run for run in every if not run.imported and run.options.get("system", run.model) == system),
            None,
        )

    def _check_made_so(self, task: str, system: System, given: contexts.Context | None) -> None:
        """Raise UsageError if the answers were generated with a different task or settings than requested.

        Only answers that were generated in this study are checked. `given` is the requested context. If it is
        None, because the ranking that it came from is unknown, only the task is checked.
        """
        query = "SELECT origin FROM answers WHERE system = ? AND condition = ?"
        origins = {row[0] for row in self.store.conn.execute(query, [system.system, system.condition])}
        run = next((run for run in chosen.list_runs(self.store) if run.run_id in origins), None)
        if run is None or (run.task_id == task and given is None):
            return
        if run.task_id != task:
            made, remedy = f"with {run.task_id}, not with {task}", "score that task"
        else:
            made = f"with {describe(run.settings)}, which differs from the request"
            remedy = "request those settings"
        raise UsageError(
            f"the answers of '{system.system}' under '{system.condition}' were generated {made} (run {run.run_id}): {remedy}, or generate "
            "new answers with a different --system name"
        )

    def read_answers(self, system: System, columns: str = "") -> pd.DataFrame:
        """Return a table of a system's answers, with one row for each item, and with a column `answered`.

        `answered` is False if the answer is empty or missing, which is a failure of the system. For a missing
        answer, `unit_id` is the unit of the item. If a run in this study generates the answers, the table
        omits items that the run has not reached yet, and items for which the call failed.
        """
        answers = self.rows.answers(system, f"answer {columns}".strip())
        answers["answered"] = answers.pop("answer").map(lambda text: bool(text.strip())).astype(bool)
        items = self.rows.units("item", "question IS NOT NULL OR claim IS NOT NULL", "n item_id question_id")
        lacking = items[~items["item_id"].isin(answers["item_id"])]
        runs = [
            r for r in self.judges.runs if r.serves({"context": system.condition, "system": system.system})
        ]
        if runs and len(lacking):
            # The answers were generated in this study, so only items that were requested in vain are failures. The paper
            # reads no labels from the run, so the run is not listed with the scores.
            _, status, _ = read_run_labels(self.store, runs[0], lacking["unit_id"].to_numpy(), "")
            lacking = lacking[np.isin(status, FAILURES)]
        if not len(lacking):
            return answers
        self.note(
            f"{system.system} has no answer to {len(lacking)} of {len(items)} items; these count as failures"
        )
        missing = lacking.assign(answered=False)
        return pd.concat([answers, missing.reindex(columns=answers.columns)], ignore_index=True)

    def _record_finished(self, system: System) -> None:
        """If a run in this study generated only some of these answers, record the step that completes this run."""
        purpose = {"context": system.condition, "system": system.system}
        run = next((run for run in self.judges.runs if run.serves(purpose)), None)
        if run is None or "+" in system.condition:
            return
        context: str = system.condition
        ranking: tuple[str, str] | None = None
        if context.startswith("top:"):
            top, k, name, stage = context.split(":", 3)
            context, ranking = f"{top}:{k}", (name, stage)
        self.read_generated(run.task_id, context, ranking, system=system.system)

    def labels(
        self,
        task: str,
        system: System | None = None,
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
        """Return a table of a task's labels, one row per unit: unit_id, item_id, question_id, label, status.

        If the units are parts of answers, the table also has answer_unit. Arguments that restrict or extend the table:

        - `system`: only answers of this system, or parts of its answers
        - `only`: a condition on `unit_texts`
        - `field`: the field of the labels (default: the task's first field)
        - `purpose`: see `chosen.PURPOSE`
        - `models`: judges to read instead of the requested judges
        - `columns`: additional columns of `unit_texts`
        - `together`: the column that groups units, such as the parts of an answer; human labels are used only in groups
          that are labelled completely (see `judge.papers.engine.people`)

        For units without a judgement, a step is recorded, unless a partial score was requested. For units that
        lack an input of the task, a note is added instead.
        """
        loaded = self.judges.task(task, purpose or {})
        where = " AND ".join(part for part in (system.where if system else "", only or "") if part)
        names = "n item_id question_id" + (" answer_id" if loaded.spec.unit in PARTS_OF_ANSWERS else "")
        units = self.rows.units(loaded.spec.unit, where, f"{names} {columns}".strip())
        # The model sees the answers of examples, so its labels of the examples are not evidence.
        examples = [e.item_id for e in loaded.spec.examples if e.item_id]
        examples += (purpose or {}).get("examples", "").split(",")
        if examples:
            units = units[~units["item_id"].isin(examples)].reset_index(drop=True)
        judges = tuple(models) if models is not None else self.request.models
        name = field or loaded.spec.questions[0].field
        wanted = LabelsWanted(loaded, units, where, name, judges, purpose or {}, together, begin or {}, role)
        return add_labels(units, self.labelled.read_labels(wanted))[0]

    def load_task(self, task: str) -> Task:
        """Return the task in the version that was used in the study."""
        return self.judges.task(task, {})

    def domain(self, task: str) -> list[str]:
        """Return the labels that a task declares for its first field. The result is empty for numeric and text
        fields.
        """
        loaded = self.load_task(task)
        return loaded.domain(loaded.spec.questions[0].field)
