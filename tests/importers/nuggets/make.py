"""Write the files of this folder with the package `nuggetizer`.

    python make.py

in a throwaway environment (`uv venv` and `uv pip install nuggetizer`); the package is no dependency of adjudge. No model is
asked: `reply` gives what one would say, and the package's own code makes nuggets, assignments and metrics of it. The records
have the keys of the package's scripts `create_nuggets.py` and `assign_nuggets.py`, which its wheel leaves out.
README.md has the version.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nuggetizer.core.llm import LLMHandler
from nuggetizer.core.metrics import calculate_global_metrics, calculate_nugget_scores
from nuggetizer.core.types import Document, Query, Request
from nuggetizer.models.nuggetizer import Nuggetizer

HERE = Path(__file__).parent
TOPICS = {
    "mars": (
        "How many moons has Mars?",
        ["Mars has two moons", "The moons are Phobos and Deimos", "Hall found them"],
    ),
    "emma": ("What is Emma?", ["Emma is a novel", "It appeared in 1815"]),
}
IMPORTANCE = {"mars": ["vital", "vital", "okay"], "emma": ["okay", "okay"]}
ANSWERS = {
    "first": {"mars": ["Mars has two moons.", "One is Phobos."], "emma": ["A novel of 1815."]},
    "second": {"mars": ["Mars has two moons, Phobos and Deimos."]},
}
ASSIGNED = {
    ("first", "mars"): ["support", "partial_support", "not_support"],
    ("first", "emma"): ["support", "support"],
    ("second", "mars"): ["support", "support", "not_support"],
}
replies: list[Any] = []


def reply(self: LLMHandler, messages: Any, temperature: float = 0) -> tuple[str, int]:
    """What the model says next: a Python list, as the package asks for."""
    return repr(replies.pop(0)), 0


def write(name: str, records: Iterable[Any]) -> None:
    """JSON lines."""
    (HERE / name).write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def main() -> None:
    """All files."""
    LLMHandler.run = reply
    nuggetizer = Nuggetizer(model="gpt-4o", api_keys="none")
    made = []
    for qid, (query, nuggets) in TOPICS.items():
        replies.extend([nuggets, IMPORTANCE[qid]])
        request = Request(query=Query(qid=qid, text=query), documents=[Document(docid="d", segment="...")])
        found = nuggetizer.create(request)
        listed = [{"text": n.text, "importance": n.importance} for n in found]
        made.append({"query": query, "qid": qid, "nuggets": listed, "found": found})
    write("nuggets.jsonl", [{k: v for k, v in record.items() if k != "found"} for record in made])
    metrics = {}
    for run, answers in ANSWERS.items():
        records = []
        for record in made:
            text = " ".join(answers.get(record["qid"], []))
            if text:
                replies.append(ASSIGNED[run, record["qid"]])
            assigned = nuggetizer.assign(record["query"], text, nuggets=record["found"])
            records.append(
                {
                    "query": record["query"],
                    "qid": record["qid"],
                    "answer_text": text,
                    "response_length": len(text.split()),
                    "run_id": run,
                    "nuggets": [
                        {"text": n.text, "importance": n.importance, "assignment": n.assignment}
                        for n in assigned
                    ],
                }
            )
        write(f"{run}.jsonl", records)
        metrics[run] = [vars(calculate_nugget_scores(r["qid"], r["nuggets"])) for r in records]
        metrics[run].append(calculate_global_metrics(records))
    (HERE / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
