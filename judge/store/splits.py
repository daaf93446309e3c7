"""The split of a task's questions into learn, tune and sealed test, and the log of looks at the test: the SQL.

Rows are only ever added (triggers refuse the rest): what was drawn stays drawn, and a look stays a look.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.errors import UsageError
from judge.store.study import Store, dumps, now

PARTS = ("learn", "tune", "test")
LEVEL = 0.05
"""What all looks at a test together may err by: look k is tested at LEVEL / 2^k, and these sum to LEVEL."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a sealed test: number `look` from 1, tested at `level`; `runs` are what was looked at."""

    look: int
    purpose: str
    runs: tuple[str, ...]
    reference: str
    level: float
    at: str

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


def questions(store: Store, task_id: str) -> dict[str, str]:
    """Question -> its part."""
    query = "SELECT question_id, part FROM split_questions WHERE task_id = ?"
    return dict(store.conn.execute(query, [task_id]).fetchall())


def looks(store: Store, task_id: str) -> list[Look]:
    """All looks at the test so far, in order."""
    query = (
        "SELECT look, purpose, runs, reference, level, at FROM split_looks WHERE task_id = ? ORDER BY look"
    )
    rows = store.conn.execute(query, [task_id])
    return [Look(n, why, tuple(json.loads(runs)), ref, level, at) for n, why, runs, ref, level, at in rows]


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


def look(store: Store, task_id: str, purpose: str, runs: Sequence[str], reference: str) -> Look:
    """Log a look at the sealed test, before anything of it is shown: committed when this returns."""
    with store.transaction() as conn:
        query = "SELECT coalesce(max(look), 0) + 1 FROM split_looks WHERE task_id = ?"
        number = int(conn.execute(query, [task_id]).fetchone()[0])
        made = Look(number, purpose, tuple(runs), reference, level_of(number), now())
        conn.execute(
            "INSERT INTO split_looks VALUES (?, ?, ?, ?, ?, ?, ?)",
            [task_id, number, purpose, dumps(list(runs)), reference, made.level, made.at],
        )
    return made


def closed(store: Store, task_id: str, run: str) -> set[str]:
    """The units of the sealed test, unless a look at it was for this run: then none."""
    if drawn(store, task_id) is None or any(run in each.runs for each in looks(store, task_id)):
        return set()
    query = "SELECT unit_id FROM units JOIN split_questions USING (question_id) WHERE task_id = ? AND part = 'test'"
    return {unit for (unit,) in store.conn.execute(query, [task_id])}


def splits(store: Store) -> list[str]:
    """The tasks (without version) that are split."""
    return [task_id for (task_id,) in store.conn.execute("SELECT task_id FROM splits ORDER BY task_id")]


def kin(store: Store, kind: str) -> dict[str, tuple[str, int]]:
    """Question -> (what makes questions one, units of this kind), for every question that has such units.

    Items of the same question and claim, word for word, are one thing to be split: a judge that has learnt the
    answer to one knows the other's. Each question is named by the first question it shares an item's text with.
    """
    query = """
        SELECT u.question_id, min(lower(trim(coalesce(i.question, ''))) || char(0) || lower(trim(coalesce(i.claim, '')))),
               count(*) FROM units AS u JOIN items AS i USING (item_id) WHERE u.kind = ? GROUP BY 1 ORDER BY 1
    """
    found: dict[str, tuple[str, int]] = {}
    first: dict[str, str] = {}
    for question, text, units in store.conn.execute(query, [kind]):
        own = question if text == "\0" else first.setdefault(text, question)
        found[question] = (own, units)
    return found
