"""The numbers that the papers print, each with its setting, to be shown beside ours.

They were measured with another judge, another passage set and other rows. Shares are fractions here, although
some papers print percent. `measure` is the name that this package gives the measure.
"""

from dataclasses import asdict, dataclass
from typing import Literal

from judge.types import Json

Seen = Literal["paper", "second-hand"]


@dataclass(frozen=True, slots=True)
class Published:
    """One printed number. `by` says who labelled, `seen` whether the paper itself was read."""

    paper: str
    measure: str
    system: str
    value: float
    setting: str
    by: str
    where: str
    seen: Seen = "paper"

    def as_json(self) -> dict[str, Json]:
        """The documented shape."""
        return asdict(self)


def published(paper: str) -> list[Published]:
    """Return the printed numbers of a paper (garage, raguard, confirmation, mirage)."""
    return [p for p in PUBLISHED if p.paper == paper]


def _table(
    paper: str,
    columns: str,
    rows: str,
    *,
    percent: bool,
    setting: str,
    by: str,
    where: str,
    seen: Seen = "paper",
) -> list[Published]:
    """Parse rows `system | number number ...`, with `-` for none, under columns of measures."""
    printed = []
    for row in rows.strip().splitlines():
        system, numbers = (part.strip() for part in row.split("|"))
        for measure, number in zip(columns.split(), numbers.split(), strict=True):
            if number != "-":
                # Rounded, so that 57.9 % is 0.579 and not 0.5790000000000001.
                value = round(float(number) / 100, 6) if percent else float(number)
                printed.append(Published(paper, measure, system, value, setting, by, where, seen))
    return printed


_GARAGE = _table(
    "garage",
    "eligibility factuality raf deflection_true_positive_rate deflection_false_positive_rate "
    "attribution_precision attribution_recall attribution_f1",
    """
    GPT-4o           | 92.47 59.30 52.88 31.1 2.3 57.9 59.0 58.4
    Gemini 1.5 Flash | 84.88 70.50 59.43 27.2 2.3 54.7 56.3 55.5
    Nova Pro         | 87.77 66.63 60.67 18.0 -   56.9 49.6 53.0
    Claude Sonnet    | 86.07 64.67 48.91 25.3 1.4 51.8 67.5 58.6
    Claude Haiku     | 79.37 48.37 36.90 -    -   49.9 71.9 58.9
    Qwen 32b         | 90.50 61.00 52.90 21.5 1.2 -    -    -
    Mistral          | 85.30 43.32 34.32 5.2  -   -    -    -
    """,
    percent=True,
    setting="answerable rows; deflection TP over the insufficient rows; micro or macro is not said",
    by="judge GPT-4o",
    where="arXiv 2506.07671, result tables",
    seen="second-hand",
)

_RAGUARD = _table(
    "raguard",
    "accuracy_zero accuracy_rag_1 accuracy_rag_5 accuracy_oracle accuracy_misleading",
    """
    Gemini 1.5 Flash  | 61.06 56.68 57.59 52.38 30.57
    GPT-4o mini       | 67.33 64.80 65.90 53.22 45.97
    Claude 3.5 Sonnet | 74.51 70.09 68.58 51.17 37.05
    Llama3-8B         | 62.50 59.40 61.37 61.09 36.81
    Mistral-7B        | 63.97 59.14 58.91 51.61 28.22
    """,
    percent=True,
    setting="two-shot; an answer outside the options is wrong",
    by="no judge: verdicts against PolitiFact's",
    where="arXiv 2502.16101 v1, table 4",
)
_RAGUARD_RETRIEVAL = [
    Published(
        "raguard", f"misleading_retrieval_recall@{k}", "the paper's retriever", value, setting, by, where
    )
    for k, value, setting in (
        (1, 0.213, "RAG-1; whose documents and over which claims is not said"),
        (5, 0.448, "RAG-5; whose documents and over which claims is not said"),
    )
    for by, where in (("document labels by a language model", "arXiv 2502.16101"),)
]

_PEOPLE, _AUTO = "people, 70 pairs", "judge, 270 pairs"
_CONFIRMATION = [
    Published("confirmation", "cbr", system, value, setting, by, "anonymous submission, answer bias")
    for system, value, setting, by in (
        ("ScholarQA-GPT", 0.1716, "with retrieval", _AUTO),
        ("OpenScholar", 0.214, "with retrieval", _AUTO),
        ("GPT-4o", 0.4509, "without retrieval", _AUTO),
        ("OpenScholar-Llama", 0.2767, "without retrieval", _AUTO),
        ("ScholarQA-Claude", 0.1857, "with retrieval", _PEOPLE),
        ("OpenScholar", 0.2714, "with retrieval", _PEOPLE),
        ("ChatGPT-search", 0.4305, "with retrieval", _PEOPLE),
    )
]
for _measure, _rows in (
    ("cr", "OpenScholar | .4422 .4386 .4420\nScholarQA | .4367 .3913 .4273"),
    ("neutral_share", "OpenScholar | .8327 .6970 .7934\nScholarQA | .8331 .6918 .7555"),
):
    _CONFIRMATION += _table(
        "confirmation",
        " ".join(f"{_measure}[{stage}]" for stage in ("retrieve", "rerank", "top-k")),
        _rows,
        percent=False,
        setting="270 pairs",
        by="judge",
        where="anonymous submission, retrieval bias",
    )

_MIRAGE = _table(
    "mirage",
    "noise_vulnerability context_acceptability context_insensitivity context_misinterpretation",
    "GPT-4o, NV-embed-v2 | 10.64 80.50 8.29 0.57",
    percent=True,
    setting="mixed context: retrieved top 5",
    by="exact match, loose",
    where="arXiv 2504.17137, table 1",
) + _table(
    "mirage",
    "accuracy_base accuracy_mixed accuracy_oracle",
    "GPT-4o | 45.82 87.49 91.14",
    percent=True,
    setting="mixed context: the fixed five chunks",
    by="exact match, loose",
    where="arXiv 2504.17137, table 3",
)

PUBLISHED: tuple[Published, ...] = (*_GARAGE, *_RAGUARD, *_RAGUARD_RETRIEVAL, *_CONFIRMATION, *_MIRAGE)
