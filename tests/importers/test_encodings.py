"""Encodings: tables as Excel saves them are read, and the encoding is named; damaged UTF-8 stays damaged."""

import gzip
from pathlib import Path

import pytest

from judge.files import encoding, note_encoding
from tests.importers.helpers import load, write

# Each text has words of its language, because a detector compares the frequencies of letters.
TEXTS = {
    "cp1252": "id;claim\n1;Wie heißt die Straße? – „Größe“ kostet 3 €, naïve café\n",
    "cp1250": "id;claim\n1;Zażółć gęślą jaźń, źdźbło trawy i łąka\n",
    "cp1251": "id;claim\n1;Как называется столица России и где она\n",
    "cp1253": "id;claim\n1;Ποια είναι η πρωτεύουσα της Ελλάδας\n",
    "cp932": "id;claim\n1;東京はどこですか。日本の首都です。\n",
    "gb18030": "id;claim\n1;北京在哪里？它是中国的首都。\n",
    "utf-16": "id;claim\n1;Zażółć 北京\n",
    "utf-8-sig": "id;claim\n1;Zażółć 北京\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_table_in_another_encoding_is_read_as_its_letters(tmp_path: Path, name: str, packed: bool) -> None:
    text = TEXTS[name]
    data = text.encode(name)
    path = write(tmp_path / ("t.csv.gz" if packed else "t.csv"), gzip.compress(data) if packed else data)
    (item,) = load("csv", path).items
    assert item.claim == text.splitlines()[1].partition(";")[2]
    assert (note_encoding(path) is None) == (name == "utf-8-sig")
    if name == "cp1252":
        assert encoding(path) == "cp1252", "Windows-1250 has the same German letters, and is less common"


def test_one_line_of_utf_8_makes_the_other_lines_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,claim\n1,é\n".encode() + b"2,\xe9\n")
    assert encoding(path) == "utf-8"
    assert load("csv", path).places == [("t.csv", 3, "claim")]


@pytest.mark.parametrize(
    "data", [b'{"id": 1, "claim": "caf\xe9"}\n', b"PAR1\xe9\xff", b"id,claim\n1,\xe9\0\n"]
)
def test_json_parquet_and_binary_files_are_never_converted(tmp_path: Path, data: bytes) -> None:
    assert encoding(write(tmp_path / "t.csv", data)) == "utf-8"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_the_line_with_which_excel_names_its_delimiter(tmp_path: Path, mark: str, end: str) -> None:
    # The header has more commas than delimiters.
    lines = [f"sep={mark}", f"id{mark}claim", f"1{mark}a, b, c, d", f"2{mark}"]
    loaded = load("csv", write(tmp_path / "t.csv", end.join(lines) + end))
    assert [item.claim for item in loaded.items] == ["a, b, c, d"]
    assert loaded.places == [("t.csv", 4, "question")]


def test_a_file_that_grows_is_looked_at_again(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", b"id,claim\n1,caf\xe9 cr\xe8me\n")
    assert encoding(path) == "cp1252"
    write(path, "id,claim\n1,café crème, et plus\n")
    assert encoding(path) == "utf-8"
