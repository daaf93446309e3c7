"""One person's answers to one unit, in the form that every format uses."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from annotate.sitting.desk import batch_info
from annotate.sitting.events import ASSISTED, spans_of
from annotate.store import ADJUDICATED
from judge.labels.relation import SOURCES_OF_ANSWERS
from judge.store import Store
from judge.types import Where

NOWHERE = Where("", 0)


def stamp(moment: datetime) -> str:
    """Return a time as the study stores it: UTC, milliseconds; a time without a zone is taken as UTC."""
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return known.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Response:
    """One person's answers to one unit, or a part of them: a file may have the others elsewhere.

    `spans` are (input, start, end) in code points; None means that the file has no information on evidence,
    an empty list that nothing was marked. `seconds` is the total time on the unit so far, `at` the time of
    the answer in UTC as ISO 8601. `blind` is None if unknown; `layers` has fields with better information
    (`assisted`, `undeclared`). `repeat` is 1 for the second answer to a unit that was shown twice. The fields
    after `where` are set when a response is read from the study.
    """

    unit: str
    annotator: str
    answers: Mapping[str, str] = field(default_factory=dict)
    spans: Sequence[tuple[str, int, int]] | None = None
    skipped: bool = False
    flag: str | None = None
    note: str | None = None
    seconds: float | None = None
    at: str | None = None
    blind: bool | None = None
    repeat: int = 0
    layers: Mapping[str, str] = field(default_factory=dict)
    where: Where = NOWHERE
    differs: str | None = None
    """What shows that it was given on another text than the unit's: "" when the texts agree, None when the
    record carries neither text nor hash."""
    doubt: tuple[str, str] | None = None
    """What the record cannot show, as (code, reason): it goes to the quarantine."""
    source: str = ""
    """The record of another program that says it, where that program can take it back."""
    role: str = "sample"
    question: str | None = None
    revised: Mapping[str, str] = field(default_factory=dict)
    stratum: str | None = None
    weight: float | None = None
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Field -> what says the same: the batch, and each import or other way by which the person gave this label, too.
    Nothing where the label does not count: it is in conflict, it was decided against, or the unit is a check."""

    def is_blind(self, name: str) -> bool | None:
        """Return whether a question was answered without visible suggestions; None: unknown."""
        layer = self.layers.get(name)
        return self.blind if layer is None else False if layer == ASSISTED else None


def responses(store: Store, batch: str) -> Iterator[Response]:
    """Yield everything that people of a batch have answered or skipped, by annotator and position.

    Adjudicated answers come last, under the annotator `adjudicated`.
    """
    info = batch_info(store, batch)
    gold = bool(info.task.spec.shows_gold)
    query = f"""
        SELECT a.unit_id, a.annotator_id, a.answers, a.spans, a.status, a.flag, a.note, a.active_ms,
               coalesce((SELECT max(e.at) FROM events AS e WHERE e.batch = a.batch AND e.annotator_id = a.annotator_id
                         AND e.position = a.position AND e.kind IN ('label', 'skip')), a.updated),
               a.layers, a.repeat, a.role, u.question_id, a.revised, b.stratum, b.weight,
               {SOURCES_OF_ANSWERS}
        FROM assignments AS a JOIN units AS u USING (unit_id)
        LEFT JOIN batch_units AS b ON b.batch = a.batch AND b.unit_id = a.unit_id
        WHERE a.batch = ? AND (a.status <> 'open' OR a.answers <> '{{}}' OR a.spans <> '[]' OR a.flag IS NOT NULL
              OR a.note IS NOT NULL)
        ORDER BY a.annotator_id = ?, a.annotator_id, a.position
    """
    for row in store.conn.execute(query, [batch, ADJUDICATED]):
        yield Response(
            unit=row[0],
            annotator=row[1],
            answers=json.loads(row[2]),
            spans=spans_of(row[3]),
            skipped=row[4] == "skipped",
            flag=row[5],
            note=row[6],
            seconds=row[7] / 1000 if row[7] else None,
            at=row[8],
            blind=not (gold or row[1] == ADJUDICATED),
            layers=json.loads(row[9]),
            repeat=row[10],
            role=row[11],
            question=row[12],
            revised={f: r["value"] for f, r in json.loads(row[13]).items()},
            stratum=row[14],
            weight=row[15],
            sources={name: sorted(sources) for name, sources in json.loads(row[16]).items()},
        )
