"""Compare the outputs of two versions of the product: scores of every paper, reports, agreement. A check, not a timing.

    uv run --no-sync python benchmarks/outputs.py --out FOLDER                    write all outputs into FOLDER
    uv run --no-sync python benchmarks/outputs.py --out FOLDER --against EARLIER  the same, then compare with EARLIER
    uv run --no-sync python benchmarks/outputs.py --compare FOLDER EARLIER        only compare two folders

A change that should change no output is checked so: write the outputs of the version before it, then those of the version
after it, and compare. The script uses the command line only (no module of the product by name), so one copy of it runs in
both checkouts: start it with the environment and in the folder of the version to look at.

The outputs are about 1,100: `judge score` of every paper on planted studies (systems, options, judges, strata, references,
leaderboards in every format), reports of three studies in every format, and agreement. They are exact to the last digit.
Only what differs between two runs of one version is replaced: run ids (numbered by first appearance), times, durations of
calls, the temporary folder and that of the checkout. All labels come from scripted models or from a seeded table. Exit
code 1: something differs. It takes about four minutes on a quiet core.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import difflib
import functools
import hashlib
import io
import itertools
import json
import os
import re
import runpy
import shlex
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

QUESTIONS = 14
"""Questions of each planted study: enough for intervals and strata, few enough for hundreds of scores in minutes."""


# Running commands ----------------------------------------------------------------------------------------------------


def run(program: str, *words: str) -> tuple[int, str, str]:
    """Run `python -m PROGRAM WORDS` in this process; return its exit code and what it wrote to stdout and stderr.

    In one process, because starting Python for each of the outputs would take most of the time.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before, sys.argv = sys.argv, [program, *words]
    code = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                runpy.run_module(program, run_name="__main__", alter_sys=False)
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.argv = before
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return code, texts[0], texts[1]


def do(line: str, codes: Sequence[int] = (0,)) -> str:
    """Run a command that prepares a study; return its stdout. Ends the script when the command fails."""
    program, *words = shlex.split(line)
    code, out, err = run(program, *words)
    if code not in codes:
        sys.exit(f"{line}\nexit code {code}\n{out}{err}")
    return out


# Normalising ---------------------------------------------------------------------------------------------------------

RUN_ID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
RUN_END = re.compile(r"(?<=\.v\d · )[0-9A-HJKMNP-TV-Z]{4}\b")
"""In a run's name ("scripted/hash · stance.v2 · 9X3M"), the end of its id."""
TIME = re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?")
DAY = re.compile(r"\b202[5-9]-\d\d-\d\d\b")


def normalised(text: str, folder: str) -> str:
    """The text without run ids, times and the temporary folder."""
    names: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"<run {len(names) + 1}>")

    # LaTeX may break a long word, and has its own hyphen and dot.
    for latex, plain in ((r"\allowbreak{}", ""), ("{-}", "-"), (r"\textperiodcentered{}", "·")):
        text = text.replace(latex, plain)
    text = text.replace(folder, "<folder>").replace(str(Path.cwd()), "<checkout>")
    text = RUN_ID.sub(numbered, text)
    # Tables may show the end of a run's id only.
    for name, number in names.items():
        text = text.replace(name[-8:], f"{number[:-1]} end>")
    ends: dict[str, str] = {}
    text = RUN_END.sub(lambda match: ends.setdefault(match[0], f"<end {len(ends) + 1}>"), text)
    return DAY.sub("<day>", TIME.sub("<time>", text))


# Planted studies -----------------------------------------------------------------------------------------------------


