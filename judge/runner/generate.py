"""Generate the answers of a system under test: run a task on items with passages, and store the replies as answers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.errors import AdjudgeError, BadInput, UsageError
from judge.importers.conditions import CONDITIONS, name_of
from judge.prompts.load import Task
from judge.providers.base import Provider
from judge.runner.identity import matching_runs
from judge.runner.plan import Live, Plan, RunReport
from judge.runner.run import run_task
from judge.runner.second import INPUT, ShownProbabilities
from judge.store import label_rows, selection
from judge.store.answers import AnswerAdder
from judge.store.study import Store
from judge.types import Answer, AnswerRow, Json, Status, Where


@dataclass(frozen=True, slots=True)
class Generation:
    """The request: the plan, the system and condition of the answers, and item -> the passages that it is given."""

    plan: Plan
    system: str
    condition: str
    contexts: Mapping[str, Sequence[str]]
    prose: bool = True
    """False for texts that are not split into sentences, such as the options of a question."""
    shown: ShownProbabilities | None = None
    """For a second pass: the option probabilities to show with each item."""

    def with_contexts(self) -> Plan:
        """Return the plan over the items with a context; condition and system are part of its run's identity."""
        selection = replace(self.plan.selection, contexts=self.contexts)
        extra = {**self.plan.extra, "context": self.condition, "system": self.system}
        if self.shown is not None:
            selection = replace(selection, shown=self.shown.texts)
            extra["shown"] = self.shown.name
        return replace(self.plan, selection=selection, extra=extra)


@dataclass(slots=True)
class Kept:
    """The stored answers: how many are new, how many the run has in all, and the problems in words."""

    new: int
    answers: int
    problems: list[str]


def check(task: Task, system: str, condition: str, shown: ShownProbabilities | None = None) -> None:
    """Raise UsageError if the task cannot make answers, or not with this context or with option probabilities."""
    if task.spec.unit != "item":
        raise UsageError(
            f"{task.name} labels units of kind '{task.spec.unit}'; answers are generated for items"
        )
    takes = "context" in task.input_names
    if (shown is not None) != (INPUT in task.required_inputs):
        mismatch = "takes no" if shown is not None else "shows"
        raise UsageError(
            f"{task.name} {mismatch} option probabilities: use --shown RUN:self together with the task urag_aware"
        )
    context, _, ending = condition.partition("+")
    # Noise is passages, too. Other endings, such as `+self-aware`, say nothing about passages.
    if (context != "none" or ending.startswith("noise")) and not takes:
        raise UsageError(f"{task.name} takes no input 'context': use --context none")
    if condition == "none" and "context" in task.required_inputs:
        raise UsageError(f"{task.name} needs passages: choose a --context other than none")
    check_names(system, condition)


def check_names(*names: str) -> None:
    """Raise UsageError for a system or condition that cannot be part of an id."""
    for name in names:
        if not name.strip() or "@" in name or "#" in name:
            raise UsageError(f"'{name}' contains '@' or '#', which join ids: name the system with --system")


def _imported_conditions(store: Store, system: str) -> set[str]:
    """Return the conditions of the system's answers that no run of this study made."""
    query = (
        "SELECT DISTINCT condition FROM answers WHERE system = ? "
        "AND NOT EXISTS (SELECT 1 FROM runs WHERE run_id = answers.origin)"
    )
    return {str(row[0]) for row in store.conn.execute(query, [system])}


def check_origin(store: Store, system: str, also_generate: bool) -> None:
    """Raise UsageError for a system with imported outputs: a model's answers must not pass for outputs of that system."""
    if not also_generate and _imported_conditions(store, system):
        raise UsageError(
            f"outputs of '{system}' were imported: a model's would be taken for its own. Name another --system, or say "
            "--also-generate"
        )


def check_not_imported(store: Store, system: str, context: str) -> None:
    """Raise UsageError if the system has imported answers under a paper's name for this context.

    The system would then have two answers for one condition of that paper.
    """
    if both := _imported_conditions(store, system) & {name_of(paper, context) for paper in CONDITIONS}:
        raise UsageError(
            f"'{system}' has imported answers under '{min(both)}', which is --context {context}: a score takes no two for one "
            "condition. Name another --system"
        )


