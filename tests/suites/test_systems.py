"""A system's outputs are its own: what it lacks stays missing, whichever judge was asked for. Numbers worked out by hand."""

import json
import shlex
import sqlite3
from pathlib import Path

import pytest

from tests.answers.helpers import column
from tests.cli.helpers import checked
from tests.formats import mirage, raguard, write_jsonl
from tests.suites.helpers import Judge, answers, commands, give, outputs, ranking, score

DOCUMENTS = ("1/1", "1/2", "1/3", "2/4", "2/5", "3/6")
UNITS = tuple(f"raguard:{d}" for d in DOCUMENTS)
"""Claims 1 true, 2 false, 3 false. Documents 2 and 6 mislead (claims 1 and 3), 1 and 5 support, 3 and 4 are irrelevant."""
GOLD = dict(zip(UNITS, ("true", "true", "true", "false", "false", "false"), strict=True))
"""The right verdict on each document."""
N_RUNS = "SELECT count(*) FROM runs"


@pytest.fixture
def claims(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "raguard", *raguard(tmp_path))


def ranked(judge: Judge, folder: Path, name: str, *first: str) -> None:
    """A ranking with this document at the first rank of claims 1, 2 and 3."""
    ranking(judge, folder, name, {str(n): [document] for n, document in enumerate(first, 1)})


def zero(judge: Judge, folder: Path, system: str) -> None:
    """The answers of a system without context: always true, which is right on claim 1 alone."""
    answers(judge, folder, [(n, system, "zero-context", "true") for n in "123"])


@pytest.mark.usefixtures("claims")
def test_the_judges_verdicts_never_become_a_systems(judge: Judge, tmp_path: Path) -> None:
    """Finding 1: two imported systems without a `verdict_document` run, and a judge that has one."""
    # a is right on all three claims, b on claim 1 alone.
    answers(
        judge,
        tmp_path,
        [(n, "a", "zero-context", v) for n, v in zip("123", ("true", "false", "false"), strict=True)],
    )
    zero(judge, tmp_path, "b")
    give("verdict_document", dict.fromkeys(UNITS, "true"), model="the/judge")
    parts = ("--part", "zero", "--part", "oracle")
    for system, right in (("a", 1.0), ("b", 1 / 3)):
        result = score(judge, "raguard", "--system", system, "-m", "the/judge", *parts)
        assert result.value("accuracy_zero") == pytest.approx(right)
        assert result.names == ["accuracy_zero"]
        add = f"judge systems import FILE --system {system} --condition oracle"
        assert result.document["lacking"] == [{"system": system, "condition": "oracle", "add": add}]
        assert result.document["runs"] == []
    board = checked(
        judge("score", "raguard", "--system", "a", "--system", "b", *parts, "--json").out, "board"
    )
    assert {gap["system"] for gap in board["lacking"]} == {"a", "b"}
    assert {row["measure"] for row in board["rows"]} == {"accuracy_zero"}
    out = judge("score", "raguard", "--system", "a", *parts).out
    add = "to add it:\njudge systems import FILE --system a --condition oracle\n"
    assert f"missing: a has no output under 'oracle'; {add}" in out


@pytest.mark.usefixtures("claims")
def test_a_system_on_one_document_at_a_time_is_its_own_run(judge: Judge, tmp_path: Path) -> None:
    zero(judge, tmp_path, "a")
    give("verdict_document", dict.fromkeys(UNITS, "true"), model="the/judge")
    # a says false to every document but 1: right on 1, 4, 5 and 6 of six; of the misleading ones (2, 6) on 6.
    outputs = dict.fromkeys(UNITS, "false") | {UNITS[0]: "true"}
    give("verdict_document", outputs, model="a", options={"imported": "sha"})
    result = score(judge, "raguard", "--system", "a", "-m", "the/judge", "--part", "zero", "--part", "oracle")
    assert result.value("accuracy_oracle") == pytest.approx(4 / 6)
    assert result.value("accuracy_misleading") == pytest.approx(1 / 2)
    # Claim 1 alone is true: zero-context 1 of 3.
    assert result.value("drop_oracle") == pytest.approx(4 / 6 - 1 / 3)
    assert [run["model"] for run in result.document["runs"]] == ["a"]


