"""A paper's own tables and figures, filled with the values of several systems, data sets and settings.

NAME.toml declares them:

    [[tables]]
    title = "Table 4: accuracy"
    down = "measures"                          rows are measures and columns are systems; by default, the reverse
    vary = "mixed"                             an option of the paper; --mixed a,b makes a row for each value
    drop = "accuracy_zero"                     cells also show the difference from this measure
    change = true                              or the difference from the first value of `vary`
    plain = ["set_size*"]                      measures that are not shares, and so are not shown in percent
    measures = { "RAG-{k}" = "accuracy_rag_{k}" }   names in the paper; {k} is replaced by each value of --k

    [[figures]]
    title = "Figure 5: accuracy and set size"
    x = "set_size"                             with `y`: one point for each system and data set, with Pearson's r
    y = "accuracy"
    measures = ["drop_rag_{k}"]                without `x`: a dot for each system and measure
    function = "draw_pairs"                    or a function of the paper's module: (filled, key, title) -> figures

The values are those of each system's own rows, as a paper prints them. Numbers that the paper published stand beside
them, with a mark, because they come from another judge, other answers and other rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Unpack

import numpy as np

from judge.document.blocks import (
    Block,
    Cell,
    Document,
    Figure,
    Notes,
    Section,
    Table,
    dot,
    dot_plot,
    heads,
)
from judge.errors import UsageError
from judge.papers.engine.paper import Paper, ScoreRequest
from judge.papers.engine.paper_study import PaperStudy
from judge.papers.engine.published import read_published
from judge.papers.engine.result import is_of, scores_of
from judge.papers.engine.steps import Incomplete
from judge.scores.score import Score, measure_all
from judge.stats.bootstrap import IntervalOptions
from judge.store.study import Store
from judge.types import Json, Measure, attributes

PUBLISHED = "†"
"""Marks published rows and columns."""
_LEGEND = f"{PUBLISHED} published by the paper: another judge, other answers and other rows"


@dataclass(frozen=True, slots=True)
class TableValue:
    """A value in a paper's table. `reading` is the value of the option that varies, or empty.

    `drop` is the difference from the table's measure `drop`. `published` is True if the paper published the value.
    """

    table: str
    name: str
    measure: str
    system: str
    dataset: str
    reading: str
    value: float | None
    drop: float | None
    published: bool

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        names = ("table", "name", "measure", "system", "dataset", "reading", "value", "drop", "published")
        return attributes(self, *names)


@dataclass(frozen=True, slots=True)
class Filled:
    """One of the requested scores: its data set, its system, the value of the option that varies, and its measures."""

    dataset: str
    system: str
    reading: str
    measures: Mapping[str, Measure]
    scores: Sequence[Score]
    study: PaperStudy


@dataclass(frozen=True, slots=True)
class PaperTables:
    """A paper's tables and figures as data and as a document."""

    paper: Paper
    entries: Sequence[TableValue]
    document: Document

    def as_json(self) -> dict[str, Json]:
        """Return the documented JSON representation."""
        return {
            "paper": self.paper.name,
            "title": self.paper.title,
            "entries": [entry.as_json() for entry in self.entries],
        }


def paper_tables(
    store: Store,
    paper: Paper,
    request: ScoreRequest,
    systems: Sequence[str],
    datasets: Sequence[str],
    **options: Unpack[IntervalOptions],
) -> PaperTables:
    """Compute the tables and figures that a paper declares.

    Raises UsageError if it declares none, and Incomplete with the missing steps of all systems and data sets.
    """
    if not paper.tables:
        raise UsageError(
            f"{paper.name} declares no table of its own; use judge score {paper.name} without --table"
        )
    vary = next((table["vary"] for table in paper.tables if "vary" in table), None)
    values = [""] if vary is None else request.options.get(vary, _default(paper, vary)).split(",")
    filled: list[Filled] = []
    steps = []
    for dataset in datasets or (None,):
        for value in values:
            for system in systems or (None,):
                given = replace(
                    request,
                    dataset=dataset,
                    system=system,
                    options={**request.options, **({vary: value} if vary else {})},
                )
                try:
                    scores, study = scores_of(store, paper, given, None)
                except Incomplete as missing:
                    # All of them are read before it stops, so that one message lists every missing step.
                    steps += missing.steps
                    continue
                measures = {m.measure: m for m in measure_all(scores, **options)}
                name = system or study.get_tested()
                reading = value if len(values) > 1 else ""
                filled.append(Filled(study.dataset, name, reading, measures, scores, study))
    if steps:
        raise Incomplete(paper.name, steps)
    ks = filled[0].study.numbers("k") if any(o.name == "k" for o in paper.options) else []
    entries: list[TableValue] = []
    sections = []
    for n, declared in enumerate(paper.tables):
        names = _expand(declared["measures"], ks)
        of_table = list(_entries(paper, declared, names, filled))
        if any(entry.value is not None and not entry.published for entry in of_table):
            entries += of_table
            table = _table(f"table_{n + 1}", declared, of_table)
            sections.append(Section(f"table_{n + 1}", declared["title"], [table]))
    figures = [
        figure for n, declared in enumerate(paper.figures) for figure in _figures(n, declared, ks, filled)
    ]
    sections.append(Section("figures", "Figures", figures))
    sections.append(Section("notes", "How these numbers were made", [Notes(_notes(filled))]))
    about = [
        ("data sets", ", ".join(dict.fromkeys(f.dataset for f in filled))),
        ("systems", ", ".join(dict.fromkeys(f.system for f in filled))),
    ]
    return PaperTables(paper, entries, Document(paper.title, about, sections=sections))


