"""judge score compare: two judges on the same units, or two systems on the rows they share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from judge.asking.scores import asked_so
from judge.cli.scoring import amount, how, interval_options
from judge.cli.thresholds import worse_gates
from judge.console import db_option, emit_json, emit_rows, output_options, pairs, say
from judge.errors import UsageError
from judge.gates import GateFiles, decide, gate_options
from judge.labels.words import HELP
from judge.store import Store
from judge.suites.papers import PAPERS

if TYPE_CHECKING:
    from judge.scores.compare import Difference
    from judge.suites.swap import Swap


@click.command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--axis",
    type=click.Choice(["judge", "system"]),
    default="judge",
    help="What A and B are: judges (or runs), or systems whose answers one judge has scored.",
)
@click.option("-m", "--model", "models", multiple=True, help="With --axis system: the judge.")
@click.option(
    "--paper", "papers", multiple=True, type=click.Choice([*PAPERS]), help="Only measures of this paper."
)
@click.option("--run", "runs", multiple=True, help="A run of another task that both rest on.")
@click.option(
    "--sample",
    "limit",
    metavar="N|P%",
    callback=amount,
    help="A random sample of the questions: N, or a share as 10%.",
)
@click.option("--sample-seed", "sample", default=0, help="Of that sample.")
@click.option(
    "--set", "readings", multiple=True, metavar="OPTION=VALUE", help="A reading, as relevant-set=answer."
)
@click.option("--system", help="Whose answers, when several systems have some.")
@click.option("--condition", help="Answers under this condition, when the system has several.")
@click.option("--dataset", help="The data set, when the study has several.")
@click.option("--reference", metavar="WHO", help=f"Also how both agree with {HELP}.")
@click.option(
    "--fail-if-worse",
    multiple=True,
    metavar="MEASURE",
    help="With --axis system: exit 5 when B is shown to be worse than A, or the difference is undefined; repeatable.",
)
@gate_options
@interval_options
@db_option
@output_options
def compare(first: str, second: str, **options: Any) -> None:
    """The difference of every measure between two judges on the same units (the judge swap), or two systems.

    \b
    judge score compare openai/gpt-5-mini anthropic/claude-sonnet-5
    judge score compare 01K9ZX3M 01K9ZY7Q --sample 10%
    judge score compare gpt-4 llama-2 --axis system --paper garage
    judge score compare main branch --axis system --paper garage --fail-if-worse factuality

    A and B are runs of one task, or judges (models) with all their runs. Differences are B minus A, with
    intervals that resample the same questions for both; what one of them has not judged is left out of both, and
    the coverage says so. Below the papers' measures stand the shares of the labels of each task.

    --fail-if-worse is a paired test by question, with Holm's correction over the measures named: at --confidence 0.95, B is
    called worse in at most 2.5 % of the builds in which nothing changed.
    """
    from judge.suites.swap import swap, systems

    on_systems = options["axis"] == "system"
    if on_systems and (options["system"] or options["reference"]):
        raise UsageError("--axis system: A and B are the systems; --system and --reference go with judges")
    if options["models"] and not on_systems:
        raise UsageError("-m goes with --axis system: A and B are the judges here")
    if options["fail_if_worse"] and not on_systems:
        raise UsageError(
            "--fail-if-worse goes with --axis system: another judge's number is neither better nor worse; "
            "judge compare tests judges against people"
        )
    sample = options["sample"] if options["limit"] else None
    wanted = asked_so(options, sample=sample, options=pairs(options["readings"], "--set"))
    papers = {name: PAPERS[name] for name in options["papers"] or PAPERS}
    known = {o.name for paper in papers.values() for o in paper.options}
    for name in wanted.options:
        if name not in known:
            raise UsageError(f"--set {name}: no such reading; there are: {', '.join(sorted(known))}")
    with Store.open(options["db"], create=False) as store:
        if on_systems:
            comparison = systems(store, papers, first, second, wanted, **how(options))
        else:
            comparison = swap(
                store, papers, first, second, wanted, reference=options["reference"], **how(options)
            )
    gates = worse_gates(options["fail_if_worse"], comparison.differences, papers, options["confidence"])
    _show(comparison, options["as_json"], options["as_csv"])
    sys.stdout.flush()
    decide(f"judge score compare {first} {second}", gates, GateFiles(options["junit"], options["summary"]))


def _show(found: Swap, as_json: bool, as_csv: bool) -> None:
    """The differences as JSON, CSV or a table."""
    if as_json:
        emit_json("score_compare", found.as_json())
        return
    rows = [_difference(paper, d) for paper, some in found.differences.items() for d in some]
    if not as_csv:
        say(f"A: {found.first.name}\nB: {found.second.name}\n")
    emit_rows("score_compare", rows, [*rows[0]] if rows else ["paper"], False, as_csv)
    if not as_csv:
        undefined = [
            f"{d.first.measure}: {d.difference.reason}"
            for s in found.differences.values()
            for d in s
            if d.difference.reason
        ]
        for text in dict.fromkeys([*undefined, *found.notes]):
            say(f"- {text}")


def _difference(paper: str, found: Difference) -> dict[str, Any]:
    d = found.difference
    return {
        "paper": paper,
        "measure": found.first.measure,
        "A": found.first.value,
        "B": found.second.value,
        "B - A": d.value,
        "low": d.low,
        "high": d.high,
        "p": found.p,
        "units": d.n_units,
        "questions": d.n_clusters,
        "coverage": d.coverage,
    }
