"""Small studies with batches, made through the real importer interface and the real commands' functions."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from annotate.batch_plan import BatchPlan
from annotate.drawing.batch import BatchMade, new_batch
from annotate.store import open_study
from judge.prompts import load_task
from judge.prompts.load import Task, parse_task
from judge.store import Store, judgements, runs
from judge.store.items import ImportInfo, add_items
from judge.types import (
    Answered,
    Item,
    Judgement,
    LabelDistribution,
    Passage,
    Row,
    Status,
    Usage,
    Vote,
    Where,
)

CANARY = "CANARY-7f3a"
THREE = """---
title: Three questions
unit: passage
inputs: [claim, passage]
optional_inputs: [passage_title, passage_date, passage_source]
questions:
  - field: relevance
    ask: Is it relevant?
    labels: [{value: relevant, key: r}, {value: irrelevant, key: i}]
  - field: stance
    ask: Which side?
    labels: [{value: support, key: s}, {value: refute, key: f}, {value: neutral, key: n}]
  - field: quality
    labels: [{value: good, key: g}, {value: bad, key: b}]
guidelines: |
  Read **everything**.
---
Judge.
<!-- unit -->
{{ claim }}
{{ passage }}
{% if passage_title %}{{ passage_title }}{% endif %}
{% if passage_date %}{{ passage_date }}{% endif %}
{% if passage_source %}{{ passage_source }}{% endif %}
{{ answer_cue }}
"""
NASTY = {
    "markup": "[bold red]not bold[/] [link=http://x]x[/link] [@click=app.quit]quit[/] \\[",
    "control": "a\x00b\x07c\x1b[31mred\x1b[0m\x9b1m del\x7f \x08\r\nend",
    "long": "word " * 20_000,
    "rtl": "שלום עולם \u202eevil\u202c العربية",
    "emoji": "👩‍👩‍👧‍👦 family 🇩🇪 flag 👍🏽 and é",
    "cjk": "東京は日本の首都です。" * 30,
    "empty lines": "\n\n\n\t tabs\t\there \n\n",
}


def three() -> Task:
    """A task with three questions on one unit."""
    return parse_task(THREE, "three.v1.md")


def build(
    path: Path, *, items: int = 6, each: int = 2, gold: bool = True, texts: dict[str, str] | None = None
) -> Path:
    """A study with `items` claims of `each` passages; gold stance alternates; meta carries a canary."""
    path.write_bytes(_built(items, each, gold, tuple((texts or {}).items())))
    return path


@cache
def _built(items: int, each: int, gold: bool, texts: tuple[tuple[str, str], ...]) -> bytes:
    with TemporaryDirectory() as folder:
        with Store.open(Path(folder) / "s.db") as store:
            add_items(store, _rows(items, each, gold, dict(texts)), ImportInfo("test", {}), [], _raise)
        return (Path(folder) / "s.db").read_bytes()


def _raise(e: Exception) -> None:
    raise e


def _rows(items: int, each: int, gold: bool, texts: dict[str, str]) -> Any:
    extra = list(texts.values())
    for i in range(items):
        passages = [
            Passage(
                text=extra[i * each + p]
                if i * each + p < len(extra)
                else f"Passage {p} of claim {i} says 42. It is so.",
                source_id=f"p{p}",
                title=f"Title {i}.{p}",
                date="2024-01-02",
                source="web",
                meta={"secret": CANARY},
                votes=[Vote("stance", ("support", "refute", "neutral")[(i + p) % 3])] if gold else [],
            )
            for p in range(each)
        ]
        item = Item(str(i), "d", claim=f"Claim number {i}", question=f"Question {i}?", reference_answers=["42"],
                    meta={"secret": CANARY}, passages=passages)  # fmt: skip
        item.votes = [Vote("claim_verdict", "true" if i % 2 else "false")] if gold else []
        yield Row(item, Where("test", i + 1))


def judge_all(path: Path, task: str = "stance", value: str = "support") -> str:
    """A run that gives every passage one label, with a distribution and a rationale."""
    loaded = load_task(task)
    with Store.open(path) as store:
        run, _ = runs.start_run(store, loaded, "scripted/test", {}, {})
        units = [r[0] for r in store.conn.execute("SELECT unit_id FROM units WHERE kind = 'passage'")]
        field = loaded.spec.questions[0].field
        labels = [q.value for q in loaded.spec.questions[0].labels]
        masses = {v: 0.7 if v == value else 0.3 / (len(labels) - 1) for v in labels}
        answered = (Answered(field, value, LabelDistribution(masses, 0.0), f"because {CANARY}"),)
        entries = [
            judgements.Entry(
                Judgement(run, u, 0, 1, Status.OK, f"{value} {CANARY}", None, answered, Usage(), 0.1, None),
                None,
            )
            for u in units
        ]
        with store.transaction() as conn:
            judgements.add_judgements(conn, entries, set())
    return run


def batch(path: Path, task: Task | str = "stance", *, name: str = "pilot", **plan: Any) -> BatchMade:
    """A new batch of everything for alice, unless told otherwise."""
    plan.setdefault("annotators", ["alice"])
    with open_study(path) as store:
        if not {"n", "by_question"} & set(plan):
            plan["n"] = store.conn.execute("SELECT count(*) FROM passages").fetchone()[0]
        return new_batch(store, load_task(task) if isinstance(task, str) else task, BatchPlan(name, **plan))


def drawn(
    folder: Path,
    task: Task | str = "stance",
    *,
    items: int = 6,
    each: int = 2,
    texts: dict[str, str] | None = None,
    judged: bool = False,
    **plan: Any,
) -> Path:
    """A study in this folder with a batch `pilot` of it; `judged` adds a run before the draw."""
    path = build(folder / "s.db", items=items, each=each, texts=texts)
    if judged:
        judge_all(path)
    batch(path, task, **plan)
    return path


def labels(path: Path, annotator: str = "alice") -> dict[tuple[str, str, str, int], str]:
    """The rows of the study's `labels` for one annotator."""
    with Store.open(path) as store:
        rows = store.conn.execute(
            "SELECT unit_id, field, layer, repeat, value FROM labels WHERE annotator_id = ?", [annotator]
        )
        return {(u, f, layer, r): v for u, f, layer, r, v in rows}


def rows_of(path: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Rows of a study."""
    with open_study(path) as store:
        return store.conn.execute(query, values).fetchall()


def event_kinds(path: Path) -> list[str]:
    """The kinds of all events, in their order."""
    return [kind for (kind,) in rows_of(path, "SELECT kind FROM events ORDER BY seq")]


@contextmanager
def scribbling(path: Path, per_second: int = 1000) -> Iterator[None]:
    """A judge's run of its own on the same file: judgements in transactions of 50, as fast as told."""
    stop = threading.Event()

    def write() -> None:
        with Store.open(path) as store:
            units = [r[0] for r in store.conn.execute("SELECT unit_id FROM units WHERE kind = 'passage'")]
            run, _ = runs.start_run(store, load_task("stance"), "scripted/test", {}, {})
            answered = (Answered("stance", "neutral", None, None),)
            number = 0
            while not stop.is_set():
                entries = []
                for _ in range(50):
                    repeat, unit = divmod(number, len(units))
                    number += 1
                    one = Judgement(
                        run, units[unit], repeat, 1, Status.OK, "neutral", None, answered, Usage(), 0.1, None
                    )
                    entries.append(judgements.Entry(one, None))
                with store.transaction() as conn:
                    judgements.add_judgements(conn, entries, set())
                stop.wait(50 / per_second)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
