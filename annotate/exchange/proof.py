"""Proof that an incoming label is about the text in the study: the text itself, or its hash.

White space is ignored: spreadsheets and databases trim and join it, and nobody judges by it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from annotate.exchange.texts import OneOf, compose, flat
from judge.errors import BadInput

SHA_KEY = "text_sha256"
"""The column or key of the hash in our rows."""


class Unproven(BadInput):
    """A record that may be about something else; it goes to the quarantine.

    `code` is text, person, status, unit, time or conflict; `who` is the person in the record, if unknown to
    the study.
    """

    def __init__(
        self, code: str, reason: str, *, field: str = "", path: str = "", line: int = 0, who: str = ""
    ) -> None:
        super().__init__(reason, path=path, line=line, field=field)
        self.code, self.who = code, who


def text_sha(inputs: Mapping[str, Any]) -> str:
    """Return the hash of what a unit shows: 32 hex digits of the SHA-256 of its inputs, without white space."""
    parts = [[name, _bare(flat(name, value))] for name, value in sorted(inputs.items())]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()[
        :32
    ]


def differs_by_hash(said: str | None, inputs: Mapping[str, Any] | None) -> str | None:
    """Return what is wrong with a record's hash: "" if it matches, None if there is none."""
    if not said:
        return None
    differences = [
        ""
        if said == text_sha(texts)
        else "the hash of its text is another one: it was labelled on another text"
        for texts in _until(inputs, lambda texts: said == text_sha(texts))
    ]
    return min(differences, default=None)


def differs_by_text(said: Any, inputs: Mapping[str, Any] | None) -> str | None:
    """Return the same for a record with the text: all inputs as we write them, or one of them unchanged."""
    if not isinstance(said, str) or not said:
        return None
    bare = _bare(said)

    def fits(texts: Mapping[str, Any]) -> bool:
        known = [compose(texts)[0], *(v for v in texts.values() if isinstance(v, str))]
        return bare in map(_bare, known)

    differences = [
        "" if fits(texts) else "its text is not that of the unit" for texts in _until(inputs, fits)
    ]
    return min(differences, default=None)


def differs_by_inputs(said: Any, inputs: Mapping[str, Any] | None) -> str | None:
    """Return the same for a record with inputs by name; the message names the first difference."""
    if not isinstance(said, Mapping) or inputs is None:
        return None
    # The inputs of all tasks at once: a task with fewer inputs would compare less.
    inputs = dict(inputs)
    there = {name: said[name] for name in inputs if said.get(name) is not None}
    for name, value in there.items():
        if _bare(flat(name, value)) != _bare(flat(name, inputs[name])):
            return f"its '{name}' is not that of the unit"
    return "" if there else None


def _until(
    inputs: Mapping[str, Any] | None, fits: Callable[[Mapping[str, Any]], bool]
) -> Iterator[Mapping[str, Any]]:
    """Yield the texts that the unit may have shown, up to the first match."""
    for texts in inputs.each() if isinstance(inputs, OneOf) else [] if inputs is None else [inputs]:
        yield texts
        if fits(texts):
            return


def _bare(text: str) -> str:
    return "".join(text.split()).replace("\x00", "\ufffd")
