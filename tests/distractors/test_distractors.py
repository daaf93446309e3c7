"""judge distractors: written, checked, written again; what counts as challenging; files that come back."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.store.distractors import Distractor, DistractorItem, Reading
from tests.answers.helpers import Judge, column, rows
from tests.cli.helpers import checked, script
from tests.formats import write_jsonl
from tests.loopback.process import ServerProcess
from tests.suites.helpers import people

GENERATE = ("distractors", "generate", "-m", "scripted/file", "--option", "script=script.jsonl")
KEPT = ("judgements", "labels", "answers", "units", "requests")
ITEMS: list[dict[str, Any]] = [
    {
        "id": "france",
        "question": "Capital of France?",
        "reference_answers": ["Paris"],
        "passages": ["Paris is on the Seine."],
    },
    {"id": "spider", "question": "Legs of a spider?", "reference_answers": ["eight", "8"]},
    {"id": "claim", "claim": "Neither question nor answer."},
]


def option(text: str, similarity: str = "topic-similar") -> str:
    return json.dumps({"distractor": text, "fake_document": f"They say {text}.", "similarity": similarity})


def check(label: str) -> str:
    return json.dumps({"distractor_check": label})


SCRIPT = [
    # The check's prompt is the only one that holds the distractor as an answer; "Say whether" is its text alone.
    ("Lyon", option("Nice")),
    ("Berlin", option("Rome")),
    ("Capital of France", option("Berlin")),
    ("Legs of a spider", option("six", "role-similar")),
]


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "jsonl", write_jsonl(tmp_path / "d.jsonl", ITEMS))


def scripted(tmp_path: Path, lines: list[tuple[str, str]]) -> None:
    script(tmp_path / "script.jsonl", lines)


def made(slots: int, *labels: str | None, texts: tuple[str, ...] = ()) -> DistractorItem:
    """One iteration; a text that is 'Paris' is the right answer, so not usable."""
    names = texts or tuple(f"t{n}" for n in range(len(labels)))
    iteration = [
        Distractor(f"a{n}", n, text, "", "", label, text != "Paris")
        for n, (text, label) in enumerate(zip(names, labels, strict=True), 1)
    ]
    return DistractorItem("i", "?", ["Paris"], {}, [iteration])


E, N = "entailed", "not_entailed"
CASES: list[tuple[DistractorItem, Reading, bool | None]] = [
    # By the paper's words one entailed distractor is enough; by the other reading it spoils the question.
    (made(2, E, N), "entailed", True),
    (made(2, E, N), "not-entailed", False),
    (made(2, N, N), "entailed", False),
    (made(2, N, N), "not-entailed", True),
    # One label is missing: known only where the other one decides.
    (made(2, E, None), "entailed", True),
    (made(2, N, None), "entailed", None),
    (made(2, N, None), "not-entailed", None),
    (made(2, E, None), "not-entailed", False),
    # One of two was not written: not known, but for an entailed one under the second reading.
    (made(2, N), "not-entailed", None),
    (made(2, E), "entailed", None),
    (made(2, E), "not-entailed", False),
    # A distractor that is the right answer is none, whatever the check says.
    (made(2, E, E, texts=("Paris", "Rome")), "entailed", False),
    (made(2, N, N, texts=("Paris", "Rome")), "not-entailed", False),
]


@pytest.mark.parametrize(("question", "reading", "valid"), CASES)
def test_what_is_challenging(question: DistractorItem, reading: Reading, valid: bool | None) -> None:
    assert question.valid(1, 2, reading) is valid
    assert question.find_valid(2, reading) == (1 if valid else None)
    assert question.list_tried(2, reading, 2) == ([(1, True)] if valid else [(1, valid), (2, None)])


def test_questions_that_are_not_challenging_are_written_again(
    judge: Judge, study: None, tmp_path: Path
) -> None:
    # Writing shows earlier options, checking shows the answer; scripts match the first line that fits.
    scripted(
        tmp_path,
        [
            ("You check options", check(N)),
            ("Lyon", option("Nice")),
            ("Berlin", option("Lyon")),
            ("Capital of France", option("Berlin")),
            ("six", option("ten", "role-similar")),
            ("Legs of a spider", option("six", "role-similar")),
        ],
    )
    done = judge(*GENERATE, "--per-question", "1", "--regenerate", "2", "--json")
    document = checked(done.out, "distractors")
    # No distractor is entailed, so by the paper's words no question is challenging: three iterations of two.
    assert [(r["iteration"], r["tried"], r["not_challenging"]) for r in document["rows"]] == [
        (1, 2, 2),
        (2, 2, 2),
        (3, 2, 2),
    ]
    assert (document["questions"], document["left_out"]) == (2, 1)
    message = {m["measure"]: (m["value"], m["n_units"], m["coverage"]) for m in document["measures"]}
    assert message["valid_share@1"] == (0.0, 2, 1.0) and message["valid_after@3"] == (0.0, 2, 1.0)
    answers = dict(rows("SELECT condition, text FROM answers WHERE item_id = 'd:france'"))
    assert answers == {"distractor:1.1": "Berlin", "distractor:2.1": "Lyon", "distractor:3.1": "Nice"}
    meta = column("SELECT meta FROM answers WHERE item_id = 'd:spider' AND condition = 'distractor:1.1'")
    assert json.loads(meta[0]) == {"fake_document": "They say six.", "similarity": "role-similar"}
    assert column("SELECT count(*) FROM units WHERE kind = 'sentence'") == [0]
    # The other reading of the same labels: challenging at once.
    other = judge(*GENERATE, "--per-question", "1", "--challenging", "not-entailed", "--json")
    assert [r["challenging"] for r in checked(other.out, "distractors")["rows"]] == [2]


def test_shares_by_iteration(judge: Judge, study: None, tmp_path: Path) -> None:
    scripted(
        tmp_path,
        [
            ("You check options", check(E)),
            ("Berlin", option("Lyon")),
            ("Capital of France", option("Berlin")),
            ("eight legs", option("six")),
            ("Legs of a spider", option(" Eight. ")),  # the right answer in other letters
        ],
    )
    done = judge(*GENERATE, "--per-question", "1", "--regenerate", "1", "--json")
    document = checked(done.out, "distractors")
    # Iteration 1: France yes, spider repeated the answer. Iteration 2: the spider alone, and again.
    assert [
        (r["tried"], r["challenging"], r["not_challenging"], r["repeated"]) for r in document["rows"]
    ] == [
        (2, 1, 1, 1),
        (1, 0, 1, 1),
    ]
    message = {m["measure"]: (m["value"], m["n_units"]) for m in document["measures"]}
    # valid_share: 1 of the 2 tried, 0 of the 1 tried; valid_after: 1 of all 2, both times.
    assert message == {
        "valid_share@1": (0.5, 2),
        "valid_after@1": (0.5, 2),
        "valid_share@2": (0.0, 1),
        "valid_after@2": (0.5, 2),
    }


def test_the_same_command_asks_nothing_twice_and_changes_nothing(
    judge: Judge, study: None, tmp_path: Path
) -> None:
    with ServerProcess("openai", "--logprobs", "none") as server:
        command = ("distractors", "generate", "-m", "openai/m", "--base-url", server.url, "--json")
        first = checked(judge(*command, code=None).out, "distractors")
        n_requests = server.stats()["requests"]
        before = [rows(f"SELECT * FROM {table}") for table in KEPT]
        again = checked(judge(*command, code=None).out, "distractors")
        # The study remembers how this server answers, so nothing is asked when the provider is opened.
        assert server.stats()["requests"] - n_requests == 0
    assert again["rows"] == first["rows"] and again["measures"] == first["measures"]
    assert [rows(f"SELECT * FROM {table}") for table in KEPT] == before


def test_it_goes_on_after_a_server_that_died(judge: Judge, study: None, tmp_path: Path) -> None:
    with ServerProcess("openai", "--logprobs", "none", "--fault", "401:after=5") as server:
        command = ("distractors", "generate", "-m", "openai/m", "--base-url", server.url)
        message = judge(*command, "--concurrency", "1", code=3).err
        assert "refused the key" in message and "to resume" in message
        there = column("SELECT count(*) FROM judgements WHERE status = 'ok'")
        assert there == [1]  # four questions, one unit, then the key is refused
        server.kill()
        server.options = ("--logprobs", "none")
        server.start()
        judge(*command, code=None)
    assert column("SELECT count(*) FROM judgements WHERE status <> 'ok'") == [0]
    assert column("SELECT count(DISTINCT item_id) FROM answers") == [2]


def test_replies_that_cannot_be_read_leave_the_question_open(
    judge: Judge, study: None, tmp_path: Path
) -> None:
    scripted(
        tmp_path,
        [("You check options", "perhaps"), ("Capital", "no idea"), ("", option("six"))],
    )
    done = judge(*GENERATE, "--per-question", "1", "--regenerate", "0", "--json", code=4)
    document = checked(done.out, "distractors")
    assert [(r["tried"], r["unknown"], r["distractors"]) for r in document["rows"]] == [(2, 2, 1)]
    share = document["measures"][0]
    assert (share["value"], share["n_units"]) == (None, 0) and "2 not checked" in share["reason"]
    message = judge("distractors", "export", "-o", "x.json", "--per-question", "1", code=2).err
    assert "must match exactly one annotator" in message or "no question" in message


def questions(judge: Judge, tmp_path: Path) -> None:
    scripted(
        tmp_path,
        [
            ("You check options", check(N)),
            ("Berlin", option("Rome\n and C. more")),
            ("Capital of France", option("Berlin")),
            ("six", option("ten")),
            ("Legs of a spider", option("six", "role-similar")),
        ],
    )
    judge(*GENERATE, "--per-question", "2", "--challenging", "not-entailed")


def test_the_urag_file_comes_back(judge: Judge, study: None, tmp_path: Path) -> None:
    questions(judge, tmp_path)
    export = ("distractors", "export", "--per-question", "2", "--challenging", "not-entailed")
    message = judge(*export, "-o", "x.json", "--json")
    assert checked(message.out, "distractors_export")["questions"] == 2
    document = json.loads(Path("x.json").read_text("utf-8"))
    assert [len(document[split]) for split in ("calibration", "test")] == [1, 1]
    judge("items", "import", "urag", "x.json", "--dataset", "u")
    result = {
        source: (question, json.loads(options), correct)
        for source, question, options, correct in rows(
            "SELECT json_extract(meta, '$.id'), question, options, correct FROM items WHERE dataset = 'u'"
        )
    }
    question, options, correct = result["france"]
    assert question == "Capital of France?"
    assert sorted(options.values()) == ["Berlin", "Paris", "Rome and C. more"] and options[correct] == "Paris"
    # One passage of its own and two made-up documents, which their ids do not give away.
    passages = rows(
        "SELECT passage_id, text, json_extract(meta, '$.made_up'), json_extract(meta, '$.supports') FROM passages "
        "WHERE item_id LIKE 'u:%france' ORDER BY position"
    )
    assert [p.rpartition("/")[2] for p, *_ in passages] == ["r1", "r2", "r3"]
    assert {text: made_up for _, text, made_up, _ in passages} == {
        "Paris is on the Seine.": None,
        "They say Berlin.": 1,
        "They say Rome\n and C. more.": 1,
    }
    assert all(options[letter] in text.replace("\n", "") for _, text, made_up, letter in passages if made_up)
    assert "-o x.json" in judge(*export, "-o", "x.json", code=2).err
    judge(*export, "-o", "y.jsonl")
    judge("items", "import", "jsonl", "y.jsonl", "--dataset", "y")
    assert column("SELECT correct FROM items WHERE item_id = 'y:france'") == [correct]
    # The meta of a passage reaches no prompt.
    prompt = judge("run", "multiple_choice", "-m", "scripted/first", "--estimate", "--json").out
    assert "made_up" not in prompt and "role-similar" not in prompt


def test_people_decide_at_export(judge: Judge, study: None, tmp_path: Path) -> None:
    questions(judge, tmp_path)
    checks = {
        unit: "entailed" if text == "six" else "not_entailed"
        for unit, text in rows("SELECT answer_id, text FROM answers")
    }
    people("distractor_check", {"alice": checks})
    export = ("distractors", "export", "--per-question", "2", "--check", "alice")
    done = judge(*export, "--challenging", "not-entailed", "-o", "a.jsonl")
    assert "1 questions were left out" in done.err
    assert [json.loads(line)["id"] for line in Path("a.jsonl").read_text().splitlines()] == ["france"]
    judge(*export, "-o", "b.jsonl")
    assert [json.loads(line)["id"] for line in Path("b.jsonl").read_text().splitlines()] == ["spider"]
    assert (
        "--check 'bob': must match exactly one annotator"
        in judge(*export[:-1], "bob", "-o", "c.json", code=2).err
    )


BAD = [
    (("--system", "a@b"), 2, "'a@b' contains '@' or '#'"),
    (("--where", "dataset = 'z'"), 2, "distractor.v3: question and reference_answers"),
    (("--where", "nonsense ("), 2, "--where 'nonsense ('"),
    (("--max", "1tokens"), 4, "the limit of 1 tokens"),
]


@pytest.mark.parametrize(("more", "code", "message"), BAD, ids=[message for *_, message in BAD])
def test_what_cannot_be_asked_for(
    judge: Judge, study: None, tmp_path: Path, more: tuple[str, ...], code: int, message: str
) -> None:
    scripted(tmp_path, SCRIPT)
    assert message in judge(*GENERATE, *more, code=code).err
    assert column("SELECT count(*) FROM answers") == [0]


def test_export_without_distractors(judge: Judge, study: None) -> None:
    message = judge("distractors", "export", "-o", "x.json", code=2).err
    assert "no distractors; to generate them: judge distractors generate" in message
    assert not Path("x.json").exists()


def test_the_original_document_is_shown_and_the_made_up_one_may_not_hold_the_answer(
    judge: Judge, study: None, tmp_path: Path
) -> None:
    away = {"distractor": "Lyon", "fake_document": "Paris lost to Lyon.", "similarity": "role-similar"}
    scripted(
        tmp_path,
        [
            ("Say whether", check("entailed")),
            ("Lyon", option("Nice")),
            # The prompt holds the question's own passage: the original document.
            ("Paris is on the Seine.", json.dumps(away)),
            ("Legs of a spider", option("six")),
        ],
    )
    done = judge(*GENERATE, "--per-question", "1", "--regenerate", "1")
    # "Paris lost to Lyon." holds the right answer, so the question is written again.
    assert column("SELECT text FROM answers WHERE item_id = 'd:france' ORDER BY condition") == [
        "Lyon",
        "Nice",
    ]
    assert "reading: paper (distractor.v3)" in done.out
    assert "1 questions have no original document" in done.err


def test_the_reading_of_good_practice_forbids_what_its_filter_drops(
    judge: Judge, study: None, tmp_path: Path
) -> None:
    apart = {"fake_document": "They say so.", "similarity": "topic-similar"}
    scripted(
        tmp_path,
        [
            ("Say whether", check("not_entailed")),
            ("consequence of the right answer either", json.dumps({"distractor_apart": "Nice", **apart})),
        ],
    )
    done = judge(*GENERATE, "--per-question", "1", "--reading", "practice")
    assert "reading: practice (distractor_apart.v2); challenging: no distractor is entailed" in done.out
    assert column("SELECT DISTINCT text FROM answers") == ["Nice"]
