"""Optional results of `annotate agreement`: the alt-test, and Dawid & Skene's latent labels."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from annotate.cli._show import MOST_SHOWN
from judge.console import visible
from judge.document.terminal import table
from judge.errors import UsageError
from judge.labels.panel import Panel
from judge.stats import AltTest, DawidSkene, alt_test, dawid_skene, measures
from judge.stats.bootstrap import IntervalOptions
from judge.types import Json, Measure

LATENT = "dawid_skene"


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

    def texts(self) -> list[str]:
        """Return one text for each requested result."""
        parts = [_alt_test_text(test) for test in self.alt_tests]
        if self.latent is not None:
            parts.append(self._latent_text(self.latent))
        return parts

    def as_json(self) -> dict[str, Json]:
        """Return the JSON values `alt_tests` and `dawid_skene`. A value is null if it was not requested."""
        return {
            "alt_tests": [_alt_test_json(test) for test in self.alt_tests],
            "dawid_skene": None if self.latent is None else self._latent_json(self.latent),
        }

    def _counts(self) -> list[int]:
        return [int((self.panel.ratings.column(name) >= 0).sum()) for name in self.names]

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

    def _latent_text(self, latent: DawidSkene) -> str:
        labels = self.panel.domain
        stopped = "" if latent.converged else ", not converged"
        lines = [f"Dawid-Skene: the latent true labels ({latent.iterations} iterations{stopped})"]
        shares = list(zip(labels, latent.prevalence.tolist(), strict=True))
        lines.append(table(["true label", "prevalence"], shares))
        every = zip(self.names, self._counts(), latent.accuracies, latent.right, strict=True)
        rows: list[list[Any]] = [[name, n, accuracy, *right] for name, n, accuracy, right in every]
        title = "annotator"
        # In a crowd of hundreds of people, those with the most labels matter most.
        if len(rows) > 3 * MOST_SHOWN:
            title = f"annotator ({MOST_SHOWN} of {len(rows)} with the most labels)"
            rows = sorted(rows, key=lambda row: -int(row[1]))[:MOST_SHOWN]
        lines.append(table([title, "labels", "accuracy", *(f"correct on {label}" for label in labels)], rows))
        if self.against:
            agreements = ", ".join(f"{m.measure} {m.with_interval}" for m in self.against)
            lines.append(visible(f"latent labels with {self.panel.known[0]}: {agreements}"))
        return "\n\n".join(lines)


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


def _alt_test_text(result: AltTest) -> str:
    head = ["annotator", "units", "judge wins", "annotator wins", "test", "p (adjusted)", "judge won"]
    rows: Sequence[Sequence[Any]] = [
        [
            *(c.annotator, c.n_units, c.judge_wins, c.annotator_wins, c.test),
            *("" if c.adjusted is None else f"{c.adjusted:.4f}", "yes" if c.won else "no"),
        ]
        for c in result.compared
    ]
    lines = [visible(f"alt-test of {result.judge} (epsilon {result.epsilon:g}, q {result.q:g})")]
    if 0 < len(rows) <= 3 * MOST_SHOWN:
        lines.append(table(head, rows))
    if result.winning_rate is None or result.advantage is None:
        lines.append(f"not decided: {result.reason}")
    else:
        lines.append(
            f"winning rate {result.winning_rate:.3f} over {len(result.compared)} annotators, advantage probability "
            f"{result.advantage:.3f}: {'passed' if result.passed else 'not passed'} (0.5 passes)"
        )
    if result.skipped:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in result.skipped[:3])
        more = " ..." if len(result.skipped) > 3 else ""
        lines.append(visible(f"not tested: {len(result.skipped)} ({reasons}{more})"))
    lines += [f"- {note}" for note in result.notes]
    return "\n".join(lines)


def _alt_test_json(test: AltTest) -> dict[str, Json]:
    return {
        **asdict(test),
        "compared": [asdict(comparison) for comparison in test.compared],
        "skipped": [{"annotator": name, "reason": reason} for name, reason in test.skipped],
    }


def _replace_nan(matrix: list[list[float]]) -> list[list[float | None]]:
    # A label that nobody has in the latent classes has no rates, and JSON has no NaN.
    return [[None if math.isnan(v) else v for v in row] for row in matrix]
