"""Which column of somebody's file is which of our fields, by the names that people use.

Names of ROLES are taken where a table has a question with its contexts or an answer (`judge.importers.roles`). All others are
offered, never taken unasked.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from judge.errors import BadInput

ROLES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "user_input", "query", "input"),
    "passages": ("passages", "contexts", "retrieved_contexts", "retrieval_context", "context", "documents", "source_documents", "source_nodes"),
    "answer": ("answer", "response", "actual_output", "output", "result"),
    "reference_answers": ("reference_answers", "reference", "ground_truth", "ground_truths", "expected_output"),
    "system": ("system", "model"),
}  # fmt: skip
"""Our field -> its names, ours first: RAGAS before 0.2 and since, DeepEval, LangChain's chains, LlamaIndex's responses."""

NAMES = {
    "id": ("qid", "query_id", "question_id", "sample_id", "example_id", "item_id", "claim_id", "uid", "_id", "idx", "index", "key", "number", "no", "nr"),
    "question": (*ROLES["question"], "prompt", "user_query", "q", "topic"),
    "claim": ("statement", "hypothesis", "assertion", "sentence"),
    "reference_answers": (*ROLES["reference_answers"], "answers", "answer", "gold_answer", "reference_answer", "expected", "expected_answer", "gold_answers"),
    "passages": (*ROLES["passages"], "passage", "docs", "chunks", "results", "search_results", "evidence", "hits", "retrieved", "ctxs"),
    "passages.text": ("passage", "document", "doc", "text", "context", "evidence", "body", "content", "contents", "chunk", "snippet", "abstract", "paragraph", "passage_text", "doc_text"),
    "passages.id": ("doc_id", "docid", "docno", "document_id", "passage_id", "pid", "chunk_id", "id", "_id"),
    "passages.title": ("title", "doc_title", "heading"),
}  # fmt: skip
"""Our field -> what others call it, the likeliest first."""

LABELS = ("label", "labels", "relevance", "relevant", "rel", "relevance_grade", "grade", "stance", "verdict", "support", "judgement", "judgment", "rating", "gold", "gold_label", "score")  # fmt: skip
"""What columns of labels are called, the likeliest first; `score` is a retriever's more often than a person's."""
NAMED_LABELS = frozenset(LABELS[:-1])
"""Names that say label, whatever the values are."""
_NO_LABELS = frozenset(
    ("score", "scores", "rank", "retriever", "id", "model", "judge", "llm", "predicted", "pred", "confidence", "comment", "note", "notes", "count", "n")
)  # fmt: skip


class MissingFields(BadInput):
    """Fields that no column gives; `maps` are all that would help, those of the user that fit among them."""

    def __init__(self, reason: str, maps: Mapping[str, str], **where: Any) -> None:
        super().__init__(reason, **where)
        self.maps = dict(maps)


def guess(row: Mapping[str, Any], maps: Mapping[str, str]) -> dict[str, str]:
    """Our field -> column, for fields that neither a key nor a map gives. Values are looked at where they are known.

    A list of objects or texts is `passages`, and what its objects hold is looked for inside them.
    """
    columns = {plain_name(name): name for name in row}
    taken = set(maps.values())
    found: dict[str, str] = {}
    lists = {name for name, value in row.items() if isinstance(value, list | dict)}
    inside = _inside(row, maps)
    inner: Mapping[str, str] = {}

    def take(field: str, names: Mapping[str, str], *, only: Iterable[str] | None = None) -> None:
        if field in maps or field in found:
            return
        for word in (field.rpartition(".")[2] if field != "passages.text" else "", *NAMES[field]):
            name = names.get(word)
            if name is not None and name not in taken and (only is None or name in only):
                found[field] = name
                if names is not inner:
                    taken.add(name)
                return

    flat = {key: name for key, name in columns.items() if name not in lists}
    for field in ("id", "question", "claim"):
        if field not in row:
            take(field, flat)
    if "passages" not in row and "passages.text" not in row:
        take("passages", columns, only=[name for name in lists if _holds_passages(row[name])])
    if inside is None and "passages" in found:
        inside = _element(row[found["passages"]])
    if inside is not None:
        inner = keys = {plain_name(name): name for name in inside}
        for field in ("passages.text", "passages.id"):
            if field.rpartition(".")[2] not in inside:
                take(field, keys)
        label = _labels({key: name for key, name in keys.items() if not are_ranking(key, [inside[name]])})
    else:
        if "passages" not in row and "passages" not in found:
            for field in ("passages.text", "passages.id"):
                if field not in row:
                    # The row's own id is the item's.
                    take(field, {key: name for key, name in flat.items() if key not in ("id", "_id")})
        free = {
            key: name for key, name in flat.items() if name not in taken and not are_ranking(key, [row[name]])
        }
        label = _labels(free)
    has_gold = any("gold." in name for name in (*row, *maps))
    if label is not None and not has_gold and ("passages.text" in found or "passages" in found):
        is_claim = bool({"claim"} & {*row, *found, *maps})
        found[f"passages.gold.{_field(plain_name(label), is_claim)}"] = label
    return found


def _labels(names: Mapping[str, str]) -> str | None:
    """The column of labels: called so, or with such a word in it (my_grade, label_ana) and none of another thing."""
    parts = {key: set(key.split("_")) for key in names}
    near = [key for key, words in parts.items() if words & NAMED_LABELS and not words & _NO_LABELS]
    return next((names[key] for key in (*LABELS[:-1], *near, LABELS[-1]) if key in names), None)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one that was most likely meant."""
    listed = list(known)
    for field, words in NAMES.items():
        if plain_name(name) in words and field in listed and field != "passages":
            return field
    close = get_close_matches(name, listed, n=1, cutoff=0.6)
    return close[0] if close else None


def plain_name(name: str) -> str:
    """A column's name as the words of this module are written."""
    return re.sub(r"[\s.-]+", "_", name.strip().lower())


def are_ranking(name: str, values: Iterable[Any]) -> bool:
    """Whether a column called score is a retriever's (12.7, 0.83), which is nobody's label."""
    decimals = re.compile(r"-?(\d*\.\d+|\d+(?=e))(e[+-]?\d+)?")
    return plain_name(name) == "score" and any(
        decimals.fullmatch(str(value).strip().lower()) for value in values
    )


def _field(label: str, is_claim: bool) -> str:
    """The label field of a shipped task that a column of labels most likely is for."""
    if {"grade", "score", "rating"} & set(label.split("_")):
        return "relevance_grade"
    if {"stance", "support", "verdict"} & set(label.split("_")) or is_claim:
        return "stance"
    return "relevant"


def _inside(row: Mapping[str, Any], maps: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The first object of the row's passages, where they are a list of objects."""
    name = maps.get("passages", "passages")
    return _element(row.get(name))


def _element(value: Any) -> Mapping[str, Any] | None:
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, dict) else None


def _holds_passages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict | str)
