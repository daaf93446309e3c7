"""A person's queue, which reads only what that person may see: the units, their status, what was shown, and
which unit comes next.

The queue is read through the blind connection. `Desk` adds the methods that commit.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from annotate.batch_plan import BatchPlan
from annotate.guidelines import with_guidelines_of
from annotate.sitting.blind import Blind
from annotate.sitting.events import Event, State, UnitStatus, fold, spans_of
from annotate.sitting.unit import PARTS, AnswerPart, ReviewLine, Sheet, ShownPassage, Source
from judge.commands import command
from judge.errors import UsageError
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task
from judge.store import Store
from judge.store.export import read_stored_task
from judge.store.inputs import get_citable_name
from judge.store.study import dumps

SHORT, LONG = 40, 200
"""The maximum number of characters of the claim, and of the text that it is about, in a row of the list. With
these limits, both are visible in 80 columns.
"""
STUCK = "nobody could say"
DIFFERENT = "different answers"
"""Two keys of `kinds`: one for units that nobody could label, and one for conflicts between numbers or between
texts.
"""
LISTS = {"reference_answers", "options", *LIST_INPUTS}


class BatchInfo(NamedTuple):
    """The facts about a batch, read from its row in the table `batches`."""

    batch: str
    task: Task
    plan: BatchPlan
    reveal: bool
    closed: str | None
    packed_for: str | None


def batch_info(store: Store, name: str) -> BatchInfo:
    """Return the batch with this name. If it does not exist, raises UsageError, which lists the existing batches."""
    query = "SELECT task, options, reveal_run, closed, packed_for FROM batches WHERE batch = ?"
    row = store.conn.execute(query, [name]).fetchone()
    if row is None:
        names = [r[0] for r in store.conn.execute("SELECT batch FROM batches ORDER BY created")]
        raise UsageError(
            f"no batch '{name}'; available: {', '.join(names) or 'none yet; to draw one: ' + command('annotate batches new NAME TASK -n 30 --annotators A,B')}"
        )
    task = with_guidelines_of(store.conn, name, read_stored_task(store, row[0]))
    return BatchInfo(name, task, BatchPlan.from_json(row[1]), row[2] is not None, row[3], row[4])


class Queue:
    """The queue of one annotator, read-only."""

    def __init__(self, info: BatchInfo, blind: Blind) -> None:
        self.info, self.task = info, info.task
        self.fields = [q.field for q in info.task.spec.questions]
        self._blind = blind
        self._kinds: dict[str, list[int]] | None = None
        self._unjudged: set[int] = set()
        """Locked units for which there is nothing to keep or revise, because the judge has no label for them."""
        self._tally: Counter[str] = Counter()
        self._last = 0
        """The last position that was counted. Units that a lead or an import adds later have higher positions."""
        self.total = 0
        self._count_new()

    def load(self, position: int) -> Sheet:
        """Load one unit. Raises UsageError for an unknown position."""
        self._count_new()
        rows = self._blind.rows("SELECT unit_id, role FROM my_units WHERE position = ?", [position])
        if not rows:
            raise UsageError(f"there is no unit {position}; the last one is {self.total}")
        sheet = Sheet(position, rows[0][0], rows[0][1], self.inputs(position), self.state(position))
        if self.task.spec.unit in PARTS:
            sheet.parts = self._parts(sheet)
        return sheet

    def inputs(self, position: int) -> dict[str, Any]:
        """Return the inputs of one unit, in the task's order, without empty lists of passages."""
        names = [n for n in self.task.input_names if n not in LIST_INPUTS]
        # If all inputs of a task are lists, there is no column to select, but a SELECT needs one.
        columns = ", ".join(f'"{n}"' for n in names) or "position"
        values = self._blind.rows(f"SELECT {columns} FROM my_texts WHERE position = ?", [position])[0]
        inputs = {
            n: json.loads(v) if v is not None and n in LISTS else v
            for n, v in zip(names, values, strict=bool(names))
        }
        inputs |= self._passages(position)
        return {n: inputs[n] for n in self.task.input_names if n in inputs}

    def _passages(self, position: int) -> dict[str, list[ShownPassage]]:
        """Return the passages for each input that is a list of passages, without empty lists."""
        names = [n for n in self.task.input_names if n in LIST_INPUTS]
        out: dict[str, list[ShownPassage]] = {}
        if not names:
            return out
        query = (
            "SELECT name, passage_id, item_id, place, title, date, source, text FROM my_passages "
            "WHERE position = ? ORDER BY name, n"
        )
        for name, passage, item, place, *about in self._blind.rows(query, [position]):
            source_id = get_citable_name(passage, item)
            shown = ShownPassage(passage, source_id, None if place is None else int(place) + 1, *about)
            out.setdefault(name, []).append(shown)
        return {n: out[n] for n in names if n in out}

    def _parts(self, sheet: Sheet) -> list[AnswerPart]:
        place = "SELECT answer_id, start, stop FROM my_texts WHERE position = ?"
        answer, start, stop = self._blind.rows(place, [sheet.position])[0]
        query = (
            "SELECT position, unit_id, start, stop, status, answers, n FROM my_parts WHERE answer_id = ? "
            "ORDER BY n, position"
        )
        rows = self._blind.rows(query, [answer])
        # A hidden repeat replaces the same unit seen before, because the earlier answer must not be visible.
        here = [r for r in rows if r[1] != sheet.unit_id]
        state = sheet.state
        this_part = AnswerPart(
            sheet.position, sheet.unit_id, _span(start, stop), state.status(self.fields), state.answers
        )
        parts = [(n, AnswerPart(p, u, _span(a, b), s, json.loads(t))) for p, u, a, b, s, t, n in here]
        at = next((r[6] for r in rows if r[1] == sheet.unit_id), None)
        before = [p for n, p in parts if at is not None and n < at]
        return [*before, this_part, *(p for n, p in parts if at is not None and n > at)]

    def state(self, position: int) -> State:
        """Return the state of a unit, computed from its events."""
        return fold(self._events(position))

    def _events(self, position: int) -> list[Event]:
        query = (
            "SELECT event_id, kind, field, value, reason, undoes, active_ms, idle_ms, outdated FROM my_events "
            "WHERE position = ? ORDER BY seq"
        )
        return [Event(*row) for row in self._blind.rows(query, [position])]

    def counts(self) -> dict[str, int]:
        """Return a map from each status to its number of units."""
        return {str(s): self._tally[str(s)] for s in UnitStatus}

    def times(self) -> tuple[int, int]:
        """Return the active milliseconds spent on finished units, and the number of these units."""
        return self._tally["ms"], self._tally[str(UnitStatus.DONE)]

    def _count_new(self) -> None:
        """Count the units that were added since the last call. The first call counts the whole queue."""
        # Grouping reads the whole queue, so it runs only if there are new units.
        if not self._blind.rows("SELECT 1 FROM my_units WHERE position > ? LIMIT 1", [self._last]):
            return
        query = "SELECT status, count(*), sum(active_ms), max(position) FROM my_units WHERE position > ? GROUP BY status"
        for status, n, ms, last in self._blind.rows(query, [self._last]):
            # The pace is computed from finished units only.
            self._tally[status] += n
            self._tally["ms"] += ms if status == UnitStatus.DONE else 0
            self.total += n
            self._last = max(self._last, last)

    def _count(self, before: tuple[str, int], state: State) -> None:
        # Counts are updated with each change, because counting a batch of 100,000 units on every key takes too long.
        after = state.status(self.fields)
        self._tally[before[0]] -= 1
        self._tally[str(after)] += 1
        self._tally["ms"] -= before[1] if before[0] == UnitStatus.DONE else 0
        self._tally["ms"] += state.active_ms if after is UnitStatus.DONE else 0

    def next_open(self, after: int = 0) -> int | None:
        """Return the position of the next open unit after the position `after`.

        If there is none, return the position of the first open unit. Return None if no unit is open.
        """
        query = "SELECT min(position) FROM my_units WHERE status = 'open' AND position > ?"
        for start in (after, 0):
            position = self._blind.rows(query, [start])[0][0]
            if position is not None:
                return int(position)
        return None

    def first(self) -> int:
        """Return the position of the unit with which the session begins.

        This is the first unit with a label that the user must still keep or revise. If there is none, it is the first
        open unit or, if no unit is open, the first unit.
        """
        return self.second_open() or self.next_open() or self.neighbour(0, 1) or 1

    def following(self, position: int) -> int | None:
        """Return the position of the next open unit, or None at the end of the batch.

        If no unit is open, return the first unit with a label that the user must still keep or revise.
        """
        # If a judge's label was shown and the person neither kept nor revised, it is shown again before the end.
        return self.next_open(position) or self.second_open()

    def neighbour(self, position: int, step: int) -> int | None:
        """Return the previous or the next unit, or None at the ends of the queue."""
        nearest, sign = ("min", ">") if step > 0 else ("max", "<")
        next_position = self._blind.rows(
            f"SELECT {nearest}(position) FROM my_units WHERE position {sign} ?", [position]
        )[0][0]
        return None if next_position is None else int(next_position)

    def listing(
        self, only: str = "all", search: str = "", *, offset: int = 0, limit: int = 100
    ) -> list[ReviewLine]:
        """Return a page of the queue. `only` is all, open, done, skipped, flagged, noted, or one of the keys of
        `kinds`.
        """
        where, values = self._build_condition(only, search)
        text = self._line()
        query = (
            f"SELECT u.position, u.status, u.answers, u.flag, u.note, {text} FROM my_units AS u "
            f"JOIN my_texts AS t ON t.position = u.position WHERE {where} "
            f"ORDER BY u.position LIMIT {int(limit)} OFFSET {int(offset)}"
        )
        rows = self._blind.rows(query, values)
        said = self._describe_answers([row[0] for row in rows])
        return [ReviewLine(p, s, json.loads(a), f, n, said.get(p, "") + t) for p, s, a, f, n, t in rows]

    def count(self, only: str = "all", search: str = "") -> int:
        """Return the total number of units on all pages of `listing`."""
        where, values = self._build_condition(only, search)
        joined = " JOIN my_texts AS t ON t.position = u.position" if search else ""
        return int(
            self._blind.rows(f"SELECT count(*) FROM my_units AS u{joined} WHERE {where}", values)[0][0]
        )

    def _build_condition(self, only: str, search: str) -> tuple[str, list[str]]:
        conditions = {
            **{kind: f"u.position IN ({','.join(map(str, at))})" for kind, at in self.kinds().items()},
            "all": "1",
            "flagged": "u.flag IS NOT NULL",
            "noted": "u.note IS NOT NULL",
            **{str(s): f"u.status = '{s}'" for s in UnitStatus},
        }
        where, values = conditions[only], []
        if search:
            # The search is for literal text: % and _ are not wildcards.
            like = "%" + search.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            columns = [f"t.\"{n}\" LIKE ? ESCAPE '\\'" for n in self._text_columns()] + [
                "u.note LIKE ? ESCAPE '\\'"
            ]
            where, values = f"({' OR '.join(columns)})", [like] * len(columns)
        return where, values

    def _line(self) -> str:
        """Return the SQL expression for the text of a row in the list: the claim or question, and then the text
        that it is about.
        """
        names = self._text_columns()
        # Several passages of one claim differ by the passage, and several claims by the claim, so a row needs both.
        about = next((n for n in ("claim", "question") if n in names), None)
        text = next((n for n in names if n != about), None)
        both = [
            f"coalesce(substr(t.\"{n}\", 1, {most}), '')" for n, most in ((about, SHORT), (text, LONG)) if n
        ]
        return " || ' · ' || ".join(both) or "''"

    def _text_columns(self) -> list[str]:
        names = [n for n in self.task.input_names if n not in LISTS]
        order = ["sentence", "answer_claim", "nugget", "passage", "answer", "claim", "question"]
        return sorted(names, key=lambda n: order.index(n) if n in order else len(order))

    def key(self, position: int) -> dict[str, str]:
        """Return the right answers for a training unit. The result is empty until the unit is committed and
        locked.
        """
        return dict(self._blind.rows("SELECT field, value FROM my_key WHERE position = ?", [position]))

    def judge(self, position: int) -> dict[str, dict[str, Any]]:
        """Return the judge's labels by field. The result is empty until the person's labels are committed and
        locked.
        """
        query = "SELECT field, value, distribution, rationale FROM my_judge WHERE position = ?"
        return {
            f: {"value": v, "distribution": json.loads(d) if d else None, "rationale": r}
            for f, v, d, r in self._blind.rows(query, [position])
        }

    def reasons(self, position: int) -> dict[str, str]:
        """Return the reasons for the right answers to a training unit.

        The result is empty if the unit is not locked yet, or if the gold labels have no reasons.
        """
        query = "SELECT field, rationale FROM my_key WHERE position = ? AND rationale IS NOT NULL"
        return dict(self._blind.rows(query, [position]))

    def second_open(self) -> int | None:
        """Return the first unit with a label that the user must still keep or revise, or None if there is none.

        The judge's label for this unit may already have been shown.
        """
        if not self.info.reveal:
            return None
        missing = " OR ".join(f"instr(u.revised, '{dumps(f)}:') = 0" for f in self.fields)
        query = (
            "SELECT u.position, u.revised, u.locked FROM my_units AS u WHERE u.role = 'unit' AND u.status = 'done' "
            f"AND ({missing}) ORDER BY u.position"
        )
        for position, revised, locked in self._blind.rows(query):
            # If the judge has no label, there is nothing to revise. Without this, such units would be loaded on every call.
            if position in self._unjudged:
                continue
            if not locked or self.judge(position).keys() - json.loads(revised).keys():
                return int(position)
            self._unjudged.add(position)
        return None

    def sources(self, position: int) -> list[Source]:
        """Return the labels from the unit's annotators, for adjudication. The annotators are named A, B, C."""
        query = "SELECT number, answers, note, flag, spans FROM my_sources WHERE position = ? ORDER BY number"
        return [
            Source(chr(64 + n), json.loads(answers), note, flag, spans_of(spans))
            for n, answers, note, flag, spans in self._blind.rows(query, [position])
        ]

    def kinds(self) -> dict[str, list[int]]:
        """Return the positions of the units for each kind of conflict, such as "refute / support". The map is
        empty unless the user adjudicates.

        A unit with conflicts on several questions is listed once per question. If the task has several
        questions, each key names its question. All conflicts between numbers or between texts have the same
        key.
        """
        if self._kinds is None:
            given: dict[int, list[dict[str, str]]] = {}
            for position, answers in self._sources_at():
                given.setdefault(position, []).append(answers)
            self._kinds = {}
            for position, answers_of in sorted(given.items()):
                differing = {f: {a[f] for a in answers_of if f in a} for f in self.fields}
                kinds = [self._kind(f, values) for f, values in differing.items() if len(values) > 1]
                for kind in kinds or [STUCK]:
                    self._kinds.setdefault(kind, []).append(position)
        return self._kinds

    def _kind(self, field: str, values: set[str]) -> str:
        # People's texts are not printed: they are untrusted, and almost every text would be a separate filter.
        difference = " / ".join(sorted(values)) if self.task.domain(field) else DIFFERENT
        return f"{field}: {difference}" if len(self.fields) > 1 else difference

    def _describe_answers(self, positions: Sequence[int]) -> dict[int, str]:
        """Return a map from each position to a text with the answers of each source, for a lead's list.

        Sources are named by the letters of `sources`.
        """
        if not positions or not self._blind.is_deciding:
            return {}
        return {
            at: ", ".join(
                f"{source.letter} {'+'.join(source.answers.values()) or '-'}" for source in self.sources(at)
            )
            + " · "
            for at in positions
        }

    def _sources_at(self) -> Iterator[tuple[int, dict[str, str]]]:
        if self._blind.is_deciding:
            for position, answers in self._blind.rows("SELECT position, answers FROM my_sources"):
                yield position, json.loads(answers)

    def training(self) -> tuple[int, int, int]:
        """Return the number of training units, how many were answered, and how many were answered correctly."""
        rows = self._blind.rows("SELECT position, answers, locked FROM my_units WHERE role = 'training'")
        keys: dict[int, dict[str, str]] = {}
        for position, field, value in self._blind.rows("SELECT position, field, value FROM my_key"):
            keys.setdefault(position, {})[field] = value
        locked = [(p, json.loads(a)) for p, a, is_locked in rows if is_locked]
        right = sum(all(a.get(f) == v for f, v in keys.get(p, {}).items()) for p, a in locked if p in keys)
        return len(rows), len(locked), right


def _span(start: int | None, stop: int | None) -> tuple[int, int] | None:
    return None if start is None or stop is None else (start, stop)
