"""Descriptions of options and commands fit 80 columns, and no description in a list of commands is truncated."""

from __future__ import annotations

import click
import pytest

import annotate.cli
import judge.cli
from docs import reference

WIDTH = 80
COMMANDS = [
    (" ".join(words), command)
    for name, main in (("judge", judge.cli.main), ("annotate", annotate.cli.main))
    for words, command in reference.commands(main, (name,))
]


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_help_fits_its_line(name: str, command: click.Command) -> None:
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    formatter = context.make_formatter()
    command.format_options(context, formatter)
    lines = formatter.getvalue().splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    if isinstance(command, click.Group):
        assert [line for line in lines if line.endswith("...")] == []
