"""A comparison of runs as a document: tables, kappa against cost and time, and errors by label."""

from collections.abc import Iterator, Sequence

from judge.document.blocks import (
    Block,
    Cell,
    Details,
    Document,
    Figure,
    Notes,
    Section,
    Table,
    heads,
    level_text,
)
from judge.document.cells import format_count, interval
from judge.improve.contest import AXES, Contest
from judge.stats.paired import Duel

TITLES = {"cost": "US dollars per 1,000 units", "seconds": "seconds of calls per unit"}
FACTORS = {"cost": 1000.0, "seconds": 1.0}
MOST_SHOWN = 3
"""Number of pairs whose errors are shown label by label. The others are folded away."""


def as_document(contest: Contest) -> Document:
    """Return the comparison: the runs, the test of each pair, and where the runs of a pair err."""
    letters = [chr(ord("A") + n) if n < 26 else str(n + 1) for n in range(len(contest.contenders))]
    where = {None: "", "open": " in learn and tune", "all": ", including the sealed test"}.get(
        contest.part, f" in {contest.part}"
    )
    about = [
        ("field", f"{contest.panel.field}, compared with {contest.reference.text}"),
        (
            "units",
            f"{contest.n_shared:,} units ({contest.n_clusters:,} questions{where}) that all runs labelled; "
            f"{contest.n_reference:,} have a reference label",
        ),
    ]
    if contest.look is not None:
        about.append(
            (
                "sealed test",
                f"look {contest.look.look}: tested at {contest.level:.4g}, intervals at {level_text(1 - contest.level)}",
            )
        )
    sections = [
        Section("runs", "Runs", [_runs(contest, letters)]),
        Section("cost", "Quality against cost and time", list(_fronts(contest, letters))),
        Section("pairs", "Every two runs", [_pairs(contest, letters)]),
        Section("errors", "Where each run errs", _errors(contest, letters)),
        Section("made", "How these numbers were made", _made(contest, letters)),
    ]
    title = f"{contest.panel.field}: {len(contest.contenders)} runs on the same units"
    return Document(title, about, sections=sections)


def _runs(contest: Contest, letters: Sequence[str]) -> Table:
    rows: list[list[Cell]] = [
        [
            letter,
            c.name,
            c.kappa,
            c.agreement,
            f"{c.n_labelled:,} of {c.n_asked:,}",
            # A single unit costs a fraction of a cent.
            None if c.spent.cost is None else FACTORS["cost"] * c.spent.cost,
            c.spent.seconds,
            None if c.spent.tokens is None else round(c.spent.tokens),
            ", ".join(sorted(c.front)),
        ]
        for letter, c in zip(letters, contest.contenders, strict=True)
    ]
    sure = level_text(contest.contenders[0].kappa.confidence)
    columns = (
        heads("text", "", "run")
        + heads("brief", f"kappa ({sure} interval)")
        + heads("number", "agreement")
        + heads("text", "labelled of asked")
        + heads("number", "$ per 1,000", "s a unit", "tokens a unit")
        + heads("text", "front")
    )
    note = "front: no other run reaches this kappa at a lower cost or in less time"
    return Table("runs", "", columns, rows, [note] if any(c.front for c in contest.contenders) else [])


def _fronts(contest: Contest, letters: Sequence[str]) -> Iterator[Figure]:
    """Yield a plot for each axis on which two or more runs have a value."""
    for axis, get_value in AXES.items():
        points = [
            {
                "label": letter,
                "x": FACTORS[axis] * price,
                "y": c.kappa.value,
                "low": c.kappa.low,
                "high": c.kappa.high,
                "front": axis in c.front,
            }
            for letter, c in zip(letters, contest.contenders, strict=True)
            # A local model may cost nothing, and a logarithmic axis cannot show 0.
            if (price := get_value(c)) is not None and price > 0 and c.kappa.value is not None
        ]
        if len(points) < 2:
            continue
        drawn = {point["label"] for point in points}
        left_out = [
            c.name for letter, c in zip(letters, contest.contenders, strict=True) if letter not in drawn
        ]
        text = "Letters are those of the table. A filled dot is on the front: no other run has as much kappa for less."
        if left_out:
            text += f" Not drawn, because nothing is known: {', '.join(left_out)}."
        caption = f"Kappa against {TITLES[axis]}"
        yield Figure(f"front-{axis}", caption, text, "front", {"points": points, "label": TITLES[axis]})


def _pairs(contest: Contest, letters: Sequence[str]) -> Table:
    rows: list[list[Cell]] = [
        [
            f"{letters[d.second]} - {letters[d.first]}",
            "undefined" if d.kappa.difference.value is None else d.kappa.difference.value,
            interval(d.kappa.difference.low, d.kappa.difference.high),
            d.kappa.adjusted,
            "shown" if contest.is_shown(d) else "not shown",
            d.agreement.difference.value,
            sum(d.only_first),
            sum(d.only_second),
            sum(d.neither),
        ]
        for d in contest.duels
    ]
    columns = (
        heads("text", "pair")
        + heads("difference", "difference of kappa")
        + heads("text", f"{level_text(contest.contenders[0].kappa.confidence)} interval")
        + heads("p", "p (Holm)")
        + heads("text", "difference")
        + heads("difference", "of agreement")
        + heads("number", "only first right", "only second right", "neither")
    )
    notes = [
        f"{letters[d.second]} - {letters[d.first]}: {d.kappa.difference.reason}"
        for d in contest.duels
        if d.kappa.difference.reason
    ]
    return Table("pairs", "Paired tests", columns, rows, notes)


def _errors(contest: Contest, letters: Sequence[str]) -> list[Block]:
    blocks = [block for d in contest.duels[:MOST_SHOWN] for block in _errors_of_pair(contest, d, letters)]
    rest = contest.duels[MOST_SHOWN:]
    if rest:
        inner = [block for d in rest for block in _errors_of_pair(contest, d, letters)]
        blocks.append(Details(f"{len(rest):,} more pairs", inner))
    return blocks


def _errors_of_pair(contest: Contest, d: Duel, letters: Sequence[str]) -> list[Block]:
    first, second = letters[d.first], letters[d.second]
    rows: list[list[Cell]] = [
        [label, d.both[k], d.only_first[k], d.only_second[k], d.neither[k]]
        for k, label in enumerate(contest.table.domain)
    ]
    columns = heads("text", contest.reference.word)
    columns += heads("number", "both right", f"only {first}", f"only {second}", "neither")
    examples = contest.examples(d)
    notes = [f"{first} right, {second} wrong, for example: {', '.join(examples)}"] if examples else []
    key = f"errors-{first}-{second}"
    return [Table(key, f"Where {first} and {second} are right", columns, rows, notes)]


def _made(contest: Contest, letters: Sequence[str]) -> list[Block]:
    lines = [
        f"{contest.coefficient}: BCa bootstrap intervals by question ({level_text(contest.contenders[0].kappa.confidence)}). "
        f"Differences: paired t-tests of jackknife pseudo-values, clustered by question, with Holm's correction over all "
        f"{format_count(len(contest.duels), 'pair')}. A difference is shown if its adjusted p value is at most {contest.level:.4g}.",
        *contest.notes,
        *(f"{letter}: run {c.run_id}" for letter, c in zip(letters, contest.contenders, strict=True)),
    ]
    return [Notes(lines)]
