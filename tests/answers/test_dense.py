"""judge retrieve --retriever embeddings: exact cosine, vectors kept in the study, servers that fail."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge.providers.embeddings import Embedded, Embedder
from judge.retrieve import Search, dense
from judge.store import Store, embeddings
from judge.types import Where
from tests.answers.helpers import EXAMPLES, Judge, column, rows, write
from tests.cli.helpers import checked
from tests.loopback.process import ServerProcess

DENSE = ("retrieve", "--retriever", "embeddings", "-m", "openai/m")


def kept_texts() -> list[str]:
    """The texts of the study that have a vector."""
    shas = set(column("SELECT text_sha FROM embeddings"))
    texts = [t for (t,) in rows("SELECT text FROM passages")]
    texts += [t for (t,) in rows("SELECT coalesce(claim, question) FROM items")]
    texts += [f"{a}\n{b}" for a, b in rows("SELECT title, text FROM passages")]
    return [t for t in texts if embeddings.text_sha(t) in shas]


def ids(rank: int = 1) -> dict[str, str]:
    return dict(rows("SELECT item_id, passage_id FROM rankings WHERE rank = ?", rank))


@pytest.fixture
def items(judge: Judge) -> None:
    judge("items", "import", "jsonl", EXAMPLES / "rag.jsonl")


def test_the_order_is_that_of_exact_cosines(judge: Judge, tmp_path: Path) -> None:
    claims: list[dict[str, Any]] = [
        {"id": "a", "claim": "qa", "passages": [{"id": "x", "text": "px"}, {"id": "y", "text": "py"}]},
        {"id": "b", "claim": "qb", "passages": [{"id": "z", "text": "pz"}]},
    ]
    # cos(qa, px) = 3/5 = 0.6, cos(qa, py) = 0.8, cos(qa, pz) = -1; cos(qb, px) = 0.8, qb against py 0.6, pz 0.
    # Lengths differ, so that an inner product would order them otherwise (30, 4, -1).
    vectors = {
        "qa": [1.0, 0.0],
        "qb": [0.0, 2.0],
        "px": [30.0, 40.0],
        "py": [4.0, 3.0],
        "pz": [-1.0, 0.0],
    }
    judge("items", "import", "jsonl", write(tmp_path / "d.jsonl", claims))
    with ServerProcess("embeddings", "--record", "--vectors", json.dumps(vectors)) as server:
        done = judge(*DENSE, "--base-url", server.url, "-k", "2", "--json")
        assert sorted(text for body in server.bodies() for text in body["input"]) == sorted(vectors)
    document = checked(done.out, "retrieve")
    assert (document["name"], document["lists"], document["entries"], document["empty"]) == ("m", 2, 4, 0)
    assert document["options"]["size"] == 2 and document["options"]["retriever"] == "embeddings"
    assert rows("SELECT item_id, rank, passage_id, score FROM rankings ORDER BY item_id, rank") == [
        ("d:a", 1, "d:a/y", 0.8),
        ("d:a", 2, "d:a/x", 0.6),
        ("d:b", 1, "d:a/x", 0.8),
        ("d:b", 2, "d:a/y", 0.6),
    ]


def test_equal_cosines_are_in_the_order_of_import_and_blocks_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = np.random.default_rng(7)
    passages = draw.integers(-2, 3, (40, 4)).astype(np.float32)
    passages[:, 0] += 5
    passages = np.concatenate([passages, 2 * passages])  # every cosine occurs twice
    queries = draw.normal(size=(23, 4)).astype(np.float32)
    search = Search([(f"i{n}", "") for n in range(23)], [""] * 80, [{f"p{n}": f"p{n}/x"} for n in range(80)])
    whole = list(dense(search, queries, passages, 7, "n", Where("", 0)))
    monkeypatch.setattr("judge.retrieve.MOST_SCORES", 300)
    assert list(dense(search, queries, passages, 7, "n", Where("", 0))) == whole
    for row, query in zip(whole, queries, strict=True):
        cosines = passages @ query / np.linalg.norm(passages, axis=1) / np.linalg.norm(query)
        places = [int(pid[1:-2]) for pid, _ in row.passages]
        # The slow way: by rounded cosine, then by place.
        assert places == sorted(range(80), key=lambda n: (-round(float(cosines[n]), 5), n))[:7]


def test_texts_are_sent_once_and_kept(judge: Judge, items: None) -> None:
    with ServerProcess("embeddings", "--record") as server:
        where = ("--base-url", server.url)
        first = judge(*DENSE, *where, "--batch", "4")
        texts = [text for body in server.bodies() for text in body["input"]]
        assert len(texts) == len(set(texts)) == 9  # six passages and three questions
        assert max(len(body["input"]) for body in server.bodies()) == 4
        assert "9 texts embedded in 3 calls" in first.err and "0 were there" in first.err
        again = judge(*DENSE, *where, "-k", "1", "--name", "one")
        assert "0 texts embedded in 0 calls" in again.err and "9 were there" in again.err
        assert server.stats()["requests"] == 3
        # Another prefix is another text; the passages stay.
        judge(*DENSE, *where, "--query-prefix", "query: ", "--name", "two")
        assert all(t.startswith("query: ") for body in server.bodies()[3:] for t in body["input"])
        assert column("SELECT count(*) FROM embeddings") == [12]
        assert "another list of 'm'" in judge(*DENSE, *where, "-k", "1", code=1).err
    assert column("SELECT DISTINCT model FROM embeddings") == ["m-2026"]
    assert column("SELECT DISTINCT length(vector) FROM embeddings") == [64 * 4]


def test_words_in_common_rank_first(judge: Judge, items: None) -> None:
    with ServerProcess("embeddings") as server:
        judge(*DENSE, "--base-url", server.url)
    assert ids()["rag:bridge"].startswith("rag:bridge/") and ids()["rag:tea"].startswith("rag:tea/")
    found = rows("SELECT score FROM rankings ORDER BY item_id, rank")
    assert all(-1.000001 <= score <= 1.000001 for (score,) in found)


@pytest.mark.parametrize("fault", ["429", "500", "reset", "cut", "truncated", "unequal", "fewer"])
def test_a_fault_now_and_then_is_tried_again(judge: Judge, items: None, fault: str) -> None:
    with ServerProcess("embeddings", "--fault", f"{fault}:every=2,first=4") as server:
        judge(*DENSE, "--base-url", server.url, "--batch", "3", "--concurrency", "1")
        # Calls 2 and 4 fail and are sent again: three batches and two more calls.
        assert server.stats()["requests"] == 5
    assert column("SELECT count(*) FROM embeddings") == [9]


def test_what_was_embedded_before_the_server_died_is_kept(judge: Judge, items: None) -> None:
    # One batch passes, then the key is refused, which is not tried again.
    with ServerProcess("embeddings", "--fault", "401:after=1") as server:
        told = judge(*DENSE, "--base-url", server.url, "--batch", "3", "--concurrency", "1", code=3).err
    assert "refused the key" in told
    assert column("SELECT count(*) FROM embeddings") == [3]
    assert column("SELECT count(*) FROM rankings") == [0]
    server.options = ()
    with server:  # the same port, so the same server
        assert "6 texts embedded" in judge(*DENSE, "--base-url", server.url).err


def test_a_model_that_changes_its_size_stops_and_ranks_nothing(judge: Judge, items: None) -> None:
    with ServerProcess("embeddings", "--fault", "dimension:after=1") as server:
        told = judge(*DENSE, "--base-url", server.url, "--batch", "3", "--concurrency", "1", code=3).err
    assert "gives vectors of 63 numbers for 'openai/m', and gave 64 before" in told
    assert column("SELECT count(*) FROM rankings") == [0]


def test_calls_are_halved_until_the_server_takes_them(judge: Judge, items: None) -> None:
    with ServerProcess("embeddings", "--most", "2", "--record") as server:
        judge(*DENSE, "--base-url", server.url)
        # 9 refused, 4 refused, 2 + 2, 5 refused, 2, 3 refused, 1 + 2: nine calls.
        assert server.stats()["requests"] == 9
    assert column("SELECT count(*) FROM embeddings") == [9]


def test_a_text_that_no_call_can_take_is_named(judge: Judge, tmp_path: Path) -> None:
    row = {
        "id": "a",
        "claim": "short",
        "passages": [{"id": "x", "text": "fits"}, {"id": "y", "text": "w" * 50}],
    }
    judge("items", "import", "jsonl", write(tmp_path / "d.jsonl", [row]))
    with ServerProcess("embeddings", "--longest", "20") as server:
        told = judge(*DENSE, "--base-url", server.url, "--concurrency", "1", code=1).err
    assert "passage 'd:a/y': " in told and "input longer than 20 characters" in told
    assert column("SELECT count(*) FROM rankings") == [0]


BAD = [
    (("--retriever", "embeddings"), 2, "needs -m openai/NAME"),
    (("--retriever", "embeddings", "-m", "anthropic/x"), 2, "embeddings come from openai/NAME"),
    (("--retriever", "embeddings", "-m", "openai/m", "--k1", "1"), 2, "--k1 goes with --retriever bm25"),
    (("--retriever", "bm25", "-m", "openai/m"), 2, "--model goes with --retriever embeddings"),
    (("--retriever", "embeddings", "-m", "openai/a b"), 2, "a name without spaces"),
    (("--retriever", "embeddings", "-m", "openai/m"), 3, "OPENAI_API_KEY is not set"),
    (
        ("--retriever", "embeddings", "-m", "openai/m", "--base-url", "http://127.0.0.1:9/v1"),
        3,
        "http://127.0.0.1:9/v1: cannot connect",
    ),
    (
        ("--retriever", "embeddings", "-m", "openai/m", "--dataset", "z"),
        2,
        "no data set 'z'; there are: rag",
    ),
]


@pytest.mark.parametrize(("args", "code", "told"), BAD, ids=[told for *_, told in BAD])
def test_what_cannot_be_asked_for(
    judge: Judge, items: None, args: tuple[str, ...], code: int, told: str
) -> None:
    assert told in judge("retrieve", *args, code=code).err
    assert column("SELECT count(*) FROM rankings") == [0]


def test_a_study_from_before_embeddings_gets_the_table(judge: Judge, items: None) -> None:
    with closing(sqlite3.connect("study.db")) as conn, conn:
        conn.execute("DROP TABLE embeddings")
        conn.execute("DELETE FROM _sqlite_migrations WHERE name = 'm003_embeddings'")
    conn.close()
    with Store.open("study.db") as store:
        assert store.conn.execute("SELECT count(*) FROM embeddings").fetchone() == (0,)


def one_a_batch(judge: Judge, server: ServerProcess, *limit: str | Path, code: int = 4) -> Any:
    return judge(
        *DENSE, "--base-url", server.url, "--batch", "1", "--concurrency", "3", *map(str, limit), code=code
    )


def test_a_limit_of_tokens_or_money_is_never_crossed_by_embeddings(
    judge: Judge, items: None, tmp_path: Path
) -> None:
    """A call sets aside a token a byte and 80 more, so that 250 tokens hold two calls of these short texts, or three."""
    prices = tmp_path / "prices.json"
    prices.write_text('{"openai/m": {"input": 100.0, "output": 0}}')
    with ServerProcess("embeddings") as server:
        told = one_a_batch(judge, server, "--max-tokens", "250").err
        assert "stopped: another call could cross the limit of 250 tokens" in told
        assert "no ranking yet; the same command goes on" in told
        first = server.stats()["requests"]
        assert 0 < first < 9
        # The server counts four characters a token: what is not used is free for other calls.
        used = sum(len(t) for t in kept_texts()) // 4
        assert used <= 250
        assert column("SELECT count(*) FROM rankings") == [0]
        told = one_a_batch(judge, server, "--max-cost", "0.000001", "--prices", prices).err
        assert "stopped: another call could cross the limit of $1e-06" in told
        assert server.stats()["requests"] == first, "not one call fits"
        told = one_a_batch(judge, server, "--max-cost", "1", "--prices", prices, code=0).err
        assert "(prices: your file of prices)" in told and "stopped" not in told
        assert server.stats()["requests"] == 9, "nothing is paid twice"


def test_a_limit_of_money_needs_a_price_for_embeddings_too(judge: Judge, items: None) -> None:
    with ServerProcess("embeddings") as server:
        assert "no price is known for openai/m" in one_a_batch(judge, server, "--max-cost", "1", code=2).err
        assert server.stats()["requests"] == 0


def test_embeddings_end_at_their_time_and_go_on(judge: Judge, items: None) -> None:
    with ServerProcess("embeddings", "--delay", "60") as server:
        assert "the time limit of 1 s is reached" in one_a_batch(judge, server, "--max-time", "1s").err
    with ServerProcess("embeddings") as server:
        one_a_batch(judge, server, code=0)


def test_embeddings_whose_server_counts_far_more_are_stopped_and_it_is_said(
    judge: Judge, items: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Embedder.embed

    async def liar(self: Embedder, texts: list[str]) -> Embedded:
        return dataclasses.replace(await real(self, texts), tokens=5_000)

    monkeypatch.setattr(Embedder, "embed", liar)
    with ServerProcess("embeddings") as server:
        told = one_a_batch(judge, server, "--max-tokens", "1000").err
        assert "the limit is crossed (15,000 tokens of 1,000): the server counted" in told
        assert server.stats()["requests"] == 3, "those on their way, and no more"
