"""Read the study's distractors, and determine the iteration after which each question is challenging.

A distractor is stored as an answer to its item. The answer's system is the author, its condition is
`distractor:I.S` (iteration and slot, from 1), its text is the wrong option, and its meta contains the fake
document and the kind of similarity. Models and people can therefore label a distractor with a task whose
units are answers (distractor_check).

URAG (arXiv 2603.19281) calls a question challenging if an entailment check detects at least one distractor
that is entailed by the correct answer. All other questions get new distractors. Taken literally, this
definition keeps questions that have a second correct option. Therefore, two interpretations are implemented:

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
from judge.text import normalise
from judge.types import Json

FIELD = "distractor_check"
PREFIX = "distractor:"
Reading = Literal["entailed", "not-entailed"]
LETTERS = "ABCDEFGHIJ"
_FIRST = re.compile(r"(?:^|\s)\(?A[.):]\s")


@dataclass(frozen=True, slots=True)
class Distractor:
    """A wrong option. `label` is the result of the check, or None if the option has not been checked yet.

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
    """An item with the distractors in each iteration, in order.

    `reference_answers` and `options` are taken from the item.
    """

    item_id: str
    question: str
    reference_answers: Sequence[str]
    options: Mapping[str, str]
    iterations: Sequence[Sequence[Distractor]]

    def valid(self, iteration: int, slots: int, reading: Reading) -> bool | None:
        """Return whether the question is challenging after this iteration (from 1), or None if this is not
        known yet.

        An iteration with fewer than `slots` usable distractors is not valid. A repeated option counts as a
        failure of the model. An unparsed reply does not count as a failure, because it may still be replaced
        by an answer.
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

    def find_valid(self, slots: int, reading: Reading) -> int | None:
        """Return the number of the first valid iteration, or None."""
        tries = range(1, len(self.iterations) + 1)
        return next((n for n in tries if self.valid(n, slots, reading)), None)

    def list_tried(self, slots: int, reading: Reading, iterations: int) -> list[tuple[int, bool | None]]:
        """Return (iteration, whether the iteration is valid) for each iteration up to the first valid one.

        If no iteration is valid, all `iterations` are returned.
        """
        last = self.find_valid(slots, reading) or iterations
        return [(n, self.valid(n, slots, reading)) for n in range(1, last + 1)]

    @property
    def taken(self) -> dict[str, str]:
        """Return the texts that a new distractor must not repeat: the options and all earlier distractors.

        A text that occurs twice is listed twice. The list therefore grows with every attempt, so no two
        attempts send identical requests.
        """
        made = [d.text for iteration in self.iterations for d in iteration]
        return {str(n): text for n, text in enumerate([*self.options.values(), *made], 1)}


def questions(
    store: Store, system: str, check: str | None, items: Iterable[str] | None = None
) -> dict[str, DistractorItem]:
    """Return {item: question with the distractors from `system`}.

    Distractors have the labels from the annotator or run `check`. If `items` is None, all items with
    distractors are returned, in study order.
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
        right = {normalise(t) for t in (*answers, *options.values())}
        iteration = []
        for d in sorted(made.get(n, ()), key=lambda d: d.slot):
            option = normalise(d.text)
            usable = bool(option) and option not in right and not gives_away(d, answers)
            # Unusable distractors are included, because the next distractor must not repeat them either.
            right.add(option)
            iteration.append(replace(d, usable=usable))
        iterations.append(iteration)
    return DistractorItem(item, question or "", answers, options, iterations)


SIMILARITIES = ("role-similar", "time-similar", "lexical-similar", "topic-similar")
"""The four kinds of similarity in Prompt 2. Distractors from an earlier version have other values."""


def gives_away(made: Distractor, answers: Iterable[str]) -> bool:
    """Return whether a fake document contains the correct answer verbatim, which URAG's Prompt 2 forbids."""
    if made.similarity not in SIMILARITIES:
        return False
    document = f" {_words(made.document)} "
    return any(f" {words} " in document for words in map(_words, answers) if words)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def get_only_system(store: Store, system: str | None) -> str:
    """Return the system that made the study's distractors.

    Raises UsageError if there is no such system, or more than one.
    """
    query = "SELECT DISTINCT system FROM answers WHERE condition GLOB ? ORDER BY 1"
    systems = [str(r[0]) for r in store.conn.execute(query, [PREFIX + "*"])]
    if system is None and len(systems) == 1:
        return systems[0]
    if system is None or system not in systems:
        if not systems:
            generate = command("judge distractors generate -m MODEL")
            raise UsageError(f"the study has no distractors; to generate them: {generate}")
        problem = "several systems have distractors" if system is None else f"'{system}' has no distractors"
        raise UsageError(f"{problem}; choose one with --system: {', '.join(systems)}")
    return system


# This section exports multiple-choice questions with distractors, in URAG's format or in our own. The options
# are the correct answer (the item's first reference answer) and the distractors of the chosen iteration, in a
# seeded random order. The passages are the item's passages and the fake documents, also in a seeded random
# order. Their ids do not reveal which ones are fake, but their `meta` does.


def choice_rows(
    store: Store, chosen: Mapping[str, tuple[DistractorItem, Sequence[Distractor]]], seed: int
) -> list[Json]:
    """Return the questions as rows for `judge items import jsonl`, in study order."""
    several = len({item.partition(":")[0] for item in chosen}) > 1
    rows = []
    for item, (question, distractors) in chosen.items():
        # Each item has its own random generator, so that its order does not depend on which other items are
        # exported.
        draw = random.Random(f"{seed}:{item}")
        right = question.reference_answers[0]
        texts = [(right, None), *((d.text, d) for d in distractors)]
        draw.shuffle(texts)
        options = {letter: " ".join(text.split()) for letter, (text, _) in zip(LETTERS, texts, strict=False)}
        letter_of = {d.answer_id: letter for letter, (_, d) in zip(LETTERS, texts, strict=False) if d}
        passages = _read_passages(store, item) + [
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
                # Passages get new ids, because the stored ids would reveal which passage is fake.
                "passages": [{"id": f"r{n}", **passage} for n, passage in enumerate(passages, 1)],
            }
        )
    return rows


def urag_document(choices: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Json]:
    """Return the rows as a URAG document. A seeded random half of the questions is for calibration.

    Raises BadInput if a question contains an option mark such as 'A.', because a URAG reader cannot
    distinguish it from the options.
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


def _read_passages(store: Store, item: str) -> list[dict[str, Json]]:
    query = "SELECT text, title, date, source FROM passages WHERE item_id = ? ORDER BY position"
    return [
        {k: v for k, v in zip(("text", "title", "date", "source"), row, strict=True) if v is not None}
        for row in store.conn.execute(query, [item])
    ]
