"""Rankings from TREC runs and from BM25."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.answers.helpers import EXAMPLES, Judge, column, contents, rows
from tests.cli.helpers import checked
from tests.formats import write_jsonl
from tests.real import require

LISTS = "SELECT item_id, rank, passage_id, score FROM rankings ORDER BY name, stage, item_id, rank"


@pytest.fixture
def items(judge: Judge) -> None:
    judge("items", "import", "jsonl", EXAMPLES / "rag.jsonl")


def run_file(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_a_run_is_imported_with_ranks_from_one(judge: Judge, items: None, tmp_path: Path) -> None:
    path = run_file(
        tmp_path / "a.run",
        "tea Q0 cite_2 5 0.5 x",
        "rag:bridge 0 rag:tea/cite_3 0 1.5 x",
        "tea\tQ0\trag:tea/cite_1\t0\t2e0\tx",
        "",
    )
    # Without a stage: what there is and the command, the likeliest stage in it.
    for name, stage in (("a.run", "retrieve"), ("my reranked.run", "rerank"), ("top5.run", "top-k")):
        message = judge("systems", "import", name, code=2).err
        suggested = shlex.split(message.strip().rpartition("for example: judge ")[2])
        assert suggested == ["systems", "import", "--stage", stage, name]
    done = judge("systems", "import", "--stage", "rerank", path, "--json")
    assert checked(done.out, "systems_import")["rows"] == [
        {"file": str(path), "lists": 2, "entries": 3, "unchanged": 0, "skipped": 0}
    ]
    assert rows(LISTS) == [
        ("rag:bridge", 1, "rag:tea/cite_3", 1.5),
        ("rag:tea", 1, "rag:tea/cite_1", 2.0),
        ("rag:tea", 2, "rag:tea/cite_2", 0.5),
    ]
    before = contents()
    judge("systems", "import", "--stage", "rerank", path)
    assert contents() == before
    judge("systems", "import", "--stage", "top-k", path, "--name", "mine")
    result = checked(judge("systems", "list", "--json").out, "systems")["rankings"]
    assert [(r["name"], r["stage"], r["items"], r["longest"]) for r in result] == [
        ("mine", "top-k", 2, 2),
        ("x", "rerank", 2, 2),
    ]
    other = run_file(tmp_path / "b.run", "tea Q0 cite_1 1 9 x")
    message = judge("systems", "import", "--stage", "rerank", other, code=1).err
    assert f"{other}:1" in message and "different list from 'x' at stage 'rerank' for 'rag:tea'" in message


BAD = [
    ("tea Q0 cite_1 1 2.0", "has 5 columns, but each line in a TREC run must have six: "),
    ("coffee Q0 cite_1 1 2.0 x", "field 'query': no item 'coffee'"),
    (
        "ferry Q0 cite_9 1 2.0 x",
        "field 'document': there is no passage 'cite_9' in 'rag:ferry'",
    ),
    ("ferry Q0 cite_1 one 2.0 x", "field 'rank': 'one' is not a whole number"),
    ("ferry Q0 cite_1 1 nan x", "field 'score': 'nan' is not a number"),
    ("tea Q0 cite_1 2 1.0 x", "'rag:tea/cite_1' occurs twice for 'rag:tea' (first on line 1)"),
    ("tea Q0 cite_2 1 3.0 x", "rank 1 occurs twice for 'rag:tea'"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_a_bad_line_is_named(judge: Judge, items: None, tmp_path: Path, bad: str, message: str) -> None:
    path = run_file(tmp_path / "a.run", "tea Q0 cite_1 1 3.0 x", bad, "bridge Q0 cite_1 1 3.0 x")
    err = judge("systems", "import", "--stage", "retrieve", path, code=1).err
    assert err.startswith(f"judge: {path}:2: ") and message in err
    assert column("SELECT count(*) FROM rankings") == [0]
    assert f"skipped: {path}:2" in judge("systems", "import", "--stage", "retrieve", path, "--skip-bad").err
    # A list without an order is skipped as a whole.
    kept = ["rag:bridge"] if "no defined order" in err else ["rag:bridge", "rag:tea"]
    assert column("SELECT item_id FROM rankings ORDER BY 1") == kept


def test_a_run_is_ordered_by_score(judge: Judge, items: None, tmp_path: Path) -> None:
    """As trec_eval and ir_measures do. Equal scores keep the order of the rank column, then of the file."""
    path = run_file(
        tmp_path / "a.run",
        *("tea Q0 cite_1 1 0.1 x", "tea Q0 cite_2 2 0.3 x", "tea Q0 cite_3 3 0.2 x"),
        *("bridge Q0 cite_2 2 -1 x", "bridge Q0 cite_1 1 -1 x"),
        *("ferry Q0 cite_1 0 1 x", "ferry Q0 rag:tea/cite_1 0 3 x", "ferry Q0 rag:tea/cite_2 0 1 x"),
    )
    err = judge("systems", "import", "--stage", "retrieve", path).err
    assert str(path) in err and "1 of 3 queries" in err and "score" in err
    listed: dict[str, list[str]] = {}
    for item, _, passage, _ in rows(LISTS):
        listed.setdefault(item, []).append(passage)
    assert listed == {
        "rag:tea": ["rag:tea/cite_2", "rag:tea/cite_3", "rag:tea/cite_1"],
        "rag:bridge": ["rag:bridge/cite_1", "rag:bridge/cite_2"],
        # All ranks are 0, so the scores alone decide.
        "rag:ferry": ["rag:tea/cite_1", "rag:ferry/cite_1", "rag:tea/cite_2"],
    }
    ordered = run_file(tmp_path / "b.run", "tea Q0 cite_1 1 2 y", "tea Q0 cite_2 2 1 y")
    assert "rank column" not in judge("systems", "import", "--stage", "retrieve", ordered).err


def test_ids_of_other_items_must_mean_one_text(judge: Judge, tmp_path: Path) -> None:
    def item(name: str, **texts: str) -> dict[str, object]:
        return {"id": name, "question": "?", "passages": [{"id": k, "text": v} for k, v in texts.items()]}

    path = write_jsonl(
        tmp_path / "d.jsonl", [item("a", same="S", other="1"), item("b", same="S", other="2"), item("c")]
    )
    judge("items", "import", "jsonl", path)
    run = run_file(tmp_path / "a.run", "c Q0 same 1 1.0 x", "c Q0 other 2 1.0 x")
    message = judge("systems", "import", "--stage", "retrieve", run, "--skip-bad").err
    assert "'other' is the id of 2 passages with different texts; use full ids (item/other)" in message
    assert column("SELECT passage_id FROM rankings") == ["d:a/same"]


def test_an_empty_file_and_an_unknown_data_set(judge: Judge, items: None, tmp_path: Path) -> None:
    empty = run_file(tmp_path / "a.run")
    assert "the file is empty" in judge("systems", "import", "--stage", "retrieve", empty, code=1).err
    command = ("systems", "import", "--stage", "retrieve", EXAMPLES / "first.run", "--dataset", "z")
    assert "no data set 'z'; available data sets: rag" in judge(*command, code=2).err


@pytest.mark.real
def test_bm25_ranks_what_shares_words(judge: Judge, items: None) -> None:
    require("bm25s")
    done = judge("retrieve", "--json")
    document = checked(done.out, "retrieve")
    assert (document["lists"], document["options"]["k1"], document["empty"]) == (3, 1.5, 0)
    # "tea", "grows" and "most" stand in Kenya's passage, only "tea" and "country" in China's.
    best = dict(rows("SELECT item_id, passage_id FROM rankings WHERE rank = 1"))
    assert best == {
        f"rag:{name}": f"rag:{name}/cite_{n}" for name, n in (("tea", 2), ("bridge", 1), ("ferry", 1))
    }
    assert column("SELECT count(*) FROM rankings WHERE score <= 0") == [0]
    before = contents()
    judge("retrieve")
    assert contents() == before
    assert "--name" in judge("retrieve", "-k", "1", code=1).err
    assert "--name 'a b'" in judge("retrieve", "--name", "a b", code=2).err
    assert "no data set 'z'; available data sets: rag" in judge("retrieve", "--dataset", "z", code=2).err
    judge("retrieve", "-k", "1", "--name", "one")
    assert column("SELECT max(rank) FROM rankings WHERE name = 'one'") == [1]


@pytest.mark.real
def test_bm25_gives_an_item_its_own_copy_and_leaves_out_what_does_not_match(
    judge: Judge, tmp_path: Path
) -> None:
    require("bm25s")
    shared = {"text": "zebra zebra"}
    path = write_jsonl(
        tmp_path / "d.jsonl",
        [
            {"id": "a", "claim": "zebra", "passages": [shared, {"text": "lion"}]},
            {"id": "b", "claim": "zebra", "passages": [shared]},
            {"id": "c", "claim": "quagga", "passages": []},
        ],
    )
    judge("items", "import", "jsonl", path)
    done = judge("retrieve")
    assert "1 items share no word with any passage" in done.err
    result = rows("SELECT item_id, passage_id FROM rankings ORDER BY item_id")
    assert [(item, passage.partition("/")[0]) for item, passage in result] == [("d:a", "d:a"), ("d:b", "d:b")]


def test_without_the_library_the_command_says_what_to_install(
    judge: Judge, items: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    message = judge("retrieve", code=1).err
    assert "needs bm25s: pip install 'adjudge[retrieve]'" in message


def test_the_option_that_an_error_names_chooses_the_ranking(
    judge: Judge, items: None, tmp_path: Path
) -> None:
    path = run_file(tmp_path / "a.run", "tea Q0 cite_2 1 0.5 x", "tea Q0 cite_1 2 0.4 y")
    judge("systems", "import", "--stage", "retrieve", path)
    message = judge("rankings", "attach", code=2).err
    assert "--ranking" in message and "x (retrieve), y (retrieve)" in message
    assert (
        checked(judge("rankings", "attach", "--ranking", "y", "--json").out, "rankings_attach")["name"] == "y"
    )