@pytest.mark.usefixtures("claims")
@pytest.mark.parametrize("system", ["a", "scripted/first"])
def test_a_named_run_of_a_judge_is_not_read_as_outputs_and_a_note_says_so(judge: Judge, system: str) -> None:
    """The outputs of the system, imported or generated, say true on all documents. The judge's run is always right."""
    words = ("raguard", "--system", system, "--part", "oracle")
    if system == "a":
        give("verdict_document", dict.fromkeys(UNITS, "true"), model="a", options={"imported": "sha"})
    else:
        judge("suite", *words, "-m", system)
    run = give("verdict_document", GOLD, model="the/judge")
    result = score(judge, *words, "--run", run)
    # Claim 1 is true, and three of the six documents are its own.
    assert result.value("accuracy_oracle") == 0.5
    assert any(text.startswith(f"--run {run} ") for text in result.document["notes"])


@pytest.mark.usefixtures("claims")
def test_every_system_has_its_own_ranking(judge: Judge, tmp_path: Path) -> None:
    """Finding 5: a finds the misleading documents 2 and 6, b the supporting ones 1 and 5, c has no ranking."""
    ranked(judge, tmp_path, "a", "2", "4", "6")
    ranked(judge, tmp_path, "b", "1", "5", "6")
    rows = [("1", "true"), ("2", "true"), ("3", "true")]
    for system in "abc":
        answers(judge, tmp_path, [(n, system, "top-1", v) for n, v in rows])
    words = ("raguard", "--part", "rag", "--part", "retrieval", "--k", "1")
    a, b = (score(judge, *words, "--system", name) for name in "ab")
    # Of the claims that own a misleading document, 1 and 3, a gets both and b that of claim 3.
    assert a.value("misleading_retrieval_recall@1[own/owning]") == 1.0
    assert b.value("misleading_retrieval_recall@1[own/owning]") == 0.5
    assert a.value("accuracy_rag_1") == b.value("accuracy_rag_1") == pytest.approx(1 / 3)
    c = score(judge, *words, "--system", "c")
    assert c.names == ["accuracy_rag_1"]
    # The drop is against answers without context, which nobody has here.
    assert [gap["condition"] for gap in c.document["lacking"]] == ["ranking", "zero-context"]


@pytest.mark.usefixtures("claims")
def test_a_system_without_outputs_is_an_error_and_no_model_takes_its_place(
    judge: Judge, tmp_path: Path
) -> None:
    """a has other outputs. acme is no vendor, so that nothing is asked. Only a judge was called mine (--as)."""
    answers(judge, tmp_path, [("1", "a", "top-9", "true")])
    give("verdict_document", dict.fromkeys(UNITS, "true"), model="mine", options={"asked_as": "openai/x"})
    for system, part, conditions in (
        ("a", "zero", "zero-context"),
        ("acme/rag", "zero", "zero-context"),
        ("mine", "oracle", "zero-context, oracle"),
    ):
        message = judge("score", "raguard", "--system", system, "--part", part, code=2).err
        assert f"'{system}' has no outputs for any condition of raguard ({conditions})" in message
        assert "judge systems import FILE" in message


@pytest.fixture
def questions(judge: Judge, tmp_path: Path) -> None:
    judge("items", "import", "mirage", *mirage(tmp_path / "mirage"))


@pytest.mark.usefixtures("questions")
def test_the_papers_names_are_the_conditions(judge: Judge, tmp_path: Path) -> None:
    """Finding 2: base, oracle and mixed, all correct: acceptability 1, noise vulnerability 0."""
    rows = [(f"m{n}", "mine", c, f"It is m{n}.") for n in range(3) for c in ("base", "oracle", "mixed")]
    answers(judge, tmp_path, rows)
    for command in (("score",), ("suite",)):
        done = judge(
            *command, "mirage", "--system", "mine", "-m", "scripted/hash", "--part", "adaptability", "--json"
        )
        result = {m["measure"]: m["value"] for m in json.loads(done.out)["measures"]}
        names = ("noise_vulnerability", "context_acceptability", "accuracy_base")
        assert [result[name] for name in names] == [0.0, 1.0, 1.0]
    assert column(N_RUNS) == [0]
    assert column("SELECT count(*) FROM answers") == [9]


