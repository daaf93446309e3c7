"""What a report says of annotation batches, and that --batch leaves other people's labels out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annotate.report import Asked, build
from annotate.report.model import Document, Facts, Paragraph
from annotate.store import open_study
from judge.errors import UsageError
from judge.prompts import load_task
from judge.store import Store
from judge.store.runs import keep_task
from tests.annotate.report_helpers import U, study

S, R = "support", "refute"


def with_batch(
    path: Path, *, purpose: str = "validation", weights: tuple[float, ...] = (2.0, 2.0), reveal: bool = False
) -> Path:
    """A study of 20 units with four people, two of whom labelled the ten units of a batch called pilot."""
    units = []
    for i in range(20):
        people = {"ann": S if i % 2 else R, "bob": S if i % 3 else R} if i < 10 else {}
        people |= {"crowd1": S, "crowd2": R}
        units.append(U(S if i % 2 else R, people, {"m/judge": S if i % 2 else R}))
    study(path, units)
    with open_study(path) as store, store.transaction() as conn:
        keep_task(conn, load_task("stance"))
        run = conn.execute("SELECT run_id FROM runs").fetchone()[0]
        options = json.dumps({"by": "label", "overlap": 2, "frame": 20, "repeats": 0.1})
        conn.execute(
            "INSERT INTO batches VALUES ('pilot', 'stance.v1', ?, 7, ?, ?, NULL, '2026-01-01T00:00:00.000Z', NULL)",
            [purpose, options, run if reveal else None],
        )
        for i in range(10):
            weight = weights[i % len(weights)]
            conn.execute(
                "INSERT INTO batch_units VALUES ('pilot', ?, 'sample', NULL, ?, ?)",
                [f"study:{i}/p", 1 / weight, weight],
            )
        conn.execute("INSERT INTO batch_units VALUES ('pilot', 'study:19/p', 'training', NULL, NULL, NULL)")
        for person in ("ann", "bob"):
            for i in range(10):
                conn.execute(
                    "INSERT INTO assignments (batch, annotator_id, position, unit_id, role, status) VALUES ('pilot', ?, ?, ?, 'sample', ?)",
                    [person, i + 1, f"study:{i}/p", "done" if i < 9 else "skipped"],
                )
    return path


def report(path: Path, **asked: str) -> Document:
    with Store.open(path, create=False) as store:
        return build(store, Asked(**asked))  # type: ignore[arg-type]


def facts(document: Document) -> dict[str, str]:
    blocks = next(s for s in document.sections if s.key == "sampling").blocks
    return dict(next(b for b in blocks if isinstance(b, Facts) and b.key == "batch_pilot").rows)


def notes(document: Document) -> str:
    blocks = next(s for s in document.sections if s.key == "sampling").blocks
    return " ".join(b.text for b in blocks if isinstance(b, Paragraph) and b.style == "note")


def test_sampling_blindness_and_progress_are_told(tmp_path: Path) -> None:
    document = report(with_batch(tmp_path / "study.db"))
    found = facts(document)
    assert found["sampling"] == "a random sample, equally many of each stratum (seed 7)"
    assert (found["strata by"], found["people a unit"], found["units it was drawn from"]) == (
        "label",
        "2",
        "20",
    )
    assert (found["units, sample"], found["units, training"]) == ("10", "1")
    assert found["ann"] == "9 of 10 done, 1 skipped"
    assert found["blind"].startswith("yes:") and found["blind"].endswith("nothing is shown afterwards")
    assert "no annotation batch" not in notes(document) and "not weighted" not in notes(document)


def test_revealed_batches_say_what_was_shown(tmp_path: Path) -> None:
    assert (
        "after the label was committed, that of run"
        in facts(report(with_batch(tmp_path / "study.db", reveal=True)))["blind"]
    )


def test_unequal_weights_and_queues_are_warned_of(tmp_path: Path) -> None:
    text = notes(report(with_batch(tmp_path / "study.db", weights=(1.0, 4.0))))
    assert "unequal probabilities (one stands for 1.0 to 4.0 units" in text and "not weighted" in text
    (tmp_path / "b").mkdir()
    text = notes(report(with_batch(tmp_path / "b" / "study.db", purpose="queue")))
    assert "no random sample of the units judged" in text


def test_one_batch_leaves_everybody_else_out_and_keeps_what_is_judged(tmp_path: Path) -> None:
    path = with_batch(tmp_path / "study.db")
    assert report(path).facts["people"] == ["ann", "bob", "crowd1", "crowd2"]
    document = report(path, batch="pilot")
    assert document.facts["people"] == ["ann", "bob"]
    pairs = next(t for s in document.sections for t in s.tables() if t.key == "pairs")
    assert [r[0] for r in pairs.rows] == ["ann and bob"]
    corrected = next(t for s in document.sections for t in s.tables() if t.key == "corrected_1")
    assert corrected.rows[0][-2:] == [20, 20], "the judge and gold keep all their labels"
    with pytest.raises(UsageError, match="no batch 'main'; there are: pilot"):
        report(path, batch="main")
