"""Confirmation bias out of a study: does each of two contrary claims find its own support, and get its own answer?

Pairs are items with pair_id and polarity (imported, or built by judge pairs build). A judge's stances on the listed
passages make SR and CR; answers of the system under test (task `claim_answer`) and a judge's verdict on them (task
`confirmation`) make CBR. The arithmetic is in `judge.scores.confirmation`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from judge.commands import command
from judge.errors import BadInput, NothingToScore, UsageError
from judge.store.label_rows import quoted
from judge.store.study import Store
from judge.suites.paper import Option, Paper, Part
from judge.suites.steps import Step

if TYPE_CHECKING:
    import pandas as pd

    from judge.scores.score import Score
    from judge.suites.paper_study import PaperStudy
    from judge.suites.queries import System

STAGES = ("retrieve", "rerank", "top-k")
_ANSWER = {"yes": "Yes", "no": "No", "others": "Others"}


def read(study: PaperStudy) -> list[Score]:
    """The scores of the parts asked for."""
    from judge.scores import confirmation

    pairs = _pairs(study)
    entries = answers = None
    if study.part("retrieval"):
        entries = _listed(study, pairs)
    if study.part("answers"):
        answers = _answers(study)
    study.check()
    scores: list[Score] = []
    if entries is not None and len(entries):
        before: list[Score] = []
        for stage in _stages(entries):
            table = confirmation.ratios(pairs, entries, stage)
            here = confirmation.retrieval_bias(pairs, entries, stage)
            scores += [*_support(pairs, table, stage), *here]
            if before:
                scores += confirmation.changes(before, here)
            before = here
    if answers is not None:
        scores += confirmation.answer_bias(pairs, answers)
    _files(study, pairs, entries, answers)
    return scores


def present(store: Store, dataset: str) -> bool:
    """Whether the data set has pairs."""
    from judge.store import pairs

    return dataset in pairs.datasets(store)


def _pairs(study: PaperStudy) -> pd.DataFrame:
    """pair_id, original, counter, question_id of the pairs asked about that people have not turned down."""
    import pandas as pd

    from judge.store import pairs as stored

    found = stored.checked(study.store, study.dataset)
    items = study.rows.items.set_index("item_id")["question_id"]
    found = [p for p in found if p.original_id in items.index and p.counter_id in items.index]
    if not found:
        raise NothingToScore(
            f"no pairs in '{study.dataset}': import some ({command('judge items import claim-pairs FILE')}) or build some "
            f"({command('judge pairs build -m MODEL')})"
        )
    if study.option("consensus") != "all":
        limit = study.number("consensus")
        told = stored.counts(found, limit)
        kept = [p for p in found if p.kept(limit) is not False]
        if study.option("unchecked") == "drop":
            kept = [p for p in kept if p.votes]
        study.note(
            f"{len(found)} pairs: {told['kept']} confirmed by at least {limit:g} of their annotators, "
            f"{told['dropped']} turned down (left out), {told['unchecked']} not checked by people "
            f"({'kept' if study.option('unchecked') == 'keep' else 'left out'})"
        )
        if not kept:
            raise UsageError(
                f"no pair is left: see --consensus, --unchecked, and {command('judge pairs list')}"
            )
        found = kept
    table = pd.DataFrame(
        [(p.unit_id, p.original_id, p.counter_id) for p in found], columns=["pair_id", "original", "counter"]
    )
    original, counter = (items.reindex(table[side]).to_numpy() for side in ("original", "counter"))
    # Where each claim is a question of its own, the pair is what intervals resample.
    table["question_id"] = pd.Series(original, dtype=object).where(original == counter, None)
    return table


def _listed(study: PaperStudy, pairs: pd.DataFrame) -> pd.DataFrame | None:
    """claim_id, stage, rank, document, label, status of the first k passages of each list."""
    import pandas as pd

    from judge.scores.score import NOT_JUDGED
    from judge.store.rankings import LISTED
    from judge.suites.frames import frame

    name = _ranking(study)
    if name is None:
        return None
    depth = _depths(study)
    within = " OR ".join(f"(r.stage = {quoted(stage)} AND r.rank <= {k})" for stage, k in depth.items())
    query = (
        "SELECT r.item_id, r.stage, r.rank, p.content_sha, min(o.passage_id) "
        f"{LISTED} WHERE r.name = ? AND ({within}) AND r.item_id IN (SELECT item_id FROM unit_texts "
        f"WHERE kind = 'item' AND {study.rows.scope}) GROUP BY r.item_id, r.stage, r.rank ORDER BY r.item_id, r.rank"
    )
    found = frame(study.store.conn, query, [name], "claim_id stage rank_n document own")
    found = found.rename(columns={"rank_n": "rank"})
    if found.empty:
        raise UsageError(f"ranking '{name}' has no list at the stages of --k: {', '.join(depth)}")
    found = found[found["claim_id"].isin([*pairs["original"], *pairs["counter"]])].reset_index(drop=True)
    for stage in _stages(found):
        alone = found[(found["stage"] == stage) & found["own"].isna()]
        if len(alone):
            told = f"{len(alone)} passages in the lists of '{name}' ({stage}) are of other items: no unit yet"
            study.need(Step("attach", told, ranking=(name, stage), k=depth[stage], dataset=study.dataset))
    only = f"passage_id IN (SELECT o.passage_id {LISTED} WHERE r.name = {quoted(name)} AND ({within}))"
    stances = study.labels("stance", only=only, columns="passage_id", together="item_id")
    by_passage = stances.set_index("passage_id")
    found["label"] = by_passage["label"].reindex(found["own"]).to_numpy(dtype=object)
    status = by_passage["status"].reindex(found["own"]).to_numpy(dtype=object)
    found["status"] = pd.Series(status, dtype=object).where(pd.notna(status), NOT_JUDGED).to_numpy()
    found["label"] = found["label"].where(found["label"].notna(), None)
    shown = ", ".join(f"{stage} (first {depth[stage]})" for stage in _stages(found))
    study.note(f"ranking {name}; stages: {shown}")
    return found


def _depths(study: PaperStudy) -> dict[str, int]:
    """How many passages of each stage's lists count: --k 10 for all, or retrieve=100,rerank=20,top-k=5."""
    text = study.option("k")
    if "=" not in text:
        return dict.fromkeys(STAGES, study.numbers("k")[0])
    found = {}
    for word in text.split(","):
        stage, _, k = word.strip().partition("=")
        if stage not in STAGES or not k.isdecimal() or int(k) < 1:
            raise UsageError(
                f"--k is a number from 1, or STAGE=NUMBER of {', '.join(STAGES)}, not '{word.strip()}'"
            )
        found[stage] = int(k)
    return found