@pytest.mark.usefixtures("claims")
def test_an_output_that_was_imported_and_made_is_neither(judge: Judge, tmp_path: Path) -> None:
    """The model's answers are under `none`, the imported ones under the paper's name of the same condition."""
    judge("answers", "generate", "verdict", "-m", "scripted/hash", "--context", "none", "--system", "mine")
    answers(judge, tmp_path, [("1", "mine", "zero-context", "true")])
    words = ("score", "raguard", "--system", "mine", "--part", "zero")
    message = judge(*words, code=2).err
    assert "'mine' has two sets of outputs for 'zero-context'" in message
    run = message.partition("(run ")[2].partition(")")[0]
    assert f"run {run}: verdict.v4 by scripted/hash" in judge(*words, "--run", run).out


@pytest.mark.usefixtures("questions")
def test_the_mixed_condition_has_the_name_that_it_is_imported_under(judge: Judge, tmp_path: Path) -> None:
    rows = [(f"m{n}", "mine", c, f"It is m{n}.") for n in range(3) for c in ("base", "oracle", "retrieved-2")]
    answers(judge, tmp_path, rows)
    words = ("mirage", "--system", "mine", "--part", "adaptability")
    assert "--mixed retrieved-2" in judge("score", *words).out
    for name in ("retrieved-2", "retrieved:2"):
        assert score(judge, *words, "--mixed", name).value("context_acceptability") == 1.0


@pytest.mark.usefixtures("questions")
def test_a_suite_answers_for_nobody_but_its_model(judge: Judge, tmp_path: Path) -> None:
    answers(judge, tmp_path, [(f"m{n}", "mine", "base", f"m{n}") for n in range(3)])
    part = ("mirage", "--part", "adaptability")
    message = judge("suite", *part, "--system", "mine", "-m", "scripted/hash").out
    assert (
        "missing: mine has no output under 'oracle'" in message
        and "missing: mine has no output under 'mixed'" in message
    )
    assert column(N_RUNS) == [0]
    # A model's own outputs are made, under its own name.
    judge("suite", *part, "-m", "scripted/hash")
    assert column("SELECT DISTINCT system FROM answers ORDER BY 1") == ["mine", "scripted/hash"]


@pytest.mark.usefixtures("questions")
def test_an_imported_system_gets_more_only_where_the_user_says_so(judge: Judge, tmp_path: Path) -> None:
    answers(judge, tmp_path, [(f"m{n}", "scripted/hash", "base", f"m{n}") for n in range(3)])
    generate = ("answers", "generate", "mirage_answer", "-m", "scripted/hash", "--context", "oracle")
    message = judge(*generate, code=2).err
    assert "outputs of 'scripted/hash' were imported" in message and "--also-generate" in message
    message = judge("suite", "mirage", "--part", "adaptability", "-m", "scripted/hash", code=2).err
    assert "--also-generate" in message
    assert judge(*generate, "--also-generate").code == 0


@pytest.mark.usefixtures("questions")
def test_outputs_that_a_model_was_making_for_a_system_are_finished_by_it(judge: Judge) -> None:
    make = ("answers", "generate", "mirage_answer", "-m", "scripted/hash", "--system", "mine", "--context")
    judge(*make, "none")
    lines = commands(judge, "mirage", "--system", "mine", "-m", "scripted/first", "--part", "adaptability")
    assert [line.partition(" --where")[0] for line in lines] == [
        f"judge answers generate mirage_answer -m scripted/hash --context {c} --system mine"
        for c in ("oracle", "fixed5")
    ]


def systems(judge: Judge) -> list[tuple[str, str, int, str]]:
    rows = checked(judge("systems", "list", "--json").out, "systems")["rows"]
    return [(r["system"], r["condition"], r["outputs"], r["origin"]) for r in rows]


