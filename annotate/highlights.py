"""What to highlight in a text: words of the question or claim, and reference answers. A highlight says nothing of relevance."""

import re
from collections.abc import Iterable, Iterator, Sequence

_WORD = re.compile(r"\w+(?:[-'’]\w+)*", re.UNICODE)
_COMMON = """
    about after again also and any are because been before being between both but can could did does
    doing down during each few for from had has have having her here him his how into its just like
    more most not now off once only other our out over own same she should some such than that the
    their them then there these they this those through too under until very was were what when
    where which while who whom why will with would you your
"""
_STOP = frozenset(_COMMON.split())


def query_terms(texts: Iterable[str]) -> list[str]:
    """Return the words of the question or claim that are worth highlighting."""
    words = {w.casefold() for text in texts for w in _WORD.findall(text)}
    return sorted(w for w in words if len(w) > 2 and w not in _STOP)


def find_terms(text: str, terms: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of whole words of `terms`, ignoring case."""
    wanted = set(terms)
    for match in _WORD.finditer(text):
        if match[0].casefold() in wanted:
            yield match.start(), match.end()


def find_answers(text: str, answers: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of an answer, ignoring case; a short answer only as whole words."""
    for answer in answers:
        if answer.strip():
            edge = r"\b" if len(answer) < 5 and answer.isalnum() else ""
            for match in re.finditer(edge + re.escape(answer.strip()) + edge, text, re.IGNORECASE):
                yield match.start(), match.end()
