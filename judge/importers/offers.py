"""Suggest --map and --map-label options for columns with unknown names.

Suggestions for label columns are checked against the values in these columns.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from judge.importers.base import ignore
from judge.importers.guess import NAMED_LABELS, are_ranking, normalise_name

YES, NO = ("yes", "true", "1", "y", "pos", "positive"), ("no", "false", "0", "n", "neg", "negative")
"""Common forms of the first and second labels in a binary field."""
MOST_LABELS = 10
LOOKED_AT = 1000
"""The number of rows whose labels are inspected."""
GRADED = ("relevance_grade", "relevance_0_3")
"""Fields whose labels are grades. The field with the fewest grades comes first."""


def file_rows(format_name: str, path: Path) -> Iterable[Any]:
    """Return the rows of a CSV, JSONL or chat file. For other formats, return no rows, because their columns are
    never guessed.
    """
    from judge.importers import records
    from judge.importers.formats import chat

    if format_name == "jsonl":
        return (row for _, row in records.json_records(path, ignore).rows)
    if format_name == "csv":
        return (row for _, row in records.csv_records(path, ignore)[1].rows)
    if format_name == chat.NAME:
        return chat.table_rows(path, ignore)
    return ()


def suggest_maps(
    maps: Mapping[str, str], rows: Iterable[Any], given: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return (the maps to pass, {label field: {label in the rows: label in the task}}).

    `given` contains the user's own maps, which are kept. For each guessed label column, the values are
    checked:

    - If they are a retriever's scores, the column is omitted.
    - If they are grades, the column is mapped to a label field that has these grades.
    - If the column's name only resembles that of a label column, the column is omitted unless all values are
      labels.

    Labels that are the same in the rows and in the task are not returned. If a label could mean several
    labels of the task, all labels of the task are listed, as in A|B.
    """
    domains, values = _domains(), _values(rows, maps)
    out: dict[str, str] = {}
    renamed: dict[str, dict[str, str]] = {}
    for name, column in maps.items():
        before, gold, field_name = name.rpartition("gold.")
        values_of_column = values.get(column, []) if gold else []
        if gold and name not in given:
            if are_ranking(column, values_of_column):
                continue
            if not _match_all(values_of_column, domains.get(field_name, values_of_column)):
                graded = next((f for f in GRADED if _match_all(values_of_column, domains[f])), None)
                if graded is None and normalise_name(column) not in NAMED_LABELS:
                    continue
                field_name = graded or field_name
        out[before + gold + field_name] = column
        known = domains.get(field_name, [])
        if (
            known
            and len(values_of_column) <= MOST_LABELS
            and (strange := [v for v in values_of_column if v not in known])
        ):
            renamed[field_name] = {value: _match_label(value, known) for value in strange}
    return out, renamed


def _values(rows: Iterable[Any], maps: Mapping[str, str]) -> dict[str, list[str]]:
    """Return {column: its distinct values as strings} for the columns mapped to gold.

    The values are taken from the first rows and their passages.
    """
    columns = [column for name, column in maps.items() if "gold." in name]
    inside = maps.get("passages", "passages")
    values: dict[str, dict[str, None]] = {column: {} for column in columns}
    for row in islice(rows, LOOKED_AT) if columns else ():
        passages = row.get(inside) if isinstance(row, Mapping) else None
        for part in (row, *(passages if isinstance(passages, list) else [])):
            for column in columns if isinstance(part, Mapping) else ():
                value = part.get(column)
                if isinstance(value, str | int | float) and value != "":
                    values[column][str(value).lower() if isinstance(value, bool) else str(value)] = None
    return {column: list(distinct) for column, distinct in values.items()}


def _match_all(values: Sequence[str], known: Sequence[str]) -> bool:
    return not any("|" in _match_label(value, known) for value in values if value not in known)


def _match_label(value: str, known: Sequence[str]) -> str:
    """Return the known label that `value` most likely means.

    If it could mean several of them, return all known labels, joined with "|".
    """
    # Spreadsheets and pandas write 3 as 3.0 if the column has empty cells.
    folded = re.sub(r"\.0+$", "", value.strip().lower().replace(" ", "_").replace("-", "_"))
    same = [label for label in known if label.lower().replace("-", "_") == folded]
    if len(known) == 2 and folded in (*YES, *NO):
        same = [known[0 if folded in YES else 1]]
    return same[0] if same else "|".join(known)


def _domains() -> dict[str, list[str]]:
    """Return {label field: its labels in order} for all fields in the built-in tasks.

    If several tasks have the same field, the labels are those of the first task.
    """
    from judge.prompts import find_tasks, load_task

    domains: dict[str, list[str]] = {}
    for name in find_tasks():
        task = load_task(name)
        for field_name in task.fields:
            domains.setdefault(field_name, list(task.domain(field_name)))
    return domains
