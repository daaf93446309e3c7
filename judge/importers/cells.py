"""Parse table cells that contain lists or objects, written as JSON or as Python literals (`['a', "b"]`).

Unusable cells are rejected.

pandas writes lists to CSV as Python literals. They are not evaluated: the tokens in such a cell are converted
to JSON, which `judge.files.loads` parses. Size and depth are limited, because the file is untrusted.
"""

import ast
import json
import re
import warnings
from collections.abc import Collection, Iterator
from typing import Any

from judge.errors import BadInput
from judge.files import loads

MOST_CHARACTERS = 8 * 2**20
"""Maximum length of a cell in characters. A passage is at most about a page of text, so a much longer cell is
the result of an unclosed quote or an attack.
"""
DEEPEST = 20
"""Maximum nesting depth of lists and objects."""
_BEGINS = ("[", "{", "(")
# Cells that begin like this are meant to be lists of texts or objects; `[1] Paris is ...` and `(see below)` are not.
_MEANT = re.compile(r"""\s*(?:[\[(]\s*(?:[urbf]?['"\[{(]|[A-Za-z_][\w.]*\()|\{\s*['"]|array\(|\[\s*\])""")
# Possessive quantifiers: without them the engine would keep a backtracking point for each character.
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<mark>[\[\](){},:])
  | (?P<text>'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")
  | (?P<word>(?:True|False|None|true|false|null|nan|NaN)\b)
  | (?P<number>-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    )\s*""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null", "nan": "null", "NaN": "null"}
_MARKS = {"(": "[", ")": "]"}
# A formula such as =SUM(A1:A3), =A1, =B2+1 or =cmd|... was saved instead of its value, and a spreadsheet
# program that opens our export would run it. A wiki heading, which begins with ==, is ordinary text.
_FORMULA = re.compile(r"=\s*(?:[A-Za-z_][\w.$]*\s*(?:[(|!:]|$)|\$?[A-Z]{1,3}\$?\d+\s*[-+*/^&<>=])")


def parse_cell(cell: str) -> list[Any] | dict[str, Any] | None:
    """Return the list or object in a cell, or None if the cell contains ordinary text.

    Raises a ValueError that gives the reason if the cell begins like a list of strings or objects but cannot
    be parsed.
    """
    # Most cells are text, and this test is much cheaper than an attempt to parse them.
    if cell.lstrip()[:1] not in _BEGINS and not _MEANT.match(cell):
        return None
    try:
        value = loads(cell)
    except (ValueError, RecursionError):
        if not _MEANT.match(cell):
            return None
        try:
            value = loads("".join(_as_json(cell)))
        except json.JSONDecodeError as error:
            raise ValueError(f"neither valid JSON nor a Python list: {error.msg}") from error
    return value if isinstance(value, list | dict) else None


def _as_json(text: str) -> Iterator[str]:
    """Convert a Python literal to JSON, and yield the JSON tokens.

    Raises ValueError if the text is not a Python literal.
    """
    at = depth = 0
    before, is_comma = "", False
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(_strange(text, at))
        kind, part = str(token.lastgroup), token[str(token.lastgroup)]
        if kind == "text" and before == "text":
            raise ValueError(
                "there is no comma between two strings, so this is probably a numpy array as printed by Python, in "
                "which the end of a passage is ambiguous; save the table as JSON Lines (to_json) or Parquet"
            )
        closes = kind == "mark" and part in "])}"
        # Python allows a comma before the closing bracket, but JSON does not.
        if is_comma and not closes:
            yield ","
        is_comma = part == "," and kind == "mark"
        depth += (part in "[({") - closes if kind == "mark" else 0
        # Without a limit, a cell of many opening brackets would exceed the parser's recursion limit.
        if depth > DEEPEST:
            raise ValueError(f"lists are nested more than {DEEPEST} levels deep")
        if kind == "text":
            yield json.dumps(_parse_literal(part))
        elif not is_comma:
            yield _MARKS.get(part, part) if kind == "mark" else _WORDS.get(part, part)
        before, at = kind, token.end()


def _parse_literal(token: str) -> str:
    """Return the value of a string literal."""
    if "\\" not in token:
        return token[1:-1]
    with warnings.catch_warnings():
        # Python keeps an unknown escape unchanged and emits a warning. The warning would be about the user's
        # file, not our code.
        warnings.simplefilter("ignore")
        try:
            # A single literal that matched the pattern: neither names nor calls can be in it.
            value = ast.literal_eval(token)
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"a string with an invalid escape: {token[:40]}") from error
    return str(value)


def _strange(text: str, at: int) -> str:
    excerpt = text[at : at + 30].split("\n")[0]
    if re.match(r"\.\.\.", excerpt):
        return "the list was abbreviated with ... when it was printed; save the column in full"
    if re.match(r"[A-Za-z_][\w.]*\(", excerpt):
        return f"a printed Python object ({excerpt.partition('(')[0]}(...)) instead of text; save its text, or save the column as JSON"
    return f"neither valid JSON nor a Python list: {excerpt!r} at character {at + 1}"


def refuse_strange(column: str, value: Any) -> None:
    """Raise BadInput if the column's value contains a string that is too long or has a NUL character.

    Strings at any depth of the value are checked.
    """
    # This uses a list instead of recursion, because a deeply nested untrusted value would exceed the
    # recursion limit.
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict | list):
            left += part.values() if isinstance(part, dict) else part
        elif isinstance(part, str):
            if len(part) > MOST_CHARACTERS:
                reason = f"the text has {len(part):,} characters; at most {MOST_CHARACTERS:,} are allowed"
                raise BadInput(reason, field=column)
            if "\0" in part:
                raise BadInput("contains a NUL character, which is not allowed", field=column)


def refuse_formula(column: str, cell: Any, as_text: Collection[str]) -> None:
    """Raise BadInput if a cell from a spreadsheet contains a formula instead of its value."""
    if isinstance(cell, str) and cell[:1] == "=" and _FORMULA.match(cell) and column not in as_text:
        reason = f"the cell contains a spreadsheet formula instead of a value; save the values, or pass --as-text {column}"
        raise BadInput(reason, field=column)
