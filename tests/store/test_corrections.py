"""Corrections on purpose: what differs is listed, what is confirmed is logged, and labels for an old text do not count."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from annotate.leading.verify import verify
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.labels.scope import Scope, read_panel
from judge.store import Store
from judge.store.study import get_time
from tests.annotate.agreement_helpers import annotate
from tests.conftest import Done

Judge = Callable[..., Done]
TASK = """---
title: Verdict
unit: passage
inputs: [claim, passage]
questions:
  - field: side
    labels: [{value: support, key: s}, {value: refute, key: r}]
derive:
  role: {from: side, gold: truth, table: {"support|true": supporting, "refute|true": misleading,
    "support|false": misleading, "refute|false": supporting}}
---
Judge.
<!-- unit -->
{{ claim }}
{{ passage }}
{{ answer_cue }}
"""


def rows() -> list[dict[str, Any]]:
    """Four claims with two passages each, with gold on the claim."""
    return [
        {
            "id": f"q{i}",
            "claim": f"Claim {i}.",
            "gold": {"truth": "true"},
            "passages": [{"id": p, "text": f"Text {i}{p}."} for p in "ab"],
        }
        for i in range(4)
    ]


def write(path: Path, data: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in data))
    return path


@pytest.fixture
def study(tmp_path: Path, judge: Judge) -> Path:
    """A study whose eight units a judge labelled, and of which ann and bob labelled all, in a batch."""
    (tmp_path / "side.v1.md").write_text(TASK)
    judge("items", "import", "jsonl", write(tmp_path / "d.jsonl", rows()))
    (tmp_path / "script.jsonl").write_text('{"reply": "support"}\n')
    judge("run", "side.v1.md", "-m", "scripted/file", "--option", "script=script.jsonl")
    annotate("batches", "new", "b", "side", "-n", "8", "--annotators", "ann,bob")
    with open_study(tmp_path / "study.db") as store:
        for who in ("ann", "bob"):
            with Desk.open(store, "b", who) as desk:
                for position in range(1, 9):
                    desk.load(position)
                    desk.label(position, "side", "support")
    return tmp_path / "study.db"


def corrected(tmp_path: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    data = rows()
    change(data)
    return write(tmp_path / "d.jsonl", data)


def two_texts(data: list[dict[str, Any]]) -> None:
    data[0]["passages"][0]["text"] = "Text 0a, corrected."
    data[2]["passages"][1]["text"] = "Text 2b, corrected."


def counts(path: Path, field: str = "side") -> dict[str, int]:
    """Annotator -> the number of labels that estimates use."""
    with Store.open(path) as store:
        panel = read_panel(store, Scope(field))
        return {
            panel.kind(name): int((panel.ratings.column(name) >= 0).sum())
            for name in panel.ratings.annotators
        }


def found(path: Path) -> list[Any]:
    with open_study(path) as store:
        return verify(store)


def select(path: Path, query: str) -> list[Any]:
    with Store.open(path) as store:
        return [tuple(row) for row in store.conn.execute(query)]


def test_every_differing_row_is_listed_and_nothing_is_stored(study: Path, judge: Judge) -> None:
    file = corrected(study.parent, two_texts)
    before = select(study, "SELECT * FROM passages")
    done = judge("items", "import", "jsonl", file, code=1)
    assert "d.jsonl:1" in done.err and "d.jsonl:3" in done.err, "both lines, not the first only"
    assert "'Text 2b, corrected.'" in done.err and "--correct" in done.err and "--skip-bad" in done.err
    assert select(study, "SELECT * FROM passages") == before


def test_the_rest_of_the_file_is_imported_with_skip_bad(study: Path, judge: Judge) -> None:
    def change(data: list[dict[str, Any]]) -> None:
        two_texts(data)
        # A new passage of an item that has a changed one, and a new item.
        data[0]["passages"].append({"id": "c", "text": "New."})
        data.append({"id": "q9", "claim": "New claim.", "passages": [{"id": "a", "text": "x"}]})

    file = corrected(study.parent, change)
    done = judge("items", "import", "jsonl", file, "--skip-bad", "--json")
    (row,) = json.loads(done.out)["rows"]
    assert (row["items"], row["passages"], row["skipped"]) == (1, 2, 2)
    assert select(study, "SELECT text FROM passages WHERE passage_id IN ('d:q0/a', 'd:q0/c')") == [
        ("Text 0a.",),
        ("New.",),
    ]


def test_a_correction_is_shown_first_and_stored_with_yes(study: Path, judge: Judge) -> None:
    file = corrected(study.parent, two_texts)
    before = select(study, "SELECT * FROM passages")
    shown = judge("items", "import", "jsonl", file, "--correct", "--json", code=2)
    document = json.loads(shown.out)
    # Two units, each labelled by two people and one judge.
    assert document["outdated"] == {"units": 2, "people": 4, "judges": 2} and document["stored"] is False
    assert [(c["id"], c["old"], c["new"]) for c in document["corrections"]] == [
        ("d:q0/a", "Text 0a.", "Text 0a, corrected."),
        ("d:q2/b", "Text 2b.", "Text 2b, corrected."),
    ]
    assert "--yes" in shown.err and select(study, "SELECT * FROM passages") == before
    judge("items", "import", "jsonl", file, "--correct", "--yes")
    assert select(study, "SELECT kind, id, field, old, new FROM corrections") == [
        ("passage", "d:q0/a", "text", "Text 0a.", "Text 0a, corrected."),
        ("passage", "d:q2/b", "text", "Text 2b.", "Text 2b, corrected."),
    ]
    # Importing the file again changes nothing, because the study now has its texts.
    again = judge("items", "import", "jsonl", file, "--json")
    assert json.loads(again.out)["rows"][0]["unchanged"] == 4


def test_labels_of_a_changed_text_do_not_count_until_they_are_given_again(study: Path, judge: Judge) -> None:
    file = corrected(study.parent, two_texts)
    judge("items", "import", "jsonl", file, "--correct", "--yes")
    # Six of eight units: two texts changed.
    assert counts(study) == {"human": 6, "judge": 6}
    assert found(study) == []
    layers = select(
        study,
        "SELECT annotator_id, count(*) FROM labels WHERE layer = 'old_text' AND field = 'side' GROUP BY 1",
    )
    assert sorted(n for _, n in layers) == [2, 2, 2]
    # The same run asks only for the two units.
    done = judge("run", "side", "-m", "scripted/file", "--option", "script=script.jsonl", "--json")
    assert json.loads(done.out)["ok"] == 2
    with open_study(study) as store, Desk.open(store, "b", "ann") as desk:
        assert desk.counts()["open"] == 2
        while (position := desk.next_open()) is not None:
            assert desk.load(position).state.answers == {}, "the answer to the old text is not shown"
            assert "corrected" in desk.inputs(position)["passage"]
            desk.label(position, "side", "refute")
    assert found(study) == []
    with Store.open(study) as store:
        panel = read_panel(store, Scope("side"))
        assert int((panel.ratings.column("ann") >= 0).sum()) == 8
        assert int((panel.ratings.column("bob") >= 0).sum()) == 6
        assert [n.parameters["n"] for n in panel.notes if getattr(n, "code", "") == "old_text"] == [2]


def test_undo_after_a_correction_leaves_the_old_answer_alone(study: Path, judge: Judge) -> None:
    judge("items", "import", "jsonl", corrected(study.parent, two_texts), "--correct", "--yes")
    with open_study(study) as store, Desk.open(store, "b", "ann") as desk:
        position = desk.next_open()
        assert position is not None
        desk.label(position, "side", "refute")
        assert desk.undo() == position
        assert desk.state(position).answers == {}
    assert found(study) == [] and counts(study)["human"] == 6


def test_a_changed_claim_concerns_every_passage_and_a_closed_batch(study: Path, judge: Judge) -> None:
    def change(data: list[dict[str, Any]]) -> None:
        data[1]["claim"] = "Claim 1, corrected."

    annotate("batches", "close", "b", "-d", study)
    judge("items", "import", "jsonl", corrected(study.parent, change), "--correct", "--yes")
    # The two passages of the claim; the unit of the claim itself has no label.
    assert counts(study) == {"human": 6, "judge": 6} and found(study) == []


def test_gold_is_corrected_with_the_labels_that_follow_from_it(study: Path, judge: Judge) -> None:
    def change(data: list[dict[str, Any]]) -> None:
        data[1]["gold"]["truth"] = "false"

    query = "SELECT DISTINCT value FROM labels WHERE field = 'role' AND unit_id = 'd:q1/a'"
    assert select(study, query) == [("supporting",)]
    file = corrected(study.parent, change)
    assert "truth" in judge("items", "import", "jsonl", file, code=1).err
    judge("items", "import", "jsonl", file, "--correct", "--yes")
    assert select(study, "SELECT value FROM labels WHERE annotator_id = 'gold' AND unit_id = 'd:q1'") == [
        ("false",)
    ]
    # Everybody said support, which misleads about a false claim. Nobody has to label again, because no text changed.
    assert select(study, query) == [("misleading",)] and counts(study) == {"human": 8, "judge": 8}
    assert select(study, "SELECT kind, id, old, new FROM corrections") == [("gold", "d:q1", "true", "false")]
    assert found(study) == []


def test_a_ranking_is_corrected(study: Path, judge: Judge) -> None:
    run = study.parent / "mine.run"
    run.write_text("q0 Q0 a 1 2.0 mine\nq0 Q0 b 2 1.0 mine\nq1 Q0 a 1 2.0 mine\n")
    words = ("systems", "import", run, "--stage", "retrieve")
    judge(*words)
    run.write_text("q0 Q0 b 1 2.0 mine\nq0 Q0 a 2 1.0 mine\nq1 Q0 a 1 2.0 mine\n")
    assert "mine" in judge(*words, code=1).err
    judge(*words, "--correct", code=2)
    judge(*words, "--correct", "--yes")
    query = "SELECT passage_id FROM rankings WHERE item_id = 'd:q0' ORDER BY rank"
    assert select(study, query) == [("d:q0/b",), ("d:q0/a",)]
    ((old, new),) = select(study, "SELECT old, new FROM corrections")
    assert json.loads(old)[0][0] == "d:q0/a" and json.loads(new)[0][0] == "d:q0/b"


def test_what_decides_the_units_cannot_be_corrected(study: Path, judge: Judge) -> None:
    def change(data: list[dict[str, Any]]) -> None:
        data[1]["question_id"] = "another"

    done = judge("items", "import", "jsonl", corrected(study.parent, change), "--correct", "--yes", code=1)
    assert "question_id" in done.err and "new id" in done.err


def test_two_values_in_one_file_correct_nothing(study: Path, judge: Judge) -> None:
    def change(data: list[dict[str, Any]]) -> None:
        data.append({**data[0], "passages": [{"id": "a", "text": "One."}]})
        data.append({**data[0], "passages": [{"id": "a", "text": "Two."}]})

    done = judge("items", "import", "jsonl", corrected(study.parent, change), "--correct", "--yes", code=1)
    assert "d.jsonl:6" in done.err and select(study, "SELECT * FROM corrections") == []


def test_yes_needs_something_to_confirm(study: Path, judge: Judge) -> None:
    assert "--correct" in judge("items", "import", "jsonl", "d.jsonl", "--yes", code=2).err


def test_two_machines_with_the_same_correction_can_be_merged(
    study: Path, judge: Judge, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    with Store.open(study) as store:
        store.conn.execute("VACUUM INTO ?", [str(other)])
    file = corrected(study.parent, two_texts)
    judge("items", "import", "jsonl", file, "--correct", "--yes")
    # Without the correction on both sides the texts differ, which is a conflict.
    assert judge("studies", "merge", study, other, "--into", "m0.db", code=1)
    judge("items", "import", "jsonl", file, "--correct", "--yes", "-d", other)
    judge("studies", "merge", study, other, "--into", "m.db")
    assert counts(tmp_path / "m.db") == {"human": 6, "judge": 6} and found(tmp_path / "m.db") == []


def test_three_machines_that_correct_and_label_again_merge_in_any_order(
    study: Path, judge: Judge, tmp_path: Path
) -> None:
    """Each of three copies corrects the texts itself. On two of them, somebody labels the corrected units again."""
    file = corrected(study.parent, two_texts)
    copies = [tmp_path / f"copy{n}.db" for n in range(3)]
    for copy in copies:
        with Store.open(study) as store:
            store.conn.execute("VACUUM INTO ?", [str(copy)])

    def label_again(path: Path, who: str) -> None:
        labels = [
            {"unit": unit, "annotator": who, "field": "side", "label": "refute", "at": get_time()}
            for unit in ("d:q0/a", "d:q2/b")
        ]
        annotate("import", write(tmp_path / f"{who}.jsonl", labels), "--blind", "-d", path)

    for copy in copies:
        judge("items", "import", "jsonl", file, "--correct", "--yes", "-d", copy)
    # The same run goes on with the two units.
    judge("run", "side", "-m", "scripted/file", "--option", "script=script.jsonl", "-d", copies[0])
    label_again(copies[0], "ann")
    label_again(copies[1], "bob")
    query = "SELECT unit_id, annotator_id, layer, value FROM labels WHERE field = 'side' AND layer = 'first' ORDER BY 1, 2"
    results = []
    for order in permutations(copies):
        results.append(tmp_path / f"m{len(results)}.db")
        judge("studies", "merge", *order, "--into", results[-1])
    for first, second, third in permutations(copies):
        step = tmp_path / f"step{len(results)}.db"
        judge("studies", "merge", first, second, "--into", step)
        results.append(tmp_path / f"m{len(results)}.db")
        judge("studies", "merge", step, third, "--into", results[-1])
    for path in results:
        # Eight units for each of three annotators: six with the labels of before, and two that were labelled again, by people
        # with `refute`.
        assert counts(path) == {"human": 8, "judge": 8}, path
        assert Counter(row[3] for row in select(path, query)) == {"support": 20, "refute": 4}, path
        assert select(path, query) == select(results[0], query) and found(path) == []


@pytest.fixture
def fresh(study: Path, judge: Judge, tmp_path: Path) -> Path:
    """A study that had the corrected texts from the beginning, with labels that are older than the other study's correction.

    eve's three labels are imported, and eve labelled all units of a batch with `refute`.
    """
    file = corrected(study.parent, two_texts)
    path = tmp_path / "fresh.db"
    judge("items", "import", "jsonl", file, "-d", path)
    units = ("d:q0/a", "d:q0/b", "d:q1/a")
    labels = [
        {"unit": unit, "annotator": "fay", "field": "side", "label": "support", "at": get_time()}
        for unit in units
    ]
    annotate("import", write(tmp_path / "fay.jsonl", labels), "--new-people", "--blind", "-d", path)
    annotate(
        "batches", "new", "late", study.parent / "side.v1.md", "-n", "8", "--annotators", "eve", "-d", path
    )
    with open_study(path) as store, Desk.open(store, "late", "eve") as desk:
        for position in range(1, 9):
            desk.load(position)
            desk.label(position, "side", "refute")
    judge("items", "import", "jsonl", file, "--correct", "--yes", "-d", study)
    return path


@pytest.mark.parametrize("first", ["study", "fresh"])
def test_a_label_is_judged_by_the_corrections_of_its_own_study(
    study: Path, fresh: Path, judge: Judge, tmp_path: Path, first: str
) -> None:
    order = [study, fresh] if first == "study" else [fresh, study]
    judge("studies", "merge", *order, "--into", "m.db")
    merged = tmp_path / "m.db"
    query = "SELECT annotator_id, count(*) FROM labels WHERE layer = '{}' AND field = 'side' GROUP BY 1 ORDER BY 1"
    people = [row for row in select(merged, query.format("first")) if len(row[0]) == 3]
    # ann and bob labelled two of their eight units before the correction in their study.
    assert people == [("ann", 6), ("bob", 6), ("eve", 8), ("fay", 3)]
    old = [row for row in select(merged, query.format("old_text")) if len(row[0]) == 3]
    assert old == [("ann", 2), ("bob", 2)]
    assert found(merged) == []
    # eve's units are done, and those of ann are open again.
    with open_study(merged) as store:
        with Desk.open(store, "late", "eve") as desk:
            assert desk.counts()["open"] == 0 and desk.load(1).state.answers == {"side": "refute"}
        with Desk.open(store, "b", "ann") as desk:
            assert desk.counts()["open"] == 2
    # A pack of the merged study, and another merge, keep this.
    annotate("export", "late", "--for", "eve", "-o", tmp_path / "eve.db", "-d", merged)
    with open_study(tmp_path / "eve.db") as store, Desk.open(store, "late", "eve") as desk:
        assert desk.counts()["open"] == 0
    judge("studies", "merge", merged, fresh, "--into", "m2.db")
    assert select(tmp_path / "m2.db", query.format("old_text")) == select(merged, query.format("old_text"))

    # A correction of the merged study concerns everybody.
    def again(data: Any) -> None:
        two_texts(data)
        data[0]["passages"][0]["text"] = "Text 0a, corrected twice."

    judge("items", "import", "jsonl", corrected(tmp_path, again), "--correct", "--yes", "-d", merged)
    assert ("fay", 1) in select(merged, query.format("old_text")) and found(merged) == []


def test_verify_finds_a_corrected_text_that_was_changed_back(study: Path, judge: Judge) -> None:
    judge("items", "import", "jsonl", corrected(study.parent, two_texts), "--correct", "--yes")
    with Store.open(study) as store:
        store.conn.execute("UPDATE passages SET text = 'Text 0a.' WHERE passage_id = 'd:q0/a'")
    assert [(f.kind, f.where, f.stored) for f in found(study)] == [
        ("correction", "passage 'd:q0/a', text", "Text 0a.")
    ]


def test_verify_finds_a_corrected_unit_that_lost_its_mark(study: Path, judge: Judge) -> None:
    judge("items", "import", "jsonl", corrected(study.parent, two_texts), "--correct", "--yes")
    with Store.open(study) as store:
        store.conn.execute("DROP TRIGGER corrected_units_stay")
        store.conn.execute("DELETE FROM corrected_units WHERE unit_id = 'd:q0/a'")
        assert ("correction", "unit 'd:q0/a'") in [(f.kind, f.where) for f in verify(store)]


def test_verify_finds_corrected_gold_that_was_changed(study: Path, judge: Judge) -> None:
    def false(data: Any) -> None:
        data[1]["gold"]["truth"] = "false"

    judge("items", "import", "jsonl", corrected(study.parent, false), "--correct", "--yes")
    assert found(study) == []
    with Store.open(study) as store:
        store.conn.execute(
            "UPDATE labels SET value = 'true' WHERE annotator_id = 'gold' AND unit_id = 'd:q1'"
        )
        changed = [(f.where, f.expected, f.stored) for f in verify(store) if f.kind == "correction"]
    assert changed == [("gold 'd:q1', truth", "false", "true")]


def test_votes_of_a_row_with_another_text_are_not_labels_of_the_study_s_text(
    tmp_path: Path, judge: Judge
) -> None:
    def rows(text: str, **votes: str) -> Path:
        item = {"id": "1", "claim": "C.", "passages": [{"id": "a", "text": text, "votes": {"stance": votes}}]}
        file = tmp_path / f"{text}{len(votes)}.jsonl"
        file.write_text(json.dumps(item) + "\n", encoding="utf-8")
        return file

    path = tmp_path / "q.db"
    judge("items", "import", "jsonl", rows("T.", ann="support"), "--dataset", "d", "-d", path)
    other = rows("T2.", ann="refute", dan="refute")
    judge("items", "import", "jsonl", other, "--dataset", "d", "--skip-bad", "-d", path, code=None)
    query = "SELECT annotator_id, layer, value FROM labels ORDER BY 1"
    assert select(path, query) == [("ann", "first", "support")]
    judge("items", "import", "jsonl", other, "--dataset", "d", "--correct", "--yes", "-d", path)
    # Imported again after the correction, the vote of a new person is a label of the new text.
    judge("items", "import", "jsonl", rows("T2.", dan="refute"), "--dataset", "d", "-d", path)
    assert select(path, query) == [("ann", "old_text", "support"), ("dan", "first", "refute")]


def test_text_and_gold_of_a_row_are_corrected_together(study: Path, judge: Judge) -> None:
    def change(data: list[dict[str, Any]]) -> None:
        data[1]["claim"] = "Another claim."
        data[1]["gold"]["truth"] = "false"

    file = corrected(study.parent, change)
    told = judge("items", "import", "jsonl", file, code=1).err
    assert "claim" in told and "truth" in told
    judge("items", "import", "jsonl", file, "--correct", "--yes")
    assert set(select(study, "SELECT kind, new FROM corrections")) == {
        ("item", "Another claim."),
        ("gold", "false"),
    }
    # The same file brings nothing more.
    judge("items", "import", "jsonl", file)


def votes_file(path: Path, text: str, gold: str = "support", **votes: str) -> Path:
    """One passage with a gold label and votes."""
    passage = {"id": "a", "text": text, "gold": {"stance": gold}, "votes": {"stance": votes}}
    return write(path, [{"id": "1", "claim": "C.", "passages": [passage]}])


def test_an_import_ends_with_five_counts_also_if_everything_is_stored(tmp_path: Path, judge: Judge) -> None:
    path = tmp_path / "q.db"
    file = votes_file(tmp_path / "d.jsonl", "T.", ann="support", bob="refute")
    told = judge("items", "import", "jsonl", file, "-d", path).err
    # Two votes and one gold label.
    assert "3 rows read: 3 stored, 0 already there, 0 in conflict, 0 quarantined, 0 left out" in told


def test_a_preview_of_a_correction_says_what_would_be_stored(tmp_path: Path, judge: Judge) -> None:
    path = tmp_path / "q.db"
    judge("items", "import", "jsonl", votes_file(tmp_path / "d.jsonl", "T."), "-d", path)
    file = votes_file(tmp_path / "d.jsonl", "T.", "refute", ann="support")
    told = judge("items", "import", "jsonl", file, "--correct", "-d", path, code=2).err
    assert "2 rows read: 2 would be stored" in told
    told = judge("items", "import", "jsonl", file, "--correct", "--yes", "-d", path).err
    assert "2 rows read: 2 stored" in told


def test_a_row_that_is_skipped_for_a_vote_corrects_nothing(tmp_path: Path, judge: Judge) -> None:
    path = tmp_path / "q.db"
    judge("items", "import", "jsonl", votes_file(tmp_path / "d.jsonl", "T.", ann="support"), "-d", path)
    # The row has other gold, and a vote that contradicts the same person's vote in the same file format.
    file = votes_file(tmp_path / "d.jsonl", "T.", "refute", ann="refute")
    for options in (["--skip-bad"], ["--skip-bad", "--correct", "--yes"]):
        done = judge("items", "import", "jsonl", file, *options, "--json", "-d", path)
        (row,) = json.loads(done.out)["rows"]
        assert (row["votes"]["read"], row["votes"]["left_out"]) == (2, 2)
        assert select(path, "SELECT value FROM labels WHERE annotator_id = 'gold'") == [("support",)]


@pytest.mark.parametrize("value", ["support", "refute"])
def test_a_vote_for_a_corrected_text_is_stored_beside_the_old_one(
    tmp_path: Path, judge: Judge, value: str
) -> None:
    path = tmp_path / "q.db"
    judge("items", "import", "jsonl", votes_file(tmp_path / "d.jsonl", "T.", ann="support"), "-d", path)
    file = votes_file(tmp_path / "d.jsonl", "T2.", ann=value)
    judge("items", "import", "jsonl", file, "--correct", "--yes", "-d", path)
    query = "SELECT layer, value FROM labels WHERE annotator_id = 'ann'"
    assert select(path, query) == [("old_text", "support")]
    told = judge("items", "import", "jsonl", file, "-d", path).err
    if value == "support":
        # The corrected file has all old votes, too, so an equal vote may be a copy.
        assert "2 rows read: 0 stored, 1 already there" in told and "before its correction" in told
        assert select(path, query) == [("old_text", "support")]
        label = {"unit": "d:1/a", "annotator": "ann", "field": "stance", "label": value, "at": get_time()}
        annotate("import", write(tmp_path / "again.jsonl", [label]), "--from", "jsonl", "--blind", "-d", path)
    else:
        assert "2 rows read: 1 stored, 1 already there" in told
    assert select(path, query) == [("first", value)] and found(path) == []
    # Imported once more, the file changes nothing.
    judge("items", "import", "jsonl", file, "-d", path)
    assert select(path, query) == [("first", value)]
