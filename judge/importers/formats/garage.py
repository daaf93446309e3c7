"""GaRAGe: questions with about 15 annotated passages each, and a human answer.

Sorodoc et al., "GaRAGe: A Benchmark with Grounding Annotations for RAG Evaluation", ACL Findings 2025 (arXiv
2506.07671). Columns are described in the data set's README. The data are licensed CC BY-NC, so they are not
shipped with adjudge.

The file is `GaRAGe_benchmark.jsonl` (or a JSON array). Each row is an object:
    {sample_id, question, question_date, question_*: tags, topic_tag, comments,
     grounding: [{"cite_1": text, age, date, provider}],
     evidence_relevant: [YES|NO], evidence_correct: [class or ""], evidence_cited: [YES|NO],
     answer_generate, answer_related_info (or related_info), answer_validate}
The three evidence lists are as long as `grounding`.

Each row is one item. A passage's id is its citation marker, its source is the provider (web or ent), and its
`meta` has age, evidence_relevant, evidence_correct and evidence_cited. Tags, comments and the human answers are kept in the item's `meta` under the same keys. Gold labels:
    relevance     (passage) ANSWER-THE-QUESTION | RELATED-INFORMATION | OUTDATED | UNKNOWN from
                  evidence_correct; IRRELEVANT if that is empty and evidence_relevant is NO;
                  no label if it is empty and evidence_relevant is not NO
    insufficient  (item) true if answer_validate is empty and every evidence_cited is NO (427 of
                  the 2,366 rows), otherwise false; no label if the row lacks one of the two fields
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from judge.errors import BadInput
from judge.importers import fields
from judge.importers.base import Bad, Options, Row
from judge.importers.records import build_each, json_records
from judge.types import Item, Passage

NAME = "garage"
HELP = "GaRAGe: questions with annotated passages and human answers"
SIGNS = (("sample_id", "question", "grounding"),)

CLASSES = ("ANSWER-THE-QUESTION", "RELATED-INFORMATION", "OUTDATED", "UNKNOWN", "IRRELEVANT")
# Each of these lists has one entry per passage, in the order of `grounding`.
LISTS = ("evidence_relevant", "evidence_correct", "evidence_cited")
_MARKER = re.compile(r"\[?(cite_\d+)\]?")
_OWN = ("sample_id", "question", "question_date", "grounding", *LISTS)


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield one row per question."""
    fields.refuse_maps(NAME, options)
    for path in paths:
        labels = fields.Labels(options)
        build = partial(_items, dataset=options.dataset or NAME, labels=labels)
        yield from build_each(json_records(path, bad), build, bad)
        labels.finish()


def _items(raw: Any, dataset: str, labels: fields.Labels) -> list[Item]:
    row = fields.record(raw)
    grounding = fields.listing(row.get("grounding"), "grounding")
    marks = {name: _get_evidence(row, name, len(grounding)) for name in LISTS}
    item = Item(
        source_id=fields.identifier(row.get("sample_id"), "sample_id"),
        dataset=dataset,
        question=fields.require_text(row.get("question"), "question"),
        question_date=fields.word(row.get("question_date"), "question_date"),
        meta={k: v for k, v in row.items() if k not in _OWN},
    )
    for number, raw in enumerate(grounding):
        passage = _passage(raw, f"grounding.{number}")
        given = {name: values[number] for name, values in marks.items() if values is not None}
        passage.meta.update(given)
        # For an irrelevant passage, evidence_correct is empty and only evidence_relevant gives its class.
        value = _class(given, number)
        known = {c: c for c in CLASSES}
        passage.votes += labels.read_fixed("relevance", value, f"evidence_correct.{number}", known)
        item.passages.append(passage)
    if "answer_validate" in row and marks["evidence_cited"] is not None:
        cited = "YES" in marks["evidence_cited"]
        # GaRAGe marks insufficient grounding with an empty validated answer and no cited passage (427 of its
        # 2,366 rows).
        insufficient = row["answer_validate"] in ("", None) and not cited
        item.votes += labels.gold("insufficient", insufficient, "answer_validate")
    return [fields.check_item(item)]


def _get_evidence(row: Mapping[str, Any], name: str, length: int) -> list[Any] | None:
    """Return an evidence list, or None if the row does not have this list.

    Raises BadInput if the length of the list differs from the number of passages.
    """
    if row.get(name) is None:
        return None
    values = fields.listing(row[name], name)
    if len(values) != length:
        raise BadInput(f"the list has {len(values)} entries, but there are {length} passages", field=name)
    for number, value in enumerate(values):
        if name != "evidence_correct" and value not in ("YES", "NO", "", None):
            raise BadInput(f"'{value}' must be YES or NO", field=f"{name}.{number}")
    return values


def _class(given: Mapping[str, Any], number: int) -> str | None:
    value = fields.word(given.get("evidence_correct"), f"evidence_correct.{number}")
    # The data set has no class for an irrelevant passage. Instead, its class is empty and its
    # evidence_relevant is NO.
    if value is None and given.get("evidence_relevant") == "NO":
        return "IRRELEVANT"
    return value


def _passage(raw: Any, place: str) -> Passage:
    """Return an entry of `grounding` as a passage. The key that contains the text is the passage's citation
    marker.
    """
    row = fields.mapping(raw, place)
    markers = [key for key in row if _MARKER.fullmatch(key)]
    if len(markers) != 1:
        raise BadInput(f"must have exactly one key cite_N, but has {len(markers)}", field=place)
    key = markers[0]
    return Passage(
        text=fields.require_text(row[key], f"{place}.{key}"),
        source_id=key.strip("[]"),
        date=fields.word(row.get("date"), f"{place}.date"),
        source=fields.word(row.get("provider"), f"{place}.provider"),
        meta={k: v for k, v in row.items() if k not in (key, "date", "provider")},
    )
