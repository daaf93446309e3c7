"""The one gate for labels: whose label it is, which text it is about, and what a lead decided."""

import csv
import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from annotate.exchange.proof import TextOfRecord, find_difference
from annotate.sitting.desk import Desk
from annotate.store import open_study
from judge.cli import main as judge
from judge.store.corrections import mark_outdated
from judge.store.study import get_time
from tests.annotate.agreement_helpers import annotate, document
from tests.annotate.exchange_helpers import (
    all_labels,
    answer,
    empty_copy,
    export,
    read_lines,
    study,
    take_in,
    write_lines,
)
from tests.tui.studies import rows_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return study(tmp_path / "s.db", task="stance", judged=False)


def rows_count(done: dict[str, Any]) -> dict[str, int]:
    """The five counts that are not 0; they add up to the rows that were read."""
    rows = done["rows"]
    counts = {name: n for name, n in rows.items() if name not in ("read", "reasons") and n}
    assert sum(counts.values()) == rows["read"]
    return counts


def held(path: Path) -> list[dict[str, Any]]:
    """The open records of the quarantine."""
    rows: list[dict[str, Any]] = json.loads(annotate("quarantine", "list", "-d", path, "--json").stdout)[
        "rows"
    ]
    return rows


def plant(path: Path, fault: str, table: str) -> None:
    """Change the study behind its back, as if a table had no triggers."""
    with closing(sqlite3.connect(path)) as conn:
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name GLOB ?"
        triggers = conn.execute(query, [table]).fetchall()
        for name, _ in triggers:
            conn.execute(f"DROP TRIGGER {name}")
        conn.executescript(fault)
        for _, sql in triggers:
            conn.execute(sql)
        conn.commit()


def kinds_of_findings(path: Path) -> set[str]:
    """What `annotate verify` finds."""
    rows = json.loads(annotate("verify", "-d", path, "--json", code=1).stdout)["rows"]
    return {row["what"] for row in rows}


def fill_sheet(path: Path, sheet: Path, change: Callable[[list[dict[str, str]]], None]) -> None:
    """Export the units as a sheet, give each the label `support`, and let `change` change its rows."""
    export(path, sheet, "csv")
    with sheet.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["stance"] = "support"
    change(rows)
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


# Finding 2: a sheet whose texts were sorted apart from the ids.


def sort_texts(rows: list[dict[str, str]]) -> None:
    """Move each text one row down, but not the ids and the hashes."""
    for column in ("claim", "passage"):
        texts = [row[column] for row in rows]
        for row, text in zip(rows, [*texts[1:], texts[0]], strict=True):
            row[column] = text


def test_a_sheet_that_was_sorted_badly_is_quarantined_with_both_texts(path: Path, tmp_path: Path) -> None:
    fill_sheet(path, tmp_path / "x.csv", sort_texts)
    done = take_in(path, tmp_path / "x.csv", "csv", "--as", "alice", "--blind", code=1, document=True)
    assert rows_count(done) == {"quarantined": 6} and done["rows"]["reasons"] == {"quarantined": {"text": 6}}
    assert all_labels(path) == set()
    records = held(path)
    texts = {unit: of for unit, *of in rows_of(path, "SELECT unit_id, claim, passage FROM unit_texts")}
    for record in records:
        here, and_, there = record["reason"].partition(" here, and ")
        assert and_ and any(text in there and text not in here for text in texts[record["unit"]])


def change_as_excel(rows: list[dict[str, str]]) -> None:
    """Change a sheet as Excel does when it saves an old character set: line breaks, blanks, characters that are lost."""
    for row in rows:
        row["passage"] = row["passage"].replace("\n", "\r\n").replace(" ", "  ") + " "
        row["passage"] = "".join(c if c < "\x80" else "?" for c in row["passage"])


