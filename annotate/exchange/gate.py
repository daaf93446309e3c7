"""The one gate for labels: every row that comes in, by whatever door, is checked here and gets one outcome.

A door (a file format, a server) only reads rows, as `Response`. The gate compares the text that the door shows with
the study's, and checks the person, the editor, the labels and the lead's earlier decisions. With a batch, the rows
become events of its log (`log`), as if the person had labelled in the terminal. Without a batch, only labels are
stored (`direct`), without times, notes, evidence or skips.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from ulid import ULID

from annotate.exchange import quarantine
from annotate.exchange.base import Bad, Inputs
from annotate.exchange.checks import Checks
from annotate.exchange.direct import DirectImport
from annotate.exchange.log import BatchLog
from annotate.exchange.proof import PartOfRecord, Unproven, find_difference
from annotate.exchange.responses import Response
from annotate.exchange.result import ImportOptions, ImportResult, Retracted, check_person
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.events import UNDECLARED
from annotate.sitting.standing import is_stopped, people_of
from judge.errors import BadInput, StudyError, UsageError
from judge.files import file_sha, stop
from judge.prompts.load import Task
from judge.store import Store
from judge.store.row_counts import Outcome, RowOutcome
from judge.store.study import dumps, get_time
from judge.types import Json, attributes

DECIDED = {
    "open": (RowOutcome.QUARANTINED, "in the quarantine already"),
    "accepted": (RowOutcome.ALREADY_THERE, ""),
    "dropped": (RowOutcome.LEFT_OUT, "a lead dropped the record from the quarantine"),
}
"""The outcome and the reason of a row whose record is in the quarantine, by the status of the record."""


def import_rows(
    store: Store,
    responses: Iterable[Response],
    how: ImportOptions,
    bad: Bad,
    *,
    inputs: Inputs = lambda unit: None,
    batch: str | None = None,
    task: Task | None = None,
    unread: Sequence[BadInput] = (),
    decided: bool = False,
    retracted: Sequence[Retracted] = (),
) -> ImportResult:
    """Pass every row through the gate, in one transaction. If an error is raised, none of them is stored.
    Importing the same rows again changes nothing.

    `bad` is called with the error for each unusable row. If it raises the error, the import ends. If it
    returns, the row is quarantined. Rows that may belong to another text or person are quarantined too, but
    `bad` is not called for them. `inputs` returns the texts of a unit.

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
    import_id = str(ULID())
    with ExitStack() as locks, store.transaction() as conn:
        inside: BatchLog | DirectImport = (
            BatchLog(store, conn, info, how, done, locks)
            if info
            else DirectImport(conn, task, how, done, f"import:{import_id}")
        )
        checks = Checks(store, info.task if info else task, how.labels, derived=info is None)
        gate = LabelGate(conn, info, how, done, checks, inside, inputs, bad, decided=decided)
        for withdrawn in retracted:
            done.retracted += inside.retract(withdrawn)
        for response in responses:
            done.count(*gate.admit(response))
        for error in unread:
            done.count(*gate.quarantine(None, error))
        inside.finish()
        done.people = gate.people.new
        # A second import of the same file is not recorded.
        if done.changed:
            _remember(conn, import_id, how, batch, done, inside.sessions)
    return done