@pytest.mark.usefixtures("claims")
def test_one_file_has_a_systems_answers_and_its_verdicts_on_documents(judge: Judge, tmp_path: Path) -> None:
    rows = [{"id": n, "condition": "zero-context", "text": "true"} for n in "123"]
    replies = ("true", "true", "perhaps", "false", "false", "false")
    rows += [
        {"id": d[0], "condition": "oracle", "document": d[2:], "text": text}
        for d, text in zip(DOCUMENTS, replies, strict=True)
    ]
    path = write_jsonl(tmp_path / "outputs.jsonl", rows)
    words = ("systems", "import", path, "--system", "a", "--json")
    [counts] = checked(judge(*words).out, "systems_import")["rows"]
    assert (counts["answers"], counts["verdicts"], counts["unchanged"]) == (3, 6, 0)
    [again] = checked(judge(*words).out, "systems_import")["rows"]
    assert (again["answers"], again["verdicts"], again["unchanged"]) == (0, 0, 9)
    result = score(judge, "raguard", "--system", "a", "-m", "the/judge", "--part", "zero", "--part", "oracle")
    # Gold: claim 1 true (documents 1, 2, 3), claims 2 and 3 false (4, 5 and 6). Wrong is "perhaps" alone: 5 of 6.
    assert result.value("accuracy_oracle") == pytest.approx(5 / 6)
    ranked(judge, tmp_path, "a", "2", "4", "6")
    made = {"context": "none", "system": "the/judge"}
    give("verdict", {"raguard:1": "true"}, model="the/judge", options=made)
    assert systems(judge) == [
        ("a", "zero-context", 3, "imported"),
        ("a", "one document", 6, "imported"),
        ("a", "ranking (retrieve)", 3, "ranking"),
    ]


@pytest.mark.usefixtures("claims")
@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"condition": "zero", "text": "true"},
            "field 'condition': raguard has no condition 'zero'; available conditions: zero-context, top-K",
        ),
        (
            {"condition": "oracle", "text": "true"},
            "field 'document': each output under 'oracle'",
        ),
        ({"condition": "oracle", "text": "true", "document": "99"}, "passage '99'"),
    ],
)
def test_what_cannot_be_imported(judge: Judge, tmp_path: Path, row: dict[str, str], message: str) -> None:
    good = {"id": "1", "system": "a", "condition": "zero-context", "text": "true"}
    path = write_jsonl(tmp_path / "bad.jsonl", [good, {"id": "1", "system": "a", **row}])
    error = judge("systems", "import", path, code=1).err
    assert error.startswith(f"judge: {path}:2: ") and message in error
    assert systems(judge) == []


FIRST = {"id": "1", "condition": "oracle", "document": "1", "text": "true"}
"""A right verdict on the first document."""


@pytest.mark.usefixtures("claims")
def test_nothing_is_kept_of_a_file_with_another_output(judge: Judge, tmp_path: Path) -> None:
    """Answers and verdicts are one transaction: a second verdict that contradicts the first keeps the answers out, too."""
    outputs(judge, tmp_path, [FIRST], "--system", "a")
    rows = [{"id": "1", "condition": "zero-context", "text": "true"}, {**FIRST, "text": "false"}]
    path = write_jsonl(tmp_path / "more.jsonl", rows)
    message = judge("systems", "import", path, "--system", "a", code=1).err
    assert "the study has a different output from 'a' for 'raguard:1/1'" in message
    assert systems(judge) == [("a", "one document", 1, "imported")]


