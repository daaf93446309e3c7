"""SciFact: scientific claims and the abstracts they cite, labelled by people.

Wadden et al., "Fact or Fiction: Verifying Scientific Claims", EMNLP 2020 (arXiv 2004.14974): an
abstract supports a claim, refutes it, or gives no information.

Files, together in one import: claims as `claims_*.jsonl` ({id, claim, evidence: {doc_id:
[{sentences, label}]}, cited_doc_ids}) or as the CSV of the Hugging Face copy (one row an evidence
set), and the corpus as `corpus.jsonl` or CSV ({doc_id, title, abstract: sentences, structured}).

One item a claim, with the question "Is it true that ...?"; its passages are the documents it cites.
Gold of a passage:
    stance     support | refute (SUPPORT, and CONTRADICT or REFUTE, in the files) | neutral: cited
               without evidence
    support    supported: has evidence; not_supported: cited without evidence, by a claim whose
               verdict other documents give (without a verdict there is no answer to support)
    relevance  ANSWER-THE-QUESTION: has evidence; RELATED-INFORMATION: cited without evidence.
               Ours, to have real passages for GaRAGe's classes: the papers do not equate them
Gold of the item: `claim_verdict` true | false where all its evidence agrees, and then the reference
answer Yes | No. A claim whose documents disagree has no verdict; a document with both labels for
one claim is a bad row. Claims without the key
`evidence` (the unlabelled test set) get no gold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.errors import BadInput, UsageError
from judge.importers import fields
from judge.importers.base import Bad, Options, Row
from judge.importers.formats._scifact_files import Abstract, claims, corpus, is_corpus
from judge.importers.records import each
from judge.types import Item, Passage, Vote

NAME = "scifact"
HELP = "SciFact: claims (JSONL or CSV) and corpus (CSV or JSONL) together"
TOGETHER = True
SIGNS = (("claim", "cited_doc_ids"), ("doc_id", "abstract"))

STANCE = {"SUPPORT": "support", "REFUTE": "refute", "CONTRADICT": "refute"}
"""The files' words for evidence; a cited document without evidence is `neutral`."""


def read(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """One row a claim. Raises UsageError when there is no claims file or no corpus."""
    fields.no_maps(NAME, options)
    corpora = [p for p in paths if is_corpus(p)]
    others = [p for p in paths if p not in corpora]
    if not corpora or not others:
        raise UsageError("scifact needs both files: judge items import scifact claims.jsonl corpus.csv")
    # Only cited abstracts are kept in memory, so the claims are read once just for their citations.
    cited = {doc for p in others for _, claim in claims(p, _pass_over).rows for doc in _documents(claim)}
    documents = {name: doc for p in corpora for name, doc in corpus(p, bad, cited)}
    builder = _Builder(options, documents)
    for path in others:
        yield from each(claims(path, bad), builder.items, bad)
    builder.finish()


def _pass_over(error: BadInput) -> None:
    """The second reading reports."""


def _documents(claim: Any) -> list[str]:
    """Every document that a claim speaks of, cited ones first, each once; [] of a malformed claim."""
    if not isinstance(claim, dict):
        return []
    cited, evidence = claim.get("cited_doc_ids"), claim.get("evidence")
    names = [*(cited if isinstance(cited, list) else []), *(evidence if isinstance(evidence, dict) else {})]
    return list(dict.fromkeys(str(n) for n in names))


class _Builder:
    """Turns claims into items, with the cited documents at hand."""

    def __init__(self, options: Options, documents: Mapping[str, Abstract]) -> None:
        self._dataset = options.dataset or NAME
        self._note = options.note
        self._labels = fields.Labels(options)
        self._documents = documents
        self._seen: set[str] = set()
        self._undecided: list[str] = []

    def items(self, raw: Any) -> list[Item]:
        """The item of one claim."""
        row = fields.record(raw)
        claim = fields.required(row.get("claim"), "claim")
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
            raise BadInput(f"claim {item.source_id} stands twice", field="id")
        self._seen.add(item.source_id)
        names = _documents(row)
        stances = {n: self._stance(evidence.get(n), n) for n in names}
        verdict = self._verdict(item, set(stances.values()) - {None})
        for name in names:
            passage = self._passage(name, evidence.get(name))
            if "evidence" in row:
                self._gold(passage, stances[name], verdict)
            item.passages.append(passage)
        return [fields.checked(item)]

    def finish(self) -> None:
        """Say what stayed without a verdict."""
        if self._undecided:
            first = ", ".join(self._undecided[:5])
            self._note(f"{len(self._undecided)} claims have no verdict: their documents disagree ({first})")
        self._labels.finish()

    def _stance(self, sets: Any, name: str) -> str | None:
        """support or refute of one document, None without evidence. Disagreeing sets are bad."""
        place = f"evidence.{name}"
        found = {
            self._labels.one_of("stance", fields.record(s).get("label"), f"{place}.label", STANCE)
            for s in fields.listing(sets, place)
        }
        if None in found:
            raise BadInput("missing", field=f"{place}.label")
        if len(found) > 1:
            raise BadInput("evidence with both labels for one claim: undecided", field=place)
        return next(iter(found), None)

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
