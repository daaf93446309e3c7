"""MIRAGE: questions with short answers and five Wikipedia chunks each, some of which support it.

Park et al., "MIRAGE: A Metric-Intensive Benchmark for Retrieval-Augmented Generation Evaluation",
Findings of NAACL 2025 (arXiv 2504.17137), appendix B; files as its repository reads them.

Files, together in one import, told apart by their content:
    dataset.json   [{source, query_id, query, doc_name, answer: [alias], doc_url, num_doc_labels}]
    doc_pool.json  [{mapped_id, doc_name, doc_chunk, support: 1|0}], read as a stream; may be missing
    oracle.json    {query_id: a chunk as above}, the one shown in the oracle setting; may be missing

One item a question (7,560), with its aliases as reference answers; a passage has the document's
name as title and no id of its own (the hash of its text stands in). Gold of a passage: `support`
supported | not_supported. The oracle's chunk has meta oracle = true; one that is not in the pool
becomes a passage too. Chunks of a question that do not stand together give several rows with the
same item. Item meta: source, doc_name, doc_url, num_doc_labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.importers import fields
from judge.importers.base import Bad, Options, Row
from judge.importers.cells import parsed
from judge.importers.records import is_array, json_elements, json_pairs, placed
from judge.types import Item, Passage, Where

NAME = "mirage"
HELP = "MIRAGE: dataset.json with or without doc_pool.json and oracle.json"
TOGETHER = True
SIGNS = (("query_id", "query", "doc_name"), ("mapped_id", "doc_chunk"))

SUPPORT = {
    "1": "supported",
    "0": "not_supported",
    "true": "supported",
    "false": "not_supported",
    "supported": "supported",
    "not supported": "not_supported",
    "not_supported": "not_supported",
}
_OWN = ("query_id", "query", "answer")


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield one row per question, or per group of adjacent chunks. Raises UsageError when dataset.json is missing."""
    fields.no_maps(NAME, options)
    kinds = {path: _kind_of(path) for path in paths}
    if "dataset" not in kinds.values():
        raise UsageError(
            f"mirage needs the questions: {command('judge items import mirage dataset.json doc_pool.json')}"
        )
    builder = _Builder(options, bad)
    for kind, learn in (("dataset", builder.questions), ("oracle", builder.oracles)):
        for path in paths:
            if kinds[path] == kind:
                learn(path)
    for path in paths:
        if kinds[path] == "pool":
            yield from builder.pool(path)
    yield from builder.rest()
    builder.finish()


def _kind_of(path: Path) -> str:
    if not is_array(path):
        return "oracle"
    # The pool is read as a stream, so only its first chunk is looked at here.
    for _, first in json_elements(path):
        if isinstance(first, dict) and "mapped_id" in first:
            return "pool"
        break
    return "dataset"


class _Builder:
    """Keeps the questions and the oracle's chunks in memory, and streams the pool."""

    def __init__(self, options: Options, bad: Bad) -> None:
        self._dataset = options.dataset or NAME
        self._bad = bad
        self._labels = fields.Labels(options)
        self._items: dict[str, Row] = {}
        self._oracles: dict[str, tuple[Where, Passage]] = {}
        self._shown: set[str] = set()

    def questions(self, path: Path) -> None:
        """Read dataset.json."""
        for number, raw in json_elements(path):
            try:
                item = fields.checked(self._item(fields.record(raw)))
                if item.source_id in self._items:
                    raise BadInput(f"question {item.source_id} occurs twice", field="query_id")
            except BadInput as error:
                self._bad(placed(error, path, number, "element"))
            else:
                self._items[item.source_id] = Row(item, Where(str(path), number))
        if not self._items:
            self._bad(BadInput("no questions", path=str(path)))

    def oracles(self, path: Path) -> None:
        """Read oracle.json."""
        for number, (name, raw) in json_pairs(path):
            try:
                passage = self._passage(fields.mapping(raw, name), f"{name}.")
                if name not in self._items:
                    raise BadInput(f"there is no question {name}", field=name)
            except BadInput as error:
                self._bad(placed(error, path, number, "element"))
            else:
                passage.meta["oracle"] = True
                self._oracles[name] = Where(str(path), number), passage

    def pool(self, path: Path) -> Iterator[Row]:
        """Yield one row for each group of adjacent chunks of one question."""
        run: list[Passage] = []
        name, start = "", 0
        for number, raw in json_elements(path):
            try:
                row = fields.record(raw)
                owner = fields.identifier(row.get("mapped_id"), "mapped_id")
                if owner not in self._items:
                    raise BadInput(f"there is no question {owner}", field="mapped_id")
                passage = self._passage(row, "")
            except BadInput as error:
                self._bad(placed(error, path, number, "element"))
                continue
            if owner != name:
                yield from self._row(name, run, Where(str(path), start))
                name, start, run = owner, number, []
            oracle = self._oracles.get(name)
            if oracle is not None and oracle[1].text == passage.text:
                passage.meta["oracle"] = True
                # The chunk is in the pool: it is marked there and must not be stored a second time by `rest`.
                del self._oracles[name]
            run.append(passage)
        yield from self._row(name, run, Where(str(path), start))

    def rest(self) -> Iterator[Row]:
        """Yield oracle chunks that are not in the pool, then questions without any chunk."""
        for name, (where, passage) in self._oracles.items():
            yield from self._row(name, [passage], where)
        for name, row in self._items.items():
            if name not in self._shown:
                yield row

    def finish(self) -> None:
        """Note label maps without effect."""
        self._labels.finish()

    def _row(self, name: str, passages: list[Passage], where: Where) -> Iterator[Row]:
        if not passages:
            return
        self._shown.add(name)
        try:
            item = fields.checked(replace(self._items[name].item, passages=passages))
        except BadInput as error:
            self._bad(BadInput(error.reason, path=where.path, line=where.line, field=error.field))
        else:
            yield Row(item, where)

    def _item(self, row: Mapping[str, Any]) -> Item:
        answer = row.get("answer")
        if isinstance(answer, str) and answer.startswith("["):
            # The repository saves lists as Python prints them.
            try:
                answer = parsed(answer) or answer
            except ValueError as error:
                raise BadInput(str(error), field="answer") from error
        return Item(
            source_id=fields.identifier(row.get("query_id"), "query_id"),
            dataset=self._dataset,
            question=fields.required(row.get("query"), "query"),
            reference_answers=fields.texts(answer, "answer"),
            meta={k: v for k, v in row.items() if k not in _OWN},
        )

    def _passage(self, row: Mapping[str, Any], place: str) -> Passage:
        return Passage(
            text=fields.required(row.get("doc_chunk"), f"{place}doc_chunk"),
            title=fields.word(row.get("doc_name"), f"{place}doc_name"),
            votes=list(self._labels.fixed("support", row.get("support"), f"{place}support", SUPPORT)),
        )
