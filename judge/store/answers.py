"""Import answers.

There is one row for each item, system and condition, and one unit for each answer and each part of an answer.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from judge.commands import command
from judge.errors import BadInput
from judge.store import label_rows
from judge.store.imports import Adder, ImportInfo, ImportReport, add_rows, check_storable, error_at
from judge.store.inputs import marked, passages
from judge.store.nuggets import add_nugget_units
from judge.store.study import Store, content_sha, dumps
from judge.text import markers, sentences
from judge.types import Answer, AnswerRow, Vote, Where

ALL = "all"
"""Used instead of a system's name to select every system in the study."""
HUMAN = "human"
"""The name of the system to which answers by people belong."""


def add_answers(
    store: Store,
    rows: Iterable[AnswerRow],
    info: ImportInfo,
    skipped: list[BadInput],
    bad: Callable[[BadInput], None],
    beside: Callable[[sqlite3.Connection], None] = lambda conn: None,
) -> ImportReport:
    """Store the answers in `rows` in one transaction. `beside` is called in the same transaction; see
    `add_rows`.

    A row is invalid if the study lacks its item or one of its `cited` or `context` passages. It is also
    invalid if the study has a different answer from the same system to the same item under the same
    condition. A citation marker that matches no passage is kept in its sentence, because the system wrote it.
    """
    return add_rows(store, AnswerAdder(store.conn, dataset=info.dataset), rows, info, skipped, bad, beside)