def chance(*names: object) -> float:
    """A number in [0, 1) that depends on the names only: the seed of everything planted."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


def pick(options: Sequence[Any], *names: object) -> Any:
    """One of the options, by `chance`."""
    return options[int(chance(*names) * len(options))]


def write_lines(path: Path, rows: Sequence[Any]) -> Path:
    """JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    """A CSV file with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def newest(db: Path, task: str, model: str) -> str:
    """The id of the newest run of `task` by `model`."""
    rows = json.loads(do(f"judge runs list --json -d {db}"))["rows"]
    return str(max(r["run_id"] for r in rows if r["task"].split(".v")[0] == task and r["model"] == model))


@functools.cache
def imports(what: str) -> str:
    """The command that imports `answers` or `rankings`: one for both since 0.3.0."""
    return "judge systems import" if run("judge", "systems", "--help")[0] == 0 else f"judge {what} import"


def generate(
    db: Path, task: str, system: str, contexts: Sequence[str], how: str, model: str = "hash"
) -> None:
    """Outputs of a system that only has this name: since 0.3.0 a suite makes none for it, and `score` reads no judge's.

    `contexts` are values of `--context`, each with the words that go with it; `how` are provider options.
    """
    for context in contexts:
        # 4: some planted replies have no answer. Since 0.3.0 a suite says so too.
        line = f"judge answers generate {task} -m scripted/{model} --context {context} --system {system} {how} -d {db}"
        do(line, codes=(0, 4))


def exported(db: Path, task: str, model: str) -> tuple[str, list[dict[str, str]]]:
    """The first field of the newest run of `task` by `model`, and the run's judgements."""
    run_id = newest(db, task, model)
    found = list(csv.DictReader(io.StringIO(do(f"judge runs export {run_id} --to csv -d {db}"))))
    return next(name for name in found[0] if f"{name}.distribution" in found[0]), found


def judged(db: Path, task: str, where: str = "", model: str = "planted/strict", kept: float = 0.7) -> None:
    """Label with `task` by scripted/hash, and plant another judge's run of the same units.

    Its label is the same with probability `kept`; of the rest, some could not be read.
    """
    where = f"--where {shlex.quote(where)}" if where else ""
    do(f"judge run {task} -m scripted/hash --option logprobs=1 {where} -d {db}")
    field, rows = exported(db, task, "scripted/hash")
    labels = sorted({row[field] for row in rows if row[field]})
    table = []
    for row in rows:
        draw = chance(task, model, row["unit_id"])
        label = row[field] if draw < kept else pick(labels, "other", task, model, row["unit_id"])
        masses = row[f"{field}.distribution"] if label == row[field] and draw <= 0.95 else ""
        table.append([row["unit_id"], "unparsed" if draw > 0.95 else label, masses])
    path = write_table(db.with_name(f"{task}.csv"), ("unit", "label", "probabilities"), table)
    do(f"judge runs import {path} --model {model} --task {task} --field {field} -d {db}")


def people(db: Path, task: str, names: Sequence[str], share: float, more: str = "") -> None:
    """Labels of people on `share` of the units of a judge's run: often the judge's label, else another of its labels."""
    field, rows = exported(db, task, "scripted/hash")
    labels = sorted({row[field] for row in rows if row[field]})
    table = []
    for row in rows:
        unit = row["unit_id"]
        if row[field] and chance("sample", unit) < share:
            for name in names:
                same = chance("people", name, unit) < 0.75
                table.append([unit, name, row[field] if same else pick(labels, "person", name, unit), field])
    path = write_table(db.with_name(f"people-{task}.csv"), ("unit", "annotator", "label", "field"), table)
    do(f"annotate import {path} --blind --new-people -d {db} {more}")


