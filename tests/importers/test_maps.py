"""--map and --map-label: flat rows, lists, votes, shadowed keys, typos."""

import json
import shlex
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from judge.errors import UsageError
from judge.importers.paths import MISSING, follow, remove_paths
from judge.types import AnnotatorKind, Passage, Vote
from tests.formats import write_jsonl
from tests.importers.helpers import load
from tests.real import require
from tests.suites.helpers import Judge


def one(tmp_path: Path, row: dict[str, Any], **maps: str) -> Any:
    named = {k.replace("__", "."): v for k, v in maps.items()}
    (item,) = load("jsonl", write_jsonl(tmp_path / "d.jsonl", [row]), maps=named).items
    return item


def test_flat_row_makes_one_passage_and_keeps_the_rest_with_it(tmp_path: Path) -> None:
    row = {"id": 1, "claim": "c", "evidence": "e", "label": "support", "verdict": False, "rationale": []}
    item = one(
        tmp_path,
        row,
        passages__text="evidence",
        passages__gold__stance="label",
        gold__claim_verdict="verdict",
    )
    assert item.votes == [Vote("claim_verdict", "false")]
    assert item.passages == [Passage("e", meta={"rationale": []}, votes=[Vote("stance", "support")])]
    assert item.meta == {}


def test_flat_text_under_passages(tmp_path: Path) -> None:
    row = {"id": 1, "claim": "c", "evidence": "e", "label": 0, "where": {"url": "u", "on": "2020"}}
    item = one(tmp_path, row, passages="evidence", passages__gold__g="label", passages__source="where.url")
    assert item.passages == [Passage("e", source="u", meta={"where": {"on": "2020"}}, votes=[Vote("g", "0")])]


def test_paths_are_relative_to_each_element(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "question": "q",
        "docs": [{"body": {"text": "a"}, "rel": 2, "by": {"ann": 1}}, {"body": {"text": "b", "lang": "en"}}],
    }
    item = one(
        tmp_path, row, passages="docs", passages__text="body.text", passages__gold__rel="rel",
        passages__votes__rel="by",
    )  # fmt: skip
    assert item.passages == [
        Passage("a", votes=[Vote("rel", "2"), Vote("rel", "1", "ann", AnnotatorKind.HUMAN)]),
        Passage("b", meta={"body": {"lang": "en"}}),
    ]
    assert item.meta == {}


def test_a_list_is_indexed(tmp_path: Path) -> None:
    row = {"id": 1, "claim": "c", "documents": [{"text": "a"}, {"text": "b"}]}
    item = one(tmp_path, row, passages__text="documents.1.text")
    assert [p.text for p in item.passages] == ["b"]


def test_a_key_with_dots_and_spaces_and_dotted_fields(tmp_path: Path) -> None:
    row = {"Claim ID": 3, "my.claim": "c", "gold.raguard.role": "x", "passages.text": "p",
           "passages.gold.stance": "s"}  # fmt: skip
    item = one(tmp_path, row, id="Claim ID", claim="my.claim")
    assert (item.source_id, item.claim, item.votes) == ("3", "c", [Vote("raguard.role", "x")])
    assert item.passages == [Passage("p", votes=[Vote("stance", "s")])]
    assert item.meta == {}


def test_a_key_that_a_map_reads_is_not_read_as_ours(tmp_path: Path) -> None:
    # RTE's rows have votes: {worker: label}, without a field, and their claim under another name.
    row = {"id": 1, "claim": "other", "hypothesis": "h", "votes": {"w1": 0, "w2": 1}}
    item = one(tmp_path, row, claim="hypothesis", votes__entailment="votes")
    assert item.claim == "h"
    assert [(v.annotator, v.value) for v in item.votes] == [("w1", "0"), ("w2", "1")]
    assert item.meta == {"claim": "other"}


def test_flat_row_with_a_label_but_no_text_is_bad(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "claim": "c", "e": "t", "l": "x"},
        {"id": 2, "claim": "c", "e": None, "l": "x"},
        {"id": 3, "claim": "c", "e": None, "l": None},
    ]
    loaded = load("jsonl", write_jsonl(tmp_path / "d.jsonl", rows),
                  maps={"passages.text": "e", "passages.gold.g": "l"})  # fmt: skip
    assert loaded.places == [("d.jsonl", 2, "passages.text")]
    assert [len(i.passages) for i in loaded.items] == [1, 0]


