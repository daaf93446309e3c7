"""Planted studies with judges' labels, recomputed from GaRAGe's and ConfirmBiasRAG's texts by plain loops.

Two systems deliver all answers, and a third delivers only a part. Some answers are empty, and the judge's replies for
some units cannot be parsed.
"""

import random
from pathlib import Path

import pytest

from tests.formats import garage_row, write_jsonl
from tests.suites.helpers import Judge, answers, give, items, ranking, score
from tests.suites.test_recomputed import close, mean

CLASSES = ("ANSWER-THE-QUESTION", "RELATED-INFORMATION", "OUTDATED", "UNKNOWN", "")
GROUNDING = ("supported", "supported", "no_rad", "unsupported", "contradictory", "unparsed")
GOOD = ("supported", "no_rad")
ELIGIBILITY = ("No Issues", "Minor Issue(s)", "Major Issue(s)", "unparsed")


@pytest.fixture
def rng() -> random.Random:
    return random.Random(7)


def f1(p: float | None, r: float | None) -> float | None:
    return None if p is None or r is None else 2 * p * r / (p + r) if p + r else 0.0


def test_garage(judge: Judge, tmp_path: Path, rng: random.Random) -> None:
    questions = [f"g{n:02}" for n in range(24)]
    classes = {q: [rng.choice(CLASSES) for _ in range(3)] for q in questions}
    enough = {q: rng.random() < 0.8 for q in questions}
    rows = [garage_row(q, classes[q], sufficient=enough[q]) for q in questions]
    # A row is insufficient if nobody cited a passage; an answerable one has an answer.
    judge("items", "import", "garage", write_jsonl(tmp_path / "garage.jsonl", rows))
    human = {q: sorted(rng.sample((1, 2, 3), rng.randint(1, 2))) for q in questions if enough[q]}
    given = [
        (q, "human", "full", f"It is so {''.join(f'[cite_{n}]' for n in cited)}.")
        for q, cited in human.items()
    ]
    # Each sentence is the list of the passages that it cites; 9 is no passage.
    texts: dict[tuple[str, str], list[list[int]]] = {}
    for system in ("a", "b", "part"):
        for n, q in enumerate(questions):
            if system == "part" and n % 3 == 0:
                continue
            size = 0 if rng.random() < 0.1 else rng.randint(1, 3)
            texts[system, q] = [sorted(rng.sample((1, 2, 3, 9), rng.randint(0, 2))) for _ in range(size)]
            text = " ".join(
                f"Statement {i} of {q} holds{''.join(f' [cite_{c}]' for c in cited)}."
                for i, cited in enumerate(texts[system, q])
            )
            given.append((q, system, "full", text))
    answers(judge, tmp_path, given)
    labels: dict[str, dict[str, str]] = {
        task: {} for task in ("eligibility", "deflection", "grounding", "grounding_relevant", "citation_each")
    }
    for (system, q), sentences in texts.items():
        unit = f"garage:{q}@{system}@full"
        if sentences:
            labels["eligibility"][unit] = rng.choice(ELIGIBILITY)
            labels["deflection"][unit] = rng.choice(("missing", "attempted", "attempted"))
        for i, cited in enumerate(sentences):
            labels["grounding"][f"{unit}#s{i}"] = rng.choice(GROUNDING)
            labels["grounding_relevant"][f"{unit}#s{i}"] = rng.choice(GROUNDING)
            for c in cited:
                if c != 9:
                    labels["citation_each"][f"{unit}#s{i}/cite_{c}"] = rng.choice(
                        ("full", "full", "partial", "none")
                    )
    for task, of in labels.items():
        give(task, of)
    n = 0
    for system in ("a", "b", "part"):
        result = score(judge, "garage", "--system", system, "--partial")
        ok = [q for q in questions if enough[q]]

        def grounded(q: str, task: str, system: str = system) -> float | None:
            """1 if all sentences are supported or need no support. An empty or missing answer is 0."""
            each = [
                labels[task][f"garage:{q}@{system}@full#s{i}"] for i in range(len(texts.get((system, q), [])))
            ]
            if not each:
                return 0.0
            return None if "unparsed" in each else float(all(label in GOOD for label in each))

        e: dict[str, float | None] = {}
        f: dict[str, float | None] = {}
        r: dict[str, float | None] = {}
        for q in ok:
            unit, sentences = f"garage:{q}@{system}@full", texts.get((system, q), [])
            word = labels["eligibility"].get(unit)
            e[q] = 0.0 if not sentences else None if word == "unparsed" else float(word != "Major Issue(s)")
            f[q], r[q] = grounded(q, "grounding"), grounded(q, "grounding_relevant")
            if not classes[q].count("ANSWER-THE-QUESTION") and sentences:
                each = [labels["grounding"][f"{unit}#s{i}"] for i in range(len(sentences))]
                r[q] = None if "unparsed" in each else float(all(label == "no_rad" for label in each))
            if f[q] is None or r[q] is None:
                f[q] = r[q] = None
        known = [q for q in ok if f[q] is not None]
        both = [q for q in known if e[q] is not None]
        expected = {
            "eligibility": mean([v for v in e.values() if v is not None]),
            "unadjusted_factuality": mean([f[q] or 0.0 for q in known]),
            "unadjusted_raf": mean([r[q] or 0.0 for q in known]),
            "factuality": mean([(e[q] or 0.0) * (f[q] or 0.0) for q in both]),
            "raf": mean([(e[q] or 0.0) * (r[q] or 0.0) for q in both]),
            "contradictory_labels": mean([float(r[q] == 1 and f[q] == 0) for q in known]),
        }
        expected["over_summarisation_gap"] = (expected["factuality"] or 0.0) - (expected["raf"] or 0.0)
        declines = {
            q: float(labels["deflection"].get(f"garage:{q}@{system}@full") == "missing") for q in questions
        }
        expected["deflection_true_positive_rate"] = mean([declines[q] for q in questions if not enough[q]])
        expected["deflection_false_positive_rate"] = mean([declines[q] for q in ok])
        lines = [
            (q, i, labels["grounding"][f"garage:{q}@{system}@full#s{i}"])
            for q in ok
            for i in range(len(texts.get((system, q), [])))
        ]
        read = [label for _, _, label in lines if label != "unparsed"]
        for label in ("supported", "unsupported", "contradictory", "no_rad"):
            expected[f"sentence_{label}"] = mean([float(x == label) for x in read])
        expected["sentence_grounded"] = mean([float(x in GOOD) for x in read])
        expected |= cited_measures(ok, {q: texts.get((system, q), []) for q in ok}, human)
        expected |= judged_measures(ok, system, texts, labels, lines)
        for name, value in expected.items():
            n += close(result.value(name), value, (system, name))
    assert n >= 84


