"""A table of labels from any source, with one row per unit, question and annotator. Its columns are
recognised by common names, or specified by options.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from annotate.exchange.base import ReadOptions
from annotate.exchange.formats._own import COLUMNS, read_table, responses
from annotate.exchange.proof import SHA_KEY
from annotate.exchange.responses import Response
from judge.errors import BadInput
from judge.labels.columns import NAMES, find_column
from judge.labels.rows import columns_of, read_rows
from judge.labels.tables import WEIGHT
from judge.prompts.inputs import INPUTS, LIST_INPUTS

NAME = "table"
HELP = "a table of labels (CSV, TSV, JSON, JSONL, Parquet): one row per unit, question and annotator"
OPTIONS = {
    "unit": "column with the unit's id",
    "label": "column with the label",
    "annotator": "column with the annotator",
    "field": "column with the question",
}
# A column `question` often has the question's id, and a cell cannot be a list.
NOT_TEXTS = {"question", "reference_answers", "options", "option_probabilities", *LIST_INPUTS}
TEXTS = sorted({name for names in INPUTS.values() for name in names} - NOT_TEXTS)
"""The columns whose texts are compared with the study's."""


def read_responses(path: Path, reading: ReadOptions) -> Iterator[Response]:
    """Yield the response in each row. Rows with an empty label are skipped."""
    present = columns_of(path)
    # Labels that `annotate export --labels` wrote state whether they are blind, and on which text they were given.
    if not reading.options and set(COLUMNS) <= set(present):
        yield from read_table(path, reading)
        return
    columns = {key: reading.options.get(key) or _usual(key, present) for key in OPTIONS}
    if reading.as_person:
        del columns["annotator"]
    if reading.field:
        del columns["field"]
    label = reading.options.get("label", "label")
    if path.suffix.lower() in (".csv", ".tsv") and label not in present and {"unit", SHA_KEY} <= set(present):
        reason = "this is a sheet that `annotate export` wrote: pass --from csv"
        raise BadInput(reason, path=str(path), line=1, field=label)
    # A table may also have the time of each label, and the design weights and the texts of its units.
    others = [n for n in ("at", WEIGHT, SHA_KEY, *TEXTS) if n in present and n not in columns.values()]
    columns |= dict(zip(others, others, strict=True))
    rows = (
        (line, dict(zip(columns, cells, strict=True)))
        for line, cells in read_rows(path, list(columns.values()))
    )
    yield from responses(rows, path, reading)


def _usual(role: str, present: Sequence[str]) -> str:
    """Return the name of the column with a role, such as "annotator".

    The column is recognised by common names. If the table has none of these names, return our own name for
    the column.
    """
    return role if role in present or role not in NAMES else find_column(present, role) or role
