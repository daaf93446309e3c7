"""annotate report TABLE: the whole report of labels that are in no study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge.labels.scope import Scope, read_panel
from judge.store import Store
from tests.annotate.agreement_helpers import VOTES, annotate, checked, document, write_csv
from tests.annotate.report_helpers import U, study

CLUSTER = ("--judge", "gpt")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and another for temporary files: whatever is left behind is seen."""
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.delenv("JUDGE_DB", raising=False)
    return tmp_path


def as_json(*args: str | Path, code: int = 0) -> Any:
    return checked(annotate("report", *args, "--json", code=code).stdout)


def test_every_format_is_written_and_nothing_else_is_left(elsewhere: Path) -> None:
    outputs = [arg for suffix in ("html", "md", "json", "csv", "tex") for arg in ("-o", f"r.{suffix}")]
    done = annotate("report", VOTES, *CLUSTER, *outputs)
    assert done.stdout == "" and "written: " in done.stderr
    files = sorted((elsewhere / "here").iterdir())
    assert [p.name for p in files] == ["r.csv", "r.html", "r.json", "r.md", "r.tex"]
    assert all(p.stat().st_size > 5_000 for p in files)
    assert not list((elsewhere / "temporary").iterdir())
    document = checked(Path("r.json").read_text())
    assert document["study"] == "votes.csv" and document["judges"] == [{"name": "gpt", "run": None}]
    sections = {s["key"]: s for s in document["sections"]}
    assert "does not record the model" in sections["runs"]["absent"]
    (facts,) = sections["imports"]["blocks"]
    # 34 and two times 40 of the people, 38 of the judge: its empty cells are missing labels.
    assert facts["rows"][1] == ["labels", "152 of 40 units"]
    assert "the labels come from a table" in Path("r.md").read_text()


def test_a_table_has_the_numbers_of_the_study_that_holds_the_same_labels(tmp_path: Path) -> None:
    made = [
        U(
            gold="support" if i % 2 else "refute",
            people={
                who: "support" if (i % 2) ^ (i % 20 == place) else "refute"
                for who, place in (("ann", 3), ("bob", 8), ("cyd", 12))
            },
            judges={"m/judge": ("support" if (i % 2) ^ (i % 20 == 5) else "refute", 0.6 + (i % 5) / 20)},
            question=f"q{i // 2}",
        )
        for i in range(120)
    ]
    db = study(tmp_path / "study.db", made)
    with Store.open(db, create=False) as store:
        panel = read_panel(store, Scope("stance"))
        sure = next(iter(panel.distributions.values())).on(np.arange(panel.ratings.n_units))
    table = panel.ratings
    lines = [
        {
            "unit": f"{u:04}",  # in the order of the study: resamples are drawn in it
            "question": f"q{table.clusters[u]:04}",
            "who": "m/judge" if "·" in who else who,
            "label": table.domain[table.codes[u, a]],
            "probabilities": dict(zip(table.domain, map(float, sure[u]), strict=True))
            if "·" in who
            else None,
        }
        for u in range(table.n_units)
        for a, who in enumerate(table.annotators)
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    order = ",".join(table.domain)
    mine = as_json(path, "--judge", "m/judge", "--level", f"nominal:{order}")
    theirs = as_json("-d", db)
    same = ("decision", "because", "shown", "not_shown", "more_units")
    (one,), (other,) = mine["verdicts"], theirs["verdicts"]
    assert {k: one[k] for k in same} == {k: other[k] for k in same}

    def numbers(document: Any) -> list[Any]:
        keys = ("measure", "value", "low", "high", "n_units", "n_clusters", "coverage")
        rows = [
            [round(v, 8) if isinstance(v := m[k], float) else v for k in keys] for m in document["measures"]
        ]
        return sorted(rows, key=str)

    assert len(numbers(mine)) > 60
    assert numbers(mine) == numbers(theirs)
    assert any(s["key"] == "reliability" and s["blocks"] for s in mine["sections"])


def test_a_wide_table_takes_the_probabilities_of_its_one_judge(tmp_path: Path) -> None:
    head = ["id", "ann", "bob", "model", "probabilities"]
    rows = []
    for i in range(60):
        ann, bob, model = (["yes", "no"][(i + (i % 10 == k)) % 2] for k in range(3))
        other = "no" if model == "yes" else "yes"
        rows.append([f"u{i}", ann, bob, model, json.dumps({model: 0.6, other: 0.4})])
    path = write_csv(tmp_path / "wide.csv", [head, *rows])
    wide = ("--annotators", "ann,bob,model")
    document = as_json(path, *wide, "--judge", "model", "--reference", "ann")
    # Always .6 sure and right on 48 of 60 (it errs where i % 10 is 2, ann where it is 0): |.8 - .6| = .2.
    (ece,) = (m for m in document["measures"] if m["measure"] == "ece")
    assert ece["value"] == pytest.approx(0.2) and ece["n_units"] == 60
    # With two judges nothing says whose they are.
    two = as_json(path, *wide, "--judge", "ann", "--judge", "model")
    assert not [m for m in two["measures"] if m["measure"] == "ece"]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ('{"yes": 0.9}', "the probabilities sum to 0.9, not to 1"),
        (
            '{"yes": 0.5, "maybe": 0.5}',
            "'maybe' has a probability, but is not a label; the labels are no, yes",
        ),
        ('{"yes": 1.5, "no": 0}', "1.5 for 'yes' is not a probability"),
        ("0.9", "must be an object that maps labels to probabilities"),
        ("{", "not JSON"),
    ],
)
def test_probabilities_that_are_none_are_named_with_their_line(
    tmp_path: Path, cells: str, message: str
) -> None:
    rows = [["unit", "a", "j", "probabilities"], ["1", "yes", "yes", ""], ["2", "no", "yes", cells]]
    path = write_csv(tmp_path / "bad.csv", rows)
    args = ("--annotators", "a,j", "--judge", "j")
    failed = annotate("report", path, *args, code=1).stderr
    assert f"{path}:3" in failed and message in failed and failed.count("\n") == 1


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    for args, message in (
        ((VOTES, "--judge", "nobody"), "--judge nobody: no such annotator"),
        ((VOTES, "--task", "stance"), "--task is for a study"),
        ((VOTES, "--batch", "b"), "--batch is for a study"),
        (("--cluster", "question_id"), "--cluster is for a table"),
        ((tmp_path / "none.csv",), "does not exist"),
        ((VOTES, *CLUSTER, "--reference", "zoe"), "has no labels from this reference"),
        ((VOTES, *CLUSTER, "-o", VOTES), "the labels are read from this file"),
    ):
        failed = annotate("report", *args, code=2).stderr
        assert message in failed and failed.count("\n") == 1, failed
    ratings = [["unit", "a", "j"], *([str(i), str(i / 7), str(i / 5)] for i in range(300))]
    scores = write_csv(tmp_path / "scores.csv", ratings)
    args = ("--annotators", "a,j", "--judge", "j", "--level", "interval")
    assert "too many for a report" in annotate("report", scores, *args, code=1).stderr
    assert not list(tmp_path.glob("*.db*"))


