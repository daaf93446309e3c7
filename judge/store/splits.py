"""The split of a task's questions into learn, tune and sealed test, and the log of looks at the test: the SQL.

Rows are only ever added (triggers refuse the rest): what was drawn stays drawn, and a look stays a look.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from judge.errors import UsageError
from judge.store.study import Store, dumps, now

if TYPE_CHECKING:
    from judge.prompts.load import Task

PARTS = ("learn", "tune", "test")
LEVEL = 0.05
"""What all looks at a test together may err by: look k is tested at LEVEL / 2^k, and these sum to LEVEL."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a sealed test: number `look` from 1, tested at `level`; `runs` are what was looked at.

    `question` is a hash of what was asked of which labels; empty where a look is like no other.
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
        """Of the intervals that say the same as the test."""
        return 1 - self.level


@dataclass(frozen=True, slots=True)
class Drawn:
    """A split as it was drawn: stratified by the labels of `reference` for `field`; `shares` as in PARTS."""

    task_id: str
    field: str
    reference: str
    shares: tuple[float, ...]
    seed: int
    made: str


def level_of(look: int) -> float:
    """The level that look number `look` (from 1) is tested at: .025, .0125, ..."""
    return float(LEVEL / 2**look)


def drawn(store: Store, task_id: str) -> Drawn | None:
    """The split of a task; None before it is drawn."""
    row = store.conn.execute("SELECT * FROM splits WHERE task_id = ?", [task_id]).fetchone()
    if row is None:
        return None
    task, field, reference, shares, seed, made = row
    return Drawn(task, field, reference, tuple(json.loads(shares)), seed, made)


def home(store: Store, task: Task) -> str:
    """The task whose split holds for a task: its own id, else that of a split task whose field has the same labels.

    What is sealed is how labels of those units stand to a reference: under another task's name it is the same.
    """
    others = splits(store)
    if task.task_id in others:
        return task.task_id
    for other in others:
        made = drawn(store, other)
        if made is None or made.field not in task.fields:
            continue
        if sorted(_task(store, other).domain(made.field)) == sorted(task.domain(made.field)):
            return other
    return task.task_id


def _task(store: Store, task_id: str) -> Task:
    """The newest version of a task, as the study has it, else its file."""
    # The command lines import this module, and --help needs no task.
    from judge.prompts.load import load_task, parse_task

    query = "SELECT task, template FROM tasks WHERE task_id = ? ORDER BY version DESC LIMIT 1"
    row = store.conn.execute(query, [task_id]).fetchone()
    return load_task(task_id) if row is None else parse_task(row[1], f"{row[0]}.md")


def questions(store: Store, task_id: str) -> dict[str, str]:
    """Question -> its part.

    What came after the split, questions or items of them, goes by its words: questions that belong together (`kin`) are
    in one part, of several in the test before tune before learn; else what is sealed would be open under another id.
    """
    query = "SELECT question_id, part FROM split_questions WHERE task_id = ?"
    found: dict[str, str] = dict(store.conn.execute(query, [task_id]).fetchall())
    later = (
        "SELECT EXISTS (SELECT 1 FROM imports WHERE imported_at >= (SELECT made FROM splits WHERE task_id = ?1)) "
        "OR EXISTS (SELECT 1 FROM items WHERE question_id NOT IN (SELECT question_id FROM split_questions WHERE task_id = ?1))"
    )
    if not found or not store.conn.execute(later, [task_id]).fetchone()[0]:
        return found
    group = _together(store, _task(store, task_id))
    part_of: dict[str, str] = {}
    for name, part in found.items():
        own = group.get(name, name)
        if part_of.setdefault(own, part) != part:
            part_of[own] = max(part, part_of[own], key=PARTS.index)
    return found | {name: part_of[own] for name, own in group.items() if own in part_of}


def _words(question: str | None, claim: str | None) -> str:
    """What makes items one thing, whatever the case, the spaces, the form of Unicode and what is not seen; empty where
    an item has neither."""
    told = ["" if text is None else _plain(text) for text in (question, claim)]
    return "\0".join(told) if any(told) else ""


def _plain(text: str) -> str:
    if not text.isascii():
        # Case can take a text out of its normal form, and the other way round.
        text = normalize("NFKC", normalize("NFKC", text).casefold())
        text = "".join(c for c in text if category(c) != "Cf")
    return " ".join(text.casefold().split())


def looks(store: Store, task_id: str) -> list[Look]:
    """All looks at the test so far, in order."""
    query = (
        "SELECT look, purpose, runs, reference, level, at FROM split_looks WHERE task_id = ? ORDER BY look"
    )
    found = []
    for n, why, runs, ref, level, at in store.conn.execute(query, [task_id]):
        purpose, _, question = why.partition(_LABELS)
        found.append(Look(n, purpose, tuple(json.loads(runs)), ref, level, at, question.rstrip(")")))
    return found


