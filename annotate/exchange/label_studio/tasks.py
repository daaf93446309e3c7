"""Units as Label Studio tasks: our unit id and the inputs as text, with the judge's labels if asked for, in pages to send."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from annotate.exchange.base import PLACE_KEY, UNIT_KEY
from annotate.exchange.label_studio.config import ConfigLayout
from annotate.exchange.label_studio.link import Key
from annotate.exchange.label_studio.sdk import Check
from annotate.exchange.units import ExchangeUnit, ExchangeUnits
from annotate.sitting.desk import BatchInfo
from judge.store import Store, label_rows
from judge.store.study import dumps
from judge.types import Json

_NUL = {0x00: "\ufffd"}


def data_of(layout: ConfigLayout, unit: ExchangeUnit, place: int | None = None) -> dict[str, Json]:
    """The `data` of a unit's task: every input as text, an empty one where the unit has none."""
    texts = {name: input_text(unit.inputs.get(name)) for name in layout.inputs}
    return {UNIT_KEY: unit.unit_id, **({} if place is None else {PLACE_KEY: place}), **texts}


def input_text(value: Any) -> str:
    """An input as text: options with their letters, passages numbered with title, date and source."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return shown_text("\n".join(f"{letter}. {text}" for letter, text in value.items()))
    if isinstance(value, list):
        passages = [_passage(n, v) if isinstance(v, Mapping) else str(v) for n, v in enumerate(value, 1)]
        return shown_text(("\n\n" if any(isinstance(v, Mapping) for v in value) else "\n").join(passages))
    return shown_text(str(value))


def _passage(number: int, passage: Mapping[str, str]) -> str:
    about = " · ".join(passage[key] for key in ("title", "date", "source") if passage.get(key))
    return f"[{number}] {about}\n{passage['text']}"


def shown_text(text: str) -> str:
    """The text as it goes out, as long as before: browsers join \\r\\n, and databases refuse NUL."""
    return text.replace("\r\n", " \n").replace("\r", "\n").translate(_NUL)


def prediction(
    layout: ConfigLayout, labels: Mapping[str, tuple[str, float | None]], model: str
) -> dict[str, Json]:
    """A judge's labels (field -> label and its probability) as one prediction.

    Its score is the lowest of the probabilities, None when one of them is not known.
    """
    chances = [chance for _, chance in labels.values()]
    known = [c for c in chances if c is not None]
    return {
        "model_version": model,
        "score": round(min(known), 6) if known and len(known) == len(chances) else None,
        "result": [layout.region(field, value) for field, (value, _) in labels.items()],
    }


TASKS = 250
BYTES = 4_000_000
"""One import holds at most so many tasks, and stays under this size unless one task is larger."""


class Sent(NamedTuple):
    """One task to send. `place` is its position in the queue of whose project it is."""

    key: Key
    place: int | None = None


def wanted(units: ExchangeUnits, person: str) -> list[Sent]:
    """Every task of a project: a person's whole queue in its order, hidden repeats too, or each unit once for all."""
    if person:
        return [Sent(key, place) for place, key in sorted(units.seats.items())]
    return [Sent((unit, 0)) for unit in units.ids]


def tasks_of(
    units: ExchangeUnits,
    layout: ConfigLayout,
    missing: Sequence[Sent],
    labels: Judged,
    model: str,
    check: Check,
) -> Iterator[tuple[Key, dict[str, Json]]]:
    """The tasks, read through the blind connection and checked by the vendor's own rules."""
    with units.reader() as inputs_of:
        for (unit, repeat), place in missing:
            task: dict[str, Json] = {"data": data_of(layout, ExchangeUnit(unit, inputs_of(unit)), place)}
            if unit in labels:
                made = prediction(layout, labels[unit], model)
                check.regions(made["result"])
                task["predictions"] = [made]
            else:
                check.task(task)
            yield (unit, repeat), task


def pages(tasks: Iterator[tuple[Key, dict[str, Json]]]) -> Iterator[list[tuple[Key, dict[str, Json]]]]:
    """The tasks in pages of TASKS and BYTES."""
    page: list[tuple[Key, dict[str, Json]]] = []
    size = 0
    for key, task in tasks:
        length = len(dumps(task))
        if page and (len(page) == TASKS or size + length > BYTES):
            yield page
            page, size = [], 0
        page.append((key, task))
        size += length
    if page:
        yield page


Judged = Mapping[str, Mapping[str, tuple[str, float | None]]]
"""Unit -> field -> (label, its probability)."""


def judged(store: Store, info: BatchInfo, run: str) -> Judged:
    """Unit -> field -> (label, its probability) of a run, for labels that the task has."""
    out: dict[str, dict[str, tuple[str, float | None]]] = {}
    for question in info.task.spec.questions:
        domain = info.task.domain(question.field)
        rows = store.conn.execute(
            f"SELECT l.unit_id, l.value, l.distribution FROM {label_rows.FIRST} JOIN batch_units AS b ON b.unit_id = l.unit_id "
            "WHERE b.batch = ? AND l.annotator_id = ? AND l.field = ?",
            [info.batch, run, question.field],
        )
        for unit, value, distribution in rows:
            if not domain or value in domain:
                chances: Any = json.loads(distribution) if distribution else {}
                out.setdefault(unit, {})[question.field] = (value, chances.get(value))
    return out


def model_of(store: Store, run: str) -> str:
    """The model of a run."""
    return str(store.conn.execute("SELECT model FROM runs WHERE run_id = ?", [run]).fetchone()[0])