def _default(paper: Paper, name: str) -> str:
    return next(option.default for option in paper.options if option.name == name)


def _expand(measures: Mapping[str, str], ks: Sequence[int]) -> dict[str, str]:
    """Return {name in the paper: measure}. A name that contains {k} is repeated for each k."""
    return {
        name.replace("{k}", str(k)): measure.replace("{k}", str(k))
        for name, measure in measures.items()
        for k in (ks if "{k}" in measure else [0])
    }


def _entries(
    paper: Paper, declared: Mapping[str, Any], names: Mapping[str, str], filled: Sequence[Filled]
) -> Iterator[TableValue]:
    """Yield the values of a table: those of the systems, and the published ones."""
    title, base = declared["title"], declared.get("drop", "")
    for f in filled:
        values = {name: m.value for name, m in f.measures.items()}
        first = next(x for x in filled if (x.dataset, x.system) == (f.dataset, f.system))
        for name, measure in names.items():
            drop = _difference(values.get(measure), values.get(base)) if measure != base else None
            if declared.get("change") and first is not f and measure in first.measures:
                drop = _difference(values.get(measure), first.measures[measure].value)
            yield TableValue(
                title, name, measure, f.system, f.dataset, f.reading, values.get(measure), drop, False
            )
    wanted = [p for p in read_published(paper.name) if any(is_of(p, m) for m in names.values())]
    settings = list(dict.fromkeys((p.system, p.by, p.setting) for p in wanted))
    for system, by, setting in settings:
        numbers = [p for p in wanted if (p.system, p.by, p.setting) == (system, by, setting)]
        # A paper may print the same system under several settings.
        several = sum(name == system for name, _, _ in settings) > 1
        label = f"{system} ({by}; {setting})" if several else system
        values = {m: next((p.value for p in numbers if is_of(p, m)), None) for m in (*names.values(), base)}
        for name, measure in names.items():
            drop = _difference(values[measure], values[base]) if measure != base else None
            yield TableValue(title, name, measure, label, "", "", values[measure], drop, True)


def _difference(value: float | None, base: float | None) -> float | None:
    return None if value is None or base is None else value - base


def _table(key: str, declared: Mapping[str, Any], entries: Sequence[TableValue]) -> Table:
    """Return a table in the paper's layout."""
    several = len({entry.dataset for entry in entries if not entry.published}) > 1
    plain = declared.get("plain", ())
    down_measures = declared.get("down") == "measures"

    def system_of(entry: TableValue) -> str:
        name = f"{entry.system} · {entry.reading}" if entry.reading else entry.system
        return f"{name} {PUBLISHED}" if entry.published else name

    cells: dict[tuple[str, str], Cell] = {}
    for entry in entries:
        data = f"{entry.dataset}: " if several and entry.dataset else ""
        row, column = (
            (entry.name, f"{data}{system_of(entry)}")
            if down_measures
            else (system_of(entry), f"{data}{entry.name}")
        )
        cells[row, column] = _show(entry, plain)
    rows = list(dict.fromkeys(row for row, _ in cells))
    columns = list(dict.fromkeys(column for _, column in cells))
    if several and not down_measures:
        # Published numbers name no data set of ours, so they would add columns that are almost empty.
        columns = [c for c in columns if any(cells.get((r, c)) for r in rows if not r.endswith(PUBLISHED))]
    rows = [row for row in rows if any(cells.get((row, column)) for column in columns)]
    shown: list[list[Cell]] = [[row, *(cells.get((row, column), "") for column in columns)] for row in rows]
    percent = (
        []
        if declared.get("fraction")
        else ["values in percent" + (", except " + ", ".join(plain) if plain else "")]
    )
    drops = (
        [f"in brackets: the difference from {declared['drop']}, in points"] if declared.get("drop") else []
    )
    if declared.get("change") and any(entry.drop is not None for entry in entries):
        drops = [f"in brackets: the change from the first {declared['vary']}"]
    marks = [_LEGEND] if any(entry.published for entry in entries) else []
    head = heads("text", "" if down_measures else "system", *columns)
    return Table(key, declared["title"], head, shown, (*percent, *drops, *marks))