_LABELS = " (labels "
"""Stands in the log between what a look is for and the hash of its question."""


def looked(store: Store, task_id: str) -> str:
    """How often the test has been looked at, in words that follow its name, for every report."""
    n = len(looks(store, task_id))
    times = "never been looked at" if not n else f"been looked at {n} time{'s' if n > 1 else ''}"
    return f"has {times}; the next look is tested at {level_of(n + 1):.4g}"


def keep(store: Store, split: Drawn, parts: Mapping[str, str]) -> None:
    """Freeze a split. Raises UsageError when the task has one already."""
    with store.transaction() as conn:
        if conn.execute("SELECT 1 FROM splits WHERE task_id = ?", [split.task_id]).fetchone():
            raise UsageError(f"{store.path}: {split.task_id} has been split already, and a split is frozen")
        conn.execute(
            "INSERT INTO splits VALUES (?, ?, ?, ?, ?, ?)",
            [
                *(split.task_id, split.field, split.reference),
                *(dumps(list(split.shares)), split.seed, split.made),
            ],
        )
        add(store, split.task_id, parts)


def add(store: Store, task_id: str, parts: Mapping[str, str]) -> None:
    """Give questions their parts, inside the caller's transaction."""
    rows = [(task_id, question, part) for question, part in sorted(parts.items())]
    store.conn.executemany("INSERT INTO split_questions VALUES (?, ?, ?)", rows)


def look(
    store: Store, task_id: str, purpose: str, runs: Sequence[str], reference: str, question: str = ""
) -> Look:
    """Log a look at the sealed test, before anything of it is shown: committed when this returns.

    The same `question` (not empty) for the same purpose, runs and reference is the look that it was the first time.
    """
    with store.transaction() as conn:
        past = looks(store, task_id)
        for each in past if question else []:
            same = (each.purpose, set(each.runs), each.reference) == (purpose, set(runs), reference)
            if same and each.question == question:
                return each
        number = len(past) + 1
        made = Look(number, purpose, tuple(runs), reference, level_of(number), now(), question)
        conn.execute(
            "INSERT INTO split_looks VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                *(task_id, number, f"{purpose}{_LABELS}{question})" if question else purpose),
                *(dumps(list(runs)), reference, made.level, made.at),
            ],
        )
    return made


def closed(store: Store, task_id: str, run: str) -> set[str]:
    """The units of the sealed test, unless a look at it was for this run: then none."""
    sealed = closed_questions(store, task_id, run)
    if not sealed:
        return set()
    rows = store.conn.execute("SELECT unit_id, question_id FROM units")
    return {unit for unit, question in rows if question in sealed}


def closed_questions(store: Store, task_id: str, run: str) -> set[str]:
    """The questions of the sealed test, unless a look at it was for this run: then none."""
    if drawn(store, task_id) is None or any(run in each.runs for each in looks(store, task_id)):
        return set()
    return {question for question, part in questions(store, task_id).items() if part == "test"}


def splits(store: Store) -> list[str]:
    """The tasks (without version) that are split."""
    return [task_id for (task_id,) in store.conn.execute("SELECT task_id FROM splits ORDER BY task_id")]


def kin(store: Store, task: Task) -> dict[str, tuple[str, int]]:
    """Question -> (what makes questions one, units of the task's kind), for every question that has such units.

    Items whose question and claim are the same, word for word, are one thing to be split: a judge that has learnt the
    answer to one knows the other's. What the task does not show of the two makes no difference. Questions that share an
    item's words, and whatever these share, are named by the first of them.
    """
    query = "SELECT question_id, count(*) FROM units WHERE kind = ? GROUP BY 1 ORDER BY 1"
    group = _together(store, task)
    return {q: (group.get(q, q), n) for q, n in store.conn.execute(query, [task.spec.unit])}


def _together(store: Store, task: Task) -> dict[str, str]:
    """Question -> the first of those that belong together."""
    columns = {"question", "claim"} & set(task.input_names) or {"question", "claim"}
    shown = ", ".join(name if name in columns else "NULL" for name in ("question", "claim"))
    first: dict[str, str] = {}
    above: dict[str, str] = {}
    named: set[str] = set()
    for name, question, claim in store.conn.execute(
        f"SELECT question_id, {shown} FROM items ORDER BY question_id, item_id"
    ):
        named.add(name)
        if (text := _words(question, claim)) and (known := first.setdefault(text, name)) != name:
            one, other = sorted((_first(above, name), _first(above, known)))
            if one != other:
                above[other] = one
    return {name: _first(above, name) for name in named}


def _first(above: Mapping[str, str], question: str) -> str:
    while question in above:
        question = above[question]
    return question
