"""Write the table of results to the terminal and to files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.errors import MissingExtra, UsageError
from judge.files import whole_file, write_lines

if TYPE_CHECKING:
    from judge.document.blocks import Document
    from judge.results.join import Joined
    from judge.results.table import MeasureColumn, Results
    from judge.store.study import Store

ENDINGS = (".csv", ".jsonl", ".json", ".parquet", ".html", ".md")
"""File extensions of the formats in which results can be written."""
MOST_SHOWN = 20
"""Number of rows in the terminal and in Markdown."""
MOST_MEASURES = 4
"""Number of measures in the terminal. Files have all."""
LONGEST_TEXT = 80


def as_document(results: Results, sorted_by: MeasureColumn | None) -> Document:
    """Return the worst rows: id, the measure by which they are sorted, some others, labels, and the text."""
    from judge.console import shorten
    from judge.document.blocks import Column as Head
    from judge.document.blocks import Document, Section, Table
    from judge.results.table import TEXTS, get_value

    measures = ([sorted_by] if sorted_by else []) + [
        m
        for m in results.measures
        if m is not sorted_by and m.is_main and any(row.get(m.name) is not None for row in results.rows)
    ]
    measures = measures[:MOST_MEASURES]
    labels = [
        name
        for name in results.labels
        if name not in results.free and not name.endswith((".status", ".reason"))
    ][:MOST_MEASURES]
    texts = [name for name in TEXTS[results.per] if name in results.columns]
    head = [
        Head("id"),
        *(Head(m.name if m.under is None else m.measure, "number") for m in measures),
        *map(Head, (*labels, *texts[-1:])),
    ]
    rows: list[list[Any]] = [
        [
            str(row["unit_id"]),
            *(get_value(row, m) for m in measures),
            *(row.get(name) for name in labels),
            *(shorten(str(row.get(name) or ""), LONGEST_TEXT) for name in texts[-1:]),
        ]
        for row in results.rows[:MOST_SHOWN]
    ]
    order = f", worst {sorted_by.measure} first" if sorted_by else ""
    caption = f"{len(results.rows):,} rows{order}"
    left = len(results.rows) - len(rows)
    more = [f"{left:,} more rows; -o FILE.csv writes all rows with all columns"] if left > 0 else []
    return Document(
        results.title, sections=[Section("results", "", [Table("results", caption, head, rows, more)])]
    )


def as_json(results: Results) -> dict[str, Any]:
    """Return the documented JSON representation: the kind of row, the runs, the columns with measures, and the rows."""
    measures = [
        {"measure": m.measure, "column": m.name, "denominator": m.under, "better": m.better}
        for m in results.measures
    ]
    rows = [{name: row.get(name) for name in results.columns} for row in results.rows]
    return {"per": results.per, "runs": results.runs, "measures": measures, "rows": rows}


def write(store: Store, results: Results, path: Path, sorted_by: MeasureColumn | None) -> None:
    """Write all rows and columns to a file, in the format of its extension. Raises MissingExtra for Parquet without pyarrow."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        _write_parquet(results.rows, results.columns, path)
    elif ending == ".html":
        from judge.document.html import render_rows
        from judge.results.page import as_page

        write_lines(path, iter([render_rows(as_page(store, results, sorted_by))]))
    elif ending == ".md":
        from judge.document.markdown import render

        write_lines(path, iter([render(as_document(results, sorted_by))]))
    elif ending == ".csv":
        write_lines(path, _csv_lines(results.rows, results.columns))
    elif ending == ".json":
        rows = [{name: row.get(name) for name in results.columns} for row in results.rows]
        write_lines(path, iter([json.dumps(rows, ensure_ascii=False, indent=1) + "\n"]))
    else:
        write_lines(path, (json.dumps(row, ensure_ascii=False) + "\n" for row in results.rows))


def write_joined(store: Store, results: Results, joined: Joined, path: Path | None) -> None:
    """Write the user's file with added columns to `path`, or to stdout.

    CSV and JSON Lines keep their format. Raises UsageError if the extension is another format, or if the path is the file
    itself.
    """
    from judge.results.join import join_lines, join_rows

    if path is not None and path.exists() and path.samefile(joined.path):
        raise UsageError(f"-o {path}: this is the joined file itself; choose another file")
    if joined.is_lines:
        ending = Path(joined.path.name.removesuffix(".gz")).suffix.lower()
        if path is not None and path.suffix.lower() != ending:
            raise UsageError(f"-o {path}: a joined file keeps its own format; end the name with {ending}")
        write_lines(path, join_lines(store, results, joined))
        return
    rows = list(join_rows(store, results, joined))
    if path is not None and path.suffix.lower() == ".parquet":
        _write_parquet(rows, list(dict.fromkeys(name for row in rows for name in row)), path)
    elif path is None or path.suffix.lower() in (".json", ".jsonl"):
        is_list = path is not None and path.suffix.lower() == ".json"
        lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
        whole = iter([json.dumps(rows, ensure_ascii=False, indent=1, default=str) + "\n"])
        write_lines(path, whole if is_list else lines)
    else:
        raise UsageError(f"-o {path}: write a joined list or Parquet file as .json, .jsonl or .parquet")


def _csv_lines(rows: list[dict[str, Any]], columns: list[str]) -> Iterator[str]:
    from judge.document.csv import csv_line

    yield csv_line(columns)
    for row in rows:
        cells = (row.get(name) for name in columns)
        yield csv_line(
            [json.dumps(c, ensure_ascii=False) if isinstance(c, dict | list) else c for c in cells]
        )


def _write_parquet(rows: list[dict[str, Any]], columns: list[str], path: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as e:
        raise MissingExtra("a .parquet file needs pyarrow: pip install 'adjudge[parquet]'") from e
    # A column may have objects of different shapes, which no single type of Parquet has.
    arrays = {}
    for name in columns:
        values = [row.get(name) for row in rows]
        try:
            arrays[name] = pyarrow.array(values)
        except (pyarrow.ArrowException, TypeError):
            arrays[name] = pyarrow.array(
                [
                    None if v is None else v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)
                    for v in values
                ]
            )
    with whole_file(path.resolve()) as partial:
        pyarrow.parquet.write_table(pyarrow.table(arrays), partial)
