"""The shared options of the `judge score` commands, and the group that has a command for each paper.

The options select runs and rows, and set how intervals are computed.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from judge.asking.scores import REPLICATES
from judge.console import INSIDE, combine_options
from judge.papers.engine import papers
from judge.papers.engine.paper import Paper

F = TypeVar("F", bound=Callable[..., Any])


def _once(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Return the only value of an option. Raises BadParameter for a second value, which click would silently accept."""
    if len(values) > 1:
        message = f"{param.opts[0]} was given {len(values)} times ({', '.join(values)}); give it once"
        raise click.BadParameter(message, ctx, param)
    return values[0] if values else None


runs_option = click.option(
    "-m",
    "--run",
    "runs",
    multiple=True,
    metavar="NAME",
    help="Use this judge: a model, a run or a panel. Repeatable.",
)
condition_option = click.option(
    "--condition",
    multiple=True,
    metavar="NAME",
    # click would silently take the last of several values.
    callback=_once,
    help="Condition of the answers, if a system has several conditions.",
)
dataset_option = click.option(
    "--dataset", metavar="NAME", help="Data set to score, if the study has several data sets."
)
datasets_option = click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAME",
    help="Data set to score, if the study has several. Repeatable with --table paper.",
)
table_option = click.option(
    "--table",
    type=click.Choice(["paper"]),
    help="Print the paper's own tables, with several systems and data sets.",
)
part_option = click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="NAME",
    help="Compute only this part of the measures. Repeatable.",
)
systems_option = click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="NAME",
    help="Score this system. Repeat the option, or use 'all', for a leaderboard.",
)
readings_option = click.option(
    "--paper-option",
    "readings",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the paper, e.g. ranking=bm25 (see judge score PAPER --help). Repeatable.",
)
also_generate_option = click.option(
    "--also-generate",
    is_flag=True,
    help="Let the model generate missing outputs of an imported system.",
)
interval_options = combine_options(
    click.option(
        "--interval",
        default="bca",
        type=click.Choice(["bca", "percentile", "none"]),
        help="Bootstrap method for the intervals, or 'none' for no intervals.",
    ),
    click.option("--confidence", default=0.95, type=INSIDE, help="Confidence level of the intervals."),
)
by_option = click.option(
    "--by", metavar="NAME", help="Add results grouped by this tag or gold label of the items."
)


def _join_values(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> str:
    """Join the values of an option with commas, as a request requires."""
    return ",".join(given)


def paper_options(paper: Paper) -> Callable[[F], F]:
    """Return the paper's own options."""
    return combine_options(
        *(
            click.option(
                f"--{o.name}",
                o.name.replace("-", "_"),
                default=None if o.several else o.default,
                type=click.Choice(o.choices) if o.choices else None,
                metavar=None if o.choices else "TEXT",
                multiple=o.several,
                callback=_join_values if o.several else None,
                help=o.help,
            )
            for o in paper.options
        )
    )


def get_interval_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the intervals."""
    kind = None if options["interval"] == "none" else options["interval"]
    return {"interval": kind, "confidence": options["confidence"], "replicates": REPLICATES}


class Papers(click.Group):
    """A command group that also finds the papers of plugins by name.

    Its help lists the built-in papers, and `judge plugins` lists the others.
    """

    make: Callable[[Paper], click.Command]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a built-in command, or the command of a plugin. Raises PluginFailed if the plugin is broken."""
        command = super().get_command(ctx, cmd_name)
        # Built-in papers come first, so that no plugin replaces one.
        if command is None and (paper := papers.find(cmd_name)) is not None:
            return self.make(paper)
        return command
