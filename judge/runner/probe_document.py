"""The results of probes as a document."""

from judge.document.blocks import Cell, Document, Notes, Section, Table, heads, interval_head
from judge.runner.probe import Probed, ProbeOutcome


def as_document(probed: Probed, task: str, model: str) -> Document:
    """Return the rate of each probe, with the number of labels that flipped, and the notes."""
    rows: list[list[Cell]] = [
        [row.probe, row.rate, row.flips, row.rate.n_units, row.lost, _explain_rate(row)]
        for row in probed.rows
    ]
    head = interval_head("rate", (row.rate.confidence for row in probed.rows if row.rate.low is not None))
    columns = heads("text", "probe") + heads("brief", head) + heads("number", "flips", "units", "lost")
    notes = []
    if probed.nothing is not None:
        notes.append(f"empty, boilerplate: the share with a label other than '{probed.nothing}'")
    spent = sum(report.usage["input_tokens"] + report.usage["output_tokens"] for report in probed.reports)
    notes += [
        *probed.notes,
        f"{spent:,} tokens; lost: units that had a label before the change but not after it",
    ]
    labelled = f"{probed.n_labelled} of {probed.n_units} units have a label; rates are shares of these units"
    table = Table("probes", "", columns + heads("text", ""), rows)
    return Document(
        f"{task} with {model}: {labelled}", sections=[Section("probes", "Probes", [table, Notes(notes)])]
    )


def _explain_rate(row: ProbeOutcome) -> str:
    if row.why is not None or row.rate.reason or row.towards is None:
        # The reason is a remark on the rate.
        return ""
    if row.probe == "injection":
        return f"{row.towards} to the requested label"
    return f"{row.towards} keep the label that they had with the passage"
