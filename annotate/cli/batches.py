"""annotate batches: draw, watch, hand out and close batches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from annotate.batch_plan import BatchPlan
from annotate.cli._named import BatchName, in_study, open_command
from judge.commands import command
from judge.console import emit_json, emit_rows, json_option, note, output_options, say, table
from judge.errors import UsageError
from judge.store import Store

COLUMNS = ["unit", "question", "field", "annotator", "label", "layer", "repeat", "role", "blind", "seconds",
           "flag", "note", "stratum", "weight"]  # fmt: skip


allow_option = click.option(
    "--allow-exposed",
    is_flag=True,
    help="Also people who saw the known answer, or the judge, of these units: such labels count as assisted.",
)


class Share(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A share: 5% or 0.05."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read one."""
        if isinstance(value, float):
            return value
        try:
            text = str(value).strip()
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            self.fail(f"'{value}' is no share: write 5% or 0.05", param, ctx)
        return share


@click.group()
def batches() -> None:
    """Samples of units for people: new, list, show, labels, guidelines, close, pack, merge."""


@batches.command("new")
@click.argument("name")
@click.argument("task_name", metavar="TASK")
@click.option("-n", "n", type=click.IntRange(min=1), help="How many units.")
@click.option(
    "--by",
    type=click.Choice(["label", "dataset", "confidence"]),
    help="Stratify by the judge's label, its confidence, or data set, in proportion to the strata.",
)
@click.option(
    "--equal-parts",
    is_flag=True,
    help="With --by: equally many of each stratum, for examples of a rare label. No verdict rests on them.",
)
@click.option(
    "--by-question",
    type=click.IntRange(min=1),
    metavar="N",
    help="Draw N questions and keep each together; with -n, n/N units of each.",
)
@click.option(
    "--queue",
    is_flag=True,
    help="The units the judge is least sure of: for training a judge, no random sample.",
)
@click.option(
    "--from-route",
    metavar="RUN",
    help="The units that a route (judge route) left to people: all, or -n of them.",
)
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["ppi"]),
    help="Draw by the judge's uncertainty, with stored probabilities: corrected numbers get narrower where it can be believed.",
)
@click.option("--where", metavar="SQL", help="Only units for which this holds (columns of unit_texts).")
@click.option("--annotators", required=True, metavar="A,B,C", help="Who labels.")
@click.option("--overlap", type=click.IntRange(min=1), help="How many people label each unit; default: all.")
@click.option("--seed", type=int, default=0, help="The same seed gives the same batch.")
@click.option(
    "--repeats",
    type=Share(),
    default="0",
    show_default=False,
    help="Share of units shown twice, unmarked: 5%.",
)
@click.option("--training", metavar="gold:N", help="N units with a gold label first, with feedback.")
@click.option(
    "--pass-mark",
    type=Share(),
    default="80%",
    help="Share of training units to get right.",
)
@click.option(
    "--attention",
    type=Share(),
    default="0",
    show_default=False,
    help="Share of units with a known answer, unmarked: 3%.",
)
@click.option(
    "--fresh",
    is_flag=True,
    help="Only units that these people have not labelled before; the estimates are then for the rest.",
)
@click.option(
    "--reveal", is_flag=True, help="Show the judge after each commit: keep or revise, kept as a second layer."
)
@click.option(
    "--looks",
    type=click.IntRange(1, 1),
    metavar="1",
    help="Compute the verdict once, at the end of this batch, and not at 100, 200, 300, 450, 650 and 1,000 units.",
)
@click.option(
    "--until-decided",
    is_flag=True,
    help="Hand out a block at a time, at most -n units, and close when the verdict is decided (annotate batches next).",
)
@click.option(
    "--judges",
    metavar="RUN,RUN",
    help="The runs whose verdicts on these units share one level; default: those with labels on half of them at the first verdict.",
)
@allow_option
@click.option(
    "--run", help="The judge run for --by, --queue, --for and --reveal; default: the newest of the task."
)
@click.option(
    "--prompts",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder with task files of your own.",
)
@in_study
@json_option
def new(
    name: str,
    task_name: str,
    annotators: str,
    training: str | None,
    judges: str | None,
    until_decided: bool,
    prompts: Path | None,
    store: Store,
    as_json: bool,
    **options: Any,
) -> None:
    """Draw the batch NAME of units for TASK and hand it out.

    \b
    annotate batches new pilot stance -n 300 --seed 17 --annotators alice,bob,carol --overlap 3
    annotate batches new mirage mirage_support --by-question 100 -n 500 --annotators a,b,c

    Units that an earlier batch on the same questions drew with equal probabilities are not drawn again. Others may be,
    and what these people said of them before is adopted. Weights (frame units per drawn unit) are stored and exported.
    """
    from annotate.drawing.batch import new_batch
    from judge.store.export import find_run, known_task

    people = [a.strip() for a in annotators.split(",") if a.strip()]
    task = known_task(store, task_name, prompts)
    runs = [find_run(store, r.strip())["run_id"] for r in judges.split(",") if r.strip()] if judges else []
    plan = BatchPlan(name, people, training=_training(training), judges=runs, **options)
    # The first block; later ones are opened by `next_block`.
    made = new_batch(store, task, plan.in_blocks() if until_decided else plan)
    if as_json:
        emit_json("batch-new", {s: getattr(made, s) for s in made.__slots__ if s != "notes"})
        return
    note(
        f"batch '{name}' on {made.task}: {made.units} of {made.frame} units ({made.questions} questions), "
        f"{made.training} for training, {made.attention} attention"
    )
    print_strata(made.strata)
    for line in made.notes:
        note(line)
    for person, count in made.positions.items():
        note(f"{person}: {count} to do: {open_command(name, person, store.path)}")


