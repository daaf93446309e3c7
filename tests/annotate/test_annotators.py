"""annotate annotators: profiles of people, and who is in the study."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.annotate.agreement_helpers import annotate, document, make_study


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return make_study(tmp_path)


def profile(db: Path, name: str) -> object:
    with closing(sqlite3.connect(db)) as conn, conn:
        kind, text = conn.execute(
            "SELECT kind, profile FROM annotators WHERE annotator_id = ?", [name]
        ).fetchone()
    return kind, json.loads(text)


def test_a_profile_is_kept_and_changed_key_by_key(db: Path) -> None:
    profile_of_ann = ("--qualification", "PhD", "--paid", "15 EUR an hour")
    said = annotate("annotators", "set", "ann", "-d", db, *profile_of_ann)
    assert said.stdout == "ann: qualification: PhD; paid: 15 EUR an hour\n"
    annotate("annotators", "set", "ann", "-d", db, "--consent", "signed", "--paid", "")
    assert profile(db, "ann") == ("human", {"qualification": "PhD", "consent": "signed"})
    result = document("annotators", "set", "ann", "-d", db, "--note", "è")
    assert result["profile"] == {"qualification": "PhD", "consent": "signed", "note": "è"}


def test_a_new_name_becomes_a_person(db: Path) -> None:
    annotate("annotators", "set", "zoë", "-d", db, "--training", "30 minutes")
    assert profile(db, "zoë") == ("human", {"training": "30 minutes"})


@pytest.mark.parametrize("name", ["gold", "majority", "a,b", " ann", "a\nb", ""])
def test_names_that_mean_something_else_are_refused(db: Path, name: str) -> None:
    assert "--note" not in annotate("annotators", "set", name, "-d", db, "--note", "x", code=2).stderr


def test_judges_and_gold_have_no_profile_to_set(db: Path) -> None:
    rows = document("annotators", "list", "-d", db)["rows"]
    (run,) = [row["annotator"] for row in rows if row["kind"] == "judge"]
    for name, kind in ((run, "judge"), ("gold", "gold")):
        failed = annotate("annotators", "set", name, "-d", db, "--note", "x", code=2)
        assert f"'{name}' is {kind}, not a person" in failed.stderr


def test_something_must_be_said(db: Path) -> None:
    assert "'ann': --qualification" in annotate("annotators", "set", "ann", "-d", db, code=2).stderr
    failed = annotate("annotators", "set", "a", "-d", db.parent / "x.db", "--note", "x", code=1)
    assert "no such study" in failed.stderr


def test_the_list_has_everybody_with_labels_and_fields(db: Path) -> None:
    annotate("annotators", "set", "bob", "-d", db, "--qualification", "student")
    rows = {row["shown"]: row for row in document("annotators", "list", "-d", db)["rows"]}
    assert [row["kind"] for row in rows.values()] == ["human", "human", "judge", "gold"]
    # STUDY: ann labels six passages, bob five, gold four; the judge's fifth answer cannot be parsed.
    assert [row["labels"] for row in rows.values()] == [6, 5, 5, 4]
    assert all(row["fields"] == ["stance"] for row in rows.values())
    assert rows["bob"]["profile"] == {"qualification": "student"}
    judge = next(row for row in rows.values() if row["kind"] == "judge")
    assert judge["shown"] == f"scripted/file · stance.v2 · {judge['annotator'][-4:]}"
    printed = annotate("annotators", "list", "-d", db).stdout
    assert "qualification" in printed and "consent" not in printed, "columns that nobody fills are left out"
