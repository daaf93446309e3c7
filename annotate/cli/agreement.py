"""annotate agreement: who agrees with whom, on a study or on any table."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from annotate.cli._source import LabelSource, as_one, least_others_option, reference_option, source_options
from judge.console import emit_json, emit_rows, notes, output_options
from judge.errors import UsageError
from judge.gates import Gate, GateFiles, decide, gate_options
from judge.types import Json

if TYPE_CHECKING:
    from annotate.agreement.one_field import Agreement
    from judge.stats.bootstrap import How

COLUMNS = (
    *("field", "measure", "weights", "level", "annotators", "value", "low", "high", "confidence"),
    *("n_units", "n_clusters", "coverage", "reason"),
)


@dataclass(frozen=True, slots=True)
class AgreementAsked:
    """What the command is asked for."""

    source: LabelSource
    names: tuple[str, ...]
    no_pairwise: bool
    reference: str | None
    per_class: bool
    dawid_skene: bool
    alt_test: bool
    epsilon: float
    least_others: int
    interval: Literal["bca", "percentile", "none"]
    confidence: float
    replicates: int
    seed: int
    fail_under: tuple[str, ...]
    on: Literal["value", "lower"]
    junit: Path | None
    summary: Path | None
    as_json: bool
    as_csv: bool


@click.command()
@source_options
@click.option(
    "--measure",
    "names",
    multiple=True,
    help="Only these: percent, cohen_kappa[:linear|:quadratic], fleiss_kappa, krippendorff_alpha, gwet_ac1, "
    "gwet_ac2[:linear], pabak; repeatable.",
)
@click.option("--no-pairwise", is_flag=True, help="Leave out the pairs of single annotators.")
@reference_option
@click.option("--per-class", is_flag=True, help="Precision, recall and F1 of each judge, label by label.")
@click.option(
    "--dawid-skene", is_flag=True, help="Latent labels: prevalences, and each annotator's accuracy."
)
@click.option("--alt-test", is_flag=True, help="May the judge stand in for an annotator? (arXiv 2501.10970)")
@click.option("--epsilon", default=0.2, help="Alt-test: 0.2 experts, 0.15 skilled, 0.1 crowd.")
@least_others_option
@click.option(
    "--interval",
    type=click.Choice(["bca", "percentile", "none"]),
    default="bca",
    help="Bootstrap intervals; questions are resampled where there are any.",
)
@click.option("--confidence", default=0.95)
@click.option("--replicates", default=2000)
@click.option("--seed", default=0)
@click.option(
    "--fail-under",
    multiple=True,
    metavar="MEASURE[:A,B]=X",
    help="Exit 5 when it is below X or undefined; without A,B: each judge with the reference. Also :people, :all.",
)
@click.option(
    "--on",
    type=click.Choice(["value", "lower"]),
    default="value",
    help="--fail-under looks at the value, or at the interval's lower bound.",
)
@gate_options
@output_options
@as_one(AgreementAsked)
def agreement(asked: AgreementAsked) -> None:
    """How far annotators agree: people, judges, gold; on the study, or on any TABLE (CSV, TSV, JSON, JSONL, Parquet; .gz too).

    \b
    annotate agreement --field stance
    annotate agreement votes.csv --unit unit --annotator who --label label --cluster question --judge gpt
    annotate agreement wide.csv --unit id --annotators ann,bob,cyd --level ordinal --order low,mid,high
    annotate agreement --task stance --run last --fail-under cohen_kappa=0.6 --on lower

    Cells are text: "nan" is a label, an empty cell is a missing one. Annotators of a table called gold or
    adjudicated are references. An undefined value comes with its reason.
    """
    from annotate.agreement.one_field import analyse, check_measures
    from annotate.cli import _thresholds as thresholds
    from annotate.cli._extras import AltTestAsked, Extras
    from judge.labels.reference import resolve

    how: How = {
        "interval": None if asked.interval == "none" else asked.interval,
        "confidence": asked.confidence,
        "replicates": asked.replicates,
        "seed": asked.seed,
    }
    check_measures(asked.names)
    limits = thresholds.parse(asked.fail_under)
    if asked.on == "lower" and how["interval"] is None:
        raise UsageError("--on lower needs intervals: leave out --interval none")
    results = [
        analyse(
            panel,
            resolve(panel, asked.reference),
            names=asked.names or None,
            pairwise=not asked.no_pairwise,
            per_class=asked.per_class,
            **how,
        )
        for panel in asked.source.panels()
    ]
    alt_test = AltTestAsked(asked.epsilon, asked.least_others, asked.source.cluster.in_alt_test)
    extras = [
        Extras(result.panel, how, alt_test if asked.alt_test else None, asked.dawid_skene)
        for result in results
    ]
    checked, passed_over = thresholds.check(
        [(r.panel, r.reference) for r in results], limits, asked.on, **how
    )
    if asked.as_json:
        emit_json(
            "agreement",
            {
                "source": str(asked.source),
                "measures": [m.as_json() for r in results for m in r.measures],
                "fields": [{**_field(r), **e.as_json()} for r, e in zip(results, extras, strict=True)],
                "thresholds": [c.as_json() for c in checked],
            },
        )
    elif asked.as_csv:
        emit_rows(
            "agreement", [_flat(m.as_json()) for r in results for m in r.measures], COLUMNS, False, True
        )
    else:
        from annotate.cli import _show as show

        parts = [part for r, e in zip(results, extras, strict=True) for part in (show.text(r), *e.texts())]
        print("\n\n".join(parts))
    sys.stdout.flush()
    notes(passed_over)
    gates = [Gate(f"{one.limit.typed} ({one.on})", one.passed, one.why) for one in checked]
    decide(f"annotate agreement of {asked.source}", gates, GateFiles(asked.junit, asked.summary))


def _field(result: Agreement) -> dict[str, Json]:
    panel, reference = result.panel, result.reference
    return {
        "field": panel.field,
        "task": None if panel.task is None else panel.task.name,
        "level": panel.level,
        "labels": None if panel.are_scores else list(panel.domain),
        "n_units": panel.ratings.n_units,
        "n_clusters": panel.ratings.n_clusters,
        "annotators": [
            {
                "annotator": name,
                "kind": panel.kind(name),
                "n_labels": int((panel.labels_of(name) >= 0).sum()),
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
                "reference": one.reference,
                "predicted": one.predicted,
                "labels": list(one.labels),
                "matrix": one.matrix.tolist(),
                "n_asked": one.n_asked,
                "shares": None if one.shares is None else one.shares.tolist(),
            }
            for one in result.confusions
        ],
        "conflicts": sum(panel.conflicts.values()),
        "notes": list(dict.fromkeys(result.notes)),
    }


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    whole = {k: repr(v) if isinstance(v, float) else v for k, v in row.items()}
    return {**whole, "annotators": " | ".join(row["annotators"] or [])}
