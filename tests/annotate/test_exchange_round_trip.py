"""Finished labels out and into a study without them: the same labels, once, whatever was answered."""

import csv
import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.annotate.agreement_helpers import annotate
from tests.annotate.exchange_helpers import (
    VALUES,
    all_labels,
    answer,
    empty_copy,
    export,
    read_lines,
    rows_of,
    standing,
    study,
    take_in,
    write_lines,
)
from tests.tui.studies import drawn

FORMATS = ["jsonl", "csv", "prodigy", "doccano", "argilla"]
# Passages of these studies are "Passage P of claim C says 42. It is so.": 38 code points.
one = st.fixed_dictionaries({}, optional={f: st.sampled_from(v) for f, v in VALUES.items()})
whole = st.fixed_dictionaries({f: st.sampled_from(v) for f, v in VALUES.items()})
text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(str.strip)
span = st.tuples(st.integers(0, 18), st.integers(19, 38)).map(lambda s: ("passage", *s))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = study(tmp_path_factory.mktemp("template") / "s.db", judged=False)
    return empty_copy(path, "template.db")


def _out(path: Path, form: str) -> Path:
    """What to import: the folder for doccano, the records for argilla."""
    return path / "records.jsonl" if form == "argilla" else path


@pytest.mark.parametrize("form", FORMATS)
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.reuse, Phase.generate],
)
@given(data=st.data())
def test_labels_come_back_as_they_were(form: str, template: Path, data: st.DataObject) -> None:
    # doccano and Argilla know no half-answered unit: Argilla's are drafts, and a draft is no answer.
    answers = st.dictionaries(st.integers(1, 6), whole if form == "argilla" else one, max_size=6)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        shutil.copy(template, path)
        for person in ("alice", "bob"):
            given_ = data.draw(answers)
            full = [p for p, a in given_.items() if len(a) == len(VALUES)]
            notes = data.draw(st.dictionaries(st.sampled_from(full), text)) if full else {}
            spans = {p: [data.draw(span)] for p in full if data.draw(st.booleans())}
            answer(path, person, given_, notes=notes, spans=spans)
        copy = Path(folder) / "copy.db"
        shutil.copy(template, copy)
        if not all_labels(path):
            failed = export(path, Path(folder) / "out", form, "--labels", code=1)
            assert "batch 'pilot'" in failed.stderr and not (Path(folder) / "out").exists()
            return
        export(path, Path(folder) / "out", form, "--labels")
        file = _out(Path(folder) / "out", form)
        done = take_in(copy, file, form, "--blind")
        assert all_labels(copy) == all_labels(path)
        assert standing(copy) == standing(path)
        assert sum(done["new"].values()) == len(all_labels(path)) == done["blind"]["blind"]
        again = take_in(copy, file, form, "--blind")
        assert again["new"] == {} and again["unchanged"] + again["older"] >= len(all_labels(path))
        assert all_labels(copy) == all_labels(path)


@pytest.mark.parametrize("form", ["jsonl", "csv", "prodigy", "argilla"])
def test_skips_notes_flags_and_evidence_come_along(form: str, tmp_path: Path) -> None:
    path = study(tmp_path / "s.db")
    copy = empty_copy(path, "copy.db")
    full = {f: v[0] for f, v in VALUES.items()}
    extra = {"skips": [3], "notes": {1: "Straße — 東京 👍"}, "spans": {1: [("passage", 0, 7)]}}
    answer(path, "alice", {1: full, 2: full}, **extra)
    export(path, tmp_path / "out", form, "--labels")
    done = take_in(copy, _out(tmp_path / "out", form), form, "--blind")
    assert (done["skips"], done["spans"], done["notes"]) == (1, 1, 1)
    assert standing(copy) == standing(path)
    assert take_in(copy, _out(tmp_path / "out", form), form, "--blind")["skips"] == 0


