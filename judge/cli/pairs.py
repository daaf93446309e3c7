"""judge pairs: build pairs of a claim and a counter claim with a model, and list the pairs that people confirmed."""

import asyncio
from pathlib import Path
from typing import Any

import click

from judge.asking.run import make_plan
from judge.cli.chain import chained, run_in_chain
from judge.commands import command
from judge.console import db_option, emit_json, json_option, note, shorten
from judge.document.terminal import emit_rows
from judge.errors import Exit, UsageError
from judge.run_options import RunOptions
from judge.store import Store
from judge.types import attributes

COUNTS = ("claims", "valid", "invalid", "unknown", "pairs", "repeated", "unwritten")


@click.group()
def pairs() -> None:
    """Build pairs of a claim and a counter claim, and list them."""


@pairs.command("build")
@chained
@click.option("--check-model", help="Model for the validity check (default: --model).")
@click.option(
    "--into", help="Data set to store the pairs in (default: the claim's data set with the suffix -pairs)."
)
def build(model: str, **options: Any) -> int:
    """Write a counter claim for each valid claim.

    \b
    judge pairs build -m openai/gpt-5-mini
    judge pairs build -m openai/gpt-5-mini --where "dataset = 'scifact'" -n 100
    annotate batches new pairs counter_check -n 70 --annotators a,b,c,d
    judge pairs list

    The model first checks each claim (task claim_validity), then writes the counter claim (task counter_claim).
    Each pair is stored as two items, PAIR-original and PAIR-counter. Both have copies of the claim's passages,
    without gold labels.

    Claims that are already in a pair are skipped. Run the same command again to resume.
    """
    from judge.runner.counterclaims import build as make

    # The name becomes the beginning of ids, in which : and / are separators.
    if options["into"] is not None and not options["into"].replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"--into '{options['into']}': use only letters, digits, - and _")
    given = RunOptions.from_options(options)
    with Store.open(options["db"], create=False) as store, store.run_lock(f"pairs {model}"):
        write = make_plan("counter_claim", model, given, store)
        check = make_plan("claim_validity", options["check_model"] or model, given, store)
        built = asyncio.run(
            run_in_chain(
                store,
                write,
                check,
                given,
                lambda writer, checker: make(
                    writer, checker, (check.task, write.task), write.selection, options["into"]
                ),
            )
        )
    if isinstance(built, int):
        return built
    row = attributes(built, *COUNTS)
    row |= {"items": built.report.counts["items"], "datasets": built.report.datasets}
    if options["as_json"]:
        emit_json("pairs_build", {"study": str(options["db"]), "model": model, **row})
    else:
        emit_rows("pairs_build", [row], [*COUNTS, "items"])
        if row["datasets"]:
            print(f"data set {', '.join(row['datasets'])}; next: {command('judge pairs list')}")
    if built.repeated:
        note(f"note: {built.repeated} counter claims were identical to their claims, so they form no pairs")
    if built.unknown or built.unwritten:
        note(
            f"note: {built.unknown} claims have no validity label and {built.unwritten} valid claims have no "
            "counter claim; to retry them, use --retry unparsed"
        )
    return Exit.INCOMPLETE if built.unknown or built.unwritten else Exit.DONE


@pairs.command("list")
@click.option("--dataset", help="List only this data set.")
@click.option("-n", "limit", default=50, type=click.IntRange(1), help="Number of pairs to list.")
@db_option
@json_option
def list_(dataset: str | None, limit: int, db: Path, as_json: bool) -> None:
    """List pairs with their human labels (task counter_check).

    A pair is kept if at least 73 % of the annotators confirm it.
    """
    from judge.store import pairs as stored

    with Store.open(db, create=False) as store:
        checked_pairs = stored.read_checked(store, dataset)
    totals = stored.counts(checked_pairs)
    rows = [
        {
            "pair": pair.pair_id,
            "unit": pair.unit_id,
            **attributes(pair, "claim", "counter_claim", "yes", "votes", "kept"),
        }
        for pair in checked_pairs[:limit]
    ]
    if as_json:
        emit_json(
            "pairs", {"consensus": stored.CONSENSUS, "pairs": len(checked_pairs), **totals, "rows": rows}
        )
        return
    shown = [
        {
            **row,
            "claim": shorten(str(row["claim"]), 40),
            "counter_claim": shorten(str(row["counter_claim"]), 40),
            "kept": {True: "yes", False: "no", None: ""}[row["kept"]],
        }
        for row in rows
    ]
    emit_rows("pairs", shown, ["pair", "claim", "counter_claim", "yes", "votes", "kept"])
    summary = ", ".join(f"{n} {name}" for name, n in totals.items())
    note(
        f"{len(checked_pairs)} pairs: {summary} (kept: the share of yes votes is at least {stored.CONSENSUS:g})"
    )
