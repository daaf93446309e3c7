"""Argilla 2 (github.com/argilla-io/argilla): records with fields, questions and responses.

Exports are a folder with `settings.json` and `records.jsonl`. Imports are records, either one per line or as
one JSON array, as returned by `dataset.records.to_list()`, `to_list(flatten=True)` or `to_json`.

    settings = rg.Settings.from_json("DIR/settings.json")
    dataset = rg.Dataset(name="pilot", settings=settings).create()
    dataset.records.log([rg.Record.from_dict(json.loads(line)) for line in open("DIR/records.jsonl")])

Argilla identifies people by UUID. The file `users.json` next to the records, or -O users=FILE, maps these ids
to names.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from annotate.exchange.base import ExchangeUnit, Export, Out, ReadOptions, Response
from annotate.exchange.files import json_records
from annotate.exchange.proof import TextOfRecord
from annotate.exchange.texts import EVIDENCE, find_marked_input, flatten, inward, option_text, title
from annotate.exchange.values import read_spans, text_of
from annotate.guidelines import markdown
from judge.errors import BadInput, UsageError
from judge.prompts.load import Task
from judge.prompts.spec import Question
from judge.types import Where

NAME = "argilla"
HELP = "Argilla 2: exports settings and records, imports records with responses"
WRITES = "folder"
OPTIONS = {
    "users": "import: a JSON file {user id: name}; default: users.json next to the records",
    "status": "import: 'submitted', if records have no status but you know that all were submitted",
}
NO_STATUS = (
    "there is no status, so the response may be a draft or discarded; export with to_list(flatten=True), which keeps the status, or pass "
    "-O status=submitted"
)
NOTE, SPANS = "adjudge-note", "adjudge-evidence"
# Argilla names users by UUID. An id that is made from the name is the same in every export.
_PEOPLE = uuid.UUID("8f2c7f0e-6f0b-5b3e-9d59-6a1d5f1f0c11")
"""The UUID namespace for the user ids that are derived from annotators' names."""


def write(export: Export, out: Out, options: Mapping[str, str]) -> None:
    """Write `settings.json`, `records.jsonl` and, with labels, `users.json`."""
    task = export.task
    out.write_json("settings.json", settings(task))
    answered: dict[str, list[Response]] = {}
    if export.labels:
        users = {}
        for response in export.responses():
            # A record has only one response by each user, so a hidden repeat cannot be stored in it.
            if not response.repeat:
                answered.setdefault(response.unit, []).append(response)
                users[_user(response.annotator)] = response.annotator
        out.write_json("users.json", users)
    with out.lines("records.jsonl") as put:
        for unit in export.units():
            record = {"id": unit.unit_id, "fields": fields(unit)}
            if export.labels:
                record["responses"] = _group_answers(task, unit, answered.get(unit.unit_id, []))
            put(record)


def settings(task: Task) -> dict[str, Any]:
    """Return the settings of a dataset for this task, as `rg.Settings.from_json` reads them."""
    main = find_marked_input(task.input_names)
    required = [_field(name, True) for name in task.required_inputs]
    questions = [_question(q) for q in task.spec.questions]
    if main:
        evidence = {
            "type": "span",
            "field": main,
            "options": [{"value": EVIDENCE, "text": EVIDENCE}],
            "allow_overlapping": False,
            "visible_options": None,
        }
        questions.append(_question_settings(SPANS, "Evidence", False, evidence))
    # Without Markdown, markup in a text is shown as it is.
    questions.append(_question_settings(NOTE, "Note", False, {"type": "text", "use_markdown": False}))
    return {
        "guidelines": markdown(task),
        "fields": required + [_field(name, False) for name in task.spec.optional_inputs],
        "questions": questions,
        "metadata": [],
        "vectors": [],
        "allow_extra_metadata": False,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
    }


def _field(name: str, required: bool) -> dict[str, Any]:
    return {"name": name, "title": title(name), "required": required, "type": "text",
            "settings": {"type": "text", "use_markdown": False}}  # fmt: skip


def _question(question: Question) -> dict[str, Any]:
    if question.labels:
        options = [{"value": label.value, "text": option_text(label)} for label in question.labels]
        how: dict[str, Any] = {"type": "label_selection", "options": options, "visible_options": None}
    else:
        how = {"type": "text", "use_markdown": False}
    return _question_settings(_argilla_name(question.field), question.ask or title(question.field), True, how)


def _question_settings(name: str, heading: str, required: bool, how: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "title": heading, "description": None, "required": required, "type": how["type"],
            "settings": how}  # fmt: skip


def _argilla_name(field: str) -> str:
    # Argilla allows no dot in the name of a question, and our fields have no hyphen: the names stay unique.
    return field.replace(".", "-")


def _user(name: str) -> str:
    return str(uuid.uuid5(_PEOPLE, name))


def fields(unit: ExchangeUnit) -> dict[str, str]:
    """Return a unit's inputs as text fields of a record."""
    return {name: flatten(value) for name, value in unit.inputs.items()}


