"""Find the text in the inputs and outputs of a trace's spans, which may be chats, JSON or lists of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judge.files import loads

ANSWER_KEYS = ("answer", "response", "output", "result", "content", "text")
QUESTION_KEYS = ("question", "query", "input", "user_input", "content", "text")


DEEPEST = 20
"""Maximum nesting depth that is searched for a text."""
THOUGHTS = ("reasoning", "thinking")
"""Types of message parts with a model's reasoning, which is not part of its answer."""


def text_of(value: Any, names: Sequence[str], depth: int = 0) -> str | None:
    """Return the text of an input or output: the value itself, the value of one of these keys, or the last
    message in a chat.
    """
    if depth > DEEPEST:
        return None
    if isinstance(value, str):
        inner = loaded(value)
        if isinstance(inner, str):
            return value if value.strip() else None
        # JSON may be the answer itself; messages without text (a tool call) are not an answer.
        return text_of(inner, names, depth + 1) or (None if _is_chat(inner) else value)
    if isinstance(value, list):
        texts = [text for part in value if (text := text_of(part, names, depth + 1))]
        # In a chat the last message counts; a message in parts counts in full.
        return (texts[-1] if _is_chat(value) else "\n".join(texts)) if texts else None
    if isinstance(value, dict):
        if value.get("type") in THOUGHTS:
            return None
        # The given names precede: an output with an answer may also contain the whole chat.
        for name in (*names, "messages", "message", "parts", "choices", "generations"):
            if value.get(name) and (text := text_of(value[name], names, depth + 1)):
                return text
    return None


def loaded(value: Any) -> Any:
    """Parse JSON in text, because exports write inputs and outputs in this form; other values are returned unchanged."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _is_chat(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(part, dict) and "role" in part for part in value)


def plain_word(value: Any) -> str | None:
    return None if value is None else str(value)
