"""The README's commands run as they stand, and the generated page of task files is up to date.

A block that starts with ```console holds lines `$ COMMAND`. All blocks run in order in one folder with
a copy of `data/`, as a reader would type them. A comment on the line before a block changes that:

    <!-- not run: REASON -->    the block is left out
    <!-- exit 4 -->             each of its commands ends with 4
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from judge.prompts.reference import page
from tests.real import ROOT, require

README = ROOT / "README.md"
_BLOCK = re.compile(
    r"(?:^<!--(?P<note>[^\n]*)-->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, its language, its text, and the comment before it."""

    line: int
    kind: str
    body: str
    note: str

    @property
    def commands(self) -> list[str]:
        """The commands; a backslash at the end of a line goes on in the next."""
        return [
            c.removeprefix("$ ") for c in self.body.replace("\\\n", " ").splitlines() if c.startswith("$ ")
        ]

    @property
    def code(self) -> int:
        """The exit code that its commands end with."""
        found = re.fullmatch(r"exit (\d+)", self.note)
        return int(found[1]) if found else 0

    @property
    def is_run(self) -> bool:
        return self.kind == "console" and not self.note.startswith("not run:")


def blocks(text: str) -> list[Block]:
    return [
        Block(text.count("\n", 0, m.start("kind")) + 1, m["kind"], m["body"], (m["note"] or "").strip())
        for m in _BLOCK.finditer(text)
    ]


def test_blocks_are_read_as_they_are_meant() -> None:
    text = (
        "A\n```console\n$ one \\\n  --more\nits output\n$ two\n```\n"
        "<!-- exit 4 -->\n```console\n$ three\n```\n"
        "<!-- not run: needs a key -->\n```console\n$ four\n```\n```json\n{}\n```\n"
    )
    found = blocks(text)
    assert [(b.line, b.kind, b.commands, b.code, b.is_run) for b in found] == [
        (2, "console", ["one    --more", "two"], 0, True),
        (9, "console", ["three"], 4, True),
        (13, "console", ["four"], 0, False),
        (16, "json", [], 0, False),
    ]


def test_every_console_block_has_commands_and_every_exception_a_reason() -> None:
    found = [b for b in blocks(README.read_text("utf-8")) if b.kind == "console"]
    assert found
    for block in found:
        assert block.commands, f"README.md:{block.line}: no line starts with '$ '"
        assert block.note == "" or re.fullmatch(r"exit \d+|not run: .+", block.note), (
            f"README.md:{block.line}"
        )


@pytest.mark.real
def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    require("embedded-model")
    shutil.copytree(ROOT / "data", tmp_path / "data")
    hidden = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "JUDGE_DB", "JUDGE_DEBUG"}
    env = {k: v for k, v in os.environ.items() if k not in hidden}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    ran = 0
    for block in blocks(README.read_text("utf-8")):
        for command in block.commands if block.is_run else ():
            done = subprocess.run(
                command, shell=True, executable="/bin/bash", cwd=tmp_path, env=env,
                capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            told = f"README.md:{block.line}: $ {command}\nexit {done.returncode}\n{done.stdout}{done.stderr}"
            assert done.returncode == block.code, told
            assert "Traceback" not in done.stderr, told
            ran += 1
    assert ran


def test_the_page_of_task_files_is_generated() -> None:
    written = (ROOT / "prompts" / "README.md").read_text("utf-8")
    assert written == page(), "run: uv run python -m judge.prompts.reference > prompts/README.md"
