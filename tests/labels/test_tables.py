"""Any table of labels: long and wide, CSV, TSV and JSONL, and what is wrong with bad ones."""

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from judge.errors import BadInput, UsageError
from judge.labels.panel import Panel
from judge.labels.rows import read_rows
from judge.labels.tables import Layout, read_table
from judge.labels.values import number
from judge.notes import Note
from tests.annotate.agreement_helpers import write_csv

LONG = Layout("unit", annotator="who", label="label")
ROWS = [
    ("unit", "who", "label"),
    ("u1", "ann", "yes"),
    ("u1", "bob", "no"),
    ("u2", "ann", "yes"),
    ("u2", "bob", ""),
]


def labels(sheet: Panel) -> dict[str, dict[str, str | None]]:
    """annotator -> unit -> label."""
    ratings = sheet.ratings
    return {
        who: {
            unit: None if code < 0 else ratings.domain[code]
            for unit, code in zip(ratings.units, ratings.column(who).tolist(), strict=True)
        }
        for who in ratings.annotators
    }


EXPECTED = {"ann": {"u1": "yes", "u2": "yes"}, "bob": {"u1": "no", "u2": None}}


def test_a_long_table(tmp_path: Path) -> None:
    found = read_table(write_csv(tmp_path / "t.csv", ROWS), LONG)
    assert labels(found) == EXPECTED and found.ratings.domain == ("no", "yes")
    assert found.field == "label" and found.level == "nominal" and not found.ratings.clustered
    # bob's row is there without a label: he was asked.
    assert found.requested.all() and found.measure(["ann", "bob"], ["percent"])[0].coverage == 0.5


def test_in_a_wide_table_only_a_judges_empty_cell_counts_as_requested(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", [("id", "ann", "bob", "gpt"), ("u1", "yes", "no", "yes"), ("u2", "yes", "", "")]
    )
    found = read_table(path, Layout("id", annotators=("ann", "bob", "gpt")), judges=["gpt"])
    assert labels(found) == EXPECTED | {"gpt": {"u1": "yes", "u2": None}}
    assert found.requested.tolist() == [[True, True, True], [True, False, True]]
    assert found.kinds == {"ann": "human", "bob": "human", "gpt": "judge"}


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (("1.5", "1.5", "4"), {"u1": 1.5, "u2": 4.0}),
        (("2", "2", "2"), {}),
        (("1.5", "1.5", ""), {}),
        (("light", "light", "heavy"), {}),
        (("1.5", "3", "4"), {}),
        (("1", "1", "0"), {}),
    ],
    ids=["as exported", "all alike", "one unit", "no numbers", "two for one unit", "not above 0"],
)
def test_the_column_of_weights_that_an_export_writes(
    tmp_path: Path, weights: tuple[str, ...], expected: dict[str, float]
) -> None:
    rows = [("u1", "ann", "yes"), ("u1", "bob", "no"), ("u2", "ann", "yes")]
    lines = [
        ("unit", "who", "label", "weight"),
        *((*row, w) for row, w in zip(rows, weights, strict=True)),
    ]
    assert read_table(write_csv(tmp_path / "t.csv", lines), LONG).weights == expected


def test_annotators_named_gold_or_adjudicated_are_references(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [("id", "gold", "ann", "adjudicated"), ("u1", "a", "b", "a")])
    found = read_table(path, Layout("id", annotators=("gold", "ann", "adjudicated")))
    assert found.kinds == {"gold": "gold", "ann": "human", "adjudicated": "adjudicated"}
    assert found.ratings.annotators == ("gold", "ann", "adjudicated"), "wide columns keep their order"


