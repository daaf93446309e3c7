"""The candidates, cheapest first: calibration, answer mode and label order, guidelines, examples."""

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
# Characters of an example's inputs. Every call sends the examples, so a longer unit is not used as one.
LONGEST = 4_000


# Limit on the inputs of a pool: each is searched for in the study, so that no unit is its own example.
MOST_CHARACTERS = 200_000


def rungs(
    store: Store, task: Task, best_so_far: Callable[[], Recipe], probabilities: bool, labels: dict[str, str]
) -> Iterator[tuple[str, Sequence[Recipe]]]:
    """Yield the name of each step, and the recipes to try against the best one so far.

    `labels` are the labels of learn units. Only for judges with a prompt, because a model that compares two texts can only be
    calibrated.
    """
    yield "answer mode and label order", list(_modes(task, best_so_far(), probabilities))
    if task.spec.guidelines.strip():
        yield "guidelines shown to the judge", [_changed(best_so_far(), guidelines=True)]
    best = best_so_far()
    # Stored labels have no reasoning, which an example of a task with a rationale must show.
    if task.spec.rationale == "none" and len(task.spec.questions) == 1:
        choices: list[tuple[str, int | None, list[Example]]] = [
            (f"balanced, {each} of each label, from learn", None, balanced(store, task, labels, each))
            for each in (1, 2)
        ]
        pool = _pool(store, task, labels) if nearest.there() else []
        choices.append((f"1 of each label, the nearest by BM25 of {len(pool)} from learn", 1, pool))
        sets = [ShownExamples(rule=rule, nearest=n, shown=shown) for rule, n, shown in choices if shown]
        if sets:
            yield "examples from learn", [_changed(best, examples=examples) for examples in sets]


def _modes(task: Task, best: Recipe, probabilities: bool) -> Iterator[Recipe]:
    n = len(task.spec.questions[0].labels)
    if task.one_choice and probabilities:
        yield _changed(best, answers="words")
        yield _changed(best, answers="codes", orders=min(n, 3))
        yield _changed(best, answers="words", orders=min(n, 3))
    yield _changed(best, answers="json")
    # A model may prefer a position to a label; the reversed order shows whether this one does.
    yield _changed(best, label_order="reversed")


def _changed(recipe: Recipe, **changes: Json) -> Recipe:
    return recipe.model_copy(update=changes)


def select(store: Store, units: Sequence[str]) -> Selection:
    """Return a selection of exactly these units."""
    conn = store.conn
    conn.execute(f"CREATE TEMP TABLE IF NOT EXISTS {UNITS} (unit_id TEXT PRIMARY KEY)")
    conn.execute(f"DELETE FROM temp.{UNITS}")
    conn.executemany(f"INSERT OR IGNORE INTO temp.{UNITS} VALUES (?)", [(unit,) for unit in units])
    return Selection(where=f"unit_id IN (SELECT unit_id FROM temp.{UNITS})")


def _pool(store: Store, task: Task, labels: dict[str, str]) -> list[Example]:
    """Return examples from which the nearest are chosen: up to 30 for each label, or none if learn has too few."""
    for each in (30, 20, 10, 5, 3, 2):
        examples = balanced(store, task, labels, each)
        if examples and sum(len(str(example.inputs)) for example in examples) <= MOST_CHARACTERS:
            return examples
    return []


def inputs_of(store: Store, task: Task, units: Sequence[str]) -> dict[str, Mapping[str, Json]]:
    """Return a mapping from each unit to the inputs that it shows."""
    selection.select(store, task, select(store, units))
    return {unit.unit_id: unit.inputs for unit in selection.pending(store, task, run_id="")}


def balanced(store: Store, task: Task, labels: dict[str, str], each: int) -> list[Example]:
    """Return `each` units for every label, at most one per question, with alternating labels.

    The result is empty if learn has too few units, or if that would be too many examples."""
    field = task.spec.questions[0].field
    if each * len(task.domain(field)) > MOST_EXAMPLES:
        return []
    inputs_by_unit = inputs_of(store, task, sorted(labels))
    of = dict(
        store.conn.execute(
            f"SELECT u.unit_id, u.question_id || char(0) || u.item_id FROM units AS u JOIN temp.{UNITS} USING (unit_id)"
        )
    )
    # By the hashes of their ids, so that the same learn part gives the same examples.
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
            # One unit a question: passages of one question are alike, and would be one example twice.
            used.add(question)
            of_label.append(Example(inputs=inputs, answers={field: label}, rationale="", item_id=item))
            if len(of_label) == each:
                break
        if len(of_label) < each:
            return []
        rows.append(of_label)
    return [of_label[k] for k in range(each) for of_label in rows]
