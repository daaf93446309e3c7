"""The commands of README.md and docs/*.md run as they stand, and the generated page of task files is up to date.

A block that starts with ```console holds lines `$ COMMAND`. All blocks of a page run in order in one
folder with a copy of `data/`, as a reader would type them; each page has a folder of its own. A comment
on the line before a block changes that:

    <!-- not run: REASON -->    the block is left out
    <!-- exit 4 -->             each of its commands ends with 4

What a page names in its text, or in a block that is not run, is a command with those options as well.

A vendor's address in a command stands for a server on the loopback that speaks the vendor's wire format (`STAND_INS`).

Each section of a page is a test of its own. It starts where the section before it ended; run alone, it
runs the sections before it first. Commands run in this process, and in a shell when they need one.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest

from docs import reference
from judge.prompts.manual import page
from tests.cli.helpers import Done
from tests.loopback.process import ServerProcess
from tests.real import ROOT, require

STAND_INS = {
    "https://generativelanguage.googleapis.com/v1beta/openai": (
        "gemini",
        "GEMINI_API_KEY",
        "gemini-test-key",
    ),
    "https://openrouter.ai/api/v1": ("openrouter", "OPENROUTER_API_KEY", "or-test-key"),
    "http://node1:8000/v1": ("openai --logprobs none", "OPENAI_API_KEY", "sk-test"),
    "http://node2:8000/v1": ("openai --logprobs none", "OPENAI_API_KEY", "sk-test"),
}
"""Address -> the server of tests.loopback that stands for it, the variable of its key, and the key."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
_BLOCK = re.compile(
    r"(?:^<!--(?P<note>[^\n]*)-->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_HEADING = re.compile(r"^##+ +(.+)$", re.MULTILINE)
_SHELL = re.compile(r"[|&;<>$`*?~(){}#]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"$`]*\"")
_NAMED = re.compile(r"`((?:judge|annotate) [^`]+)`")
_OPTION = re.compile(r"(?<!\S)--?[a-zA-Z][\w-]*")
_MODEL = re.compile(r"^judge demo(?!.* -m )|llamacpp/smollm2|embedded/minilm")
"""A command that asks the embedded model."""


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
    def is_real(self) -> bool:
        """It asks the embedded model."""
        return any(map(_MODEL.search, self.commands))

    @property
    def is_run(self) -> bool:
        return self.kind == "console" and not self.note.startswith("not run:")


@dataclass(frozen=True)
class Section:
    """The blocks below one heading."""

    title: str
    blocks: list[Block]


def blocks(text: str) -> list[Block]:
    return [
        Block(text.count("\n", 0, m.start("kind")) + 1, m["kind"], m["body"], (m["note"] or "").strip())
        for m in _BLOCK.finditer(text)
    ]


def sections(text: str) -> list[Section]:
    """The sections of a page that have something to run."""
    fenced = [(m.start(), m.end()) for m in _BLOCK.finditer(text)]
    heads = [(text.count("\n", 0, m.start()) + 1, m[1]) for m in _HEADING.finditer(text)
             if not any(a <= m.start() < b for a, b in fenced)]  # fmt: skip
    bounds = [(0, "top"), *heads, (text.count("\n") + 2, "")]
    run = [b for b in blocks(text) if b.is_run]
    found = [
        Section(title, [b for b in run if start < b.line < end])
        for (start, title), (end, _) in pairwise(bounds)
    ]
    return [s for s in found if s.blocks]


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_console_block_has_commands_and_every_exception_a_reason(path: Path) -> None:
    text = path.read_text("utf-8")
    found = [b for b in blocks(text) if b.kind == "console"]
    assert len(found) == text.count("\n```console\n") and (found or path != ROOT / "README.md")
    assert [b for s in sections(text) for b in s.blocks] == [b for b in found if b.is_run]
    for block in found:
        where = f"{path.relative_to(ROOT)}:{block.line}"
        assert block.commands, f"{where}: no line starts with '$ '"
        assert block.note == "" or re.fullmatch(r"exit \d+|not run: .+", block.note), where


def test_what_needs_a_shell() -> None:
    plain = ["judge run stance -m scripted/hash", "judge run a --where \"kind = '*'\"", "annotate open p"]
    assert not any(map(needs_shell, plain))
    shell = [
        "judge runs export > a.csv",
        "judge items show | head",
        "A=1 judge demo",
        "sed s/a/b/ x",
        "judge $X",
    ]
    assert all(map(needs_shell, shell))


def needs_shell(command: str) -> bool:
    """Not just `judge` or `annotate` and its words."""
    return command.split()[0] not in ("judge", "annotate") or bool(_SHELL.search(_QUOTED.sub("", command)))


def wrong_words(command: str, known: Mapping[tuple[str, ...], click.Command]) -> list[str]:
    """The words of a command that there are not: its name's, or an option of it (of a group: of any command in it)."""
    words = re.split(r"[|&;<>]", _QUOTED.sub("TEXT", command))[0].split()
    name = max((k for k in known if tuple(words[: len(k)]) == k), key=len)
    rest = words[len(name) :]
    if isinstance(known[name], click.Group) and rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
        return [rest[0]]
    below = [c for k, c in known.items() if k[: len(name)] == name]
    options = {o for c in below for p in c.params for o in (*p.opts, *p.secondary_opts)} | {"-h", "--help"}
    return [o for o in _OPTION.findall(" ".join(rest)) if o not in options]


def test_words_that_no_command_has_are_found() -> None:
    known = all_commands()
    named = {"judge run T --max 2usd > f": [], "judge score PAPER --json": [], "annotate disagreements": ["disagreements"],
             "judge studies merge A --to B": ["--to"], "judge run T -x 'a --b'": ["-x"]}  # fmt: skip
    assert {command: wrong_words(command, known) for command in named} == named


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_command_that_a_page_names_exists(path: Path) -> None:
    text, known = path.read_text("utf-8"), all_commands()
    typed = [c for b in blocks(text) for c in b.commands if c.startswith(("judge ", "annotate "))]
    named = [*_NAMED.findall(_BLOCK.sub("", text)), *typed]
    assert {c: wrong for c in named if (wrong := wrong_words(c, known))} == {}


@cache
def all_commands() -> dict[tuple[str, ...], click.Command]:
    """Every command of both programs by its words."""
    import annotate.cli
    import judge.cli

    programs = {"judge": judge.cli.main, "annotate": annotate.cli.main}
    return {words: c for name, main in programs.items() for words, c in reference.commands(main, (name,))}


class Reader:
    """Somebody who types a page's commands in order, in a folder of their own."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.page, self.folder = path.relative_to(ROOT), folder
        self.sections = sections(path.read_text("utf-8"))
        self.done: set[int] = set()
        shutil.copytree(ROOT / "data", folder / "data")

    def read(self, section: Section, with_model: bool, shell: Shell) -> None:
        """Type what is left of a section, after what is left before it; only tests with the model ask it."""
        last = section.blocks[-1].line
        for block in (b for s in self.sections for b in s.blocks if b.line <= last):
            if block.line not in self.done and (with_model or not block.is_real):
                self.done.add(block.line)
                self._type(block, shell)

    def _type(self, block: Block, shell: Shell) -> None:
        for command in block.commands:
            done = shell(command, self.folder)
            told = f"{self.page}:{block.line}: $ {command}\nexit {done.code}\n{done.out}{done.err}"
            assert done.code == block.code, told
            assert "Traceback" not in done.err, told


Shell = Callable[[str, Path], Done]


@pytest.fixture(scope="module")
def stand_in() -> Iterator[Callable[[str], str]]:
    """The URL of the loopback server that stands for an address. It runs until the last page is read."""
    running: dict[str, ServerProcess] = {}

    def start(address: str) -> str:
        if address not in running:
            server, *_ = STAND_INS[address]
            running[address] = ServerProcess(*server.split()).start()
        return running[address].url

    yield start
    for server in running.values():
        server.kill()


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], stand_in: Callable[[str], str]
) -> Shell:
    """`shell(command, folder)`: in this process where that makes no difference."""
    import annotate.cli
    import judge.cli

    programs = {"judge": judge.cli.main, "annotate": annotate.cli.main}

    def run(command: str, folder: Path) -> Done:
        monkeypatch.chdir(folder)
        for address, (_, variable, key) in STAND_INS.items():
            if address in command:
                monkeypatch.setenv(variable, key)
                command = command.replace(address, stand_in(address))
        if needs_shell(command):
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                command, shell=True, executable="/bin/bash", env={**os.environ, "PATH": path},
                capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            return Done(done.returncode, done.stdout, done.stderr)
        name, *words = shlex.split(command)
        monkeypatch.setattr("sys.argv", [name, *words])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            programs[name](words, prog_name=name)
        got = capfd.readouterr()
        return Done(int(ended.value.code or 0), got.out, got.err)

    return run


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Reader]:
    """Each page's reader, from its first section on."""
    return {path: Reader(path, tmp_path_factory.mktemp(path.stem)) for path in PAGES}


def _every() -> Iterator[Any]:
    for path in PAGES:
        name = path.relative_to(ROOT).as_posix()
        group = pytest.mark.xdist_group(name)
        for section in sections(path.read_text("utf-8")):
            title = f"{name}: {section.title}"
            if not all(b.is_real for b in section.blocks):
                yield pytest.param(path, section, False, marks=group, id=title)
            if any(b.is_real for b in section.blocks):
                yield pytest.param(
                    path, section, True, marks=[group, pytest.mark.real], id=f"{title} (with the model)"
                )


@pytest.mark.parametrize(("path", "section", "with_model"), _every())
def test_the_commands_of_a_section_run(
    path: Path, section: Section, with_model: bool, readers: dict[Path, Reader], shell: Shell
) -> None:
    if with_model:
        require("embedded-model")
    readers[path].read(section, with_model, shell)


def test_the_page_of_task_files_is_generated() -> None:
    written = (ROOT / "prompts" / "README.md").read_text("utf-8")
    assert written == page(), "run: uv run python -m judge.prompts.manual > prompts/README.md"
