"""Parse the HTTP headers that say when to retry and how much of the rate limits is left."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime

from judge.types import RateState

MOST_SECONDS = 1e9
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|[dhms])")
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait according to `retry-after-ms` or `retry-after` (seconds or an HTTP date).

    Return None if neither header has a valid value.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - server_time(headers)
            except (ValueError, TypeError, OverflowError):
                # An invalid value is not a reason to ignore the other header.
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def server_time(headers: Mapping[str, str]) -> float:
    """Return the time in the `Date` header, in seconds since 1970.

    The header is preferred because the local clock may be wrong or may have been changed. The local time is
    returned only if there is no valid header.
    """
    said = headers.get("date")
    try:
        return parsedate_to_datetime(said).timestamp() if said else time.time()
    except (ValueError, TypeError, OverflowError):
        return time.time()


def duration(text: str | None) -> float | None:
    """Parse a duration such as `6s`, `1m30s`, `120ms` or a plain number. Return it in seconds.

    Return None for any other text.
    """
    text = (text or "").strip()
    if not text:
        return None
    parts = _DURATION.findall(text)
    # The parts must make up the whole text: `6s and more` is not a duration.
    if parts and "".join(n + u for n, u in parts) == text:
        seconds = sum(float(n) * _SECONDS[u] for n, u in parts)
        return seconds if seconds <= MOST_SECONDS else None
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds <= MOST_SECONDS else None


def rate_state(
    headers: Mapping[str, str], names: Sequence[str], seconds: Callable[[str | None], float | None]
) -> RateState | None:
    """Parse the rate-limit headers with these names, which are in the same order as RateState's fields.

    Return None if the server does not send any of them.
    """
    requests, reset_requests, tokens, reset_tokens, *limits = (headers.get(name) for name in names)
    if requests is None and tokens is None:
        return None
    resets = seconds(reset_requests), seconds(reset_tokens)
    return RateState(_count(requests), resets[0], _count(tokens), resets[1], *map(_count, limits))


def _count(text: str | None) -> int | None:
    """Return a header's value as an integer, or None if it is missing or invalid."""
    # Digits of other scripts pass `isdigit`, too.
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None