def _training(text: str | None) -> int:
    if text is None:
        return 0
    source, _, count = text.partition(":")
    if source != "gold" or not count.isdecimal():
        raise UsageError(f"--training {text}: write it as gold:20")
    return int(count)


def print_strata(strata: Mapping[str, Mapping[str, Any]]) -> None:
    """What was drawn of each stratum, as a table."""
    rows = [[name, n["frame"], n["drawn"], _weight(n)] for name, n in strata.items()]
    print(table(["stratum", "frame", "drawn", "weight"], rows))


def _weight(stratum: Mapping[str, Any]) -> Any:
    """For how many units each stands: one number, or the least and the greatest."""
    low, high = stratum["weight_low"], stratum["weight_high"]
    return low if low == high else f"{low:.3f} … {high:.3f}"


@batches.command("next")
@click.argument("name", cls=BatchName)
@in_study
def next_(name: str, store: Store) -> None:
    """Open the next block of the batch NAME, or close it where the verdict is decided: for the lead (--until-decided).

    Prints the verdict on each judge so far, and what the next block costs. Before the block is complete nothing happens.
    """
    from annotate.report.until_decided import next_block

    for line in next_block(store, name).told:
        note(line)


@batches.command("list")
@in_study
@output_options
def list_(store: Store, as_json: bool, as_csv: bool) -> None:
    """List the batches."""
    from annotate.leading.progress import list_batches

    rows = list_batches(store)
    if not (as_json or as_csv):
        rows = [
            {**r, "annotators": ", ".join(r["annotators"]), "closed": (r["closed"] or "")[:10]} for r in rows
        ]
    columns = ["batch", "task", "purpose", "units", "annotators", "positions", "done", "closed"]
    emit_rows("batches", rows, columns, as_json, as_csv)


