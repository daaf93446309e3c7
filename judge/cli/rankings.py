"""judge rankings: which passages were found for an item, and in which order."""

from pathlib import Path

import click

from judge.asking.systems import STAGES
from judge.cli.systems import removed
from judge.console import db_option, emit_json, emit_rows, json_option
from judge.store import Store


@click.group()
def rankings() -> None:
    """Attach the passages of rankings to items."""


rankings.add_command(removed("rankings import", "systems import"))


@rankings.command("attach")
@click.option("--name", help="Name of the ranking, if there are several.")
@click.option("--stage", type=click.Choice(STAGES), help="Stage of the ranking, if it has several.")
@click.option("-k", default=10, type=click.IntRange(1), help="Use the first K passages of each ranking.")
@click.option("--dataset", help="Items of this data set only.")
@db_option
@json_option
def attach(name: str | None, stage: str | None, k: int, dataset: str | None, db: Path, as_json: bool) -> None:
    """Copy listed passages of other items to each item. They can then be labelled.

    \b
    judge rankings attach -k 10
    judge run stance -m openai/gpt-5-mini

    A unit is a passage with its own item. Gold labels are not copied; doing it again changes nothing.
    """
    from judge.store.rankings import attach as copy
    from judge.store.rankings import choose

    with Store.open(db, create=False) as store:
        ranking = choose(store, name, stage)
        report = copy(store, ranking, k, dataset)
    row = {"name": ranking[0], "stage": ranking[1], "k": k, "passages": report.counts["passages"]}
    if as_json:
        emit_json("rankings_attach", {"study": str(db), **row})
    else:
        emit_rows("rankings_attach", [row], ["name", "stage", "k", "passages"])
