"""Check responses one by one, and store them in one transaction. Importing the same responses again changes nothing.

With a batch, the responses become events of its log (`log`), as if the person had labelled in the terminal.
Without a batch, only labels are stored (`direct`), without times, notes, evidence or skips.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from ulid import ULID

from annotate.exchange import quarantine
from annotate.exchange.checks import Checks
from annotate.exchange.direct import DirectImport
from annotate.exchange.log import BatchLog
from annotate.exchange.proof import Unproven
from annotate.exchange.responses import Response
from annotate.exchange.result import ImportOptions, ImportResult, Retracted, check_person
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.events import UNDECLARED
from annotate.sitting.standing import is_stopped, people_of
from judge.errors import BadInput, StudyError, UsageError
from judge.files import file_sha, stop
from judge.prompts.load import Task
from judge.store import Store
from judge.store.study import dumps, get_time
from judge.types import Json, Where, attributes


def store_responses(
    store: Store,
    responses: Iterable[Response],
    how: ImportOptions,
    bad: Callable[[BadInput], None],
    *,
    batch: str | None = None,
    task: Task | None = None,
    unread: Sequence[BadInput] = (),
    decided: bool = False,
    retracted: Sequence[Retracted] = (),
) -> ImportResult:
    """Store responses in one transaction. If an error is raised, none of them is stored.

    `bad` is called with the error for each unusable response. If it raises the error, the import ends. If it
    returns, the response is quarantined. Responses that have no status, or whose text differs from the unit's
    text, are quarantined too, but `bad` is not called for them.

    `unread` contains the errors for records that the reader could not parse. These records are quarantined
    too. The reader may append to `unread` while the responses are consumed.

    `decided` is true if a lead has accepted the responses from the quarantine. `retracted` records were
    withdrawn at their source, and their events are undone first.

    Raises StudyError if the batch is closed, or if one of its annotators is currently labelling in it.
    """
    done = ImportResult()
    info = batch_info(store, batch) if batch else None
    if info and info.closed:
        raise StudyError(
            f"batch '{batch}' was closed on {info.closed[:10]}: its labels can no longer be changed"
        )
    # A pack contains the units of one person. Labels by other people would be lost when it is merged.
    if info and info.packed_for:
        raise UsageError(f"batch '{batch}' is a packed batch: import into the study from which it was packed")
    checks = Checks(store, info.task if info else task, how.labels, derived=info is None)
    import_id = str(ULID())
    with ExitStack() as locks, store.transaction() as conn:
        inside: BatchLog | DirectImport = (
            BatchLog(store, conn, info, how, done, locks)
            if info
            else DirectImport(store, conn, task, how, done, f"import:{import_id}")
        )
        people = AcceptedPeople(conn, info, how)
        for withdrawn in retracted:
            done.retracted += inside.retract(withdrawn)
        for response in responses:
            named = replace(response, annotator=how.people.get(response.annotator, response.annotator))
            # This comes before all checks, because a lead's decision is final even if the file still contains
            # the record.
            status = None if decided else quarantine.status_of(conn, batch, how.format, named)
            if status is not None:
                done.unchanged += 1
                done.quarantined += status == "open"
                continue
            try:
                proved = checks.check(named)
                _prove(named)
                # This comes after the checks of the content, so that nobody is added because of a record that
                # is rejected.
                people.check(named.annotator)
                inside.store(proved)
            except BadInput as e:
                error = _add_place(e, response)
                # A record about another text, or without a status, is well-formed, so it does not stop the
                # import even without --skip-bad. A lead decides on it.
                if not (isinstance(error, Unproven) and error.code in ("text", "status")):
                    bad(error)
                quarantine.add(conn, batch, how.format, named, error)
                done.quarantined += 1
                continue
            done.unproven += response.differs is None
            quarantine.close_proved(conn, batch, how.format, named)
        for error in unread:
            quarantine.add(conn, batch, how.format, None, error)
            done.quarantined += 1
        inside.finish()
        done.people = people.new
        # A second import of the same file is not recorded.
        if done.changed:
            _remember(conn, import_id, how, batch, done, inside.sessions)
    return done


def accept(
    store: Store,
    numbers: Sequence[int],
    *,
    person: str | None = None,
    blind: str | None = None,
    note: str | None = None,
    merged: Callable[[Store, dict[str, Any]], None] | None = None,
) -> ImportResult:
    """Store quarantined records, either unchanged or with a different `person` or declared blindness.

    `merged` is a function that stores the record of a conflict between two packs (copies of a batch that were
    labelled elsewhere). Raises UsageError for a record that is not open or could not be parsed, and BadInput for
    a record that does not fit the study.
    """
    done = ImportResult()
    for number in numbers:
        record = quarantine.open_record(store.conn, number)
        if record["response"] is None:
            raise UsageError(
                f"record {number} could not be read ({record['reason']}): correct it where it was exported, import it again, and drop this record"
            )
        if "events" in record["response"]:
            if merged is None:
                raise UsageError(f"record {number} is a conflict between two packs")
            merged(store, record["response"])
        else:
            response = quarantine.response_of(record["response"])
            response = replace(
                response, annotator=person or response.annotator, where=Where(f"quarantine {number}", 0), differs="",
            )  # fmt: skip
            # A lead has decided: the record replaces an earlier answer, and its annotator may be new.
            how = ImportOptions(record["format"], blind=blind, latest=True, new_people=True)  # type: ignore[arg-type]
            outcome = store_responses(store, [response], how, stop, batch=record["batch"], decided=True)
            done.new += outcome.new
            done.blind += outcome.blind
            done.replaced += outcome.replaced
            done.unchanged += outcome.unchanged
        with store.transaction() as conn:
            quarantine.decide(conn, number, "accepted", note)
    return done


def _add_place(error: BadInput, response: Response) -> BadInput:
    if error.path:
        return error
    where = response.where
    at = {"path": where.path, "line": where.line, "field": error.field}
    if isinstance(error, Unproven):
        return Unproven(error.code, error.reason, **at)  # type: ignore[arg-type]
    return BadInput(error.reason, **at)  # type: ignore[arg-type]


def _prove(response: Response) -> None:
    """Raise Unproven if the record may refer to a different text, or if its annotator may not have submitted it."""
    if response.doubt is not None:
        raise Unproven(*response.doubt)
    if response.differs:
        raise Unproven("text", response.differs, field="text")


class AcceptedPeople:
    """The people whose labels are accepted: the batch's annotators or, without a batch, all people in the study."""

    def __init__(self, conn: sqlite3.Connection, info: BatchInfo | None, how: ImportOptions) -> None:
        self._conn = conn
        query = "SELECT annotator_id FROM annotators WHERE kind = 'human'"
        self._before = {who for (who,) in conn.execute(query)}
        self._where = f"batch '{info.batch}'" if info else "the study"
        self._known = set(people_of(conn, info.batch)) if info else self._before
        self._batch = info.batch if info else None
        # In a study without people, a name cannot be confused with another, so the people in its first file are
        # added.
        self._open = how.new_people or not self._known
        self.new: list[str] = []

    def check(self, who: str) -> None:
        """Raise Unproven for a person who was stopped, and for an unknown person unless new people are accepted."""
        if self._batch and (reason := is_stopped(self._conn, self._batch, who)):
            raise Unproven("person", f"{who} was stopped in {self._where} ({reason})", field="annotator")
        if who in self._known or who in self.new:
            return
        check_person(self._conn, who)
        if not self._open:
            known = ", ".join(sorted(self._known))
            raise Unproven(
                "person",
                f"{who} is not one of the people in {self._where} ({known}): map the name with --map-label "
                f"annotator:{who}=NAME, or accept new people with --new-people",
                field="annotator",
            )
        if who not in self._before:
            self.new.append(who)


def _remember(
    conn: sqlite3.Connection,
    import_id: str,
    how: ImportOptions,
    batch: str | None,
    done: ImportResult,
    sessions: list[str],
) -> None:
    files = [{"path": str(p), "sha256": file_sha(p) if p.is_file() else None} for p in how.files]
    kinds = list(done.blind)
    blind = how.blind or (kinds[0] if len(kinds) == 1 else "mixed" if kinds else UNDECLARED)
    counts: dict[str, Json] = {"labels": sum(done.new.values())}
    counts |= attributes(done, "replaced", "skips", "spans", "notes", "flags", "unproven")
    counts["held"] = done.quarantined
    counts |= {"blindness": dict(done.blind), "units": len(done.units)}
    # Labels of units that were drawn with unequal probabilities must be recognised even if they are imported
    # without their batch.
    counts |= {"unequal": sorted(name for name, weights in done.weights.items() if len(weights) > 1)}
    conn.execute(
        "INSERT INTO label_imports VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [import_id, how.format, batch, blind, dumps(files), dumps(sessions), dumps(counts), get_time()],
    )
