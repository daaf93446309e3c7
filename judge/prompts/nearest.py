"""Select the few-shot examples that are nearest to a unit according to BM25.

The maximum number of examples is the same for each label.
"""

from collections.abc import Sequence

from judge.errors import MissingExtra


def is_installed() -> bool:
    """Return whether bm25s is installed."""
    from importlib.util import find_spec

    return find_spec("bm25s") is not None


class Nearest:
    """Selects the stored texts that are most similar to a given text, with at most `each` texts per label.

    Similarity is BM25 in Lucene's variant (Robertson and Zaragoza 2009), computed with bm25s (from the extra
    `adjudge[retrieve]`). Raises MissingExtra if bm25s is not installed.
    """

    def __init__(self, texts: Sequence[str], labels: Sequence[str], each: int) -> None:
        try:
            import bm25s
        except ImportError as e:
            raise MissingExtra("nearest examples need bm25s; run pip install 'adjudge[retrieve]'") from e
        self._labels, self._each, self._tokenize = labels, each, bm25s.tokenize
        words = bm25s.tokenize(list(texts), stopwords="en", show_progress=False)
        # bm25s cannot index texts without any word; all examples are then equally near.
        self._index = bm25s.BM25(k1=1.5, b=0.75) if any(words.ids) else None
        if self._index is not None:
            self._index.index(words, show_progress=False)

    def __call__(self, text: str) -> list[int]:
        """Return the positions of the selected texts, with the nearest text last.

        If two scores are equal, the earlier text counts as nearer.
        """
        [query] = self._tokenize([text], stopwords="en", show_progress=False, return_ids=False)
        scores = [0.0] * len(self._labels)
        if query and self._index is not None:
            scores = self._index.get_scores(query).tolist()
        taken = dict.fromkeys(self._labels, 0)
        chosen = []
        # Scores are rounded, so that the order of equal examples does not depend on the platform's floats.
        for at in sorted(range(len(scores)), key=lambda at: (-round(scores[at], 6), at)):
            taken[self._labels[at]] += 1
            if taken[self._labels[at]] <= self._each:
                chosen.append(at)
        # The nearest example comes last, next to the unit.
        return chosen[::-1]
