"""SciFact: scientific claims and the abstracts they cite, labelled by people.

Wadden et al., "Fact or Fiction: Verifying Scientific Claims", EMNLP 2020 (arXiv 2004.14974). An abstract
supports a claim, refutes it, or gives no information about it.

Two files are imported together. The claims are in `claims_*.jsonl` ({id, claim, evidence: {doc_id: [{sentences,
label}]}, cited_doc_ids}). The corpus is in `corpus.jsonl`, or in the CSV file from Hugging Face ({doc_id, title,
abstract: sentences, structured}).

Each claim becomes one item, with the question "Is it true that ...?". Its passages are the cited documents.
Gold fields of a passage:
    stance     support (SUPPORT in the files) | refute (CONTRADICT or REFUTE) | neutral (cited
               without evidence)
    support    supported (has evidence) | not_supported (cited without evidence, and the claim has a
               verdict from other documents; without a verdict, this field has no label)
    relevance  ANSWER-THE-QUESTION (has evidence) | RELATED-INFORMATION (cited without evidence).
               This mapping to GaRAGe's classes is adjudge's own, and provides real passages for
               these classes; the papers do not equate them

The item has the gold field `claim_verdict` (true | false) if all evidence for the claim agrees. Its reference
answer is then Yes | No. A claim whose documents disagree has no verdict. A document with both labels for the
same claim is a bad row. Claims without the key `evidence` (the unlabelled test set) get no gold labels.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.files import open_input
from judge.importers import fields
from judge.importers.base import Bad, Options, Row, ignore
from judge.importers.records import build_all, build_each, json_records, table_or_json
from judge.types import Item, Passage, Vote

NAME = "scifact"
HELP = "SciFact: claims (JSONL) and corpus (JSONL or CSV), imported together"
TOGETHER = True
SIGNS = (("claim", "cited_doc_ids"), ("doc_id", "abstract"))

# In the CSV file, an abstract is a printed numpy array: quoted sentences on separate lines without commas.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


@dataclass(slots=True)
class Abstract:
    """An abstract in the corpus."""

    title: str | None
    sentences: list[str]
    structured: bool


def is_corpus(path: Path) -> bool:
    """Return whether the file's first line contains the word "abstract". The line is a header or an object."""
    with open_input(path) as handle:
        return b"abstract" in handle.readline(2**20)


def corpus(path: Path, bad: Bad, wanted: set[str]) -> Iterator[tuple[str, Abstract]]:
    """Yield (document id, abstract) for the documents in `wanted`."""

    def documents(raw: Any) -> Iterator[tuple[str, Abstract]]:
        row = fields.record(raw)
        name = fields.identifier(row.get("doc_id"), "doc_id")
        if name in wanted:
            yield name, _document(row)

    records, _ = table_or_json(path, bad, ("doc_id", "title", "abstract"))
    yield from (document for document, _ in build_all(records, documents, bad))


def _document(row: Any) -> Abstract:
    abstract = row.get("abstract")
    sentences = sentences_of(abstract) if isinstance(abstract, str) else fields.listing(abstract, "abstract")
    if not sentences:
        raise BadInput("no sentences", field="abstract")
    return Abstract(
        title=fields.word(row.get("title"), "title"),
        sentences=[fields.require_text(s, f"abstract.{n}").strip() for n, s in enumerate(sentences)],
        # The value is text in CSV files, and a boolean in JSON.
        structured=str(row.get("structured")) == "True",
    )


def sentences_of(cell: str) -> Sequence[str]:
    """Parse the sentences of an abstract: a list or a numpy array of strings, as printed by Python."""
    if _QUOTED.sub("", cell).replace(",", "").split() not in (["[", "]"], ["[]"]):
        raise BadInput("must be a list of quoted sentences", field="abstract")
    try:
        return [ast.literal_eval(part) for part in _QUOTED.findall(cell)]
    except (ValueError, SyntaxError) as error:
        raise BadInput(f"a sentence is not a valid Python string: {error}", field="abstract") from error


