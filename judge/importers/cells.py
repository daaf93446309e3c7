"""What a value of a common table may be: text of some pages at most, without NUL characters, and no formula of a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from judge.errors import BadInput
from judge.importers.literals import MOST_CHARACTERS

# What a spreadsheet computes instead of showing: =SUM(A1:A3), =A1, =B2+1, =cmd|... A heading of a wiki begins with ==.
_FORMULA = re.compile(r"=\s*(?:[A-Za-z_][\w.$]*\s*(?:[(|!:]|$)|\$?[A-Z]{1,3}\$?\d+\s*[-+*/^&<>=])")


def refuse_strange(column: str, value: Any) -> None:
    """Raises BadInput for a text that is too long or has a NUL character, at any depth of the column's value."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict | list):
            left += part.values() if isinstance(part, dict) else part
        elif isinstance(part, str):
            if len(part) > MOST_CHARACTERS:
                told = f"a text of {len(part):,} characters; at most {MOST_CHARACTERS:,} are read"
                raise BadInput(told, field=column)
            if "\0" in part:
                raise BadInput("a NUL character, which is no text", field=column)


def refuse_formula(column: str, cell: Any, as_text: Collection[str]) -> None:
    """Raises BadInput for a cell of a spreadsheet's file that has a formula in place of its value."""
    if isinstance(cell, str) and cell[:1] == "=" and _FORMULA.match(cell) and column not in as_text:
        told = f"a formula of a spreadsheet, not its value: save the values, or --as-text {column}"
        raise BadInput(told, field=column)
