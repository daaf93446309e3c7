"""Every option of a run is declared once: the command line, Python, a stored run and the printed commands agree."""

from __future__ import annotations

import json
import shlex
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from judge.cli.run import run
from judge.run_options import IDENTITY, WRITTEN, RunOptions, from_stored, words
from tests.cli.helpers import checked
from tests.formats import write_jsonl
from tests.suites.helpers import Judge, commands, import_garage, score

ELIGIBILITY = ("garage", "--part", "eligibility", "--dataset", "garage")
"""A part of a paper that rests on one labelling task, three units of it."""

GIVEN: dict[str, list[str]] = {
    "temperature": ["--temperature", "0.7"],
    "seed": ["--seed", "0"],
    "answers": ["--answers", "json"],
    "rationale": ["--rationale", "after"],
    "label_order": ["--label-order", "2"],
    "guidelines": ["--guidelines"],
    "asked_as": ["--as", "strict"],
    "settings": ["--option", "logprobs=1", "--option", "delay=0"],
    "recipe": ["--recipe", "how.yaml"],
    "examples": ["--examples", "rg:c1,rg:c2"],
    "relevant": ["--relevant", "marked"],
}
"""A value for every option of a run's identity."""
CLAIMS = ("raguard", "--part", "exam", "--dataset", "rg")
"""A part that rests on a labelling task for which claims can be examples: four documents, two of them of the examples."""
RELEVANT = ("garage", "--part", "relevant", "--relevant-set", "marked", "--dataset", "garage")
"""A part that rests on a task that shows the passages marked as relevant: three sentences of `m` to answerable questions."""
OF_OPTION = {"examples": ("raguard_exam", CLAIMS, 2), "relevant": ("grounding_relevant", RELEVANT, 4)}
"""Option -> the task that takes it, the part of a paper that reads its runs, and how many units the run then has.

The first sentence of the study, which a run with -n 1 asks about, is a human's: one more than the part needs.
"""


