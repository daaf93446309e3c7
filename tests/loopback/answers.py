"""Deterministic answers: what a request gets depends on its last user message alone."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_SHAPE = re.compile(r"JSON object and nothing else: (\{.*\})\s*$", re.MULTILINE)
_FIELD = re.compile(r'"([^"]+)": ((?:"(?:[^"\\]|\\.)*"(?: \| )?)+|text|number)')
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"')
_CUE = re.compile(r"Answer \(((?:\w, )*\w)\):\s*$")


def last_user(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of the last user turn; content blocks are joined."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return content_text(message.get("content"))
    return ""


def content_text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(block.get("text", "")) for block in content)
    return content if isinstance(content, str) else ""


def pick(text: str, field: str, values: Sequence[Any]) -> Any:
    """One of the values, by sha256 of the text and the field's name."""
    digest = hashlib.sha256(f"{field}\0{text}".encode("utf-8", "surrogatepass")).digest()
    return values[int.from_bytes(digest[:6], "big") % len(values)]


def codes(text: str) -> list[str]:
    """The codes that the message's cue `Answer (A, B, C):` offers; none without a cue."""
    cue = _CUE.search(text)
    return cue[1].split(", ") if cue else []


def instance(schema: Mapping[str, Any], text: str, wrong: bool = False, at: str = "") -> Any:
    """A value that fits the schema; with `wrong`, every enum gets a value outside it."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return "no-such-label" if wrong else pick(text, at, schema["enum"])
    if "anyOf" in schema:
        return instance(schema["anyOf"][0], text, wrong, at)
    kind = schema.get("type")
    if kind == "object":
        return {k: instance(v, text, wrong, k) for k, v in schema.get("properties", {}).items()}
    if kind == "array":
        return []
    if kind in ("number", "integer"):
        return int(pick(text, at, range(schema.get("minimum", 0), schema.get("maximum", 4) + 1)))
    return True if kind == "boolean" else "because it says so"


def described(prompt: str, text: str, wrong: bool = False) -> str:
    """The JSON that the prompt itself describes, for servers without schemas; prose if it describes none."""
    shapes = _SHAPE.findall(prompt)
    if not shapes:
        return "I would say so."
    out: dict[str, Any] = {}
    for field, values in _FIELD.findall(shapes[-1]):
        options = [json.loads(v) for v in _VALUE.findall(values)]
        if values == "number":
            out[field] = int(pick(text, field, range(5)))
        elif len(options) < 2:
            out[field] = "because it says so"
        else:
            out[field] = "no-such-label" if wrong else pick(text, field, options)
    return json.dumps(out)