def garage(folder: Path) -> Path:
    """GaRAGe: three systems with sentences and citations, two judges, people on eligibility and grounding."""
    db = folder / "garage.db"
    classes = ("ANSWER-THE-QUESTION", "RELATED-INFORMATION", "OUTDATED", "UNKNOWN", "")
    rows = []
    for n in range(QUESTIONS):
        sufficient = n % 5 != 4
        found = [pick(classes, "class", n, k) for k in range(4)]
        found[0] = classes[0] if sufficient else classes[1]
        rows.append(
            {
                "sample_id": f"g{n}",
                "question_date": "2024-11-02",
                "grounding": [
                    {
                        f"cite_{k}": f"Passage {k} of g{n}.",
                        "age": f"{k} days",
                        "date": "2024-10-01",
                        "provider": "web",
                    }
                    for k in range(1, 5)
                ],
                "question": f"What is new in g{n}?",
                "question_valid": "VALID",
                "question_type": ("fast", "slow")[n % 2],
                "evidence_relevant": ["NO" if c == "" else "YES" for c in found],
                "evidence_correct": found,
                "evidence_cited": ["YES" if sufficient and c == classes[0] else "NO" for c in found],
                "answer_generate": "It is so [cite_1]." if sufficient else "",
                "answer_related_info": "",
                "answer_validate": "It is so [cite_1]." if sufficient else "",
                "comments": "",
                "question_tag": "web",
                "topic_tag": ("ent", "geo", "art")[n % 3],
            }
        )
    do(f"judge items import garage {write_lines(folder / 'garage.jsonl', rows)} -d {db}")
    answers = [
        {
            "id": f"g{n}",
            "system": system,
            "condition": "full",
            "text": " ".join(
                f"Sentence {k} of {system} on g{n}"
                + (
                    f" [cite_{1 + int(5 * chance('cite', system, n, k))}]."
                    if chance("cites", system, n, k) < 0.8
                    else "."
                )
                for k in range(1 + int(3 * chance("length", system, n)))
            ),
        }
        for system in ("a", "b", "c")
        for n in range(QUESTIONS)
        if (system, n) != ("c", 3)
    ]
    answers += [
        {"id": f"g{n}", "system": "human", "condition": "full", "text": "It is so [cite_1]."}
        for n in range(QUESTIONS)
        if n % 5 != 4
    ]
    do(f"{imports('answers')} {write_lines(folder / 'answers.jsonl', answers)} -d {db}")
    for system in ("a", "b", "c"):
        do(f"judge suite garage -m scripted/hash --system {system} --option logprobs=1 -d {db}")
    for task in ("eligibility", "grounding", "deflection", "citation_each"):
        judged(db, task, "answer_system != 'human'")
    people(db, "eligibility", ("ann", "bob"), 0.6)
    people(db, "grounding", ("ann", "bob", "cem"), 0.5)
    return db


def faithfulness(folder: Path, source: Path) -> Path:
    """Claims, citations and sentences of the same answers, in a copy of the GaRAGe study's rows."""
    db = folder / "faithfulness.db"
    do(f"judge items import garage {source / 'garage.jsonl'} -d {db}")
    do(f"{imports('answers')} {source / 'answers.jsonl'} -d {db}")
    for system in ("a", "b", "c"):
        do(f"judge suite faithfulness -m scripted/hash --option logprobs=1 --system {system} -d {db}")
    for task in ("claim_support", "citation_support", "citation_each", "deflection"):
        judged(db, task, "answer_system != 'human'")
    people(db, "claim_support", ("ann", "bob"), 0.5)
    return db


def raguard(folder: Path) -> Path:
    """RAGuard: claims with documents of three roles, two rankings, two systems that answer."""
    db = folder / "raguard.db"
    claims, documents = [], []
    number = 0
    for n in range(QUESTIONS):
        own = []
        for _ in range(2 + n % 2):
            number += 1
            own.append((number, pick(("supporting", "misleading", "unrelated"), "role", number)))
            documents.append(
                [
                    number,
                    f"Title {number}",
                    f"Post {number} says so on claim {n}.",
                    n,
                    own[-1][1],
                    f"https://example.org/{number}",
                ]
            )
        verdict = ("True", "False")[int(2 * chance("verdict", n))]
        claims.append(
            [
                n,
                f"Claim {n} is so.",
                verdict,
                str([d for d, _ in own]),
                str([r for _, r in own]),
                "half-true" if verdict == "True" else "false",
            ]
        )
    paths = (
        write_table(
            folder / "claims.csv",
            ("Claim ID", "Claim", "Verdict", "Document IDs", "Document Labels", "Original Verdict"),
            claims,
        ),
        write_table(
            folder / "documents.csv",
            ("Document ID", "Title", "Full Text", "Claim ID", "Document Label", "Link"),
            documents,
        ),
    )
    do(f"judge items import raguard {paths[0]} {paths[1]} -d {db}")
    for name in ("own", "other"):
        lines = []
        for n in range(QUESTIONS):
            listed = sorted(documents, key=lambda d: chance(name, n, d[0]) - (d[3] == n) * 0.6)[:8]
            lines += [f"{n} Q0 {d[0]} {rank} {20 - rank} {name}\n" for rank, d in enumerate(listed, 1)]
        (folder / f"{name}.run").write_text("".join(lines))
        do(f"{imports('rankings')} --stage retrieve {folder / f'{name}.run'} -d {db}")
    for system in ("a", "b"):
        ranked = [
            *(f"top:{k} --ranking own --stage retrieve" for k in (1, 2, 3, 5)),
            *(f"top:{k} --ranking other --stage retrieve" for k in (1, 5)),
        ]
        generate(db, "verdict", system, ["none", *ranked], "")
        # Its verdict on each document, which 0.2.0 took from the judge.
        judged_by_people = (
            "unit_id IN (SELECT unit_id FROM labels WHERE annotator_id = 'gold' AND field = 'raguard.role')"
        )
        do(f'judge run verdict_document -m scripted/hash --where "{judged_by_people}" --as {system} -d {db}')
        do(f"judge suite raguard -m scripted/hash --system {system} -d {db}", codes=(0, 2, 4))
    return db