@pytest.fixture(autouse=True)
def study(judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    import_garage(judge, tmp_path)


def own_task(judge: Judge) -> None:
    """A folder with a version of the task that the package does not have."""
    text = judge("tasks", "show", "eligibility").out
    Path("mine").mkdir()
    Path("mine", "eligibility.v7.md").write_text(text, "utf-8")


def claims(judge: Judge) -> None:
    """Four claims with a document each; gold says true, false, true, false."""
    rows = [
        {"id": f"c{n}", "claim": f"Claim {n}.", "passages": [f"Document {n}."],
         "gold": {"claim_verdict": "true" if n % 2 else "false"}}
        for n in range(1, 5)
    ]  # fmt: skip
    write_jsonl(Path("claims.jsonl"), rows)
    judge("items", "import", "jsonl", "claims.jsonl", "--dataset", "rg")


def a_recipe() -> None:
    """A recipe as `judge improve` writes one: labels in the reverse order, seed 5."""
    from judge.improve.recipe import today
    from judge.prompts import load_task
    from judge.runner.requests import Sampling

    found = today(load_task("eligibility"), "eligibility", Sampling(seed=5))
    recipe = found.model_copy(update={"label_order": "reversed"})
    Path("how.yaml").write_text(recipe.text(), "utf-8")


def runs(judge: Judge) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = checked(judge("runs", "list", "--json").out, "runs")["rows"]
    return rows


def test_every_identity_option_has_a_case() -> None:
    assert set(GIVEN) == set(IDENTITY)


def begin(judge: Judge, name: str) -> tuple[tuple[str, ...], list[str], int]:
    """Run one unit with an option of the identity: the part that reads the run, provider options, and its units."""
    claims(judge)
    task, part, units = OF_OPTION.get(name, ("eligibility", ELIGIBILITY, 3))
    # Several label orders need label probabilities, which this script gives when asked to.
    extra = ["--option", "logprobs=1"] if name == "label_order" else []
    judge("run", task, "-m", "scripted/hash", "-n", "1", *GIVEN[name], *extra)
    [begun] = runs(judge)
    assert begun["units"] == 1
    return part, extra, units


@pytest.mark.parametrize("name", GIVEN)
def test_the_printed_command_resumes_the_run(judge: Judge, name: str) -> None:
    own_task(judge)
    a_recipe()
    part, _, units = begin(judge, name)
    [begun] = runs(judge)
    for line in commands(judge, *part):
        assert judge(*shlex.split(line)[1:]).code == 0, line
    [resumed] = [run for run in runs(judge) if run["task"] == begun["task"]]
    assert (resumed["run_id"], resumed["units"]) == (begun["run_id"], units)
    # The finished run is read, and whether it is named makes no difference.
    found = score(judge, *part).document
    assert begun["run_id"] in [run["run"] for run in found["runs"]]
    assert score(judge, *part, "--run", begun["run_id"]).document["measures"] == found["measures"]


@pytest.mark.parametrize("name", [n for n in GIVEN if n not in ("recipe", "asked_as", "relevant")])
def test_a_suite_resumes_the_run_too(judge: Judge, name: str) -> None:
    part, extra, units = begin(judge, name)
    [begun] = runs(judge)
    judge("suite", *part, "-m", "scripted/hash", *(GIVEN[name] if name == "settings" else extra))
    [resumed] = [run for run in runs(judge) if run["task"] == begun["task"]]
    assert (resumed["run_id"], resumed["units"]) == (begun["run_id"], units)


def test_a_suite_that_is_told_otherwise_begins_a_run_of_its_own(judge: Judge) -> None:
    judge("run", "eligibility", "-m", "scripted/hash", "--temperature", "1")
    judge("suite", *ELIGIBILITY, "-m", "scripted/hash", "--temperature", "0.5")
    judge("suite", *ELIGIBILITY, "-m", "scripted/hash", "--as", "second")
    assert [(r["model"], r["options"]["temperature"], r["units"]) for r in runs(judge)] == [
        # All five answers; a suite asks about the two of `m` to answerable questions.
        ("scripted/hash", 1, 5),
        ("scripted/hash", 0.5, 2),
        ("second", 0, 2),
    ]


def test_a_suite_retries_and_ends_as_judge_run_does(judge: Judge) -> None:
    words = (*ELIGIBILITY, "-m", "scripted/garbage")
    attempts = "SELECT count(*) FROM judgements"
    with sqlite3.connect("study.db") as conn:
        # No reply can be read. Without --retry nothing is asked again; with it, as often as at first.
        assert judge("suite", *words, code=None).code == 4
        [asked] = conn.execute(attempts).fetchone()
        assert judge("suite", *words, code=None).code == 4
        assert conn.execute(attempts).fetchone() == (asked,)
        assert judge("suite", *words, "--retry", "unparsed", code=None).code == 4
        assert conn.execute(attempts).fetchone() == (2 * asked,)
    assert judge("run", "eligibility", "-m", "scripted/garbage", code=None).code == 4


def test_keys_are_neither_stored_nor_printed(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    options = RunOptions(settings={"key": "env:MINE", "header.X-Key": "env:MINE", "n_ctx": "8192"})
    from judge.run_options import get_typed

    assert get_typed(options) == {"settings": {"n_ctx": "8192"}}


def test_words_are_read_back_as_they_were_given(judge: Judge) -> None:
    """Every option with a value of its own goes to words and through click back to the same options."""
    Path("p.json").write_text("{}", "utf-8")
    a_recipe()
    values: dict[str, Any] = {
        "limit": 3, "where": "dataset = 'x y'", "units_of": "pilot", "sample": 0, "relevant": "answer", "examples": "a,b", "repeats": 2,
        "concurrency": 4, "patience": 90.0, "retry": ("unparsed", "refused"),
        "max": ("9tokens", "0.5usd", "1h30m"), "prices": Path("p.json"), "max_output_tokens": 64,
        "temperature": None, "seed": 0, "answers": "json", "rationale": "none",
        "label_order": "reversed*2", "guidelines": True, "asked_as": "strict", "same_model": True,
        "recipe": Path("how.yaml"), "prompts": None, "base_url": ("http://a", "http://b"), "settings": {"a": "b=c"},
        "timeout": 3.0, "allow": ("h", "env:A"),
    }  # fmt: skip
    assert list(values) == list(WRITTEN)
    given = RunOptions(**values)
    context = run.make_context("run", ["stance", "-m", "m", *words(given)])
    assert RunOptions.from_options(context.params) == given
    assert words(RunOptions()) == []


def test_a_stored_run_that_no_option_was_given_to_needs_none() -> None:
    stored = json.loads('{"answers": "auto", "label_order": "declared", "max_output_tokens": 512, "mode": "json", '
                        '"seed": null, "temperature": 0.0, "base_url": null}')  # fmt: skip
    assert from_stored("openai/m", stored) == ("openai/m", RunOptions())