def test_json_lines_with_numbers_booleans_and_nulls(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [
        {"unit": 1, "a": True, "b": 0.0, "more": [1]},
        {"unit": 2, "a": None, "b": 1},
        {"unit": 10, "a": False, "b": 1.5},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_table(path, Layout("unit", annotators=("a",)))
    assert labels(found)["a"] == {"1": "true", "10": "false", "2": None}
    assert labels(read_table(path, Layout("unit", annotators=("b",))))["b"] == {
        "1": "0",
        "10": "1.5",
        "2": "1",
    }


def test_missing_words_are_labels(tmp_path: Path) -> None:
    words = ["nan", "NA", "None", "null", "NULL", "NaN", "inf", "true", "1.0", "1"]
    rows = [("unit", "who", "label"), *((f"u{i}", "ann", word) for i, word in enumerate(words))]
    found = read_table(write_csv(tmp_path / "t.csv", rows), LONG)
    assert labels(found)["ann"] == {f"u{i}": word for i, word in enumerate(words)}


def test_labels_are_in_the_declared_order(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [("unit", "who", "label"), ("u", "a", "mid"), ("v", "a", "low")])
    found = read_table(path, LONG, level="ordinal", order=["low", "mid", "high"])
    assert found.ratings.domain == ("low", "mid", "high")
    assert found.ratings.column("a").tolist() == [1, 0]


def test_clusters_and_units_without_one(tmp_path: Path) -> None:
    rows = [
        ("unit", "who", "label", "q"),
        ("u", "a", "x", "1"),
        ("v", "a", "x", "1"),
        ("w", "a", "x", ""),
        ("z", "a", "x", ""),
    ]
    found = read_table(write_csv(tmp_path / "t.csv", rows), Layout("unit", "who", "label", cluster="q"))
    assert found.ratings.clusters.tolist() == [0, 0, 1, 2] and found.ratings.clustered
    assert found.notes == ("2 units have no cluster: each is treated as a separate cluster",)


def test_numbers_of_one_value_are_one_label(tmp_path: Path) -> None:
    rows = [("unit", "who", "label"), ("u", "a", "1"), ("v", "a", "1.0"), ("w", "a", "1e1"), ("x", "a", "-0")]
    found = read_table(write_csv(tmp_path / "t.csv", rows), LONG, level="interval")
    assert found.ratings.domain == ("0", "1", "10")
    assert found.numbers("a")[:, 0].tolist() == [1, 1, 10, 0]


@pytest.mark.parametrize("text", ["nan", "inf", "1_000", "abc", ""])
def test_an_invalid_number_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        number(text)


def test_labels_that_differ_in_case_or_spaces_give_a_note(tmp_path: Path) -> None:
    rows = [
        ("unit", "who", "label"),
        ("u", "a", "Yes"),
        ("v", "a", "yes"),
        ("w", "a", "yes "),
        ("x", "a", "no"),
    ]
    found = read_table(write_csv(tmp_path / "t.csv", rows), LONG)
    assert len(found.ratings.domain) == 4
    assert found.notes == (
        "'Yes', 'yes', 'yes ' are different labels, although they differ only in case or spaces",
    )


def test_swapped_columns_give_a_note(tmp_path: Path) -> None:
    rows = [("unit", "who", "label"), *((f"u{i}", who, "x") for i in range(5) for who in ("ann", "bob"))]
    path = write_csv(tmp_path / "t.csv", rows)
    assert read_table(path, LONG).notes == ()
    swapped = read_table(path, Layout("who", annotator="unit", label="label"))
    assert swapped.notes == (Note("swapped", annotators=5, units=2),)


BAD = {
    "duplicate": (
        "unit,who,label\nu,a,x\n\nu,b,x\nu,a,y\n",
        r"t.csv:5: a second label from 'a' for unit 'u' .*line 2",
    ),
    "missing column": ("unit,who,lable\nu,a,x\n", r"t.csv:1: no column 'label'; available: unit, who, lable"),
    "empty file": ("", r"t.csv: the file is empty"),
    "no rows": ("unit,who,label\n", r"t.csv: the file has a header but no rows"),
    "no labels": ("unit,who,label\nu,a,\n", r"t.csv: the table has no labels"),
    "ragged": ("unit,who,label\nu,a,x\nu,b\n", r"t.csv:3: this row has 2 cells, but the header has 3"),
    "no unit": ("unit,who,label\n,a,x\n", r"t.csv:2: field 'unit': this cell is empty"),
    "no annotator": ("unit,who,label\nu,,x\n", r"t.csv:2: field 'who': this cell is empty"),
    "twice": ("unit,who,label,label\nu,a,x,x\n", r"t.csv:1: field 'label': two columns"),
    "open quote": ('unit,who,label\nu,a,"x\nv,a,y\n', r"t.csv:2: not CSV: .*quote"),
    "not UTF-8": (b"unit,who,label\nu,a,x\nv,a,\xff\nw,a,\xc3\xa9\n", r"t.csv:3: not UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_named_with_their_line(tmp_path: Path, case: str) -> None:
    text, complaint = BAD[case]
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput, match=complaint):
        read_table(path, LONG)


def test_lines_are_counted_in_the_file_not_in_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('\ufeffunit,who,label,text\r\nu,a,x,"two\r\nlines"\r\nu,a,y,one\r\n', newline="")
    with pytest.raises(BadInput, match=r"t.csv:4: a second label.*line 2"):
        read_table(path, LONG)


def test_a_unit_in_two_clusters(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", [("unit", "who", "label", "q"), ("u", "a", "x", "1"), ("u", "b", "x", "2")]
    )
    with pytest.raises(BadInput, match=r"t.csv:3: field 'q': unit 'u' is in '2' here, but in '1' on line 2"):
        read_table(path, Layout("unit", "who", "label", cluster="q"))


def test_an_unknown_label_and_a_word_among_numbers(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", [("unit", "who", "label"), ("u", "a", "1"), ("v", "a", "high"), ("w", "a", "-1")]
    )
    with pytest.raises(BadInput, match=r"t.csv:3: unknown label 'high'; the labels of --level are 1, -1"):
        read_table(path, LONG, order=["1", "-1"])
    with pytest.raises(BadInput, match=r"t.csv:3: 'high' is not a number"):
        read_table(path, LONG, level="interval")
    path = write_csv(tmp_path / "t.csv", [("unit", "who", "label"), ("u", "a", "1"), ("w", "a", "-1")])
    with pytest.raises(BadInput, match=r"t.csv:3: -1 is negative"):
        read_table(path, LONG, level="ratio")


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (
            ['{"unit": 1, "a": 1}', '{"unit": 2, "a": "1"}'],
            r"t.jsonl:2: field 'a': \"1\" is text, but line 1 has a number",
        ),
        (['{"unit": 1, "a": 1}', '{"unit": 2, "a": true}'], r"t.jsonl:2: field 'a': true is true/false"),
        (['{"unit": 1, "a": 1}', "", '{"unit": 2, "a": [1]}'], r"t.jsonl:3: field 'a': a cell must be"),
        (['{"unit": 1, "a": NaN}'], r"t.jsonl:1: not JSON: NaN is not valid JSON"),
        (['{"unit": 1, "a": 1'], r"t.jsonl:1: not JSON"),
        (["[1]"], r"t.jsonl:1: a row must be an object"),
        (['{"unit": 1, "b": 1}'], r"t.jsonl: no column 'a'; available: unit, b"),
    ],
)
def test_bad_json_lines(tmp_path: Path, lines: list[str], complaint: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(BadInput, match=complaint):
        read_table(path, Layout("unit", annotators=("a",)))


@pytest.mark.parametrize(
    ("layout", "complaint"),
    [
        ({}, "annotator column.*label column"),
        ({"annotator": "who"}, "needs both"),
        (
            {"annotator": "who", "label": "label", "annotators": ("a",)},
            "annotator column.*label column",
        ),
        ({"annotators": ("a", "a")}, "a column can have only one role"),
        ({"annotators": ("unit",)}, "a column can have only one role"),
    ],
)
def test_incompatible_columns_are_refused(layout: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Layout("unit", **layout)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"level": "ordinal"}, "--level ordinal must list the labels in order"),
        ({"order": ["a", "a"]}, "given twice"),
        ({"order": ["a", ""]}, "empty or given twice"),
        ({"level": "interval", "order": ["1", "2"]}, "omit the labels"),
        ({"judges": ["zoe"]}, "--judge zoe: no such annotator; the annotators are ann, bob"),
    ],
)
def test_incompatible_options_are_refused(tmp_path: Path, options: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_table(write_csv(tmp_path / "t.csv", ROWS), LONG, **options)  # type: ignore[arg-type]


def _as_delimited(delimiter: str) -> bytes:
    return "\n".join(map(delimiter.join, ROWS)).encode()


def _as_parquet() -> bytes:
    buffer = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(OBJECTS), buffer)
    return bytes(buffer.getvalue())


