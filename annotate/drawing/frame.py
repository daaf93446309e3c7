"""The sampling frame: the units from which a batch is drawn. It is stored on disk, because there can be
millions of units.
"""

import hashlib
import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from judge.store.study import dumps

# A connection can have several frames at once, and each needs a table of its own.
_NUMBER = itertools.count()
_COLUMNS = "unit_id, question_id, stratum, confidence, answer, place"
ALL = "all"
"""The stratum of all units of a draw without strata."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that may be drawn.

    `confidence` is the judge's confidence, for draws by uncertainty. `answer` is the answer to which the unit
    belongs, and `place` is the unit's position in the study.
    """

    unit_id: str
    question_id: str
    stratum: str = ALL
    confidence: float | None = None
    answer: str | None = None
    place: int = 0


class Frame(Collection[Candidate]):
    """Candidates in study order, in a temporary table that is dropped when the connection is closed."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn, self._table = conn, f"temp.frame_{next(_NUMBER)}"
        conn.execute(
            f"CREATE TABLE {self._table} (unit_id TEXT, question_id TEXT, stratum TEXT, confidence REAL, answer TEXT, "
            "place INTEGER PRIMARY KEY)"
        )
        self._by_question = False

    def fill(self, candidates: Iterable[Candidate]) -> None:
        """Add candidates."""
        # `candidates` may be a query on the same connection, which creating a table would end, so the table
        # must already exist.
        rows = ((c.unit_id, c.question_id, c.stratum, c.confidence, c.answer, c.place) for c in candidates)
        self._conn.executemany(f"INSERT INTO {self._table} VALUES (?, ?, ?, ?, ?, ?)", rows)

    def __len__(self) -> int:
        return int(self._conn.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0])

    def __iter__(self) -> Iterator[Candidate]:
        yield from self._candidates("ORDER BY place")

    def __contains__(self, candidate: object) -> bool:
        return isinstance(candidate, Candidate) and candidate.unit_id in self.among([candidate.unit_id])

    def among(self, units: Iterable[str]) -> set[str]:
        """Return those of the given units that are in the frame."""
        # This uses the index of the study, because the frame has no index on its units, and `place` is the
        # rowid of `units`.
        query = (
            f"SELECT f.unit_id FROM main.units AS u JOIN {self._table} AS f ON f.place = u.rowid "
            "WHERE u.unit_id IN (SELECT value FROM json_each(?))"
        )
        return {unit for (unit,) in self._conn.execute(query, [dumps(list(units))])}

    def leave_out(self, units: Collection[str]) -> None:
        """Remove these units from the frame."""
        query = f"DELETE FROM {self._table} WHERE place = (SELECT rowid FROM main.units WHERE unit_id = ?)"
        self._conn.executemany(query, [(unit,) for unit in units])

    def fingerprint(self) -> str:
        """Return a hash of the set of units. The hash depends neither on the order of the units nor on the
        options that selected them.
        """
        digest = hashlib.sha256()
        for (unit,) in self._conn.execute(f"SELECT unit_id FROM {self._table} ORDER BY unit_id"):
            digest.update(f"{unit}\n".encode())
        return digest.hexdigest()[:16]

    def strata(self) -> Counter[str]:
        """Return the number of units in each stratum."""
        query = f"SELECT stratum, count(*) FROM {self._table} GROUP BY stratum"
        return Counter(dict(self._conn.execute(query).fetchall()))

    def questions(self) -> Iterator[tuple[str, str, int]]:
        """Yield (question, stratum of its first unit, number of its units) for every question, ordered by the
        question's name.
        """
        self._index()
        # SQLite takes the other columns of an aggregate from the row that has the minimum.
        query = f"SELECT question_id, stratum, count(*), min(place) FROM {self._table} GROUP BY question_id"
        for question, stratum, n, _ in self._conn.execute(query):
            yield question, stratum, n

    def list_question(self, question: str) -> list[Candidate]:
        """Return the units of a question in study order."""
        self._index()
        return list(self._candidates("WHERE question_id = ? ORDER BY place", question))

    def iterate_by(self, key: Callable[[str], bytes]) -> Iterator[Candidate]:
        """Yield all candidates, ordered by a key that is computed from the unit's id. SQLite sorts the
        candidates, and uses the disk if there are many.
        """
        self._conn.create_function("frame_key", 1, key, deterministic=True)
        yield from self._candidates("ORDER BY frame_key(unit_id), unit_id")

    def _candidates(self, rest: str, *values: str) -> Iterator[Candidate]:
        for row in self._conn.execute(f"SELECT {_COLUMNS} FROM {self._table} {rest}", values):
            yield Candidate(*row)

    def _index(self) -> None:
        # Only draws of whole questions read the frame by question.
        if not self._by_question:
            schema, _, name = self._table.partition(".")
            columns = "question_id, place, stratum"
            self._conn.execute(f"CREATE INDEX {schema}.{name}_questions ON {name} ({columns})")
            self._by_question = True
