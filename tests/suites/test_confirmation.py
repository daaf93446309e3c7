"""judge score confirmation: support ratios, bias of lists and of answers, people's consensus, the picture."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.answers.helpers import column
from tests.cli.helpers import checked
from tests.formats import write_jsonl
from tests.suites.helpers import Judge, answers, commands, give, items, people, ranking, score

PAIRS: list[dict[str, Any]] = [
    {
        "pair_id": "p1",
        "original": "Tea helps sleep.",
        "counter": "Tea harms sleep.",
        "passages": [{"id": name, "text": f"Text {name}."} for name in "abcd"],
    },
    {
        "pair_id": "p2",
        "original": "Salt helps.",
        "counter": "Salt harms.",
        "passages": [{"id": "e", "text": "Text e."}],
    },
]
LISTS = {
    "retrieve": {"p1-original": "abc", "p1-counter": "abd", "p2-original": "e", "p2-counter": "e"},
    "rerank": {"p1-original": "ac", "p1-counter": "ab", "p2-original": "e", "p2-counter": "e"},
}
STANCES = {
    "p1-original/a": "support",
    "p1-original/b": "refute",
    "p1-original/c": "neutral",
    "p1-counter/a": "support",
    "p1-counter/b": "support",
    "p1-counter/d": "neutral",
    "p2-original/e": "support",
    "p2-counter/e": "refute",
}
CLAIMS = ("p1-original", "p1-counter", "p2-original", "p2-counter")


def lists(judge: Judge, folder: Path, stages: dict[str, dict[str, str]], name: str = "own") -> None:
    for stage, documents in stages.items():
        ranking(judge, folder, name, documents, stage)


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "claim-pairs", write_jsonl(tmp_path / "c.jsonl", PAIRS), "--dataset", "c")
    lists(judge, tmp_path, LISTS)
    give("stance", {f"c:{unit}": label for unit, label in STANCES.items()})
    answers(judge, tmp_path, [(claim, "s", "rag", f"About {claim}.") for claim in CLAIMS])


def verdicts(*labels: str) -> None:
    given = zip(CLAIMS, labels, strict=True)
    give("confirmation", {f"c:{claim}@s@rag": label for claim, label in given})


def vote(pair: str, *labels: str) -> None:
    unit = f"c:{pair}-original~c:{pair}-counter"
    people("counter_check", {f"person{n}": {unit: label} for n, label in enumerate(labels)})


def test_bias_of_lists_and_answers_by_hand(judge: Judge, study: None) -> None:
    verdicts("yes", "yes", "yes", "no")
    result = score(judge, "confirmation")
    # retrieve: SR p1 = 1/2 and 2/2, p2 = 1 and 0. SR_o + SR_c - 1 = 0.5 and 0, mean 0.25.
    assert result.value("sr_original[retrieve]") == 0.75 and result.value("sr_counter[retrieve]") == 0.5
    assert result.value("cr[retrieve]") == 0.25 and result.value("signed_cr[retrieve]") == 0.25
    # Neutral: c and d of the eight listed passages. Overlap: {a,b,c} with {a,b,d} 2/4, {e} with {e} 1.
    assert result.value("neutral_share[retrieve]") == 0.25
    assert result.value("overlap[retrieve]") == 0.75
    # rerank: p1 = 1/1 (c is neutral) and 2/2, so 1; p2 as before. CR 0.5, so 0.25 more than at retrieve.
    assert result.value("cr[rerank]") == 0.5
    assert result.value("cr_change[retrieve to rerank]") == 0.25
    assert result.value("defined_pairs[rerank]") == 1.0 and result["cr[rerank]"]["n_units"] == 2
    # Both answers of p1 support their claim, those of p2 do not: 1 of 2.
    assert result.value("cbr") == 0.5
    assert (result.document["system"], result.document["condition"]) == ("s", "rag")
    printed = {p["measure"] for p in result.document["published"]}
    assert {"cbr", "cr[retrieve]", "neutral_share[rerank]"} <= printed


def test_a_shorter_list_and_answers_that_are_not_valid(judge: Judge, study: None) -> None:
    verdicts("yes", "yes", "yes", "unparsed")
    result = score(judge, "confirmation", "--k", "1")
    # First ranks only: p1 support and support (SR 1 and 1), p2 support and refute.
    assert result.value("cr[retrieve]") == 0.5
    # p2 has an answer without a verdict: only p1 is known, and biased.
    cbr = result["cbr"]
    assert (cbr["value"], cbr["n_units"], cbr["coverage"], cbr["missing"]) == (1.0, 1, 0.5, {"unparsed": 1})
    # Whether p2's answers are valid is the system's affair: the judge's reply is missing data.
    assert (result.value("valid_pairs"), result["valid_pairs"]["coverage"]) == (1.0, 0.5)


def test_pairs_that_people_turn_down_are_left_out(judge: Judge, study: None) -> None:
    verdicts("yes", "yes", "yes", "no")
    vote("p1", "yes", "yes", "yes", "no")  # 0.75, above 0.73
    vote("p2", "yes", "yes", "no")  # 0.667
    result = score(judge, "confirmation")
    assert (result.value("cr[retrieve]"), result["cr[retrieve]"]["n_units"], result.value("cbr")) == (
        0.5,
        1,
        1.0,
    )
    assert any("1 confirmed" in n and "1 rejected (left out)" in n for n in result.document["notes"])


def test_no_pair_is_left_where_people_turn_all_of_them_down(judge: Judge, study: None) -> None:
    vote("p1", "no", "no")
    vote("p2", "yes", "no")
    assert "judge pairs list" in judge("score", "confirmation", code=2).err


def test_missing_labels_are_commands_and_partial_counts_them(judge: Judge, study: None) -> None:
    give("stance", {"c:p1-original/a": "support"}, model="other")
    message = commands(judge, "confirmation", "-m", "other")
    assert [shlex.split(line)[:3] for line in message] == [
        ["judge", "run", "stance.v2"],
        ["judge", "run", "confirmation"],
    ]
    result = score(judge, "confirmation", "-m", "other", "--partial", "--part", "retrieval")
    # Seven of the eight listed passages have no stance.
    assert result.value("missing_stances[retrieve]") == 7 / 8
    assert result["cr[retrieve]"]["missing"] == {"not judged": 2}


def test_passages_of_other_items_become_units(judge: Judge, tmp_path: Path) -> None:
    rows = [
        {"id": "shelf", "question": "?", "passages": [{"id": "s", "text": "Shelf.", "title": "T", "gold": {"stance": "support"}}]},
        {"id": "o", "claim": "Up.", "pair_id": "p", "polarity": "original"},
        {"id": "c", "claim": "Down.", "pair_id": "p", "polarity": "counter"},
    ]  # fmt: skip
    items(judge, tmp_path, "d", rows)
    lists(judge, tmp_path, {"retrieve": {"o": ["d:shelf/s"], "c": ["d:shelf/s"]}})  # type: ignore[dict-item]
    part = ("confirmation", "--part", "retrieval")
    message = commands(judge, *part)
    assert message[0].startswith("judge rankings attach --name own --stage retrieve -k 10 --dataset d")
    done = judge(*shlex.split(message[0])[1:], "--json")
    assert checked(done.out, "rankings_attach")["passages"] == 2
    assert column("SELECT text FROM passages WHERE item_id = 'd:c'") == ["Shelf."]
    assert column("SELECT count(*) FROM labels WHERE unit_id LIKE 'd:c/%'") == [0]
    assert checked(judge(*shlex.split(message[0])[1:], "--json").out, "rankings_attach")["passages"] == 0
    give("stance", dict.fromkeys(column("SELECT unit_id FROM units WHERE kind = 'passage'"), "support"))
    result = score(judge, *part)
    # Both sides find support: SR 1 and 1, CR 1; the same document, overlap 1.
    assert (result.value("cr[retrieve]"), result.value("overlap[retrieve]")) == (1.0, 1.0)


def test_a_whole_suite(judge: Judge, tmp_path: Path) -> None:
    claims = [
        {"id": str(n), "claim": f"Tea number {n} helps.", "passages": [f"Tea {n} helps sleep."]}
        for n in range(4)
    ]
    items(judge, tmp_path, "d", claims)
    judge("pairs", "build", "-m", "scripted/hash", code=None)
    built = column("SELECT count(*) FROM units WHERE kind = 'pair'")[0]
    assert built > 0
    paired = column("SELECT item_id FROM items WHERE dataset = 'd-pairs'")
    documents = column("SELECT passage_id FROM passages WHERE item_id LIKE 'd:%' ORDER BY 1")
    ranking(judge, tmp_path, "r", dict.fromkeys(paired, documents))
    pairs = ("--dataset", "d-pairs")
    where = ("--where", "dataset = 'd-pairs'")
    judge("answers", "generate", "claim_answer", "-m", "scripted/hash", "--context", "top:2", *where)
    done = judge("suite", "confirmation", "-m", "scripted/hash", *pairs, "--json")
    document = checked(done.out, "score")
    assert document["condition"] == "top:2:r:retrieve"
    message = {m["measure"]: m for m in document["measures"]}
    assert message["cbr"]["n_units"] == built and message["missing_stances[retrieve]"]["value"] == 0.0
    again = judge("score", "confirmation", *pairs, "--json")
    assert checked(again.out, "score")["measures"] == document["measures"]


BAD = [
    (("--k", "x"), 2, "--k must be a list"),
    (("--ranking", "z"), 2, "'c' has no ranking 'z'"),
    (("--system", "z"), 2, "--system"),
]


@pytest.mark.parametrize(("more", "code", "message"), BAD, ids=[message for *_, message in BAD])
def test_what_cannot_be_asked_for(
    judge: Judge, study: None, more: tuple[str, ...], code: int, message: str
) -> None:
    assert message in judge("score", "confirmation", *more, code=code).err


def test_a_data_set_without_pairs(judge: Judge, tmp_path: Path) -> None:
    items(judge, tmp_path, "d", [{"id": "1", "claim": "x"}])
    assert "no pairs" in judge("score", "confirmation", code=2).err
