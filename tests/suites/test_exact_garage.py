"""GaRAGe: RAF as published, contradictory labels beside it, and judged attribution on boards."""

from pathlib import Path

import pytest

from tests.formats import garage_row, write_jsonl
from tests.suites.helpers import Judge, answers, board, cells, give, score

N = 4
ANSWER = "Alpha holds [cite_1]. Beta holds [cite_9]."
"""Two sentences: the first cites a passage, and the second cites one that does not exist."""


@pytest.fixture
def labelled(judge: Judge, tmp_path: Path) -> None:
    """Systems a and b answer four questions. All labels are given; see the tests."""
    rows = [garage_row(f"g{n}", ["ANSWER-THE-QUESTION", "RELATED-INFORMATION"]) for n in range(N)]
    judge("items", "import", "garage", write_jsonl(tmp_path / "garage.jsonl", rows))
    answers(judge, tmp_path, [(f"g{n}", s, "full", ANSWER) for n in range(N) for s in "ab"])


def label(first: str, second: str, relevant: str, citation: str = "full") -> None:
    """Labels of both sentences against all passages, of the first against the relevant ones, and of its citation."""
    units = [f"garage:g{n}@{s}@full" for n in range(N) for s in "ab"]
    give("eligibility", dict.fromkeys(units, "No Issues"))
    give("deflection", dict.fromkeys(units, "attempted"))
    give("grounding", {f"{u}#s{k}": v for u in units for k, v in ((0, first), (1, second))})
    give("grounding_relevant", {f"{u}#s{k}": v for u in units for k, v in ((0, relevant), (1, second))})
    give("citation_each", {f"{u}#s0/cite_1": citation for u in units})


@pytest.mark.usefixtures("labelled")
def test_raf_is_not_limited_by_factuality(judge: Judge) -> None:
    """Finding 3: each answer is grounded in the relevant passages, and by a judge's error not in all of them."""
    label("unsupported", "no_rad", "supported")
    result = score(judge, "garage", "--system", "a")
    assert (result.value("factuality"), result.value("raf")) == (0.0, 1.0)
    assert result.value("contradictory_labels") == 1.0
    assert result.value("over_summarisation_gap") == -1.0
    shown = board(judge, "garage", "--system", "a", "--system", "b")
    assert [c["shared"]["value"] for c in cells(shown, "contradictory_labels").values()] == [1.0, 1.0]


@pytest.mark.usefixtures("labelled")
def test_boards_have_judged_attribution(judge: Judge) -> None:
    """Finding 9: of two citations, one supports its sentence and one was invented. Both sentences need support."""
    label("supported", "supported", "supported")
    shown = board(judge, "garage", "--system", "a", "--system", "b")
    for measure in (
        "precision_micro",
        "recall_micro",
        "f1_micro",
        "precision_macro",
        "recall_macro",
        "f1_macro",
    ):
        values = [c["shared"]["value"] for c in cells(shown, f"judged_attribution_{measure}").values()]
        assert values == [pytest.approx(0.5)] * 2, measure
    assert {c["shared"]["value"] for c in cells(shown, "judged_attribution_invented_share").values()} == {0.5}


def test_the_gold_field_of_a_paper_is_no_field_of_another_task(judge: Judge, tmp_path: Path) -> None:
    """Finding 9: GaRAGe's `insufficient` has the labels true and false, like RAGuard's exam."""
    rows = [garage_row(f"g{n}", ["ANSWER-THE-QUESTION"], sufficient=n > 0) for n in range(2)]
    done = judge("items", "import", "garage", write_jsonl(tmp_path / "garage.jsonl", rows))
    assert "raguard_exam" not in done.out + done.err


@pytest.mark.usefixtures("labelled")
def test_a_suite_generates_the_answers_of_a_model_beside_imported_systems(judge: Judge) -> None:
    """Finding 9: a and b were imported; the model writes answers of its own, judges them, and is scored."""
    words = ("garage", "--system", "scripted/hash")
    judge("suite", *words, "-m", "scripted/hash")
    result = score(judge, *words)
    assert (result.document["system"], result.document["condition"]) == ("scripted/hash", "all")
    assert result["eligibility"]["n_units"] == N
    # A name that is no model stays an error.
    assert "no answers by this system" in judge("score", "garage", "--system", "c", code=2).err
