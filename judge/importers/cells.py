"""Refuse strange cells of a common table: texts that are too long, NUL characters, and formulas of a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from judge.errors import BadInput
from judge.importers.literals import MOST_CHARACTERS

# A formula such as =SUM(A1:A3), =A1, =B2+1 or =cmd|... stands where its value should be, and a spreadsheet that opens our
# export would run it. A wiki heading, which begins with ==, is ordinary text.
_FORMULA = re.compile(r"=\s*(?:[A-Za-z_][\w.$]*\s*(?:[(|!:]|$)|\$?[A-Z]{1,3}\$?\d+\s*[-+*/^&<>=])")


def refuse_strange(column: str, value: Any) -> None:
    """Raise BadInput for a text that is too long or has a NUL character, at any depth of the column's value."""
    # A stack instead of recursion: nesting of an untrusted value must not exhaust Python's stack.
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict | list):
            left += part.values() if isinstance(part, dict) else part
        elif isinstance(part, str):
            if len(part) > MOST_CHARACTERS:
                reason = f"a text of {len(part):,} characters; at most {MOST_CHARACTERS:,} are read"
                raise BadInput(reason, field=column)
            if "\0" in part:
                raise BadInput("a NUL character: text cannot contain one", field=column)


def refuse_formula(column: str, cell: Any, as_text: Collection[str]) -> None:
    """Raise BadInput for a cell of a spreadsheet's file with a formula in place of its value."""
    if isinstance(cell, str) and cell[:1] == "=" and _FORMULA.match(cell) and column not in as_text:
        reason = f"a formula of a spreadsheet, not its value: save the values, or --as-text {column}"
        raise BadInput(reason, field=column)
