"""From a study and what is asked for to the subject of a report, with the defaults filled in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from annotate.decided import DECIDED, decisions
from annotate.members import Members, batch_members
from annotate.report.subject import Asked, Decided, Reference, Subject
from annotate.study import NUMERIC, Labelled, fields_of, load_field
from judge.errors import UsageError
from judge.prompts import load_task
from judge.prompts.load import Task
from judge.stats import MISSING, Ratings, majority
from judge.store import Store
from judge.store.export import stored_task
from judge.types import AnnotatorKind


def load(store: Store, asked: Asked) -> Subject:
    """The subject that the command asks for, with defaults filled in.

    Raises UsageError for names that are not in the study, and where a choice is left open.
    """
    task, field, others = _choose(store, asked)
    found = _shorter(load_field(store, field, task=task, runs=asked.runs))
    people = found.of_kind(AnnotatorKind.HUMAN)
    if asked.batch is not None:
        found, people = _only(found, people, batch_members(store, asked.batch))
    waiting = _waiting(store, field, people)
    # Who has only labels that are not known to be blind takes no part.
    people = [p for p in people if (found.ratings.column(p) != MISSING).any()]
    judges = found.of_kind(AnnotatorKind.JUDGE)
    known = {
        "gold": found.of_kind(AnnotatorKind.GOLD),
        "adjudicated": found.of_kind(AnnotatorKind.ADJUDICATED),
    }
    ratings, majority_name, n_tied = _with_majority(found, people)
    available: dict[Reference, str] = {}
    decided = None
    if known["adjudicated"]:
        ratings, decided = _with_decisions(found, ratings, people, known["adjudicated"][0])
        available["adjudicated"] = decided.name if decided else known["adjudicated"][0]
    if known["gold"]:
        available["gold"] = known["gold"][0]
    if people and (majority_name or len(people) == 1):
        available["majority"] = majority_name or people[0]
    kind = asked.reference or next(iter(available), None)
    if kind is not None and kind not in available:
        there = ", ".join(available) or "none"
        raise UsageError(f"no {kind} labels of '{field}' to compare with; references there are: {there}")
    return Subject(
        asked=asked,
        found=found,
        ratings=ratings,
        people=people,
        judges=judges,
        others=[*known["adjudicated"], *known["gold"]],
        majority=majority_name,
        n_tied=n_tied,
        decided=decided,
        waiting=waiting,
        reference=available[kind] if kind else None,
        reference_kind=kind,
        other_fields=others,
    )


def _shorter(found: Labelled) -> Labelled:
    """The same with judges under the shortest names that tell them apart: the model, or model and end of the run's id."""
    models = {name: name.rpartition(" · ")[0].rpartition(" · ")[0] for name in found.shown.values()}
    taken = Counter([*models.values(), *(n for n in found.ratings.annotators if n not in models)])
    short = {
        name: model if model and taken[model] == 1 else f"{model} · {name.rpartition(' · ')[2]}"
        for name, model in models.items()
    }

    def named(name: str) -> str:
        return short.get(name, name)

    return replace(
        found,
        ratings=replace(found.ratings, annotators=tuple(map(named, found.ratings.annotators))),
        kinds={named(n): kind for n, kind in found.kinds.items()},
        shown={run: named(n) for run, n in found.shown.items()},
        distributions={named(n): p for n, p in found.distributions.items()},
        outside={named(n): o for n, o in found.outside.items()},
    )


def _only(found: Labelled, people: list[str], members: Members) -> tuple[Labelled, list[str]]:
    """Everybody's labels on the units of the batch, of its people alone; judges keep all of theirs.

    What judges gave elsewhere is what the labels of the batch correct.
    """
    ratings = found.ratings
    inside = np.array([unit in members.units for unit in ratings.units])
    codes, asked = ratings.codes.copy(order="F"), found.asked.copy()
    for i, name in enumerate(ratings.annotators):
        if found.kinds[name] is not AnnotatorKind.JUDGE:
            mine = inside if name in members.people or name not in people else np.zeros_like(inside)
            codes[~mine, i] = MISSING
            asked[~mine, i] = False
    kept = [p for p in people if p in members.people]
    return replace(found, ratings=replace(ratings, codes=codes), asked=asked), kept


