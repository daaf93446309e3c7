"""The units that a batch is drawn from, on disk: millions of them in the memory of a few."""

import hashlib
import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

_NUMBER = itertools.count()
_COLUMNS = "unit_id, question_id, stratum, confidence, answer, place"
_AT_ONCE = 500
ALL = "all"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that may be drawn. `confidence` serves queues only; `answer` is that of a part of one, and
    `place` its rank in the study."""

    unit_id: str
    question_id: str
    stratum: str = ALL
    confidence: float | None = None
    answer: str | None = None
    place: int = 0


class Frame(Collection[Candidate]):
    """Candidates in study order, each `place` once, in a temporary table of a connection, which ends with it."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn, self._table = conn, f"temp.frame_{next(_NUMBER)}"
        conn.execute(
            f"CREATE TABLE {self._table} (unit_id TEXT, question_id TEXT, stratum TEXT, confidence REAL, answer TEXT, "
            "place INTEGER PRIMARY KEY)"
        )
        self._by_question = False

    def fill(self, candidates: Iterable[Candidate]) -> None:
        """Add candidates. What reads them from the study begins after the table is there: a new table ends queries."""
        rows = ((c.unit_id, c.question_id, c.stratum, c.confidence, c.answer, c.place) for c in candidates)
        self._conn.executemany(f"INSERT INTO {self._table} VALUES (?, ?, ?, ?, ?, ?)", rows)

    def __len__(self) -> int:
        return int(self._conn.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0])

    def __iter__(self) -> Iterator[Candidate]:
        yield from self._candidates("ORDER BY place")

    def __contains__(self, candidate: object) -> bool:
        return isinstance(candidate, Candidate) and candidate.unit_id in self.among([candidate.unit_id])

    def among(self, units: Iterable[str]) -> set[str]:
        """Those of these units that are in it."""
        # By the study's own index: place is the rowid of `units`.
        query = f"SELECT f.unit_id FROM main.units AS u JOIN {self._table} AS f ON f.place = u.rowid WHERE u.unit_id IN "
        members: set[str] = set()
        left = iter(units)
        while some := list(itertools.islice(left, _AT_ONCE)):
            members.update(u for (u,) in self._conn.execute(f"{query}({','.join('?' * len(some))})", some))
        return members

    def leave_out(self, units: Collection[str]) -> None:
        """Take these units out of it."""
        query = f"DELETE FROM {self._table} WHERE place = (SELECT rowid FROM main.units WHERE unit_id = ?)"
        self._conn.executemany(query, [(unit,) for unit in units])

    def fingerprint(self) -> str:
        """Return a hash of the set of units. It depends neither on their order nor on the options that selected them."""
        digest = hashlib.sha256()
        for (unit,) in self._conn.execute(f"SELECT unit_id FROM {self._table} ORDER BY unit_id"):
            digest.update(f"{unit}\n".encode())
        return digest.hexdigest()[:16]

    def strata(self) -> Counter[str]:
        """Stratum -> number of units."""
        query = f"SELECT stratum, count(*) FROM {self._table} GROUP BY stratum"
        return Counter(dict(self._conn.execute(query).fetchall()))

    def questions(self) -> Iterator[tuple[str, str, int]]:
        """Every question with the stratum of its first unit and its number of units, by name."""
        self._index()
        # SQLite takes the other columns of an aggregate from the row that has the minimum.
        query = f"SELECT question_id, stratum, count(*), min(place) FROM {self._table} GROUP BY question_id"
        for question, stratum, n, _ in self._conn.execute(query):
            yield question, stratum, n

    def of_question(self, question: str) -> list[Candidate]:
        """Its units in study order."""
        self._index()
        return list(self._candidates("WHERE question_id = ? ORDER BY place", question))

    def ordered_by(self, key: Callable[[str], bytes]) -> Iterator[Candidate]:
        """All of them by a key of their unit, and by the unit; sorted on disk where they are many."""
        self._conn.create_function("frame_key", 1, key, deterministic=True)
        yield from self._candidates("ORDER BY frame_key(unit_id), unit_id")

    def _candidates(self, rest: str, *values: str) -> Iterator[Candidate]:
        for row in self._conn.execute(f"SELECT {_COLUMNS} FROM {self._table} {rest}", values):
            yield Candidate(*row)

    def _index(self) -> None:
        if not self._by_question:
            schema, _, name = self._table.partition(".")
            columns = "question_id, place, stratum"
            self._conn.execute(f"CREATE INDEX {schema}.{name}_questions ON {name} ({columns})")
            self._by_question = True
