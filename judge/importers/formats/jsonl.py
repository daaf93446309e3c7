"""JSON Lines, or a JSON array, with one item per row. Any tool can write this format.

    {"id": "q1",                                       required; text or a number
     "question": "...", "claim": "...",                at least one of question, claim and passages
     "question_id": "...", "question_date": "...",     questions with the same id are one cluster; the question's date
     "reference_answers": ["..."],                     one string or a list
     "options": {"A": "...", "B": "..."}, "correct": "A",
     "pair_id": "p1", "polarity": "original"|"counter",
     "passages": ["text" or {"id", "text", "title", "date", "source", "gold", "votes", "meta"}],
     "gold": {"FIELD": "label"},                       labels may be numbers or true/false: 0 -> "0"
     "votes": {"FIELD": {"ANNOTATOR": "label"}},       human labels
     "dataset": "...", "meta": {...}}                  all other keys are kept in `meta`

`.gz` files are decompressed, and Parquet is also supported. `--map` reads any of these keys from another
path; see `judge.importers.mapped`. Rows with the same id and the same item fields are merged into one item,
which has the passages of all these rows.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from judge.importers.base import Bad, Options, Row
from judge.importers.mapped import RowReader
from judge.importers.records import build_each, json_records

NAME = "jsonl"
HELP = "one JSON object per line: items with passages, gold labels and human labels"


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield the rows of each file. Raises UsageError if a --map names an unknown field, or a path that no row has."""
    for path in paths:
        reader = RowReader(path, options)
        yield from build_each(json_records(path, bad), reader.items, bad)
        reader.finish()
