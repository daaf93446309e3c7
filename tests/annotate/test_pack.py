"""A batch on two machines: what the packed file holds, and its labels back."""

import json
import shutil
from pathlib import Path

import pytest

from annotate.exchange.gate import accept
from annotate.exchange.quarantine import drop, listing
from annotate.leading.lead import close_batch
from annotate.packing.conflicts import settle_conflict
from annotate.packing.merge import merge
from annotate.packing.pack import pack
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.errors import AdjudgeError, BadInput, StudyError, UsageError
from judge.prompts.load import load_task
from tests.store.helpers import without_trigger
from tests.tui.studies import CANARY, batch, build, judge_all, labels, rows_of


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = build(tmp_path / "s.db", items=8)
    judge_all(path)
    batch(path, n=8, annotators=["alice", "bob"], training=2, attention=0.2, repeats=0.2)
    with open_study(path) as store, Desk.open(store, "pilot", "bob") as desk:
        for position in range(1, 8):
            desk.label(position, "stance", "refute")
            desk.note(position, "BOBSAYS")
    return path


def packed(study: Path) -> Path:
    out = study.with_name("alice.db")
    with open_study(study) as store:
        pack(store, "pilot", "alice", out)
    return out


def test_the_raw_bytes_hold_nothing_that_is_hidden(study: Path) -> None:
    out = packed(study)
    raw = out.read_bytes()
    for secret in (CANARY, "BOBSAYS", "scripted/test", "claim_verdict", "Question 1?"):
        assert secret.encode() not in raw, secret
    with open_study(out) as store:
        # The only stored text is that of the guidelines, which the person reads.
        task = load_task("stance")
        assert store.conn.execute("SELECT text FROM prompts").fetchall() == [(task.spec.guidelines,)]
        for table in ("judgements", "runs", "requests", "batch_units", "labels"):
            assert store.conn.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    assert rows_of(out, "SELECT annotator_id, kind FROM annotators") == [("alice", "human")]
    assert rows_of(out, "SELECT DISTINCT meta, correct, question FROM items") == [("{}", None, None)]
    assert set(rows_of(out, "SELECT role FROM assignments")) == {("sample",), ("training",)}


def test_labels_come_back_once(study: Path) -> None:
    out = packed(study)
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        for position in range(1, desk.total + 1):
            desk.label(position, "stance", "neutral")
        desk.undo()
        desk.flag(3, "odd")
    with open_study(study) as store:
        first = merge(store, out)
        assert first.events and first.conflicts == []
        after = labels(study)
        again = merge(store, out)
        assert again.events == 0 and labels(study) == after
        flag = store.conn.execute(
            "SELECT flag FROM assignments WHERE annotator_id = 'alice' AND position = 3"
        ).fetchone()
        assert flag == ("odd",)
    assert set(after.values()) == {"neutral"}
    query = (
        "SELECT count(*) FROM assignments WHERE annotator_id = 'alice' AND status = 'done' "
        "AND role IN ('sample', 'repeat')"
    )
    assert rows_of(study, query) == [(len(after),)]


def test_work_goes_on_in_the_packed_file_where_it_stopped(study: Path) -> None:
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(1, "stance", "support")
    with open_study(packed(study)) as store, Desk.open(store, "pilot", "alice") as desk:
        assert desk.next_open() == 2
        assert desk.undo() == 1


def test_a_label_given_before_the_judge_was_shown_is_in_the_pack(study: Path) -> None:
    """Before: triggers of the session that settled the pack took it for one given afterwards, and left it out."""
    batch(study, "stance", name="shown", n=2, annotators=["alice"], reveal=True, allow_exposed=True)
    with open_study(study) as store:
        with Desk.open(store, "shown", "alice") as desk:
            desk.label(1, "stance", "refute")
            desk.lock(1, "judge")
        pack(store, "shown", "alice", study.with_name("alice.db"))
    assert list(labels(study.with_name("alice.db")).values()) == ["refute"]


