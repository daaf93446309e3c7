"""Identical requests are sent once: whoever asks the same gets the answer of the first.

A request is known from the moment it is sent: in flight (who asks the same waits for its outcome),
answered and not yet committed, or in the study.
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
    """A unit with the request that asks for its labels."""

    unit: Unit
    request: Request
    record: RequestRecord

    @property
    def sha(self) -> str:
        """What identical questions share."""
        return self.record.request_sha


@dataclass(slots=True)
class _Asked:
    outcome: Attempt | None = None
    waiting: list[UnitRequest] = field(default_factory=list)


class Identical:
    """The requests of one run. `waiting` counts the questions that wait for another one's outcome.

    `fresh`: no answer of another run is taken, however alike the question is.
    """

    def __init__(self, conn: sqlite3.Connection, *, fresh: bool = False) -> None:
        self.waiting = 0
        self._conn, self._fresh = conn, fresh
        self._asked: dict[str, _Asked] = {}
        self._stored: set[str] = set()

    def look_up(self, questions: Sequence[UnitRequest]) -> None:
        """See which of these the study knows: once for several, before they are asked one by one."""
        if not self._fresh:
            self._stored = judgements.known_requests(self._conn, [q.sha for q in questions])

    def answer(self, question: UnitRequest) -> Attempt | None:
        """The outcome of an identical request, if there is one by now.

        A unit that is asked again is only given an answer with labels.
        """
        if (pending := self._asked.get(question.sha)) is not None:
            return pending.outcome
        if question.sha not in self._stored:
            return None
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
        """Keep the question until the identical one in flight has its outcome; False without such one."""
        pending = self._asked.get(question.sha)
        if pending is None:
            return False
        pending.waiting.append(question)
        self.waiting += 1
        return True

    def sent(self, question: UnitRequest) -> None:
        """From here on the question can be waited for."""
        self._asked[question.sha] = _Asked()

    def answered(self, question: UnitRequest, outcome: Attempt) -> list[UnitRequest]:
        """Note the outcome and return the questions that have waited for it."""
        pending = self._asked[question.sha]
        pending.outcome, waited = outcome, pending.waiting
        pending.waiting = []
        self.waiting -= len(waited)
        return waited

    def given_up(self, question: UnitRequest) -> None:
        """There will be no outcome: the run is being stopped, and who waits for it stays pending."""
        self.waiting -= len(self._asked.pop(question.sha).waiting)

    def saved(self, sha: str) -> None:
        """The study knows this request from here on; what was looked up before did not show it."""
        self._asked.pop(sha, None)
        if not self._fresh:
            self._stored.add(sha)
