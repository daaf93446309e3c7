"""Prodigy's JSON Lines (https://prodi.gy/docs/api-interfaces): `choice`, `text_input` and binary classification.

There is one row per unit and question, because a Prodigy task has one set of options.

    prodigy mark DATASET tasks.jsonl --view-id choice
    prodigy db-out DATASET > done.jsonl
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from annotate.exchange.base import UNIT_KEY, ExchangeUnit, Export, Out, ReadOptions, Response
from annotate.exchange.files import json_records
from annotate.exchange.proof import TextOfRecord
from annotate.exchange.texts import EVIDENCE, compose, inward, option_text, outward
from annotate.exchange.values import (
    read_boolean,
    read_number,
    read_spans,
    read_text,
    read_time,
    read_whole,
    text_of,
)
from judge.errors import BadInput
from judge.prompts.spec import Question
from judge.types import Where

NAME = "prodigy"
HELP = "Prodigy's JSONL: exports choice and text_input tasks, imports answers with annotators and spans"
WRITES, ENDING = "file", ".jsonl"
OPTIONS = {
    "dataset": "import: name of the Prodigy dataset, which is removed from session names (DATASET-alice -> alice)",
    "unit": "import: key of the unit's id, with dots for nested keys (default: adjudge_unit_id, at the top level or in meta)",
}
_UNNAMED = re.compile(r"^(?:.*-)?\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d$")
FIELD_KEY, INPUT = "adjudge_field", "user_input"


def write(export: Export, out: Out, options: Mapping[str, str]) -> None:
    """Write tasks to annotate. In an export of labels, write the same tasks with their answers, one row for
    each person.
    """
    with out.lines() as put:
        if not export.labels:
            for unit in export.units():
                for question in export.task.spec.questions:
                    put(_task(unit, question))
            return
        units = {unit.unit_id: unit for unit in export.units()}
        for response in export.responses():
            # Evidence, note, flag and time belong to the unit, so only the row of its first question contains
            # them.
            first = True
            for question in export.task.spec.questions:
                if response.skipped or question.field in response.answers:
                    put(_write_answer(units[response.unit], question, response, first))
                    first = False


def _task(unit: ExchangeUnit, question: Question) -> dict[str, Any]:
    # Prodigy stores unknown keys and does not show them, so annotators do not see an id that may name a system.
    row: dict[str, Any] = {"text": compose(unit.inputs)[0], UNIT_KEY: unit.unit_id, FIELD_KEY: question.field}
    if question.labels:
        options = [{"id": label.value, "text": option_text(label)} for label in question.labels]
        return row | {"options": options, "config": {"choice_style": "single"}, "_view_id": "choice"}
    return row | {"field_id": INPUT, "field_label": question.ask or question.field, "_view_id": "text_input"}


def _write_answer(unit: ExchangeUnit, question: Question, response: Response, first: bool) -> dict[str, Any]:
    row = _task(unit, question)
    if response.skipped:
        row["answer"] = "ignore"
    else:
        value = response.answers[question.field]
        row |= {"answer": "accept"} | ({"accept": [value]} if question.labels else {INPUT: value})
    if first and response.spans:
        parts = compose(unit.inputs)[1]
        row["spans"] = [{"start": a, "end": b, "label": EVIDENCE} for a, b in outward(response.spans, parts)]
    if response.at:
        row["_timestamp"] = int(datetime.fromisoformat(response.at).timestamp())
    if response.repeat:
        row["adjudge_repeat"] = response.repeat
    if first:
        ours = {"note": response.note, "flag": response.flag, "seconds": response.seconds}
        row |= {f"adjudge_{key}": value for key, value in ours.items() if value}
    row["adjudge_blind"] = response.is_blind(question.field)
    return row | {"_annotator_id": response.annotator, "_session_id": response.annotator}


def read_responses(path: Path, reading: ReadOptions) -> Iterator[Response]:
    """Yield the responses in a file that `prodigy db-out` wrote.

    `accept` is an answer, `ignore` is a skip, and `reject` is a skip with a flag. In a binary task (`label`
    without options), `reject` means the other label if the question has two labels. If the question has more
    than two labels, the row has no answer.
    """
    records = json_records(path, reading.bad)
    return reading.read_each(path, records, lambda row, where: _responses(row, where, reading))


def _responses(row: Mapping[str, Any], where: Where, reading: ReadOptions) -> Iterator[Response]:
    answer = row.get("answer")
    if answer is None:
        reading.remarks["rows without an answer"] += 1
        return
    if answer not in ("accept", "reject", "ignore"):
        raise BadInput(f"must be accept, reject or ignore, not {json.dumps(answer)[:80]}", field="answer")
    unit, name = _unit(row, reading), _field(row, reading)
    answers: dict[str, str] = {}
    if answer == "accept":
        answers = {name: _read_accepted(row, name, reading)}
    elif answer == "reject" and _is_binary(row):
        domain = reading.domain(name)
        rejected = text_of(row["label"], "label")
        # With three labels, rejecting one does not say which of the other two is meant.
        if rejected not in domain or len(domain) != 2:
            reading.remarks["rejected labels that do not imply another label"] += 1
            return
        answers = {name: next(v for v in domain if v != rejected)}
    yield Response(
        unit=unit,
        annotator=_annotator(row, reading),
        answers=answers,
        spans=inward([*read_spans(row, "spans")], row.get("text"), reading.inputs(unit)) or None
        if answer == "accept"
        else None,
        skipped=not answers,
        flag=read_text(row, "adjudge_flag")
        or ("rejected in Prodigy" if answer == "reject" and not answers else None),
        note=read_text(row, "adjudge_note"),
        seconds=read_number(row, "adjudge_seconds"),
        at=read_time(row, "_timestamp"),
        blind=read_boolean(row, "adjudge_blind"),
        repeat=read_whole(row, "adjudge_repeat"),
        where=where,
        shown=TextOfRecord(text=row.get("text")),
    )


def _is_binary(row: Mapping[str, Any]) -> bool:
    return "label" in row and "options" not in row


def _unit(row: Mapping[str, Any], reading: ReadOptions) -> str:
    path = reading.options.get("unit")
    meta = row.get("meta")
    unit: Any = row.get(UNIT_KEY) or (meta.get(UNIT_KEY) if isinstance(meta, Mapping) else None)
    if path:
        unit = row
        for key in path.split("."):
            unit = unit.get(key) if isinstance(unit, Mapping) else None
    if unit is None:
        raise BadInput("the unit's id is missing; name its key with -O unit=KEY", field=path or UNIT_KEY)
    return text_of(unit, path or UNIT_KEY)


def _field(row: Mapping[str, Any], reading: ReadOptions) -> str:
    fields = [q.field for q in reading.task.spec.questions] if reading.task else []
    name = row.get(FIELD_KEY) or reading.field or (fields[0] if len(fields) == 1 else None)
    if name is None:
        raise BadInput("the question is missing; set one for all rows with --field", field=FIELD_KEY)
    return text_of(name, FIELD_KEY)


def _read_accepted(row: Mapping[str, Any], name: str, reading: ReadOptions) -> str:
    if "accept" in row or "options" in row:
        chosen = row.get("accept")
        if not isinstance(chosen, list) or len(chosen) != 1:
            count = f"{len(chosen)} options" if isinstance(chosen, list) and chosen else "no option"
            raise BadInput(
                f"accepted with {count}, but a question requires exactly one label", field="accept"
            )
        return _read_option(row.get("options"), text_of(chosen[0], "accept"), name, reading)
    if isinstance(row.get("label"), str):
        return str(row["label"])
    key = read_text(row, "field_id") or INPUT
    if isinstance(row.get(key), str) and row[key].strip():
        return str(row[key])
    raise BadInput("accepted, but without a chosen option, a label or a text", field="answer")


def _read_option(options: Any, chosen: str, name: str, reading: ReadOptions) -> str:
    """Return the id of the chosen option, or the option's text if the text is a label and the id is not."""
    # Prodigy's own recipes often number the options.
    domain = reading.domain(name)
    if chosen in domain or not isinstance(options, list):
        return chosen
    texts = [o.get("text") for o in options if isinstance(o, Mapping) and str(o.get("id")) == chosen]
    return str(texts[0]) if texts and texts[0] in domain else chosen


def _annotator(row: Mapping[str, Any], reading: ReadOptions) -> str:
    # Without ?session=NAME in its address, Prodigy makes a session name from the data set and the time.
    name = read_text(row, "_annotator_id") or read_text(row, "_session_id") or ""
    dataset = reading.options.get("dataset")
    if dataset:
        name = name.removeprefix(f"{dataset}-")
    return reading.as_person or "" if _UNNAMED.match(name) else name or reading.as_person or ""
