"""Guess the meaning of a user's columns from common column names.

A table is recognised if it has a question column, and a column with contexts or an answer (see
`judge.importers.roles`). Only the names in ROLES are recognised. The other names in this module are only used
for suggestions to the user.
"""

import re
from collections.abc import Collection, Iterable, Mapping
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
"""Maps each of our fields to its names in RAGAS (before and after version 0.2), DeepEval, LangChain and
LlamaIndex. Our own name comes first.
"""

NAMES = {
    "id": ("qid", "query_id", "question_id", "sample_id", "example_id", "item_id", "claim_id", "uid", "_id", "idx", "index", "key", "number", "no", "nr"),
    "question": (*ROLES["question"], "prompt", "user_query", "q", "topic"),
    "claim": ("statement", "hypothesis", "assertion", "sentence"),
    "reference_answers": (*ROLES["reference_answers"], "answers", "answer", "gold_answer", "reference_answer", "expected", "expected_answer", "gold_answers"),
    "passages": (*ROLES["passages"], "passage", "docs", "chunks", "results", "search_results", "evidence", "hits", "retrieved", "ctxs"),
    "passages.text": ("passage", "document", "doc", "text", "context", "evidence", "body", "content", "contents", "chunk", "snippet", "abstract", "paragraph", "passage_text", "doc_text", "ctx"),
    "passages.id": ("doc_id", "docid", "docno", "document_id", "passage_id", "pid", "chunk_id", "id", "_id"),
    "passages.title": ("title", "doc_title", "heading"),
}  # fmt: skip
"""Maps each of our fields to other common names, with the most likely name first."""

LABELS = ("label", "labels", "relevance", "relevant", "rel", "relevance_grade", "grade", "stance", "verdict", "support", "judgement", "judgment", "rating", "gold", "gold_label", "score")  # fmt: skip
"""Names of label columns, with the most likely name first.

`score` is last, because a column with this name contains a retriever's scores more often than human labels.
"""
NAMED_LABELS = frozenset(LABELS[:-1])
"""Names that always identify a label column, whatever values the column contains."""
# Columns such as model_label or label_count have a label word in their name, but do not contain human labels.
_NO_LABELS = frozenset(
    ("score", "scores", "rank", "retriever", "id", "model", "judge", "llm", "predicted", "pred", "confidence", "comment", "note", "notes", "count", "n")
)  # fmt: skip


class MissingFields(BadInput):
    """Raised if no column provides a required field.

    `maps` contains the --map options to suggest for the next attempt, including the user's own valid maps.
    """

    def __init__(self, reason: str, maps: Mapping[str, str], **where: Any) -> None:
        super().__init__(reason, **where)
        self.maps = dict(maps)


def guess(row: Mapping[str, Any], maps: Mapping[str, str]) -> dict[str, str]:
    """Guess a column for each field that is still missing. Return {field: column}.

    A field is missing if the row has no key of this name and the user gave no map for it. A column with a
    list of objects or strings can be `passages`. The fields of a passage are then guessed from the keys of
    the objects in this list.
    """
    columns = {normalise_name(name): name for name in row}
    # A column that the user has mapped is not offered for another field.
    taken = set(maps.values())
    guessed: dict[str, str] = {}
    lists = {name for name, value in row.items() if isinstance(value, list | dict)}
    inside = _inside(row, maps)
    inner: Mapping[str, str] = {}

    def take(field: str, names: Mapping[str, str], *, only: Iterable[str] | None = None) -> None:
        if field in maps or field in guessed:
            return
        for word in (field.rpartition(".")[2] if field != "passages.text" else "", *NAMES[field]):
            name = names.get(word)
            if name is not None and name not in taken and (only is None or name in only):
                guessed[field] = name
                if names is not inner:
                    taken.add(name)
                return

    flat = {key: name for key, name in columns.items() if name not in lists}
    for field in ("id", "question", "claim"):
        if field not in row:
            take(field, flat)
    if "passages" not in row and "passages.text" not in row:
        take("passages", columns, only=[name for name in lists if _has_passages(row[name])])
    # If the passages have another name, their objects must also be searched for the fields of a passage.
    if inside is None and "passages" in guessed:
        inside = _element(row[guessed["passages"]])
    if inside is not None:
        inner = keys = {normalise_name(name): name for name in inside}
        for field in ("passages.text", "passages.id"):
            if field.rpartition(".")[2] not in inside:
                take(field, keys)
        label = _labels({key: name for key, name in keys.items() if not are_ranking(key, [inside[name]])})
    else:
        if "passages" not in row and "passages" not in guessed:
            # There may be one column for each passage: context1, context2 and so on.
            if "passages.text" not in row and not any(name.startswith("passages.text") for name in maps):
                for number, name in enumerate(_find_numbered_passages(flat, taken), 1):
                    guessed["passages.text" if number == 1 else f"passages.text.{number}"] = name
                    taken.add(name)
            for field in () if "passages.text.2" in guessed else ("passages.text", "passages.id"):
                if field not in row:
                    # In a flat row, `id` is the item's id, so it cannot also be the passage's id.
                    take(field, {key: name for key, name in flat.items() if key not in ("id", "_id")})
        free = {
            key: name for key, name in flat.items() if name not in taken and not are_ranking(key, [row[name]])
        }
        label = _labels(free)
    has_gold = any("gold." in name for name in (*row, *maps))
    if label is not None and not has_gold and ("passages.text" in guessed or "passages" in guessed):
        is_claim = bool({"claim"} & {*row, *guessed, *maps})
        guessed[f"passages.gold.{_field(normalise_name(label), is_claim)}"] = label
    return guessed


