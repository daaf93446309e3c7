"""Remove the keys in use from everything that a server sends, because a server may echo the key of a request."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

SHORTEST_KEY = 8
"""Minimum length of a key that is removed. Shorter keys are placeholders (EMPTY, none, ollama), which are
also ordinary words in answers.
"""
_MOST_BACKSLASHES = 7


def mask_keys(body: bytes, keys: Sequence[str]) -> bytes:
    """Return a response or a line of JSON with the keys replaced by `[key]`."""
    for key in keys:
        body = b"".join(mask_key([body], key))
    return body


def mask_key(parts: Iterable[bytes], key: str) -> Iterator[bytes]:
    """Replace the key with `[key]`, however JSON escapes it, and even if it is split between two parts."""
    if len(key) < SHORTEST_KEY:
        yield from parts
        return
    written, signs = _pattern(key)
    # The longest spelling of the key, so that a key which continues in the next part is not yielded too
    # early.
    longest = len(key) * (_MOST_BACKSLASHES + 5)
    buffer = b""
    for part in parts:
        buffer += part
        if any(sign in buffer for sign in signs):
            buffer = written.sub(b"[key]", buffer)
        yield buffer[: max(0, len(buffer) - longest)]
        buffer = buffer[-longest:]
    yield buffer


@lru_cache(maxsize=64)
def _pattern(key: str) -> tuple[re.Pattern[bytes], Sequence[bytes]]:
    """Return the pattern of a key, and byte strings of which at least one is in every text with the key."""
    # Most parts do not contain the key. A substring search shows that faster than the pattern.
    run = max(re.findall("[A-Za-z0-9]+", key), key=len, default="").encode()
    signs = (run, *(code % run[0] for code in (b"u00%02x", b"u00%02X") if run))
    return re.compile(b"".join(_spellings(c) for c in key)), signs


def _spellings(character: str) -> bytes:
    """Return a pattern that matches a character in JSON text, whether or not the character is escaped.

    The pattern also matches if the JSON text is itself encoded in a JSON string.
    """
    plain, number = re.escape(character).encode(), ord(character)
    slashes = rb"\\{0,%d}" % _MOST_BACKSLASHES
    return rb"%s(?:%s|(?<=\\)u00(?i:%02x))" % (slashes, plain, number)
