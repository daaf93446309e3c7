"""What each way of labelling says stays: a batch, an import, votes and decisions do not touch each other's labels."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from annotate.drawing.extend import extend_batch
from annotate.leading.verify import verify
from annotate.packing.merge import merge as merge_pack
from annotate.packing.pack import pack
from annotate.sitting.desk import Desk
from annotate.store import open_study
from tests.annotate.agreement_helpers import annotate, checked, document
from tests.annotate.agreement_helpers import judge as judge_command
from tests.cli.helpers import Done
from tests.tui.studies import rows_of

VOTED = {"id": "q", "claim": "Tea is hot.",
         "passages": [{"id": "a", "text": "It is.", "votes": {"stance": {"alice": "support"}}}]}  # fmt: skip
PILOT = [("d:q/a", "support", "first", "import"), ("d:q/b", "refute", "first", "import")]


def import_items(folder: Path, item: dict[str, Any]) -> None:
    """Import one item of the data set `d` into the study of the folder."""
    (folder / "items.jsonl").write_text(json.dumps(item))
    judge_command("items", "import", "items.jsonl", "--dataset", "d")


@pytest.fixture
def study(judge: Callable[..., Done], tmp_path: Path) -> Path:
    """One item with two passages, whose stance alice labelled in a pilot that was imported."""
    passages = [{"id": "a", "text": "It is."}, {"id": "b", "text": "No."}]
    import_items(tmp_path, {"id": "q", "claim": "Tea is hot.", "question": "Is it?", "passages": passages})
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
        assert unit not in [row[0] for row in labels(study)], "in conflict until somebody decides"
        desk.undo()
    assert labels(study) == adopted


def test_votes_that_came_with_items_stay_beside_a_batch(judge: Callable[..., Done], tmp_path: Path) -> None:
    import_items(tmp_path, VOTED)
    study = tmp_path / "study.db"
    annotate("batches", "new", "main", "stance", "-n", "1", "--annotators", "alice")
    with sit(study, "main") as desk:
        desk.skip(1)
        vote = [("d:q/a", "support", "first", "items")]
        assert labels(study) == vote, "a skip in the batch is not about the vote"
    import_items(tmp_path, VOTED)
    assert labels(study) == vote


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
        assert labels(study, field="relevance_grade") == zero, "a note deletes nothing of another task"
        desk.label(1, "relevance_0_3", "3")
        query = "SELECT value, source FROM label_sources WHERE field = 'relevance_grade' AND unit_id = '{}' ORDER BY 2"
        assert rows_of(study, query.format(first)) == [("0", "batch:one"), ("2", "batch:two")]
        assert [row[:2] for row in in_conflict(study)] == [(first, "0"), (first, "2")]
        desk.undo()
    assert labels(study, field="relevance_grade") == zero


# Finding 3: A, then B, then A again.


@pytest.mark.parametrize("batch", [("--batch", "main"), ()])
def test_an_answer_that_is_given_again_counts_again(study: Path, batch: tuple[str, ...]) -> None:
    a_b_a(study)
    where = ("--from", "csv", "--blind", *batch)
    annotate("import", "1.csv", *where)
    for name, label in (("2.csv", "refute"), ("3.csv", "support"), ("3.csv", "support")):
        annotate("import", name, "--latest", *where)
        assert [row[1] for row in labels(study, "carol")] == [label] and in_conflict(study) == []
    query = "SELECT count(*) FROM label_imports WHERE batch IS NOT NULL OR format = 'csv'"
    assert rows_of(study, query)[0][0] == 3, "what stands already is not stored again"


def a_b_a(study: Path) -> None:
    """Three sheets of carol, on one unit of a batch: support, refute, support."""
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob,carol")
    for name, label in (("1.csv", "support"), ("2.csv", "refute"), ("3.csv", "support")):
        sheet(study.with_name(name), [("d:q/a", label)], "carol")


def test_imports_that_differ_are_a_conflict_until_one_is_to_count(study: Path) -> None:
    a_b_a(study)
    where = ("--from", "csv", "--blind")
    annotate("import", "1.csv", *where)
    told = annotate("import", "2.csv", *where).stderr
    assert "1 labels contradict" in told
    both = [("d:q/a", "support", "import"), ("d:q/a", "refute", "import")]
    assert in_conflict(study) == both and labels(study, "carol") == []
    annotate("import", "3.csv", *where)
    assert in_conflict(study) == both, "support is said already"
    annotate("import", "3.csv", "--latest", *where)
    assert in_conflict(study) == [] and [row[1] for row in labels(study, "carol")] == ["support"]
    annotate("import", "2.csv", *where)
    assert {row[1] for row in in_conflict(study)} == {"support", "refute"}, "a replaced label can come again"
    assert annotate("verify").exit_code == 0


def test_a_file_that_contradicts_itself_is_refused(study: Path) -> None:
    sheet(study.with_name("1.csv"), [("d:q/a", "support"), ("d:q/a", "refute")], "carol")
    told = annotate("import", "1.csv", "--blind", "--new-people", code=1).stderr
    assert "1.csv:3" in told and "as 'support' in the study and as 'refute'" in told
    assert labels(study, "carol") == []
    # The study has the first of the two already.
    sheet(study.with_name("2.csv"), [("d:q/a", "support"), ("d:q/a", "refute")])
    assert "2.csv:3" in annotate("import", "2.csv", "--blind", code=1).stderr
    assert labels(study) == PILOT


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
    assert "1 labels contradict" in told
    assert in_conflict(study) == [("d:q/a", "support", "import"), ("d:q/a", "refute", "batch")]


# Finding 4: merging.


def copy_with(study: Path, name: str, rows: list[tuple[str, str]], *how: str) -> Path:
    with open_study(study) as store:
        store.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other = Path(copy(study, study.with_name(name)))
    annotate("import", sheet(study.with_name(f"{name}.csv"), rows, "bob"), *how, "--new-people", "-d", other)
    return other


def test_merged_studies_keep_both_answers_as_a_conflict(study: Path) -> None:
    one = copy_with(study, "one.db", [("d:q/a", "support")], "--blind")
    two = copy_with(study, "two.db", [("d:q/a", "refute"), ("d:q/b", "neutral")], "--assisted")
    done = judge_command("studies", "merge", one, two, "--into", "both.db")
    assert "labels are in conflict" in done.stderr and "annotate conflicts list -d both.db" in done.stderr
    both = study.with_name("both.db")
    assert labels(both, "bob") == [("d:q/b", "neutral", "assisted", "import")] and labels(both) == PILOT
    assert [row[:2] for row in in_conflict(both)] == [("d:q/a", "support"), ("d:q/a", "refute")]
    assert annotate("verify", "-d", both).exit_code == 0


def test_the_same_label_in_two_studies_is_one_with_the_stricter_layer(study: Path) -> None:
    one = copy_with(study, "one.db", [("d:q/a", "support")])
    two = copy_with(study, "two.db", [("d:q/a", "support")], "--assisted")
    judge_command("studies", "merge", one, two, "--into", "both.db")
    both = study.with_name("both.db")
    assert labels(both, "bob") == [("d:q/a", "support", "assisted", "import, import")]
    assert in_conflict(both) == []


def test_a_label_that_was_declared_in_one_of_two_copies_is_declared_once_they_are_merged(study: Path) -> None:
    one = copy_with(study, "one.db", [("d:q/a", "support")])
    with open_study(one) as store:
        store.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    two = Path(copy(one, study.with_name("two.db")))
    annotate("import", "one.db.csv", "--blind", "-d", two)
    for number, pair in enumerate([(one, two), (two, one)]):
        judge_command("studies", "merge", *pair, "--into", f"{number}.db")
        both = study.with_name(f"{number}.db")
        assert labels(both, "bob") == [("d:q/a", "support", "first", "import")]
        assert annotate("verify", "-d", both).exit_code == 0


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
    told = annotate("conflicts", "resolve", "d:q/z", "--keep", "latest", code=2).stderr
    assert "the study has no unit 'd:q/z'" in told
    told = annotate("conflicts", "resolve", "d:q/a", "--keep", "latest", "--annotator", "bob", code=2).stderr
    assert "no label of 'd:q/a' by bob is in conflict" in told
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
    result = document("agreement", "--field", "stance", "--json")
    assert any("2 labels from alice are in conflict" in told for told in result["fields"][0]["notes"])
    assert result["fields"][0]["conflicts"] == 2
    people = [m for m in result["measures"] if m["annotators"] == ["alice", "bob"]]
    pair = next(m for m in people if m["measure"] == "percent")
    # Both units were asked about, and neither has a label of alice.
    assert (pair["value"], pair["coverage"]) == (None, 0.0)
    told = annotate("report", "--task", "stance", "--fail-under", "verdict=trust", code=5)
    assert "2 labels in conflict" in told.stderr
    annotate("report", "--task", "stance", "-o", "report.json")
    assert checked(study.with_name("report.json").read_text())["conflicts"] == 2


def test_agreement_says_so_where_every_label_is_in_conflict(study: Path) -> None:
    for who in ("alice", "bob"):
        for label in ("support", "refute", "neutral"):
            rows = [("d:q/a", label), ("d:q/b", label)]
            annotate("import", sheet(study.with_name("1.csv"), rows, who), "--blind", "--new-people")
    for words in (("--field", "stance"), (), ("report",)):
        command = words if words == ("report",) else ("agreement", *words)
        told = annotate(*command, code=2 if words == ("report",) else 1).stderr
        assert "4 labels from alice, bob are in conflict" in told and "annotate conflicts list" in told


# What is adopted, in sheets and exports.


def test_a_sheet_leaves_out_units_that_adopted_labels_finished(study: Path) -> None:
    alone = annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "alice").stderr
    assert "alice: 0 to label" in alone
    failed = annotate("export", "main", "--to", "csv", "-o", "1.csv", code=1)
    assert "nothing is left to label" in failed.stderr
    annotate("batches", "new", "next", "relevant", "-n", "2", "--annotators", "alice")
    annotate("export", "next", "--to", "csv", "-o", "2.csv")
    assert study.with_name("2.csv").read_text().count("d:q/") == 2, "nobody said whether these are relevant"


def test_a_sheet_of_several_people_keeps_what_one_of_them_has_to_do(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "alice,bob")
    assert annotate("export", "main", "--to", "csv", "-o", "1.csv").exit_code == 0
    assert study.with_name("1.csv").read_text().count("d:q/") == 2
    annotate("export", "main", "--to", "csv", "--for", "alice", "-o", "2.csv", code=1)


def test_exported_labels_list_their_sources(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "alice")
    annotate("export", "main", "--to", "jsonl", "--labels", "-o", "out.jsonl")
    rows = [json.loads(line) for line in study.with_name("out.jsonl").read_text().splitlines()]
    assert [row["sources"] for row in rows] == [["batch:main", f"import:{_import(study)}"]] * 2
    # A label in conflict does not count, and has no source in the export either.
    sheet(study.with_name("2.csv"), [("d:q/a", "refute")])
    annotate("import", "2.csv", "--blind")
    annotate("export", "main", "--to", "jsonl", "--labels", "-o", "conflict.jsonl")
    rows = [json.loads(line) for line in study.with_name("conflict.jsonl").read_text().splitlines()]
    assert {row["unit"]: bool(row["sources"]) for row in rows} == {"d:q/a": False, "d:q/b": True}


def test_a_label_that_no_source_says_names_the_conflict(study: Path) -> None:
    sheet(study.with_name("2.csv"), [("d:q/a", "refute")])
    annotate("import", "2.csv", "--blind")
    told = annotate("conflicts", "resolve", "d:q/a", "--keep", "neutral", code=2).stderr
    assert all(
        word in told for word in ("alice", "'d:q/a'", "'stance'", "support, refute", "--field", "--annotator")
    )


# Verify, drawing, commands typed again.


def test_verify_finds_what_was_changed_behind_its_back(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "alice")
    with open_study(study) as store:
        assert verify(store) == []
        with store.transaction() as conn:
            conn.execute("UPDATE labels SET value = 'neutral' WHERE unit_id = 'd:q/a'")
            conn.execute("UPDATE assignments SET answers = '{}' WHERE unit_id = 'd:q/b'")
            conn.execute("UPDATE batch_units SET weight = 7")
            moved = "unit_id = 'd:q/b' AND source GLOB 'import:*'"
            conn.execute(f"UPDATE label_sources SET source = 'import:gone' WHERE {moved}")
        result = {(one.kind, one.stored) for one in verify(store)}
    assert {("label", "neutral (batch:main, import:" + _import(study) + ")"), ("log", "{}")} <= result
    # A row that was moved to another source is missing in its own.
    assert {what for what, _ in result} == {"label", "log", "weight", "source", "import"}
    assert "differences" in annotate("verify", code=1).stderr


def changed(study: Path, *statements: str) -> list[tuple[str, str, str]]:
    """(what, expected, stored) that verify finds after somebody has changed the file by hand, labels following their sources."""
    with open_study(study) as store:
        assert verify(store) == []
        with store.transaction() as conn:
            for statement in statements:
                assert conn.execute(statement).rowcount > 0, statement
    result = document("verify", code=1)["rows"]
    return [(row["what"], row["expected"], row["stored"]) for row in result]


def test_verify_finds_a_reason_that_was_changed(study: Path) -> None:
    result = changed(study, "UPDATE labels SET rationale = 'because' WHERE unit_id = 'd:q/a'")
    source = f"support (import:{_import(study)}"
    assert result == [("label", f"{source})", f"{source}, because)")]


@pytest.mark.parametrize("way", [(), ("--batch", "main")])
def test_verify_finds_an_imported_label_without_exposure(study: Path, way: tuple[str, ...]) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "carol")
    sheet(study.with_name("2.csv"), [("d:q/a", "refute")], "carol")
    annotate("import", "2.csv", "--blind", "--new-people", *way)
    with open_study(study) as store:
        assert verify(store) == []
        query = "SELECT sql FROM sqlite_master WHERE name = 'exposures_stay'"
        (trigger,) = store.conn.execute(query).fetchone()
        delete = "DELETE FROM exposures WHERE person = 'carol'"
        for statement in ("DROP TRIGGER exposures_stay", delete, trigger):
            store.conn.execute(statement)
        result = [(one.kind, one.where.split(", ")[1:]) for one in verify(store)]
    assert result == [("exposure", ["carol", "unit 'd:q/a'"])]


def test_verify_expects_no_exposure_of_a_policy(study: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "1", "--annotators", "bob,carol,dan")
    [(unit,)] = rows_of(study, "SELECT unit_id FROM batch_units")
    for who, label in (("bob", "support"), ("carol", "support"), ("dan", "refute")):
        annotate(
            "import", str(sheet(study.with_name("2.csv"), [(unit, label)], who)), "--batch", "main", "--blind"
        )
    annotate("batches", "policy", "main", "majority")
    assert labels(study, "adjudicated") == [(unit, "support", "first", "adjudication")]
    with open_study(study) as store:
        assert verify(store) == []


def test_verify_finds_rows_of_an_import_that_were_changed_deleted_or_added(study: Path) -> None:
    sheet(study.with_name("1.csv"), [("d:q/a", "support")], "bob")
    annotate("import", "1.csv", "--blind", "--new-people")
    sheet(study.with_name("2.csv"), [("d:q/a", "support")], "carol")
    annotate("import", "2.csv", "--assisted", "--new-people")
    result = changed(
        study,
        "UPDATE label_sources SET value = 'neutral' WHERE annotator_id = 'bob'",
        "UPDATE label_sources SET layer = 'first' WHERE annotator_id = 'carol'",
        "DELETE FROM label_sources WHERE unit_id = 'd:q/a' AND annotator_id = 'alice'",
        "INSERT INTO label_sources SELECT 'd:q/a', 'other', annotator_id, layer, repeat, source, 'neutral', NULL, NULL, "
        "given, stored FROM label_sources WHERE unit_id = 'd:q/b'",
    )
    assert sorted(result) == [
        ("import", "nothing", "neutral (first, given None)"),
        ("import", "support (assisted, given None)", "support (first, given None)"),
        ("import", "support (first, given None)", "neutral (first, given None)"),
        ("import", "support (first, given None)", "nothing"),
    ]
    assert labels(study, "bob")[0][1] == "neutral", "the label follows its changed source"


def test_a_label_that_is_declared_later_is_verified(study: Path) -> None:
    sheet(study.with_name("1.csv"), [("d:q/a", "support")], "bob")
    annotate("import", "1.csv", "--new-people")
    annotate("import", "1.csv", "--blind")
    assert labels(study, "bob") == [("d:q/a", "support", "first", "import")]
    assert annotate("verify").exit_code == 0


def test_verify_finds_a_vote_of_items_that_was_changed(judge: Callable[..., Done], tmp_path: Path) -> None:
    import_items(tmp_path, VOTED)
    result = changed(tmp_path / "study.db", "UPDATE label_sources SET value = 'refute'")
    assert result == [("import", "support (first, given None)", "refute (first, given None)")]


@pytest.mark.parametrize(
    "change",
    [
        # Both say that the unit stands for four, where two of two were drawn.
        "UPDATE batch_units SET probability = 0.25, weight = 4",
        "UPDATE batch_units SET probability = NULL, weight = NULL",
        "UPDATE batch_units SET probability = 0.25, weight = 4 WHERE unit_id = 'd:q/a'",
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_verify_finds_weights_that_do_not_add_up_to_what_was_drawn_from(
    judge: Callable[..., Done], study: Path, change: str, later: bool
) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob")
    if later:
        # The draw cannot be done again: there are more units by now. The plan says from how many it was.
        more = {"id": "r", "claim": "Ice is cold.", "passages": [{"id": "a", "text": "Yes."}]}
        import_items(study.parent, more)
    result = changed(study, change)
    assert {what for what, _, _ in result} == {"weight"}
    assert {expected for _, expected, _ in result} == {"1.0 (probability 1.0)"}


def test_weights_of_a_batch_that_grew_after_an_import_add_up(judge: Callable[..., Done], study: Path) -> None:
    # With this seed the unit that comes later is drawn last, so that the batch can grow.
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob", "--seed", "4")
    passages = [{"id": n, "text": f"{n}."} for n in "abcd"]
    import_items(study.parent, {"id": "r", "claim": "Ice is cold.", "passages": passages})
    with open_study(study) as store:
        assert extend_batch(store, "main", to=3).units == 1
        assert store.conn.execute("SELECT DISTINCT weight FROM batch_units").fetchall() == [(2.0,)]
    assert annotate("verify").exit_code == 0


OF_JUDGE = "SELECT l.unit_id, l.value FROM labels AS l JOIN runs ON run_id = annotator_id"


@pytest.mark.parametrize("mode", ["json", "codes"])
def test_verify_finds_a_label_of_a_judge_that_its_reply_does_not_give(study: Path, mode: str) -> None:
    more = ("--option", "logprobs=1") if mode == "codes" else ()
    judge_command("run", "stance", "-m", "scripted/hash", "--answers", mode, *more)
    before = dict(rows_of(study, OF_JUDGE))
    runs = "annotator_id IN (SELECT run_id FROM runs)"
    result = changed(
        study,
        f"UPDATE labels SET value = 'other' WHERE {runs} AND unit_id = 'd:q/a'",
        f"DELETE FROM labels WHERE {runs} AND unit_id = 'd:q/b'",
    )
    assert result == [("judge", before["d:q/a"], "other"), ("judge", before["d:q/b"], "nothing")]


def test_verify_finds_a_label_of_a_judge_without_a_judgement(study: Path) -> None:
    judge_command("run", "stance", "-m", "scripted/hash", "-n", "1")
    ((unit, value),) = rows_of(study, OF_JUDGE)
    other = "d:q/b" if unit == "d:q/a" else "d:q/a"
    result = changed(
        study,
        "INSERT INTO labels (unit_id, field, annotator_id, repeat, value) "
        f"SELECT '{other}', field, annotator_id, repeat, value FROM labels WHERE annotator_id IN (SELECT run_id FROM runs)",
    )
    assert result == [("judge", "nothing", value)]


def _import(study: Path) -> str:
    return str(rows_of(study, "SELECT import_id FROM label_imports")[0][0])


def test_units_of_a_draw_with_unequal_probabilities_stay_in_the_frame(study: Path) -> None:
    judge_command("run", "stance", "-m", "scripted/hash", "--answers", "codes", "--option", "logprobs=1")
    annotate("batches", "new", "hard", "stance", "-n", "1", "--draw", "least-sure", "--annotators", "bob")
    with sit(study, "hard", "bob") as desk:
        desk.label(1, "stance", "support")
        unit = desk.load(1).unit_id
    done = annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob")
    assert "bob had already labelled 1 of the drawn units" in done.stderr
    said = [row for row in labels(study, "bob") if row[0] == unit]
    assert said == [(unit, "support", "first", "batch, batch")]
    annotate("batches", "new", "next", "stance", "-n", "1", "--annotators", "bob", code=2)


def test_fresh_draws_other_units_and_says_so(study: Path) -> None:
    sheet(study.with_name("one.csv"), [("d:q/a", "support")], "dave")
    annotate("import", "one.csv", "--blind", "--new-people")
    done = annotate("batches", "new", "main", "stance", "-n", "1", "--annotators", "dave", "--fresh")
    assert "--fresh excludes 1 units" in done.stderr
    assert rows_of(study, "SELECT unit_id FROM batch_units") == [("d:q/b",)]
    with open_study(study) as store:
        assert extend_batch(store, "main", to=1).units == 0


def test_an_untouched_pack_of_somebody_without_units_is_nothing_new(study: Path, tmp_path: Path) -> None:
    annotate("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob")
    with open_study(study) as store:
        pack(store, "main", "bob", tmp_path / "bob.db")
    annotate("batches", "assign", "main", "--from", "bob", "--to", "carol")
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
    new = ("batches", "new", "main", "stance", "-n", "2", "--annotators", "bob")
    told = annotate(*new, "--repeats", "100%", code=2)
    assert "at most 50%" in told.stderr
