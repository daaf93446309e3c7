"""A score on stdout: a table with what the papers print beside it, JSON, or CSV."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judge.console import emit_json, say, table
from judge.notes import SMALL, code_of
from judge.run_options import in_words
from judge.types import Measure

if TYPE_CHECKING:
    from judge.suites.correction import Correction
    from judge.suites.reading import Lacking
    from judge.suites.result import Line, Result

COLUMNS = ("stratum", "measure", "value", "low", "high", "confidence", "n_units", "n_clusters", "coverage")


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
    if found.others:
        read = ", ".join(f"{run['run']} ({in_words(run['settings'])})" for run in found.runs)
        say(f"runs read: {read}; --run chooses another: {', '.join(found.others)}")
    say(found.paper.title)
    system = f", system {found.system}" if found.system else ""
    say(f"data set {found.dataset}{system}" + (f", condition {found.condition}" if found.condition else ""))
    for run in found.runs:
        counts = ", ".join(
            f"{n} {status}" for status, n in sorted(run["counts"].items(), key=lambda c: c[0] != "ok")
        )
        settings = in_words(run["settings"])
        shown_settings = "" if settings == "defaults" else f" ({settings})"
        say(f"run {run['run']}: {run['task']} by {run['model']}{shown_settings}: {counts}")
    if found.readings:
        say("readings: " + ", ".join(f"{name} {value}" for name, value in found.readings.items() if value))
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
        say(f"- {text}")
    say_lacking(found.lacking)
    if found.correction is not None:
        _print_correction(found.correction)
    _print_published(found)


def say_lacking(lacking: Sequence[Lacking]) -> None:
    """What systems have no output for, each with the command that adds it on a line of its own."""
    for gap in lacking:
        problem = (
            "no ranking of its own" if gap.condition == "ranking" else f"no output under '{gap.condition}'"
        )
        say(f"- missing: {gap.system} has {problem}; this adds it:\n{gap.add}")


def _print_correction(correction: Correction) -> None:
    """Judge only, people only and both, for every measure that is a mean over units."""
    say(f"\ncorrected by {correction.reference} (PPI++):")
    rows = [
        [
            name,
            c.judge_only.with_interval,
            c.human_only.with_interval,
            c.ppi.with_interval,
            None if c.lam is None else f"{c.lam:.2f}",
            c.judge_only.n_units,
            c.human_only.n_units,
        ]
        for name, c in correction.found.items()
    ]
    print(
        table(
            ["measure", "judge only", "people only", "corrected", "lambda", "units judged", "labelled"], rows
        )
    )
    reasons = {
        f"{name} is not corrected: {c.ppi.reason}": None
        for name, c in correction.found.items()
        if c.ppi.reason
    }
    sentences = [*reasons, *correction.notes]
    if correction.left_out:
        sentences.append(f"no means over units, not corrected: {', '.join(correction.left_out)}")
    sentences.append("holds when the units that people labelled are a random sample of the units judged")
    for text in sentences:
        say(f"- {text}")


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
    missing = ", ".join(f"{n} {name}" for name, n in line.missing.items())
    return [
        m.measure,
        m.shown,
        m.interval,
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
    own = [text for line in found.lines for text in line.measure.notes if code_of(text) not in _SELDOM]
    few = sum(_is_small(line.measure) for line in found.lines)
    small = [
        f"{few} of {len(found.lines)} intervals rest on few units or questions: unreliable, too narrow (--json says which)"
    ]
    return list(dict.fromkeys([*told, *found.notes, *own, *(small if few else [])]))


_SELDOM = ("no_value", *SMALL)
"""What stands in a column, or in one remark on all intervals."""


def _is_small(measure: Measure) -> bool:
    return measure.low is not None and any(code_of(text) in SMALL for text in measure.notes)


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
        say(f"  [{number}] {setting}; {by}")
    print(
        table(
            ["system", *measures, "setting"],
            [
                [key[0], *(values.get(m) for m in measures), f"[{settings.index(key[1:]) + 1}]"]
                for key, values in rows.items()
            ],
        )
    )
