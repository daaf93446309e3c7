"""A lead decides where people differ: every command holds the judge against decisions and what people agree on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.annotate.agreement_helpers import checked
from tests.annotate.agreement_helpers import document as annotate
from tests.formats import garage_row, write_jsonl
from tests.suites.helpers import Judge, answers, give, score
from tests.suites.test_people import people, unit

GOOD, BAD = "No Issues", "Major Issue(s)"
N = 240
# On 200 answers ann and bob agree: 151 are eligible. On the other 40 they differ, and a lead calls 3 eligible.
AGREED_BAD = {*range(12, 50), *range(157, 168)}
RULED_GOOD = {200, 201, 202}
# The sentence of each of the first 50 answers: ann and bob differ, and a lead calls 12 supported. Of the other 190 they
# call 107 supported, and those are of eligible answers.
RULED_SUPPORTED, AGREED_SUPPORTED = set(range(12)), set(range(50, 157))


@pytest.fixture(scope="module")
def labels() -> dict[str, dict[str, dict[str, str]]]:
    eligible = {n: GOOD if n not in AGREED_BAD else BAD for n in range(200)}
    ann = eligible | dict.fromkeys(range(200, N), GOOD)
    bob = eligible | dict.fromkeys(range(200, N), BAD)
    lead = {n: GOOD if n in RULED_GOOD else BAD for n in range(200, N)}
    sure = {n: "supported" if n in AGREED_SUPPORTED else "unsupported" for n in range(50, N)}
    sentences = {
        "ann": sure | dict.fromkeys(range(50), "supported"),
        "bob": sure | dict.fromkeys(range(50), "unsupported"),
        "adjudicated": {n: "supported" if n in RULED_SUPPORTED else "unsupported" for n in range(50)},
    }
    whole = {"ann": ann, "bob": bob, "adjudicated": lead}
    return {
        "eligibility": {who: {unit(n): v for n, v in own.items()} for who, own in whole.items()},
        "grounding": {who: {f"{unit(n)}#s0": v for n, v in own.items()} for who, own in sentences.items()},
    }


@pytest.fixture
def study(judge: Judge, tmp_path: Path, labels: Mapping[str, Any]) -> None:
    rows = [garage_row(f"g{n}", ["ANSWER-THE-QUESTION"]) for n in range(N)]
    judge("items", "import", "garage", write_jsonl(tmp_path / "garage.jsonl", rows))
    answers(judge, tmp_path, [(f"g{n}", "m", "full", f"A{n} holds [cite_1].") for n in range(N)])
    give("eligibility", {unit(n): GOOD if n % 3 else BAD for n in range(N)})
    give("grounding", {f"{unit(n)}#s0": "supported" for n in range(N)})
    for field, given in labels.items():
        people(field, given)


def corrected(judge: Judge, *args: str) -> dict[str, Any]:
    found = score(judge, "garage", *args).document["correction"]["measures"]
    return {m["measure"]: m["human_only"] for m in found}


@pytest.mark.parametrize("word", ["decided", "adjudicated"])
def test_scores_are_corrected_by_decisions_and_agreement(judge: Judge, study: None, word: str) -> None:
    found = corrected(judge, "--part", "eligibility", "--part", "factuality", "--reference", word)
    # (151 + 3) / 240, where the 40 decisions alone are 3 / 40.
    assert (found["eligibility"]["value"], found["eligibility"]["n_units"]) == (154 / 240, 240)
    # Eligible and supported: 12 decided, 107 agreed on; decisions alone would be 12 / 50.
    assert (found["factuality"]["value"], found["factuality"]["n_units"]) == (119 / 240, 240)


def test_the_report_says_the_same_of_measures_of_several_fields(judge: Judge, study: None) -> None:
    found = report("--task", "eligibility", "--reference", "decided")
    assert cell(found, "eligibility") == (pytest.approx(154 / 240), 240)
    assert cell(found, "factuality") == (pytest.approx(119 / 240), 240)
    assert cell(report("--task", "grounding"), "unadjusted factuality")[1] == 240


def report(*args: str) -> Any:
    from tests.annotate.agreement_helpers import annotate as run

    return checked(run("report", *args, "--json", "-d", "study.db").stdout)


def cell(found: Any, measure: str) -> tuple[float, int]:
    """Human only of a corrected number."""
    blocks = [b for s in found["sections"] for b in s["blocks"] if b.get("key") == "corrected_1"]
    [row] = [r for r in blocks[0]["rows"] if r[0] == measure]
    human = found["measures"][row[2]["measure"]]
    return human["value"], human["n_units"]


def test_the_majority_covers_no_ties_and_decisions_do(judge: Judge, study: None) -> None:
    shown = annotate("agreement", "--field", "eligibility", "-d", "study.db")
    [field] = shown["fields"]
    assert field["reference"] == "decided"
    [run] = [a["annotator"] for a in field["annotators"] if a["kind"] == "judge"]
    by_other = {
        next(name for name in m["annotators"] if name != run): (m["n_units"], m["coverage"])
        for m in shown["measures"]
        if m["measure"] == "cohen_kappa" and run in m["annotators"]
    }
    assert set(by_other) == {"majority", "decided", "ann", "bob"} and by_other["decided"] == (240, 1.0)
    # 40 units are tied: the majority covers 200 of the 240 that people labelled.
    assert by_other["majority"] == (200, 200 / 240)


def test_plans_use_the_named_reference(tmp_path: Path) -> None:
    # One person who contradicts the judge, and gold that agrees with it: the verdict is on gold when gold is named.
    rows = ["unit,who,label"]
    for n in range(40):
        label, other = ("yes", "no") if n % 2 else ("no", "yes")
        rows += [f"u{n},ann,{other}", f"u{n},gpt,{label}", f"u{n},gold,{label}"]
    table = tmp_path / "votes.csv"
    table.write_text("\n".join(rows) + "\n")
    args = (str(table), "--judge", "gpt")
    for reference, decision in (("gold", "trust"), ("ann", "do not trust")):
        [plan] = annotate("plan", *args, "--verdict", "--reference", reference)["judges"]
        assert f"'{reference}'" in plan["rule"]
        assert (plan["decision"], plan["regime"]) == (decision, "threshold")
        assert plan["labelled_by"] == [reference]
