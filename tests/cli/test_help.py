"""`--help` is quick, says what every command and option does, and fits 80 columns."""

import json
import subprocess
import sys

import click
import pytest

import annotate.cli
import judge.cli
from docs import reference
from tests.real import ROOT

WIDTH = 80
HEAVY = [
    "openai", "anthropic", "xllamacpp", "pandas", "numpy", "scipy", "sklearn", "sqlite_utils", "pydantic",
    "aiohttp", "jinja2", "yaml", "ijson", "krippendorff", "tabulate",
]  # fmt: skip
CODE = """
import json, sys
from judge.cli import main
loaded = {}
for words in json.load(sys.stdin):
    try:
        main([*words, "--help"], prog_name="judge")
    except SystemExit as e:
        assert not e.code, words
    loaded[" ".join(words)] = sorted(set(HEAVY) & set(sys.modules))
json.dump(loaded, sys.stderr)
"""
EVERY = {
    " ".join(words): command
    for name, main in (("judge", judge.cli.main), ("annotate", annotate.cli.main))
    for words, command in reference.commands(main, (name,))
}
"""All commands and groups by what is typed."""


def test_help_loads_nothing_heavy() -> None:
    typed = [words.split()[1:] for words in EVERY if words.startswith("judge")]
    done = subprocess.run(
        [sys.executable, "-c", CODE.replace("HEAVY", repr(HEAVY))],
        input=json.dumps(typed), capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    loaded = json.loads(done.stderr)
    assert len(loaded) == len(typed)
    assert {words: modules for words, modules in loaded.items() if modules} == {}


@pytest.mark.parametrize("words", EVERY)
def test_a_command_says_what_it_does(words: str) -> None:
    command = EVERY[words]
    assert (command.help or "").strip()
    for option in command.params:
        assert not isinstance(option, click.Option) or option.help, option.opts
    needs_something = any(isinstance(p, click.Argument) or p.required for p in command.params)
    if words.startswith("judge") and not isinstance(command, click.Group) and needs_something:
        assert words in (command.help or ""), "an example"


@pytest.mark.parametrize("words", EVERY)
def test_help_fits_its_line(words: str) -> None:
    command = EVERY[words]
    context = click.Context(command, info_name=words, terminal_width=WIDTH, max_content_width=WIDTH)
    formatter = context.make_formatter()
    command.format_options(context, formatter)
    lines = formatter.getvalue().splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    if isinstance(command, click.Group):
        assert [line for line in lines if line.endswith("...")] == []
