"""Studies to report on: real files, made through the importer and the store; only the model is left out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotate.report import ReportOptions, build
from judge.document.blocks import Document, Section, Table
from judge.prompts.load import Task, load_task, parse_task
from judge.store import Store
from judge.store.judgements import Entry, add_judgements
from judge.store.runs import close_run, start_run
from judge.types import Answered, Judgement, LabelDistribution, Status, Usage
from tests.annotate.agreement_helpers import judge

# Everything that a format could take for its own: markup, commands, separators, control and direction characters.
NASTY = (
    "<script>alert('x')</script> & <img src=x onerror=alert(1)> $x^2$ \\input{/etc/passwd} 100 % #1 _a_ **b** "
    "| pipe | `code` [link](http://example.org) ~tilde~ {brace} \x07bell \u202egnp.exe \u2066iso\u2069 =1+1 {{ 7*7 }}\n"
    "# heading\n- item\n```\nfence"
)


@dataclass
class U:
    """One unit: its gold label, people's labels, and the judges' answers (label, probability, why) or a status."""

    gold: str | None = None
    people: Mapping[str, str] = field(default_factory=dict)
    judges: Mapping[str, str | tuple[str, float] | tuple[str, float, str] | Status] = field(
        default_factory=dict
    )
    claim: str = "The claim."
    text: str = "The passage."
    question: str | None = None


def study(path: Path, units: Sequence[U], task: Task | None = None, name: str = "study") -> Path:
    """A study with these units; every judge is one run of the task (default: the shipped `stance`)."""
    task = task or load_task("stance")
    fields = task.spec.questions[0].field
    data = path.with_suffix(".jsonl")
    rows = []
    for i, u in enumerate(units):
        passage = {"id": "p", "text": u.text, "votes": {fields: dict(u.people)}}
        if u.gold is not None:
            passage["gold"] = {fields: u.gold}
        row = {"id": str(i), "claim": u.claim, "passages": [passage]}
        if u.question is not None:
            row["question_id"] = u.question
        rows.append(row)
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    judge("items", "import", "jsonl", data, "--dataset", name, "-d", path)
    with Store.open(path) as store:
        for model in dict.fromkeys(m for u in units for m in u.judges):
            answers = {f"{name}:{i}/p": u.judges[model] for i, u in enumerate(units) if model in u.judges}
            add_run(store, task, model, answers)
    return path


def add_run(
    store: Store,
    task: Task,
    model: str,
    answers: Mapping[str, str | tuple[str, float] | tuple[str, float, str] | Status],
    repeat: int = 0,
) -> str:
    """One judge run with these answers by unit. Returns its id."""
    question = task.spec.questions[0]
    run, _ = start_run(store, task, model, {"temperature": 0.0}, {"server": "none"})
    entries = []
    for unit, answer in answers.items():
        labels: tuple[Answered, ...] = ()
        status = answer if isinstance(answer, Status) else Status.OK
        if not isinstance(answer, Status):
            label, *rest = (answer,) if isinstance(answer, str) else answer
            labels = (_answered(task, question.field, str(label), *rest),)
        usage = Usage(100, 1, 0)
        entries.append(
            Entry(
                Judgement(run, unit, repeat, 0, status, "…", None, labels, usage, 0.5, None, f"{model}-2026"),
                None,
            )
        )
    with store.transaction() as conn:
        add_judgements(conn, entries, set())
    close_run(store, run, finished=True)
    return run


def _answered(
    task: Task, name: str, label: str, probability: object = None, reason: object = None
) -> Answered:
    distribution = None
    if isinstance(probability, float):
        domain = task.domain(name)
        rest = (1 - probability) / (len(domain) - 1)
        distribution = LabelDistribution({d: probability if d == label else rest for d in domain}, 0.0)
    return Answered(name, label, distribution, None if reason is None else str(reason))


def report_of(
    folder: Path, units: Sequence[U], task: Task | None = None, *, name: str = "study", **options: Any
) -> Document:
    """The report on a new study with these units."""
    with Store.open(study(folder / f"{name}.db", units, task), create=False) as store:
        return build(store, ReportOptions(**options))


def section(document: Document, key: str) -> Section:
    return next(s for s in document.sections if s.key == key)


def table(document: Document, key: str) -> Table:
    return next(t for s in document.sections for t in s.tables() if t.key == key)


def add_label(
    db: Path,
    unit: str,
    field_name: str,
    annotator: str,
    value: str,
    *,
    layer: str = "first",
    repeat: int = 0,
    kind: str = "human",
) -> None:
    """One more label, where the importer has no column for it: repeats, revised layers, adjudicated labels."""
    with Store.open(db, create=False) as store, store.transaction() as conn:
        conn.execute("INSERT OR IGNORE INTO annotators VALUES (?, ?, '{}')", [annotator, kind])
        conn.execute(
            "INSERT INTO labels (unit_id, field, annotator_id, layer, repeat, value) VALUES (?, ?, ?, ?, ?, ?)",
            [unit, field_name, annotator, layer, repeat, value],
        )


def score_task() -> Task:
    """A task that asks for a number."""
    text = (
        "---\ntitle: How much?\nunit: passage\ninputs: [passage]\nquestions:\n  - {field: score, level: interval}\n---\n"
        "How much?\n<!-- unit -->\n{{ passage }}\n{{ answer_cue }}\n"
    )
    return parse_task(text, "score.v1.md")


def grade_task() -> Task:
    """A task with ordered labels."""
    text = (
        "---\ntitle: How well?\nunit: passage\ninputs: [claim, passage]\nquestions:\n  - field: grade\n    level: ordinal\n"
        '    labels: [{value: "low"}, {value: "mid"}, {value: "high"}]\nrationale: after\n---\n'
        "How well?\n<!-- unit -->\n{{ claim }}\n{{ passage }}\n{{ answer_cue }}\n"
    )
    return parse_task(text, "grade.v1.md")
