"""A planted collection of 12 queries and 3 systems, and what ranx 0.3.21 says of it.

    uv venv oracle && uv pip install --python oracle ranx && oracle/bin/python tests/retrieval/planted.py

prints the values below (RANX). Grades 0 to 3; every query has a relevant document:
where there is none the library says 0, and we say that there is no recall. `-l2`: relevant is a grade of 2 or more.
"""

import random

SYSTEMS = {"good": 0.4, "fair": 1.5, "poor": 6.0}


def qrels() -> dict[str, dict[str, int]]:
    drawn = random.Random(7)
    return {
        f"q{n}": {f"d{m}": drawn.choice((0, 0, 0, 1, 2, 3)) for m in range(15)} | {"d15": 1}
        for n in range(12)
    }


def runs() -> dict[str, dict[str, dict[str, float]]]:
    """Scores without ties: the order of a tie is the library's own."""
    result = {}
    for name, noise in SYSTEMS.items():
        drawn = random.Random(name)
        result[name] = {
            query: {document: grade + drawn.gauss(0, noise) for document, grade in grades.items()}
            for query, grades in qrels().items()
        }
    return result


MEASURES = ("precision@5", "recall@5", "f1@5", "ndcg@5", "mrr@5", "ndcg@10", "precision@10-l2", "mrr@5-l2")

RANX: dict[str, dict[str, float]] = {
    "good": {
        "precision@5": 1.0,
        "recall@5": 0.6011904761904762,
        "f1@5": 0.746850371850372,
        "ndcg@5": 0.9860119899442877,
        "mrr@5": 1.0,
        "ndcg@10": 0.9914563504256394,
        "precision@10-l2": 0.48333333333333334,
        "mrr@5-l2": 1.0,
    },
    "fair": {
        "precision@5": 0.8833333333333334,
        "recall@5": 0.5265542328042329,
        "f1@5": 0.6563325563325563,
        "ndcg@5": 0.7753383345815094,
        "mrr@5": 1.0,
        "ndcg@10": 0.8422267851031666,
        "precision@10-l2": 0.4583333333333333,
        "mrr@5-l2": 0.8611111111111112,
    },
    "poor": {
        "precision@5": 0.6,
        "recall@5": 0.3539021164021164,
        "f1@5": 0.44270729270729275,
        "ndcg@5": 0.4650649872883561,
        "mrr@5": 0.75,
        "ndcg@10": 0.5810158650424545,
        "precision@10-l2": 0.3583333333333332,
        "mrr@5-l2": 0.5722222222222222,
    },
}

if __name__ == "__main__":
    from ranx import Qrels, Run, evaluate

    for name, run in runs().items():
        values = evaluate(Qrels(qrels()), Run(run), list(MEASURES))
        print(f'    "{name}": {{')
        for measure, value in values.items():
            print(f'        "{measure}": {float(value)!r},')
        print("    },")