def cited_measures(
    ok: list[str], texts: dict[str, list[list[int]]], human: dict[str, list[int]]
) -> dict[str, float | None]:
    """Attribution by the cited ids. The passages that a sentence invents count once for each answer."""
    mine = {q: {c for s in texts[q] for c in s if c != 9} for q in ok}
    false = {q: int(any(9 in s for s in texts[q])) for q in ok}
    hits = {q: len(mine[q] & set(human[q])) for q in ok}
    n_given = {q: len(mine[q]) + false[q] for q in ok}
    p = sum(hits.values()) / sum(n_given.values())
    r = sum(hits.values()) / sum(len(human[q]) for q in ok)
    p_macro = mean([hits[q] / n_given[q] for q in ok if n_given[q]])
    r_macro = mean([hits[q] / len(human[q]) for q in ok])
    return {
        "attribution_precision_micro": p,
        "attribution_recall_micro": r,
        "attribution_f1_micro": f1(p, r),
        "attribution_precision_macro": p_macro,
        "attribution_recall_macro": r_macro,
        "attribution_f1_macro": f1(p_macro, r_macro),
        "attribution_invented_share": sum(false.values()) / sum(n_given.values()),
    }


def judged_measures(
    ok: list[str],
    system: str,
    texts: dict[tuple[str, str], list[list[int]]],
    labels: dict[str, dict[str, str]],
    lines: list[tuple[str, int, str]],
) -> dict[str, float | None]:
    """Attribution by the judge: sentences that need no citation are left out."""
    support: dict[tuple[str, int], list[float]] = {
        (q, i): [
            float(labels["citation_each"].get(f"garage:{q}@{system}@full#s{i}/cite_{c}") == "full")
            for c in texts[system, q][i]
        ]
        for q, i, label in lines
        if label != "no_rad"
    }
    every = [v for of in support.values() for v in of]
    invented = sum(9 in texts[system, q][i] for q, i in support)
    best = {key: max(of, default=0.0) for key, of in support.items()}
    p, r = mean(every), mean(list(best.values()))
    by_answer = {q: [key for key in support if key[0] == q] for q in ok}
    p_macro = mean(
        [mean(values) or 0.0 for q in ok if (values := [v for key in by_answer[q] for v in support[key]])]
    )
    r_macro = mean([mean([best[key] for key in keys]) or 0.0 for keys in by_answer.values() if keys])
    return {
        "judged_attribution_precision_micro": p,
        "judged_attribution_recall_micro": r,
        "judged_attribution_f1_micro": f1(p, r),
        "judged_attribution_precision_macro": p_macro,
        "judged_attribution_recall_macro": r_macro,
        "judged_attribution_f1_macro": f1(p_macro, r_macro),
        "judged_attribution_invented_share": invented / len(every),
    }