class LabelGate:
    """Decides on one row after the other. `done` collects the details of what was stored."""

    def __init__(
        self,
        conn: sqlite3.Connection,
        info: BatchInfo | None,
        how: ImportOptions,
        done: ImportResult,
        checks: Checks,
        inside: BatchLog | DirectImport,
        inputs: Inputs,
        bad: Bad,
        *,
        decided: bool,
    ) -> None:
        self._conn, self._how, self._done, self._decided = conn, how, done, decided
        self._batch = info.batch if info else None
        self._checks, self._inside, self._inputs, self._bad = checks, inside, inputs, bad
        self._seen: set[str] = set()
        """The quarantined records of this import."""
        self.people = AcceptedPeople(conn, info, how)

    def admit(self, response: Response) -> Outcome:
        """Check and store one row. Return its outcome and the reason, which is "" for a row that was stored.

        If `bad` raises the error of an unusable row, it is raised from here.
        """
        conn, batch, form = self._conn, self._batch, self._how.format
        name = self._how.people.get(response.annotator)
        named = (
            replace(response, annotator=name, user=response.user or response.annotator) if name else response
        )
        # This comes before all checks, because a lead's decision is final even if the file still contains
        # the record.
        status = None if self._decided else quarantine.status_of(conn, batch, form, named)
        if status == "open":
            quarantine.rename(conn, batch, form, named)
        if status is not None:
            return self._once(quarantine.record_of(batch, form, named), *DECIDED[status])
        # A line of a sheet that was not filled in says nothing. A server's record without an answer was emptied there.
        if not (response.is_filled or response.source or response.doubt):
            return RowOutcome.LEFT_OUT, "no answer"
        for problem in response.problems:
            self._bad(PartOfRecord(problem, path=response.where.path, line=response.where.line))
        try:
            checked = self._checks.check(named)
            if is_old := self._is_for_old_text(checked):
                return RowOutcome.LEFT_OUT, is_old
            if not self._decided:
                self._prove(checked)
                if quarantine.was_edited(conn, checked):
                    checked = replace(checked, blind=False, layers={})
            # This comes after the checks of the content, so that nobody is added because of a record that
            # is rejected.
            self.people.check(checked)
            outcome, reason = self._inside.store(checked)
        except BadInput as e:
            error = _add_place(e, response)
            # A record about another text, or without a status, is well-formed, so it does not stop the
            # import even without --skip-bad. A lead decides on it.
            if not (isinstance(error, Unproven) and error.code in ("text", "status", "editor")):
                self._bad(error)
            return self.quarantine(named, error)
        quarantine.close_proved(conn, batch, form, named)
        return outcome, reason

    def quarantine(self, response: Response | None, error: BadInput) -> Outcome:
        """Quarantine a row, and return its outcome and the kind of the error. The response is None if the row could
        not be parsed.
        """
        record = quarantine.add(self._conn, self._batch, self._how.format, response, error)
        return self._once(record, RowOutcome.QUARANTINED, quarantine.code_of(error))

    def _once(self, record: str, outcome: RowOutcome, reason: str) -> Outcome:
        """Return the outcome. A second row with the same quarantined record is there already."""
        if outcome is RowOutcome.QUARANTINED and record in self._seen:
            return RowOutcome.ALREADY_THERE, ""
        self._seen.add(record)
        return outcome, reason

    def _read_correction(self, unit: str) -> str | None:
        """Return the time at which the text of a unit was last corrected (`judge items import --correct`), or None."""
        query = "SELECT max(at) FROM corrected_units WHERE unit_id = ?"
        corrected: str | None = self._conn.execute(query, [unit]).fetchone()[0]
        return corrected

    def _is_for_old_text(self, response: Response) -> str:
        """Return the reason why a row does not count, or "", if it was given before the text of its unit was corrected.

        Raises BadInput if a lead has accepted the row.
        """
        corrected = self._read_correction(response.unit)
        if corrected is None or response.at is None or response.at > corrected:
            return ""
        if self._decided:
            reason = (
                f"given before the text of '{response.unit}' was corrected ({corrected}): drop the record"
            )
            raise BadInput(reason, field="at")
        return "given before the text of the unit was corrected"

    def _prove(self, response: Response) -> None:
        """Raise Unproven if the row may refer to a different text, or if its label may be somebody else's."""
        if response.doubt is not None:
            raise Unproven(*response.doubt)
        difference = find_difference(response.shown, self._inputs(response.unit))
        if difference:
            raise Unproven("text", difference, field="text")
        corrected = self._read_correction(response.unit)
        if difference is None and corrected and response.at is None:
            reason = (
                f"its text was corrected on {corrected[:10]}, and the row has neither its text nor a time"
            )
            raise Unproven("text", reason, field="text")
        if response.edited_by is not None:
            reason = f"{response.annotator} gave this label, but {response.edited_by} edited it last"
            raise Unproven("editor", reason, field="annotator")
        self._done.unproven += difference is None


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
            response = quarantine.response_of(record["response"], number)
            # The annotator saw the text of this time, or an earlier one.
            at = response.at or _found_before_correction(store, record)
            response = replace(response, annotator=person or response.annotator, at=at)
            # A lead has decided: the record replaces an earlier answer, and its annotator may be new.
            how = ImportOptions(record["format"], blind=blind, latest=True, new_people=True)  # type: ignore[arg-type]
            done.add(import_rows(store, [response], how, stop, batch=record["batch"], decided=True))
        with store.transaction() as conn:
            quarantine.decide(conn, number, "accepted", note)
    return done


def _found_before_correction(store: Store, record: dict[str, Any]) -> str | None:
    """Return the time at which a record was found, if the text of its unit was corrected afterwards."""
    query = "SELECT 1 FROM corrected_units WHERE unit_id = ? AND at >= ?"
    row = store.conn.execute(query, [record["unit"], record["found_at"]]).fetchone()
    return str(record["found_at"]) if row else None


def _add_place(error: BadInput, response: Response) -> BadInput:
    if error.path:
        return error
    where = response.where
    at = {"path": where.path, "line": where.line, "field": error.field}
    if isinstance(error, Unproven):
        return Unproven(error.code, error.reason, **at)  # type: ignore[arg-type]
    return BadInput(error.reason, **at)  # type: ignore[arg-type]


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

    def check(self, response: Response) -> None:
        """Raise Unproven for a person who was stopped, and for an unknown person unless new people are accepted."""
        who = response.annotator
        # A lead's decision has the reserved name `adjudicated`, which only our own formats can read.
        if response.role == "adjudication":
            return
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
    counts |= {"blindness": dict(done.blind), "units": len(done.units), "rows": done.rows_as_json()}
    # Labels of units that were drawn with unequal probabilities must be recognised even if they are imported
    # without their batch.
    counts |= {"unequal": sorted(name for name, weights in done.weights.items() if len(weights) > 1)}
    conn.execute(
        "INSERT INTO label_imports VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [import_id, how.format, batch, blind, dumps(files), dumps(sessions), dumps(counts), get_time()],
    )
