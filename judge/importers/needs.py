"""What a data set of a paper still lacks after an import: conditions of a system's answers, human answers."""

from collections.abc import Iterable

from judge.importers.conditions import name_of
from judge.store.study import Store

NEEDED = {"mirage": ("base", "oracle", "mixed"), "raguard": ("zero-context",), "urag": ("llm-only", "plain")}
"""Format of a data set -> the conditions under which its paper asks a system, by the paper's names."""
_INSTEAD = {"mixed": "retrieved-", "plain": "top:"}
HUMAN = (
    "'{dataset}' has no human answers: eligibility has no baseline and attribution no reference (judge systems import "
    "FILE --map id=sample_id --map text=answer_generate --system human --dataset {dataset})"
)


def lacking(store: Store, datasets: Iterable[str]) -> list[str]:
    """One line for each thing that is missing, in words."""
    told = []
    for dataset in sorted(set(datasets)):
        query = (
            "SELECT DISTINCT m.format FROM items AS i JOIN imports AS m USING (import_id) WHERE i.dataset = ?"
        )
        formats = {str(row[0]) for row in store.conn.execute(query, [dataset])}
        query = (
            "SELECT DISTINCT a.system, a.condition FROM answers AS a JOIN items AS i USING (item_id) "
            "WHERE i.dataset = ? AND a.condition NOT GLOB 'distractor:*' ORDER BY 1, 2"
        )
        there: dict[str, set[str]] = {}
        for system, condition in store.conn.execute(query, [dataset]):
            there.setdefault(str(system), set()).add(str(condition))
        if "garage" in formats and "human" not in there:
            told.append(HUMAN.format(dataset=dataset))
        for name in sorted(formats & NEEDED.keys()):
            for system, conditions in there.items():
                own = {name_of(name, condition) for condition in conditions}
                missing = [c for c in NEEDED[name] if not _has(c, own)]
                if missing and system != "human":
                    known = ", ".join(sorted(own))
                    told.append(
                        f"judge score {name} needs answers of '{system}' under {', '.join(missing)} too; "
                        f"there are some under: {known} (--condition names it)"
                    )
    return told


def _has(wanted: str, conditions: set[str]) -> bool:
    instead = _INSTEAD.get(wanted)
    return wanted in conditions or (instead is not None and any(c.startswith(instead) for c in conditions))