OBJECTS = [dict(zip(ROWS[0], row, strict=True)) for row in ROWS[1:]]
FILES = {
    "t.csv": _as_delimited(","),
    "semicolons.csv": _as_delimited(";"),
    "tabs.csv": _as_delimited("\t"),
    "bars.txt": _as_delimited("|"),
    "t.tsv": _as_delimited("\t"),
    "t.json": json.dumps(OBJECTS, indent=1).encode(),
    "t.jsonl": "\n".join(map(json.dumps, OBJECTS)).encode(),
    "lines.json": "\n".join(map(json.dumps, OBJECTS)).encode(),
    "t.parquet": _as_parquet(),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_one_table_in_every_format(tmp_path: Path, name: str, packed: bool) -> None:
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(FILES[name]) if packed else FILES[name])
    assert labels(read_table(path, LONG)) == EXPECTED


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("t.json", b'[\n{"unit": 1, "who": "a", "label": "x"},\n7]', r"t.json:3: a row must be an object"),
        ("t.json", b'[{"unit": 1}\n{"unit": 2}]', r"t.json:1: not JSON: "),
        ("t.json", b'[{"unit": 1},]', r"t.json:1: not JSON: "),
        ("t.json", b'[{"unit": 1}]\nx', r"t.json:1: there is more text"),
        ("t.json", b"[]", r"t.json: the list is empty"),
        ("t.json", b'[{"unit": 1},\n', r"t.json:\d: not JSON"),
        ("t.jsonl", b'[\n{"unit": 1}]', r"t.jsonl:1: this is a JSON list"),
        ("t.csv", b'[{"unit": 1}]', r"t.csv:1: this is a JSON list"),
        ("t.parquet", b"PAR1 and no more", r"t.parquet: not Parquet"),
        ("t.csv.gz", b"\x1f\x8bbroken", r"t.csv.gz: cannot be read"),
    ],
)
def test_bad_files_of_other_formats(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadInput, match=complaint):
        read_table(path, LONG)


