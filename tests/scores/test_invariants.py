"""What must not change a measure of any paper: the names of units and questions, and the order of rows."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from judge.papers import confirmation, faithfulness, garage, mirage, rag, raguard, urag
from judge.scores import attribution, citation_support, retrieval
from judge.scores.score import Score, Units

Table = dict[str, pd.DataFrame]
N, PARTS = 240, 4
RNG = np.random.default_rng(7)


def pick(words: list[object], n: int) -> list[object]:
    return [words[i] for i in RNG.integers(0, len(words), n)]


ANSWERS = pd.DataFrame(
    {
        "unit_id": [f"a{i}" for i in range(N)],
        "question_id": [f"q{i // 2}" for i in range(N)],
        "item_id": [f"i{i // 3}" for i in range(N)],
        "answerable": [i % 5 > 0 for i in range(N)],
        "eligibility": pick([*garage.ELIGIBLE, None], N),
        "deflection": pick([*garage.DEFLECTED, None], N),
        "condition": [("none", "top:1", "oracle")[i % 3] for i in range(N)],
        "label": pick(["true", "false", "perhaps", None], N),
        "gold": [("true", "false")[i // 3 % 2] for i in range(N)],
        "role": pick(["supporting", "misleading", "irrelevant"], N),
        "base": pick([0, 1], N),
        "oracle": pick([0, 1, 1, None], N),
        "mixed": pick([0, 1], N),
    }
)
SENTENCES = pd.DataFrame(
    {
        "unit_id": [f"a{i}#s{j}" for i in range(N) for j in range(PARTS)],
        "answer_id": [f"a{i}" for i in range(N) for _ in range(PARTS)],
        "label": pick(["supported", "supported", "no_rad", "unsupported", "contradictory"], N * PARTS),
        "entailed": pick([0, 1], N * PARTS),
        "supported": pick(["entailment", "neutral"], N * PARTS),
        "correct": pick(["entailment", "contradiction"], N * PARTS),
        "source": pick(["relevant", "irrelevant", "none"], N * PARTS),
        "stated": pick(["support", "partial_support", "not_support"], N * PARTS),
        "retrieved": pick(["entailment", "neutral"], N * PARTS),
    }
)
ANSWERS = ANSWERS.assign(has_reference=True, n_contexts=3, n_references=PARTS)
CITATIONS = pd.DataFrame(
    {
        "unit_id": [f"a{i}#s{j}@{k}" for i in range(N) for j in range(PARTS) for k in range(2)],
        "sentence_id": [f"a{i}#s{j}" for i in range(N) for j in range(PARTS) for _ in range(2)],
        "label": pick(["full", "partial", "none"], 2 * N * PARTS),
        "alone": pick([0, 1], 2 * N * PARTS),
        "rest": pick([0, 1], 2 * N * PARTS),
    }
)
PASSAGES = pd.DataFrame(
    {
        "item_id": [f"i{i}" for i in range(20) for _ in range(5)],
        "passage_id": [f"d{i}-{j}" for i in range(20) for j in range(5)],
        "rank": [j + 1 for _ in range(20) for j in range(5)],
        "grade": pick([0, 0, 1, 2], 100),
        "role": pick(["supporting", "misleading", "irrelevant"], 100),
    }
)
CLAIMS = pd.DataFrame({"item_id": [f"i{i}" for i in range(20)]})
PAIRS = pd.DataFrame(
    {
        "pair_id": range(10),
        "original": [f"i{i}" for i in range(10)],
        "counter": [f"i{i + 10}" for i in range(10)],
    }
)
STANCES = pd.DataFrame(
    {
        "claim_id": PASSAGES["item_id"],
        "stage": "retrieve",
        "label": pick(["support", "refute", "neutral", None], 100),
        "document": pick([f"x{i}" for i in range(9)], 100),
    }
)

TABLES: Table = {
    "answers": ANSWERS,
    "sentences": SENTENCES,
    "citations": CITATIONS,
    "passages": PASSAGES,
    "claims": CLAIMS,
    "pairs": PAIRS,
    "stances": STANCES,
}
IDS = (
    "unit_id", "question_id", "item_id", "answer_id", "sentence_id", "passage_id", "claim_id", "document", "pair_id",
    "original", "counter",
)  # fmt: skip


def _urag(t: Table) -> list[Score]:
    answers = t["answers"]
    # The logits follow the unit, whatever it is called and wherever it stands.
    logits = np.log(answers[["p"]].to_numpy() * [1.0, 0, 0] + [[0.01, 0.3, 0.3]])
    who = Units.build(answers["unit_id"], answers["question_id"])
    every = urag.Choices.build(who, "ABC", logits, list(answers["gold"].map({"true": "A", "false": "B"})))
    half = answers["first_half"].to_numpy()
    return urag.scores(every.restrict(half), every.restrict(~half))


ANSWERS["p"] = RNG.random(N)
ANSWERS["first_half"] = [i < N // 2 for i in range(N)]

SUITES: dict[str, Callable[[Table], list[Score]]] = {
    "garage": lambda t: [
        *garage.factuality(t["answers"], t["sentences"], t["sentences"]),
        *garage.deflection(t["answers"]),
        *garage.sentence_rates(t["answers"], t["sentences"]),
    ],
    "attribution": lambda t: attribution.score_judged_citations(t["answers"], t["sentences"], t["citations"]),
    "raguard": lambda t: raguard.scores(t["answers"].drop(columns="question_id")),
    "misleading": lambda t: raguard.misleading(
        2, t["claims"], t["passages"].assign(document_id=t["passages"]["passage_id"]), t["passages"]
    ),
    "retrieval": lambda t: retrieval.score_at(
        3, t["claims"].rename(columns={"item_id": "unit_id"}), t["passages"], t["passages"]
    ),
    "confirmation": lambda t: confirmation.retrieval_bias(t["pairs"], t["stances"], "retrieve"),
    "mirage": lambda t: mirage.adaptability(t["answers"]),
    "urag": _urag,
    "faithfulness": lambda t: [
        faithfulness.ragas(t["answers"], t["sentences"].replace({"label": {"no_rad": "neutral"}})),
    ],
    "rag": lambda t: [
        *rag.score_claims(t["answers"], t["sentences"]),
        *rag.score_references(t["answers"], t["sentences"]),
    ],
    "citation support": lambda t: [
        *citation_support.alce(t["answers"], t["sentences"], t["citations"]),
        *citation_support.trec(t["answers"], t["sentences"], t["citations"]),
    ],
}


def renamed(t: Table) -> Table:
    result = {}
    for name, frame in t.items():
        ids = {column: frame[column].map(lambda v: f"é {v}") for column in IDS if column in frame.columns}
        result[name] = frame.assign(**ids)
    return result


def shuffled(t: Table) -> Table:
    return {name: frame.sample(frac=1, random_state=i) for i, (name, frame) in enumerate(t.items())}


@pytest.mark.parametrize("change", [renamed, shuffled], ids=["renamed", "shuffled"])
@pytest.mark.parametrize("suite", SUITES)
def test_nothing_changes(suite: str, change: Callable[[Table], Table]) -> None:
    for before, after in zip(SUITES[suite](TABLES), SUITES[suite](change(TABLES)), strict=True):
        first, second = before.measure_score(replicates=200), after.measure_score(replicates=200)
        assert (first.measure, first.n_units, first.n_clusters) == (
            second.measure,
            second.n_units,
            second.n_clusters,
        )
        assert first.notes == second.notes
        assert first.value is not None and first.low is not None and first.high is not None, first
        assert (first.value, first.low, first.high) == pytest.approx((second.value, second.low, second.high))


@pytest.mark.parametrize("suite", SUITES)
def test_the_interval_holds_the_value(suite: str) -> None:
    for score in SUITES[suite](TABLES):
        result = score.measure_score(replicates=200)
        assert result.value is not None and result.low is not None and result.high is not None
        assert result.low <= result.value <= result.high, result
