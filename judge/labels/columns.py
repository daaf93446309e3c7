"""Recognise the role of each column in a table of labels by common column names."""

import re
from collections.abc import Sequence
from pathlib import Path

from judge.errors import UsageError
from judge.labels.rows import columns_of
from judge.labels.tables import Layout

NAMES = {
    "unit": ("unit", "unit_id", "item", "item_id", "id", "_id", "uid", "passage_id", "answer_id", "sample_id", "example_id"),
    "annotator": ("annotator", "annotator_id", "who", "rater", "rater_id", "coder", "coder_id", "worker", "worker_id", "labeler", "labeller", "user", "user_id"),
    "label": ("label", "labels", "value", "rating", "grade", "code", "category", "answer", "verdict", "score"),
    "cluster": ("question_id", "question", "query_id", "qid", "query", "topic_id", "topic", "cluster", "cluster_id"),
    "probabilities": ("probabilities", "distribution"),
}  # fmt: skip
"""The accepted column names for each role, with adjudge's own name first."""
NO_CLUSTER = "none"


def find_column(columns: Sequence[str], role: str) -> str | None:
    """Return the column with this role, trying the most likely name first. Case, spaces and hyphens are ignored."""
    # Reversed, so that of two columns with the same plain name the first one is used.
    plain = {re.sub(r"[\s.-]+", "_", name.strip().lower()): name for name in reversed(columns)}
    return next((plain[name] for name in NAMES[role] if name in plain), None)


def require_column(columns: Sequence[str], role: str, path: Path, purpose: str) -> str:
    """Return the column with this role.

    Raises UsageError, which lists the recognised names, if there is no such column.
    """
    column = find_column(columns, role)
    if column is None:
        raise UsageError(
            f"{path}: no column {purpose}; name it {', '.join(NAMES[role][:-1])} or {NAMES[role][-1]}; "
            f"the columns are {', '.join(columns[:20])}{' ...' if len(columns) > 20 else ''}"
        )
    return column


def layout_of(
    path: Path,
    people: Sequence[str] = (),
    cluster: str | None = None,
    judges: Sequence[str] | None = None,
) -> Layout:
    """Return the roles of a table's columns.

    - `people` lists the annotator columns of a wide table, or the annotators to use from a long table.
    - `cluster` names the column with the question. If it is None, the column is recognised by its name. If it
      is NO_CLUSTER, every unit is its own question.
    - `judges` lists the judges. If there are any, a column with probabilities is read as well. A wide table
      can have such a column only if there is exactly one judge.

    Raises UsageError for a role without a column, and BadInput for a file that is not a table.
    """
    columns = columns_of(path)
    is_wide = bool(people) and (set(people) <= set(columns) or find_column(columns, "annotator") is None)
    unit = require_column(columns, "unit", path, "with the unit's id")
    annotator = label = None
    if not is_wide:
        tip = "for the annotator (or list one column per annotator: --annotators ann,bob)"
        annotator = require_column(columns, "annotator", path, tip)
        label = require_column(columns, "label", path, "with the label")
    others = [name for name in columns if name not in (unit, annotator, label, *people)]
    has_probabilities = judges is not None and len(judges) > 0 and (len(judges) == 1 or not is_wide)
    # A column has only one role: the column of an annotator cannot also be the question.
    if cluster is None:
        cluster = find_column(others, "cluster")
    return Layout(
        unit,
        annotator,
        label,
        tuple(people) if is_wide else (),
        None if cluster == NO_CLUSTER else cluster,
        find_column(others, "probabilities") if has_probabilities else None,
        () if is_wide else tuple(people),
    )


def as_read(layout: Layout) -> str:
    """Return a message that tells the user how the columns were recognised. It is empty if every column has
    adjudge's own name for its role.
    """
    roles = {
        "unit": layout.unit,
        "annotator": layout.annotator,
        "label": layout.label,
        "question": layout.cluster,
        "probabilities": layout.probabilities,
    }
    named = {role: column for role, column in roles.items() if column is not None}
    if all(column in (role, f"{role}_id") for role, column in named.items()):
        return ""
    return "read as " + ", ".join(f"{role}: {column}" for role, column in named.items())
