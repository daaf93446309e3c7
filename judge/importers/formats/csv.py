"""CSV with a header: each row is one item, or one item with one passage.

Columns have the same names as the keys of `jsonl`: `id`, `claim`, `gold.FIELD`, `passages.text`,
`passages.gold.FIELD`, `passages.votes.FIELD` ... Cells of `passages`, `reference_answers`, `options`, `gold`,
`votes` and `meta` may contain JSON. An empty cell is a missing value. Other columns are kept in the `meta` of
the passage or, if the row has no passage, of the item. The delimiter is a comma, a semicolon, a tab or a
vertical bar. In a `.tsv` file, it is always a tab. `.gz` files are decompressed, and Parquet is also
supported.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from judge.errors import BadInput
from judge.importers.base import Bad, Options, Row
from judge.importers.mapped import RowReader
from judge.importers.paths import ITEM_FIELDS
from judge.importers.records import add_place, build_each, csv_records

NAME = "csv"
HELP = "a table with a header; each row is one item, or one item with one passage"


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield the rows of each file. Raises UsageError if a --map names an unknown field or a missing column."""
    for path in paths:
        reader = RowReader(path, options, is_csv=True)
        # Known column names decide the delimiter, because a name may itself contain commas.
        header, records = csv_records(path, bad, hint=[*ITEM_FIELDS, "passages", *options.maps.values()])
        try:
            reader.check_columns(dict.fromkeys(header), all_rows=True)
        except BadInput as problem:
            # An error in the first row, or an empty table, explains more than a missing column: it is raised first.
            next(records.rows, None)
            raise add_place(problem, path, 1) from None
        yield from build_each(records, reader.items, bad)
        reader.finish()