def test_repeats_and_checks_keep_their_roles(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", task="stance", training=2, attention=0.3, repeats=0.34)
    copy = empty_copy(path, "copy.db")
    total = rows_of(path, "SELECT count(*) FROM assignments WHERE annotator_id = 'alice'")[0][0]
    # 6 of the sample, 2 for training, round(6 x 0.3) = 2 for attention, round(6 x 0.34) = 2 repeats
    assert total == 12
    answer(path, "alice", {p: {"stance": ["support", "refute"][p % 2]} for p in range(1, total + 1)})
    export(path, tmp_path / "out.jsonl", "jsonl", "--labels")
    done = take_in(copy, tmp_path / "out.jsonl", "jsonl")
    assert done["new"] == {"alice": 12}
    assert all_labels(copy) == all_labels(path) and len(all_labels(copy)) == 8, (
        "training and attention are no labels"
    )
    query = "SELECT position, role, repeat, status, answers FROM assignments WHERE annotator_id = 'alice'"
    assert rows_of(copy, query) == rows_of(path, query)


def test_times_are_kept_once(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db")
    copy = empty_copy(path, "copy.db")
    answer(path, "alice", {1: {f: v[0] for f, v in VALUES.items()}})  # three labels of 1.5 s each
    export(path, tmp_path / "out.jsonl", "jsonl", "--labels")
    assert [row["seconds"] for row in read_lines(tmp_path / "out.jsonl")] == [4.5] * 3
    take_in(copy, tmp_path / "out.jsonl", "jsonl")
    take_in(copy, tmp_path / "out.jsonl", "jsonl")
    assert rows_of(copy, "SELECT sum(active_ms) FROM assignments") == [(4500,)]


def test_assisted_labels_stay_apart(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", task="stance")
    copy = empty_copy(path, "copy.db")
    export(path, tmp_path / "sheet.csv", "csv")
    with (tmp_path / "sheet.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["stance"] = "support"
    with (tmp_path / "sheet.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    sheet = tmp_path / "sheet.csv"
    undeclared = take_in(path, sheet, "csv", "--as", "alice")
    assert undeclared["blind"] == {"undeclared": 6}
    assert {row[3] for row in all_labels(path)} == {"undeclared"}
    assert take_in(path, sheet, "csv", "--as", "alice")["unchanged"] == 6
    declared = take_in(path, sheet, "csv", "--as", "alice", "--blind")
    assert (declared["new"], declared["declared"]) == ({}, 6)
    assert {row[3] for row in all_labels(path)} == {"first"}
    take_in(path, sheet, "csv", "--as", "bob", "--assisted")
    assert {(row[2], row[3]) for row in all_labels(path)} == {("alice", "first"), ("bob", "assisted")}
    layers = rows_of(path, "SELECT DISTINCT annotator, layer FROM batch_labels ORDER BY 1")
    assert layers == [("alice", "first"), ("bob", "assisted")]
    blindness = rows_of(path, "SELECT blind FROM label_imports ORDER BY imported_at")
    assert blindness == [("undeclared",), ("blind",), ("assisted",)]
    # What is known of blindness goes with the file: no flag is needed on the way in.
    export(path, tmp_path / "labels.jsonl", "jsonl", "--labels")
    blind = {(r["annotator"], r["layer"], r["blind"]) for r in read_lines(tmp_path / "labels.jsonl")}
    assert blind == {("alice", "first", True), ("bob", "assisted", False)}
    take_in(copy, tmp_path / "labels.jsonl", "jsonl", "--blind")
    assert all_labels(copy) == all_labels(path)
    # Relabelled at the desk by somebody who has seen the suggestion: still not blind.
    answer(path, "bob", {1: {"stance": "refute"}})
    assert {row[3] for row in all_labels(path) if row[2] == "bob"} == {"assisted"}


@pytest.mark.parametrize(
    ("form", "file"), [("csv", "l.csv"), ("jsonl", "l.jsonl"), ("parquet", "l/data/labels.parquet")]
)
def test_own_labels_stay_blind_without_a_named_format(form: str, file: str, tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", task="stance")
    answer(path, "alice", {1: {"stance": "support"}}, spans={1: [("passage", 0, 7)]})
    before = all_labels(path)
    assert {row[3] for row in before} == {"first"}
    export(path, tmp_path / file.partition("/")[0], form, "--labels")
    assert "1 were already there" in annotate("import", tmp_path / file, "-d", path).stderr
    assert all_labels(path) == before
    annotate("import", tmp_path / file, "--as", "bob", "-d", path)
    assert {row[2:4] for row in all_labels(path)} == {("alice", "first"), ("bob", "first")}


def test_derived_labels_follow_from_answers_and_gold(tmp_path: Path) -> None:
    from tests.tui.studies import labels

    path = drawn(tmp_path, "raguard_exam", items=4, n=4)
    copy = empty_copy(path, "copy.db")
    asked = rows_of(path, "SELECT front_matter FROM tasks WHERE task = 'raguard_exam.v2'")
    spec = json.loads(asked[0][0])
    field = spec["questions"][0]["field"]
    answer(path, "alice", {p: {field: "true"} for p in range(1, 5)})
    derived = {k: v for k, v in labels(path).items() if k[1] != field}
    assert derived, "gold of the items decides the role"
    export(path, tmp_path / "out.jsonl", "jsonl", "--labels")
    assert {r["field"] for r in read_lines(tmp_path / "out.jsonl")} == {field}
    take_in(copy, tmp_path / "out.jsonl", "jsonl")
    assert labels(copy) == labels(path)


def test_the_zip_and_the_folder_of_doccano(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", task="stance")
    units = [u for (u,) in rows_of(path, "SELECT unit_id FROM batch_units ORDER BY 1")]
    folder = tmp_path / "export"
    folder.mkdir()
    for person, value in (("alice", "support"), ("bob", "neutral")):
        given = [(u, [value]) for u in units] + [(units[0], [])]
        rows = [{"text": "", "label": label, "Comments": [], "adjudge_unit_id": u} for u, label in given]
        write_lines(folder / f"{person}.jsonl", rows)
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    done = take_in(path, tmp_path / "export.zip", "doccano", "--blind")
    assert done["new"] == {"alice": 6, "bob": 6} and done["remarks"] == {"units without a label": 2}
    assert take_in(path, folder, "doccano", "--blind")["unchanged"] == 12
    shutil.copy(folder / "alice.jsonl", tmp_path / "all.jsonl")
    failed = take_in(path, tmp_path / "all.jsonl", "doccano", "--blind", code=1)
    assert "all.jsonl:1: field 'annotator'" in failed.stderr and "--as" in failed.stderr


def test_what_doccano_itself_wrote(tmp_path: Path) -> None:
    """`doccano/` holds what doccano 1.8.4 exported (its `load_dataset` and `export_dataset`) of this study's own files.

    What Alice and Bob gave there, and Alice's one comment, was noted beside it.
    """
    path = study(tmp_path / "s.db", task="stance")
    done = take_in(path, Path(__file__).parent / "doccano", "doccano", "--blind")
    assert done["new"] == {"alice": 6, "bob": 6}
    given = {
        (who, unit): json.loads(answers)["stance"]
        for who, unit, answers in rows_of(path, "SELECT annotator_id, unit_id, answers FROM assignments")
        if json.loads(answers or "{}")
    }
    units = ("d:1/p1", "d:6/p1", "d:0/p0", "d:0/p1", "d:3/p1", "d:1/p0")
    alice = ("refute", "refute", "refute", "neutral", "refute", "support")
    bob = ("support", "refute", "support", "refute", "refute", "neutral")
    by_person = {"alice": dict(zip(units, alice, strict=True)), "bob": dict(zip(units, bob, strict=True))}
    assert given == {
        (who, unit): label for who, labels in by_person.items() for unit, label in labels.items()
    }
    [note] = rows_of(path, "SELECT unit_id, note FROM assignments WHERE note IS NOT NULL")
    assert note == ("d:1/p1", "not sure [b]here[/b]")


def test_what_prodigy_writes(tmp_path: Path) -> None:
    """Rows as `prodigy db-out` gives them (prodi.gy/docs/api-interfaces): choice, textcat, sessions, timestamps."""
    path = study(tmp_path / "s.db", task="stance")
    export(path, tmp_path / "tasks.jsonl", "prodigy")
    tasks = read_lines(tmp_path / "tasks.jsonl")
    assert len(tasks) == 6 and [o["id"] for o in tasks[0]["options"]] == ["support", "refute", "neutral"]
    about = {"_input_hash": 1, "_task_hash": 2, "_is_binary": False, "_view_id": "choice", "_timestamp": 1_700_000_000,
             "_annotator_id": "ds-alice", "_session_id": "ds-alice"}  # fmt: skip
    start = tasks[3]["text"].index("Passage:\n") + len("Passage:\n")
    rows: list[dict[str, Any]] = [
        tasks[0] | about | {"accept": ["support"], "answer": "accept"},
        tasks[1] | about | {"accept": [], "answer": "ignore"},
        tasks[2] | about | {"accept": ["refute"], "answer": "reject"},
        tasks[3] | about | {"accept": ["neutral"], "answer": "accept",
                            "spans": [{"start": start, "end": start + 7, "label": "E", "token_start": 3, "token_end": 3}]},
        {"text": tasks[4]["text"], "label": "refute", "meta": {"adjudge_unit_id": tasks[4]["adjudge_unit_id"]}, "answer": "accept"} | about,
        {"text": tasks[5]["text"], "label": "refute", "meta": {"adjudge_unit_id": tasks[5]["adjudge_unit_id"]}, "answer": "reject"} | about,
    ]  # fmt: skip
    done = take_in(path, write_lines(tmp_path / "done.jsonl", rows), "prodigy", "--blind", "-O", "dataset=ds")
    assert done["new"] == {"alice": 3} and (done["skips"], done["flags"], done["spans"]) == (2, 1, 1)
    assert done["remarks"] == {"rejected labels that do not imply another label": 1}
    unit = tasks[3]["adjudge_unit_id"]
    query = "SELECT answers, spans FROM assignments WHERE annotator_id = 'alice' AND unit_id = ?"
    assert rows_of(path, query, unit) == [('{"stance":"neutral"}', '[["passage",0,7]]')]
    # 1,700,000,000 s after the epoch
    assert rows_of(path, "SELECT DISTINCT at FROM events") == [("2023-11-14T22:13:20.000Z",)]
    export(path, tmp_path / "out.jsonl", "jsonl", "--labels")
    told = {(r["at"], r["seconds"]) for r in read_lines(tmp_path / "out.jsonl")}
    assert told == {("2023-11-14T22:13:20.000Z", None)}, (
        "when it was answered, and no time where none is known"
    )
    shown = json.loads(annotate("batches", "show", "pilot", "-d", path, "--json").stdout)["annotators"][0]
    assert (shown["median_seconds"], shown["units_per_hour"], shown["done"]) == (None, None, 3)
    report = annotate("report", "--task", "stance", "--batch", "pilot", "-d", path).stdout
    assert "made elsewhere, prodigy" in report and "3 labels declared blind" in report
    # Ids of options that are numbers, as in many recipes: the text is the label.
    numbered = tasks[0] | about | {"_annotator_id": "ds-bob", "answer": "accept", "accept": [2],
                                   "options": [{"id": 1, "text": "support"}, {"id": 2, "text": "refute"}]}  # fmt: skip
    take_in(path, write_lines(tmp_path / "n.jsonl", [numbered]), "prodigy", "--blind", "-O", "dataset=ds")
    assert ("refute",) in rows_of(path, "SELECT value FROM labels WHERE annotator_id = 'bob'")


def test_sessions_without_a_name_are_nobody(tmp_path: Path) -> None:
    path = study(tmp_path / "s.db", task="stance")
    export(path, tmp_path / "tasks.jsonl", "prodigy")
    row = read_lines(tmp_path / "tasks.jsonl")[0] | {"answer": "accept", "accept": ["support"]}
    file = write_lines(tmp_path / "done.jsonl", [row | {"_annotator_id": "ds-2026-01-31_10-20-30"}])
    failed = take_in(path, file, "prodigy", "--blind", code=1)
    assert "done.jsonl:1: field 'annotator'" in failed.stderr
    assert take_in(path, file, "prodigy", "--blind", "--as", "alice")["new"] == {"alice": 1}


def test_what_argilla_gives(tmp_path: Path) -> None:
    """The keys of `to_list(flatten=True)` and of `to_list()` or `to_json` of argilla 2.8.0.

    Nested, responses have no status: what was discarded or a draft looks submitted, so nothing of it
    becomes a label. A record that holds a suggestion showed it.
    """
    path = study(tmp_path / "s.db", task="stance")
    a, b, c = (u for (u,) in rows_of(path, "SELECT unit_id FROM batch_units ORDER BY 1 LIMIT 3"))
    ann, bob = "5f6b1b1e-8c8e-4f5e-9b1e-2f1b6b1e8c8e", "6f6b1b1e-8c8e-4f5e-9b1e-2f1b6b1e8c8e"
    texts = dict(rows_of(path, "SELECT unit_id, passage FROM unit_texts"))
    flat = [
        {"id": u, "status": "completed", "_server_id": "x", "passage": texts[u], "stance.responses": ["support", value],
         "stance.responses.users": [ann, bob], "stance.responses.status": ["submitted", state],
         "stance.suggestion": "refute", "stance.suggestion.score": 0.9, "stance.suggestion.agent": "judge"}
        for u, value, state in ((a, "refute", "submitted"), (b, None, "discarded"), (c, "neutral", "draft"))
    ]  # fmt: skip
    file = tmp_path / "flat.json"
    file.write_text(json.dumps(flat, indent=1))
    people = ("--map-label", f"annotator:{ann}=alice", "--map-label", f"annotator:{bob}=bob")
    failed = take_in(path, file, "argilla", "--blind", code=1)
    assert f"{ann} is not one of the people in batch 'pilot' (alice, bob)" in failed.stderr
    done = take_in(path, file, "argilla", "--blind", *people)
    assert done["new"] == {"alice": 3, "bob": 1} and done["skips"] == 1 and done["remarks"] == {"drafts": 1}
    assert done["blind"] == {"assisted": 4}, "the records hold suggestions, whatever was declared"

    other = study(tmp_path / "t.db", task="stance")
    nested = [
        {"id": u, "fields": {"passage": texts[u]}, "metadata": {}, "suggestions": {}, "vectors": {}, "status": "pending",
         "_server_id": None, "responses": {"stance": [{"value": "support", "user_id": ann}, {"value": v, "user_id": bob}]}}
        for u, v in ((a, "refute"), (b, None), (c, "neutral"))
    ]  # fmt: skip
    (tmp_path / "users.json").write_text(json.dumps({ann: "alice", bob: "bob"}))
    file = write_lines(tmp_path / "n.jsonl", nested)
    done = take_in(other, file, "argilla", "--blind", code=1, document=True)
    assert done["new"] == {} and done["held"] == 6 and all_labels(other) == set()
    assert {c for (c,) in rows_of(other, "SELECT code FROM quarantine")} == {"status"}
    assert "to_list(flatten=True)" in rows_of(other, "SELECT reason FROM quarantine")[0][0]
    # The value of a discarded response is None: it is no label, whoever declares it to be submitted.
    declared = take_in(other, file, "argilla", "--blind", "-O", "status=submitted")
    assert declared["new"] == {"alice": 3, "bob": 2}
