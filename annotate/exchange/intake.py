"""Responses into a study: checked one by one, stored in one transaction, the second time nothing.

With a batch they become events of its log, as if the person had sat down at the terminal; without one
they are rows of `labels` and nothing else (no times, notes, evidence or skips).
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from ulid import ULID

from annotate.exchange import quarantine
from annotate.exchange.checks import Checks
from annotate.exchange.log import BatchLog
from annotate.exchange.proof import Unproven
from annotate.exchange.responses import Response
from annotate.exchange.taken import Intake, Retracted, Taken, check_person, conflict, ensure_person, kind_of
from annotate.sitting import exposure
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.events import ASSISTED, UNDECLARED
from annotate.sitting.standing import is_stopped, people_of
from judge.errors import BadInput, StudyError, UsageError
from judge.files import file_sha, stop
from judge.prompts.load import Task
from judge.store import Store, label_sources
from judge.store.export import stored_task
from judge.store.label_sources import SourceLabel
from judge.store.study import dumps, now
from judge.types import Json, Where, attributes

__all__ = ["Intake", "Taken", "take"]


def take(
    store: Store,
    responses: Iterable[Response],
    how: Intake,
    bad: Callable[[BadInput], None],
    *,
    batch: str | None = None,
    task: Task | None = None,
    unread: Sequence[BadInput] = (),
    decided: bool = False,
    retracted: Sequence[Retracted] = (),
) -> Taken:
    """Store the responses, all or nothing; `bad` gets what cannot be used and raises, or lets it be left out.

    What is left out, and every record that does not prove itself, goes to the quarantine, and so do the
    errors in `unread` (read when the responses end): records that no response could be made of. `decided`
    says that a lead has accepted them from there. What `retracted` names was taken back where it was said: its events are
    undone before the responses come in.

    Raises StudyError for a closed batch or one that somebody has open as one of these annotators.
    """
    done = Taken()
    info = batch_info(store, batch) if batch else None
    if info and info.closed:
        raise StudyError(f"batch '{batch}' was closed on {info.closed[:10]}: its labels stand as they are")
    if info and info.packed_for:
        raise UsageError(f"batch '{batch}' is a packed one: import into the study it was packed from")
    checks = Checks(store, info.task if info else task, how.labels, derived=info is None)
    import_id = str(ULID())
    with ExitStack() as locks, store.transaction() as conn:
        inside: BatchLog | _Labels = (
            BatchLog(store, conn, info, how, done, locks)
            if info
            else _Labels(store, conn, task, how, done, f"import:{import_id}")
        )
        people = Admitted(conn, info, how)
        for back in retracted:
            done.retracted += inside.retract(back)
        for response in responses:
            named = replace(response, annotator=how.people.get(response.annotator, response.annotator))
            stands = None if decided else quarantine.stands(conn, batch, how.format, named)
            if stands is not None:
                done.unchanged += 1
                done.held += stands == "open"
                continue
            try:
                proved = checks.checked(named)
                _prove(named)
                people.check(named.annotator)
                inside.take(proved)
            except BadInput as e:
                error = _placed(e, response)
                if not (isinstance(error, Unproven) and error.code in ("text", "status")):
                    bad(error)
                quarantine.hold(conn, batch, how.format, named, error)
                done.held += 1
                continue
            done.unproven += response.differs is None
            quarantine.settle_record(conn, batch, how.format, named)
        for error in unread:
            quarantine.hold(conn, batch, how.format, None, error)
            done.held += 1
        inside.finish()
        done.people = people.new
        if done.changed:
            _remember(conn, import_id, how, batch, done, inside.sessions)
    return done


def accept(
    store: Store,
    numbers: Sequence[int],
    *,
    person: str | None = None,
    unit: str | None = None,
    blind: str | None = None,
    note: str | None = None,
    merged: Callable[[Store, dict[str, Any]], None] | None = None,
) -> Taken:
    """Take records in as they are, or as `person`, on `unit`, or with their blindness declared.

    Each is stored with its decision or not at all. Raises UsageError for a record that is not open or could
    not be read, BadInput for one that does not fit the study. `merged` stores a record of `annotate batches merge`.
    """
    done = Taken()
    for number in numbers:
        held = quarantine.open_record(store.conn, number)
        if held["response"] is None:
            raise UsageError(
                f"record {number} could not be read ({held['reason']}): put it right where it comes from, and drop it here"
            )
        if "events" in held["response"]:
            if merged is None:
                raise UsageError(f"record {number} is a conflict of two packs")
            merged(store, held["response"])
        else:
            response = quarantine.response_of(held["response"])
            response = replace(
                response, annotator=person or response.annotator, unit=unit or response.unit,
                where=Where(f"quarantine {number}", 0), differs="",
            )  # fmt: skip
            how = Intake(held["format"], blind=blind, latest=True, new_people=True)  # type: ignore[arg-type]
            one = take(store, [response], how, stop, batch=held["batch"], decided=True)
            done.new += one.new
            done.blind += one.blind
            done.replaced += one.replaced
            done.unchanged += one.unchanged
        with store.transaction() as conn:
            quarantine.decide(conn, number, "accepted", note)
    return done


def _placed(error: BadInput, response: Response) -> BadInput:
    if error.path:
        return error
    where = response.where
    at = {"path": where.path, "line": where.line, "field": error.field}
    if isinstance(error, Unproven):
        return Unproven(error.code, error.reason, **at)  # type: ignore[arg-type]
    return BadInput(error.reason, **at)  # type: ignore[arg-type]


def _prove(response: Response) -> None:
    """Raises Unproven for a record that may be about another text, or not what its person meant."""
    if response.doubt is not None:
        raise Unproven(*response.doubt)
    if response.differs:
        raise Unproven("text", response.differs, field="text")


class Admitted:
    """Who may come in: the annotators of the batch, else the people of the study; anybody into a study without people."""

    def __init__(self, conn: sqlite3.Connection, info: BatchInfo | None, how: Intake) -> None:
        self._conn = conn
        query = "SELECT annotator_id FROM annotators WHERE kind = 'human'"
        self._before = {who for (who,) in conn.execute(query)}
        self._where = f"batch '{info.batch}'" if info else "the study"
        self._known = set(people_of(conn, info.batch)) if info else self._before
        self._batch = info.batch if info else None
        self._open = how.new_people or not self._known
        self.new: list[str] = []

    def check(self, who: str) -> None:
        """Raises Unproven for somebody unknown, unless new people are welcome, and for somebody who was stopped."""
        if self._batch and (why := is_stopped(self._conn, self._batch, who)):
            raise Unproven("person", f"{who} was stopped in {self._where} ({why})", field="annotator")
        if who in self._known or who in self.new:
            return
        check_person(self._conn, who)
        if not self._open:
            known = ", ".join(sorted(self._known))
            raise Unproven(
                "person",
                f"{who} is none of the people of {self._where} ({known}): say who that is with --map-annotator "
                f"{who}=NAME, or take new people in with --new-people",
                field="annotator",
            )
        if who not in self._before:
            self.new.append(who)


def _remember(
    conn: sqlite3.Connection,
    import_id: str,
    how: Intake,
    batch: str | None,
    done: Taken,
    sessions: list[str],
) -> None:
    files = [{"path": str(p), "sha256": file_sha(p) if p.is_file() else None} for p in how.files]
    kinds = list(done.blind)
    blind = how.blind or (kinds[0] if len(kinds) == 1 else "mixed" if kinds else UNDECLARED)
    counts: dict[str, Json] = {"labels": sum(done.new.values())}
    counts |= attributes(done, "replaced", "skips", "spans", "notes", "flags", "held", "unproven")
    counts |= {"blindness": dict(done.blind), "units": len(done.units)}
    conn.execute(
        "INSERT INTO label_imports VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [import_id, how.format, batch, blind, dumps(files), dumps(sessions), dumps(counts), now()],
    )


class _Labels:
    """Labels of a study without a batch."""

    def __init__(
        self,
        store: Store,
        conn: sqlite3.Connection,
        task: Task | None,
        how: Intake,
        done: Taken,
        source: str,
    ) -> None:
        self._store, self._conn, self._task, self._how, self._done = store, conn, task, how, done
        self._source = source
        self._shut: dict[str, list[tuple[str, list[str], str | None, set[str]]]] = {}
        self.sessions: list[str] = []
        self._in_file: dict[tuple[str, str, str, int], str] = {}
        """(unit, field, person, repeat) -> the label that the file gives, also where the study has it already."""

    def take(self, response: Response) -> None:
        done = self._done
        for what, there in (("skips", response.skipped), ("spans", response.spans), ("notes", response.note),
                            ("flags", response.flag)):  # fmt: skip
            if there:
                done.left_out[what] += 1
        # Everything that could refuse the response comes before the first row.
        fresh = [
            (name, value, known)
            for name, value in response.answers.items()
            if (known := self._news(response, name, value)) is not None
        ]
        kinds: Counter[str] = Counter()
        if fresh:
            ensure_person(self._conn, response)
        for name, value, known in fresh:
            kinds[self._store_label(response, name, value, known)] += 1
        done.blind += kinds
        if response.answers:
            done.units.add(response.unit)
            exposure.note_unit(
                self._conn, response.annotator, response.unit, "text", "", "import", response.at
            )
        if kinds[ASSISTED]:
            exposure.note_unit(
                self._conn, response.annotator, response.unit, "judge", "", "import", response.at
            )

    def _news(self, response: Response, name: str, value: str) -> list[SourceLabel] | None:
        """What the sources say so far of a label that is to be stored; None when nothing is.

        Raises BadInput where the file said something else before, unless the later one is to count.
        """
        key = (response.unit, name, response.annotator, response.repeat)
        known = label_sources.said(self._conn, *key)
        same = [s for s in known if s.value == value]
        kind = kind_of(response, name, self._how)
        earlier = self._in_file.setdefault(key, value)
        if earlier != value and not self._how.latest:
            # Two imports may differ, and a lead decides. One file that says two things at once is a mistake in the file.
            raise conflict(response, name, earlier, value)
        if kind != UNDECLARED and any(s.layer == UNDECLARED for s in same):
            self._declare(key, kind, same)
            return None
        contrary = [s for s in known if _is_import(s) and s.value != value]
        replaces = bool(contrary) and self._how.latest
        # The same label at the same time is the same word of the person, as when an export comes back. Only where it is to
        # count from now on does it come in once more.
        if not replaces and any(
            _is_import(s) or (response.at is not None and s.given == response.at) for s in same
        ):
            self._done.unchanged += 1
            return None
        if replaces and any(response.at and s.given and s.given > response.at for s in contrary):
            self._done.older += 1
            return None
        if not same:
            self._check_batches(response, name)
        return known

    def _store_label(self, response: Response, name: str, value: str, known: list[SourceLabel]) -> str:
        """Store a label beside what is known of it; returns whether it is blind, assisted or undeclared."""
        who, unit, conn = response.annotator, response.unit, self._conn
        seen = exposure.is_exposed(conn, self._task, who, unit, response.at)
        kind = ASSISTED if seen else kind_of(response, name, self._how)
        earlier = [s for s in known if _is_import(s) and s.value != value and self._how.latest]
        # A file may contradict itself: what it said first is kept as a source beside it.
        number = sum(s.source.partition("/")[0] == self._source for s in known)
        source = f"{self._source}/{number}" if number else self._source
        row = (unit, name, who, _layer(kind), response.repeat, value, None, None, source, response.at, now())
        label_sources.add_imported(conn, [row])
        if earlier:
            replaced = label_sources.Conflict(
                who, name, unit, response.repeat, [*earlier, SourceLabel(source, "", value, None, "")]
            )
            label_sources.resolve(conn, [replaced], lambda _: value)
            self._done.replaced += 1
        others = {s.value for s in known if s not in earlier}
        self._done.conflicts += bool(others - {value})
        self._done.confirmed += value in others
        self._done.new[who] += value not in others
        return kind

    def _check_batches(self, response: Response, name: str) -> None:
        """A batch that this person was stopped in, or that was closed, takes nothing by this way either."""
        who, unit = response.annotator, response.unit
        if who not in self._shut:
            self._shut[who] = self._shut_for(who)
        for batch, fields, why, units in self._shut[who]:
            if name not in fields or unit not in units:
                continue
            if why is not None:
                raise Unproven("person", f"{who} was stopped in batch '{batch}' ({why})", field="annotator")
            told = f"'{unit}' is one of {who}'s in batch '{batch}', which is closed"
            raise BadInput(f"{told}; open it again: annotate batches reopen {batch}", field="unit")

    def _shut_for(self, who: str) -> list[tuple[str, list[str], str | None, set[str]]]:
        """Batches that take nothing of a person: name, fields, why stopped (None: closed), units concerned."""
        shut = []
        batches = "SELECT batch, task, closed FROM batches"
        mine = (
            "SELECT unit_id FROM assignments WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication'"
        )
        for batch, task, closed in self._conn.execute(batches).fetchall():
            why = is_stopped(self._conn, batch, who)
            if why is not None:
                rows = self._conn.execute("SELECT unit_id FROM batch_units WHERE batch = ?", [batch])
            elif closed:
                rows = self._conn.execute(mine, [batch, who])
            else:
                continue
            shut.append((batch, stored_task(self._store, task).fields, why, {unit for (unit,) in rows}))
        return shut

    def _declare(self, key: tuple[str, str, str, int], kind: str, same: Sequence[SourceLabel]) -> None:
        """Say of a label that is there whether it was blind; in a batch only its log can."""
        unit, name, who, repeat = key
        same = [s for s in same if s.layer == UNDECLARED]
        for one in same:
            if one.source.startswith("batch:"):
                batch = one.source.removeprefix("batch:")
                told = f"{who} labelled '{unit}' in batch '{batch}': declare it there with --batch {batch}"
                raise BadInput(told, field=name)
        for one in same:
            label_sources.clear(self._conn, who, unit, repeat, one.source, [name])
            about = (one.source, one.given, one.stored)
            label_sources.add_imported(
                self._conn, [(unit, name, who, _layer(kind), repeat, one.value, None, None, *about)]
            )
        self._done.declared += 1
        self._done.blind[kind] += 1

    def retract(self, back: Retracted) -> int:
        """Without a log nothing is known of where a label came from."""
        return 0

    def finish(self) -> None:
        """Nothing is left to do."""


def _is_import(said: SourceLabel) -> bool:
    """Whether a label came by a direct import; one of 0.2.0 that no batch explains may have."""
    return said.source.startswith(("import:", "study:"))


def _layer(kind: str) -> str:
    """The layer of a label by its blindness."""
    return kind if kind in (ASSISTED, UNDECLARED) else "first"
