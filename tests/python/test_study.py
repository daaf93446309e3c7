"""`adjudge.Study`: a DataFrame in, labels and numbers out, by the functions of the commands."""

import asyncio
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adjudge
from adjudge import Study
from judge.errors import BadInput, KeyProblem, StudyError, UsageError
from tests.annotate import agreement_helpers
from tests.cli.helpers import Judge
from tests.loopback.process import ServerProcess
from tests.real import ROOT

PAIRS = ROOT / "data" / "examples" / "pairs.jsonl"
FRAME = pd.DataFrame(
    {
        "id": [1, 2, 3],
        "claim": ["The Moon orbits Earth.", "The Sun orbits Earth.", "Mars has moons."],
        "passages.text": ["The Moon does.", "Earth orbits the Sun.", "Two of them."],
        "passages.gold.stance": ["support", "refute", None],
        "tag": ["a", None, "b"],
    }
)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path / "x.db")


def test_a_frame_is_imported_as_its_csv_would_be(tmp_path: Path, judge: Judge) -> None:
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    judge("items", "import", "csv", "data.csv", "-d", "csv.db")
    study = Study(tmp_path / "frame.db")
    done = study.items(FRAME)
    [counted] = done.document["rows"]
    assert (counted["files"], counted["datasets"]) == (["DataFrame"], ["data"])
    assert [counted[name] for name in ("items", "passages", "answers", "labels")] == [3, 3, 0, 2]
    assert any("stance" in text for text in done.notes), "what can be done with it"
    columns = ["unit_id", "field", "annotator", "annotator_kind", "value"]
    ours, theirs = (s.labels()[columns] for s in (study, Study(tmp_path / "csv.db")))
    pd.testing.assert_frame_equal(ours, theirs)
    assert ours["value"].tolist() == ["support", "refute"]
    assert study.items(FRAME).document["rows"][0]["items"] == 0, "again: nothing is new"
    # The command's words for a name that nobody labelled, wherever one is asked for.
    for ask in (study.labels, study.agreement, study.report):
        with pytest.raises(UsageError, match="nobody labelled 'stanze'; fields with labels: stance"):
            ask(field="stanze")
    with pytest.raises(UsageError, match="must be a list of run ids"):
        study.compare("stance", ["last", None])  # type: ignore[list-item]
    for epsilon in ("pro", 9, None):
        with pytest.raises(UsageError, match="must be one of expert, skilled, crowd"):
            study.report(field="stance", epsilon=epsilon)  # type: ignore[arg-type]


def test_rows_mappings_and_files_are_items_too(study: Study, judge: Judge) -> None:
    study.items(
        [{"id": "r", "claim": "c", "passages": ["one", {"text": "two", "gold": {"stance": "refute"}}]}]
    )
    study.items({"id": ["m"], "question": ["q"], "passages.text": ["t"]})
    study.items(PAIRS)
    shown = json.loads(judge("items", "show", "-d", "x.db", "--json").out)
    assert [row["item_id"] for row in shown["rows"]] == ["data:r", "data:m", "pairs:1", "pairs:2"]


def test_numbers_of_a_frame_stay_what_they_were(study: Study) -> None:
    # pandas makes floats of whole numbers where one is missing: 0, 1, missing -> 0.0, 1.0, nan. The labels are "0" and "1".
    frame = pd.DataFrame(
        {"id": np.arange(3), "question": "q", "passages.text": ["a", "b", "c"], "passages.gold.grade": [0, 1, None],
         "when": pd.to_datetime(["2024-05-01", None, "2024-05-03"])}
    )  # fmt: skip
    study.items(frame)
    assert study.labels("grade")["value"].tolist() == ["0", "1"]


