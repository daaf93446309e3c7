"""judge rankings: copy ranked passages to the items that they were retrieved for."""

from pathlib import Path

import click

from judge.asking.systems import STAGES
from judge.console import db_option, emit_json, json_option
from judge.document.terminal import emit_rows
from judge.store import Store


@click.group()
def rankings() -> None:
    """Copy ranked passages to the items that they were retrieved for."""


@rankings.command("attach")
@click.option("--ranking", "--name", "name", help="Name of the ranking, if the study has several rankings.")
@click.option(
    "--stage", type=click.Choice(STAGES), help="Stage of the ranking, if the ranking has several stages."
)
@click.option("-k", default=10, type=click.IntRange(1), help="Use the first K passages of each ranking.")
@click.option("--dataset", help="Use only the items of this data set.")
@db_option
@json_option
def attach(name: str | None, stage: str | None, k: int, dataset: str | None, db: Path, as_json: bool) -> None:
    """Copy the top passages of a ranking to each item.

    A judge can then label passages that belong to other items.

    \b
    judge rankings attach -k 10
    judge run stance -m openai/gpt-5-mini

    Gold labels are not copied. Running the command again changes nothing.
    """
    from judge.store.rankings import attach as copy
    from judge.store.rankings import choose

    with Store.open(db, create=False) as store:
        # Without a name, the study must have exactly one ranking.
        ranking = choose(store, name, stage)
        report = copy(store, ranking, k, dataset)
    row = {"name": ranking[0], "stage": ranking[1], "k": k, "passages": report.counts["passages"]}
    if as_json:
        emit_json("rankings_attach", {"study": str(db), **row})
    else:
        emit_rows("rankings_attach", [row], ["name", "stage", "k", "passages"])
