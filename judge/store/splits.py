"""Store the split of a task's questions into learn, tune and sealed test parts, and log every look at the
test.

A look is one use of the test's labels. Each look is tested at a stricter level than the one before. Triggers
ensure that rows can only be added. If a split could be drawn again, or a look could be removed from the log,
the error rate of the tests could not be guaranteed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from judge.errors import UsageError
from judge.store.study import Store, dumps, get_time

if TYPE_CHECKING:
    from judge.prompts.load import Task

PARTS = ("learn", "tune", "test")
LEVEL = 0.05
"""The error rate of all looks at a test together.

Look k is tested at LEVEL / 2^k, so the levels of all looks sum to LEVEL.
"""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a sealed test.

    `look` is the number of the look, counted from 1. `level` is its significance level, and `runs` lists the
    tested runs. `question` is a hash of the comparison and its labels. A repeated comparison has the same
    hash and is not a new look. If `question` is empty, every look is a new look.
    """

    look: int
    purpose: str
    runs: tuple[str, ...]
    reference: str
    level: float
    at: str
    question: str = ""

    @property
    def confidence(self) -> float:
        """The confidence level of intervals that correspond to the significance level of this look."""
        return 1 - self.level


@dataclass(frozen=True, slots=True)
class Drawn:
    """A stored split, which was stratified by the labels from `reference` for `field`.

    `shares` has the same order as PARTS.
    """

    task_id: str
    field: str
    reference: str
    shares: tuple[float, ...]
    seed: int
    made: str


def level_of(look: int) -> float:
    """Return the level at which look number `look` (from 1) is tested: .025, .0125, ..."""
    return float(LEVEL / 2**look)


def read_split(store: Store, task_id: str) -> Drawn | None:
    """Return a task's split, or None if it has not been drawn."""
    row = store.conn.execute("SELECT * FROM splits WHERE task_id = ?", [task_id]).fetchone()
    if row is None:
        return None
    task, field, reference, shares, seed, made = row
    return Drawn(task, field, reference, tuple(json.loads(shares)), seed, made)


def home(store: Store, task: Task) -> str:
    """Return the id of the task whose split applies to this task.

    If this task has no split, the split of another task applies if its field has the same name and labels.
    Such tasks share a split, because a result that is sealed in one task must not be readable in the other.
    If no split applies, the id of this task is returned.
    """
    split_tasks = splits(store)
    if task.task_id in split_tasks:
        return task.task_id
    for candidate in split_tasks:
        split = read_split(store, candidate)
        if split is None or split.field not in task.fields:
            continue
        if sorted(_task(store, candidate).domain(split.field)) == sorted(task.domain(split.field)):
            return candidate
    return task.task_id


def _task(store: Store, task_id: str) -> Task:
    """Return the newest version of a task that the study has stored.

    If the study has not stored the task, it is loaded from the task file.
    """
    # Imported here because all command lines import this module, and --help does not need tasks.
    from judge.prompts.load import load_task, parse_task

    query = "SELECT task, template FROM tasks WHERE task_id = ? ORDER BY version DESC LIMIT 1"
    row = store.conn.execute(query, [task_id]).fetchone()
    return load_task(task_id) if row is None else parse_task(row[1], f"{row[0]}.md")


def questions(store: Store, task_id: str) -> dict[str, str]:
    """Return {question: part}.

    A question that was imported after the split gets the part of the questions with the same text (see
    `kin`). This prevents a sealed text from being read under a new question id. If the questions with the
    same text are in several parts, test takes precedence over tune, and tune over learn.
    """
    query = "SELECT question_id, part FROM split_questions WHERE task_id = ?"
    part_by_question: dict[str, str] = dict(store.conn.execute(query, [task_id]).fetchall())
    later = (
        "SELECT EXISTS (SELECT 1 FROM imports WHERE imported_at >= (SELECT made FROM splits WHERE task_id = ?1)) "
        "OR EXISTS (SELECT 1 FROM items WHERE question_id NOT IN (SELECT question_id FROM split_questions WHERE task_id = ?1))"
    )
    if not part_by_question or not store.conn.execute(later, [task_id]).fetchone()[0]:
        return part_by_question
    group = _group_questions(store, _task(store, task_id))
    part_of: dict[str, str] = {}
    for name, part in part_by_question.items():
        name_of_group = group.get(name, name)
        if part_of.setdefault(name_of_group, part) != part:
            part_of[name_of_group] = max(part, part_of[name_of_group], key=PARTS.index)
    return part_by_question | {
        name: part_of[name_of_group] for name, name_of_group in group.items() if name_of_group in part_of
    }


def _words(question: str | None, claim: str | None) -> str:
    """Return the normalised texts by which items are compared.

    Return an empty string if there is neither a question nor a claim. Case, spaces, Unicode form and
    invisible characters are ignored.
    """
    texts = ["" if text is None else _normalise(text) for text in (question, claim)]
    return "\0".join(texts) if any(texts) else ""


def _normalise(text: str) -> str:
    if not text.isascii():
        # The text is normalised twice, because case folding can change a normalised text into one that is not
        # normalised.
        text = normalize("NFKC", normalize("NFKC", text).casefold())
        text = "".join(c for c in text if category(c) != "Cf")
    return " ".join(text.casefold().split())


def looks(store: Store, task_id: str) -> list[Look]:
    """Return all previous looks at the test, in order."""
    query = (
        "SELECT look, purpose, runs, reference, level, at FROM split_looks WHERE task_id = ? ORDER BY look"
    )
    past = []
    for n, stored_purpose, runs, ref, level, at in store.conn.execute(query, [task_id]):
        purpose, _, question = stored_purpose.partition(_LABELS)
        past.append(Look(n, purpose, tuple(json.loads(runs)), ref, level, at, question.rstrip(")")))
    return past


