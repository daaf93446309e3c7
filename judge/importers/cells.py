"""Read a table's cells, which may contain lists as JSON or as Python prints them (`['a', "b"]`), and refuse
unusable cells.

pandas writes a list into CSV as Python prints it. Nothing is evaluated: the tokens in such a cell are
rewritten as JSON, which `judge.files.loads` parses. Size and depth are limited, because the file is
untrusted.
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
"""Maximum length of a cell in characters. A passage is at most a page of text; anything much longer is an
unclosed quote or an attack.
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
# A formula such as =SUM(A1:A3), =A1, =B2+1 or =cmd|... stands where its value should be, and a spreadsheet that opens our
# export would run it. A wiki heading, which begins with ==, is ordinary text.
_FORMULA = re.compile(r"=\s*(?:[A-Za-z_][\w.$]*\s*(?:[(|!:]|$)|\$?[A-Z]{1,3}\$?\d+\s*[-+*/^&<>=])")


def parsed(cell: str) -> list[Any] | dict[str, Any] | None:
    """Return the list or object in a cell, or None if the cell is text.

    Raises ValueError, with the reason, if a cell begins like a list of strings or objects but cannot be
    parsed.
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
            raise ValueError(f"neither JSON nor a list as Python prints one: {error.msg}") from error
    return value if isinstance(value, list | dict) else None


def _as_json(text: str) -> Iterator[str]:
    """Yield the tokens of Python literals, converted to JSON tokens. Raises ValueError if the text is not a
    Python literal.
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
                "two texts without a comma between them, as numpy prints an array: it is ambiguous where a passage ends; "
                "write the table as JSON Lines (to_json) or as Parquet"
            )
        closes = kind == "mark" and part in "])}"
        # Python allows a comma before the closing bracket, JSON does not.
        if is_comma and not closes:
            yield ","
        is_comma = part == "," and kind == "mark"
        depth += (part in "[({") - closes if kind == "mark" else 0
        # A cell of opening brackets only would otherwise exhaust the parser's recursion.
        if depth > DEEPEST:
            raise ValueError(f"lists are nested more than {DEEPEST} levels deep")
        if kind == "text":
            yield json.dumps(_unquoted(part))
        elif not is_comma:
            yield _MARKS.get(part, part) if kind == "mark" else _WORDS.get(part, part)
        before, at = kind, token.end()


def _unquoted(token: str) -> str:
    """Return the content of one string literal."""
    if "\\" not in token:
        return token[1:-1]
    with warnings.catch_warnings():
        # Python keeps an unknown escape as it is and warns; the warning would be about the user's file, not our code.
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
        return "the list was shortened with ... when it was printed; write the whole column to the file"
    if re.match(r"[A-Za-z_][\w.]*\(", excerpt):
        return f"an object of a program ({excerpt.partition('(')[0]}(...)) and no text: write its text, or the column as JSON"
    return f"neither JSON nor a list as Python prints one: {excerpt!r} at character {at + 1}"


def refuse_strange(column: str, value: Any) -> None:
    """Raise BadInput if a string at any depth of the column's value is too long or contains a NUL character."""
    # A stack instead of recursion: nesting of an untrusted value must not exhaust Python's stack.
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict | list):
            left += part.values() if isinstance(part, dict) else part
        elif isinstance(part, str):
            if len(part) > MOST_CHARACTERS:
                reason = f"a text of {len(part):,} characters; at most {MOST_CHARACTERS:,} are allowed"
                raise BadInput(reason, field=column)
            if "\0" in part:
                raise BadInput("contains a NUL character, which text cannot contain", field=column)


def refuse_formula(column: str, cell: Any, as_text: Collection[str]) -> None:
    """Raise BadInput if a cell from a spreadsheet contains a formula instead of its value."""
    if isinstance(cell, str) and cell[:1] == "=" and _FORMULA.match(cell) and column not in as_text:
        reason = f"a spreadsheet formula instead of its value; save the values, or pass --as-text {column}"
        raise BadInput(reason, field=column)