def _ranking(study: PaperStudy) -> str | None:
    """The name of the ranking whose stages are compared; None, and a step, when there is none."""
    there = list(dict.fromkeys(name for name, _ in study.rows.rankings()))
    wanted = study.option("ranking")
    if wanted and wanted not in there:
        raise UsageError(
            f"no ranking '{wanted}' of '{study.dataset}'; there are: {', '.join(there) or 'none'}"
        )
    fit = [wanted] if wanted else study.own_rankings(there)
    if len(fit) > 1:
        raise UsageError(f"several rankings: choose with --ranking; there are: {', '.join(there)}")
    if not fit:
        # A step, or a ranking that this system lacks where only others have one.
        study.ranking()
    return fit[0] if fit else None


def _stages(entries: pd.DataFrame) -> list[str]:
    there = set(entries["stage"])
    return [stage for stage in STAGES if stage in there]


def _answers(study: PaperStudy) -> pd.DataFrame:
    """claim_id, label, valid, status of each claim's answer."""
    import numpy as np

    from judge.scores.score import NOT_JUDGED
    from judge.suites.paper_study import FAILURES

    of, made = _whose(study)
    table = study.rows.items[["item_id"]].rename(columns={"item_id": "claim_id"})
    judged = study.labels("confirmation", of).set_index("item_id")
    there = study.rows.answers(of, "answer").set_index("item_id")["answer"]
    text = there.reindex(table["claim_id"])
    label = judged["label"].reindex(table["claim_id"]).map(_ANSWER)
    status = judged["status"].reindex(table["claim_id"])
    # An answer is the system's to give: an empty one, one it refused or left out is not valid. What it was not asked
    # yet, and what the judge refused, is missing.
    valid = np.array([isinstance(t, str) and bool(t.strip()) for t in text], dtype=bool)
    if made is not None:
        own = made.set_index("item_id")["status"].reindex(table["claim_id"])
        waits = text.isna().to_numpy() & ~own.isin(FAILURES).to_numpy()
        valid |= waits
        status = status.where(~waits, own.where(own != "ok", NOT_JUDGED))
    label = label.where(valid, None)
    table["label"] = label.where(label.notna(), None).to_numpy(dtype=object)
    table["status"] = status.where(status.notna(), NOT_JUDGED).to_numpy(dtype=object)
    table["valid"] = valid
    n = int((~valid).sum())
    if n:
        study.note(f"{n} claims have no answer of {of.system}, or an empty or refused one: not valid")
    return table