@batches.command("show")
@click.argument("name", cls=BatchName)
@in_study
@json_option
def show(name: str, store: Store, as_json: bool) -> None:
    """Progress, pace and checks of each annotator, and agreement so far. No label is shown."""
    from annotate.leading.progress import show_batch
    from annotate.leading.watch import part

    document = show_batch(store, name)
    if as_json:
        emit_json("batch", document)
        return
    state = f"closed {document['closed'][:10]}" if document["closed"] else "open"
    say(f"{name}: {document['task']}, {state}")
    if assisted := document["options"].get("assisted"):
        say(f"assisted, not blind: people see predictions in {assisted}")
    print()
    people = document["annotators"]
    rows = [
        [
            p["annotator"], f"{p['done']}/{p['units']}", p["skipped"], p["flagged"], p["units_per_hour"],
            p["median_seconds"], round(p["active_seconds"] / 60, 1), round(p["idle_seconds"] / 60, 1),
            part(p, "training_right", "training_answered") + ("" if p["training_passed"] is not False else " failed"),
            part(p, "attention_right", "attention_answered"), part(p, "repeats_same", "repeats_answered"),
        ]
        for p in people
    ]  # fmt: skip
    head = ["annotator", "done", "skipped", "flagged", "per hour", "median s", "active min", "idle min", "training",
            "attention", "repeats"]  # fmt: skip
    print(table(head, rows))
    for p in people:
        if n := p["second_layer_open"]:
            say(f"{p['annotator']}: keep or revise is missing for {n:,} units")
        if p["stopped"]:
            say(f"{p['annotator']}: stopped ({p['stopped']}); no number uses these labels")
    for told in document["too_fast"]:
        say(told)
    print()
    strata = [[s["stratum"], s["units"], _weight(s)] for s in document["strata"]]
    print(table(["stratum", "units", "weight"], strata))
    adjudication = document["adjudication"]
    if adjudication["units"]:
        print(f"\nadjudicated: {adjudication['decided']} of {adjudication['units']}")
    if adjudication["policy"]:
        say(f"policy: {adjudication['policy']}")
    _for_the_lead(document)
    if document["measures"]:
        print("\nAgreement so far (blind labels)")
        cells = [
            [m["field"], m["measure"], who, m["value"], m["n_units"], m["reason"]]
            for m in document["measures"]
            for who in [", ".join(m["annotators"] or []) or "all"]
        ]
        print(table(["field", "measure", "who", "value", "units", "why not"], cells))


def _for_the_lead(document: dict[str, Any]) -> None:
    waiting = document["for_the_lead"]
    parts = [f"people differ on {waiting['differ']} units"] if waiting["differ"] else []
    parts += [f"all skipped or flagged {waiting['stuck']} units"] if waiting["stuck"] else []
    if parts:
        say(
            f"\nfor the lead: {', '.join(parts)}: {command('annotate adjudicate', document['batch'], '--as', 'NAME')}"
        )
    for flag in document["flags"]:
        more = f" ({flag['note']})" if flag["note"] else ""
        say(f"flag of {flag['annotator']} on {flag['unit']}: {flag['flag']}{more}")


@batches.command("labels")
@click.argument("name", cls=BatchName)
@in_study
@output_options
def labels(name: str, store: Store, as_json: bool, as_csv: bool) -> None:
    """Every label of a batch: who, what, blind or not, seconds, weight."""
    from annotate.leading.progress import label_table

    rows = list(label_table(store, name))
    columns = (
        COLUMNS if as_csv else ["unit", "annotator", "field", "label", "layer", "role", "blind", "seconds"]
    )
    emit_rows("batch-labels", rows, columns, as_json, as_csv)


@batches.command("guidelines")
@click.argument("name", cls=BatchName)
@in_study
def guidelines(name: str, store: Store) -> None:
    """The batch's questions, labels and guidelines, as Markdown."""
    from annotate.guidelines import markdown
    from annotate.sitting.desk import batch_info

    say(markdown(batch_info(store, name).task))


@batches.command("close")
@click.argument("name", cls=BatchName)
@in_study
def close(name: str, store: Store) -> None:
    """Close a batch: nobody can label in it any more."""
    from annotate.leading.lead import close_batch

    close_batch(store, name)
    note(f"batch '{name}' is closed; its labels: {command('annotate batches labels', name, '--csv')}")
