"""URAG: multiple-choice questions with search results, split into a calibration set and a test set.

The data files in the repository of URAG (arXiv 2603.19281) have this format.

A file is an object {name, version, calibration: [...], test: [...]}. The two lists contain rows {id,
question, correct_answer, options: [letters], search_results: [...]}. The options' texts ("A. ...") are at the
end of the question.

Each row becomes one item with the id `SPLIT-id`. The data set is named after the file's `name` or, if there
is none, urag. In the item, `question` is the text before the first option, `options` is {letter: text}, and
`correct` is a letter. Its `meta` contains split, id, the question as in the file, and the row's other keys.

A search result is either a string or an object with its text under text, content, snippet or body. Its id is
the object's id or, if there is none, r1, r2, ...

Row numbers in error messages start from 1 in each of the two lists.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from judge.errors import BadInput
from judge.importers import fields
from judge.importers.base import Bad, Options, Row
from judge.importers.records import Records, build_each, json_elements, json_events
from judge.types import Item, Passage

NAME = "urag"
HELP = "URAG: multiple-choice questions with search results, calibration and test"
SIGNS = (("calibration",), ("question", "correct_answer", "search_results"))

SPLITS = ("calibration", "test")
TEXT_KEYS = ("text", "content", "snippet", "body")
SOURCE_KEYS = ("source", "url", "link")
_OWN = ("correct_answer", "options", "search_results")
# The question's text ends with the line "Answer:", which is not part of the last option.
_TAIL = re.compile(r"\n\s*answer\s*:?\s*$", re.IGNORECASE)


def read_rows(paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
    """Yield one row per question, starting with the calibration split.

    Raises BadInput if a file has neither split.
    """
    fields.refuse_maps(NAME, options)
    for path in paths:
        labels = fields.Labels(options)
        dataset = options.dataset or _name(path)
        has_questions = False
        for split in SPLITS:
            records = Records(path, f"{split} element", json_elements(path, f"{split}.item"))
            build = partial(_items, dataset=dataset, split=split)
            for row in build_each(records, build, bad):
                has_questions = True
                yield row
        if not has_questions:
            bad(BadInput("there are no questions under 'calibration' or 'test'", path=str(path)))
        labels.finish()


def _name(path: Path) -> str:
    """Return the value of the file's key `name`, or "urag" if the file has no such key.

    The key usually comes before the questions, so only a small part of the file is read.
    """
    for prefix, event, value in json_events(path):
        if prefix == "name" and event == "string" and value.strip():
            return str(value).replace(":", "-")
    return NAME


def _items(raw: Any, dataset: str, split: str) -> list[Item]:
    row = fields.record(raw)
    question = fields.require_text(row.get("question"), "question")
    name = fields.identifier(row.get("id"), "id")
    stem, options = _options(question, row.get("options"))
    rest = {k: v for k, v in row.items() if k not in _OWN}
    correct = _correct(row.get("correct_answer"), options)
    results = fields.listing(row.get("search_results"), "search_results")
    # The ids of both splits may start from the same number, so the split is part of the item's id.
    item = Item(
        source_id=f"{split}-{name}",
        dataset=dataset,
        question=stem,
        options=fields.choices(options, correct),
        correct=correct,
        meta={**rest, "split": split},
        passages=[_passage(r, n) for n, r in enumerate(results)],
    )
    return [fields.check_item(item)]


def _options(question: str, given: Any) -> tuple[str, dict[str, str]]:
    """Split a text into the question and the options at its end. Return (question, {letter: text of the option})."""
    if isinstance(given, dict):
        return question, {k: fields.require_text(v, f"options.{k}") for k, v in given.items()}
    letters = fields.texts(given, "options") or []
    if not letters:
        raise BadInput("missing", field="options")
    # Marks at the start of a line are tried first, because within a line, a sentence may end with "A." by
    # chance.
    for gap in (r"(?:^|\n)\s*", r"(?:^|\s)"):  # one a line, or all in one line
        spans = _spans(question, letters, gap)
        if spans is not None:
            break
    else:
        raise BadInput(
            f"the question must contain the options {', '.join(letters)} in the form 'A. ...'",
            field="question",
        )
    ends = [start for start, _ in spans[1:]] + [len(_TAIL.sub("", question))]
    texts = [question[begin:end].strip() for (_, begin), end in zip(spans, ends, strict=True)]
    stem = question[: spans[0][0]].strip()
    return fields.require_text(stem, "question"), dict(zip(letters, texts, strict=True))


def _spans(question: str, letters: Sequence[str], gap: str) -> list[tuple[int, int]] | None:
    """Return the start and end of each option's letter, in order, or None if a letter is missing."""
    spans: list[tuple[int, int]] = []
    for letter in letters:
        mark = re.compile(rf"{gap}\(?{re.escape(letter)}[.):]\s")
        # The white space at the end of one mark may also be the gap before the next mark.
        match = mark.search(question, spans[-1][1] - 1 if spans else 0)
        if match is None:
            return None
        spans.append(match.span())
    return spans


def _correct(raw: Any, options: Mapping[str, str]) -> str | None:
    """Return the letter of the correct answer.

    The file may give the answer as a letter, as "B. text", or as the option's text.
    """
    got = fields.word(raw, "correct_answer")
    if got is None or got in options:
        return got
    for letter, text in options.items():
        if got.strip() == text or re.fullmatch(rf"{re.escape(letter)}[.):]\s*{re.escape(text)}", got.strip()):
            return letter
    raise BadInput(f"'{got}' is not among the options {list(options)}", field="correct_answer")


def _passage(raw: Any, number: int) -> Passage:
    place = f"search_results.{number}"
    if isinstance(raw, str):
        return Passage(fields.require_text(raw, place), source_id=f"r{number + 1}")
    if not isinstance(raw, dict):
        raise BadInput(f"must be text or an object, not {fields.kind(raw)}", field=place)
    body = next((k for k in TEXT_KEYS if raw.get(k)), None)
    if body is None:
        raise BadInput(f"the search result has no text under {', '.join(TEXT_KEYS)}", field=place)
    source = next((k for k in SOURCE_KEYS if raw.get(k)), None)
    used = ("id", "title", "date", body, source)
    return Passage(
        text=fields.require_text(raw[body], f"{place}.{body}"),
        source_id=fields.word(raw.get("id"), f"{place}.id") or f"r{number + 1}",
        title=fields.word(raw.get("title"), f"{place}.title"),
        date=fields.word(raw.get("date"), f"{place}.date"),
        source=fields.word(raw[source], f"{place}.{source}") if source else None,
        meta={k: v for k, v in raw.items() if k not in used},
    )
