"""judge items: import, list, show."""

import json
from pathlib import Path

import pytest

from tests.cli.helpers import ROWS, Judge, checked, write_rows


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "pairs.jsonl")


def test_import_says_what_is_new(judge: Judge, rows: Path) -> None:
    document = checked(judge("items", "import", "jsonl", rows, "--json").out, "import")
    counted = {
        "files": [str(rows)],
        "datasets": ["pairs"],
        "items": 2,
        "passages": 4,
        "answers": 0,
        "empty": 0,
        "labels": 4,
    }
    votes = {"read": 4, "stored": 4, "already_there": 0, "conflict": 0, "quarantined": 0, "left_out": 0, "reasons": {}}  # fmt: skip
    assert document["rows"] == [{**counted, "unchanged": 0, "skipped": 0, "votes": votes}]
    again = checked(judge("items", "import", "jsonl", rows, "--json").out, "import")
    assert again["rows"] == [
        {**counted, "items": 0, "passages": 0, "labels": 0, "unchanged": 2, "skipped": 0,
         "votes": {**votes, "stored": 0, "already_there": 4}}
    ]  # fmt: skip
    table = judge("items", "import", "jsonl", rows).out
    assert "unchanged" in table.splitlines()[0]


def test_several_files_are_several_rows(judge: Judge, rows: Path, tmp_path: Path) -> None:
    other = write_rows(tmp_path / "other.jsonl", [{"id": "1", "claim": "c"}])
    document = checked(judge("items", "import", "jsonl", rows, other, "--json").out, "import")
    assert [(r["datasets"], r["items"]) for r in document["rows"]] == [(["pairs"], 2), (["other"], 1)]


def test_a_bad_row_says_where_and_what_to_do(judge: Judge, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "bad.jsonl", [*ROWS, {"id": "x", "claim": ["c"]}])
    done = judge("items", "import", "jsonl", path, code=1)
    assert done.err == f"judge: {path}:3: field 'claim': must be text, not a list\n"
    assert done.out == ""
    document = checked(judge("items", "import", "jsonl", path, "--skip-bad", "--json").out, "import")
    assert document["rows"][0]["skipped"] == 1
    assert document["skipped"] == [f"{path}:3: field 'claim': must be text, not a list"]
    imports = checked(judge("items", "show", "--imports", "--json").out, "imports")
    assert imports["rows"][0]["skipped"] == document["skipped"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["xml", "x"], "no format 'xml'; available formats: "),
        (["jsonl"], "judge items import jsonl FILE"),
        (["jsonl", "gone.jsonl"], "gone.jsonl: "),
        (["jsonl", "."], ".: this is a folder"),
        (["jsonl", "pairs.jsonl", "--map", "claim"], "--map claim: must"),
        (["jsonl", "pairs.jsonl", "--map", "=x"], "--map =x: must"),
        (["jsonl", "pairs.jsonl", "--map", "klaim=x"], "no field 'klaim'"),
        (["jsonl", "pairs.jsonl", "--map", "question=frage"], "no row has 'frage'"),
        (["jsonl", "pairs.jsonl", "--map-label", "stance=x"], "FIELD:OLD=NEW"),
        (["jsonl", "pairs.jsonl", "--map-label", "stance:SUP=support|refute"], "stance:SUP=support|refute"),
    ],
)
def test_what_cannot_be_asked_for(judge: Judge, rows: Path, args: list[str], words: str) -> None:
    done = judge("items", "import", *args, code=2)
    assert words in done.err
    assert done.err.count("\n") == 1


def test_maps_are_stored_with_the_import(judge: Judge, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "flat.jsonl", [{"id": 1, "claim": "c", "text": "t", "gold": "SUPPORTS"}])
    maps = ["--map", "passages.text=text", "--map", "passages.gold.stance=gold"]
    judge(
        "items", "import", "jsonl", path, *maps, "--map-label", "stance:SUPPORTS=support", "--dataset", "mine"
    )
    [row] = checked(judge("items", "show", "--imports", "--json").out, "imports")["rows"]
    assert row["maps"] == {"passages.text": "text", "passages.gold.stance": "gold"}
    assert row["label_maps"] == {"stance": {"SUPPORTS": "support"}}
    item = checked(judge("items", "show", "mine:1", "--json").out, "item")
    assert [label["value"] for label in item["labels"]] == ["support"]


