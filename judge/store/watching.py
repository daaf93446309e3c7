"""Read a run's progress from the study. Another process may be executing the run."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from os.path import samestat
from typing import Any

from judge.errors import StudyError
from judge.store import selection
from judge.store.export import find_named_run, read_stored_task
from judge.store.runs import SELECTED
from judge.store.study import Store
from judge.types import Json, Status, attributes

STATUSES = tuple(str(s) for s in Status)
SUMMED = 200_000
"""The number of judgements up to which the cost is computed at every look.

If there are more judgements, the cost is computed only at the first and the last look.
"""


@dataclass(frozen=True, slots=True)
class RunStanding:
    """The progress of a run. `state` is running, finished or stopped.

    `units` is the number of units that the last invocation selected, or None if this number is unknown.
    `cost` is in US dollars. It is None if no price is known, or if the cost has not been computed yet.
    """

    run: str
    task: str
    model: str
    state: str
    units: int | None
    ended: dict[str, int]
    cost: float | None
    failures: list[dict[str, Json]] = field(default_factory=list)

    @property
    def done(self) -> int:
        """The number of units with a judgement.

        Failed judgements are included, although the next invocation retries them.
        """
        return sum(self.ended.values())

    @property
    def pending(self) -> int | None:
        """The number of units without a judgement.

        A run can have judged more units than its last invocation selected, for example after `-n 10`.
        """
        return None if self.units is None else max(0, self.units - self.done)

    @property
    def is_whole(self) -> bool:
        """Whether the run is finished and every unit has a label."""
        return self.state == "finished" and self.ended["ok"] == self.done and not self.pending

    def as_json(self) -> dict[str, Json]:
        """Return the progress as the documented JSON, without the rate and the remaining time."""
        shown = attributes(self, "run", "task", "model", "state", "units")
        return {**shown, **self.ended, **attributes(self, "pending", "cost", "failures")}


class Watched:
    """Reads the progress of a run repeatedly. Raises UsageError if no run has this name."""

    def __init__(self, store: Store, name: str, n_failures: int = 5) -> None:
        self._store, self._n = store, n_failures
        # The device and inode of the opened file are stored, so that a different file with the same name is
        # noticed.
        self._file = store.path.stat()
        run = find_named_run(store, name)
        self._run, self._task, self._model = str(run["run_id"]), str(run["task"]), str(run["model"])
        self._units: int | None = None
        self._counted = False
        self._cost: float | None = None
        self._summed = False

    def look(self) -> RunStanding:
        """Return the run's progress.

        Raises StudyError if the study file was removed or replaced after it was opened, or if it no longer
        contains the run.
        """
        conn, path = self._store.conn, self._store.path
        if not path.exists():
            raise StudyError(f"{path}: the study was removed while the run was being watched")
        # A restored backup is a different file with the same name, and its run may be a different run.
        if not samestat(path.stat(), self._file):
            raise StudyError(f"{path}: the file was replaced by another study; run the command again")
        # The lock is checked before the rows are read: a run that ends in between has then written everything
        # read below.
        running = self._store.is_running(f"{self._task} {self._model}")
        row = conn.execute("SELECT finished, provider FROM runs WHERE run_id = ?", [self._run]).fetchone()
        if row is None:
            raise StudyError(
                f"{path}: run {self._run} is no longer in the study, perhaps because an older copy was "
                "restored"
            )
        finished, facts = row[0], json.loads(row[1])
        state = "finished" if finished else "running" if running else "stopped"
        counts = "SELECT status, sum(units) FROM run_counts WHERE run_id = ? GROUP BY status"
        # A trigger maintains these counts, so that millions of judgements need not be read at every look.
        by_status = dict(conn.execute(counts, [self._run]).fetchall())
        ended = {name: int(by_status.get(name, 0)) for name in STATUSES}
        cost = self._sum_up(sum(ended.values()), ending=state != "running")
        failures = list(self._failures())
        return RunStanding(
            self._run, self._task, self._model, state, self._count_selected(facts), ended, cost, failures
        )

    def _count_selected(self, facts: dict[str, Any]) -> int | None:
        if facts.get(SELECTED) is not None:
            return int(facts[SELECTED])
        if SELECTED in facts and not self._counted:
            # A run over all units of a very large study does not count them at its start, so they are counted
            # here once.
            self._counted = True
            task = read_stored_task(self._store, self._task)
            query = "SELECT 1 + coalesce(max(repeat), 0) FROM run_counts WHERE run_id = ?"
            repeats = self._store.conn.execute(query, [self._run]).fetchone()[0]
            self._units = selection.count_all(self._store, task)[0] * int(repeats)
        return self._units

    def _sum_up(self, judged: int, ending: bool) -> float | None:
        if judged <= SUMMED or ending or not self._summed:
            self._summed = True
            query = "SELECT sum(cost) FROM judgements WHERE run_id = ?"
            self._cost = self._store.conn.execute(query, [self._run]).fetchone()[0]
        return self._cost

    def _failures(self) -> Iterator[dict[str, Json]]:
        query = (
            "SELECT unit_id, status, reason, judged_at FROM judgements AS j WHERE run_id = ? AND status <> 'ok' "
            "AND NOT EXISTS (SELECT 1 FROM judgements AS k WHERE k.run_id = j.run_id AND k.unit_id = j.unit_id "
            "AND k.repeat = j.repeat AND k.attempt > j.attempt) ORDER BY judged_at DESC, unit_id LIMIT ?"
        )
        for unit, status, reason, at in self._store.conn.execute(query, [self._run, self._n]):
            yield {"unit": unit, "status": status, "reason": reason, "at": at}
