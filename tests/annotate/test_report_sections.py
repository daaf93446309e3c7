"""One number of each section, worked out by hand on a study of twelve units."""

from collections.abc import Sequence
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from annotate.report import ReportOptions, build
from judge.document.blocks import Cases, Document, Facts, Paragraph, Table
from judge.errors import UsageError
from judge.prompts import load_task, parse_task
from judge.prompts.load import Task
from judge.store import Store
from judge.types import Measure, Status
from tests.annotate.report_helpers import (
    U,
    add_label,
    add_run,
    grade_task,
    report_of,
    score_task,
    section,
    study,
    table,
)

S, R, N = "support", "refute", "neutral"
# gold, ann, bob, judge with its probability. The judge is wrong on 2, 5 and 7, and has no label on 9.
ROWS: list[tuple[Any, ...]] = [
    (S, S, S, (S, 0.9)),
    (S, S, S, (S, 0.8)),
    (S, S, R, (R, 0.95)),
    (R, R, R, (R, 0.7)),
    (R, R, R, (R, 0.9)),
    (R, S, R, (S, 0.6, "it says so")),
    (N, N, N, (N, 0.9)),
    (N, N, N, (S, 0.99)),
    (S, S, S, (S, 0.8)),
    (R, R, R, Status.UNPARSED),
    (None, None, None, (S, 0.9)),
    (None, None, None, (N, 0.8)),
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = []
    for i, (gold, ann, bob, judge) in enumerate(ROWS):
        people = {"ann": ann, "bob": bob} if ann else {}
        made.append(U(gold, people, {"m/judge": judge}, f"Claim {i // 2}.", f"Passage {i}.", f"q{i // 2}"))
    path = study(tmp_path_factory.mktemp("study") / "study.db", made)
    with Store.open(path) as store:
        # Asked again about five units, the judge changes its mind on unit 3.
        again = {f"study:{i}/p": (S if i == 3 else ROWS[i][3][0]) for i in range(5)}
        add_run(store, load_task("stance"), "m/judge", again, repeat=1)
        store.conn.execute(
            "UPDATE annotators SET profile = '{\"qualification\": \"MSc\"}' WHERE annotator_id = 'ann'"
        )
    for unit, value in ((0, S), (2, S), (5, S)):
        add_label(path, f"study:{unit}/p", "stance", "bob", value, layer="revised")
    return path


@pytest.fixture(scope="module")
def document(db: Path) -> Document:
    with Store.open(db, create=False) as store:
        return build(store, ReportOptions())


def row(result: Table, name: str) -> Sequence[Any]:
    return next(r for r in result.rows if r[0] == name)


def value(cell: Any) -> float:
    assert isinstance(cell, Measure) and cell.value is not None
    return cell.value


def cases_of(document: Document) -> Cases:
    (cases,) = [b for b in section(document, "disagreements").blocks if isinstance(b, Cases)]
    return cases


def facts_of(document: Document, key: str) -> dict[str, str]:
    return dict(next(b for b in section(document, key).blocks if isinstance(b, Facts)).rows)


def paragraphs_of(document: Document, key: str) -> list[str]:
    return [b.text for b in section(document, key).blocks if isinstance(b, Paragraph)]


def test_who_annotated(document: Document) -> None:
    result = table(document, "annotators")
    assert [c.title for c in result.columns] == ["annotator", "kind", "units labelled", "qualification"]
    assert row(result, "ann") == ["ann", "human", 10, "MSc"] and row(result, "bob")[3] == ""
    texts = paragraphs_of(document, "who")
    assert (
        texts[0] == "2 people gave 20 labels on 10 units: 2 labels per unit; each person labelled 10 units."
    )
    assert texts[1].endswith(": training, paid, consent.")


def test_units_and_the_question(document: Document) -> None:
    result = table(document, "units")
    assert row(result, "m/judge")[1:] == [12, 6], "asked about twelve units, the unparsed one too"
    assert row(result, "gold and m/judge")[1:] == [10, 5]
    assert (
        facts_of(document, "sampling")["question"]
        == "Does the passage support the claim, refute it, or neither?"
    )
    notes = paragraphs_of(document, "sampling")
    assert any("no annotation batch" in text for text in notes)


def test_the_human_ceiling(document: Document) -> None:
    # ann and bob differ on units 2 and 5 of ten: .8. ann 5 S, 3 R, 2 N; bob 3 S, 5 R, 2 N: chance .15 + .15 +
    # .04 = .34, kappa (.8 - .34) / .66 = .697.
    _, percent, kappa, n = row(table(document, "pairs"), "ann and bob")
    assert value(percent) == pytest.approx(0.8) and value(kappa) == pytest.approx(0.46 / 0.66)
    assert (n.n_units, n.n_clusters, n.coverage) == (10, 5, 1.0)
    # Both say support on three units, one of them on five and the other on three: 2 x 3 / (5 + 3).
    support = row(table(document, "class_agreement"), S)[1]
    assert value(support) == pytest.approx(0.75) and support.n_units == 5, (
        "the units on which one of them says it"
    )
    # Without the two ties the majority is gold on all eight.
    percent = row(table(document, "people_gold"), "percent agreement")[1]
    assert (value(percent), percent.n_units, percent.coverage) == (1.0, 8, 0.8)


def test_the_judge_against_gold(document: Document) -> None:
    # Nine of ten units: right on six. Gold 4 S, 3 R, 2 N; judge 5, 3, 1: kappa (54 - 31) / (81 - 31) = .46.
    _, percent, kappa, *_, n = row(table(document, "agreement_1"), "gold")
    assert value(percent) == pytest.approx(6 / 9) and value(kappa) == pytest.approx(0.46)
    assert (n.n_units, n.coverage) == (9, 0.9), "the unparsed reply lowers the coverage"


def test_confusion_and_scores(document: Document) -> None:
    cells = table(document, "confusion_1_cells")
    assert [list(r[1:]) for r in cells.rows] == [[3, 1, 0, 4], [1, 2, 0, 3], [1, 0, 1, 2], [5, 3, 1, 9]]
    assert value(row(table(document, "scores_1"), "accuracy")[1]) == pytest.approx(6 / 9)
    _, precision, given, recall, having, f1, _ = row(table(document, "scores_1_labels"), S)
    # Of the cells: five units were given the label, four have it, six are either; nine are labelled by both.
    assert (given, having, precision.n_units, recall.n_units, f1.n_units) == (5, 4, 5, 4, 6)
    assert [value(m) for m in (precision, recall, f1)] == pytest.approx([3 / 5, 3 / 4, 6 / 9])


def test_class_shares(document: Document) -> None:
    result = table(document, "shares")
    assert row(result, "m/judge")[1:] == pytest.approx([6 / 11, 3 / 11, 2 / 11, 11])
    assert row(result, "m/judge, on the units with the gold labels")[-1] == 9
    assert row(result, "all people's labels")[1:] == pytest.approx([0.4, 0.4, 0.2, 20])


def test_reliability(document: Document) -> None:
    # Bins up to .6, .7, .8, .9, 1 hold 1, 1, 2, 3, 2 units with share right 0, 1, 1, 1, 0:
    # (.6 + .3 + 2 x .2 + 3 x .1 + 2 x .97) / 9.
    ece = row(table(document, "calibration_1"), "expected calibration error (10 bins)")[1]
    assert value(ece) == pytest.approx(3.54 / 9)


def test_disagreements_come_with_text_and_all_labels_the_surest_error_first(document: Document) -> None:
    cases = cases_of(document)
    assert [c.unit_id for c in cases.rows] == ["study:7/p", "study:2/p", "study:5/p"]
    last = cases.rows[2]
    assert last.shown == [("claim", "Claim 2."), ("passage", "Passage 5.")]
    assert [(s.who, s.label) for s in last.labels] == [("m/judge", S), ("gold", R), ("ann", S), ("bob", R)]
    assert (last.labels[0].how_sure, last.labels[0].rationale) == ("probability 0.60", "it says so")


def test_a_disagreement_shows_the_texts_of_listed_passages(tmp_path: Path) -> None:
    task = parse_task(
        "---\ntitle: All?\nunit: item\ninputs: [claim, passages]\nquestions:\n  - field: verdict_of_all\n"
        "    labels: [{value: support}, {value: refute}]\n---\nAll?\n<!-- unit -->\n{{ claim }}\n{{ passages }}\n"
        "{{ answer_cue }}\n",
        "all.v1.md",
    )
    path = study(tmp_path / "study.db", [U(text="Mars is red.")], task)
    with Store.open(path, create=False) as store:
        add_run(store, task, "m/judge", {"study:0": R})
    add_label(path, "study:0", "verdict_of_all", "ann", S)
    with Store.open(path, create=False) as store:
        cases = cases_of(build(store, ReportOptions()))
    assert cases.rows[0].shown == [("claim", "The claim."), ("passages [p]", "Mars is red.")]


def test_the_list_of_disagreements_has_a_limit(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annotate.report.cases.MOST_LISTED", 1)
    with Store.open(db, create=False) as store:
        document = build(store, ReportOptions())
    cases = cases_of(document)
    assert len(cases.rows) == 1 and "the first 1 of 3 units" in cases.caption


def test_self_consistency(document: Document) -> None:
    result = row(table(document, "consistency"), "m/judge")
    assert result[1] == 2 and value(result[2]) == pytest.approx(0.8) and result[2].n_units == 5


def test_revisions(document: Document) -> None:
    # bob keeps unit 0, leaves the judge on 2 (refute to support) and joins it on 5 (refute to support).
    (result,) = table(document, "revisions").rows
    assert result[:2] == ["bob", "m/judge"]
    assert [value(m) for m in result[2:5]] == pytest.approx([2 / 3, 1 / 3, 1 / 3]) and result[5].n_units == 3
    assert any("does not record" in note for note in table(document, "revisions").notes)


def test_corrected_numbers(document: Document) -> None:
    # The judge says support on 6 of 11 units, gold on 4 of 10. It is right on 3 of 4 of those, and says something
    # else on 3 of the other 5: (6/11 + 3/5 - 1) / (3/4 + 3/5 - 1).
    _, judge, human, ppi, lam, rate, judged, labelled = row(
        table(document, "corrected_1"), "share of 'support'"
    )
    assert value(judge) == pytest.approx(6 / 11) and value(human) == pytest.approx(0.4)
    assert value(rate) == pytest.approx((6 / 11 + 0.6 - 1) / 0.35)
    assert (judged, labelled) == (11, 10)
    # On ten labels the two pseudo-residuals make the corrected interval wider than that of gold alone, which stands.
    assert lam == 0 and value(ppi) == value(human) and (ppi.low, ppi.high) == (human.low, human.high)
    accuracy = row(table(document, "corrected_1"), "accuracy of the judge against the gold labels")
    assert value(accuracy[2]) == pytest.approx(6 / 9)


def test_what_cannot_be_said_comes_with_its_reason(document: Document) -> None:
    silent = {s.key: s.absent for s in document.sections if not s.blocks}
    assert silent.keys() == {"alternative", "latent"}
    assert all("2 people" in reason for reason in silent.values())


def test_the_judge_and_its_replies(document: Document) -> None:
    result = row(table(document, "statuses"), "m/judge")
    assert result[1:4] == [17, "16 (94.1%)", "1 (5.9%)"], "twelve units and five repeats"
    facts = facts_of(document, "runs")
    assert facts["resolved model"] == "m/judge-2026" and facts["task"] == "stance.v2"
    assert facts["task file sha256"] == load_task("stance").sha256


def test_what_was_learnt_of_a_server_is_no_setting_of_the_judge(document: Document, db: Path) -> None:
    def provider(of: Document) -> str:
        return facts_of(of, "runs")["provider"]

    copied = db.with_name("asked.db")
    copyfile(db, copied)
    with Store.open(copied) as store:
        known = '{"http://127.0.0.1:1/v1": {"at": "2026-11-23T00:00:00.000Z", "concurrency": 8}}'
        store.conn.execute("UPDATE runs SET provider = json_set(provider, '$.servers', json(?))", [known])
        assert provider(build(store, ReportOptions())) == provider(document)


def test_the_data_and_the_methods(document: Document) -> None:
    facts = facts_of(document, "imports")
    assert facts["format"] == "jsonl" and "study.jsonl (sha256 " in facts["file"]
    works = [r[0] for r in table(document, "citations").rows]
    assert "Cohen's kappa" in works and "corrected means (PPI++)" in works
    assert "alternative annotator test" not in works, "only what was used"
    texts = paragraphs_of(document, "citations")
    assert "Fact or Fiction: Verifying Scientific Claims (SciFact), 2020" in texts[0]


def test_three_people_bring_the_alt_test_and_the_latent_classes(tmp_path: Path) -> None:
    made = []
    for i in range(40):
        truth = S if i % 2 else R
        wrong = R if i % 2 else S
        people = {"a": wrong if i % 10 < 2 else truth, "b": truth, "c": truth}
        made.append(U(None, people, {"m/judge": truth}))
    document = report_of(tmp_path, made)
    # The judge is at least as close as a on all units, a as the judge on the 8 of 10 where a does not err.
    result = row(table(document, "alternative_1"), "a")
    assert result[1:3] == [1.0, 0.8] and result[5:7] == ["t", "yes"]
    # Two against one on every unit: EM finds the truth, and that a is right on 8 of 10.
    assert row(table(document, "accuracies"), "a")[1] == pytest.approx(0.8, abs=0.001)
    assert row(table(document, "prevalence"), S)[2] == 20
    assert value(row(table(document, "latent_agreement"), "m/judge")[1]) == 1.0


def test_nine_people_are_summarised(tmp_path: Path) -> None:
    names = "abcdefghi"
    made = [
        U(
            S if i % 2 else R,
            {n: (S if i % 2 else R) if i != k else N for k, n in enumerate(names)},
            {"m/judge": S},
        )
        for i in range(20)
    ]
    document = report_of(tmp_path, made)
    result = table(document, "pairs").rows[0]
    assert result[1:3] == [36, 36], "9 x 8 / 2 pairs share units, all with a kappa"
    assert table(document, "agreement_1_spread").rows[0][1:3] == [9, 0], "the judge has one label: undefined"


def test_an_ordinal_field_is_weighted(tmp_path: Path) -> None:
    task = grade_task()
    # Gold low, mid, high ten times each; the judge is one step off on five of the ten mid.
    made = [
        U(
            ("low", "mid", "high")[i % 3],
            {},
            {"m/judge": ("low", "low" if i % 6 == 1 else "mid", "high")[i % 3]},
        )
        for i in range(30)
    ]
    document = report_of(tmp_path, made, task)
    _, percent, kappa, quadratic, *_ = row(table(document, "agreement_1"), "gold")
    # Judge 15, 5, 10: agreement 25/30, chance (150 + 50 + 100) / 900 = 1/3: kappa (5/6 - 1/3) / (2/3) = .75.
    assert value(percent) == pytest.approx(25 / 30) and value(kappa) == pytest.approx(0.75)
    # Squared distances: observed 5/30; expected (10x5x1 + 10x10x4 + 10x15x1 + 10x10x1 + 10x15x4 + 10x5x1) / 900 = 1.5.
    assert value(quadratic) == pytest.approx(1 - (5 / 30) / 1.5)
    assert "0.889" in document.rulings[0].because


def test_a_field_of_numbers(tmp_path: Path) -> None:
    task = score_task()
    made = [U(str(i % 5), {}, {"m/judge": str(i % 5 + (i % 10 == 0) / 2)}) for i in range(40)]
    document = report_of(tmp_path, made, task)
    assert "(interval)" in section(document, "confusion").absent
    # The judge adds 1/2 on four of forty units: its mean is .05 above gold's 2.
    estimand = row(table(document, "corrected_1"), "mean of 'score'")
    assert value(estimand[1]) == pytest.approx(2.05) and value(estimand[2]) == pytest.approx(2.0)
    assert value(row(table(document, "shares"), "gold")[1]) == pytest.approx(2.0)
    cases = cases_of(document)
    assert len(cases.rows) == 4
    assert document.rulings[0].decision == "trust"


def test_adjudicated_labels_are_the_reference_where_there_are_any(db: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(db.read_bytes())
    with Store.open(db, create=False) as source, Store.open(copy) as target:
        source.conn.backup(target.conn)
    for unit in (2, 5):
        add_label(copy, f"study:{unit}/p", "stance", "adjudicated", S, kind="adjudicated")
    with Store.open(copy, create=False) as store:
        document = build(store, ReportOptions())
        assert dict(document.about)["reference"].startswith(
            "the adjudicated labels (2 units) and those that people agree on (8)"
        )
        # Units 2 and 5 were decided; on the eight others ann and bob agree, and the judge has a label on all but 9.
        # Support: 0, 1, 5 and 8 right, 2 called refute.
        assert list(table(document, "confusion_1_cells").rows[0][1:]) == [4, 1, 0, 5]
        assert not [t for s in document.sections for t in s.tables() if t.key == "people_adjudicated"]
        by_majority = build(store, ReportOptions(reference="majority"))
    assert dict(by_majority.about)["reference"] == "the people's majority"


def test_choices_left_open_are_usage_errors(tmp_path: Path) -> None:
    path = study(tmp_path / "study.db", [U(S, {}, {"m/judge": S})] * 3)
    study(tmp_path / "study.db", [U("low", {}, {"m/judge": "mid"})] * 3, grade_task(), "grades")
    with Store.open(path, create=False) as store:
        with pytest.raises(UsageError, match=r"several tasks; name one with --task: grade\.v1, stance\.v2"):
            build(store, ReportOptions())
        assert build(store, ReportOptions(task="grade")).facts["field"] == "grade"
        with pytest.raises(UsageError, match="no batch 'pilot'; the study has no batches"):
            build(store, ReportOptions(task="stance", batch="pilot"))


def test_votes_alone_make_a_report_and_a_task_file_gives_them_their_question(tmp_path: Path) -> None:
    made = [U(None, {"ann": S if i % 2 else R, "bob": S if i % 3 else R}) for i in range(30)]
    path = study(tmp_path / "study.db", made, unused_task())
    with Store.open(path, create=False) as store:
        plain = build(store, ReportOptions())
        assert plain.title == "How well do people agree on 'verdict_of_mine'?" and plain.facts["task"] is None
        file = tmp_path / "mine.v1.md"
        file.write_text(unused_task().text)
        with_task = build(store, ReportOptions(task=str(file)))
    assert with_task.facts["labels"] == ["support", "refute"] and with_task.facts["task"] == "mine.v1"


def unused_task() -> Task:
    """A task that the study has not used."""
    text = (
        "---\ntitle: Mine?\nunit: passage\ninputs: [passage]\nquestions:\n  - field: verdict_of_mine\n"
        "    labels: [{value: support}, {value: refute}]\n---\nMine?\n<!-- unit -->\n{{ passage }}\n{{ answer_cue }}\n"
    )
    return parse_task(text, "mine.v1.md")


def test_an_empty_study_says_so(tmp_path: Path) -> None:
    with (
        Store.open(tmp_path / "study.db") as store,
        pytest.raises(UsageError, match="there are no labels yet"),
    ):
        build(store, ReportOptions())
