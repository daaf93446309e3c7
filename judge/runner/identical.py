"""Send identical requests only once: units with the same request share one answer.

A request that was sent is in one of three states: it is in flight (other units wait for its outcome),
answered but not yet committed, or stored in the study.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

from judge.parse import Parsed
from judge.runner.calls import Attempt
from judge.store import judgements
from judge.store.judgements import RequestRecord
from judge.types import Reply, Request, Unit


@dataclass(frozen=True, slots=True)
class UnitRequest:
    """A unit and the request for its labels."""

    unit: Unit
    request: Request
    record: RequestRecord

    @property
    def sha(self) -> str:
        """The hash that identical requests share."""
        return self.record.request_sha


@dataclass(slots=True)
class _InFlight:
    outcome: Attempt | None = None
    waiting: list[UnitRequest] = field(default_factory=list)


class Identical:
    """The requests of one run. `waiting` counts the units that wait for another unit's request.

    If `fresh` is True, answers from other runs are not reused.
    """

    def __init__(self, conn: sqlite3.Connection, *, fresh: bool = False) -> None:
        self.waiting = 0
        self._conn, self._fresh = conn, fresh
        self._in_flight: dict[str, _InFlight] = {}
        self._stored: set[str] = set()

    def look_up(self, questions: Sequence[UnitRequest]) -> None:
        """Find out with a single query which of these requests are stored in the study."""
        if not self._fresh:
            self._stored = judgements.find_known_requests(self._conn, [q.sha for q in questions])

    def answer(self, question: UnitRequest) -> Attempt | None:
        """Return the outcome of an identical request, or None if there is no outcome yet.

        A unit that is being retried only accepts an answer with labels.
        """
        if (pending := self._in_flight.get(question.sha)) is not None:
            # Answered but not committed yet, so the study does not show it.
            return pending.outcome
        if question.sha not in self._stored:
            return None
        # A stored answer without labels may be the answer that is being retried.
        again, limit = question.unit.attempts > 0, question.request.max_tokens
        known = judgements.find_known(self._conn, question.sha, labelled=again, limit=limit)
        if known is None:
            return None
        reply = Reply(
            known.reply or "",
            resolved_model=known.resolved_model,
            system_fingerprint=known.system_fingerprint,
        )
        return Attempt(question.record, Parsed(known.status, known.labels, known.reason), reply)

    def wait(self, question: UnitRequest) -> bool:
        """Let the unit wait for an identical request in flight. Return False if there is none."""
        pending = self._in_flight.get(question.sha)
        if pending is None:
            return False
        pending.waiting.append(question)
        self.waiting += 1
        return True

    def record_sent(self, question: UnitRequest) -> None:
        """Record that the request was sent, so that other units can wait for it."""
        self._in_flight[question.sha] = _InFlight()

    def record_outcome(self, question: UnitRequest, outcome: Attempt) -> list[UnitRequest]:
        """Record the outcome. Return the units that were waiting for it."""
        pending = self._in_flight[question.sha]
        pending.outcome, waited = outcome, pending.waiting
        pending.waiting = []
        self.waiting -= len(waited)
        return waited

    def give_up(self, question: UnitRequest) -> None:
        """Record that there will be no outcome because the run is stopping. Units that wait for it stay pending."""
        self.waiting -= len(self._in_flight.pop(question.sha).waiting)

    def record_saved(self, sha: str) -> None:
        """Record that the request is now stored in the study, so that later units can reuse its answer."""
        self._in_flight.pop(sha, None)
        if not self._fresh:
            self._stored.add(sha)
