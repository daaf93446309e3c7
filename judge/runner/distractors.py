"""Generate distractors for questions, check them, and generate new ones for questions that are not
challenging.

In each iteration, the distractors of a question are written one at a time. Each distractor number (slot) is a
separate run of the task `distractor`, whose prompt shows the existing options. Each iteration is followed by
a run of `distractor_check`. Everything is stored in the study, so the same command resumes after an
interruption.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from judge.errors import UsageError
from judge.prompts.load import Task
from judge.runner import contexts as given
from judge.runner.flow import Flow
from judge.runner.generate import Generation, Kept, keep
from judge.store import distractors
from judge.store.distractors import PREFIX, DistractorItem, Reading
from judge.store.label_rows import quote
from judge.store.selection import Selection, list_selected, select
from judge.store.study import Store


@dataclass(frozen=True, slots=True)
class Making:
    """The settings for generating distractors: the number of distractors per question, the number of
    regeneration iterations, and the criterion for a challenging question.
    """

    task: Task
    check: Task
    system: str
    slots: int = 3
    regenerate: int = 3
    reading: Reading = "entailed"


@dataclass(slots=True)
class MadeDistractors:
    """The result: the questions with their distractors, the number of iterations, the run that checked the
    distractors, the number of items that lack the task's inputs, and the stored answers.
    """

    questions: dict[str, DistractorItem]
    iterations: int
    check_run: str | None
    left_out: int
    kept: Kept
    without_document: int = 0
    """Number of questions without a document to show in the prompt."""


async def make(flow: Flow, check: Flow, making: Making, selection: Selection) -> MadeDistractors:
    """Generate and check distractors until every question is challenging or all iterations are used.

    `flow` generates the distractors, and `check` judges them. Raises UsageError if no item is selected, and Halted
    if a run was stopped.
    """
    store = flow.store
    n, left_out = select(store, making.task, selection)
    items = list_selected(store)
    if not n:
        raise UsageError(
            f"no item has the inputs of {making.task.name}: {' and '.join(making.task.required_inputs)}"
        )
    kept = Kept(0, 0, [])
    documents = originals(store, items) if "context" in making.task.input_names else {}
    run: str | None = None
    iteration = 0
    # The first iteration generates and the others regenerate, so there is one more than `regenerate`.
    while iteration <= making.regenerate:
        questions = distractors.questions(store, making.system, run, items)
        open_ = [q for q in questions.values() if q.find_valid(making.slots, making.reading) is None]
        if not open_:
            break
        iteration += 1
        await _generate(flow, making, iteration, [q.item_id for q in open_], kept, documents)
        run = await _check(check, making, iteration)
    questions = distractors.questions(store, making.system, run, items)
    return MadeDistractors(
        questions, iteration, run, left_out, kept, sum(item not in documents for item in items)
    )


def originals(store: Store, items: Sequence[str]) -> dict[str, list[str]]:
    """Map each item to its first passage that is marked as evidence (as selected by `--context oracle`).

    If no passage of the item is marked, its first passage is used.
    """
    oracle_passages = given.contexts(store, given.parse(store, "oracle"))
    first = given.contexts(store, given.parse(store, "fixed5"))
    # URAG's Prompt 2 shows one original document, which the fake one has to contradict.
    return {
        item: (oracle_passages.get(item) or first[item])[:1]
        for item in items
        if item in oracle_passages or item in first
    }


async def _generate(
    flow: Flow,
    making: Making,
    iteration: int,
    items: Sequence[str],
    kept: Kept,
    documents: Mapping[str, Sequence[str]],
) -> None:
    for slot in range(1, making.slots + 1):
        condition = f"{PREFIX}{iteration}.{slot}"
        # A resumed command must send the same request for this slot. Otherwise the stored distractor of the slot would
        # appear among the options that it may not repeat.
        before = distractors.questions(flow.store, making.system, None, items)
        options = {item: _get_earlier(q, iteration, slot).taken for item, q in before.items()}
        contexts: Mapping[str, Sequence[str]] = {item: documents.get(item, ()) for item in items}
        extra = {"context": condition, "system": making.system}
        report = await flow.run(making.task, Selection(contexts=contexts, options=options), extra)
        now = keep(
            flow.store,
            report.run_id,
            Generation(replace(flow.plan, task=making.task), making.system, condition, contexts, prose=False),
        )
        kept.new += now.new
        kept.answers += now.answers
        kept.problems += now.problems


def _get_earlier(question: DistractorItem, iteration: int, slot: int) -> DistractorItem:
    """Return the question with only the distractors written before number `slot` of this iteration.

    `slot` is the number of a distractor within its iteration.
    """
    whole = question.iterations[: iteration - 1]
    previous = question.iterations[iteration - 1 : iteration]
    return replace(question, iterations=[*whole, *([d for d in i if d.slot < slot] for i in previous)])


async def _check(flow: Flow, making: Making, iteration: int) -> str:
    where = (
        f"answer_system = {quote(making.system)} AND answer_condition GLOB {quote(f'{PREFIX}{iteration}.*')}"
    )
    return (await flow.run(making.check, Selection(where=where))).run_id