class AnswerAdder(Adder[AnswerRow]):
    """Adds the answers from an import or a run."""

    adds = ("answers", "empty", "sentences", "citations", "claims", "labels")

    def __init__(
        self,
        conn: sqlite3.Connection,
        import_id: str | None = None,
        dataset: str | None = None,
        ways: str = "a column (system, model, or --system-column)",
    ) -> None:
        """Start adding answers.

        `ways` is a phrase for error messages that tells the user how to name a system.
        """
        super().__init__(conn, import_id)
        self.dataset, self._ways = dataset, ways
        self._known_datasets = [r[0] for r in conn.execute("SELECT DISTINCT dataset FROM items")]

    def add(self, row: AnswerRow) -> None:
        """Add one answer. The whole row is checked before it is written, so a bad row leaves nothing behind."""
        answer, where = row.answer, row.where
        check_storable(answer, where)
        if "\0" in answer.text:
            # SQLite's text functions end at a NUL, so the rest would be invisible to every query.
            raise error_at(where, "contains a NUL character, which is not allowed", "text")
        for name in ("system", "condition"):
            value = getattr(answer, name)
            # An answer id is item@system@condition, and #s1 or #c1 follows for its parts.
            if not value.strip() or "@" in value or "#" in value:
                raise error_at(
                    where,
                    f"'{value}' must be a name without '@' and '#', which separate the parts of an id",
                    name,
                )
            if value != value.strip() or any(mark in value for mark in "\n\r\t"):
                raise error_at(
                    where,
                    f"{value!r} must not start or end with spaces, or contain a tab or a line break",
                    name,
                )
        if answer.system == ALL:
            raise error_at(
                where,
                f"'{ALL}' is reserved and means every system; give this system another name "
                f"with {self._ways}",
                "system",
            )
        item_id, question_id = self._item(answer.item, where)
        answer_id = f"{item_id}@{answer.system}@{answer.condition}"
        citable, context = self._context(item_id, answer.context, where)
        in_text = citable.find_in_text(answer.text)[0]
        cited = in_text if answer.cited is None else self._check_cited(citable, answer.cited, "cited", where)
        # Stored answers are never replaced: a judgement belongs to the text that the judge saw.
        # The fields that a prompt or a score can read; `meta` is excluded, because neither reads it.
        sha = content_sha([answer.text, cited, context, [claim.text for claim in answer.claims]])
        new = self._is_new(answer_id, sha, answer, where)
        labelled: list[tuple[str, Vote]] = [(answer_id, v) for v in answer.votes]
        labelled += [(f"{answer_id}#c{n}", v) for n, claim in enumerate(answer.claims) for v in claim.votes]
        labels = self.votes.select_new(labelled, where)
        if new:
            values = [answer.text, dumps(cited), None if context is None else dumps(context)]
            self.conn.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    answer_id,
                    item_id,
                    answer.system,
                    answer.condition,
                    *values,
                    dumps(answer.meta),
                    sha,
                    self.import_id,
                ],
            )
            self.counts["answers"] += 1
            self.counts["empty"] += not answer.text.strip()
            self._units(answer_id, item_id, question_id, answer, citable)
        # A stored answer may get new labels, for example from a second file of votes.
        self.votes.insert(labels)
        if not new and not labels:
            self.counts["unchanged"] += 1
        self.datasets.add(item_id.partition(":")[0])

    def _item(self, name: str, where: Where) -> tuple[str, str]:
        """Return (item id, question id) for the item called `name`. The name may omit the data set."""
        names = (
            [f"{self.dataset}:{name}"]
            if self.dataset
            else [name, *(f"{d}:{name}" for d in self._known_datasets)]
        )
        query = f"SELECT item_id, question_id FROM items WHERE item_id IN ({','.join('?' * len(names))})"
        rows = self.conn.execute(query, names).fetchall()
        # A full id precedes: `a:b` may also be the source id of an item in another data set.
        rows = [f for f in rows if f[0] == name] or rows
        if not rows:
            place = f"data set '{self.dataset}'" if self.dataset else "the study"
            raise error_at(
                where, f"no item '{name}' in {place}; to list the items: {command('judge items show')}", "id"
            )
        if len(rows) > 1:
            raise error_at(where, f"several data sets have an item '{name}'; choose one with --dataset", "id")
        return rows[0][0], rows[0][1]

    def _context(
        self, item_id: str, context: Sequence[str] | None, where: Where
    ) -> tuple[Citable, list[str] | None]:
        of_item = Citable(self.conn, item_id)
        if context is None:
            return of_item, None
        passage_ids = []
        for name in context:
            # A retriever over the whole corpus may have given passages of other items.
            passage = of_item.find(name) or self._anywhere(name)
            if passage is None:
                raise error_at(
                    where,
                    f"'{item_id}' has no passage '{name}', and '{name}' is not the full id of "
                    "another passage",
                    "context",
                )
            passage_ids.append(passage)
        return Citable(self.conn, item_id, passage_ids), passage_ids

    def _anywhere(self, name: str) -> str | None:
        row = self.conn.execute("SELECT passage_id FROM passages WHERE passage_id = ?", [name]).fetchone()
        return None if row is None else str(row[0])

    def _check_cited(self, citable: Citable, names: Sequence[str], field: str, where: Where) -> list[str]:
        cited_ids: dict[str, None] = {}
        for name in names:
            passage = citable.find(name)
            if passage is None:
                citable_names = ", ".join(sorted(citable.known)[:8]) or "none"
                raise error_at(
                    where,
                    f"cites '{name}', but the item has no such passage; its passages are: {citable_names}",
                    field,
                )
            cited_ids[passage] = None
        return list(cited_ids)

    def _is_new(self, answer_id: str, sha: str, answer: Answer, where: Where) -> bool:
        stored = self.conn.execute(
            "SELECT content_sha, origin FROM answers WHERE answer_id = ?", [answer_id]
        ).fetchone()
        if stored is None:
            unit = self.conn.execute("SELECT kind FROM units WHERE unit_id = ?", [answer_id]).fetchone()
            if unit is not None:
                raise error_at(
                    where,
                    f"the answer would have the id '{answer_id}', which already belongs to another unit (of the kind {unit[0]}); "
                    "give the system another name",
                    "system",
                )
            return True
        if stored[0] != sha:
            place = "this import" if stored[1] == self.import_id else "the study"
            raise error_at(
                where,
                f"{place} already has a different answer from '{answer.system}' to this item under the "
                f"condition '{answer.condition}', and stored answers are never replaced; give the new "
                f"answer another condition, or name its system with {self._ways}",
                "text",
            )
        return False

    def _units(
        self, answer_id: str, item_id: str, question_id: str, answer: Answer, citable: Citable
    ) -> None:
        def unit(name: str, kind: str, span: dict[str, object] | None, passage: str | None = None) -> None:
            self.conn.execute(
                "INSERT INTO units (unit_id, kind, item_id, question_id, passage_id, answer_id, span) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                [name, kind, item_id, question_id, passage, answer_id, None if span is None else dumps(span)],
            )

        unit(answer_id, "answer", None)
        for n, (start, end) in enumerate(sentences(answer.text) if answer.prose else ()):
            # By sentence, because a citation supports the sentence that it follows and not the whole answer.
            cited, unknown = citable.find_in_text(answer.text[start:end])
            span: dict[str, object] = {"n": n, "start": start, "end": end, "cited": cited}
            if unknown:
                span["unknown"] = unknown
            unit(f"{answer_id}#s{n}", "sentence", span)
            for passage in cited:
                unit(f"{answer_id}#s{n}/{passage.removeprefix(item_id + '/')}", "citation", span, passage)
            self.counts["sentences"] += 1
            self.counts["citations"] += len(cited)
        # Claims are units by their position, so a second import finds the same units.
        for n, claim in enumerate(answer.claims):
            unit(f"{answer_id}#c{n}", "claim", {"n": n, "claim": claim.text})
            self.counts["claims"] += 1
        add_nugget_units(self.conn, "a.answer_id = ?", [answer_id])


