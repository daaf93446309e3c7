"""The agreement of each judge with each person, the majority and the reference, and the comparison between judges.

For a routed judge, the report also shows the coverage and the agreement at each step of the route.
"""

from collections.abc import Sequence

from annotate.agreement.every_pair import compute_pairs
from annotate.report.people import spread_table, tie_note
from annotate.report.subject import MANY, Subject
from annotate.report.summary import OTHERS, most_labelled, with_the_others
from judge.document.blocks import COUNTS, Block, Cell, Figure, Paragraph, Section, Table, heads, interval_head
from judge.document.cells import format_count
from judge.stats.metrics import get_title
from judge.store import Store
from judge.store.derived import read_derivation
from judge.types import Json, Measure, attributes

# With more than MANY people, only those who share most units with the judge are listed, because each row needs several
# bootstraps.
LISTED = 20
SHOWN = 10


def against(subject: Subject) -> Section:
    """Return the section with one table per judge, a figure of all judges, and the comparison between judges."""
    title = "Judges against people and gold"
    others = _list_others(subject)
    if not subject.panel.judges or not others:
        return Section("judges", title, absent="there is no judge, or nobody to compare it with")
    blocks: list[Block] = []
    rows: list[dict[str, Json]] = _human_pairs(subject)
    tables = []
    for i, judge in enumerate(subject.panel.judges, 1):
        table, drawn = _table(subject, judge, others, i)
        tables.append(table)
        rows += drawn
    if any(r["value"] is not None for r in rows):
        blocks.append(_forest(subject, rows))
    for judge, table in zip(subject.panel.judges, tables, strict=True):
        blocks.append(table)
        if len(subject.panel.people) > MANY and not subject.panel.numeric:
            blocks.append(_spread(subject, judge))
    if tied := tie_note(subject):
        blocks.append(Paragraph(tied, "note"))
    cites = ["alpha"] if subject.panel.numeric else ["cohen", "gwet", "alpha", "bootstrap"]
    if len(subject.panel.judges) > 1 and subject.reference:
        blocks.append(_compare_judges(subject, subject.reference))
        cites += ["jackknife", "holm"]
    return Section("judges", title, blocks, cites)


def _list_others(subject: Subject) -> list[str]:
    """Return the columns to compare a judge with: the majority, then gold and the lead's decisions, then people."""
    majority = [subject.majority] if subject.majority else []
    return [*majority, *subject.panel.known, *subject.panel.people]


def _names(subject: Subject) -> list[str]:
    if subject.panel.numeric:
        return ["krippendorff_alpha"]
    if subject.panel.level == "ordinal":
        return ["percent", "cohen_kappa", "cohen_kappa:quadratic", "krippendorff_alpha"]
    return ["percent", "cohen_kappa", "gwet_ac1", "krippendorff_alpha"]


def _table(
    subject: Subject, judge: str, others: Sequence[str], number: int
) -> tuple[Table, list[dict[str, Json]]]:
    """Return a table of one judge's agreement with everybody else, and the rows for the figure."""
    names = _names(subject)
    listed, n_unlisted = list(others), 0
    if len(subject.panel.people) > MANY:
        shared = {p: subject.panel.select_common(judge, p).n_units for p in subject.panel.people}
        most = sorted(subject.panel.people, key=lambda p: (-shared[p], p))[:LISTED]
        listed = [o for o in others if o not in shared] + most
        n_unlisted = len(subject.panel.people) - len(most)
    rows: list[list[Cell]] = []
    drawn: list[dict[str, Json]] = []
    # These annotators are named in one note, because each row would only have an undefined value for zero units.
    apart = [o for o in listed if not (subject.has_label(judge) & subject.has_label(o)).any()]
    for other in (other for other in listed if other not in apart):
        measured = subject.measure(judge, other, *names)
        rows.append([other, *measured, measured[0]])
        if len(subject.panel.people) <= MANY or other not in subject.panel.people:
            kappa = measured[names.index(subject.panel.coefficient)]
            label = f"{judge} and {other}" if len(subject.panel.judges) > 1 else f"judge and {other}"
            drawn.append(_bar(label, kappa, "judge"))
    columns = heads("text", "with") + heads("brief", *map(get_title, names)) + COUNTS
    notes = []
    if n_unlisted:
        notes.append(
            f"Only the {LISTED} people who share the most units with the judge are listed; "
            f"{format_count(n_unlisted, 'other is', 'others are')} in the summary."
        )
    if apart:
        notes.append(f"Left out, because they share no labelled unit with {judge}: {', '.join(apart)}.")
    table = Table(
        f"agreement_{number}", f"{judge} with each of the others", columns, rows, notes, fold=SHOWN + 2
    )
    return table, drawn


def _bar(label: str, m: Measure, group: str) -> dict[str, Json]:
    return {"label": label, "group": group, **attributes(m, "value", "low", "high", "confidence")}


def _human_pairs(subject: Subject) -> list[dict[str, Json]]:
    """Return the figure's rows for the agreement between people, which is shown for comparison with the judges."""
    rows = []
    if 2 <= len(subject.panel.people) <= 4:
        rows += [_bar(f"{first} and {second}", kappa, "people") for first, second, _, kappa in subject.pairs]
    elif len(subject.panel.people) > 4 and subject.majority:
        # A figure cannot show that many pairs, so it has one line per person, against the same majority as the judge.
        for person in most_labelled(subject):
            # Use all units, not only the judge's, because the agreement between people does not depend on a judge.
            agreement = with_the_others(subject, person, person)
            if agreement.n_units:
                rows.append(_bar(f"{person} and {OTHERS}", agreement, "people"))
    if subject.majority:
        for other in subject.panel.known:
            # If people agree, the decided label is their majority, so the two always agree on these units.
            if subject.decided is not None and other == subject.decided.name:
                continue
            kappa = subject.measure(subject.majority, other)[0]
            rows.append(_bar(f"majority and {other}", kappa, "people"))
    return rows


