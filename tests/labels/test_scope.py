"""One field of a study as a table: who is in it, what is missing, what is outside."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge.errors import BadInput, UsageError
from judge.labels.annotators import make_short_names
from judge.labels.panel import Panel
from judge.labels.scope import Scope, fields_of, read_panel
from judge.prompts import load_task
from judge.scores.gold import compare
from judge.stats import measures
from judge.store import Store
from tests.annotate.agreement_helpers import judge, make_study
from tests.real import ROOT

TASK = """---
title: How much?
unit: passage
inputs: [passage]
questions:
  - field: {field}
    level: {level}
{labels}---
How much?
<!-- unit -->
{{{{ passage }}}}
{{{{ answer_cue }}}}
"""


def load_field(store: Store, field: str, *, distributions: bool = True, **scope: Any) -> Panel:
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in scope.items()}
    return read_panel(store, Scope(field, **given), distributions=distributions)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(make_study(tmp_path)) as opened:
        yield opened


def test_people_judges_and_gold_are_columns_of_one_table(store: Store) -> None:
    found = load_field(store, "stance")
    run = store.conn.execute("SELECT run_id FROM runs").fetchone()[0]
    name = f"scripted/file · stance.v2 · {run[-4:]}"
    assert found.ratings.annotators == ("ann", "bob", name, "gold")
    assert found.kinds == {"ann": "human", "bob": "human", name: "judge", "gold": "gold"}
    assert found.shown == {run: name}
    assert found.select_kinds("human") == ["ann", "bob"] and found.select_kinds("judge", "gold") == [
        name,
        "gold",
    ]
    assert found.domain == ("support", "refute", "neutral") and found.level == "nominal"
    assert found.task is not None and found.task.name == "stance.v2"
    # Rows of STUDY: alpha, beta, gamma, delta, epsilon, zeta; 0 support, 1 refute, 2 neutral.
    assert found.ratings.units[0] == "study:1/alpha" and found.ratings.n_units == 6
    expected = [[0, 0, 0, 0], [1, 1, 1, -1], [2, 1, 2, 2], [0, 0, 1, 1], [1, -1, -1, 1], [2, 2, 0, -1]]
    assert found.ratings.codes.tolist() == expected
    assert found.ratings.n_clusters == 3 and found.ratings.clustered
    assert found.notes == () and found.outside == {}


def test_an_unparsed_judgement_lowers_the_coverage_and_an_unasked_unit_does_not(store: Store) -> None:
    found = load_field(store, "stance")
    judge_name = found.select_kinds("judge")[0]
    # The judge was asked about all six and answered five; gold has four, of which epsilon is unanswered.
    assert found.requested[:, 2].tolist() == [True] * 6 and found.requested[:, 3].sum() == 4
    assert (found.select_common(judge_name).codes >= 0).sum() == 5 and found.select_common(
        judge_name
    ).n_units == 6
    for names, coverage in (((judge_name, "gold"), 3 / 4), (("bob", "gold"), 1.0)):
        # bob was never asked about epsilon.
        assert found.measure(names, ["percent"])[0].coverage == coverage


def test_the_numbers_are_those_of_judge_runs_show(store: Store) -> None:
    run = store.conn.execute("SELECT run_id FROM runs").fetchone()[0]
    [there] = [m for m in compare(store, load_task("stance"), run)[0].measures if m.measure == "percent"]
    found = load_field(store, "stance", annotators=[run, "gold"])
    both = found.requested.all(axis=1)
    (here,) = measures(found.ratings.subset(both), ["percent"])
    # alpha, gamma, delta: judge and gold say the same on all three that both labelled.
    assert there.value == here.value == 1.0
    assert (there.n_units, there.coverage) == (here.n_units, here.coverage) == (3, 0.75)


def test_labels_outside_the_domain_are_counted_and_left_out(store: Store) -> None:
    store.conn.execute(
        "UPDATE labels SET value = 'SUPPORTS' WHERE annotator_id = 'gold' AND value = 'support'"
    )
    found = load_field(store, "stance")
    assert found.outside == {"gold": {"SUPPORTS": 1}}
    assert found.ratings.column("gold").tolist() == [-1, -1, 2, 1, 1, -1]
    assert "'SUPPORTS' (1)" in found.notes[0] and "'gold'" in found.notes[0]
    assert found.requested[0].tolist() == [True, True, True, False]


def test_runs_have_distinct_names_and_are_found_by_the_end_of_their_id(tmp_path: Path) -> None:
    with Store.open(make_study(tmp_path, runs=3)) as store:
        ids = [run for (run,) in store.conn.execute("SELECT run_id FROM runs ORDER BY started, run_id")]
        assert len(load_field(store, "stance").select_kinds("judge")) == 3
        for name in (ids[1], ids[1][-6:], ids[1][-6:].lower()):
            assert list(load_field(store, "stance", runs=[name]).shown) == [ids[1]]
        assert list(load_field(store, "stance", runs=["last"]).shown) == [ids[2]]
        shown = load_field(store, "stance").shown[ids[0]]
        only = load_field(store, "stance", annotators=["gold", shown, "ann"])
        assert only.ratings.annotators == ("ann", shown, "gold")


def test_short_names_grow_until_they_differ() -> None:
    names = make_short_names([("01AAAAXYZ12", "m", "t.v1"), ("01AAAAQYZ12", "m", "t.v1")])
    assert names == {"01AAAAXYZ12": "m · t.v1 · XYZ12", "01AAAAQYZ12": "m · t.v1 · QYZ12"}


def test_an_unknown_name_lists_the_available_annotators(store: Store) -> None:
    with pytest.raises(UsageError, match="no annotator or run is called 'zoe'; available: ann, bob, gold"):
        load_field(store, "stance", annotators=["ann", "zoe"])
    with pytest.raises(UsageError, match="called 'ZZZZ'"):
        load_field(store, "stance", runs=["ZZZZ"])
    with pytest.raises(UsageError, match="nobody labelled 'tone'; fields with labels: stance"):
        load_field(store, "tone")


def test_a_run_without_labels_is_an_annotator(store: Store, tmp_path: Path) -> None:
    judge("run", "stance", "-m", "scripted/garbage", "-d", tmp_path / "study.db", code=4)
    found = load_field(store, "stance", runs=["last"])
    name = found.select_kinds("judge")[0]
    assert name.startswith("scripted/garbage")
    assert found.ratings.column(name).tolist() == [-1] * 6


def test_without_a_task_the_domain_is_the_labels_that_occur(tmp_path: Path) -> None:
    data = tmp_path / "mine.jsonl"
    votes = {"mood": {"ann": "nan", "bob": "None"}, "stance": {"ann": "support", "bob": "refute"}}
    data.write_text(
        json.dumps({"id": "1", "claim": "c", "passages": [{"id": "a", "text": "t", "votes": votes}]})
    )
    judge("items", "import", "jsonl", data, "-d", tmp_path / "study.db")
    with Store.open(tmp_path / "study.db") as store:
        found = load_field(store, "mood")
        assert found.task is None and found.domain == ("None", "nan") and "no task" in found.notes[0]
        assert found.ratings.codes.tolist() == [[1, 0]]
        # A shipped task may be named for it, and an order given.
        assert load_field(store, "stance", task="stance").domain == ("support", "refute", "neutral")
        ordered = load_field(store, "mood", level="ordinal", order=["nan", "None"])
        assert (ordered.level, ordered.domain) == ("ordinal", ("nan", "None"))
        assert [(f.field, f.task, f.annotators) for f in fields_of(store)] == [
            ("mood", None, ["ann", "bob"]),
            ("stance", None, ["ann", "bob"]),
        ]


def test_tasks_that_differ_in_a_field_must_be_chosen(store: Store, tmp_path: Path) -> None:
    labels = "    labels: [{value: support}, {value: other}]\n"
    task = tmp_path / "binary.v1.md"
    task.write_text(TASK.format(field="stance", level="nominal", labels=labels))
    judge("run", task, "-m", "scripted/first", "-d", tmp_path / "study.db")
    with pytest.raises(UsageError, match=r"different labels.*binary.v1: support, other.*--task"):
        load_field(store, "stance")
    found = load_field(store, "stance", task="stance.v2")
    assert len(found.select_kinds("judge")) == 1 and "runs of binary.v1 were left out" in found.notes[0]
    other = load_field(store, "stance", task="binary")
    assert other.domain == ("support", "other") and other.outside["ann"] == {"refute": 2, "neutral": 2}
    assert [row.task for row in fields_of(store)] == ["binary.v1", "stance.v2"]
    with pytest.raises(UsageError, match=r"stance\.v2"):
        load_field(store, "stance", task="binary", runs=[next(iter(found.shown))])


def test_numbers_of_an_interval_field_are_scores(store: Store, tmp_path: Path) -> None:
    task = tmp_path / "grade.v1.md"
    task.write_text(TASK.format(field="grade", level="interval", labels=""))
    judge("run", task, "-m", "scripted/hash", "-d", tmp_path / "study.db")
    for unit, value in (("study:1/alpha", "1.0"), ("study:1/beta", "1e0"), ("study:2/gamma", "10")):
        row = [unit, "grade", "ann", value]
        store.conn.execute(
            "INSERT INTO labels (unit_id, field, annotator_id, value) VALUES (?, ?, ?, ?)", row
        )
    found = load_field(store, "grade")
    assert found.level == "interval" and found.numbers("ann")[:, 0].tolist() == [1, 1, 10]
    assert found.domain[-1] == "10", "numbers are in the order of numbers"
    store.conn.execute("UPDATE labels SET value = 'much' WHERE value = '10'")
    with pytest.raises(BadInput, match="field 'grade': 'much' is not a number"):
        load_field(store, "grade")


def test_a_text_field_has_no_agreement(store: Store) -> None:
    with pytest.raises(UsageError, match=r"'stance' is a text field.*choose another field with --field"):
        load_field(store, "stance", level="text")


def test_stored_distributions_come_with_the_table(store: Store, tmp_path: Path) -> None:
    judge("run", "stance", "-m", "scripted/hash", "--option", "logprobs=1", "-d", tmp_path / "study.db")
    found = load_field(store, "stance")
    (name,) = found.distributions
    table = found.distributions[name].on(np.arange(6))
    # scripted/hash: half on the chosen label, 1 % on no label, the rest on the two others.
    assert table.shape == (6, 3) and np.allclose(table.sum(axis=1), 0.99)
    assert (table.argmax(axis=1) == found.ratings.column(name)).all()
    assert load_field(store, "stance", distributions=False).distributions == {}


def test_only_four_modules_name_the_relation_in_sql() -> None:
    store = ROOT / "judge" / "store"
    # One reads arrays, one answers small questions, one writes runs and gold, one lets labels follow from what each source says.
    home = {
        ROOT / "judge" / "labels" / "reader.py",
        ROOT / "judge" / "labels" / "relation.py",
        store / "label_rows.py",
        store / "label_sources.py",
    }
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder in ("judge", "annotate")
        for path in (ROOT / folder).rglob("*.py")
        if path not in home and "migrations" not in path.name
        for match in re.finditer(r"(FROM|JOIN|INTO|UPDATE) +(main\.)?labels\b", path.read_text("utf-8"))
    ]
    assert found == []
