"""Planted studies, recomputed from the papers' texts by plain loops that share no code with the product.

Each study has two imported systems (`a` and `b`), a system that delivers only a part (`part`), and a run of our own
(`scripted/hash`). The plain loops follow section 4 of RAGuard, section 3 of MIRAGE, and section 4.4 of URAG.
"""

import math
import random
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.formats import mirage_chunk, mirage_question, write_json
from tests.suites.helpers import Judge, answers, items, outputs, ranking, score

OWN = "scripted/hash"
K = (1, 3)
SPELLED = (
    "{}",
    "{}.",
    "**{}**",
    "The claim is {}.",
    "Answer: {}",
    "I think it is {}",
    "not {}",
    "{}, but only partly",
)
"""The first five of these are answers."""
N_ANSWERS = 5


def close(measured: float | None, expected: float | None, what: Any) -> int:
    """Check one value. Return 1, to count the values."""
    assert (measured is None) == (expected is None), (what, measured, expected)
    assert expected is None or measured == pytest.approx(expected, abs=1e-12), what
    return 1


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def dcg(grades: list[float]) -> float:
    return sum(grade / math.log2(rank + 2) for rank, grade in enumerate(grades))


def stored(query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect("study.db") as conn:
        return conn.execute(query).fetchall()


@pytest.fixture
def rng() -> random.Random:
    return random.Random(48)


def test_raguard(judge: Judge, tmp_path: Path, rng: random.Random) -> None:
    claims = [f"c{n:02}" for n in range(19)]
    gold = {c: rng.choice(("true", "false")) for c in claims}
    roles = {
        f"{c}/d{n}": rng.choice(("supporting", "misleading", "irrelevant"))
        for c in claims
        for n in range(rng.randint(1, 4))
    }
    rows = [
        {
            "id": c,
            "claim": f"Claim {c}.",
            "gold": {"claim_verdict": gold[c]},
            "passages": [
                {
                    "id": d.partition("/")[2],
                    "title": f"T {d}",
                    "text": f"Text {d}.",
                    "gold": {"raguard.role": role},
                }
                for d, role in roles.items()
                if d.startswith(f"{c}/")
            ],
        }
        for c in claims
    ]
    items(judge, tmp_path, "r", rows)
    texts: dict[tuple[str, str, str], str] = {}
    lists: dict[str, dict[str, list[str]]] = {}
    given: list[dict[str, str]] = []
    for system in ("a", "b", "part"):
        delivered = claims if system != "part" else claims[:7]
        lists[system] = {c: rng.sample(sorted(roles), rng.randint(1, 4)) for c in delivered}
        for condition in ("zero-context", "top-1", "top-3"):
            for c in delivered:
                form = rng.choice(SPELLED)
                texts[system, condition, c] = form.format(rng.choice(("True", "false")))
                given.append(
                    {"id": c, "system": system, "condition": condition, "text": texts[system, condition, c]}
                )
        for d in roles:
            c = d.partition("/")[0]
            if c in delivered:
                texts[system, "oracle", d] = rng.choice(SPELLED).format(rng.choice(("true", "FALSE")))
                given.append(
                    {
                        "id": c,
                        "system": system,
                        "condition": "oracle",
                        "document": f"r:{d}",
                        "text": texts[system, "oracle", d],
                    }
                )
    outputs(judge, tmp_path, given)
    for system, of in lists.items():
        ranking(judge, tmp_path, system, {c: [f"r:{d}" for d in ds] for c, ds in of.items()})
    lists[OWN] = {c: rng.sample(sorted(roles), 3) for c in claims[3:]}
    ranking(judge, tmp_path, "bm25s", {c: [f"r:{d}" for d in ds] for c, ds in lists[OWN].items()})
    words = ("--k", "1,3", "--part", "zero", "--part", "rag", "--part", "oracle", "--part", "retrieval")
    for condition, more in (
        ("none", ()),
        ("top:1", ("--ranking", "bm25s")),
        ("top:3", ("--ranking", "bm25s")),
    ):
        judge("answers", "generate", "verdict", "-m", OWN, "--context", condition, *more)
    judge("run", "verdict_document", "-m", OWN)

    def right(text: str | None, c: str) -> float:
        """1 if the text is one of the answers above and equals the gold verdict. A missing text is wrong."""
        for form in SPELLED[:N_ANSWERS]:
            for verdict in ("true", "false"):
                if text is not None and text.lower() == form.format(verdict).lower():
                    return float(verdict == gold[c])
        return 0.0

    for unit, context, reply in stored(
        "SELECT j.unit_id, json_extract(r.options, '$.context'), j.reply FROM judgements AS j JOIN runs AS r USING (run_id) "
        f"WHERE r.model = '{OWN}'"
    ):
        name = (
            "oracle"
            if context is None
            else "zero-context"
            if context == "none"
            else f"top-{context.split(':')[1]}"
        )
        texts[OWN, name, unit.removeprefix("r:")] = reply
    n = 0
    for system in ("a", "b", "part", OWN):
        result = score(judge, "raguard", "--system", system, *words)
        zero = [right(texts.get((system, "zero-context", c)), c) for c in claims]
        accuracy = {"zero": zero}
        for k in K:
            accuracy[f"rag_{k}"] = [right(texts.get((system, f"top-{k}", c)), c) for c in claims]
        accuracy["oracle"] = [right(texts.get((system, "oracle", d)), d.partition("/")[0]) for d in roles]
        misleading = [d for d, role in roles.items() if role == "misleading"]
        accuracy["misleading"] = [
            right(texts.get((system, "oracle", d)), d.partition("/")[0]) for d in misleading
        ]
        base = mean(zero)
        for name, values in accuracy.items():
            n += close(result.value(f"accuracy_{name}"), mean(values), (system, name))
            if name != "zero" and base is not None:
                drop = (mean(values) or 0.0) - base
                n += close(result.value(f"drop_{name}"), drop, (system, name))
                n += close(
                    result.value(f"drop_relative_{name}"), drop / base if base else None, (system, name)
                )
                about = (
                    set(claims)
                    if "rag" in name
                    else {d.partition("/")[0] for d in (roles if name == "oracle" else misleading)}
                )
                same = mean([z for z, c in zip(zero, claims, strict=True) if c in about]) or 0.0
                n += close(
                    result.value(f"drop_same_claims_{name}"), (mean(values) or 0.0) - same, (system, name)
                )
        for k in K:
            top = {c: lists[system].get(c, [])[:k] for c in claims}
            bad = {
                "own": {
                    c: [d for d in top[c] if roles[d] == "misleading" and d.startswith(f"{c}/")]
                    for c in claims
                },
                "any": {c: [d for d in top[c] if roles[d] == "misleading"] for c in claims},
            }
            owning = [c for c in claims if any(d.startswith(f"{c}/") for d in misleading)]
            for whose, of_claim in bad.items():
                for over, some in (("owning", owning), ("all", claims)):
                    expected = mean([float(bool(of_claim[c])) for c in some])
                    n += close(
                        result.value(f"misleading_retrieval_recall@{k}[{whose}/{over}]"),
                        expected,
                        (system, k, whose),
                    )
                exposure = mean([len(of_claim[c]) / len(top[c]) if top[c] else 0.0 for c in claims])
                n += close(result.value(f"misleading_exposure@{k}[{whose}]"), exposure, (system, k, whose))
            hits = {c: [float(d.startswith(f"{c}/")) for d in top[c]] for c in claims}
            size = {c: sum(d.startswith(f"{c}/") for d in roles) for c in claims}
            n += close(
                result.value(f"associated_precision@{k}"),
                mean([sum(hits[c]) / k for c in claims]),
                (system, k),
            )
            n += close(
                result.value(f"associated_recall@{k}"),
                mean([sum(hits[c]) / size[c] for c in claims]),
                (system, k),
            )
            ndcg = [dcg(hits[c]) / dcg([1.0] * min(k, size[c])) for c in claims]
            n += close(result.value(f"associated_ndcg@{k}"), mean(ndcg), (system, k))
    assert n >= 120


def test_mirage(judge: Judge, tmp_path: Path, rng: random.Random) -> None:
    names = [f"q{n}" for n in range(15)]
    aliases = {q: [f"alpha{q}", f"Beta {q}"] for q in names}
    chunks = [
        mirage_chunk(q, f"Chunk {n} of {q}.", int(rng.random() < 0.4 or n == 1))
        for q in names
        for n in range(5)
    ]
    judge(
        *("items", "import", "mirage"),
        write_json(
            tmp_path / "dataset.json", [mirage_question(q, f"Who is {q}?", aliases[q]) for q in names]
        ),
        write_json(tmp_path / "doc_pool.json", chunks),
        write_json(tmp_path / "oracle.json", {q: chunks[5 * n + 1] for n, q in enumerate(names)}),
    )
    passages: dict[str, dict[str, int]] = defaultdict(dict)
    for item, passage, text in stored("SELECT item_id, passage_id, text FROM passages"):
        support = next(c["support"] for c in chunks if c["doc_chunk"] == text)
        passages[item.partition(":")[2]][passage] = int(support)
    texts: dict[tuple[str, str, str], str] = {}
    lists: dict[str, dict[str, list[str]]] = {}
    for system in ("a", "b", "part"):
        for condition in ("base", "oracle", "mixed", "retrieved-3"):
            for q in names if system != "part" or condition in ("base", "oracle") else names[:5]:
                texts[system, condition, q] = rng.choice(
                    (f"It is ALPHA{q}.", f"beta {q}", "no idea", "", f"the alpha {q}", f"x beta {q} y")
                )
        lists[system] = {
            q: rng.sample(sorted(passages[q]), 3) for q in (names if system != "part" else names[:5])
        }
        ranking(judge, tmp_path, system, lists[system])
    answers(judge, tmp_path, [(q, s, c, text) for (s, c, q), text in texts.items()])
    for context in ("none", "oracle", "fixed5"):
        judge("answers", "generate", "mirage_answer", "-m", OWN, "--context", context)
    paper_name = {"none": "base", "oracle": "oracle", "fixed5": "mixed"}
    for unit, context, reply in stored(
        "SELECT j.unit_id, json_extract(r.options, '$.context'), j.reply FROM judgements AS j JOIN runs AS r USING (run_id)"
    ):
        texts[OWN, paper_name[context], unit.partition(":")[2]] = reply

    def right(system: str, condition: str, q: str) -> int:
        text = texts.get((system, condition, q), "").lower()
        return int(any(alias.lower() in text for alias in aliases[q]))

    def overlap(system: str, condition: str, q: str) -> float:
        tokens = texts.get((system, condition, q), "").lower().split()
        best = 0.0
        for alias in aliases[q]:
            wanted = alias.lower().split()
            common = sum(min(tokens.count(t), wanted.count(t)) for t in set(wanted))
            best = max(best, 2 * common / (len(tokens) + len(wanted)))
        return best

    n = 0
    for system in ("a", "b", "part", OWN):
        for mixed, condition in (("fixed5", "mixed"), ("retrieved-3", "retrieved-3")):
            if system == OWN and condition != "mixed":
                continue
            part = ("--part", "adaptability") if system == OWN else ()
            result = score(judge, "mirage", "--system", system, "--mixed", mixed, *part)
            cells: dict[str, float] = dict.fromkeys(("nv", "ca", "ci", "cm"), 0.0)
            for q in names:
                b, o, m = (right(system, c, q) for c in ("base", "oracle", condition))
                cells[("ca" if m else "nv") if o else ("cm" if b else "ci")] += 1 / len(names)
            expected = {
                "noise_vulnerability": cells["nv"],
                "context_acceptability": cells["ca"],
                "context_insensitivity": cells["ci"],
                "context_misinterpretation": cells["cm"],
                "total": -cells["nv"] + cells["ca"] - cells["ci"] - cells["cm"],
            }
            for name, of in (("base", "base"), ("oracle", "oracle"), ("mixed", condition)):
                expected[f"accuracy_{name}"] = mean([float(right(system, of, q)) for q in names]) or 0.0
                expected[f"token_f1_{name}"] = mean([overlap(system, of, q) for q in names]) or 0.0
            for k in (1, 3, 5) if system != OWN else ():
                tops = {q: [float(passages[q][p]) for p in lists[system].get(q, [])[:k]] for q in names}
                totals = {q: sum(passages[q].values()) for q in names}
                precision = {q: sum(tops[q]) / k for q in names}
                recall = {q: sum(tops[q]) / totals[q] for q in names}
                expected[f"precision@{k}"] = mean(list(precision.values())) or 0.0
                expected[f"recall@{k}"] = mean(list(recall.values())) or 0.0
                f1 = [
                    2 * p * r / (p + r) if p + r else 0.0
                    for p, r in zip(precision.values(), recall.values(), strict=True)
                ]
                expected[f"f1@{k}"] = mean(f1) or 0.0
                whole = {q: sorted(passages[q].values(), reverse=True) for q in names}
                expected[f"ndcg@{k}"] = (
                    mean([dcg(tops[q]) / dcg([float(g) for g in whole[q][:k]]) for q in names]) or 0.0
                )
                listed = {q: [float(passages[q][p]) for p in lists[system].get(q, [])] for q in names}
                ideal = {q: dcg(sorted(listed[q], reverse=True)[:k]) for q in names}
                expected[f"ndcg_retrieved@{k}"] = (
                    mean([dcg(tops[q]) / ideal[q] if ideal[q] else 0.0 for q in names]) or 0.0
                )
            for name, value in expected.items():
                n += close(result.value(name), value, (system, mixed, name))
    assert n >= 130


def test_urag(judge: Judge, tmp_path: Path, rng: random.Random) -> None:
    names = [f"q{n:02}" for n in range(30)]
    correct = {q: rng.choice("ABCD") for q in names}
    rows = [
        {
            "id": q,
            "question": f"Which, {q}?",
            "options": dict(zip("ABCD", ("w", "x", "y", "z"), strict=True)),
            "correct": correct[q],
            "split": "calibration" if n % 2 else "test",
            "passages": [{"text": f"About {q}."}],
        }
        for n, q in enumerate(names)
    ]
    items(judge, tmp_path, "u", rows)
    masses: dict[tuple[str, str, str], dict[str, float]] = {}
    for system in ("a", "b", "part"):
        for condition in ("plain", "llm-only"):
            # `part` delivers all questions for calibration, and two thirds of the others.
            for n, q in enumerate(names):
                if system == "part" and n % 6 == 0:
                    continue
                raw = [rng.random() ** 2 + 0.01 for _ in "ABCD"]
                raw["ABCD".index(correct[q])] += rng.random() * (1.2 if condition == "plain" else 0.3)
                masses[system, condition, q] = {x: v / sum(raw) for x, v in zip("ABCD", raw, strict=True)}
    outputs(
        judge,
        tmp_path,
        [{"id": q, "system": s, "condition": c, "probabilities": p} for (s, c, q), p in masses.items()],
    )
    alpha, n = 0.2, 0
    for system in ("a", "b", "part"):
        result = score(judge, "urag", "--system", system, "--alpha", str(alpha))
        of = {c: _conformal(masses, system, c, names, correct, alpha) for c in ("plain", "llm-only")}
        for name, values in of["plain"].items():
            n += close(result.value(name), mean(list(values.values())), (system, name))
        for name in ("accuracy", "coverage", "set_size"):
            alone, plain = of["llm-only"][name], of["plain"][name]
            n += close(result.value(f"{name}_without"), mean(list(alone.values())), (system, name))
            both = [q for q in plain if q in alone]
            below = sum(alone[q] for q in both)
            ratio = sum(plain[q] for q in both) / below if below else None
            n += close(result.value(f"{name}_ratio"), ratio, (system, name))
            for right, group in ((1.0, "alone_right"), (0.0, "alone_wrong")):
                some = [plain[q] for q in plain if of["llm-only"]["accuracy"].get(q) == right]
                n += close(result.value(f"{name}[{group}]"), mean(some), (system, name, group))
            for letter in "ABCD":
                some = [value for q, value in plain.items() if correct[q] == letter]
                n += close(result.value(f"{name}[{letter}]"), mean(some), (system, name, letter))
    assert n >= 90


def _conformal(
    masses: Mapping[tuple[str, str, str], Mapping[str, float]],
    system: str,
    condition: str,
    names: list[str],
    correct: Mapping[str, str],
    alpha: float,
) -> dict[str, dict[str, float]]:
    """Return {measure: {test question: value}}. A missing answer is wrong, and has no set."""
    lac: Callable[[Mapping[str, float], str], float] = lambda p, x: 1 - p[x]  # noqa: E731
    aps: Callable[[Mapping[str, float], str], float] = lambda p, x: sum(v for v in p.values() if v >= p[x])  # noqa: E731
    fit = [q for n, q in enumerate(names) if n % 2 and (system, condition, q) in masses]
    test = [q for n, q in enumerate(names) if not n % 2]
    sets: dict[str, dict[str, list[str]]] = {}
    for kind, nonconformity in (("lac", lac), ("aps", aps)):
        scores = sorted(nonconformity(masses[system, condition, q], correct[q]) for q in fit)
        k = math.ceil((len(scores) + 1) * (1 - alpha) - 1e-9)
        limit = scores[k - 1] if k <= len(scores) else math.inf
        sets[kind] = {
            q: [x for x in "ABCD" if nonconformity(masses[system, condition, q], x) <= limit + 1e-12]
            for q in test
            if (system, condition, q) in masses
        }
    result: dict[str, dict[str, float]] = {"accuracy": {}}
    for q in test:
        p = masses.get((system, condition, q))
        result["accuracy"][q] = float(p is not None and max(p, key=lambda x: p[x]) == correct[q])
    for kind, of in sets.items():
        result[f"coverage_{kind}"] = {q: float(correct[q] in found) for q, found in of.items()}
        result[f"set_size_{kind}"] = {q: float(len(found)) for q, found in of.items()}
    for name in ("coverage", "set_size"):
        both = [result[f"{name}_{kind}"] for kind in ("lac", "aps")]
        result[name] = {q: (both[0][q] + both[1][q]) / 2 for q in both[0]}
    return result