def test_units_as_the_authors_take_them() -> None:
    args = (VOTES, "--judge", "gpt", "--cluster", "none")
    assert as_json(*args)["settings"]["alt_test_by"] == "units"


def test_a_study_takes_the_annotators_that_are_named(tmp_path: Path) -> None:
    made = [
        U(
            people=dict.fromkeys(("ann", "bob", "cyd"), "support" if i % 2 else "refute"),
            judges={"m/judge": "support"},
        )
        for i in range(20)
    ]
    db = study(tmp_path / "study.db", made)
    with Store.open(db, create=False) as store:
        run = read_panel(store, Scope("stance")).judges[0]
    document = as_json("-d", db, "--annotators", f"ann,bob,{run}")
    assert document["people"] == ["ann", "bob"] and len(document["judges"]) == 1


def test_a_person_who_copied_the_judge_is_named(elsewhere: Path) -> None:
    """The judge says x on every third of 600 units, ann and bob on every second but for a few: they know nothing of each other."""
    seen = {}
    rows = [("unit", "question", "annotator", "label")]
    for i in range(600):
        x = {"gpt": i % 3 == 0, "ann": i % 2 == 0, "bob": (i % 2 == 0) != (i % 25 == 0)}
        rows += [(f"u{i}", f"u{i}", who, "xy"[is_x]) for who, is_x in {**x, "copy": x["gpt"]}.items()]
    for kept, is_there in ((rows, True), ([row for row in rows if row[2] != "copy"], False)):
        (verdict,) = as_json(write_csv(Path("v.csv"), kept), *CLUSTER)["verdicts"]
        # With people the judge agrees (0 + 0 + 1) / 3 beyond chance, they with each other (.92 + 0 + 0) / 3: (a) would hold.
        assert verdict["decision"] == ("undecided" if is_there else "do not trust")
        assert ("the labels of copy are nearly identical to the judge's" in verdict["sentence"]) == is_there
        seen[is_there] = {c["name"]: c["state"] for c in verdict["conditions"]}
        if is_there:
            (reason,) = [c["why"] for c in verdict["conditions"] if c["name"] == "independence"]
            assert "copy differs from the judge on 0 of 600 units" in reason and verdict["more_units"] is None
    assert seen[True]["non_inferiority"] == "holds" and seen[True]["independence"] == "open"
    assert "independence" not in seen[False]


@pytest.mark.parametrize(("n", "decision"), [(200, "undecided"), (40, "trust")])
def test_a_person_alone_who_copied_a_judge_that_guesses_lets_nothing_pass(
    elsewhere: Path, n: int, decision: str
) -> None:
    """Somebody who agrees with a judge on nine units of ten does so on 66 units with a chance of .9^66 < .001; on 40 an
    honest person may. Gold is nobody who copies."""
    for who, expected in (("ann", decision), ("gold", "trust")):
        rows = [("unit", "annotator", "label")]
        rows += [(f"u{i}", name, "xy"[i % 2]) for i in range(n) for name in ("gpt", who)]
        table = write_csv(Path(f"{who}.csv"), rows)
        args = (table, "--judge", "gpt")
        (verdict,) = as_json(*args)["verdicts"]
        assert verdict["decision"] == expected
        code = 0 if expected == "trust" else 5
        failed = annotate("report", *args, "--fail-under", "verdict=trust", code=code).stderr
        assert ("gpt: undecided" in failed) == (code == 5)
        if code:
            (plan,) = document("plan", *args, "--verdict")["judges"]
            assert plan["decision"] == "undecided" and plan["more_units"] is None
            assert plan["why"] == "the labels of ann are nearly identical to the judge's"
