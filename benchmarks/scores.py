"""Speed and memory of the paper's measures over 1,000,000 judgements. Measures and prints, asserts nothing.

    uv run python benchmarks/scores.py
    uv run python benchmarks/scores.py study     only what is read from a study

One judgement a row: sentences of GaRAGe's answers (each judged twice, so half as many rows), claims, citations,
stances, answers, options. Every measure comes with its interval of 1,000 block resamples.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judge.papers import confirmation, faithfulness, garage, mirage, raguard, urag
from judge.papers.engine.paper import ScoreRequest
from judge.papers.engine.papers import PAPERS
from judge.papers.engine.result import score
from judge.prompts import load_task
from judge.scores import attribution, citation_support, retrieval
from judge.scores.compare import compare_all
from judge.scores.score import Score, Units, score_values
from judge.store import Store
from judge.store.runs import start_run

ROWS, REPLICATES = 1_000_000, 1_000
RNG = np.random.default_rng(1)


def pick(words: Sequence[Any], n: int, p: Sequence[float] | None = None) -> np.ndarray:
    return np.array(words, dtype=object)[RNG.choice(len(words), n, p=p)]


def names(prefix: str, n: int) -> np.ndarray:
    return np.array([f"{prefix}{i}" for i in range(n)], dtype=object)


def answers(n: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "unit_id": names("a", n),
            "question_id": names("q", n),
            "answerable": RNG.random(n) < 0.8,
            "eligibility": pick([*garage.ELIGIBLE], n),
            "deflection": pick([*garage.DEFLECTED], n),
        }
    )


def parts(
    n: int, each: int, prefix: str, column: str, labels: Sequence[Any], p: Sequence[float] | None = None
) -> pd.DataFrame:
    whole = names("a" if column == "answer_id" else "s", n // each)
    return pd.DataFrame(
        {"unit_id": names(prefix, n), column: np.repeat(whole, each), "label": pick(labels, n, p)}
    )


Tables = dict[str, Any]
Suite = tuple[Callable[[], Tables], Callable[[Tables], list[Score]]]


def garage_tables() -> Tables:
    n = ROWS // 2
    full = parts(n, 10, "s", "answer_id", garage.GROUNDING, [0.9, 0.04, 0.01, 0.05])
    fewer = full.assign(label=pick(garage.GROUNDING, n, [0.85, 0.08, 0.02, 0.05]))
    return {"answers": answers(n // 10), "full": full, "relevant": fewer}


def garage_scores(t: Tables) -> list[Score]:
    return [
        *garage.factuality(t["answers"], t["full"], t["relevant"]),
        *garage.deflection(t["answers"]),
        *garage.sentence_rates(t["answers"], t["full"]),
    ]


def citation_tables() -> Tables:
    sentences = parts(ROWS // 2, 5, "s", "answer_id", ["x"])
    citations = parts(ROWS, 2, "c", "sentence_id", attribution.SUPPORT)
    for column in ("alone", "rest"):
        citations[column] = RNG.integers(0, 2, ROWS)
    return {
        "answers": answers(ROWS // 10),
        "sentences": sentences.assign(entailed=RNG.integers(0, 2, ROWS // 2)),
        "citations": citations,
    }


def raguard_tables() -> Tables:
    n = ROWS // 10
    table = {
        "unit_id": names("a", ROWS),
        "item_id": np.tile(names("c", n), 10),
        "condition": np.repeat(["none", "top:1", "top:5", *["oracle"] * 7], n),
        "label": pick(["true", "false"], ROWS),
        "gold": np.tile(pick(["true", "false"], n), 10),
        "role": pick(raguard.ROLES, ROWS),
    }
    return {"answers": pd.DataFrame(table)}


def retrieval_tables() -> Tables:
    n = ROWS // 10
    claims = pd.DataFrame({"item_id": names("c", n), "unit_id": names("c", n)})
    documents = {
        "document_id": names("d", ROWS),
        "item_id": np.tile(names("c", n), 10),
        "role": pick(raguard.ROLES, ROWS),
    }
    table = pd.DataFrame(documents)
    ranked = table.assign(passage_id=table["document_id"], rank=np.repeat(np.arange(1, 11), n))
    return {"claims": claims, "documents": ranked, "ranked": ranked.assign(grade=RNG.integers(0, 2, ROWS))}


def confirmation_tables() -> Tables:
    n = ROWS // 20
    pairs = pd.DataFrame({"pair_id": names("p", n), "original": names("o", n), "counter": names("c", n)})
    stances = {
        "claim_id": np.tile(np.concatenate([names("o", n), names("c", n)]), 10),
        "stage": "retrieve",
        "label": pick(confirmation.STANCES, ROWS),
        "document": pick([f"d{i}" for i in range(30)], ROWS),
    }
    return {"pairs": pairs, "stances": pd.DataFrame(stances)}


def mirage_tables() -> Tables:
    n = ROWS // 3
    table = pd.DataFrame(RNG.integers(0, 2, (n, 3)), columns=["base", "oracle", "mixed"])
    return {"answers": table.assign(unit_id=names("q", n))}


def urag_tables() -> Tables:
    n = ROWS // 2
    return {side: (names(side, n), RNG.normal(size=(n, 4)), list(pick(list("ABCD"), n))) for side in "ct"}


def urag_scores(t: Tables) -> list[Score]:
    halves = [
        urag.Choices.build(Units.build(ids), "ABCD", logits, right) for ids, logits, right in t.values()
    ]
    return urag.scores(halves[0], halves[1])


def faithfulness_tables() -> Tables:
    claims = parts(ROWS, 10, "c", "answer_id", ["supported", "neutral", "contradiction"])
    for column in ("correct", "in_relevant", "in_irrelevant"):
        claims[column] = RNG.integers(0, 2, ROWS)
    return {"answers": answers(ROWS // 10), "claims": claims}


SUITES: dict[str, Suite] = {
    "garage": (garage_tables, garage_scores),
    "attribution": (
        citation_tables,
        lambda t: attribution.score_judged_citations(t["answers"], t["sentences"], t["citations"]),
    ),
    "alce, trec": (
        citation_tables,
        lambda t: [
            *citation_support.alce(t["answers"], t["sentences"], t["citations"]),
            *citation_support.trec(t["answers"], t["sentences"], t["citations"]),
        ],
    ),
    "raguard": (raguard_tables, lambda t: raguard.scores(t["answers"])),
    "misleading": (
        retrieval_tables,
        lambda t: raguard.misleading(5, t["claims"], t["documents"], t["ranked"]),
    ),
    "retrieval": (retrieval_tables, lambda t: retrieval.score_at(5, t["claims"], t["ranked"], t["ranked"])),
    "confirmation": (
        confirmation_tables,
        lambda t: confirmation.retrieval_bias(t["pairs"], t["stances"], "retrieve"),
    ),
    "mirage": (mirage_tables, lambda t: mirage.adaptability(t["answers"])),
    "urag": (urag_tables, urag_scores),
    "faithfulness": (
        faithfulness_tables,
        lambda t: [
            faithfulness.ragas(t["answers"], t["claims"]),
            *faithfulness.factscore(t["answers"], t["claims"]),
            *faithfulness.ragchecker(t["answers"], t["claims"]),
        ],
    ),
}


def study(path: Path) -> None:
    """A GaRAGe study with 1,000,000 judgements: 50,000 answers of ten sentences, each judged twice.

    Written by plain SQL: the importers and the runner are measured elsewhere.
    """
    n, each, task_of = ROWS // 20, 10, ("grounding", "grounding_relevant")
    with Store.open(path) as store, store.transaction() as conn:
        conn.execute("INSERT INTO imports VALUES ('i', 'x', 'garage', '[]', '{}', '{}', '{}', '[]', '2024')")
        conn.executemany(
            "INSERT INTO items (item_id, dataset, question_id, question, meta, content_sha, import_id) "
            "VALUES (?, 'garage', ?, 'q', '{}', 'x', 'i')",
            ((f"garage:{i}", f"garage:{i}") for i in range(n)),
        )
        conn.executemany(
            "INSERT INTO passages VALUES (?, ?, 0, NULL, 'p', NULL, NULL, '{}', 'x', 'i')",
            ((f"garage:{i}/p", f"garage:{i}") for i in range(n)),
        )
        conn.executemany(
            "INSERT INTO answers VALUES (?, ?, 'm', 'all', ?, '[]', NULL, '{}', 'x', 'i')",
            ((f"garage:{i}@m@all", f"garage:{i}", "Is so. " * each) for i in range(n)),
        )
        add = "INSERT INTO units (unit_id, kind, item_id, question_id, passage_id, answer_id, span) VALUES (?, ?, ?, ?, ?, ?, ?)"
        for i in range(n):
            item = f"garage:{i}"
            answer = f"{item}@m@all"
            conn.execute(add, [item, "item", item, item, None, None, None])
            conn.execute(add, [f"{item}/p", "passage", item, item, f"{item}/p", None, None])
            conn.execute(add, [answer, "answer", item, item, None, answer, None])
            conn.executemany(
                add,
                (
                    (
                        f"{answer}#s{k}",
                        "sentence",
                        item,
                        item,
                        None,
                        answer,
                        f'{{"n":{k},"start":0,"end":6,"cited":[]}}',
                    )
                    for k in range(each)
                ),
            )
        gold = "INSERT OR IGNORE INTO annotators VALUES ('gold', 'gold', '{}')"
        conn.execute(gold)
        label = "INSERT INTO labels (unit_id, field, annotator_id, value) VALUES (?, ?, ?, ?)"
        conn.executemany(
            label, ((f"garage:{i}/p", "relevance", "gold", "ANSWER-THE-QUESTION") for i in range(n))
        )
    for name in ("eligibility", *task_of):
        task = load_task(name)
        values = [label.value for label in task.spec.questions[0].labels]
        with Store.open(path) as store:
            run, _ = start_run(store, task, "m", {}, {})
            kind = "answer" if name == "eligibility" else "sentence"
            with store.transaction() as conn:
                conn.create_function("drawn", 1, partial(drawn, values))
                conn.execute(
                    "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, reused, judged_at) "
                    "SELECT ?, unit_id, 0, 0, 'ok', 0, '2024' FROM units WHERE kind = ? ORDER BY unit_id",
                    [run, kind],
                )
                conn.execute(
                    "INSERT INTO labels (unit_id, field, annotator_id, value) "
                    "SELECT unit_id, ?, ?, drawn(rowid) FROM units WHERE kind = ? ORDER BY unit_id",
                    [task.fields[0], run, kind],
                )


def drawn(values: Sequence[str], n: int) -> str:
    """A label for the n-th unit, the same in every process."""
    return values[n * 2654435761 % 2**32 % 31 % len(values)]


def from_study() -> None:
    """Everything from the file to the intervals, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        study(path)
        size = path.stat().st_size / 1e6
        code = f"import benchmarks.scores as b; b.read_study({str(path)!r})"
        print(
            f"off a study of {ROWS:,} judgements ({size:.0f} MB): judge score garage       asked: under 9 s, 350 MB"
        )
        root = Path(__file__).parent.parent
        subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def read_study(path: str) -> None:
    """Read and measure; prints seconds and the peak of this process."""
    asked = ScoreRequest(parts=("eligibility", "grounding", "factuality", "relevant", "raf"))
    start, cpu = time.perf_counter(), time.process_time()
    with Store.open(path) as store:
        found = score(store, PAPERS["garage"], asked, replicates=REPLICATES)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    judged = sum(sum(run["counts"].values()) for run in found.runs)
    what = f"{len(found.lines)} measures of {judged:,} judgements"
    print(f"  {what:<58} {seconds:8.2f} s {peak():8.0f} MB; {cpu:.2f} s of processor time")


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024**2 if sys.platform == "darwin" else 1024
    )


