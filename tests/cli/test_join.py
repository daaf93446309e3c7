"""judge results --join: the user's own bytes come back, with label columns at the end of the rows."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.helpers import Judge, script, write_rows

MAPS = ["--map", "passages.text=evidence", "--map", "id=key"]


def labelled(judge: Judge, *paths: Path, maps: list[str] | None = None, form: str = "jsonl") -> None:
    """Import the files and label them: `first` says support."""
    for path in paths:
        judge("items", "import", form, path, *(MAPS if maps is None else maps))
    judge("run", "stance", "-m", "scripted/first")


def joined(judge: Judge, path: Path, *args: str) -> list[str]:
    """The lines of the joined file."""
    return judge("results", "--join", path, *args).out.splitlines()


ROWS = [
    '{"key":   "1",  "claim": "caf\\u00e9", "evidence": "é", "big": 12345678901234567890123, "f": 1.50, "e": 1E5}',
    '{"claim": "two", "evidence": "x", "key": 2, "twice": 1, "twice": 2 }',
    '  {"key": "three", "claim": "c", "evidence": "y", "nested": {"a": [1, 2,  3]}}  ',
    "",
    '{"key": "unjudged"}',
]


def test_json_lines_come_back_byte_for_byte(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes("\r\n".join(ROWS).encode())
    with_claims = tmp_path / "judged.jsonl"
    # An import refuses a key that occurs twice; a joined file may have one.
    with_claims.write_text("\n".join(ROWS[:3]).replace('"twice": 1, ', ""), encoding="utf-8")
    labelled(judge, with_claims)
    judge("results", "--join", path, "-o", "out.jsonl")
    out = (tmp_path / "out.jsonl").read_bytes().decode().split("\r\n")
    assert len(out) == len(ROWS)
    for mine, line in zip(ROWS, out, strict=True):
        if not mine:
            assert line == ""
            continue
        body = mine.rstrip()[:-1]
        assert line.startswith(body), "their own bytes, as they were"
        row = json.loads(line)
        assert json.loads(mine).items() <= row.items()
    found = [json.loads(line).get("adjudge.stance") for line in out if line]
    assert found == ["support", "support", "support", None]
    assert json.loads(out[0])["adjudge.stance.status"] == "ok"
    assert json.loads(out[4])["adjudge.stance.status"] is None


def test_a_row_with_several_units_gets_them_as_a_list(judge: Judge, tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "mine.jsonl", [{"id": "1", "claim": "c", "passages": [{"id": "a", "text": "x"}, "y"]}]
    )
    labelled(judge, path, maps=[])
    [line] = joined(judge, path)
    row = json.loads(line)
    assert (row["adjudge.stance"], row["adjudge.stance.status"]) == (None, None)
    # printf y | sha256sum | cut -c1-16
    assert [(u["unit_id"], u["stance.status"], u["stance"]) for u in row["adjudge.rows"]] == [
        ("mine:1/a", "ok", "support"),
        ("mine:1/a1fce4363854ff88", "ok", "support"),
    ]


def test_csv_comes_back_byte_for_byte(judge: Judge, tmp_path: Path) -> None:
    text = (
        '\ufeff"key",claim,evidence,note\r\n'
        '001,"a ""quoted"" claim","two\r\nlines",  NA \r\n'
        "\r\n"
        '2,plain,é,"""x"", y"\r\n'
        "3,none judged,,\r\n"
    )
    path = tmp_path / "mine.csv"
    path.write_bytes(text.encode())
    labelled(judge, path, form="csv")
    judge("results", "--join", path, "-o", "out.csv")
    out = (tmp_path / "out.csv").read_bytes().decode()
    added = ",adjudge.stance,adjudge.stance.status,adjudge.stance.reason,adjudge.rows"
    assert out == (
        f'\ufeff"key",claim,evidence,note{added}\r\n'
        '001,"a ""quoted"" claim","two\r\nlines",  NA ,support,ok,,\r\n'
        "\r\n"
        '2,plain,é,"""x"", y",support,ok,,\r\n'
        "3,none judged,,,,,,\r\n"
    )
    rows = list(csv.DictReader(io.StringIO(out.removeprefix("\ufeff"), newline="")))
    assert [r["key"] for r in rows] == ["001", "2", "3"], "ids are text, not numbers"


