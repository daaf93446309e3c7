"""The same rows in every kind of file are the same items: one reader is under all of them."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from judge import files
from judge.errors import BadInput
from tests.importers.helpers import load

ROWS = [
    {"id": "1", "claim": "Äpfel, Birnen; and | more", "gold.stance": "support", "votes.stance": '{"ann": "refute"}'},
    {"id": "2", "claim": "two\nlines\tand a tab", "gold.stance": "nan", "votes.stance": '{"ann": "support"}'},
]  # fmt: skip


def table(mark: str) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, ROWS[0], delimiter=mark, lineterminator="\n")
    writer.writeheader()
    writer.writerows(ROWS)
    return text.getvalue().encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    return sink.getvalue()


OBJECTS = [
    {
        "id": r["id"],
        "claim": r["claim"],
        "gold": {"stance": r["gold.stance"]},
        "votes": {"stance": json.loads(r["votes.stance"])},
    }
    for r in ROWS
]
LINES = "\n".join(json.dumps(row) for row in OBJECTS).encode()
CASES = {
    "commas.csv": table(","),
    "semicolons.csv": table(";"),
    "bars.txt": table("|"),
    "tabs.tab": table("\t"),
    "marked.csv": b"\xef\xbb\xbf" + table(";"),
    "packed.csv.gz": gzip.compress(table(";")),
    "table.parquet": parquet(ROWS),
}


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_read_whatever_its_kind(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(CASES[name])
    found = load("csv", tmp_path / name)
    assert not found.bads
    assert [(i.source_id, i.claim) for i in found.items] == [(r["id"], r["claim"]) for r in ROWS]
    votes = [(v.annotator, v.field, v.value) for i in found.items for v in i.votes]
    assert votes == [
        *(("gold", "stance", "support"), ("ann", "stance", "refute")),
        *(("gold", "stance", "nan"), ("ann", "stance", "support")),
    ]


@pytest.mark.parametrize("name", ["lines", "list", "packed", "parquet"])
def test_rows_with_objects_likewise(tmp_path: Path, name: str) -> None:
    listed = b"[" + LINES.replace(b"\n", b",") + b"]"
    content = {"lines": LINES, "list": listed, "packed": gzip.compress(LINES), "parquet": parquet(OBJECTS)}[
        name
    ]
    (tmp_path / "d.data").write_bytes(content)
    found = load("jsonl", tmp_path / "d.data")
    assert not found.bads
    assert [(i.source_id, i.claim) for i in found.items] == [(r["id"], r["claim"]) for r in ROWS]
    assert [v.value for i in found.items for v in i.votes] == ["support", "refute", "nan", "support"]


def test_parquet_that_is_none_and_one_without_rows(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(BadInput, match=r"p.parquet: not Parquet"):
        load("jsonl", tmp_path / "p.parquet")
    empty = pyarrow.table({"id": pyarrow.array([], pyarrow.string())})
    pyarrow.parquet.write_table(empty, tmp_path / "e.parquet")
    found = load("jsonl", tmp_path / "e.parquet")
    assert [bad.reason for bad in found.bads] == ["the table is empty"]


@pytest.mark.parametrize(
    "cell",
    [
        pyarrow.array([2**31 - 1], pyarrow.int32()).cast(pyarrow.date32()),
        pyarrow.array([2**62], pyarrow.timestamp("us")),
        pyarrow.array([b"\xff"]).view(pyarrow.string()),
    ],
    ids=["a day in the year 5,881,580", "a time after the year 9999", "a text that is no UTF-8"],
)
def test_a_parquet_file_with_a_cell_that_python_cannot_hold(tmp_path: Path, cell: pyarrow.Array) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"id": cell}), tmp_path / "p.parquet")
    with pytest.raises(BadInput, match=r"p\.parquet"):
        load("jsonl", tmp_path / "p.parquet")


def test_what_looks_like_an_escape_or_a_huge_number_inside_a_text_is_text() -> None:
    assert files.loads(json.dumps({"a": "1e999 \\ud83d", "b": "😀"})) == {"a": "1e999 \\ud83d", "b": "😀"}
