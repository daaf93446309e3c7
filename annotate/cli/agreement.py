"""annotate agreement: compute the agreement between annotators, in a study or in any table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from annotate.cli._source import LabelSource, as_one, reference_option, source_options
from judge.console import emit_json, json_option, notes
from judge.document.csv import csv_text
from judge.errors import UsageError
from judge.gates import Files, Gate, decide, output_option
from judge.types import Json

if TYPE_CHECKING:
    from annotate.agreement.one_field import Agreement
    from judge.stats.bootstrap import IntervalOptions

COLUMNS = (
    *("field", "measure", "weights", "level", "annotators", "value", "low", "high", "confidence"),
    *("n_units", "n_clusters", "coverage", "reason"),
)


EXTRAS = ("per_class", "dawid_skene", "alt_test")
"""The values of --measure that are not coefficients. Each of them adds a table to the output."""
EPSILON = 0.2
"""The epsilon that the alternative annotator test uses for experts. `annotate report` supports other values,
and computes the verdict.
"""


@dataclass(frozen=True, slots=True)
class AgreementAsked:
    """The options of `annotate agreement`."""

    source: LabelSource
    measures: tuple[str, ...]
    reference: str | None
    interval: Literal["bca", "percentile", "none"]
    confidence: float
    fail_under: tuple[str, ...]
    on: Literal["value", "lower"]
    output: Files
    as_json: bool


@click.command()
@source_options
@click.option(
    "--measure", "measures", multiple=True, metavar="NAME", help="Compute only this measure. Repeatable."
)
@reference_option
@click.option(
    "--interval",
    type=click.Choice(["bca", "percentile", "none"]),
    default="bca",
    help="Method for the bootstrap intervals.",
)
@click.option("--confidence", default=0.95, help="Confidence level of the intervals.")
@click.option(
    "--fail-under",
    multiple=True,
    metavar="MEASURE=X",
    help="Exit with code 5 if MEASURE is below X or undefined.",
)
@click.option(
    "--on",
    type=click.Choice(["value", "lower"]),
    default="value",
    help="Compare the value, or its lower bound.",
)
@output_option(".csv", help="Write tables (.csv) or pass/fail checks (.xml, .md) to FILE.")
@json_option
@as_one(AgreementAsked)
def agreement(options: AgreementAsked) -> None:
    """Compute the agreement between people, judges and gold labels.

    The labels come from the study, or from a TABLE (CSV, TSV, JSON, JSONL or Parquet, also .gz).

    \b
    annotate agreement --field stance
    annotate agreement votes.csv --judge gpt
    annotate agreement wide.csv --annotators ann,bob,cyd --level ordinal:low,mid,high
    annotate agreement --task stance --judge last --fail-under cohen_kappa=0.6 --on lower

    Columns are recognised by common names, such as 'unit', 'annotator', 'label' and 'question'. An empty cell
    is a missing label. Any other text, even "nan", is a label. The annotators 'gold' and 'adjudicated' are
    reference labels. If a measure is undefined, the output gives the reason.

    \b
    --measure accepts percent, cohen_kappa[:linear|:quadratic], fleiss_kappa,
    krippendorff_alpha, gwet_ac1, gwet_ac2[:linear], pabak, and these extra tables:
      per_class    precision, recall and F1 of each judge for each label
      dawid_skene  estimated true label shares, and each annotator's accuracy
      alt_test     the alternative annotator test for experts (arXiv 2501.10970)

    By default, --fail-under checks each judge's agreement with the reference. To check the agreement between
    two annotators, use cohen_kappa:ann,bob=0.6. For all human annotators, use fleiss_kappa:people=0.6. For
    all annotators, use fleiss_kappa:all=0.6.
    """
    from annotate.agreement.document import as_document
    from annotate.agreement.extras import Extras
    from annotate.agreement.one_field import analyse, check_measures
    from annotate.cli import _thresholds as thresholds
    from judge.document.terminal import show
    from judge.labels.reference import resolve

    how: IntervalOptions = {
        "interval": None if options.interval == "none" else options.interval,
        "confidence": options.confidence,
    }
    coefficients = [name for name in options.measures if name not in EXTRAS]
    # Before the labels are read, so that a wrong name is reported at once.
    check_measures(coefficients)
    limits = thresholds.parse(options.fail_under)
    if options.on == "lower" and how["interval"] is None:
        raise UsageError("--on lower requires intervals: omit --interval none")
    results = [
        analyse(
            panel,
            resolve(panel, options.reference),
            names=coefficients or None,
            per_class="per_class" in options.measures,
            **how,
        )
        for panel in options.source.panels()
    ]
    epsilon = EPSILON if "alt_test" in options.measures else None
    extras = [Extras(result.panel, how, epsilon, "dawid_skene" in options.measures) for result in results]
    checked, passed_over = thresholds.check(
        [(r.panel, r.reference) for r in results],
        limits,
        options.on,
        named=bool(options.source.judges or options.source.annotators),
        **how,
    )
    measures = [m.as_json() for r in results for m in r.measures]
    for path in options.output.pages:
        path.write_text(csv_text([_flatten(row) for row in measures], COLUMNS), encoding="utf-8")
    if options.as_json:
        emit_json(
            "agreement",
            {
                "source": str(options.source),
                "measures": measures,
                "fields": [{**_field(r), **e.as_json()} for r, e in zip(results, extras, strict=True)],
                "thresholds": [c.as_json() for c in checked],
            },
        )
    else:
        show(*(as_document(r, list(e.sections())) for r, e in zip(results, extras, strict=True)))
    # The user must be told if a limit leaves out a field.
    notes(passed_over)
    gates = [Gate(f"{check.limit.typed} ({check.on})", check.passed, check.why) for check in checked]
    decide(f"annotate agreement of {options.source}", gates, options.output)


def _field(result: Agreement) -> dict[str, Json]:
    panel, reference = result.panel, result.reference
    return {
        "field": panel.field,
        "task": None if panel.task is None else panel.task.name,
        "level": panel.level,
        # There may be thousands of different numbers.
        "labels": None if panel.are_scores else list(panel.domain),
        "n_units": panel.ratings.n_units,
        "n_clusters": panel.ratings.n_clusters,
        "annotators": [
            {
                "annotator": name,
                "kind": panel.kind(name),
                "n_labels": int(panel.has_label(name).sum()),
                "shares": result.shares.get(name),
            }
            for name in panel.table.annotators
        ],
        "reference": None if reference is None else reference.name,
        "groups": [{"title": block.title, "annotators": list(block.annotators)} for block in result.groups],
        "pair_summaries": [
            {"title": many.title, **many.pairs.summary(key)}
            for many in result.many
            for key in many.pairs.values
        ],
        "judges_compared": [
            {
                "first": c.first,
                "second": c.second,
                "p": c.p_value,
                "p_holm": c.adjusted,
                "difference": c.difference.as_json(),
            }
            for c in result.compared
        ],
        "confusions": [
            {
                "reference": matrix.reference,
                "predicted": matrix.predicted,
                "labels": list(matrix.labels),
                "matrix": matrix.matrix.tolist(),
                "n_asked": matrix.n_asked,
                "shares": None if matrix.shares is None else matrix.shares.tolist(),
            }
            for matrix in result.confusions
        ],
        "conflicts": sum(panel.conflicts.values()),
        "notes": list(dict.fromkeys(result.notes)),
    }


def _flatten(row: dict[str, Any]) -> dict[str, Any]:
    # With all digits, because others compute with the values of the table.
    whole = {k: repr(v) if isinstance(v, float) else v for k, v in row.items()}
    # Names may contain commas.
    return {**whole, "annotators": " | ".join(row["annotators"] or [])}
