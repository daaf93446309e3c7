"""Three systems from files: the same protocols by Python and by the commands, with numbers worked out by hand.

The files are `data/examples/systems`. In RAGuard four claims (true, false, true, false) have two documents each; 2, 6 and 7
mislead, 4 is irrelevant. `steady` and `swayed` have every condition and a ranking of their own, `brief` answers without
documents only.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import pandas as pd
import pytest
from click.testing import CliRunner

from adjudge import AdjudgeError, Study
from adjudge.options import ImproveArguments, RunArguments, SuiteArguments
from adjudge.terms import Calls, translate
from annotate.cli import main as annotate
from judge.asking.scores import ScoreArguments
from judge.asking.suite import ASKING
from judge.cli.run import run as run_command
from judge.cli.score import score as score_command
from judge.cli.suite import suite as suite_command
from judge.commands import command, use_writer
from judge.errors import BadInput, UsageError
from judge.papers.engine.papers import PAPERS
from judge.run_options import WRITTEN, RunOptions
from judge.store import Store
from tests.cli.helpers import Judge
from tests.real import ROOT

EXAMPLES = ROOT / "data" / "examples" / "systems"
FILES = {
    "raguard": ("claims.csv", "documents.csv"),
    "mirage": ("dataset.json", "doc_pool.json", "oracle.json"),
    "urag": ("questions.json",),
}
EXPECTED: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "raguard": {
        # Without documents three of four; with its own first document all four; one at a time 7 of 8, where it follows
        # document 7; of the misleading 2, 6 and 7 two are resisted.
        "steady": {
            "accuracy_zero": 3 / 4,
            "accuracy_rag_1": 1,
            "accuracy_oracle": 7 / 8,
            "accuracy_misleading": 2 / 3,
            "drop_rag_1": 1 / 4,
            "misleading_retrieval_recall@1[own/owning]": 0,
        },
        # It follows each of its first documents 2, 4, 6 and 7, of which 4 is irrelevant and the answer right.
        "swayed": {
            "accuracy_zero": 3 / 4,
            "accuracy_rag_1": 1 / 4,
            "accuracy_oracle": 5 / 8,
            "accuracy_misleading": 0,
            "drop_rag_1": -1 / 2,
            "misleading_retrieval_recall@1[own/owning]": 1,
        },
        "brief": {"accuracy_zero": 1 / 2},
    },
    "mirage": {
        # Base right on q1, oracle on all, mixed on q1, q2 and q3.
        "steady": {"noise_vulnerability": 1 / 4, "context_acceptability": 3 / 4, "context_insensitivity": 0,
                   "context_misinterpretation": 0},
        # Base q1 and q2, oracle q2 and q3, mixed q2: one question in each cell.
        "swayed": {"noise_vulnerability": 1 / 4, "context_acceptability": 1 / 4, "context_insensitivity": 1 / 4,
                   "context_misinterpretation": 1 / 4},
        # Right on q3 alone; "1974." with its full stop is another token than the alias.
        "brief": {"accuracy_base": 1 / 4, "token_f1_base": 0.0},
    },
    "urag": {
        # All nine calibration scores of LAC are 1 - 0.9, and the ninth smallest is the threshold: a set has what has 0.9
        # or more, one option for each test question. For APS 0.95 exceeds 0.9, so the sets are empty.
        "steady": {"accuracy": 1, "coverage_lac": 1, "set_size_lac": 1, "set_size_aps": 0, "accuracy_without": 1 / 2},
        "swayed": {"accuracy": 1 / 4, "coverage_lac": 1 / 4, "set_size_lac": 1, "set_size_aps": 0,
                   "accuracy_without": 3 / 4},
        # Right on t1 alone. LAC sets have the top option (covering 1/4), APS sets are empty at the threshold of 0.9.
        "brief": {"accuracy_without": 1 / 4, "set_size_without": 1 / 2, "coverage_without": 1 / 8},
    },
}  # fmt: skip
OPTIONS: Mapping[str, dict[str, Any]] = {"raguard": {"readings": {"k": "1"}}, "mirage": {}, "urag": {}}


def paths(paper: str) -> list[Path]:
    return [EXAMPLES / paper / name for name in FILES[paper]]


def by_python(paper: str, db: Path) -> Study:
    """The study, with the outputs out of memory as a notebook has them."""
    study = Study(db)
    study.items(paths(paper), format=paper)
    rows = [json.loads(line) for line in (EXAMPLES / paper / "outputs.jsonl").read_text("utf-8").splitlines()]
    study.answers(rows)
    for path in sorted((EXAMPLES / paper).glob("*.run")):
        study.rankings(path, stage="retrieve")
    return study


def by_command(paper: str, db: Path, judge: Judge) -> None:
    judge("items", "import", paper, *paths(paper), "-d", db)
    judge("systems", "import", EXAMPLES / paper / "outputs.jsonl", "-d", db)
    if runs := sorted((EXAMPLES / paper).glob("*.run")):
        judge("systems", "import", *runs, "--stage", "retrieve", "-d", db)


def values(table: pd.DataFrame, system: str) -> dict[str, float]:
    rows = table[table["system"] == system]
    return dict(zip(rows["measure"], rows["value"], strict=True))


@pytest.mark.parametrize("paper", [*FILES])
def test_three_systems_have_the_same_numbers_by_python_and_by_command(
    paper: str, judge: Judge, tmp_path: Path
) -> None:
    study = by_python(paper, tmp_path / "python.db")
    table = study.scores(paper, systems="all", interval=None, **OPTIONS[paper])  # type: ignore[arg-type]
    by_command(paper, tmp_path / "command.db", judge)
    readings = ("--k", "1") if paper == "raguard" else ()
    words = ("--interval", "none", "-d", tmp_path / "command.db", "--json")
    for system, expected in EXPECTED[paper].items():
        ours = values(table, system)
        assert {name: ours[name] for name in expected} == pytest.approx(expected), system
        shown = json.loads(judge("score", paper, "--system", system, *readings, *words).out)
        theirs = {m["measure"]: m["value"] for m in shown["measures"]}
        assert {name: None if pd.isna(v) else v for name, v in ours.items()} == theirs
        assert shown["system"] == system and shown["runs"] == [
            r for r in shown["runs"] if r["model"] == system
        ]
    assert {gap["system"] for gap in table.attrs["lacking"]} == {"brief"}
    board = study.board(paper, interval=None, **OPTIONS[paper])
    shown = json.loads(judge("score", paper, "--system", "all", *readings, *words).out)
    # The runs have ids of their own in each study, and the commands that add what is lacking name it.
    apart = ("schema", "runs", "notes", "lacking")
    ours, theirs = (
        [(gap["system"], gap["condition"]) for gap in d["lacking"]] for d in (board.document, shown)
    )
    assert ours == theirs
    assert {k: v for k, v in board.document.items() if k not in apart} == {
        k: v for k, v in shown.items() if k not in apart
    }
    assert {row["own_value"] for row in board.rows if row["contender"] == "brief"} <= {
        None,
        *EXPECTED[paper]["brief"].values(),
    }


def test_systems_of_a_frame_are_listed(tmp_path: Path) -> None:
    study = by_python("raguard", tmp_path / "x.db")
    systems = study.systems()
    listed = [(r.system, r.condition, r.outputs) for r in systems.itertuples()]
    assert listed[:4] == [("steady", "zero-context", 4), ("steady", "top-1", 4), ("steady", "one document", 8),
                        ("steady", "ranking (retrieve)", 4)]  # fmt: skip
    assert listed[-1] == ("brief", "zero-context", 4)
    frame = pd.DataFrame(
        {"id": [1, 2], "who": "fourth", "said": ["true", "false"], "condition": "zero-context"}
    )
    done = study.answers(frame, maps={"system": "who", "text": "said"})
    assert "2 new outputs" in done.title
    assert any(
        text.startswith("'fourth' lacks top-1 or top-5, oracle, ranking for raguard") for text in done.notes
    )
    with pytest.raises(
        BadInput,
        match="DataFrame:1: field 'condition': raguard has no condition 'zero'; available conditions: zero-context",
    ):
        study.answers(frame.assign(condition="zero"), maps={"system": "who", "text": "said"})
    assert len(study.systems()) == len(systems) + 1


def test_cells_that_pandas_read_as_true_or_numbers_are_outputs(tmp_path: Path) -> None:
    """`read_csv` makes true/false of a column of verdicts, and numbers of a column of years and of documents."""
    study = Study(tmp_path / "x.db")
    study.items(paths("raguard"), format="raguard")
    file = tmp_path / "outputs.csv"
    file.write_text("id,system,condition,document,text\n1,a,zero-context,,True\n2,a,zero-context,,False\n"
                    "1,a,oracle,2,False\n", "utf-8")  # fmt: skip
    study.answers(pd.read_csv(file))
    scores = study.scores("raguard", system="a", parts=["zero", "oracle"], interval=None)
    # Claims 1 and 2 of four are right, the others have no answer; document 2 of eight has one, which is wrong.
    assert values(scores, "a")["accuracy_zero"] == 1 / 2
    assert values(scores, "a")["accuracy_oracle"] == 0
    years = study.answers([{"id": "3", "system": "b", "condition": "zero-context", "text": 1974}])
    assert "1 new outputs" in years.title


def test_arguments_that_fit_no_score_are_refused_as_on_the_command_line(tmp_path: Path) -> None:
    study = by_python("raguard", tmp_path / "x.db")
    some: dict[str, Any] = {"system": "steady", "parts": ["rag"], "interval": None}
    # A number in place of its text: k=1 is what the systems were given.
    assert values(study.scores("raguard", readings={"k": 1}, **some), "steady")["accuracy_rag_1"] == 1
    with pytest.raises(UsageError, match=r"condition= .*raguard.*: zero-context, top-K"):
        study.scores("raguard", condition="zero", **some)
    lacking = study.scores("raguard", system="brief", parts=["oracle", "zero"], interval=None).attrs[
        "lacking"
    ]
    assert [gap["add"] for gap in lacking] == ["study.answers('FILE', system='brief', condition='oracle')"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([["1", "true", "false"]], columns=["id", "text", "text"]), "DataFrame: field 'text': two columns have this name"),
        (pd.DataFrame([["1", "true"]], columns=pd.MultiIndex.from_tuples([("a", "id"), ("a", "text")])),
         r"DataFrame: the name of column 1 is not a string: \('a', 'id'\)"),
        (pd.DataFrame({"id": ["1"], "text": ["true"]}).set_index("id"), r"'id' is the frame's index, .*reset_index"),
    ],
)  # fmt: skip
def test_a_frame_whose_columns_cannot_be_told_apart(
    tmp_path: Path, frame: pd.DataFrame, message: str
) -> None:
    study = by_python("raguard", tmp_path / "x.db")
    before = study.systems()
    with pytest.raises(AdjudgeError, match=message):
        study.answers(frame, system="new", condition="zero-context")
    assert study.systems().equals(before)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("all", "'all' is reserved"),
        (" mine", "' mine' must not start or end with spaces"),
        ("a\nb", r"'a\\nb' must not .* a line break"),
    ],
)
def test_names_that_no_system_can_have(tmp_path: Path, name: str, message: str) -> None:
    """`--system all` and systems="all" are every system, and a name in a line of a table is one line."""
    study = by_python("raguard", tmp_path / "x.db")
    with pytest.raises(AdjudgeError, match=message):
        study.answers([{"id": "1", "text": "true"}], system=name, condition="zero-context")


def test_a_suite_has_the_judge_label_for_every_system(tmp_path: Path) -> None:
    study = by_python("raguard", tmp_path / "x.db")
    scores = study.suite("raguard", model="scripted/hash", systems=["steady", "swayed"], progress=False)  # fmt: skip
    for system in ("steady", "swayed"):
        expected = EXPECTED["raguard"][system]
        assert {name: values(scores, system)[name] for name in expected} == pytest.approx(expected)
    # The judge labelled documents, and answered for nobody.
    assert {run["task"] for run in scores.attrs["runs"] if run["model"] == "scripted/hash"} == {
        "raguard_exam.v2"
    }
    assert set(study.systems()["system"]) == {"steady", "swayed", "brief"}
    with pytest.raises(UsageError, match="suite has no option 'sytem'; available: "):
        study.suite("raguard", model="scripted/hash", sytem="x")  # type: ignore[call-arg]


def test_a_suite_that_stops_says_so(tmp_path: Path) -> None:
    study = by_python("raguard", tmp_path / "x.db")
    with pytest.raises(AdjudgeError, match=r"stopped: .*repeat the same call"):
        study.suite("raguard", model="scripted/hash", system="steady", progress=False, max="400tokens")


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            {"system": ["a", "b"]},
            r"system=\['a', 'b'\]: must be one name; for several systems, use systems=\['a', 'b'\]",
        ),
        (
            {"system": "all"},
            "system='all': must be one name; for every system in the study, use systems='all'",
        ),
        ({"systems": "a"}, r"systems='a': must be a list of names, e.g. systems=\['a'\], or 'all'"),
        ({"system": "a", "systems": ["b"]}, "system= names one system and systems= names several"),
        ({"system": "nobody"}, "the study has no system 'nobody'; available: brief, steady, swayed"),
        (
            {"system": "steady", "parts": "zero"},
            r"parts='zero': must be a list of names, e.g. parts=\['zero'\]",
        ),
    ],
)
def test_what_names_no_system_is_an_error(tmp_path: Path, named: Any, message: str) -> None:
    study = by_python("raguard", tmp_path / "x.db")
    with pytest.raises(AdjudgeError, match=message):
        study.scores("raguard", **named)


def test_a_batch_is_drawn_as_by_the_command(tmp_path: Path) -> None:
    study = by_python("raguard", tmp_path / "x.db")
    done = study.draw("pilot", "raguard_exam", annotators=["ann", "bob"], n=4, seed=3)
    words = ["--annotators", "ann,bob", "-n", "4", "--seed", "3", "-d", str(tmp_path / "x.db"), "--json"]
    shown = json.loads(
        CliRunner().invoke(annotate, ["batches", "new", "again", "raguard_exam", *words]).stdout
    )
    # The second batch is drawn of what the first one left.
    assert {k for k, v in done.document.items() if shown[k] != v} == {"batch", "frame", "strata"}
    assert (done.document["units"], done.document["frame"]) == (4, 8)
    with pytest.raises(UsageError, match=r"overlap=3: the batch has only 2 annotators"):
        study.draw("third", "raguard_exam", annotators=["ann", "bob"], n=4, overlap=3)
    with pytest.raises(UsageError, match=r"annotators='ann': must be a list of names"):
        study.draw("third", "raguard_exam", annotators="ann", n=4)


def test_messages_have_pythons_terms() -> None:
    for text, python in (
        ("choose with --system and --condition; available: a", "choose with system= and condition=; available: a"),
        ("several judges: --run several times", "several judges: runs= several times"),
        ("--mixed must be fixed5 or retrieved:K", "readings['mixed'] must be fixed5 or retrieved:K"),
        ("try --k 1,5", "try readings['k']=1,5"),
        ("--by requires --reference", "by= requires reference="),
        ("--k must be a list of positive whole numbers, not 'x'", "readings['k'] must be a list of positive whole numbers, not 'x'"),
        ("left out (--run JUDGE, or --part exam)", "left out (runs=JUDGE, or parts= exam)"),
        ("--where 'nonsense = 1': no such column", "where='nonsense = 1': no such column"),
        ("if another column has the condition, pass --map condition=COLUMN", "if another column has the condition, pass maps={'condition': 'COLUMN'}"),
        ("--map-label grade:2=high says what it is", "label_maps={'grade': {'2': 'high'}} says what it is"),
        ("--option n_ctx=8192", "settings={'n_ctx': '8192'}"),
        # What no method has is said as the command line has it.
        ("--worker-socket PATH", "--worker-socket PATH"),
        ("a well-known co-operation of n-grams", "a well-known co-operation of n-grams"),
    ):  # fmt: skip
        assert translate(text) == python


def test_commands_are_calls_where_a_method_does_the_same() -> None:
    calls = Calls()
    with use_writer(calls):
        for words, python in (
            (("judge systems import FILE", "--system", "a b", "--condition", "base"),
             "study.answers('FILE', system='a b', condition='base')"),
            (("judge systems import RUN.trec", "--system", "a", "--stage", "retrieve"),
             "study.rankings('RUN.trec', system='a', stage='retrieve')"),
            (("judge systems import FILE --map id=sample_id --map text=x", "--dataset", "d"),
             "study.answers('FILE', maps={'id': 'sample_id', 'text': 'x'}, dataset='d')"),
            # A command that no method has stays one that can be typed.
            (("judge rankings attach", "--name", "a", "--system", "s"), "judge rankings attach --name a --system s -d x.db"),
        ):  # fmt: skip
            written = command(*words, study="x.db")
            assert (
                calls.translate(f"--system NAME: {written}, or --batch")
                == f"system=NAME: {python}, or batch="
            )


def test_the_arguments_are_those_of_the_commands() -> None:
    """The typed dictionaries against the table and the options that click has."""
    left_out = {"recipe", "limit", "where", "units_of", "sample", "examples", "relevant"}
    assert set(get_type_hints(RunArguments)) == set(WRITTEN)
    assert set(get_type_hints(ImproveArguments)) == set(WRITTEN) - left_out
    # Batches take a day: `judge run --batch` and `judge jobs` are for that. A task is named by its path there.
    others = {"task_name", "model", "is_estimate", "db", "as_json", "batch", "offline"}
    assert {p.name for p in run_command.params} - others == set(WRITTEN) - {"prompts"}
    defaults = run_command.make_context("run", ["stance", "-m", "scripted/hash"]).params
    for name in set(WRITTEN) - {"prompts"}:
        assert (defaults[name] or None) == (getattr(RunOptions(), name) or None), name
    shared = {"db", "as_json", "systems", "output", "on", "fail_under", "fail_over", "paper_name", "model"}
    garage = score_command.commands["garage"]
    readings = {o.name.replace("-", "_") for o in PAPERS["garage"].options}
    # Tables of several data sets are files for people.
    options = {p.name for p in garage.params} - shared - readings - {"table", "datasets"}
    assert set(get_type_hints(ScoreArguments)) == options | {"readings", "dataset"}
    assert set(get_type_hints(SuiteArguments)) == {p.name for p in suite_command.params} - shared - {
        "is_estimate"
    }
    assert set(ASKING) <= set(get_type_hints(SuiteArguments))


def test_no_interval_may_be_said_as_on_the_command_line(tmp_path: Path) -> None:
    from judge.asking.scores import prepare

    with Store.open(tmp_path / "x.db") as store:
        assert prepare(store, "mirage", interval="none").how["interval"] is None
