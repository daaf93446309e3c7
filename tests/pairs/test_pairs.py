"""judge pairs: claims checked, counter claims written, pairs stored once, and people's consensus."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.store import Store
from judge.store.pairs import Checked, NewPair, add_pairs
from tests.annotate.agreement_helpers import annotate
from tests.answers.helpers import Judge, column, rows
from tests.cli.helpers import checked, script
from tests.formats import write_jsonl
from tests.loopback.process import ServerProcess
from tests.suites.helpers import people

BUILD = ("pairs", "build", "-m", "scripted/file", "--option", "script=script.jsonl")
CLAIMS: list[dict[str, Any]] = [
    {
        "id": "1",
        "claim": "Tea increases sleep.",
        "passages": [{"id": "a", "text": "Tea keeps awake.", "title": "Tea", "gold": {"stance": "refute"}}],
    },
    {"id": "2", "claim": "Zorbic tea is fast.", "passages": ["Nothing is zorbic."]},
    {"id": "3", "claim": "Salt raises blood pressure."},
    {"id": "4", "question": "No claim?"},
]


def counter(text: str, changed: str = "x -> y") -> str:
    return json.dumps({"counter_claim": text, "changed": changed})


WRITTEN = [
    ("Zorbic", json.dumps({"claim_validity": "invalid"})),
    ("literature could speak", json.dumps({"claim_validity": "valid"})),
    ("Tea increases", counter("Tea  decreases\nsleep.", "increases -> decreases")),
    ("Salt raises", counter("Salt lowers blood pressure.")),
]


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "jsonl", write_jsonl(tmp_path / "d.jsonl", CLAIMS))
    script(tmp_path / "script.jsonl", WRITTEN)


def test_valid_claims_become_pairs(judge: Judge, study: None) -> None:
    document = checked(judge(*BUILD, "--json").out, "pairs_build")
    expected = {"claims": 3, "valid": 2, "invalid": 1, "pairs": 2, "repeated": 0, "items": 4}
    assert document.items() >= expected.items()
    assert document["datasets"] == ["d-pairs"]
    query = "SELECT item_id, claim, pair_id, polarity, question_id FROM items WHERE dataset = 'd-pairs' ORDER BY rowid"
    assert rows(query) == [
        ("d-pairs:1-original", "Tea increases sleep.", "1", "original", "d-pairs:1"),
        ("d-pairs:1-counter", "Tea decreases sleep.", "1", "counter", "d-pairs:1"),
        ("d-pairs:3-original", "Salt raises blood pressure.", "3", "original", "d-pairs:3"),
        ("d-pairs:3-counter", "Salt lowers blood pressure.", "3", "counter", "d-pairs:3"),
    ]
    # Both sides have the claim's passage, and neither its gold, which is about the original.
    assert rows("SELECT passage_id, title FROM passages WHERE item_id LIKE 'd-pairs:1-%'") == [
        ("d-pairs:1-original/a", "Tea"),
        ("d-pairs:1-counter/a", "Tea"),
    ]
    assert column("SELECT count(*) FROM labels WHERE unit_id LIKE 'd-pairs:%' AND annotator_id = 'gold'") == [
        0
    ]
    meta = json.loads(column("SELECT meta FROM items WHERE item_id = 'd-pairs:1-counter'")[0])
    assert (meta["from"], meta["changed"]) == ("d:1", "increases -> decreases")
    units = rows("SELECT unit_id, counter_claim FROM unit_texts WHERE kind = 'pair' ORDER BY n")
    assert units[0] == ("d-pairs:1-original~d-pairs:1-counter", "Tea decreases sleep.")
    # Typed again: the claims in pairs are not taken for new ones, and nothing is added.
    again = checked(judge(*BUILD, "--json").out, "pairs_build")
    assert (again["claims"], again["pairs"], again["items"]) == (3, 2, 0)
    assert column("SELECT count(*) FROM units WHERE kind = 'pair'") == [2]


def test_a_counter_claim_that_is_the_claim_makes_no_pair(judge: Judge, study: None, tmp_path: Path) -> None:
    script(
        tmp_path / "script.jsonl",
        [*WRITTEN[:2], ("Tea increases", counter(" tea INCREASES sleep")), ("Salt", "I would rather not.")],
    )
    done = judge(*BUILD, "--json", code=4)
    document = checked(done.out, "pairs_build")
    assert (document["valid"], document["pairs"], document["repeated"], document["unwritten"]) == (2, 0, 1, 1)
    assert "1 counter claims were identical" in done.err and "--retry unparsed" in done.err
    assert column("SELECT count(*) FROM items WHERE pair_id IS NOT NULL") == [0]
    # Asked again: the claim without a counter claim, and neither the repeated one nor what was checked.
    asked = "SELECT unit_id, count(*) FROM judgements GROUP BY run_id, unit_id HAVING count(*) > 1"
    (before,) = rows(asked)
    judge(*BUILD, "--retry", "unparsed", code=4)
    (after,) = rows(asked)
    assert before[0] == after[0] == "d:3" and after[1] > before[1]
    # Another script is another judge, with runs of its own: it is asked about both, and has learnt to write.
    script(tmp_path / "script.jsonl", WRITTEN)
    judge(*BUILD)
    assert column("SELECT DISTINCT pair_id FROM items WHERE pair_id IS NOT NULL") == ["1", "3"]


def test_another_counter_claim_needs_another_data_set(judge: Judge, study: None) -> None:
    judge(*BUILD)
    with (
        Store.open("study.db") as store,
        pytest.raises(Exception, match="different counterclaim to 'd:1'"),
    ):
        add_pairs(store, [NewPair("d:1", "Tea stops sleep.", "", "r")])
    assert column("SELECT count(*) FROM items WHERE dataset = 'd-pairs'") == [4]
    judge(*BUILD, "--into", "mine")
    assert column("SELECT count(*) FROM items WHERE dataset = 'mine'") == [4]


def test_it_goes_on_after_a_server_that_died(judge: Judge, study: None) -> None:
    with ServerProcess("openai", "--logprobs", "none", "--fault", "401:after=5") as server:
        command = ("pairs", "build", "-m", "openai/m", "--base-url", server.url, "--concurrency", "1")
        told = judge(*command, code=3).err
        assert "refused the key" in told and "to resume" in told
        server.kill()
        server.options = ("--logprobs", "none", "--record")
        server.start()
        judge(*command, code=None)
        asked = server.stats()["requests"]
        judge(*command, code=None)
        assert server.stats()["requests"] == asked, "no question at opening, and no unit twice"
    assert column("SELECT count(*) FROM judgements WHERE unit_id LIKE 'd:%' AND status = 'ok'")[0] >= 3


BAD = [
    (("--where", "dataset = 'z'"), "already in a pair"),
    (("--into", "a b"), "--into 'a b': use only letters"),
]


@pytest.mark.parametrize(("more", "told"), BAD, ids=[told for _, told in BAD])
def test_what_cannot_be_asked_for(judge: Judge, study: None, more: tuple[str, ...], told: str) -> None:
    assert told in judge(*BUILD, *more, code=2).err


@pytest.mark.parametrize(
    ("yes", "votes", "kept"),
    [
        # 8 of 11 is 0.727, 3 of 4 is 0.75; 73 of 100 is at least 73 %, 72 is not.
        (8, 11, False),
        (3, 4, True),
        (73, 100, True),
        (72, 100, False),
        (1, 1, True),
        (0, 2, False),
        (0, 0, None),
    ],
)
def test_at_least_73_percent_keep_a_pair(yes: int, votes: int, kept: bool | None) -> None:
    assert Checked("u", "p", "o", "c", "", "", yes, votes).kept is kept


def test_the_list_shows_votes_of_people_only(judge: Judge, study: None) -> None:
    judge(*BUILD)
    unit = "d-pairs:1-original~d-pairs:1-counter"
    votes = {"a": "yes", "b": "yes", "c": "yes", "d": "unclear"}
    people("counter_check", {who: {unit: value} for who, value in votes.items()})
    judge("run", "counter_check", "-m", "scripted/first")
    document = checked(judge("pairs", "list", "--json").out, "pairs")
    assert [(r["pair"], r["yes"], r["votes"], r["kept"]) for r in document["rows"]] == [
        ("1", 3, 4, True),
        ("3", 0, 0, None),
    ]
    assert (document["kept"], document["dropped"], document["unchecked"]) == (1, 0, 1)
    # Three of five are less than 73 %.
    people("counter_check", {"e": {unit: "no"}})
    fewer = checked(judge("pairs", "list", "--json").out, "pairs")
    assert (fewer["kept"], fewer["dropped"]) == (0, 1)
    assert "data sets with pairs: d-pairs" in judge("pairs", "list", "--dataset", "d", code=2).err


def test_people_get_pairs_in_a_batch(judge: Judge, study: None) -> None:
    judge(*BUILD)
    annotate("batches", "new", "check", "counter_check", "-n", "2", "--annotators", "a,b")
    assert column("SELECT unit_id FROM batch_units ORDER BY 1") == [
        "d-pairs:1-original~d-pairs:1-counter",
        "d-pairs:3-original~d-pairs:3-counter",
    ]