def test_a_frame_of_another_tool_needs_no_maps(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "user_input": ["q", "p"],
            "retrieved_contexts": [["a", "b"], ["c"]],
            "response": ["r", "s"],
            "faith": [0.5, None],
        }
    )
    study = Study(tmp_path / "frame.db")
    done = study.items(frame, system="mine", scores={"faith": "ragas"})
    counted = {"items": 2, "passages": 3, "answers": 2, "labels": 1}
    assert counted.items() <= done.document["rows"][0].items()
    assert done.document["rows"][0]["datasets"] == ["rag"], "as a file of the same rows has"
    assert any("question = user_input" in text for text in done.notes)
    again = study.items(frame.iloc[:1], system="other").document["rows"][0]
    assert (again["items"], again["passages"], again["answers"]) == (0, 0, 1)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.drop(columns="id"), "DataFrame: field 'id': "),
        (FRAME.assign(id=["1", None, "3"]), "DataFrame:2: field 'id': missing"),
        (FRAME.assign(claim=["a", 5, "c"]), "DataFrame:2: field 'claim': must be text, not a number"),
        (FRAME.rename(columns={"tag": "claim"}), "DataFrame: field 'claim': two columns have this name"),
        (FRAME.rename(columns={"tag": 7}), "the name of column 5 is not a string: 7"),
        (FRAME.assign(tag=pd.Series(["\ud800"] * 3, dtype=object)), "lone surrogate"),
        (FRAME.iloc[:0], "there are no rows"),
    ],
)
def test_a_bad_frame_is_named_and_nothing_is_kept(study: Study, frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        study.items(frame)
    assert study.labels().empty
    with pytest.raises(UsageError, match="no unit has the inputs of"):
        study.run("stance", model="scripted/hash", progress=False)


def test_a_bad_row_is_left_out_when_that_is_asked(study: Study) -> None:
    done = study.items(FRAME.assign(id=["1", None, "3"]), skip_bad=True)
    assert done.document["skipped"] == ["DataFrame:2: field 'id': missing"]
    assert "skipped: DataFrame:2: field 'id': missing" in done.notes


@pytest.mark.parametrize("data", [7, "nowhere.csv", {"id": "1", "claim": "c"}, {"id": [1], "claim": []}, [3]])
def test_what_is_no_data_is_refused(study: Study, data: Any) -> None:
    with pytest.raises(UsageError):
        study.items(data)


def test_maps_are_those_of_the_command(study: Study) -> None:
    renamed = FRAME.rename(columns={"claim": "statement"}).replace({"support": "yes", "refute": "no"})
    labels = {"stance": {"yes": "support", "no": "refute"}}
    with pytest.raises(
        UsageError,
        match=r"maps=\{'claim': 'nothing'\}: no row has 'nothing'; the keys of the first row are: id, statement",
    ):
        study.items(renamed, maps={"claim": "nothing"})
    study.items(renamed, maps={"claim": "statement"}, label_maps=labels)
    assert study.labels()["value"].tolist() == ["support", "refute"]


def test_columns_of_other_names_are_offered_as_maps(study: Study) -> None:
    frame = FRAME.rename(columns={"id": "qid", "claim": "statement", "passages.text": "evidence"})
    with pytest.raises(BadInput, match="no id, question") as wrong:
        study.items(frame)
    maps = eval(str(wrong.value).rpartition("; try: maps=")[2])
    assert maps == {"id": "qid", "claim": "statement", "passages.text": "evidence"}
    study.items(frame, maps=maps)
    assert len(study.labels()) == 2
    # As the command: a retriever's score is nobody's label, and labels in other words get theirs.
    frame = frame.drop(columns="passages.gold.stance").assign(
        score=[91, 60, -math.inf], my_label=["SUPPORT", "refute", None]
    )
    with pytest.raises(BadInput) as wrong:
        study.items(frame, dataset="more")
    offered = eval(f"dict({str(wrong.value).rpartition('; try: ')[2]})")
    assert offered == {
        "maps": {**maps, "passages.gold.stance": "my_label"},
        "label_maps": {"stance": {"SUPPORT": "support"}},
    }
    study.items(frame, dataset="more", **offered)
    assert study.labels("stance")["value"].tolist() == ["support", "refute"] * 2


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (FRAME.set_index("id"), {}, "'id' is the frame's index, not a column: pass frame.reset_index()"),
        (FRAME, {"maps": ["claim=tag"]}, "maps must map our fields to your columns"),
        (FRAME, {"label_maps": {"stance": "yes"}}, "label_maps must map a label field to {old: new}"),
        (FRAME, {"format": "csv"}, "format= can be used only with files"),
    ],
)
def test_what_is_no_map_and_no_column_is_said(study: Study, data: Any, options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        study.items(data, **options)


def test_run_is_judge_run(study: Study, judge: Judge) -> None:
    study.items(FRAME)
    done = study.run("stance", model="scripted/hash", progress=False)
    again = json.loads(judge("run", "stance", "-m", "scripted/hash", "-d", "x.db", "--json").out)
    # The command finds this very run, with nothing left to do.
    assert again["run"] == done.run_id == done.document["run"]
    assert (again["already_judged"], again["labelled"], done.document["labelled"]) == (3, 3, 3)
    assert set(again) - {"schema"} == set(done.document)
    judged = study.judgements(done.run_id)
    assert judged["status"].tolist() == ["ok"] * 3
    mine = study.labels("stance").query("annotator_kind == 'judge'")
    assert mine["value"].tolist() == judged["label.stance"].tolist()
    assert set(mine["model"]) == {"scripted/hash"}


def test_units_without_a_label_are_counted_and_told(study: Study) -> None:
    study.items(FRAME)
    done = study.run("stance", model="scripted/garbage", progress=False)
    assert (done.document["labelled"], done.document["unparsed"]) == (0, 3)
    judged = study.judgements("last")
    assert judged["label.stance"].isna().all() and judged["reason"].notna().all()


def test_run_inside_a_running_loop(study: Study) -> None:
    study.items(FRAME)
    seen: list[str] = []

    class Watch:
        def __call__(self, live: Any) -> None:
            seen.append(threading.current_thread().name)

        def end(self) -> None:
            seen.append("end")

    async def notebook() -> adjudge.Outcome:
        return study.run("stance", model="scripted/hash", progress=Watch())

    assert asyncio.run(notebook()).document["labelled"] == 3
    assert seen[0] == "adjudge", "a thread of its own"
    assert seen[-1] == "end"


@pytest.mark.parametrize("time", [1, 2, 4])
def test_what_a_progress_raises_ends_the_run_in_order(study: Study, time: int) -> None:
    study.items([{"id": str(n), "claim": f"c{n}", "passages": [f"p{n}"]} for n in range(8)])
    calls: list[Any] = []

    def progress(live: Any) -> None:
        calls.append(live)
        if len(calls) == time:
            raise LookupError("mine")

    with ServerProcess("openai", "--logprobs", "none", "--delay", "0.05") as server:
        model = {"model": "openai/m", "base_url": server.url, "concurrency": 1}
        with pytest.raises(LookupError, match="mine"):
            study.run("stance", progress=progress, **model)
        kept = len(study.judgements())
        assert len(calls) == time and kept < 8
        rest = study.run("stance", progress=False, **model)
    assert (rest.document["labelled"], rest.document["already_judged"]) == (8, kept)


def test_the_stop_button_ends_a_run_in_order(study: Study) -> None:
    study.items([{"id": str(n), "claim": f"c{n}", "passages": [f"p{n}"]} for n in range(20)])

    class Stopper:
        """Presses it when the first labels are in the study: 20 units one by one have then hardly begun."""

        pressed = False

        def __call__(self, live: Any) -> None:
            if live.report.done and not self.pressed:
                self.pressed = True
                os.kill(os.getpid(), signal.SIGINT)

        def end(self) -> None: ...

    async def notebook(**model: Any) -> None:
        study.run("stance", concurrency=1, progress=Stopper(), **model)

    with ServerProcess("openai", "--logprobs", "none", "--delay", "0.1") as server:
        model = {"model": "openai/m", "base_url": server.url}
        # A kernel's loop, unlike asyncio.run, leaves Ctrl-C to whatever runs in it.
        loop = asyncio.new_event_loop()
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(notebook(**model))
        loop.close()
        kept = len(study.judgements("last"))
        assert 0 < kept < 20
        for thread in threading.enumerate():
            if thread.name == "adjudge":
                thread.join()
        assert len(study.judgements("last")) == kept, "it had ended"
        rest = study.run("stance", progress=False, **model)
    assert (rest.document["labelled"], rest.document["already_judged"]) == (20, kept)


def test_what_ended_a_run_is_raised(study: Study) -> None:
    study.items(FRAME)
    with pytest.raises(KeyProblem, match="OPENAI_API_KEY"):
        study.run("stance", model="openai/gpt-5-mini", progress=False)

    async def notebook() -> None:
        study.run("stance", model="openai/gpt-5-mini", progress=False)

    with pytest.raises(KeyProblem):
        asyncio.run(notebook())


def test_a_limit_ends_a_run_and_the_same_call_goes_on(study: Study) -> None:
    study.items([{"id": str(n), "claim": f"c{n}", "passages": [f"p{n}"]} for n in range(20)])
    with ServerProcess("openai", "--logprobs", "none") as server:
        model = {"model": "openai/m", "base_url": server.url, "progress": False}
        first = study.run("stance", max="3000tokens", max_output_tokens=16, concurrency=1, **model)
        assert 0 < first.document["labelled"] < 20
        assert any("repeat the same call" in text for text in first.notes)
        rest = study.run("stance", **model)
    assert (rest.run_id, rest.document["labelled"]) == (first.run_id, 20)
    assert rest.document["already_judged"] == first.document["labelled"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": 3}, "no option 'limits'; available: limit, where"),
        ({"limit": 0}, "limit=0: 0 is not in the range x>=1"),
        ({"answers": "maybe"}, "answers='maybe': 'maybe' is not one of"),
        ({"max": "soon"}, "max='soon': max= soon: must"),
        ({"retry": ["ok"]}, "retry="),
        ({"temperature": -1}, "temperature=-1"),
        ({"progress": "yes"}, "progress='yes': must be True, False"),
    ],
)
def test_an_option_is_checked_as_the_command_checks_it(
    study: Study, options: dict[str, Any], message: str
) -> None:
    study.items(FRAME)
    with pytest.raises(UsageError, match=re.escape(message)):
        study.run("stance", **{"model": "scripted/hash", "progress": False, **options})