@pytest.mark.parametrize("text", ['[{"unit": "u1", "label": "yes"}]', '{"unit": "u1", "label": "yes"}\n'])
def test_json_is_recognised_in_a_file_without_an_ending(tmp_path: Path, text: str) -> None:
    path = tmp_path / "labels"
    path.write_text(text)
    assert list(read_rows(path, ["unit", "label"])) == [(1, ["u1", "yes"])]


MODELS = [
    ("unit", "who", "label"),
    *(
        (f"u{i}", who, "yes")
        for i in range(3)
        for who in ("ann", "bob", "gemini_flash", "gpt-4o", "Claudette")
    ),
]


def test_models_are_not_counted_as_people_without_a_word(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "votes.csv", MODELS)
    with pytest.raises(UsageError) as refused:
        read_table(path, LONG, judges=["gemini_flash"])
    text = str(refused.value)
    # Both ways on are printed. Claudette is a person: a name only begins like that of a model.
    assert "--annotators Claudette,ann,bob,gemini_flash" in text and "--judge gpt-4o" in text
    chosen = Layout("unit", annotator="who", label="label", only=("ann", "bob", "gemini_flash"))
    assert read_table(path, chosen, judges=["gemini_flash"]).people == ["ann", "bob"]
    assert read_table(path, LONG, judges=["gemini_flash", "gpt-4o"]).people == ["Claudette", "ann", "bob"]


def test_a_model_that_annotators_names_is_a_person_with_a_note(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "votes.csv", MODELS)
    named = Layout("unit", annotator="who", label="label", only=("ann", "gpt-4o"))
    panel = read_table(path, named)
    assert panel.people == ["ann", "gpt-4o"]
    assert [note.parameters["who"] for note in panel.notes if isinstance(note, Note)] == [("gpt-4o",)]


def test_the_column_with_the_kind_decides_before_the_name(tmp_path: Path) -> None:
    rows = [
        ("unit", "who", "label", "kind"),
        *(
            (f"u{i}", who, "yes", kind)
            for i in range(2)
            for who, kind in (("claude", "human"), ("m1", "Judge"))
        ),
    ]
    path = write_csv(tmp_path / "votes.csv", rows)
    with pytest.raises(UsageError, match=r"--judge m1$"):
        read_table(path, LONG)
    # Claude is a person, because the column says so.
    assert read_table(path, LONG, judges=["m1"]).people == ["claude"]
