"""Read the labels for units that were imported from traces.

The labels come with the ids that a tracing tool needs to import them.
"""

from collections.abc import Iterator, Sequence

from judge.commands import command
from judge.errors import BadInput
from judge.store import label_rows
from judge.store.listing import dicts
from judge.store.study import Store
from judge.types import AnnotatorKind, Json

COLUMNS = (
    "trace_id", "span_id", "document_position", "name", "label", "annotator", "annotator_kind", "explanation", "unit_id",
)  # fmt: skip
"""The columns in the export, which has one row per label.

`document_position` is the index of a retrieved document, from 0. It is empty for other units.
"""


def span_labels(store: Store, run_id: str, fields: Sequence[str]) -> Iterator[dict[str, Json]]:
    """Yield the labels for units that were imported from traces, in study order.

    Labels from the run, from people and from gold are included, but only for the given fields. Raises
    BadInput if there are no labels to yield.
    """
    marks = ",".join("?" * len(fields))
    query = f"""
        SELECT json_extract(coalesce(a.meta, i.meta), '$.trace_id') AS trace_id,
               json_extract(coalesce(a.meta, i.meta), '$.span_id') AS span_id,
               json_extract(p.meta, '$.document_position') AS document_position,
               l.field AS name, l.value AS label, coalesce(r.model, l.annotator_id) AS annotator,
               n.kind AS annotator_kind, l.rationale AS explanation, l.unit_id
        FROM {label_rows.FIRST} JOIN annotators AS n USING (annotator_id) JOIN units AS u USING (unit_id)
        JOIN items AS i ON i.item_id = u.item_id LEFT JOIN answers AS a ON a.answer_id = u.answer_id
        LEFT JOIN passages AS p ON p.passage_id = u.passage_id LEFT JOIN runs AS r ON r.run_id = l.annotator_id
        WHERE l.field IN ({marks}) AND (l.annotator_id = ? OR n.kind <> '{AnnotatorKind.JUDGE}')
              AND json_extract(coalesce(a.meta, i.meta), '$.trace_id') IS NOT NULL
        ORDER BY u.rowid, n.kind <> '{AnnotatorKind.JUDGE}', l.annotator_id, l.field
    """
    rows = dicts(store.conn, query, [*fields, run_id])
    first = next(rows, None)
    if first is None:
        raise BadInput(
            "this run has no labels for units from traces; import traces first (langfuse, langsmith, "
            "phoenix or otlp): " + command("judge items import langfuse FILE")
        )
    yield first
    yield from rows
