"""The papers' measures in the report: judge, people and both, read as `judge score` reads them; and weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from annotate.report import ReportOptions
from annotate.report.corrected import corrected
from annotate.report.subject import load
from judge.document.blocks import Paragraph, Section
from judge.store import Store
from judge.types import Measure
from tests.annotate.report_helpers import U, study
from tests.annotate.test_report_batches import with_batch
from tests.formats import garage_row, write_jsonl
from tests.suites.helpers import Judge, answers, give
from tests.suites.test_confirmation import CLAIMS, LISTS, PAIRS, STANCES, lists
from tests.suites.test_people import people

GOOD, BAD = "No Issues", "Major Issue(s)"


def report(db: str | Path = "study.db", **asked: Any) -> Section:
    """The section of the report that these tests are about."""
    with Store.open(db, create=False) as store:
        return section(store, **asked)


def section(store: Store, **asked: Any) -> Section:
    return corrected(store, load(store, ReportOptions(**asked)))


def rows(of: Section) -> Mapping[str, Any]:
    return {str(r[0]): r for t in of.tables() if t.key == "corrected_1" for r in t.rows}


def values(row: Any) -> tuple[float | None, float | None, float | None]:
    judge, human, both = (m.value if isinstance(m, Measure) else None for m in row[1:4])
    return judge, human, both


def notes(of: Section) -> str:
    return " ".join(b.text for b in of.blocks if isinstance(b, Paragraph))


def unit(n: int, system: str = "m") -> str:
    return f"garage:g{n}@{system}@full"


@pytest.fixture
def garage(judge: Judge, tmp_path: Path) -> None:
    """Eight answerable rows and four with insufficient grounding, answered by `m`: two sentences each."""
    made = [garage_row(f"g{n}", ["ANSWER-THE-QUESTION"], sufficient=n < 8) for n in range(12)]
    judge("items", "import", "garage", write_jsonl(tmp_path / "garage.jsonl", made))
    answers(judge, tmp_path, [(f"g{n}", "m", "full", f"A{n} holds [cite_1]. B{n} too.") for n in range(12)])
    # The judge calls g0 to g5 eligible and says that g7 and g8 to g10 decline; sentence 1 of g0 is unsupported.
    give("eligibility", {unit(n): GOOD if n < 6 else BAD for n in range(8)})
    give("deflection", {unit(n): "missing" if n in (7, 8, 9, 10) else "attempted" for n in range(12)})
    sentences = {f"{unit(n)}#s{s}": "supported" for n in range(8) for s in (0, 1)}
    give("grounding", sentences | {f"{unit(0)}#s1": "unsupported"})
    give("grounding_relevant", sentences | {f"{unit(n)}#s0": "unsupported" for n in (0, 1, 2)})


def test_eligibility_and_deflection_rates(judge: Judge, garage: None) -> None:
    # Of g9 the judge was not asked: what ann says of it belongs to another population.
    people("eligibility", {"ann": {unit(0): GOOD, unit(1): BAD, unit(6): BAD, unit(7): BAD, unit(9): GOOD}})
    result = rows(report(task="eligibility"))
    assert values(result[f"share of '{BAD}'"])[:2] == (2 / 8, 3 / 4)
    # The judge: 6 of 8; ann: 1 of 4.
    assert values(result["eligibility"])[:2] == (6 / 8, 1 / 4)
    assert result["eligibility"][-2:] == [8, 4]
    people(
        "deflection",
        {"ann": {unit(n): "missing" for n in (8, 9, 11)} | {unit(n): "attempted" for n in (0, 1)}},
    )
    result = rows(report(task="deflection"))
    # Insufficient rows: the judge 3 of 4, ann 3 of 3. Answerable rows: 1 of 8, and 0 of 2.
    assert values(result["deflection true positive rate"])[:2] == (3 / 4, 1.0)
    assert values(result["deflection false positive rate"])[:2] == (1 / 8, 0.0)
    # The share of the label is over all rows: 4 of 12, and 3 of 5.
    assert values(result["share of 'missing'"])[:2] == (4 / 12, 3 / 5)


def test_factuality_rests_on_two_tasks_and_raf_on_the_relevant_passages(judge: Judge, garage: None) -> None:
    both = {f"{unit(n)}#s{s}": "supported" for n in (0, 1, 6) for s in (0, 1)}
    people("eligibility", {"ann": {unit(n): GOOD if n < 6 else BAD for n in (0, 1, 6)}})
    people("grounding", {"ann": {**both, f"{unit(1)}#s0": "contradictory"}})
    result = rows(report(task="grounding"))
    # Grounded: the judge 7 of 8 (not g0), ann 2 of 3 (not g1). And eligible: 5 of 8; ann g0 alone, 1 of 3.
    assert values(result["unadjusted factuality"])[:2] == (7 / 8, pytest.approx(2 / 3))
    assert values(result["factuality"])[:2] == (5 / 8, pytest.approx(1 / 3))
    people("grounding_relevant", {"ann": both})
    result = rows(report(task="grounding_relevant"))
    # In relevant passages: the judge 5 of 8 (not g0 to g2), and eligible 3 of 8. For ann all three hold there, and g0 and
    # g1 are eligible: 2 of 3. ann contradicts herself on g1, which does not hold against all passages.
    assert values(result["unadjusted RAF"])[:2] == (5 / 8, 1.0)
    assert values(result["RAF"])[:2] == (3 / 8, pytest.approx(2 / 3))
    assert values(result["contradictory labels"])[1] == pytest.approx(1 / 3)


def test_several_systems_come_one_by_one(judge: Judge, garage: None, tmp_path: Path) -> None:
    answers(judge, tmp_path, [(f"g{n}", "other", "full", f"C{n}.") for n in range(4)])
    give(
        "eligibility",
        {unit(n): GOOD for n in range(8)} | {unit(n, "other"): BAD for n in range(4)},
        model="two",
    )
    people(
        "eligibility", {"ann": {unit(0): GOOD, unit(1): GOOD, unit(0, "other"): BAD, unit(1, "other"): GOOD}}
    )
    with Store.open("study.db") as store:
        run = store.conn.execute("SELECT run_id FROM runs WHERE model = 'two'").fetchone()[0]
    result = rows(report(task="eligibility", runs=(run,)))
    assert values(result["eligibility · m (full)"])[:2] == (1.0, 1.0)
    # `other` answers four of eight questions; the four it leaves out are failures, and are known without a label. ann
    # calls one of two answers eligible, which stand for the four answered: (4 * 1/2 + 4 * 0) / 8.
    assert values(result["eligibility · other (full)"])[:2] == (0.0, 0.25)


def test_human_answers_are_no_system(judge: Judge, garage: None, tmp_path: Path) -> None:
    answers(judge, tmp_path, [(f"g{n}", "human", "full", f"C{n}.") for n in range(4)])
    labels = {unit(n): GOOD for n in range(8)} | {unit(n, "human"): BAD for n in range(4)}
    give("eligibility", labels, model="two")
    people("eligibility", {"ann": {unit(0): GOOD, unit(1): BAD}})
    with Store.open("study.db") as store:
        run = store.conn.execute("SELECT run_id FROM runs WHERE model = 'two'").fetchone()[0]
    document = report(task="eligibility", runs=(run,))
    assert values(rows(document)["eligibility"])[:2] == (1.0, 0.5)
    assert "garage:" not in notes(document)


def test_support_ratios_and_confirmation_bias(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "claim-pairs", write_jsonl(tmp_path / "c.jsonl", PAIRS), "--dataset", "c")
    lists(judge, tmp_path, LISTS)
    give("stance", {f"c:{name}": label for name, label in STANCES.items()})
    # Ann says of p1 what the judge says, of p2 one list of two.
    mine = {f"c:{name}": label for name, label in STANCES.items() if name.startswith("p1")}
    people("stance", {"ann": {**mine, "c:p2-original/e": "support"}})
    result = rows(report(task="stance"))
    # Retrieve: SR of the original claims 1/2 and 1, of the counter claims 1 and 0; the bias .5 and 0.
    assert values(result["SR original [retrieve]"])[:2] == (0.75, 0.75)
    assert values(result["SR counter [retrieve]"])[:2] == (0.5, 1.0)
    assert values(result["CR [retrieve]"])[:2] == (0.25, 0.5)
    # Two pairs: Student's interval is .25 -+ 12.7 x .25, and a bias lies in 0 to 1.
    assert (result["CR [retrieve]"][1].low, result["CR [retrieve]"][1].high) == (0.0, 1.0)
    assert "overlap [retrieve]" not in result, "no label is in it"
    # Whether a pair is defined is known of one pair alone.
    assert result["defined pairs [retrieve]"][-2:] == [2, 1]
    answers(judge, tmp_path, [(claim, "s", "rag", f"About {claim}.") for claim in CLAIMS])
    verdicts = dict(zip((f"c:{claim}@s@rag" for claim in CLAIMS), ("yes", "yes", "yes", "no"), strict=True))
    give("confirmation", verdicts)
    people("confirmation", {"ann": dict(list(verdicts.items())[:3])})
    result = rows(report(task="confirmation"))
    # Both answers of p1 support their claim, of p2 one; ann has p1 alone.
    assert values(result["CBR"])[:2] == (0.5, 1.0)
    assert result["valid pairs"][-2:] == [2, 1]


def test_a_list_that_is_labelled_in_part_does_not_count(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "claim-pairs", write_jsonl(tmp_path / "c.jsonl", PAIRS), "--dataset", "c")
    lists(judge, tmp_path, LISTS)
    give("stance", {f"c:{name}": label for name, label in STANCES.items()})
    people("stance", {"ann": {"c:p1-original/a": "support", "c:p2-original/e": "support"}})
    result = rows(report(task="stance"))
    # Of p1's list one passage of three is labelled, of p2's the only one: what is labelled as a whole is the short list.
    assert values(result["SR original [retrieve]"]) == (0.75, None, None)
    assert "1 labels by majority on stance" in notes(report(task="stance"))


def test_unequal_probabilities_are_weighed(tmp_path: Path) -> None:
    document = report(
        with_batch(tmp_path / "study.db", weights=(1.0, 4.0)), batch="pilot", reference="majority"
    )
    result = rows(document)
    # ann: refute, support in turn; bob refutes 0, 3, 6, 9. They agree on 0 and 6 (refute, weight 1), 1, 5 and 7
    # (support, weight 4).
    assert values(result["share of 'support'"])[1] == pytest.approx(12 / 14)
    assert "drawn with unequal probabilities" in notes(document)
    even = report(with_batch(_folder(tmp_path) / "study.db"), batch="pilot", reference="majority")
    assert values(rows(even)["share of 'support'"])[1] == pytest.approx(3 / 5)
    assert "drawn with unequal probabilities" not in notes(even)


def _folder(path: Path) -> Path:
    (path / "even").mkdir()
    return path / "even"


def test_whether_the_sample_was_random_is_told(tmp_path: Path) -> None:
    study = with_batch(tmp_path / "study.db")
    drawn = report(study, batch="pilot", reference="majority")
    assert "They were drawn at random, by batches of this study" in notes(drawn)
    assert "5 units with a tie" in notes(drawn)
    assert "5 of the 10 units drawn have no reference label" in notes(drawn), (
        "those left are no random sample"
    )
    assert "drawn have no reference label" not in notes(report(study, batch="pilot", reference="ann"))
    with Store.open(study) as store, store.transaction() as conn:
        for table in ("labels", "assignments"):
            conn.execute(f"DELETE FROM {table} WHERE annotator_id = 'ann' AND unit_id = 'study:3/p'")
    # With less than full overlap most units without a person's label were never that person's.
    assert "have no reference label (not asked, open" in notes(report(study, batch="pilot", reference="ann"))
    gold = report(tmp_path / "study.db")
    assert "how units were selected for gold labels" in notes(gold)
    queue = report(
        with_batch(_folder(tmp_path) / "study.db", purpose="queue"), batch="pilot", reference="majority"
    )
    assert "5 of the 5 labelled units" in notes(queue)


def test_a_judge_without_probabilities_has_the_accuracy_of_the_labelled_units(tmp_path: Path) -> None:
    made = [U(gold="support" if n % 2 else "refute", judges={"m/judge": "support"}) for n in range(20)]
    result = rows(report(study(tmp_path / "study.db", made)))
    row = result["accuracy of the judge against the gold labels"]
    judge_only, human_only, both = row[1:4]
    assert judge_only.value is None and judge_only.reason == "no unit has a value"
    assert human_only.value == both.value == 0.5
    assert "human only: every unit has a human label" in both.notes


RESTS_ON = {
    "eligibility": {"eligibility"},
    "deflection true positive rate": {"deflection"},
    "deflection false positive rate": {"deflection"},
    "unadjusted factuality": {"grounding"},
    "factuality": {"eligibility", "grounding"},
    "unadjusted RAF": {"grounding", "grounding_relevant"},
    "RAF": {"eligibility", "grounding", "grounding_relevant"},
    "over summarisation gap": {"eligibility", "grounding", "grounding_relevant"},
    "contradictory labels": {"grounding", "grounding_relevant"},
}
"""The fields that each measure of the paper is made of."""


@pytest.mark.parametrize("kinds", [("human",), ("judge",), ("human", "judge")], ids="-".join)
def test_a_measure_does_not_disappear_with_the_labels_of_another_field(
    judge: Judge, garage: None, kinds: tuple[str, ...]
) -> None:
    """All labels of one field after the other go, people's, the judge's or both: what does not rest on it stays as it is."""
    both = {f"{unit(n)}#s{s}": "supported" for n in (0, 1, 6) for s in (0, 1)}
    people("eligibility", {"ann": {unit(n): GOOD if n < 6 else BAD for n in (0, 1, 6)}})
    deflections = {unit(n): "missing" for n in (8, 9, 11)} | {unit(n): "attempted" for n in (0, 1)}
    people("deflection", {"ann": deflections})
    people("grounding", {"ann": {**both, f"{unit(1)}#s0": "contradictory"}})
    people("grounding_relevant", {"ann": both})
    fields = ("eligibility", "deflection", "grounding", "grounding_relevant")
    whole = {field: rows(report(task=field)) for field in fields}
    assert {name for result in whole.values() for name in result} >= set(RESTS_ON)
    marks, kept = ",".join("?" * len(kinds)), 0
    for gone in fields:
        with Store.open("study.db") as store:
            store.conn.execute("BEGIN")
            store.conn.execute(
                f"DELETE FROM labels WHERE field = ? AND annotator_id IN "
                f"(SELECT annotator_id FROM annotators WHERE kind IN ({marks}))",
                [gone, *kinds],
            )
            for field in fields:
                if field == gone:
                    continue
                left = rows(section(store, task=field))
                for name, row in whole[field].items():
                    if gone not in RESTS_ON.get(name, ()):
                        assert name in left, (gone, field, name)
                        assert values(left[name]) == values(row) and left[name][-2:] == row[-2:], (
                            gone,
                            field,
                            name,
                        )
                        kept += 1
            store.conn.execute("ROLLBACK")
    assert kept >= 20
