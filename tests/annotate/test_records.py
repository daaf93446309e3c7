"""What a report says of draws, versions and guidelines comes from what was stored, also after a merge."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from annotate.guidelines import clarify
from annotate.leading.verify import verify
from annotate.report import ReportOptions, build
from annotate.sitting.desk import Desk, batch_info
from annotate.store import open_study
from judge.document.blocks import Document, Facts, Paragraph, Table
from judge.errors import BadInput, StudyError, UsageError
from judge.store import Store
from tests.annotate.agreement_helpers import annotate
from tests.annotate.report_helpers import section
from tests.conftest import Done

Judge = Callable[..., Done]
TASK = """---
title: Verdict
unit: passage
inputs: [claim, passage]
questions:
  - field: side
    labels: [{{value: support, key: s}}, {{value: refute, key: r}}]
guidelines: |
  {0}
---
Judge.
<!-- unit -->
{{{{ claim }}}}
{{{{ passage }}}}
{{{{ answer_cue }}}}
"""


@pytest.fixture
def folder(tmp_path: Path, judge: Judge) -> Path:
    """A study of 40 units, with two versions of a task that differ in their guidelines."""
    (tmp_path / "side.v1.md").write_text(TASK.format("The old guidelines."))
    (tmp_path / "side.v2.md").write_text(TASK.format("The new guidelines."))
    rows = [
        {
            "id": f"q{i}",
            "claim": f"Claim {i}.",
            "passages": [{"id": p, "text": f"Text {i}{p}."} for p in "ab"],
        }
        for i in range(20)
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge("items", "import", "jsonl", "d.jsonl")
    judge("run", "side.v1.md", "-m", "scripted/hash")
    return tmp_path


def draw(name: str, task: str, *more: str, db: Path) -> None:
    annotate("batches", "new", name, task, "--annotators", "ann,bob", *more, "-d", db)


def label(path: Path, batch: str, person: str, n: int, value: str = "support") -> None:
    with open_study(path) as store, Desk.open(store, batch, person) as desk:
        for _ in range(n):
            position = desk.next_open()
            assert position is not None
            desk.load(position)
            desk.label(position, "side", value)


def report(path: Path, **options: str) -> Document:
    with Store.open(path, create=False) as store:
        return build(store, ReportOptions(**options))  # type: ignore[arg-type]


def facts(document: Document, key: str) -> dict[str, str]:
    blocks = section(document, "sampling").blocks
    return dict(next(b for b in blocks if isinstance(b, Facts) and b.key == key).rows)


def texts(document: Document, style: str) -> list[str]:
    return [
        b.text for b in section(document, "sampling").blocks if isinstance(b, Paragraph) and b.style == style
    ]


def units(path: Path, batch: str) -> set[str]:
    with closing(sqlite3.connect(path)) as conn:
        return {u for (u,) in conn.execute("SELECT unit_id FROM batch_units WHERE batch = ?", [batch])}


def found(path: Path) -> list[str]:
    with open_study(path) as store:
        return [f"{finding.kind} {finding.where}" for finding in verify(store)]


@pytest.fixture
def merged(folder: Path, judge: Judge) -> Path:
    """Batches mA and mB of 25 units each, drawn from the same 40 units on two machines, and the merged study."""
    one, two = folder / "study.db", folder / "two.db"
    with Store.open(one) as store:
        store.conn.execute("VACUUM INTO ?", [str(two)])
    draw("mA", "side.v1.md", "-n", "25", "--seed", "1", db=one)
    draw("mB", "side.v1.md", "-n", "25", "--seed", "2", db=two)
    label(one, "mA", "ann", 25)
    label(two, "mB", "bob", 25)
    judge("studies", "merge", one, two, "--into", "m.db")
    return folder / "m.db"


def test_a_draw_on_another_machine_did_not_leave_out_what_it_did_not_know(merged: Path) -> None:
    document = report(merged)
    for batch, seed in (("mA", 1), ("mB", 2)):
        assert facts(document, f"batch_{batch}")["sampling"] == f"a random sample (seed {seed})"
    # 25 + 25 units of 40: at least ten are in both.
    both = units(merged, "mA") & units(merged, "mB")
    shared = facts(document, "batch_mB")["units that are also in other batches"]
    assert len(both) > 12 and shared == f"{len(both)} units in mA"
    (table,) = [
        b for b in section(document, "sampling").blocks if isinstance(b, Table) and b.key == "shared_units"
    ]
    assert {tuple(row) for row in table.rows} == {
        (unit, "mA, mB") for unit in both
    } and table.count_shown() == 10
    blocks = section(report(merged, batch="mB"), "sampling").blocks
    (of_one,) = [b for b in blocks if isinstance(b, Table) and b.key == "shared_units"]
    assert len(of_one.rows) == len(both)
    (apart,) = [t for t in texts(document, "note") if "apart" in t]
    assert "mA and mB" in apart and "not one" in apart
    assert found(merged) == []


def test_a_draw_that_knew_the_earlier_batch_says_so(folder: Path) -> None:
    path = folder / "study.db"
    draw("first", "side.v1.md", "-n", "10", db=path)
    draw("second", "side.v1.md", "-n", "10", db=path)
    document = report(path)
    assert "in no earlier batch (first)" in facts(document, "batch_second")["sampling"]
    assert not any("apart" in t for t in texts(document, "note"))
    assert not units(path, "first") & units(path, "second")
    # The batch can be extended after a merge, too, because its frame is that of the draw.
    annotate("batches", "extend", "second", "--to", "12", "-d", path)
    assert found(path) == []


def test_a_merged_batch_can_be_extended(merged: Path) -> None:
    annotate("batches", "extend", "mB", "--to", "27", "-d", merged)
    assert len(units(merged, "mB")) == 27 and found(merged) == []


def test_verify_finds_a_seed_that_is_not_that_of_the_draw(merged: Path) -> None:
    with closing(sqlite3.connect(merged)) as conn, conn:
        conn.execute("UPDATE batches SET seed = 3 WHERE batch = 'mB'")
    assert found(merged) == ["draw batch 'mB'"]


def test_verify_finds_a_draw_that_left_out_what_it_says(merged: Path) -> None:
    with closing(sqlite3.connect(merged)) as conn, conn:
        conn.execute(
            "UPDATE batches SET options = json_set(options, '$.after', json('[\"mA\"]')) WHERE batch = 'mB'"
        )
    both = units(merged, "mA") & units(merged, "mB")
    assert {f"draw batch 'mB', unit '{unit}'" for unit in both} <= set(found(merged))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE batches SET seed = 9, options = json_set(options, '$.seed', 9) WHERE batch = 'second'",
        "UPDATE batches SET options = json_set(options, '$.after', json('[]')) WHERE batch = 'second'",
        "UPDATE batch_units SET unit_id = (SELECT unit_id FROM units WHERE kind = 'passage' AND unit_id NOT IN "
        "(SELECT unit_id FROM batch_units)) WHERE (batch, unit_id) = ('second', (SELECT min(unit_id) FROM batch_units "
        "WHERE batch = 'second'))",
    ],
    ids=["seed", "earlier batches", "unit"],
)
def test_verify_finds_units_that_the_recorded_draw_does_not_give(folder: Path, change: str) -> None:
    path = folder / "study.db"
    draw("first", "side.v1.md", "-n", "10", db=path)
    draw("second", "side.v1.md", "-n", "10", db=path)
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute(change)
    assert any(line.startswith("draw batch 'second'") and "units such as" in line for line in found(path))


@pytest.fixture
def versions(folder: Path) -> Path:
    """Twelve labels under version 1, and four under version 2."""
    path = folder / "study.db"
    for batch, task, n in (("one", "side.v1.md", 6), ("two", "side.v2.md", 2)):
        draw(batch, task, "-n", str(n), db=path)
        for who in ("ann", "bob"):
            label(path, batch, who, n)
    return path


def test_labels_are_shown_per_version_with_their_own_guidelines(versions: Path) -> None:
    document = report(versions)
    assert facts(document, "versions") == {"side.v1": "12 labels", "side.v2": "4 labels"}
    assert [t for t in texts(document, "quote") if "guidelines" in t] == [
        "The new guidelines.",
        "The old guidelines.",
    ]
    # One batch has one version, and only its guidelines.
    of_one = report(versions, batch="one")
    assert [t for t in texts(of_one, "quote") if "guidelines" in t] == ["The old guidelines."]


@pytest.mark.parametrize(("task", "units"), [("side.v1", 6), ("side.v2", 2), ("side", 8)])
def test_agreement_counts_the_labels_of_the_named_version(versions: Path, task: str, units: int) -> None:
    words = ("agreement", "--interval", "none", "--measure", "percent", "--json", "-d", versions)
    (field,) = json.loads(annotate(*words, "--task", task).stdout)["fields"]
    assert {a["annotator"]: a["n_labels"] for a in field["annotators"] if a["kind"] == "human"} == {
        "ann": units,
        "bob": units,
    }
    # The judge ran on version 1 only.
    assert [a["kind"] for a in field["annotators"]].count("judge") == (task != "side.v2")
    (note,) = [n for n in field["notes"] if "versions" in n]
    assert (
        "side.v1 (12)" in note
        and "side.v2 (4)" in note
        and (f"only those under {task}" in note) == (units < 8)
    )
    one = json.loads(annotate(*words, "--batch", "one").stdout)
    assert not any("version" in n for n in one["fields"][0]["notes"])


def test_labels_without_a_batch_are_of_no_version(versions: Path) -> None:
    (versions.parent / "x.csv").write_text(
        "unit,annotator,field,label\n" + "".join(f"d:q{n}/a,cat,side,refute\n" for n in range(3))
    )
    annotate("import", versions.parent / "x.csv", "--blind", "--new-people", "-d", versions)
    words = ("agreement", "--interval", "none", "--measure", "percent", "--json", "-d", versions)
    (field,) = json.loads(annotate(*words, "--task", "side.v2").stdout)["fields"]
    counts = {a["annotator"]: a["n_labels"] for a in field["annotators"] if a["kind"] == "human"}
    assert counts == {"ann": 2, "bob": 2, "cat": 3}
    assert any("3 labels without a batch" in n for n in field["notes"])


def test_verify_finds_a_task_whose_text_was_edited(versions: Path) -> None:
    assert found(versions) == []
    with closing(sqlite3.connect(versions)) as conn, conn:
        conn.execute(
            "UPDATE tasks SET template = replace(template, 'The old', 'Other') WHERE task = 'side.v1'"
        )
    assert "guidelines task side.v1" in found(versions)


@pytest.fixture
def clarified(folder: Path) -> Path:
    """Six labels of ann before a change of the guidelines; four of bob after it."""
    path = folder / "study.db"
    draw("b", "side.v1.md", "-n", "6", db=path)
    label(path, "b", "ann", 6)
    (folder / "new.md").write_text("The clarified guidelines.\n")
    annotate("batches", "guidelines", "b", folder / "new.md", "--why", "dates", "-d", path)
    label(path, "b", "bob", 4)
    return path


def test_labels_know_the_guidelines_that_they_were_given_under(clarified: Path) -> None:
    document = report(clarified)
    blocks = section(document, "sampling").blocks
    (table,) = [b for b in blocks if isinstance(b, Table) and b.key == "guidelines_b"]
    assert [(row[0], row[2], row[3]) for row in table.rows] == [
        (1, "the text of the task", 6),
        (2, "dates", 4),
    ]
    quotes = texts(document, "quote")
    assert "The old guidelines." in quotes and "The clarified guidelines." in quotes
    with open_study(clarified) as store:
        assert batch_info(store, "b").task.spec.guidelines == "The clarified guidelines.\n"
    assert found(clarified) == []


def test_a_screen_that_was_open_shows_the_old_text_until_it_is_closed(clarified: Path) -> None:
    with open_study(clarified) as store, Desk.open(store, "b", "bob") as desk:
        (clarified.parent / "third.md").write_text("A third text.")
        with open_study(clarified) as lead:
            clarify(lead, "b", clarified.parent / "third.md", "more")
        assert desk.info.task.spec.guidelines == "The clarified guidelines.\n"
        position = desk.next_open()
        assert position is not None
        desk.load(position)
        desk.label(position, "side", "support")
    blocks = section(report(clarified), "sampling").blocks
    (table,) = [b for b in blocks if isinstance(b, Table) and b.key == "guidelines_b"]
    assert [row[3] for row in table.rows] == [6, 5, 0]


def test_a_pack_carries_the_text_that_it_shows(clarified: Path, judge: Judge) -> None:
    pack = clarified.parent / "bob.db"
    annotate("export", "b", "--for", "bob", "-o", pack, "-d", clarified)
    (clarified.parent / "third.md").write_text("A third text.")
    annotate("batches", "guidelines", "b", clarified.parent / "third.md", "--why", "more", "-d", clarified)
    label(pack, "b", "bob", 2)
    annotate("import", pack, "-d", clarified)
    blocks = section(report(clarified), "sampling").blocks
    (table,) = [b for b in blocks if isinstance(b, Table) and b.key == "guidelines_b"]
    # The pack was written before the third text, so its two labels belong to the second.
    assert [row[3] for row in table.rows] == [6, 6, 0]
    assert found(clarified) == []


def test_a_run_keeps_the_guidelines_that_it_showed(clarified: Path, judge: Judge) -> None:
    judge("run", "side.v1", "-m", "scripted/hash", "--guidelines", "-n", "4")
    query = "SELECT count(*) FROM prompts WHERE text LIKE '%The old guidelines.%' AND text LIKE '%Judge.%'"
    with closing(sqlite3.connect(clarified)) as conn:
        before = conn.execute(query).fetchone()
    judge("run", "side.v1", "-m", "scripted/hash", "--guidelines")
    with closing(sqlite3.connect(clarified)) as conn:
        assert conn.execute(query).fetchone() == before
        wrong = "SELECT count(*) FROM prompts WHERE text LIKE '%clarified%' AND text LIKE '%Judge.%'"
        assert conn.execute(wrong).fetchone() == (0,)


def test_a_later_batch_begins_with_the_newest_text(clarified: Path) -> None:
    draw("c", "side.v1", "-n", "6", db=clarified)
    with open_study(clarified) as store:
        assert batch_info(store, "c").task.spec.guidelines == "The clarified guidelines.\n"
    assert found(clarified) == []


def test_only_the_guidelines_can_change(clarified: Path) -> None:
    folder = clarified.parent
    whole = folder / "copy.md"
    with open_study(clarified) as store:
        whole.write_text(TASK.format("From a task file."))
        clarify(store, "b", whole, "as a task file")
        assert batch_info(store, "b").task.spec.guidelines == "From a task file."
        whole.write_text(TASK.format("More.").replace("refute", "deny"))
        with pytest.raises(BadInput) as refused:
            clarify(store, "b", whole, "a label")
        assert refused.value.field == "questions" and "side.v2.md" in str(refused.value)
        for text, why, complaint in (
            ("", "x", "no text"),
            ("New.", " ", "--why"),
            ("From a task file.", "x", "already"),
        ):
            (folder / "t.md").write_text(text)
            with pytest.raises(UsageError, match=complaint):
                clarify(store, "b", folder / "t.md", why)


def test_verify_finds_changed_guidelines(clarified: Path) -> None:
    with closing(sqlite3.connect(clarified)) as conn, conn:
        conn.execute("UPDATE prompts SET text = 'Another.' WHERE text LIKE 'The clarified%'")
    assert any(line.startswith("guidelines guidelines of batch 'b'") for line in found(clarified))


def test_verify_finds_a_session_with_a_text_of_no_batch(clarified: Path) -> None:
    with open_study(clarified) as store:
        store.conn.execute("DROP TRIGGER sessions_keep_guidelines")
        store.conn.execute("INSERT INTO prompts VALUES ('abc', 'x')")
        store.conn.execute("UPDATE sessions SET guidelines = 'abc' WHERE annotator_id = 'bob'")
        assert any(f.where.startswith("batch 'b', session") for f in verify(store) if f.kind == "guidelines")


def test_the_guidelines_that_a_session_showed_cannot_be_changed(clarified: Path) -> None:
    """Another text of the same batch would move labels to other guidelines."""
    first = "SELECT guidelines FROM sessions WHERE annotator_id = 'ann' AND guidelines IS NOT NULL"
    with closing(sqlite3.connect(clarified)) as conn, pytest.raises(sqlite3.IntegrityError):
        conn.execute(f"UPDATE sessions SET guidelines = ({first}) WHERE annotator_id = 'bob'")
    with closing(sqlite3.connect(clarified)) as conn, conn:
        conn.execute("DROP TRIGGER sessions_keep_guidelines")
    # Without the trigger, the study is not opened.
    with pytest.raises(StudyError), open_study(clarified):
        pass


@pytest.mark.parametrize(
    "change",
    [
        "'$.frame', 39",
        "'$.left_out', json('[\"d:q1/a\"]')",
        "'$.after', json('[]')",
        "'$.strata', json('{\"x\": 4}')",
    ],
    ids=["frame", "left out", "earlier batches", "strata"],
)
def test_verify_finds_a_changed_record_of_a_draw(folder: Path, change: str) -> None:
    path = folder / "study.db"
    draw("first", "side.v1.md", "-n", "10", db=path)
    draw("second", "side.v1.md", "-n", "10", db=path)
    annotate("batches", "extend", "second", "--to", "12", "-d", path)
    assert found(path) == []
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute(f"UPDATE batches SET options = json_set(options, {change}) WHERE batch = 'second'")
    assert "draw batch 'second', what its draw recorded" in found(path)


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM guideline_changes", "UPDATE guideline_changes SET new = old"],
    ids=["deleted", "the same text"],
)
def test_verify_finds_a_change_of_guidelines_that_was_changed(clarified: Path, change: str) -> None:
    with open_study(clarified) as store:
        store.conn.execute("DROP TRIGGER guideline_changes_keep")
        store.conn.execute("DROP TRIGGER guideline_changes_stay")
        store.conn.execute(change)
        assert "guidelines" in [finding.kind for finding in verify(store)]
