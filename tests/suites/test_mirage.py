"""judge score mirage: answers in three contexts to the four cells, derived by hand."""

import json
from pathlib import Path

import pytest

from tests.answers.helpers import column
from tests.formats import mirage
from tests.suites.helpers import Judge, answers, commands, give, ranking, score

ITEMS = ("mirage:m0", "mirage:m1", "mirage:m2")
OWN = {"system": "m"}


@pytest.fixture(autouse=True)
def study(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "mirage", *mirage(tmp_path / "mirage"))


def answered(context: str, texts: tuple[str, ...], **options: str) -> None:
    give(
        "mirage_answer", dict(zip(ITEMS, texts, strict=True)), options={"context": context, **OWN, **options}
    )


def test_the_four_cells_by_hand(judge: Judge) -> None:
    # The aliases of question mN are "mN" and "it".
    answered("none", ("no idea", "It is m1.", "who knows"))
    answered("oracle", ("M0", "no", "m2!"))
    answered("fixed5", ("m0", "m1", "x"))
    result = score(judge, "mirage", "-m", "m")
    # m0: base 0, oracle 1, mixed 1: acceptability. m1: base 1, oracle 0: misinterpretation. m2: 0, 1, 0: noise.
    cells = {
        "noise_vulnerability": 1 / 3,
        "context_acceptability": 1 / 3,
        "context_insensitivity": 0.0,
        "context_misinterpretation": 1 / 3,
    }
    assert {name: result.value(name) for name in cells} == pytest.approx(cells)
    assert sum(result.value(name) or 0 for name in cells) == pytest.approx(1)
    # -NV + CA - CI - CM.
    assert result.value("total") == pytest.approx(-1 / 3)
    assert (result.value("accuracy_base"), result.value("accuracy_oracle")) == pytest.approx((1 / 3, 2 / 3))


def test_an_answer_that_was_not_given_is_wrong(judge: Judge) -> None:
    answered("none", ("m0", "m1", "refused"))
    answered("oracle", ("m0", "m1", "m2"))
    answered("fixed5", ("m0", "m1", "m2"))
    result = score(judge, "mirage", "-m", "m")["accuracy_base"]
    # The system refused the third question: 2 of 3.
    assert (result["value"], result["n_units"]) == (pytest.approx(2 / 3), 3)


def test_retrieved_context_and_the_retriever(judge: Judge, tmp_path: Path) -> None:
    query = "SELECT passage_id FROM passages WHERE item_id = ? ORDER BY position"
    chunks = {item: column(query, item) for item in ITEMS}
    # The second chunk of each question supports its answer: first, second and third in the three lists.
    order = ((1, 0, 2), (0, 1, 2), (0, 2, 1))
    ordered = {item: [chunks[item][n] for n in places] for item, places in zip(ITEMS, order, strict=True)}
    ranking(judge, tmp_path, "own", ordered)
    result = score(judge, "mirage", "--part", "retrieval")
    assert result.value("precision@1") == pytest.approx(1 / 3)
    assert result.value("recall@1") == pytest.approx(1 / 3)
    # One relevant chunk: 1, then 1 / log2(3) at the second rank, then 1 / log2(4) at the third.
    assert result.value("ndcg@3") == pytest.approx((1 + 0.6309297535714575 + 0.5) / 3)
    wanted = commands(
        judge, "mirage", "-m", "scripted/hash", "--mixed", "retrieved:2", "--part", "adaptability"
    )
    assert [line.split(" --context ")[1].split(" --where")[0] for line in wanted] == [
        "none",
        "oracle",
        "top:2 --ranking own --stage retrieve",
    ]
    answered("none", ("x", "x", "x"))
    answered("oracle", ("m0", "m1", "m2"))
    answered("top:2:own:retrieve", ("m0", "m1", "x"))
    mixed = score(judge, "mirage", "-m", "m", "--mixed", "retrieved:2", "--part", "adaptability")
    assert (mixed.value("context_acceptability"), mixed.value("noise_vulnerability")) == pytest.approx(
        (2 / 3, 1 / 3)
    )
    assert "mixed context: retrieved:2" in mixed["total"]["notes"]
    assert "--mixed must be fixed5 or retrieved:K" in judge("score", "mirage", "--mixed", "five", code=2).err


def test_conditions_are_joined_by_id(judge: Judge, tmp_path: Path) -> None:
    # Imported answers, each condition in another order.
    rows = [(item, "s", "none", "x") for item in ITEMS]
    rows += [(item, "s", "oracle", item[-2:]) for item in reversed(ITEMS)]
    rows += [(ITEMS[1], "s", "fixed5", "m1"), (ITEMS[2], "s", "fixed5", "x"), (ITEMS[0], "s", "fixed5", "m0")]
    answers(judge, tmp_path, rows)
    result = score(judge, "mirage", "--system", "s")
    assert (result.value("accuracy_oracle"), result.value("accuracy_mixed")) == pytest.approx((1.0, 2 / 3))


def test_strata_by_source(judge: Judge, tmp_path: Path) -> None:
    for context in ("none", "oracle", "fixed5"):
        answered(context, ("m0", "m1", "x"))
    result = score(judge, "mirage", "-m", "m", "--by", "source")
    assert result.value("accuracy_oracle", "popqa") == pytest.approx(2 / 3)
    assert json.dumps(result.document["readings"])


def test_answers_by_another_task_are_not_read(judge: Judge) -> None:
    for context in ("none", "oracle", "fixed5"):
        answered(context, ("m0", "m1", "x"))
    # Token F1 with the aliases "mN" and "it": right, right, no overlap.
    assert score(judge, "mirage", "-m", "m").value("token_f1_mixed") == pytest.approx(2 / 3)
    judge("answers", "generate", "qa_answer", "-m", "scripted/hash", "--context", "none")
    # The same system's answers to one prompt are not read as those to another.
    message = judge("score", "mirage", "-m", "scripted/hash", code=2).err
    assert "with qa_answer, not with mirage_answer (run " in message