def mirage(folder: Path) -> Path:
    """MIRAGE: three contexts, whose answers name the alias for some questions each."""
    db = folder / "mirage.db"
    names = [f"m{n}x" for n in range(QUESTIONS)]
    chunks = [
        {
            "mapped_id": name,
            "doc_name": f"Page of {name}",
            "doc_chunk": f"Chunk {k} about {name}.",
            "support": int(k == 1),
        }
        for name in names
        for k in range(5)
    ]
    questions = [
        {
            "source": ("popqa", "nq")[n % 2],
            "query_id": name,
            "query": f"Who is {name}?",
            "doc_name": f"Page of {name}",
            "answer": [f"alias {name}", "it"],
            "doc_url": f"https://example.org/{name}",
            "num_doc_labels": 1,
        }
        for n, name in enumerate(names)
    ]
    files = {
        "dataset": questions,
        "doc_pool": chunks,
        "oracle": {name: chunks[5 * n + 1] for n, name in enumerate(names)},
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    do(f"judge items import mirage {' '.join(str(folder / f'{name}.json') for name in files)} -d {db}")
    for system in ("a", "b"):
        # The first line that matches counts: with distracting chunks, with the oracle's chunk, then with no context.
        script = [
            {
                "match": match.format(name=name),
                "reply": pick(
                    (f"It must be alias {name}.", f"alias {name}", "written by nobody"), system, name, match
                ),
            }
            for match in ("Chunk 3 about {name}.", "Chunk 1 about {name}.", "Who is {name}?")
            for name in names
        ]
        path = write_lines(folder / f"mirage-{system}.jsonl", script)
        generate(db, "mirage_answer", system, ["none", "oracle", "fixed5"], f"--option script={path}", "file")
        do(
            f"judge suite mirage -m scripted/file --option script={path} --system {system} -d {db}",
            codes=(0, 4),
        )
    judged(db, "mirage_support")
    _, rows = exported(db, "mirage_support", "scripted/hash")
    lines = []
    for name in names:
        own = [row["passage_id"].split("/", 1)[1] for row in rows if row["item_id"] == f"mirage:{name}"]
        own.sort(key=lambda passage: chance("mirage", passage))
        lines += [f"{name} Q0 {passage} {rank} {20 - rank} own\n" for rank, passage in enumerate(own, 1)]
    (folder / "own.run").write_text("".join(lines))
    do(f"{imports('rankings')} --stage retrieve {folder / 'own.run'} -d {db}")
    top = ["top:2 --ranking own --stage retrieve"]
    generate(db, "mirage_answer", "b", top, f"--option script={path}", "file")
    return db


def urag(folder: Path) -> Path:
    """URAG: calibration and test questions with option probabilities, two systems, with and without the results."""
    db = folder / "urag.db"
    splits: dict[str, list[dict[str, Any]]] = {"calibration": [], "test": []}
    for n in range(2 * QUESTIONS):
        splits[("calibration", "test")[n % 2]].append(
            {
                "id": n,
                "question": f"Which of these is {n}?\nA. One {n}\nB. Two\nC. Three\nD. Four {n}\nAnswer:",
                "correct_answer": pick("ABCD", "correct", n),
                "options": ["A", "B", "C", "D"],
                "search_results": [f"Result about {n}.", f"Another about {n}."],
            }
        )
    path = folder / "urag.json"
    path.write_text(json.dumps({"name": "SciQ", "version": "1.0", **splits}))
    do(f"judge items import urag {path} -d {db}")
    for system in ("a", "b"):
        how = "--option logprobs=1"
        generate(db, "urag_choice", system, ["none", "all+noise:2", "all"], how)
        first = newest(db, "urag_choice", "scripted/hash")
        generate(db, "urag_aware", system, [f"all --shown {first}:{who}" for who in ("self", "wrong")], how)
        do(f"judge suite urag -m scripted/hash --option logprobs=1 --system {system} -d {db}")
    return db


def confirmation(folder: Path) -> Path:
    """Claim pairs with lists at two stages, stances of the listed passages, answers, and people on the pairs."""
    db = folder / "confirmation.db"
    pairs = [
        {
            "pair_id": f"p{n}",
            "original": f"Tea {n} helps sleep.",
            "counter": f"Tea {n} harms sleep.",
            "passages": [{"id": f"{n}-{k}", "text": f"Text {k} on tea {n}."} for k in range(4)],
        }
        for n in range(QUESTIONS)
    ]
    do(f"judge items import claim-pairs {write_lines(folder / 'pairs.jsonl', pairs)} --dataset c -d {db}")
    for stage, size in (("retrieve", 4), ("rerank", 2)):
        lines = []
        for n, side in itertools.product(range(QUESTIONS), ("original", "counter")):
            listed = sorted(range(4), key=lambda k: chance(stage, n, side, k))[:size]
            lines += [f"p{n}-{side} Q0 {n}-{k} {rank} {9 - rank} own\n" for rank, k in enumerate(listed, 1)]
        (folder / f"{stage}.run").write_text("".join(lines))
        do(f"{imports('rankings')} --stage {stage} {folder / f'{stage}.run'} -d {db}")
    answers = [
        {"id": f"p{n}-{side}", "system": system, "condition": "rag", "text": f"{system} about {side} {n}."}
        for system, n, side in itertools.product(("s", "t"), range(QUESTIONS), ("original", "counter"))
    ]
    do(f"{imports('answers')} {write_lines(folder / 'pair-answers.jsonl', answers)} -d {db}")
    for task in ("stance", "confirmation", "counter_check"):
        judged(db, task)
    people(db, "counter_check", ("ann", "bob", "cem"), 0.8)
    people(db, "stance", ("ann", "bob"), 0.4)
    return db


def relevance(folder: Path) -> Path:
    """Graded relevance with gold, two judges with and without probabilities, three people in a batch, two rankings."""
    db = folder / "relevance.db"
    questions: list[dict[str, Any]] = [
        {
            "id": f"q{n}",
            "question": f"What is known about {n}?",
            "topic": ("history", "science")[n % 2],
            "passages": [
                {
                    "id": f"{n}-{k}",
                    "text": f"Passage {k} of question {n}.",
                    "gold": {
                        "relevance_0_3": str(grade),
                        "relevance_grade": str(grade),
                        "relevant": "relevant" if grade else "not_relevant",
                    },
                }
                for k in range(8)
                for grade in [int(3 * chance("gold", n, k))]
            ],
        }
        for n in range(2 * QUESTIONS)
    ]
    do(f"judge items import jsonl {write_lines(folder / 'questions.jsonl', questions)} --dataset rel -d {db}")
    for name in ("one", "two", "three"):
        lines = []
        for row in questions:
            listed = sorted(
                row["passages"], key=lambda p: chance(name, p["id"]) - 0.3 * int(p["gold"]["relevance_grade"])
            )
            lines += [
                f"{row['id']} Q0 {p['id']} {rank} {20 - rank} {name}\n"
                for rank, p in enumerate(listed[:6], 1)
            ]
        (folder / f"{name}.run").write_text("".join(lines))
        do(f"{imports('rankings')} --stage retrieve {folder / f'{name}.run'} -d {db}")
    judged(db, "relevance_graded", kept=0.8)
    judged(db, "relevant", kept=0.8)
    for n, (task, names) in enumerate((("relevance_graded", "ann,bob,cem"), ("relevant", "ann"))):
        do(f"annotate batches new batch{n} {task} -n 120 --by label --annotators {names} --seed 3 -d {db}")
        people(db, task, names.split(","), 1.0, f"--batch batch{n} --skip-bad")
    return db


def stances(folder: Path) -> Path:
    """The shipped SciFact and NovelEval rows: real texts with gold, a stance judge and two people."""
    db = folder / "stances.db"
    data = Path("data").resolve()
    do(
        f"judge items import scifact {data / 'scifact' / 'claims.jsonl'} {data / 'scifact' / 'corpus.jsonl'} -d {db}"
    )
    judged(db, "stance")
    people(db, "stance", ("ann", "bob"), 0.9)
    return db


# Outputs -------------------------------------------------------------------------------------------------------------

HASH, PLANTED = "-m scripted/hash", "-m planted/strict"
BOTH = f"{HASH} {PLANTED}"
PARTS = {
    "garage": "eligibility grounding factuality relevant raf deflection attribution judged_attribution",
    "faithfulness": "claims alce trec abstention",
    "raguard": "zero rag oracle retrieval exam",
    "mirage": "adaptability retrieval",
    "urag": "sets classes ratio alone aware",
    "confirmation": "retrieval answers",
    "retrieval": "rankings order",
    "conformal": "sets classes",
}
"""The parts of each paper, scored one at a time."""

READINGS: dict[str, tuple[str, Sequence[str]]] = {
    "garage": (
        f"{HASH} --system a",
        (
            "--relevant-set answer+related",
            "--relevant-set marked",
            "--relevance judge",
            "--unparsed facts",
            "--citations human",
            "--citations marked",
            "--partial-support 0.5",
            "--by density --density-cuts 1/4,1/2",
            "--by density",
            "--by question_type",
            "--by topic_tag",
            "--reference majority",
            "--reference ann",
            "--reference gold",
            "--condition full",
            "--condition none",
        ),
    ),
    "faithfulness": (
        f"{HASH} --system a",
        (
            "--several first",
            "--by question_type",
            "--reference majority",
        ),
    ),
    "raguard": (
        f"{HASH} --system a --ranking own",
        (
            "--relevant supporting",
            "--roles judge",
            "--ranking other",
            "--by claim_verdict",
            "--by original_verdict",
        ),
    ),
    "mirage": (
        "-m scripted/file --system a",
        (
            "--support judge",
            "--by source",
            "--mixed retrieved:2",
        ),
    ),
    "urag": (
        f"{HASH} --system a",
        (
            "--aware self",
            "--aware wrong",
            "--context all+noise:2",
            "--calibrate-on b",
            "--alpha 0.2",
        ),
    ),
    "confirmation": (
        f"{HASH} --system s",
        (
            "--ranking own",
            "--reference majority",
        ),
    ),
    "retrieval": (
        f"{HASH} --task relevance_graded",
        (
            "--reference majority",
            "--reference ann",
            "--by topic",
            "--task relevant",
        ),
    ),
    "conformal": (
        f"{HASH} --task relevance_graded --reference majority",
        (
            "--reference gold",
            "--thresholds label",
            "--alpha 0.3",
            "--ambiguous FOLDER/ambiguous.csv",
            "--by topic",
            "--task relevant",
        ),
    ),
}
"""Paper -> the options with which it is scored, and the readings to add one at a time."""

GENERAL = (
    "",
    "--interval none",
    "--interval percentile",
    "--confidence 0.9",
    "--partial",
    "--dataset nothing",
)
ALONE = {
    "mirage": ("-m scripted/file --system b --mixed retrieved:2", "-m scripted/file --system b"),
    "urag": (f"{HASH} --system b",),
    "raguard": (f"{HASH} --system b --ranking other",),
}
"""Scores of other systems, which were asked otherwise."""

BOARDS = {
    "garage": (
        f"{HASH} --system all",
        f"{HASH} --system a --system b",
        f"{HASH} --system all --by question_type",
        f"{HASH} --system all --reference majority --part eligibility",
        f"{BOTH} --judges each --system a --part eligibility --part deflection",
    ),
    "faithfulness": (
        f"{HASH} --system all",
        f"{HASH} --system a --system c --part alce",
        f"{BOTH} --judges each --system a --part claims",
    ),
    "raguard": (
        f"{HASH} --system a --system b --ranking own",
        f"{HASH} --system all --ranking own --part zero",
    ),
    "mirage": ("-m scripted/file --system all", "-m scripted/file --system a --system b"),
    "urag": (f"{HASH} --system b --system a --aware self", f"{HASH} --system a --system b --part sets"),
    "confirmation": (f"{HASH} --system all", f"{BOTH} --judges each --system s"),
    "retrieval": (
        f"{HASH} --task relevance_graded --system all",
        f"{HASH} --task relevance_graded --system one --system two --measure nDCG@5",
        f"{BOTH} --judges each --task relevance_graded",
    ),
    "conformal": (f"{BOTH} --judges each --task relevance_graded --reference majority",),
}
JUDGES = {
    "garage": "--system a --part eligibility --part deflection",
    "faithfulness": "--system a --part claims",
    "confirmation": "--system s",
    "retrieval": "--task relevance_graded",
}
"""Papers that two judges have labelled for: their mean, each alone, and the difference."""

SYSTEM = {
    "garage": "--system a",
    "faithfulness": "--system a",
    "confirmation": "--system s",
}

REPORTS = {
    "relevance": ("--task relevance_graded", "--task relevant"),
    "garage": ("--task eligibility", "--task grounding"),
    "stances": ("--task stance",),
}
REPORT_OPTIONS = (
    "",
    "--short",
    "--curve",
    "--reference gold",
    "--reference majority",
    "--epsilon crowd --margin -0.2",
    "--threshold 0.5",
    "--annotators ann",
)
REPORT_FORMATS = ("html", "md", "json", "csv", "tex")
AGREEMENT = (
    "",
    "--measure per_class",
    "--measure dawid_skene",
    "--measure alt_test",
    "--interval percentile",
    "--reference gold",
    "--json",
    "-o FOLDER/measures.csv",
)


def outputs() -> Iterator[tuple[str, str]]:
    """All outputs: the study and the command, without -d."""
    for paper, (fixed, readings) in READINGS.items():
        study = {"retrieval": "relevance", "conformal": "relevance"}.get(paper, paper)
        lines = [f"{fixed} {more}" for more in (*GENERAL, *readings)]
        lines += [f"{fixed} --part {part}" for part in PARTS[paper].split()]
        lines += ["", f"{PLANTED}", *ALONE.get(paper, ())]
        if paper in JUDGES:
            lines += [f"{JUDGES[paper]} {more}" for more in (PLANTED, f"{BOTH} --judges mean")]
        for line, form in itertools.product(lines, ("", "--json", "-o FOLDER/s.csv")):
            yield study, f"judge score {paper} {line} {form}"
        for line, form in itertools.product(
            BOARDS[paper],
            (
                "",
                "--json",
                "-o FOLDER/b.html",
                "-o FOLDER/b.md",
                "-o FOLDER/b.tex",
                "-o FOLDER/b.csv",
            ),
        ):
            yield study, f"judge score {paper} {line} {form}"
        if paper in JUDGES:
            for more, form in itertools.product(
                ("", "--interval none", "--reference majority"), ("", "--json", "-o FOLDER/s.csv")
            ):
                yield (
                    study,
                    f"judge score compare scripted/hash planted/strict --paper {paper} {SYSTEM.get(paper, '')} {more} {form}",
                )
    for study, pair in (
        ("garage", "a b"),
        ("faithfulness", "a c"),
        ("raguard", "a b"),
        ("urag", "a b"),
        ("confirmation", "s t"),
    ):
        for form in ("", "--json", "-o FOLDER/s.csv"):
            yield study, f"judge score compare {pair} --axis system {HASH} --paper {study} {form}"
    for study, fields in REPORTS.items():
        for field, more, form in itertools.product(fields, REPORT_OPTIONS, REPORT_FORMATS):
            if more != "--short" or form in ("md", "tex"):
                yield study, f"annotate report {field} {more} -o FOLDER/report.{form}"
        for field, more in itertools.product(fields, AGREEMENT):
            yield study, f"annotate agreement {field} {more}"


def without_seconds(db: Path) -> None:
    """Give every call the same duration: reports print it, and it differs between two runs of one version."""
    with closing(sqlite3.connect(db)) as conn, conn:
        conn.execute("UPDATE judgements SET latency = 0.25 WHERE latency IS NOT NULL")


def write(db: Path, line: str, folder: Path) -> str:
    """The command's exit code, stdout, stderr and the files that it wrote, as one text."""
    for old in folder.iterdir():
        old.unlink()
    program, *words = shlex.split(line.replace("FOLDER", str(folder)))
    code, out, err = run(program, *words, "-d", str(db))
    text = f"{line}\nexit code {code}\n--- stdout\n{out}--- stderr\n{err}"
    for path in sorted(folder.iterdir()):
        text += f"--- {path.name}\n{path.read_text('utf-8')}"
    return text


def write_all(target: Path) -> int:
    """Make the studies, write every output into `target`, and return how many succeeded."""
    os.environ["COLUMNS"] = "160"
    for name in [name for name in os.environ if name.startswith(("JUDGE_", "ANNOTATE_"))]:
        del os.environ[name]
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.txt"):
        old.unlink()
    good = 0
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        studies = {}
        for make in (garage, raguard, mirage, urag, confirmation, relevance, stances):
            folder = root / make.__name__
            folder.mkdir()
            studies[make.__name__] = make(folder)
            print(f"made {make.__name__}", file=sys.stderr)
        (root / "faithfulness").mkdir()
        studies["faithfulness"] = faithfulness(root / "faithfulness", root / "garage")
        for db in studies.values():
            without_seconds(db)
        written = root / "written"
        written.mkdir()
        for number, (study, line) in enumerate(outputs()):
            text = normalised(write(studies[study], line, written), made)
            good += "\nexit code 0\n" in text
            name = re.sub(r"[^a-z0-9]+", "-", f"{study} {line}".replace("FOLDER", "").lower()).strip("-")
            (target / f"{number:04} {name[:120]}.txt").write_text(text, "utf-8")
            if number % 100 == 99:
                print(f"{number + 1} outputs", file=sys.stderr)
    return good


def compare(first: Path, second: Path) -> int:
    """Print what differs between two folders of outputs; return how many outputs do."""
    names = sorted({p.name for folder in (first, second) for p in folder.glob("*.txt")})
    if not names:
        sys.exit(f"no outputs in {first} or {second}")
    differing = 0
    for name in names:
        texts = [
            (folder / name).read_text("utf-8") if (folder / name).exists() else ""
            for folder in (first, second)
        ]
        if texts[0] != texts[1]:
            differing += 1
            before, after = (text.splitlines() for text in texts)
            lines = difflib.unified_diff(before, after, str(first), str(second), n=0, lineterm="")
            print(f"{name}:")
            print("\n".join(f"    {line[:300]}" for line in itertools.islice(lines, 12)))
    print(f"{differing} of {len(names)} outputs differ between {first} and {second}")
    return differing


def main() -> int:
    """Write, compare, or both. Returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write all outputs into this folder")
    parser.add_argument(
        "--against", type=Path, metavar="EARLIER", help="with --out: then compare with this folder"
    )
    parser.add_argument("--compare", type=Path, nargs=2, metavar="FOLDER", help="only compare two folders")
    given = parser.parse_args()
    if given.compare:
        return int(compare(*given.compare) > 0)
    if given.out is None:
        parser.error("--out FOLDER or --compare FOLDER FOLDER is needed")
    good = write_all(given.out)
    print(
        f"{len(list(given.out.glob('*.txt')))} outputs in {given.out}, {good} of them of commands that succeeded"
    )
    return int(given.against is not None and compare(given.against, given.out) > 0)


if __name__ == "__main__":
    # Started by its path, Python would find the script's folder first, not the checkout that is to be looked at.
    sys.path.insert(0, str(Path.cwd()))
    sys.exit(main())