def test_a_label_that_no_task_knows_is_noted(judge: Judge, tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "r.jsonl",
        [{"id": "1", "claim": "c", "passages": [{"text": "t", "gold": {"stance": "SUPPORTS"}}]}],
    )
    done = judge("items", "import", "jsonl", path)
    assert "'SUPPORTS' (1)" in done.err
    assert "--map-label stance:OLD=NEW" in done.err


def test_rows_that_share_a_question_are_told_from_questions(judge: Judge, tmp_path: Path) -> None:
    """One judged pair a row, as many files have it: twelve rows of three questions."""
    file = tmp_path / "pairs.jsonl"
    rows = [
        {"id": str(n), "question": f"q{n % 3}", "by": f"q{n % 3}", "passages": [f"p{n}"]} for n in range(12)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = judge("items", "import", "jsonl", file).err
    assert "12 items share 3 questions or claims" in told and "--map question_id=COLUMN" in told
    told = judge("items", "import", "jsonl", file, "--map", "question_id=by", "-d", tmp_path / "by.db").err
    assert "between them" not in told


def test_list_and_show(judge: Judge, rows: Path) -> None:
    judge("items", "import", "jsonl", rows)
    listed = checked(judge("items", "show", "--json").out, "items")["rows"]
    assert [(r["item_id"], r["passages"]) for r in listed] == [("pairs:moon", 2), ("pairs:tomato", 2)]
    assert len(checked(judge("items", "show", "-n", "1", "--json").out, "items")["rows"]) == 1
    assert checked(judge("items", "show", "--dataset", "none", "--json").out, "items")["rows"] == []
    item = checked(judge("items", "show", "pairs:moon", "--json").out, "item")
    assert item["meta"] == {"note": "meta-1"}
    assert [(p["passage_id"], p["text"]) for p in item["passages"]] == [
        ("pairs:moon/a", "Earth has one natural satellite."),
        ("pairs:moon/b", "Mars has two small moons."),
    ]
    shown = judge("items", "show", "pairs:moon").out
    assert "Earth has one natural satellite." in shown
    assert "gold: stance=support" in shown
    missing = judge("items", "show", "pairs:sun", code=1)
    assert "no item 'pairs:sun' in study.db; to list the items: judge items show" in missing.err


def test_ids_with_every_sign(judge: Judge, tmp_path: Path) -> None:
    names = ["a/b", "a#s1", "a@sys@x", "a b", "é№", "a:b", "-x", "--json", "a'b", "%s"]
    passage = [{"id": "p/q#1@x", "text": "t"}]
    path = write_rows(tmp_path / "odd.jsonl", [{"id": n, "claim": "c", "passages": passage} for n in names])
    judge("items", "import", "jsonl", path)
    for name in names:
        item = checked(judge("items", "show", "--json", f"odd:{name}").out, "item")
        assert item["passages"][0]["passage_id"] == f"odd:{name}/p/q#1@x"
        unit = f"odd:{name}/p/q#1@x"
        prompt = checked(judge("tasks", "render", "stance", "--json", "--unit", unit).out, "prompt")
        assert prompt["unit"] == unit
    judge("run", "stance", "-m", "scripted/hash")
    exported = [json.loads(line) for line in judge("runs", "export").out.splitlines()]
    assert [row["item_id"] for row in exported] == [f"odd:{n}" for n in names]


@pytest.mark.parametrize("args", [["items", "show"], ["items", "show", "x"], ["runs", "list"], ["runs", "show"],
                                  ["runs", "export"], ["tasks", "render", "stance"],
                                  ["run", "stance", "-m", "scripted/hash"]])  # fmt: skip
def test_a_study_that_is_not_there_is_not_made(judge: Judge, tmp_path: Path, args: list[str]) -> None:
    done = judge(*args, code=1)
    assert (
        "study.db: there is no such study; name another study with -d, or import something: judge items import FORMAT FILE"
        in done.err
    )
    assert not (tmp_path / "study.db").exists()


def test_the_study_can_be_named_by_the_environment(
    judge: Judge, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_DB", str(tmp_path / "other.db"))
    judge("items", "import", "jsonl", rows)
    assert (tmp_path / "other.db").exists()
    judge("items", "import", "jsonl", rows, "-d", "third.db")
    assert (tmp_path / "third.db").exists()
    assert not (tmp_path / "study.db").exists()


def test_a_folder_is_no_study(judge: Judge, tmp_path: Path) -> None:
    assert "is a directory" in judge("items", "show", "-d", tmp_path, code=2).err