def best_of(n: int, work: Callable[[], object]) -> float:
    """Shortest of `n` wall times, in seconds: the machine is shared, and noise only adds."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def bootstraps() -> None:
    print(f"block bootstrap alone, {REPLICATES:,} replicates, {ROWS:,} judgements      asked: under 1 s")
    values = (RNG.random(ROWS) < 0.3).astype(float)
    for what, each in (("100,000 questions of 10", 10), ("1,000 questions of 1,000", 1000)):
        who = Units.build(np.arange(ROWS), np.arange(ROWS) // each)
        for kind, numbers in (("0 / 1", values), ("real numbers", RNG.random(ROWS))):
            score = score_values("m", who, numbers)
            whole = best_of(3, lambda score=score: score.measure_score(replicates=REPLICATES))  # type: ignore[misc]
            print(f"  {f'{what}, {kind}':<58} {whole:8.2f} s")


def one(name: str) -> None:
    """One suite, in a process of its own so that its peak is its own."""
    build, score = SUITES[name]
    tables = build()
    before = peak()
    start = time.perf_counter()
    scores = score(tables)
    middle = time.perf_counter()
    measures = [score.measure_score(replicates=REPLICATES) for score in scores]
    end = time.perf_counter()
    what = f"{name}: {len(measures)} measures"
    print(
        f"  {what:<40} {middle - start:8.2f} s {end - middle:8.2f} s {before:8.0f} MB {peak():8.0f} MB",
        flush=True,
    )
    if name == "mirage":
        start = time.perf_counter()
        found = compare_all(scores, scores, replicates=REPLICATES)
        what = f"judge swap: {len(found)} paired differences"
        print(f"  {what:<40} {'':>10} {time.perf_counter() - start:8.2f} s {'':>11} {peak():8.0f} MB")


def main() -> None:
    if sys.argv[1:] == ["study"]:
        return from_study()
    if sys.argv[1:]:
        return one(sys.argv[1])
    print(f"load of the machine when it started: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    bootstraps()
    print(f"measures over {ROWS:,} judgements                  asked: under 10 s, under 1,024 MB")
    print(f"  {'':<40} {'scores':>10} {'intervals':>10} {'tables':>11} {'peak':>11}", flush=True)
    for name in SUITES:
        subprocess.run([sys.executable, __file__, name], check=True)
    return from_study()


if __name__ == "__main__":
    main()