def _show(entry: TableValue, plain: Sequence[str]) -> str:
    """Return a value as the paper prints it."""
    if entry.value is None:
        return ""
    if any(fnmatchcase(entry.measure, pattern) for pattern in plain):
        return f"{entry.value:.3f}" + ("" if entry.drop is None else f" ({entry.drop:+.3f})")
    drop = "" if entry.drop is None else f" ({100 * entry.drop:+.1f})"
    return f"{100 * entry.value:.1f}{drop}"


def _figures(
    n: int, declared: Mapping[str, Any], ks: Sequence[int], filled: Sequence[Filled]
) -> Iterator[Figure]:
    key, title = f"figure_{n + 1}", declared["title"]
    if "function" in declared:
        for i, f in enumerate(filled):
            yield from declared["function"](f, f"{key}_{i + 1}", title)
        return
    if "x" in declared:
        yield from _scatter(key, title, declared["x"], declared["y"], filled)
        return
    measures = list(_expand({m: m for m in declared["measures"]}, ks).values())
    several = len({f.dataset for f in filled}) > 1
    rows = [
        dot(_label(f, several, measure if len(measures) > 1 else ""), f.measures[measure])
        for measure in measures
        for f in filled
        if measure in f.measures and f.measures[measure].value is not None
    ]
    if rows:
        yield dot_plot(key, title, "A dot is a value on the system's own rows, with its interval.", rows)


def _label(f: Filled, several: bool, measure: str = "") -> str:
    return " · ".join(part for part in (f.dataset if several else "", f.system, f.reading, measure) if part)


def _scatter(key: str, title: str, x: str, y: str, filled: Sequence[Filled]) -> Iterator[Figure]:
    """Yield a plot of two measures against each other, with Pearson's correlation."""
    several = len({f.dataset for f in filled}) > 1
    points = [
        {"label": _label(f, several), "x": f.measures[x].value, "y": f.measures[y].value}
        for f in filled
        if x in f.measures and y in f.measures
    ]
    points = [p for p in points if p["x"] is not None and p["y"] is not None]
    if not points:
        return
    pairs = np.array([[p["x"], p["y"]] for p in points], dtype=np.float64)
    spread = len(points) > 2 and bool((pairs.std(axis=0) > 0).all())
    r = (
        f"r = {np.corrcoef(pairs[:, 0], pairs[:, 1])[0, 1]:.2f}"
        if spread
        else "r is undefined for so few points"
    )
    table = Table(
        f"{key}_table",
        title,
        heads("text", "system") + heads("number", x, y),
        [[p["label"], p["x"], p["y"]] for p in points],
    )
    text = f"Each point is a system on a data set; {r} over {len(points)} points."
    yield Figure(key, f"{title}; {r}", text, "scatter", {"points": points, "x": x, "y": y}, table)


def _notes(filled: Sequence[Filled]) -> list[str]:
    """Return the notes of all scores, each with the system and the data set to which it applies."""
    several = len({f.dataset for f in filled}) > 1
    lines = [f"{_label(f, several)}: {text}" for f in filled for text in f.study.notes]
    lines += [
        f"missing: {gap.system} has no output under '{gap.condition}'; to add it: {gap.add}"
        for f in filled
        for gap in f.study.lacking
    ]
    return list(dict.fromkeys(lines))


def list_figures(document: Document) -> list[Figure]:
    """Return the figures of a document, for files that have figures only."""
    blocks: list[Block] = [block for section in document.sections for block in section.blocks]
    return [block for block in blocks if isinstance(block, Figure)]