def test_what_a_spreadsheet_changes_by_itself_is_no_other_text(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", task="stance", judged=False)
    with open_study(path) as store, store.transaction() as conn:
        conn.execute("UPDATE passages SET text = text || ' – naïve\n→ 日本'")
    fill_sheet(path, tmp_path / "x.csv", change_as_excel)
    done = take_in(path, tmp_path / "x.csv", "csv", "--as", "alice", "--blind")
    assert rows_count(done) == {"stored": 6}


@pytest.mark.parametrize(
    ("text", "cell", "same"),
    [
        ("2024-03-01", "01/03/2024", True),
        ("2024-03-01", "1.3.24", True),
        ("2024-03-01", "2024-03-02", False),
        ("2024-03-01", "01/03/2023", False),
        ("0012", "12", True),
        ("1234567890123", "1.23457E+12", True),
        ("1234567890123", "1.23456E+12", False),
        ("12", "13", False),
        ("true", "TRUE", True),
        ("=1+1", "'=1+1", True),
        ("naïve → 日本 🧪", "naïve ? ?? ??", True),
        ("naïve → 日本", "naïve ? ?", False),
        ("what? no", "what! no", False),
        ("e\u0301te\u0301", "\u00e9t\u00e9", True),
        ("x" * 40_000, "x" * 32_767, True),
        ("x" * 40_000, "x" * 20_000, False),
        ("It is.", "it is.", False),
        (["a", "b"], '["a", "b"]', True),
        (["a", "b"], '["a", "c"]', False),
    ],
)
def test_the_changes_of_spreadsheets(text: Any, cell: str, same: bool) -> None:
    difference = find_difference(TextOfRecord({"passage": cell}), {"passage": text})
    assert difference == "" if same else (difference and "passage" in difference)


def test_a_table_with_the_texts_is_compared_too(path: Path, tmp_path: Path) -> None:
    unit, other = [u for (u,) in rows_of(path, "SELECT DISTINCT unit_id FROM assignments ORDER BY 1")][:2]
    texts = dict(rows_of(path, "SELECT unit_id, passage FROM unit_texts"))
    rows = [("unit", "annotator", "field", "label", "passage")]
    rows += [(u, "alice", "stance", "support", texts[unit]) for u in (unit, other)]
    file = tmp_path / "x.csv"
    with file.open("w", newline="") as out:
        csv.writer(out).writerows(rows)
    for words in (("--batch", "pilot"), ("--task", "stance"), ()):
        done = json.loads(annotate("import", file, "--blind", *words, "-d", path, "--json", code=1).stdout)
        assert done["rows"]["quarantined"] == 1, words
        assert {row[0] for row in all_labels(path)} == {unit}


# Finding 1: a label that somebody else edited.


def edited(path: Path, tmp_path: Path, **users: Any) -> Path:
    """A JSON export of Label Studio, with one annotation of each unit, and these users of the annotations."""
    export(path, tmp_path / "ls", "label-studio")
    tasks = json.loads((tmp_path / "ls" / "tasks.json").read_text())
    said = {"from_name": "stance", "to_name": "passage", "type": "choices", "value": {"choices": ["support"]}}
    for number, task in enumerate(tasks):
        made = {"id": number, "was_cancelled": False, "result": [said], "created_at": "2026-01-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z", **users}  # fmt: skip
        task |= {"id": number, "annotations": [made], "predictions": []}
    file = tmp_path / "ls.json"
    file.write_text(json.dumps(tasks))
    return file


def test_a_label_that_somebody_else_edited_waits_for_a_lead(path: Path, tmp_path: Path) -> None:
    file = edited(path, tmp_path, completed_by=3, updated_by=1)
    words = ("-O", "users=3=alice,1=bob")
    done = take_in(path, file, "label-studio", *words, code=1, document=True)
    assert rows_count(done) == {"quarantined": 6} and all_labels(path) == set()
    records = held(path)
    assert {r["code"] for r in records} == {"editor"}
    assert {r["reason"] for r in records} == {"alice gave this label, but bob edited it last"}
    annotate("quarantine", "accept", records[0]["id"], "--blind", "-d", path)
    assert {(row[2], row[3]) for row in all_labels(path)} == {("alice", "assisted")}
    again = take_in(path, file, "label-studio", *words, code=1, document=True)
    assert rows_count(again) == {"quarantined": 5, "already_there": 1}
    assert len(held(path)) == 5


@pytest.mark.parametrize(
    "users",
    [
        {"completed_by": 3},
        {"completed_by": 3, "updated_by": None},
        {"completed_by": 3, "updated_by": 3},
        {"completed_by": {"id": 3, "email": "alice@x.org"}, "updated_by": 3},
    ],
)
def test_an_annotators_own_edit_is_no_doubt(path: Path, tmp_path: Path, users: dict[str, Any]) -> None:
    done = take_in(path, edited(path, tmp_path, **users), "label-studio", "-O", "users=3=alice")
    assert rows_count(done) == {"stored": 6} and {row[3] for row in all_labels(path)} == {"first"}


def test_an_unknown_editor_is_named_by_the_id(path: Path, tmp_path: Path) -> None:
    file = edited(path, tmp_path, completed_by=3, updated_by=9)
    take_in(path, file, "label-studio", "--as", "alice", code=1)
    reasons = {r["reason"] for r in held(path)}
    assert reasons == {"alice gave this label, but user 9 edited it last"}


def test_a_csv_of_label_studio_names_the_export_to_choose(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "project-1.csv"
    file.write_text("id,passage,stance,annotator\n1,x,support,3\n")
    told = take_in(path, file, "label-studio", code=1).stderr
    assert "project-1.csv" in told and "as JSON" in told and "not JSON" not in told


# Finding 3: the lead's decisions and revised labels.


def decided(tmp_path: Path) -> Path:
    """alice and bob differ on two units. A lead decides one of them, and alice revises a label on the other."""
    path = study(tmp_path / "s.db", task="stance", reveal=True)
    for person, label in (("alice", "support"), ("bob", "refute")):
        units = [u for (u,) in rows_of(path, "SELECT unit_id FROM batch_units ORDER BY 1")][:2]
        query = f"SELECT position FROM assignments WHERE annotator_id = '{person}' AND unit_id IN (?, ?)"
        with closing(sqlite3.connect(path)) as conn:
            positions = [p for (p,) in conn.execute(query, units)]
        answer(path, person, {p: {"stance": label} for p in positions})
    with open_study(path) as store:
        from annotate.leading.adjudication import fill_queue

        fill_queue(store, "pilot", "dora")
        with Desk.open(store, "pilot", "dora", adjudicate=True) as desk:
            desk.note(1, "the claim is denied")
            desk.label(1, "stance", "refute")
        with Desk.open(store, "pilot", "alice") as desk:
            position = next(p for p in range(1, 7) if desk.state(p).answers)
            desk.lock(position, "judge")
            desk.revise(position, "stance", "neutral", None)
    return path


def labels_of_all(path: Path) -> set[tuple[Any, ...]]:
    """Every label of people and of the lead, with its layer and reason."""
    query = (
        "SELECT unit_id, field, annotator_id, layer, repeat, value, iif(annotator_id = 'adjudicated', rationale, '') "
        "FROM labels JOIN annotators USING (annotator_id) WHERE kind IN ('human', 'adjudicated')"
    )
    return set(rows_of(path, query))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("where", [("--batch", "pilot"), ()], ids=["batch", "direct"])
def test_decisions_and_revised_labels_come_in_as_what_they_are(
    tmp_path: Path, form: str, where: tuple[str, ...]
) -> None:
    path = decided(tmp_path)
    file = tmp_path / f"labels.{form}"
    export(path, file, form, "--labels")
    copy = study(tmp_path / "copy.db", task="stance", reveal=True)
    words = ("import", file, "--from", form, *where, "-d", copy, "--json")
    done = document(*words)
    assert rows_count(done) == {"stored": 6} and done["people"] == []
    assert labels_of_all(copy) == labels_of_all(path)
    assert {row[3] for row in labels_of_all(copy)} == {"first", "revised"}
    assert rows_count(document(*words)) == {"already_there": 6}
    assert annotate("verify", "-d", copy).exit_code == 0
    values = []
    for db in (path, copy):
        found = document("agreement", "--field", "stance", "--reference", "decided", "-d", db, "--json")[
            "measures"
        ]
        # The name of a run ends with letters of its own in each study.
        values.append(
            [
                (m["measure"], [a.rpartition(" · ")[0] or a for a in m["annotators"]], m["value"])
                for m in found
            ]
        )
    assert sorted(values[0]) == sorted(values[1])


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_study_recognises_its_own_exported_labels(tmp_path: Path, form: str) -> None:
    """A revised label has the time of the revision, and not of the first label."""
    path = decided(tmp_path)
    export(path, file := tmp_path / f"labels.{form}", form, "--labels")
    before = rows_of(path, "SELECT * FROM label_sources ORDER BY 1, 2, 3, 4, 5, 6")
    done = document("import", file, "--from", form, "-d", path, "--json")
    assert rows_count(done) == {"already_there": 6}
    assert rows_of(path, "SELECT * FROM label_sources ORDER BY 1, 2, 3, 4, 5, 6") == before


def test_nobody_else_can_decide_for_the_lead(path: Path, tmp_path: Path) -> None:
    export(path, tmp_path / "t.jsonl", "jsonl")
    row = {"adjudge_unit_id": read_lines(tmp_path / "t.jsonl")[0]["unit"], "adjudge_field": "stance", "answer": "accept",
           "label": "support", "text": "", "_annotator_id": "adjudicated"}  # fmt: skip
    file = write_lines(tmp_path / "p.jsonl", [row])
    told = take_in(path, file, "prodigy", "--new-people", code=1).stderr
    assert "'adjudicated' cannot be an annotator's name" in told


def test_a_revised_label_without_a_first_one_is_named(tmp_path: Path) -> None:
    path = decided(tmp_path)
    export(path, tmp_path / "labels.jsonl", "jsonl", "--labels")
    rows = [row for row in read_lines(tmp_path / "labels.jsonl") if row["layer"] == "revised"]
    copy = study(tmp_path / "copy.db", task="stance", reveal=True)
    told = take_in(copy, write_lines(tmp_path / "r.jsonl", rows), "jsonl", code=1).stderr
    assert "r.jsonl:1" in told and "field 'stance'" in told and "no first label" in told


# Finding 4: a ruling survives.


def conflict_of(path: Path, tmp_path: Path) -> tuple[Path, str]:
    """alice said support in the batch, and refute in a file without a batch."""
    answer(path, "alice", {1: {"stance": "support"}})
    [(unit,)] = rows_of(path, "SELECT unit_id FROM assignments WHERE annotator_id = 'alice' AND position = 1")
    row = {"unit": unit, "annotator": "alice", "field": "stance", "label": "refute"}
    file = write_lines(tmp_path / "refute.jsonl", [row])
    done = document("import", file, "--blind", "-d", path, "--json")
    assert rows_count(done) == {"conflict": 1}
    return file, unit


def test_a_label_that_a_lead_rejected_stays_rejected(path: Path, tmp_path: Path) -> None:
    file, unit = conflict_of(path, tmp_path)
    annotate("conflicts", "resolve", unit, "--keep", "support", "-d", path)
    before = all_labels(path)
    assert {row[5] for row in before} == {"support"}
    for words in ((), ("--latest",), ("--batch", "pilot"), ("--batch", "pilot", "--latest")):
        done = document("import", file, "--blind", *words, "-d", path, "--json")
        assert rows_count(done) == {"left_out": 1}, words
        assert "rejected by a lead" in next(iter(done["rows"]["reasons"]["left_out"]))
        assert (
            all_labels(path) == before and document("conflicts", "list", "-d", path, "--json")["rows"] == []
        )


def test_a_label_that_was_given_after_the_ruling_is_compared_anew(path: Path, tmp_path: Path) -> None:
    file, unit = conflict_of(path, tmp_path)
    annotate("conflicts", "resolve", unit, "--keep", "support", "-d", path)
    [row] = read_lines(file)
    [(at,)] = rows_of(path, "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', at, '+1 second') FROM label_rulings")
    write_lines(file, [{**row, "at": at}])
    assert rows_count(document("import", file, "--from", "jsonl", "--blind", "-d", path, "--json")) == {
        "conflict": 1
    }


def test_leads_of_two_machines_who_decide_differently_reopen_the_conflict(path: Path, tmp_path: Path) -> None:
    _, unit = conflict_of(path, tmp_path)
    other, merged = tmp_path / "other.db", tmp_path / "merged.db"
    with open_study(path) as store:
        store.conn.execute("VACUUM INTO ?", [str(other)])
    for study_file, value in ((path, "support"), (other, "refute")):
        annotate("conflicts", "resolve", unit, "--keep", value, "-d", study_file)
    for order in ((path, other), (other, path)):
        done = CliRunner().invoke(judge, ["studies", "merge", *map(str, order), "--into", str(merged)])
        assert done.exit_code == 0 and "1 labels are in conflict" in done.output, done.output
        assert annotate("verify", "-d", merged).exit_code == 0
        # The lead of the merged study decides, and the earlier decisions do not prevent it.
        annotate("conflicts", "resolve", unit, "--keep", "refute", "-d", merged)
        assert {row[5] for row in all_labels(merged)} == {"refute"}
        annotate("verify", "-d", merged)
        merged.unlink()


def merge_studies(into: Path, *paths: Path) -> None:
    into.unlink(missing_ok=True)
    done = CliRunner().invoke(judge, ["studies", "merge", *map(str, paths), "--into", str(into)])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "values",
    [
        ("support", "refute", "neutral"),
        ("support", "refute", "support"),
        ("support", "refute", None),
        ("support", "support", "support"),
        ("neutral", "neutral", None),
        ("neutral", None, None),
    ],
)
def test_decisions_of_three_leads_in_any_order(
    path: Path, tmp_path: Path, values: tuple[str | None, ...]
) -> None:
    """A third label is in a second file. Each lead decides for one of the three labels, or not at all."""
    _, unit = conflict_of(path, tmp_path)
    row = {"unit": unit, "annotator": "alice", "field": "stance", "label": "neutral"}
    annotate("import", write_lines(tmp_path / "neutral.jsonl", [row]), "--blind", "-d", path)
    studies = []
    for n, value in enumerate(values):
        studies.append(tmp_path / f"{n}.db")
        with open_study(path) as store:
            store.conn.execute("VACUUM INTO ?", [str(studies[-1])])
        if value:
            annotate("conflicts", "resolve", unit, "--keep", value, "-d", studies[-1])
    decided = set(filter(None, values))
    merged, step = tmp_path / "merged.db", tmp_path / "step.db"

    def check() -> None:
        counted = {row[5] for row in all_labels(merged)}
        # One opinion of all leads who decided counts. Otherwise, the label is in conflict.
        assert counted == (decided if len(decided) == 1 else set())
        assert bool(document("conflicts", "list", "-d", merged, "--json")["rows"]) == (len(decided) != 1)
        assert annotate("verify", "-d", merged).exit_code == 0

    for order in permutations(studies):
        merge_studies(merged, *order)
        check()
    for first, second, third in permutations(studies):
        merge_studies(step, first, second)
        merge_studies(merged, step, third)
        check()
    if len(decided) > 1:
        final = max(filter(None, values))
        annotate("conflicts", "resolve", unit, "--keep", final, "-d", merged)
        assert {row[5] for row in all_labels(merged)} == {final}
        # The new decision knows the earlier ones, so a merge with their studies does not reopen it.
        for other in studies:
            for order in ((merged, other), (other, merged)):
                merge_studies(step, *order)
                assert {row[5] for row in all_labels(step)} == {final}
                assert annotate("verify", "-d", step).exit_code == 0


def test_a_decision_for_the_value_of_a_label_that_was_out_already_does_not_bring_it_back(
    path: Path, tmp_path: Path
) -> None:
    """alice's refute is rejected. Later she gives refute again, elsewhere, and the lead decides for that label."""
    file, unit = conflict_of(path, tmp_path)
    annotate("conflicts", "resolve", unit, "--keep", "support", "-d", path)
    first = tmp_path / "first.db"
    with open_study(path) as store:
        store.conn.execute("VACUUM INTO ?", [str(first)])
    [(at,)] = rows_of(path, "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', at, '+1 second') FROM label_rulings")
    [row] = read_lines(file)
    again = write_lines(tmp_path / "again.jsonl", [{**row, "at": at}])
    assert rows_count(document("import", again, "--from", "jsonl", "--blind", "-d", path, "--json")) == {
        "conflict": 1
    }
    annotate("conflicts", "resolve", unit, "--keep", "refute", "-d", path)
    # Each of the two decisions rejects one label: the refute of the first file, and the support of the batch.
    out = "SELECT source, value FROM label_resolutions ORDER BY value"
    rejected = rows_of(path, out)
    assert [value for _, value in rejected] == ["refute", "support"]
    counted = all_labels(path)
    assert annotate("verify", "-d", path).exit_code == 0
    merged = tmp_path / "merged.db"
    for order in ((path, first), (first, path)):
        merge_studies(merged, *order)
        assert rows_of(merged, out) == rejected and all_labels(merged) == counted
        assert annotate("verify", "-d", merged).exit_code == 0


@pytest.mark.parametrize(
    "fault",
    [
        "DELETE FROM label_resolutions",
        "DELETE FROM label_resolutions; DELETE FROM label_rulings",
        "UPDATE label_resolutions SET value = 'neutral'",
        "UPDATE label_resolutions SET kept = 'import:nobody'",
        "INSERT INTO label_resolutions SELECT annotator_id, field, unit_id, repeat, source, value, given, 'x', stored "
        "FROM label_sources WHERE source LIKE 'batch:%'",
        "UPDATE label_rulings SET rejected = '[]'",
        "UPDATE label_rulings SET value = json_extract(rejected, '$[0][1]')",
    ],
)
def test_verify_finds_rulings_that_were_changed(path: Path, tmp_path: Path, fault: str) -> None:
    _, unit = conflict_of(path, tmp_path)
    annotate("conflicts", "resolve", unit, "--keep", "support", "-d", path)
    assert annotate("verify", "-d", path).exit_code == 0
    plant(path, fault, "label_r*")
    # Whoever changes a ruling may also compute the labels anew, which hides the change.
    with open_study(path) as store, store.transaction() as conn:
        from judge.store.label_sources import follow

        follow(conn)
    assert "ruling" in kinds_of_findings(path)


@pytest.mark.parametrize(
    "fault",
    [
        "UPDATE events SET value = 'neutral' WHERE annotator_id = 'adjudicated' AND kind = 'label'",
        "DELETE FROM events WHERE annotator_id = 'adjudicated'",
        "UPDATE assignments SET answers = '{}', status = 'open' WHERE annotator_id = 'adjudicated'",
        "DELETE FROM label_sources WHERE annotator_id = 'adjudicated'",
        "UPDATE labels SET value = 'neutral' WHERE annotator_id = 'adjudicated'",
        "DELETE FROM labels WHERE annotator_id = 'adjudicated'",
    ],
)
def test_verify_finds_decisions_that_were_changed(tmp_path: Path, fault: str) -> None:
    path = decided(tmp_path)
    # In this study, nobody was shown the texts on a screen.
    assert kinds_of_findings(path) == {"exposure"}
    plant(path, fault, "events")
    assert kinds_of_findings(path) - {"exposure"}


# Finding 9: checks outside their batch, and exports for other tools.


def test_answers_to_checks_are_left_out_without_their_batch(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", task="stance", judged=False, n=4, attention=0.5)
    positions = [p for (p,) in rows_of(path, "SELECT position FROM assignments WHERE annotator_id = 'alice'")]
    answer(path, "alice", {p: {"stance": "support"} for p in positions})
    export(path, tmp_path / "x.jsonl", "jsonl", "--labels")
    copy = study(tmp_path / "copy.db", task="stance", judged=False, n=4, attention=0.5)
    done = document("import", tmp_path / "x.jsonl", "-d", copy, "--json")
    checks = len(
        rows_of(path, "SELECT 1 FROM assignments WHERE annotator_id = 'alice' AND role = 'attention'")
    )
    assert checks > 0 and rows_count(done) == {"stored": len(positions) - checks, "left_out": checks}
    assert all_labels(copy) == all_labels(path)


def test_an_export_of_units_gives_no_label_to_its_writer(
    path: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    from annotate.exchange.formats import jsonl

    answer(path, "alice", {1: {"stance": "support"}})
    given: list[Any] = []

    def write(exported: Any, out: Any, options: Any) -> None:
        given.extend(exported.responses())
        with out.lines() as put:
            put({})

    monkeypatch.setattr(jsonl, "write", write)
    export(path, tmp_path / "x.jsonl", "jsonl")
    assert given == []
    export(path, tmp_path / "x.jsonl", "jsonl", "--labels")
    assert len(given) == 1


# The five counts.


def test_every_row_of_a_sheet_is_counted_once(path: Path, tmp_path: Path) -> None:
    def change(rows: list[dict[str, str]]) -> None:
        rows[0]["stance"] = ""
        rows[1]["stance"], rows[1]["note"] = "", "unclear"
        rows[2]["passage"] = "Another text."
        rows[3] |= rows[2]

    fill_sheet(path, tmp_path / "x.csv", change)
    words = ("import", tmp_path / "x.csv", "--from", "csv", "--as", "alice", "--blind")
    done = json.loads(annotate(*words, "--batch", "pilot", "-d", path, "--json", code=1).stdout)
    assert rows_count(done) == {"stored": 3, "already_there": 1, "quarantined": 1, "left_out": 1}
    assert done["held"] == len(held(path)) == 1
    copy = empty_copy(study(tmp_path / "t.db", task="stance", judged=False), "copy.db")
    done = json.loads(annotate(*words, "--task", "stance", "-d", copy, "--json", code=1).stdout)
    assert rows_count(done) == {"stored": 2, "already_there": 1, "quarantined": 1, "left_out": 2}


def test_answers_of_one_unit_that_were_given_at_different_times_come_back_as_the_same(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", judged=False)
    answer(path, "alice", {1: {"relevance": "relevant", "stance": "support"}})
    time.sleep(0.002)
    answer(path, "alice", {1: {"quality": "good"}})
    for form in ("jsonl", "csv"):
        export(path, tmp_path / f"out.{form}", form, "--labels")
        done = document("import", tmp_path / f"out.{form}", "--from", form, "-d", path, "--json")
        assert rows_count(done) == {"already_there": 3}
    assert {at for (at,) in rows_of(path, "SELECT count(*) FROM label_sources")} == {3}


def test_a_record_from_before_a_correction_cannot_be_accepted_for_the_new_text(
    path: Path, tmp_path: Path
) -> None:
    fill_sheet(path, tmp_path / "x.csv", sort_texts)
    take_in(path, tmp_path / "x.csv", "csv", "--as", "alice", "--blind", code=1, document=True)
    record = held(path)[0]
    with open_study(path) as store, store.transaction() as conn:
        mark_outdated(conn, [record["unit"]], get_time())
    told = annotate("quarantine", "accept", record["id"], "--blind", "-d", path, code=1).stderr
    assert "was corrected" in told and all_labels(path) == set()


def test_a_column_with_the_ids_of_passages_is_no_text(path: Path, tmp_path: Path) -> None:
    units = [u for (u,) in rows_of(path, "SELECT DISTINCT unit_id FROM assignments ORDER BY 1")]
    for cells in (units, [u.rpartition("/")[2] for u in units], [u.partition(":")[2] for u in units]):
        file = tmp_path / "x.csv"
        with file.open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["unit", "annotator", "field", "label", "passage"])
            writer.writerows(
                [u, "alice", "stance", "support", cell] for u, cell in zip(units, cells, strict=True)
            )
        done = json.loads(annotate("import", file, "--blind", "-d", path, "--json").stdout)
        assert "quarantined" not in rows_count(done)


@pytest.mark.parametrize("first", ["without", "with"])
def test_a_file_that_is_imported_with_and_without_users_gives_one_record_per_row(
    path: Path, tmp_path: Path, first: str
) -> None:
    mails = {"completed_by": {"id": 3, "email": "al@x.org"}, "updated_by": {"id": 1, "email": "bob@x.org"}}
    file = edited(path, tmp_path, **mails)
    mapped = ["-O", "users=3=alice"]
    for words in ([], mapped) if first == "without" else (mapped, []):
        take_in(path, file, "label-studio", "--skip-bad", *words)
    n = len(json.loads(file.read_text()))
    # The rows of the second import have the names of its options.
    assert len(held(path)) == n
    assert {r["annotator"] for r in held(path)} == {"alice" if first == "without" else "al"}


def test_an_accepted_record_is_credited_to_the_annotator_that_it_names(path: Path, tmp_path: Path) -> None:
    file = edited(path, tmp_path, completed_by=3, updated_by=1)
    take_in(path, file, "label-studio", "-O", "users=3=alice,1=bob", "--skip-bad")
    first, second, *_ = (str(r["id"]) for r in held(path))
    # `--as` says elsewhere who types a command, so it cannot name the annotator of a label.
    assert "--annotator" in annotate("quarantine", "accept", first, "--as", "lead", "-d", path, code=2).stderr
    annotate("quarantine", "accept", first, "--note", "checked", "-d", path)
    annotate("quarantine", "accept", second, "--annotator", "bob", "-d", path)
    with closing(sqlite3.connect(path)) as conn:
        people = conn.execute(
            "SELECT annotator_id FROM labels WHERE layer = 'assisted' ORDER BY 1"
        ).fetchall()
    assert people == [("alice",), ("bob",)]


def test_a_piped_list_of_the_quarantine_has_whole_reasons(path: Path, tmp_path: Path) -> None:
    file = edited(path, tmp_path, completed_by=3, updated_by=1)
    long = "a" * 90
    take_in(path, file, "label-studio", "-O", f"users=3=alice,1={long}", "--skip-bad")
    shown = annotate("quarantine", "list", "-d", path).stdout
    assert f"alice gave this label, but {long} edited it last" in shown


def test_an_id_of_two_servers_in_one_file_is_not_one_user(path: Path, tmp_path: Path) -> None:
    file = edited(path, tmp_path, completed_by=3, updated_by=3)
    tasks = json.loads(file.read_text())
    for n, task in enumerate(tasks):
        # Two servers have a user 3. One annotation has only the id.
        user = {"id": 3, "email": ("alice", "bob")[n % 2] + "@x.org"} if n else 3
        task["annotations"][0] |= {"completed_by": user, "updated_by": user}
    file.write_text(json.dumps(tasks))
    done = take_in(path, file, "label-studio", "--skip-bad", document=True)
    assert rows_count(done) == {"stored": 5, "quarantined": 1}
    assert {row[2] for row in all_labels(path)} == {"alice", "bob"}
    # Two people of one id who are in doubt about the same unit are two records.
    both = [
        tasks[1]["annotations"][0] | {"id": n, "completed_by": {"id": 3, "email": mail}, "updated_by": 9}
        for n, mail in ((70, "alice@x.org"), (71, "bob@x.org"))
    ]
    file.write_text(json.dumps([tasks[1] | {"annotations": both}]))
    done = take_in(path, file, "label-studio", "--skip-bad", document=True)
    assert rows_count(done) == {"quarantined": 2}