def test_agreement_is_what_the_command_prints(study: Study, tmp_path: Path) -> None:
    study.items([
        {"id": str(n), "claim": f"c{n}", "passages": [
            {"text": f"p{n}", "gold": {"stance": label}, "votes": {"stance": {"ann": label, "bob": "neutral"}}}
        ]}
        for n, label in enumerate(["support", "refute", "neutral", "support"])
    ])  # fmt: skip
    study.run("stance", model="scripted/first", progress=False)
    table = study.agreement(field="stance", interval=None)
    words = ("agreement", "--field", "stance", "--interval", "none", "-d", tmp_path / "x.db", "--json")
    shown = json.loads(agreement_helpers.annotate(*words).stdout)["measures"]
    assert table["value"].isna().tolist() == [m["value"] is None for m in shown]
    expected = [(m["measure"], m["n_units"], m["n_clusters"], m["coverage"]) for m in shown]
    assert (
        list(table[["measure", "n_units", "n_clusters", "coverage"]].itertuples(index=False, name=None))
        == expected
    )
    # The judge says support to all four; gold says so of two: 2 of 4 agree, and kappa is 0 or undefined, never a made-up number.
    gold = table[[("gold" in who and len(who) == 2 and "scripted" in who[0]) for who in table["annotators"]]]
    assert gold.set_index("measure")["value"]["percent"] == 0.5
    undefined = table[table["value"].isna()]
    assert undefined["reason"].notna().all()
    assert str(table["n_units"].dtype) == "Int64"
    with pytest.raises(UsageError, match=r"available: .*cohen_kappa"):
        study.agreement(measures=["kappa"])


