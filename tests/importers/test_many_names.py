"""Files with very many names. If the search for duplicates compared all pairs of names, these tests would not end."""

from pathlib import Path

import pytest

from judge.errors import BadInput
from judge.files import BadObject, loads, stop
from judge.importers.records import csv_records

NAMES = [f"k{n}" for n in range(300_000)]


def test_the_key_that_occurs_twice_is_named() -> None:
    with pytest.raises(BadObject, match="'last'"):
        loads("{" + ",".join(f'"{name}":1' for name in [*NAMES, "last", "last"]) + "}")


def test_the_column_that_occurs_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",".join([*NAMES, "last", "last"]) + "\n", "utf-8")
    with pytest.raises(BadInput) as refused:
        csv_records(path, stop)
    assert (refused.value.field, refused.value.line) == ("last", 1)
