"""Several labels by one annotator for one unit: hidden repeats, and labels revised after seeing the judge's label."""

from collections.abc import Mapping

import numpy as np

from annotate.report.batches import read_revealed
from annotate.report.subject import Subject
from judge.document.blocks import COUNTS, Cell, Section, Table, heads
from judge.labels import relation
from judge.stats import Ratings, mean, measures
from judge.stats.ratings import FloatArray
from judge.store import Store
from judge.types import AnnotatorKind


def consistency(store: Store, subject: Subject) -> Section:
    """Return the self-agreement of each annotator who labelled units more than once."""
    title = "Self-consistency: the same unit twice"
    names = [n for n in (*subject.panel.judges, *subject.panel.people) if n in subject.panel.kinds]
    rows: list[list[Cell]] = []
    for name in names:
        table, times = _repeats(store, subject, name)
        if table is None:
            continue
        percent, alpha = measures(
            table, ["percent", "krippendorff_alpha"], level=subject.panel.level, field=subject.panel.field
        )
        rows.append([name, times, percent, alpha, percent])
    if not rows:
        return Section("consistency", title, absent="no unit was labelled twice by the same annotator")
    columns = heads("text", "annotator") + heads("number", "times")
    columns += heads("brief", "percent agreement", "Krippendorff's alpha") + COUNTS
    note = (
        "This compares two labels of one unit by the same annotator. All other sections use the first label."
    )
    table_of_all = Table("consistency", "Self-consistency", columns, rows, (note,))
    return Section("consistency", title, [table_of_all], ["alpha", "bootstrap"])


def _repeats(store: Store, subject: Subject, name: str) -> tuple[Ratings | None, int]:
    """Return a table of one annotator's labels with one column per repeat, and the number of columns.

    If the annotator labelled no unit more than once, return (None, 1).
    """
    annotator = subject.run_ids.get(name, name)
    most, answers = relation.repeats(
        store.conn, annotator, subject.panel.field, subject.panel.kinds[name] is AnnotatorKind.JUDGE
    )
    if not most:
        return None, 1
    domain = set(subject.panel.domain)
    rows = [
        (unit, f"repeat {repeat}", value if value in domain else None, question)
        for unit, repeat, value, question in answers
    ]
    # Each repeat takes the place of an annotator, so self-agreement is measured as if two people had labelled.
    return Ratings.from_rows(rows, subject.panel.domain), most + 1


def revisions(store: Store, subject: Subject) -> Section:
    """Return the section on labels that were changed after seeing the judge's label.

    It shows how often each person changed a label, and how often the change was towards or away from the judge's label.
    """
    title = "Labels revised after the judge's label was shown"
    revised = relation.read_revised(store.conn, subject.panel.field)
    revised = {person: labels for person, labels in revised.items() if person in subject.panel.people}
    shown = read_revealed(store, subject.options.batch, subject.panel.field)
    # Imported revisions do not record which judge was seen.
    judges = [j for j in subject.panel.judges if not shown or subject.run_ids[j] in shown]
    rows: list[list[Cell]] = [
        _count_revised(subject, person, judge, later) for person, later in revised.items() for judge in judges
    ]
    if not rows:
        return Section("revisions", title, absent="no label was revised: each person gave only a first label")
    columns = heads("text", "person", "judge")
    columns += heads("brief", "changed", "towards the judge", "away from the judge") + COUNTS
    others = [j for j in subject.panel.judges if j not in judges]
    notes = (
        *(
            [f"Judges that people did not see, and that are not in this table: {', '.join(others)}."]
            if others
            else []
        ),
        *(
            []
            if shown
            else ["The study does not record which judge people had seen when they revised these labels."]
        ),
        "Shares are of the units that have a first label, a later label, and a label from the judge. Towards: only the "
        "later label equals the judge's. Away: only the first label equals the judge's.",
        "All other sections use first labels only.",
    )
    return Section("revisions", title, [Table("revisions", "Revisions", columns, rows, notes)], ["bootstrap"])


def _count_revised(subject: Subject, person: str, judge: str, later: Mapping[str, str]) -> list[Cell]:
    domain = subject.panel.domain
    both = subject.has_label(person) & subject.has_label(judge)
    used = np.flatnonzero(both & subject.panel.table.find(later))
    first_labels, judged = subject.panel.labels_of(person, used), subject.panel.labels_of(judge, used)
    units = subject.panel.table.ids(used.tolist())
    changed, towards, away = (np.zeros(len(used)) for _ in range(3))
    for i, unit in enumerate(units):
        first, second, shown = domain[first_labels[i]], later[unit], domain[judged[i]]
        changed[i] = first != second
        towards[i] = first != second and second == shown
        away[i] = first != second and first == shown
    clusters = subject.panel.table.clusters[used]

    # Both are shares of the same units, so that they can be compared.
    def rate(name: str, values: FloatArray) -> Cell:
        return mean(
            values, measure=name, clusters=clusters, field=subject.panel.field, annotators=(person, judge)
        )

    every = rate("revised", changed)
    return [person, judge, every, rate("revised_towards", towards), rate("revised_away", away), every]
