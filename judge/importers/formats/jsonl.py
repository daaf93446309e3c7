"""JSON Lines, or one JSON array: one item per row. Every other tool can write this format.

    {"id": "q1",                                       required; text or a number
     "question": "...", "claim": "...",                any of them, with
     "question_id": "...", "question_date": "...",     the cluster of the question; its date
     "reference_answers": ["..."],                     one text or a list
     "options": {"A": "...", "B": "..."}, "correct": "A",
     "pair_id": "p1", "polarity": "original"|"counter",
     "passages": ["text" or {"id", "text", "title", "date", "source", "gold", "votes", "meta"}],
     "gold": {"FIELD": "label"},                       labels may be numbers or true/false: 0 -> "0"
     "votes": {"FIELD": {"ANNOTATOR": "label"}},       people's labels
     "dataset": "...", "meta": {...}}                  all other keys are kept in `meta`

`.gz` is unpacked, and Parquet is read too. `--map` reads any of these from another path; see `judge.importers.mapped`.
Rows with the same id and the same item fields are one item with the passages of all of them.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from judge.importers.base import Bad, Options, Row
from judge.importers.mapped import RowReader
from judge.importers.records import each, json_records

NAME = "jsonl"
HELP = "one JSON object per line: items with passages, gold labels and human labels"


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield the rows of each file. Raises UsageError if a --map does not match any field or any row."""
    for path in paths:
        reader = RowReader(path, options)
        yield from each(json_records(path, bad), reader.items, bad)
        reader.finish()
