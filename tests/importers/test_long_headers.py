"""Tables whose header is longer than the csv module's default limit of 131,072 characters."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.helpers import Done


@pytest.mark.parametrize("header", ["x" * 200_000, " " * 200_000 + "{"], ids=["one word", "blanks"])
def test_a_long_header_is_a_mistake_of_the_file(
    judge: Callable[..., Done], tmp_path: Path, header: str
) -> None:
    limit = csv.field_size_limit(131_072)
    try:
        (tmp_path / "a.csv").write_text(f"{header}\n1\n", "utf-8")
        done = judge("items", "import", "csv", tmp_path / "a.csv", code=None)
    finally:
        csv.field_size_limit(limit)
    assert done.code in (1, 2) and "unexpected" not in done.err and "a.csv" in done.err