def add_claims(store: Store, run_id: str, field: str) -> Counter[str]:
    """Store the claims that a run found in answers, in one transaction. Each claim becomes a unit.

    The run's field must be a text field with several values (`many`). The result counts the `answers` with
    new claims, the new `claims`, the answers that already have the same claims (`unchanged`), and the answers
    that keep different claims from another run or an import (`other`).
    """
    counts: Counter[str] = Counter(answers=0, claims=0, unchanged=0, other=0)
    query = f"""
        SELECT u.answer_id, u.item_id, u.question_id, l.value FROM {label_rows.FIRST} JOIN units AS u USING (unit_id)
        WHERE l.annotator_id = ? AND l.field = ? AND u.kind = 'answer'
        ORDER BY u.rowid
    """
    stored_claims = "SELECT json_extract(span, '$.claim') FROM units WHERE answer_id = ? AND kind = 'claim' ORDER BY rowid"
    with store.transaction() as conn:
        for answer_id, item_id, question_id, value in conn.execute(query, [run_id, field]).fetchall():
            claims = json.loads(value)
            stored = [row[0] for row in conn.execute(stored_claims, [answer_id])]
            if stored:
                # Claims are named by position, so a second list would move labels to other claims.
                counts["unchanged" if stored == claims else "other"] += 1
                continue
            conn.executemany(
                "INSERT INTO units (unit_id, kind, item_id, question_id, answer_id, span) VALUES (?, 'claim', ?, ?, ?, ?)",
                [
                    (f"{answer_id}#c{n}", item_id, question_id, answer_id, dumps({"n": n, "claim": claim}))
                    for n, claim in enumerate(claims)
                ],
            )
            counts["answers"] += 1
            counts["claims"] += len(claims)
    return counts


class Citable:
    """The passages that an answer can cite.

    An answer can cite the passages in its context or, if the context is unknown, all passages of its item.
    """

    def __init__(self, conn: sqlite3.Connection, item_id: str, context: Sequence[str] | None = None) -> None:
        query = "SELECT passage_id FROM passages WHERE item_id = ? ORDER BY position"
        of_item = [row[0] for row in conn.execute(query, [item_id]) if context is None or row[0] in context]
        self._by_source_id = {pid.removeprefix(f"{item_id}/"): pid for pid in of_item}
        in_context = of_item if context is None else list(context)
        item_of: Mapping[str, str] = dict.fromkeys(of_item, item_id)
        if context is not None:
            item_of = {**item_of, **{p: str(v["item_id"]) for p, v in passages(conn, in_context).items()}}
        self._ids = set(item_of)
        self._shown = marked(in_context, item_of)
        self._in_context = in_context

    @property
    def known(self) -> set[str]:
        """The names, other than numbers, that a citation marker in the text can contain."""
        return {*self._by_source_id, *self._shown}

    def find(self, name: str) -> str | None:
        """Return the passage that a citation refers to, or None.

        The cited name is compared with these names, in this order: the marker that the system was shown, the
        passage's source id, either of these with or without `cite_`, the passage's position (from 1), and the
        passage's full id.
        """
        name = name.strip().removeprefix("[").removesuffix("]")
        # A system that was shown [cite_3] may cite [3], and the other way round.
        bare = name.lower().removeprefix("cite_")
        for key in (name, bare, f"cite_{bare}"):
            if (passage := self._shown.get(key) or self._by_source_id.get(key)) is not None:
                return passage
        # Six digits are a document number and no position.
        if bare.isdecimal() and len(bare) < 6 and 1 <= int(bare) <= len(self._in_context):
            return self._in_context[int(bare) - 1]
        return name if name in self._ids else None

    def find_in_text(self, text: str) -> tuple[list[str], list[str]]:
        """Return (passages cited in a text, citation markers that match no passage).

        Both lists are in order and contain no duplicates.
        """
        cited: dict[str, None] = {}
        unknown: dict[str, None] = {}
        for marker in markers(text, self.known):
            for name in marker.ids:
                passage = self.find(name)
                if passage is None:
                    unknown[name] = None
                else:
                    cited[passage] = None
        return list(cited), list(unknown)
