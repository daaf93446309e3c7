"""The workflow of docs/ci.md, step by step, against a server whose model changes between builds, or repeats itself badly."""

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from annotate.cli import main as annotate
from tests.cli.helpers import write_rows
from tests.loopback.changing import ChangingServer
from tests.loopback.wire import threaded
from tests.real import ROOT
from tests.suites.helpers import Judge

PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
SECTION = PAGE[PAGE.index("## A workflow") :]
MODEL = "-m openai/gpt-5-mini"


def once() -> list[str]:
    """The commands that are typed once, before the first build."""
    [block] = re.findall(r"```console\n(.*?)```", SECTION, re.DOTALL)
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ judge ")]


def steps() -> list[str]:
    """The commands of a build, in order, without the installation."""
    [block] = re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL)
    found = yaml.safe_load(block)["jobs"]["judge"]["steps"]
    return [step["run"] for step in found if "run" in step and not step["run"].startswith("pip ")]


@pytest.fixture
def server() -> Iterator[ChangingServer]:
    with threaded(ChangingServer()) as found:
        yield found


Type = Callable[[str], int]


@pytest.fixture
def typed(judge: Judge, server: ChangingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Type:
    """Type one command as it stands in the page; its exit code. The model is asked at the server of the test."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")

    def run(command: str) -> int:
        # No vendor has a price for a server of one's own.
        at = command.replace(MODEL, f"{MODEL} --base-url {server.url}").replace(
            "--max 2usd", "--max 100ktokens"
        )
        program, *words = shlex.split(at.replace("$GITHUB_STEP_SUMMARY", str(tmp_path / "step_summary")))
        if program == "annotate":
            return CliRunner().invoke(annotate, words).exit_code
        return judge(*words, code=None).code

    return run


@pytest.fixture
def committed(typed: Type, judge: Judge, tmp_path: Path) -> Path:
    """The study as it is in the repository: 120 units with gold labels, on which the judge is nearly always right."""
    rows: list[dict[str, Any]] = [
        {"id": f"c{n}", "claim": f"Claim number {n}.", "passages": [{"id": "p", "text": f"Passage {n}."}]}
        for n in range(120)
    ]
    judge("items", "import", "jsonl", write_rows(tmp_path / "labelled.jsonl", rows), "-d", "first.db")
    # What the server says is what it says: gold is made from it, with every twelfth label another one.
    typed(f"judge run stance {MODEL} -d first.db")
    said = {}
    for line in judge("runs", "export", "last", "--to", "jsonl", "-d", "first.db").out.splitlines():
        row = json.loads(line)
        said[row["item_id"]] = row["labels"]["stance"]
    labels = ("support", "refute", "neutral")
    for n, row in enumerate(rows):
        [own] = [label for item, label in said.items() if item.endswith(f":c{n}")]
        gold = labels[(labels.index(own) + 1) % 3] if n % 12 == 0 else own
        row["passages"][0]["gold"] = {"stance": gold}
    write_rows(tmp_path / "labelled.jsonl", rows)
    for command in once():
        assert typed(command) == 0, command
    return Path(shutil.copy(tmp_path / "study.db", tmp_path / "committed.db"))


def build(typed: Type, committed: Path) -> list[int]:
    """The exit codes of the steps, up to the first that is not 0, on the study of the repository."""
    shutil.copy(committed, committed.with_name("study.db"))
    codes = []
    for command in steps():
        codes.append(typed(command))
        if codes[-1]:
            break
    return codes


def test_the_workflow_runs_and_stops_when_the_model_changes(
    typed: Type, committed: Path, server: ChangingServer, tmp_path: Path
) -> None:
    assert [command.split()[:2] for command in steps()] == [
        ["judge", "drift"],
        ["judge", "items"],
        ["judge", "run"],
        ["annotate", "view"],
        ["annotate", "report"],
        ["annotate", "agreement"],
    ]
    assert build(typed, committed) == [0, 0, 0, 0, 0, 0]
    assert {"units.html", "report.html", "drift.xml", "trust.xml"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert (tmp_path / "step_summary").read_text("utf-8").count("| passed |") == 2
    # A model that repeats itself badly is no other model.
    server.noise = 0.1
    assert build(typed, committed) == [0, 0, 0, 0, 0, 0]
    # The model says "neutral" to everything, under the same name. The gates on stored replies would pass.
    server.noise, server.constant = 0.0, "neutral"
    assert build(typed, committed) == [5]
    assert [typed(command) for command in steps()[1:]] == [0, 0, 0, 0, 0]
    # It is back.
    server.constant = None
    assert build(typed, committed) == [0, 0, 0, 0, 0, 0]