def test_tab_separated_values(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("key\tclaim\tevidence\n1\tc, d\tx\n", encoding="utf-8")
    labelled(judge, path, form="csv")
    assert joined(judge, path) == [
        "key\tclaim\tevidence\tadjudge.stance\tadjudge.stance.status\tadjudge.stance.reason\tadjudge.rows",
        "1\tc, d\tx\tsupport\tok\t\t",
    ]


def test_each_row_of_a_flat_file_gets_the_label_of_its_own_passage(judge: Judge, tmp_path: Path) -> None:
    # Three rows of one item: without a look at the row's passage all three would get the same list.
    path = tmp_path / "flat.csv"
    path.write_text("key,claim,evidence\n1,c,first\n1,c,second\n1,c,third\n", encoding="utf-8")
    judge("items", "import", "csv", path, *MAPS)
    judge("run", "stance", "-m", "scripted/hash")
    labels = {
        r["passage_id"]: r["labels"]["stance"]
        for r in map(json.loads, judge("runs", "export").out.splitlines())
    }
    rows = list(csv.DictReader(joined(judge, path)))
    assert [r["adjudge.stance"] for r in rows] == list(labels.values())
    assert {r["adjudge.rows"] for r in rows} == {""}
    assert {r["adjudge.stance.status"] for r in rows} == {"ok"}


def test_mapped_and_nested_ids(judge: Judge, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mine.jsonl", [{"meta": {"key": 7.0}, "claim": "c", "passages": ["x"]}])
    labelled(judge, path, maps=["--map", "id=meta.key"])
    assert json.loads(joined(judge, path)[0])["adjudge.stance"] == "support"


def test_a_file_that_was_changed_since_is_joined_by_its_ids(judge: Judge, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mine.jsonl", [{"key": "1", "claim": "c", "evidence": "x"}])
    labelled(judge, path)
    more = write_rows(
        tmp_path / "more.jsonl", [{"key": "1", "claim": "c", "evidence": "x", "new": 1}, {"key": "9"}]
    )
    rows = [json.loads(line) for line in joined(judge, more)]
    assert [r["adjudge.stance"] for r in rows] == ["support", None]


def test_the_data_set_has_to_be_known(judge: Judge, tmp_path: Path) -> None:
    one = write_rows(tmp_path / "one.jsonl", [{"key": "1", "claim": "c", "evidence": "x"}])
    two = write_rows(tmp_path / "two.jsonl", [{"key": "1", "claim": "d", "evidence": "y"}])
    labelled(judge, one, two)
    assert json.loads(joined(judge, two)[0])["adjudge.stance.status"] == "ok", (
        "it is the file that was imported"
    )
    other = write_rows(tmp_path / "other.jsonl", [{"key": "1"}])
    done = judge("results", "--join", other, code=2)
    assert "--join requires --dataset: the study has one, two" in done.err
    assert json.loads(joined(judge, other, "--dataset", "one")[0])["adjudge.stance.status"] == "ok"
    assert "available: one, two" in judge("results", "--join", other, "--dataset", "x", code=2).err


def test_the_same_file_as_two_data_sets(judge: Judge, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mine.jsonl", [{"id": "1", "claim": "c", "passages": ["x"]}])
    for name in ("a", "b"):
        judge("items", "import", "jsonl", path, "--dataset", name)
    judge("run", "stance", "-m", "scripted/first", "--where", "dataset = 'b'")
    assert "was imported as a, b" in judge("results", "--join", path, code=2).err
    assert json.loads(joined(judge, path, "--dataset", "b")[0])["adjudge.stance.status"] == "ok"
    assert "none of the 1 rows" in judge("results", "--join", path, "--dataset", "a", code=2).err


def test_columns_that_are_there_already(judge: Judge, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mine.jsonl", [{"key": "1", "claim": "c", "evidence": "x"}])
    labelled(judge, path)
    judge("results", "--join", path, "-o", "once.jsonl")
    done = judge("results", "--join", "once.jsonl", code=2)
    assert "once.jsonl already has a column 'adjudge.stance'" in done.err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.jsonl", '{"key": "1"}\n{"key": \n', "x.jsonl:2: not JSON"),
        ("x.jsonl", '{"key": ' + "[" * 100_000, "x.jsonl:1: not JSON: nested too deeply"),
        ("x.jsonl", "[1]\n", "x.jsonl:1: not an object"),
        ("x.jsonl", '{"id": "1"}\n', "x.jsonl:1: field 'id': missing"),
        ("x.csv", "key,claim\n1\n", "x.csv:2: 1 cells, but the header has 2 columns"),
        ("x.csv", "key,claim\n1,2,3\n", "x.csv:2: 3 cells, but the header has 2 columns"),
        ("x.csv", 'key,claim\n1,"x"y\n', "x.csv:2: not CSV"),
        ("x.csv", "k,claim\n1,c\n", "x.csv:2: field 'id': missing"),
    ],
)
def test_files_that_cannot_be_joined(
    judge: Judge, tmp_path: Path, name: str, content: str, words: str
) -> None:
    labelled(judge, write_rows(tmp_path / "mine.jsonl", [{"key": "1", "claim": "c", "evidence": "x"}]))
    (tmp_path / name).write_text(content)
    assert words in judge("results", "--join", tmp_path / name, code=1).err


def test_bytes_that_are_no_text(judge: Judge, tmp_path: Path) -> None:
    labelled(judge, write_rows(tmp_path / "mine.jsonl", [{"key": "1", "claim": "c", "evidence": "x"}]))
    for content, words in (
        (b"\x1f\x8b\x08\x00", "cannot be read"),
        (b'{"key": "\xff"}\n', "x.jsonl:1: not UTF-8"),
    ):
        (tmp_path / "x.jsonl").write_bytes(content)
        assert words in judge("results", "--join", tmp_path / "x.jsonl", code=1).err


def test_a_joined_file_keeps_its_format_and_is_not_overwritten(judge: Judge, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mine.jsonl", [{"key": "1", "claim": "c", "evidence": "x"}])
    labelled(judge, path)
    kept = path.read_bytes()
    assert "keeps its own format" in judge("results", "--join", path, "-o", "x.csv", code=2).err
    assert "this is the joined file itself" in judge("results", "--join", path, "-o", path, code=2).err
    assert path.read_bytes() == kept


def test_derived_labels_and_repeats(judge: Judge, tmp_path: Path) -> None:
    rows = [{"id": "1", "claim": "c", "gold": {"claim_verdict": "false"}, "passages": ["x"]}]
    path = write_rows(tmp_path / "mine.jsonl", rows)
    judge("items", "import", "jsonl", path)
    judge("run", "raguard_exam", "-m", "scripted/first", "--repeats", "2")
    row = json.loads(joined(judge, path)[0])
    assert (row["adjudge.verdict"], row["adjudge.raguard.role"]) == ("true", "misleading")


def test_a_text_of_the_model_is_no_formula(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("id,claim\n1,Tea cures colds.\n", encoding="utf-8")
    judge("items", "import", "csv", path)
    reply = json.dumps({"counter_claim": "=HYPERLINK(1)", "changed": "cures -> causes"})
    answers = script(tmp_path / "script.jsonl", [("Tea", reply)])
    judge("run", "counter_claim", "-m", "scripted/file", "--option", f"script={answers}")
    row = next(csv.DictReader(joined(judge, path)))
    assert row["adjudge.counter_claim"] == "'=HYPERLINK(1)"
