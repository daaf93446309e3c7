"""annotate batches: draw, show and close batches."""

from __future__ import annotations

from typing import Any

import click

from annotate.batch_plan import DRAWS, BatchPlan, plan_draw
from annotate.cli._named import BatchName, open_command, with_study
from judge.commands import command
from judge.console import emit_json, json_option, note, print_lines
from judge.document.terminal import emit_rows, print_result, show_blocks
from judge.errors import UsageError
from judge.store import Store

allow_option = click.option(
    "--allow-exposed", is_flag=True, help="Allow annotators who saw labels or answer keys."
)


class Share(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A share of a whole, written as 5% or 0.05."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert the text to a number from 0 to 1."""
        if isinstance(value, float):
            return value
        try:
            text = str(value).strip()
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            self.fail(f"'{value}' is not a share: write 5% or 0.05", param, ctx)
        return share


@click.group()
def batches() -> None:
    """Draw, show, assign, extend and close batches."""


@batches.command("new")
@click.argument("name")
@click.argument("task_name", metavar="TASK")
@click.option("-n", "n", type=click.IntRange(min=1), help="Number of units to draw.")
@click.option("--annotators", required=True, metavar="A,B,C", help="Annotators to assign units to.")
@click.option("--overlap", type=click.IntRange(min=1), help="Number of annotators per unit (default: all).")
@click.option(
    "--by",
    type=click.Choice(["label", "dataset", "confidence"]),
    help="Stratify the draw proportionally by this field.",
)
@click.option("--by-question", type=click.IntRange(min=1), metavar="N", help="Draw N whole questions.")
@click.option(
    "--draw", type=click.Choice(DRAWS), help="Draw unequally. The verdict does not use such a draw."
)
@click.option("--run", metavar="RUN", help="Judge run for --by, --draw and --reveal.")
@click.option("--where", metavar="SQL", help="Draw only units that match this SQL condition.")
@click.option(
    "--units-of",
    metavar="RUN",
    help="Draw only units that this run was asked about, also failed and refused ones.",
)
@click.option("--seed", type=int, default=0, help="Random seed of the draw.")
@click.option(
    "--repeats",
    type=Share(),
    default="0",
    show_default=False,
    help="Share of units to show again later, e.g. 5%.",
)
@click.option("--training", default=0, show_default=False, help="Number of training units with feedback.")
@click.option("--pass-mark", type=Share(), default="80%", help="Minimum accuracy on the training units.")
@click.option(
    "--attention",
    type=Share(),
    default="0",
    show_default=False,
    help="Share of hidden checks with gold labels, e.g. 3%.",
)
@click.option("--fresh", is_flag=True, help="Draw only units that these annotators did not label.")
@click.option("--reveal", is_flag=True, help="Show the judge's label after each answer.")
@click.option(
    "--looks",
    # Other numbers of looks would need boundaries that were not simulated.
    type=click.IntRange(1, 1),
    metavar="1",
    help="Compute the verdict only once, at the end.",
)
@click.option("--until-decided", is_flag=True, help="Draw blocks until the verdict is decided, up to -n.")
@click.option("--judges", metavar="RUN,RUN", help="Judge runs that the batch tests, at most five.")
@allow_option
@with_study
@json_option
def new(
    name: str,
    task_name: str,
    annotators: str,
    draw: str | None,
    run: str | None,
    judges: str | None,
    until_decided: bool,
    units_of: str | None,
    store: Store,
    as_json: bool,
    **options: Any,
) -> None:
    """Draw units for TASK as batch NAME, and assign them.

    \b
    annotate batches new pilot stance -n 300 --seed 17 --annotators alice,bob,carol --overlap 3
    annotate batches new mirage mirage_support --by-question 100 -n 500 --annotators a,b,c

    \b
    --draw equal-parts  with --by: the same number from each stratum, to find rare labels
           least-sure   the units that the judge is least sure of, to train a judge
           ppi          uncertain units more often, for narrower corrected intervals
           route        the units that judge route left to people (--run names the route)

    A judge's verdict is computed at 100, 200, 300, 450, 650 and 1,000 labelled units. --looks 1 computes it
    only once, at the end of the batch. With --until-decided, units are drawn in blocks until the verdict is
    decided. To draw the next block, use annotate batches extend.

    By default, --run and --judges are the newest run of the task. The batch tests only the judges that
    --judges names, at most five, and they share one error rate. If the task has no run yet, the first run
    that is made is tested. With --reveal, annotators can keep or revise their labels. The --where condition
    can use the columns of unit_texts.

    Units from an earlier equal-probability draw on the same questions are not drawn again. Other units can be
    drawn again. Earlier labels by the same annotators are then reused. The weight of each unit is stored and
    exported. With --allow-exposed, labels by annotators who saw an answer are stored as assisted.
    """
    from annotate.drawing.batch import new_batch
    from annotate.drawing.eligible import in_run
    from annotate.leading.progress_document import list_strata
    from judge.store.export import find_run, find_task

    people = [a.strip() for a in annotators.split(",") if a.strip()]
    task = find_task(store, task_name)
    # Runs are stored by id, because `last` may later mean a different run.
    runs = [find_run(store, r.strip())["run_id"] for r in judges.split(",") if r.strip()] if judges else []
    if units_of is not None:
        if options["where"] is not None:
            raise UsageError("--units-of and --where both choose the units to draw from: omit one of them")
        options["where"] = in_run(find_run(store, units_of)["run_id"])
    plan = BatchPlan(name, people, judges=runs, **plan_draw(draw, run), **options)
    # The first block; later ones are opened by `next_block`.
    made = new_batch(store, task, plan.to_blocks() if until_decided else plan)
    if as_json:
        emit_json("batch-new", {s: getattr(made, s) for s in made.__slots__ if s != "notes"})
        return
    note(
        f"batch '{name}' on {made.task}: {made.units} of {made.frame} units ({made.questions} questions), "
        f"{made.training} training units, {made.attention} attention checks"
    )
    show_blocks(list_strata(made.strata))
    for line in made.notes:
        note(line)
    for person, count in made.positions.items():
        note(f"{person}: {count} to label; to start: {open_command(name, person, store.path)}")


@batches.command("show")
@click.argument("name", required=False)
@click.option("--guidelines", is_flag=True, help="Print questions, labels and guidelines as Markdown.")
@with_study
@json_option
def show(name: str | None, guidelines: bool, store: Store, as_json: bool) -> None:
    """List the batches, or show the progress of one batch.

    The output shows each annotator's progress, speed and check results, and the agreement so far. It never
    shows labels.
    """
    from annotate.guidelines import markdown
    from annotate.leading.progress import show_batch
    from annotate.leading.progress_document import as_document
    from annotate.sitting.desk import batch_info

    if name is None:
        if guidelines:
            raise UsageError("--guidelines requires the name of a batch")
        _list(store, as_json)
        return
    if guidelines:
        print_lines(markdown(batch_info(store, name).task))
        return
    document = show_batch(store, name)
    print_result("batch", document, as_document(document), as_json)


def _list(store: Store, as_json: bool) -> None:
    from annotate.leading.progress import list_batches

    rows = list_batches(store)
    if not as_json:
        rows = [
            {**r, "annotators": ", ".join(r["annotators"]), "closed": (r["closed"] or "")[:10]} for r in rows
        ]
    columns = ["batch", "task", "purpose", "units", "annotators", "positions", "done", "closed"]
    emit_rows("batches", rows, columns, as_json)


@batches.command("close")
@click.argument("name", cls=BatchName)
@click.option("--undo", is_flag=True, help="Reopen the batch.")
@click.option("--note", "reason", help="Reason to store with the change.")
@with_study
def close(name: str, undo: bool, reason: str | None, store: Store) -> None:
    """Close the batch NAME, so that nobody can label it."""
    from annotate.leading.lead import close_batch, reopen_batch

    if undo:
        reopen_batch(store, name, reason)
        note(f"batch '{name}' is open again")
        return
    close_batch(store, name, reason)
    labels = command("annotate export", name, "--labels", "-o", f"{name}.csv")
    note(f"batch '{name}' is closed; its labels: {labels}")
