"""Extract the text from a span's input or output, which may be a chat, JSON or a list of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judge.files import loads

ANSWER_KEYS = ("answer", "response", "output", "result", "content", "text")
QUESTION_KEYS = ("question", "query", "input", "user_input", "content", "text")


DEEPEST = 20
"""Maximum nesting depth that is searched for text."""
THOUGHTS = ("reasoning", "thinking")
"""Types of message parts that contain a model's reasoning. Reasoning is not part of the answer."""


def text_of(value: Any, names: Sequence[str], depth: int = 0) -> str | None:
    """Return the text of an input or output, or None if it has no text.

    The text is the value itself, the value of the first key in `names`, or the last message in a chat.
    """
    if depth > DEEPEST:
        return None
    if isinstance(value, str):
        inner = parse_json_text(value)
        if isinstance(inner, str):
            return value if value.strip() else None
        # JSON without a known key may itself be the answer. A chat without text (only tool calls) is not an
        # answer.
        return text_of(inner, names, depth + 1) or (None if _is_chat(inner) else value)
    if isinstance(value, list):
        texts = [text for part in value if (text := text_of(part, names, depth + 1))]
        # In a chat, the last message is used. If a message has several parts, all of them are used.
        return (texts[-1] if _is_chat(value) else "\n".join(texts)) if texts else None
    if isinstance(value, dict):
        if value.get("type") in THOUGHTS:
            return None
        # The given names are tried first, because an output with an answer may also contain the whole chat.
        for name in (*names, "messages", "message", "parts", "choices", "generations"):
            if value.get(name) and (text := text_of(value[name], names, depth + 1)):
                return text
    return None


def parse_json_text(value: Any) -> Any:
    """Parse a value if it is JSON text, as inputs and outputs in exports often are.

    Other values are returned unchanged.
    """
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _is_chat(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(part, dict) and "role" in part for part in value)


def get_word(value: Any) -> str | None:
    return None if value is None else str(value)
