"""Choose how a task is presented to a model: the answer mode, and the orders in which the labels are shown."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from judge.errors import UsageError
from judge.prompts.load import Task
from judge.prompts.render import Mode
from judge.providers.base import PairReader, Provider

if TYPE_CHECKING:
    from judge.runner.requests import Sampling


def mode_of(task: Task, provider: Provider, sampling: Sampling) -> Mode:
    """Return the answer mode for this provider. A classifier of text pairs has the mode PAIR, because it has no
    prompt.
    """
    if isinstance(provider, PairReader):
        return Mode.PAIR
    return choose_mode(task, provider.label_codes or sampling.orders > 1, sampling.answers)


def check_pair(task: Task, sampling: Sampling) -> None:
    """Raise UsageError for settings that have no effect on a model without a prompt."""
    refused = {
        f"--answers {sampling.answers}": sampling.answers != "auto",
        "--label-order": sampling.label_order != "declared" or sampling.orders > 1,
        **{f"--{name}": True for name in task.overrides},
    }
    if wrong := [option for option, given in refused.items() if given]:
        raise UsageError(
            f"{wrong[0]} has no effect on a model that reads two texts instead of a prompt; omit it"
        )


def choose_mode(task: Task, label_codes: bool, answers: str) -> Mode:
    """Return the mode in which the model answers the task.

    `answers` names the mode, or is `auto`. `auto` selects codes if the task is a single choice and the model
    returns the probabilities of codes, otherwise JSON. If a rationale comes before the choice, codes take two
    calls, so `auto` selects them only if the run's settings request this rationale.

    A raw task is answered in free text, whatever the value of `answers`, unless its labels are the letters of
    answer options. In that case, `auto` and `codes` can still select codes.

    Raises UsageError for codes or words if there are several questions, or if a rationale follows the label.
    Raises UsageError for words if two labels begin with the same word.
    """
    if task.spec.raw:
        # No list of codes can be added to a raw prompt. The letters of options are part of its text already.
        wanted = answers == "codes" or (answers == "auto" and label_codes)
        return Mode.CODES if wanted and task.spec.letters else Mode.TEXT
    if answers in ("codes", "words") and not (task.one_choice or task.reasons_first):
        raise UsageError(
            f"{task.name} has several questions, or a rationale after its label: use --answers json"
        )
    if answers == "words":
        _check_words(task)
    if answers == "auto":
        return Mode.CODES if label_codes and uses_codes(task) else Mode.JSON
    return Mode(answers)


def _check_words(task: Task) -> None:
    """Raise UsageError if two labels begin with the same word, because only the first token of an answer is used."""
    # Case is ignored, because models change the case of labels.
    first: dict[str, str] = {}
    for label in task.domain(task.spec.questions[0].field):
        token = re.match(r"[^\W_]+|.", label.casefold())
        other = first.setdefault(token.group() if token else label, label)
        if other is not label:
            raise UsageError(
                f"{task.name}: '{other}' and '{label}' begin with the same word, so --answers words "
                "cannot distinguish them; use --answers codes"
            )
    for label, other in permutations(first.values(), 2):
        if label.casefold().startswith(other.casefold()):
            raise UsageError(
                f"{task.name}: '{label}' begins with '{other}', so --answers words cannot distinguish them; use "
                "--answers codes"
            )


def uses_codes(task: Task) -> bool:
    """Return whether `--answers auto` selects codes for a task if the model returns label probabilities."""
    if task.spec.raw:
        return task.spec.letters
    return task.one_choice or (task.reasons_first and "rationale" in task.overrides)


def label_orders(task: Task, order: str) -> dict[str, list[str]]:
    """Return each question's labels in the given order.

    The order is `declared`, `reversed` or `shuffled:SEED`. Raises UsageError for any other order.
    """
    orders = {q.field: task.domain(q.field) for q in task.spec.questions}
    word, _, seed = order.partition(":")
    if word == "shuffled" and seed.isdigit():
        shuffler = random.Random(int(seed))
        return {field: shuffler.sample(labels, len(labels)) for field, labels in orders.items()}
    if order == "reversed":
        return {field: labels[::-1] for field, labels in orders.items()}
    if order == "declared":
        return orders
    raise UsageError(f"--label-order '{order}': must be declared, reversed or shuffled:SEED")


def several_orders(first: Sequence[str], orders: int) -> list[list[str]]:
    """Return `orders` different orders of the labels. The first one is the given order.

    If two orders are requested, they are the given order and its reverse. If more are requested, they are the
    rotations of the given order, followed by the rotations of its reverse. Thus n orders of n labels show
    each label once at each position (a Latin square). Raises UsageError if there are more than twice as many
    orders as labels.
    """
    n = len(first)
    # With two labels the only rotation is the reverse.
    most = 2 if n == 2 else 2 * n
    if orders > most:
        raise UsageError(f"--label-order {orders}: {n} labels allow at most {most} orders")
    if orders == 2:
        return [list(first), list(first)[::-1]]
    turns = [[*part[i:], *part[:i]] for part in (list(first), list(first)[::-1]) for i in range(n)]
    # With fewer orders than labels, the rotations are spaced evenly, so that a label's positions are far apart.
    return [turns[i * n // orders] for i in range(orders)] if orders < n else turns[:orders]
