"""Optional results of `annotate agreement`: the alt-test, and Dawid & Skene's latent labels."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from judge.document.blocks import Block, Cell, Paragraph, Section, Table, heads, list_measures
from judge.document.cells import format_count
from judge.errors import UsageError
from judge.labels.panel import Panel
from judge.stats import AltTest, DawidSkene, alt_test, dawid_skene, measures
from judge.stats.alternative import CLOSENESS
from judge.stats.bootstrap import IntervalOptions
from judge.types import Json, Measure

LATENT = "dawid_skene"
FOLD = 12
"""The number of annotators in a table that are always shown."""


class Extras:
    """The alt-test for each judge, and the latent labels for one field. Each is computed only if it is requested."""

    def __init__(self, panel: Panel, options: IntervalOptions, epsilon: float | None, latent: bool) -> None:
        """Compute the requested results. The alt-test is not computed if `epsilon` is None. Raises UsageError
        if data is missing.
        """
        self.panel = panel
        # Gold is not included, because the estimated labels are compared with it.
        self.names = panel.people + panel.judges
        self.alt_tests = [] if epsilon is None else _alt_tests(panel, epsilon)
        self.latent: DawidSkene | None = None
        self.against: list[Measure] = []
        if latent:
            self._find_latent(options)

    def _find_latent(self, options: IntervalOptions) -> None:
        panel = self.panel
        if panel.numeric:
            raise UsageError(f"--measure dawid_skene requires labels, but '{panel.field}' has numbers")
        if len(self.names) < 2:
            raise UsageError("--measure dawid_skene requires at least two people or judges")
        table = panel.add_weights(panel.ratings.select(self.names))
        self.latent = dawid_skene(table)
        if panel.known:
            # If units are weighted, units that were not drawn are in neither table.
            known = panel.of_draw if table.weights is not None else panel.table
            pair = known.select(panel.known[:1]).with_annotator(LATENT, self.latent.codes)
            keys = ["percent", "cohen_kappa"]
            self.against = measures(pair, keys, level=panel.level, field=panel.field, **options)

    def sections(self) -> Iterator[Section]:
        """Yield a section for each requested result."""
        closeness = CLOSENESS["interval" if self.panel.level == "ratio" else self.panel.level]
        for number, test in enumerate(self.alt_tests, 1):
            blocks: list[Block] = [Paragraph(f"\nalt-test: {describe_alt_test(test.judge, test)}")]
            if test.compared:
                blocks.append(alt_test_table(test.judge, test, number, closeness))
            yield Section(
                f"alternative_{number}", "Alternative annotator test", [*blocks, *alt_test_notes(test)]
            )
        if self.latent is not None:
            yield Section("latent", "Latent labels", list(self._latent_tables(self.latent)))

    def as_json(self) -> dict[str, Json]:
        """Return the JSON values `alt_tests` and `dawid_skene`. A value is null if it was not requested."""
        return {
            "alt_tests": [_alt_test_json(test) for test in self.alt_tests],
            "dawid_skene": None if self.latent is None else self._latent_json(self.latent),
        }

    def _counts(self) -> list[int]:
        return [int(self.panel.ratings.has_label(name).sum()) for name in self.names]

    def _latent_json(self, latent: DawidSkene) -> dict[str, Json]:
        rows = zip(self.names, self._counts(), latent.accuracies, latent.confusion.tolist(), strict=True)
        return {
            "labels": list(self.panel.domain),
            "prevalence": latent.prevalence.tolist(),
            "annotators": [
                {"annotator": name, "n_labels": n, "accuracy": accuracy, "confusion": _replace_nan(matrix)}
                for name, n, accuracy, matrix in rows
            ],
            "against_reference": [m.as_json() for m in self.against],
            "iterations": latent.iterations,
            "converged": latent.converged,
        }

    def _latent_tables(self, latent: DawidSkene) -> Iterator[Table]:
        labels = self.panel.domain
        stopped = "" if latent.converged else ", not converged"
        caption = f"Dawid-Skene: the latent true labels ({latent.iterations} iterations{stopped})"
        classes: list[list[Cell]] = [
            [label, share] for label, share in zip(labels, latent.prevalence.tolist(), strict=True)
        ]
        yield Table(
            "prevalence", caption, heads("text", "true label") + heads("share", "prevalence"), classes
        )
        yield accuracy_table(labels, latent, self.names, self._counts(), "annotator")
        if self.against:
            yield list_measures("latent_agreement", f"latent labels with {self.panel.known[0]}", self.against)


def accuracy_table(
    labels: Sequence[str], model: DawidSkene, names: Sequence[str], counts: Sequence[int], who: str
) -> Table:
    """Return each annotator's probability of giving the true label: overall, and for each class.

    The overall probability is the mean over the classes, weighted by their prevalence. Annotators with the most
    labels come first, because they matter most in a crowd. `who` is a word for one annotator.
    """
    order = sorted(range(len(names)), key=lambda a: (-counts[a], names[a]))
    rows: list[list[Cell]] = [[names[a], model.accuracies[a], *model.right[a], counts[a]] for a in order]
    columns = heads("text", who)
    columns += heads("share", "estimated accuracy", *(f"right on '{label}'" for label in labels))
    columns += heads("number", "units labelled")
    note = f"A cell is blank if the {who} labelled no unit of that class."
    return Table("accuracies", f"Each {who}'s estimated accuracy", columns, rows, (note,), fold=FOLD)


def describe_alt_test(judge: str, test: AltTest) -> str:
    """Return the result of the alternative annotator test in words, or the reason why there is none."""
    if test.winning_rate is None:
        return f"{judge} was not tested: {test.reason}."
    won = sum(row.won for row in test.compared)
    return (
        f"{judge} wins against {won:,} of {format_count(len(test.compared), 'person', 'people')} tested: winning rate {test.winning_rate:.3f} "
        f"({'passed' if test.passed else 'not passed'}; at least 0.5 passes), advantage probability {test.advantage:.3f}. "
        f"Epsilon is {test.epsilon:g}, the false discovery rate {test.q:g}."
    )


def alt_test_table(judge: str, test: AltTest, number: int, closeness: str) -> Table:
    """Return the comparison of the judge with each person. `closeness` says how it is measured."""
    rows: list[list[Cell]] = [
        [
            *(row.annotator, row.judge_wins, row.annotator_wins, row.p_value, row.adjusted),
            {"t": "t", "wilcoxon": "Wilcoxon", "none": "none"}[row.test],
            "" if row.p_value is None else "yes" if row.won else "no",
            *(row.n_units, row.n_clusters),
        ]
        for row in sorted(test.compared, key=lambda row: (-row.n_units, row.annotator))
    ]
    columns = heads("text", "person left out")
    columns += heads("share", "judge at least as close", "person at least as close")
    columns += heads("p", "p", "p, adjusted") + heads("text", "test", "judge wins")
    columns += heads("number", "units", "questions")
    note = (
        f"Closeness to the other people is {closeness}. The two columns are shares of units; ties count for both, so a row can "
        "sum to more than 100 %."
    )
    caption = f"{judge} against each person, by closeness to the others"
    return Table(f"alternative_{number}", caption, columns, rows, (note,), fold=FOLD)


def alt_test_notes(test: AltTest) -> list[Paragraph]:
    """Return the notes on the test, and the people that it leaves out."""
    notes = [f"Notes on this test: {'; '.join(test.notes)}."] if test.notes else []
    if test.skipped:
        reasons = "; ".join(f"{name} ({why})" for name, why in test.skipped[:3])
        more = f"; and {len(test.skipped) - 3} more" if len(test.skipped) > 3 else ""
        notes.append(f"Left out of the test of {test.judge}: {reasons}{more}.")
    return [Paragraph(text, "note") for text in notes]


def _alt_tests(panel: Panel, epsilon: float) -> list[AltTest]:
    # The test leaves one person out and compares judge and person with the others, so it takes two.
    if len(panel.people) < 2 or not panel.judges:
        raise UsageError(
            "--measure alt_test requires a judge (--judge NAME) and at least two people, preferably three"
        )
    if panel.are_scores:
        raise UsageError(f"--measure alt_test requires labels, but '{panel.field}' has continuous values")
    level = "interval" if panel.level == "ratio" else panel.level
    return [
        alt_test(panel.add_weights(panel.ratings), judge, panel.people, level=level, epsilon=epsilon)
        for judge in panel.judges
    ]


def _alt_test_json(test: AltTest) -> dict[str, Json]:
    return {
        **asdict(test),
        "compared": [asdict(comparison) for comparison in test.compared],
        "skipped": [{"annotator": name, "reason": reason} for name, reason in test.skipped],
    }


def _replace_nan(matrix: list[list[float]]) -> list[list[float | None]]:
    # A label that nobody has in the latent classes has no rates, and JSON has no NaN.
    return [[None if math.isnan(v) else v for v in row] for row in matrix]