def test_confirmation(judge: Judge, tmp_path: Path, rng: random.Random) -> None:
    pairs = [f"p{n}" for n in range(10)]
    sides = ("original", "counter")
    rows = [
        {
            "id": f"{p}-{side}",
            "question_id": p,
            "claim": f"Claim {p} {side}.",
            "pair_id": p,
            "polarity": side,
            "passages": [
                {"id": f"d{d}", "text": f"Document {d} of {p}." if d else f"Only {p} {side}."}
                for d in range(6)
            ],
        }
        for p in pairs
        for side in sides
    ]
    items(judge, tmp_path, "c", rows)
    claims = [f"{p}-{side}" for p in pairs for side in sides]
    stages = ("retrieve", "rerank", "top-k")
    stance = {
        (c, d): rng.choice(("support", "refute", "neutral", "neutral")) for c in claims for d in range(6)
    }
    give("stance", {f"c:{c}/d{d}": label for (c, d), label in stance.items()})
    lists: dict[tuple[str, str], list[int]] = {}
    for stage, size in zip(stages, (5, 4, 2), strict=True):
        for c in claims:
            lists[stage, c] = rng.sample(range(6), size)
        ranking(judge, tmp_path, "own", {c: [f"c:{c}/d{d}" for d in lists[stage, c]] for c in claims}, stage)
    verdicts: dict[tuple[str, str], str] = {}
    for system in ("a", "b", "part"):
        for n, c in enumerate(claims):
            if system != "part" or n < 12:
                verdicts[system, c] = rng.choice(("yes", "yes", "no", "others", ""))
    answers(judge, tmp_path, [(c, s, "rag", "An answer." if v else "") for (s, c), v in verdicts.items()])
    give("confirmation", {f"c:{c}@{s}@rag": v for (s, c), v in verdicts.items() if v})
    n = 0
    for system in ("a", "b", "part"):
        result = score(judge, "confirmation", "--system", system, "--ranking", "own")
        expected: dict[str, float | None] = {}
        for number, stage in enumerate(stages):
            sr: dict[str, float | None] = {}
            for c in claims:
                found = [stance[c, d] for d in lists[stage, c]]
                evidence = found.count("support") + found.count("refute")
                sr[c] = found.count("support") / evidence if evidence else None
            both = [
                (x, y)
                for p in pairs
                if (x := sr[f"{p}-original"]) is not None and (y := sr[f"{p}-counter"]) is not None
            ]
            # (1 / 2N) sum of |SR_o - RR_c| + |SR_c - RR_o|, with RR = 1 - SR.
            expected[f"cr[{stage}]"] = mean([(abs(x - (1 - y)) + abs(y - (1 - x))) / 2 for x, y in both])
            expected[f"signed_cr[{stage}]"] = mean([x + y - 1 for x, y in both])
            expected[f"defined_pairs[{stage}]"] = len(both) / len(pairs)
            for side in sides:
                values = [v for p in pairs if (v := sr[f"{p}-{side}"]) is not None]
                expected[f"sr_{side}[{stage}]"] = mean(values)
            every = [stance[c, d] for c in claims for d in lists[stage, c]]
            expected[f"neutral_share[{stage}]"] = mean([float(label == "neutral") for label in every])
            # Document 0 of each claim has a text of its own, and the others are the same for both claims.
            named = {c: {(d, c if d == 0 else "") for d in lists[stage, c]} for c in claims}
            overlaps = [
                len(named[f"{p}-original"] & named[f"{p}-counter"])
                / len(named[f"{p}-original"] | named[f"{p}-counter"])
                for p in pairs
            ]
            expected[f"overlap[{stage}]"] = mean(overlaps)
            if number:
                before = stages[number - 1]
                moves: list[float] = []
                for c in claims:
                    shared = set(lists[stage, c]) & set(lists[before, c])
                    if shared:
                        each = [abs(lists[stage, c].index(d) - lists[before, c].index(d)) for d in shared]
                        moves.append(sum(each) / len(each))
                expected[f"rank_move[{stage}]"] = mean(moves)
        valid = [p for p in pairs if all(verdicts.get((system, f"{p}-{side}")) for side in sides)]
        expected["cbr"] = mean(
            [float(all(verdicts[system, f"{p}-{s}"] == "yes" for s in sides)) for p in valid]
        )
        expected["valid_pairs"] = len(valid) / len(pairs)
        for name, value in expected.items():
            n += close(result.value(name), value, (system, name))
    assert n >= 75
