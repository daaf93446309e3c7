"""judge score: a paper's numbers from the labels that a study has."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judge.console import db_option, emit_json, note, output_options, table, visible
from judge.errors import Exit, UsageError
from judge.suites.paper import Asked, Paper
from judge.suites.papers import PAPERS
from judge.suites.steps import Incomplete

if TYPE_CHECKING:
    from judge.suites.result import Line, Result
    from judge.types import Measure

F = TypeVar("F", bound=Callable[..., Any])
COLUMNS = ("stratum", "measure", "value", "low", "high", "confidence", "n_units", "n_clusters", "coverage")


@click.group()
def score() -> None:
    """A paper's measures from the labels of the study, with intervals over questions.

    \b
    judge score garage
    judge score garage -m openai/gpt-5-mini --by density
    judge score raguard --system openai/gpt-5-mini --json

    Where runs are missing it prints the commands that make them, and exits with 1; judge suite PAPER types them
    for you. What the papers print stands beside: another judge, other answers, other rows.
    """


def rows_options(function: F) -> F:
    """Which rows, whose answers, which parts."""
    for option in (
        click.option("--part", "parts", multiple=True, help="Only this part (several times for several)."),
        click.option("--sample", type=int, metavar="SEED", help="With -n: a random sample of the questions."),
        click.option("-n", "limit", type=click.IntRange(1), help="The first N questions only."),
        click.option("--dataset", help="The data set, when the study has several."),
        click.option("--condition", help="Answers under this condition, when the system has several."),
        click.option("--system", help="Whose answers, when several systems have some."),
    ):
        function = option(function)
    return function


def interval_options(function: F) -> F:
    """How intervals are made."""
    for option in (
        click.option("--seed", default=0, show_default=True, help="Of the bootstrap."),
        click.option(
            "--replicates",
            default=1000,
            show_default=True,
            type=click.IntRange(100),
            help="Resamples of questions.",
        ),
        click.option(
            "--confidence",
            default=0.95,
            show_default=True,
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
            help="Of the intervals.",
        ),
        click.option(
            "--interval",
            default="bca",
            show_default=True,
            type=click.Choice(["bca", "percentile", "none"]),
            help="Kind of bootstrap interval.",
        ),
        click.option(
            "--by", help="Also by stratum: a tag or gold label of the items, dataset, or the paper's own."
        ),
    ):
        function = option(function)
    return function


def paper_options(paper: Paper) -> Callable[[F], F]:
    """The readings between which a paper leaves a choice."""

    def add(function: F) -> F:
        for o in reversed(paper.options):
            kind = click.Choice(o.choices) if o.choices else None
            function = click.option(
                f"--{o.name}", default=o.default, show_default=True, type=kind, help=o.help
            )(function)
        return function

    return add


def asked(paper: Paper, options: Mapping[str, Any]) -> Asked:
    """What the command line asks for. Raises UsageError for options that do not go together."""
    if options["sample"] is not None and options["limit"] is None:
        raise UsageError("--sample goes with -n: how many questions")
    judges = options.get("judges")
    if judges is None and len(options["models"]) > 1:
        raise UsageError(
            "several judges: say how to put them together with --judges mean or --judges majority"
        )
    return Asked(
        models=tuple(options["models"]),
        runs=tuple(options.get("runs", ())),
        system=options["system"],
        condition=options["condition"],
        dataset=options["dataset"],
        limit=options["limit"],
        sample=options["sample"],
        parts=tuple(options["parts"]),
        partial=options.get("partial", False),
        majority=judges == "majority",
        options={o.name: options[o.name.replace("-", "_")] for o in paper.options},
    )


def how(options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of intervals."""
    kind = None if options["interval"] == "none" else options["interval"]
    names = ("confidence", "replicates", "seed")
    return {"interval": kind, **{name: options[name] for name in names}}


def _command(paper: Paper) -> click.Command:
    @click.command(paper.name, help=_help(paper), short_help=paper.title)
    @click.option(
        "-m",
        "--model",
        "models",
        multiple=True,
        help="The judge whose runs are read (several with --judges).",
    )
    @click.option(
        "--run", "runs", multiple=True, help="Take this run for its task (several times for several)."
    )
    @click.option(
        "--judges",
        type=click.Choice(["mean", "majority"]),
        help="Several judges: the mean over them, or their majority.",
    )
    @click.option(
        "--partial", is_flag=True, help="Score what there is: units not judged yet lower the coverage."
    )
    @rows_options
    @paper_options(paper)
    @interval_options
    @db_option
    @output_options
    def command(**options: Any) -> int:
        from judge.store import Store
        from judge.suites.result import score as scored

        with Store.open(options["db"], create=False) as store:
            try:
                found = scored(
                    store,
                    paper,
                    asked(paper, options),
                    judges=options["judges"],
                    by=options["by"],
                    **how(options),
                )
            except Incomplete as missing:
                return tell_missing(missing, paper, options["db"])
        emit(found, options["as_json"], options["as_csv"])
        return Exit.DONE

    return command


def _help(paper: Paper) -> str:
    parts = "\n".join(f"  {part.name:<20} {part.help}" for part in paper.parts)
    return f"{paper.title}.\n\n\b\njudge score {paper.name}\njudge score {paper.name} --part {paper.parts[0].name} --json\n\n\b\nParts:\n{parts}"


