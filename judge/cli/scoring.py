"""What judge score and judge suite share: which rows, which readings, how intervals are made, and a command a paper."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from judge.asking import scores
from judge.console import INSIDE, together
from judge.errors import UsageError
from judge.suites import papers
from judge.suites.paper import Paper

F = TypeVar("F", bound=Callable[..., Any])


def amount(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A number of questions, or a share of them."""
    try:
        return None if value is None else scores.amount(value)
    except UsageError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def once(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The one value of an option: given several times it would silently be the last."""
    if len(values) > 1:
        told = f"{param.opts[0]} is given {len(values)} times ({', '.join(values)}): one at a time"
        raise click.BadParameter(told, ctx, param)
    return values[0] if values else None


rows_options = together(
    click.option(
        "--condition",
        multiple=True,
        callback=once,
        help="Answers under this condition, when the system has several.",
    ),
    click.option("--dataset", help="The data set, when the study has several."),
    click.option(
        "-n",
        "limit",
        metavar="N|P%",
        callback=amount,
        help="The first N questions only, or a share of them (10%); pairs and parts of the data set stay together.",
    ),
    click.option("--sample", type=int, metavar="SEED", help="With -n: a random sample of the questions."),
    click.option("--part", "parts", multiple=True, help="Only this part (several times for several)."),
)
systems_option = click.option(
    "--system",
    "systems",
    multiple=True,
    help="Whose answers; several times, or 'all', for a leaderboard of systems on the rows they share.",
)
also_generate_option = click.option(
    "--also-generate",
    is_flag=True,
    help="Let the model add outputs to a system whose outputs were imported (default: refused).",
)
interval_options = together(
    click.option(
        "--interval",
        default="bca",
        type=click.Choice(["bca", "percentile", "none"]),
        help="Kind of bootstrap interval.",
    ),
    click.option("--confidence", default=0.95, type=INSIDE, help="Of the intervals."),
    click.option("--replicates", default=1000, type=click.IntRange(100), help="Resamples of questions."),
    click.option("--seed", default=0, help="Of the bootstrap."),
)
by_option = click.option(
    "--by", help="Also by stratum: a tag or gold label of the items, dataset, or the paper's own."
)


def _joined(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> str:
    """An option that was given several times, as the one text that a reading is."""
    return ",".join(given)


def paper_options(paper: Paper) -> Callable[[F], F]:
    """The readings between which a paper leaves a choice."""
    return together(
        *(
            click.option(
                *(f"--{name}" for name in (o.name, *o.other_names)),
                o.name.replace("-", "_"),
                default=None if o.several else o.default,
                type=click.Choice(o.choices) if o.choices else None,
                multiple=o.several,
                callback=_joined if o.several else None,
                help=o.help,
            )
            for o in paper.options
        )
    )


def how(options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of intervals."""
    kind = None if options["interval"] == "none" else options["interval"]
    names = ("confidence", "replicates", "seed")
    return {"interval": kind, **{name: options[name] for name in names}}


class Papers(click.Group):
    """Finds the command of a plugin's paper by its name; the help shows what is built in (`judge plugins`: the rest)."""

    make: Callable[[Paper], click.Command]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """As click does, then a plugin's. Raises PluginFailed for a broken one."""
        found = super().get_command(ctx, cmd_name)
        if found is None and (paper := papers.find(cmd_name)) is not None:
            return self.make(paper)
        return found
