"""A group with one command a paper: those built in, and plugins' when one is named that is not."""

from __future__ import annotations

from collections.abc import Callable

import click

from judge.suites import papers
from judge.suites.paper import Paper


class Papers(click.Group):
    """Finds the command of a plugin's paper by its name; the help shows what is built in (`judge plugins`: the rest)."""

    make: Callable[[Paper], click.Command]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """As click does, then a plugin's. Raises PluginFailed for a broken one."""
        found = super().get_command(ctx, cmd_name)
        if found is None and (paper := papers.find(cmd_name)) is not None:
            return self.make(paper)
        return found
