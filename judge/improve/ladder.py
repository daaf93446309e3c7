"""The candidates of each step, cheapest first: answer mode and label order, guidelines, examples."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from judge.improve.recipe import MOST_EXAMPLES, Recipe, ShownExamples
from judge.prompts import nearest
from judge.prompts.load import Task
from judge.prompts.spec import Example
from judge.store import selection
from judge.store.selection import Selection
from judge.store.study import Store
from judge.types import Json

UNITS = "improve_units"
# Maximum characters in the inputs of an example. Every call sends the examples, so longer units would be expensive.
LONGEST = 4_000


# Maximum size of a pool of examples. Each one is looked up in the study, so that no unit is its own example.
MOST_CHARACTERS = 200_000


def rungs(
    store: Store, task: Task, best_so_far: Callable[[], Recipe], probabilities: bool, labels: dict[str, str]
) -> Iterator[tuple[str, Sequence[Recipe]]]:
    """Yield the name of each step, and the recipes to compare with the current best recipe.

    `labels` contains the reference labels of the learning units. A judge that compares two texts instead of answering a
    prompt can only be calibrated.
    """
    yield "answer mode and label order", list(_modes(task, best_so_far(), probabilities))
    if task.spec.guidelines.strip():
        yield "guidelines shown to the judge", [_change(best_so_far(), guidelines=True)]
    best = best_so_far()
    # An example for a task with a rationale must contain a rationale, but stored labels have none.
    if task.spec.rationale == "none" and len(task.spec.questions) == 1:
        choices: list[tuple[str, int | None, list[Example]]] = [
            (f"balanced, {each} of each label, from learn", None, draw_balanced(store, task, labels, each))
            for each in (1, 2)
        ]
        pool = _pool(store, task, labels) if nearest.is_installed() else []
        choices.append((f"for each label, the nearest by BM25 of {len(pool)} examples from learn", 1, pool))
        sets = [ShownExamples(rule=rule, nearest=n, shown=shown) for rule, n, shown in choices if shown]
        if sets:
            yield "examples from learn", [_change(best, examples=examples) for examples in sets]


def _modes(task: Task, best: Recipe, probabilities: bool) -> Iterator[Recipe]:
    n = len(task.spec.questions[0].labels)
    if task.one_choice and probabilities:
        yield _change(best, answers="words")
        yield _change(best, answers="codes", orders=min(n, 3))
        yield _change(best, answers="words", orders=min(n, 3))
    yield _change(best, answers="json")
    # A model may prefer labels at certain positions. The reversed order shows whether this model does.
    yield _change(best, label_order="reversed")


def _change(recipe: Recipe, **changes: Json) -> Recipe:
    return recipe.model_copy(update=changes)


def select(store: Store, units: Sequence[str]) -> Selection:
    """Return a selection that contains exactly these units."""
    conn = store.conn
    conn.execute(f"CREATE TEMP TABLE IF NOT EXISTS {UNITS} (unit_id TEXT PRIMARY KEY)")
    conn.execute(f"DELETE FROM temp.{UNITS}")
    conn.executemany(f"INSERT OR IGNORE INTO temp.{UNITS} VALUES (?)", [(unit,) for unit in units])
    return Selection(where=f"unit_id IN (SELECT unit_id FROM temp.{UNITS})")


def _pool(store: Store, task: Task, labels: dict[str, str]) -> list[Example]:
    """Return the pool from which the nearest examples are chosen, with up to 30 examples per label.

    The pool is empty if there are too few learning units.
    """
    for each in (30, 20, 10, 5, 3, 2):
        examples = draw_balanced(store, task, labels, each)
        if examples and sum(len(str(example.inputs)) for example in examples) <= MOST_CHARACTERS:
            return examples
    return []


def inputs_of(store: Store, task: Task, units: Sequence[str]) -> dict[str, Mapping[str, Json]]:
    """Return, for each of these units, the inputs that the task's prompt shows."""
    selection.select(store, task, select(store, units))
    return {unit.unit_id: unit.inputs for unit in selection.pending(store, task, run_id="")}


def draw_balanced(store: Store, task: Task, labels: dict[str, str], each: int) -> list[Example]:
    """Return `each` examples per label, with alternating labels and at most one example per question.

    The result is empty if there are too few learning units, or if there would be too many examples.
    """
    field = task.spec.questions[0].field
    if each * len(task.domain(field)) > MOST_EXAMPLES:
        return []
    inputs_by_unit = inputs_of(store, task, sorted(labels))
    of = dict(
        store.conn.execute(
            f"SELECT u.unit_id, u.question_id || char(0) || u.item_id FROM units AS u JOIN temp.{UNITS} USING (unit_id)"
        )
    )
    # Sorted by the hashes of their ids, so that the same learn part always gives the same examples.
    order = sorted(inputs_by_unit, key=lambda unit: hashlib.sha256(unit.encode()).digest())
    used: set[str] = set()
    rows: list[list[Example]] = []
    for label in task.domain(field):
        of_label: list[Example] = []
        for unit in order:
            question, item = of[unit].split("\0")
            inputs = {name: value for name, value in inputs_by_unit[unit].items() if value is not None}
            if labels[unit] != label or question in used or len(str(inputs)) > LONGEST:
                continue
            # At most one unit per question, because passages of a question are similar and make similar examples.
            used.add(question)
            of_label.append(Example(inputs=inputs, answers={field: label}, rationale="", item_id=item))
            if len(of_label) == each:
                break
        if len(of_label) < each:
            return []
        rows.append(of_label)
    return [of_label[k] for k in range(each) for of_label in rows]
