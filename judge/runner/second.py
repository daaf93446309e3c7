"""A second pass over multiple-choice questions: the model sees option probabilities and answers again (URAG, section 5.2).

RUN is the first pass, whose probabilities are renormalised over the options of each question:

- `--shown RUN:self` shows the probabilities unchanged.
- `--shown RUN:wrong` swaps the probabilities of the most and the least probable option, for every question,
  whether or not the first pass was right.
- `--shown RUN:wrong-second` swaps the probabilities of the two most probable options. The paper swaps the first
  option with "a lower one" and does not specify which.

Among options with equal probabilities, the first is used. A question with only one option, or with equal
probabilities for all options, has nothing to swap, so it is left out of both passes with swapped
probabilities. The swap does not depend on the correct option.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from judge.errors import UsageError
from judge.store import label_rows
from judge.store.export import find_run, read_stored_task
from judge.store.study import Store

INPUT = "option_probabilities"
KINDS = ("self", "wrong", "wrong-second")


@dataclass(frozen=True, slots=True)
class ShownProbabilities:
    """A mapping from each item to the text that shows its probabilities. `name` (RUN:KIND) is part of the
    run's identity.
    """

    name: str
    texts: dict[str, str]

    @property
    def mark(self) -> str:
        """The suffix of the answers' condition: `+self-aware`, `+wrong-aware` or `+wrong-second-aware`."""
        return f"+{self.name.rpartition(':')[2]}-aware"


def read_probabilities(store: Store, text: str) -> ShownProbabilities:
    """Parse a value of `--shown`. Raises UsageError if it is invalid or if the run has no label probabilities."""
    of, _, kind = text.rpartition(":")
    if kind not in KINDS or not of:
        raise UsageError(
            f"--shown '{text}': must be RUN:self, RUN:wrong or RUN:wrong-second, where RUN is the first pass"
        )
    run = find_run(store, of)
    # The stored task is used, because the file of the task may have changed since the run.
    field = read_stored_task(store, str(run["task"])).spec.questions[0].field
    query = (
        f"SELECT i.item_id, i.options, l.distribution FROM {label_rows.FIRST} "
        "JOIN items AS i ON i.item_id = l.unit_id WHERE l.annotator_id = ? AND l.field = ? "
        "AND i.options IS NOT NULL AND l.distribution IS NOT NULL ORDER BY i.rowid"
    )
    texts = {}
    for item, options, masses in store.conn.execute(query, [run["run_id"], field]):
        probabilities = renormalise(json.loads(masses), json.loads(options))
        turned = (
            probabilities
            if probabilities is None or kind == "self"
            else exchange(probabilities, second=kind == "wrong-second")
        )
        if turned is not None:
            texts[item] = as_text(turned)
    if not texts:
        raise UsageError(
            f"--shown {text}: the run has no option probabilities"
            + (", or only equal probabilities" if kind != "self" else "")
            + "; make the first pass with --answers auto or codes and a model that returns token probabilities (openai, llamacpp)"
        )
    return ShownProbabilities(f"{run['run_id']}:{kind}", texts)


def renormalise(masses: Mapping[str, float], options: Mapping[str, str]) -> dict[str, float] | None:
    """Return the probabilities of a question's options, which sum to 1. Return None if one of them is unknown
    or all are 0.
    """
    of_options = [masses.get(letter) for letter in options]
    known = [mass for mass in of_options if mass is not None]
    total = math.fsum(known)
    # NaN fails this comparison, too.
    if len(known) < len(of_options) or not total > 0:
        return None
    return {letter: mass / total for letter, mass in zip(options, known, strict=True)}


def exchange(probabilities: Mapping[str, float], *, second: bool = False) -> dict[str, float] | None:
    """Swap the highest probability with the lowest or the second highest. Return None if the two
    probabilities are equal.
    """
    ordered = sorted(probabilities, key=lambda letter: -probabilities[letter])
    first = ordered[0]
    # Among options with equal probabilities, the first one is used.
    last = min(probabilities, key=lambda letter: probabilities[letter])
    other = ordered[1] if second and len(ordered) > 1 else last
    if probabilities[first] == probabilities[other]:
        return None
    return {**probabilities, first: probabilities[other], other: probabilities[first]}


def as_text(probabilities: Mapping[str, float]) -> str:
    """Return one line for each option, in the order of the options: `A. 0.700`."""
    return "\n".join(f"{letter}. {mass:.3f}" for letter, mass in probabilities.items())
