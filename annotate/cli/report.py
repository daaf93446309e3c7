"""annotate report: report how far a judge can be trusted, as a page, Markdown, JSON, CSV or LaTeX."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from annotate.cli._source import LabelSource, as_one, names, reference_option, source_options
from annotate.cli._targets import ENDINGS, check_targets, write
from judge.console import json_option, note, parse_named_number
from judge.errors import UsageError
from judge.gates import Files, Gate, decide, output_option
from judge.store import Store
from judge.types import Measure, attributes

if TYPE_CHECKING:
    from annotate.report.model import ReportDocument, Ruling

VERDICTS = {"trust": ("trust",), "part": ("trust", "trust in part")}
"""A map from each value of --fail-under verdict=VALUE to the verdicts that pass."""
MEASURES = ("pooled_kappa", "pooled_kappa_difference", "cohen_kappa")


@dataclass(frozen=True, slots=True)
class ReportAsked:
    """The options of `annotate report`."""

    source: LabelSource
    reference: str | None
    epsilon: str
    margin: float
    threshold: float
    least_others: int
    fail_under: tuple[str, ...]
    view: str | None
    is_short: bool
    output: Files
    as_json: bool


@click.command()
@source_options
@reference_option
@click.option(
    "--epsilon",
    default="expert",
    metavar="X",
    help="Advantage for the judge in the alternative annotator test.",
)
@click.option(
    "--margin",
    default=-0.1,
    type=click.FloatRange(-1, 1),
    show_default="-0.1",
    metavar="X",
    help="Non-inferiority margin.",
)
@click.option(
    "--threshold",
    default=0.667,
    type=click.FloatRange(-1, 1),
    metavar="X",
    help="Minimum agreement, if there is only one source of labels.",
)
@click.option(
    "--least-others",
    type=click.IntRange(1, 2),
    default=1,
    metavar="1|2",
    help="Minimum number of other people per unit.",
)
@click.option(
    "--fail-under",
    multiple=True,
    metavar="NAME=X",
    help="Exit with code 5 unless NAME reaches X. Repeatable.",
)
@click.option("--view", metavar="PAGE", help="Link units to this page from annotate view.")
@click.option("--short", "is_short", is_flag=True, help="Write one paragraph and one table (.md, .tex).")
@output_option(*ENDINGS, help="File to write (default: Markdown on stdout).")
@json_option
@as_one(ReportAsked)
def report(arguments: ReportAsked) -> None:
    """Report how far you can trust a judge.

    \b
    annotate report -o report.html
    annotate report --task stance --epsilon crowd -o report.html -o report.json
    annotate view -o page.html && annotate report --view page.html -o report.html
    annotate report --fail-under verdict=trust -o trust.xml -o "$GITHUB_STEP_SUMMARY"
    annotate report votes.csv --judge gpt

    The report covers one field. By default, this is the first field of the task that a judge and another
    annotator labelled. With a TABLE (CSV, TSV, JSON, JSONL or Parquet, also .gz), no study is needed. The
    columns of the TABLE are recognised as in annotate agreement.

    The verdict follows the rule in docs/verdict.md. With several human annotators, it compares the judge's
    agreement with them to their agreement with each other (--margin). It also tests each label, and whether
    the judge is better than chance. With three or more human annotators, the alternative annotator test is
    added. With only one human annotator, or only gold labels, the agreement must reach --threshold.

    --epsilon is the advantage that the alternative annotator test gives the judge, because human labels cost
    more. Use expert (0.2), skilled (0.15), crowd (0.1) or a number. --least-others 1 follows the code of the
    test's authors, and 2 follows their paper.

    --fail-under accepts verdict=trust, verdict=part (a verdict of trust also passes), or a minimum value
    of a measure. The measures are pooled_kappa, pooled_kappa_difference and cohen_kappa (one source of labels).
    The report is written even if the check fails. A run without any label on the units that others labelled
    is checked only if --judge names it, or if no run has labels.

    \b
    Formats of -o FILE:
      .html  one page that needs no network      .md    Markdown
      .tex   LaTeX tables (booktabs) for \\input  .json  adjudge/report/1
      .csv   all tables, with one cell per row   .xml   pass/fail checks (JUnit)
    If FILE has no extension, the pass/fail checks are appended to it as Markdown.
    """
    from annotate.report import FORMATS, SHORT, ReportOptions, build, build_table, shorten_document
    from judge.document.terminal import show
    from judge.stats.alternative import epsilon_of

    wanted, limits = _limits(arguments.fail_under)
    source = arguments.source
    source.check()
    epsilon, named = epsilon_of(arguments.epsilon)
    options = ReportOptions(
        **attributes(source, "task", "field", "batch"),
        **attributes(arguments, "reference", "margin", "threshold", "least_others", "view"),
        runs=source.judges,
        annotators=names(source.annotators),
        level=source.level.level,
        order=source.level.order,
        epsilon=epsilon,
        epsilon_name=named,
    )
    # Before anything is computed: a path that cannot be written would waste the work.
    check_targets(arguments.output, source.table or source.db)
    forms = {path: ENDINGS[path.suffix.lower()] for path in arguments.output.pages}
    renderers = SHORT if arguments.is_short else FORMATS
    for name in [*forms.values(), *(["json"] if arguments.as_json else [])]:
        if name not in renderers:
            raise UsageError(f"--short supports md and tex, not {name}")
    if source.table is None:
        with Store.open(source.db, create=False) as store:
            document = build(store, options)
    else:
        document = build_table(source.read_panel(probabilities=True), options)
    written = shorten_document(document) if arguments.is_short else document
    write({path: renderers[name](written) for path, name in forms.items()})
    if not (arguments.as_json or forms or arguments.is_short) and sys.stdout.isatty():
        # A whole report is too long to be read on a terminal.
        show(replace(document, sections=[s for s in document.sections if s.leading]))
        note("for the whole report, use -o report.html; a pipe gets it as Markdown")
    else:
        if arguments.as_json or not forms:
            sys.stdout.write(renderers["json" if arguments.as_json else "md"](written))
        for ruling in document.rulings:
            # On stderr, because stdout may be the report itself.
            note(ruling.sentence)
        if document.no_verdict:
            note(document.no_verdict)
    if forms:
        note(f"written: {', '.join(map(str, forms))}")
    decide(
        document.title,
        _gates(document, limits, wanted, named=bool(source.judges or source.annotators)),
        arguments.output,
    )


def _limits(typed: tuple[str, ...]) -> tuple[str, list[tuple[str, float]]]:
    """Parse --fail-under into the minimum verdict and pairs (measure, minimum). An empty verdict means that any
    verdict passes. Raises UsageError for an invalid value.
    """
    verdict, limits = "", []
    for text in typed:
        name, _, number = text.partition("=")
        if name == "verdict" and number in VERDICTS:
            verdict = number
            continue
        form = f"verdict=trust, verdict=part or MEASURE=0.6; measures are {', '.join(MEASURES)}"
        if name not in MEASURES:
            raise UsageError(f"--fail-under {text}: write it as {form}")
        limits.append(parse_named_number(text, "--fail-under", form))
    return verdict, limits


def _gates(
    document: ReportDocument, limits: list[tuple[str, float]], verdict: str, *, named: bool
) -> list[Gate]:
    """Return one gate, a condition that passes or fails, for each judge and limit.

    `named` is true if the user named the judges.
    """
    # A run without any label, such as a failed attempt, must not fail the build of another judge. If there is no other
    # judge, or the user named the run, the build depends on it.
    rulings = [r for r in document.rulings if named or not r.no_labels] or document.rulings
    good = VERDICTS.get(verdict, ())
    wanted = " or ".join(good)
    gates = []
    if verdict:
        # A judge that the batch does not test has only estimates, and must not fail the build of the tested judge.
        tested = [r for r in rulings if named or r.is_tested] or rulings
        for r in tested:
            # Labels in conflict keep a verdict undecided, which the log of a build should explain.
            conflicts = f" ({r.conflicts} labels in conflict)" if r.conflicts else ""
            gates.append(
                Gate(
                    f"{r.judge}: {wanted}",
                    r.decision in good,
                    f"{r.judge}: {'no labels' if r.no_labels else r.decision}{conflicts}",
                )
            )
        if document.no_verdict:
            # A report without a verdict fails, because the build asked for one.
            gates.append(Gate(wanted, False, document.no_verdict.rstrip(".")))
    for name, least in limits:
        for ruling in rulings:
            measures = _list_measures(ruling)
            measure = next((m for m in measures if m.measure == name), None)
            title, of = f"{name} of {ruling.judge} >= {least:g}", f"{name} of {ruling.judge}"
            # The build depends on a number that this kind of verdict does not have.
            if measure is None:
                available = ", ".join(key for key in MEASURES if key in {m.measure for m in measures})
                instead = f"; available: {available}" if available else ""
                gates.append(Gate(title, False, f"{of} is not in this verdict{instead}"))
            elif measure.value is None:
                gates.append(Gate(title, False, f"{of} is undefined: {measure.reason}"))
            else:
                passed = measure.value >= least
                sign = ">=" if passed else "<"
                gates.append(Gate(title, passed, f"{of} is {measure.value:.4f} {sign} {least:g}"))
        if not rulings:
            gates.append(Gate(f"{name} >= {least:g}", False, f"{name}: there is no verdict"))
    return gates


def _list_measures(ruling: Ruling) -> list[Measure]:
    """Return the measures that decide the verdict, followed by the measures in the table next to the verdict."""
    rows = ruling.numbers.rows if ruling.numbers is not None else ()
    measures = (value for row in rows for value in row if isinstance(value, Measure))
    # The table also has the agreement among people, which says nothing about the judge.
    return [*ruling.measures, *(m for m in measures if ruling.judge in (m.annotators or ()))]
