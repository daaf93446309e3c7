"""Find what to highlight in a text: the words of the question or claim, and reference answers.

Words begin and end at Unicode word boundaries (UAX 29). Evidence is marked with the same boundaries.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from unicode_segmentation_rs import graphemes, split_word_bounds

_THAI = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
"""Thai, Lao, Burmese and Khmer, in which a word has several letters."""
_HAN = "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
"""Chinese and Japanese, in which two characters count as a word."""
_UNSPACED = re.compile(f"(?P<long>[{_THAI}]+)|[{_HAN}]+")
"""Runs of characters in scripts without spaces between words."""
_GRAMMAR = re.compile(r"[\u3041-\u309f]+")
"""Runs of hiragana only. They are endings and particles, and are ignored like stop words."""
_KATAKANA = re.compile(r"[\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
# If these words were highlighted, they would hide the words that distinguish one passage from another.
_COMMON = """
    about after again also and any are because been before being between both but can could did does
    doing down during each few for from had has have having her here him his how into its just like
    more most not now off once only other our out over own same she should some such than that the
    their them then there these they this those through too under until very was were what when
    where which while who whom why will with would you your
"""
_STOP = frozenset(_COMMON.split())


@lru_cache(maxsize=32)
def words(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of the words and punctuation marks in a text, using Unicode word boundaries (UAX 29).

    In scripts without spaces between words, each character has a span.
    """
    spans: list[tuple[int, int]] = []
    at = 0
    for segment in split_word_bounds(text):
        # UAX 29 gives each character a segment in these scripts, except in Katakana, where a run is one
        # segment.
        for part in graphemes(segment, True) if _KATAKANA.match(segment) else (segment,):
            if not part.isspace():
                spans.append((at, at + len(part)))
            at += len(part)
    return tuple(spans)


@lru_cache(maxsize=32)
def _edges(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """Return the offsets at which words begin, and the offsets at which they end."""
    spans = words(text)
    return frozenset(start for start, _ in spans), frozenset(end for _, end in spans)


def query_terms(texts: Iterable[str]) -> list[str]:
    """Return the words of a question or claim to highlight, without common words.

    In scripts without spaces, every short sequence of characters is a term.
    """
    terms: set[str] = set()
    for text in texts:
        lowered = (text[start:end].casefold() for start, end in words(text))
        terms.update(w for w in lowered if len(w) > 2 and w not in _STOP)
        # Separating words in these scripts requires a dictionary.
        for run in _UNSPACED.finditer(text):
            terms.update(sequence for _, sequence in _sequences(run))
    return sorted(terms)


def _sequences(run: re.Match[str]) -> Iterator[tuple[int, str]]:
    """Yield (offset, sequence) for each sequence of two characters in a run of text without spaces.

    In Thai and similar scripts, a sequence has four characters. Sequences that contain only hiragana are left
    out.
    """
    size = 4 if run["long"] else 2
    for start in range(len(run[0]) - size + 1):
        sequence = run[0][start : start + size]
        if not _GRAMMAR.fullmatch(sequence):
            yield run.start() + start, sequence


def find_terms(text: str, terms: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the words in `terms`, in order. Case is ignored."""
    wanted = set(terms)
    for start, end in words(text) if wanted else ():
        if text[start:end].casefold() in wanted:
            yield start, end
    begun = end = 0
    for run in _UNSPACED.finditer(text) if wanted else ():
        for start, sequence in _sequences(run):
            if sequence in wanted:
                if start > end:  # this sequence does not continue the previous one
                    if end:
                        yield begun, end
                    begun = start
                end = start + len(sequence)
    if end:
        yield begun, end


def find_answers(text: str, answers: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans in which an answer occurs as whole words. Case is ignored."""
    for answer in answers:
        for start, end in find_text(text, answer.strip()):
            begins, ends = _edges(text)
            # An answer "42" must not be highlighted inside "1942".
            if start in begins and end in ends:
                yield start, end


def find_text(text: str, searched: str) -> Iterator[tuple[int, int]]:
    """Yield the spans in which a searched text occurs, even within words. Case is ignored."""
    # An empty text would match at every position.
    for match in re.finditer(re.escape(searched), text, re.IGNORECASE) if searched.strip() else ():
        yield match.span()
