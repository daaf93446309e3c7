"""Where the head of `embedded/minilm` comes from: a logistic regression on the cosine, fitted on Factcheck-GPT.

    uv run python -m benchmarks.minilm_head --data ../shared/data
    uv run python -m benchmarks.minilm_head --data ../shared/data --write

Labels: Factcheck-GPT's, by people (irrelevant or not), claims drawn by their hash. Two thirds of the claims are fitted
on, both classes with equal weight; kappa is of the others, with a 95 % interval by claim, and of NovelEval, on which
nothing is fitted or chosen. `--write` puts slope, intercept and these figures into data/minilm/head.json.
"""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.quality_data import SETS
from judge.providers.embedded import SHA256, MiniLM
from judge.resources import resource_dir
from judge.stats import Ratings, measures

LABELS = ["relevant", "not_relevant"]
FIELD = "relevant"


def main() -> None:
    """Fit, print, and write if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--claims", type=int, default=220)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    embedder = MiniLM(1)
    pairs = _pairs(options.data, "factcheck_topic", options.claims)
    cosines, relevant = _cosines(embedder, pairs), np.array([p[2] == LABELS[0] for p in pairs])
    fitted = np.array([_hash("fold", p[0]) % 3 < 2 for p in pairs])
    weight = np.where(relevant, 0.5 / relevant[fitted].mean(), 0.5 / (~relevant[fitted]).mean())
    model = LogisticRegression(C=1e6).fit(cosines[fitted, None], relevant[fitted], weight[fitted])
    slope, intercept = round(float(model.coef_[0, 0]), 4), round(float(model.intercept_[0]), 4)
    novel = _pairs(options.data, "noveleval", 10_000)
    held = [p for p, f in zip(pairs, fitted, strict=True) if not f]
    head: dict[str, Any] = {
        "slope": slope,
        "intercept": intercept,
        "labels": [LABELS[0]],
        "weights": SHA256,
        "origin": {
            "fitted_on": "Factcheck-GPT, subtask 3 (Wang et al. 2024, arXiv:2311.09000; Apache-2.0; labels by people)",
            "as": "relevant = completely-support, partially-support or refute; not_relevant = irrelevant",
            "n_pairs": int(fitted.sum()),
            "n_claims": len({p[0] for p, f in zip(pairs, fitted, strict=True) if f}),
            "class_weights": "equal",
            "script": "benchmarks/minilm_head.py",
        },
        "figures": {
            "other claims of Factcheck-GPT": _figures(held, cosines[~fitted], slope, intercept),
            "NovelEval (not fitted on)": _figures(novel, _cosines(embedder, novel), slope, intercept),
        },
    }
    text = json.dumps(head, indent=2) + "\n"
    print(text, end="")
    if options.write:
        (resource_dir("data") / "minilm" / "head.json").write_text(text)


def _pairs(folder: Path, name: str, most: int) -> list[tuple[str, str, str]]:
    """(question or claim, passage, label) of the first questions by their hash."""
    data = SETS[name]
    rows = [json.loads(line) for line in (folder / data.path).read_text("utf-8").splitlines()]
    found = [(inputs["question"], text, label) for inputs, text, label in map(data.read, rows)]
    chosen = set(sorted({f[0] for f in found}, key=lambda q: _hash(name, q))[:most])
    return [f for f in found if f[0] in chosen]


def _hash(salt: str, text: str) -> int:
    return int(hashlib.sha256(f"{salt}\0{text}".encode()).hexdigest()[:12], 16)


def _cosines(embedder: MiniLM, pairs: list[tuple[str, str, str]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    texts = sorted({text for pair in pairs for text in pair[:2]}, key=len)
    encoded = [embedder.session.encode(text)[0] for text in texts]
    vectors = np.concatenate([embedder.vectors(encoded[at : at + 16]) for at in range(0, len(texts), 16)])
    place = {text: n for n, text in enumerate(texts)}
    return np.array([vectors[place[q]] @ vectors[place[p]] for q, p, _ in pairs])


def _figures(
    pairs: list[tuple[str, str, str]],
    cosines: np.ndarray[Any, np.dtype[np.float32]],
    slope: float,
    intercept: float,
) -> dict[str, Any]:
    said = [LABELS[0] if slope * c + intercept > 0 else LABELS[1] for c in cosines]
    rows = [
        (str(n), who, label, q)
        for n, ((q, _, gold), own) in enumerate(zip(pairs, said, strict=True))
        for who, label in (("judge", own), ("gold", gold))
    ]
    (kappa,) = measures(Ratings.from_rows(rows, LABELS), ["cohen_kappa"])
    assert kappa.value is not None and kappa.low is not None and kappa.high is not None
    gold = np.array([p[2] == LABELS[0] for p in pairs])
    return {
        "n_pairs": len(pairs),
        "n_questions": len({p[0] for p in pairs}),
        "cohen_kappa": round(kappa.value, 3),
        "low": round(kappa.low, 3),
        "high": round(kappa.high, 3),
        "auc": round(float(roc_auc_score(gold, cosines)), 3),
    }


if __name__ == "__main__":
    main()
