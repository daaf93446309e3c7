"""Notes that must accompany a number.

A note consists of a code and parameters. Only this module turns them into words.

Code that computes a number creates `Note("few_units", n=12, least=50)`. Code that shows the number prints the
note or reads its `code`. If the counts in a note are already shown elsewhere, its `general` words are printed
instead, which contain no counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judge.commands import command


def _format_count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _rare(least: int, labels: tuple[tuple[str, int], ...]) -> str:
    listed = ", ".join(f"'{label}' ({n})" for label, n in labels)
    return f"labels that fewer than {least} units have: {listed}"


def _nothing_wrong(cut: float | None) -> str:
    sentence = "no disagreement was observed, so the lower bound is the exact binomial bound"
    if cut is None:
        return sentence
    return f"{sentence}, limited to the smallest possible value {cut:g}: there are too few units to conclude anything"


def _note_none_seen(cut: bool) -> str:
    sentence = "no such unit was observed, so the upper bound is the exact binomial bound"
    return f"{sentence}, limited to 1: there are too few units to conclude anything" if cut else sentence


def _note_no_value(requested: int, missing: Mapping[str, int]) -> str:
    lost = ", ".join(f"{n} {name}" for name, n in missing.items())
    return f"{sum(missing.values())} of {requested} units have no value: {lost}"


HUMAN_ONLY = {
    "all_labelled": "every unit has a human label",
    "no_judge": "the judge has no value",
    "constant": "the judge gives the same value everywhere",
    "wider": "using the judge's labels would widen the interval",
    "unrelated": "the judge's values do not increase with the human labels",
}
"""Why a corrected number is based on human labels alone."""


def _describe_signed_rank(n: int, of: int, fewest: int, least: int, noun: str) -> str:
    who = f"{n} of {of} people" if n < of else "all people"
    return (
        f"{who} tested on fewer than {least} {noun}s (minimum {fewest}): the signed-rank test then lets the judge win too "
        "often"
    )


def list_briefly(names: Sequence[str]) -> str:
    """Return the names as a list in words. After three names, only the number of the others is given."""
    first = [*names[:3], *([f"{len(names) - 3} more"] if len(names) > 3 else [])]
    return " and ".join([*([", ".join(first[:-1])] if len(first) > 1 else []), first[-1]])


# These are functions instead of format strings, because plurals and optional clauses depend on the numbers.
WORDS: Mapping[str, Callable[..., str]] = {
    "few_questions": lambda n, least, covered=None: (
        f"only {_format_count(n, 'question')}: with fewer than {least} the interval is too narrow"
        + (f" (with ten, its coverage is {covered:.0%})" if covered else "")
    ),
    "few_units": lambda n, least: (
        f"only {_format_count(n, 'unit')}: with fewer than {least} the interval is unreliable"
    ),
    "few_labelled": lambda n, noun, least: (
        f"only {_format_count(n, noun)} {'has' if n == 1 else 'have'} labels"
    ),
    "rare_labels": _rare,
    "undefined_left_out": lambda share: (
        f"{f'{share:.1%}' if share >= 0.001 else 'under 0.1%'} of the resamples are undefined and were left out"
    ),
    "undefined_no_interval": lambda share: f"no interval: {share:.0%} of the resamples are undefined",
    "no_width": lambda: "the interval has no width: every resample gives this value",
    "percentile": lambda: "percentile interval: the BCa correction is undefined here",
    "nothing_wrong_seen": _nothing_wrong,
    "none_seen": _note_none_seen,
    "no_value": _note_no_value,
    "one_cluster": lambda: "no interval: an interval requires at least two questions or units",
    "jackknife": lambda: "jackknife interval by question, with quantiles of Student's t",
    "same_everywhere": lambda: (
        "no interval: the difference is the same for every question; the p value is from the sign test"
    ),
    "weighted": lambda n_eff, interval=False: (
        f"units were drawn with unequal probabilities and are weighted: effective sample size {n_eff:,.0f} (Kish)"
        + ("" if interval else "; no interval, because it would be too narrow for rare labels")
    ),
    "cut": lambda least, most, value: (
        f"limited to the range {least:g} to {most:g}; the computed value was {value:.3f}"
    ),
    "all_same": lambda bounded: (
        "all values are the same, so the other bound is the exact binomial bound"
        if bounded
        else "no interval: all values are the same"
    ),
    "human_only": lambda why: f"human only: {HUMAN_ONLY[why]}",
    "filled": lambda n: f"units without a value from the judge that count as the mean of the others: {n}",
    "left_out": lambda n: f"units without a value from the judge that were left out: {n}",
    "few_for_rates": lambda ones, zeros, least: (
        f"sensitivity is based on {ones} labelled units and specificity on {zeros}: fewer than {least} are unreliable"
    ),
    "least_others": lambda n: (
        f"only units with labels from {n} other people count, as in the paper's text; the authors' code requires 1"
    ),
    "signed_rank": _describe_signed_rank,
    "by_question": lambda: "standard errors are clustered by question, unlike in the authors' code",
    "by_unit": lambda: (
        "units are treated as independent, as in the authors' code: with several units per question, the judge wins too often"
    ),
    "small_pilot": lambda n, least: (
        f"only {_format_count(n, 'question')} in the pilot: with fewer than {least}, the variance and the similarity of units "
        "within a question are rough estimates; plan again when more units are labelled"
    ),
    "few_planned": lambda least: (
        f"with fewer than {least} questions the interval is slightly too narrow, however many units they have"
    ),
    "side_open": lambda threshold, confidence: (
        f"the {100 * confidence:g} % interval of the pilot contains {threshold:g}: the probability assumes that the true value "
        "equals the pilot's value; near the limit, no number of labels can be guaranteed (--verdict covers all values that "
        "fit the pilot)"
    ),
    "tied": lambda n, of: f"majority of the people: {n} of {of} units are tied and have no majority label",
    "ruled": lambda who, n, agreed: (
        f"{who}: {n:,} units were adjudicated because people disagree on them; on {agreed:,} other units, two or more people "
        "agree; the adjudicated units alone are the hardest units"
    ),
    "models_as_people": lambda who: (
        f"{', '.join(who)} {'looks like a model and counts' if len(who) == 1 else 'look like models and count'} as people, "
        "because --annotators names them; for a judge, use --judge"
    ),
    "outside": lambda who, field, labels: (
        f"labels of '{who}' were left out, because they are not among the labels of '{field}': "
        + ", ".join(f"'{label}' ({n})" for label, n in labels)
    ),
    "no_task": lambda field, level: (
        f"no task in the study defines '{field}': the labels in the data are used, with level {level}"
    ),
    "other_labels": lambda field, tasks: (
        f"runs of {', '.join(tasks)} were left out, because their labels of '{field}' are different"
    ),
    "origin": lambda who, text: f"{who}: {text}",
    "in_conflict": lambda n, who: (
        f"{_format_count(n, 'label')} from {', '.join(who)} {'is' if n == 1 else 'are'} in conflict with another label by the same "
        f"person, and treated as missing until the conflict is resolved ({command('annotate conflicts list')})"
    ),
    "versions": lambda labels, only, unversioned: (
        f"people gave their labels under {_format_count(len(labels), 'version')} of the task: "
        + ", ".join(f"{task} ({n:,})" for task, n in labels)
        + (
            f"; {unversioned:,} labels without a batch have no recorded version, and are included"
            if unversioned
            else ""
        )
        + (
            f"; only those under {only} are used"
            if only
            else "; they are used together; for one version, pass --task NAME.vN"
        )
    ),
    "old_text": lambda n, who: (
        f"{_format_count(n, 'label')} from {', '.join(who)} {'was' if n == 1 else 'were'} given before the text of the unit was "
        "corrected, and not used until the unit is labelled again"
    ),
    "fitted_on": lambda who, n: (
        f"{who}: {n:,} units were left out, because the judge was fitted on labels of their questions"
    ),
    "sealed": lambda n, task, looked: f"{n:,} of the units are in the sealed test of {task}, which {looked}",
    "closed": lambda n, task: (
        f"labels of {n:,} run{'s' if n > 1 else ''} on the sealed test of {task} were left out, because the test was not "
        f"opened for {'them' if n > 1 else 'it'}; to open it (each use is logged): {command('judge compare', task, '--part', 'test')}"
    ),
    "alike": lambda names, kind, how: (
        f"{', '.join(repr(name) for name in names)} are different {kind}, although they differ only in {how}"
    ),
    "more_alike": lambda n, kind, how: f"{n:,} more groups of {kind} differ only in {how}",
    "no_cluster": lambda n: f"{n} units have no cluster: each is treated as a separate cluster",
    "swapped": lambda annotators, units: (
        f"there are more annotators ({annotators}) than units ({units}): are the columns swapped?"
    ),
}
"""Maps each code to a function that returns the words for its parameters."""

GENERAL: Mapping[str, Callable[..., str]] = {
    "few_questions": lambda n, least, covered=None: (
        f"fewer than {least} questions: the interval is too narrow"
    ),
    "few_units": lambda n, least: f"fewer than {least} units: the interval is unreliable",
    "few_labelled": lambda n, noun, least: f"fewer than {least} {noun}s have labels",
    "rare_labels": lambda least, labels: f"some labels occur on fewer than {least} units",
    "undefined_left_out": lambda share: "some of the resamples are undefined and were left out",
}
"""Maps codes to words without counts, for tables whose rows have different counts."""

SMALL = ("few_questions", "few_units", "few_labelled")
"""Codes of warnings about intervals that are based on little data."""


class Note(str):
    """A note: a string with the words, and the code and parameters that they were made from."""

    code: str
    parameters: Mapping[str, Any]

    def __new__(cls, code: str, **parameters: Any) -> Note:
        # The words are created immediately, because a command in a note names the study of the running
        # command.
        note = super().__new__(cls, WORDS[code](**parameters))
        note.code, note.parameters = code, parameters
        return note

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and pickles of a subclass of `str` would otherwise call `__new__` with the words as the code.
        return _make_note, (self.code, dict(self.parameters))

    @property
    def general(self) -> str:
        """The text of the note without counts, if such a text is defined. Otherwise, the full text."""
        return GENERAL[self.code](**self.parameters) if self.code in GENERAL else str(self)


def _make_note(code: str, parameters: Mapping[str, Any]) -> Note:
    return Note(code, **parameters)


def code_of(note: str) -> str | None:
    """Return the code of a note, or None for any other text."""
    return note.code if isinstance(note, Note) else None


def general(note: str) -> str:
    """Return the general form of a note, which has no counts. Any other text is returned unchanged."""
    return note.general if isinstance(note, Note) else note
