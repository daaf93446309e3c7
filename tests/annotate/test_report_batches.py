"""What a report says of annotation batches, and that --batch leaves other people's labels out."""

import json
from pathlib import Path

import pytest

from annotate.report import ReportOptions, build
from annotate.store import open_study
from judge.document.blocks import Document, Facts, Paragraph
from judge.errors import UsageError
from judge.prompts import load_task
from judge.store import Store
from judge.store.runs import keep_task
from tests.annotate.report_helpers import U, add_label, add_run, section, study, table

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
            "INSERT INTO batches VALUES ('pilot', 'stance.v2', ?, 7, ?, ?, NULL, '2026-01-01T00:00:00.000Z', NULL, 'kept')",
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
        return build(store, ReportOptions(**asked))  # type: ignore[arg-type]


def facts(document: Document, batch: str = "pilot") -> dict[str, str]:
    blocks = section(document, "sampling").blocks
    return dict(next(b for b in blocks if isinstance(b, Facts) and b.key == f"batch_{batch}").rows)


def notes(document: Document) -> str:
    blocks = section(document, "sampling").blocks
    return " ".join(b.text for b in blocks if isinstance(b, Paragraph) and b.style == "note")


def test_sampling_blindness_and_progress_are_told(tmp_path: Path) -> None:
    document = report(with_batch(tmp_path / "study.db"))
    result = facts(document)
    assert result["sampling"] == "a random sample, the same number from each stratum (seed 7)"
    assert (result["strata by"], result["people per unit"], result["sampling frame"]) == (
        "label",
        "2",
        "20",
    )
    assert (result["units, sample"], result["units, training"]) == ("10", "1")
    assert result["ann"] == "9 of 10 done, 1 skipped"
    assert result["blind"].startswith("yes:") and result["blind"].endswith("nothing is shown afterwards")
    assert "no annotation batch" not in notes(document) and "Estimates are weighted" not in notes(document)


def test_revealed_batches_say_what_was_shown(tmp_path: Path) -> None:
    assert "the label of run " in facts(report(with_batch(tmp_path / "study.db", reveal=True)))["blind"]


def test_unequal_weights_and_queues_are_warned_of(tmp_path: Path) -> None:
    text = notes(report(with_batch(tmp_path / "study.db", weights=(1.0, 4.0))))
    assert "unequal probabilities" in text and "1.0 to 4.0 units" in text
    (tmp_path / "b").mkdir()
    text = notes(report(with_batch(tmp_path / "b" / "study.db", purpose="queue")))
    assert "not a random sample" in text


def test_one_batch_leaves_everybody_else_out_and_keeps_what_is_judged(tmp_path: Path) -> None:
    path = with_batch(tmp_path / "study.db")
    assert report(path).facts["people"] == ["ann", "bob", "crowd1", "crowd2"]
    document = report(path, batch="pilot")
    assert document.facts["people"] == ["ann", "bob"]
    assert [r[0] for r in table(document, "pairs").rows] == ["ann and bob"]
    corrected = table(document, "corrected_1")
    assert corrected.rows[0][-2:] == [20, 10], (
        "the judge keeps all its labels: they are what gold of the batch corrects"
    )
    with pytest.raises(UsageError, match="no batch 'main'; available: pilot"):
        report(path, batch="main")


def execute(path: Path, *statements: str) -> None:
    with open_study(path) as store, store.transaction() as conn:
        for statement in statements:
            conn.execute(statement)


LATER = (
    "INSERT INTO batches VALUES ('later', 'stance.v2', 'validation', 7, '{\"frame\": 10}', NULL, NULL, "
    "'2026-01-02T00:00:00.000Z', NULL, 'kept')"
)


def test_a_batch_after_a_queue_is_no_sample_of_everything(tmp_path: Path) -> None:
    path = with_batch(tmp_path / "study.db", purpose="queue")
    execute(path, LATER)
    assert facts(report(path), "later")["sampling"] == (
        "a random sample of the units that were in no earlier batch (pilot (the units the judge was least sure of)) (seed 7)"
    )
    assert "are easier than the judged units" in notes(report(path))


def test_blindness_is_what_is_known_of_it(tmp_path: Path) -> None:
    path = with_batch(tmp_path / "study.db")
    session = "INSERT INTO sessions VALUES ('{}', 'pilot', 'ann', 'ann', '{}', '2026-01-01T00:00:00.000Z', NULL, NULL)"
    execute(path, session.format("s1", "0.1.0 import csv"))
    assert facts(report(path))["blind"].startswith("as declared")
    execute(path, session.format("s2", "0.1.0"))
    assert facts(report(path))["blind"].startswith(
        "labels made elsewhere: as declared; labels made here: yes"
    )
    execute(path, "UPDATE batches SET options = json_set(options, '$.assisted', 'Label Studio project 7')")
    assert facts(report(path))["blind"] == "no: people see predictions in Label Studio project 7"


def test_labels_not_known_to_be_blind_are_said_to_be_left_out(tmp_path: Path) -> None:
    path = with_batch(tmp_path / "study.db")
    execute(
        path,
        "UPDATE labels SET layer = 'undeclared' WHERE annotator_id = 'ann'",
        "UPDATE labels SET layer = 'assisted' WHERE annotator_id = 'bob'",
    )
    document = report(path)
    assert document.facts["people"] == ["crowd1", "crowd2"]
    who = " ".join(b.text for b in section(document, "who").blocks if isinstance(b, Paragraph))
    assert "10 labels by ann are not known to be blind" in who and "--blind" in who
    assert "10 labels by bob were given with visible suggestions" in who
    # With nobody left the report falls back on gold.
    only = report(path, batch="pilot")
    assert only.facts["people"] == [] and only.facts["reference"] == "gold"
    assert section(only, "revisions").absent


def test_only_the_judge_that_people_were_shown_can_have_drawn_them(tmp_path: Path) -> None:
    path = with_batch(tmp_path / "study.db", reveal=True)
    with Store.open(path, create=False) as store:
        add_run(store, load_task("stance"), "m/other", {f"study:{i}/p": S for i in range(20)})
    add_label(path, "study:0/p", "stance", "ann", S, layer="revised")
    revisions = table(report(path), "revisions")
    assert [r[:2] for r in revisions.rows] == [["ann", "m/judge"]]
    assert revisions.notes[0].endswith(": m/other.")


def test_the_rule_of_adjudication_is_told(tmp_path: Path) -> None:
    path = with_batch(tmp_path / "study.db")
    execute(
        path,
        "INSERT INTO annotators VALUES ('adjudicated', 'adjudicated', '{}')",
        "INSERT INTO sessions VALUES ('s', 'pilot', 'adjudicated', 'lead', '0.1.0', '2026-01-01T00:00:00.000Z', NULL, NULL)",
        *(
            "INSERT INTO assignments (batch, annotator_id, position, unit_id, role, status) VALUES "
            f"('pilot', 'adjudicated', {n}, 'study:{n}/p', 'adjudication', '{status}')"
            for n, status in ((1, "done"), (2, "open"))
        ),
    )
    message = facts(report(path))["adjudication"]
    assert message.startswith("units on which two people differ in any answer go to a lead (lead)")
    assert message.endswith("1 of 2 decided")