_LABELS = " (labels "
"""The separator between the purpose of a look and the hash of its question in the log."""


def describe_looks(store: Store, task_id: str) -> str:
    """Describe how often the test has been looked at, as the end of a sentence for reports."""
    n = len(looks(store, task_id))
    times = "never been looked at" if not n else f"been looked at {n} time{'s' if n > 1 else ''}"
    return f"has {times}; the next look is tested at {level_of(n + 1):.4g}"


def keep(store: Store, split: Drawn, parts: Mapping[str, str]) -> None:
    """Freeze a split. Raises UsageError if the task already has one."""
    with store.transaction() as conn:
        if conn.execute("SELECT 1 FROM splits WHERE task_id = ?", [split.task_id]).fetchone():
            raise UsageError(f"{store.path}: {split.task_id} has already been split, and a split is frozen")
        conn.execute(
            "INSERT INTO splits VALUES (?, ?, ?, ?, ?, ?)",
            [
                *(split.task_id, split.field, split.reference),
                *(dumps(list(split.shares)), split.seed, split.made),
            ],
        )
        add(store, split.task_id, parts)


def add(store: Store, task_id: str, parts: Mapping[str, str]) -> None:
    """Store the part to which each question belongs, inside the caller's transaction."""
    rows = [(task_id, question, part) for question, part in sorted(parts.items())]
    store.conn.executemany("INSERT INTO split_questions VALUES (?, ?, ?)", rows)


def look(
    store: Store, task_id: str, purpose: str, runs: Sequence[str], reference: str, question: str = ""
) -> Look:
    """Log a look at the sealed test and commit it. This must be called before any result is shown.

    The look is committed first, so that a crash cannot remove it after the user has seen its result. If the
    log already has a look with the same `question` (not empty), purpose, runs and reference, that look is
    returned.
    """
    with store.transaction() as conn:
        # Read inside the write transaction, so that two commands at once cannot take the same number.
        past = looks(store, task_id)
        for earlier in past if question else []:
            same = (earlier.purpose, set(earlier.runs), earlier.reference) == (purpose, set(runs), reference)
            if same and earlier.question == question:
                return earlier
        number = len(past) + 1
        logged = Look(number, purpose, tuple(runs), reference, level_of(number), get_time(), question)
        conn.execute(
            "INSERT INTO split_looks VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                *(task_id, number, f"{purpose}{_LABELS}{question})" if question else purpose),
                *(dumps(list(runs)), reference, logged.level, logged.at),
            ],
        )
    return logged


def read_closed_units(store: Store, task_id: str, run: str) -> set[str]:
    """Return the units in the sealed test, or no units if the test was already opened for this run."""
    sealed = read_closed_questions(store, task_id, run)
    if not sealed:
        return set()
    rows = store.conn.execute("SELECT unit_id, question_id FROM units")
    return {unit for unit, question in rows if question in sealed}


def read_closed_questions(store: Store, task_id: str, run: str) -> set[str]:
    """Return the questions in the sealed test, or no questions if the test was already opened for this run."""
    # If the test was opened for a run, the run's labels need no longer be hidden.
    if read_split(store, task_id) is None or any(run in each.runs for each in looks(store, task_id)):
        return set()
    return {question for question, part in questions(store, task_id).items() if part == "test"}


def splits(store: Store) -> list[str]:
    """Return the ids (without versions) of the tasks that have a split."""
    return [task_id for (task_id,) in store.conn.execute("SELECT task_id FROM splits ORDER BY task_id")]


def kin(store: Store, task: Task) -> dict[str, tuple[str, int]]:
    """Group the questions that share a text, and count their units.

    Returns {question: (group, number of units of the task's kind)}. Questions without such units are omitted.
    A group is named after its first question.

    Two questions are in one group if they have items with the same question and claim. If A shares a text
    with B, and B shares a text with C, all three are in one group. Texts that the task does not show are
    ignored. A split never divides a group, because a judge that was fitted on one of its questions has seen
    the answer to the others.
    """
    query = "SELECT question_id, count(*) FROM units WHERE kind = ? GROUP BY 1 ORDER BY 1"
    group = _group_questions(store, task)
    return {q: (group.get(q, q), n) for q, n in store.conn.execute(query, [task.spec.unit])}


def _group_questions(store: Store, task: Task) -> dict[str, str]:
    """Return {question: the first question in its group}."""
    # A judge that is not shown the claim cannot recognise it.
    columns = {"question", "claim"} & set(task.input_names) or {"question", "claim"}
    shown = ", ".join(name if name in columns else "NULL" for name in ("question", "claim"))
    first: dict[str, str] = {}
    parent: dict[str, str] = {}
    named: set[str] = set()
    for name, question, claim in store.conn.execute(
        f"SELECT question_id, {shown} FROM items ORDER BY question_id, item_id"
    ):
        named.add(name)
        if (text := _words(question, claim)) and (known := first.setdefault(text, name)) != name:
            # Sorted, so that a group is named after its first question, whatever the order of import.
            kept, merged = sorted((_first(parent, name), _first(parent, known)))
            if kept != merged:
                parent[merged] = kept
    return {name: _first(parent, name) for name in named}


def _first(parent: Mapping[str, str], question: str) -> str:
    while question in parent:
        question = parent[question]
    return question
