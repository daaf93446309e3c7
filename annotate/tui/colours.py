"""Colours of our own that can be read in every theme: `$quiet` for what is read second, `$mark` for highlights."""

from collections.abc import Mapping, Sequence

from textual.color import Color, ColorParseError

READABLE = 4.5
"""The contrast that WCAG 2 (AA) asks of text."""
QUIET = "$quiet"
MARK = "$mark"
GROUNDS = ("background", "surface", "panel")


def luminance(colour: Color) -> float:
    """Relative luminance, 0 to 1 (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.normalized]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Color, other: Color) -> float:
    """Contrast ratio, 1 to 21 (WCAG 2.2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def own_colours(variables: Mapping[str, str]) -> dict[str, str]:
    """`quiet` and `mark` for a theme's variables.

    Quiet is the text's colour moved towards the ground, mark the accent moved towards the text's colour: as
    far as leaves, or makes, them readable. A theme of the terminal's own colours has nothing to compute with.
    """
    text = variables["foreground"]
    try:
        front, accent, *grounds = [Color.parse(variables[n]) for n in ("foreground", "accent", *GROUNDS)]
    except ColorParseError:
        return {"quiet": text, "mark": text}
    if any(colour.ansi is not None for colour in (front, accent, *grounds)):
        return {"quiet": text, "mark": variables["accent"]}
    quiet = [front.blend(grounds[0], p / 100) for p in range(40, 0, -2)]
    # Solarized's own text is hard to read on its boxes: ours is moved away from the ground there.
    quiet += [front.blend(grounds[0].get_contrast_text(1), p / 100) for p in range(0, 100, 5)]
    return {
        "quiet": _first(grounds, quiet, front),
        "mark": _first(grounds[:2], [accent.blend(front, p / 100) for p in range(0, 100, 5)], front),
    }


def _first(grounds: Sequence[Color], tried: Sequence[Color], otherwise: Color) -> str:
    """The first colour that is readable on all grounds, with a little to spare for rounding."""
    good = (c for c in tried if all(contrast(c, ground) >= READABLE + 0.1 for ground in grounds))
    return next(good, otherwise).hex