def _forest(subject: Subject, rows: list[dict[str, Json]]) -> Figure:
    numbers: list[list[Cell]] = [[r["label"], r["value"], r["low"], r["high"]] for r in rows]
    columns = heads("text", "pair") + heads("number", subject.coefficient_name, "low", "high")
    table = Table("forest_numbers", "The numbers of this figure", columns, numbers)
    known = [r for r in rows if r["value"] is not None]
    best = max((r for r in known if r["group"] == "judge"), key=lambda r: float(r["value"]), default=None)
    people = [float(r["value"]) for r in known if r["group"] == "people"]
    text = f"Points with intervals, one line per pair of annotators: {subject.coefficient_name}."
    if people:
        low, high = f"{min(people):.2f}", f"{max(people):.2f}"
        text += " Without a judge: " + (low if low == high else f"{low} to {high}") + "."
    if best is not None:
        text += f" The best value with a judge is {best['value']:.2f} ({best['label']})."
    if len(known) < len(rows):
        text += f" It is undefined for {format_count(len(rows) - len(known), 'pair')}."
    # With two or more people, the verdict compares the judge with their agreement, and not with a threshold.
    threshold = None if len(subject.panel.people) > 1 else subject.options.threshold
    if threshold is not None:
        text += f" The line at {threshold:g} is the threshold of the verdict."
    data = {
        "rows": rows,
        "label": interval_head(subject.coefficient_name, (float(r["confidence"]) for r in known)),
        "threshold": threshold,
    }
    return Figure("forest", "Agreement of judges beside agreement of people", text, "forest", data, table)


def _spread(subject: Subject, judge: str) -> Table:
    pairs = compute_pairs(
        subject.panel.of_draw,
        [subject.panel.coefficient],
        level=subject.panel.level,
        first=[judge],
        second=subject.panel.people,
    )
    number = subject.panel.judges.index(judge) + 1
    return spread_table(
        f"agreement_{number}_spread", f"{subject.coefficient_name} of {judge} with every person", pairs
    )


def _compare_judges(subject: Subject, reference: str) -> Table:
    """Return the paired differences between judges.

    Only units with a reference label and a label from every compared judge are used.
    """
    names = subject.panel.with_labels(subject.panel.judges, reference)
    alone = [name for name in subject.panel.judges if name not in names]
    notes = (
        [f"Left out, because they labelled no unit with a reference label: {', '.join(alone)}."]
        if alone
        else []
    )
    differences = subject.panel.compare_all_judges(reference, confidence=subject.panel.confidence(*names))
    rows: list[list[Cell]] = [
        [f"{c.second} minus {c.first}", c.difference, c.p_value, c.adjusted, c.difference]
        for c in differences
    ]
    columns = heads("text", "judges") + heads("brief", f"difference of {subject.coefficient_name}")
    columns += heads("p", "p", "p, Holm") + COUNTS
    caption = f"Judges compared by their agreement with {subject.reference_text}, paired on the same units"
    return Table("judges_compared", caption, columns, rows, notes)


MOST_ROWS = 20
"""The maximum number of rows in the table beside the figure. The figure shows every step."""


def routed(store: Store, subject: Subject) -> list[Section]:
    """Return one figure for each routed judge."""
    blocks: list[Block] = []
    for judge in subject.panel.judges:
        made = read_derivation(store.conn, subject.run_ids[judge]) if judge in subject.run_ids else None
        if made and made["kind"] == "routed" and made.get("curve"):
            blocks.append(_figure(judge, made["curve"], made["parameters"], len(blocks) + 1))
    return [Section("routed", "How much a routed judge may decide alone", blocks)] if blocks else []


def _figure(
    judge: str, curve: list[list[float | None]], parameters: dict[str, float | str], i: int
) -> Figure:
    """Return the figure for `curve`, whose steps are [coverage, tested units, errors, agreement, passed]."""
    agree, chosen = float(parameters["agree"]), float(parameters["coverage"])
    known = [step for step in curve if step[1]]
    # Show steps at equal distances along the path, and always the step that was chosen.
    every = max(1, -(-len(known) // MOST_ROWS))
    chosen_step = min(known, key=lambda step: abs((step[0] or 0.0) - chosen))
    rows: list[list[Cell]] = [
        [
            f"{step[0]:.1%}" + (" (chosen)" if step is chosen_step else ""),
            int(step[1] or 0),
            int(step[2] or 0),
            step[3],
            "holds" if step[4] else "does not hold",
        ]
        for n, step in enumerate(known)
        if n % every == 0 or step is chosen_step
    ]
    columns = heads("text", "share of units accepted") + heads("number", "tested units", "wrong")
    columns += heads("share", "agreement") + heads("text", "promise")
    text = (
        f"Agreement with {parameters['reference']} on the tested units, plotted against the share of all units that a step accepts. "
        f"Each step accepts the units of the previous step and less certain ones. The route promises an agreement of {agree:.0%} with a confidence of "
        f"{float(parameters['confidence']):.0%}; the last step that keeps this promise accepts {chosen:.1%}."
    )
    points = [
        {"x": step[0], "y": step[3], "low": None, "holds": bool(step[4]), "chosen": step is chosen_step}
        for step in known
    ]
    data = {"points": points, "agree": agree, "people": None}
    table = Table(f"routed_{i}_steps", "The steps as a table", columns, rows)
    return Figure(f"routed_{i}", f"Coverage and agreement of {judge}", text, "curve", data, table)
