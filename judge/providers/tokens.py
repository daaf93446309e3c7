"""Convert token log-probabilities to probabilities of labels."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from judge.types import LabelDistribution, TokenChoice

MOST_UNASSIGNED = 0.05
LEAST = 1e-30
"""Replaces a probability of 0, because 0 has no logarithm."""


def token_choices(logprobs: Any) -> list[TokenChoice] | None:
    """Return the token positions in `choices[].logprobs` of a chat completion.

    Return None if the server sent no positions. Raises KeyError, TypeError, AttributeError or ValueError if
    the format is not as expected.
    """
    out = []
    for position in (logprobs or {}).get("content") or ():
        listed = [(_text(t["token"]), t["logprob"]) for t in position.get("top_logprobs") or ()]
        chosen = _text(position["token"])
        # A sampled token may be missing from the most probable ones; it counts as well.
        if all(token != chosen for token, _ in listed):
            listed.append((chosen, position.get("logprob")))
        known = [(token, float(p)) for token, p in listed if p is not None]
        out.append(TokenChoice(chosen, known))
    return out or None


def with_masses(chosen: str, masses: Iterable[tuple[str, float]]) -> TokenChoice:
    """Return the chosen answer as a token, with alternatives that have these probabilities."""
    return TokenChoice(chosen, [(token, math.log(max(p, LEAST))) for token, p in masses])


def _text(token: Any) -> str:
    if not isinstance(token, str):
        raise TypeError("a token must be a string")
    return token


def label_distribution(
    tokens: Sequence[TokenChoice],
    codes: Sequence[str],
    labels: Sequence[str],
    masked: bool = False,
    answer: str | None = None,
) -> tuple[LabelDistribution | None, str | None]:
    """Return the probability of each label, for a reply that answers with a one-character code.

    Return None and the reason if the probabilities cannot be determined. A label may be used as its own code.

    The answer is the first token that is not white space. Each possible token at this position counts towards
    the code that it equals, apart from leading white space (`A` and ` A`, but not `A.`). The probability of
    all other tokens is `unassigned`. If `unassigned` exceeds 5 %, the probabilities cannot be determined.

    If the server `masked` the answer, a token must equal a code exactly, and the probabilities of the codes
    are scaled to sum to 1. If `answer` is given, it is the label in the reply's text. The probabilities cannot be
    determined if the token does not represent this label. Raises ValueError unless there is exactly one label for each code.
    """
    if len(codes) != len(labels) or len(set(codes)) != len(codes):
        raise ValueError("codes must be unique, and there must be one label for each code")
    label_of = dict(zip(codes, labels, strict=True))
    if masked:
        return _distribution(tokens, labels, label_of.get, masked, answer)
    return _distribution(tokens, labels, lambda token: label_of.get(token.lstrip()), masked, answer)


def word_distribution(
    tokens: Sequence[TokenChoice], labels: Sequence[str], masked: bool = False, answer: str | None = None
) -> tuple[LabelDistribution | None, str | None]:
    """Return the probability of each label, for a reply that answers in words.

    Return None and the reason if the probabilities cannot be determined.

    Only the first token of the answer is used. Each possible token at this position counts towards the label
    that begins with it, if there is exactly one. Case and surrounding white space are ignored. The
    probability of all other tokens is `unassigned`. If `unassigned` exceeds 5 %, the probabilities cannot be
    determined. If the server `masked` the answer, the probabilities of the labels are scaled to sum to 1.
    `answer` has the same meaning as for `label_distribution`.
    """
    return _distribution(tokens, labels, lambda token: match_label(token, labels), masked, answer)


def match_label(token: str, labels: Sequence[str]) -> str | None:
    """Return the label that begins with this token. Return None if no label, or more than one, begins with
    it.
    """
    start = token.strip().casefold()
    # Without this check, white space would match the beginning of every label.
    matching = [label for label in labels if start and label.casefold().startswith(start)]
    return matching[0] if len(matching) == 1 else None


def _distribution(
    tokens: Sequence[TokenChoice],
    labels: Sequence[str],
    label_of: Callable[[str], str | None],
    masked: bool = False,
    answer: str | None = None,
) -> tuple[LabelDistribution | None, str | None]:
    # With some models' chat templates, an answer begins with a space or a line break.
    first = next((t for t in tokens if t.token.strip()), None)
    if first is None:
        return None, "the reply has no token that could be the answer"
    if answer is not None and label_of(first.token) != answer:
        return None, f"the first token is {first.token!r:.40}, but the text is '{answer}'"
    mass = dict.fromkeys(labels, 0.0)
    for token, logprob in first.alternatives:
        label = label_of(token)
        # A single NaN must not invalidate the probabilities of the other tokens.
        if label is not None and not math.isnan(logprob):
            # Rounded log-probabilities can be slightly above 0.
            mass[label] += math.exp(min(logprob, 0.0))
    if masked:
        return _normalise_masked(mass, [p for _, p in first.alternatives])
    assigned = sum(mass.values())
    unassigned = 1.0 - assigned
    if unassigned > MOST_UNASSIGNED:
        return None, (
            f"{100 * unassigned:.1f} % of the probability is on tokens that do not represent a label "
            f"(at most {100 * MOST_UNASSIGNED:.0f} % is allowed)"
        )
    # Rounded log-probabilities can sum to slightly more than 1.
    scale = max(1.0, assigned)
    probabilities = {label: of_label / scale for label, of_label in mass.items()}
    return LabelDistribution(probabilities, max(0.0, unassigned)), None


def _normalise_masked(
    mass: dict[str, float], logprobs: Sequence[float]
) -> tuple[LabelDistribution | None, str | None]:
    """Return the probabilities of the labels in a masked answer, scaled to sum to 1.

    The server lists only the most probable tokens. A missing label is at most as probable as the least
    probable listed token, and all missing labels together are at most as probable as all unlisted tokens.
    Return None and the reason if this upper bound exceeds 5 % of the probability of the listed labels.
    """
    listed = [math.exp(min(p, 0.0)) for p in logprobs if not math.isnan(p)]
    assigned = sum(mass.values())
    if assigned <= 0:
        return None, f"no label is among the {len(listed)} most probable tokens"
    missing = [label for label, p in mass.items() if p <= 0]
    unknown = min(len(missing) * min(listed), max(0.0, 1.0 - sum(listed)))
    if unknown > MOST_UNASSIGNED * assigned:
        return None, (
            f"{', '.join(missing)}: not among the {len(listed)} most probable tokens, so up to "
            f"{100 * unknown / (unknown + assigned):.1f} % of the labels' probability is unknown"
        )
    shares = {label: p / assigned for label, p in mass.items()}
    return LabelDistribution(shares, 0.0, max(0.0, 1.0 - assigned)), None
