"""Write files in foreign formats by their specification, because the real ones may not be copied here.

Texts are made up and always the same.
"""

import ast
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

RAGUARD_CLAIMS = ("Claim ID", "Claim", "Verdict", "Document IDs", "Document Labels", "Original Verdict")
RAGUARD_DOCUMENTS = ("Document ID", "Title", "Full Text", "Claim ID", "Document Label", "Link")
GARAGE_CLASSES = ("ANSWER-THE-QUESTION", "RELATED-INFORMATION", "OUTDATED", "UNKNOWN", "")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Path:
    """A CSV file with a header."""
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_json(path: Path, value: Any) -> Path:
    """One JSON document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """One JSON value a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as handle:
        handle.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return path


def raguard_document(name: int, claim: str, label: str) -> dict[str, Any]:
    """A row of documents.csv; as in the real file, about a quarter has no text of its own."""
    body = (
        ("[Link Post]", "", "[deleted]")[name // 4 % 3] if name % 4 == 0 else f"Post {name} says so.\n\nAll."
    )
    return {
        "Document ID": name,
        "Title": f"Title {name}",
        "Full Text": body,
        "Claim ID": claim,
        "Document Label": label,
        "Link": f"https://example.org/{name}",
    }


def raguard_documents(path: Path, claims: Path) -> Path:
    """documents.csv for every document that a claims.csv lists."""
    rows = []
    with claims.open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            ids, labels = ast.literal_eval(row["Document IDs"]), ast.literal_eval(row["Document Labels"])
            rows += [raguard_document(i, row["Claim ID"], w) for i, w in zip(ids, labels, strict=True)]
    return write_csv(path, RAGUARD_DOCUMENTS, rows)


def raguard(folder: Path) -> tuple[Path, Path]:
    """claims.csv and documents.csv with three claims and six documents."""
    claims = write_csv(
        folder / "claims.csv",
        RAGUARD_CLAIMS,
        [
            _raguard_claim(1, "Taxes rose.", "True", {1: "supporting", 2: "misleading", 3: "unrelated"}),
            _raguard_claim(2, 'He said "no".', "False", {4: "unrelated", 5: "supporting"}),
            _raguard_claim(3, "Wages fell.", "False", {6: "misleading"}),
        ],
    )
    return claims, raguard_documents(folder / "documents.csv", claims)


def _raguard_claim(name: int, claim: str, verdict: str, documents: Mapping[int, str]) -> dict[str, Any]:
    return {
        "Claim ID": name,
        "Claim": claim,
        "Verdict": verdict,
        "Document IDs": str(list(documents)),
        "Document Labels": str(list(documents.values())),
        "Original Verdict": "half-true" if verdict == "True" else "mostly-false",
    }


def garage_row(name: str, classes: Sequence[str], *, sufficient: bool = True) -> dict[str, Any]:
    """A GaRAGe row with one passage for each class; "" is an irrelevant one, "?" an unlabelled one."""
    size = len(classes)
    return {
        "sample_id": name,
        "question_date": "2024-11-02",
        "grounding": [
            {
                f"cite_{n}": f"Passage {n} of {name}.",
                "age": f"{n} days",
                "date": "2024-10-01",
                "provider": who,
            }
            for n, who in zip(range(1, size + 1), ("web", "ent") * size, strict=False)
        ],
        "question": f"What is new in {name}?",
        "question_valid": "VALID",
        "question_type": "Fast-Changing",
        "evidence_relevant": ["NO" if c == "" else "YES" for c in classes],
        "evidence_correct": [c.replace("?", "") for c in classes],
        "evidence_cited": ["YES" if sufficient and c.startswith("ANSWER") else "NO" for c in classes],
        "answer_generate": "It is so [cite_1]." if sufficient else "",
        "answer_related_info": "",
        "answer_validate": "It is so [cite_1]." if sufficient else "",
        "comments": "",
        "question_tag": "web",
        "topic_tag": "ent",
    }


def garage(path: Path) -> Path:
    """Two answerable rows and one with insufficient grounding."""
    rows = [
        garage_row("g1", GARAGE_CLASSES),
        garage_row("g2", ["ANSWER-THE-QUESTION", "?"]),
        garage_row("g3", ["RELATED-INFORMATION", ""], sufficient=False),
    ]
    return write_jsonl(path, rows)


def mirage_question(name: str, query: str, answers: Sequence[str]) -> dict[str, Any]:
    """An element of dataset.json."""
    return {
        "source": "popqa",
        "query_id": name,
        "query": query,
        "doc_name": f"Page of {name}",
        "answer": list(answers),
        "doc_url": f"https://example.org/{name}",
        "num_doc_labels": 1,
    }


def mirage_chunk(name: str, text: str, support: int) -> dict[str, Any]:
    """An element of doc_pool.json."""
    return {"mapped_id": name, "doc_name": f"Page of {name}", "doc_chunk": text, "support": support}


def mirage(folder: Path, questions: int = 3) -> tuple[Path, Path, Path]:
    """dataset.json, doc_pool.json (five chunks a question, the second supports) and oracle.json."""
    names = [f"m{n}" for n in range(questions)]
    chunks = [mirage_chunk(n, f"Chunk {k} about {n}.", int(k == 1)) for n in names for k in range(5)]
    return (
        write_json(folder / "dataset.json", [mirage_question(n, f"Who is {n}?", [n, "it"]) for n in names]),
        write_json(folder / "doc_pool.json", chunks),
        write_json(folder / "oracle.json", {n: chunks[5 * i + 1] for i, n in enumerate(names)}),
    )


def ramdocs_as_mirage(source: Path, folder: Path) -> tuple[Path, Path, Path]:
    """RAMDocs (one document a row) as MIRAGE files: correct documents support the answer."""
    questions: dict[str, dict[str, Any]] = {}
    pool: list[dict[str, Any]] = []
    oracle: dict[str, dict[str, Any]] = {}
    for line in source.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        name = row["id"].rsplit("-", 1)[0]
        questions.setdefault(name, mirage_question(name, row["question"], row["gold_answers"]))
        chunk = mirage_chunk(name, row["evidence"], int(row["label"] == "supporting"))
        pool.append(chunk)
        if chunk["support"]:
            oracle.setdefault(name, chunk)
    return (
        write_json(folder / "dataset.json", list(questions.values())),
        write_json(folder / "doc_pool.json", pool),
        write_json(folder / "oracle.json", oracle),
    )


def nomiracl_as_garage(source: Path, path: Path) -> Path:
    """NoMIRACL's questions and passages as GaRAGe rows: unanswerable ones have insufficient grounding.

    Which passage answers is not known; where the question is answerable a passage stands as the answer when it shares the
    most words with the question, and the others as related: made up, to fill the format.
    """
    rows = []
    for line in source.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        answerable = row["label"] == "answerable"
        words = set(row["question"].lower().split())
        shared = [len(words & set(text.lower().split())) for text in row["passages"]]
        best = shared.index(max(shared)) if answerable and shared else -1
        classes = ["ANSWER-THE-QUESTION" if n == best else "RELATED-INFORMATION" for n in range(len(shared))]
        made = garage_row(row["id"].replace("#", "-"), classes, sufficient=answerable)
        for n, text in enumerate(row["passages"]):
            made["grounding"][n][f"cite_{n + 1}"] = text
        made["question"] = row["question"]
        made["question_type"] = "answerable" if answerable else "unanswerable"
        rows.append(made)
    return write_jsonl(path, rows)


def nomiracl_answers(source: Path, path: Path) -> Path:
    """What NoMIRACL's models answered, one answer a row, for `judge systems import`."""
    rows = []
    for line in source.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for system, text in row["model_outputs"].items():
            name = row["id"].replace("#", "-")
            rows.append({"id": name, "system": system, "condition": "vanilla", "text": text})
    return write_jsonl(path, rows)


def urag_row(name: int, correct: str = "B") -> dict[str, Any]:
    """A question with its options in the text, and two search results."""
    return {
        "id": name,
        "question": f"Which of these is {name}?\nA. One\nB. Two, or\n   more\nC. Vitamin A. and C\nAnswer:",
        "correct_answer": correct,
        "options": ["A", "B", "C"],
        "search_results": [
            f"Result about {name}.",
            {"title": "T", "text": "More.", "url": "https://example.org"},
        ],
    }


def urag(path: Path) -> Path:
    """Two questions to calibrate on and one to test."""
    splits = {"calibration": [urag_row(0), urag_row(1, "C")], "test": [urag_row(0)]}
    return write_json(path, {"name": "SciQ", "version": "1.0", **splits})
