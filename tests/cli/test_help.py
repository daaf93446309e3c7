"""`--help` is quick and shows how each command is used."""

import json
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from judge.cli import main
from tests.real import ROOT

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


def commands(
    group: click.Command, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its words, the groups too."""
    yield words, group
    if isinstance(group, click.Group):
        for name, command in group.commands.items():
            yield from commands(command, (*words, name))


EVERY = dict(commands(main))


def test_the_commands_of_the_issue_are_there() -> None:
    wanted = ["demo", "items import", "items show", "tasks show", "tasks check",
              "tasks render", "models show", "run", "runs list", "runs show", "runs export"]  # fmt: skip
    assert set(wanted) <= {" ".join(words) for words in EVERY}


def test_help_loads_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.replace("HEAVY", repr(HEAVY))],
        input=json.dumps(list(EVERY)), capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    loaded = json.loads(done.stderr)
    assert len(loaded) == len(EVERY)
    assert {words: found for words, found in loaded.items() if found} == {}


LEAVES = {" ".join(words): c for words, c in EVERY.items() if not isinstance(c, click.Group)}


@pytest.mark.parametrize("words", LEAVES)
def test_a_command_that_needs_something_shows_an_example(words: str) -> None:
    command = LEAVES[words]
    if any(isinstance(p, click.Argument) or p.required for p in command.params):
        assert f"judge {words}" in (command.help or "")


@pytest.mark.parametrize("words", EVERY, ids=lambda words: " ".join(words) or "judge")
def test_every_command_and_option_says_what_it_is(words: tuple[str, ...]) -> None:
    command = EVERY[words]
    assert (command.help or "").strip(), words
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{words}: {option.opts}"