def test_what_would_be_lost_is_named_and_left_and_the_rest_comes_together(study: Path) -> None:
    """Changed in both places after packing: what stands here is not overwritten without a word."""
    out = packed(study)
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(4, "stance", "neutral")
        desk.label(5, "stance", "neutral")
        desk.note(6, "theirs")
        desk.flag(7, "odd there")
        desk.note(8, "typed and removed")
        desk.note(8, None)
        desk.note(9, "only there")
        desk.label(9, "stance", "refute")
        desk.note(10, "theirs, taken back")
        desk.undo()
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(4, "stance", "support")
        desk.note(6, "mine")
        desk.label(6, "stance", "support")
        desk.flag(7, "odd here")
        desk.note(8, "mine")
        desk.flag(9, "only here")
        desk.note(10, "mine")
    with open_study(study) as store:
        done = merge(store, out)
        assert done.conflicts == [
            "unit 4: support in the study, but neutral in the file",
            "unit 6: the note in the study and in the file differ",
            "unit 7: the flag in the study and in the file differ",
            "unit 8: the note in the study and in the file differ",
        ]
        query = (
            "SELECT position, answers ->> 'stance', note, flag FROM assignments WHERE annotator_id = 'alice' "
            "AND position BETWEEN 4 AND 10 ORDER BY position"
        )
        assert store.conn.execute(query).fetchall() == [
            (4, "support", None, None),
            (5, "neutral", None, None),
            (6, "support", "mine", None),
            (7, None, None, "odd here"),
            (8, None, "mine", None),
            (9, "refute", "only there", "only here"),
            (10, None, "mine", None),
        ]
        assert merge(store, out).events == 0, "again nothing new"
        unit = "SELECT unit_id FROM assignments WHERE annotator_id = 'alice' AND position = 6"
        wait = [
            int(row["id"]) for row in listing(store) if row["unit"] == store.conn.execute(unit).fetchone()[0]
        ]
        accept(store, wait, merged=settle_conflict)
        assert store.conn.execute(query).fetchall()[2] == (6, "support", "theirs", None), "the file's note"


def test_files_that_are_no_packed_batch(study: Path, tmp_path: Path) -> None:
    other = build(tmp_path / "other.db")
    with open_study(study) as store:
        with pytest.raises(BadInput, match="no packed batch"):
            merge(store, other)
        with pytest.raises(AdjudgeError, match="no such study"):
            merge(store, tmp_path / "nothing.db")
        with pytest.raises(UsageError, match="no units for 'dora'"):
            pack(store, "pilot", "dora", tmp_path / "d.db")
        with pytest.raises(UsageError, match="already exists"):
            pack(store, "pilot", "alice", other)
        close_batch(store, "pilot")
        with pytest.raises(UsageError, match="was closed"):
            pack(store, "pilot", "alice", tmp_path / "a.db")


def test_units_given_later_do_not_keep_the_labels_out(study: Path) -> None:
    out = packed(study)
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(4, "stance", "neutral")
    with open_study(study) as store:
        # What an import does for labels of a person who was not asked for that unit.
        free = "SELECT unit_id FROM units WHERE kind = 'passage' AND unit_id NOT IN (SELECT unit_id FROM assignments)"
        unit = store.conn.execute(free).fetchone()[0]
        with store.transaction() as conn:
            conn.execute(
                "INSERT INTO assignments (batch, annotator_id, position, unit_id, role) VALUES ('pilot', 'alice', 99, ?, 'sample')",
                [unit],
            )
        assert merge(store, out).conflicts == []
    assert "neutral" in labels(study).values()


