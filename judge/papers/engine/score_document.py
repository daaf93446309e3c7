"""The score of one system or one judge as a document for the terminal and for pages."""

from collections.abc import Mapping
from typing import Any

from judge.commands import command
from judge.document.blocks import (
    Block,
    Cell,
    Document,
    Notes,
    Section,
    Table,
    dot,
    dot_plot,
    heads,
    level_text,
)
from judge.document.cells import number, with_interval
from judge.notes import SMALL, code_of
from judge.papers.engine.board_document import ARROWS, describe_lacking
from judge.papers.engine.correction import Correction
from judge.papers.engine.result import Line, Result, is_of
from judge.run_options import RunOptions, describe, words
from judge.types import Measure


def as_document(result: Result) -> Document:
    """Return the score: the values, their corrections with human labels, published values, and how they were made."""
    lost = _list_lost(result)
    sections = [
        Section("lost", "Labels that are missing", [Notes(lost)] if lost else []),
        Section("values", "Values", [_values(result)]),
        Section("measures", "Each measure", _figures(result)),
        Section("corrected", "Corrected with human labels", _correction(result.correction)),
        Section("published", "Published values", _published(result)),
        Section("made", "How these numbers were made", _made(result)),
    ]
    return Document(result.paper.title, _about(result), sections=sections)


def _about(result: Result) -> list[tuple[str, str]]:
    system = f", system {result.system}" if result.system else ""
    condition = f", condition {result.condition}" if result.condition else ""
    about = [("data set", f"{result.dataset}{system}{condition}")]
    if result.others:
        # Several runs would fit, so the reader must see which one was used.
        used_runs = ", ".join(f"{run['run']} ({describe(run['settings'])})" for run in result.runs)
        about.append(("runs used", f"{used_runs}; to choose another, use --run: {', '.join(result.others)}"))
    for run in result.runs:
        counts = sorted(run["counts"].items(), key=lambda c: c[0] != "ok")
        settings = describe(run["settings"])
        shown = "" if settings == "defaults" else f" ({settings})"
        statuses = ", ".join(f"{n} {status}" for status, n in counts)
        about.append((f"run {run['run']}", f"{run['task']} by {run['model']}{shown}: {statuses}"))
    # An option without a value changes nothing.
    readings = ", ".join(f"{name} {value}" for name, value in result.readings.items() if value)
    return [*about, *([("readings", readings)] if readings else [])]


REMEDIES = {
    "truncated": "the replies were longer than the limit: repeat with a higher --max-output-tokens",
    "unparsed": "the replies were not answers; read some, and then try another model, or --answers json",
    "refused": "the model refused; try another model",
    "failed": "the calls failed; repeat the command when the server works again",
}
"""What helps against each status of a unit without a label."""


def _list_lost(result: Result) -> list[str]:
    """Return a line for each run that lacks labels: how many, why, what helps, and the command that asks again."""
    lines = []
    for run in result.runs:
        counts: dict[str, int] = {
            status: n for status, n in run["counts"].items() if status in REMEDIES and n
        }
        if not counts:
            continue
        statuses = ", ".join(f"{n:,} {status}" for status, n in counts.items())
        most = max(counts, key=counts.__getitem__)
        see = command("judge runs show", run["run"])
        line = f"{run['task']} by {run['model']}: {statuses} of {run['units']:,} units; {REMEDIES[most]}. To see replies: {see}"
        lines.append(line + _ask_again(result, run, counts))
    return lines


def _ask_again(result: Result, run: Mapping[str, Any], counts: Mapping[str, int]) -> str:
    """Return the words with the command that asks again about these units only, or "" if the model has another name."""
    model, paper = str(run["model"]), result.paper
    if "/" not in model:
        return ""
    task = str(run["task"]).partition(".")[0]
    part = next((p.name for p in paper.parts if task in (*p.tasks, *p.instead)), None)
    values = ["-m", model, "--dataset", result.dataset]
    values += ["--system", result.system] if result.system else []
    values += ["--part", part] if part else []
    defaults = {option.name: option.default for option in paper.options}
    for name, value in result.readings.items():
        values += ["--paper-option", f"{name}={value}"] if value != defaults.get(name) else []
    values += words(RunOptions(**run["settings"]))
    # Calls that failed are repeated without --retry.
    values += [word for status in counts if status != "failed" for word in ("--retry", status)]
    values += ["--max-output-tokens", "2048"] if "truncated" in counts else []
    return f"; to ask again: {command('judge suite', paper.name, *values)}"


def _values(result: Result) -> Table:
    stratified = any(line.stratum for line in result.lines)
    published = bool(result.published)
    rows: list[list[Cell]] = [
        [
            *([line.stratum or "all"] if stratified else []),
            line.measure.measure + ARROWS[result.paper.better(line.measure.measure)],
            line.measure,
            line.measure.n_units,
            line.measure.n_clusters,
            line.measure.coverage,
            ", ".join(f"{n} {name}" for name, n in line.missing.items()),
            *([_span_published(result, line)] if published else []),
        ]
        for line in result.lines
    ]
    sure = level_text(result.lines[0].measure.confidence if result.lines else 0.95)
    columns = (
        heads("text", *(["stratum"] if stratified else []), "measure")
        + heads("brief", f"value ({sure} interval)")
        + heads("number", "units", "questions")
        + heads("share", "coverage")
        + heads("text", "no value", *(["papers*"] if published else []))
    )
    return Table("values", "", columns, rows)


