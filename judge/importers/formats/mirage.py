"""MIRAGE: questions with short answers. Each question has five Wikipedia chunks, some of which support the
answer.

Park et al., "MIRAGE: A Metric-Intensive Benchmark for Retrieval-Augmented Generation Evaluation", Findings of
NAACL 2025 (arXiv 2504.17137), appendix B. Files are interpreted as in its repository.

The files in an import are recognised by their content:
    dataset.json   [{source, query_id, query, doc_name, answer: [alias], doc_url, num_doc_labels}]
    doc_pool.json  [{mapped_id, doc_name, doc_chunk, support: 1|0}], optional; read as a stream
    oracle.json    {query_id: a chunk as above}, optional; the chunk that is shown in the oracle setting

Each of the 7,560 questions is one item, with its aliases as reference answers. A passage's title is the
document's name, and its id is the hash of its text. The gold field of a passage is `support`: supported |
not_supported. The oracle's chunk has `oracle` = true in its meta. If this chunk is not in the pool, it is
added as a passage. If the chunks of a question are not adjacent in the pool, several rows are yielded for the
same item. The item's meta has source, doc_name, doc_url and num_doc_labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.importers import fields
from judge.importers.base import Bad, Options, Row
from judge.importers.cells import parse_cell
from judge.importers.records import Records, build_all, build_each, is_array, json_elements, json_pairs
from judge.types import Item, Passage, Where

NAME = "mirage"
HELP = "MIRAGE: dataset.json, with optional doc_pool.json and oracle.json"
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
    """Yield one row for each group of adjacent chunks, and one for each question without chunks.

    Raises UsageError if dataset.json is missing.
    """
    fields.refuse_maps(NAME, options)
    kinds = {path: _kind_of(path) for path in paths}
    if "dataset" not in kinds.values():
        raise UsageError(
            "the mirage format needs the file with the questions (dataset.json), for example: "
            f"{command('judge items import mirage dataset.json doc_pool.json')}"
        )
    builder = _Builder(options, bad)
    # Questions are read first, because the other files refer to them.
    for kind, learn in (("dataset", builder.questions), ("oracle", builder.oracles)):
        for path in paths:
            if kinds[path] == kind:
                learn(path)
    for path in paths:
        if kinds[path] == "pool":
            yield from builder.pool(path)
    yield from builder.read_unused()
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
    """Builds the rows. The questions and the oracle's chunks are kept in memory, and the pool is streamed."""

    def __init__(self, options: Options, bad: Bad) -> None:
        self._dataset = options.dataset or NAME
        self._bad = bad
        self._labels = fields.Labels(options)
        self._items: dict[str, Row] = {}
        self._oracles: dict[str, tuple[Where, Passage]] = {}
        self._shown: set[str] = set()

    def questions(self, path: Path) -> None:
        """Read dataset.json."""
        for row in build_each(Records(path, "element", json_elements(path)), self._question, self._bad):
            self._items[row.item.source_id] = row
        if not self._items:
            self._bad(BadInput("no questions", path=str(path)))

    def oracles(self, path: Path) -> None:
        """Read oracle.json."""
        pairs = Records(path, "element", json_pairs(path))
        for (name, passage), where in build_all(pairs, self._oracle, self._bad):
            self._oracles[name] = where, passage

    def pool(self, path: Path) -> Iterator[Row]:
        """Yield one row for each group of adjacent chunks of the same question."""
        run: list[Passage] = []
        name, start = "", Where(str(path), 0)
        chunks = Records(path, "element", json_elements(path))
        for (owner, passage), where in build_all(chunks, self._chunk, self._bad):
            # Only adjacent chunks are put into one row, because collecting all chunks of a question would
            # need the whole pool in memory.
            if owner != name:
                yield from self._row(name, run, start)
                name, start, run = owner, where, []
            oracle = self._oracles.get(name)
            if oracle is not None and oracle[1].text == passage.text:
                passage.meta["oracle"] = True
                # The chunk is in the pool, where it is marked. It must not be yielded again by `read_unused`.
                del self._oracles[name]
            run.append(passage)
        yield from self._row(name, run, start)

    def read_unused(self) -> Iterator[Row]:
        """Yield a row for each oracle chunk that is not in the pool, then one for each question without
        chunks.
        """
        for name, (where, passage) in self._oracles.items():
            yield from self._row(name, [passage], where)
        for name, row in self._items.items():
            # A question without chunks can still be answered without retrieval (the base setting).
            if name not in self._shown:
                yield row

    def finish(self) -> None:
        """Issue a note about each label map that had no effect."""
        self._labels.finish()

    def _row(self, name: str, passages: list[Passage], where: Where) -> Iterator[Row]:
        if not passages:
            return
        self._shown.add(name)
        try:
            item = fields.check_item(replace(self._items[name].item, passages=passages))
        except BadInput as error:
            self._bad(BadInput(error.reason, path=where.path, line=where.line, field=error.field))
        else:
            yield Row(item, where)

    def _question(self, raw: Any) -> list[Item]:
        row = fields.record(raw)
        answer = row.get("answer")
        if isinstance(answer, str) and answer.startswith("["):
            # The repository saves lists as Python literals.
            try:
                answer = parse_cell(answer) or answer
            except ValueError as error:
                raise BadInput(str(error), field="answer") from error
        item = Item(
            source_id=fields.identifier(row.get("query_id"), "query_id"),
            dataset=self._dataset,
            question=fields.require_text(row.get("query"), "query"),
            reference_answers=fields.texts(answer, "answer"),
            meta={k: v for k, v in row.items() if k not in _OWN},
        )
        if item.source_id in self._items:
            raise BadInput(f"question {item.source_id} occurs twice", field="query_id")
        return [fields.check_item(item)]

    def _oracle(self, pair: tuple[str, Any]) -> list[tuple[str, Passage]]:
        name, raw = pair
        passage = self._passage(fields.mapping(raw, name), f"{name}.")
        if name not in self._items:
            raise BadInput(f"there is no question {name}", field=name)
        passage.meta["oracle"] = True
        return [(name, passage)]

    def _chunk(self, raw: Any) -> list[tuple[str, Passage]]:
        row = fields.record(raw)
        owner = fields.identifier(row.get("mapped_id"), "mapped_id")
        if owner not in self._items:
            raise BadInput(f"there is no question {owner}", field="mapped_id")
        return [(owner, self._passage(row, ""))]

    def _passage(self, row: Mapping[str, Any], place: str) -> Passage:
        return Passage(
            text=fields.require_text(row.get("doc_chunk"), f"{place}doc_chunk"),
            title=fields.word(row.get("doc_name"), f"{place}doc_name"),
            votes=list(self._labels.read_fixed("support", row.get("support"), f"{place}support", SUPPORT)),
        )