def _group_answers(
    task: Task, unit: ExchangeUnit, responses: Iterable[Response]
) -> dict[str, list[dict[str, Any]]]:
    answers: dict[str, list[dict[str, Any]]] = {}
    main = find_marked_input(unit.inputs)
    for response in responses:
        whole = all(q.field in response.answers for q in task.spec.questions)
        about = {
            "user_id": _user(response.annotator),
            "status": "discarded" if response.skipped else "submitted" if whole else "draft",
        }
        for question in task.spec.questions:
            if question.field in response.answers:
                value: Any = response.answers[question.field]
                answers.setdefault(_argilla_name(question.field), []).append({"value": value, **about})
            elif response.skipped:
                answers.setdefault(_argilla_name(question.field), []).append({"value": None, **about})
        if response.note:
            answers.setdefault(NOTE, []).append({"value": response.note, **about})
        spans = [{"start": a, "end": b, "label": EVIDENCE} for n, a, b in response.spans or () if n == main]
        if spans:
            answers.setdefault(SPANS, []).append({"value": spans, **about})
    return answers


def read_responses(path: Path, reading: ReadOptions) -> Iterator[Response]:
    """Yield the submitted responses. Discarded responses become skips; drafts and suggestions are ignored."""
    if reading.options.get("status", "submitted") != "submitted":
        raise UsageError(f"-O status={reading.options['status']}: must be 'submitted'")
    if path.is_dir():
        path = path / "records.jsonl"
    users = _users(path, reading)
    records = json_records(path, reading.bad)
    yield from reading.read_each(path, records, lambda row, where: _responses(row, where, reading, users))


def _users(path: Path, reading: ReadOptions) -> dict[str, str]:
    named = reading.options.get("users")
    place = Path(named) if named else path.with_name("users.json")
    if not named and not place.exists():
        return {}
    try:
        users = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as e:
        raise BadInput(f"cannot be read as a JSON file of users: {e}", path=str(place)) from e
    if not isinstance(users, dict) or not all(isinstance(v, str) for v in users.values()):
        raise BadInput("must be a JSON object that maps user ids to names", path=str(place))
    return users


def _responses(
    row: Mapping[str, Any], where: Where, reading: ReadOptions, users: Mapping[str, str]
) -> Iterator[Response]:
    unit = row.get("id")
    if not isinstance(unit, str) or not unit:
        raise BadInput("the record's id is missing; it must be the id of our unit", field="id")
    if reading.task is None:
        raise UsageError("argilla: specify the questions with --batch or --task")
    inputs, texts = reading.inputs(unit), _fields_of(row)
    main = find_marked_input(inputs or ()) or ""
    by_user: dict[str, dict[str, Any]] = {}
    status: dict[str, str] = {}
    for name, value, user, state in _values(row):
        by_user.setdefault(user, {})[name] = value
        status[user] = state or status.get(user) or reading.options.get("status", "")
    questions = {_argilla_name(q.field): q.field for q in reading.task.spec.questions}
    for user, values in by_user.items():
        # An unknown status, of a later version, must not count as "submitted".
        if status[user] not in ("", "submitted", "discarded", "draft"):
            raise BadInput(
                f"'{status[user]}' is not a status; must be submitted, discarded or draft", field="responses"
            )
        if status[user] == "draft":
            reading.remarks["drafts"] += 1
            continue
        if unknown := [n for n in values if n not in (*questions, NOTE, SPANS)]:
            raise BadInput(f"question '{unknown[0]}' is not one of {', '.join(questions)}", field="responses")
        skipped = status[user] == "discarded"
        answers = {questions[n]: text_of(v, n) for n, v in values.items() if n in questions and v is not None}
        yield Response(
            unit=unit,
            annotator=users.get(user, user) if user else reading.as_person or "",
            answers={} if skipped else answers,
            spans=None if skipped else inward([*read_spans(values, SPANS)], texts.get(main), inputs) or None,
            skipped=skipped,
            note=text_of(values[NOTE], NOTE) if values.get(NOTE) else None,
            blind=False if _has_suggestion(row) else None,
            where=where,
            # The nested export of SDK 2.8 leaves the status out, so a draft or a discarded response looks submitted.
            doubt=None if status[user] else ("status", NO_STATUS),
            shown=TextOfRecord(reading.inputs_in(texts, unit)),
        )


def _has_suggestion(row: Mapping[str, Any]) -> bool:
    """Return whether the record has a suggestion, which Argilla shows to the annotator."""
    return bool(row.get("suggestions")) or any(
        key.endswith(".suggestion") and row[key] is not None for key in row
    )


def _fields_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a nested or flat record, by name."""
    nested = row.get("fields")
    return nested if isinstance(nested, Mapping) else row


def _values(row: Mapping[str, Any]) -> Iterator[tuple[str, Any, str, str | None]]:
    """Yield (question, value, user, status) from a nested or flat record."""
    nested = row.get("responses")
    if isinstance(nested, Mapping):
        for name, given in nested.items():
            for response in given if isinstance(given, list) else [None]:
                if not isinstance(response, Mapping) or "value" not in response:
                    raise BadInput("must be a list of {value, user_id}", field=f"responses.{name}")
                user, status = str(response.get("user_id") or ""), response.get("status")
                yield str(name), response["value"], user, None if status is None else str(status)
    elif nested is not None:
        raise BadInput("must be an object that maps each question to a list of responses", field="responses")
    for key in row:
        name, separator, rest = key.rpartition(".responses")
        values = row[key]
        if not separator or rest or values is None:
            continue
        people, states = row.get(f"{key}.users"), row.get(f"{key}.status")
        lists = [v for v in (values, people, states) if v is not None]
        if not all(isinstance(v, list) and len(v) == len(values) for v in lists) or people is None:
            raise BadInput("values, users and status must be lists of the same length", field=key)
        statuses = states or [None] * len(values)
        for value, user, status in zip(values, people, statuses, strict=True):
            yield name, value, str(user or ""), None if status is None else str(status)
