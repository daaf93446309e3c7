"""The study's distractors, and the iteration after which each question is challenging.

A distractor is an answer to its item: system = its author, condition `distractor:I.S` (iteration and slot, from 1),
text = the wrong option, meta = its fake document and the kind of similarity. A task on answers (distractor_check) can
therefore label it, by a model or by people.

URAG (arXiv 2603.19281) calls a question challenging when an entailment check detects at least one distractor that the
correct answer entails. All other questions get new distractors. Taken literally, that keeps questions with an option
that is also right. Therefore both readings are implemented:

    entailed       at least one distractor of the iteration is entailed (the words of the paper)
    not-entailed   no distractor of the iteration is entailed, so every option is wrong
"""

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.store import label_rows
from judge.store.study import Store
from judge.text import folded
from judge.types import Json

FIELD = "distractor_check"
PREFIX = "distractor:"
Reading = Literal["entailed", "not-entailed"]
LETTERS = "ABCDEFGHIJ"
_FIRST = re.compile(r"(?:^|\s)\(?A[.):]\s")


@dataclass(frozen=True, slots=True)
class Distractor:
    """One wrong option. `label` is the result of the check, or None before the check.

    `usable` is False if the text repeats an earlier option, or if the fake document contains the right
    answer.
    """

    answer_id: str
    slot: int
    text: str
    document: str
    similarity: str
    label: str | None
    usable: bool = True


@dataclass(frozen=True, slots=True)
class DistractorItem:
    """An item with its iterations in order; `reference_answers` and `options` are not distractors."""

    item_id: str
    question: str
    reference_answers: Sequence[str]
    options: Mapping[str, str]
    iterations: Sequence[Sequence[Distractor]]

    def valid(self, iteration: int, slots: int, reading: Reading) -> bool | None:
        """Return whether the question is challenging after this iteration (from 1); None if this is not known yet.

        An iteration with fewer than `slots` usable distractors is not valid. A repeated option is a failure
        of the model; an unparsed reply only means that there is no answer yet.
        """
        made = self.iterations[iteration - 1] if iteration <= len(self.iterations) else ()
        labels = [d.label for d in made if d.usable]
        repeated = any(not d.usable for d in made)
        if reading == "entailed":
            if repeated:
                return False
            if len(made) == slots and "entailed" in labels:
                return True
            return None if len(made) < slots or None in labels else False
        if repeated or "entailed" in labels:
            return False
        return None if len(made) < slots or None in labels else True

    def chosen(self, slots: int, reading: Reading) -> int | None:
        """Return the first valid iteration, or None."""
        tries = range(1, len(self.iterations) + 1)
        return next((n for n in tries if self.valid(n, slots, reading)), None)

    def tried(self, slots: int, reading: Reading, iterations: int) -> list[tuple[int, bool | None]]:
        """Return (iteration, valid) for each iteration up to the first valid one, or for all `iterations` if
        none is valid.
        """
        last = self.chosen(slots, reading) or iterations
        return [(n, self.valid(n, slots, reading)) for n in range(1, last + 1)]

    @property
    def taken(self) -> dict[str, str]:
        """The options that a new distractor must not repeat: the item's options and every earlier distractor.

        A repeated text is listed twice, so that no two attempts send the same request.
        """
        made = [d.text for iteration in self.iterations for d in iteration]
        return {str(n): text for n, text in enumerate([*self.options.values(), *made], 1)}


def questions(
    store: Store, system: str, check: str | None, items: Iterable[str] | None = None
) -> dict[str, DistractorItem]:
    """Return a mapping from item to its question with the distractors of `system`, labelled by the annotator
    or run `check`.

    If `items` is None, return all items with distractors. They are in study order.
    """
    made: dict[str, dict[int, list[Distractor]]] = {} if items is None else {item: {} for item in items}
    query = f"""
        SELECT a.answer_id, a.item_id, a.condition, a.text, a.meta, {label_rows.single_label("?1", "?2", "a.answer_id")}
        FROM answers AS a WHERE a.system = ?3 AND a.condition GLOB ?4
    """
    for answer, item, condition, text, meta, label in store.conn.execute(
        query, [check, FIELD, system, PREFIX + "*"]
    ):
        if items is not None and item not in made:
            continue
        iteration, slot = (int(n) for n in condition.removeprefix(PREFIX).split("."))
        stored_meta = json.loads(meta)
        document, similarity = (str(stored_meta.get(key, "")) for key in ("fake_document", "similarity"))
        distractor = Distractor(answer, slot, text, document, similarity, label)
        made.setdefault(item, {}).setdefault(iteration, []).append(distractor)
    rows = store.conn.execute(
        "SELECT item_id, question, reference_answers, options FROM items ORDER BY rowid"
    )
    return {
        item: _question(item, question, json.loads(answers or "[]"), json.loads(options or "{}"), made[item])
        for item, question, answers, options in rows
        if item in made
    }


