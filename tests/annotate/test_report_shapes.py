"""Whatever labels a study holds, every format comes out: levels, numbers of people and judges, gold or none."""

import random
import warnings
from pathlib import Path
from typing import Any

import pytest

from annotate.report import FORMATS, ReportOptions, build
from judge.prompts import load_task
from judge.prompts.load import parse_task
from judge.store import Store
from judge.types import Status
from tests.annotate.agreement_helpers import annotate, checked
from tests.annotate.report_helpers import U, add_run, grade_task, report_of, score_task, study

TASKS = {
    "nominal": (load_task("stance"), ["support", "refute", "neutral"]),
    "ordinal": (grade_task(), ["low", "mid", "high"]),
    "interval": (score_task(), ["0", "1", "2.5", "7"]),
}


@pytest.mark.parametrize(
    ("level", "n", "people", "judges", "gold"),
    [
        ("nominal", 1, 0, 1, True),
        ("nominal", 12, 1, 2, True),
        ("nominal", 12, 2, 0, False),
        ("nominal", 40, 10, 1, False),
        ("ordinal", 12, 3, 1, True),
        ("ordinal", 5, 0, 2, True),
        ("interval", 12, 0, 1, True),
        ("interval", 40, 3, 1, False),
        ("interval", 12, 2, 2, True),
    ],
)
def test_every_shape_of_study_has_a_report(
    tmp_path: Path, level: str, n: int, people: int, judges: int, gold: bool
) -> None:
    task, labels = TASKS[level]
    draw = random.Random(n + people)
    units = []
    for i in range(n):
        truth = draw.choice(labels)

        def label(truth: str = truth) -> str:
            return truth if draw.random() < 0.8 else draw.choice(labels)

        answers: dict[str, Any] = {f"m/{j}": label() for j in range(judges) if draw.random() < 0.9}
        if i % 7 == 3 and judges:
            answers["m/0"] = draw.choice(list(Status)[1:])
        elif level != "interval" and "m/0" in answers:
            answers["m/0"] = (answers["m/0"], 0.5 + i % 5 / 10)
        votes = {f"p{k}": label() for k in range(people) if draw.random() < 0.8}
        units.append(U(truth if gold and i % 5 < 4 else None, votes, answers, question=f"q{i // 2}"))
    units[0].people, units[0].judges = (
        {f"p{k}": labels[0] for k in range(people)},
        {f"m/{j}": labels[0] for j in range(judges)},
    )
    path = study(tmp_path / "study.db", units, task)
    with warnings.catch_warnings(), Store.open(path, create=False) as store:
        warnings.simplefilter("error")
        document = build(store, ReportOptions())
        texts = {name: render(document) for name, render in FORMATS.items()}
    result = checked(texts["json"])
    assert len(result["verdicts"]) == (judges if people or gold else 0)
    for measure in result["measures"]:
        assert measure["value"] is None or measure["coverage"] is not None, measure
    for section in document.sections:
        assert bool(section.blocks) != bool(section.absent) or section.key == "citations"
    assert all(text.endswith("\n") or name == "html" for name, text in texts.items())


def test_two_runs_of_one_model_are_told_apart(tmp_path: Path) -> None:
    from judge.store.judgements import Entry, add_judgements
    from judge.store.runs import start_run
    from judge.types import Answered, Judgement, Usage

    path = study(tmp_path / "study.db", [U("support", {}, {"m/judge": "support"})] * 12)
    with Store.open(path, create=False) as store:
        run, _ = start_run(store, load_task("stance"), "m/judge", {"temperature": 1.0}, {})
        labels = (Answered("stance", "refute"),)
        entry = Entry(
            Judgement(run, "study:0/p", 0, 0, Status.OK, None, None, labels, Usage(), None, None), None
        )
        with store.transaction() as conn:
            add_judgements(conn, [entry], set())
        document = build(store, ReportOptions())
        runs = [r[0] for r in store.conn.execute("SELECT run_id FROM runs ORDER BY started, run_id")]
    assert [j["name"] for j in document.facts["judges"]] == [f"m/judge · {r[-4:]}" for r in runs]


def test_two_runs_of_one_model_with_two_versions_of_a_task_have_the_version_in_their_names(
    tmp_path: Path,
) -> None:
    """A user compared two versions of his prompt, and the report told them apart by the end of the run ids alone."""
    path = study(tmp_path / "study.db", [U("support", {}, {"m/judge": "support", "m/other": "support"})] * 12)
    new = parse_task(load_task("stance").text, "stance.v9.md")
    with Store.open(path, create=False) as store:
        add_run(store, new, "m/judge", {f"study:{i}/p": "support" for i in range(12)})
        names = ["m/judge · stance.v2", "m/other", "m/judge · stance.v9"]
        assert sorted(j["name"] for j in build(store, ReportOptions()).facts["judges"]) == sorted(names)
        for name in names:
            # A name as printed is a name to type, and it keeps the version where its run is alone.
            alone = build(store, ReportOptions(runs=(name,)))
            assert [j["name"] for j in alone.facts["judges"]] == [name]
    gates = tmp_path / "gates.xml"
    annotate("report", "--judge", names[2], "--fail-under", "verdict=trust", "-o", gates, "-d", path, code=5)
    assert "m/judge · stance.v9: trust" in gates.read_text(encoding="utf-8")


def test_rows_with_nothing_to_say_are_left_out_and_named(tmp_path: Path) -> None:
    """ann and bob share 20 units of 60, cyd shares none with anybody: her pairs are a note, theirs is a row."""
    units = [
        U("support", dict.fromkeys(who, ("support", "refute")[i % 2]), {"m/a": "support"}, question=f"q{i}")
        for i in range(60)
        for who in [("ann", "bob") if i < 20 else ("bob",) if i < 40 else ("cyd",)]
    ]
    document = report_of(tmp_path, units)
    [pairs] = [t for s in document.sections for t in s.tables() if t.key == "pairs"]
    assert [row[0] for row in pairs.rows] == ["ann and bob"]
    assert [n for n in pairs.notes if n.startswith("Left out")] == [
        "Left out (no unit is labelled by two annotators): ann and cyd, bob and cyd."
    ]
    # What is undefined on units that there are stays, with its reason: the judge gave one label only.
    [kappa] = [m for s, m in document.measures() if s == "judges" and m.annotators == ("m/a", "ann") and m.measure == "cohen_kappa"]  # fmt: skip
    assert kappa.value is None and kappa.n_units == 20 and kappa.reason
