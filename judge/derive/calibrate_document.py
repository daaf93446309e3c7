"""A calibration as a document: how it was fitted, the measures before and after, and what they show."""

from collections.abc import Iterator, Mapping

from judge.derive.calibrate import Calibrated
from judge.document.blocks import Cell, Document, Notes, Paragraph, Section, Table, heads, interval_head
from judge.document.cells import difference as signed
from judge.document.cells import interval
from judge.types import Json


def as_document(result: Calibrated, run: Mapping[str, Json], word: str | None) -> Document:
    """Return the calibration of `run`. `word` names the reference labels, or is None if there are none."""
    title = f"{result.method} calibration of run {run['run_id']} ({run['model']}, {run['task']}), field {result.field}"
    about = []
    if (f := result.fitted) is not None:
        fitted = f"{f.units:,} labels from '{f.reference}' for {len(f.folds):,} questions, cross-fitted by question"
        about.append(("fitted on", fitted))
    elif result.method == "batch":
        about.append(("fitted without labels", f"target shares: {result.parameters['prior']}"))
    shares: list[list[Cell]] = [[label, before, after] for label, (before, after) in result.shares.items()]
    columns = heads("text", "label") + heads("share", "share before", "after")
    sections = [
        Section("measures", "Measures", [_measures(result)] if result.measures else []),
        Section("shares", "Shares of the labels", [Table("shares", "", columns, shares)]),
        Section(
            "results",
            "What this shows",
            [Paragraph(f"\n{_fit(result)}"), Notes(list(_results(result, word)))],
        ),
    ]
    return Document(title, about, sections=sections)


def _measures(result: Calibrated) -> Table:
    rows: list[list[Cell]] = []
    for before, after, difference in result.measures:
        value = difference.value if difference else None
        # Without an interval, nothing can be tested, but the difference is still shown.
        if difference is None and before.value is not None and after.value is not None:
            value = after.value - before.value
        span = "" if difference is None else interval(difference.low, difference.high)
        counted = difference or after
        rows.append(
            [after.title, before.value, after.value, value, span, counted.n_units, counted.n_clusters]
        )
    columns = (
        heads("text", "measure") + heads("number", "before", "after") + heads("difference", "after - before")
    )
    columns += heads("text", interval_head("difference", [result.measures[0][1].confidence]))
    return Table("measures", "", columns + heads("number", "units", "questions"), rows)


def _fit(result: Calibrated) -> str:
    p = result.parameters
    # An isotonic fit is a curve, without a temperature or a bias.
    if "steps" in p:
        return f"isotonic, {len(p['steps'][0]):,} probabilities"
    # Batch calibration fits no temperature.
    parts = [f"temperature {p['temperature']:.3f}"] if result.method != "batch" else []
    parts += [f"{label} {signed(b)}" for label, b in p.get("bias", {}).items()]
    return "fitted: " + ", ".join(parts)


def _results(result: Calibrated, word: str | None) -> Iterator[str]:
    """Yield sentences that explain the results."""
    if result.n_plain:
        yield f"{result.n_plain:,} units have a label without probabilities; their labels are unchanged"
    if not result.measures:
        yield "there are no labels to compare with, so it is unknown whether calibration helps"
        return
    yield from (f"{m.title}: {m.reason}" for pair in result.measures for m in pair[:2] if m.reason)
    s = result.signal
    if s is not None and s.value is not None and s.low is not None:
        verdict = "a signal" if s.low > 0 else "no signal is shown"
        if s.low <= 0 and result.has_signal:
            # A weak signal that orders the units is still a signal, even if few labels cannot show it.
            verdict = "too few labels to show a signal, but kappa is above 0"
        yield (
            f"the probabilities carry {signed(s.value)} nats ({interval(s.low, s.high)}) of information beyond the label "
            f"shares: {verdict}"
        )
    # Without a signal nothing is stored, so any change in agreement would be chance.
    if result.has_signal is False:
        return
    yield _describe_agreement(result, word)
    if result.method == "batch" and result.parameters["prior"] == "assumed":
        # If a label is rare, equal shares make the judge worse (judge.asking.judges has numbers).
        yield "equal label shares are only an assumption: the result is shown but not recommended"


def _describe_agreement(result: Calibrated, word: str | None) -> str:
    """Return a sentence on whether the agreement with the reference rose."""
    kappa = result.measures[0][2]
    if result.repaired:
        return f"agreement with '{word}' rose on questions that were not used for fitting"
    if not result.n_changed:
        return f"no label changed on the units labelled by '{word}', so the agreement is unchanged"
    if kappa is None or kappa.value is None:
        return f"the change in agreement with '{word}' is undefined: {kappa.reason if kappa else 'no labels'}"
    if kappa.low is None:
        return f"without an interval, it cannot be tested whether agreement with '{word}' rose"
    fell = kappa.high is not None and kappa.high < 0
    return f"agreement with '{word}': " + (
        "fell" if fell else "no improvement shown; the agreement may or may not have risen"
    )
