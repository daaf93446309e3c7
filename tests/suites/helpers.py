"""Labels into a study as a judge's run leaves them, and measures out of `judge score`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.prompts import load_task
from judge.store import Store
from judge.store.judgements import Entry, add_judgements
from judge.store.runs import close_run, start_run
from judge.types import Answered, Judgement, Status, Usage
from tests.cli.helpers import Done, checked
from tests.formats import garage_row, write_jsonl

Judge = Callable[..., Done]
STATUSES = {str(status) for status in Status}


def give(
    task_name: str,
    labels: Mapping[str, str],
    *,
    model: str = "m",
    options: Mapping[str, Any] | None = None,
    field: str | None = None,
    db: str = "study.db",
) -> str:
    """A finished run with these labels by unit; `unparsed`, `refused` ... stand for judgements that ended so."""
    task = load_task(task_name)
    field = field or task.spec.questions[0].field
    with Store.open(db, create=False) as store:
        run_id, _ = start_run(store, task, model, {"mode": "json", **(options or {})}, {})
        entries = []
        for unit, value in labels.items():
            status = Status(value) if value in STATUSES else Status.OK
            answered = (Answered(field, value),) if status is Status.OK else ()
            entries.append(
                Entry(Judgement(run_id, unit, 0, 0, status, value, None, answered, Usage(), None, None), None)
            )
        with store.transaction() as conn:
            add_judgements(conn, entries, set())
        close_run(store, run_id, finished=True)
    return run_id


@dataclass(frozen=True)
class Scored:
    """A score as JSON, with its measures by name (and by stratum)."""

    document: Mapping[str, Any]

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        [found] = [m for m in self.document["measures"] if m["measure"] == name and m["stratum"] is None]
        return found

    def value(self, name: str, stratum: str | None = None) -> float | None:
        [found] = [m for m in self.document["measures"] if (m["measure"], m["stratum"]) == (name, stratum)]
        value: float | None = found["value"]
        return value

    @property
    def corrected(self) -> dict[str, Mapping[str, Any]]:
        """The corrected measures by name."""
        return {row["measure"]: row for row in self.document["correction"]["measures"]}

    @property
    def names(self) -> list[str]:
        return [m["measure"] for m in self.document["measures"] if m["stratum"] is None]


def score(judge: Judge, *args: str) -> Scored:
    """`judge score ... --json`, checked against its schema."""
    return Scored(checked(judge("score", *args, "--json", "--interval", "none").out, "score"))


def board(judge: Judge, *args: str) -> dict[str, Any]:
    """The leaderboard of `judge score ... --json`, checked against its schema."""
    return dict(checked(judge("score", *args, "--json").out, "board"))


def cells(result: Mapping[str, Any], measure: str, stratum: str | None = None) -> dict[str, dict[str, Any]]:
    """The cells of a row of a leaderboard by contender."""
    [row] = [r for r in result["rows"] if (r["measure"], r["stratum"]) == (measure, stratum)]
    return {c["contender"]: c for c in row["cells"]}


def commands(judge: Judge, *args: str) -> list[str]:
    """What `judge score` says is missing: the lines to type."""
    done = judge("score", *args, code=1)
    assert "is incomplete" in done.err
    return done.out.splitlines()


def import_garage(judge: Judge, folder: Path) -> None:
    """Two answerable rows and one with insufficient grounding, answered by people and by `m`.

    g1  passages cite_1 ANSWER-THE-QUESTION, cite_2 RELATED-INFORMATION, cite_3 irrelevant
    g2  passages cite_1 ANSWER-THE-QUESTION, cite_2 without a label
    g3  passage cite_1 RELATED-INFORMATION; insufficient
    """
    rows = [
        {**garage_row("g1", ["ANSWER-THE-QUESTION", "RELATED-INFORMATION", ""]), "question_type": "fast"},
        {**garage_row("g2", ["ANSWER-THE-QUESTION", "?"]), "question_type": "slow"},
        {**garage_row("g3", ["RELATED-INFORMATION"], sufficient=False), "question_type": "slow"},
    ]
    judge("items", "import", "garage", write_jsonl(folder / "garage.jsonl", rows))
    answers(
        judge,
        folder,
        [
            ("g1", "human", "full", "It is so [cite_1]."),
            ("g2", "human", "full", "It is so [cite_1]."),
            ("g1", "m", "full", "Alpha holds [cite_1]. Beta holds [cite_2]."),
            ("g2", "m", "full", "Gamma holds [cite_2]."),
            ("g3", "m", "full", "It cannot be said."),
        ],
    )


def answers(judge: Judge, folder: Path, rows: Iterable[Sequence[str]]) -> None:
    """Answers of (item, system, condition, text)."""
    names = ("id", "system", "condition", "text")
    outputs(judge, folder, [dict(zip(names, row, strict=True)) for row in rows])


def outputs(judge: Judge, folder: Path, rows: Iterable[Mapping[str, Any]], *words: str) -> None:
    """Outputs of systems, as rows of a file."""
    judge("systems", "import", write_jsonl(folder / "outputs.jsonl", rows), *words)


def items(judge: Judge, folder: Path, dataset: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Items of a data set, as rows of a file."""
    judge("items", "import", "jsonl", write_jsonl(folder / f"{dataset}.jsonl", rows), "--dataset", dataset)


def ranking(
    judge: Judge, folder: Path, name: str, lists: Mapping[str, Iterable[str]], stage: str = "retrieve"
) -> None:
    """A TREC run with the documents of each item, the best first."""
    path = folder / f"{name}-{stage}.run"
    lines = [
        f"{item} Q0 {document} {rank} {-rank} {name}\n"
        for item, documents in lists.items()
        for rank, document in enumerate(documents, 1)
    ]
    path.write_text("".join(lines), "utf-8")
    judge("systems", "import", "--stage", stage, path)


def people(field: str, labels: Mapping[str, Mapping[str, str]]) -> None:
    """Labels of people by annotator and unit."""
    with Store.open("study.db", create=False) as store, store.transaction() as conn:
        for name, labels_of_person in labels.items():
            kind = name if name in ("gold", "adjudicated") else "human"
            conn.execute("INSERT OR IGNORE INTO annotators VALUES (?, ?, '{}')", [name, kind])
            conn.executemany(
                "INSERT INTO labels (unit_id, field, annotator_id, value) VALUES (?, ?, ?, ?)",
                [(unit, field, name, value) for unit, value in labels_of_person.items()],
            )
