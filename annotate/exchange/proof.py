"""Proof that an incoming label refers to the text in the study: the text itself, or its hash."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from annotate.exchange.texts import InputsOfAnyTask, compose, flatten
from judge.errors import BadInput

SHA_KEY = "text_sha256"
"""The name of the column or key with the hash in our rows."""


class Unproven(BadInput):
    """A record that may refer to a different text, unit or person, and is therefore quarantined.

    `code` names what is in doubt: "text", "person", "status", "unit", "time" or "conflict". `who` is the
    person named in the record, if this person is not in the study.
    """

    def __init__(
        self, code: str, reason: str, *, field: str = "", path: str = "", line: int = 0, who: str = ""
    ) -> None:
        super().__init__(reason, path=path, line=line, field=field)
        self.code, self.who = code, who


def text_sha(inputs: Mapping[str, Any]) -> str:
    """Return the hash of the text that a unit shows: 32 hex digits of the SHA-256 of its inputs, without
    white space.
    """
    parts = [[name, bare(flatten(value))] for name, value in sorted(inputs.items())]
    # Texts of a study may contain lone surrogates, which UTF-8 cannot encode.
    content = json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:32]


def compare_hash(sha: str | None, inputs: Mapping[str, Any] | None) -> str | None:
    """Compare the hash in a record with the hash of the unit's text.

    Return a description of the difference, "" if the hashes are equal, or None if the record has no hash.
    """
    if not sha:
        return None
    reason = "the hash of its text differs from the unit's: a different text was labelled"
    return _difference(inputs, lambda texts: sha == text_sha(texts), reason)


def compare_text(text: Any, inputs: Mapping[str, Any] | None) -> str | None:
    """Compare the text in a record with the unit's text.

    Return a description of the difference, "" if the texts are equal, or None if there is no text to compare.

    The texts are equal if the record contains all inputs in our format, or one of the inputs unchanged.
    """
    if not isinstance(text, str) or not text:
        return None
    bare_text = bare(text)

    def fits(texts: Mapping[str, Any]) -> bool:
        possible = [compose(texts)[0], *(v for v in texts.values() if isinstance(v, str))]
        return bare_text in map(bare, possible)

    return _difference(inputs, fits, "its text differs from the unit's")


def compare_inputs(given: Any, inputs: Mapping[str, Any] | None) -> str | None:
    """Compare the inputs in a record with the unit's inputs.

    Return a description of the first input that differs, "" if none differs, or None if there are no inputs to
    compare.
    """
    if not isinstance(given, Mapping) or inputs is None:
        return None
    # The inputs of all tasks are compared at once, because a task with fewer inputs would compare less.
    inputs = dict(inputs)
    compared = {name: given[name] for name in inputs if given.get(name) is not None}
    for name, value in compared.items():
        if bare(flatten(value)) != bare(flatten(inputs[name])):
            return f"its '{name}' differs from the unit's"
    # A record with none of the inputs proves nothing about its text.
    return "" if compared else None


def _difference(
    inputs: Mapping[str, Any] | None, fits: Callable[[Mapping[str, Any]], bool], reason: str
) -> str | None:
    """Compare a record with a unit's inputs. Return "" if they match, and `reason` if they do not.

    If the task is unknown, a match with the inputs under any possible task is enough. Return None if the unit has no
    inputs.
    """
    difference = None
    for texts in (
        inputs.iterate() if isinstance(inputs, InputsOfAnyTask) else [] if inputs is None else [inputs]
    ):
        if fits(texts):
            return ""
        difference = reason
    return difference


def bare(text: str) -> str:
    """Return a string without white space, for comparisons."""
    # Spreadsheets and databases trim and join white space, which does not affect labels. PostgreSQL rejects
    # NUL, so it is sent to Label Studio as U+FFFD.
    return "".join(text.split()).replace("\x00", "\ufffd")
