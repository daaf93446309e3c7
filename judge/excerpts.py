"""Quote two texts that differ, so that a reader sees the difference."""

LENGTH = 48
"""The maximum number of characters of an excerpt."""


def excerpts(new: str, old: str) -> tuple[str, str]:
    """Return excerpts of both texts that begin shortly before their first difference."""
    at = next((i for i, (a, b) in enumerate(zip(new, old, strict=False)) if a != b), min(len(new), len(old)))
    start = max(0, at - LENGTH // 3) if at > LENGTH // 2 else 0
    return excerpt(new, start), excerpt(old, start)


def quote_both(here: str, stored: str) -> str:
    """Return words with an excerpt of a text that is given here, and of the study's text."""
    new, old = excerpts(here, stored)
    return f"{new} here, and {old} in the study"


def excerpt(text: str, start: int) -> str:
    """Return the part of a text from `start`, in quotation marks."""
    part = " ".join(text[start : start + LENGTH].split())
    return f"'{'...' if start else ''}{part}{'...' if start + LENGTH < len(text) else ''}'"
