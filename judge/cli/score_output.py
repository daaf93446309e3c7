"""Print a score or a leaderboard, and write it to files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.console import document, note
from judge.errors import BadInput
from judge.files import format_of, whole_file

if TYPE_CHECKING:
    from judge.document.blocks import Document
    from judge.papers.engine.board import Board
    from judge.papers.engine.paper_table import PaperTables
    from judge.papers.engine.result import Result


def emit_score(result: Result, as_json: bool, pages: Sequence[Path], confidence: float) -> None:
    """Print a score as JSON or as tables, and write it to the files."""
    from judge.papers.engine.board import make_single
    from judge.papers.engine.score_document import as_document

    _emit(
        "score",
        result.as_json(),
        as_document(result),
        # The table has the same columns as that of a leaderboard, so that scripts read both.
        make_single(result, confidence),
        as_json,
        pages,
    )


def emit_board(board: Board, as_json: bool, pages: Sequence[Path]) -> None:
    """Print a leaderboard as JSON or as tables, and write it to the files."""
    from judge.papers.engine.board_document import as_document

    _emit("board", board.as_json(), as_document(board), board, as_json, pages)


def emit_tables(made: PaperTables, as_json: bool, pages: Sequence[Path]) -> None:
    """Print a paper's own tables as JSON or as tables, and write them, or the figures, to the files."""
    from judge.document.csv import csv_line
    from judge.document.formats import FORMATS
    from judge.document.plots import draw_alone
    from judge.document.terminal import print_result
    from judge.papers.engine.paper_table import list_figures

    content = made.as_json()
    print_result("paper_table", content, made.document, as_json)
    for path in pages:
        ending = format_of(
            path, {name: name for name in (".svg", ".json", ".csv", *(f".{f}" for f in FORMATS))}
        )
        if ending == ".svg":
            figures = list_figures(made.document)
            if not figures:
                raise BadInput(f"--output {path}: the paper's figures have no values yet")
            for n, figure in enumerate(figures, 1):
                # The first figure has the given name, and the others have a number.
                place = path if n == 1 else path.with_stem(f"{path.stem}-{n}")
                write_whole(place, draw_alone(figure.draw, figure.data))
        elif ending == ".json":
            write_whole(path, document("paper_table", content))
        elif ending == ".csv":
            rows = [entry.as_json() for entry in made.entries]
            write_whole(
                path,
                "".join(map(csv_line, [list(rows[0]), *(list(r.values()) for r in rows)]) if rows else ""),
            )
        else:
            write_whole(path, FORMATS[ending.removeprefix(".")](made.document))


def _emit(
    schema: str,
    content: Mapping[str, Any],
    shown: Document,
    board: Board,
    as_json: bool,
    pages: Sequence[Path],
) -> None:
    from judge.document.formats import FORMATS
    from judge.document.terminal import print_result
    from judge.papers.engine.board_document import as_csv

    print_result(schema, content, shown, as_json)
    # The JSON file is the printed JSON, and the CSV file has the columns of a leaderboard.
    writers: dict[str, Callable[[], str]] = {
        **{f".{name}": partial(write, shown) for name, write in FORMATS.items()},
        ".json": lambda: document(schema, content),
        ".csv": lambda: as_csv(board),
    }
    for path in pages:
        write_whole(path, writers[format_of(path, {name: name for name in writers})]())


def write_whole(path: Path, text: str) -> None:
    """Write a file given with --output, either completely or not at all.

    Raises BadInput if it cannot be written.
    """
    try:
        # Two commands may write the same leaderboard at once, so each has its own partial file.
        with whole_file(path.resolve(), f".{os.getpid()}") as partial:
            partial.write_text(text, "utf-8")
    except OSError as error:
        raise BadInput(f"--output {path}: {error.strerror}") from error
    note(f"written: {path}")