async def generate(
    store: Store, generation: Generation, provider: Provider, watch: Callable[[Live], None] | None = None
) -> tuple[RunReport, Kept]:
    """Run the plan with an open provider, and store the reply of each labelled unit as an answer.

    Answers are stored also after an interrupted run; after a killed process the same command stores them. Raises
    UsageError, before anything is sent, if the study has answers of this system and condition from another source.
    """
    check(generation.plan.task, generation.system, generation.condition, generation.shown)
    plan = generation.with_contexts()
    # Before the run: answers that cannot be stored must not be paid for.
    _refuse_mixing(store, generation, matching_runs(store, plan, provider))
    selection.check_any(store, plan.task, plan.selection)
    report = await run_task(store, plan, provider, watch)
    return report, keep(store, report.run_id, generation)


def _refuse_mixing(store: Store, generation: Generation, run_ids: Sequence[str]) -> None:
    # A score treats the answers of one condition as the output of one system, so they must come from one run.
    other = store.conn.execute(
        "SELECT a.origin, r.task, r.options FROM answers AS a LEFT JOIN runs AS r ON r.run_id = a.origin "
        f"WHERE a.system = ? AND a.condition = ? AND a.origin NOT IN ({','.join('?' * len(run_ids))}) LIMIT 1",
        [generation.system, generation.condition, *run_ids],
    ).fetchone()
    if other is not None:
        source = f"run {other[0]} ({other[1]})" if other[1] else f"import {other[0]}"
        raise UsageError(
            f"the study has answers of '{generation.system}' under the condition '{generation.condition}' from "
            f"{source}, another task or other options: name these with --system"
        )


def keep(store: Store, run_id: str, generation: Generation) -> Kept:
    """Store answers for the run's labelled units that have none yet, in one transaction."""
    labels_json = label_rows.objects(
        "j.run_id", "j.unit_id", "json_object('value', l.value, 'why', l.rationale)"
    )
    query = f"""
        SELECT j.unit_id, {labels_json}
        FROM latest_judgements AS j JOIN units AS u USING (unit_id)
        WHERE j.run_id = ? AND j.repeat = 0 AND j.status = ? AND NOT EXISTS (
            SELECT 1 FROM answers AS a WHERE a.item_id = j.unit_id AND a.system = ? AND a.condition = ?)
        ORDER BY u.rowid
    """
    problems: list[str] = []
    identity = [generation.system, generation.condition]
    with store.transaction() as conn:
        adder = AnswerAdder(conn, run_id)
        for item, labels in conn.execute(query, [run_id, str(Status.OK), *identity]).fetchall():
            answer = _answer(item, json.loads(labels or "{}"), generation)
            try:
                adder.add(AnswerRow(answer, Where(f"run {run_id}", 0)))
            except BadInput as error:
                # One reply that cannot be an answer must not discard the others, which are paid for.
                problems.append(f"{item}: {error}")
        total = conn.execute("SELECT count(*) FROM answers WHERE origin = ?", [run_id]).fetchone()[0]
    return Kept(adder.counts["answers"], total, problems)


def _answer(item: str, labels: Mapping[str, Mapping[str, Json]], generation: Generation) -> Answer:
    """Return the answer: its text is the first field; the other fields and the rationale go to its meta."""
    task = generation.plan.task
    first = task.spec.questions[0].field
    if first not in labels:
        raise AdjudgeError(f"{item} has a judgement without '{first}'")
    meta: dict[str, Json] = {f: labels[f]["value"] for f in task.fields if f in labels and f != first}
    if labels[first]["why"]:
        meta["rationale"] = labels[first]["why"]
    return Answer(
        item=item,
        system=generation.system,
        condition=generation.condition,
        # SQLite's text functions end at a NUL, so the rest of the answer would be invisible to queries.
        text=str(labels[first]["value"]).replace("\0", "\ufffd"),
        context=list(generation.contexts.get(item, ())),
        # An answer that is a label has no sentences to judge.
        prose=generation.prose and not task.spec.questions[0].labels,
        meta=meta,
    )