STANCE = {"SUPPORT": "support", "REFUTE": "refute", "CONTRADICT": "refute"}
"""Maps the evidence labels in the files to ours. A cited document without evidence is `neutral`."""


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield one row per claim. Raises UsageError if the claims file or the corpus is missing."""
    fields.refuse_maps(NAME, options)
    corpora = [p for p in paths if is_corpus(p)]
    others = [p for p in paths if p not in corpora]
    if not corpora or not others:
        raise UsageError(
            f"scifact needs both files: {command('judge items import scifact claims.jsonl corpus.csv')}"
        )
    # A first pass over the claims collects their citations, so that only cited abstracts are kept in memory.
    cited = {doc for p in others for _, claim in json_records(p, ignore).rows for doc in _documents(claim)}
    documents = {name: doc for p in corpora for name, doc in corpus(p, bad, cited)}
    builder = _Builder(options, documents)
    for path in others:
        yield from build_each(json_records(path, bad), builder.items, bad)
    builder.finish()


def _documents(claim: Any) -> list[str]:
    """Return the distinct documents of a claim, with the cited documents first.

    Return [] if the claim is malformed.
    """
    if not isinstance(claim, dict):
        return []
    cited, evidence = claim.get("cited_doc_ids"), claim.get("evidence")
    names = [*(cited if isinstance(cited, list) else []), *(evidence if isinstance(evidence, dict) else {})]
    return list(dict.fromkeys(str(n) for n in names))


class _Builder:
    """Turns claims into items, with the cited documents as passages."""

    def __init__(self, options: Options, documents: Mapping[str, Abstract]) -> None:
        self._dataset = options.dataset or NAME
        self._note = options.note
        self._labels = fields.Labels(options)
        self._documents = documents
        self._seen: set[str] = set()
        self._undecided: list[str] = []

    def items(self, raw: Any) -> list[Item]:
        """Return the item for one claim."""
        row = fields.record(raw)
        claim = fields.require_text(row.get("claim"), "claim")
        fields.listing(row.get("cited_doc_ids"), "cited_doc_ids")
        evidence = fields.mapping(row.get("evidence"), "evidence")
        item = Item(
            source_id=fields.identifier(row.get("id"), "id"),
            dataset=self._dataset,
            question=f"Is it true that {claim.rstrip().removesuffix('.')}?",
            claim=claim,
            meta={k: v for k, v in row.items() if k not in _OWN},
        )
        if item.source_id in self._seen:
            raise BadInput(f"claim {item.source_id} occurs twice", field="id")
        self._seen.add(item.source_id)
        names = _documents(row)
        stances = {n: self._stance(evidence.get(n), n) for n in names}
        verdict = self._verdict(item, set(stances.values()) - {None})
        for name in names:
            passage = self._passage(name, evidence.get(name))
            if "evidence" in row:
                self._gold(passage, stances[name], verdict)
            item.passages.append(passage)
        return [fields.check_item(item)]

    def finish(self) -> None:
        """Issue a note about the claims without a verdict."""
        if self._undecided:
            first = ", ".join(self._undecided[:5])
            self._note(
                f"{len(self._undecided)} claims have no verdict, because their documents disagree ({first})"
            )
        self._labels.finish()

    def _stance(self, sets: Any, name: str) -> str | None:
        """Return support or refute for a document, or None if the document provides no evidence.

        Raises BadInput if the document's evidence sets disagree.
        """
        place = f"evidence.{name}"
        stances = {
            self._labels.read_one_of("stance", fields.record(s).get("label"), f"{place}.label", STANCE)
            for s in fields.listing(sets, place)
        }
        if None in stances:
            raise BadInput("missing", field=f"{place}.label")
        if len(stances) > 1:
            raise BadInput("the document's evidence both supports and refutes the claim", field=place)
        return next(iter(stances), None)

    def _verdict(self, item: Item, stances: set[str | None]) -> str | None:
        if len(stances) > 1:
            self._undecided.append(item.source_id)
        if len(stances) != 1:
            return None
        verdict = "true" if stances == {"support"} else "false"
        item.reference_answers = ["Yes" if verdict == "true" else "No"]
        item.votes += self._labels.gold("claim_verdict", verdict, "evidence")
        return verdict

    def _passage(self, name: str, sets: Any) -> Passage:
        document = self._documents.get(name)
        if document is None:
            raise BadInput(f"document {name} is not in the corpus", field="cited_doc_ids")
        meta: dict[str, Any] = {"structured": document.structured, "sentences": len(document.sentences)}
        if sets:
            meta["evidence_sentences"] = [s.get("sentences") for s in sets]
        return Passage(" ".join(document.sentences), source_id=name, title=document.title, meta=meta)

    def _gold(self, passage: Passage, stance: str | None, verdict: str | None) -> None:
        gold = {"stance": stance or "neutral"}
        gold["relevance"] = "ANSWER-THE-QUESTION" if stance else "RELATED-INFORMATION"
        if verdict is not None:
            gold["support"] = "supported" if stance else "not_supported"
        for field, value in gold.items():
            passage.votes.append(Vote(field, value))


_OWN = ("id", "claim", "evidence", "cited_doc_ids")
