"""A study made before answers were there: pairs of claims become units, and answers can be imported."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from judge.store import Store
from tests.answers.helpers import Judge, column, write
from tests.real import ROOT


def test_a_study_of_the_first_version_gets_answers_and_pairs(judge: Judge, tmp_path: Path) -> None:
    conn = sqlite3.connect(tmp_path / "study.db")
    conn.executescript((ROOT / "tests" / "migrations" / "m001_study.sql").read_text("utf-8"))
    import_id, question = conn.execute("SELECT import_id, item_id FROM items LIMIT 1").fetchone()
    for name, polarity in (("c", "counter"), ("o", "original")):
        values = [
            f"v1:{name}",
            "v1",
            f"v1:{name}",
            f"Claim {name}.",
            "mine",
            polarity,
            "{}",
            "sha",
            import_id,
        ]
        conn.execute(
            "INSERT INTO items (item_id, dataset, question_id, claim, pair_id, polarity, meta, content_sha, import_id) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        conn.execute("INSERT INTO units VALUES (?1, 'item', ?1, ?1, NULL)", [f"v1:{name}"])
    conn.commit()
    before = conn.execute("SELECT unit_id FROM units ORDER BY rowid").fetchall()
    conn.close()
    with Store.open(tmp_path / "study.db") as store:
        after = store.conn.execute("SELECT unit_id FROM units ORDER BY rowid").fetchall()
        assert after[: len(before)] == before and ("v1:o~v1:c",) in after[len(before) :]
        shown = store.conn.execute(
            "SELECT claim, counter_claim FROM unit_texts WHERE unit_id = 'v1:o~v1:c'"
        ).fetchall()
        assert shown == [("Claim o.", "Claim c.")]
    answers = [{"id": question, "system": "s", "text": "One. Two."}]
    judge("answers", "import", write(tmp_path / "a.jsonl", answers))
    judge("run", "counter_check", "-m", "scripted/first")
    spans = column("SELECT span FROM units WHERE kind = 'sentence'")
    assert [(json.loads(s)["start"], json.loads(s)["end"]) for s in spans] == [(0, 4), (5, 9)]
