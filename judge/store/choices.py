"""Multiple-choice questions made of distractors, as rows of a file: URAG's format or ours.

The options are the right answer (the item's first reference answer) and the distractors of the chosen
iteration, in a seeded order. The passages are the item's own and the distractors' made-up documents, in a
seeded order and under ids that do not tell them apart; which are made up stands in their meta.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from judge.errors import BadInput
from judge.store.distractors import Distractor, DistractorItem
from judge.store.study import Store
from judge.types import Json

LETTERS = "ABCDEFGHIJ"
_FIRST = re.compile(r"(?:^|\s)\(?A[.):]\s")


def rows(
    store: Store, chosen: Mapping[str, tuple[DistractorItem, Sequence[Distractor]]], seed: int
) -> list[Json]:
    """Rows that `judge items import jsonl` takes, in the order of the study."""
    several = len({item.partition(":")[0] for item in chosen}) > 1
    found = []
    for item, (question, distractors) in chosen.items():
        draw = random.Random(f"{seed}:{item}")
        right = question.reference_answers[0]
        texts = [(right, None), *((d.text, d) for d in distractors)]
        draw.shuffle(texts)
        options = {letter: " ".join(text.split()) for letter, (text, _) in zip(LETTERS, texts, strict=False)}
        letter_of = {d.answer_id: letter for letter, (_, d) in zip(LETTERS, texts, strict=False) if d}
        passages = _own(store, item) + [
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
        found.append(
            {
                "id": item if several else item.partition(":")[2],
                "question": question.question,
                "options": options,
                "correct": next(letter for letter, (_, d) in zip(LETTERS, texts, strict=False) if d is None),
                "reference_answers": list(question.reference_answers),
                "passages": [{"id": f"r{n}", **passage} for n, passage in enumerate(passages, 1)],
            }
        )
    return found


def urag(choices: Sequence[Mapping[str, Any]], name: str, share: float, seed: int) -> dict[str, Json]:
    """The rows as one URAG document; `share` of the questions, drawn by the seed, are for calibration.

    Raises BadInput for a question that holds an option's mark itself, which no reader could take apart.
    """
    order = sorted(range(len(choices)), key=lambda n: random.Random(f"{seed}:{choices[n]['id']}").random())
    calibration = set(order[: round(share * len(choices))])
    splits: dict[str, list[Json]] = {"calibration": [], "test": []}
    for n, row in enumerate(choices):
        if _FIRST.search(row["question"]):
            raise BadInput(f"the question '{row['id']}' holds 'A.' itself: export it with --format jsonl")
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
    return {"name": name, "version": "1", **splits}


def _own(store: Store, item: str) -> list[dict[str, Json]]:
    query = "SELECT text, title, date, source FROM passages WHERE item_id = ? ORDER BY position"
    return [
        {k: v for k, v in zip(("text", "title", "date", "source"), row, strict=True) if v is not None}
        for row in store.conn.execute(query, [item])
    ]