def test_a_pack_that_fails_leaves_nothing(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise StudyError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr("annotate.packing.pack.copy_events", fail)
        with pytest.raises(StudyError):
            packed(study)
    assert [p.name for p in study.parent.iterdir() if "alice" in p.name] == []
    assert packed(study).exists()


def tampered(out: Path, *statements: str) -> None:
    with open_study(out) as store:
        with Desk.open(store, "pilot", "alice") as desk:
            desk.label(4, "stance", "neutral")
            desk.label(5, "stance", "refute")
        with store.transaction() as conn, without_trigger(conn, "events_keep"):
            for statement in statements:
                conn.execute(statement)


TAMPERED = [
    ("UPDATE events SET kind = 'revise', field = 'stance' WHERE position = 5", "event 2, unit 5: .*'revise'"),
    ("UPDATE events SET reason = 'blind' WHERE position = 5", "event 2, unit 5: .*blind"),
    ("UPDATE events SET active_ms = -1 WHERE position = 5", "event 2, unit 5: -1 is not a valid"),
    ("UPDATE events SET at = 'soon' WHERE position = 5", "event 2, unit 5"),
    ("UPDATE events SET kind = 'undo', undoes = (SELECT event_id FROM events WHERE position = 4) WHERE position = 5",
     "event 2, unit 5: does not undo"),
    ("UPDATE events SET kind = 'span', value = '[[\"passage\", 9, 3]]' WHERE position = 5", "event 2, unit 5: evidence"),
    ("UPDATE events SET value = 'perhaps' WHERE position = 5", r"alice\.db: field 'stance': event 2, unit 5: 'perhaps' is not"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "told"), TAMPERED, ids=range(len(TAMPERED)))
def test_a_tampered_row_is_named_and_nothing_comes_in(study: Path, statement: str, told: str) -> None:
    out = packed(study)
    tampered(out, statement)
    before = labels(study), rows_of(study, "SELECT count(*) FROM events")
    with open_study(study) as store, pytest.raises(BadInput, match=told):
        merge(store, out)
    assert (labels(study), rows_of(study, "SELECT count(*) FROM events")) == before


def test_a_row_changed_after_packing_is_named(study: Path) -> None:
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(4, "stance", "support")
    out = packed(study)
    with open_study(out) as store, store.transaction() as conn, without_trigger(conn, "events_keep"):
        conn.execute("UPDATE events SET value = 'refute'")
    with open_study(study) as store, pytest.raises(BadInput, match="event 1, unit 4: was changed after"):
        merge(store, out)


def test_labels_of_an_edited_text_wait(study: Path) -> None:
    out = packed(study)
    tampered(
        out,
        "UPDATE passages SET text = text || ' Not.' WHERE passage_id = (SELECT unit_id FROM assignments WHERE position = 5)",
    )
    with open_study(study) as store:
        done = merge(store, out)
        assert done.conflicts == ["unit 5: its text in the file differs from that in the study"]
        assert done.events == 1
        assert [row["code"] for row in listing(store)] == ["text"]
    assert set(labels(study).values()) == {"neutral"}


def test_what_was_taken_back_in_one_place_is_a_change_like_any_other(study: Path) -> None:
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(4, "stance", "neutral")
        desk.label(4, "stance", "refute")
    files = {"alice": packed(study), "bob": study.with_name("bob.db")}
    with open_study(study) as store:
        pack(store, "pilot", "bob", files["bob"])
        with Desk.open(store, "pilot", "alice") as desk:
            desk.label(4, "stance", "support")
        with Desk.open(store, "pilot", "bob") as desk:
            assert (desk.undo(), desk.undo()) == (7, 7), "the note and the label"
    with open_study(files["alice"]) as there, Desk.open(there, "pilot", "alice") as desk:
        assert desk.undo() == 4
    with open_study(files["bob"]) as there, Desk.open(there, "pilot", "bob") as desk:
        desk.skip(7)
    query = (
        "SELECT status, answers ->> 'stance', note FROM assignments WHERE (annotator_id, position) IN "
        "(('alice', 4), ('bob', 7)) ORDER BY position"
    )
    with open_study(study) as store:
        told = {person: merge(store, file).conflicts for person, file in files.items()}
        assert told == {
            "alice": ["unit 4: support in the study, but neutral in the file"],
            "bob": ["unit 7: open in the study, but skipped in the file"],
        }
        held = [json.loads(row[0]) for row in store.conn.execute("SELECT response FROM quarantine")]
        accept(store, [int(row["id"]) for row in listing(store)], merged=settle_conflict)
        settled = store.conn.execute(query).fetchall()
        assert settled == [("done", "neutral", None), ("skipped", "refute", None)]
        for payload in held:
            settle_conflict(store, payload)  # as after a kill before the decision was stored
        assert store.conn.execute(query).fetchall() == settled


def test_what_a_lead_dropped_stays_out_and_what_contradicts_nothing_any_more_comes_in(study: Path) -> None:
    out = packed(study)
    for position in (4, 5):
        with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
            desk.label(position, "stance", "neutral")
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(4, "stance", "support")
        desk.label(5, "stance", "support")
    with open_study(study) as store:
        merge(store, out)
        first = int(listing(store)[0]["id"])
        drop(store, [first], "a slip")
        with pytest.raises(UsageError, match="already"):
            drop(store, [first])
        with Desk.open(store, "pilot", "alice") as desk:
            assert (desk.undo(), desk.undo()) == (5, 4), "nothing here contradicts any more"
        with open_study(out) as there, Desk.open(there, "pilot", "alice") as desk:
            desk.note(5, "more")
        again = merge(store, out)
        assert (again.events, again.conflicts, listing(store)) == (2, [], [])
        query = "SELECT answers ->> 'stance', note FROM assignments WHERE annotator_id = 'alice' AND position IN (4, 5)"
        assert sorted(store.conn.execute(query), key=str) == [("neutral", "more"), (None, None)]


def test_a_pack_does_not_say_which_units_are_repeats(tmp_path: Path) -> None:
    path = build(tmp_path / "r.db", items=8)
    batch(path, n=10, repeats=0.3)
    out = tmp_path / "alice.db"
    with open_study(path) as store:
        pack(store, "pilot", "alice", out)
    with open_study(out) as store:
        roles = store.conn.execute("SELECT DISTINCT role, repeat FROM assignments").fetchall()
        assert roles == [("sample", 0)]
        with Desk.open(store, "pilot", "alice") as desk:
            for position in range(1, 14):
                desk.label(position, "stance", ("support", "refute")[position % 2])
    with open_study(path) as store:
        assert merge(store, out).units == 13
        repeats = store.conn.execute(
            "SELECT position, unit_id FROM assignments WHERE role = 'repeat'"
        ).fetchall()
    # 30 % of 10 units are shown twice; each answer comes back as what it is here.
    assert len(repeats) == 3
    for position, unit in repeats:
        assert labels(path)[unit, "stance", "first", 1] == ("support", "refute")[position % 2]


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0), (1, 0, 1)])
def test_the_order_in_which_files_come_back_says_nothing(study: Path, order: tuple[int, ...]) -> None:
    """Before: an earlier copy of the file, merged first, held back what contradicts nothing in the later one."""
    out = packed(study)
    with open_study(study) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(4, "stance", "support")
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        desk.label(4, "stance", "neutral")
    with open_study(out) as store:
        store.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    earlier = out.with_name("earlier.db")
    shutil.copy(out, earlier)
    with open_study(out) as store, Desk.open(store, "pilot", "alice") as desk:
        assert desk.undo() == 4
    files = (earlier, out)
    with open_study(study) as store:
        for number in order:
            merge(store, files[number])
        assert listing(store) == []
        query = "SELECT answers ->> 'stance' FROM assignments WHERE annotator_id = 'alice' AND position = 4"
        assert store.conn.execute(query).fetchone() == ("support",)