def test_label_maps_and_the_note_about_idle_ones(tmp_path: Path) -> None:
    row = {"id": 1, "gold": {"g": 0}, "passages": [{"text": "p", "votes": {"g": {"ann": "no", "bob": "x"}}}]}
    path = write_jsonl(tmp_path / "d.jsonl", [row])
    loaded = load(
        "jsonl", path, label_maps={"g": {"0": "zero", "no": "zero", "typo": "one"}, "h": {"x": "y"}}
    )
    (item,) = loaded.items
    assert [v.value for v in item.votes + item.passages[0].votes] == ["zero", "zero", "x"]
    assert loaded.notes == [
        "--map-label g:typo=... had no effect, because no row has the label 'typo' for g",
        "--map-label h:x=... had no effect, because no row has the label 'x' for h",
    ]


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (
            {"claim": "clam"},
            "no row has 'clam' (did you mean claim?); the keys of the first row are: id, claim, passages",
        ),
        ({"passages.text": "body"}, "no row has 'body'"),
        ({"gold.x": "a.b.c"}, "no row has 'a.b.c'"),
        ({"clam": "claim"}, "no field 'clam' (did you mean claim?); available fields: id,"),
        ({"passages.words": "x"}, "no field 'passages.words'"),
        ({"gold.": "x"}, "no field 'gold.'"),
        ({"claim": ""}, "the path is empty"),
    ],
)
def test_a_typo_in_a_map(tmp_path: Path, maps: dict[str, str], message: str) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"id": 1, "claim": "c", "passages": [{"text": "p"}]}] * 2)
    with pytest.raises(UsageError, match="--map") as caught:
        load("jsonl", path, maps=maps)
    assert message in str(caught.value)


def test_a_path_that_is_null_everywhere_is_no_typo(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"id": 1, "claim": "c", "when": None}])
    assert load("jsonl", path, maps={"question_date": "when"}).items[0].question_date is None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a", {"b": [10, {"c": 1}], "b.1": 2}),
        ("a.b.0", 10),
        ("a.b.1", 2),  # a whole key wins over its parts
        ("a.b.1.c", 1),  # and the search goes on when it leads nowhere
        ("a.b.2", MISSING),
        ("a.x", MISSING),
        ("a.b.-1", MISSING),
        ("n", None),
        ("n.x", MISSING),
        ("s.k.0", 5),
        ("t.k", MISSING),
    ],
)
def test_follow(path: str, value: Any) -> None:
    source = {"a": {"b": [10, {"c": 1}], "b.1": 2}, "n": None, "s": '{"k": [5]}', "t": "{k"}
    assert follow(source, path) == value


def test_without_leaves_the_original_alone() -> None:
    source = {"a": {"b": 1, "c": {"d": 2}}, "e": [{"f": 1}]}
    assert remove_paths(source, ["a.c.d", "e.0.f", "x"]) == {"a": {"b": 1}, "e": [{"f": 1}]}
    assert source["a"] == {"b": 1, "c": {"d": 2}}


REAL = [
    ("scifact/pairs_dev.jsonl", {"passages.text": "evidence", "passages.gold.g": "label"}, {},
     {"support": 138, "refute": 71, "neutral": 130}),
    ("factcheckgpt/stance_pairs.jsonl", {"passages.text": "evidence", "passages.gold.g": "label"},
     {"completely-support": "support", "partially-support": "support", "irrelevant": "neutral"},
     {"support": 1087, "refute": 161, "neutral": 2057}),
    ("factcheckgpt/role_pairs.jsonl", {"passages.text": "evidence", "passages.gold.g": "label"}, {},
     {"supporting": 1183, "misleading": 58, "irrelevant": 1914}),
    ("noveleval/pairs.jsonl", {"question": "query", "passages.text": "passage", "passages.gold.g": "label"},
     {"0": "no"}, {"no": 290, "1": 40, "2": 90}),
    ("raguard/pairs_sample.jsonl", {"passages.text": "evidence", "passages.gold.g": "label"}, {},
     {"supporting": 108, "misleading": 24, "irrelevant": 210}),
    ("ramdocs/documents.jsonl", {"passages.text": "evidence", "passages.gold.g": "label"}, {},
     {"supporting": 1918, "misleading": 307, "irrelevant": 541}),
    ("nomiracl_en/questions.jsonl", {"gold.g": "label"}, {}, {"answerable": 250, "unanswerable": 250}),
    ("rte_crowd/votes.jsonl", {"claim": "hypothesis", "passages.text": "text", "passages.gold.g": "label",
                               "passages.votes.g": "votes"}, {}, {"0": 400, "1": 400}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "maps", "labels", "counts"), REAL, ids=[r[0] for r in REAL])
def test_the_real_flat_files(
    name: str, maps: dict[str, str], labels: dict[str, str], counts: dict[str, int]
) -> None:
    # The counts are those of the data sets' SOURCE.md.
    loaded = load("jsonl", require("shared-data") / name, maps=maps, label_maps={"g": labels})
    assert not loaded.bads
    assert all(note.startswith("columns not used: ") for note in loaded.notes)
    assert loaded.gold("g") == counts
    if name.startswith("rte_crowd"):
        people = [v for i in loaded.items for v in i.passages[0].votes if v.kind is AnnotatorKind.HUMAN]
        assert (len(people), len({v.annotator for v in people})) == (8000, 164)


def test_a_key_that_an_id_borrows_is_still_read_under_its_own_name(tmp_path: Path) -> None:
    # Factcheck-GPT's rows cluster by their claim, which is also what is judged.
    row = {"id": "1", "claim": "c", "evidence": "e"}
    item = one(tmp_path, row, question_id="claim", passages__text="evidence")
    assert (item.claim, item.question_id, item.passages[0].text) == ("c", "c", "e")


