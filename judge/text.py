"""Split answers into sentences, as spans of code points, and find citation markers in them.

Markers are `[cite_3]`, `[cite_3][cite_5]`, `[cite_3, cite_5]`, `[3]`, `[1, 2]`, `[1-3]`, and any `[id]` whose
id the caller passes. A marker after the full stop belongs to the sentence before it.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

LONGEST_RANGE = 50
_BRACKETS = re.compile(r"\[([^\[\]\n]{1,300})\]")
_SEPARATOR = re.compile(r"\s*[,;]\s*")
_PLAIN = re.compile(r"(?:cite_)?\d{1,3}", re.IGNORECASE)
_RANGE = re.compile(r"(cite_)?(\d{1,3})\s*[-–—]\s*(?:cite_)?(\d{1,3})", re.IGNORECASE)

# The end of a sentence: terminal marks, closing quotes, then citation markers with or without a space.
_MARKS = re.compile(r"(?P<end>[.!?…]+|[。！？]+)[\"'”’»)\]]*(?:[ \t]*\[[^\[\]\n]{1,300}\])*")
_BLOCK = re.compile(r"[ \t]*\n\s*")
_BULLET = re.compile(r"(?:[-*•–—]|\d{1,3}[.)]|[a-zA-Z][.)]|#{1,6})\s")
_TITLES = "mr mrs ms dr prof rev hon gov gen col lt sgt capt vs cf ca e.g i.e fig figs eq pp vol"
_SHORT = (
    "sen rep st jr sr etc al approx no nos sec ch p ed eds inc ltd co corp dept est jan feb mar apr jun jul aug "
    "sep sept oct nov dec u.s u.k u.n a.m p.m ph.d m.d b.c a.d"
)
_ALWAYS = frozenset(_TITLES.split())
"""Abbreviations that never end a sentence."""
_ABBREVIATIONS = frozenset(_SHORT.split())
"""Abbreviations that end a sentence only if a capital letter follows."""
_VISIBLE = re.compile(r"\S")
_BEFORE_NUMBERS = ("no", "nos", "st", "p")


@dataclass(frozen=True, slots=True)
class Marker:
    """One bracket with citations: its position and its ids, with ranges expanded."""

    start: int
    end: int
    ids: tuple[str, ...]


def markers(text: str, known: Collection[str] = ()) -> list[Marker]:
    """Return the citation markers in a text, in order. A bracket with any other content is not a marker."""
    markers = []
    for match in _BRACKETS.finditer(text):
        ids: list[str] = []
        for part in _SEPARATOR.split(match[1].strip()):
            named = _ids(part, known)
            if not named:
                break
            ids += named
        else:
            markers.append(Marker(match.start(), match.end(), tuple(dict.fromkeys(ids))))
    return markers


def _ids(part: str, known: Collection[str]) -> list[str]:
    if part in known:
        return [part]
    if _PLAIN.fullmatch(part):
        return [part.lower()]
    span = _RANGE.fullmatch(part)
    if span is None:
        return []
    first, last, prefix = int(span[2]), int(span[3]), (span[1] or "").lower()
    if not first <= last < first + LONGEST_RANGE:
        return []
    return [f"{prefix}{n}" for n in range(first, last + 1)]


def normalise(text: str) -> str:
    """Normalise a short text for comparisons: case, spaces and a final full stop are ignored."""
    return " ".join(text.casefold().split()).rstrip(" .")


def sentences(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each sentence, in code points. Together the spans cover every visible character.

    Paragraphs, list entries and headings end a sentence; abbreviations, initials, decimals and list numbers
    do not. The method is a deterministic heuristic for edited English and similar scripts.
    """
    spans: list[tuple[int, int]] = []
    for start, end in _blocks(text):
        at = start
        for stop in _stops(text, start, end):
            _add(spans, text, at, stop)
            at = stop
        _add(spans, text, at, end)
    return spans


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    """Add a span without surrounding white space.

    A span that contains only markers is joined to the previous sentence.
    """
    piece = text[start:end]
    start, end = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
    if start >= end:
        return
    if spans and not re.search(r"\w", _BRACKETS.sub("", text[start:end])):
        spans[-1] = (spans[-1][0], end)
    else:
        spans.append((start, end))


def _blocks(text: str) -> list[tuple[int, int]]:
    """Return the paragraphs, list entries and lines that form separate blocks."""
    blocks, at = [], 0
    for gap in _BLOCK.finditer(text):
        if gap[0].count("\n") == 1 and _goes_on(text, at, gap):
            continue
        blocks.append((at, gap.start()))
        at = gap.end()
    return [*blocks, (at, len(text))]


def _goes_on(text: str, at: int, gap: re.Match[str]) -> bool:
    """Return whether a line break is only a line wrap: neither side looks like the beginning or end of a
    sentence.
    """
    after = text[gap.end() : gap.end() + 8]
    if gap.start() <= at or not after or _BULLET.match(after) or text[at] == "#":
        return False
    return text[gap.start() - 1] not in ".!?…:。！？]" and (after[0].islower() or after[0] in "([")


def _stops(text: str, start: int, end: int) -> list[int]:
    return [m.end() for m in _MARKS.finditer(text, start, end) if _is_stop(text, start, end, m)]


def _is_stop(text: str, start: int, end: int, match: re.Match[str]) -> bool:
    mark, stop = match["end"], match.end()
    if mark[0] in "。！？" or stop == end:
        return True
    if not text[stop].isspace():
        # "3.5", "example.org"
        return False
    visible = _VISIBLE.search(text, stop, end)
    follower = visible[0] if visible else ""
    if mark != "." or stop > match.end("end"):
        return mark[-1] == "!" or not follower.islower()
    # No abbreviation is longer. Without this limit, every full stop would copy all of the text before it.
    before = text[max(start, match.start() - 30) : match.start()]
    word = before.split()[-1] if before and not before[-1].isspace() else ""
    last = word.lstrip("([\"'“‘«*_").casefold()
    # "J. Smith"
    initial = len(last) == 1 and last.isalpha() and word[-1].isupper()
    # "3. Mix the flour."
    list_number = last.isdigit() and text[start : match.start()].strip() == last if len(last) < 4 else False
    if last in _ALWAYS or initial or list_number:
        return False
    if last in _ABBREVIATIONS:
        # A capital letter or digit after "No.", "St." or "p." belongs to a name or a number.
        return follower.isupper() and last not in _BEFORE_NUMBERS
    return not follower.islower()
