"""A length of time as people type it: 2h, 30m, 90s, 1h30m."""

from __future__ import annotations

import re
from typing import Any

import click

_PARTS = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


class Duration(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Seconds, over 0."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds of a text; numbers pass."""
        if isinstance(value, int | float):
            return float(value)
        found = _PARTS.fullmatch(value.strip())
        parts = found.groups() if found else (None, None, None)
        seconds = sum(float(n or 0) * of for n, of in zip(parts, (3600, 60, 1), strict=True))
        if seconds <= 0:
            self.fail(f"'{value}' is no length of time: write 2h, 30m, 90s or 1h30m", param, ctx)
        return seconds