@pytest.mark.usefixtures("claims")
def test_two_outputs_for_one_item_need_a_column_of_systems(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("id,condition,text,who\n1,zero-context,true,a\n1,zero-context,false,b\n", "utf-8")
    assert "--system-column" in judge("systems", "import", path, "--system", "x", code=1).err
    judge("systems", "import", path, "--system-column", "who")
    assert [row[:2] for row in systems(judge)] == [("a", "zero-context"), ("b", "zero-context")]


@pytest.mark.usefixtures("questions")
def test_answers_of_a_run_with_other_settings_are_not_taken_for_imported_ones(judge: Judge) -> None:
    """The model's answers at temperature 1 are none that a suite at 0.5 asks for: it says so, and takes neither."""
    part = ("mirage", "--part", "adaptability", "-m", "scripted/hash")
    judge("suite", *part, "--temperature", "1")
    message = judge("suite", *part, "--temperature", "0.5", code=2).err
    assert "--temperature 1" in message
    assert score(judge, *part).value("accuracy_base") is not None


@pytest.mark.usefixtures("claims")
def test_what_a_model_was_allowed_to_add_counts_afterwards(judge: Judge, tmp_path: Path) -> None:
    """Verdicts on documents by permission: the score has them, without any option, and resumes them."""
    zero(judge, tmp_path, "mine")
    parts = ("raguard", "--system", "mine", "--part", "zero", "--part", "oracle")
    judge("suite", *parts, "-m", "scripted/first", "--also-generate")
    result = score(judge, *parts)
    assert result.document["lacking"] == []
    # The model says true on all six documents; claim 1, which has three of them, is true.
    assert (result.value("accuracy_oracle"), result.value("accuracy_zero")) == (0.5, pytest.approx(1 / 3))
    assert result.document["runs"][0]["model"] == "mine"
    with sqlite3.connect("study.db") as conn:
        conn.execute("DELETE FROM labels WHERE unit_id = 'raguard:1/1' AND annotator_id <> 'gold'")
        conn.execute("DELETE FROM judgements WHERE unit_id = 'raguard:1/1'")
    [line] = commands(judge, *parts)
    judge(*shlex.split(line)[1:])
    assert score(judge, *parts).value("accuracy_oracle") == 0.5
    assert len(score(judge, *parts).document["runs"]) == 1


@pytest.mark.usefixtures("questions")
def test_a_condition_that_was_imported_is_not_made_again(judge: Judge, tmp_path: Path) -> None:
    """Two outputs for one condition could not be scored: the model is not asked for the second one."""
    answers(judge, tmp_path, [("m0", "mine", "base", "m0")])
    words = shlex.split("answers generate mirage_answer -m scripted/hash --system mine --also-generate")
    message = judge(*words, "--context", "none", code=2).err
    assert "'mine' has imported answers for the condition 'base'" in message
    assert judge(*words, "--context", "oracle").code == 0


@pytest.mark.usefixtures("claims")
def test_a_suite_compares_several_systems(judge: Judge, tmp_path: Path) -> None:
    """An imported system beside the model: what the model lacks is made, and both stand on one leaderboard."""
    answers(judge, tmp_path, [(n, "mine", "zero-context", "false") for n in "123"])
    words = shlex.split("raguard -m scripted/first --system mine --system scripted/first --part zero")
    result = checked(judge("suite", *words, "--json").out, "board")
    [row] = [row for row in result["rows"] if row["measure"] == "accuracy_zero"]
    # Claim 1 is true, 2 and 3 are false; the model says true each time.
    assert [(c["contender"], c["shared"]["value"]) for c in row["cells"]] == [
        ("mine", pytest.approx(2 / 3)),
        ("scripted/first", pytest.approx(1 / 3)),
    ]
    same = judge("score", "raguard", "--system", "all", "--part", "zero", "--json").out
    assert checked(same, "board")["rows"] == result["rows"]
    every = judge("suite", *words[:3], "--system", "all", *words[-2:], "--json").out
    assert checked(every, "board")["rows"] == result["rows"]


@pytest.mark.usefixtures("questions")
def test_the_limits_of_a_suite_are_those_of_all_systems_together(judge: Judge, tmp_path: Path) -> None:
    """GaRAGe's eligibility of two systems: where the limit stops the first run, nothing is asked for the second."""
    rows = [(f"m{n}", name, "base", f"It is m{n}.") for name in ("a", "b") for n in range(3)]
    answers(judge, tmp_path, rows)
    words = shlex.split("suite garage -m scripted/hash --part deflection --system a --system b")
    assert judge(*words, "--max", "200tokens", code=None).code == 4
    assert column("SELECT count(*) FROM judgements")[0] < 6
    judge(*words)


@pytest.mark.usefixtures("questions")
def test_what_one_condition_gives_is_shown_and_the_rest_says_why_not(judge: Judge, tmp_path: Path) -> None:
    # m0 and m1 are right, m2 is not. Token F1 with the alias "mN": one of one, one of one, no token.
    answers(
        judge,
        tmp_path,
        [("m0", "mine", "base", "m0"), ("m1", "mine", "base", "m1"), ("m2", "mine", "base", "no")],
    )
    result = score(judge, "mirage", "--system", "mine", "--part", "adaptability")
    assert (result.value("accuracy_base"), result.value("token_f1_base")) == (pytest.approx(2 / 3),) * 2
    lacking = {"noise_vulnerability": "oracle and mixed", "total": "oracle and mixed"}
    for name, lack in (lacking | {"accuracy_oracle": "oracle", "token_f1_mixed": "mixed"}).items():
        assert result.value(name) is None
        assert f"no output under {lack}" in result[name]["reason"]
    # Beside a system with all conditions the one condition is compared, and nothing else is.
    rows = [(f"m{n}", "whole", c, f"m{n}") for n in range(3) for c in ("base", "oracle", "mixed")]
    answers(judge, tmp_path, rows)
    words = ("score", "mirage", "--system", "mine", "--system", "whole", "--part", "adaptability", "--json")
    board = checked(judge(*words).out, "board")
    shared = {row["measure"]: [c["shared"]["value"] for c in row["cells"]] for row in board["rows"]}
    assert shared.pop("accuracy_base") == [pytest.approx(2 / 3), 1.0]
    assert shared.pop("token_f1_base") == [pytest.approx(2 / 3), 1.0]
    assert set(map(tuple, shared.values())) == {(None, None)}
    on_own_rows = {row["measure"]: [c["own"]["value"] for c in row["cells"]] for row in board["rows"]}
    assert on_own_rows["context_acceptability"] == [None, 1.0]


@pytest.mark.usefixtures("questions")
def test_the_import_that_is_printed_names_the_study(judge: Judge, tmp_path: Path) -> None:
    """Typed as it is printed, with the file's name in place of FILE, it adds to the same study."""
    Path("study.db").rename("other.db")
    rows = [{"id": f"m{n}", "system": "mine", "condition": "base", "text": f"m{n}"} for n in range(3)]
    outputs(judge, tmp_path, rows, "-d", "other.db")
    file = write_jsonl(tmp_path / "rows.jsonl", [{"id": f"m{n}", "text": f"m{n}"} for n in range(3)])
    words = ("mirage", "--system", "mine", "--part", "adaptability", "-d", "other.db")
    for condition in ("oracle", "mixed"):
        [add] = [g["add"] for g in score(judge, *words).document["lacking"] if g["condition"] == condition]
        judge(*shlex.split(add.replace("FILE", str(file)))[1:])
    assert score(judge, *words).document["lacking"] == []
    message = judge("score", "mirage", "--system", "nobody", *words[3:], code=2).err
    assert "-d other.db" in message


def oracle_scores(judge: Judge, *words: str) -> tuple[float | None, list[str]]:
    """The accuracy on single documents, and the conditions that the system lacks."""
    result = score(judge, "raguard", "--system", "mine", "--part", "zero", "--part", "oracle", *words)
    value = result.value("accuracy_oracle") if "accuracy_oracle" in result.names else None
    return value, [gap["condition"] for gap in result.document["lacking"]]


@pytest.mark.usefixtures("claims")
@pytest.mark.parametrize("limit", [(), ("-n", "3")])
def test_a_run_called_as_the_system_becomes_its_own_only_by_permission(
    judge: Judge, tmp_path: Path, limit: tuple[str, ...]
) -> None:
    """`judge run --as mine`, whole or interrupted, then `--also-generate`: the suite and the score give the same."""
    zero(judge, tmp_path, "mine")
    judge("run", "verdict_document", "-m", "scripted/first", "--as", "mine", *limit)
    assert oracle_scores(judge) == (None, ["oracle"])
    suite = ("suite", "raguard", "--system", "mine", "--part", "zero", "--part", "oracle")
    judge(*suite, "-m", "scripted/first", "--also-generate", "--json")
    # The model says true on all six documents; claim 1, which has three of them, is true.
    assert oracle_scores(judge) == (0.5, [])


@pytest.mark.usefixtures("claims")
def test_verdicts_that_were_imported_are_not_made_as_well(judge: Judge, tmp_path: Path) -> None:
    """Of six documents mine has an output for one, which is right: five failures, also where a model may add outputs."""
    outputs(judge, tmp_path, [FIRST], "--system", "mine")
    zero(judge, tmp_path, "mine")
    assert oracle_scores(judge) == (pytest.approx(1 / 6), [])
    words = ("suite", "raguard", "--system", "mine", "--part", "zero", "--part", "oracle", "-m")
    result = json.loads(judge(*words, "scripted/first", "--also-generate", "--json").out)
    [oracle] = [m for m in result["measures"] if m["measure"] == "accuracy_oracle"]
    assert oracle["value"] == pytest.approx(1 / 6)
    assert column(N_RUNS) == [1]


@pytest.mark.usefixtures("claims")
def test_verdicts_may_come_in_several_files(judge: Judge, tmp_path: Path) -> None:
    """Three right verdicts in each of two files are six right ones."""
    rows = [
        {"id": d[0], "condition": "oracle", "document": d[2:], "text": text}
        for d, text in zip(DOCUMENTS, GOLD.values(), strict=True)
    ]
    for half in (rows[:3], rows[3:]):
        outputs(judge, tmp_path, half, "--system", "mine")
    assert oracle_scores(judge)[0] == 1.0
    assert [row for row in systems(judge) if row[1] == "one document"] == [
        ("mine", "one document", 6, "imported")
    ]


@pytest.mark.usefixtures("claims")
def test_a_ranking_that_is_called_as_no_system_is_named(judge: Judge, tmp_path: Path) -> None:
    """The tag of a TREC run has no spaces, so `my_rag` is not 'my rag': the import says so, and the score what it took."""
    answers(judge, tmp_path, [(n, "my rag", "top-1", "true") for n in "123"])
    path = tmp_path / "x.run"
    path.write_text("".join(f"{n} Q0 {d} 1 1 my_rag\n" for n, d in zip("123", "246", strict=True)), "utf-8")
    message = judge("systems", "import", "--stage", "retrieve", path).err
    assert "ranking (there is no system called 'my_rag'" in message
    words = ("raguard", "--system", "my rag", "--part", "retrieval", "--k", "1")
    taken = "there is no ranking with the name 'my rag', so the ranking 'my_rag' (retrieve) is used"
    assert taken in score(judge, *words).document["notes"]
    judge("systems", "import", "--stage", "retrieve", path, "--system", "my rag")
    assert taken not in score(judge, *words).document["notes"]


@pytest.mark.usefixtures("claims")
def test_verdicts_imported_under_an_older_task_are_known(judge: Judge, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "outputs.jsonl", [FIRST])
    judge("systems", "import", path, "--system", "mine")
    with sqlite3.connect("study.db") as conn:
        # As an earlier version left it: the same task with a smaller number.
        conn.execute("PRAGMA foreign_keys = OFF")
        conn.execute("UPDATE runs SET task = 'verdict_document.v1'")
        conn.execute("UPDATE tasks SET task = 'verdict_document.v1', version = 1")
    done = judge("systems", "import", path, "--system", "mine", "--json")
    [again] = checked(done.out, "systems_import")["rows"]
    assert (again["verdicts"], again["unchanged"]) == (0, 1)
    write_jsonl(path, [{**FIRST, "text": "false"}])
    message = judge("systems", "import", path, "--system", "mine", code=1).err
    assert "the study has a different output from 'mine'" in message
