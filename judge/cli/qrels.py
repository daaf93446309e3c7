"""A run's labels as qrels: `query 0 document grade`, with the ids that the source has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.console import note
from judge.errors import BadInput
from judge.prompts.load import Task
from judge.scores.grades import graded_field, grades_of
from judge.store.export import FITTED


def qrels(
    rows: Iterator[dict[str, Any]], task: Task, field: str | None, given: Mapping[str, str]
) -> Iterator[str]:
    """One line a passage with a label. The second column, which no program reads, is 0, and `fitted_on` where the label was
    given by what has seen the labels of its question. Notes the field and how many passages have no label.

    Raises UsageError for a field without grades, BadInput for units that are no passages and for ids with white
    space, which these columns cannot hold.
    """
    field = field or graded_field(task, given)
    grades = grades_of(task, field, given)
    return _lines(rows, field, grades)


def _lines(rows: Iterator[dict[str, Any]], field: str, grades: Mapping[str, int]) -> Iterator[str]:
    without = fitted = 0
    for row in rows:
        if row["repeat"]:
            continue
        if row["passage_id"] is None:
            raise BadInput(f"'{row['unit_id']}' is no passage: qrels grade the passages of questions")
        label = row["labels"][field]
        if label is None:
            without += 1
            continue
        query = str(row["item_id"]).partition(":")[2]
        document = str(row["passage_id"]).removeprefix(f"{row['item_id']}/")
        for name in (query, document):
            if name.split() != [name]:
                raise BadInput(f"the id '{name}' has white space, which separates the columns of qrels")
        seen = bool(row.get(FITTED))
        fitted += seen
        yield f"{query} {FITTED if seen else 0} {document} {grades[label]}\n"
    if fitted:
        note(
            f"{fitted} lines have {FITTED} in the second column: the judge was fitted on labels of their questions, and "
            "agreement there proves nothing"
        )
    note(f"grades: {field}" + (f"; {without} passages have no label and are left out" if without else ""))
