"""A run against the labels that came with the data, field by field."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.scores.gold import FieldResult, compare
from judge.store import Store, export
from tests.cli.helpers import Done, script, write_rows
from tests.prompts.helpers import STANCE, write

Judge = Callable[..., Done]
GRADE = {"field": "grade", "level": "ordinal", "labels": [{"value": v} for v in ("low", "middle", "high")]}
SCORE = {"field": "score", "level": "interval"}
WHY = {"field": "why", "level": "text"}


@pytest.fixture
def run(judge: Judge, tmp_path: Path) -> Callable[..., dict[str, FieldResult]]:
    """Judge rows with scripted answers, one for each passage text, and compare with gold."""

    def run(
        rows: Sequence[dict[str, Any]], replies: dict[str, str], *words: str, code: int = 0
    ) -> dict[str, FieldResult]:
        judge("items", "import", "jsonl", write_rows(tmp_path / "rows.jsonl", rows))
        message = script(tmp_path / "s.jsonl", list(replies.items()))
        judge("run", *words, "-m", "scripted/file", "--option", f"script={message}", code=code)
        with Store.open(tmp_path / "study.db") as store:
            result = export.find_run(store, "last")
            task = export.read_stored_task(store, result["task"])
            return {r.field: r for r in compare(store, task, result["run_id"])}

    return run


def row(name: str, own: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    passage = {"id": "p", "text": f"Text {name}.", "gold": own or {}}
    return {"id": name, "claim": f"Claim {name}.", "passages": [passage], **more}


def answers(field: str, values: dict[str, str]) -> dict[str, str]:
    return {f"Text {name}.": json.dumps({field: value}) for name, value in values.items()}


Run = Callable[..., dict[str, FieldResult]]


def test_agreement_counts_questions_not_passages(run: Run) -> None:
    rows = [row(n, {"stance": "support"}, question_id=f"q{n in 'cd'}") for n in "abcd"]
    result = run(rows, answers("stance", dict.fromkeys("abcd", "support")), "stance")["stance"]
    assert (result.n_gold, result.labels) == (4, {"support": 4, "refute": 0, "neutral": 0})
    percent, kappa, alpha = result.measures
    assert (percent.value, percent.n_units, percent.n_clusters) == (1.0, 4, 2)
    # With one label only, chance agreement is 1 too: kappa and alpha are 0 / 0.
    assert (kappa.value, alpha.value) == (None, None)
    assert kappa.reason
    assert alpha.reason
    assert percent.annotators == ("judge", "gold")


def test_a_unit_without_a_judgement_label_lowers_the_coverage(run: Run) -> None:
    rows = [row(n, {"stance": "support"}) for n in "abcd"]
    message = answers("stance", {"a": "support", "b": "refute", "c": "maybe", "d": "support"})
    result = run(rows, message, "stance", code=4)["stance"]
    percent = result.measures[0]
    # c has no label: two of the three others agree.
    assert (result.n_gold, percent.n_units, percent.coverage) == (4, 3, 0.75)
    assert percent.value == pytest.approx(2 / 3)


def test_units_without_gold_and_units_that_were_not_judged_do_not_count(run: Run) -> None:
    rows = [row("a", {"stance": "support"}), row("b"), row("c", {"stance": "refute"})]
    message = answers("stance", dict.fromkeys("abc", "support"))
    result = run(rows, message, "stance", "-n", "2")["stance"]
    assert (sum(result.labels.values()), result.n_gold) == (2, 1)
    assert (result.measures[0].value, result.measures[0].n_units, result.measures[0].coverage) == (
        1.0,
        1,
        1.0,
    )


def test_no_gold_has_a_reason(run: Run) -> None:
    result = run([row("a")], answers("stance", {"a": "support"}), "stance")["stance"]
    assert (result.measures, result.n_gold) == ([], 0)
    assert "no gold labels" in str(result.why_none)


def test_gold_outside_the_domain_is_counted_apart(run: Run) -> None:
    rows = [row("a", {"stance": "SUPPORTS"}), row("b", {"stance": "SUPPORTS"})]
    result = run(rows, answers("stance", dict.fromkeys("ab", "support")), "stance")["stance"]
    assert (result.n_gold, result.outside, result.measures) == (0, {"SUPPORTS": 2}, [])
    assert "--map-label" in str(result.why_none)


def test_derived_fields_are_compared_with_their_own_gold(run: Run) -> None:
    # The judge's answers against the verdict: a supporting, b misleading, c has no verdict and no role.
    rows = [
        row("a", {"raguard.role": "supporting"}, gold={"claim_verdict": "true"}),
        row("b", {"raguard.role": "supporting"}, gold={"claim_verdict": "false"}),
        row("c", {"raguard.role": "irrelevant"}),
    ]
    results = run(rows, answers("verdict", dict.fromkeys("abc", "true")), "raguard_exam")
    assert "no gold labels" in str(results["verdict"].why_none)
    role = results["raguard.role"]
    assert role.labels == {"supporting": 1, "misleading": 1, "irrelevant": 0}
    assert (role.measures[0].value, role.measures[0].n_units) == (0.5, 2)
    assert role.measures[0].coverage == pytest.approx(2 / 3)


def test_an_ordinal_field_has_weighted_kappa_too(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "own", "grade.v1", {**STANCE, "questions": [GRADE]})
    rows = [
        row("a", {"grade": "low"}),
        row("b", {"grade": "middle"}),
        row("c", {"grade": "high"}),
        row("d", {"grade": "high"}),
    ]
    message = answers("grade", {"a": "low", "b": "middle", "c": "high", "d": "middle"})
    result = run(rows, message, "./own/grade.v1.md")["grade"]
    assert result.level == "ordinal"
    measures = {(m.measure, m.weights): m.value for m in result.measures}
    # Quadratic weights, one step = 1/4, two = 1. Observed disagreement: one unit of four off by one step, 1/16.
    # Chance: judge (1, 2, 1)/4, gold (1, 1, 2)/4: one step apart 1*1 + 2*1 + 2*2 + 1*1 = 8 of 16 pairs at 1/4,
    # two steps 1*2 + 1*1 = 3 of 16 at 1: 2/16 + 3/16 = 5/16. kappa = 1 - (1/16) / (5/16) = 0.8.
    assert measures["cohen_kappa", "quadratic"] == pytest.approx(0.8)
    # Unweighted: observed 3/4, chance (1*1 + 2*1 + 1*2)/16 = 5/16: (12 - 5) / (16 - 5) = 7/11.
    assert measures["cohen_kappa", None] == pytest.approx(7 / 11)


def test_numbers_and_texts_are_not_compared(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "own", "free.v1", {**STANCE, "questions": [SCORE, WHY]})
    rows = [row("a", {"score": "3", "why": "so"}), row("b", {"score": "4", "why": "no"})]
    message = {f"Text {n}.": json.dumps({"score": 3.0, "why": "because"}) for n in "ab"}
    results = run(rows, message, "./own/free.v1.md")
    for name, labels in (("score", {"3": 2}), ("why", {"because": 2})):
        result = results[name]
        assert (result.labels, result.n_gold, result.outside, result.measures) == (labels, 2, {}, [])
        assert result.level in str(result.why_none)


def test_only_the_first_repeat_is_compared(run: Run) -> None:
    rows = [row("a", {"stance": "support"}), row("b", {"stance": "refute"})]
    message = answers("stance", {"a": "support", "b": "refute"})
    result = run(rows, message, "stance", "--repeats", "3")["stance"]
    assert (sum(result.labels.values()), result.measures[0].n_units) == (2, 2)
