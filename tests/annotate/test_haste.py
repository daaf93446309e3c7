"""Who labels faster than anybody could read is named in progress and in the report."""

from __future__ import annotations

from pathlib import Path

from annotate.leading.haste import reading_ms
from annotate.sitting.desk import Desk
from annotate.sitting.unit import TimeSpent
from annotate.store import open_study
from tests.annotate.agreement_helpers import annotate
from tests.tui.studies import batch, build, judge_all

TEXT = "word " * 50
"""250 characters are 41.7 words of 6; at 80 ms a word that is 3,333 ms."""


def test_the_report_and_progress_name_who_labels_faster_than_reading(tmp_path: Path) -> None:
    """alice takes 3.4 s a unit, bob 0.9 s on six of ten: 6 is at least 5, and more than a tenth."""
    assert 3300 < reading_ms(len(TEXT)) < 3400
    path = build(tmp_path / "s.db", items=5, texts={str(i): f"{TEXT[:-2]}{i}." for i in range(10)})
    judge_all(path)
    batch(path, annotators=["alice", "bob"], n=10)
    with open_study(path) as store:
        for person in ("alice", "bob"):
            with Desk.open(store, "pilot", person) as desk:
                for position in range(1, 11):
                    ms = 900 if person == "bob" and position <= 6 else 3400
                    desk.label(position, "stance", "support", TimeSpent(ms, 0, ms))
    told = (
        "bob labelled 6 of 10 units faster than they could be read (under 80 ms a word, of at most 50 words)"
    )
    report = " ".join(annotate("report", "-d", path, "--format", "md").output.split())
    assert told in report and "alice labelled" not in report
    assert told in " ".join(annotate("batches", "show", "pilot", "-d", path).output.split())
