"""Read a data set as tables: items, passages, answers and their parts, gold labels, rankings.

Tables have one row per unit and plain columns (see `judge.scores.columns`). `unit_id` is the number of the unit in the study.
"""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from judge.commands import command
from judge.errors import UsageError
from judge.papers.engine.frames import frame
from judge.papers.engine.paper import ScoreRequest
from judge.store import label_rows, selection
from judge.store.answers import HUMAN
from judge.store.distractors import PREFIX
from judge.store.label_rows import quote
from judge.store.runs import IMPORTED
from judge.store.study import Store
from judge.types import GOLD, PARTS_OF_ANSWERS

ON_DOCUMENTS = "verdict_document"
"""The task of the runs that contain a system's outputs about single passages."""


@dataclass(frozen=True, slots=True)
class System:
    """A system and a condition, which together identify a set of answers."""

    system: str
    condition: str

    @property
    def where(self) -> str:
        """The SQL condition on `unit_texts` that selects this system's answers and their parts."""
        return f"answer_system = {quote(self.system)} AND answer_condition = {quote(self.condition)}"


class Rows:
    """Reads the requested rows, which are a data set or a sample of its questions."""

    def __init__(self, store: Store, request: ScoreRequest) -> None:
        self.store, self.request = store, request
        self._frames: dict[str, pd.DataFrame] = {}
        selection.offer_shuffle(store.conn)

    @cached_property
    def dataset(self) -> str:
        """The requested data set, or the only one. Raises UsageError if it does not exist, or if the choice is ambiguous."""
        there = [
            str(row[0]) for row in self.store.conn.execute("SELECT DISTINCT dataset FROM items ORDER BY 1")
        ]
        if self.request.dataset is not None:
            if self.request.dataset not in there:
                raise UsageError(
                    f"there is no data set '{self.request.dataset}'; available: {', '.join(there) or 'none'}"
                )
            return self.request.dataset
        if len(there) != 1:
            problem = (
                f"the study has several data sets: choose one with --dataset; available: {', '.join(there)}"
            )
            raise UsageError(
                problem
                if there
                else f"the study has no items; to import some: {command('judge items import FORMAT FILE')}"
            )
        return there[0]

    @property
    def data(self) -> str:
        """The SQL condition on `unit_texts` that selects the data set."""
        return f"dataset = {quote(self.dataset)}"

    @cached_property
    def scope(self) -> str:
        """The SQL condition on `unit_texts` that selects the requested rows: the data set, or a sample of its questions."""
        data = self.data
        if self.request.limit is None:
            return data
        order = (
            # Without --sample, the first questions of the import.
            "min(rowid)"
            if self.request.sample is None
            else f"adjudge_shuffle({self.request.sample}, {self._whole})"
        )
        some = f"SELECT {self._whole} FROM items WHERE {data} GROUP BY 1 ORDER BY {order} LIMIT {self._limit(data)}"
        if self._has("json_extract(meta, '$.split') IN ('calibration', 'test')"):
            # Take the same share of each part of the split, and at least one question of each.
            part = "min(json_extract(meta, '$.split'))"
            place = f"row_number() OVER (PARTITION BY {part} ORDER BY {order})"
            ranked = (
                f"SELECT {self._whole} AS whole, {place} AS place, count(*) OVER (PARTITION BY {part}) AS size, "
                f"{order} AS turn FROM items WHERE {data} GROUP BY 1"
            )
            some = (
                f"SELECT whole FROM ({ranked}) ORDER BY place > 1, (place - 0.5) / size, turn "
                f"LIMIT {self._limit(data)}"
            )
        if self._whole == "question_id":
            return f"{data} AND question_id IN ({some})"
        return f"{data} AND item_id IN (SELECT item_id FROM items WHERE {data} AND {self._whole} IN ({some}))"

    @cached_property
    def _whole(self) -> str:
        """The SQL expression for the sampling unit, which is the question or, for claim pairs, the question of
        the original claim.
        """
        # The claims of a pair are compared with each other, so a sample must contain both or neither.
        if not self._has("pair_id IS NOT NULL"):
            return "question_id"
        original = (
            "SELECT o.question_id FROM items AS o WHERE o.dataset = items.dataset AND o.pair_id = items.pair_id "
            "AND o.polarity = 'original' ORDER BY o.rowid LIMIT 1"
        )
        return f"coalesce(({original}), question_id)"

    def _has(self, condition: str) -> bool:
        query = f"SELECT 1 FROM items WHERE {self.data} AND {condition} LIMIT 1"
        return self.store.conn.execute(query).fetchone() is not None

    def _limit(self, data: str) -> int:
        """Return the number of questions for a limit such as 50 or 10%. It is rounded up."""
        if not str(self.request.limit).endswith("%"):
            return int(str(self.request.limit))
        query = f"SELECT count(DISTINCT {self._whole}) FROM items WHERE {data}"
        n = int(self.store.conn.execute(query).fetchone()[0])
        # Unrounded, 16.1 % of 1000 would be 161.00000000000003, and one question more.
        return math.ceil(round(float(str(self.request.limit)[:-1]) * n / 100, 6))

    @cached_property
    def items(self) -> pd.DataFrame:
        """A table of all items in order of import: unit_id, item_id, question_id."""
        return self.units("item", "", "n item_id question_id")

    def gold(self, field: str, of: str = "item", *, everywhere: bool = False) -> pd.Series:
        """Return gold labels by item_id, or by passage_id if `of` is "passage".

        If `everywhere` is True, the labels of the whole data set are returned, not only those of the requested
        rows.
        """
        name = "item_id" if of == "item" else "passage_id"
        query = (
            f"SELECT t.{name}, l.value FROM {label_rows.FIRST} JOIN unit_texts AS t ON t.unit_id = l.unit_id "
            f"WHERE l.annotator_id = ? AND l.field = ? "
            f"AND t.kind = ? AND {self.data if everywhere else self.scope}"
        )
        return self._read_by_id(query, [GOLD, field, of])

    def passages(self, *, everywhere: bool = False) -> pd.DataFrame:
        """Return a table of the passages: unit_id, item_id, question_id, passage_id.

        `everywhere`: include all passages of the data set, not only those of the requested rows.
        """
        return self.units(
            "passage", "", "n item_id question_id passage_id", self.data if everywhere else None
        )

    def column(self, name: str) -> pd.Series:
        """Return the values in a column of items, by item_id. Items without a value are omitted."""
        query = f"SELECT item_id, {name} FROM unit_texts WHERE kind = 'item' AND {name} IS NOT NULL AND {self.scope}"
        return self._read_by_id(query, [])

    def meta(self, key: str, of: str = "items", *, everywhere: bool = False) -> pd.Series:
        """Return the values of a metadata key of items or passages, by id. Lists and objects are returned as
        JSON strings.

        `everywhere`: include the whole data set, not only the requested rows.
        """
        name = of.removesuffix("s") + "_id"
        query = (
            f"SELECT x.{name}, json_extract(x.meta, ?) FROM {of} AS x JOIN items AS i ON i.item_id = x.item_id "
            "WHERE i.item_id IN (SELECT item_id FROM unit_texts WHERE kind = 'item' "
            f"AND {self.data if everywhere else self.scope})"
        )
        # The key is quoted, because it may contain a dot.
        return self._read_by_id(query, [f'$."{key}"'])

    def rankings(self) -> list[tuple[str, str]]:
        """List the data set's rankings as (name, stage) pairs."""
        query = (
            "SELECT DISTINCT r.name, r.stage FROM rankings AS r JOIN items AS i USING (item_id) "
            "WHERE i.dataset = ? ORDER BY 1, 2"
        )
        return [(str(n), str(s)) for n, s in self.store.conn.execute(query, [self.dataset])]

    def read_ranked(self, ranking: tuple[str, str]) -> pd.DataFrame:
        """Return a ranking as a table: item_id, rank, passage_id."""
        query = (
            "SELECT item_id, rank, passage_id FROM rankings WHERE name = ? AND stage = ? AND item_id IN "
            f"(SELECT item_id FROM unit_texts WHERE kind = 'item' AND {self.scope}) ORDER BY item_id, rank"
        )
        rows = self._frame(query, list(ranking), "item_id rank_n passage_id")
        return rows.rename(columns={"rank_n": "rank"})

    def systems(self) -> list[System]:
        """List the systems with answers in the data set, with their conditions, in order of import.

        Human answers and distractors are not systems.
        """
        query = (
            "SELECT a.system, a.condition FROM answers AS a JOIN items AS i USING (item_id) "
            "WHERE i.dataset = ? AND a.system <> ? AND a.condition NOT GLOB ? "
            "GROUP BY 1, 2 ORDER BY min(a.rowid)"
        )
        return [System(*row) for row in self.store.conn.execute(query, [self.dataset, HUMAN, f"{PREFIX}*"])]

    @cached_property
    def imported(self) -> set[str]:
        """The systems with imported outputs.

        A system is included if it has an imported run, or an answer that was not generated by a run in this
        study.
        """
        answers = (
            "SELECT DISTINCT a.system FROM answers AS a JOIN items AS i USING (item_id) WHERE i.dataset = ? "
            "AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.run_id = a.origin)"
        )
        # Verdicts on single documents are stored as runs, and not as answers.
        runs = (
            f"SELECT DISTINCT model FROM runs WHERE task GLOB '{ON_DOCUMENTS}.*' "
            f"AND json_extract(options, '$.{IMPORTED}') IS NOT NULL"
        )
        rows = self.store.conn.execute(f"{answers} UNION {runs}", [self.dataset])
        return {str(row[0]) for row in rows}

    def answers(self, system: System, columns: str = "") -> pd.DataFrame:
        """Return a system's answers as a table: unit_id, item_id, question_id, and the given `columns` of `unit_texts`."""
        return self.units("answer", system.where, f"n item_id question_id {columns}".strip())

    def has_gold(self, field: str, of: str = "item") -> bool:
        """Return whether any requested unit has this gold label."""
        return len(self.gold(field, of)) > 0

    def human_citations(self) -> dict[str, list[str]]:
        """Return, for each item, the passages that its human answer cites. If an item has several human
        answers, the first one is used.
        """
        query = (
            "SELECT item_id, cited FROM answers WHERE system = ? AND item_id IN (SELECT item_id FROM unit_texts "
            f"WHERE kind = 'item' AND {self.scope}) ORDER BY rowid DESC"
        )
        # A dict keeps the last row of an item: in falling order that is its first answer.
        return {item: json.loads(cited) for item, cited in self.store.conn.execute(query, [HUMAN])}

    def sentences(self, system: System) -> pd.DataFrame:
        """Return the sentences of a system's answers as a table: unit_id, answer_unit, invented.

        The column `invented` contains the number of citations that match no passage.
        """
        sentences = self.units("sentence", system.where, "n answer_id")
        return sentences.assign(invented=self.n_invented(system, sentences["unit_id"]))

    def n_invented(self, system: System, sentences: pd.Series) -> np.ndarray[Any, Any]:
        """Return the number of cited names that match no passage, for each of these sentences."""
        # A sentence has one row here, because its invented names are stored in one list.
        names = self.read_invented(system).set_index("unit_id")["names"].map(len)
        return sentences.map(names).fillna(0).to_numpy()

    def read_invented(self, system: System) -> pd.DataFrame:
        """Return the sentences with cited names that match no passage, as a table: unit_id, answer_unit, names."""
        query = (
            "SELECT s.rowid, a.rowid, json_extract(s.span, '$.unknown') FROM units AS s JOIN units AS a "
            "ON a.unit_id = s.answer_id WHERE s.kind = 'sentence' AND json_extract(s.span, '$.unknown') IS NOT NULL "
            f"AND s.answer_id IN (SELECT answer_id FROM unit_texts WHERE kind = 'answer' AND {system.where} AND {self.scope})"
        )
        rows = self._frame(query, [], "n answer_n names")
        rows["names"] = [json.loads(text) for text in rows["names"]]
        return rows.rename(columns={"n": "unit_id", "answer_n": "answer_unit"})

    def counts(self, kind: str) -> pd.Series:
        """Return, for each answer's unit, the number of its parts of this kind (sentence, citation or claim).

        Answers without such parts are omitted.
        """
        query = (
            "SELECT a.rowid, s.n FROM (SELECT answer_id, count(*) AS n FROM units WHERE kind = ? GROUP BY answer_id) "
            "AS s JOIN units AS a ON a.unit_id = s.answer_id"
        )
        rows = self._frame(query, [kind], "n count_n")
        return pd.Series(rows["count_n"].to_numpy(), index=rows["n"].to_numpy())

    def read_without_claims(self) -> pd.Series:
        """Return the units of answers that were imported with an empty list of claims."""
        query = (
            "SELECT u.rowid FROM answers AS a JOIN units AS u ON u.unit_id = a.answer_id "
            "WHERE json_type(a.meta, '$.claims') = 'array' AND json_array_length(a.meta, '$.claims') = 0"
        )
        return self._frame(query, [], "n")["n"]

    def nuggets(self) -> pd.DataFrame:
        """Return the numbers of vital and okay nuggets (n_vital, n_okay) by item_id. Items without nuggets are omitted."""
        query = "SELECT item_id, sum(importance = 'vital'), sum(importance = 'okay') FROM nuggets GROUP BY 1 ORDER BY 1"
        counts = self._frame(query, [], "item_id vital_n okay_n").set_index("item_id")
        return counts.rename(columns={"vital_n": "n_vital", "okay_n": "n_okay"})

    def importance(self) -> pd.Series:
        """Return the importance (vital or okay) of each unit of kind `nugget`."""
        query = (
            "SELECT u.rowid, g.importance FROM units AS u JOIN nuggets AS g ON g.item_id = u.item_id "
            "AND g.n = json_extract(u.span, '$.n') WHERE u.kind = 'nugget'"
        )
        return self._frame(query, [], "n importance").set_index("n")["importance"]

    def sentences_of(self, citations: pd.DataFrame) -> np.ndarray[Any, Any]:
        """For each of these citations, return the unit of the sentence that contains it."""
        query = (
            "SELECT c.rowid, s.rowid FROM units AS c JOIN units AS s "
            "ON s.unit_id = c.answer_id || '#s' || json_extract(c.span, '$.n') WHERE c.kind = 'citation'"
        )
        sentence_of = self._frame(query, [], "n sentence_n").set_index("n")["sentence_n"]
        return sentence_of.reindex(citations["unit_id"]).to_numpy()

    def units(self, kind: str, where: str, columns: str, scope: str | None = None) -> pd.DataFrame:
        """Return these columns of `unit_texts` for the units of this kind.

        `where` is an SQL condition. `scope`, if given, replaces the condition that selects the requested rows.
        """
        wanted = " AND ".join(f"({part})" for part in (where, scope or self.scope) if part)
        names = columns.split()
        query = f"SELECT {', '.join(names)} FROM unit_texts WHERE kind = ? AND {wanted} ORDER BY n"
        # Several tasks ask about the same units: they are read once.
        key = f"{kind} {query}"
        if key not in self._frames:
            rows = frame(self.store.conn, query, [kind], columns).rename(columns={"n": "unit_id"})
            if kind in PARTS_OF_ANSWERS and "answer_id" in rows:
                rows["answer_unit"] = self._answer_units(rows.pop("answer_id"))
            self._frames[key] = rows
        return self._frames[key].copy()

    def _read_by_id(self, query: str, values: list[str]) -> pd.Series:
        """Return the result of a query with two columns as a Series that maps ids to values."""
        rows = self._frame(query, values, "id value")
        return pd.Series(rows["value"].to_numpy(), index=pd.Index(rows["id"].to_numpy(), dtype=object))

    def _frame(self, query: str, values: list[str], columns: str) -> pd.DataFrame:
        """Return the rows of a query. They are cached, because readings with and without human labels request the same rows."""
        # The readings of people's labels, and of nobody's, request the same rows again.
        key = f"{values} {query}"
        if key not in self._frames:
            self._frames[key] = frame(self.store.conn, query, values, columns)
        return self._frames[key].copy()

    def _answer_units(self, answer_ids: pd.Series) -> np.ndarray[Any, Any]:
        """Return the unit numbers of the answers with these ids."""
        query = "SELECT unit_id, rowid FROM units WHERE kind = 'answer'"
        of = dict(self.store.conn.execute(query))
        return np.array([of[a] for a in answer_ids], dtype=np.int64)
