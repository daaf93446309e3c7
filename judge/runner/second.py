"""A second pass over multiple-choice questions: the model sees option probabilities and answers again (URAG, section 5.2).

`--shown RUN:self` shows the probabilities that the first pass RUN gave the options of each question, renormalised
over them; `--shown RUN:wrong` shows them with the probability of the most probable option and that of the least probable
one exchanged, for every question, whether or not the first pass was right; `--shown RUN:wrong-second` exchanges the most
probable option with the second. (The paper exchanges the first with "a lower one" and does not say which.) Of options with the same probability the first counts. A question with a single option, or
with the same probability for all, cannot be turned and is left out of both. Which option is right is never used.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from judge.errors import UsageError
from judge.store import label_rows
from judge.store.export import find_run, stored_task
from judge.store.study import Store

INPUT = "option_probabilities"
KINDS = ("self", "wrong", "wrong-second")


@dataclass(frozen=True, slots=True)
class ShownProbabilities:
    """Item -> the text that shows its probabilities. `name` tells the run by what it was shown."""

    name: str
    texts: dict[str, str]

    @property
    def mark(self) -> str:
        """What the condition of the answers ends in."""
        return mark(self.name.rpartition(":")[2])


def mark(kind: str) -> str:
    """What the condition of answers by a second pass ends in: `+self-aware`, `+wrong-aware`, `+wrong-second-aware`."""
    return f"+{kind}-aware"


def read_probabilities(store: Store, text: str) -> ShownProbabilities:
    """Read a `--shown`. Raises UsageError for anything else, and for a run without label probabilities."""
    of, _, kind = text.rpartition(":")
    if kind not in KINDS or not of:
        raise UsageError(
            f"--shown '{text}' is RUN:self, RUN:wrong or RUN:wrong-second, RUN being the first pass"
        )
    run = find_run(store, of)
    field = stored_task(store, str(run["task"])).spec.questions[0].field
    query = (
        f"SELECT i.item_id, i.options, l.distribution FROM {label_rows.FIRST} "
        "JOIN items AS i ON i.item_id = l.unit_id WHERE l.annotator_id = ? AND l.field = ? "
        "AND i.options IS NOT NULL AND l.distribution IS NOT NULL ORDER BY i.rowid"
    )
    texts = {}
    for item, options, masses in store.conn.execute(query, [run["run_id"], field]):
        probabilities = renormalised(json.loads(masses), json.loads(options))
        turned = (
            probabilities
            if probabilities is None or kind == "self"
            else exchanged(probabilities, second=kind == "wrong-second")
        )
        if turned is not None:
            texts[item] = as_text(turned)
    if not texts:
        raise UsageError(
            f"--shown {text}: that run has no probabilities of options to show"
            + (", or only equal ones" if kind != "self" else "")
            + "; they come from a model that gives token probabilities (openai, llamacpp), asked with --answers auto or codes"
        )
    return ShownProbabilities(f"{run['run_id']}:{kind}", texts)


def renormalised(masses: Mapping[str, float], options: Mapping[str, str]) -> dict[str, float] | None:
    """The probabilities of a question's own options, which sum to 1; None where one is not known, or all are 0."""
    of_options = [masses.get(letter) for letter in options]
    known = [mass for mass in of_options if mass is not None]
    total = math.fsum(known)
    if len(known) < len(of_options) or not total > 0:
        return None
    return {letter: mass / total for letter, mass in zip(options, known, strict=True)}


def exchanged(probabilities: Mapping[str, float], *, second: bool = False) -> dict[str, float] | None:
    """The same numbers with the highest and the lowest (or the second highest) exchanged; None where these are the same."""
    ordered = sorted(probabilities, key=lambda letter: -probabilities[letter])
    first = ordered[0]
    # Of options with the same probability the first one counts.
    last = min(probabilities, key=lambda letter: probabilities[letter])
    other = ordered[1] if second and len(ordered) > 1 else last
    if probabilities[first] == probabilities[other]:
        return None
    return {**probabilities, first: probabilities[other], other: probabilities[first]}


def as_text(probabilities: Mapping[str, float]) -> str:
    """One option a line, in the options' order: `A. 0.700`."""
    return "\n".join(f"{letter}. {mass:.3f}" for letter, mass in probabilities.items())
