"""Label Studio's files: export a project to set up by hand, and import its JSON export.

The vendor's SDK is not required.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from annotate.exchange.base import UNIT_KEY, Export, Out, ReadOptions
from annotate.exchange.files import json_records
from annotate.exchange.label_studio.annotations import Authors, Reader, read_user
from annotate.exchange.label_studio.config import ConfigLayout
from annotate.exchange.label_studio.sdk import Check
from annotate.exchange.label_studio.server import User
from annotate.exchange.label_studio.tasks import data_of
from annotate.exchange.responses import Response
from annotate.guidelines import markdown
from judge.errors import BadInput, MissingExtra, UsageError
from judge.types import Where

NAME = "label-studio"
HELP = "Label Studio: exports config.xml, tasks.json and guidelines.md, imports its JSON export"
WRITES = "folder"
OPTIONS = {"users": "import: the annotators of Label Studio's users, e.g. 2=alice,bob@example.org=bob"}


def write(export: Export, out: Out, options: Mapping[str, str]) -> None:
    """Write the labelling configuration, the units as tasks, and the guidelines. Raises UsageError for --labels."""
    if export.labels:
        raise UsageError(
            "label-studio exports units, not finished labels; for labels, use --to jsonl --labels"
        )
    layout = ConfigLayout(export.task, export.absent)
    # The package is large, and files can be written without it. Without it, only our own checks apply.
    try:
        check: Check | None = Check(layout.xml)
    except MissingExtra:
        check = None
    with out.open("config.xml") as file:
        file.write(layout.xml)
    with out.open("tasks.json") as file:
        count = 0
        for unit in export.units():
            task = {"data": data_of(layout, unit)}
            if check is not None:
                check.task(task)
            file.write(",\n" if count else "[\n")
            file.write(json.dumps(task, ensure_ascii=False, allow_nan=False))
            count += 1
        file.write("\n]\n" if count else "[]\n")
    out.rows["tasks.json"] = count
    with out.open("guidelines.md") as file:
        file.write(markdown(export.task) + "\n")


def read_responses(path: Path, reading: ReadOptions) -> Iterator[Response]:
    """Yield every annotation of a JSON export. Labels are blind if no task in the file has a prediction.

    Raises UsageError if the task is unknown, and BadInput if the file is not a JSON export.
    """
    if reading.task is None:
        raise UsageError("--from label-studio needs the batch that was exported: --batch NAME")
    layout = ConfigLayout(reading.task)
    _refuse_csv(path)
    # This takes a first pass, because a prediction in the last task makes all labels in the file assisted.
    blind, users = _survey(path)
    authors = Authors(users, _parse_users(reading.options.get("users", "")), None, "-O users=")
    reader = Reader(
        layout,
        reading.inputs,
        lambda user: reading.as_person or authors.find_author(user),
        authors.name_user,
    )

    def read_task(task: Mapping[str, Any], where: Where) -> Iterator[Response]:
        unit, annotations = _parts(task)
        # With --latest the last response counts, so the latest annotation has to come last.
        entries = sorted(annotations, key=_get_time)
        rows = ((where.line, (unit, task["data"], annotation)) for annotation in entries)
        return reading.read_each(path, rows, read_annotation)

    def read_annotation(row: tuple[str, Mapping[str, Any], Any], where: Where) -> list[Response]:
        unit, data, annotation = row
        return [reader.response(annotation, unit, blind=blind, where=where, data=data)]

    yield from reading.read_each(path, json_records(path, reading.bad), read_task)


def _parts(task: Mapping[str, Any]) -> tuple[str, list[Any]]:
    data, annotations = task.get("data"), task.get("annotations")
    if UNIT_KEY in task and data is None:
        raise BadInput("this is a JSON-MIN export, which does not name the annotators; export it as JSON")
    if not isinstance(data, Mapping):
        raise BadInput("must be a JSON object; is this a JSON export of Label Studio?", field="data")
    unit = data.get(UNIT_KEY)
    if not isinstance(unit, str):
        raise BadInput(
            "is missing, because the task was not made by annotate export or push", field=f"data.{UNIT_KEY}"
        )
    if not isinstance(annotations, list):
        raise BadInput("must be a list; is this a JSON export of Label Studio?", field="annotations")
    return unit, annotations


def _get_time(annotation: Any) -> str:
    value = annotation.get("updated_at") if isinstance(annotation, Mapping) else None
    return value if isinstance(value, str) else ""


def _survey(path: Path) -> tuple[bool | None, list[User]]:
    """Return whether the labels in a file are blind, and the users of its annotations.

    The labels are not blind if annotators saw predictions. They are blind if the file says that there were none.
    Otherwise, this is None.
    """
    is_blind: bool | None = None
    users: dict[User, None] = {}
    # The second pass reports bad rows.
    for _, task in json_records(path, lambda e: None):
        # An export contains only the ids of predictions, which is enough to see that there were predictions.
        if task.get("predictions") or task.get("total_predictions"):
            is_blind = False
        elif is_blind is None and ("predictions" in task or "total_predictions" in task):
            is_blind = True
        annotations = task.get("annotations")
        for annotation in annotations if isinstance(annotations, list) else ():
            named = annotation if isinstance(annotation, Mapping) else {}
            for user in (read_user(named.get(key)) for key in ("completed_by", "updated_by")):
                if isinstance(user.id, int | str):
                    users[user] = None
    # An annotation may name a user by id, and another one with the e-mail.
    full = {user.id for user in users if user.email or user.username}
    return is_blind, [user for user in users if user.email or user.username or user.id not in full]


def _parse_users(text: str) -> dict[str, str]:
    names = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        user, equals, name = part.rpartition("=")
        if not equals or not user or not name:
            raise UsageError(f"-O users={text}: write it as 2=alice,bob@example.org=bob")
        names[user.strip()] = name.strip()
    return names


def _refuse_csv(path: Path) -> None:
    """Raise BadInput for Label Studio's export as CSV or TSV, which has no dates, users or spans of each annotation."""
    if path.suffix.lower() in (".csv", ".tsv"):
        raise BadInput(
            "this is an export as CSV, which lacks who edited an annotation: in Label Studio, export the project as JSON",
            path=str(path),
        )
