"""Responses: each contains one person's answers to one unit, in the form that all exchange formats share."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from annotate.exchange.proof import NOTHING_SHOWN, TextOfRecord
from annotate.sitting.desk import batch_info
from annotate.sitting.events import ASSISTED, spans_of
from annotate.store import ADJUDICATED
from judge.labels.relation import SOURCES_OF_ANSWERS
from judge.store import Store
from judge.types import Where

NOWHERE = Where("", 0)


@dataclass(frozen=True, slots=True)
class Response:
    """One person's answers to one unit. A response may have only some of these answers, if the file has one row
    per question.

    `spans` are (input, start, end) in code points; None means that the file has no information on evidence,
    and an empty list means that nothing was marked. `seconds` is the total time spent on the unit, and `at`
    is the time of the answer in UTC (ISO 8601). `blind` is None if unknown; `layers` overrides it for single
    fields (`assisted`, `undeclared`). `repeat` is 1 for the second answer to a unit that was shown twice.
    `revised` are the answers after the judge's label was shown. The attributes after `question` are set only when
    a response is read from the study.
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
    shown: TextOfRecord = NOTHING_SHOWN
    """The unit's text as the record shows it."""
    user: str = ""
    """The name or id of the annotator in the file, if it was mapped to another name."""
    edited_by: str | None = None
    """The person who edited the record last, if this is not its annotator."""
    problems: Sequence[str] = ()
    """Descriptions of the parts of the record that cannot be imported."""
    doubt: tuple[str, str] | None = None
    """Why the record must be quarantined, as (code, reason)."""
    source: str = ""
    """The address of the record in another program, if that program can withdraw the record later."""
    role: str = "sample"
    revised: Mapping[str, str] = field(default_factory=dict)
    question: str | None = None
    stratum: str | None = None
    weight: float | None = None
    times: Mapping[tuple[str, bool], str] = field(default_factory=dict)
    """The time of each label, by (field, whether it is revised). `at` is the time of the latest first label."""
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """All sources of this person's label, by field. A source is the batch or an import.

    There is no source for a label that does not count. This is the case if the label is in conflict, if a lead
    decided against it, or if the unit is a check.
    """

    @property
    def is_filled(self) -> bool:
        """Whether the response has an answer, evidence, a note or a flag, or is a skip."""
        return bool(self.answers or self.revised or self.spans or self.note or self.flag or self.skipped)

    def is_blind(self, name: str) -> bool | None:
        """Return whether a question was answered without visible suggestions, or None if this is unknown."""
        # Somebody else's edit is a suggestion that the annotator may have followed.
        if self.edited_by is not None:
            return False
        layer = self.layers.get(name)
        return self.blind if layer is None else False if layer == ASSISTED else None


def responses(store: Store, batch: str) -> Iterator[Response]:
    """Yield every response in a batch, including skipped units, ordered by annotator and position.

    Adjudicated answers come last, under the annotator `adjudicated`.
    """
    info = batch_info(store, batch)
    gold = bool(info.task.spec.shows_gold)
    # The time of an answer is that of its last label or skip: `updated` also changes with notes and flags.
    query = f"""
        SELECT a.unit_id, a.annotator_id, a.answers, a.spans, a.status, a.flag, a.note, a.active_ms,
               coalesce((SELECT max(e.at) FROM events AS e WHERE e.batch = a.batch AND e.annotator_id = a.annotator_id
                         AND e.position = a.position AND e.kind IN ('label', 'skip')), a.updated),
               a.layers, a.repeat, a.role, u.question_id, a.revised, b.stratum, b.weight,
               {SOURCES_OF_ANSWERS},
               (SELECT json_group_array(json_array(s.field, s.layer = 'revised', s.given)) FROM label_sources AS s
                WHERE s.annotator_id = a.annotator_id AND s.unit_id = a.unit_id AND s.repeat = a.repeat
                AND s.source IN ('batch:' || a.batch, 'adjudication:' || a.batch))
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
            # Labels that were made elsewhere may have no time: 0 would count as a very fast answer.
            seconds=row[7] / 1000 if row[7] else None,
            at=row[8],
            # A task that shows gold labels shows the answer, and a lead sees the answers of others.
            blind=not (gold or row[1] == ADJUDICATED),
            layers=json.loads(row[9]),
            repeat=row[10],
            role=row[11],
            question=row[12],
            revised={f: r["value"] for f, r in json.loads(row[13]).items()},
            stratum=row[14],
            weight=row[15],
            sources={name: sorted(sources) for name, sources in json.loads(row[16]).items()},
            times={(name, bool(revised)): at for name, revised, at in json.loads(row[17])},
        )