def _find_numbered_passages(names: Mapping[str, str], taken: Collection[str]) -> list[str]:
    """Return the columns with numbered passages, such as ctx1 and ctx2, in the order of their numbers."""
    words = {*NAMES["passages.text"], *NAMES["passages"]}
    by_word: dict[str, dict[int, str]] = {}
    for key, name in names.items():
        match = re.fullmatch(r"([a-z_]+?)_?(\d{1,3})", key, re.ASCII)
        if match and match[1] in words and name not in taken:
            by_word.setdefault(match[1], {})[int(match[2])] = name
    several = next((numbered for numbered in by_word.values() if len(numbered) > 1), {})
    return [several[number] for number in sorted(several)]


def _labels(names: Mapping[str, str]) -> str | None:
    """Return the most likely label column, or None.

    A column can be the label column if LABELS contains its name. It can also be the label column if its name
    contains a label word (my_grade, label_ana), and no word that suggests another meaning.
    """
    parts = {key: set(key.split("_")) for key in names}
    near = [key for key, words in parts.items() if words & NAMED_LABELS and not words & _NO_LABELS]
    return next((names[key] for key in (*LABELS[:-1], *near, LABELS[-1]) if key in names), None)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known field that the user most likely meant, or None."""
    listed = list(known)
    for field, words in NAMES.items():
        if normalise_name(name) in words and field in listed and field != "passages":
            return field
    close = get_close_matches(name, listed, n=1, cutoff=0.6)
    return close[0] if close else None


def normalise_name(name: str) -> str:
    """Return a column's name in the form that this module's tables use: lower case, with underscores."""
    return re.sub(r"[\s.-]+", "_", name.strip().lower())


def are_ranking(name: str, values: Iterable[Any]) -> bool:
    """Return whether the column is called score and contains a retriever's scores, which are not labels.

    A retriever's scores are recognised by their decimals, as in 12.7 or 0.83.
    """
    decimals = re.compile(r"-?(\d*\.\d+|\d+(?=e))(e[+-]?\d+)?")
    return normalise_name(name) == "score" and any(
        decimals.fullmatch(str(value).strip().lower()) for value in values
    )


def _field(label: str, is_claim: bool) -> str:
    """Return the field of a built-in task that a label column most likely contains."""
    if {"grade", "score", "rating"} & set(label.split("_")):
        return "relevance_grade"
    if {"stance", "support", "verdict"} & set(label.split("_")) or is_claim:
        return "stance"
    return "relevant"


def _inside(row: Mapping[str, Any], maps: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return the first object in the row's passages, or None if the passages are not objects."""
    name = maps.get("passages", "passages")
    return _element(row.get(name))


def _element(value: Any) -> Mapping[str, Any] | None:
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, dict) else None


def _has_passages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict | str)
