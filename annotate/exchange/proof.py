"""Proof that an incoming label refers to the text in the study: the text as the record shows it, or its hash."""

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from annotate.exchange.texts import InputsOfAnyTask, compose, flatten
from judge.errors import BadInput
from judge.excerpts import excerpt, quote_both

SHA_KEY = "text_sha256"
"""The name of the column or key with the hash in our rows."""
MOST_IN_A_CELL = 32_000
"""A text of this length may have been truncated by a spreadsheet, whose cells hold at most 32,767 characters."""
_LOST = "?\ufffd"
"""The characters that a program writes in place of a character that its encoding lacks."""


class Unproven(BadInput):
    """A record that may refer to a different text, unit or person, and is therefore quarantined.

    `code` names what is in doubt: "text", "person", "editor", "status", "unit", "time" or "conflict". `who` is the
    person named in the record, if this person is not in the study.
    """

    def __init__(
        self, code: str, reason: str, *, field: str = "", path: str = "", line: int = 0, who: str = ""
    ) -> None:
        super().__init__(reason, path=path, line=line, field=field)
        self.code, self.who = code, who


class PartOfRecord(BadInput):
    """A part of a record that cannot be imported, while the rest of the record can."""


class TextOfRecord(NamedTuple):
    """A unit's text as a record shows it: as separate inputs, as one text, as a hash, or not at all."""

    inputs: Mapping[str, Any] = {}
    text: Any = None
    sha: Any = None


NOTHING_SHOWN = TextOfRecord()


def text_sha(inputs: Mapping[str, Any]) -> str:
    """Return the hash of the text that a unit shows: 32 hex digits of the SHA-256 of its inputs, without
    white space.
    """
    parts = [[name, bare(flatten(value))] for name, value in sorted(inputs.items())]
    # Texts of a study may contain lone surrogates, which UTF-8 cannot encode.
    content = json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:32]


def find_difference(shown: TextOfRecord, inputs: Mapping[str, Any] | None) -> str | None:
    """Describe how the text of a record differs from the unit's text, and quote both.

    Return "" if they are equal, and None if there is nothing to compare. If the task is unknown, the inputs of all
    tasks are compared, and a single text or a hash must fit one of the tasks.
    """
    if inputs is None:
        return None
    compared = False
    for name, given in shown.inputs.items():
        compared, text = True, inputs.get(name, "")
        if not _is_same(given, text):
            return f"its '{name}' differs from the unit's: {quote_both(flatten(given), flatten(text))}"
    first = next(_each_task(inputs), None)
    if isinstance(shown.text, str) and shown.text and first is not None:
        compared = True
        texts = (t for each in _each_task(inputs) for t in (compose(each)[0], *each.values()))
        if not any(_is_same(shown.text, text) for text in texts if isinstance(text, str)):
            return f"its text differs from the unit's: {quote_both(shown.text, compose(first)[0])}"
    if isinstance(shown.sha, str) and shown.sha and first is not None:
        compared = True
        if not any(shown.sha == text_sha(each) for each in _each_task(inputs)):
            of_unit = excerpt(compose(first)[0], 0)
            return f"the hash of its text differs from the unit's ({of_unit}): a different text was labelled"
    return "" if compared else None


def _each_task(inputs: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return inputs.iterate() if isinstance(inputs, InputsOfAnyTask) else iter([inputs])


def bare(text: str) -> str:
    """Return a string without white space, for comparisons."""
    # Spreadsheets and databases trim and join white space, which does not affect labels. PostgreSQL rejects
    # NUL, so it is sent to Label Studio as U+FFFD.
    return "".join(text.split()).replace("\x00", "\ufffd")


def _is_same(given: Any, value: Any) -> bool:
    """Return whether a text is the unit's, apart from what spreadsheets and other programs change by themselves."""
    forms = [flatten(value)]
    if not isinstance(value, str):
        # A sheet has a list as JSON.
        forms.append(json.dumps(value, ensure_ascii=False))
    return any(_is_alike(_form(flatten(given)), _form(text)) for text in forms)


def _form(text: str) -> str:
    return bare(unicodedata.normalize("NFC", text))


def _is_alike(given: str, text: str) -> bool:
    # An exported sheet puts an apostrophe before a cell that a spreadsheet would run as a formula.
    if text in (given, given.removeprefix("'")):
        return True
    if len(given) >= MOST_IN_A_CELL and text.startswith(given.removeprefix("'")):
        return True
    return (
        given.casefold() == text.casefold() in ("true", "false")
        or _is_same_number(given, text)
        or _is_same_date(given, text)
        or _is_same_but_lost(given, text)
    )


def _is_same_number(given: str, text: str) -> bool:
    """Return whether two texts are the same number. A spreadsheet writes 0012 as 12, and 1234567890123 as 1.23457E+12."""
    try:
        first, second = float(given.replace(",", ".")), float(text.replace(",", "."))
    except ValueError:
        return False
    return math.isclose(first, second, rel_tol=5e-6 if "e" in given.casefold() else 1e-14)


def _is_same_date(given: str, text: str) -> bool:
    """Return whether two texts are the same date. A spreadsheet writes 2024-03-01 in the order of its own language."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text) or not re.fullmatch(
        r"\d{1,4}([-./])\d{1,4}\1\d{1,4}\.?", given
    ):
        return False
    year, month, day = map(int, text.split("-"))
    parts = sorted(map(int, re.findall(r"\d+", given)))
    return parts in (sorted([year, month, day]), sorted([year % 100, month, day]))


def _is_same_but_lost(given: str, text: str) -> bool:
    """Return whether a text is the unit's, except that an encoding lost some of its characters."""
    if not any(mark in given for mark in _LOST) or len(given) > 2 * len(text):
        return False
    at = 0
    for character in text:
        if given.startswith(character, at):
            at += 1
            continue
        # A character outside the basic plane is two code units, and becomes two question marks in some programs.
        lost = 0
        while lost < 1 + (character > "\uffff") and given[at + lost : at + lost + 1] in (*_LOST,):
            lost += 1
        if character < "\x80" or not lost:
            return False
        at += lost
    return at == len(given)
