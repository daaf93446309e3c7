"""`judge --help` and `annotate --help` list every command by purpose, each description on its line."""

import click
import pytest
from click.testing import CliRunner

from annotate.cli import main as annotate
from judge.cli import main as judge


@pytest.mark.parametrize("main", [judge, annotate], ids=["judge", "annotate"])
def test_every_command_stands_in_a_section_on_one_line(main: click.Group) -> None:
    text = CliRunner().invoke(main, ["--help"], prog_name=main.name, terminal_width=80).output
    lines = text.splitlines()
    assert "Other:" not in lines, "add the command to a section of its program"
    for name in main.list_commands(click.Context(main)):
        command = main.commands[name]
        if not command.hidden:
            [line] = [line for line in lines if line.startswith(f"  {name} ")]
            assert line.endswith(".") and not line.endswith("..."), line
            assert len(line) <= 80
