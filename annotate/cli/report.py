"""annotate report: how far a judge can be trusted, as a page, Markdown, JSON, CSV or LaTeX."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotate.cli._source import (
    LabelSource,
    as_one,
    least_others_option,
    names,
    reference_option,
    source_options,
)
from annotate.cli._targets import FORMATS as NAMES
from annotate.cli._targets import targets, write
from judge.console import TO_WRITE, note, visible
from judge.errors import UsageError
from judge.gates import Gate, GateFiles, decide, gate_options
from judge.store import Store

if TYPE_CHECKING:
    from annotate.report.model import Document

MEASURES = ("pooled_kappa", "pooled_kappa_difference", "cohen_kappa")


@dataclass(frozen=True, slots=True)
class ReportAsked:
    """What the command is asked for."""

    source: LabelSource
    reference: str | None
    epsilon: str
    margin: float
    threshold: float
    least_others: int
    require_trust: bool
    allow_part: bool
    fail_under: tuple[str, ...]
    junit: Path | None
    summary: Path | None
    curve: bool
    limit: int
    view: str | None
    is_short: bool
    outputs: tuple[Path, ...]
    form: str | None


@click.command()
@source_options
@click.option(
    "--probabilities",
    metavar="COLUMN",
    help='Table: the column with the judge\'s probabilities for its labels, as in {"yes": 0.8, "no": 0.2}.',
)
@reference_option
@click.option(
    "--epsilon",
    default="expert",
    metavar="X",
    help="Alt-test (three people or more): how much oftener than the judge a person may be the nearer one to the others, for "
    "what a person costs: expert (0.2), skilled (0.15), crowd (0.1), or a number.",
)
@click.option(
    "--margin",
    default=-0.1,
    type=click.FloatRange(-1, 1),
    help="Two people or more: how far the judge's agreement with people may lie below theirs with each other.",
)
@click.option(
    "--threshold",
    default=0.667,
    type=click.FloatRange(-1, 1),
    help="One person or gold only: the agreement that is enough.",
)
@least_others_option
@click.option(
    "--require-trust",
    is_flag=True,
    help="Exit 5 unless every judge's verdict is trust; the report is written in any case.",
)
@click.option("--allow-part", is_flag=True, help="With --require-trust: trust in part will do.")
@click.option(
    "--fail-under",
    multiple=True,
    metavar="MEASURE=X",
    help="Exit 5 when a measure of the verdict (pooled_kappa, pooled_kappa_difference; cohen_kappa against one source) is "
    "below X or undefined; repeatable.",
)
@gate_options
@click.option(
    "--curve",
    is_flag=True,
    help="Add the verdict over margin and epsilon (one source of labels: over the threshold), as a drawing and a table.",
)
@click.option(
    "--limit",
    default=50,
    type=click.IntRange(0),
    help="Most disagreements listed for each judge.",
)
@click.option(
    "--view",
    metavar="PAGE",
    help="Link the units listed to this page of annotate view, as seen from the report (html, md).",
)
@click.option(
    "--short",
    "is_short",
    is_flag=True,
    help="A paper's paragraph and one table, each number with n (md, tex).",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=TO_WRITE,
    help="File; may be given several times. Default: Markdown on stdout.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(NAMES),
    help="Format; default: by the suffix of -o. Not for a suffix that says another.",
)
@as_one(ReportAsked)
def report(asked: ReportAsked) -> None:
    """Report how far the judge of one field can be trusted, with every number behind it.

    \b
    annotate report -o report.html
    annotate report --task stance --epsilon crowd -o report.html -o report.json
    annotate report --task stance --format md | less
    annotate view -o page.html && annotate report --view page.html -o report.html
    annotate report votes.csv --unit unit --annotator who --label label --cluster question --judge gpt

    The field is the task's first that a judge and somebody else labelled, or --field. With a TABLE (CSV, TSV, JSON, JSONL,
    Parquet; .gz too; the options of annotate agreement) there is no study: nothing is kept but the report.

    The verdict follows a printed rule (docs/verdict.md): the judge's agreement with people against theirs with each
    other (--margin), better than guessing, the alternative annotator test with three people or more (--epsilon), label by
    label; one person, or gold only: agreement against a threshold (--threshold).

    \b
    html   one self-contained page: no network, prints well
    md     Markdown                 tex    LaTeX tables (booktabs), for \\input
    json   adjudge/report/1         csv    all tables as one long table, one row a cell
    """
    from annotate.report import FORMATS, SHORT, ReportOptions, build, build_table, short
    from judge.stats.alternative import epsilon_of

    if asked.allow_part and not asked.require_trust:
        raise UsageError("--allow-part goes with --require-trust")
    limits = _limits(asked.fail_under)
    source, form, outputs = asked.source, asked.form, asked.outputs
    study = source.table is None
    source.check()
    epsilon, named = epsilon_of(asked.epsilon)
    options = ReportOptions(
        task=source.task,
        field=source.field,
        runs=source.runs,
        batch=source.batch,
        reference=asked.reference,
        epsilon=epsilon,
        epsilon_name=named,
        margin=asked.margin,
        threshold=asked.threshold,
        least_others=asked.least_others,
        clustered=source.cluster.in_alt_test,
        limit=asked.limit,
        curve=asked.curve,
        annotators=names(source.annotators),
        level=source.level,
        order=names(source.order),
        view=asked.view,
    )
    forms = targets(outputs, form, source.table or source.db)
    renderers = SHORT if asked.is_short else FORMATS
    for name in [*forms.values(), form or "md"]:
        if name not in renderers:
            raise UsageError(f"--short is md or tex, not {name}")
    if study:
        with Store.open(source.db, create=False) as store:
            document = build(store, options)
    else:
        document = build_table(source.read(), options)
    written = short(document) if asked.is_short else document
    write({path: renderers[name](written) for path, name in forms.items()})
    if not outputs:
        sys.stdout.write(renderers[form or "md"](written))
    for ruling in document.rulings:
        note(ruling.sentence)
    if document.no_ruling:
        note(document.no_ruling)
    if outputs:
        note(f"written: {', '.join(visible(str(path)) for path in outputs)}")
    gates = _gates(document, limits, asked.require_trust, asked.allow_part)
    decide(document.title, gates, GateFiles(asked.junit, asked.summary))


def _limits(typed: tuple[str, ...]) -> list[tuple[str, float]]:
    """--fail-under as (measure, least). Raises UsageError for what is not MEASURE=X."""
    limits = []
    for text in typed:
        name, _, number = text.partition("=")
        try:
            least = float(number)
        except ValueError:
            least = math.nan
        if name not in MEASURES or not math.isfinite(least):
            raise UsageError(
                f"--fail-under {text}: write it as MEASURE=0.6; measures are {', '.join(MEASURES)}"
            )
        limits.append((name, least))
    return limits


def _gates(
    document: Document, limits: list[tuple[str, float]], require_trust: bool, allow_part: bool
) -> list[Gate]:
    """One gate for each judge and condition; a report without a verdict fails each of them."""
    good = ("trust", "trust in part") if allow_part else ("trust",)
    wanted = " or ".join(good)
    gates = []
    if require_trust:
        for r in document.rulings:
            conflicts = f" ({r.conflicts} labels in conflict)" if r.conflicts else ""
            gates.append(
                Gate(f"{r.judge}: {wanted}", r.decision in good, f"{r.judge}: {r.decision}{conflicts}")
            )
        if document.no_ruling:
            gates.append(Gate(wanted, False, document.no_ruling.rstrip(".")))
    for name, least in limits:
        for ruling in document.rulings:
            measure = next((m for m in ruling.measures if m.measure == name), None)
            title, of = f"{name} of {ruling.judge} >= {least:g}", f"{name} of {ruling.judge}"
            if measure is None:
                gates.append(Gate(title, False, f"{of} is not in this verdict"))
            elif measure.value is None:
                gates.append(Gate(title, False, f"{of} is undefined: {measure.reason}"))
            else:
                passed = measure.value >= least
                sign = ">=" if passed else "<"
                gates.append(Gate(title, passed, f"{of} is {measure.value:.4f} {sign} {least:g}"))
        if not document.rulings:
            gates.append(Gate(f"{name} >= {least:g}", False, f"{name}: there is no verdict"))
    return gates
