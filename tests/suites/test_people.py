"""judge score --correct-by: the judge's means beside people's, and both together."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.prompts import load_task
from judge.stats import correct_mean
from judge.store import Store, splits
from tests.answers.helpers import column
from tests.formats import garage_row, write_jsonl
from tests.suites.helpers import Judge, answers, give, import_garage, items, outputs, people, score

__all__ = ["people"]

ITEMS = 8
ELIGIBILITY = ("garage", "--part", "eligibility", "--reference")


def unit(n: int) -> str:
    return f"garage:g{n}@m@full"


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> None:
    rows = [garage_row(f"g{n}", ["ANSWER-THE-QUESTION"]) for n in range(ITEMS)]
    judge("items", "import", "garage", write_jsonl(tmp_path / "garage.jsonl", rows))
    answers(
        judge, tmp_path, [(f"g{n}", "m", "full", f"A{n} holds [cite_1]. B{n} too.") for n in range(ITEMS)]
    )
    # The judge calls g0 to g4 eligible.
    issues = ["No Issues"] * 5 + ["Major Issue(s)"] * 3
    give("eligibility", {unit(n): issue for n, issue in enumerate(issues)})
    give("grounding", {f"{unit(n)}#s{s}": "supported" for n in range(ITEMS) for s in (0, 1)})


def test_eligibility_three_ways_by_hand(judge: Judge, study: None) -> None:
    # Of four units bob calls g0 and g5 eligible, g1 and g6 not.
    known = {
        unit(0): "No Issues",
        unit(1): "Major Issue(s)",
        unit(5): "Minor Issue(s)",
        unit(6): "Major Issue(s)",
    }
    people("eligibility", {"bob": known})
    result = score(judge, *ELIGIBILITY, "bob")
    row = result.corrected["eligibility"]
    assert result.document["correction"]["reference"] == "bob"
    # Judge: 5 of 8. People: 2 of 4.
    assert row["judge_only"]["value"] == result.value("eligibility") == 5 / 8
    assert (row["human_only"]["value"], row["human_only"]["n_units"]) == (0.5, 4)
    nan = float("nan")
    by_hand = correct_mean(
        [1, 1, 1, 1, 1, 0, 0, 0],
        [1, 0, nan, nan, nan, 1, 0, nan],
        clusters=list(range(ITEMS)),
        bounds=(0.0, 1.0),
    )
    # On the four units judge and bob are uncorrelated, so lambda is 0 and the people's mean stays.
    assert row["lambda"] == by_hand.lam == 0.0
    assert row["ppi"]["value"] == by_hand.ppi.value == 0.5
    # A share has an interval within what a share can be.
    assert by_hand.ppi.low is not None and 0 <= by_hand.ppi.low < 0.5
    assert (row["ppi"]["low"], row["ppi"]["high"]) == (by_hand.ppi.low, by_hand.ppi.high)


def test_four_labels_are_too_few_for_a_judge_to_narrow_the_interval(judge: Judge, study: None) -> None:
    people(
        "eligibility", {"gold": {unit(n): "No Issues" if n < 5 else "Major Issue(s)" for n in (0, 1, 6, 7)}}
    )
    row = score(judge, *ELIGIBILITY, "gold").corrected["eligibility"]
    # The judge agrees on all four labels: lambda would be Cov_4 / ((1 + 4/4) Var_8(judge)) = .25 / (2 * .267857) = .467.
    # Two pseudo-residuals on four labels make that interval wider than people's own, which stands.
    assert row["lambda"] == 0
    assert row["ppi"]["value"] == row["human_only"]["value"] == 0.5
    assert (row["ppi"]["low"], row["ppi"]["high"]) == (row["human_only"]["low"], row["human_only"]["high"])


def test_answers_labelled_in_part_do_not_count(judge: Judge, study: None) -> None:
    people(
        "grounding",
        {
            "ann": {
                f"{unit(0)}#s0": "supported",
                f"{unit(0)}#s1": "no_rad",
                f"{unit(1)}#s0": "supported",
                f"{unit(1)}#s1": "unsupported",
                # Settled by its one label, and left out all the same.
                f"{unit(2)}#s0": "contradictory",
            }
        },
    )
    result = score(judge, "garage", "--part", "grounding", "--reference", "ann")
    row = result.corrected["unadjusted_factuality"]
    assert (row["human_only"]["value"], row["human_only"]["n_units"]) == (0.5, 2)
    assert row["judge_only"]["value"] == 1.0
    assert any(
        "1 labels by ann on grounding are left out" in note for note in result.document["correction"]["notes"]
    )


def test_factuality_needs_both_labels_of_people(judge: Judge, study: None) -> None:
    people("grounding", {"ann": {f"{unit(n)}#s{s}": "supported" for n in (0, 1, 2) for s in (0, 1)}})
    people("eligibility", {"ann": {unit(0): "No Issues", unit(1): "Major Issue(s)"}})
    row = score(judge, "garage", "--reference", "ann", "--part", "factuality").corrected["factuality"]
    assert (row["human_only"]["value"], row["human_only"]["n_units"]) == (0.5, 2)


def test_the_majority_of_people_and_its_ties(judge: Judge, study: None) -> None:
    good, bad = "No Issues", "Major Issue(s)"
    people(
        "eligibility",
        {
            "ann": {unit(0): good, unit(1): good, unit(2): bad},
            "bob": {unit(0): good, unit(1): bad, unit(2): bad},
            "gold": {unit(0): bad, unit(1): bad, unit(2): bad},
        },
    )
    row = score(judge, *ELIGIBILITY, "majority").corrected["eligibility"]
    # g0 good, g2 bad, g1 a tie; gold is not a person.
    assert (row["human_only"]["value"], row["human_only"]["n_units"]) == (0.5, 2)


def test_what_is_no_mean_is_named(judge: Judge, tmp_path: Path) -> None:
    import_garage(judge, tmp_path)
    people("deflection", {"gold": {"garage:g3@m@full": "missing"}})
    give("deflection", {f"garage:g{n}@m@full": "missing" for n in (1, 2, 3)})
    words = ("garage", "--part", "deflection", "--part", "attribution", "--reference", "gold")
    result = score(judge, *words)
    assert "attribution_precision_micro" in result.document["correction"]["left_out"]
    rows = result.corrected
    # One unit is not enough for an interval of both; the reason says so.
    assert rows["deflection_true_positive_rate"]["ppi"]["reason"].startswith("fewer than two")
    assert rows["deflection_true_positive_rate"]["human_only"]["value"] == 1.0
    text = judge("score", *words).out
    assert "Corrected with gold (PPI++)" in text
    assert "not corrected, because they are not means over units: attribution_precision_micro" in text


def test_an_unknown_name_is_refused_with_those_there_are(judge: Judge, study: None) -> None:
    people("eligibility", {"bob": {unit(0): "No Issues"}})
    done = judge("score", *ELIGIBILITY, "eve", code=2)
    assert "no annotator with this name has any labels; available: gold, majority, bob" in done.err


def label_four() -> None:
    """Of four units bob calls g1 and g5 eligible, g0 and g6 not."""
    people(
        "eligibility", {"bob": {unit(n): "No Issues" if n % 2 else "Major Issue(s)" for n in (0, 1, 5, 6)}}
    )


def test_labels_that_a_judge_was_fitted_on_correct_it_nowhere(judge: Judge, study: None) -> None:
    label_four()
    with Store.open("study.db", create=False) as store, store.transaction() as conn:
        [run] = conn.execute("SELECT run_id FROM runs WHERE task LIKE 'eligibility%'").fetchone()
        # Question 0 was seen by what labelled it, question 1 was left out with its fold.
        conn.execute("INSERT INTO fitted_on VALUES (?, 'garage:g0', NULL), (?, 'garage:g1', 2)", [run, run])
    result = score(judge, *ELIGIBILITY, "bob")
    row = result.corrected["eligibility"]
    # The judge's own number stays 5 of 8; beside people's labels it is 4 of the 7 that it was not fitted on.
    assert result.value("eligibility") == 5 / 8
    assert row["judge_only"]["value"] == pytest.approx(4 / 7)
    # Of bob's four units g0 is gone: g1, g5 and g6, of which he calls g1 and g5 eligible.
    assert (row["human_only"]["value"], row["human_only"]["n_units"]) == (pytest.approx(2 / 3), 3)
    assert any(
        "1 units are left out of the correction" in note for note in result.document["correction"]["notes"]
    )


def test_a_sealed_test_that_was_not_opened_for_a_judge_corrects_it_nowhere(judge: Judge, study: None) -> None:
    label_four()
    with Store.open("study.db", create=False) as store:
        [run] = store.conn.execute("SELECT run_id FROM runs WHERE task LIKE 'eligibility%'").fetchone()
        field = load_task("eligibility").spec.questions[0].field
        made = splits.Drawn("eligibility", field, "bob", (0.2, 0.2, 0.6), 0, "2026-01-01T00:00:00Z")
        splits.keep(store, made, {"garage:g0": "test", "garage:g1": "learn", "garage:g5": "test"})
    result = score(judge, *ELIGIBILITY, "bob")
    row = result.corrected["eligibility"]
    # Of bob's four units g0 and g5 are sealed: g1 and g6, of which he calls g1 eligible.
    assert (row["human_only"]["value"], row["human_only"]["n_units"]) == (0.5, 2)
    assert any("they are in a sealed test" in note for note in result.document["correction"]["notes"])
    with Store.open("study.db", create=False) as store:
        splits.look(store, "eligibility", "compare", [run], "bob")
    row = score(judge, *ELIGIBILITY, "bob").corrected["eligibility"]
    assert row["human_only"]["n_units"] == 4


SIZES = [1, 3] * 20
"""Claims of the answers to forty questions."""


@pytest.fixture
def claims(judge: Judge, tmp_path: Path) -> None:
    rows = [{"id": f"q{n}", "question": f"Question {n}?", "passages": [f"Passage {n}."]} for n in range(40)]
    items(judge, tmp_path, "data", rows)
    texts = [
        {"id": f"q{n}", "system": "m", "text": "Words.", "claims": [f"Claim {k}." for k in range(size)]}
        for n, size in enumerate(SIZES)
    ]
    outputs(judge, tmp_path, texts)
    give(
        "claim_support", dict.fromkeys(column("SELECT unit_id FROM units WHERE kind = 'claim'"), "entailment")
    )
    give("deflection", dict.fromkeys(column(ALL_ANSWERS), "attempted"))


ALL_ANSWERS = "SELECT unit_id FROM units WHERE kind = 'answer'"


def label_batch(*unlabelled: int) -> dict[str, dict[str, object]]:
    """ann labels what the batch drew, but for the units at these places; the corrected measures by name."""
    drawn = column("SELECT unit_id FROM batch_units ORDER BY unit_id")
    labels = {u: "entailment" for place, u in enumerate(drawn) if place not in unlabelled}
    people("claim_support", {"ann": labels})
    people("deflection", {"ann": dict.fromkeys(column(ALL_ANSWERS), "attempted")})
    return labels


def corrected_by_ann(judge: Judge) -> dict[str, Mapping[str, Any]]:
    parts = ("--part", "claims", "--part", "abstention")
    return score(judge, "faithfulness", *parts, "--reference", "ann").corrected


def test_single_claims_give_no_number_of_answers(judge: Judge, claims: None) -> None:
    """It gave 1.26 facts an answer where there are 2: what is labelled as a whole is mostly the short answers."""
    from annotate.batch_plan import BatchPlan
    from annotate.drawing.batch import new_batch

    with Store.open("study.db", create=False) as store:
        new_batch(store, load_task("claim_support"), BatchPlan("single", ["ann"], 30))
    label_batch()
    row = corrected_by_ann(judge)["facts_per_answer"]
    # (20 x 1 + 20 x 3) / 40
    assert row["judge_only"]["value"] == 2.0
    for side in ("human_only", "ppi"):
        assert row[side]["value"] is None
        assert "--by-question N" in str(row[side]["reason"])
    # Labels on whole answers say what they say.
    assert corrected_by_ann(judge)["respond_ratio"]["human_only"]["value"] == 1.0


def test_whole_questions_give_numbers_of_answers(judge: Judge, claims: None) -> None:
    from annotate.batch_plan import BatchPlan
    from annotate.drawing.batch import new_batch

    with Store.open("study.db", create=False) as store:
        new_batch(store, load_task("claim_support"), BatchPlan("whole", ["ann"], by_question=20))
    labels = label_batch(0)
    result = corrected_by_ann(judge)
    whole: dict[str, int] = {}
    for claim in labels:
        answer = claim.partition("#")[0]
        whole[answer] = whole.get(answer, 0) + 1
    sizes = {f"data:q{n}@m@default": size for n, size in enumerate(SIZES)}
    complete = [n for answer, n in whole.items() if n == sizes[answer]]
    # One claim of a drawn answer is not labelled yet: only its answer is left out.
    assert len(complete) == 19
    row = result["facts_per_answer"]
    assert (row["human_only"]["value"], row["human_only"]["n_units"]) == (sum(complete) / 19, 19)
