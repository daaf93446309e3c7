"""A second pass over multiple-choice questions: the model sees option probabilities and answers again (URAG, section 5.2).

`--shown RUN:self` shows the probabilities that the first pass RUN gave the options of each question, renormalised
over them; `--shown RUN:wrong` has them favour a wrong option: where the right one has more than the most probable
wrong one, these two change places. (The paper's own rule for wrong-aware prompts is not known to us.) A question whose
right and most probable wrong option have the same cannot be turned and is left out of `wrong`, as is one without a right
option. Which option is right is never shown.
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
KINDS = ("self", "wrong")


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
    """What the condition of answers by a second pass ends in: `+self-aware`, `+wrong-aware`."""
    return f"+{kind}-aware"


def read(store: Store, text: str) -> ShownProbabilities:
    """Read a `--shown`. Raises UsageError for anything else, and for a run without label probabilities."""
    of, _, kind = text.rpartition(":")
    if kind not in KINDS or not of:
        raise UsageError(f"--shown '{text}' is RUN:self or RUN:wrong, RUN being the first pass")
    run = find_run(store, of)
    field = stored_task(store, str(run["task"])).spec.questions[0].field
    query = (
        f"SELECT i.item_id, i.options, i.correct, l.distribution FROM {label_rows.FIRST} "
        "JOIN items AS i ON i.item_id = l.unit_id WHERE l.annotator_id = ? AND l.field = ? "
        "AND i.options IS NOT NULL AND l.distribution IS NOT NULL ORDER BY i.rowid"
    )
    found = {}
    for item, options, right, masses in store.conn.execute(query, [run["run_id"], field]):
        own = renormalised(json.loads(masses), json.loads(options))
        turned = own if own is None or kind == "self" else favouring_wrong(own, right)
        if turned is not None:
            found[item] = as_text(turned)
    if not found:
        raise UsageError(
            f"--shown {text}: that run has no probabilities of options to show"
            + (", or none in which a wrong option can lead" if kind == "wrong" else "")
            + "; they come from a model that gives token probabilities (openai, llamacpp), asked with --answers auto or codes"
        )
    return ShownProbabilities(f"{run['run_id']}:{kind}", found)


def renormalised(masses: Mapping[str, float], options: Mapping[str, str]) -> dict[str, float] | None:
    """The probabilities of a question's own options, which sum to 1; None where one is not known, or all are 0."""
    own = [masses.get(letter) for letter in options]
    known = [mass for mass in own if mass is not None]
    total = math.fsum(known)
    if len(known) < len(own) or not total > 0:
        return None
    return {letter: mass / total for letter, mass in zip(options, known, strict=True)}


def favouring_wrong(probabilities: Mapping[str, float], right: str | None) -> dict[str, float] | None:
    """The same numbers with a wrong option on top; None where that cannot be."""
    wrong = [letter for letter in probabilities if letter != right]
    if right is None or right not in probabilities or not wrong:
        return None
    best = max(wrong, key=lambda letter: probabilities[letter])
    if probabilities[best] == probabilities[right]:
        return None
    if probabilities[best] > probabilities[right]:
        return dict(probabilities)
    return {**probabilities, best: probabilities[right], right: probabilities[best]}


def as_text(probabilities: Mapping[str, float]) -> str:
    """One option a line, in the options' order: `A. 0.700`."""
    return "\n".join(f"{letter}. {mass:.3f}" for letter, mass in probabilities.items())