def test_all_that_is_missing_is_named_at_once(judge: Judge, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("key,body,who\n1,hello,x\n", "utf-8")
    told = judge("items", "import", "csv", table, "--map", "gold.stance=label", code=1).err
    command = f"judge items import csv {table} --map id=key --map passages.text=body"
    assert told.startswith(f"judge: {table}:1: field 'id': ") and "--map gold.stance=label" in told
    assert told.strip().endswith(f"key, body, who; try: {command}")
    rows = tmp_path / "t.jsonl"
    rows.write_text('{"number": 1, "stuff": "hello"}\n', "utf-8")
    told = judge("items", "import", "jsonl", rows, code=1).err
    assert "t.jsonl:1: field 'id': " in told and "available keys: number, stuff" in told
    # What nothing is known to be is left to be filled in.
    assert "--map question=COLUMN --map id=number" in told or "--map id=number --map question=COLUMN" in told
    # With the maps that it names the same file goes in.
    judge(*command.split()[1:])


def test_columns_that_no_map_uses_are_named(judge: Judge, tmp_path: Path) -> None:
    """A user mapped the question alone, and an import of 0 passages did not mention the column that had them."""
    table = tmp_path / "t.csv"
    table.write_text("nr,frage,absatz,art\n1,what is it,some text,x\n2,who is it,another text,y\n", "utf-8")
    maps = ["--map", "id=nr", "--map", "question=frage"]
    told = judge("items", "import", table, *maps, "--dry-run").err
    assert "not used: absatz, art" in told
    assert "--map passages.text=COLUMN" in told
    # With the passages mapped, only what remains unused is named.
    told = judge("items", "import", table, *maps, "--map", "passages.text=absatz").err
    assert "not used: art (" in told
    assert "COLUMN" not in told


def test_questions_alone_are_an_import_without_a_note(tmp_path: Path) -> None:
    rows = [{"nr": 1, "frage": "what is it"}]
    loaded = load("jsonl", write_jsonl(tmp_path / "d.jsonl", rows), maps={"id": "nr", "question": "frage"})
    assert (len(loaded.items), loaded.passages, loaded.notes) == (1, 0, [])


def test_keys_of_our_own_format_that_become_meta_need_no_note(tmp_path: Path) -> None:
    row = {"id": 1, "question": "q", "passages": ["p"], "comment": "kept as meta"}
    assert load("jsonl", write_jsonl(tmp_path / "d.jsonl", [row])).notes == []


WIDE = "nr,user_query,ctx1,ctx2,ctx3,lang\n1,who is it,one,two,three,en\n2,what is it,four,,four,en\n3,where,,,,en\n"


def test_several_columns_of_text_are_several_passages(judge: Judge, tmp_path: Path) -> None:
    """Of a map that was repeated only the last column was read, without a word."""
    table = tmp_path / "wide.csv"
    table.write_text(WIDE)
    maps = ["--map", "id=nr", "--map", "question=user_query"]
    texts = [word for n in (1, 2, 3) for word in ("--map", f"passages.text=ctx{n}")]
    done = judge("items", "import", table, *maps, *texts, "--json")
    assert json.loads(done.out)["rows"][0]["passages"] == 4
    with sqlite3.connect("study.db") as study:
        rows = study.execute("SELECT item_id, text FROM passages ORDER BY rowid").fetchall()
    assert rows == [("wide:1", "one"), ("wide:1", "two"), ("wide:1", "three"), ("wide:2", "four")]
    assert "ctx" not in done.err.replace("ctx4", "")
    # Importing the same file again changes nothing.
    assert json.loads(judge("items", "import", table, *maps, *texts, "--json").out)["rows"][0]["unchanged"]
    wrong = judge("items", "import", table, *maps, *texts, "--map", "passages.text=ctx4", code=2).err
    assert "--map passages.text.4=ctx4" in wrong
    part = judge("items", "import", table, *maps, *texts, "--map", "passages.title=lang", code=2).err
    assert "--map passages.title=lang" in part and "'ctx2'" in part


def test_numbered_columns_are_suggested_as_passages(judge: Judge, tmp_path: Path) -> None:
    """The suggested command took none of the three columns, and imported 0 passages."""
    table = tmp_path / "wide.csv"
    table.write_text(WIDE)
    error = judge("items", "import", table, code=1).err
    command = error[error.index("try: judge ") + len("try: judge ") :].splitlines()[0]
    assert "passages.text=ctx1" in command
    assert "4" in judge(*shlex.split(command)).out


def test_a_field_that_is_mapped_twice_is_refused(judge: Judge, tmp_path: Path) -> None:
    table = tmp_path / "wide.csv"
    table.write_text(WIDE)
    error = judge(
        "items", "import", table, "--map", "question=user_query", "--map", "question=ctx1", code=2
    ).err
    assert "--map question" in error and "'user_query'" in error and "'ctx1'" in error
