"""Notes that must accompany a number: a code with parameters, turned into words here and nowhere else.

Code that computes a number makes `Note("few_units", n=12, least=50)`. Code that shows it prints the note, reads its
`code`, or uses its `general` words if the counts are shown beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judge.commands import command


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _rare(least: int, labels: tuple[tuple[str, int], ...]) -> str:
    listed = ", ".join(f"'{label}' ({n})" for label, n in labels)
    return f"rare labels, on fewer than {least} units: {listed}"


def _nothing_wrong(cut: float | None) -> str:
    sentence = "no disagreement was seen: the lower bound is the exact binomial one"
    if cut is None:
        return sentence
    return f"{sentence}, cut at {cut:g}, the least there can be: so few units say next to nothing"


def _none_seen(cut: bool) -> str:
    sentence = "none was seen: the upper bound is the exact binomial one"
    return f"{sentence}, cut at 1: so few units say next to nothing" if cut else sentence


def _no_value(requested: int, missing: Mapping[str, int]) -> str:
    lost = ", ".join(f"{n} {name}" for name, n in missing.items())
    return f"{sum(missing.values())} of {requested} units have no value: {lost}"


HUMAN_ONLY = {
    "all_labelled": "every unit has a human label",
    "no_judge": "the judge has no value",
    "constant": "the judge gives the same value everywhere",
    "wider": "with the judge the interval would be wider",
    "unrelated": "the judge's values do not rise with the human ones",
}
"""Why a corrected number is based on human labels alone."""


def _signed_rank(n: int, of: int, fewest: int, least: int, noun: str) -> str:
    who = f"{n} of {of} people" if n < of else "all"
    return (
        f"{who} tested on fewer than {least} {noun}s (down to {fewest}): the signed-rank test of shifted differences wins too "
        "easily there"
    )


def few(names: Sequence[str]) -> str:
    """Return the names, or three of them and the number of the others."""
    first = [*names[:3], *([f"{len(names) - 3} more"] if len(names) > 3 else [])]
    return " and ".join([*([", ".join(first[:-1])] if len(first) > 1 else []), first[-1]])


# Functions and no format strings, because plurals and optional clauses follow the numbers.
WORDS: Mapping[str, Callable[..., str]] = {
    "few_questions": lambda n, least: (
        f"only {_counted(n, 'question')}: with fewer than {least} the interval is too narrow"
    ),
    "few_units": lambda n, least: (
        f"only {_counted(n, 'unit')}: with fewer than {least} the interval is unreliable"
    ),
    "few_labelled": lambda n, noun, least: f"only {_counted(n, noun)} {'has' if n == 1 else 'have'} labels",
    "rare_labels": _rare,
    "undefined_left_out": lambda share: (
        f"{f'{share:.1%}' if share >= 0.001 else 'under 0.1%'} of the resamples are undefined and left out"
    ),
    "undefined_no_interval": lambda share: f"no interval: {share:.0%} of the resamples are undefined",
    "no_width": lambda: "the interval has no width: every resample gives this value",
    "percentile": lambda: "percentile interval: the BCa correction is undefined here",
    "nothing_wrong_seen": _nothing_wrong,
    "none_seen": _none_seen,
    "no_value": _no_value,
    "one_cluster": lambda: "no interval: it takes at least two questions or units",
    "jackknife": lambda: "jackknife interval by question, quantiles of t",
    "same_everywhere": lambda: (
        "no interval: the difference is the same on every question; its p value is that of the sign test"
    ),
    "weighted": lambda n_eff, interval=False: (
        f"units were drawn with unequal probabilities and are weighted: effective sample size {n_eff:,.0f} (Kish)"
        + ("" if interval else "; no interval, which would be too narrow where a label is rare")
    ),
    "cut": lambda least, most, value: f"cut to {least:g}..{most:g} from {value:.3f}",
    "all_same": lambda bounded: (
        "all values are the same: the other bound is the exact binomial one"
        if bounded
        else "no interval: all values are the same"
    ),
    "human_only": lambda why: f"human only: {HUMAN_ONLY[why]}",
    "filled": lambda n: f"units without a judge's value count with the mean of the others: {n}",
    "left_out": lambda n: f"units without a judge's value are left out: {n}",
    "few_for_rates": lambda ones, zeros, least: (
        f"sensitivity rests on {ones} labelled units, specificity on {zeros}: fewer than {least} say little"
    ),
    "least_others": lambda n: (
        f"units count that {n} others labelled, as the paper's text suggests; the authors' code takes one"
    ),
    "signed_rank": _signed_rank,
    "by_question": lambda: (
        "standard errors are by question, which the authors' code does not do: units of one question are alike"
    ),
    "by_unit": lambda: (
        "units are taken as independent, as in the authors' code: wins come too easily where a question has several"
    ),
    "small_pilot": lambda n, least: (
        f"only {_counted(n, 'question')} in the pilot: with fewer than {least} its spread, and how alike units of a question "
        "are, are rough guesses; plan again on the way"
    ),
    "few_planned": lambda least: (
        f"fewer than {least} questions make an interval that is somewhat too narrow, whatever their number of units"
    ),
    "side_open": lambda threshold, confidence: (
        f"the pilot's own {100 * confidence:g} % interval holds {threshold:g}: the chance is that of a truth which is the pilot's "
        "value; near the limit no number of labels can be promised (--verdict plans over all that the pilot leaves open)"
    ),
    "tied": lambda n, of: f"majority of the people: {n} of {of} units are tied and have none",
    "ruled": lambda who, n, agreed: (
        f"{who}: {n:,} units were adjudicated, because people differ on them, and on {agreed:,} others two or more agree; the "
        "adjudicated units alone are the hardest ones"
    ),
    "outside": lambda who, field, labels: (
        f"labels of '{who}' that are not among the labels of '{field}', left out: "
        + ", ".join(f"'{label}' ({n})" for label, n in labels)
    ),
    "no_task": lambda field, level: (
        f"no task of the study defines '{field}': its labels are those found, level {level}"
    ),
    "other_labels": lambda field, tasks: (
        f"runs of {', '.join(tasks)} are left out: other labels of '{field}'"
    ),
    "origin": lambda who, text: f"{who}: {text}",
    "in_conflict": lambda n, who: (
        f"{_counted(n, 'label')} of {', '.join(who)} {'is' if n == 1 else 'are'} in conflict: given differently in two "
        f"ways, and counted as unlabelled until somebody decides ({command('annotate conflicts list')})"
    ),
    "fitted_on": lambda who, n: (
        f"{who}: {n:,} units are left out, because it was fitted on labels of their questions"
    ),
    "sealed": lambda n, task, looked: f"{n:,} of the units are in the sealed test of {task}, which {looked}",
    "closed": lambda n, task: (
        f"labels of {n:,} run{'s' if n > 1 else ''} on the sealed test of {task} are left out: no look at it was for "
        f"{'them' if n > 1 else 'that run'} (this opens it, and the look is logged: {command('judge compare', task, '--part', 'test')})"
    ),
    "alike": lambda names, kind, how: (
        f"{', '.join(repr(name) for name in names)} are different {kind}: they differ in {how} only"
    ),
    "more_alike": lambda n, kind, how: f"{n:,} more groups of {kind} differ in {how} only",
    "no_cluster": lambda n: f"{n} units have no cluster: each stands for itself",
    "swapped": lambda annotators, units: (
        f"more annotators ({annotators}) than units ({units}): are the two swapped?"
    ),
}
"""Code -> the words, from the parameters."""

GENERAL: Mapping[str, Callable[..., str]] = {
    "few_questions": lambda n, least: f"fewer than {least} questions: the interval is too narrow",
    "few_units": lambda n, least: f"fewer than {least} units: the interval is unreliable",
    "few_labelled": lambda n, noun, least: f"fewer than {least} {noun}s have labels",
    "rare_labels": lambda least, labels: f"rare labels, on fewer than {least} units",
    "undefined_left_out": lambda share: "some of the resamples are undefined and left out",
}
"""Code -> the words without counts, for a table whose rows have different counts."""

SMALL = ("few_questions", "few_units", "few_labelled")
"""Codes that warn of an interval with little data."""


class Note(str):
    """The words of a code; an ordinary string for code that only prints it."""

    code: str
    parameters: Mapping[str, Any]

    def __new__(cls, code: str, **parameters: Any) -> Note:
        # Words are made at once: the command in a note names the study of the command that is running now.
        note = super().__new__(cls, WORDS[code](**parameters))
        note.code, note.parameters = code, parameters
        return note

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and pickles of a subclass of `str` would otherwise call `__new__` with the words as the code.
        return _made, (self.code, dict(self.parameters))

    @property
    def general(self) -> str:
        """The words without counts."""
        return GENERAL[self.code](**self.parameters) if self.code in GENERAL else str(self)


def _made(code: str, parameters: Mapping[str, Any]) -> Note:
    return Note(code, **parameters)


def code_of(note: str) -> str | None:
    """Return the code of a note; None for other text."""
    return note.code if isinstance(note, Note) else None


def general(note: str) -> str:
    """Return a note without its counts, if it has a code."""
    return note.general if isinstance(note, Note) else note