def tell_missing(missing: Incomplete, paper: Paper, db: Path) -> int:
    """Print what is missing on stderr, and the commands for it on stdout: they can be piped into a shell."""
    note(f"judge: the score '{paper.name}' is incomplete:")
    for step in missing.steps:
        note(f"  {step.why}")
    note("run these, then ask again (judge suite does both; --partial scores what there is):")
    for step in missing.steps:
        print(visible(step.command(str(db))))
    return Exit.ERROR


def emit(found: Result, as_json: bool, as_csv: bool) -> None:
    """A result as JSON, CSV or tables."""
    if as_json:
        emit_json("score", found.as_json())
    elif as_csv:
        sys.stdout.write(_csv(found))
    else:
        _print(found)


def _csv(found: Result) -> str:
    reasons = list(dict.fromkeys(name for line in found.lines for name in line.missing))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*COLUMNS, "reason", *reasons])
    for line in found.lines:
        m = line.as_json()
        missing = [line.missing.get(name, 0) for name in reasons]
        writer.writerow([*("" if m[c] is None else m[c] for c in COLUMNS), m["reason"] or "", *missing])
    return out.getvalue()


def _print(found: Result) -> None:
    print(visible(found.paper.title))
    print(
        visible(
            f"data set {found.dataset}"
            + (f", system {found.system}, condition {found.condition}" if found.system else "")
        )
    )
    for run in found.runs:
        counts = ", ".join(
            f"{n} {status}" for status, n in sorted(run["counts"].items(), key=lambda c: c[0] != "ok")
        )
        print(visible(f"run {run['run']}: {run['task']} by {run['model']}: {counts}"))
    if found.readings:
        print(visible("readings: " + ", ".join(f"{name} {value}" for name, value in found.readings.items())))
    print()
    stratified = any(line.stratum for line in found.lines)
    print(
        table(
            [
                *(["stratum"] if stratified else []),
                "measure",
                "value",
                _interval(found),
                "units",
                "questions",
                "coverage",
                "no value",
                "papers*",
            ],
            [[*([line.stratum or "all"] if stratified else []), *_row(found, line)] for line in found.lines],
        )
    )
    for text in _notes(found):
        print(visible(f"- {text}"))
    _print_published(found)


def _interval(found: Result) -> str:
    confidence = found.lines[0].measure.confidence if found.lines else 0.95
    return f"{confidence:.0%} interval".replace("%", " %")


def _row(found: Result, line: Line) -> list[Any]:
    m = line.measure
    from judge.suites.result import is_of

    printed = sorted(p.value for p in found.published if is_of(p, m.measure)) if not line.stratum else []
    span = (
        f"{printed[0]:.3f} … {printed[-1]:.3f}"
        if len(printed) > 1
        else f"{printed[0]:.3f}"
        if printed
        else ""
    )
    interval = "" if m.low is None or m.high is None else f"{m.low:.3f} … {m.high:.3f}"
    missing = ", ".join(f"{n} {name}" for name, n in line.missing.items())
    return [
        m.measure,
        "undefined" if m.value is None else f"{m.value:.3f}",
        interval,
        m.n_units,
        m.n_clusters,
        m.coverage,
        missing,
        span,
    ]


def _notes(found: Result) -> list[str]:
    told = [
        f"{line.measure.measure}{f' ({line.stratum})' if line.stratum else ''} is undefined: {line.measure.reason}"
        for line in found.lines
        if line.measure.reason
    ]
    own = [text for line in found.lines for text in line.measure.notes if not _SELDOM.search(text)]
    few = sum(_is_small(line.measure) for line in found.lines)
    small = [
        f"{few} of {len(found.lines)} intervals rest on few units or questions: unreliable, too narrow (--json says which)"
    ]
    return list(dict.fromkeys([*told, *found.notes, *own, *(small if few else [])]))


_SELDOM = re.compile(r"have no value|^only \d+ (units|clusters)")


def _is_small(measure: Measure) -> bool:
    return measure.low is not None and any(text.startswith("only ") for text in measure.notes)


def _print_published(found: Result) -> None:
    """The papers' tables, one row a system and setting."""
    if not found.published:
        return
    print(
        "\n* printed in the papers: ANOTHER judge, other answers and rows; not to be compared as if they were ours"
    )
    measures = list(dict.fromkeys(p.measure for p in found.published))
    rows: dict[tuple[str, ...], dict[str, float]] = {}
    for p in found.published:
        rows.setdefault((p.system, p.setting, f"{p.by}; {p.where} ({p.seen})"), {})[p.measure] = p.value
    settings = list(dict.fromkeys(key[1:] for key in rows))
    for number, (setting, by) in enumerate(settings, 1):
        print(visible(f"  [{number}] {setting}; {by}"))
    print(
        table(
            ["system", *measures, "setting"],
            [
                [key[0], *(values.get(m) for m in measures), f"[{settings.index(key[1:]) + 1}]"]
                for key, values in rows.items()
            ],
        )
    )


for _paper in PAPERS.values():
    score.add_command(_command(_paper))
