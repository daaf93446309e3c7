"""Our colours, which are readable in all themes: `$quiet` for secondary text and `$mark` for highlights."""

from collections.abc import Mapping, Sequence

from textual.color import Color, ColorParseError

READABLE = 4.5
"""The minimum contrast ratio for text that WCAG 2 requires at level AA."""
QUIET = "$quiet"
MARK = "$mark"
GROUNDS = ("background", "surface", "panel")


def luminance(colour: Color) -> float:
    """Return the relative luminance, from 0 to 1 (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.normalized]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: Color, other: Color) -> float:
    """Return the contrast ratio, from 1 to 21 (WCAG 2.2)."""
    low, high = sorted((luminance(first), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def get_theme_colours(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the colours `quiet` and `mark` for a theme with these variables.

    `quiet` is a weaker text colour, blended with the background but still readable. `mark` is the accent colour, moved
    towards the text colour until it is readable.
    """
    text = variables["foreground"]
    try:
        front, accent, *grounds = [Color.parse(variables[n]) for n in ("foreground", "accent", *GROUNDS)]
    except ColorParseError:
        return {"quiet": text, "mark": text}
    # The terminal decides how its own colours look, so their contrast is not known here.
    if any(colour.ansi is not None for colour in (front, accent, *grounds)):
        return {"quiet": text, "mark": variables["accent"]}
    quiet = [front.blend(grounds[0], p / 100) for p in range(40, 0, -2)]
    # In Solarized, the theme's own text is hard to read on its boxes, so our text moves away from the background there.
    quiet += [front.blend(grounds[0].get_contrast_text(1), p / 100) for p in range(0, 100, 5)]
    return {
        "quiet": _choose_readable(grounds, quiet, front),
        "mark": _choose_readable(
            grounds[:2], [accent.blend(front, p / 100) for p in range(0, 100, 5)], front
        ),
    }


def _choose_readable(grounds: Sequence[Color], tried: Sequence[Color], otherwise: Color) -> str:
    """Return the first colour that is readable on all backgrounds, or `otherwise` if no colour is."""
    # The limit has a margin, because colours are rounded.
    good = (c for c in tried if all(contrast(c, ground) >= READABLE + 0.1 for ground in grounds))
    return next(good, otherwise).hex
