"""Check that a response fits the study: its unit, fields, labels and evidence."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from annotate.exchange.proof import Unproven
from annotate.exchange.responses import Response
from annotate.exchange.values import stamp
from judge.errors import BadInput, UsageError
from judge.labels.values import number
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task
from judge.store import Store

MOST_SECONDS = 7 * 24 * 3600
# Programs write local times without their zone, which can be up to 14 hours ahead of UTC.
ZONES = timedelta(days=1)
"""The maximum time by which an answer's time may lie in the future."""


_PLAIN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", re.ASCII)


class Checks:
    """Checks responses against a task and the units of the study. If the task is None, any field and label is valid.

    If `derived` is true, labels of derived fields are accepted. They are not accepted in a batch, which derives
    these labels itself.
    """

    def __init__(
        self, store: Store, task: Task | None, maps: Mapping[str, Mapping[str, str]], *, derived: bool
    ) -> None:
        """Raise UsageError if the options map a label to a value that is not a label of the task."""
        self._conn, self._task, self._maps, self._derived = store.conn, task, maps, derived
        for name, values in maps.items():
            if task is not None:
                for new in values.values():
                    try:
                        self._label(name, new)
                    except BadInput as e:
                        raise UsageError(f"--map-label {name}:...={new}: {e.reason}") from e

    def check(self, response: Response) -> Response:
        """Check a response and return it with its labels mapped. Raises BadInput, which names the field, if the
        response does not fit the study.
        """
        query = "SELECT 1 FROM units WHERE unit_id = ?"
        if (
            not response.unit
            or self._conn.execute(query, [_storable(response.unit, "unit")]).fetchone() is None
        ):
            raise BadInput(f"no unit '{response.unit}' in the study", field="unit")
        if not response.annotator:
            raise BadInput("the annotator is missing; set one for all rows with --as", field="annotator")
        answers, revised = (
            {
                name: self._label(name, self._maps.get(name, {}).get(given, given))
                for name, given in labels.items()
            }
            for labels in (response.answers, response.revised)
        )
        if response.seconds is not None and not (
            math.isfinite(response.seconds) and 0 <= response.seconds <= MOST_SECONDS
        ):
            raise BadInput(f"{response.seconds} is not a valid number of seconds", field="seconds")
        if response.at is not None and not _is_time(response.at):
            raise BadInput(f"'{response.at}' is not a time in UTC, like 2026-01-31T10:20:30.000Z", field="at")
        if response.at is not None and datetime.fromisoformat(response.at) > datetime.now(UTC) + ZONES:
            raise Unproven("time", f"its time {response.at} is in the future", field="at")
        at = None if response.at is None else _plain_time(response.at)
        for name, text in (("note", response.note), ("flag", response.flag)):
            _storable(text or "", name)
        # Evidence is stored only with a batch, which has a task.
        if response.spans and self._task is not None:
            self._spans(response, self._task.input_names)
        return replace(response, answers=answers, revised=revised, at=at)

    def _label(self, name: str, value: str) -> str:
        _storable(name, "field")
        _storable(value, name)
        return value if self._task is None else check_label(self._task, name, value, derived=self._derived)

    def _spans(self, response: Response, names: Sequence[str]) -> None:
        for name, start, end in response.spans or ():
            if name not in names or name in LIST_INPUTS:
                known = ", ".join(n for n in names if n not in LIST_INPUTS)
                raise BadInput(
                    f"evidence in '{name}', which is not a text of the unit; its texts are: {known}",
                    field="spans",
                )
            # `name` is one of the task's inputs, as checked above: nothing from the file becomes SQL.
            query = f'SELECT "{name}" FROM unit_texts WHERE unit_id = ?'
            text = self._conn.execute(query, [response.unit]).fetchone()[0] or ""
            if not 0 <= start < end <= len(text):
                known = f"evidence {start}-{end} lies outside '{name}' of '{response.unit}' (0-{len(text)})"
                raise BadInput(known, field="spans")


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).utcoffset() == timedelta(0)
    except ValueError:
        return False


def _plain_time(text: str) -> str:
    """Return a time in the study's format. Times such as 2026-01-31 10:20 and 20260131T102030Z are also accepted."""
    # Times are compared as texts in SQL.
    return text if _PLAIN.fullmatch(text) else stamp(datetime.fromisoformat(text))


def _storable(text: str, name: str) -> str:
    try:
        # JSON can contain half of a surrogate pair, which neither UTF-8 nor SQLite can store.
        text.encode()
    except UnicodeEncodeError as e:
        raise BadInput("contains half of a character (a lone surrogate)", field=name) from e
    return text


def _is_list(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def check_label(task: Task, name: str, value: str, *, derived: bool = False) -> str:
    """Return a label in the form in which it is stored. Raises BadInput if the task does not allow it.

    `derived` allows labels of derived fields.
    """
    answerable = [q.field for q in task.spec.questions]
    if name not in task.fields:
        raise BadInput(
            f"task {task.name} has no field '{name}'; its fields are: {', '.join(task.fields)}",
            field=name,
        )
    if name not in answerable and not derived:
        source = task.spec.derive[name].source
        raise BadInput(f"'{name}' is derived from '{source}': import '{source}' instead", field=name)
    domain = task.domain(name)
    if domain and value not in domain:
        raise BadInput(f"'{value}' is not a label; the labels are: {', '.join(domain)}", field=name)
    # Only questions have rules beyond their labels, and derived fields have no question.
    if name not in answerable:
        return value
    question = task.question(name)
    if question.level == "interval":
        try:
            return number(value)
        except BadInput as e:
            raise BadInput(e.reason, field=name) from e
    if question.many and not _is_list(value):
        raise BadInput("must be a JSON array of strings", field=name)
    return value