def test_scores_are_those_of_the_command(tmp_path: Path, judge: Judge) -> None:
    data = ROOT / "data" / "examples"
    judge("items", "import", "jsonl", data / "rag.jsonl", "-d", "g.db")
    judge("systems", "import", data / "answers.jsonl", "-d", "g.db")
    common = ("--dataset", "rag", "--system", "model-a", "-d", "g.db")
    study = Study(tmp_path / "g.db")
    with pytest.raises(adjudge.AdjudgeError, match="garage") as missing:
        study.scores("garage", dataset="rag", system="model-a")
    assert missing.value.__notes__[1].startswith(
        "study.run('eligibility', model='llamacpp/smollm2', where="
    ), "the calls, below the error"
    judge("suite", "garage", "-m", "scripted/hash", *common)
    shown = json.loads(judge("score", "garage", *common, "--interval", "none", "--json").out)
    table = study.scores("garage", dataset="rag", system="model-a", interval=None)
    assert table["measure"].tolist() == [m["measure"] for m in shown["measures"]]
    assert [None if np.isnan(v) else v for v in table["value"]] == [m["value"] for m in shown["measures"]]
    assert table["coverage"].tolist() == [m["coverage"] for m in shown["measures"]]
    assert table.attrs["readings"] == shown["readings"]
    for wrong, message in (({"paper": "garbage"}, "unknown paper"), ({"paper": "garage", "readings": {"x": "y"}}, "no option 'x'"),
                        ({"paper": "garage", "sytem": "a"}, "no option 'sytem'")):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            study.scores(**wrong)


