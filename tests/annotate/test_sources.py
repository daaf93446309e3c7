"""What each way of labelling says stays: a batch, an import, votes and decisions do not touch each other's labels."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from annotate.drawing.batch import extend_batch
from annotate.leading.verify import verify
from annotate.packing.merge import merge as merge_pack
from annotate.packing.pack import pack
from annotate.sitting.desk import Desk
from annotate.store import open_study
from tests.annotate.agreement_helpers import annotate, document
from tests.annotate.agreement_helpers import judge as judge_command
from tests.cli.helpers import Done
from tests.tui.studies import rows_of

PILOT = [("d:q/a", "support", "first", "import"), ("d:q/b", "refute", "first", "import")]


@pytest.fixture
def study(judge: Callable[..., Done], tmp_path: Path) -> Path:
    """One item with two passages, whose stance alice labelled in a pilot that was imported."""
    passages = [{"id": "a", "text": "It is."}, {"id": "b", "text": "No."}]
    (tmp_path / "items.jsonl").write_text(
        json.dumps({"id": "q", "claim": "Tea is hot.", "question": "Is it?", "passages": passages})
    )
    judge("items", "import", "items.jsonl", "--dataset", "d")
    sheet(tmp_path / "pilot.csv", [("d:q/a", "support"), ("d:q/b", "refute")])
    annotate("import", "pilot.csv", "--task", "stance", "--blind", "--new-people")
    return tmp_path / "study.db"


def sheet(path: Path, rows: list[tuple[str, str]], who: str = "alice", field: str = "stance") -> Path:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["unit", "annotator", "field", "label"])
        out.writerows([unit, who, field, label] for unit, label in rows)
    return path


def labels(study: Path, who: str = "alice", field: str = "stance") -> list[tuple[str, str, str, str]]:
    """(unit, label, layer, kinds of its sources)."""
    query = f"SELECT unit_id, value, layer, sources FROM labels WHERE annotator_id = '{who}' AND field = '{field}' ORDER BY 1"
    return [
        (*row[:3], ", ".join(sorted(s.split(":")[0] for s in json.loads(row[3]))))
        for row in rows_of(study, query)
    ]


def in_conflict(study: Path) -> list[tuple[str, str, str]]:
    rows = document("conflicts", "list", "-d", study, "--json")["rows"]
    return [(row["unit"], row["label"], row["source"].split(":")[0]) for row in rows]


def sit(study: Path, batch: str, who: str = "alice") -> Desk:
    return Desk.open(open_study(study), batch, who)


# Finding 1: a note deletes a label.


def test_a_note_by_sheet_leaves_imported_labels(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "alice", "--fresh", code=2)
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob")
    study.with_name("notes.csv").write_text("unit,annotator,note\nd:q/a,alice,odd\n")
    annotate("import", "notes.csv", "--from", "csv", "--batch", "main", "--new-people")
    assert labels(study) == PILOT


def test_a_note_a_label_and_its_undo_on_the_screen_leave_imported_labels(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "alice")
    adopted = [(unit, value, layer, "batch, import") for unit, value, layer, _ in PILOT]
    assert labels(study) == adopted, "what alice said before is adopted"
    with sit(study, "main") as desk:
        desk.note(1, "odd")
        assert desk.undo() == 1
        unit = desk.load(1).unit_id
        desk.label(1, "stance", "neutral")
        assert unit not in [row[0] for row in labels(study)], (
            "two sources differ: no label until somebody decides"
        )
        desk.undo()
    assert labels(study) == adopted


def test_votes_that_came_with_items_stay_beside_a_batch(judge: Callable[..., Done], tmp_path: Path) -> None:
    passage = {"id": "a", "text": "It is.", "votes": {"stance": {"alice": "support"}}}
    (tmp_path / "items.jsonl").write_text(
        json.dumps({"id": "q", "claim": "Tea is hot.", "passages": [passage]})
    )
    judge("items", "import", "items.jsonl", "--dataset", "d")
    study = tmp_path / "study.db"
    annotate("batches", "new", "main", "stance", "-n", "1", "--annotators", "alice")
    with sit(study, "main") as desk:
        desk.skip(1)
        assert labels(study) == [("d:q/a", "support", "first", "items")], (
            "a skip in the batch is not about the vote"
        )
    judge("items", "import", "items.jsonl", "--dataset", "d")
    assert labels(study) == [("d:q/a", "support", "first", "items")]


# Finding 2: two tasks with a derived field of one name.


def test_two_tasks_with_one_derived_field_keep_both_values(study: Path) -> None:
    annotate("batches", "new", "one", "garage_relevance", "-n", "2", "--annotators", "alice")
    annotate("batches", "new", "two", "relevance_graded", "-n", "2", "--annotators", "alice")
    with sit(study, "one") as desk:
        for position in (1, 2):
            desk.label(position, "relevance", "IRRELEVANT")
    zero = [("d:q/a", "0", "first", "batch"), ("d:q/b", "0", "first", "batch")]
    assert labels(study, field="relevance_grade") == zero
    with sit(study, "two") as desk:
        desk.note(1, "odd")
        first = desk.load(1).unit_id
        assert labels(study, field="relevance_grade") == zero, (
            "a note in the second task deletes nothing of the first"
        )
        desk.label(1, "relevance_0_3", "3")
        query = "SELECT value, source FROM label_sources WHERE field = 'relevance_grade' AND unit_id = '{}' ORDER BY 2"
        assert rows_of(study, query.format(first)) == [("0", "batch:one"), ("2", "batch:two")]
        assert [row[:2] for row in in_conflict(study)] == [(first, "0"), (first, "2")]
        desk.undo()
    assert labels(study, field="relevance_grade") == zero


# Finding 3: A, then B, then A again.


@pytest.mark.parametrize("batch", [("--batch", "main"), ()])
def test_an_answer_that_is_given_again_counts_again(study: Path, batch: tuple[str, ...]) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob,carol")
    for name, label in (("1.csv", "support"), ("2.csv", "refute"), ("3.csv", "support")):
        sheet(study.with_name(name), [("d:q/a", label)], "carol")
    where = ("--from", "csv", "--blind", *batch)
    annotate("import", "1.csv", *where)
    annotate("import", "2.csv", *where, code=1)
    annotate("import", "2.csv", "--latest", *where)
    told = annotate("import", "3.csv", *where, code=1).stderr
    assert "carol has labelled 'd:q/a' 'refute' in the study, and 'support' here" in told
    assert [row[1] for row in labels(study, "carol")] == ["refute"]
    annotate("import", "3.csv", "--latest", *where)
    assert [row[1] for row in labels(study, "carol")] == ["support"]
    annotate("import", "3.csv", "--latest", *where)
    assert (
        rows_of(study, "SELECT count(*) FROM label_imports WHERE batch IS NOT NULL OR format = 'csv'")[0][0]
        == 3
    ), "what stands already is not stored again"


def test_a_sheet_brings_back_what_was_undone_on_the_screen(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob")
    sheet(study.with_name("1.csv"), [("d:q/a", "support")], "bob")
    where = ("--from", "csv", "--blind", "--batch", "main")
    for _ in range(2):
        annotate("import", "1.csv", *where)
        assert [row[1] for row in labels(study, "bob")] == ["support"]
        with sit(study, "main", "bob") as desk:
            desk.undo()
        assert labels(study, "bob") == []


def test_a_sheet_of_a_batch_says_which_labels_it_brought_into_conflict(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "alice")
    sheet(study.with_name("1.csv"), [("d:q/a", "refute"), ("d:q/b", "refute")])
    told = annotate("import", "1.csv", "--batch", "main", "--blind", "--latest").stderr
    assert "1 labels contradict what the same person said by another way" in told
    assert in_conflict(study) == [("d:q/a", "support", "import"), ("d:q/a", "refute", "batch")]


# Finding 4: merging.


def copy_with(study: Path, name: str, rows: list[tuple[str, str]], *how: str) -> Path:
    from shutil import copy

    with open_study(study) as store:
        store.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other = Path(copy(study, study.with_name(name)))
    annotate("import", sheet(study.with_name(f"{name}.csv"), rows, "bob"), *how, "--new-people", "-d", other)
    return other


def test_merged_studies_keep_both_answers_as_a_conflict(study: Path) -> None:
    one = copy_with(study, "one.db", [("d:q/a", "support")], "--blind")
    two = copy_with(study, "two.db", [("d:q/a", "refute"), ("d:q/b", "neutral")], "--assisted")
    done = judge_command("studies", "merge", one, two, "--into", "both.db")
    assert "labels in conflict" in done.stderr and "annotate conflicts list -d both.db" in done.stderr
    both = study.with_name("both.db")
    assert labels(both, "bob") == [("d:q/b", "neutral", "assisted", "import")] and labels(both) == PILOT
    assert [row[:2] for row in in_conflict(both)] == [("d:q/a", "support"), ("d:q/a", "refute")]
    assert annotate("verify", "-d", both).exit_code == 0


def test_the_same_label_in_two_studies_is_one_with_the_stricter_layer(study: Path) -> None:
    one = copy_with(study, "one.db", [("d:q/a", "support")])
    two = copy_with(study, "two.db", [("d:q/a", "support")], "--assisted")
    judge_command("studies", "merge", one, two, "--into", "both.db")
    both = study.with_name("both.db")
    assert (
        labels(both, "bob") == [("d:q/a", "support", "assisted", "import, import")]
        and in_conflict(both) == []
    )


# Conflicts: who decides, and what they cost until then.


def conflicting(study: Path) -> Path:
    """alice said support and refute in the pilot, and something else on both units in a batch."""
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "alice,bob")
    with sit(study, "main") as desk:
        desk.label(1, "stance", "neutral")
        desk.label(2, "stance", "neutral")
    return study


def test_one_conflict_or_all_are_resolved_and_a_new_label_is_compared_anew(study: Path) -> None:
    conflicting(study)
    assert labels(study) == []
    annotate("conflicts", "resolve", "d:q/a", "--keep", "refute", code=2)
    annotate("conflicts", "resolve", "d:q/a", "--keep", "support")
    assert [row[:2] for row in labels(study)] == [("d:q/a", "support")]
    annotate("conflicts", "resolve", "--all", "--keep", "latest")
    assert [row[:2] for row in labels(study)] == [("d:q/a", "support"), ("d:q/b", "neutral")]
    assert in_conflict(study) == [] and annotate("verify").exit_code == 0
    with sit(study, "main") as desk:
        position = next(p for p in (1, 2) if desk.load(p).unit_id == "d:q/a")
        desk.label(position, "stance", "refute")
    assert {row[1] for row in in_conflict(study)} == {"support", "refute"}, "what was said since is new"


def test_a_conflict_counts_as_unlabelled_and_leaves_the_verdict_undecided(study: Path) -> None:
    judge_command("run", "stance", "-m", "scripted/first")
    conflicting(study)
    with sit(study, "main", "bob") as desk:
        desk.label(1, "stance", "support")
        desk.label(2, "stance", "support")
    found = document("agreement", "--field", "stance", "--json")
    assert any("2 labels of alice are in conflict" in told for told in found["fields"][0]["notes"])
    pair = next(
        m for m in found["measures"] if m["annotators"] == ["alice", "bob"] and m["measure"] == "percent"
    )
    # Both units were asked about, and neither has a label of alice.
    assert (pair["value"], pair["coverage"]) == (None, 0.0)
    told = annotate("report", "--task", "stance", "--require-trust", code=5)
    assert "2 labels in conflict" in told.stderr


# Verify, drawing, commands typed again.


def test_verify_finds_what_was_changed_behind_its_back(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "alice")
    with open_study(study) as store:
        assert verify(store) == []
        with store.transaction() as conn:
            conn.execute("UPDATE labels SET value = 'neutral' WHERE unit_id = 'd:q/a'")
            conn.execute("UPDATE assignments SET answers = '{}' WHERE unit_id = 'd:q/b'")
            conn.execute("UPDATE batch_units SET weight = 7")
            conn.execute(
                "UPDATE label_sources SET source = 'import:gone' WHERE unit_id = 'd:q/b' AND source GLOB 'import:*'"
            )
        found = {(one.what, one.stored) for one in verify(store)}
    assert {("label", "neutral (batch:main, import:" + _import(study) + ")"), ("log", "{}")} <= found
    assert {what for what, _ in found} == {"label", "log", "weight", "source"}
    assert "differences" in annotate("verify", code=1).stderr


def _import(study: Path) -> str:
    return str(rows_of(study, "SELECT import_id FROM label_imports")[0][0])


def test_units_of_a_draw_with_unequal_probabilities_stay_in_the_frame(study: Path) -> None:
    judge_command("run", "stance", "-m", "scripted/hash", "--answers", "codes", "--option", "logprobs=1")
    annotate("batches", "new", "hard", "stance", "-n", "1", "--queue", "--annotators", "bob")
    with sit(study, "hard", "bob") as desk:
        desk.label(1, "stance", "support")
        unit = desk.load(1).unit_id
    done = annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob")
    assert "bob labelled 1 of the drawn units before" in done.stderr
    assert [row for row in labels(study, "bob") if row[0] == unit] == [
        (unit, "support", "first", "batch, batch")
    ]
    annotate("batches", "new", "next", "stance", "-n", "1", "--annotators", "bob", code=2)


def test_fresh_draws_other_units_and_says_so(study: Path) -> None:
    sheet(study.with_name("one.csv"), [("d:q/a", "support")], "dave")
    annotate("import", "one.csv", "--blind", "--new-people")
    done = annotate("batches", "new", "main", "stance", "-n", "1", "--annotators", "dave", "--fresh")
    assert "the estimates are for the rest" in done.stderr
    assert rows_of(study, "SELECT unit_id FROM batch_units") == [("d:q/b",)]
    with open_study(study) as store:
        assert extend_batch(store, "main", to=1).units == 0


def test_an_untouched_pack_of_somebody_without_units_is_nothing_new(study: Path, tmp_path: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob")
    with open_study(study) as store:
        pack(store, "main", "bob", tmp_path / "bob.db")
    annotate("batches", "hand-over", "main", "--from", "bob", "--to", "carol")
    with open_study(study) as store:
        assert merge_pack(store, tmp_path / "bob.db").events == 0


def test_evidence_alone_is_exported(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob")
    with sit(study, "main", "bob") as desk:
        desk.spans(1, [("passage", 0, 2)])
    annotate("export", "main", "--to", "jsonl", "--labels", "-o", "out.jsonl")
    (row,) = map(json.loads, study.with_name("out.jsonl").read_text().splitlines())
    assert row["spans"] == [["passage", 0, 2]] and row["label"] is None


def test_more_repeats_than_there_can_be_are_refused(study: Path) -> None:
    told = annotate(
        "batches", "new", "main", "stance", "-n", "2", "--annotators", "bob", "--repeats", "100%", code=2
    )
    assert "at most 50%" in told.stderr
