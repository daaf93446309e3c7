"""Keep the columns of the screen in place where a terminal gives a cluster another width than Textual.

Terminals disagree about the width of joined emoji, skin tones, flags and conjuncts: one draws them in two columns, another
in eight. After each such cluster, the cursor is therefore placed where Textual takes it to be, so that no cluster can move
the text or the pane to its right.
"""

import re

from rich.cells import cell_len, split_graphemes
from textual.driver import Driver

# Marks, joiners and letters outside Latin, Greek, Cyrillic, Chinese, Japanese and Korean, and emoji. Every terminal agrees
# about the others.
_UNSURE = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0590-\u10ff\u1200-\u1dff\u200b-\u200f\u20d0-\u20ff\u2190-\u2bff\ua4d0-\uabff\ufb1d-\uffff"
    "\U00010000-\U0001ffff\U000e0000-\U0010ffff]"
)
# Moves to a row and column, other control sequences, and links (OSC); everything else is text.
_TOKEN = re.compile(
    r"\x1b\[(?:\d*;(?P<column>\d+)H|[0-?]*[ -/]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|(?P<text>[^\x1b\n\r]+)|[\n\r]",
    re.DOTALL,
)


def pin(output: str) -> str:
    """Return output for a terminal in which the cursor is placed again after each cluster of unsure width."""
    if not _UNSURE.search(output):
        return output
    parts: list[str] = []
    column: int | None = None
    for token in _TOKEN.finditer(output):
        text = token["text"]
        if token["column"]:
            column = int(token["column"])
        elif token[0] in "\r\n":
            # The row is not known any more. Textual moves to the next row with a row and a column.
            column = None
        if text is None or column is None:
            parts.append(token[0])
        elif not _UNSURE.search(text):
            parts.append(text)
            column += cell_len(text)
        else:
            for start, end, width in split_graphemes(text)[0]:
                cluster = text[start:end]
                column += width
                parts.append(f"{cluster}\x1b[{column}G" if _UNSURE.search(cluster) else cluster)
    return "".join(parts)


def make_pinned(driver: type[Driver]) -> type[Driver]:
    """Return a driver that writes all output with `pin`."""

    class Pinned(driver):  # type: ignore[valid-type, misc]
        def write(self, data: str) -> None:
            super().write(pin(data))

    return Pinned