def test_compare_calibrate_and_route_are_those_of_the_commands(
    study: Study, judge: Judge, tmp_path: Path
) -> None:
    study.items([
        {"id": str(n), "claim": f"c{n}", "passages": [{"text": f"p{n}", "gold": {"stance": ["support", "refute"][n % 2]}}]}
        for n in range(40)
    ])  # fmt: skip
    first = study.run("stance", model="scripted/hash", progress=False)
    second = study.run("stance", model="scripted/first", progress=False)
    compared = study.compare("stance", [first.run_id, second.run_id])
    words = ("compare", "stance", "--run", first.run_id, "--run", second.run_id, "-d", "x.db", "--json")
    shown = json.loads(judge(*words).out)
    assert compared.document == {k: v for k, v in shown.items() if k != "schema"}
    assert compared.save(tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")
    with pytest.raises(UsageError, match="has no label probabilities"):
        study.calibrate("stance", first.run_id)
    routed = study.route("stance", first.run_id)
    words = ("route", "stance", "--run", first.run_id, "-d", "x.db", "--json")
    shown = json.loads(judge(*words, code=5).out)  # no threshold holds: the judge knows nothing
    assert routed.document == {k: v for k, v in shown.items() if k != "schema"}
    assert routed.run_id is None
    with pytest.raises(UsageError, match="judge split"):
        study.improve("stance", model="scripted/hash", progress=False)


def test_a_panels_recipe_is_asked_and_a_model_that_is_not_named_is_told(
    study: Study, judge: Judge, tmp_path: Path
) -> None:
    study.items(FRAME)
    for seed in ("1", "2"):
        judge("run", "stance", "-m", "scripted/hash", "--as", f"m{seed}", "--seed", seed, "-d", "x.db")
    words = ("panel", "stance", "--run", "m1", "--run", "m2", "--recipe", "p.yaml", "-d", "x.db", "--json")
    first = json.loads(judge(*words).out)
    recipe = tmp_path / "p.yaml"
    # What is left of the tokens is too little for a member: no panel, and the same call goes on.
    with Study(tmp_path / "y.db") as other:
        other.items(FRAME)
        stopped = other.run("stance", recipe=recipe, max="300tokens", concurrency=1, progress=False)
        assert stopped.run_id is None and any("repeat the same call" in text for text in stopped.notes)
        done = other.run("stance", recipe=recipe, progress=False)
        assert other.run("stance", recipe=recipe, progress=False).run_id == done.run_id
    assert done.document["units"] == first["units"] == 3 and len(done.rows) == 2
    assert set(done.document) == set(first) - {"schema"}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "model=None: must have the form vendor/model"),
        ({"model": "scripted/hash", "recipe": recipe}, "cannot be used with a panel's recipe"),
        ({"recipe": recipe, "seed": 3}, "recipe"),
    ]
    for options, message in wrong:
        with pytest.raises(UsageError, match=message):
            study.run("stance", **{"progress": False, **options})
    with pytest.raises(UsageError, match="model=None: must have the form"):
        study.improve("stance", model=None, progress=False)  # type: ignore[arg-type]


def test_a_study_is_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the path of a study"):
        Study(":memory:")
    (tmp_path / "no.db").write_text("no study")
    with pytest.raises(StudyError):
        Study(tmp_path / "no.db")
    with Study(tmp_path / "new.db") as study:
        assert study.labels().empty
    assert repr(study) == f"Study({str(tmp_path / 'new.db')!r})"


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys; from adjudge import Study; print([m for m in sys.modules if m in sys.argv[1:]])"
    heavy = ("pandas", "numpy", "scipy", "sqlite_utils", "pydantic", "matplotlib", "jinja2", "openai")
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"
