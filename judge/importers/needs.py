"""What a data set of a paper still lacks after an import: conditions of a system's outputs, its ranking, human answers."""

from collections.abc import Iterable

from judge.commands import command
from judge.importers.conditions import DOCUMENT, name_of
from judge.retrieve import NAME
from judge.store.listing import list_outputs
from judge.store.study import Store

NEEDED = {
    "mirage": ("base", "oracle", "mixed"),
    "raguard": ("zero-context", "top-", "oracle", "ranking"),
    "urag": ("llm-only", "plain"),
}
"""Format of a data set -> what its paper asks of a system, by the paper's names. The start of a name is enough."""
_INSTEAD = {"mixed": "retrieved-", "plain": "top:"}
_SHOWN = {"top-": "top-1 or top-5"}


def lacks_human_answers(dataset: str) -> str:
    """What GaRAGe cannot score without human answers, and the command that imports those of its release."""
    return (
        f"'{dataset}' has no human answers: eligibility has no baseline and attribution no reference: "
        + command(
            "judge systems import FILE --map id=sample_id --map text=answer_generate --system human",
            "--dataset",
            dataset,
        )
    )


def lacking(store: Store, datasets: Iterable[str]) -> list[str]:
    """One line for each thing that is missing, in words."""
    told = []
    for dataset in sorted(set(datasets)):
        query = (
            "SELECT DISTINCT m.format FROM items AS i JOIN imports AS m USING (import_id) WHERE i.dataset = ?"
        )
        formats = {str(row[0]) for row in store.conn.execute(query, [dataset])}
        there: dict[str, list[str]] = {}
        for row in list_outputs(store, dataset):
            there.setdefault(str(row["system"]), []).append(str(row["condition"]))
        if "garage" in formats and "human" not in there:
            told.append(lacks_human_answers(dataset))
        for name in sorted(formats & NEEDED.keys()):
            for system, conditions in there.items():
                own = [_name(name, condition) for condition in conditions]
                missing = [_SHOWN.get(c, c) for c in NEEDED[name] if not _has(c, own)]
                if missing and system != "human":
                    if "ranking" in missing and (others := _of_no_system(store, dataset, set(there))):
                        named = ", ".join(f"'{name}'" for name in others)
                        missing[-1] += f" (no system is called {named}: --system says whose a ranking is)"
                    told.append(
                        f"'{system}' lacks {', '.join(missing)} for {name}; it has {', '.join(dict.fromkeys(own))}"
                    )
    return told


def _of_no_system(store: Store, dataset: str, systems: set[str]) -> list[str]:
    """The imported rankings of a data set that are called as no system: a tag in a TREC run has no spaces, a system may."""
    query = "SELECT DISTINCT name FROM rankings WHERE name <> ? AND item_id IN (SELECT item_id FROM items WHERE dataset = ?)"
    return [str(row[0]) for row in store.conn.execute(query, [NAME, dataset]) if row[0] not in systems]


def _name(paper: str, condition: str) -> str:
    """The paper's name of a listed condition. Outputs on one document at a time are RAGuard's oracle."""
    return "oracle" if condition == DOCUMENT else name_of(paper, condition)


def _has(wanted: str, conditions: list[str]) -> bool:
    starts = (wanted, _INSTEAD.get(wanted, wanted))
    return any(c.startswith(starts) for c in conditions)
