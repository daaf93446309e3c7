"""annotate export --to label-studio and import --from label-studio: no server."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotate.store import open_study
from tests.cli.helpers import Done
from tests.label_studio.conftest import choice, document, dump, evidence, remark
from tests.tui.studies import drawn, labels, rows_of

Run = Callable[..., Done]


GOOD = {"result": [choice("stance", "support")]}


def tasks(folder: Path) -> list[dict[str, Any]]:
    outcome: list[dict[str, Any]] = json.loads((folder / "tasks.json").read_text("utf-8"))
    return outcome


def answered(task: dict[str, Any], number: int, *annotations: dict[str, Any], **more: Any) -> dict[str, Any]:
    made = [
        {"id": number * 10 + i, "completed_by": 1, "was_cancelled": False, "lead_time": 4.0,
         "created_at": f"2026-01-01T00:00:0{i}Z", "updated_at": f"2026-01-01T00:00:0{i}.5Z", **a}
        for i, a in enumerate(annotations)
    ]  # fmt: skip
    return {"id": number, "data": task["data"], "annotations": made, "predictions": [], **more}


def put(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.fixture
def exported(study: Path, tmp_path: Path, annotate: Run) -> list[dict[str, Any]]:
    annotate("export", "pilot", "--to", "label-studio", "-o", str(tmp_path / "ls"), db=study)
    return tasks(tmp_path / "ls")


def test_inputs_that_no_unit_of_the_batch_has_get_no_heading(tmp_path: Path, annotate: Run) -> None:
    path = drawn(tmp_path, "garage_relevance", items=2, n=2)
    with open_study(path) as store, store.transaction() as conn:
        conn.execute("UPDATE passages SET title = NULL, date = iif(item_id LIKE '%0', '2024', '')")
    annotate("export", "pilot", "--to", "label-studio", "-o", str(tmp_path / "ls"), db=path)
    config = (tmp_path / "ls" / "config.xml").read_text("utf-8")
    headings = ["Question", "Passage date", "Passage"]
    assert re.findall('<Header value="([^"]*)" size="6" />', config) == headings
    # What comes back is held against every input, empty or not.
    assert {"passage_title", "question_date"} <= tasks(tmp_path / "ls")[0]["data"].keys()


def test_there_and_back(study: Path, tmp_path: Path, annotate: Run, exported: list[dict[str, Any]]) -> None:
    rows = []
    for i, task in enumerate(exported, 1):
        text = task["data"]["passage"]
        said = [choice("stance", "support" if i % 2 else "refute"), evidence(text, 0, 1), remark("hm")]
        rows.append(answered(task, i, {"result": said}))
    rows[0] = answered(exported[0], 1, {"result": [], "was_cancelled": True, "lead_time": None})
    path = put(tmp_path / "export.json", rows)
    names = ("-O", "users=1=alice")
    words = ("import", str(path), "--from", "label-studio", "--batch", "pilot", *names, "--json")
    done = document(annotate(*words, db=study))
    assert done["new"] == {"alice": 11} and done["skips"] == 1 and done["spans"] == 11
    assert document(annotate(*words, db=study))["new"] == {}
    query = "SELECT status, active_ms, spans, note FROM assignments WHERE annotator_id = 'alice' ORDER BY 1"
    assert rows_of(study, query) == [("done", 4000, '[["passage",0,1]]', "hm")] * 11 + [
        ("skipped", 0, "[]", None)
    ]
    assert {layer for _, _, layer, _ in labels(study)} == {"first"}, "the file has no predictions"


def test_predictions_in_the_file_make_labels_assisted(
    study: Path, tmp_path: Path, annotate: Run, exported: list[dict[str, Any]]
) -> None:
    # A task is sent with its data alone: neither labels nor roles.
    assert all(set(task) == {"data"} for task in exported)
    rows = [answered(t, i, GOOD) for i, t in enumerate(exported, 1)]
    rows[5]["predictions"] = [77]
    path = put(tmp_path / "export.json", rows)
    annotate("import", str(path), "--from", "label-studio", "--batch", "pilot", "--as", "bob", db=study)
    assert {layer for _, _, layer, _ in labels(study, "bob")} == {"assisted"}


def test_the_latest_of_two_annotations_counts(
    study: Path, tmp_path: Path, annotate: Run, exported: list[dict[str, Any]]
) -> None:
    both = [{"result": [choice("stance", "support")]}, {"result": [choice("stance", "refute")]}]
    path = put(tmp_path / "export.json", [answered(exported[0], 1, *both)])
    words = ("import", str(path), "--from", "label-studio", "--batch", "pilot", "--as", "bob")
    annotate(*words, "--latest", db=study)
    assert list(labels(study, "bob").values()) == ["refute"]
    events = rows_of(study, "SELECT value FROM events WHERE kind = 'label' ORDER BY seq")
    assert events == [("support",), ("refute",)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: "{", "not JSON"),
        (lambda rows: "[", "not JSON"),
        (lambda rows: "", "the file is empty"),
        (lambda rows: json.dumps(rows)[:-40], "not JSON"),
        (lambda rows: [[1], *rows], "must be a JSON object"),
        (lambda rows: [{**rows[0], "data": None}], "field 'data'"),
        (lambda rows: [{**rows[0], "annotations": {}}], "field 'annotations'"),
        (lambda rows: [*rows, {"id": 9, "adjudge_unit_id": "d:0/p0", "stance": "support"}], "JSON-MIN"),
        (lambda rows: [{**rows[0], "data": {"passage": "x"}}], "field 'data.adjudge_unit_id'"),
        (lambda rows: [{**rows[0], "data": {"adjudge_unit_id": "d:9/p9"}}], "unit 'd:9/p9' is not in the batch"),
        (lambda rows: [*rows, _with(rows[0], result=None)], "field 'result'"),
        (lambda rows: [*rows, _with(rows[1], result=[choice("stance", "supp")])], "'supp' is not a label"),
        (lambda rows: [*rows, _with(rows[1], lead_time="long")], "field 'lead_time'"),
        (lambda rows: [*rows, _with(rows[1], lead_time="9" * 5_000)], "field 'lead_time'"),
        (lambda rows: [*rows, _with(rows[1], result=[evidence("x", "9" * 5_000, "9" * 5_000, "x")])], "must be whole numbers"),
        (lambda rows: [*rows, _with(rows[1], lead_time=-3)], "seconds"),
        (lambda rows: [*rows, _with(rows[1], updated_at="yesterday")], "field 'updated_at'"),
        (lambda rows: [*rows, _with(rows[1], was_cancelled="no")], "field 'was_cancelled'"),
        (lambda rows: [*rows, _with(rows[1], result=[choice("stance", "refute"), evidence("x", 0, 9, "zzz")])], "are not 'zzz'"),
    ],
)  # fmt: skip
def test_a_malformed_file_is_named_and_nothing_is_written(
    study: Path,
    tmp_path: Path,
    annotate: Run,
    exported: list[dict[str, Any]],
    change: Callable[[list[dict[str, Any]]], Any],
    told: str,
) -> None:
    rows = [answered(t, i, GOOD) for i, t in enumerate(exported, 1)]
    made = change(rows)
    path = tmp_path / "export.json"
    path.write_text(made if isinstance(made, str) else json.dumps(made), encoding="utf-8")
    before = dump(study)
    words = ("import", str(path), "--from", "label-studio", "--batch", "pilot", "--as", "alice")
    done = annotate(*words, db=study, code=1)
    assert told in done.err and "export.json" in done.err and len(done.err.splitlines()) == 1
    assert dump(study) == before


def _with(row: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**row, "annotations": [{**row["annotations"][0], **more}]}


def test_who_answered_must_be_known(
    study: Path, tmp_path: Path, annotate: Run, exported: list[dict[str, Any]]
) -> None:
    path = put(tmp_path / "export.json", [answered(exported[0], 1, GOOD)])
    words = ("import", str(path), "--from", "label-studio", "--batch", "pilot")
    done = annotate(*words, db=study, code=1)
    assert "-O users=1=NAME" in done.err
    assert "write it as" in annotate(*words, "-O", "users=alice", db=study, code=2).err
    assert "--batch NAME" in annotate("import", str(path), "--from", "label-studio", db=study, code=2).err


def test_without_the_sdk_files_work_and_the_server_names_the_extra(study: Path, tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['label_studio_sdk'] = None; from annotate.cli import main; main(sys.argv[1:])"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-c", blocked, *words, "-d", str(study)]
        return subprocess.run(call, capture_output=True, text=True)

    out = tmp_path / "ls"
    assert run("export", "pilot", "--to", "label-studio", "-o", str(out)).returncode == 0
    path = put(tmp_path / "e.json", [answered(tasks(out)[0], 1, GOOD)])
    done = run("import", str(path), "--from", "label-studio", "--batch", "pilot", "--as", "alice")
    assert done.returncode == 0, done.stderr
    assert list(labels(study).values()) == ["support"]
    for command in ("push", "pull"):
        done = run(command, "pilot", "--url", "http://127.0.0.1:1")
        assert done.returncode == 1 and "adjudge[label-studio]" in done.stderr


def test_a_dry_run_asks_no_server_and_writes_nothing(study: Path, annotate: Run) -> None:
    url = "http://127.0.0.1:9"
    told = annotate("push", "pilot", "--url", url, "--dry-run", db=study).err
    assert f"would send 12 units to a new project of {url}; 0 were sent earlier" in told
    with open_study(study) as store:
        for table in ("label_studio_projects", "label_studio_tasks", "exposures"):
            assert store.conn.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
