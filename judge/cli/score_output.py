"""Print a score as JSON, or as a table with the published values below it, and write it to files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.console import document, emit_json, note, print_lines
from judge.document.terminal import table
from judge.errors import BadInput
from judge.files import whole_file
from judge.notes import SMALL, code_of
from judge.run_options import describe
from judge.types import Measure

if TYPE_CHECKING:
    from judge.suites.board import Board
    from judge.suites.correction import Correction
    from judge.suites.reading import Lacking
    from judge.suites.result import Line, Result


def emit(result: Result, as_json: bool) -> None:
    """Print a result as JSON or tables."""
    if as_json:
        emit_json("score", result.as_json())
    else:
        _print(result)


def write(pages: Sequence[Path], schema: str, content: Mapping[str, Any], board: Board) -> None:
    """Write a score or leaderboard to files.

    A .json file contains the document that --json prints. Any other file contains a leaderboard.
    """
    from judge.suites.board_document import writer_of

    for path in pages:
        is_json = path.suffix.lower() == ".json"
        write_whole(path, document(schema, content) if is_json else writer_of(path)(board))


def write_whole(path: Path, text: str) -> None:
    """Write a file given with --output, either completely or not at all.

    Raises BadInput if it cannot be written.
    """
    try:
        # Two commands may write the same leaderboard at once, so each has its own partial file.
        with whole_file(path.resolve(), f".{os.getpid()}") as partial:
            partial.write_text(text, "utf-8")
    except OSError as error:
        raise BadInput(f"--output {path}: {error.strerror}") from error
    note(f"written: {path}")


def _print(result: Result) -> None:
    if result.others:
        # Several runs would fit, so the reader must see which one was used.
        used_runs = ", ".join(f"{run['run']} ({describe(run['settings'])})" for run in result.runs)
        print_lines(f"runs used: {used_runs}; to choose another, use --run: {', '.join(result.others)}")
    print_lines(result.paper.title)
    system = f", system {result.system}" if result.system else ""
    print_lines(
        f"data set {result.dataset}{system}" + (f", condition {result.condition}" if result.condition else "")
    )
    for run in result.runs:
        counts = ", ".join(
            f"{n} {status}" for status, n in sorted(run["counts"].items(), key=lambda c: c[0] != "ok")
        )
        settings = describe(run["settings"])
        shown_settings = "" if settings == "defaults" else f" ({settings})"
        print_lines(f"run {run['run']}: {run['task']} by {run['model']}{shown_settings}: {counts}")
    if result.readings:
        # An option without a value changes nothing.
        print_lines(
            "readings: " + ", ".join(f"{name} {value}" for name, value in result.readings.items() if value)
        )
    print()
    stratified = any(line.stratum for line in result.lines)
    print(
        table(
            [
                *(["stratum"] if stratified else []),
                "measure",
                "value",
                _interval(result),
                "units",
                "questions",
                "coverage",
                "no value",
                "papers*" if result.published else "papers",
            ],
            [
                [*([line.stratum or "all"] if stratified else []), *_row(result, line)]
                for line in result.lines
            ],
        )
    )
    if known := [line for line in result.lines if line.known_as and not line.stratum]:
        rows = [
            [line.measure.measure, line.known_as.name, line.known_as.source]
            for line in known
            if line.known_as
        ]
        print_lines("")
        print(table(["measure", "known as", "source"], rows))
    for text in _notes(result):
        print_lines(f"- {text}")
    print_lacking(result.lacking)
    if result.correction is not None:
        _print_correction(result.correction)
    _print_published(result)


def print_lacking(lacking: Sequence[Lacking]) -> None:
    """Print the missing outputs of systems, each followed by a line with the command that adds it."""
    for gap in lacking:
        problem = (
            "no ranking of its own" if gap.condition == "ranking" else f"no output under '{gap.condition}'"
        )
        # The command is on a separate line, so that it can be copied.
        print_lines(f"- missing: {gap.system} has {problem}; to add it:\n{gap.add}")


def _print_correction(correction: Correction) -> None:
    """Print three estimates of each mean over units.

    They are based on the judge's labels only, on people's labels only, and on the judge's labels corrected
    with people's labels.
    """
    print_lines(f"\ncorrected with {correction.reference} (PPI++):")
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
        for name, c in correction.measures.items()
    ]
    print(
        table(
            ["measure", "judge only", "people only", "corrected", "lambda", "units judged", "labelled"], rows
        )
    )
    reasons = {
        f"{name} is not corrected: {c.ppi.reason}": None
        for name, c in correction.measures.items()
        if c.ppi.reason
    }
    sentences = [*reasons, *correction.notes]
    if correction.left_out:
        sentences.append(
            f"not corrected, because they are not means over units: {', '.join(correction.left_out)}"
        )
    sentences.append("valid if the units that people labelled are a random sample of the judged units")
    for text in sentences:
        print_lines(f"- {text}")


def _interval(result: Result) -> str:
    confidence = result.lines[0].measure.confidence if result.lines else 0.95
    return f"{confidence:.0%} interval".replace("%", " %")


def _row(result: Result, line: Line) -> list[Any]:
    m = line.measure
    from judge.suites.result import is_of

    # The papers print values of their whole data, not of our strata.
    printed = sorted(p.value for p in result.published if is_of(p, m.measure)) if not line.stratum else []
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


def _notes(result: Result) -> list[str]:
    undefined = [
        f"{line.measure.measure}{f' ({line.stratum})' if line.stratum else ''} is undefined: {line.measure.reason}"
        for line in result.lines
        if line.measure.reason
    ]
    of_lines = [text for line in result.lines for text in line.measure.notes if code_of(text) not in _SELDOM]
    few = sum(_is_small(line.measure) for line in result.lines)
    # One remark for all intervals: with strata, most of them would have it.
    small = [
        f"{few} of {len(result.lines)} intervals are based on few units or questions, so they are unreliable and too narrow (--json lists them)"
    ]
    return list(dict.fromkeys([*undefined, *result.notes, *of_lines, *(small if few else [])]))


_SELDOM = ("no_value", *SMALL)
"""Notes that are not printed, because a column or a remark about all intervals gives the same information."""


def _is_small(measure: Measure) -> bool:
    return measure.low is not None and any(code_of(text) in SMALL for text in measure.notes)


def _print_published(result: Result) -> None:
    """Print the published values, one row per system and setting."""
    if not result.published:
        return
    print(
        "\n* published in the papers, with ANOTHER judge, other answers and other rows: do not compare them directly with yours"
    )
    measures = list(dict.fromkeys(p.measure for p in result.published))
    rows: dict[tuple[str, ...], dict[str, float]] = {}
    for p in result.published:
        rows.setdefault((p.system, p.setting, f"{p.by}; {p.where} ({p.seen})"), {})[p.measure] = p.value
    # Settings are numbered, because each is a sentence that many rows share.
    settings = list(dict.fromkeys(key[1:] for key in rows))
    for number, (setting, by) in enumerate(settings, 1):
        print_lines(f"  [{number}] {setting}; {by}")
    print(
        table(
            ["system", *measures, "setting"],
            [
                [key[0], *(values.get(m) for m in measures), f"[{settings.index(key[1:]) + 1}]"]
                for key, values in rows.items()
            ],
        )
    )