def _span_published(result: Result, line: Line) -> str:
    """Return the published values of the measure, or an empty string if there is none."""
    # The papers print values of their whole data, not of our strata.
    if line.stratum:
        return ""
    values = sorted(p.value for p in result.published if is_of(p, line.measure.measure))
    return " to ".join(number(v) for v in dict.fromkeys((values[0], values[-1]))) if values else ""


def _figures(result: Result) -> list[Block]:
    """Return one dot plot of all main measures between 0 and 1, or nothing if there is none."""
    rows = [
        dot(result.paper.readable(m.measure) + (f" · {line.stratum}" if line.stratum else ""), m)
        for line in result.lines
        if result.paper.is_main((m := line.measure).measure) and m.value is not None and 0 <= m.value <= 1
    ]
    text = "A dot is the value with its interval. Measures that can exceed 1 are in the table only."
    return [dot_plot("values", "The main measures", text, rows)] if rows else []


def _correction(correction: Correction | None) -> list[Block]:
    """Return three estimates of each mean over units.

    They are based on the judge's labels only, on human labels only, and on the judge's labels corrected with human
    labels.
    """
    if correction is None:
        return []
    rows: list[list[Cell]] = [
        [
            name,
            with_interval(c.judge_only),
            with_interval(c.human_only),
            with_interval(c.ppi),
            None if c.lam is None else f"{c.lam:.2f}",
            c.judge_only.n_units,
            c.human_only.n_units,
        ]
        for name, c in correction.measures.items()
    ]
    columns = heads("text", "measure", "judge only", "people only", "corrected")
    columns += heads("number", "lambda", "units judged", "labelled")
    reasons = [
        f"{name} is not corrected: {c.ppi.reason}" for name, c in correction.measures.items() if c.ppi.reason
    ]
    notes = [*dict.fromkeys(reasons), *correction.notes]
    if correction.left_out:
        notes.append(
            f"not corrected, because they are not means over units: {', '.join(correction.left_out)}"
        )
    notes.append("valid if the units that people labelled are a random sample of the judged units")
    return [Table("corrected", f"Corrected with {correction.reference} (PPI++)", columns, rows, notes)]


def _published(result: Result) -> list[Block]:
    """Return the published values, one row per system and setting, and the other names of the measures."""
    blocks: list[Block] = []
    if known := [line for line in result.lines if line.known_as and not line.stratum]:
        names: list[list[Cell]] = [
            [line.measure.measure, line.known_as.name, line.known_as.source]
            for line in known
            if line.known_as
        ]
        blocks.append(
            Table("names", "Names elsewhere", heads("text", "measure", "known as", "source"), names)
        )
    if not result.published:
        return blocks
    measures = list(dict.fromkeys(p.measure for p in result.published))
    values: dict[tuple[str, ...], dict[str, float]] = {}
    for p in result.published:
        values.setdefault((p.system, p.setting, f"{p.by}; {p.where} ({p.seen})"), {})[p.measure] = p.value
    # Settings are numbered, because each is a sentence that many rows share.
    settings = list(dict.fromkeys(key[1:] for key in values))
    rows: list[list[Cell]] = [
        [key[0], *(of_row.get(m) for m in measures), f"[{settings.index(key[1:]) + 1}]"]
        for key, of_row in values.items()
    ]
    caption = "* published in the papers, with ANOTHER judge, other answers and other rows: do not compare them directly with yours"
    columns = heads("text", "system") + heads("number", *measures) + heads("text", "setting")
    notes = [f"[{n}] {setting}; {by}" for n, (setting, by) in enumerate(settings, 1)]
    return [*blocks, Table("published", caption, columns, rows, notes)]


def _made(result: Result) -> list[Block]:
    lines = [text for line in result.lines for text in line.measure.notes if code_of(text) not in _SELDOM]
    few = sum(_is_small(line.measure) for line in result.lines)
    # One remark for all intervals: with strata, most of them would have it.
    small = [
        f"{few} of {len(result.lines)} intervals are based on few units or questions, so they are unreliable and too narrow (--json lists them)"
    ]
    notes = list(dict.fromkeys([*result.notes, *lines, *(small if few else [])]))
    blocks: list[Block] = [Notes(notes)] if notes else []
    return [*blocks, *describe_lacking(result.lacking)]


_SELDOM = ("no_value", *SMALL)
"""Notes that are not shown, because a column or a remark about all intervals gives the same information."""


def _is_small(measure: Measure) -> bool:
    return measure.low is not None and any(code_of(text) in SMALL for text in measure.notes)
