"""What to type where columns have other names: the guessed maps, held against the values of the columns of labels."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from judge.importers.guess import NAMED_LABELS, are_ranking, plain_name

YES, NO = ("yes", "true", "1", "y", "pos", "positive"), ("no", "false", "0", "n", "neg", "negative")
"""What people write for the first and the second of two labels."""
MOST_LABELS = 10
LOOKED_AT = 1000
"""Rows whose labels are looked at."""
GRADED = ("relevance_grade", "relevance_0_3")
"""Fields whose labels are grades, the fewest first."""


def file_rows(format_name: str, path: Path) -> Iterable[Any]:
    """The rows of a CSV or JSONL file; none of another format, whose columns nobody guesses."""
    from judge.importers import records

    if format_name == "jsonl":
        return (row for _, row in records.json_records(path, lambda problem: None).rows)
    if format_name == "csv":
        return (row for _, row in records.csv_records(path, lambda problem: None)[1].rows)
    return ()


def offered(
    maps: Mapping[str, str], rows: Iterable[Any], given: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The maps to type, and for each label field {label in the rows: label of the field's task} where they differ.

    What the user gave stays. Of the guessed columns of labels, a retriever's score is left out, grades go to the field
    that has them, and a column that is only nearly named like labels is taken where all of it is labels. Where it cannot
    be told which label is meant, all that the task has are named, as A|B.
    """
    domains, values = _domains(), _values(rows, maps)
    out: dict[str, str] = {}
    renamed: dict[str, dict[str, str]] = {}
    for name, column in maps.items():
        before, gold, field_name = name.rpartition("gold.")
        found = values.get(column, []) if gold else []
        if gold and name not in given:
            if are_ranking(column, found):
                continue
            if not _all_meant(found, domains.get(field_name, found)):
                graded = next((f for f in GRADED if _all_meant(found, domains[f])), None)
                if graded is None and plain_name(column) not in NAMED_LABELS:
                    continue
                field_name = graded or field_name
        out[before + gold + field_name] = column
        known = domains.get(field_name, [])
        if known and len(found) <= MOST_LABELS and (strange := [v for v in found if v not in known]):
            renamed[field_name] = {value: _meant(value, known) for value in strange}
    return out, renamed


def _values(rows: Iterable[Any], maps: Mapping[str, str]) -> dict[str, list[str]]:
    """Column mapped to gold -> its different values as text, in the first rows and in their passages."""
    columns = [column for name, column in maps.items() if "gold." in name]
    inside = maps.get("passages", "passages")
    found: dict[str, dict[str, None]] = {column: {} for column in columns}
    for row in islice(rows, LOOKED_AT) if columns else ():
        held = row.get(inside) if isinstance(row, Mapping) else None
        for part in (row, *(held if isinstance(held, list) else [])):
            for column in columns if isinstance(part, Mapping) else ():
                value = part.get(column)
                if isinstance(value, str | int | float) and value != "":
                    found[column][str(value).lower() if isinstance(value, bool) else str(value)] = None
    return {column: list(values) for column, values in found.items()}


def _all_meant(values: Sequence[str], known: Sequence[str]) -> bool:
    return not any("|" in _meant(value, known) for value in values if value not in known)


def _meant(value: str, known: Sequence[str]) -> str:
    """The label that `value` stands for. Spreadsheets and pandas write 3 as 3.0 where cells of the column are empty."""
    folded = re.sub(r"\.0+$", "", value.strip().lower().replace(" ", "_").replace("-", "_"))
    same = [label for label in known if label.lower().replace("-", "_") == folded]
    if len(known) == 2 and folded in (*YES, *NO):
        same = [known[0 if folded in YES else 1]]
    return same[0] if same else "|".join(known)


def _domains() -> dict[str, list[str]]:
    """Label field of a shipped task -> its labels in order, of the task that was first to have it."""
    from judge.prompts import find_tasks, load_task

    found: dict[str, list[str]] = {}
    for name in find_tasks():
        task = load_task(name)
        for field_name in task.fields:
            found.setdefault(field_name, list(task.domain(field_name)))
    return found