def _whose(study: PaperStudy) -> tuple[System, pd.DataFrame | None]:
    """Whose answers, and how making them ended (None: they were imported)."""
    from judge.runner import contexts
    from judge.suites.queries import System

    context = study.option("context")
    if context == "auto":
        found = study.system()
        if found is not None:
            run = [
                r for r in study.judges.runs if r.serves({"context": found.condition, "system": found.system})
            ]
            made = (
                study.generated("claim_answer", found.condition) if run and _plain(found.condition) else None
            )
            return found, made
        context = "none"
    name = study.option("ranking") or None
    made = study.generated(
        "claim_answer", context, study.ranking(name, None) if context.startswith("top:") else None
    )
    if made is None:
        study.check()
        raise NothingToScore(
            f"'{study.tested()}' has no answers under '{context}' in '{study.dataset}': "
            + study.import_words("FILE", "--system", study.tested(), "--condition", context)
        )
    given = contexts.parse(study.store, context, ranking=name)
    study.whose = System(study.tested(), given.name)
    return study.whose, made


def _plain(condition: str) -> bool:
    """Whether a condition is its own --context; that of a ranking is not (top:5:name:stage)."""
    return not condition.startswith("top:")


def _support(pairs: pd.DataFrame, table: pd.DataFrame, stage: str) -> list[Score]:
    """Mean SR of the original and of the counter claims that have one."""
    import numpy as np

    from judge.scores.columns import units
    from judge.scores.score import SHARE, scored

    who = units(pairs, "pairs", "pair_id")
    return [
        scored(
            f"sr_{side}[{stage}]",
            who,
            table["sr"].reindex(pairs[side]).to_numpy(dtype=np.float64),
            why="no supporting or refuting passage",
            bounds=SHARE,
        )
        for side in ("original", "counter")
    ]


def _files(
    study: PaperStudy, pairs: pd.DataFrame, entries: pd.DataFrame | None, answers: pd.DataFrame | None
) -> None:
    """The picture and the table of claims, when they were asked for."""
    import pandas as pd

    from judge.scores import confirmation
    from judge.suites import scatter

    plot, claims = study.option("plot"), study.option("claims")
    if not plot and not claims:
        return
    if entries is None or not len(entries):
        raise UsageError("--plot and --claims show the part 'retrieval', which is not there")
    if plot:
        tables = {stage: confirmation.scatter(pairs, entries, stage, answers) for stage in _stages(entries)}
        scatter.write(Path(plot), tables)
    if claims:
        parts = []
        for stage in _stages(entries):
            table = confirmation.ratios(pairs, entries, stage).drop(columns="status")
            parts.append(table.rename_axis("claim_id").reset_index().assign(stage=stage))
        try:
            pd.concat(parts).to_csv(claims, index=False)
        except OSError as e:
            raise BadInput(f"--claims {claims}: {e.strerror}") from e


PAPER = Paper(
    name="confirmation",
    abbreviations=("sr", "cr", "cbr"),
    title="ConfirmBiasRAG (Retrieving Facts or Reinforcing Beliefs?): support ratios and confirmation bias of claim pairs",
    read=read,
    lower=("cbr*", "cr*"),
    neutral=(
        "sr*",
        "rr*",
        "signed_cr*",
        "neutral_share*",
        "valid_pairs*",
        "defined_pairs*",
        "overlap*",
        "missing*",
        "*_change*",
    ),
    present=present,
    parts=(
        Part("retrieval", ("stance",), "SR, CR, signed CR, neutral share, overlap, change between stages"),
        Part("answers", ("confirmation",), "CBR: both answers support their own claim"),
    ),
    options=(
        Option("k", "10", "The first K of each list, or of each stage: retrieve=100,rerank=20,top-k=5."),
        Option("ranking", "", "The ranking, when there are several; all its stages are read."),
        Option(
            "context",
            "auto",
            "What the system under test is given: none, top:K ...; auto: the answers there are, else none.",
        ),
        Option("consensus", "0.73", "Pairs that people checked stay from this share of yes on; or: all."),
        Option("unchecked", "keep", "Pairs that nobody has checked.", ("keep", "drop")),
        Option(
            "plot", "", "Write the scatter of SR, original against counter, to this SVG file.", writes=True
        ),
        Option("claims", "", "Write each claim's SR and counts at each stage to this CSV file.", writes=True),
    ),
)