def _question(
    item: str,
    question: str | None,
    answers: list[str],
    options: dict[str, str],
    made: Mapping[int, list[Distractor]],
) -> DistractorItem:
    iterations = []
    for n in range(1, max(made, default=0) + 1):
        right = {folded(t) for t in (*answers, *options.values())}
        iteration = []
        for d in sorted(made.get(n, ()), key=lambda d: d.slot):
            option = folded(d.text)
            usable = bool(option) and option not in right and not gives_away(d, answers)
            # Also an unusable one: the next distractor must not repeat it.
            right.add(option)
            iteration.append(replace(d, usable=usable))
        iterations.append(iteration)
    return DistractorItem(item, question or "", answers, options, iterations)


SIMILARITIES = ("role-similar", "time-similar", "lexical-similar", "topic-similar")
"""The four dimensions of Prompt 2. Distractors from an earlier version use other words."""


def gives_away(made: Distractor, answers: Iterable[str]) -> bool:
    """Return whether a fake document contains the right answer word for word, which Prompt 2 forbids."""
    if made.similarity not in SIMILARITIES:
        return False
    document = f" {_words(made.document)} "
    return any(f" {words} " in document for words in map(_words, answers) if words)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def only_system(store: Store, system: str | None) -> str:
    """Return the system that made the study's distractors. Raises UsageError if there is no such system or
    more than one.
    """
    query = "SELECT DISTINCT system FROM answers WHERE condition GLOB ? ORDER BY 1"
    systems = [str(r[0]) for r in store.conn.execute(query, [PREFIX + "*"])]
    if system is None and len(systems) == 1:
        return systems[0]
    if system is None or system not in systems:
        listed = (
            ", ".join(systems) or f"none; generate some: {command('judge distractors generate -m MODEL')}"
        )
        raise UsageError(
            f"name the system with --system; systems with distractors: {listed}"
            if system is None
            else f"'{system}' has no distractors; systems with distractors: {listed}"
        )
    return system


# Multiple-choice questions made from distractors, as rows of a file in URAG's format or ours.
# The options are the right answer (the item's first reference answer) and the distractors of the chosen
# iteration, in a seeded order. The passages are those of the item and the fake documents, in a seeded order
# and under ids that do not show which is which. Their `meta` says which ones are fake.


def choice_rows(
    store: Store, chosen: Mapping[str, tuple[DistractorItem, Sequence[Distractor]]], seed: int
) -> list[Json]:
    """Return rows that `judge items import jsonl` can read, in study order."""
    several = len({item.partition(":")[0] for item in chosen}) > 1
    rows = []
    for item, (question, distractors) in chosen.items():
        # A generator for each item, so that the order of one does not depend on which others are exported.
        draw = random.Random(f"{seed}:{item}")
        right = question.reference_answers[0]
        texts = [(right, None), *((d.text, d) for d in distractors)]
        draw.shuffle(texts)
        options = {letter: " ".join(text.split()) for letter, (text, _) in zip(LETTERS, texts, strict=False)}
        letter_of = {d.answer_id: letter for letter, (_, d) in zip(LETTERS, texts, strict=False) if d}
        passages = _stored_passages(store, item) + [
            {
                "text": d.document,
                "made_up": True,
                "supports": letter_of[d.answer_id],
                "similarity": d.similarity,
            }
            for d in distractors
            if d.document.strip()
        ]
        draw.shuffle(passages)
        rows.append(
            {
                "id": item if several else item.partition(":")[2],
                "question": question.question,
                "options": options,
                "correct": next(letter for letter, (_, d) in zip(LETTERS, texts, strict=False) if d is None),
                "reference_answers": list(question.reference_answers),
                # New ids, because the stored ones would show which passage is fake.
                "passages": [{"id": f"r{n}", **passage} for n, passage in enumerate(passages, 1)],
            }
        )
    return rows


def urag_document(choices: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Json]:
    """Return the rows as one URAG document; half of the questions, drawn with the seed, are for calibration.

    Raises BadInput if a question contains an option mark such as 'A.', because a reader could not distinguish
    it from the options.
    """
    order = sorted(range(len(choices)), key=lambda n: random.Random(f"{seed}:{choices[n]['id']}").random())
    calibration = set(order[: round(len(choices) / 2)])
    splits: dict[str, list[Json]] = {"calibration": [], "test": []}
    for n, row in enumerate(choices):
        if _FIRST.search(row["question"]):
            raise BadInput(
                f"the question '{row['id']}' contains the option mark 'A.'; export it with --format jsonl"
            )
        listed = "".join(f"\n{letter}. {text}" for letter, text in row["options"].items())
        splits["calibration" if n in calibration else "test"].append(
            {
                "id": row["id"],
                "question": row["question"] + listed,
                "correct_answer": row["correct"],
                "options": list(row["options"]),
                "search_results": row["passages"],
            }
        )
    return {"name": "distractors", "version": "1", **splits}


def _stored_passages(store: Store, item: str) -> list[dict[str, Json]]:
    query = "SELECT text, title, date, source FROM passages WHERE item_id = ? ORDER BY position"
    return [
        {k: v for k, v in zip(("text", "title", "date", "source"), row, strict=True) if v is not None}
        for row in store.conn.execute(query, [item])
    ]
