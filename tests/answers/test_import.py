"""judge systems import: what becomes of a row, what is refused, and that importing again changes nothing."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.answers.helpers import EXAMPLES, Judge, column, contents, rag, rows
from tests.cli.helpers import checked
from tests.formats import write_jsonl
from tests.real import require
from tests.suites.helpers import items as items_of


@pytest.fixture
def items(judge: Judge) -> None:
    judge("items", "import", "jsonl", EXAMPLES / "rag.jsonl")


def row(**changes: Any) -> dict[str, Any]:
    return {"id": "tea", "system": "s", "condition": "c", "text": "China [cite_1].", **changes}


def test_answers_sentences_and_citations_become_units(judge: Judge, items: None) -> None:
    done = judge("systems", "import", EXAMPLES / "answers.jsonl", "--json")
    # tea 2 + 3 sentences, bridge 1 + 1, ferry 1 + 1; citations 2 + 3, 1 + 2, 0 + 1.
    counts = {
        "answers": 6,
        "empty": 0,
        "sentences": 9,
        "citations": 9,
        "claims": 0,
        "labels": 3,
        "unchanged": 0,
    }
    assert checked(done.out, "systems_import")["rows"] == [
        {"file": str(EXAMPLES / "answers.jsonl"), **counts, "skipped": 0}
    ]
    result = rows(
        "SELECT unit_id, kind, sentence, cited_passages FROM unit_texts WHERE answer_id = ?",
        "rag:tea@model-a@full",
    )
    first, second = '["rag:tea/cite_1"]', '["rag:tea/cite_2","rag:tea/cite_3"]'
    sold = "Most of it is sold in Mombasa [cite_2][cite_3]."
    assert result == [
        ("rag:tea@model-a@full", "answer", None, '["rag:tea/cite_1","rag:tea/cite_2","rag:tea/cite_3"]'),
        ("rag:tea@model-a@full#s0", "sentence", "China grows the most tea [cite_1].", first),
        ("rag:tea@model-a@full#s0/cite_1", "citation", "China grows the most tea [cite_1].", first),
        ("rag:tea@model-a@full#s1", "sentence", sold, second),
        ("rag:tea@model-a@full#s1/cite_2", "citation", sold, second),
        ("rag:tea@model-a@full#s1/cite_3", "citation", sold, second),
        ("rag:tea@model-a@full#s2", "sentence", "I hope this helps!", None),
    ]
    baseline = "SELECT DISTINCT baseline_answer FROM unit_texts WHERE answer_system = 'model-a' AND item_id = 'rag:bridge'"
    assert column(baseline) == ["It was designed by Nora Quist and opened in 1931 [cite_1]."]
    document = checked(judge("answers", "show", "rag:tea@model-a@full", "--json").out, "answer")
    assert [s["text"] for s in document["sentences"]][2] == "I hope this helps!"
    assert "#s1 -> rag:tea/cite_2, rag:tea/cite_3" in judge("answers", "show", "rag:tea@model-a@full").out
    assert len(checked(judge("answers", "show", "--system", "human", "--json").out, "answers")["rows"]) == 3
    assert "no answer 'x'" in judge("answers", "show", "x", code=1).err


def test_importing_again_changes_nothing(judge: Judge) -> None:
    rag(judge)
    before = contents()
    judge("systems", "import", EXAMPLES / "answers.jsonl")
    judge("systems", "import", "--stage", "retrieve", EXAMPLES / "first.run")
    assert contents() == before


BAD = [
    (row(id="coffee"), "field 'id': no item 'coffee' in the study"),
    (
        row(cited=["cite_9"]),
        "field 'cited': cites 'cite_9', but the item has no such passage; its passages are: cite_1, cite_2",
    ),
    (row(cited="[cite_1][8]"), "cites '8', but the item has no such passage"),
    (row(context=["nowhere"]), "field 'context': 'rag:tea' has no passage 'nowhere'"),
    (row(text=["a"]), "field 'text': must be text, not a list"),
    (row(text="a\0b"), "field 'text': contains a NUL character"),
    (row(system=None), "field 'system': missing"),
    (row(system="a@b"), "field 'system': 'a@b' must be a name without '@' and '#'"),
    (row(condition="a#b"), "field 'condition': 'a#b' must be a name"),
    (row(claims="x"), "field 'claims': must be a list, not text"),
    (row(claims=[{"gold": {}}]), "field 'claims.0.text': missing"),
    (row(answers=5), "field 'answers': must be an object or a list"),
    (row(answers={"m": 5}), "field 'answers.m': must be text or an object"),
    ([1], "a row must be an object"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_a_bad_row_is_named_and_nothing_of_its_file_is_kept(
    judge: Judge, items: None, tmp_path: Path, bad: Any, message: str
) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [row(system="good"), bad, row(system="after")])
    before = contents()
    err = judge("systems", "import", path, code=1).err
    assert err.startswith(f"judge: {path}:2: ") and message in err
    assert contents() == before
    done = judge("systems", "import", path, "--skip-bad")
    assert f"skipped: {path}:2: " in done.err
    assert column("SELECT system FROM answers ORDER BY rowid") == ["good", "after"]
    assert json.loads(column("SELECT skipped FROM imports WHERE format = 'answers'")[0])[0].startswith(
        f"{path}:2"
    )


def test_two_answers_of_one_system_under_one_condition(judge: Judge, items: None, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [row(), row(), row(text="Kenya.")])
    err = judge("systems", "import", path, code=1).err
    assert f"{path}:3" in err and "this import already has a different answer from 's'" in err
    judge("systems", "import", path, "--skip-bad")
    other = write_jsonl(tmp_path / "b.jsonl", [row(text="Kenya.")])
    assert (
        "the study already has a different answer from 's'" in judge("systems", "import", other, code=1).err
    )
    judge("systems", "import", other, "--condition", "c2", code=1)  # the row's own condition wins
    assert column("SELECT text FROM answers") == ["China [cite_1]."]


def test_citations_are_found_by_marker_id_place_and_full_id(judge: Judge, tmp_path: Path) -> None:
    passages = [{"id": "x", "text": "One."}, {"id": "cite_7", "text": "Two."}, "Three."]
    items_of(judge, tmp_path, "d", [{"id": "q", "question": "?", "passages": passages}])
    ids = column("SELECT passage_id FROM passages ORDER BY position")
    answers = [
        {"id": "d:q", "system": "s", "text": "A [x]. B [7]. C [3]. D [cite_3]. E [44]."},
        {"id": "q", "system": "full", "text": "A", "cited": [ids[2], "[cite_7]"]},
        {"id": "q", "system": "given", "text": "A [1]. B [2]. C [cite_7].", "context": [ids[2], "x"]},
        {"id": "q", "system": "none", "text": "A [1].", "context": []},
        {"id": "q", "system": "explicit", "text": "A [x].", "cited": []},
    ]
    judge("systems", "import", write_jsonl(tmp_path / "a.jsonl", answers))
    spans = [
        json.loads(s)
        for s in column("SELECT span FROM units WHERE kind = 'sentence' AND answer_id LIKE '%@s@%'")
    ]
    assert [(s["cited"], s.get("unknown")) for s in spans] == [
        ([ids[0]], None), ([ids[1]], None), ([ids[2]], None), ([ids[2]], None), ([], ["44"]),
    ]  # fmt: skip
    cited = dict(rows("SELECT system, cited FROM answers"))
    assert json.loads(cited["full"]) == [ids[2], ids[1]]
    # In a context the markers count its own passages, and what was not given cannot be cited.
    assert json.loads(cited["given"]) == [ids[2], ids[0]]
    assert json.loads(cited["none"]) == json.loads(cited["explicit"]) == []
    assert "refers to no passage: 44" in judge("answers", "show", "d:q@s@default").out


def test_an_item_of_several_data_sets_needs_the_data_set(judge: Judge, tmp_path: Path) -> None:
    for dataset in ("a", "b"):
        path = write_jsonl(tmp_path / f"{dataset}.jsonl", [{"id": "q", "question": "?"}])
        judge("items", "import", "jsonl", path)
    answers = write_jsonl(tmp_path / "x.jsonl", [{"id": "q", "system": "s", "text": "A."}])
    assert "choose one with --dataset" in judge("systems", "import", answers, code=1).err
    judge("systems", "import", answers, "--dataset", "b")
    assert column("SELECT answer_id FROM answers") == ["b:q@s@default"]
    assert "no item 'q' in data set 'c'" in judge("systems", "import", answers, "--dataset", "c", code=1).err


def test_claims_labels_meta_and_empty_answers(judge: Judge, items: None, tmp_path: Path) -> None:
    claims = [
        "Tea grows.",
        {"text": "Tea is old.", "gold": {"claim_support": "Neutral"}, "votes": {"f": {"ann": "x"}}},
    ]
    path = write_jsonl(
        tmp_path / "a.jsonl",
        [
            row(claims=claims, gold={"deflection": "attempted"}, note="n", meta={"k": 1}),
            row(system="silent", text=""),
        ],
    )
    done = judge("systems", "import", path, "--map-label", "claim_support:Neutral=neutral", "--json")
    counts = checked(done.out, "systems_import")["rows"][0]
    assert (counts["answers"], counts["sentences"], counts["claims"], counts["labels"]) == (2, 1, 2, 3)
    assert rows(
        "SELECT unit_id, field, annotator_id, value FROM labels WHERE unit_id LIKE '%@%' ORDER BY field"
    ) == [
        ("rag:tea@s@c#c1", "claim_support", "gold", "neutral"),
        ("rag:tea@s@c", "deflection", "gold", "attempted"),
        ("rag:tea@s@c#c1", "f", "ann", "x"),
    ]
    assert column("SELECT meta FROM answers WHERE system = 's'") == ['{"note":"n","k":1}']
    assert column("SELECT answer_claim FROM unit_texts WHERE kind = 'claim'") == ["Tea grows.", "Tea is old."]
    assert column("SELECT kind FROM units WHERE answer_id LIKE '%@silent@c'") == ["answer"]


def test_csv_with_maps(judge: Judge, items: None, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        'q,output,who,cited,gold.ok\ntea,"China. Yes.",m,cite_1; cite_2,1\nbridge,Nora,m,"[""cite_1""]",\n'
    )
    maps = "--map id=q --map text=output --map system=who --condition v"
    judge("systems", "import", path, *shlex.split(maps))
    assert [(a, json.loads(c)) for a, c in rows("SELECT answer_id, cited FROM answers")] == [
        ("rag:tea@m@v", ["rag:tea/cite_1", "rag:tea/cite_2"]),
        ("rag:bridge@m@v", ["rag:bridge/cite_1"]),
    ]
    assert column("SELECT value FROM labels WHERE field = 'ok'") == ["1"]
    maps = "--map id=q --map text=reply --system m"
    message = judge("systems", "import", path, *shlex.split(maps), code=2).err
    assert "--map text=reply: no row has 'reply'" in message
    assert "'words' is not a key" in judge("systems", "import", path, "--map", "words=output", code=2).err
    gone = judge("systems", "import", EXAMPLES / "answers.jsonl", "--map", "meta=nothing", code=2).err
    assert "--map meta=nothing: no row has 'nothing'; the keys of the first row are: id, system" in gone
    assert "no such file" in judge("systems", "import", tmp_path / "gone.jsonl", code=2).err


def test_several_answers_in_a_row(judge: Judge, items: None, tmp_path: Path) -> None:
    nested = [
        {
            "id": "tea",
            "big": "kept nowhere",
            "outputs": {"m1": "China.", "m2": {"out": "Kenya [cite_2].", "t": 1}},
        },
        {"id": "bridge", "outputs": [{"out": "Nora.", "name": "m3", "condition": "z"}]},
    ]
    path = write_jsonl(tmp_path / "n.jsonl", nested)
    maps = ("--map", "answers=outputs", "--map", "answers.text=out", "--map", "answers.system=name")
    judge("systems", "import", path, *maps, "--condition", "v")
    assert rows("SELECT answer_id, text, meta FROM answers") == [
        ("rag:tea@m1@v", "China.", "{}"),
        ("rag:tea@m2@v", "Kenya [cite_2].", '{"t":1}'),
        ("rag:bridge@m3@z", "Nora.", "{}"),
    ]


@pytest.mark.real
def test_nomiracl_with_eleven_systems(judge: Judge) -> None:
    path = require("shared-data") / "nomiracl_en" / "questions.jsonl"
    judge("items", "import", "jsonl", path, "--dataset", "nomiracl", "--map", "gold.answerable=label")
    maps = "--map answers=model_outputs --condition vanilla --json"
    command = ("systems", "import", path, *shlex.split(maps))
    counts = checked(judge(*command).out, "systems_import")["rows"][0]
    assert counts["answers"] == 500 * 11
    assert checked(judge(*command).out, "systems_import")["rows"][0]["unchanged"] == 500 * 11
    # Eight answers of aya-101 are empty: they are there, and have no sentence.
    assert column("SELECT count(*) FROM answers WHERE text = ''") == [8]
    assert column("SELECT count(*) FROM units WHERE kind = 'sentence' AND length(span) < 5") == [0]
    per_label = "SELECT l.value, count(*) FROM answers AS a JOIN labels AS l ON l.unit_id = a.item_id GROUP BY 1 ORDER BY 1"
    assert rows(per_label) == [("answerable", 2750), ("unanswerable", 2750)]


def test_garage_human_answers(judge: Judge, tmp_path: Path) -> None:
    from tests.formats import garage

    path = garage(tmp_path / "garage.jsonl")
    judge("items", "import", "garage", path)
    judge("systems", "import", path, "--map", "id=sample_id", "--map", "text=answer_generate", "--system", "human", "--dataset", "garage")  # fmt: skip
    # The row with insufficient grounding has an empty answer: it is an answer without sentences.
    assert rows("SELECT answer_id, text, cited FROM answers") == [
        ("garage:g1@human@default", "It is so [cite_1].", '["garage:g1/cite_1"]'),
        ("garage:g2@human@default", "It is so [cite_1].", '["garage:g2/cite_1"]'),
        ("garage:g3@human@default", "", "[]"),
    ]
    assert "grounding" not in column("SELECT meta FROM answers")[0], "the passages are not kept twice"


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_empty_null_and_absent_answers_are_kept_and_counted(
    judge: Judge, items: None, tmp_path: Path, ending: str
) -> None:
    """One rule for all formats: a system that says nothing has failed, and its failure counts."""
    given = [{"id": "tea", "text": "Tea."}, {"id": "bridge", "text": ""}, {"id": "ferry", "text": None}]
    path = tmp_path / f"a.{ending}"
    if ending == "csv":
        path.write_text("id,text\n" + "".join(f"{r['id']},{r['text'] or ''}\n" for r in given), "utf-8")
    else:
        path.write_text("".join(json.dumps(r) + "\n" for r in given), "utf-8")
    done = judge("systems", "import", path, "--system", "m", "--json")
    (counted,) = json.loads(done.out)["rows"]
    assert (counted["answers"], counted["empty"]) == (3, 2)


def test_a_file_in_which_no_row_has_a_text_has_no_answers(judge: Judge, items: None, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "tea", "text": null}\n', "utf-8")
    assert "field 'text'" in judge("systems", "import", path, "--system", "m", code=1).err
    assert rows("SELECT count(*) FROM answers") == [(0,)]
