"""Few-shot examples from the study: labelled items that a run shows in its prompts instead of judging them.

In a task on items, an example includes the item's passages if the run shows passages. In a task on passages,
it includes the item's first passage with the gold label `supporting` or, if there is none, its first passage.
The answer shown is the gold label for the task's field or, if there is none, the item's `claim_verdict`.
"""

from collections.abc import Mapping, Sequence

from judge.commands import command
from judge.errors import UsageError
from judge.prompts.load import Task
from judge.prompts.spec import Example
from judge.store import label_rows
from judge.store.study import Store
from judge.types import GOLD

VERDICT = "claim_verdict"
_ROLE = "raguard.role"


def showing(
    store: Store, task: Task, items: Sequence[str], contexts: Mapping[str, Sequence[str]] | None = None
) -> Task:
    """Return the task with these items as its examples, in this order. `contexts` maps each item to the
    passages that are shown with it.

    Raises UsageError if an item is unknown, or if it lacks a usable gold label or an input of the task.
    """
    return task.showing([_example(store, task, item, (contexts or {}).get(item, ())) for item in items])


def _example(store: Store, task: Task, item: str, context: Sequence[str]) -> Example:
    row = store.conn.execute("SELECT claim, question FROM items WHERE item_id = ?", [item]).fetchone()
    if row is None:
        raise UsageError(
            f"--examples: there is no item '{item}' in the study; list the items: {command('judge items show')}"
        )
    inputs: dict[str, str | list[str] | dict[str, str]] = {
        name: value for name, value in zip(("claim", "question"), row, strict=True) if value is not None
    }
    if task.spec.unit == "passage":
        title, inputs["passage"] = _passage(store, item)
        # An example shows the same fields as the units that are judged.
        inputs |= {"passage_title": title} if title else {}
    elif context:
        inputs["context"] = [_text(store, passage) for passage in context]
    field = task.spec.questions[0].field
    # Data sets of claims have their gold as `claim_verdict`, whatever the task calls its field.
    answer = _gold(store, item, field) or _gold(store, item, VERDICT)
    # The gold label answers one field. With several questions the example would show an incomplete answer.
    if len(task.spec.questions) != 1 or answer not in task.domain(field):
        raise UsageError(f"--examples: '{item}' has no gold label for {task.name}")
    # A prompt shows the inputs of its task and nothing else of the item.
    shown = {name: value for name, value in inputs.items() if name in task.input_names}
    if lacking := [name for name in task.required_inputs if name not in shown]:
        raise UsageError(f"--examples: '{item}' lacks {', '.join(lacking)}, which {task.name} needs")
    return Example(inputs=shown, answers={field: answer}, rationale="", item_id=item)


def _passage(store: Store, item: str) -> tuple[str | None, str]:
    """Return the title and the text of the passage that an example on passages shows."""
    query = (
        f"SELECT p.title, p.text FROM passages AS p LEFT JOIN {label_rows.ALL} ON l.unit_id = p.passage_id AND l.annotator_id = ? "
        "AND l.field = ? AND l.layer = 'first' AND l.repeat = 0 WHERE p.item_id = ? "
        "ORDER BY coalesce(l.value = 'supporting', 0) DESC, p.position LIMIT 1"
    )
    row = store.conn.execute(query, [GOLD, _ROLE, item]).fetchone()
    if row is None:
        raise UsageError(f"--examples: '{item}' has no passage")
    return row[0], str(row[1])


def _text(store: Store, passage: str) -> str:
    """Return a passage as raw prompts show it: its title, if it has one, above its text."""
    query = "SELECT title, text FROM passages WHERE passage_id = ?"
    title, text = store.conn.execute(query, [passage]).fetchone()
    return f"{title}\n{text}" if title else str(text)


def _gold(store: Store, item: str, field: str) -> str | None:
    query = f"SELECT value FROM {label_rows.FIRST} WHERE unit_id = ? AND annotator_id = ? AND field = ?"
    row = store.conn.execute(query, [item, GOLD, field]).fetchone()
    return None if row is None else str(row[0])