def _with_majority(found: Labelled, people: Sequence[str]) -> tuple[Ratings, str | None, int]:
    """The table with the majority of two or more people as one more column. A tie is left open."""
    ratings = found.ratings
    if len(people) < 2 or found.level in NUMERIC:
        return ratings, None, 0
    name = "majority"
    while name in ratings.annotators:
        name += " vote"
    vote = majority(ratings, people)
    wider = ratings.with_annotator(name, vote.codes)
    return wider, name, vote.n_tied


def _with_decisions(
    found: Labelled, ratings: Ratings, people: Sequence[str], adjudicated: str
) -> tuple[Ratings, Decided | None]:
    """The table with one more column: what was adjudicated, and elsewhere what two people or more agree on."""
    if found.level in NUMERIC or len(people) < 2:
        return ratings, None
    made = decisions(ratings, people, adjudicated)
    if made is None:
        return ratings, None
    name = DECIDED
    while name in ratings.annotators:
        name += " label"
    return ratings.with_annotator(name, made.codes), Decided(name, made.n_ruled, made.n_agreed)


def _waiting(store: Store, field: str, people: Sequence[str]) -> dict[str, dict[str, int]]:
    """Person -> layer -> labels that are used nowhere but where people's changes are told."""
    query = (
        "SELECT annotator_id, layer, count(*) FROM labels WHERE field = ? AND layer NOT IN ('first', 'revised') "
        "GROUP BY 1, 2 ORDER BY 1, 2"
    )
    found: dict[str, dict[str, int]] = {}
    for person, layer, n in store.conn.execute(query, [field]):
        if person in people:
            found.setdefault(person, {})[layer] = n
    return found


def _choose(store: Store, asked: Asked) -> tuple[str | None, str, list[str]]:
    """The task (None when no task defines the field), the field, and the task's other labelled fields."""
    labelled = fields_of(store)
    if not labelled:
        raise UsageError(f"{store.path}: there are no labels yet (judge items import, judge run)")
    if asked.field is not None and asked.task is None:
        return None, asked.field, []
    task = _task(store, asked.task, [row.task for row in labelled if row.task])
    if task is None:
        fields = sorted({row.field for row in labelled})
        if len(fields) > 1:
            raise UsageError(f"name one field with --field: {', '.join(fields)}")
        return None, fields[0], []
    # A task that the study has not used is found again by what the user called it, which may be a path.
    name = task.name if _is_stored(store, task.name) else asked.task
    mine = {row.field: row.annotators for row in labelled if row.field in task.fields}
    if asked.field is not None:
        return name, asked.field, [f for f in mine if f != asked.field]
    if not mine:
        raise UsageError(f"nobody labelled a field of {task.name} ({', '.join(task.fields)})")
    usable = [f for f in task.fields if f in mine and task.level(f) != "text"] or list(mine)
    compared = [f for f in usable if _comparable(store, mine[f])]
    field = (compared or usable)[0]
    return name, field, [f for f in usable if f != field]


def _is_stored(store: Store, task: str) -> bool:
    return store.conn.execute("SELECT 1 FROM tasks WHERE task = ?", [task]).fetchone() is not None


def _comparable(store: Store, annotators: Sequence[str]) -> bool:
    """Whether a judge and somebody else labelled the field."""
    kinds = {
        kind
        for (kind,) in store.conn.execute(
            f"SELECT DISTINCT kind FROM annotators WHERE annotator_id IN ({','.join('?' * len(annotators))})",
            list(annotators),
        )
    }
    return AnnotatorKind.JUDGE in kinds and len(kinds) > 1


def _task(store: Store, name: str | None, labelled: Sequence[str]) -> Task | None:
    """The task named, or the only one whose fields have labels."""
    names = [row[0] for row in store.conn.execute("SELECT task FROM tasks ORDER BY task_id, version DESC")]
    if name is not None:
        stored = [n for n in names if name in (n, n.rpartition(".v")[0])]
        return stored_task(store, stored[0]) if stored else load_task(name)
    candidates = list(dict.fromkeys(n for n in names if n in labelled))
    if len(candidates) > 1:
        raise UsageError(
            f"the study has labels for several tasks; name one with --task: {', '.join(candidates)}"
        )
    return stored_task(store, candidates[0]) if candidates else None
