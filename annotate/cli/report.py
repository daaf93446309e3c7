"""annotate report: how far a judge can be trusted, as a page, Markdown, JSON, CSV or LaTeX."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from annotate.cli._targets import FORMATS, targets, write
from judge.console import db_option, note, visible
from judge.errors import Exit, UsageError
from judge.labels.words import HELP

EPSILON = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}


@click.command()
@click.option(
    "--task", help="The task, as in stance or stance.v1; needed when the study has labels of several."
)
@click.option("--field", help="The field; default: the task's first that a judge and somebody else labelled.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="RUN",
    help="A judge run (id, its end, or last); default: all of the field.",
)
@click.option("--batch", help="Only the labels of this annotation batch.")
@click.option(
    "--reference",
    metavar="NAME",
    help=f"What judges are held against: {HELP}. Default: decided, else gold, else majority.",
)
@click.option(
    "--epsilon",
    default="expert",
    show_default=True,
    metavar="X",
    help="Alt-test (three people or more): what a person costs: expert (0.2), skilled (0.15), crowd (0.1), or a number.",
)
@click.option(
    "--margin",
    default=-0.1,
    show_default=True,
    type=click.FloatRange(-1, 1),
    help="Two people: how much worse than they agree the judge may agree with them.",
)
@click.option(
    "--threshold",
    default=0.667,
    show_default=True,
    type=click.FloatRange(-1, 1),
    help="One person or gold only: the agreement that is enough.",
)
@click.option(
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(0),
    help="Most disagreements listed for each judge.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File; may be given several times. Default: Markdown on stdout.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format; default: by the suffix of -o. Not for a suffix that says another.",
)
@db_option
def report(
    task: str | None,
    field: str | None,
    runs: tuple[str, ...],
    batch: str | None,
    reference: str | None,
    epsilon: str,
    margin: float,
    threshold: float,
    limit: int,
    outputs: tuple[Path, ...],
    form: str | None,
    db: Path,
) -> int:
    """Report how far the judge of one field can be trusted, with every number behind it.

    \b
    annotate report -o report.html
    annotate report --task stance --epsilon crowd -o report.html -o report.json
    annotate report --task stance --format md | less

    The verdict follows a printed rule: three people or more, the alternative annotator test; two, the judge's
    agreement with them against theirs; one, or gold only, agreement against a threshold.

    \b
    html   one self-contained page: no network, prints well
    md     Markdown                 tex    LaTeX tables (booktabs), for \\input
    json   adjudge/report/1         csv    all tables as one long table, one row a cell
    """
    from annotate.report import FORMATS as RENDERERS
    from annotate.report import Asked, build
    from judge.store import Store

    asked = Asked(
        task=task,
        field=field,
        runs=runs,
        batch=batch,
        reference=reference,
        epsilon=_epsilon(epsilon),
        epsilon_name=epsilon if epsilon in EPSILON else "",
        margin=margin,
        threshold=threshold,
        limit=limit,
    )
    forms = targets(outputs, form, db)
    with Store.open(db, create=False) as store:
        document = build(store, asked)
    write({path: RENDERERS[name](document) for path, name in forms.items()})
    if not outputs:
        sys.stdout.write(RENDERERS[form or "md"](document))
    for ruling in document.rulings:
        note(ruling.sentence)
    if document.no_ruling:
        note(document.no_ruling)
    if outputs:
        note(f"written: {', '.join(visible(str(path)) for path in outputs)}")
    return Exit.DONE


def _epsilon(text: str) -> float:
    try:
        value = EPSILON[text] if text in EPSILON else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"--epsilon {text}: give {', '.join(EPSILON)} or a number from 0 to 1")
    return value
